//! The columns of Events. `v1` and `events.k8s.io/v1` have different names for the same fields.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    NAME, age,
    builtin::{BuiltinColumn, either, name, text},
};

const FIELD_PATH: &str = "If referring to a piece of an object instead of an entire object, this string should contain \
    a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object \
    reference is to a container within a pod, this would take on a value like: \"spec.containers{name}\" (where \
    \"name\" refers to the name of the container that triggered the event) or if no container name is specified \
    \"spec.containers[2]\" (container with index 2 in this pod). This syntax is chosen only to have some well-defined \
    way of referencing a part of an object.";

pub(super) const COLUMNS: &[BuiltinColumn] = &[
    (
        "Last Seen",
        "string",
        "",
        0,
        "The time at which the most recent occurrence of this event was recorded.",
        last_seen,
    ),
    (
        "Type",
        "string",
        "",
        0,
        "Type of this event (Normal, Warning), new types could be added in the future",
        |object, _| text(object, "/type").into(),
    ),
    (
        "Reason",
        "string",
        "",
        0,
        "This should be a short, machine understandable string that gives the reason for the transition into the \
         object's current status.",
        |object, _| text(object, "/reason").into(),
    ),
    ("Object", "string", "", 0, "The object that this event is about.", event_object),
    ("Subobject", "string", "", 1, FIELD_PATH, |object, _| {
        either(object, "/involvedObject/fieldPath", "/regarding/fieldPath").into()
    }),
    (
        "Source",
        "string",
        "",
        1,
        "The component reporting this event. Should be a short machine understandable string.",
        event_source,
    ),
    (
        "Message",
        "string",
        "",
        0,
        "A human-readable description of the status of this operation.",
        |object, _| either(object, "/message", "/note").trim().into(),
    ),
    (
        "First Seen",
        "string",
        "",
        1,
        "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)",
        |object, now| first_seen(object, now).into(),
    ),
    ("Count", "string", "", 1, "The number of times this event has occurred.", event_count),
    ("Name", "string", "name", 1, NAME, name),
];

fn first_seen(object: &Value, now: Timestamp) -> String {
    match either(object, "/firstTimestamp", "/deprecatedFirstTimestamp") {
        "" => age::since(text(object, "/eventTime"), now),
        time => age::since(time, now),
    }
}

fn last_seen(object: &Value, now: Timestamp) -> Value {
    if series(object).is_some() {
        return age::since(text(object, "/series/lastObservedTime"), now).into();
    }
    match either(object, "/lastTimestamp", "/deprecatedLastTimestamp") {
        "" => first_seen(object, now).into(),
        time => age::since(time, now).into(),
    }
}

fn series(object: &Value) -> Option<&Value> {
    object.get("series").filter(|series| !series.is_null())
}

fn event_count(object: &Value, _: Timestamp) -> Value {
    if let Some(series) = series(object) {
        return series.get("count").and_then(Value::as_i64).unwrap_or(0).into();
    }
    let count = object.get("count").or_else(|| object.get("deprecatedCount")).and_then(Value::as_i64);
    // The new API leaves it out of a single event.
    count.filter(|count| *count != 0).unwrap_or(1).into()
}

fn event_object(object: &Value, _: Timestamp) -> Value {
    let kind = either(object, "/involvedObject/kind", "/regarding/kind").to_lowercase();
    match either(object, "/involvedObject/name", "/regarding/name") {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn event_source(object: &Value, _: Timestamp) -> Value {
    let reporter = either(object, "/reportingComponent", "/reportingController");
    let or = |found: &'static str, old: &'static str| either(object, found, old);
    let component =
        Some(or("/source/component", "/deprecatedSource/component")).filter(|found| !found.is_empty());
    let host = Some(or("/source/host", "/deprecatedSource/host")).filter(|found| !found.is_empty());
    let component = component.unwrap_or(reporter);
    match host.unwrap_or_else(|| text(object, "/reportingInstance")) {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}
