//! `aviary plan` against a hub.

use aviary_testing::objects;
use expect_test::expect;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::transcript::worlds::stream;
use crate::world::{World, addon, hub_config, names, template};

#[test]
fn a_hub_at_rest_has_nothing_to_do_and_a_change_is_laid_over_it() {
    let mut gone = addon("two");
    gone["spec"]["installStrategy"]["placements"].as_array_mut().unwrap().remove(1);
    let world = World::installed("plan")
        .file("two.yaml", &stream(&[addon("two")]))
        .file("less.yaml", &stream(&[gone]))
        .file("config.yaml", &stream(&[hub_config("one", "v2.0.0")]))
        .file("unused.yaml", &stream(&[hub_config("unused", "v2.0.0")]))
        .file("same.yaml", &stream(&[addon("one")]));
    world.check(
        "plan helloworld",
        &expect![[r#"
            $ aviary plan helloworld
            Add-on helloworld, 16 clusters: 16 settled

            Placements
              PLACEMENT       GOVERNS  BUDGET  WANTS   STATE           MESSAGE
              default/fleet        12       3  v1.0.0  InstallSucceed  install completed with no errors.
              default/canary        4       2  v1.0.0  InstallSucceed  install completed with no errors.

            Nothing was written. Next: aviary rehearse helloworld # how long it takes, and where it would stop
        "#]],
    );
    world.check("plan helloworld -f two.yaml", &expect![[r#"
        $ aviary plan helloworld -f two.yaml
        Add-on helloworld, 16 clusters: 2 started, 14 waiting

        Started now
          CLUSTERS  WHAT                    PLACEMENT       WHICH
                 2  update v1.0.0 → v2.0.0  default/canary  canary-00, canary-01

        6 waves, if every cluster succeeds immediately
          WAVE  CLUSTERS  SHARE  REACHED  WHAT
             1         2    13%      13%  default/canary: 2 update v1.0.0 → v2.0.0
             2         2    13%      25%  default/canary: 2 update v1.0.0 → v2.0.0
             3         3    19%      44%  default/fleet: 3 update v1.0.0 → v2.0.0
             4         3    19%      63%  default/fleet: 3 update v1.0.0 → v2.0.0
             5         3    19%      82%  default/fleet: 3 update v1.0.0 → v2.0.0
             6         3    19%     100%  default/fleet: 3 update v1.0.0 → v2.0.0

        By label
          LABEL         FLEET  WAVE 1  WAVE 2  WAVE 3  WAVE 4
          stage=canary      4       2       2       -       -
          stage=fleet      12       -       -       3       3

        Placements
          PLACEMENT       GOVERNS  BUDGET  WANTS                       STATE             MESSAGE
          default/fleet        12       3  v2.0.0 (v1.0.0 until then)  WaitingForCanary  waitingForCanary... canary default/canary: 4 of 4 not passed, first canary-00
          default/canary        4       2  v2.0.0                      Upgrading         upgrading...

        Waiting
          CLUSTERS  WHY                                                        WHICH
                 2  budget full: 2 of 2 in flight                              canary-02, canary-03
                12  canary default/canary: 4 of 4 not passed, first canary-00  fleet-00, fleet-01, fleet-02 and 9 more

        v1.0.0 → v2.0.0 in default/fleet, default/canary
          addonhubconfigs: one → two
            spec.desiredVersion: "v1.0.0" → "v2.0.0"
          addontemplates: helloworld-v1.0.0 → helloworld-v2.0.0
            spec.agentSpec.workload.manifests[0].data.version: "v1.0.0" → "v2.0.0"
            spec.version: "v1.0.0" → "v2.0.0"

        Changed on the hub
          changed ClusterManagementAddOn helloworld
            spec.installStrategy.placements[0].configs[0].name: "one" → "two"
            spec.installStrategy.placements[1].configs[0].name: "one" → "two"

        Nothing was written. Next: aviary rehearse helloworld -f two.yaml # and then kubectl apply -f two.yaml
    "#]]);
    // Removals come first.
    world.check("plan -f less.yaml", &expect![[r#"
        $ aviary plan -f less.yaml
        Add-on helloworld, 16 clusters: 4 removed, 12 waiting

        Removed
          CLUSTERS  WHY                 WHICH
                 4  no longer selected  canary-00, canary-01, canary-02 and 1 more

        Placements
          PLACEMENT      GOVERNS  BUDGET  WANTS                       STATE             MESSAGE
          default/fleet       12       3  v2.0.0 (v1.0.0 until then)  WaitingForCanary  waitingForCanary... canary default/canary: 4 of 4 not passed, first canary-00

        Waiting
          CLUSTERS  WHY                                                        WHICH
                12  canary default/canary: 4 of 4 not passed, first canary-00  fleet-00, fleet-01, fleet-02 and 9 more

        v1.0.0 → v2.0.0 in default/fleet
          addonhubconfigs: one → two
            spec.desiredVersion: "v1.0.0" → "v2.0.0"
          addontemplates: helloworld-v1.0.0 → helloworld-v2.0.0
            spec.agentSpec.workload.manifests[0].data.version: "v1.0.0" → "v2.0.0"
            spec.version: "v1.0.0" → "v2.0.0"

        Changed on the hub
          changed ClusterManagementAddOn helloworld
            spec.installStrategy.placements[0].configs[0].name: "one" → "two"
            spec.installStrategy.placements[1]: {"configs":[{"group":"addon.open-cluster-management.io","name":"one","resource":… → -

        Nothing was written. Next: aviary rehearse -f less.yaml # and then kubectl apply -f less.yaml
    "#]]);
    let told = world.json("plan -f config.yaml -o json", 0);
    assert_eq!(
        told["changes"],
        json!([{"kind": "AddOnHubConfig", "name": "one", "change": "Changed", "fields": [
            {"path": "spec.desiredVersion", "from": "v1.0.0", "to": "v2.0.0"},
        ]}])
    );
    assert_eq!(told["addOns"][0]["file"], "hub");
    assert_eq!(told["addOns"][0]["starts"][0]["to"], "v2.0.0");
    assert_eq!(told["addOns"][0]["starts"][0]["clusters"], json!(["canary-00", "canary-01"]));
    let told = world.json("plan -f same.yaml -o json", 0);
    assert_eq!((&told["changes"], &told["addOns"][0]["atRest"]), (&json!(null), &json!(true)));
    world.check(
        "plan -f unused.yaml",
        &expect![[r#"
        $ aviary plan -f unused.yaml
        ! aviary: there is nothing to plan: the files do not affect any add-on on https://127.0.0.1:PORT
        exit 1
    "#]],
    );
    // Nothing was written.
    assert_eq!(
        world.get("ClusterManagementAddOn", "helloworld")["spec"]["installStrategy"]["placements"][0]["configs"]
            [0]["name"],
        "one"
    );
    assert_eq!(world.get("AddOnHubConfig", "one")["spec"]["desiredVersion"], "v1.0.0");
}

#[test]
fn files_alone_ask_no_hub() {
    let world =
        World::quiet("plan-offline").file("one.yaml", &stream(&[addon("one"), hub_config("one", "v1.0.0")]));
    let output = world.desk.output("plan -f one.yaml -o json");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["addOns"][0]["file"], "one.yaml");
}

#[test]
fn a_change_that_the_canary_does_not_compare_is_warned_about_by_plan_and_explain() {
    let settings = |name: &str, value: &str| {
        json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"customizedVariables": [{"name": "X", "value": value}]},
        })
    };
    // The drafts' configs: the canary has settings of its own.
    let mut wants = addon("one");
    for (placement, config) in ["global-config", "canary-config"].into_iter().enumerate() {
        let configs = &mut wants["spec"]["installStrategy"]["placements"][placement]["configs"];
        configs.as_array_mut().unwrap().push(json!({
            "group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
            "namespace": "default", "name": config,
        }));
    }
    let world = World::quiet("plan-not-covered")
        .file("changed.yaml", &stream(&[settings("global-config", "2")]))
        .looked_after();
    world.block_on(world.fleet());
    world.give(settings("global-config", "1"));
    world.give(settings("canary-config", "1"));
    world.give(wants);
    world.until_all("install completed with no errors.");
    world.dismiss_manager();
    let warning = "canary default/canary does not cover this change of addondeploymentconfigs.addon.open-cluster-management.io: its clusters reference other objects, so the change rolls out without it";
    let words = |told: String| told.split_whitespace().collect::<Vec<_>>().join(" ");
    let planned = words(world.run("plan helloworld -f changed.yaml"));
    assert!(planned.contains("NotCoveredByCanary") && planned.contains(warning), "{planned}");
    world.give(settings("global-config", "2"));
    let explained = words(world.run("explain helloworld"));
    assert!(explained.contains("NotCoveredByCanary") && explained.contains(warning), "{explained}");
}

const ADDONS: &str = "addon.open-cluster-management.io";

/// The add-on at a template, on all clusters.
pub(crate) fn at(template: &str) -> Value {
    let config = json!({"group": ADDONS, "resource": "addontemplates", "name": template});
    json!({
        "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ClusterManagementAddOn", "metadata": {"name": "helloworld"},
        "spec": {
            "supportedConfigs": [{"group": ADDONS, "resource": "addontemplates"}],
            "installStrategy": {"type": "Placements", "placements": [
                {"name": "fleet", "namespace": "default", "configs": [config], "rolloutStrategy": {"type": "All"}},
            ]},
        },
    })
}

/// A version of the add-on. OCM's schema refuses a variable as the namespace of a manifest.
pub(crate) fn plain_template(version: &str) -> Value {
    let mut template = template(version);
    template["spec"]["agentSpec"]["workload"]["manifests"][0]["metadata"]["namespace"] =
        json!("open-cluster-management-agent-addon");
    template
}

/// Instances and works on a hub of OCM, as its manager leaves them on two clusters, and one
/// instance of a user.
pub(crate) fn left_by_ocm(world: &World) {
    world.block_on(aviary_testing::prepare_ocm_hub(&world.client, None));
    world.block_on(world.clusters("fleet", &names("c", 3)));
    world.give(plain_template("v1.0.0"));
    world.give(at("helloworld-v1.0.0"));
    let owner = world.get("ClusterManagementAddOn", "helloworld")["metadata"]["uid"].clone();
    let content = world.get("AddOnTemplate", "helloworld-v1.0.0");
    let hash = aviary_engine::normalise::config(&content).hash;
    let assigned = json!({"name": "helloworld-v1.0.0", "specHash": hash.as_str()});
    let instance = |cluster: &str| {
        json!({
            "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ManagedClusterAddOn",
            "metadata": {"name": "helloworld", "namespace": cluster, "ownerReferences": [{
                "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ClusterManagementAddOn", "name": "helloworld",
                "uid": owner, "controller": true, "blockOwnerDeletion": true,
            }]},
            "spec": {},
        })
    };
    for cluster in ["c-00", "c-01"] {
        let mut object = instance(cluster);
        let api = aviary_testing::api_of(&world.client, &object);
        let by_ocm = PatchParams::apply("addon");
        let made = world.block_on(api.patch("helloworld", &by_ocm, &Patch::Apply(&object))).unwrap();
        object["status"] = json!({"configReferences": [{
            "group": ADDONS, "resource": "addontemplates", "name": "helloworld-v1.0.0", "lastObservedGeneration": 1,
            "desiredConfig": assigned, "lastAppliedConfig": assigned,
        }]});
        world.block_on(aviary_testing::put_status(&world.client, &object));
        let hashes =
            json!({format!("addontemplates.{ADDONS}//helloworld-v1.0.0"): hash.as_str()}).to_string();
        world.give(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {
                "name": "addon-helloworld-deploy-0", "namespace": cluster,
                "labels": {"open-cluster-management.io/addon-name": "helloworld"},
                "annotations": {"open-cluster-management.io/config-spec-hash": hashes},
                "ownerReferences": [{
                    "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ManagedClusterAddOn", "name": "helloworld",
                    "uid": made.metadata.uid, "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"workload": content["spec"]["agentSpec"]["workload"]},
        }));
    }
    world.give(instance("c-02"));
}

#[test]
fn what_a_take_over_from_ocm_would_do_is_shown_before_it_happens() {
    let world = World::bare("plan-take-over");
    left_by_ocm(&world);
    let told = world.json("plan helloworld -o json", 0);
    let addon = &told["addOns"][0];
    assert_eq!(addon["takeOver"], json!({"accepted": 2, "adopted": 2, "rewritten": 0}), "{told:#}");
    assert_eq!(addon["byUsers"], 1, "{told:#}");
    let words = world.run("plan helloworld").split_whitespace().collect::<Vec<_>>().join(" ");
    for note in [
        "Made by others 0 works rewritten now; 2 clusters: another manager rendered the works from the assigned revision; they stay as they are until the revision changes",
        "2 instances: made by OCM's manager; the install strategy takes over, so it deletes them when their cluster is deselected",
        "1 instance: made by users; they stay when their cluster is deselected, and are deleted with the add-on",
    ] {
        assert!(words.contains(note), "{note}: {words}");
    }
}

/// A placement `chosen` as Aviary's placement controller leaves it, and an add-on on it.
fn decided(stage: &str, clusters: &[String]) -> World {
    let world = World::quiet(&format!("plan-decided-{}", clusters.len()));
    world.block_on(world.fleet());
    let mut placement = objects::placement_by_labels("chosen", &json!({"stage": stage}));
    placement["status"] = json!({
        "numberOfSelectedClusters": clusters.len(),
        "conditions": [{"type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}],
    });
    world.give(placement);
    world.give(objects::decision("chosen", 1, clusters));
    let mut one = addon("one");
    one["spec"]["installStrategy"]["placements"] = json!([{
        "name": "chosen", "namespace": "default",
        "configs": [{"group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": "one"}],
    }]);
    world.give(one);
    world
}

#[test]
fn a_changed_placement_is_decided_anew_by_the_plan() {
    let moved = objects::cluster("fleet-00", &json!({"stage": "canary"}));
    let changed = objects::placement_by_labels("chosen", &json!({"stage": "canary"}));
    let mut same = objects::placement_by_labels("chosen", &json!({"stage": "fleet"}));
    same["spec"]["numberOfClusters"] = json!(12);
    let world = decided("fleet", &names("fleet", 12))
        .file("changed.yaml", &stream(&[changed]))
        .file("moved.yaml", &stream(&[moved]))
        .file("same.yaml", &stream(&[same]));
    let clusters = |told: &Value| told["addOns"][0]["clusters"].clone();
    let notes = |told: &Value| told["addOns"][0]["notes"].to_string();

    let told = world.json("plan helloworld -f changed.yaml -o json", 0);
    assert_eq!(told["addOns"][0]["creates"][0]["clusters"], json!(names("canary", 4)), "{told:#}");
    assert!(notes(&told).contains("4 clusters instead of 12, 4 added and 12 removed"), "{told:#}");
    assert!(world.run("plan helloworld -f changed.yaml").contains("4 clusters instead of 12"));
    // The labels of a cluster decide as well.
    let told = world.json("plan helloworld -f moved.yaml -o json", 0);
    assert_eq!(clusters(&told), 11, "{told:#}");
    assert!(notes(&told).contains("11 clusters instead of 12, 0 added and 1 removed"), "{told:#}");
    // The same clusters, so there is nothing to say.
    let told = world.json("plan helloworld -f same.yaml -o json", 0);
    assert_eq!((clusters(&told), notes(&told)), (json!(12), "[]".to_owned()), "{told:#}");
}

#[test]
fn a_plan_says_which_decisions_are_from_before_the_change() {
    let changed = objects::placement_by_labels("chosen", &json!({"stage": "canary"}));
    // Another controller has left out a cluster.
    let world = decided("fleet", &names("fleet", 11)).file("changed.yaml", &stream(&[changed]));
    let told = world.json("plan helloworld -f changed.yaml -o json", 0);
    let said = "default/chosen: this plan uses the decisions from before the change: Aviary's placement rules do not lead to its present decisions";
    let problems = told["addOns"][0]["problems"].as_array().unwrap();
    let warning = problems.iter().find(|problem| problem["message"] == said);
    assert_eq!(warning.map(|warning| &warning["severity"]), Some(&json!("warning")), "{told:#}");
    assert_eq!(told["addOns"][0]["clusters"], 11, "{told:#}");
    let words = world.run("plan helloworld -f changed.yaml");
    assert!(words.contains("uses the decisions from before the change"), "{words}");
}
