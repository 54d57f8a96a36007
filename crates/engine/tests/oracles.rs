//! The checker itself: it finds writes that break an invariant which no plan breaks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use aviary_engine::invariants::{Deed, check_deed};
use aviary_engine::name::ClusterName;
use aviary_engine::observed::Reference;

use crate::story::Story;

fn told(script: &str) -> Story {
    let mut story = Story::new();
    story.run(script);
    story
}

/// What is broken if this cluster is assigned what the other one has.
fn broken(story: &Story, cluster: &str, other: &str) -> Vec<&'static str> {
    let [cluster, other] = [cluster, other].map(|name| ClusterName::parse(name).unwrap());
    let before = &story.world.observed;
    let given = before.instances.get(&other).unwrap().status.references.clone();
    let mut after = before.clone();
    after.instances.get_mut(&cluster).unwrap().status.references =
        given.into_iter().map(|reference| Reference { applied: None, ..reference }).collect();
    check_deed(before, Deed::Instance(&cluster), &after).iter().map(|violation| violation.rule).collect()
}

#[test]
fn s26_leaving_an_override_whose_object_is_missing_is_found() {
    let mut story = told(
        "template v1 v2
        config A v1
        config mine v2
        place prod: a1 a2
        rollout prod config=A
        user a1 {configs: [{group: addon.open-cluster-management.io, resource: addonhubconfigs, name: mine}]}
        settle",
    );
    assert_eq!(broken(&story, "a1", "a2"), [""; 0], "it is there, and may be replaced");
    story.run("no config mine\n settle");
    assert_eq!(broken(&story, "a1", "a2"), ["S26"]);
    assert_eq!(broken(&story, "a1", "a1"), [""; 0]);
    story.world.observed.addon.supported = Some(Default::default());
    assert!(!broken(&story, "a1", "a2").contains(&"S26"), "it may not be used any more");
}

#[test]
fn s27_moving_a_cluster_that_joined_behind_a_closed_gate_is_found() {
    let mut story = told(
        "config A v1
        config B v2
        config C v3
        place canary: c1
        place other: o1
        place prod: p1 p2
        rollout prod config=A Canary 2 canary=canary
        rollout canary config=A
        rollout other config=C
        settle
        fail c1
        rollout prod config=B Canary 2 canary=canary
        rollout canary config=B
        settle
        rollout other config=C",
    );
    assert!(!broken(&story, "o1", "p1").contains(&"S27"), "its placement has no gate");
    story.run("place other:\n place prod: o1 p1 p2\n settle");
    assert_eq!(broken(&story, "o1", "p1"), ["S27"]);
    assert_eq!(broken(&story, "o1", "o1"), [""; 0]);
}
