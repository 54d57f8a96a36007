//! Limits the depth of values. Owns the limit and the only walks that work for values of any depth.
//!
//! Everything else in this crate recurses, so [`guard`] must check a value first.

use serde_json::Value;

use crate::cause::{Cause, Path};

/// Levels of objects and arrays an object may nest, itself included.
pub const MAX_DEPTH: usize = 100;

/// Whether a value nests deeper than any object may; never recurses.
pub fn nests_too_deep(value: &Value) -> bool {
    guard(value, MAX_DEPTH, &Path::root()).is_some()
}

/// A cause when `value` nests deeper than `limit`; never recurses.
pub(crate) fn guard(value: &Value, limit: usize, path: &Path<'_>) -> Option<Cause> {
    let mut pending = vec![(value, 1)];
    while let Some((value, depth)) = pending.pop() {
        let is_scalar = !matches!(value, Value::Array(_) | Value::Object(_));
        if is_scalar {
            continue;
        }
        if depth > limit {
            return Some(Cause::forbidden(path, &format!("must not nest deeper than {limit} levels")));
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => pending.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    None
}

/// Drops a value level by level: dropping it whole would recurse once per level.
pub(crate) fn dismantle(value: Value) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(fields) => pending.extend(fields.into_iter().map(|(_, field)| field)),
            _ => {}
        }
    }
}
