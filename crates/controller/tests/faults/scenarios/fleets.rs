//! Clusters that come and go, and placements that change.

use serde_json::json;

use super::{
    FOUR, NONE, THREE, TWO, cluster, decision, fleet, hub_config, installed, joined, placement, scenario,
    small, template, versions, want, want_behind, with_canary,
};
use crate::agents::Rule::{Only, Well};
use crate::objects::{addon, behind, object, place, reference, rolling, update_all};
use crate::scenario::{Scenario, Step};
use Step::{Agents, Delete, Join, Put, Rest, Select};

/// Enough for the brake.
const TWELVE: &[&str] = &["c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", "c09", "c10", "c11", "c12"];

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "cluster_joins_during_rollout",
            installed(TWO, rolling(1)),
            vec![
                Agents(Only(NONE)),
                want("two", rolling(1)),
                Rest,
                Join("c3"),
                fleet(THREE),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        scenario(
            "cluster_joins_that_sorts_first",
            installed(THREE, rolling(1)),
            vec![
                Agents(Only(NONE)),
                want("two", rolling(1)),
                Rest,
                Join("a0"),
                fleet(&["a0", "c1", "c2", "c3"]),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        small("cluster_leaves", installed(THREE, update_all()), vec![fleet(&["c1", "c3"]), Rest]),
        scenario(
            "cluster_leaves_during_rollout",
            installed(THREE, rolling(1)),
            vec![
                Agents(Only(NONE)),
                want("two", rolling(1)),
                Rest,
                fleet(&["c2", "c3"]),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        scenario(
            "cluster_is_deleted",
            installed(THREE, rolling(1)),
            vec![
                Put(cluster("c2", json!({"metadata": {"finalizers": ["example.com/detach"]}}))),
                Delete(cluster("c2", json!({}))),
                Rest,
                Put(json!({
                    "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                    "metadata": {"name": "c2", "finalizers": null},
                })),
                fleet(&["c1", "c3"]),
                Rest,
            ],
        ),
        scenario(
            "cluster_goes_offline_in_flight",
            installed(THREE, rolling(1)),
            vec![
                Agents(Only(NONE)),
                want("two", rolling(1)),
                Rest,
                Put(offline("c1", "Unknown")),
                Rest,
                Put(offline("c1", "True")),
                Agents(Well),
                Rest,
            ],
        ),
        scenario(
            "cluster_opts_out",
            [
                versions(),
                joined(THREE),
                vec![
                    Put(cluster(
                        "c2",
                        json!({"metadata": {"annotations": {
                            "addon.open-cluster-management.io/disable-automatic-installation": "true",
                        }}}),
                    )),
                    fleet(THREE),
                ],
            ]
            .concat(),
            vec![
                want("one", update_all()),
                Rest,
                Put(cluster(
                    "c2",
                    json!({"metadata": {"annotations": {
                        "addon.open-cluster-management.io/disable-automatic-installation": null,
                    }}}),
                )),
                Rest,
            ],
        ),
        scenario(
            "canary_grows_and_shrinks",
            with_canary(FOUR),
            vec![
                Agents(Only(&["c1"])),
                Select("canary", vec!["c1", "c2"]),
                want_behind("two"),
                Rest,
                Select("canary", vec!["c1"]),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        scenario(
            "newer_cluster_joins_behind_a_closed_gate",
            [
                versions(),
                vec![template("v3.0.0"), hub_config("three", "v3.0.0")],
                joined(FOUR),
                vec![fleet(THREE), Select("canary", vec!["c1"]), Select("other", vec!["c4"])],
                vec![beside_newer("one"), Rest],
            ]
            .concat(),
            vec![Agents(Only(NONE)), beside_newer("two"), Rest, fleet(FOUR), Rest, Agents(Well), Rest],
        ),
        scenario(
            "cluster_moves_between_placements",
            [
                versions(),
                joined(FOUR),
                vec![fleet(TWO), Select("other", vec!["c3", "c4"]), apart("one", "two"), Rest],
            ]
            .concat(),
            vec![
                Select("other", vec!["c2", "c3", "c4"]),
                Rest,
                fleet(&["c1", "c3"]),
                Select("other", vec!["c2", "c4"]),
                Rest,
            ],
        ),
        scenario(
            "placement_is_removed_from_the_list",
            [
                versions(),
                joined(FOUR),
                vec![fleet(TWO), Select("other", vec!["c3", "c4"]), apart("one", "two"), Rest],
            ]
            .concat(),
            vec![want("one", rolling(1)), Rest, apart("one", "one"), Rest],
        ),
        scenario(
            "placement_is_deleted",
            installed(THREE, update_all()),
            vec![
                Delete(placement("fleet")),
                Delete(decision("fleet-0")),
                Delete(decision("fleet-1")),
                Rest,
                fleet(THREE),
                Rest,
            ],
        ),
        scenario(
            "label_selector",
            [versions(), joined(THREE), vec![Put(labelled("c1", "prod")), Put(labelled("c2", "dev"))]]
                .concat(),
            vec![
                Put(object(
                    "ClusterManagementAddOn",
                    "helloworld",
                    json!({"spec": {
                        "defaultConfigs": [reference("addonhubconfigs", None, "one")],
                        "installStrategy": {"type": "ClusterLabelSelector", "labelSelector": {"matchLabels": {"env": "prod"}}},
                    }}),
                )),
                Rest,
                Put(labelled("c2", "prod")),
                Put(labelled("c1", "dev")),
                Rest,
            ],
        ),
        scenario(
            "brake",
            installed(TWELVE, update_all()),
            vec![
                fleet(&[]),
                Rest,
                Put(json!({
                    "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
                    "metadata": {"name": "helloworld", "annotations": {"addon.open-cluster-management.io/allow-deletions": "12"}},
                })),
                Rest,
            ],
        ),
    ]
}

/// Two placements, with a config each.
fn apart(fleet: &str, other: &str) -> Step {
    Put(addon(&[place("fleet", fleet, rolling(1)), place("other", other, rolling(1))]))
}

/// A fleet behind its canary, and another placement with a newer version.
fn beside_newer(config: &str) -> Step {
    Put(addon(&[
        place("other", "three", rolling(1)),
        place("fleet", config, behind("canary", 1)),
        place("canary", config, rolling(1)),
    ]))
}

fn labelled(name: &str, env: &str) -> serde_json::Value {
    cluster(name, json!({"metadata": {"labels": {"env": env}}}))
}

fn offline(name: &str, available: &str) -> serde_json::Value {
    cluster(
        name,
        json!({"status": {"conditions": [{
            "type": "ManagedClusterConditionAvailable", "status": available, "reason": "Lease", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}}),
    )
}
