//! In which fields two values differ.

use serde::Serialize;
use serde_json::Value;

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
