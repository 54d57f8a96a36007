//! ManagedClusterSet and ManagedClusterSetBinding: which clusters a namespace's placements may
//! select.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Condition, lenient, schema};

/// Which clusters belong to the set.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSet",
    plural = "managedclustersets",
    shortname = "mclset",
    shortname = "mclsets",
    category = "aviary",
    status = "ManagedClusterSetStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "A set of clusters. A binding allows the placements of a namespace to use it.",
    printcolumn(
        name = "Empty",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ClusterSetEmpty\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedClusterSetSpec {
    /// How the clusters of the set are determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::default(json!({ "selectorType": "ExclusiveClusterSetLabel" })))]
    pub cluster_selector: Option<ManagedClusterSelector>,
}

/// How the clusters of a set are determined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedClusterSelector {
    /// ExclusiveClusterSetLabel: by the label cluster.open-cluster-management.io/clusterset.
    /// LabelSelector: by any labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of_or_first(&["ExclusiveClusterSetLabel", "LabelSelector"]))]
    pub selector_type: Option<String>,

    /// Selects ManagedClusters by their labels. Used by type LabelSelector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// The state of the set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedClusterSetStatus {
    /// The set's state.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}

/// Which set the namespace may use.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSetBinding",
    plural = "managedclustersetbindings",
    namespaced,
    shortname = "mclsetbinding",
    shortname = "mclsetbindings",
    category = "aviary",
    status = "ManagedClusterSetBindingStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "Allows the placements of a namespace to use a set of clusters. It has the same name as the set.",
    printcolumn(
        name = "Bound",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Bound\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["clusterSet"]))]
pub struct ManagedClusterSetBindingSpec {
    /// Name of the set.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub cluster_set: String,
}

/// The state of the binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedClusterSetBindingStatus {
    /// The binding's state.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}
