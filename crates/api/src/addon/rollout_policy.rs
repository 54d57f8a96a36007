//! AddOnRolloutPolicy: what people require of rollouts, beside the add-ons themselves.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PlacementRef;
use crate::{Condition, IntOrString, lenient, schema};

/// Which rollouts the policy is about, and what it requires of them.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnRolloutPolicy",
    plural = "addonrolloutpolicies",
    shortname = "arp",
    category = "aviary",
    status = "AddOnRolloutPolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "What is required of the rollouts of some or all add-ons. Several policies add up: the strictest value of each setting counts.",
    printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.paused"),
    printcolumn(name = "Canary", type_ = "string", json_path = ".spec.canary.placement.name"),
    printcolumn(name = "Add-ons", type_ = "integer", json_path = ".status.addOns"),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].status",
        description = "Whether the policy can be used"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
pub struct AddOnRolloutPolicySpec {
    /// The add-ons that the policy is about. If omitted, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_ons: Option<PolicyAddOns>,

    /// The placements that the policy is about. If omitted, all of them.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(64), transform = schema::keyed_by(&["namespace", "name"]))]
    pub placements: Vec<PlacementRef>,

    /// A placement whose clusters must be healthy on a new revision before any other cluster gets
    /// it. Does not apply to that placement itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<PolicyCanary>,

    /// If true, no new cluster is started; clusters in flight finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,

    /// How many clusters, as a number or a percentage of a placement's clusters, may fail before no
    /// new cluster is started. Replaces the add-on's own setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::failures)]
    pub max_failures: Option<IntOrString>,

    /// How long a cluster must stay healthy before it counts as settled, such as 10m. Replaces the
    /// add-on's own setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub min_success_time: Option<String>,

    /// How long a cluster may take before it counts as failed, such as 30m. Replaces the add-on's
    /// own setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub progress_deadline: Option<String>,
}

/// Add-ons by name, or by their labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::rules(&[(
    "has(self.names) != has(self.labelSelector)",
    "give either names or labelSelector",
)]))]
pub struct PolicyAddOns {
    /// Names of add-ons.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(256))]
    pub names: Vec<String>,

    /// Selects ClusterManagementAddOns by their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// The clusters that go first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["placement"]))]
pub struct PolicyCanary {
    /// The placement of these clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementRef>,
}

/// What the policy applies to now. A summary only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AddOnRolloutPolicyStatus {
    /// Generation of the policy that the rest of the status is about.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Number of add-ons that it applies to.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub add_ons: Option<i64>,

    /// Number of placements of those add-ons that it applies to.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub placements: Option<i64>,

    /// Whether the policy can be used.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}
