//! Uniqueness of lists of type set and map. Owns `FieldValueDuplicate`; linear in the size of the
//! object.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use crate::cause::{Cause, Path};
use crate::structural::{ListType, Schema};

pub(crate) fn check(schema: &Schema, value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    if !schema.has_unique {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(child) = schema.properties.get(name) {
                    check(child, field, &path.field(name), causes);
                } else if let Some(child) = schema.child(name) {
                    check(child, field, &path.key(name), causes);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list {
                ListType::Atomic => {}
                ListType::Set => duplicates(items.iter().cloned(), path, causes),
                ListType::Map(keys) => list_map(keys, items, path, causes),
            }
            if let Some(child) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check(child, item, &path.index(index), causes);
                }
            }
        }
        _ => {}
    }
}

fn list_map(keys: &[String], items: &[Value], path: &Path<'_>, causes: &mut Vec<Cause>) {
    for (index, item) in items.iter().enumerate() {
        if !item.is_object() && !item.is_null() {
            causes.push(Cause::invalid(
                &path.index(index),
                item,
                "must be an object for an array of list-type map",
            ));
            return;
        }
    }
    duplicates(items.iter().map(|item| json!(key_of(keys, item))), path, causes);
}

/// The identity of an item of a list map: the keys that it has.
pub(crate) fn key_of(keys: &[String], item: &Value) -> Map<String, Value> {
    keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect()
}

/// Reports the second of each group of equal values, once.
fn duplicates(values: impl Iterator<Item = Value>, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(canonical(&value)).or_default();
        *times += 1;
        if *times == 2 {
            causes.push(Cause::duplicate(&path.index(index), &value));
        }
    }
}

/// One text per value, independent of the order of its fields.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, String> =
                fields.iter().map(|(name, field)| (name, canonical(field))).collect();
            format!("{sorted:?}")
        }
        Value::Array(items) => format!("{:?}", items.iter().map(canonical).collect::<Vec<_>>()),
        scalar => scalar.to_string(),
    }
}
