//! In which fields two values differ, and what a revision changes.

use serde::Serialize;
use serde_json::Value;

use crate::configs::{GroupResource, Pin, Revision, side_by_side};
use crate::observed::Observed;

/// What a revision changes in one kind of config.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PinChange {
    pub kind: String,
    /// The config before, as namespace/name; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The fields that differ, where both contents are known.
    pub fields: Vec<Field>,
}

/// What `after` changes compared with `before`, config by config.
pub fn of_revisions(observed: &Observed, before: &Revision, after: &Revision) -> Vec<PinChange> {
    let name = |pin: &Pin| match &pin.config.namespace {
        Some(namespace) => format!("{namespace}/{}", pin.config.name),
        None => pin.config.name.to_string(),
    };
    let change = |(kind, [old, new]): (&GroupResource, [Option<&Pin>; 2])| {
        if old.map(|pin| &pin.hash) == new.map(|pin| &pin.hash) {
            return None;
        }
        let contents =
            old.and_then(|old| observed.content(old)).zip(new.and_then(|new| observed.content(new)));
        Some(PinChange {
            kind: kind.resource.to_string(),
            from: old.map(name),
            to: new.map(name),
            fields: contents.map(|(old, new)| between(old, new)).unwrap_or_default(),
        })
    };
    side_by_side([Some(before), Some(after)]).into_iter().filter_map(change).collect()
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// The fields in which `new` differs from `old`, in the order of their names.
pub fn between(old: &Value, new: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    compare(&mut fields, "", old, new);
    fields
}

fn compare(fields: &mut Vec<Field>, path: &str, old: &Value, new: &Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                either(fields, path, old.get(key), new.get(key));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                either(fields, format!("{path}[{index}]"), old.get(index), new.get(index));
            }
        }
        _ if old == new => {}
        _ => fields.push(Field { path: path.to_owned(), from: Some(old.clone()), to: Some(new.clone()) }),
    }
}

fn either(fields: &mut Vec<Field>, path: String, old: Option<&Value>, new: Option<&Value>) {
    match (old, new) {
        (Some(old), Some(new)) => compare(fields, &path, old, new),
        (None, None) => {}
        (old, new) => fields.push(Field { path, from: old.cloned(), to: new.cloned() }),
    }
}
