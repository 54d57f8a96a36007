//! PlacementDecision: a page of the clusters that a placement selected.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{lenient, schema};

/// A PlacementDecision has no spec, only a status.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "PlacementDecision",
    plural = "placementdecisions",
    namespaced,
    no_spec,
    shortname = "plcd",
    category = "aviary",
    status = "PlacementDecisionStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A page of the clusters that a placement selected. The label cluster.open-cluster-management.io/placement names the placement.",
    printcolumn(
        name = "Placement",
        type_ = "string",
        json_path = ".metadata.labels.cluster\\.open-cluster-management\\.io/placement"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct PlacementDecisionSpec {}

/// The clusters of one page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PlacementDecisionStatus {
    /// The clusters, at most a hundred.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_items(100))]
    pub decisions: Vec<ClusterDecision>,
}

/// One selected cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["clusterName", "reason"]))]
pub struct ClusterDecision {
    /// Name of the ManagedCluster; empty if a cluster is still missing.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub cluster_name: String,

    /// Why it was selected.
    #[serde(deserialize_with = "lenient::or_default")]
    pub reason: String,
}
