//! Stored revisions: the content of configs, kept while a cluster uses it or a rollback may need
//! it.
//!
//! Owns the encoding as ControllerRevisions. There are two kinds: the content of a config, named by
//! its hash, and a revision that a placement has completed, numbered in the order of completion.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use aviary_api::names::finalizers::HOOK_CONTENT;
use aviary_api::names::{ADDON_GROUP, labels};
use aviary_engine::configs::{ConfigRef, GroupResource, Pin, Revision};
use aviary_engine::content::ConfigContent;
use aviary_engine::hash::{self, Hash};
use aviary_engine::name::{PlacementName, Text};
use aviary_engine::plan::Keep;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::seen::{ObjectVersion, Version};

const OWNER: &str = "ClusterManagementAddOn";

/// A stored revision.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) addon: Text,
    /// The uid of the add-on that owns it. A deleted one may have had the same name.
    pub(crate) owner: Option<Text>,
    pub(crate) version: Version,
    /// It stays while hooks may need it, also after the add-on is deleted.
    pub(crate) held: bool,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// As text: parsed, it may take a hundred times the memory.
    Content {
        hash: Hash,
        content: ConfigContent,
    },
    Completed(Completed),
}

/// A revision that a placement has completed.
#[derive(Clone, Debug)]
pub(crate) struct Completed {
    pub(crate) number: i64,
    pub(crate) placement: PlacementName,
    pub(crate) revision: Revision,
    /// When the rollout began, if it was recorded.
    pub(crate) started: Option<Timestamp>,
    /// When it was completed.
    pub(crate) at: Option<Timestamp>,
    /// The placement was rolled back from it since.
    pub(crate) withdrawn: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredPin {
    group: String,
    resource: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    spec_hash: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Stored {
    Config {
        of: StoredPin,
        content: Box<RawValue>,
    },
    #[serde(rename_all = "camelCase")]
    Completed {
        placement: StoredPlacement,
        revision: Vec<StoredPin>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<String>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredPlacement {
    namespace: String,
    name: String,
}

/// A ControllerRevision whose data is text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredRevision {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: ObjectMeta,
    data: Option<Box<RawValue>>,
    #[serde(default)]
    revision: i64,
}

impl Resource for StoredRevision {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        ControllerRevision::kind(&())
    }

    fn group(_: &()) -> Cow<'_, str> {
        ControllerRevision::group(&())
    }

    fn version(_: &()) -> Cow<'_, str> {
        ControllerRevision::version(&())
    }

    fn plural(_: &()) -> Cow<'_, str> {
        ControllerRevision::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// `None` if it is not ours, or if its content does not match its name.
pub(crate) fn read(object: &StoredRevision) -> Option<Kept> {
    let addon: Text = object.metadata.labels.as_ref()?.get(labels::ADDON_NAME)?.as_str().into();
    let what = match serde_json::from_str(object.data.as_ref()?.get()).ok()? {
        Stored::Config { of, content } => {
            // Content that does not match its hash must not be rendered.
            let hash = Hash::recorded(&of.spec_hash)?;
            let is_of = |content: &Value| hash::spec_hash(content) == hash;
            serde_json::from_str(content.get()).is_ok_and(|content| is_of(&content)).then(|| {
                let content = ConfigContent::of_text(Box::<str>::from(content).into());
                What::Content { hash, content }
            })?
        }
        Stored::Completed { placement, revision, started_at } => What::Completed(Completed {
            started: started_at.and_then(|at| at.parse().ok()),
            number: object.revision,
            placement: PlacementName::new(&placement.namespace, &placement.name),
            revision: Revision::new(revision.into_iter().map(pin).collect::<Option<_>>()?),
            at: object.metadata.creation_timestamp.as_ref().map(|at| at.0),
            withdrawn: is_withdrawn(object),
        }),
    };
    let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|owner| owner.kind == OWNER && *owner.name == *addon);
    let owner = owner.map(|owner| owner.uid.as_str().into());
    let version = ObjectVersion::of(&object.metadata).version;
    Some(Kept { addon, owner, version, held: is_held(object), what })
}

/// Whether it stays while hooks may need it.
pub(crate) fn is_held(object: &StoredRevision) -> bool {
    object.metadata.finalizers.iter().flatten().any(|one| one == HOOK_CONTENT)
}

