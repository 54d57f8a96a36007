//! What is seen of the hub: objects as they come from a watch or as the answer to a write, reduced to the engine's values at once.
//!
//! Owns the reading of objects. Nothing behind it holds an API object: no managed fields, no manifests, no spelling. What cannot be read is one
//! object's problem.

use aviary_api::names::{annotations, labels};
use aviary_api::{
    ClusterManagementAddOn, ManagedCluster, ManagedClusterAddOn, ManifestWork, Placement, PlacementDecision,
};
use aviary_engine::configs::{GroupResource, Revision};
use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::normalise;
use aviary_engine::observed::{AddOn, Cluster, Instance, LiveConfig, Template, Work};
use aviary_engine::problem::Problem;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt;
use kube::core::{DynamicObject, ObjectMeta};
use serde_json::Value;

use crate::revisions::{self, Kept};

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Text,
    pub(crate) name: Text,
}

impl Key {
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        let text = |given: &Option<String>| Text::from(given.as_deref().unwrap_or_default());
        Self { namespace: text(&metadata.namespace), name: text(&metadata.name) }
    }
}

/// One thing that a watch tells.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// All objects follow; what does not follow is gone.
    Begin,
    Put(Key, T),
    /// It is there, and what it says cannot be understood: what was known of it stays.
    Unreadable(Key),
    Gone(Key),
    End,
}

/// Something that was seen.
#[derive(Debug)]
pub(crate) enum News {
    AddOn(Change<Box<SeenAddOn>>),
    Instance(Change<Box<SeenInstance>>),
    Work(Change<Box<SeenWork>>),
    Cluster(Change<Box<Cluster>>),
    Placement(Change<Box<Placement>>),
    Decision(Change<Box<PlacementDecision>>),
    Config(GroupResource, Change<SeenConfig>),
    Revision(Change<Kept>),
    /// A work cannot be made: somebody else has one of that name.
    Taken(Taken),
    /// It is gone, or ours now.
    Freed(Taken),
    /// Some kind has come or gone: look again which there are.
    Kinds,
    /// The hub does not let us watch any more.
    Refused(Refused),
}

/// The name of a work that somebody else has.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) addon: Text,
    pub(crate) cluster: ClusterName,
    pub(crate) name: Text,
    /// What ours would be rendered from.
    pub(crate) told: Revision,
}

/// Who watched what, and what the hub said.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) resource: GroupResource,
    pub(crate) doing: String,
    pub(crate) said: Box<kube::core::Status>,
}

/// How an add-on's author calls it. No decision hangs on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Title {
    pub(crate) display_name: Option<Text>,
    pub(crate) description: Option<Text>,
}

#[derive(Debug)]
pub(crate) struct SeenAddOn {
    pub(crate) addon: AddOn,
    pub(crate) title: Title,
    pub(crate) problems: Vec<Problem>,
    pub(crate) resource_version: Text,
    /// The term of the leader that wrote last, by which an older one knows that its time is over.
    pub(crate) term: u64,
}

#[derive(Debug)]
pub(crate) struct SeenInstance {
    pub(crate) instance: Instance,
    pub(crate) problems: Vec<Problem>,
}

#[derive(Debug)]
pub(crate) struct SeenWork {
    pub(crate) addon: Text,
    pub(crate) cluster: ClusterName,
    pub(crate) work: Work,
}

#[derive(Debug)]
pub(crate) struct SeenConfig {
    pub(crate) live: LiveConfig,
    /// Where the config is a template: of which add-on.
    pub(crate) template: Option<(Text, Template)>,
    /// Where the config chooses a version: those that its status offers.
    pub(crate) offers: Option<Vec<Text>>,
}

pub(crate) fn addon(object: &ClusterManagementAddOn) -> SeenAddOn {
    let (addon, problems) = normalise::addon(object);
    let term = object.metadata.annotations.as_ref().and_then(|all| all.get(annotations::MANAGER_TERM));
    let meta = object.spec.add_on_meta.as_ref();
    let text =
        |given: Option<&String>| given.filter(|text| !text.is_empty()).map(|text| text.as_str().into());
    let title = Title {
        display_name: text(meta.and_then(|meta| meta.display_name.as_ref())),
        description: text(meta.and_then(|meta| meta.description.as_ref())),
    };
    SeenAddOn {
        addon,
        title,
        problems,
        resource_version: object.resource_version().unwrap_or_default().into(),
        term: term.and_then(|term| term.parse().ok()).unwrap_or(0),
    }
}

/// None: it is in a namespace that no cluster can have.
pub(crate) fn instance(object: &ManagedClusterAddOn) -> Option<SeenInstance> {
    let (instance, problems) = normalise::instance(object).ok()?;
    Some(SeenInstance { instance, problems })
}

/// None: it belongs to no add-on.
pub(crate) fn work(object: &ManifestWork) -> Option<SeenWork> {
    let cluster = ClusterName::parse(object.metadata.namespace.as_deref()?).ok()?;
    let (addon, work) = normalise::work(object)?;
    Some(SeenWork { addon, cluster, work })
}

/// None: no cluster can have such a name.
pub(crate) fn cluster(object: &ManagedCluster) -> Option<Cluster> {
    normalise::cluster(object).ok()
}

/// The placement of a decision.
pub(crate) fn placement_of(decision: &PlacementDecision) -> Option<PlacementName> {
    let name = decision.metadata.labels.as_ref()?.get(labels::PLACEMENT)?;
    Some(PlacementName::new(decision.metadata.namespace.as_deref().unwrap_or_default(), name))
}

/// A placement without what no decision needs.
pub(crate) fn placement(mut object: Placement) -> Placement {
    object.metadata.managed_fields = None;
    object.metadata.annotations = None;
    object
}

/// A decision without what no decision needs.
pub(crate) fn decision(mut object: PlacementDecision) -> PlacementDecision {
    object.metadata.managed_fields = None;
    object.metadata.annotations = None;
    object
}

pub(crate) fn config(kind: &GroupResource, object: &DynamicObject) -> SeenConfig {
    let value = serde_json::to_value(object).unwrap_or(Value::Null);
    let template = (kind == GroupResource::templates()).then(|| normalise::template(&value));
    let offers = (kind == GroupResource::hub_configs()).then(|| {
        let listed = value.pointer("/status/supportedVersions").and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str).map(Text::from).collect()
    });
    SeenConfig { live: normalise::config(&value), template, offers }
}

pub(crate) fn revision(object: &ControllerRevision) -> Option<Kept> {
    revisions::read(object)
}
