//! ClusterManagementAddOn: an add-on, where it is installed and how it changes.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddOnConfig, AddOnMeta, ConfigCoordinates, ConfigMeta, ConfigSpecHash, InstallStrategy};
use crate::{Condition, lenient, schema};

/// What the add-on is, which configs it supports and on which clusters it is installed.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ClusterManagementAddOn",
    plural = "clustermanagementaddons",
    shortname = "cma",
    shortname = "cmas",
    category = "aviary",
    status = "ClusterManagementAddOnStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "An add-on for a fleet of clusters: what it is, where it is installed, and how a change reaches the clusters.",
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Succeeded\")].reason",
        description = "Why the add-on has succeeded, or has not yet"
    ),
    printcolumn(
        name = "Desired",
        type_ = "string",
        json_path = ".status.rollout.version",
        description = "The versions that the placements should run"
    ),
    printcolumn(
        name = "Settled",
        type_ = "string",
        json_path = ".status.rollout.progress",
        description = "How many clusters run their desired revision, of how many"
    ),
    printcolumn(name = "In flight", type_ = "integer", json_path = ".status.rollout.inFlight"),
    printcolumn(name = "Failed", type_ = "integer", json_path = ".status.rollout.failed"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Strategy",
        type_ = "string",
        json_path = ".spec.installStrategy.type",
        priority = "1"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Succeeded\")].message",
        priority = "1"
    )
)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterManagementAddOnSpec {
    /// Display name and description of the add-on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on_meta: Option<AddOnMeta>,

    /// Default configs. A config of the same group and resource in a placement or an instance
    /// overrides them.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(32), transform = schema::keyed_by(&["group", "resource"]))]
    pub default_configs: Vec<AddOnConfig>,

    /// Types of config that the add-on supports, each with its default. An instance may override
    /// only these.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(32), transform = schema::keyed_by(&["group", "resource"]))]
    pub supported_configs: Vec<ConfigMeta>,

    /// Deprecated and ignored: use supportedConfigs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on_configuration: Option<ConfigCoordinates>,

    /// On which clusters the add-on is installed, and how a change reaches them. If omitted, on the
    /// clusters where somebody creates a ManagedClusterAddOn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_strategy: Option<InstallStrategy>,
}

/// The state of the add-on as a whole. It counts clusters and does not list them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterManagementAddOnStatus {
    /// Generation of the add-on that the rest of the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Available versions of the add-on, newest first.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub supported_versions: Vec<String>,

    /// Version that clusters get by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_version: Option<String>,

    /// The add-on's rollouts in numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutCounts>,

    /// The last rollouts that did not complete, the oldest first.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RolloutAttempt>,

    /// The add-on's default configs, as last read.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["group", "resource"]))]
    pub default_config_references: Vec<DefaultConfigReference>,

    /// The same in OCM's spelling. Not part of our own schema.
    #[serde(
        rename = "defaultconfigReferences",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(skip)]
    pub ocm_default_references: Vec<DefaultConfigReference>,

    /// Progress of each placement, with hashes only.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["namespace", "name"]))]
    pub install_progression: Vec<InstallProgression>,

    /// The same as installProgression, in OCM's spelling, with the name of the config next to each
    /// hash.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["namespace", "name"]))]
    pub install_progressions: Vec<OcmInstallProgression>,

    /// The add-on's state as a whole.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}

/// The clusters of an add-on, counted by state. Each cluster is in one state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutCounts {
    /// Versions that the placements should run, each once.
    #[serde(deserialize_with = "lenient::or_default")]
    pub version: String,

    /// Settled clusters of all clusters, such as 3/12.
    #[serde(deserialize_with = "lenient::or_default")]
    pub progress: String,

    /// All clusters that a placement selects, or that have an instance.
    #[serde(deserialize_with = "lenient::or_default")]
    pub clusters: i64,

    /// Clusters that run their desired revision and have been healthy for long enough.
    #[serde(deserialize_with = "lenient::or_default")]
    pub settled: i64,

    /// Clusters that are assigned a revision and have neither settled on it nor failed.
    #[serde(deserialize_with = "lenient::or_default")]
    pub in_flight: i64,

    /// Clusters that are assigned a revision and failed on it.
    #[serde(deserialize_with = "lenient::or_default")]
    pub failed: i64,

    /// Clusters that are not assigned their desired revision yet.
    #[serde(deserialize_with = "lenient::or_default")]
    pub waiting: i64,

    /// Clusters that are no longer selected, or are being deleted.
    #[serde(deserialize_with = "lenient::or_default")]
    pub leaving: i64,
}

/// A rollout of a placement that did not complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutAttempt {
    /// Name of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: String,

    /// Namespace of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    pub namespace: String,

    /// Version that was rolled out; without versions, the id of the revision.
    #[serde(deserialize_with = "lenient::or_default")]
    pub version: String,

    /// Failed, Replaced or RolledBack.
    #[serde(deserialize_with = "lenient::or_default")]
    pub outcome: String,

    /// Why it failed, and which version followed.
    #[serde(deserialize_with = "lenient::or_default")]
    pub message: String,

    /// When the first cluster was started.
    #[serde(deserialize_with = "lenient::or_default")]
    pub started_at: String,

    /// When it failed or was replaced.
    #[serde(deserialize_with = "lenient::or_default")]
    pub ended_at: String,
}

/// A default config and the hash of its content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resource"]))]
pub struct DefaultConfigReference {
    /// API group of the config; empty for the core group.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub group: String,

    /// Resource of the config.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub resource: String,

    /// The desired config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
}

/// Progress of one placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["name", "namespace"]))]
pub struct InstallProgression {
    /// Name of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub name: String,

    /// Namespace of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub namespace: String,

    /// The configs of the placement's clusters, with the desired, known good and applied hashes.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["group", "resource"]))]
    pub config_references: Vec<InstallConfigReference>,

    /// The placement's state.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}

/// One config of a placement, and its desired, known good and applied content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resource"]))]
pub struct InstallConfigReference {
    /// API group of the config; empty for the core group.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub group: String,

    /// Resource of the config.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub resource: String,

    /// Namespace of the config; absent for a cluster-scoped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub namespace: Option<String>,

    /// Name of the config.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub name: String,

    /// Hash of the desired content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config_spec_hash: Option<String>,

    /// Hash of the last known good content: with a canary, the last content that passed it;
    /// otherwise the last that all clusters applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_known_good_config_spec_hash: Option<String>,

    /// Hash of the content that every cluster of the placement last applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_config_spec_hash: Option<String>,
}

/// Progress of one placement, in OCM's spelling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["name", "namespace"]))]
pub struct OcmInstallProgression {
    /// Name of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub name: String,

    /// Namespace of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub namespace: String,

    /// The configs of the placement's clusters, with the desired, known good and applied contents.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["group", "resource"]))]
    pub config_references: Vec<OcmInstallConfigReference>,

    /// The placement's state.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}

/// One type of config of a placement, and its desired, known good and applied object and content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resource"]))]
pub struct OcmInstallConfigReference {
    /// API group of the config; empty for the core group.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub group: String,

    /// Resource of the config.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub resource: String,

    /// The desired content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,

    /// The last known good content: with a canary, the last content that passed it; otherwise the
    /// last that all clusters applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_known_good_config: Option<ConfigSpecHash>,

    /// The content that every cluster of the placement last applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_config: Option<ConfigSpecHash>,
}
