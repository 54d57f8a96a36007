//! ManagedClusterAddOn: one add-on on one cluster.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddOnConfig, AddOnMeta, ConfigCoordinates, ConfigGroupResource, ConfigSpecHash};
use crate::names::DEFAULT_INSTALL_NAMESPACE;
use crate::{Condition, lenient, schema};

/// Settings of the add-on for this cluster. They override the configs of the add-on and of the
/// placement.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ManagedClusterAddOn",
    plural = "managedclusteraddons",
    namespaced,
    shortname = "mca",
    shortname = "mcas",
    category = "aviary",
    status = "ManagedClusterAddOnStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "One add-on on one cluster. It is in the cluster's namespace and has the add-on's name.",
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    ),
    printcolumn(
        name = "Degraded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Degraded\")].status",
        priority = "1"
    ),
    printcolumn(
        name = "Progressing",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].reason",
        description = "The current activity of the instance, or its result"
    ),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion"),
    printcolumn(
        name = "Configured",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Configured\")].status",
        priority = "1"
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
#[schemars(transform = schema::rules(&[(
    "!has(self.desiredVersion) || !has(self.installVersion) || self.desiredVersion == self.installVersion",
    "desiredVersion and installVersion mean the same: set one of them, or both to the same value",
)]))]
pub struct ManagedClusterAddOnSpec {
    /// Namespace on the managed cluster where the agent is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::dns_label, transform = schema::default(DEFAULT_INSTALL_NAMESPACE))]
    pub install_namespace: Option<String>,

    /// Configs of this cluster. They override those of the same group and resource that it would
    /// get otherwise. They take effect at once, outside every rollout.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(32), transform = schema::keyed_by(&["group", "resource"]))]
    pub configs: Vec<AddOnConfig>,

    /// Version of the add-on on this cluster, one of the add-on's supportedVersions. It takes
    /// effect at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(128))]
    pub desired_version: Option<String>,

    /// The older name of desiredVersion.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(128))]
    pub install_version: Option<String>,
}

/// What this cluster runs of the add-on, and what it is assigned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedClusterAddOnStatus {
    /// The instance's state.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,

    /// Types of config that may be overridden in spec.configs.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["group", "resource"]))]
    pub supported_configs: Vec<ConfigGroupResource>,

    /// The configs in effect, and their desired and applied contents.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<ConfigReference>,

    /// Desired version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_version: Option<String>,

    /// Version that runs on the cluster; unknown while it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_version: Option<String>,

    /// Version that was desired before; unknown if it was not valid, absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_version: Option<String>,

    /// Namespace on the managed cluster where the agent is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub namespace: Option<String>,

    /// The add-on's name and description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on_meta: Option<AddOnMeta>,

    /// Deprecated: use configReferences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on_configuration: Option<ConfigCoordinates>,

    /// Objects that belong to this instance, such as its works.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<ObjectReference>,

    /// How the agent registers with the hub. Written by the add-on's own manager.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<RegistrationConfig>,

    /// How the agent's health is determined. Written by the add-on's own manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,

    /// How the agent gets its credentials for the hub's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_client_driver: Option<String>,
}

/// A config in effect, and its desired and applied content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resource"]))]
pub struct ConfigReference {
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
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "String::is_empty")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub name: String,

    /// Hash of the content assigned to the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config_spec_hash: Option<String>,

    /// Hash of the content that the instance last applied completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_config_spec_hash: Option<String>,

    /// Generation of the config that was last seen.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub last_observed_generation: Option<i64>,

    /// The config and content assigned to the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,

    /// The config and content that the instance last applied completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_config: Option<ConfigSpecHash>,
}

/// An object that belongs to an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["group", "resource", "name"]))]
pub struct ObjectReference {
    /// API group of the object; empty for the core group.
    #[serde(deserialize_with = "lenient::or_default")]
    pub group: String,

    /// Resource of the object.
    #[serde(deserialize_with = "lenient::or_default")]
    pub resource: String,

    /// Namespace of the object; absent for a cluster-scoped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// Name of the object.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: String,
}

/// One way in which the agent registers with the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["signerName"]))]
pub struct RegistrationConfig {
    /// Signer of the agent's certificate.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(571))]
    pub signer_name: String,

    /// Subject of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,

    /// How the agent gets its credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// Subject of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Subject {
    /// User name of the agent.
    #[serde(deserialize_with = "lenient::or_default")]
    pub user: String,

    /// Groups of the agent.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,

    /// Organizational units of the agent.
    #[serde(
        rename = "organizationUnit",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub organization_units: Vec<String>,
}

/// How the agent's health is determined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct HealthCheck {
    /// Lease: by a lease that the agent renews. Customized: by the add-on's own manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of_or_first(&["Lease", "Customized"]))]
    pub mode: Option<String>,
}
