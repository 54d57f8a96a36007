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
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,

    /// Resource of the object.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    pub resource: String,

    /// Name of the object.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    pub name: String,

    /// Namespace of the object; empty for a cluster-scoped one.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Instructions to the agent for one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resourceIdentifier"]))]
pub struct ManifestConfigOption {
    /// The object.
    #[serde(deserialize_with = "lenient::object_or_default")]
    pub resource_identifier: ResourceIdentifier,

    /// Which fields of the object to report. An agent uses only the rules of the first entry that
    /// matches the object.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,

    /// When the fields are read. Poll: every few seconds. Watch: whenever the object changes.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of_or_first(&["Poll", "Watch"]))]
    pub feedback_scrape_type: Option<String>,

    /// How the object is written.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,

    /// Conditions that are derived from the object, one rule for each.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["condition"]))]
    pub condition_rules: Vec<ConditionRule>,
}

/// Which fields of an object's status to report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["type"]))]
pub struct FeedbackRule {
    /// WellKnownStatus: the usual fields of the kind. JSONPaths: those listed.
    #[serde(rename = "type", deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::one_of(&["WellKnownStatus", "JSONPaths"]))]
    pub type_: String,

    /// Fields to report, for type JSONPaths.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["name"]))]
    pub json_paths: Vec<JsonPath>,
}

/// One field to report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["name", "path"]))]
pub struct JsonPath {
    /// Name to report it under.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    pub name: String,

    /// Version of the object's kind that the path is for.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Where the field is, as a JSON path.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::max_length(schema::MESSAGE))]
    pub path: String,
}

/// How an object is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["type"]))]
pub struct UpdateStrategy {
    /// Update: overwrites the object. CreateOnly: does not change an existing object.
    /// ServerSideApply: merges it field by field. ReadOnly: only reads it.
    #[serde(rename = "type", deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of_or_first(&["Update", "CreateOnly", "ServerSideApply", "ReadOnly"]))]
    pub type_: Option<String>,

    /// Settings of type ServerSideApply.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyConfig>,
}

/// How an object is merged field by field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ServerSideApplyConfig {
    /// Whether to take over fields of other managers.
    #[serde(deserialize_with = "lenient::flag", skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,

    /// Name of the field manager; it starts with work-agent.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::field_manager)]
    pub field_manager: Option<String>,

    /// Fields that are left to other managers.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["condition"]))]
    pub ignore_fields: Vec<IgnoreField>,
}

/// Fields that are left to other managers, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["condition"]))]
pub struct IgnoreField {
    /// OnSpokePresent: when the object exists. OnSpokeChange: when somebody changed them.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::one_of_or_first(&["OnSpokePresent", "OnSpokeChange"]))]
    pub condition: String,

    /// Where the fields are, as jq expressions.
    #[serde(deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::item_length(schema::MESSAGE))]
    pub jq_path_expressions: Vec<String>,

    /// Where the fields are, as JSON paths.
    #[serde(deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::item_length(schema::MESSAGE))]
    pub json_paths: Vec<String>,

    /// Where the fields are, as JSON pointers.
    #[serde(deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::item_length(schema::MESSAGE))]
    pub json_pointers: Vec<String>,
}

/// A condition that is derived from an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(
    transform = schema::required(&["type", "condition"]),
    transform = schema::rules(&[(schema::CEL_NAMES_ITS_CONDITION, "a rule of type CEL must name its condition")]),
)]
pub struct ConditionRule {
    /// Type of the condition. Complete stops further writes of the object, and once all objects
    /// are complete, of the whole work.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::max_length(316))]
    pub condition: String,

    /// WellKnownConditions: by the usual fields of the kind. CEL: by expressions.
    #[serde(rename = "type", deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::one_of(&["WellKnownConditions", "CEL"]))]
    pub type_: String,

    /// Expressions over the variable object, in CEL; all of them must be true.
    #[serde(deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::item_length(schema::MESSAGE))]
    pub cel_expressions: Vec<String>,

    /// Message of the condition.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::MESSAGE))]
    pub message: Option<String>,

    /// Expression that gives the message.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::MESSAGE))]
    pub message_expression: Option<String>,
}
