//! Placement: a selection of clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Condition, IntOrString, lenient, schema};

/// Which clusters are selected. All parts must match; an empty placement selects every cluster of
/// the bound sets.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "Placement",
    plural = "placements",
    namespaced,
    shortname = "plc",
    category = "aviary",
    status = "PlacementStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "A selection of clusters. The selected clusters are written to PlacementDecisions, which have the placement's name as a label.",
    printcolumn(
        name = "Succeeded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"PlacementSatisfied\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"PlacementSatisfied\")].reason"
    ),
    printcolumn(
        name = "SelectedClusters",
        type_ = "integer",
        json_path = ".status.numberOfSelectedClusters"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
pub struct PlacementSpec {
    /// Sets to select from, among those bound to the placement's namespace. If omitted, all of
    /// them.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,

    /// How many clusters to select. If omitted, all that match.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::at_least(0))]
    pub number_of_clusters: Option<i64>,

    /// Requirements for clusters. A cluster must satisfy at least one of them.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<ClusterPredicate>,

    /// Which clusters to prefer if more match than requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<PrioritizerPolicy>,

    /// How evenly to spread the clusters. Not used by Aviary.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::loose_object")]
    pub spread_policy: Option<Value>,

    /// Taints that do not keep a cluster from being selected.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<ClusterToleration>,

    /// How the selected clusters are grouped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<DecisionStrategy>,
}

/// A requirement for clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterPredicate {
    /// Labels, claims and properties that a cluster must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_cluster_selector: Option<ClusterSelector>,
}

/// Selects clusters. All parts must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterSelector {
    /// By the labels of the ManagedCluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,

    /// By the cluster's claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClusterClaimSelector>,

    /// By expressions over the ManagedCluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel_selector: Option<ClusterCelSelector>,
}

/// Selects clusters by their claims. All expressions must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterClaimSelector {
    /// Requirements for a cluster's claims.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// Selects clusters by CEL expressions. All of them must be true.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterCelSelector {
    /// Expressions over the variable managedCluster.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
}

/// Which clusters to prefer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PrioritizerPolicy {
    /// Additive: the default prioritizers count as well as those listed. Exact: only those listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::default("Additive"))]
    pub mode: Option<String>,

    /// Prioritizers and their weights.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<PrioritizerConfig>,
}

/// A prioritizer and its weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["scoreCoordinate"]))]
pub struct PrioritizerConfig {
    /// The source of the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_coordinate: Option<ScoreCoordinate>,

    /// The weight of the score, from -10 to 10.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::default(1), range(min = -10, max = 10))]
    pub weight: Option<i64>,
}

/// The source of a score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ScoreCoordinate {
    /// BuiltIn: one of the hub's own prioritizers. AddOn: an AddOnPlacementScore.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of_or_first(&["BuiltIn", "AddOn"]))]
    pub type_: Option<String>,

    /// Name of the built-in prioritizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<String>,

    /// The AddOnPlacementScore, and the score in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOnScore>,
}

/// A score that an add-on provides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resourceName", "scoreName"]))]
pub struct AddOnScore {
    /// Name of the AddOnPlacementScore.
    #[serde(deserialize_with = "lenient::or_default")]
    pub resource_name: String,

    /// Name of the score in it.
    #[serde(deserialize_with = "lenient::or_default")]
    pub score_name: String,
}

/// A taint that does not keep a cluster from being selected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterToleration {
    /// Key of the taint. If omitted, with operator Exists, every taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::qualified_name)]
    pub key: Option<String>,

    /// Equal: the value must be the same. Exists: any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::default("Equal"))]
    pub operator: Option<String>,

    /// Value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,

    /// Effect of the taint. If omitted, every effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of(&["NoSelect", "PreferNoSelect", "NoSelectIfNew"]))]
    pub effect: Option<String>,

    /// For how many seconds after it was set the taint is tolerated. If omitted, forever.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How the selected clusters are grouped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DecisionStrategy {
    /// The groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_strategy: Option<GroupStrategy>,
}

/// The groups of selected clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupStrategy {
    /// Named groups, in order. The remaining clusters go into groups without a name.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroup>,

    /// The maximum size of a group, as a number or a percentage of the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::concurrency, transform = schema::default("100%"))]
    pub clusters_per_decision_group: Option<IntOrString>,
}

/// A named group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["groupName"]))]
pub struct DecisionGroup {
    /// Name of the group.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub group_name: String,

    /// Which of the selected clusters belong to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_cluster_selector: Option<GroupClusterSelector>,
}

/// Selects among the selected clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupClusterSelector {
    /// By the labels of the ManagedCluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,

    /// By the cluster's claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClusterClaimSelector>,
}

/// The selected clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PlacementStatus {
    /// How many clusters were selected.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub number_of_selected_clusters: Option<i64>,

    /// The groups, and their PlacementDecisions.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroupStatus>,

    /// The placement's state.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}

/// One group, and its PlacementDecisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DecisionGroupStatus {
    /// Number of the group, counted from 0.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub decision_group_index: Option<i64>,

    /// Name of the group; empty if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_group_name: Option<String>,

    /// Names of the PlacementDecisions.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,

    /// How many clusters the group has.
    #[serde(
        rename = "clusterCount",
        deserialize_with = "lenient::whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub clusters_count: Option<i64>,
}
