//! The checker itself: it finds writes that break an invariant which no plan breaks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use std::collections::BTreeSet;
use std::sync::Arc;

use aviary_engine::configs::Pin;
use aviary_engine::invariants::{Deed, check_deed};
use aviary_engine::name::ClusterName;
use aviary_engine::observed::{AddOnStatus, Observed, Recorded, Reference};

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

/// The rules that this broken write breaks, each once.
fn rules(before: &Observed, deed: Deed<'_>, after: &Observed) -> BTreeSet<&'static str> {
    check_deed(before, deed, after).iter().map(|violation| violation.rule).collect()
}

fn named(name: &str) -> ClusterName {
    ClusterName::parse(name).unwrap()
}

/// What is broken if the status of the add-on becomes what this makes of it.
fn broken_status(story: &Story, change: impl FnOnce(&mut AddOnStatus)) -> BTreeSet<&'static str> {
    let before = &story.world.observed;
    let mut after = before.clone();
    change(&mut after.addon.status);
    rules(before, Deed::AddOn(&after.addon.status), &after)
}

/// What was recorded of the placement `prod`.
fn prod(status: &mut AddOnStatus) -> &mut Recorded {
    let mut recorded = status.placements.iter_mut().filter(|(name, _)| name.to_string().ends_with("prod"));
    recorded.next().unwrap().1
}

#[test]
fn s1_a_start_beyond_the_budget_is_found() {
    let mut story = told(
        "config A v1
        config B v2
        place prod: p1 p2 p3
        rollout prod config=A RollingUpdate 1
        settle
        stuck p1
        rollout prod config=B RollingUpdate 1
        settle",
    );
    assert_eq!(broken(&story, "p2", "p1"), ["S1"]);
    story.run("rollout prod config=B RollingUpdate 2");
    assert_eq!(broken(&story, "p2", "p1"), [""; 0], "there is room for two");
}

/// `prod` waits for `canary`, whose one cluster has been given `B` and says nothing.
const WAITS_FOR_CANARY: &str = "config A v1
    config B v2
    place canary: c1
    place prod: p1 p2
    rollout prod config=A Canary 2 canary=canary
    rollout canary config=A
    settle
    stuck c1
    rollout prod config=B Canary 2 canary=canary
    rollout canary config=B
    settle";

#[test]
fn s2_a_start_behind_a_canary_that_has_not_passed_is_found() {
    let mut story = told(WAITS_FOR_CANARY);
    assert_eq!(broken(&story, "p1", "c1"), ["S2"]);
    let promote = |status: &mut AddOnStatus| {
        let recorded = prod(status);
        recorded.known_good = recorded.desired.clone();
    };
    assert_eq!(broken_status(&story, promote), BTreeSet::from(["S2"]));
    story.run("ack c1");
    story.pass();
    assert_eq!(broken_status(&story, promote), BTreeSet::new(), "it has passed");
}

#[test]
fn s2b_a_target_that_changes_while_the_one_before_rolls_out_is_found() {
    let mut story = told(WAITS_FOR_CANARY);
    story.run(
        "config C v3
        stuck p1 p2
        ack c1
        settle
        rollout prod config=C Canary 2 canary=canary
        rollout canary config=C
        settle",
    );
    let promote = |status: &mut AddOnStatus| {
        let recorded = prod(status);
        assert_ne!(recorded.known_good, recorded.desired);
        recorded.known_good = recorded.desired.clone();
    };
    assert_eq!(broken_status(&story, promote), BTreeSet::from(["S2b"]));
}

#[test]
fn s5_an_instance_for_a_cluster_that_is_not_selected_or_goes_is_found() {
    let mut story = told(
        "config A v1
        place prod: a1 a2
        rollout prod config=A
        clusters b1",
    );
    let made = |story: &Story, name: &str| {
        let observed = &story.world.observed;
        rules(observed, Deed::Create(&named(name)), observed)
    };
    assert_eq!(made(&story, "a1"), BTreeSet::new());
    assert_eq!(made(&story, "b1"), BTreeSet::from(["S5"]));
    assert_eq!(made(&story, "nobody"), BTreeSet::from(["S5"]));
    story.run("delete a1");
    assert_eq!(made(&story, "a1"), BTreeSet::from(["S5"]));
}

