//! Status feedback: the status of single objects, if a work requests it.
//!
//! No object really runs. Its status is what an object of its kind has on a real cluster in that
//! state.

use aviary_api::work::FeedbackRule;
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
    /// The pods of the new version do not become ready; those of the old one keep running.
    Unready,
    /// The same, for longer than the object's own deadline.
    Exceeded,
    /// Its pods were ready and are not any more.
    Down,
}

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
        Ok(found) => {
            values.extend(found.map(|value| json!({"name": name, "fieldValue": field_value(value)})));
        }
        Err(fault) => faults.push(fault),
    };
    let mut unknown = None;
    for rule in rules {
        if rule.type_ == "WellKnownStatus" {
            match well_known(kind) {
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

/// The fields of WellKnownStatus.
fn well_known(kind: &GroupVersionKind) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
        ("apps", "DaemonSet") => &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ],
        ("batch", "Job") => &[
            ("JobComplete", r#".status.conditions[?(@.type=="Complete")].status"#),
            ("JobSucceeded", ".status.succeeded"),
        ],
        ("", "Pod") => {
            &[("PodReady", r#".status.conditions[?(@.type=="Ready")].status"#), ("PodPhase", ".status.phase")]
        }
        _ => return None,
    })
}

/// Fills in what an API server would: the generation, and defaults of fields that are asked for.
fn with_defaults(kind: &GroupVersionKind, object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("generation".into(), json!(1));
    }
    let replicated = matches!(kind.kind.as_str(), "Deployment" | "StatefulSet" | "ReplicaSet");
    if kind.group == "apps"
        && replicated
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.entry("replicas").or_insert_with(|| json!(1));
    }
}

/// The status of an object in this state, with the numbers that real clusters report.
fn status(kind: &GroupVersionKind, object: &Value, state: ObjectState) -> Value {
    use ObjectState::{Down, Exceeded, Healthy, Unready};
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(1);
    let condition =
        |type_: &str, holds: bool| json!({"type": type_, "status": if holds { "True" } else { "False" }});
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => {
            let wanted = number("/spec/replicas");
            let (total, updated, available) = match state {
                Healthy => (wanted, wanted, wanted),
                Unready | Exceeded => (wanted + 1, wanted.min(1), wanted),
                Down => (wanted, wanted, 0),
            };
            let reason = match state {
                Healthy | Down => "NewReplicaSetAvailable",
                Unready => "ReplicaSetUpdated",
                Exceeded => "ProgressDeadlineExceeded",
            };
            let mut progressing = condition("Progressing", state != Exceeded);
            progressing["reason"] = reason.into();
            without_zeros(json!({
                "observedGeneration": 1, "replicas": total, "updatedReplicas": updated,
                "readyReplicas": available, "availableReplicas": available,
                "conditions": [condition("Available", state != Down), progressing],
            }))
        }
        ("apps", "DaemonSet") => {
            let (updated, available) = match state {
                Healthy => (3, 3),
                Unready | Exceeded => (1, 2),
                Down => (3, 0),
            };
            without_zeros(json!({
                "observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
                "updatedNumberScheduled": updated, "numberReady": available, "numberAvailable": available,
            }))
        }
        ("batch", "Job") => match state {
            Healthy => {
                json!({"succeeded": number("/spec/completions"), "conditions": [condition("Complete", true)]})
            }
            Unready => json!({"active": 1}),
            Exceeded | Down => json!({"failed": 1, "conditions": [condition("Failed", true)]}),
        },
        ("", "Pod") => json!({"phase": "Running", "conditions": [condition("Ready", state == Healthy)]}),
        ("", "PersistentVolumeClaim") => json!({"phase": "Bound"}),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            json!({"conditions": [condition("NamesAccepted", true), condition("Established", true)]})
        }
        ("apiregistration.k8s.io", "APIService") => json!({"conditions": [condition("Available", true)]}),
        _ => json!({}),
    }
}

/// Kubernetes leaves counters of 0 out.
fn without_zeros(mut status: Value) -> Value {
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|_, value| *value != 0);
    }
    status
}

fn field_value(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({"type": "String", "string": text}),
        Value::Bool(is) => json!({"type": "Boolean", "boolean": is}),
        Value::Number(number) if number.is_i64() => json!({"type": "Integer", "integer": number}),
        other => json!({"type": "JsonRaw", "jsonRaw": other.to_string()}),
    }
}

/// The value at a path of names, indices in brackets, and `[?(@.field=="value")]`.
fn look_up<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let refuse = || format!("the path {path} cannot be read");
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
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
mod tests {
    use aviary_api::work::JsonPath;

    use super::*;

    fn deployment() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent"}, "spec": {"replicas": 2}})
    }

    fn ask(object: &Value, type_: &str, paths: &[(&str, &str)]) -> Feedback {
        let text = |key: &str| object[key].as_str().unwrap();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let json_paths = paths.iter().map(|(name, path)| JsonPath {
            name: (*name).into(),
            path: (*path).into(),
            version: None,
        });
        let rule = FeedbackRule { type_: type_.into(), json_paths: json_paths.collect() };
        collect(&GroupVersionKind::gvk(group, version, text("kind")), object, &[rule], ObjectState::Healthy)
    }

    #[test]
    fn the_well_known_status_of_a_deployment_is_that_of_a_healthy_one() {
        let value = |name: &str| json!({"name": name, "fieldValue": {"type": "Integer", "integer": 2}});
        let expected = vec![value("ReadyReplicas"), value("Replicas"), value("AvailableReplicas")];
        assert_eq!(ask(&deployment(), "WellKnownStatus", &[]), Feedback::Found(expected));
    }

    #[test]
    fn paths_are_followed_into_lists_and_to_values_of_every_kind() {
        let paths = [
            ("available", r#".status.conditions[?(@.type=="Available")].status"#),
            ("first", ".status.conditions[0].type"),
            ("name", ".metadata.name"),
            ("all", ".metadata"),
            ("absent", ".status.nothing.here"),
        ];
        let string =
            |name: &str, text: &str| json!({"name": name, "fieldValue": {"type": "String", "string": text}});
        let expected = vec![
            string("available", "True"),
            string("first", "Available"),
            string("name", "agent"),
            json!({"name": "all", "fieldValue": {"type": "JsonRaw", "jsonRaw": r#"{"generation":1,"name":"agent"}"#}}),
        ];
        assert_eq!(ask(&deployment(), "JSONPaths", &paths), Feedback::Found(expected));
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
        let Feedback::Incomplete(values, why) = ask(&config, "WellKnownStatus", &[]) else {
            panic!("no fault")
        };
        assert_eq!((values.len(), why.as_str()), (0, "there is no well-known status of v1 ConfigMap"));
        let Feedback::Incomplete(values, why) =
            ask(&deployment(), "JSONPaths", &[("ok", ".kind"), ("odd", "spec")])
        else {
            panic!("no fault")
        };
        assert_eq!((values.len(), why.as_str()), (1, "the path spec cannot be read"));
    }

    #[test]
    fn nothing_asked_is_nothing_told() {
        let kind = GroupVersionKind::gvk("apps", "v1", "Deployment");
        assert_eq!(collect(&kind, &deployment(), &[], ObjectState::Healthy), Feedback::NotAsked);
    }
}
