//! Drops unknown fields, and reports them.
//!
//! Owns pruning only: `default` handles nulls and defaults, and nothing here validates.

use serde_json::Value;

use crate::cause::Path;
use crate::structural::{Additional, Schema};

/// The fields every resource has, whatever its schema says.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops the unknown fields of a resource and returns their paths, in the order of the object.
///
/// `apiVersion`, `kind` and `metadata` stay, at the root and in embedded resources.
pub fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    let walk = Inherited { is_resource: true, keep_unknown: false };
    node(schema, walk, object, &Path::root(), &mut dropped);
    dropped
}

/// Like [`prune`], for a value that is not a whole resource.
pub(crate) fn prune_below(schema: &Schema, value: &mut Value, path: &Path<'_>) -> Vec<String> {
    let mut dropped = Vec::new();
    node(schema, Inherited::default(), value, path, &mut dropped);
    dropped
}

/// What a node inherits in addition to its schema.
#[derive(Clone, Copy, Default)]
struct Inherited {
    is_resource: bool,
    /// A list that preserves unknown fields preserves those of its items.
    keep_unknown: bool,
}

fn node(schema: &Schema, walk: Inherited, value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    let is_resource = walk.is_resource || schema.embedded_resource;
    let keep_unknown = walk.keep_unknown || schema.preserve_unknown;
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            if is_resource && META_FIELDS.contains(&name.as_str()) {
                return true;
            }
            let below = path.field(name);
            if let Some(child) = schema.child(name) {
                node(child, Inherited::default(), field, &below, dropped);
                return true;
            }
            if keep_unknown {
                return true;
            }
            if matches!(schema.additional, Some(Additional::Any)) {
                forget(field, &below, dropped);
                return true;
            }
            dropped.push(below.to_string());
            false
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let below = path.index(index);
                match schema.items.as_deref() {
                    Some(child) => {
                        node(child, Inherited { is_resource: false, keep_unknown }, item, &below, dropped);
                    }
                    None if keep_unknown => {}
                    None => forget(item, &below, dropped),
                }
            }
        }
        _ => {}
    }
}

/// No schema below: objects lose their fields. Arrays may nest to any depth here, hence no
/// recursion.
fn forget(value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    let mut pending = vec![(value, path.in_body())];
    while let Some((value, at)) = pending.pop() {
        match value {
            Value::Object(fields) => {
                dropped.extend(fields.keys().map(|name| format!("{at}.{name}")));
                fields.clear();
            }
            Value::Array(items) => {
                let below = items.iter_mut().enumerate().rev();
                pending.extend(below.map(|(index, item)| (item, format!("{at}[{index}]"))));
            }
            _ => {}
        }
    }
}
