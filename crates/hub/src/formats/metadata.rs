//! The metadata of every object: what it may contain, what a client may set, and what only the hub
//! sets.
//!
//! Must not examine anything else in an object.

use aviary_schema::{Cause, CauseReason};
use serde_json::{Map, Value, json};

use crate::formats::selector::syntax::{label_key, label_value};
use crate::kinds::resource::Naming;

const TEXTS: [&str; 8] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "selfLink",
    "creationTimestamp",
    "deletionTimestamp",
];
const NUMBERS: [&str; 2] = ["generation", "deletionGracePeriodSeconds"];
const TEXT_MAPS: [&str; 2] = ["labels", "annotations"];
const OWNER_TEXTS: [&str; 4] = ["apiVersion", "kind", "name", "uid"];
const OWNER_FLAGS: [&str; 2] = ["controller", "blockOwnerDeletion"];
/// Fields that a client cannot change: they are copied from the existing object.
const FIXED: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];
const MAX_ANNOTATIONS: usize = 256 << 10;

/// Whether plain fields have the right types. [`shape`] reports which do not.
pub(crate) fn fits(metadata: &Map<String, Value>) -> bool {
    let all = |names: &[&str], fits: fn(&Value) -> bool| {
        names.iter().all(|name| metadata.get(*name).is_none_or(|value| value.is_null() || fits(value)))
    };
    all(&TEXTS, Value::is_string) && all(&NUMBERS, Value::is_i64)
}

/// Normalises `metadata`: removes nulls and unknown fields (and returns the latter), and checks
/// types.
pub(crate) fn shape(metadata: &mut Value) -> Result<Vec<String>, String> {
    if metadata.is_null() {
        *metadata = json!({});
    }
    let Value::Object(fields) = metadata else { return Err("metadata must be an object".into()) };
    let mut unknown = Vec::new();
    let mut wrong = None;
    fields.retain(|name, value| {
        if value.is_null() {
            return false;
        }
        match field(name, value, &mut unknown) {
            Ok(keep) => keep,
            Err(why) => {
                wrong.get_or_insert(why);
                true
            }
        }
    });
    wrong.map_or(Ok(unknown), Err)
}

fn field(name: &str, value: &mut Value, unknown: &mut Vec<String>) -> Result<bool, String> {
    let must_be = |what: &str| Err(format!("metadata.{name} must be {what}"));
    match (name, value) {
        (text, value) if TEXTS.contains(&text) => {
            if value.is_string() {
                Ok(text != "selfLink")
            } else {
                must_be("a string")
            }
        }
        (number, value) if NUMBERS.contains(&number) => {
            if value.is_i64() {
                Ok(true)
            } else {
                must_be("an integer")
            }
        }
        (map, Value::Object(entries)) if TEXT_MAPS.contains(&map) => {
            if entries.values().all(Value::is_string) {
                Ok(!entries.is_empty())
            } else {
                must_be("a map of strings")
            }
        }
        (map, _) if TEXT_MAPS.contains(&map) => must_be("a map of strings"),
        ("finalizers", Value::Array(items)) if items.iter().all(Value::is_string) => Ok(!items.is_empty()),
        ("finalizers", _) => must_be("a list of strings"),
        ("ownerReferences", Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                owner(index, item, unknown)?;
            }
            Ok(!items.is_empty())
        }
        ("ownerReferences", _) => must_be("a list"),
        // The writer of an object is not set here: see `write::apply`.
        ("managedFields", Value::Array(_)) => Ok(false),
        ("managedFields", _) => must_be("a list"),
        (name, _) => {
            unknown.push(format!("metadata.{name}"));
            Ok(false)
        }
    }
}

