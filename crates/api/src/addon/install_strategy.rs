//! On which clusters an add-on is installed, and with which configs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddOnConfig, RolloutStrategy};
use crate::{lenient, schema};

/// Which clusters get an instance of the add-on automatically.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::rules(&[
    (
        "!has(self.type) || self.type != 'Placements' || (has(self.placements) && size(self.placements) > 0)",
        "type Placements needs at least one placement",
    ),
    (
        "!has(self.type) || self.type != 'ClusterLabelSelector' || has(self.labelSelector)",
        "type ClusterLabelSelector needs a labelSelector",
    ),
    (
        "!has(self.labelSelector) || !has(self.type) || self.type != 'Placements'",
        "labelSelector cannot be used with type Placements",
    ),
    (
        "!has(self.placements) || !has(self.type) || self.type != 'ClusterLabelSelector'",
        "placements cannot be used with type ClusterLabelSelector",
    ),
]))]
pub struct InstallStrategy {
    /// Manual creates and deletes nothing. ClusterLabelSelector installs on the clusters that
    /// labelSelector selects, Placements on those that any of the placements selects. Changing back
    /// to Manual keeps every instance.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of_or_first(&["Manual", "ClusterLabelSelector", "Placements"]))]
    pub type_: Option<String>,

    /// Selects ManagedClusters by their labels. Used by type ClusterLabelSelector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,

    /// Placements whose clusters get the add-on. If several select the same cluster, the last one
    /// in the list governs it, for both the configs and the rollout. Used by type Placements.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        transform = schema::max_items(64),
        transform = schema::keyed_by(&["namespace", "name"]),
        transform = schema::rules(&[(
            "self.all(p, self.exists_one(q, q.name == p.name && q.__namespace__ == p.__namespace__))",
            "a placement may be listed only once",
        )]),
    )]
    pub placements: Vec<PlacementStrategy>,
}

/// A placement, the configs of its clusters, and how a change reaches them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(
    transform = schema::required(&["name", "namespace"]),
    transform = schema::rules(&[(
        "!has(self.rolloutStrategy) || !has(self.rolloutStrategy.rollingUpdateWithCanary) || \
         !has(self.rolloutStrategy.rollingUpdateWithCanary.placement) || \
         self.rolloutStrategy.rollingUpdateWithCanary.placement.name != self.name || \
         self.rolloutStrategy.rollingUpdateWithCanary.placement.__namespace__ != self.__namespace__",
        "a placement cannot be its own canary",
    )]),
)]
pub struct PlacementStrategy {
    /// Name of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::dns_subdomain)]
    pub name: String,

    /// Namespace of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::dns_label)]
    pub namespace: String,

    /// Configs of the add-on on these clusters. They override the add-on's defaults of the same
    /// group and resource. An instance's own configs override them.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(32), transform = schema::keyed_by(&["group", "resource"]))]
    pub configs: Vec<AddOnConfig>,

    /// How a change of configs or version reaches these clusters. If omitted, all clusters change
    /// at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_strategy: Option<RolloutStrategy>,

    /// An older spelling of configs, with a version and the namespace for new instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addon_template: Option<AddonTemplate>,
}

/// Settings for the instances of a placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::rules(&[(
    "!has(self.desiredVersion) || !has(self.installVersion) || self.desiredVersion == self.installVersion",
    "desiredVersion and installVersion mean the same: set one of them, or both to the same value",
)]))]
pub struct AddonTemplate {
    /// Namespace on the managed cluster where the agent is installed. Used only when an instance is
    /// created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::dns_label)]
    pub install_namespace: Option<String>,

    /// Version of the add-on on these clusters. It rolls out like a config.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(128))]
    pub desired_version: Option<String>,

    /// The older name of desiredVersion.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(128))]
    pub install_version: Option<String>,

    /// Configs of the add-on on these clusters. They roll out; they are not copied into the
    /// instances.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(32), transform = schema::keyed_by(&["group", "resource"]))]
    pub configs: Vec<AddOnConfig>,
}
