//! Checks whether an applied configuration matches the schema well enough to be merged.
//!
//! Owns this check and its messages, which are those of structured-merge-diff. Admission validates
//! the result.

use std::collections::BTreeSet;

use aviary_schema::structural::{JsonType, ListType};
use serde_json::Value;

use super::element::Element;
use super::types::{Atom, MapField, ValueType};

/// The problems, each with its path.
pub(crate) fn check(ty: ValueType<'_>, config: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    node(ty, config, "", &mut wrong);
    wrong
}

fn node(ty: ValueType<'_>, value: &Value, path: &str, wrong: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    match (ty.atoms(Some(value)).first(), value) {
        (Atom::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                let below = format!("{path}.{name}");
                match ty.field(name) {
                    MapField::Named(ty) | MapField::Other(ty) => node(ty, value, &below, wrong),
                    MapField::Unknown => wrong.push(format!("{below}: field not declared in schema")),
                }
            }
        }
        (Atom::Map, other) => wrong.push(format!("{path}: expected map, got {other}")),
        (Atom::List, Value::Array(items)) => list(ty, items, path, wrong),
        (Atom::List, other) => wrong.push(format!("{path}: expected list, got {other}")),
        (Atom::Scalar, value) => {
            let (fits, expected) = match ty.scalar() {
                Some(JsonType::String) => (value.is_string(), "string"),
                Some(JsonType::Integer | JsonType::Number) => (value.is_number(), "numeric (int or float)"),
                Some(JsonType::Boolean) => (value.is_boolean(), "boolean"),
                _ => (!value.is_object() && !value.is_array(), "any scalar"),
            };
            if !fits {
                wrong.push(format!("{path}: expected {expected}, got {value}"));
            }
        }
    }
}

fn list(ty: ValueType<'_>, items: &[Value], path: &str, wrong: &mut Vec<String>) {
    let list = ty.list();
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        if *list.kind == ListType::Atomic {
            node(list.item, item, &format!("{path}[{index}]"), wrong);
            continue;
        }
        let element: Element = match list.element(item) {
            Ok(element) => element,
            Err(why) => {
                wrong.push(format!("{path}: element {index}: {why}"));
                return;
            }
        };
        node(list.item, item, &format!("{path}{element}"), wrong);
        if !seen.insert(element.clone()) {
            wrong.push(format!("{path}: duplicate entries for key {element}"));
        }
    }
}
