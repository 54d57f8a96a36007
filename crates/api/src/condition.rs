//! The condition type of every status.
//!
//! It has the structure of a Kubernetes condition, but a missing or malformed field never makes the
//! object unreadable.

use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{lenient, schema};

/// One aspect of an object's state, as it was last observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["type", "status", "lastTransitionTime", "reason", "message"]))]
pub struct Condition {
    /// What the condition is about, in CamelCase; at most one condition of each type.
    #[serde(rename = "type", deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::qualified_name)]
    pub type_: String,

    /// Whether it holds: True, False or Unknown.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::one_of(&["True", "False", "Unknown"]))]
    pub status: String,

    /// CamelCase reason for the status, for programs.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::reason)]
    pub reason: Option<String>,

    /// Human-readable message.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::MESSAGE))]
    pub message: Option<String>,

    /// When the status last changed, as an RFC 3339 time.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::date_time)]
    pub last_transition_time: Option<String>,

    /// The metadata.generation that the condition was derived from. If it is older than the
    /// object's, the condition is out of date.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::at_least(0))]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Whether the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Whether the status is `False`.
    pub fn is_false(&self) -> bool {
        self.status == "False"
    }

    /// `lastTransitionTime`, if it is a valid time.
    pub fn last_transition(&self) -> Option<Timestamp> {
        self.last_transition_time.as_deref()?.parse().ok()
    }

    /// Finds the condition of a type.
    pub fn find<'a>(conditions: &'a [Self], type_: &str) -> Option<&'a Self> {
        conditions.iter().find(|condition| condition.type_ == type_)
    }
}
