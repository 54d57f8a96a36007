//! The well-known status of OCM's agent: the values that a `WellKnownStatus` rule makes it report,
//! by kind, and how such rules go together with JSON paths.
//!
//! All values of one object are a list with unique names: an API server refuses a report that has a
//! name twice, and with it everything else that the agent reports about the work.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::instruct::ObjectId;

const TYPE: &str = "WellKnownStatus";

/// The names of the values and the paths that they are read from, in OCM's order. `None`: the agent
/// knows nothing of the kind, and says so in the report.
pub fn paths(group: &str, kind: &str) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match (group, kind) {
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

/// The feedback rules of several entries as those of one object, in which no name occurs twice. The
/// first rule with a name keeps it. A well-known status of which a name is taken is written out as
/// the paths of the rest.
pub(super) fn without_repeated_names(rules: Vec<&Value>, id: ObjectId<'_>) -> Vec<Value> {
    let mut names = BTreeSet::new();
    let mut has_well_known = false;
    let mut kept = Vec::new();
    for rule in rules {
        let mut rule = rule.clone();
        let is_well_known = rule.get("type").is_some_and(|type_| type_ == TYPE);
        match rule.get_mut("jsonPaths").and_then(Value::as_array_mut).filter(|_| !is_well_known) {
            Some(paths) => {
                paths.retain(|path| names.insert(path.get("name").map(Value::to_string)));
                if !paths.is_empty() {
                    kept.push(rule);
                }
            }
            None if std::mem::replace(&mut has_well_known, true) => {}
            None => {
                // Agents do not read them in such a rule.
                rule.as_object_mut().map(|rule| rule.remove("jsonPaths"));
                let all = paths(id.group, id.kind).unwrap_or_default();
                let free: Vec<Value> = all
                    .iter()
                    .filter(|(name, _)| names.insert(Some(Value::from(*name).to_string())))
                    .map(|(name, path)| json!({"name": name, "path": path}))
                    .collect();
                if free.len() == all.len() {
                    kept.push(rule);
                } else if !free.is_empty() {
                    kept.push(json!({"type": "JSONPaths", "jsonPaths": free}));
                }
            }
        }
    }
    kept
}
