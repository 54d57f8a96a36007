//! Who is chosen: predicates, numbers, and that what is chosen stays.

use expect_test::expect;
use serde_json::{Value, json};

use super::story::{World, check};
use crate::name::ClusterName;

fn labelled(selector: Value) -> Value {
    json!({"requiredClusterSelector": {"labelSelector": selector}})
}

fn claimed(key: &str, operator: &str, values: &[&str]) -> Value {
    let expression = json!({"key": key, "operator": operator, "values": values});
    json!({"requiredClusterSelector": {"claimSelector": {"matchExpressions": [expression]}}})
}

#[test]
fn an_empty_placement_chooses_every_cluster_but_those_that_are_deleted() {
    check(
        "cluster b
         cluster a
         cluster c deleting",
        json!({}),
        expect![[r#"
            -: a b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn labels_and_expressions_must_all_hold() {
    check(
        "cluster a env=prod region=eu
         cluster b env=prod region=us
         cluster c env=test region=eu
         cluster d env=prod",
        json!({"predicates": [labelled(json!({
            "matchLabels": {"env": "prod"},
            "matchExpressions": [{"key": "region", "operator": "In", "values": ["eu", "ap"]}],
        }))]}),
        expect![[r#"
            -: a
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn one_predicate_is_enough() {
    check(
        "cluster a env=prod
         cluster b env=test
         cluster c env=dev",
        json!({"predicates": [
            labelled(json!({"matchLabels": {"env": "prod"}})), labelled(json!({"matchLabels": {"env": "dev"}})),
        ]}),
        expect![[r#"
            -: a c
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_predicate_that_asks_for_nothing_matches_everything() {
    check(
        "cluster a",
        json!({"predicates": [{}]}),
        expect![[r#"
            -: a
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn claims_are_matched_by_every_operator() {
    let world = "cluster a claim:cloud=aws
         cluster b claim:cloud=gcp
         cluster c claim:version=1";
    for (predicate, chosen) in [
        (claimed("cloud", "In", &["aws"]), "a"),
        (claimed("cloud", "NotIn", &["aws"]), "b c"),
        (claimed("cloud", "Exists", &[]), "a b"),
        (claimed("cloud", "DoesNotExist", &[]), "c"),
    ] {
        let groups = World::parse(world).choose(json!({"predicates": [predicate]})).groups.unwrap();
        let names: Vec<&str> = groups[0].clusters.iter().map(ClusterName::as_str).collect();
        assert_eq!(names.join(" "), chosen, "{predicate}");
    }
}

#[test]
fn labels_and_claims_of_one_predicate_must_both_hold() {
    check(
        "cluster a env=prod claim:cloud=aws
         cluster b env=prod claim:cloud=gcp
         cluster c claim:cloud=aws",
        json!({"predicates": [{"requiredClusterSelector": {
            "labelSelector": {"matchLabels": {"env": "prod"}},
            "claimSelector": {"matchExpressions": [{"key": "cloud", "operator": "In", "values": ["aws"]}]},
        }}]}),
        expect![[r#"
            -: a
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn nobody_matches() {
    check(
        "cluster a",
        json!({"predicates": [labelled(json!({"matchLabels": {"env": "prod"}}))]}),
        expect![[r#"
            -: nobody
            PlacementSatisfied NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate
        "#]],
    );
}

#[test]
fn a_number_takes_the_first_by_name() {
    check(
        "cluster c
         cluster a
         cluster b",
        json!({"numberOfClusters": 2}),
        expect![[r#"
            -: a b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn what_is_chosen_stays_and_only_the_rest_is_filled_by_name() {
    check(
        "cluster a
         cluster b
         cluster c
         cluster d
         before c d",
        json!({"numberOfClusters": 3}),
        expect![[r#"
            -: a c d
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn what_is_chosen_goes_when_it_does_not_match_any_more() {
    check(
        "cluster a env=prod
         cluster b env=test
         cluster c env=prod
         before b c",
        json!({"numberOfClusters": 2, "predicates": [labelled(json!({"matchLabels": {"env": "prod"}}))]}),
        expect![[r#"
            -: a c
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_lower_number_keeps_the_first_by_name_of_what_is_chosen() {
    check(
        "cluster a
         cluster b
         cluster c
         before b c",
        json!({"numberOfClusters": 1}),
        expect![[r#"
            -: b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn too_few_clusters_are_told() {
    check(
        "cluster a",
        json!({"numberOfClusters": 3}),
        expect![[r#"
            -: a
            PlacementSatisfied NotAllDecisionsScheduled: 2 cluster decisions unscheduled
        "#]],
    );
}

#[test]
fn none_is_a_number_too() {
    check(
        "cluster a
         before a",
        json!({"numberOfClusters": 0}),
        expect![[r#"
            -: nobody
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_mistake_in_a_selection_leaves_everything_as_it_is_and_is_named() {
    let unknown = json!([{"key": "env", "operator": "Like", "values": ["p"]}]);
    for (spec, expected) in [
        (
            json!({"predicates": [{}, labelled(json!({"matchExpressions": unknown}))]}),
            expect![[r#"
                stays as it is
                PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
                PlacementMisconfigured Misconfigured: predicates[1]: labelSelector: operator "Like" is not known: use In, NotIn, Exists or DoesNotExist
            "#]],
        ),
        (
            json!({"predicates": [claimed("cloud", "In", &[])]}),
            expect![[r#"
                stays as it is
                PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
                PlacementMisconfigured Misconfigured: predicates[0]: claimSelector: In on cloud needs values
            "#]],
        ),
        (
            json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["true"]}}}]}),
            expect![[r#"
                stays as it is
                PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
                PlacementMisconfigured Misconfigured: predicates[0]: celSelector is not supported
            "#]],
        ),
        (
            json!({"numberOfClusters": -1}),
            expect![[r#"
                stays as it is
                PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
                PlacementMisconfigured Misconfigured: numberOfClusters: -1 is not a number of clusters
            "#]],
        ),
    ] {
        check("cluster a\nbefore a", spec, expected);
    }
}

#[test]
fn a_mistake_in_a_toleration_leaves_everything_as_it_is_and_is_named() {
    for (spec, expected) in [
        (
            json!({"tolerations": [{"operator": "Equal", "value": "x"}]}),
            expect![[r#"
                stays as it is
                PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
                PlacementMisconfigured Misconfigured: tolerations[0]: if the key is empty, the operator must be Exists
            "#]],
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}),
            expect![[r#"
                stays as it is
                PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
                PlacementMisconfigured Misconfigured: tolerations[0]: if the operator is Exists, the value should be empty
            "#]],
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Above"}]}),
            expect![[r#"
                stays as it is
                PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
                PlacementMisconfigured Misconfigured: tolerations[0]: operator "Above" is not known: use Equal or Exists
            "#]],
        ),
    ] {
        check("cluster a\nbefore a", spec, expected);
    }
}

#[test]
fn what_is_not_supported_and_does_no_harm_is_named() {
    check(
        "cluster a",
        json!({"prioritizerPolicy": {"mode": "Exact"}, "spreadPolicy": {}}),
        expect![[r#"
            -: a
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
            PlacementMisconfigured Succeedconfigured: Placement configurations check pass; not supported and ignored: prioritizerPolicy, spreadPolicy
        "#]],
    );
}
