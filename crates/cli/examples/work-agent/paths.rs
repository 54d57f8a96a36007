//! JSON paths in the dialect of OCM's agent: `.a.b`, `$.a.b`, a dot in a name after a backslash,
//! `['a\.b']`, `[0]`, and `[?(@.a=="b")]`.

use serde_json::{Value, json};

/// The fields of `WellKnownStatus`.
pub(crate) fn well_known(group: &str, kind: &str) -> Option<&'static [(&'static str, &'static str)]> {
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

/// The value at a path. A field that is absent is nothing.
pub(crate) fn value(object: &Value, path: &str) -> Result<Option<Value>, String> {
    let found = follow(object, path)?;
    Ok(match found {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(json!({"type": "String", "string": text})),
        Some(Value::Bool(is)) => Some(json!({"type": "Boolean", "boolean": is})),
        Some(Value::Number(number)) if number.is_i64() => Some(json!({"type": "Integer", "integer": number})),
        Some(_) => return Err(format!("the type of the value at {path} is not supported")),
    })
}

fn follow<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let refuse = || format!("the path {path} cannot be parsed");
    if path.contains(['{', '}']) {
        return Err(refuse());
    }
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut found = Some(object);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[?(@.") {
            let (filter, after) = after.split_once(")]").ok_or_else(refuse)?;
            let (field, wanted) = filter.split_once("==").ok_or_else(refuse)?;
            let wanted = wanted.trim().trim_matches(['"', '\'']);
            let is_it = |one: &&Value| one.get(field.trim()).and_then(Value::as_str) == Some(wanted);
            found = found.and_then(Value::as_array).and_then(|all| all.iter().find(is_it));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (inner, after) = after.split_once(']').ok_or_else(refuse)?;
            found = match inner.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\'')) {
                Some(name) => names(name).into_iter().fold(found, |found, name| found?.get(name)),
                None => {
                    let index: usize = inner.parse().map_err(|_| refuse())?;
                    found.and_then(|value| value.get(index))
                }
            };
            rest = after;
        } else {
            let after = rest.strip_prefix('.').ok_or_else(refuse)?;
            let ends = |at: usize, c: char| matches!(c, '.' | '[') && !after[..at].ends_with('\\');
            let end = after.char_indices().find(|(at, c)| ends(*at, *c)).map_or(after.len(), |(at, _)| at);
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

/// The names in brackets: a dot without a backslash separates two of them.
fn names(text: &str) -> Vec<String> {
    let marked = text.replace(r"\.", "\u{0}");
    marked.split('.').map(|name| name.replace('\u{0}', ".")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"annotations": {"example.com/a": "x"}},
            "spec": {"paused": false, "share": 0.5},
            "status": {
                "replicas": 3, "phase": "Running", "nothing": null,
                "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "reason": "Slow"}],
            },
        })
    }

    #[test]
    fn the_values_of_these_paths_are_found() {
        let text = |text: &str| Some(json!({"type": "String", "string": text}));
        for (path, found) in [
            (".status.replicas", Some(json!({"type": "Integer", "integer": 3}))),
            ("$.status.phase", text("Running")),
            (".spec.paused", Some(json!({"type": "Boolean", "boolean": false}))),
            (r".metadata.annotations.example\.com/a", text("x")),
            (r".metadata.annotations['example\.com/a']", text("x")),
            (".status.conditions[0].status", text("True")),
            (r#".status.conditions[?(@.type=="Progressing")].reason"#, text("Slow")),
        ] {
            assert_eq!(value(&object(), path), Ok(found), "{path}");
        }
    }

    #[test]
    fn a_path_to_nothing_has_no_value_and_no_error() {
        for path in [
            ".status.missing.field",
            ".status.nothing",
            ".status.conditions[7].status",
            r#".status.conditions[?(@.type=="Progressing")].status"#,
            r#".status.conditions[?(@.type=="Other")].status"#,
            // The dot separates two names.
            ".metadata.annotations['example.com/a']",
        ] {
            assert_eq!(value(&object(), path), Ok(None), "{path}");
        }
    }

    #[test]
    fn what_ocms_agent_cannot_read_is_an_error() {
        for path in [
            "status.replicas",
            "{.status.replicas}",
            r#".metadata.annotations["example.com/a"]"#,
            ".status..replicas",
            ".status.conditions[",
            ".status.conditions[?(@.type)]",
            // A map, a list, a fraction.
            ".status",
            ".status.conditions",
            ".spec.share",
        ] {
            assert!(value(&object(), path).is_err(), "{path}");
        }
    }

    #[test]
    fn every_well_known_path_can_be_read() {
        for (group, kind) in [("apps", "Deployment"), ("apps", "DaemonSet"), ("batch", "Job"), ("", "Pod")] {
            for (name, path) in well_known(group, kind).unwrap() {
                assert_eq!(value(&json!({}), path), Ok(None), "{kind} {name}");
            }
        }
        assert_eq!(well_known("apps", "StatefulSet"), None);
    }
}
