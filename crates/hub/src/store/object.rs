//! A stored object: its JSON, encoded once, and the few facts that lookups need.
//!
//! Every encoding starts with the resource version, so that a commit can fill in the number without
//! encoding again, and a deletion can change it. Must not interpret the object.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The start of every stored object; the resource version follows.
const HEAD: &[u8] = br#"{"metadata":{"resourceVersion":""#;

/// The name of a kind in the store: `plural` or `plural.group`.
pub(crate) type ResourceId = Arc<str>;

/// The key of an object within its kind: `namespace/name`, or `name` if it has no namespace.
pub(crate) type StoreKey = Arc<str>;

/// One committed state of an object. Immutable.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) key: StoreKey,
    pub(crate) revision: u64,
    pub(crate) json: Bytes,
    pub(crate) facts: ObjectFacts,
}

/// The facts that the hub needs without parsing the object.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectFacts {
    pub(crate) uid: Box<str>,
    labels: Box<[(Box<str>, Box<str>)]>,
    pub(crate) owners: Box<[OwnerReference]>,
    pub(crate) finalizers: Box<[Box<str>]>,
    /// It is being deleted.
    pub(crate) terminating: bool,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OwnerReference {
    pub(crate) api_version: Box<str>,
    pub(crate) kind: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
    #[serde(default)]
    pub(crate) block_owner_deletion: Option<bool>,
}

impl StoredObject {
    /// Whether the encoding ends with this; see [`type_suffix`].
    pub(crate) fn ends_with(&self, suffix: &str) -> bool {
        self.json.ends_with(suffix.as_bytes())
    }
}

/// An encoded object without its resource version.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// Everything after the digits of the resource version.
    tail: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
#[error("a stored object cannot be read: {0}")]
pub(crate) struct UnreadableObject(String);

impl Draft {
    /// Encodes an object. Ignores any resource version in it.
    pub(crate) fn of(object: &Value) -> Result<Self, UnreadableObject> {
        let Value::Object(fields) = object else { return Err(UnreadableObject("not an object".into())) };
        let mut tail = Vec::with_capacity(1024);
        tail.push(b'"');
        if let Some(Value::Object(metadata)) = fields.get("metadata") {
            append(&mut tail, metadata, &["resourceVersion"])?;
        }
        tail.push(b'}');
        append(&mut tail, fields, &["metadata", "apiVersion", "kind"])?;
        // At the end, so that lists of built-in kinds can cut it off.
        for name in ["apiVersion", "kind"] {
            if let Some(value) = fields.get(name) {
                append_one(&mut tail, name, value)?;
            }
        }
        tail.push(b'}');
        Ok(Self { tail })
    }

    pub(crate) fn len(&self) -> usize {
        HEAD.len() + self.tail.len()
    }

    /// The encoding with its resource version.
    pub(crate) fn seal(&self, revision: u64) -> Bytes {
        let mut json = Vec::with_capacity(self.len() + 20);
        json.extend_from_slice(HEAD);
        json.extend_from_slice(revision.to_string().as_bytes());
        json.extend_from_slice(&self.tail);
        json.into()
    }
}

fn append(out: &mut Vec<u8>, fields: &Map<String, Value>, but: &[&str]) -> Result<(), UnreadableObject> {
    let mut fields = fields.iter().filter(|(name, _)| !but.contains(&name.as_str()));
    fields.try_for_each(|(name, value)| append_one(out, name, value))
}

fn append_one(out: &mut Vec<u8>, name: &str, value: &Value) -> Result<(), UnreadableObject> {
    out.push(b',');
    serde_json::to_writer(&mut *out, name).map_err(unreadable)?;
    out.push(b':');
    serde_json::to_writer(&mut *out, value).map_err(unreadable)
}

