//! Special rules of some built-in kinds for writes.
//!
//! Owns these few rules; everything else treats all kinds alike.

use aviary_schema::{Cause, CauseReason};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use crate::formats::metadata::{forbidden, invalid, required};
use crate::kinds::builtin::{CONFIG_MAPS, CONTROLLER_REVISIONS, CRDS, EVENTS, NAMESPACES, SECRETS};
use crate::kinds::crd;
use crate::kinds::resource::{Form, KindTable, Resource};

/// Completes and validates an object of a built-in kind. `old` is the state that it replaces.
pub(crate) fn complete(
    resource: &Resource,
    object: &mut Value,
    old: Option<&Value>,
    table: &KindTable,
    now: &str,
) -> Result<(), Vec<Cause>> {
    match &*resource.id {
        NAMESPACES => {
            namespace(object, old);
            Ok(())
        }
        SECRETS => secret(object, old),
        CONFIG_MAPS => config_map(object, old),
        EVENTS => event(resource, object),
        CONTROLLER_REVISIONS => controller_revision(object, old),
        CRDS => crd::admit(object, old, table, now),
        _ => Ok(()),
    }
}

fn namespace(object: &mut Value, old: Option<&Value>) {
    let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Value::Object(labels) = labels {
            labels.insert("kubernetes.io/metadata.name".into(), name);
        }
    }
    match old {
        None => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        // Only `finalize` changes the finalizers in a namespace's spec.
        Some(old) => object["spec"] = old.get("spec").cloned().unwrap_or_else(|| json!({})),
    }
}

fn secret(object: &mut Value, old: Option<&Value>) -> Result<(), Vec<Cause>> {
    let Value::Object(fields) = object else { return Ok(()) };
    if let Some(Value::Object(texts)) = fields.remove("stringData") {
        let data = fields.entry("data").or_insert_with(|| json!({}));
        if let Value::Object(data) = data {
            let encoded = texts
                .into_iter()
                .filter_map(|(key, value)| Some((key, BASE64_STANDARD.encode(value.as_str()?).into())));
            data.extend(encoded);
        }
    }
    drop_empty(fields, &["data"]);
    if fields.get("type").and_then(Value::as_str).unwrap_or_default().is_empty() {
        fields.insert("type".into(), json!("Opaque"));
    }
    let mut causes = check_keys(fields, &["data"]);
    if fields.get("type") == Some(&json!("kubernetes.io/tls")) {
        for key in ["tls.crt", "tls.key"] {
            if fields.get("data").and_then(|data| data.get(key)).is_none() {
                causes.push(required(&format!("data[{key}]"), ""));
            }
        }
    }
    if let Some(old) = old {
        if old.get("type") != fields.get("type") {
            causes.push(invalid(
                "type",
                fields.get("type").and_then(Value::as_str).unwrap_or_default(),
                "field is immutable",
            ));
        }
        causes.extend(check_immutable(fields, old, &["data"]));
    }
    if causes.is_empty() { Ok(()) } else { Err(causes) }
}

fn config_map(object: &mut Value, old: Option<&Value>) -> Result<(), Vec<Cause>> {
    let Value::Object(fields) = object else { return Ok(()) };
    drop_empty(fields, &["data", "binaryData"]);
    let mut causes = check_keys(fields, &["data", "binaryData"]);
    let keys = |map: &str| fields.get(map).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    for key in keys("data").filter(|key| keys("binaryData").any(|other| other == *key)) {
        causes.push(invalid(&format!("data[{key}]"), key, "duplicate of key present in binaryData"));
    }
    if let Some(old) = old {
        causes.extend(check_immutable(fields, old, &["data", "binaryData"]));
    }
    if causes.is_empty() { Ok(()) } else { Err(causes) }
}

/// As in Go's encoding, an empty map is omitted.
fn drop_empty(fields: &mut Map<String, Value>, maps: &[&str]) {
    for map in maps {
        if fields.get(*map).and_then(Value::as_object).is_some_and(Map::is_empty) {
            fields.remove(*map);
        }
    }
}

/// Events of the core group must be about an object in their namespace; those of `events.k8s.io`
/// need more fields.
fn event(resource: &Resource, object: &Value) -> Result<(), Vec<Cause>> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mut causes = Vec::new();
    if resource.traits.form == Form::EventsGroup {
        for name in ["eventTime", "reportingController", "reportingInstance", "action", "reason"] {
            if text(&format!("/{name}")).is_empty() {
                causes.push(required(name, ""));
            }
        }
        if !matches!(text("/type"), "Normal" | "Warning") {
            causes.push(invalid("type", text("/type"), "has invalid value: must be Normal or Warning"));
        }
    }
    let about = if resource.traits.form == Form::EventsGroup { "regarding" } else { "involvedObject" };
    let of_cluster = |namespace: &str| {
        namespace.is_empty() && matches!(text("/metadata/namespace"), "default" | "kube-system")
    };
    let namespace = text(&format!("/{about}/namespace"));
    if namespace != text("/metadata/namespace") && !of_cluster(namespace) {
        causes.push(invalid(&format!("{about}.namespace"), namespace, "does not match event.namespace"));
    }
    if causes.is_empty() { Ok(()) } else { Err(causes) }
}

fn controller_revision(object: &Value, old: Option<&Value>) -> Result<(), Vec<Cause>> {
    match old {
        Some(old) if old.get("data") != object.get("data") => {
            Err(vec![invalid("data", "", "field is immutable")])
        }
        _ => Ok(()),
    }
}

/// The maximum total size of an object's data.
const LARGEST_DATA: usize = 1 << 20;

fn check_size(fields: &Map<String, Value>, maps: &[&str], causes: &mut Vec<Cause>) {
    let entries = maps.iter().filter_map(|map| fields.get(*map)?.as_object()).flatten();
    let size: usize = entries.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > LARGEST_DATA {
        let message = format!("Too long: may not be more than {LARGEST_DATA} bytes");
        causes.push(Cause { reason: CauseReason::TooLong, message, field: "[]".into() });
    }
}

fn check_keys(fields: &Map<String, Value>, maps: &[&str]) -> Vec<Cause> {
    let mut causes = Vec::new();
    for map in maps {
        for key in fields.get(*map).and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            let sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            if key.is_empty()
                || key.len() > 253
                || key == "."
                || key.starts_with("..")
                || !key.bytes().all(sound)
            {
                let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                causes.push(invalid(&format!("{map}[{key}]"), key, why));
            }
        }
    }
    check_size(fields, maps, &mut causes);
    causes
}

fn check_immutable(fields: &Map<String, Value>, old: &Value, maps: &[&str]) -> Vec<Cause> {
    if old.get("immutable") != Some(&json!(true)) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let mut causes = Vec::new();
    if fields.get("immutable") != Some(&json!(true)) {
        causes.push(forbidden("immutable", why));
    }
    for map in maps {
        if fields.get(*map) != old.get(*map) {
            causes.push(forbidden(map, why));
        }
    }
    causes
}