#[test]
fn s6_and_s7_deletions_that_nobody_has_asked_for_are_found() {
    let mut story = told(
        "config A v1
        place prod: a01..a20
        rollout prod config=A
        settle
        place prod: a01..a05",
    );
    let gone = |story: &Story, name: &str| {
        let observed = &story.world.observed;
        let uid = observed.instances.get(&named(name)).unwrap().uid.clone();
        rules(observed, Deed::Delete { cluster: &named(name), uid: &uid }, observed)
    };
    assert_eq!(gone(&story, "a20"), BTreeSet::from(["S7"]));
    story.run("annotate allow-deletions=15");
    assert_eq!(gone(&story, "a20"), BTreeSet::new(), "somebody has allowed it");
    assert_eq!(gone(&story, "a01"), BTreeSet::from(["S6"]), "it is selected");
    story.run("unplace prod");
    assert!(gone(&story, "a20").contains("S6"), "nobody knows what is selected");
}

#[test]
fn s8_what_counts_as_applied_before_all_have_it_is_found() {
    let story = told(
        "config A v1
        config B v2
        place prod: p1 p2
        rollout prod config=A RollingUpdate 1
        settle
        stuck p2
        rollout prod config=B RollingUpdate 1
        settle",
    );
    let observed = &story.world.observed;
    let applied = |status: &mut AddOnStatus| {
        let recorded = prod(status);
        assert_ne!(recorded.applied, recorded.desired);
        recorded.applied = recorded.desired.clone();
    };
    assert_eq!(broken_status(&story, applied), BTreeSet::from(["S8"]));
    let (name, recorded) = observed.addon.status.placements.first_key_value().unwrap();
    let complete = Deed::Complete(name, recorded.desired.as_ref().unwrap());
    assert_eq!(rules(observed, complete, observed), BTreeSet::from(["S8"]));
}

#[test]
fn s14_an_override_out_of_reach_that_is_read_is_found() {
    let mut story = told(
        "template v1
        deploy c1/near A=1
        deploy elsewhere/far A=1
        place prod: c1
        rollout prod version=v1
        settle",
    );
    // Somebody reads for the user what the user may not.
    let mut reads = |config: &str, namespace: &str| {
        story.run(&format!(
            "user c1 {{configs: [{{group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: {namespace}, name: {config}}}]}}"
        ));
        let before = &story.world.observed;
        let instance = before.instances.get(&named("c1")).unwrap();
        let config = Arc::new(instance.overrides.first().unwrap().clone());
        let mut references = instance.status.references.clone();
        references.retain(|reference| reference.kind != config.kind);
        let hash = instance.status.told().next().unwrap().hash.clone();
        references.push(Reference {
            kind: config.kind.clone(),
            desired: Some(Pin { config, hash }),
            applied: None,
            observed_generation: None,
        });
        let mut after = before.clone();
        after.instances.get_mut(&named("c1")).unwrap().status.references = references;
        rules(before, Deed::Instance(&named("c1")), &after)
    };
    assert!(!reads("near", "c1").contains("S14"));
    assert!(reads("far", "elsewhere").contains("S14"));
}

#[test]
fn s16_a_status_that_grows_too_large_is_found() {
    let story = told("config A v1\n place prod: a1\n rollout prod config=A\n settle");
    let versions = |count: usize| {
        move |status: &mut AddOnStatus| {
            status.supported_versions =
                (0..count).map(|number| format!("v{number:05}").as_str().into()).collect();
        }
    };
    assert_eq!(broken_status(&story, versions(100)), BTreeSet::new());
    assert_eq!(broken_status(&story, versions(10_000)), BTreeSet::from(["S16"]));
}
