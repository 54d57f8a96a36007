//! Parses objects, from a watch or from the response to a write, into the values that decisions
//! need.
//!
//! The manager's stores contain no API objects: no managed fields, no manifests, no spelling
//! variants. An object that cannot be parsed affects only itself.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::time::Duration;

use aviary_api::names::{annotations, labels};
use aviary_api::work::WorkText;
use aviary_api::{
    ClusterManagementAddOn, Guarded, ManagedCluster, ManagedClusterAddOn, ObjectText, Placement,
    PlacementDecision,
};
use aviary_engine::configs::{ConfigRef, GroupResource, Revision};
use aviary_engine::content::Density;
use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::normalise::{self, DecisionPart, PlacementPart};
use aviary_engine::observed::{AddOn, Cluster, Instance, LiveConfig, Record, Template, Work};
pub(crate) use aviary_engine::placement::Key;
use aviary_engine::policy::{Policy, PolicySummary};
use aviary_engine::problem::Problem;
use aviary_engine::served::Served;
use aviary_engine::versions::LONGEST_ANNOTATED;
use kube::api::Api;
use kube::core::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use kube::{Client, Resource, ResourceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::revisions::{self, Kept, StoredRevision};

/// One state of one object. UIDs are never reused, and the resource versions of a kind only
/// increase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) uid: Text,
    /// The resource version; 0 where it is not a number.
    pub(crate) number: u64,
}

impl Version {
    pub(crate) fn new(uid: Text, resource_version: &str) -> Self {
        Self { uid, number: resource_version.parse().unwrap_or(0) }
    }

    /// Whether both are states of one object, as far as their uids are known.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        self.uid == other.uid || self.uid.is_empty() || other.uid.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    pub(crate) key: Key,
    pub(crate) version: Version,
}

impl ObjectVersion {
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        let uid = metadata.uid.as_deref().unwrap_or_default().into();
        let number = metadata.resource_version.as_deref().unwrap_or_default();
        Self { key: Key::of(metadata), version: Version::new(uid, number) }
    }
}

/// A watch event, or the response to one of our writes.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// A list begins: objects that do not follow are gone.
    Begin,
    Put(ObjectVersion, T),
    /// The object exists and cannot be parsed: its last known state is kept.
    Unreadable(ObjectVersion),
    Gone(ObjectVersion),
    End,
    /// The response to a write. It may arrive before the watch event of that write, or long after.
    Written(ObjectVersion, T),
    Deleted(ObjectVersion),
}

/// A watched kind, and how its objects become events of type `E`.
pub(crate) trait Watched<E>:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static
{
    type Seen: Send;
    const EVENT: fn(Change<Self::Seen>) -> E;

    /// `None` if the object is irrelevant.
    fn read(self) -> Option<Self::Seen>;

    /// Fails where `read` parses what was text so far.
    fn try_read(self) -> Result<Option<Self::Seen>, Box<InvalidObject>> {
        Ok(self.read())
    }

    /// `namespace` is where the manager keeps its own objects.
    fn api(client: &Client, _namespace: &str) -> Api<Guarded<Self>> {
        Api::all(client.clone())
    }
}

#[derive(Debug)]
pub(crate) enum WatchEvent {
    AddOn(Change<Box<SeenAddOn>>),
    Instance(Change<Box<SeenInstance>>),
    Work(Change<Box<SeenWork>>),
    Cluster(Change<Box<Cluster>>),
    Placement(Change<PlacementPart>),
    Decision(Change<SeenDecision>),
    Config(GroupResource, Change<SeenConfig>),
    Revision(Change<Kept>),
    /// A work cannot be created: a work of another owner has its name.
    NameTaken(NameTaken),
    /// That work is deleted, or ours now.
    NameFreed(NameTaken),
    /// An instance cannot be created: its cluster has no namespace.
    NamespaceMissing(NamespaceMissing),
    NamespaceFound(ClusterName),
    NamespaceGone(ClusterName),
    Namespaces(BTreeSet<ClusterName>),
    /// The hub refuses a write for what is in the object. It is tried again after a while.
    WriteRefused(WriteRefused),
    /// That while is over.
    RetryWrite(WriteRefused),
    /// A CRD has changed: find out again which kinds are served.
    Kinds,
    /// What the hub's schemas can hold of our statuses.
    Served(Served),
    /// The hub has made something else of a write than was sent.
    Echo(Echo),
    /// A write of a policy's status has ended.
    SummarisedPolicy(SummarisedPolicy),
    /// The hub refuses a watch.
    Refused(Refused),
}

