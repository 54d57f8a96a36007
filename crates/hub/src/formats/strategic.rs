//! Strategic merge patches of built-in kinds, as `k8s.io/apimachinery/pkg/util/strategicpatch`
//! applies them.
//!
//! Owns the directives (`$patch`, `$retainKeys`, `$setElementOrder/…`,
//! `$deleteFromPrimitiveList/…`) and the table of merge keys. Must not patch custom resources,
//! which have no merge keys, nor validate the result.

mod list;
mod rules;

use std::{collections::BTreeSet, iter};

use serde_json::Value;

use super::json::JsonObject;
use rules::{FieldRule, PatchStrategy};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// As deep as JSON may be nested when it is read from text.
const MAX_DEPTH: usize = 128;

/// Why a patch was refused: a 400, except for [`StrategicError::UnsupportedKind`], which is a 415.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StrategicError {
    #[error("strategic merge patch is not supported for kind {0}")]
    UnsupportedKind(String),
    #[error("expected an object, but received {0}")]
    NotAnObject(&'static str),
    #[error("expected a list, but received {0}")]
    NotAList(&'static str),
    #[error("the patch is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("unknown patch type: {directive} in map: {object}")]
    UnknownDirective { directive: String, object: String },
    #[error("map: {object} does not contain declared merge key: {key}")]
    NoMergeKey { object: String, key: String },
    #[error("lists of lists are not supported")]
    ListOfLists,
    #[error("list element types are not identical")]
    MixedList,
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirectiveInList,
    #[error("cannot merge lists without merge key for {0}")]
    ListWithoutKey(String),
    #[error("invalid patch format of primitive list")]
    PrimitiveList,
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrder,
    #[error("the order in the patch list {patch} doesn't match the $setElementOrder list {order}")]
    Order { patch: String, order: String },
}

/// Applies a patch to an object of that kind.
pub(crate) fn apply(kind: &str, original: &Value, patch: &Value) -> Result<Value, StrategicError> {
    let Some(fields) = rules::of(kind) else {
        return Err(StrategicError::UnsupportedKind(kind.to_owned()));
    };
    apply_with(fields, original, patch)
}

fn apply_with(fields: &[FieldRule], original: &Value, patch: &Value) -> Result<Value, StrategicError> {
    let original = original.as_object().ok_or_else(|| StrategicError::NotAnObject(type_of(original)))?;
    let patch_object = patch.as_object().ok_or_else(|| StrategicError::NotAnObject(type_of(patch)))?;
    check_depth(patch)?;
    merge(original.clone(), patch_object.clone(), fields).map(Value::Object)
}

/// Values within this depth cannot overflow the stack.
fn check_depth(patch: &Value) -> Result<(), StrategicError> {
    let mut pending = vec![(patch, 0)];
    while let Some((value, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            return Err(StrategicError::TooDeep);
        }
        match value {
            Value::Object(fields) => pending.extend(fields.values().map(|value| (value, depth + 1))),
            Value::Array(items) => pending.extend(items.iter().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

fn merge(
    mut original: JsonObject,
    mut patch: JsonObject,
    fields: &[FieldRule],
) -> Result<JsonObject, StrategicError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.retain(|key, value| key != PATCH && !value.is_null());
                discard_nulls(patch.values_mut());
                Ok(patch)
            }
            Some("delete") => Ok(JsonObject::new()),
            _ => Err(unknown_directive(&patch.into())),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered(&mut original, &mut patch, fields)?;
    // Go visits the fields in a random order; here deletions from a list come before additions to
    // it.
    for (key, value) in patch {
        if key.starts_with(DELETE_FROM_LIST) {
            let name = directive_field(&key, DELETE_FROM_LIST).ok_or(StrategicError::PrimitiveList)?;
            delete_from_list(&mut original, name, &value)?;
        } else if value.is_null() {
            original.remove(&key);
        } else {
            merge_field(&mut original, key, value, fields)?;
        }
    }
    Ok(original)
}

fn merge_field(
    original: &mut JsonObject,
    key: String,
    value: Value,
    fields: &[FieldRule],
) -> Result<(), StrategicError> {
    let (strategy, inner) = rules::field(fields, &key);
    let merged = match (original.remove(&key), value) {
        (Some(Value::Object(old)), Value::Object(new)) if strategy != PatchStrategy::Replace => {
            Some(merge(old, new, inner)?.into())
        }
        (Some(Value::Array(old)), Value::Array(new)) => match strategy {
            PatchStrategy::Set | PatchStrategy::ByKey(_) => {
                Some(list::merge(old, new, strategy, inner, &key)?.into())
            }
            PatchStrategy::Merge | PatchStrategy::Replace => Some(replacement(new.into())),
        },
        (Some(Value::Object(_)), new @ Value::Object(_)) => Some(replacement(new)),
        (_, new) => addition(new),
    };
    if let Some(merged) = merged {
        original.insert(key, merged);
    }
    Ok(())
}

/// `$retainKeys` clears every field that it does not list, and must list every field that the patch
/// sets.
fn retain_keys(original: &mut JsonObject, patch: &mut JsonObject) -> Result<(), StrategicError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let retained = retained.as_array().ok_or(StrategicError::RetainKeys)?;
    let retained: BTreeSet<_> = retained.iter().filter_map(Value::as_str).collect();
    let sets = |key: &str| !key.starts_with(DELETE_FROM_LIST) && !key.starts_with(SET_ELEMENT_ORDER);
    for (key, value) in patch.iter() {
        if !value.is_null() && sets(key) && !retained.contains(key.as_str()) {
            return Err(StrategicError::RetainKeys);
        }
    }
    original.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

/// Merges the lists that come with a `$setElementOrder`, and takes them out of the patch.
fn merge_ordered(
    original: &mut JsonObject,
    patch: &mut JsonObject,
    fields: &[FieldRule],
) -> Result<(), StrategicError> {
    let directives: Vec<_> = patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let name = directive_field(&directive, SET_ELEMENT_ORDER).ok_or(StrategicError::SetElementOrder)?;
        let order = as_list(patch.remove(&directive).unwrap_or_default())?;
        let old = original.get(name).cloned().map(as_list).transpose()?;
        let new = patch.remove(name).map(as_list).transpose()?;
        let (strategy, inner) = rules::field(fields, name);
        if let Some(new) = &new {
            list::check_order(new, &order, strategy)?;
        }
        let (merged, server) = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => (old.clone(), old),
            (None, Some(new)) => (as_list(addition(new.into()).unwrap_or_default())?, Vec::new()),
            (Some(old), Some(new)) => match strategy {
                PatchStrategy::Set | PatchStrategy::ByKey(_) => {
                    let merged = list::merge(old.clone(), new.clone(), strategy, inner, name)?;
                    let server = list::server_order(old, &new, &merged, strategy)?;
                    (merged, server)
                }
                PatchStrategy::Merge | PatchStrategy::Replace => (as_list(replacement(new.into()))?, old),
            },
        };
        let ordered = list::order(merged, &order, &server, strategy)?;
        original.insert(name.to_owned(), ordered.into());
    }
    Ok(())
}

fn delete_from_list(original: &mut JsonObject, name: &str, value: &Value) -> Result<(), StrategicError> {
    match (original.get_mut(name), value) {
        (Some(Value::Array(items)), Value::Array(unwanted)) => list::delete(items, unwanted),
        (Some(_), Value::Null) => {
            original.remove(name);
            Ok(())
        }
        // Nothing to delete from.
        _ => Ok(()),
    }
}

/// The field that a directive such as `$setElementOrder/finalizers` is about.
fn directive_field<'k>(key: &'k str, prefix: &str) -> Option<&'k str> {
    key.strip_prefix(prefix)?.strip_prefix('/').filter(|name| !name.is_empty())
}

