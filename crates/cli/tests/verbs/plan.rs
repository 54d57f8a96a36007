//! `aviary plan` against a hub.

use expect_test::expect;
use serde_json::json;

use crate::transcript::worlds::stream;
use crate::world::{World, addon, hub_config};

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
          default/fleet        12       3  v1.0.0  InstallSucceed  12/12 install completed with no errors.
          default/canary        4       2  v1.0.0  InstallSucceed  4/4 install completed with no errors.

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
          default/canary        4       2  v2.0.0                      Upgrading         2/4 upgrading...

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
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
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
