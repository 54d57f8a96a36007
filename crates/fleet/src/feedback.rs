//! Status feedback: the status of single objects, if a work requests it.
//!
//! No object really runs. Its status is what an object of its kind has on a real cluster in that
//! state.

use aviary_api::work::FeedbackRule;
use aviary_engine::health::well_known;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

/// The requested fields of an object's status.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Feedback {
    #[default]
    NotAsked,
    /// `statusFeedback.values` as reported.
    Found(Vec<Value>),
    /// Some values could not be read, and why.
    Incomplete(Vec<Value>, String),
}

/// The state of an object on a simulated cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectState {
    Healthy,
    /// Its controller has not seen the change: the status is that of the object before.
    Unobserved,
    /// The pods of the new version do not become ready; those of the old one keep running.
    Unready,
    /// The same, for longer than the object's own deadline.
    Exceeded,
    /// The pods of the new version exit at start, and one of them has replaced a pod of the old
    /// one.
    Looping,
    /// The same, for longer than the object's own deadline.
    LoopingOn,
    /// Its pods were ready and are not any more.
    Down,
}

/// The generation of every object.
const GENERATION: i64 = 2;

/// Evaluates the rules on an object in this state, as an API server would return it.
pub(crate) fn collect(
    kind: &GroupVersionKind,
    manifest: &Value,
    rules: &[FeedbackRule],
    state: ObjectState,
) -> Feedback {
    if rules.is_empty() {
        return Feedback::NotAsked;
    }
    let mut object = manifest.clone();
    with_defaults(kind, &mut object);
    let status = status(kind, &object, state);
    if let Some(object) = object.as_object_mut() {
        object.insert("status".into(), status);
    }
    let mut values = Vec::new();
    let mut faults = Vec::new();
    let mut ask = |name: &str, path: &str| match look_up(&object, path) {
        // A missing field is not reported and is not an error.
        Ok(None) => {}
        Ok(Some(value)) => match field_value(value) {
            Some(value) => values.push(json!({"name": name, "fieldValue": value})),
            None => faults.push(format!("the value at {path} is a list or an object")),
        },
        Err(fault) => faults.push(fault),
    };
    let mut unknown = None;
    for rule in rules {
        if rule.type_ == "WellKnownStatus" {
            match well_known::paths(&kind.group, &kind.kind) {
                Some(paths) => paths.iter().for_each(|(name, path)| ask(name, path)),
                None => {
                    unknown = Some(format!(
                        "there is no well-known status of {} {}",
                        kind.api_version(),
                        kind.kind
                    ));
                }
            }
        }
        for path in &rule.json_paths {
            ask(&path.name, &path.path);
        }
    }
    faults.extend(unknown);
    if faults.is_empty() { Feedback::Found(values) } else { Feedback::Incomplete(values, faults.join("; ")) }
}

/// Fills in what an API server would: the generation, and defaults of fields that are asked for.
fn with_defaults(kind: &GroupVersionKind, object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("generation".into(), json!(GENERATION));
    }
    let replicated = matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") | ("", "ReplicationController")
    );
    if replicated && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("replicas").or_insert_with(|| json!(1));
    }
}

/// The status of an object in this state, with the numbers that real clusters report.
fn status(kind: &GroupVersionKind, object: &Value, state: ObjectState) -> Value {
    use ObjectState::{Down, Exceeded, Healthy, Looping, LoopingOn, Unobserved, Unready};
    let observed = GENERATION - i64::from(state == Unobserved);
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(1);
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "StatefulSet") => {
            let wanted = number("/spec/replicas");
            // Pods are replaced in place, the last one first, and it waits for a broken one.
            let (updated, available) = match state {
                Healthy | Unobserved => (wanted, wanted),
                Unready | Exceeded | Looping | LoopingOn => (wanted.min(1), (wanted - 1).max(0)),
                Down => (wanted, 0),
            };
            without_zeros(json!({
                "observedGeneration": observed, "replicas": wanted, "updatedReplicas": updated,
                "readyReplicas": available, "availableReplicas": available,
            }))
        }
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            let wanted = number("/spec/replicas");
            // A new version replaces no pod.
            let available = if state == Down { 0 } else { wanted };
            without_zeros(json!({
                "observedGeneration": observed, "replicas": wanted, "readyReplicas": available,
                "availableReplicas": available,
            }))
        }
        ("apps", "Deployment") => deployment_status(number("/spec/replicas"), observed, state),
        ("apps", "DaemonSet") => {
            let (updated, available) = match state {
                Healthy | Unobserved => (3, 3),
                Unready | Exceeded | Looping | LoopingOn => (1, 2),
                Down => (3, 0),
            };
            without_zeros(json!({
                "observedGeneration": observed, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
                "updatedNumberScheduled": updated, "numberReady": available, "numberAvailable": available,
            }))
        }
        ("batch", "Job") => match state {
            Healthy | Unobserved => {
                json!({"succeeded": number("/spec/completions"), "conditions": [condition("Complete", true)]})
            }
            Unready | Looping => json!({"active": 1}),
            Exceeded | LoopingOn | Down => json!({"failed": 1, "conditions": [condition("Failed", true)]}),
        },
        ("", "Pod") => {
            json!({"phase": "Running", "conditions": [condition("Ready", matches!(state, Healthy | Unobserved))]})
        }
        ("", "PersistentVolumeClaim") => json!({"phase": "Bound"}),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            json!({"conditions": [condition("NamesAccepted", true), condition("Established", true)]})
        }
        ("apiregistration.k8s.io", "APIService") => json!({"conditions": [condition("Available", true)]}),
        _ => json!({}),
    }
}

