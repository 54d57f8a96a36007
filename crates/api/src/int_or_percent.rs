//! A number or a percentage, as a user writes it.
//!
//! Stores any value. The engine decides whether it is a usable limit.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An integer, a string such as `25%`, or any other value in a stored object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// An integer that fits 64 bits.
    Int(i64),
    /// A string: `25%`, `5`, or nonsense.
    String(String),
    /// Anything else: a larger integer, a fraction, a boolean, a list …
    Other(Value),
}

impl From<i64> for IntOrString {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::String(text) => text.fmt(f),
            Self::Other(value) => value.fmt(f),
        }
    }
}

impl JsonSchema for IntOrString {
    fn schema_name() -> Cow<'static, str> {
        "IntOrString".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // `crds` adds the `anyOf` that Kubernetes requires.
        json_schema!({ "x-kubernetes-int-or-string": true })
    }
}
