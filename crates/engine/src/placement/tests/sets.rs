//! Which clusters may be chosen: sets and bindings.

use expect_test::expect;
use serde_json::json;

use super::story::check;

const CLUSTERS: &str = "
    cluster a cluster.open-cluster-management.io/clusterset=one
    cluster b cluster.open-cluster-management.io/clusterset=two region=eu
    cluster c region=eu
";

#[test]
fn without_any_set_or_binding_on_the_hub_every_cluster_may_be_chosen() {
    check(
        CLUSTERS,
        json!({}),
        expect![[r#"
            -: a b c
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn without_any_cluster_there_is_nothing_to_choose_from() {
    check(
        "",
        json!({}),
        expect![[r#"
            -: nobody
            PlacementSatisfied AllManagedClusterSetsEmpty: The hub has no ManagedCluster
        "#]],
    );
}

#[test]
fn with_sets_on_the_hub_a_namespace_without_a_binding_gets_nothing() {
    check(
        &format!("{CLUSTERS} set one\n bind one elsewhere"),
        json!({}),
        expect![[r#"
            -: nobody
            PlacementSatisfied NoManagedClusterSetBindings: No valid ManagedClusterSetBindings found in placement namespace
        "#]],
    );
}

#[test]
fn a_binding_of_a_set_that_is_not_there_opens_nothing_even_where_no_set_is_left() {
    check(
        &format!("{CLUSTERS} bind one"),
        json!({}),
        expect![[r#"
            -: nobody
            PlacementSatisfied NoManagedClusterSetBindings: No valid ManagedClusterSetBindings found in placement namespace
        "#]],
    );
}

#[test]
fn a_set_has_the_clusters_that_bear_its_label() {
    check(
        &format!("{CLUSTERS} set one\n set two\n bind two"),
        json!({}),
        expect![[r#"
            -: b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_set_may_select_by_any_labels_and_sets_add_up() {
    check(
        &format!("{CLUSTERS} set one\n set eu region=eu\n bind one\n bind eu"),
        json!({}),
        expect![[r#"
            -: a b c
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn the_global_set_has_every_cluster() {
    check(
        &format!("{CLUSTERS} set global *\n bind global"),
        json!({}),
        expect![[r#"
            -: a b c
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_placement_may_narrow_the_sets_that_are_bound() {
    check(
        &format!("{CLUSTERS} set one\n set two\n bind one\n bind two"),
        json!({"clusterSets": ["two", "three"]}),
        expect![[r#"
            -: b
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}

#[test]
fn a_placement_cannot_name_sets_that_are_not_bound() {
    check(
        &format!("{CLUSTERS} set one\n set two\n bind one"),
        json!({"clusterSets": ["two"]}),
        expect![[r#"
            -: nobody
            PlacementSatisfied NoIntersection: None of ManagedClusterSets [two] is bound to placement namespace
        "#]],
    );
}

#[test]
fn a_placement_that_names_sets_means_them_where_there_are_none() {
    check(
        CLUSTERS,
        json!({"clusterSets": ["one"]}),
        expect![[r#"
            -: nobody
            PlacementSatisfied NoManagedClusterSetBindings: No valid ManagedClusterSetBindings found in placement namespace
        "#]],
    );
}

#[test]
fn sets_without_clusters_are_told() {
    check(
        &format!("{CLUSTERS} set four\n bind four"),
        json!({}),
        expect![[r#"
            -: nobody
            PlacementSatisfied AllManagedClusterSetsEmpty: All ManagedClusterSets [four] have no member ManagedCluster
        "#]],
    );
}

#[test]
fn a_set_that_cannot_be_read_leaves_everything_as_it_is() {
    check(
        &format!("{CLUSTERS} set one\n set odd nonsense\n bind one\n bind odd"),
        json!({}),
        expect![[r#"
            stays as it is
            PlacementSatisfied NotAllDecisionsScheduled: The placement is misconfigured; its decisions are kept
            PlacementMisconfigured Misconfigured: ManagedClusterSet odd: selectorType "ByMood" is not known
        "#]],
    );
    check(
        &format!("{CLUSTERS} set one\n set odd nonsense\n bind one"),
        json!({}),
        expect![[r#"
            -: a
            PlacementSatisfied AllDecisionsScheduled: All cluster decisions scheduled
        "#]],
    );
}
