//! What placements decide, read from their decisions in whatever state those are (chapters 4.1 and
//! 4.5 of the rules).

#![allow(clippy::unwrap_used, reason = "a broken fixture must fail the test")]

use aviary_engine::normalise;
use aviary_engine::observed::Selection;
use serde_json::{Value, json};

fn read(published: u32, decisions: &[Value]) -> (Selection, Vec<String>) {
    read_with(json!({ "numberOfSelectedClusters": published }), decisions)
}

#[allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]
fn read_with(status: Value, decisions: &[Value]) -> (Selection, Vec<String>) {
    let placement = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": { "name": "prod", "namespace": "default" }, "spec": {}, "status": status,
    });
    let decisions: Vec<_> = decisions
        .iter()
        .map(|decision| {
            let clusters: Vec<Value> = decision["clusters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| json!({ "clusterName": name, "reason": "" }))
                .collect();
            serde_json::from_value(json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
                "metadata": { "name": "d", "namespace": "default", "labels": {
                    "cluster.open-cluster-management.io/decision-group-index": decision["group"],
                } },
                "status": { "decisions": clusters },
            }))
            .unwrap()
        })
        .collect();
    let (selection, problems) = normalise::selection(&serde_json::from_value(placement).unwrap(), &decisions);
    (selection, problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_cluster_in_two_groups_counts_once_so_a_missing_one_is_missed() {
    let (selection, _) = read(
        3,
        &[json!({ "group": "0", "clusters": ["a1", "a2"] }), json!({ "group": "1", "clusters": ["a2"] })],
    );
    assert_eq!(selection.len(), 2);
    assert_eq!(selection.in_motion(), Some((3, 2)));
}

#[test]
fn a_count_of_none_counts_where_the_placement_says_how_far_it_is_satisfied() {
    let decided = [json!({ "group": "0", "clusters": ["a1"] })];
    assert_eq!(read(0, &decided).0.in_motion(), None);
    let satisfied = json!([{
        "type": "PlacementSatisfied", "status": "False", "reason": "NoManagedClusterMatched", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let (selection, _) = read_with(json!({"numberOfSelectedClusters": 0, "conditions": satisfied}), &decided);
    assert_eq!(selection.in_motion(), Some((0, 1)));
    let (selection, _) = read_with(json!({"numberOfSelectedClusters": 0, "conditions": satisfied}), &[]);
    assert_eq!(selection.in_motion(), None);
    let (selection, _) = read_with(json!({"conditions": satisfied}), &decided);
    assert_eq!(selection.in_motion(), None);
}

#[test]
fn a_name_that_no_cluster_can_have_is_left_out_and_keeps_nothing_in_motion() {
    let names = ["a1", "default", "../x", "PROD", "kube-system", "open-cluster-management-agent"];
    let (selection, problems) = read(6, &[json!({ "group": "0", "clusters": names })]);
    assert_eq!(selection.len(), 1);
    assert_eq!(selection.in_motion(), None);
    assert_eq!(problems.len(), 5);
    assert!(problems[0].contains("\"default\", which is a namespace of the hub itself"), "{}", problems[0]);
}

#[test]
fn the_order_of_the_decisions_does_not_matter() {
    let one = json!({ "group": "0", "clusters": ["a3", "a1"] });
    let two = json!({ "group": "1", "clusters": ["a2"] });
    let forward = read(3, &[one.clone(), two.clone()]).0;
    let backward = read(3, &[two, one]).0;
    assert_eq!(format!("{forward:?}"), format!("{backward:?}"));
}
