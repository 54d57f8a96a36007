//! Applies changes to a set of documents: computes the objects as they would be after `kubectl
//! apply`.

use std::collections::{BTreeSet, HashMap};

use aviary_engine::hash;
use serde_json::{Map, Value, json};

use crate::documents::Document;

/// Metadata fields that the hub owns; an apply keeps them.
const KEPT_METADATA: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "ownerReferences", "finalizers"];

/// The documents after the change.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) documents: Vec<Document>,
    /// The documents that the change replaced, in their old form.
    pub(crate) former: Vec<Document>,
    /// Which of the documents the change adds.
    pub(crate) added: BTreeSet<usize>,
}

/// Applies a change to the existing documents.
pub(crate) fn apply(there: Vec<Document>, change: Vec<Document>) -> Changed {
    let mut documents = there;
    let mut known: HashMap<[String; 4], usize> =
        documents.iter().enumerate().map(|(index, document)| (identity(document), index)).collect();
    let mut former = Vec::new();
    let mut added = BTreeSet::new();
    for new in change {
        let index = *known.entry(identity(&new)).or_insert(documents.len());
        match documents.get_mut(index) {
            Some(known) => {
                let value = merged(&known.value, new.value);
                former.push(std::mem::replace(known, Document { place: new.place, value }));
            }
            None => {
                added.insert(documents.len());
                documents.push(new);
            }
        }
    }
    Changed { documents, former, added }
}

fn identity(document: &Document) -> [String; 4] {
    [document.group(), document.kind(), document.namespace(), document.name()].map(str::to_owned)
}

/// Merges the new object with what the hub knows about the old one: its identity, its status, and
/// labels and annotations that the new object does not set.
pub(crate) fn merged(old: &Value, new: Value) -> Value {
    let mut merged = new;
    let changed = hash::spec_hash(old) != hash::spec_hash(&merged);
    let Value::Object(fields) = &mut merged else { return merged };
    if let Some(status) = old.get("status") {
        fields.insert("status".to_owned(), status.clone());
    }
    let empty = Map::new();
    let known = old.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let Value::Object(metadata) = fields.entry("metadata").or_insert_with(|| json!({})) else {
        return merged;
    };
    for key in KEPT_METADATA {
        if let Some(kept) = known.get(key) {
            metadata.insert(key.to_owned(), kept.clone());
        }
    }
    let generation = known.get("generation").and_then(Value::as_i64).unwrap_or(1);
    metadata.insert("generation".to_owned(), (generation + i64::from(changed)).into());
    for key in ["labels", "annotations"] {
        let Some(Value::Object(before)) = known.get(key) else { continue };
        if let Value::Object(after) = metadata.entry(key).or_insert_with(|| json!({})) {
            for (name, value) in before {
                after.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    merged
}
