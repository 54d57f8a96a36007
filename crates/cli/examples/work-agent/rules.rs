//! Which entry of `manifestConfigs` is for an object, and conditions in a status.

use aviary_api::ManifestWork;
use aviary_api::work::{ManifestConfigOption, ResourceIdentifier};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::member::Place;

/// The first entry that matches an object and says something.
pub(crate) fn entry<'a>(
    work: &'a ManifestWork,
    place: &Place,
    says: impl Fn(&ManifestConfigOption) -> bool,
) -> Option<&'a ManifestConfigOption> {
    work.spec.manifest_configs.iter().find(|entry| is_for(&entry.resource_identifier, place) && says(entry))
}

pub(crate) fn is_for(identifier: &ResourceIdentifier, place: &Place) -> bool {
    identifier.group.as_deref().unwrap_or_default() == place.group
        && identifier.resource == place.resource
        && matches(&identifier.name, &place.name)
        && matches(identifier.namespace.as_deref().unwrap_or_default(), &place.namespace)
}

/// `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len()).filter_map(|at| text.get(at..)).any(|text| matches(rest, text))
        }),
    }
}

pub(crate) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message})
}

/// Puts a condition in a list. Its time changes only with its status.
pub(crate) fn set(conditions: &mut Vec<Value>, mut new: Value) {
    let old = conditions.iter().position(|one| one["type"] == new["type"]);
    let since = old.and_then(|at| conditions.get(at)).filter(|old| old["status"] == new["status"]);
    let since = since.map(|old| old["lastTransitionTime"].clone()).filter(|since| !since.is_null());
    new["lastTransitionTime"] = since.unwrap_or_else(now);
    match old.and_then(|at| conditions.get_mut(at)) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

pub(crate) fn now() -> Value {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string().into()
}

pub(crate) fn list(value: &Value, pointer: &str) -> Vec<Value> {
    value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
}