/// Holds a stored content. Nobody else puts finalizers on it before it is deleted.
pub(crate) fn hold() -> Value {
    json!({ "metadata": { "finalizers": [HOOK_CONTENT] } })
}

/// Lets a stored content go, as it is now.
pub(crate) fn release(held: &StoredRevision) -> Value {
    let others = held.metadata.finalizers.iter().flatten().filter(|one| *one != HOOK_CONTENT);
    let version = &held.metadata.resource_version;
    json!({ "metadata": { "resourceVersion": version, "finalizers": others.collect::<Vec<_>>() } })
}

/// The add-on, hash and content of a template that is stored as a revision.
pub fn stored_template(object: &StoredRevision) -> Option<(String, Hash, Arc<Value>)> {
    let Kept { addon, what: What::Content { hash, content }, .. } = read(object)? else { return None };
    // Content of another kind has no manifests for agents.
    content.pointer("/spec/agentSpec")?;
    Some((addon.to_string(), hash, Arc::clone(&content)))
}

fn is_withdrawn(object: &StoredRevision) -> bool {
    object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(labels::WITHDRAWN))
}

/// Marks a completed revision as withdrawn. A label, because the data of a ControllerRevision
/// cannot change.
pub(crate) fn withdrawal() -> Value {
    json!({ "metadata": { "labels": { labels::WITHDRAWN: "true" } } })
}

fn pin(stored: StoredPin) -> Option<Pin> {
    let config = ConfigRef {
        kind: GroupResource::new(&stored.group, &stored.resource),
        namespace: stored.namespace.map(Text::from),
        name: stored.name.into(),
    };
    Some(Pin { config: Arc::new(config), hash: Hash::recorded(&stored.spec_hash)? })
}

fn stored_pin(pin: &Pin) -> StoredPin {
    let config = &pin.config;
    StoredPin {
        group: config.kind.group.to_string(),
        resource: config.kind.resource.to_string(),
        namespace: config.namespace.as_ref().map(ToString::to_string),
        name: config.name.to_string(),
        spec_hash: pin.hash.to_string(),
    }
}

/// The add-on that a revision belongs to, and where revisions are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) addon: &'a str,
    pub(crate) uid: &'a str,
}

/// The name of the object that keeps a content. Each add-on keeps its own copy.
pub(crate) fn content_name(addon: &str, hash: &Hash) -> String {
    format!("{}-{}", clipped(addon), hash.as_str().get(..16).unwrap_or(hash.as_str()))
}

/// Long names of add-ons are cut; the label has the full name.
fn clipped(addon: &str) -> &str {
    addon.get(..200).unwrap_or(addon).trim_end_matches(['-', '.'])
}

pub(crate) fn content(owner: Owner<'_>, keep: &Keep) -> serde_json::Result<StoredRevision> {
    let content = RawValue::from_string(keep.content.to_text().as_ref().to_owned())?;
    let stored = Stored::Config { of: stored_pin(&keep.pin), content };
    let mut object = object(owner, content_name(owner.addon, &keep.pin.hash), 0, &stored)?;
    object.metadata.finalizers = keep.held.then(|| vec![HOOK_CONTENT.to_owned()]);
    Ok(object)
}

pub(crate) fn completed_name(addon: &str, placement: &PlacementName, number: i64) -> String {
    let of = hash::of_bytes(format!("{}/{}", placement.namespace, placement.name).as_bytes());
    format!("{}-{}-{number}", clipped(addon), of.as_str().get(..8).unwrap_or(of.as_str()))
}

pub(crate) fn completed(
    owner: Owner<'_>,
    placement: &PlacementName,
    revision: &Revision,
    number: i64,
    started: Option<Timestamp>,
) -> serde_json::Result<StoredRevision> {
    let stored = Stored::Completed {
        placement: StoredPlacement {
            namespace: placement.namespace.to_string(),
            name: placement.name.to_string(),
        },
        revision: revision.pins().iter().map(stored_pin).collect(),
        started_at: started.map(|at| at.to_string()),
    };
    object(owner, completed_name(owner.addon, placement, number), number, &stored)
}