/// What has become of a summary in the status of a policy.
#[derive(Clone, Debug)]
pub(crate) struct SummarisedPolicy {
    pub(crate) policy: Text,
    /// If the hub has taken it.
    pub(crate) heard: Option<HeardSummary>,
}

/// A summary that was sent, and what the hub shows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeardSummary {
    pub(crate) uid: Text,
    pub(crate) sent: PolicySummary,
    pub(crate) shown: Option<PolicySummary>,
}

/// A write that the hub has taken and stored as something else: it has pruned or defaulted fields.
#[derive(Clone, Debug)]
pub(crate) struct Echo {
    pub(crate) addon: Text,
    pub(crate) of: Echoed,
    /// The resource version that the hub has given it.
    pub(crate) resource_version: Text,
    /// What was sent, without times.
    pub(crate) sent: Value,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Echoed {
    /// The status of the add-on.
    AddOn,
    /// The status of an instance.
    Instance(ClusterName),
    /// The owner, marker and annotations of an instance.
    Metadata(ClusterName),
    Record,
}

/// A write for one add-on that the hub refuses.
#[derive(Clone, Debug)]
pub(crate) struct WriteRefused {
    pub(crate) addon: Text,
    pub(crate) object: RefusedObject,
    /// What the hub says, shortened.
    pub(crate) why: Text,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RefusedObject {
    NewInstance(ClusterName),
    /// It cannot be deleted.
    Instance(ClusterName),
    Status(ClusterName),
    /// Annotations from its cluster. Nothing else depends on them.
    Annotations(ClusterName),
    /// With the id of the revision that it is rendered from.
    Work(ClusterName, Text),
    Offer(ConfigRef),
}

impl fmt::Display for RefusedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewInstance(cluster) => write!(f, "the new instance of cluster {cluster}"),
            Self::Instance(cluster) => write!(f, "the deletion of the instance of cluster {cluster}"),
            Self::Status(cluster) => write!(f, "the status of the instance of cluster {cluster}"),
            Self::Annotations(cluster) => write!(f, "annotations of the instance of cluster {cluster}"),
            Self::Work(cluster, _) => write!(f, "a work of cluster {cluster}"),
            Self::Offer(config) => write!(f, "the status of {config}"),
        }
    }
}

/// A name that a work of another owner has.
#[derive(Clone, Debug)]
pub(crate) struct NameTaken {
    pub(crate) addon: Text,
    pub(crate) cluster: ClusterName,
    pub(crate) name: Text,
    /// What our work would be rendered from.
    pub(crate) assigned: Revision,
}

/// A cluster without a namespace, and the add-on that found out.
#[derive(Clone, Debug)]
pub(crate) struct NamespaceMissing {
    pub(crate) addon: Text,
    pub(crate) cluster: ClusterName,
    /// Found by checking for the namespace. The check is repeated while the cluster exists.
    pub(crate) looked_for: bool,
    /// How long to wait before the next check.
    pub(crate) pause: Duration,
}

/// A watch or list that the hub refused.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) resource: GroupResource,
    pub(crate) doing: String,
    pub(crate) said: Box<kube::core::Status>,
}

/// The add-on's display name and description.
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
    pub(crate) written_by: WrittenBy,
}

/// The leader that last wrote its term on an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenBy {
    /// 0 if no leader has written one.
    pub(crate) term: u64,
    /// Two leaders may have one term if the Lease was lost between them. Their identities differ.
    pub(crate) leader: Text,
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
pub(crate) struct SeenDecision {
    /// `None` if it lacks the label that names its placement.
    pub(crate) placement: Option<PlacementName>,
    pub(crate) part: DecisionPart,
}

#[derive(Debug)]
pub(crate) struct SeenConfig {
    /// With its content as text.
    pub(crate) live: LiveConfig,
    /// If the config is a template, its add-on.
    pub(crate) template: Option<(Text, Template)>,
    /// If the config selects a version, the versions in its status.
    pub(crate) offers: Option<Vec<Text>>,
    /// A policy or a record, which are no configs.
    pub(crate) own: Option<Own>,
}

/// An object of one of Aviary's own kinds.
#[derive(Debug)]
pub(crate) enum Own {
    Policy(Box<Policy>),
    Record(Box<Record>),
}

impl Watched<WatchEvent> for ClusterManagementAddOn {
    type Seen = Box<SeenAddOn>;
    const EVENT: fn(Change<Self::Seen>) -> WatchEvent = WatchEvent::AddOn;

