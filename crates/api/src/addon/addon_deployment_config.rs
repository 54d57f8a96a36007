//! AddOnDeploymentConfig: how an add-on's agent is deployed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{lenient, schema};

/// Variables for the templates, and where the pods may run.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnDeploymentConfig",
    plural = "addondeploymentconfigs",
    namespaced,
    shortname = "adc",
    shortname = "adcs",
    category = "aviary",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "Configures how an add-on's agent is deployed: variables for its templates, and where its pods may run.",
    printcolumn(
        name = "Variables",
        type_ = "string",
        json_path = ".spec.customizedVariables[*].name",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::asked_for(), transform = schema::rules(&[(
    "!has(self.nodePlacement) || (!has(self.nodeSelector) && !has(self.tolerations))",
    "set nodeSelector and tolerations either in nodePlacement or next to it, not both",
)]))]
pub struct AddOnDeploymentConfigSpec {
    /// Values for the {{NAME}}s in the add-on's templates.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(1024), transform = schema::keyed_by(&["name"]))]
    pub customized_variables: Vec<CustomizedVariable>,

    /// Where the agent's pods may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_placement: Option<NodePlacement>,

    /// The same as nodePlacement.nodeSelector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// The same as nodePlacement.tolerations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,

    /// Namespace on the managed cluster for everything of the template that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub agent_install_namespace: Option<String>,

    /// Proxy of the agent, with the certificates to trust it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::loose_object")]
    pub proxy_config: Option<Value>,

    /// Registries that replace those of the images. The last that matches counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::loose_list")]
    pub registries: Option<Value>,

    /// Resources of the agent's containers. The last that matches counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::loose_list")]
    pub resource_requirements: Option<Value>,

    /// Replica counts of the agent's workloads. Used only by OCM's own manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::loose_list")]
    pub replica_configs: Option<Value>,
}

/// One variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["name", "value"]))]
pub struct CustomizedVariable {
    /// Name of the variable: letters, digits and underscores, not starting with a digit.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(
        transform = schema::c_identifier,
        transform = schema::rules(&[(
            "self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",
            "a variable's name must consist of letters, digits and underscores, and must not start with a digit",
        )]),
    )]
    pub name: String,

    /// Value of the variable. It is inserted literally, whatever characters it contains.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(4096))]
    pub value: String,
}

/// Where pods may run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodePlacement {
    /// Labels that a node must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// Taints that the pods tolerate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
}
