//! The checks that an API server makes before it stores an object: identity, scope, names, schema
//! and rules.

use std::collections::HashMap;

use aviary_schema::{Cause, CauseReason, UnknownFields};
use serde_json::Value;

use crate::documents::Document;
use crate::findings::Finding;
use crate::kinds::{Kind, Kinds};

/// The documents as they would be stored, and everything that is wrong with them.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) documents: Vec<Document>,
    pub(crate) findings: Vec<Finding>,
}

impl Checked {
    pub(crate) fn errors(&self) -> Vec<Finding> {
        self.findings.iter().filter(|finding| finding.is_error()).cloned().collect()
    }
}

/// Checks every document. An invalid document is kept unchanged, so that later checks can still
/// examine it.
pub(crate) fn check(documents: Vec<Document>, kinds: &Kinds) -> anyhow::Result<Checked> {
    let mut checked = Checked::default();
    let mut known: HashMap<[String; 4], String> = HashMap::new();
    for document in documents {
        let before = checked.findings.len();
        identity(&document, kinds, &mut checked.findings);
        if checked.findings.len() > before {
            continue;
        }
        let key =
            [document.group(), document.kind(), document.namespace(), document.name()].map(str::to_owned);
        if let Some(first) = known.get(&key) {
            let message = format!("the same object is in {first}: give it once");
            checked.findings.push(Finding::of(&document, "", "Duplicate", message));
            continue;
        }
        known.insert(key, document.said());
        let stored = match kinds.of(&document) {
            Some(kind) => admit(kind, &document, &mut checked.findings)?,
            None => None,
        };
        checked.documents.push(match stored {
            Some(value) => Document { value, ..document },
            None => document,
        });
    }
    Ok(checked)
}

/// Checks what every object needs before anything else can be checked.
fn identity(document: &Document, kinds: &Kinds, findings: &mut Vec<Finding>) {
    let mut find =
        |field: &str, message: String| findings.push(Finding::of(document, field, "Invalid", message));
    if !document.value.is_object() {
        let what = if document.value.is_array() {
            "a list: write the objects as separate documents, or as a List"
        } else {
            "a value"
        };
        return find("", format!("is not a Kubernetes object but {what}"));
    }
    for (field, given) in [("apiVersion", document.api_version()), ("kind", document.kind())] {
        if given.is_empty() {
            return find(field, "is missing: every object needs an apiVersion and a kind".to_owned());
        }
    }
    let kind = kinds.of(document);
    if kind.is_none() {
        unserved(document, kinds, &mut find);
    }
    metadata(document, kind, &mut find);
}

/// Reports a kind or version that is almost, but not exactly, one of ours.
fn unserved(document: &Document, kinds: &Kinds, find: &mut impl FnMut(&str, String)) {
    let served: Vec<String> =
        kinds.named(document.kind()).map(|kind| format!("{}/{}", kind.group, kind.version)).collect();
    if !served.is_empty() {
        let given = document.api_version();
        return find(
            "apiVersion",
            format!("{given:?} does not serve {}: use {}", document.kind(), served.join(" or ")),
        );
    }
    if kinds.has_group(document.group()) {
        find("kind", format!("{:?} is not a kind of {}", document.kind(), document.group()));
    }
}

fn metadata(document: &Document, kind: Option<&Kind>, find: &mut impl FnMut(&str, String)) {
    let name = document.name();
    match document.value.pointer("/metadata/name") {
        Some(given) if !given.is_string() && !given.is_null() => {
            return find("metadata.name", format!("{given} is not a string: put it in quotes"));
        }
        _ => {}
    }
    if name.is_empty() {
        find("metadata.name", "is missing".to_owned());
    } else if kind.is_some() && !is_subdomain(name) {
        let rule = "may only have lower-case letters, digits, '-' and '.', at most 253, and must start and end with a letter or digit";
        find("metadata.name", format!("{name:?} {rule}"));
    }
    match kind {
        Some(kind) if kind.namespaced && document.namespace().is_empty() => {
            let which = if kind.kind == "ManagedClusterAddOn" { ": use the name of the cluster" } else { "" };
            find("metadata.namespace", format!("is missing{which}"));
        }
        Some(kind) if !kind.namespaced && !document.namespace().is_empty() => {
            find(
                "metadata.namespace",
                format!("{} is cluster-scoped and has no namespace: leave it out", kind.kind),
            );
        }
        _ => {}
    }
    for field in ["labels", "annotations"] {
        let Some(given) =
            document.value.pointer(&format!("/metadata/{field}")).filter(|given| !given.is_null())
        else {
            continue;
        };
        match given {
            Value::Object(entries) => {
                for (key, value) in entries.iter().filter(|(_, value)| !value.is_string()) {
                    find(
                        &format!("metadata.{field}[{key}]"),
                        format!("{value} is not a string: put it in quotes"),
                    );
                }
            }
            _ => find(&format!("metadata.{field}"), "must map names to strings".to_owned()),
        }
    }
}

fn is_subdomain(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |part: &str| {
        let bytes = part.as_bytes();
        bytes.iter().all(|&b| inner(b) || b == b'-')
            && bytes.first().copied().is_some_and(inner)
            && bytes.last().copied().is_some_and(inner)
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// Admits an object of one of our kinds. A status comes from a hub, which
/// may have another version, so a problem in it is only a warning.
fn admit(kind: &Kind, document: &Document, findings: &mut Vec<Finding>) -> anyhow::Result<Option<Value>> {
    let admission = kind.admission()?;
    let mut unknown = Vec::new();
    if let Err(causes) = admission.admit(document.value.clone(), None, UnknownFields::Strict) {
        unknown.extend(causes.into_iter().filter(|cause| cause.reason == CauseReason::UnknownField));
    }
    let admitted = admission.admit(document.value.clone(), None, UnknownFields::Ignore);
    let (stored, causes) = match admitted {
        Ok(admitted) => (Some(admitted.object), Vec::new()),
        Err(causes) => (None, causes),
    };
    let told =
        unknown.iter().chain(causes.iter().filter(|cause| !says_only_that_more_was_not_checked(cause)));
    findings.extend(told.map(|cause| refused(document, cause)));
    Ok(stored)
}

fn says_only_that_more_was_not_checked(cause: &Cause) -> bool {
    cause.field == "<nil>" && cause.message.contains("some validation rules were not checked")
}

fn refused(document: &Document, cause: &Cause) -> Finding {
    let field = if cause.field == "<nil>" { "" } else { &cause.field };
    let message = match cause.reason {
        CauseReason::UnknownField => "is not a field of this kind".to_owned(),
        // The finding already names the field.
        _ => cause.message.replace(&format!("{} in body ", cause.field), ""),
    };
    let finding = Finding::of(document, field, cause.reason.as_str(), message);
    let of_status = field == "status" || field.starts_with("status.") || field.starts_with("status[");
    if of_status { finding.warning() } else { finding }
}
