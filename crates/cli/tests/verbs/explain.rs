//! `aviary explain`.

use expect_test::expect;

use crate::world::World;

#[test]
fn a_canary_that_refuses_is_why() {
    let world = World::refused("explain-refused");
    world.check("explain helloworld", &expect![[""]]);
    world.check("explain helloworld canary-00", &expect![[""]]);
    world.check("explain helloworld fleet-03", &expect![[""]]);
    let told = world.json("explain helloworld -o json", 0);
    expect![[""]].assert_eq(&serde_json::to_string_pretty(&told["reasons"][1]).unwrap());
    let told = world.json("explain helloworld canary-00 -o json", 0);
    assert_eq!(told["told"]["version"], "v3.0.0");
    assert_eq!(told["applied"]["version"], "v1.0.0");
    assert_eq!(told["decision"]["reason"], "Failed");
    assert_eq!(told["works"][0]["asTold"], true);
    assert_eq!(told["managedCluster"]["labels"]["stage"], "canary");
}

#[test]
fn what_has_settled_needs_nothing_and_who_is_not_there_is_named() {
    let world = World::installed("explain-settled");
    world.check("explain helloworld", &expect![[""]]);
    world.check("explain helloworld fleet-03", &expect![[""]]);
    world.check("explain helloworld nowhere", &expect![[""]]);
    world.check("explain helloworld UPPER", &expect![[""]]);
    world.block_on(world.clusters("others", &["other-00".to_owned()]));
    world.check("explain helloworld other-00", &expect![[""]]);
    world.check("explain hallo", &expect![[""]]);
}