fn as_list(value: Value) -> Result<Vec<Value>, StrategicError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(StrategicError::NotAList(type_of(&other))),
    }
}

/// A value of the patch that replaces an old one. Nulls in it have no effect.
fn replacement(mut value: Value) -> Value {
    discard_nulls(iter::once(&mut value));
    value
}

/// A value of the patch that has no existing value to merge with.
fn addition(value: Value) -> Option<Value> {
    without_directives(replacement(value))
}

fn discard_nulls<'v>(values: impl Iterator<Item = &'v mut Value>) {
    for value in values {
        match value {
            Value::Object(fields) => {
                fields.retain(|_, value| !value.is_null());
                discard_nulls(fields.values_mut());
            }
            Value::Array(items) => discard_nulls(items.iter_mut()),
            _ => {}
        }
    }
}

/// Drops objects with a `$patch`, as Go does, and the other directives, which typed decoding drops
/// in Go.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, _)| !is_directive(key));
            Some(kept.filter_map(|(key, value)| Some((key, without_directives(value)?))).collect())
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

fn is_directive(key: &str) -> bool {
    key == RETAIN_KEYS || key.starts_with(SET_ELEMENT_ORDER) || key.starts_with(DELETE_FROM_LIST)
}

fn unknown_directive(object: &Value) -> StrategicError {
    let directive = object.get(PATCH).unwrap_or(&Value::Null);
    let directive = directive.as_str().map_or_else(|| directive.to_string(), str::to_owned);
    StrategicError::UnknownDirective { directive, object: object.to_string() }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
