//! AddOnHubConfig: the version of an add-on, as a config that can be rolled out.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{lenient, schema};

/// The desired version of the add-on.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnHubConfig",
    plural = "addonhubconfigs",
    shortname = "ahc",
    shortname = "ahcs",
    category = "aviary",
    status = "AddOnHubConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "Selects the version of an add-on. A changed version rolls out like any other changed config.",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.desiredVersion"),
    printcolumn(
        name = "Supported",
        type_ = "string",
        json_path = ".status.supportedVersions",
        description = "Available versions",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::asked_for())]
pub struct AddOnHubConfigSpec {
    /// Version of the add-on, one of status.supportedVersions. If omitted, the add-on's default
    /// version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(128))]
    pub desired_version: Option<String>,
}

/// The available versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AddOnHubConfigStatus {
    /// Available versions of the add-ons that reference this config, newest first.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub supported_versions: Vec<String>,
}