    fn read(self) -> Option<Self::Seen> {
        let (addon, problems) = normalise::addon(&self);
        let annotation = |name| self.metadata.annotations.as_ref().and_then(|all| all.get(name));
        let term = annotation(annotations::MANAGER_TERM).and_then(|term| term.parse().ok());
        let leader = annotation(annotations::MANAGER_IDENTITY).map(|leader| leader.as_str().into());
        let written_by = WrittenBy { term: term.unwrap_or(0), leader: leader.unwrap_or_default() };
        let meta = self.spec.add_on_meta.as_ref();
        let text =
            |given: Option<&String>| given.filter(|text| !text.is_empty()).map(|text| text.as_str().into());
        let title = Title {
            display_name: text(meta.and_then(|meta| meta.display_name.as_ref())),
            description: text(meta.and_then(|meta| meta.description.as_ref())),
        };
        let resource_version = self.resource_version().unwrap_or_default().into();
        Some(Box::new(SeenAddOn { addon, title, problems, resource_version, written_by }))
    }
}

impl Watched<WatchEvent> for ManagedClusterAddOn {
    type Seen = Box<SeenInstance>;
    const EVENT: fn(Change<Self::Seen>) -> WatchEvent = WatchEvent::Instance;

    /// `None` if it is in a namespace that no cluster can have.
    fn read(self) -> Option<Self::Seen> {
        let (instance, problems) = normalise::instance(&self).ok()?;
        Some(Box::new(SeenInstance { instance, problems }))
    }
}

impl Watched<WatchEvent> for WorkText {
    type Seen = Box<SeenWork>;
    const EVENT: fn(Change<Self::Seen>) -> WatchEvent = WatchEvent::Work;

    fn read(self) -> Option<Self::Seen> {
        self.try_read().ok().flatten()
    }

    /// `None` if it belongs to no add-on.
    fn try_read(mut self) -> Result<Option<Self::Seen>, Box<InvalidObject>> {
        leave_out_dense_parts(&mut self);
        let metadata = self.metadata.clone();
        let work = self.parse().map_err(|error| InvalidObject { error: error.to_string(), metadata })?;
        let read = normalise::cluster_of_work(&work).zip(normalise::work(&work));
        Ok(read.map(|(cluster, (addon, work))| Box::new(SeenWork { addon, cluster, work })))
    }
}

/// A spec with more values than any that we write is as good as none: it is not ours, and is
/// replaced where it should be. A report of that many values proves nothing.
fn leave_out_dense_parts(work: &mut WorkText) {
    let WorkText { metadata, spec, status } = work;
    for (part, text) in [("spec", spec), ("status", status)] {
        if text.take_if(|text| Density::of_text(text.get().as_bytes()).is_too_much_for_a_work()).is_some() {
            let Key { namespace, name } = Key::of(metadata);
            tracing::warn!(%namespace, %name, part, "a part of a work has too many values and is left out");
        }
    }
}

impl Watched<WatchEvent> for ManagedCluster {
    type Seen = Box<Cluster>;
    const EVENT: fn(Change<Self::Seen>) -> WatchEvent = WatchEvent::Cluster;

    /// `None` if no cluster can have this name.
    fn read(self) -> Option<Self::Seen> {
        normalise::cluster(&self).ok().map(Box::new)
    }
}

impl Watched<WatchEvent> for Placement {
    type Seen = PlacementPart;
    const EVENT: fn(Change<Self::Seen>) -> WatchEvent = WatchEvent::Placement;

    fn read(self) -> Option<Self::Seen> {
        Some(normalise::placement(&self))
    }
}

impl Watched<WatchEvent> for PlacementDecision {
    type Seen = SeenDecision;
    const EVENT: fn(Change<Self::Seen>) -> WatchEvent = WatchEvent::Decision;

    fn read(self) -> Option<Self::Seen> {
        Some(SeenDecision { placement: placement_of(&self), part: normalise::decision(&self) })
    }
}

impl Watched<WatchEvent> for StoredRevision {
    type Seen = Kept;
    const EVENT: fn(Change<Self::Seen>) -> WatchEvent = WatchEvent::Revision;

    fn read(self) -> Option<Self::Seen> {
        revisions::read(&self)
    }

    fn api(client: &Client, namespace: &str) -> Api<Guarded<Self>> {
        Api::namespaced(client.clone(), namespace)
    }
}

/// The placement that a decision belongs to, by its label.
pub(crate) fn placement_of(decision: &PlacementDecision) -> Option<PlacementName> {
    let name = decision.metadata.labels.as_ref()?.get(labels::PLACEMENT)?;
    Some(PlacementName::new(decision.metadata.namespace.as_deref().unwrap_or_default(), name))
}