fn owner(index: usize, owner: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
    let Value::Object(fields) = owner else {
        return Err(format!("metadata.ownerReferences[{index}] must be an object"));
    };
    fields.retain(|_, value| !value.is_null());
    for (name, value) in fields.iter() {
        let fits = match name.as_str() {
            text if OWNER_TEXTS.contains(&text) => value.is_string(),
            flag if OWNER_FLAGS.contains(&flag) => value.is_boolean(),
            _ => true,
        };
        if !fits {
            return Err(format!("metadata.ownerReferences[{index}].{name} has the wrong type"));
        }
    }
    fields.retain(|name, _| {
        let known = OWNER_TEXTS.contains(&name.as_str()) || OWNER_FLAGS.contains(&name.as_str());
        if !known {
            unknown.push(format!("metadata.ownerReferences[{index}].{name}"));
        }
        known
    });
    for name in OWNER_TEXTS {
        // As in Go, a missing field is empty, and rejected as such.
        fields.entry(name).or_insert_with(|| json!(""));
    }
    Ok(())
}

/// Initialises the metadata of a new object, and ignores what a client claims instead.
pub(crate) fn begin(metadata: &mut Map<String, Value>, uid: String, now: &str, generation: bool) {
    for name in FIXED {
        metadata.remove(name);
    }
    metadata.insert("uid".into(), uid.into());
    metadata.insert("creationTimestamp".into(), now.into());
    if generation {
        metadata.insert("generation".into(), json!(1));
    }
}

/// Carries over the fields that a client cannot change.
pub(crate) fn carry_over(metadata: &mut Map<String, Value>, old: &Map<String, Value>) {
    for name in FIXED.into_iter().chain(["name", "namespace", "generateName"]) {
        match old.get(name) {
            Some(value) => metadata.insert(name.into(), value.clone()),
            None => metadata.remove(name),
        };
    }
}

/// The problems with the metadata of an object.
pub(crate) fn validate(metadata: &Map<String, Value>, naming: Naming) -> Vec<Cause> {
    let mut causes = Vec::new();
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = text("name");
    if name.is_empty() {
        causes.push(required("metadata.name", "name or generateName is required"));
    } else if let Err(why) = check_name(name, naming) {
        causes.push(invalid("metadata.name", name, why));
    }
    for (key, value) in entries(metadata, "labels") {
        if let Err(why) = label_key(key) {
            causes.push(invalid("metadata.labels", key, &why));
        }
        if let Err(why) = label_value(value) {
            causes.push(invalid("metadata.labels", value, &why));
        }
    }
    let mut size = 0;
    for (key, value) in entries(metadata, "annotations") {
        size += key.len() + value.len();
        if let Err(why) = label_key(&key.to_ascii_lowercase()) {
            causes.push(invalid("metadata.annotations", key, &why));
        }
    }
    if size > MAX_ANNOTATIONS {
        let message = format!("Too long: may not be more than {MAX_ANNOTATIONS} bytes");
        causes.push(Cause { reason: CauseReason::TooLong, message, field: "metadata.annotations".into() });
    }
    for finalizer in texts(metadata, "finalizers") {
        if let Err(why) = label_key(finalizer) {
            causes.push(invalid("metadata.finalizers", finalizer, &why));
        }
    }
    validate_owners(metadata, &mut causes);
    causes
}

fn validate_owners(metadata: &Map<String, Value>, causes: &mut Vec<Cause>) {
    let owners =
        metadata.get("ownerReferences").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut controllers = 0;
    for owner in owners {
        for name in OWNER_TEXTS {
            if owner.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
                let field = format!("metadata.ownerReferences.{name}");
                causes.push(invalid(&field, "", &format!("{name} must not be empty")));
            }
        }
        controllers += usize::from(owner.get("controller") == Some(&json!(true)));
    }
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true";
        causes.push(invalid("metadata.ownerReferences", "", why));
    }
}

