//! ClusterManagementAddOn: an add-on, where it goes and how it changes.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddOnConfig, AddOnMeta, ConfigCoordinates, ConfigMeta, ConfigSpecHash, InstallStrategy};
use crate::{Condition, lenient, schema};

/// What the add-on is, which configs it takes and on which clusters it is installed.
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
    printcolumn(name = "Display name", type_ = "string", json_path = ".spec.addOnMeta.displayName"),
    printcolumn(name = "Strategy", type_ = "string", json_path = ".spec.installStrategy.type"),
    printcolumn(name = "Default version", type_ = "string", json_path = ".status.defaultVersion"),
    printcolumn(
        name = "Progressing",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].reason",
        description = "How far the add-on's rollouts are"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].message",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterManagementAddOnSpec {
    /// What the add-on is called and is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on_meta: Option<AddOnMeta>,

    /// Configs of every instance that has no other of the same group and resource, from its placement or of its own.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(32), transform = schema::keyed_by(&["group", "resource"]))]
    pub default_configs: Vec<AddOnConfig>,

    /// Types of config that the add-on takes, each with its default. An instance may override only these.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(32), transform = schema::keyed_by(&["group", "resource"]))]
    pub supported_configs: Vec<ConfigMeta>,

    /// Deprecated and ignored: say it with supportedConfigs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on_configuration: Option<ConfigCoordinates>,

    /// On which clusters the add-on is installed, and how a change reaches them. Left out, on those where somebody
    /// creates a ManagedClusterAddOn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_strategy: Option<InstallStrategy>,
}

/// What is known about the add-on as a whole. Clusters are counted here, not listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterManagementAddOnStatus {
    /// Versions that the add-on can be installed in, newest first.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub supported_versions: Vec<String>,

    /// Version that clusters get where no other is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_version: Option<String>,

    /// The add-on's default configs, as they were last read.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["group", "resource"]))]
    pub default_config_references: Vec<DefaultConfigReference>,

    /// How far each placement is, with hashes only.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["namespace", "name"]))]
    pub install_progression: Vec<InstallProgression>,

    /// The same as installProgression, as OCM spells it, with the name of the config beside each hash.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["namespace", "name"]))]
    pub install_progressions: Vec<OcmInstallProgression>,

    /// The add-on's state as a whole.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}

/// A default config and the content that is meant by it.
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

    /// The config that is wanted now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
}

/// How far one placement is.
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

    /// The configs of the placement's clusters, with the hashes that are wanted, known good and applied.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["group", "resource"]))]
    pub config_references: Vec<InstallConfigReference>,

    /// The placement's state.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}

/// One config of a placement, and which content of it is where.
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

    /// Hash of the content that is wanted now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config_spec_hash: Option<String>,

    /// Hash of the content that last proved itself: on the canary clusters where there are any, else on all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_known_good_config_spec_hash: Option<String>,

    /// Hash of the content that every cluster of the placement last ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_config_spec_hash: Option<String>,
}

/// How far one placement is, as OCM spells it.
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

    /// The configs of the placement's clusters, with the contents that are wanted, known good and applied.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["group", "resource"]))]
    pub config_references: Vec<OcmInstallConfigReference>,

    /// The placement's state.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}

/// One type of config of a placement, and which object and content of it is where.
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

    /// What is wanted now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,

    /// What last proved itself: on the canary clusters where there are any, else on all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_known_good_config: Option<ConfigSpecHash>,

    /// What every cluster of the placement last ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_config: Option<ConfigSpecHash>,
}
