//! Fills in defaults, as an API server does before it validates.
//!
//! Owns what happens to absent and null fields. Must not validate: `validate` reports a forbidden
//! null.

use serde_json::Value;

use crate::structural::{Additional, Schema};

/// Applies the defaults of `schema` to `value`.
///
/// A null in a field that is not nullable counts as absent: it is replaced by the default, or
/// dropped if there is none. Defaults apply inside defaults; they never create a parent without its
/// own default.
pub fn apply(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| {
                let orphan = |child: &Schema| field.is_null() && !child.nullable && child.default.is_none();
                !schema.child(name).is_some_and(orphan)
            });
            for (name, child) in &schema.properties {
                let Some(default) = &child.default else { continue };
                let absent = fields.get(name).is_none_or(|field| field.is_null() && !child.nullable);
                if absent {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, field) in fields.iter_mut() {
                let declared = schema.properties.get(name);
                match (declared, &schema.additional) {
                    (Some(child), _) => apply(child, field),
                    (None, Some(Additional::Schema(child))) => fill(child, field),
                    (None, _) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = schema.items.as_deref() else { return };
            items.iter_mut().for_each(|item| fill(child, item));
        }
        _ => {}
    }
}

/// An entry of a list or a map: its key exists, so only a null can be replaced by the default.
fn fill(schema: &Schema, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
    apply(schema, value);
}
