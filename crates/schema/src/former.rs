//! Correlates parts of the new object with parts of the old one.
//!
//! Fields are correlated by name, items of a list map by their keys, nothing else. Must not compare
//! values.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::structural::{ListType, Schema};
use crate::unique::{canonical, key_of};

/// The old children of one node.
#[derive(Debug)]
pub(crate) enum Former<'o> {
    /// Created, or not correlatable.
    Unknown,
    Fields(&'o Map<String, Value>),
    Items {
        keys: &'o [String],
        by_key: HashMap<String, &'o Value>,
    },
}

impl<'o> Former<'o> {
    pub(crate) fn of(schema: &'o Schema, old: Option<&'o Value>) -> Self {
        match (old, &schema.list) {
            (Some(Value::Object(fields)), _) if !schema.atomic_map => Self::Fields(fields),
            (Some(Value::Array(items)), ListType::Map(keys)) => {
                let by_key = items.iter().map(|item| (canonical_key(keys, item), item)).collect();
                Self::Items { keys, by_key }
            }
            _ => Self::Unknown,
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&'o Value> {
        match self {
            Self::Fields(fields) => fields.get(name),
            Self::Items { .. } | Self::Unknown => None,
        }
    }

    pub(crate) fn item(&self, item: &Value) -> Option<&'o Value> {
        match self {
            Self::Items { keys, by_key } => by_key.get(&canonical_key(keys, item)).copied(),
            Self::Fields(_) | Self::Unknown => None,
        }
    }
}

fn canonical_key(keys: &[String], item: &Value) -> String {
    canonical(&Value::Object(key_of(keys, item)))
}