/// Reads a policy or a record.
pub(crate) fn own(kind: &GroupResource, value: &Value) -> Option<SeenConfig> {
    let own = if kind == GroupResource::policies() {
        Own::Policy(Box::new(normalise::policy(&serde_json::from_value(value.clone()).ok()?)))
    } else {
        Own::Record(Box::new(normalise::record(&serde_json::from_value(value.clone()).ok()?)))
    };
    Some(SeenConfig { live: normalise::config(&Value::Null), template: None, offers: None, own: Some(own) })
}

/// Reads a config. Its text is counted before it is parsed: its author must not choose how much
/// memory that takes.
pub(crate) fn config(kind: &GroupResource, object: &ObjectText) -> Result<SeenConfig, Box<InvalidObject>> {
    let is_own = kind == GroupResource::policies() || kind == GroupResource::records();
    if Density::of_text(object.text.as_bytes()).is_too_much() {
        let outline = outline(object);
        return Ok(match is_own {
            true => unreadable(kind, &outline),
            false => {
                let generation = object.metadata.generation.unwrap_or(0);
                let live = normalise::dense_config(&object.text, generation);
                let template = (kind == GroupResource::templates())
                    .then(|| normalise::template_of(&outline, live.clone()));
                let offers = (kind == GroupResource::hub_configs()).then(Vec::new);
                SeenConfig { live, template, offers, own: None }
            }
        });
    }
    let value: Value = serde_json::from_str(&object.text).map_err(|error| {
        Box::new(InvalidObject { error: error.to_string(), metadata: object.metadata.clone() })
    })?;
    if is_own {
        return Ok(own(kind, &value).unwrap_or_else(|| unreadable(kind, &value)));
    }
    let offers = (kind == GroupResource::hub_configs()).then(|| {
        let listed = value.pointer("/status/supportedVersions").and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str).map(Text::from).collect()
    });
    let facts = (kind == GroupResource::templates()).then(|| normalise::template_facts(&value));
    let live = normalise::config_as_text(value);
    let template = facts.map(|facts| facts.template(live.clone()));
    Ok(SeenConfig { live, template, offers, own: None })
}

/// What is needed of an object with too many values: its name, whose template it is, and the
/// version, without which it would no longer be offered.
fn outline(object: &ObjectText) -> Value {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct DenseConfig {
        spec: DenseSpec,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct DenseSpec {
        addon_name: String,
        version: Option<String>,
    }
    let DenseConfig { spec: DenseSpec { addon_name, version } } =
        serde_json::from_str(&object.text).unwrap_or_default();
    let stated = version.filter(|version| !version.is_empty());
    let ObjectMeta { name, uid, resource_version, .. } = &object.metadata;
    json!({
        "metadata": {"name": name, "uid": uid, "resourceVersion": resource_version},
        "spec": {"addonName": addon_name, "version": stated.or_else(|| annotated_version(&object.text))},
    })
}

/// The version that the first manifest with such an annotation states. Nothing else is kept.
fn annotated_version(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DenseTemplate {
        spec: DenseAgent,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DenseAgent {
        agent_spec: DenseWorkload,
    }
    #[derive(Deserialize)]
    struct DenseWorkload {
        workload: DenseManifests,
    }
    #[derive(Deserialize)]
    struct DenseManifests {
        manifests: Vec<DenseManifest>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct DenseManifest {
        metadata: DenseMetadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct DenseMetadata {
        annotations: DenseAnnotations,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct DenseAnnotations {
        #[serde(rename = "addon.open-cluster-management.io/template-version")]
        version: Option<String>,
    }
    let template: DenseTemplate = serde_json::from_str(text).ok()?;
    let manifests = template.spec.agent_spec.workload.manifests.into_iter();
    let mut versions = manifests.filter_map(|manifest| manifest.metadata.annotations.version);
    versions.find(|version| !version.is_empty() && version.len() <= LONGEST_ANNOTATED)
}

/// A policy that cannot be read holds what it may cover. A record that cannot be read is empty.
fn unreadable(kind: &GroupResource, value: &Value) -> SeenConfig {
    let metadata = |field: &str| value["metadata"][field].as_str().unwrap_or_default().into();
    let (uid, resource_version) = (metadata("uid"), metadata("resourceVersion"));
    let own = if kind == GroupResource::policies() {
        let fault = Some("it cannot be read".to_owned());
        Own::Policy(Box::new(Policy {
            name: metadata("name"),
            uid,
            resource_version,
            fault,
            is_unreadable: true,
            ..Policy::default()
        }))
    } else {
        Own::Record(Box::new(Record { uid, resource_version, ..Record::default() }))
    };
    SeenConfig { live: normalise::config(&Value::Null), template: None, offers: None, own: Some(own) }
}
