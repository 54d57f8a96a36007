//! The metadata of objects inside other objects (`x-kubernetes-embedded-resource`).
//!
//! Must accept and refuse what kube-apiserver does: a name may be missing or any segment of a path,
//! a namespace must be one that could exist.

use aviary_schema::{Cause, Schema};
use serde_json::{Map, Value};

use crate::formats::metadata::{self, check_name, invalid};
use crate::kinds::resource::Naming;

/// The problems with the metadata of all objects inside this one.
pub(crate) fn validate(schema: &Schema, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    walk(schema, object, "", &mut causes);
    causes
}

/// The depth of objects is bounded when they are parsed.
fn walk(schema: &Schema, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if !schema.has_resources {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                resource(fields, path, causes);
            }
            for (name, value) in fields {
                if let Some(child) = schema.child(name) {
                    walk(child, value, &format!("{path}{name}."), causes);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = schema.items.as_deref() else { return };
            let path = path.strip_suffix('.').unwrap_or(path);
            for (index, item) in items.iter().enumerate() {
                walk(child, item, &format!("{path}[{index}]."), causes);
            }
        }
        _ => {}
    }
}

/// Checks one object. `path` ends with a dot.
fn resource(fields: &Map<String, Value>, path: &str, causes: &mut Vec<Cause>) {
    let Some(Value::Object(found)) = fields.get("metadata") else { return };
    let mut named = found.clone();
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("name").is_empty() {
        named.insert("name".into(), "any".into());
    }
    let mut problems = metadata::validate(&named, Naming::PathSegment);
    let namespace = text("namespace");
    if !namespace.is_empty()
        && let Err(why) = check_name(namespace, Naming::Label)
    {
        problems.push(invalid("metadata.namespace", namespace, why));
    }
    causes
        .extend(problems.into_iter().map(|cause| Cause { field: format!("{path}{}", cause.field), ..cause }));
}
