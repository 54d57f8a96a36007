//! ManagedCluster: a cluster of the fleet.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, IntOrString, lenient, schema};

/// How the hub treats the cluster.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1",
    kind = "ManagedCluster",
    plural = "managedclusters",
    shortname = "mcl",
    shortname = "mcls",
    category = "aviary",
    status = "ManagedClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "A cluster of the fleet. The namespace on the hub for its objects has the same name.",
    printcolumn(name = "Hub Accepted", type_ = "boolean", json_path = ".spec.hubAcceptsClient"),
    printcolumn(
        name = "Managed Cluster URLs",
        type_ = "string",
        json_path = ".spec.managedClusterClientConfigs[*].url"
    ),
    printcolumn(
        name = "Joined",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ManagedClusterJoined\")].status"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ManagedClusterConditionAvailable\")].status"
    ),
    printcolumn(
        name = "Kubernetes",
        type_ = "string",
        json_path = ".status.version.kubernetes",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// How to reach the cluster's API server. Empty if the hub cannot reach it.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,

    /// Whether the hub accepts the cluster.
    #[serde(deserialize_with = "lenient::or_default")]
    pub hub_accepts_client: bool,

    /// How often, in seconds, the cluster's agent renews its lease.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::default(60))]
    pub lease_duration_seconds: Option<i64>,

    /// Taints, which keep placements from selecting the cluster unless they tolerate them.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// How to reach an API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["url"]))]
pub struct ClientConfig {
    /// URL of the API server.
    #[serde(deserialize_with = "lenient::or_default")]
    pub url: String,

    /// Certificates to trust, in base64. If omitted, those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::bytes)]
    pub ca_bundle: Option<String>,
}

/// A mark on a cluster that affects placements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["key", "effect"]))]
pub struct Taint {
    /// Key of the taint.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::qualified_name)]
    pub key: String,

    /// Value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,

    /// NoSelect: never selected. PreferNoSelect: selected last. NoSelectIfNew: stays selected, but
    /// is not newly selected.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::one_of(&["NoSelect", "PreferNoSelect", "NoSelectIfNew"]))]
    pub effect: String,

    /// When the taint was set.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::nullable_date_time)]
    pub time_added: Option<String>,
}

/// What the cluster's agent reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// The cluster's state: accepted, joined, available.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,

    /// Total capacity of the cluster's nodes.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, IntOrString>,

    /// Total capacity of the cluster's nodes that is available to pods.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, IntOrString>,

    /// Versions of the cluster's components.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ManagedClusterVersion>,

    /// Claims of the cluster about itself.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub cluster_claims: Vec<ManagedClusterClaim>,

    /// Namespaces of the cluster that its sets manage.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["clusterSet", "name"]))]
    pub managed_namespaces: Vec<ClusterSetManagedNamespace>,
}

/// Versions of the cluster's components.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedClusterVersion {
    /// Version of Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
}

/// A claim of the cluster about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedClusterClaim {
    /// Name of the claim.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub name: String,

    /// Value of the claim.
    #[serde(deserialize_with = "lenient::or_default")]
    pub value: String,
}

/// A namespace of the cluster that one of its sets manages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["clusterSet", "name"]))]
pub struct ClusterSetManagedNamespace {
    /// Name of the set.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub cluster_set: String,

    /// Name of the namespace.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::dns_label)]
    pub name: String,

    /// The namespace's state.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}