/// The strings of a list.
pub(crate) fn texts<'m>(metadata: &'m Map<String, Value>, name: &str) -> impl Iterator<Item = &'m str> {
    metadata.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn entries<'m>(metadata: &'m Map<String, Value>, name: &str) -> impl Iterator<Item = (&'m str, &'m str)> {
    let entries = metadata.get(name).and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// Whether a field with this value counts as absent.
pub(crate) fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

pub(crate) fn invalid(field: &str, value: &str, why: &str) -> Cause {
    let message = format!("Invalid value: {value:?}: {why}");
    Cause { reason: CauseReason::Invalid, message, field: field.into() }
}

pub(crate) fn required(field: &str, why: &str) -> Cause {
    Cause { reason: CauseReason::Required, message: format!("Required value: {why}"), field: field.into() }
}

pub(crate) fn not_supported(field: &str, value: &str, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    let message = format!("Unsupported value: {value:?}: supported values: {}", supported.join(", "));
    Cause { reason: CauseReason::NotSupported, message, field: field.into() }
}

pub(crate) fn forbidden(field: &str, why: &str) -> Cause {
    Cause { reason: CauseReason::Forbidden, message: format!("Forbidden: {why}"), field: field.into() }
}

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

pub(crate) fn check_name(name: &str, naming: Naming) -> Result<(), &'static str> {
    match naming {
        Naming::Label if !is_label(name) => {
            Err(if name.len() > 63 { "must be no more than 63 bytes" } else { LABEL })
        }
        Naming::Subdomain if !is_subdomain(name) => {
            Err(if name.len() > 253 { "must be no more than 253 bytes" } else { SUBDOMAIN })
        }
        Naming::PathSegment if name == "." || name == ".." => Err("may not be '.' or '..'"),
        Naming::PathSegment if name.contains(['/', '%']) => Err("may not contain '/' or '%'"),
        Naming::PathSegment if name.len() > 253 => Err("must be no more than 253 bytes"),
        _ => Ok(()),
    }
}

pub(crate) fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    text.len() <= 63
        && text.bytes().all(inner)
        && edge(text.as_bytes().first())
        && edge(text.as_bytes().last())
}

/// Labels joined by dots. A label in a subdomain may be longer than 63 characters.
pub(crate) fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_go_and_are_named_and_nulls_just_go() {
        let mut metadata = json!({"name": "a", "creationTimestamp": null, "colour": "red", "labels": {},
            "ownerReferences": [{"uid": "u", "size": 1}]});
        let unknown = shape(&mut metadata).unwrap();
        assert_eq!(unknown, ["metadata.colour", "metadata.ownerReferences[0].size"]);
        assert_eq!(
            metadata,
            json!({"name": "a", "ownerReferences": [{"uid": "u", "apiVersion": "", "kind": "", "name": ""}]})
        );
    }

    #[test]
    fn a_wrong_type_is_told_by_its_field() {
        for (metadata, field) in [
            (json!([]), "metadata must"),
            (json!({"name": 3}), "metadata.name"),
            (json!({"labels": {"a": 1}}), "metadata.labels"),
            (json!({"labels": "a=b"}), "metadata.labels"),
            (json!({"generation": "x"}), "metadata.generation"),
            (json!({"finalizers": [1]}), "metadata.finalizers"),
            (json!({"ownerReferences": [{"controller": "yes"}]}), "metadata.ownerReferences[0].controller"),
        ] {
            let why = shape(&mut metadata.clone()).unwrap_err();
            assert!(why.starts_with(field), "{metadata}: {why}");
        }
    }

    #[test]
    fn names_labels_annotations_and_owners_are_checked() {
        let metadata = json!({"name": "A_b", "labels": {"-x": "ok", "fine": "not fine"}, "annotations": {"a/b/c": ""},
            "finalizers": ["x y"], "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": "u"}]});
        let causes = validate(metadata.as_object().unwrap(), Naming::Subdomain);
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        let expected = [
            "metadata.name",
            "metadata.labels",
            "metadata.labels",
            "metadata.annotations",
            "metadata.finalizers",
            "metadata.ownerReferences.name",
        ];
        assert_eq!(fields, expected);
    }
}