fn deployment_status(wanted: i64, observed: i64, state: ObjectState) -> Value {
    use ObjectState::{Down, Exceeded, Healthy, Looping, LoopingOn, Unobserved, Unready};
    let (total, updated, available) = match state {
        Healthy | Unobserved => (wanted, wanted, wanted),
        Unready | Exceeded => (wanted + 1, wanted.min(1), wanted),
        Looping | LoopingOn => (wanted, wanted.min(1), (wanted - 1).max(0)),
        Down => (wanted, wanted, 0),
    };
    let reason = match state {
        Healthy | Unobserved | Down => "NewReplicaSetAvailable",
        Unready | Looping => "ReplicaSetUpdated",
        Exceeded | LoopingOn => "ProgressDeadlineExceeded",
    };
    let mut progressing = condition("Progressing", reason != "ProgressDeadlineExceeded");
    progressing["reason"] = reason.into();
    without_zeros(json!({
        "observedGeneration": observed, "replicas": total, "updatedReplicas": updated,
        "readyReplicas": available, "availableReplicas": available,
        "conditions": [condition("Available", available > 0 || wanted == 0), progressing],
    }))
}

/// When every condition changed last. A version whose pods crash reports that it is unavailable in
/// between, so nobody has to tell it by another time.
const SINCE: &str = "2026-01-01T00:00:00Z";

fn condition(type_: &str, holds: bool) -> Value {
    json!({"type": type_, "status": if holds { "True" } else { "False" }, "lastTransitionTime": SINCE})
}

/// Kubernetes leaves counters of 0 out.
fn without_zeros(mut status: Value) -> Value {
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|_, value| *value != 0);
    }
    status
}

/// Agents report no list and no object, unless they are told to.
fn field_value(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => Some(json!({"type": "String", "string": text})),
        Value::Bool(is) => Some(json!({"type": "Boolean", "boolean": is})),
        Value::Number(number) if number.is_i64() => Some(json!({"type": "Integer", "integer": number})),
        _ => None,
    }
}

/// The value at a path of names, indices in brackets, and `[?(@.field=="value")]`.
fn look_up<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let refuse = || format!("the path {path} cannot be read");
    if path.contains(['{', '}']) {
        return Err(refuse());
    }
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut found = Some(object);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[?(@.") {
            let (filter, after) = after.split_once(")]").ok_or_else(refuse)?;
            let (field, wanted) = filter.split_once("==").ok_or_else(refuse)?;
            let wanted = wanted.trim().trim_matches(|c| c == '"' || c == '\'');
            let is_it = |one: &&Value| one.get(field.trim()).and_then(Value::as_str) == Some(wanted);
            found = found.and_then(Value::as_array).and_then(|all| all.iter().find(is_it));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (index, after) = after.split_once(']').ok_or_else(refuse)?;
            let index: usize = index.parse().map_err(|_| refuse())?;
            found = found.and_then(|value| value.get(index));
            rest = after;
        } else {
            let after = rest.strip_prefix('.').ok_or_else(refuse)?;
            // A dot after a backslash is part of the name.
            let is_end = |at: usize, c: char| matches!(c, '.' | '[') && !after[..at].ends_with('\\');
            let end = after.char_indices().find(|(at, c)| is_end(*at, *c)).map_or(after.len(), |(at, _)| at);
            let (name, after) = after.split_at(end);
            if name.is_empty() {
                return Err(refuse());
            }
            found = found.and_then(|value| value.get(name.replace(r"\.", ".")));
            rest = after;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
