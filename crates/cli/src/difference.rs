//! What a file changes about an object on a hub, field by field.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::documents::Document;

#[derive(Debug, Serialize)]
pub(crate) struct Difference {
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// `Created` or `Changed`.
    pub(crate) change: &'static str,
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Field {
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Value>,
}

impl Difference {
    /// `None` where nothing would change.
    pub(crate) fn between(document: &Document, old: Option<&Value>, new: &Value) -> Option<Self> {
        let mut fields = Vec::new();
        if let Some(old) = old {
            compare(&mut fields, "", &told(old), &told(new));
        }
        let change = if old.is_some() { "Changed" } else { "Created" };
        (old.is_none() || !fields.is_empty()).then(|| Self {
            kind: document.kind().to_owned(),
            namespace: document.namespace().to_owned(),
            name: document.name().to_owned(),
            change,
            fields,
        })
    }
}

/// What of an object is its author's: all but identity and status.
fn told(object: &Value) -> Value {
    let mut told = Map::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                let of_author = ["labels", "annotations"];
                let kept: Map<String, Value> = of_author
                    .iter()
                    .filter_map(|key| Some(((*key).to_owned(), value.get(*key)?.clone())))
                    .collect();
                told.insert(key.clone(), Value::Object(kept));
            }
            _ => {
                told.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(told)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(old: &Value, new: &Value) -> Vec<String> {
        let mut fields = Vec::new();
        compare(&mut fields, "", &told(old), &told(new));
        let shown = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), ToString::to_string);
        fields
            .iter()
            .map(|field| format!("{} {} {}", field.path, shown(&field.from), shown(&field.to)))
            .collect()
    }

    #[test]
    fn only_what_its_author_wrote_is_compared() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {"a": "b"}}, "spec": {"x": [1, 2], "y": true}, "status": {"z": 1}});
        let new = json!({"metadata": {"name": "a", "labels": {"a": "c"}}, "spec": {"x": [1, 3, 4]}});
        assert_eq!(
            fields(&old, &new),
            ["metadata.labels.a \"b\" \"c\"", "spec.x[1] 2 3", "spec.x[2] - 4", "spec.y true -"]
        );
        assert!(fields(&old, &old).is_empty());
    }
}
