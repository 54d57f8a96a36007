//! How add-ons and instances reference the objects that configure them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{lenient, schema};

/// A type of config.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resource"]))]
pub struct ConfigGroupResource {
    /// API group of the config; empty for the core group.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub group: String,

    /// Resource of the config: the plural, in lower case, such as addonhubconfigs.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub resource: String,
}

/// A config object, without its type.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["name"]), transform = schema::rules(schema::NOT_RESERVED))]
pub struct ConfigReferent {
    /// Namespace of the config; leave it out for a cluster-scoped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub namespace: Option<String>,

    /// Name of the config.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub name: String,
}

/// A reference to one config.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(
    transform = schema::required(&["resource", "name"]),
    transform = schema::rules(schema::NOT_RESERVED),
)]
pub struct AddOnConfig {
    /// API group of the config; empty for the core group.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub group: String,

    /// Resource of the config: the plural, in lower case, such as addonhubconfigs.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub resource: String,

    /// Namespace of the config; leave it out for a cluster-scoped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub namespace: Option<String>,

    /// Name of the config.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub name: String,
}

/// A config, and the hash of its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ConfigSpecHash {
    /// Namespace of the config; absent for a cluster-scoped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub namespace: Option<String>,

    /// Name of the config.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub name: String,

    /// SHA-256 of the config's content, in lower-case hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_hash: Option<String>,
}

/// A type of config that an add-on supports, with its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resource"]))]
pub struct ConfigMeta {
    /// API group of the config; empty for the core group.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub group: String,

    /// Resource of the config: the plural, in lower case, such as addondeploymentconfigs.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::non_empty_name)]
    pub resource: String,

    /// The default config of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_config: Option<ConfigReferent>,
}

/// The older way to configure an add-on. Accepted and ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ConfigCoordinates {
    /// Name of the CRD of the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub crd_name: Option<String>,

    /// Name of the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::NAME))]
    pub cr_name: Option<String>,

    /// Generation of the config that was last seen.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub last_observed_generation: Option<i64>,
}

/// Display name and description of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AddOnMeta {
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,

    /// What the add-on does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::MESSAGE))]
    pub description: Option<String>,
}
