//! Taints and tolerations, and what time does to them.

use expect_test::expect;
use serde_json::json;

use super::story::{World, check};
use crate::name::ClusterName;

#[test]
fn no_select_keeps_away_also_what_is_chosen() {
    check(
        "cluster a taint:gpu/NoSelect
         cluster b
         before a",
        json!({}),
        expect![[r#"
            -: b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn no_select_if_new_keeps_away_only_what_is_not_chosen() {
    check(
        "cluster a taint:gpu/NoSelectIfNew
         cluster b taint:gpu/NoSelectIfNew
         before b",
        json!({}),
        expect![[r#"
            -: b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn prefer_no_select_is_chosen_last_and_stays_once_chosen() {
    let world = "cluster a taint:old/PreferNoSelect
         cluster b
         cluster c";
    check(
        world,
        json!({"numberOfClusters": 2}),
        expect![[r#"
            -: b c
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
    check(
        world,
        json!({"numberOfClusters": 3}),
        expect![[r#"
            -: a b c
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
    check(
        &format!("{world}\nbefore a"),
        json!({"numberOfClusters": 2}),
        expect![[r#"
            -: a b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
    let tolerations = json!([{"key": "old", "operator": "Exists"}]);
    check(
        world,
        json!({"numberOfClusters": 2, "tolerations": tolerations}),
        expect![[r#"
            -: a b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_toleration_says_which_taints_it_means() {
    let world = "cluster a taint:gpu=old/NoSelect
         cluster b taint:gpu=new/NoSelect
         cluster c taint:zone=old/NoSelect
         cluster d taint:gpu=old/NoSelectIfNew";
    for (toleration, chosen) in [
        (json!({"key": "gpu", "value": "old"}), "a d"),
        (json!({"key": "gpu", "operator": "Equal", "value": "new"}), "b"),
        (json!({"key": "gpu", "operator": "Equal"}), ""),
        (json!({"key": "gpu", "operator": "Exists"}), "a b d"),
        (json!({"key": "gpu", "operator": "Exists", "effect": "NoSelectIfNew"}), "d"),
        (json!({"operator": "Exists", "effect": "NoSelect"}), "a b c"),
        (json!({"operator": "Exists"}), "a b c d"),
    ] {
        let groups = World::parse(world).choose(json!({"tolerations": [toleration]})).groups.unwrap();
        let names: Vec<&str> = groups[0].clusters.iter().map(ClusterName::as_str).collect();
        assert_eq!(names.join(" "), chosen, "{toleration}");
    }
}

#[test]
fn every_taint_must_be_tolerated() {
    check(
        "cluster a taint:gpu/NoSelect taint:zone/NoSelect
         cluster b taint:gpu/NoSelect",
        json!({"tolerations": [{"key": "gpu", "operator": "Exists"}]}),
        expect![[r#"
            -: b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_toleration_ends_so_many_seconds_after_the_taint_was_set() {
    let tolerations = json!([{"key": "gpu", "operator": "Exists", "tolerationSeconds": 60}]);
    check(
        "cluster a taint:gpu/NoSelect@10
         cluster b taint:gpu/NoSelect@45
         cluster c taint:gpu/NoSelect@60
         before a b c",
        json!({"tolerations": tolerations}),
        expect![[r#"
            -: a b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
            look again in 15s
        "#]],
    );
}

#[test]
fn a_taint_without_a_time_is_not_tolerated_for_a_time() {
    check(
        "cluster a taint:gpu/NoSelect",
        json!({"tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 60}]}),
        expect![[r#"
            -: nobody
            PlacementSatisfied NoManagedClusterMatched: All ManagedClusters that match have taints that are not tolerated: 1
        "#]],
    );
}

#[test]
fn of_several_tolerations_the_longest_counts() {
    let tolerations = json!([
        {"key": "gpu", "operator": "Exists", "tolerationSeconds": 20},
        {"operator": "Exists", "tolerationSeconds": 90},
    ]);
    check(
        "cluster a taint:gpu/NoSelect@10",
        json!({"tolerations": tolerations}),
        expect![[r#"
            -: a
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
            look again in 1m 20s
        "#]],
    );
}

#[test]
fn there_is_no_need_to_look_again_for_a_cluster_that_is_not_chosen() {
    check(
        "cluster a
         cluster b taint:gpu/NoSelect@10",
        json!({"numberOfClusters": 1, "tolerations": [{"operator": "Exists", "tolerationSeconds": 60}]}),
        expect![[r#"
            -: a
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}
