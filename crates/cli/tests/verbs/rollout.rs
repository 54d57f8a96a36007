//! `aviary rollout`.

use aviary_engine::rollout::State;
use expect_test::expect;
use serde_json::json;

use crate::world::{World, addon, hub_config};

#[test]
fn a_pause_holds_the_fleet_and_a_resume_lets_it_go() {
    let world = World::installed("pause");
    world.check("rollout pause helloworld --dry-run", &expect![[""]]);
    assert_eq!(world.get("ClusterManagementAddOn", "helloworld")["spec"]["installStrategy"]["placements"], addon("one")["spec"]["installStrategy"]["placements"]);
    world.check("rollout pause helloworld --placement fleet", &expect![[""]]);
    world.check("rollout pause helloworld", &expect![[""]]);
    world.check("rollout pause helloworld --placement elsewhere", &expect![[""]]);
    let paused = world.get("ClusterManagementAddOn", "helloworld");
    world.give(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn", "metadata": {"name": "helloworld"},
        "spec": {"installStrategy": {"placements": paused["spec"]["installStrategy"]["placements"].as_array().unwrap().iter().map(|placement| {
            let mut placement = placement.clone();
            placement["configs"][0]["name"] = json!("two");
            placement
        }).collect::<Vec<_>>()}},
    }));
    world.until("the pause", |_, plan| plan.report.placements.iter().any(|placement| placement.state == State::Paused));
    world.check("status helloworld", &expect![[""]]);
    let told = world.json("rollout resume helloworld -o json", 0);
    assert_eq!(told, json!({"version": 1, "addOn": "helloworld", "paused": false, "dryRun": false, "placements": [
        {"placement": "default/fleet", "changed": true}, {"placement": "default/canary", "changed": true},
    ]}));
    world.until_all("upgrade completed with no errors.");
    world.check("rollout resume helloworld", &expect![[""]]);
}

#[test]
fn a_bad_revision_is_undone() {
    let world = World::refused("undo");
    world.check("rollout history helloworld", &expect![[""]]);
    world.check("rollout undo helloworld --dry-run", &expect![[""]]);
    world.check("rollout undo helloworld --to-revision 1", &expect![[""]]);
    world.check("rollout undo helloworld --to-revision 7 --placement canary", &expect![[""]]);
    world.check("rollout undo helloworld", &expect![[""]]);
    world.until("the way back", |observed, plan| {
        plan.report.placements.iter().all(|placement| placement.desired.as_deref() == Some("v1.0.0"))
            && plan.report.clusters.iter().all(|cluster| cluster.decision.code() == "Settled")
            && observed.instances.values().all(|instance| instance.status.current_version.as_deref() == Some("v1.0.0"))
    });
    assert!(world.run("status helloworld").contains("helloworld  Done  16 of 16 clusters settled"));
    world.check("rollout undo helloworld", &expect![[""]]);
    let told = world.json("rollout history helloworld --placement default/canary -o json", 0);
    assert_eq!(told["placements"].as_array().unwrap().len(), 1);
    assert_eq!(told["placements"][0]["revisions"][0]["number"], 1);
    assert_eq!(told["placements"][0]["revisions"][0]["marks"], json!(["Wanted", "KnownGood", "Applied"]));
}

#[test]
fn a_config_that_was_edited_in_place_is_restored_only_when_asked() {
    let world = World::installed("undo-in-place");
    world.give(hub_config("one", "v2.0.0"));
    world.until_all("upgrade completed with no errors.");
    world.check("rollout undo helloworld", &expect![[""]]);
    assert_eq!(world.get("AddOnHubConfig", "one")["spec"]["desiredVersion"], "v2.0.0");
    world.check("rollout undo helloworld --restore-configs --dry-run", &expect![[""]]);
    assert_eq!(world.get("AddOnHubConfig", "one")["spec"]["desiredVersion"], "v2.0.0");
    world.check("rollout undo helloworld --restore-configs", &expect![[""]]);
    assert_eq!(world.get("AddOnHubConfig", "one")["spec"]["desiredVersion"], "v1.0.0");
    world.until("the way back", |_, plan| {
        plan.report.placements.iter().all(|placement| placement.desired.as_deref() == Some("v1.0.0"))
            && plan.report.clusters.iter().all(|cluster| cluster.decision.code() == "Settled")
    });
}

#[test]
fn what_failed_tries_again_and_heals() {
    let world = World::refused("retry");
    world.check("rollout retry helloworld --dry-run", &expect![[""]]);
    world.check("rollout retry helloworld --cluster fleet-00", &expect![[""]]);
    let before = world.get("ManifestWork", "canary-00/addon-helloworld-deploy-0");
    // Nothing was mended: they fail again.
    world.check("rollout retry helloworld --cluster canary-00", &expect![[""]]);
    world.until("another failure", |observed, plan| {
        let works = observed.works.iter().find(|(cluster, _)| cluster.as_str() == "canary-00");
        let generation = works.map_or(0, |(_, works)| works[0].generation);
        generation == before["metadata"]["generation"].as_i64().unwrap() + 2
            && plan.report.clusters.iter().filter(|cluster| cluster.decision.code() == "Failed").count() == 2
    });
    let after = world.get("ManifestWork", "canary-00/addon-helloworld-deploy-0");
    assert_eq!(after["spec"], before["spec"], "the mark is gone again");
    world.mood(|mood| mood.refuse.clear());
    world.check("rollout retry helloworld", &expect![[""]]);
    world.until_all("upgrade completed with no errors.");
    world.check("rollout retry helloworld", &expect![[""]]);
}

#[test]
fn who_ran_out_of_time_gets_it_again() {
    let world = World::installed("retry-late");
    world.mood(|mood| drop(mood.ignore.insert("v2.0.0".into())));
    let mut late = addon("two");
    late["spec"]["installStrategy"]["placements"] = json!([{
        "name": "canary", "namespace": "default", "configs": late["spec"]["installStrategy"]["placements"][0]["configs"],
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": 1}, "progressDeadline": "2s"},
    }]);
    world.give(late);
    world.until("the deadline", |_, plan| {
        plan.report.clusters.iter().any(|cluster| cluster.cluster.as_str() == "canary-00" && cluster.decision.code() == "TimedOut")
    });
    let told = world.json("rollout retry helloworld -o json", 0);
    assert_eq!(told["retried"], json!([{"cluster": "canary-00", "works": [], "clock": true}]));
    world.until("the deadline again", |observed, plan| {
        let clock = observed.instances.iter().find(|(cluster, _)| cluster.as_str() == "canary-00").unwrap().1;
        clock.status.condition("RevisionHealthy").is_some()
            && plan.report.clusters.iter().any(|cluster| cluster.cluster.as_str() == "canary-00" && cluster.decision.code() == "TimedOut")
    });
}
