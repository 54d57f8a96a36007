//! `aviary rollout`.

use aviary_api::ManifestWork;
use aviary_engine::rollout::State;
use expect_test::expect;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::world::{World, addon, hub_config, template};

#[test]
fn a_pause_holds_the_fleet_and_a_resume_lets_it_go() {
    let world = World::installed("pause");
    world.check(
        "rollout pause helloworld --dry-run",
        &expect![[r#"
            $ aviary rollout pause helloworld --dry-run
            default/fleet paused (dry run): clusters in flight finish, and no new clusters
              start
            default/canary paused (dry run): clusters in flight finish, and no new clusters
              start
            Nothing was written. Next: aviary rollout pause helloworld
        "#]],
    );
    assert_eq!(
        world.get("ClusterManagementAddOn", "helloworld")["spec"]["installStrategy"]["placements"],
        addon("one")["spec"]["installStrategy"]["placements"]
    );
    world.check(
        "rollout pause helloworld --placement fleet",
        &expect![[r#"
            $ aviary rollout pause helloworld --placement fleet
            default/fleet paused: clusters in flight finish, and no new clusters start
            Next: aviary rollout resume helloworld --placement fleet
        "#]],
    );
    world.check(
        "rollout pause helloworld",
        &expect![[r#"
            $ aviary rollout pause helloworld
            default/fleet was already paused
            default/canary paused: clusters in flight finish, and no new clusters start
            Next: aviary rollout resume helloworld
        "#]],
    );
    world.check(
        "rollout pause helloworld --placement elsewhere",
        &expect![[r#"
        $ aviary rollout pause helloworld --placement elsewhere
        ! aviary: add-on helloworld has no placement elsewhere: it has default/fleet, default/canary
        exit 1
    "#]],
    );
    for command in ["rollout pause helloworld --dry-run", "rollout resume helloworld --dry-run"] {
        let told = world.run(command);
        let is_long = |line: &&str| line.chars().count() > 80 && !line.contains("Next: ");
        assert_eq!(told.lines().filter(is_long).collect::<Vec<_>>(), [""; 0]);
    }
    let paused = world.get("ClusterManagementAddOn", "helloworld");
    world.give(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn", "metadata": {"name": "helloworld"},
        "spec": {"installStrategy": {"placements": paused["spec"]["installStrategy"]["placements"].as_array().unwrap().iter().map(|placement| {
            let mut placement = placement.clone();
            placement["configs"][0]["name"] = json!("two");
            placement
        }).collect::<Vec<_>>()}},
    }));
    world.until("the pause", |_, plan| {
        plan.report.placements.iter().any(|placement| placement.state == State::Paused)
    });
    world.check(
        "status helloworld",
        &expect![[r#"
            $ aviary status helloworld
            helloworld  Progressing  0 of 16 clusters settled; paused: default/fleet,
                default/canary
            ├─ default/canary  [........................] 0/4  Paused v2.0.0
            │  4 waiting, at most 2 at once
            │  └─ 4 Paused: paused (canary-00, canary-01, canary-02 and 1 more)
            └─ default/fleet  WaitingForCanary (paused) v2.0.0 (v1.0.0 until then)
               [........................] 0/12
               12 waiting, at most 3 at once, behind default/canary
               └─ 12 WaitingForCanary: canary default/canary: 4 of 4 not passed, first
                    canary-00 (fleet-00, fleet-01, fleet-02 and 9 more)
            Next: aviary explain helloworld # what it waits for
            exit 3
        "#]],
    );
    let told = world.json("rollout resume helloworld -o json", 0);
    assert_eq!(
        told,
        json!({"version": 1, "addOn": "helloworld", "paused": false, "dryRun": false, "placements": [
            {"placement": "default/fleet", "changed": true}, {"placement": "default/canary", "changed": true},
        ]})
    );
    world.until_all("upgrade completed with no errors.");
    world.check(
        "rollout resume helloworld",
        &expect![[r#"
        $ aviary rollout resume helloworld
        default/fleet was not paused
        default/canary was not paused
        Next: aviary status helloworld -w
    "#]],
    );
}

#[test]
fn a_bad_revision_is_undone() {
    let world = World::refused("undo");
    world.check(
        "rollout history helloworld",
        &expect![[r#"
            $ aviary rollout history helloworld
            default/fleet
              REVISION  VERSION  COMPLETED             TOOK  MARKS
                     1  v1.0.0   TIME  TOOK  known good, applied
                  one@5b12c19f helloworld-v1.0.0@9134b7b1
                     -  v3.0.0   not yet               -     wanted
                  three@8ed3adae helloworld-v3.0.0@2a1f2fc2
            default/canary
              REVISION  VERSION  COMPLETED             TOOK  MARKS
                     1  v1.0.0   TIME  TOOK  known good, applied
                  one@5b12c19f helloworld-v1.0.0@9134b7b1
                     -  v3.0.0   not yet               -     wanted
                  three@8ed3adae helloworld-v3.0.0@2a1f2fc2
              TIME  failed after TOOK: rolling out v3.0.0: stopped, 2 failed,
                2 of 2 slots taken: canary-00, canary-01
            Next: aviary rollout undo helloworld --dry-run # what a rollback would write
        "#]],
    );
    world.check(
        "rollout undo helloworld --dry-run",
        &expect![[r#"
            $ aviary rollout undo helloworld --dry-run
            default/fleet rolls back from v3.0.0 to v1.0.0, its revision 1 (dry run)
              addonhubconfigs.addon.open-cluster-management.io: three -> one
            default/canary rolls back from v3.0.0 to v1.0.0, its revision 1 (dry run)
              addonhubconfigs.addon.open-cluster-management.io: three -> one
            Nothing was written. Next: aviary rollout undo helloworld
        "#]],
    );
    world.check("rollout undo helloworld --to-revision 1", &expect![[r#"
        $ aviary rollout undo helloworld --to-revision 1
        ! aviary: every placement has its own revision numbers: use --placement to select which of default/fleet, default/canary rolls back to revision 1
        exit 1
    "#]]);
    world.check(
        "rollout undo helloworld --to-revision 7 --placement canary",
        &expect![[r#"
            $ aviary rollout undo helloworld --to-revision 7 --placement canary
            ! aviary: there is nothing to roll back to: default/canary has no revision 7: it has 1
            exit 1
        "#]],
    );
    world.check(
        "rollout undo helloworld",
        &expect![[r#"
            $ aviary rollout undo helloworld
            default/fleet rolls back from v3.0.0 to v1.0.0, its revision 1
              addonhubconfigs.addon.open-cluster-management.io: three -> one
            default/canary rolls back from v3.0.0 to v1.0.0, its revision 1
              addonhubconfigs.addon.open-cluster-management.io: three -> one
            Next: aviary status helloworld -w
        "#]],
    );
    world.until("the way back", |observed, plan| {
        plan.report.placements.iter().all(|placement| placement.desired.as_deref() == Some("v1.0.0"))
            && plan.report.clusters.iter().all(|cluster| cluster.decision.code().as_str() == "Settled")
            && observed
                .instances
                .values()
                .all(|instance| instance.status.current_version.as_deref() == Some("v1.0.0"))
    });
    assert!(world.run("status helloworld").contains("helloworld  Done  16 of 16 clusters settled"));
    world.check("rollout undo helloworld", &expect![[r#"
        $ aviary rollout undo helloworld
        ! aviary: there is nothing to roll back to: default/fleet has completed no other revision than its desired one; default/canary has completed no other revision than its desired one
        exit 1
    "#]]);
    let told = world.json("rollout history helloworld --placement default/canary -o json", 0);
    assert_eq!(told["placements"].as_array().unwrap().len(), 1);
    assert_eq!(told["placements"][0]["revisions"][0]["number"], 1);
    assert_eq!(told["placements"][0]["revisions"][0]["marks"], json!(["Wanted", "KnownGood", "Applied"]));

    // The failed attempt is kept, also when the hub has forgotten its Events.
    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    world.block_on(events.delete_collection(&DeleteParams::default(), &ListParams::default())).unwrap();
    assert!(world.block_on(events.list(&ListParams::default())).unwrap().items.is_empty());
    let told = world.json("rollout history helloworld -o json", 0);
    let attempts = told["placements"][1]["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1, "{told:#}");
    assert_eq!(
        (&attempts[0]["what"], &attempts[0]["outcome"]),
        (&json!("rolling out v3.0.0"), &json!("Failed"))
    );
    let why = "stopped, 2 failed, 2 of 2 slots taken: canary-00, canary-01; rolled back to v1.0.0";
    assert_eq!(attempts[0]["why"], why);
    assert!(attempts[0]["tookSeconds"].is_i64() && attempts[0]["endedAt"].is_string(), "{told:#}");
    assert_eq!(told["placements"][0]["attempts"], json!([]), "nothing moved there");
    let text = world.run("rollout history helloworld");
    assert!(text.contains("failed after TOOK: rolling out v3.0.0: stopped, 2"), "{text}");
}

#[test]
fn a_config_that_was_edited_in_place_is_restored_only_when_asked() {
    let world = World::installed("undo-in-place");
    world.give(hub_config("one", "v2.0.0"));
    world.until_all("upgrade completed with no errors.");
    world.check("rollout undo helloworld", &expect![[r#"
        $ aviary rollout undo helloworld
        ! aviary: nothing was written: addonhubconfigs.addon.open-cluster-management.io one, which is used by add-on helloworld in default/fleet, add-on helloworld in default/canary, was edited or deleted since that revision; referencing it again would not restore its content. aviary rollout undo helloworld --restore-configs restores the content for everything that uses it
        exit 1
    "#]]);
    assert_eq!(world.get("AddOnHubConfig", "one")["spec"]["desiredVersion"], "v2.0.0");
    world.check(
        "rollout undo helloworld --restore-configs --dry-run",
        &expect![[r#"
        $ aviary rollout undo helloworld --restore-configs --dry-run
        default/fleet rolls back from v2.0.0 to v1.0.0, its revision 1 (dry run)
        default/canary rolls back from v2.0.0 to v1.0.0, its revision 1 (dry run)
        addonhubconfigs.addon.open-cluster-management.io one has its earlier content
          again (dry run); used by add-on helloworld in default/fleet, add-on helloworld
          in default/canary
        Nothing was written. Next: aviary rollout undo helloworld --restore-configs
    "#]],
    );
    assert_eq!(world.get("AddOnHubConfig", "one")["spec"]["desiredVersion"], "v2.0.0");
    world.check(
        "rollout undo helloworld --restore-configs",
        &expect![[r#"
        $ aviary rollout undo helloworld --restore-configs
        default/fleet rolls back from v2.0.0 to v1.0.0, its revision 1
        default/canary rolls back from v2.0.0 to v1.0.0, its revision 1
        addonhubconfigs.addon.open-cluster-management.io one has its earlier content
          again; used by add-on helloworld in default/fleet, add-on helloworld in
          default/canary
        Next: aviary status helloworld -w
    "#]],
    );
    assert_eq!(world.get("AddOnHubConfig", "one")["spec"]["desiredVersion"], "v1.0.0");
    world.until("the way back", |_, plan| {
        plan.report.placements.iter().all(|placement| placement.desired.as_deref() == Some("v1.0.0"))
            && plan.report.clusters.iter().all(|cluster| cluster.decision.code().as_str() == "Settled")
    });
}

#[test]
fn a_template_that_was_edited_in_place_is_restored_without_being_named() {
    let world = World::installed("undo-template");
    let mut edited = template("v1.0.0");
    edited["spec"]["agentSpec"]["workload"]["manifests"][0]["data"]["extra"] = json!("new");
    world.give(edited);
    world.until_all("upgrade completed with no errors.");
    let told = world.run("rollout undo helloworld");
    assert!(
        told.contains(
            "addontemplates.addon.open-cluster-management.io helloworld-v1.0.0, was edited or deleted since"
        ),
        "{told}"
    );
    assert!(told.ends_with("exit 1\n"), "{told}");
    let told = world.json("rollout undo helloworld --restore-configs -o json", 0);
    assert_eq!(told["placements"][0]["references"], json!([]));
    let config = "addontemplates.addon.open-cluster-management.io helloworld-v1.0.0";
    assert_eq!(told["restored"], json!([{"config": config, "usedBy": []}]));
    assert_eq!(world.get("AddOnTemplate", "helloworld-v1.0.0")["spec"], template("v1.0.0")["spec"]);
}

#[test]
fn a_version_in_shorthand_is_gone_back_to_and_forth() {
    let world = World::installed("undo-shorthand");
    let mut short = addon("one");
    for placement in short["spec"]["installStrategy"]["placements"].as_array_mut().unwrap() {
        placement["configs"] = json!([]);
        placement["addonTemplate"] = json!({"desiredVersion": "v2.0.0"});
    }
    world.give(short);
    world.until_all("upgrade completed with no errors.");
    let placement = || {
        world.get("ClusterManagementAddOn", "helloworld")["spec"]["installStrategy"]["placements"][0].clone()
    };
    world.check(
        "rollout undo helloworld --placement fleet",
        &expect![[r#"
            $ aviary rollout undo helloworld --placement fleet
            default/fleet rolls back from v2.0.0 to v1.0.0, its revision 1
              addonhubconfigs.addon.open-cluster-management.io: v2.0.0 -> one
            Next: aviary status helloworld -w
        "#]],
    );
    assert_eq!(placement()["configs"][0]["name"], "one");
    assert_eq!(placement()["addonTemplate"], json!({}));
    world.until("the way back", |_, plan| {
        plan.report.placements[0].message == "12/12 upgrade completed with no errors."
            && plan.report.placements[0].desired.as_deref() == Some("v1.0.0")
    });
    let history = world.json("rollout history helloworld --placement fleet -o json", 0);
    let revisions = history["placements"][0]["revisions"].as_array().unwrap();
    let left = revisions.iter().find(|revision| revision["number"] == 2).unwrap();
    assert_eq!(
        (&left["version"], &left["outcome"], &left["marks"]),
        (&json!("v2.0.0"), &json!("RolledBack"), &json!(["Withdrawn"]))
    );
    let history = world.run("rollout history helloworld --placement fleet");
    let left = history.lines().find(|line| line.contains("v2.0.0")).unwrap();
    assert!(left.contains("withdrawn"), "{history}");
    world.check("rollout undo helloworld --placement fleet", &expect![[r#"
        $ aviary rollout undo helloworld --placement fleet
        ! aviary: there is nothing to roll back to: default/fleet has already been rolled back; to go forward again use --to-revision 2, which is an upgrade like any other
        exit 1
    "#]]);
    world.check(
        "rollout undo helloworld --placement fleet --to-revision 2",
        &expect![[r#"
            $ aviary rollout undo helloworld --placement fleet --to-revision 2
            default/fleet goes forward from v1.0.0 to v2.0.0, its revision 2
              addonhubconfigs.addon.open-cluster-management.io: one -> v2.0.0
            Next: aviary status helloworld -w
        "#]],
    );
    assert_eq!(placement()["configs"], json!([]));
    assert_eq!(placement()["addonTemplate"], json!({"desiredVersion": "v2.0.0"}));
}

#[test]
fn what_failed_tries_again_and_heals() {
    let world = World::refused("retry");
    world.check(
        "rollout retry helloworld --dry-run",
        &expect![[r#"
            $ aviary rollout retry helloworld --dry-run
            2 clusters try again (dry run): canary-00, canary-01
            Nothing was written. Next: aviary rollout retry helloworld
        "#]],
    );
    world.check(
        "rollout retry helloworld --cluster fleet-00",
        &expect![[r#"
            $ aviary rollout retry helloworld --cluster fleet-00
            ! aviary: add-on helloworld has not failed on cluster fleet-00: there is nothing to retry
            exit 1
        "#]],
    );
    let before = world.get("ManifestWork", "canary-00/addon-helloworld-deploy-0");
    // The cause is not fixed: they fail again.
    world.check(
        "rollout retry helloworld --cluster canary-0",
        &expect![[r#"
            $ aviary rollout retry helloworld --cluster canary-0
            ! aviary: there is no cluster canary-0; did you mean canary-00?
            exit 1
        "#]],
    );
    world.check(
        "rollout retry helloworld --cluster canary-00",
        &expect![[r#"
        $ aviary rollout retry helloworld --cluster canary-00
        1 cluster tries again: canary-00
        Next: aviary status helloworld -w
    "#]],
    );
    world.until("another failure", |observed, plan| {
        let works = observed.works.iter().find(|(cluster, _)| cluster.as_str() == "canary-00");
        let generation = works.map_or(0, |(_, works)| works[0].generation);
        generation == before["metadata"]["generation"].as_i64().unwrap() + 2
            && plan
                .report
                .clusters
                .iter()
                .filter(|cluster| cluster.decision.code().as_str() == "Failed")
                .count()
                == 2
    });
    let after = world.get("ManifestWork", "canary-00/addon-helloworld-deploy-0");
    assert_eq!(after["spec"], before["spec"], "the mark is gone again");
    world.mood(|mood| mood.refuse.clear());
    world.check(
        "rollout retry helloworld",
        &expect![[r#"
        $ aviary rollout retry helloworld
        2 clusters try again: canary-00, canary-01
        Next: aviary status helloworld -w
    "#]],
    );
    world.until_all("upgrade completed with no errors.");
    world.check(
        "rollout retry helloworld",
        &expect![[r#"
            $ aviary rollout retry helloworld
            No cluster of helloworld has failed: there is nothing to retry
            Next: aviary status helloworld -w
        "#]],
    );
    world.check(
        "rollout retry helloworld --dry-run",
        &expect![[r#"
            $ aviary rollout retry helloworld --dry-run
            No cluster of helloworld has failed: there is nothing to retry
            Nothing was written. Next: aviary status helloworld
        "#]],
    );
}

#[test]
fn who_ran_out_of_time_gets_it_again() {
    let world = World::installed("retry-late");
    world.mood(|mood| mood.ignore.extend(["v2.0.0".to_owned()]));
    let mut late = addon("two");
    late["spec"]["installStrategy"]["placements"] = json!([{
        "name": "canary", "namespace": "default", "configs": late["spec"]["installStrategy"]["placements"][0]["configs"],
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": 1}, "progressDeadline": "2s"},
    }]);
    world.give(late);
    world.until("the deadline", |_, plan| {
        plan.report.clusters.iter().any(|cluster| {
            cluster.cluster.as_str() == "canary-00" && cluster.decision.code().as_str() == "TimedOut"
        })
    });
    let told = world.json("rollout retry helloworld -o json", 0);
    assert_eq!(told["retried"], json!([{"cluster": "canary-00", "works": [], "clock": true}]));
    world.until("the deadline again", |observed, plan| {
        let clock = observed.instances.iter().find(|(cluster, _)| cluster.as_str() == "canary-00").unwrap().1;
        clock.status.condition("RevisionHealthy").is_some()
            && plan.report.clusters.iter().any(|cluster| {
                cluster.cluster.as_str() == "canary-00" && cluster.decision.code().as_str() == "TimedOut"
            })
    });
}

const PROBES_DIGEST: &str = "addon.open-cluster-management.io/probes-digest";

/// How many works have probes; where `strip`, none has afterwards.
async fn probed(client: &kube::Client, strip: bool) -> usize {
    let works: Api<ManifestWork> = Api::all(client.clone());
    let all = works.list(&ListParams::default()).await.unwrap();
    let probed = all.iter().filter(|work| work.annotations().contains_key(PROBES_DIGEST)).count();
    for work in all.iter().filter(|_| strip) {
        let works: Api<ManifestWork> = Api::namespaced(client.clone(), &work.namespace().unwrap());
        let patch = json!({"metadata": {"annotations": {PROBES_DIGEST: null}}});
        works.patch(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
    probed
}

/// The template has nothing to probe, so a work of the first version differs by an annotation only.
#[test]
fn works_of_the_first_version_are_left_alone_until_somebody_asks_for_probes() {
    let world = World::installed("reprobe");
    world.check(
        "rollout reprobe helloworld",
        &expect![[r#"
        $ aviary rollout reprobe helloworld
        All works of helloworld have probes: there is nothing to do
        Next: aviary status helloworld -w
    "#]],
    );
    let client = world.client.clone();
    assert_eq!(world.block_on(probed(&client, true)), 16);
    world.until("works without probes", |_, plan| plan.report.not_probed == 16 && plan.is_at_rest());
    world.check(
        "status helloworld",
        &expect![[r#"
            $ aviary status helloworld
            helloworld  Done  16 of 16 clusters settled
            ├─ default/canary  [########################] 4/4  Installed v1.0.0
            └─ default/fleet   [########################] 12/12  Installed v1.0.0
            Note: not probed: 16 clusters of helloworld have works of an earlier version of
              Aviary
            Next: aviary rollout history helloworld
        "#]],
    );
    world.check(
        "explain helloworld",
        &expect![[r#"
            $ aviary explain helloworld
            helloworld  Done  16 of 16 clusters settled

            default/canary  Installed  install completed with no errors.
              4 clusters, at most 2 at once: 4 settled, 0 in flight, 0 failed, 0 waiting

            default/fleet  Installed  install completed with no errors.
              12 clusters, at most 3 at once: 12 settled, 0 in flight, 0 failed, 0 waiting
              behind the canary default/canary

            Note: not probed: 16 clusters have works of an earlier version of Aviary, judged
              by their conditions alone; aviary rollout reprobe helloworld --kubeconfig
              hub.kubeconfig adds probes

            Nothing is waiting. Next: aviary rollout history helloworld
        "#]],
    );
    world.check(
        "rollout reprobe helloworld --dry-run",
        &expect![[r#"
        $ aviary rollout reprobe helloworld --dry-run
        The works of 16 clusters get probes (dry run), at most 25 % of a placement's clusters at once
        Nothing was written. Next: aviary rollout reprobe helloworld
    "#]],
    );
    world.check(
        "rollout reprobe helloworld --stop",
        &expect![[r#"
        $ aviary rollout reprobe helloworld --stop
        Nobody has asked for probes in the works of helloworld
        Next: aviary status helloworld -w
    "#]],
    );
    assert_eq!(world.block_on(probed(&client, false)), 0);
    world.check(
        "rollout reprobe helloworld",
        &expect![[r#"
        $ aviary rollout reprobe helloworld
        The works of 16 clusters get probes, at most 25 % of a placement's clusters at once
        Next: aviary status helloworld -w
    "#]],
    );
    world.until("probes", |_, plan| plan.report.not_probed == 0 && plan.is_at_rest());
    assert_eq!(world.block_on(probed(&client, false)), 16);
    world.check(
        "rollout reprobe helloworld --stop",
        &expect![[r#"
        $ aviary rollout reprobe helloworld --stop
        The request is taken back: all works of helloworld have probes
        Next: aviary status helloworld -w
    "#]],
    );
    assert!(world.get("ClusterManagementAddOn", "helloworld")["metadata"]["annotations"]["addon.open-cluster-management.io/reprobe"].is_null());
}

#[test]
fn resume_names_the_policy_that_still_pauses() {
    let world = World::quiet("rollout-resume-policy");
    world.block_on(world.fleet());
    world.give(addon("one"));
    world.give(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnRolloutPolicy",
        "metadata": {"name": "freeze"},
        "spec": {"addOns": {"names": ["helloworld"]}, "placements": [{"name": "fleet", "namespace": "default"}], "paused": true},
    }));
    world.check(
        "rollout resume helloworld",
        &expect![[r#"
            $ aviary rollout resume helloworld
            default/fleet was not paused by the add-on: AddOnRolloutPolicy freeze still
              pauses it
            default/canary was not paused
            Next: kubectl edit addonrolloutpolicy freeze # it pauses
        "#]],
    );
    let told = world.json("rollout resume helloworld -o json", 0);
    assert_eq!(told["placements"][0]["pausedBy"], "freeze", "{told:#}");
}

/// A hint never leads to an error.
#[test]
fn the_history_of_a_first_install_suggests_no_rollback() {
    let world = World::installed("rollout-first-history");
    assert_eq!(world.output("rollout undo helloworld --dry-run").status.code(), Some(1));
    let told = world.run("rollout history helloworld");
    assert!(told.ends_with("Next: aviary status helloworld\n"), "{told}");
}
