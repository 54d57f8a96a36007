//! Decision groups.

use expect_test::expect;
use serde_json::{Value, json};

use super::story::check;

const CLUSTERS: &str = "
    cluster a stage=canary claim:cloud=aws
    cluster b stage=canary
    cluster c stage=canary
    cluster d claim:cloud=aws
    cluster e
    cluster f
";

fn strategy(groups: &Value, size: &Value) -> Value {
    json!({"decisionStrategy": {"groupStrategy": {"decisionGroups": groups, "clustersPerDecisionGroup": size}}})
}

fn canary() -> Value {
    json!({"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"stage": "canary"}}}})
}

fn aws() -> Value {
    let expression = json!({"key": "cloud", "operator": "In", "values": ["aws"]});
    json!({"groupName": "aws", "groupClusterSelector": {"claimSelector": {"matchExpressions": [expression]}}})
}

#[test]
fn named_groups_take_theirs_in_order_and_the_rest_follows() {
    check(
        CLUSTERS,
        strategy(&json!([canary(), aws()]), &json!("100%")),
        expect![[r#"
            canary: a b c
            aws: d
            -: e f
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
    check(
        CLUSTERS,
        strategy(&json!([aws(), canary()]), &json!("100%")),
        expect![[r#"
            aws: a d
            canary: b c
            -: e f
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_size_divides_named_groups_too() {
    check(
        CLUSTERS,
        strategy(&json!([canary()]), &json!(2)),
        expect![[r#"
            canary: a b
            canary: c
            -: d e
            -: f
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_share_is_of_all_that_are_chosen_and_rounded_up() {
    check(
        CLUSTERS,
        strategy(&json!([]), &json!("25%")),
        expect![[r#"
            -: a b
            -: c d
            -: e f
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
    check(
        CLUSTERS,
        strategy(&json!([canary()]), &json!("50%")),
        expect![[r#"
            canary: a b c
            -: d e f
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_group_that_nobody_is_in_is_left_out() {
    check(
        "cluster x",
        strategy(&json!([canary(), aws()]), &json!("100%")),
        expect![[r#"
            -: x
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn nobody_is_in_one_group() {
    check(
        "",
        strategy(&json!([canary()]), &json!(1)),
        expect![[r#"
            -: nobody
            PlacementSatisfied AllManagedClusterSetsEmpty: The hub has no ManagedCluster
        "#]],
    );
}

#[test]
fn a_mistake_in_a_group_leaves_everything_as_it_is() {
    check(
        CLUSTERS,
        strategy(&json!([canary()]), &json!("lots")),
        expect![[r#"
            stays as it is
            PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
            PlacementMisconfigured Misconfigured: clustersPerDecisionGroup: "lots" is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
        "#]],
    );
    check(
        CLUSTERS,
        strategy(&json!([canary()]), &json!(0)),
        expect![[r#"
            stays as it is
            PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
            PlacementMisconfigured Misconfigured: clustersPerDecisionGroup: 0 is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
        "#]],
    );
    check(
        CLUSTERS,
        strategy(&json!([{"groupName": "not a label"}]), &json!(1)),
        expect![[r#"
            stays as it is
            PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
            PlacementMisconfigured Misconfigured: decision group "not a label": the name is not one that a label can have
        "#]],
    );
}
