//! Shows what a file changes in an object on a hub, field by field.

pub(crate) use aviary_engine::difference::Field;
use aviary_engine::difference::between;
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

impl Difference {
    /// Returns `None` if nothing would change.
    pub(crate) fn between(document: &Document, old: Option<&Value>, new: &Value) -> Option<Self> {
        let fields = old.map(|old| between(&told(old), &told(new))).unwrap_or_default();
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

/// Returns the part of an object that its author writes: everything except identity and status.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(old: &Value, new: &Value) -> Vec<String> {
        let fields = between(&told(old), &told(new));
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
