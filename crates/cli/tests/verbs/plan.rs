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
    world.check("plan helloworld", &expect![[""]]);
    world.check("plan helloworld -f two.yaml", &expect![[""]]);
    // What is taken away stands first.
    world.check("plan -f less.yaml", &expect![[""]]);
    let told = world.json("plan -f config.yaml -o json", 0);
    assert_eq!(told["changes"], json!([{"kind": "AddOnHubConfig", "name": "one", "change": "Changed", "fields": [
        {"path": "spec.desiredVersion", "from": "v1.0.0", "to": "v2.0.0"},
    ]}]));
    assert_eq!(told["addOns"][0]["file"], "hub");
    assert_eq!(told["addOns"][0]["starts"][0]["to"], "v2.0.0");
    assert_eq!(told["addOns"][0]["starts"][0]["clusters"], json!(["canary-00", "canary-01"]));
    let told = world.json("plan -f same.yaml -o json", 0);
    assert_eq!((&told["changes"], &told["addOns"][0]["atRest"]), (&json!(null), &json!(true)));
    world.check("plan -f unused.yaml", &expect![[""]]);
    // Nothing of all that was written.
    assert_eq!(world.get("ClusterManagementAddOn", "helloworld")["spec"]["installStrategy"]["placements"][0]["configs"][0]["name"], "one");
    assert_eq!(world.get("AddOnHubConfig", "one")["spec"]["desiredVersion"], "v1.0.0");
}

#[test]
fn files_alone_ask_no_hub() {
    let world = World::quiet("plan-offline").file("one.yaml", &stream(&[addon("one"), hub_config("one", "v1.0.0")]));
    let output = world.desk.output("plan -f one.yaml -o json");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["addOns"][0]["file"], "one.yaml");
}
