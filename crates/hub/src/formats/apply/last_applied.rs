//! Migration from client-side to server-side apply: kubectl owns the fields in its last-applied
//! annotation.
//!
//! Owns that annotation. Only the manager named `kubectl` is treated in this way.

use serde_json::Value;

use super::compare::{Comparison, compare};
use super::fields::fields_of;
use super::set::Set;
use super::updater::{Conflicts, Versions};

const KUBECTL: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The conflicts that remain after those about kubectl's own fields are allowed.
pub(crate) fn allowed_by_last_applied(
    versions: &Versions<'_>,
    live: &Value,
    manager: &str,
    conflicts: Conflicts,
) -> Conflicts {
    let Some(allowed) = (manager == KUBECTL).then(|| own_fields(versions, live)).flatten() else {
        return conflicts;
    };
    let left = conflicts.0.into_iter().map(|(manager, fields)| (manager, fields.difference(&allowed)));
    Conflicts(left.filter(|(_, fields)| !fields.is_empty()).collect())
}

/// The fields in the annotation that still have the same value.
fn own_fields(versions: &Versions<'_>, live: &Value) -> Option<Set> {
    let text = annotations(live)?.get(ANNOTATION)?.as_str()?;
    let noted: Value = serde_json::from_str(text).ok()?;
    if noted.get("apiVersion")?.as_str()? != versions.current {
        return None;
    }
    let ty = versions.types.get(versions.current).copied()?;
    let Comparison { removed, modified, added } = compare(ty, &noted, live);
    Some(fields_of(ty, &noted).difference(&modified).difference(&added).difference(&removed))
}

/// Updates the annotation if it exists, so that client-side apply keeps working.
pub(crate) fn renew_last_applied(object: &mut Value, config: &Value, manager: &str) {
    let is_noted = annotations(object)
        .and_then(|annotations| annotations.get(ANNOTATION)?.as_str())
        .is_some_and(|text| !text.is_empty());
    if manager != KUBECTL || !is_noted {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
        if annotations.is_empty()
            && let Some(Value::Object(metadata)) = config.get_mut("metadata")
        {
            metadata.remove("annotations");
        }
    }
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        annotations.insert(ANNOTATION.into(), format!("{config}\n").into());
    }
}

fn annotations(object: &Value) -> Option<&serde_json::Map<String, Value>> {
    object.pointer("/metadata/annotations")?.as_object()
}
