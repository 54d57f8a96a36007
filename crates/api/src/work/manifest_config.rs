//! Instructions to the agent for single manifests of a work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{lenient, schema};

/// An object of a work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resource", "name"]))]
pub struct ResourceIdentifier {
    /// API group of the object; empty for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,

    /// Resource of the object.
    #[serde(deserialize_with = "lenient::or_default")]
    pub resource: String,

    /// Name of the object.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: String,

    /// Namespace of the object; empty for a cluster-scoped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Instructions to the agent for one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resourceIdentifier"]))]
pub struct ManifestConfigOption {
    /// The object.
    #[serde(deserialize_with = "lenient::or_default")]
    pub resource_identifier: ResourceIdentifier,

    /// Which fields of the object's status to report.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,

    /// How the object is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,

    /// Conditions that are derived from the object.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub condition_rules: Vec<ConditionRule>,
}

/// Which fields of an object's status to report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["type"]))]
pub struct FeedbackRule {
    /// WellKnownStatus: the usual fields of the kind. JSONPaths: those listed.
    #[serde(rename = "type", deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::one_of(&["WellKnownStatus", "JSONPaths"]))]
    pub type_: String,

    /// Fields to report, for type JSONPaths.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["name"]))]
    pub json_paths: Vec<JsonPath>,
}

/// One field to report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["name", "path"]))]
pub struct JsonPath {
    /// Name to report it under.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: String,

    /// Version of the object's kind that the path is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Where the field is, as a JSON path.
    #[serde(deserialize_with = "lenient::or_default")]
    pub path: String,
}

/// How an object is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// Update: overwrites the object. CreateOnly: does not change an existing object.
    /// ServerSideApply: merges it field by field. ReadOnly: only reads it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of_or_first(&["Update", "CreateOnly", "ServerSideApply", "ReadOnly"]))]
    pub type_: Option<String>,

    /// Settings of type ServerSideApply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyConfig>,
}

/// How an object is merged field by field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ServerSideApplyConfig {
    /// Whether to take over fields of other managers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,

    /// Name of the field manager; it starts with work-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_manager: Option<String>,

    /// Fields that are left to other managers.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["condition"]))]
    pub ignore_fields: Vec<IgnoreField>,
}

/// Fields that are left to other managers, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["condition", "jsonPaths"]))]
pub struct IgnoreField {
    /// OnSpokePresent: when the object exists. OnSpokeChange: when somebody changed them.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::one_of_or_first(&["OnSpokePresent", "OnSpokeChange"]))]
    pub condition: String,

    /// Where the fields are, as JSON paths.
    #[serde(deserialize_with = "lenient::or_default")]
    pub json_paths: Vec<String>,
}

/// A condition that is derived from an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["type"]))]
pub struct ConditionRule {
    /// Type of the condition. Complete stops further writes of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,

    /// WellKnownCompletions: by the usual fields of the kind. CEL: by expressions.
    #[serde(rename = "type", deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::one_of(&["WellKnownCompletions", "CEL"]))]
    pub type_: String,

    /// Expressions over the variable object; all of them must be true.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<CelConditionExpression>,

    /// Message of the condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::MESSAGE))]
    pub message: Option<String>,

    /// Expression that gives the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::MESSAGE))]
    pub message_expression: Option<String>,
}

/// An expression over an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["expression"]))]
pub struct CelConditionExpression {
    /// The expression, in CEL; it must return a boolean.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::max_length(schema::MESSAGE))]
    pub expression: String,
}