/// The end of the encoding of an object of a kind.
pub(crate) fn type_suffix(api_version: &str, kind: &str) -> String {
    format!(",\"apiVersion\":{},\"kind\":{}}}", json!(api_version), json!(kind))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err wants")]
fn unreadable(error: serde_json::Error) -> UnreadableObject {
    UnreadableObject(error.to_string())
}

impl StoredObject {
    pub(crate) fn new(key: StoreKey, revision: u64, json: Bytes, facts: ObjectFacts) -> Self {
        Self { key, revision, json, facts }
    }

    /// Reads an object from disk.
    pub(crate) fn read(key: StoreKey, json: Bytes) -> Result<Self, UnreadableObject> {
        let object: WithFacts<'_> = serde_json::from_slice(&json).map_err(unreadable)?;
        let revision = revision_of(&json).ok_or_else(|| UnreadableObject("no resource version".into()))?;
        let facts = object.metadata.into();
        Ok(Self { key, revision, json, facts })
    }

    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.facts.labels.iter().find(|(key, _)| **key == *name).map(|(_, value)| &**value)
    }

    /// The last state of a deleted object, with the revision of the deletion.
    pub(crate) fn bury(&self, revision: u64) -> Self {
        let digits = self.json.get(HEAD.len()..).unwrap_or_default();
        let end = digits.iter().position(|byte| *byte == b'"').unwrap_or(0);
        let draft = Draft { tail: digits.get(end..).unwrap_or_default().to_vec() };
        Self { key: self.key.clone(), revision, json: draft.seal(revision), facts: self.facts.clone() }
    }
}

fn revision_of(json: &[u8]) -> Option<u64> {
    let digits = json.strip_prefix(HEAD)?;
    let end = digits.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}

#[derive(Deserialize)]
struct WithFacts<'a> {
    #[serde(borrow)]
    metadata: FactFields<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FactFields<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(default)]
    labels: Option<std::collections::BTreeMap<Box<str>, Box<str>>>,
    #[serde(default)]
    owner_references: Option<Vec<OwnerReference>>,
    #[serde(default)]
    finalizers: Option<Vec<Box<str>>>,
    #[serde(default, borrow)]
    deletion_timestamp: Option<Cow<'a, str>>,
}

impl From<FactFields<'_>> for ObjectFacts {
    fn from(fields: FactFields<'_>) -> Self {
        Self {
            uid: fields.uid.into(),
            labels: fields.labels.unwrap_or_default().into_iter().collect(),
            owners: fields.owner_references.unwrap_or_default().into(),
            finalizers: fields.finalizers.unwrap_or_default().into(),
            terminating: fields.deletion_timestamp.is_some(),
        }
    }
}

impl ObjectFacts {
    /// The facts of an admitted object.
    pub(crate) fn of(object: &Value) -> Result<Self, UnreadableObject> {
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        FactFields::deserialize(metadata).map(Self::from).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_all_it_says_and_gets_its_revision() {
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "3", "uid": "u",
            "labels": {"x": "\"resourceVersion\":\"9\""}}, "data": {"k": "v"}});
        let json = Draft::of(&object).unwrap().seal(41);
        let stored = StoredObject::read("ns/a".into(), json).unwrap();
        let mut expected = object;
        expected["metadata"]["resourceVersion"] = json!("41");
        assert_eq!(stored.value(), expected);
        assert_eq!((stored.revision, &*stored.facts.uid), (41, "u"));
        assert_eq!(stored.label("x"), Some("\"resourceVersion\":\"9\""));
        assert_eq!((stored.namespace(), stored.name()), (Some("ns"), "a"));
    }

    #[test]
    fn a_deleted_object_shows_the_revision_of_its_deletion() {
        let json = Draft::of(&json!({"metadata": {"name": "a"}})).unwrap().seal(7);
        let stored = StoredObject::read("a".into(), json).unwrap();
        assert_eq!(revision_of(&stored.bury(1234).json), Some(1234));
    }

    #[test]
    fn what_was_not_written_by_the_hub_is_refused() {
        for json in [
            "",
            "{}",
            r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#,
            r#"{"metadata":{"resourceVersion":"x"}}"#,
        ] {
            assert!(StoredObject::read("a".into(), Bytes::from_static(json.as_bytes())).is_err(), "{json}");
        }
    }
}