fn object(
    owner: Owner<'_>,
    name: String,
    revision: i64,
    data: &Stored,
) -> serde_json::Result<StoredRevision> {
    // Garbage-collected with the add-on.
    let owned_by = OwnerReference {
        api_version: format!("{ADDON_GROUP}/v1alpha1"),
        kind: OWNER.to_owned(),
        name: owner.addon.to_owned(),
        uid: owner.uid.to_owned(),
        ..OwnerReference::default()
    };
    Ok(StoredRevision {
        api_version: "apps/v1".to_owned(),
        kind: "ControllerRevision".to_owned(),
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(owner.namespace.to_owned()),
            labels: Some(BTreeMap::from([(labels::ADDON_NAME.to_owned(), owner.addon.to_owned())])),
            owner_references: Some(vec![owned_by]),
            ..ObjectMeta::default()
        },
        data: Some(serde_json::value::to_raw_value(data)?),
        revision,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn keep() -> Keep {
        let object = json!({"spec": {"test": 1}});
        let hash = hash::spec_hash(&object);
        let config =
            ConfigRef { kind: GroupResource::new("g", "rs"), namespace: Some("ns".into()), name: "a".into() };
        let pin = Pin { config: Arc::new(config), hash };
        Keep { pin, content: hash::content(&object).into(), held: false }
    }

    const OWNER: Owner<'_> = Owner { namespace: "hub", addon: "helloworld", uid: "u" };

    /// As a hub returns it: an API server knows these fields.
    fn stored(object: &StoredRevision) -> StoredRevision {
        let typed: ControllerRevision = serde_json::from_value(json!(object)).unwrap();
        let returned = serde_json::to_string(&typed).unwrap();
        serde_json::from_str(&returned).unwrap()
    }

    #[test]
    fn a_content_comes_back_under_its_hash() {
        let keep = keep();
        let object = stored(&content(OWNER, &keep).unwrap());
        let Some(Kept { addon, owner, what: What::Content { hash, content }, .. }) = read(&object) else {
            panic!("not read")
        };
        assert_eq!((&*addon, owner.as_deref()), ("helloworld", Some("u")));
        assert!(!content.is_parsed(), "it stays text");
        assert_eq!((hash, content), (keep.pin.hash, keep.content));
    }

    #[test]
    fn a_content_that_hooks_need_is_held_until_it_is_released() {
        let plain = content(OWNER, &keep()).unwrap();
        assert!(!read(&plain).unwrap().held);
        let mut held = content(OWNER, &Keep { held: true, ..keep() }).unwrap();
        assert!(read(&held).unwrap().held);
        held.metadata.resource_version = Some("7".into());
        held.metadata.finalizers.as_mut().unwrap().push("foregroundDeletion".into());
        let released = json!({"metadata": {"resourceVersion": "7", "finalizers": ["foregroundDeletion"]}});
        assert_eq!(release(&held), released);
    }

    #[test]
    fn a_content_that_was_changed_is_not_read() {
        let mut object = json!(content(OWNER, &keep()).unwrap());
        object["data"]["config"]["content"]["spec"]["test"] = json!(2);
        assert!(read(&serde_json::from_value(object).unwrap()).is_none());
    }

    #[test]
    fn a_completed_revision_comes_back_with_its_number() {
        let (placement, revision) = (PlacementName::new("default", "aws"), Revision::new(vec![keep().pin]));
        let started = Timestamp::from_second(1_767_225_600).ok();
        let object = stored(&completed(OWNER, &placement, &revision, 7, started).unwrap());
        let Some(Kept { what: What::Completed(read), .. }) = read(&object) else { panic!("not read") };
        assert_eq!((read.number, read.placement, read.revision), (7, placement, revision));
        assert_eq!(read.started, started);
        assert!(!read.withdrawn);
    }

    #[test]
    fn a_withdrawn_revision_comes_back_as_such() {
        let (placement, revision) = (PlacementName::new("default", "aws"), Revision::new(vec![keep().pin]));
        let mut object = json!(completed(OWNER, &placement, &revision, 7, None).unwrap());
        let labels = withdrawal()["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        object["metadata"]["labels"].as_object_mut().unwrap().extend(labels);
        let Some(Kept { what: What::Completed(read), .. }) = read(&serde_json::from_value(object).unwrap())
        else {
            panic!("not read")
        };
        assert!(read.withdrawn);
    }
}
