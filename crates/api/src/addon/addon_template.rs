//! AddOnTemplate: an add-on's manifests, so that it does not need its own manager.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::work::ManifestWorkSpec;
use crate::{lenient, schema};

/// What is deployed for one version of an add-on.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnTemplate",
    plural = "addontemplates",
    shortname = "atpl",
    shortname = "atpls",
    category = "aviary",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "The manifests of one version of an add-on, from which the works of every cluster are rendered.",
    printcolumn(name = "Add-on", type_ = "string", json_path = ".spec.addonName"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["addonName", "agentSpec"]))]
pub struct AddOnTemplateSpec {
    /// Name of the add-on that the template belongs to.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::dns_subdomain)]
    pub addon_name: String,

    /// Version that the template deploys. An AddOnHubConfig selects a template by its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(128))]
    pub version: Option<String>,

    /// What is deployed: a work, with {{NAME}} in its strings for variables.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::with_variables())]
    pub agent_spec: ManifestWorkSpec,

    /// How the agent registers with the hub. Its containers get the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::loose_list")]
    pub registration: Option<Value>,
}
