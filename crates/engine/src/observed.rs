//! The snapshot: everything about one add-on at one moment, as plain values in one model.
//!
//! Filled by [`crate::normalise`] from any spelling of the API. It contains only what decisions
//! need: no manifests, no managed fields, no spelling variants.

mod unkeepable;
mod works;

pub use unkeepable::Unkeepable;
pub use works::{Work, WorkState, WorkSummary, WorksSummary};

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use aviary_api::names::conditions::REVISION_HEALTHY;
use aviary_api::names::finalizers::PRE_DELETE_HOOK;
use jiff::Timestamp;
use serde_json::Value;

use crate::attempts::Attempt;
use crate::by_cluster::{ByCluster, Summarised};
use crate::clock::{AVAILABLE_SINCE, ClockStart};
use crate::configs::{ConfigRef, GroupResource, Pin, Revision};
use crate::content::ConfigContent;
use crate::hash::Hash;
use crate::health::{Health, ObjectMark};
use crate::limit::Limit;
use crate::name::{self, ClusterName, PlacementName, Text, TextId, Word};
use crate::policy::PolicyNames;
use crate::problem::Problem;
use crate::reason::ConditionReason;
use crate::rollout::later;
pub use crate::selection::{ClusterGroup, Selection};
use crate::selector::Selector;
use crate::served::Served;
use crate::shared::{Shared, SharedId};
use crate::tally::ClusterTally;

/// One add-on and everything related to it.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub addon: AddOn,
    pub clusters: ByCluster<Cluster>,
    pub instances: ByCluster<Instance>,
    pub works: ByCluster<Vec<Work>>,
    /// Placements that exist. A listed placement that is not here is unknown, which is not the same
    /// as empty.
    pub placements: BTreeMap<PlacementName, Selection>,
    pub configs: BTreeMap<ConfigRef, Lookup>,
    /// The templates whose `addonName` is this add-on.
    pub templates: Vec<Template>,
    pub revisions: Revisions,
    /// Clusters for which the hub has no namespace, as far as known.
    pub without_namespace: Arc<BTreeSet<ClusterName>>,
    /// Clusters for which the hub refused a write. It is not tried again while it is here.
    pub refused: Arc<BTreeMap<ClusterName, Refusal>>,
    /// Refused before, and tried again in this pass: still reported until the hub has answered.
    pub retried: Arc<BTreeMap<ClusterName, Refusal>>,
    /// Clusters whose instance the hub refuses to annotate. Nothing else of the instance depends on
    /// that, so it is no refusal of the others.
    pub refused_annotations: Arc<BTreeSet<ClusterName>>,
    /// For how many more clusters the hub refuses a write, if only their number is known. The
    /// leader knows them all.
    pub refused_unnamed: usize,
    /// AddOnHubConfigs whose status the manager writes. Empty for callers that write nothing.
    pub offers: BTreeMap<ConfigRef, Offers>,
    /// Problems found by `normalise`.
    pub problems: Vec<Problem>,
    pub options: Options,
    /// What the hub's schemas can hold.
    pub served: Served,
    /// Where the add-on's conditions are written if its own schema has none; `None` if the hub has
    /// no such kind. Its conditions are in the add-on's status here.
    pub record: Option<Record>,
}

/// An AddOnRolloutRecord.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Empty if it does not exist.
    pub uid: Text,
    pub resource_version: Text,
    pub generation: i64,
    /// The uid of its add-on.
    pub owner: Option<Text>,
    pub conditions: Vec<ObservedCondition>,
    pub attempts: Vec<Attempt>,
}

/// A write that the hub refuses for what is in the object, not for the moment: trying again at once
/// cannot help.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    pub what: RefusedWrite,
    /// What the hub says, shortened.
    pub why: Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedWrite {
    /// The instance cannot be created.
    Create,
    /// The status of the instance.
    Status,
    /// A work.
    Work,
    /// The instance cannot be deleted.
    Delete,
}

impl RefusedWrite {
    pub(crate) const ALL: [Self; 4] = [Self::Create, Self::Status, Self::Work, Self::Delete];

    pub(crate) fn doing(self) -> &'static str {
        match self {
            Self::Create => "write the new instance",
            Self::Status => "write the status of the instance",
            Self::Work => "write the work",
            Self::Delete => "delete the instance",
        }
    }
}

/// The versions of an AddOnHubConfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// The versions in its status.
    pub listed: Vec<Text>,
    /// The versions of the other add-ons that reference it.
    pub others: BTreeMap<Text, Vec<Text>>,
}

impl Observed {
    /// Whether Aviary renders this add-on's works from templates. Otherwise the add-on's own
    /// manager writes them.
    pub fn renders_templates(&self) -> bool {
        self.addon.renders_templates(self.templates.iter())
    }

    /// The content that a hash pins: from the stored revisions, otherwise from a live object that
    /// still has that content.
    pub fn content(&self, pin: &Pin) -> Option<&Arc<Value>> {
        self.unread_content(pin).map(Deref::deref)
    }

    /// The same, without parsing it.
    pub fn unread_content(&self, pin: &Pin) -> Option<&ConfigContent> {
        if let Some(kept) = self.revisions.contents.get(&pin.hash) {
            return Some(kept);
        }
        if let Some(Lookup::Found(live)) = self.configs.get(&pin.config)
            && live.hash == pin.hash
        {
            return Some(&live.content);
        }
        self.templates.iter().find(|template| template.hash == pin.hash).map(|template| &template.content)
    }
}

/// The manager's settings that affect decisions.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespaces whose configs any instance may use.
    pub config_namespaces: Vec<Text>,
    pub brake: Brake,
    /// How many completed revisions of a placement are kept to roll back to.
    pub history_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            config_namespaces: vec!["open-cluster-management".into()],
            brake: Brake::default(),
            history_limit: 10,
        }
    }
}

/// Deleting more than this at once needs approval. The brake holds only if both limits are
/// exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    pub more_than: usize,
    pub more_than_percent: usize,
}

impl Default for Brake {
    fn default() -> Self {
        Self { more_than: 10, more_than_percent: 25 }
    }
}

/// A ClusterManagementAddOn.
#[derive(Clone, Debug, Default)]
pub struct AddOn {
    pub name: Text,
    pub uid: Text,
    pub generation: i64,
    pub labels: BTreeMap<String, String>,
    pub deleting: bool,
    /// Annotated `lifecycle: self`: ignored.
    pub self_managed: bool,
    pub allow_deletions: Option<usize>,
    /// Somebody asked for probes in works that an earlier version of Aviary rendered.
    pub reprobe: bool,
    pub defaults: Vec<ConfigRef>,
    /// `spec.supportedConfigs`, where given.
    pub supported: Option<Vec<GroupResource>>,
    pub strategy: InstallRule,
    pub status: AddOnStatus,
}

impl AddOn {
    /// Whether Aviary renders its works, given the templates of this add-on.
    pub fn renders_templates<'t>(&self, mut templates: impl Iterator<Item = &'t Template>) -> bool {
        templates.any(|template| template.version.is_some())
            || self.referenced_configs().any(|config| config.kind == *GroupResource::templates())
    }

    /// Every config that the add-on's author named.
    pub fn referenced_configs(&self) -> impl Iterator<Item = &ConfigRef> {
        self.defaults.iter().chain(self.strategy.placements().iter().flat_map(|placement| &placement.configs))
    }

    pub fn lists(&self, kind: &GroupResource) -> bool {
        self.supported.as_ref().is_some_and(|supported| supported.contains(kind))
    }

    /// Whether a referenced config of this kind may be read. Core kinds may be read only if the
    /// add-on lists them, and Secrets never.
    pub fn may_name(&self, kind: &GroupResource) -> bool {
        !kind.is_secrets() && (!kind.group.is_empty() || self.lists(kind))
    }

    /// Whether a config that an instance references may be read, as far as the add-on determines
    /// it.
    pub fn may_override(&self, kind: &GroupResource) -> bool {
        self.may_name(kind) && (self.supported.is_none() || self.lists(kind))
    }
}

/// Which clusters get the add-on.
#[derive(Clone, Debug, Default)]
pub enum InstallRule {
    #[default]
    Manual,
    Labels(Selector),
    Placements(Vec<InstallPlacement>),
    /// Invalid: nothing is created or deleted.
    Unusable(Problem),
}

impl InstallRule {
    pub fn placements(&self) -> &[InstallPlacement] {
        match self {
            Self::Placements(placements) => placements,
            _ => &[],
        }
    }

    /// The value of the marker label on instances that this strategy creates.
    pub fn marker(&self) -> &'static str {
        match self {
            Self::Manual | Self::Unusable(_) => "Manual",
            Self::Labels(_) => "ClusterLabelSelector",
            Self::Placements(_) => "Placements",
        }
    }
}

/// One entry of `installStrategy.placements`.
#[derive(Clone, Debug)]
pub struct InstallPlacement {
    pub name: PlacementName,
    pub configs: Vec<ConfigRef>,
    /// The version shorthand of `addonTemplate`.
    pub version: Option<Text>,
    pub install_namespace: Option<Text>,
    pub rollout: Rollout,
    /// Its rollout strategy is invalid: until it is fixed, only first installs of the known good
    /// revision proceed.
    pub fault: Option<Problem>,
    /// Strategy and fault as the add-on states them, once policies had their say.
    pub stated: Option<Box<(Rollout, Option<Problem>)>>,
}

/// A rollout strategy, independent of its spelling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    pub pace: Pace,
    /// The placement whose clusters must have a revision applied and healthy first.
    pub canary: Option<PlacementName>,
    /// Further ones, which policies require.
    pub more_canaries: Vec<PlacementName>,
    /// Decision groups that go before all others, in this order.
    pub mandatory: Vec<GroupKey>,
    pub max_failures: Option<Limit>,
    /// Further limits, which policies require. The smallest counts.
    pub more_max_failures: Vec<Limit>,
    pub progress_deadline: Option<Duration>,
    pub min_success_time: Duration,
    pub paused: bool,
    /// The policies that require some of this.
    pub by: PolicyNames,
}

impl Rollout {
    pub fn canaries(&self) -> impl Iterator<Item = &PlacementName> + Clone {
        self.canary.iter().chain(&self.more_canaries)
    }

    /// How many of this many clusters may fail; `None` if no limit is set.
    pub fn tolerated(&self, governed: usize) -> Option<usize> {
        self.max_failures.iter().chain(&self.more_max_failures).map(|limit| limit.of(governed)).min()
    }
}

/// How many clusters may be in flight at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    #[default]
    AllAtOnce,
    Rolling(Limit),
    /// The placement's clusters per decision group, otherwise the default budget.
    RollingByGroupSize,
    /// Decision group by decision group, each at once.
    PerGroup,
}

/// How a rollout strategy names a decision group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupKey {
    Name(Text),
    Index(usize),
}

/// The part of the add-on's status that is recorded state. Everything else is computed in every
/// pass.
#[derive(Clone, Debug, Default)]
pub struct AddOnStatus {
    /// The generation of the add-on that the rest describes.
    pub observed_generation: Option<i64>,
    pub placements: BTreeMap<PlacementName, Recorded>,
    pub supported_versions: Vec<Text>,
    pub default_version: Option<Text>,
    /// `None` if it was never written, or if the hub's schema lacks it.
    pub rollout: Option<RolloutSummary>,
    /// The default configs, on an OCM hub; those that cannot be used have no hash.
    pub defaults: Vec<(ConfigRef, Option<Hash>)>,
    /// Rollouts that did not complete, the oldest first.
    pub attempts: Vec<Attempt>,
    pub conditions: Vec<ObservedCondition>,
}

/// The add-on's rollouts in a few numbers, for people who look at it with kubectl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolloutSummary {
    /// The desired versions of the placements, each once.
    pub version: Text,
    pub tally: ClusterTally,
}

/// The recorded state of a placement's rollout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    pub desired: Option<Revision>,
    pub known_good: Option<Revision>,
    pub applied: Option<Revision>,
    /// Desired configs that cannot be used, on an OCM hub: listed there without a hash.
    pub unresolved: Vec<ConfigRef>,
    pub conditions: Vec<ObservedCondition>,
}

/// A condition, in any status.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedCondition {
    pub kind: Word,
    /// `True`, `False` or `Unknown`.
    pub status: Word,
    pub reason: ConditionReason,
    pub message: Word,
    pub since: Option<Timestamp>,
    pub observed_generation: Option<i64>,
}

impl ObservedCondition {
    pub fn find<'a>(conditions: &'a [Self], kind: &str) -> Option<&'a Self> {
        conditions.iter().find(|condition| condition.kind == kind)
    }

    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// A ManagedCluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub name: ClusterName,
    pub labels: BTreeMap<String, String>,
    pub deleting: bool,
    /// Annotated to opt out of automatic installation.
    pub opted_out: bool,
    /// Since when the hub reports it unreachable.
    pub unreachable: Option<Unreachable>,
    /// Since when the hub reports it reachable.
    pub reachable_since: Option<Timestamp>,
    /// What its instances are annotated with on an OCM hub.
    pub addon_annotations: BTreeMap<Text, Text>,
}

/// What rules may know about the cluster itself. Part of the facts by which clusters are sorted
/// into cohorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterSummary {
    pub deleting: bool,
    pub opted_out: bool,
    pub reachable: bool,
    /// It has annotations for its instances.
    pub annotates: bool,
}

impl Summarised for Cluster {
    type Summary = ClusterSummary;

    fn summary(&self) -> ClusterSummary {
        let Self { deleting, opted_out, unreachable, addon_annotations, .. } = self;
        ClusterSummary {
            deleting: *deleting,
            opted_out: *opted_out,
            reachable: unreachable.is_none(),
            annotates: !addon_annotations.is_empty(),
        }
    }
}

/// The hub has no contact with the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unreachable {
    pub since: Option<Timestamp>,
}

/// The result of looking up a referenced config.
#[derive(Clone, Debug)]
pub enum Lookup {
    Found(LiveConfig),
    Missing,
    /// The hub does not serve the resource.
    UnknownKind,
    /// The hub does not let the manager read the resource.
    Forbidden,
    /// The resource is namespaced and the reference has no namespace.
    NeedsNamespace,
}

#[derive(Clone, Debug)]
pub struct LiveConfig {
    pub hash: Hash,
    pub generation: i64,
    pub content: ConfigContent,
    pub unkeepable: Option<Unkeepable>,
}

/// An AddOnTemplate of this add-on.
#[derive(Clone, Debug)]
pub struct Template {
    pub name: Text,
    pub version: Option<Text>,
    pub hash: Hash,
    pub generation: i64,
    pub content: ConfigContent,
    pub unkeepable: Option<Unkeepable>,
}

impl Template {
    pub fn pin(&self) -> Pin {
        let config =
            ConfigRef { kind: GroupResource::templates().clone(), namespace: None, name: self.name.clone() };
        Pin { config: Arc::new(config), hash: self.hash.clone() }
    }
}

/// Stored contents by hash, and the revisions that each placement completed.
#[derive(Clone, Debug, Default)]
pub struct Revisions {
    pub contents: BTreeMap<Hash, ConfigContent>,
    /// The contents that stay while hooks may need them, also after the add-on is deleted.
    pub held: BTreeSet<Hash>,
    /// Oldest first.
    pub completed: BTreeMap<PlacementName, Vec<Revision>>,
    /// Completed, and later rolled back from. Rolling out one of them again is an upgrade like any
    /// other.
    pub withdrawn: BTreeMap<PlacementName, Vec<Revision>>,
}

impl Revisions {
    /// Ends the use by a plan: no content stays parsed that takes much memory.
    pub fn rest(&mut self) {
        self.contents.values_mut().for_each(ConfigContent::rest);
    }

    pub(crate) fn complete(&mut self, placement: &PlacementName, revision: &Revision, limit: usize) {
        self.withdrawn.entry(placement.clone()).or_default().retain(|withdrawn| withdrawn != revision);
        let history = self.completed.entry(placement.clone()).or_default();
        history.retain(|known| known != revision);
        history.push(revision.clone());
        let surplus = history.len().saturating_sub(limit);
        history.drain(..surplus);
    }

    pub(crate) fn withdraw(&mut self, placement: &PlacementName, revision: &Revision) {
        self.completed.entry(placement.clone()).or_default().retain(|completed| completed != revision);
        self.withdrawn.entry(placement.clone()).or_default().push(revision.clone());
    }
}

/// A ManagedClusterAddOn: this add-on on one cluster.
#[derive(Clone, Debug)]
pub struct Instance {
    pub cluster: ClusterName,
    pub uid: Text,
    pub resource_version: Text,
    pub generation: i64,
    pub deleting: bool,
    /// What has to happen before it goes, once it is deleted.
    pub finalizers: Vec<Text>,
    /// The install strategy that created it; `None` if a user did.
    pub marker: Option<Text>,
    /// The uid of the add-on that owns it.
    pub owner: Option<Text>,
    /// It has owners of another kind.
    pub has_other_owners: bool,
    /// OCM's manager alone has written it, it has no marker, and its spec says nothing.
    pub made_by_ocm: bool,
    pub install_namespace: Text,
    /// The other cluster on which its agent should run.
    pub hosting: Option<Text>,
    /// Those of its annotations that it may have from its cluster.
    pub addon_annotations: BTreeMap<Text, Text>,
    pub overrides: Vec<ConfigRef>,
    /// The version shorthand.
    pub version: Option<Text>,
    pub status: InstanceStatus,
}

impl Instance {
    /// Pre-delete hooks run before it goes.
    pub(crate) fn is_guarded(&self) -> bool {
        self.finalizers.iter().any(|one| **one == *PRE_DELETE_HOOK)
    }

    /// The annotations of its cluster that it does not have, or with another value.
    pub(crate) fn missing_annotations<'a>(
        &self,
        cluster: &'a Cluster,
    ) -> impl Iterator<Item = (&'a Text, &'a Text)> {
        cluster
            .addon_annotations
            .iter()
            .filter(|(key, value)| self.addon_annotations.get(*key) != Some(*value))
    }

    /// It has an override: its own config or version.
    pub(crate) fn has_own(&self) -> bool {
        !self.overrides.is_empty() || self.version.is_some()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct InstanceSummary {
    pub(crate) status: SharedId,
    pub(crate) uid: TextId,
    pub(crate) owner: Option<TextId>,
    pub(crate) install_namespace: TextId,
    pub(crate) hosting: Option<TextId>,
    pub(crate) generation: i64,
    pub(crate) deleting: bool,
    pub(crate) guarded: bool,
    pub(crate) made_by: Maker,
    pub(crate) made_by_ocm: bool,
    pub(crate) has_own: bool,
    pub(crate) soak: SoakMark,
}

/// What an instance's status records about the soak of its revision.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SoakMark {
    pub(crate) healthy: bool,
    /// Since when it has its current health.
    pub(crate) since: Option<Timestamp>,
    /// Since when its workloads were available when the soak began.
    pub(crate) available_since: Option<Timestamp>,
}

impl SoakMark {
    fn of(status: &StatusFields) -> Self {
        let Some(condition) = status.condition(REVISION_HEALTHY) else { return Self::default() };
        let since = condition.message.contains(AVAILABLE_SINCE).then(|| ClockStart::read(&condition.message));
        Self {
            healthy: condition.is_true(),
            since: condition.since,
            available_since: since.flatten().and_then(|start| start.available_since),
        }
    }

    /// The time since which its workloads are available, where that is news: it is to be recorded
    /// when a soak begins, and one that changes afterwards means that they were down in between.
    pub(crate) fn news(self, available_since: Option<Timestamp>) -> Option<Timestamp> {
        available_since.filter(|now| match self.available_since {
            Some(recorded) => recorded != *now,
            None => !self.healthy,
        })
    }

    /// The time since which the hub has contact with its cluster again, where that is within a soak
    /// of at most this long.
    pub(crate) fn returned(self, reachable_since: Option<Timestamp>, soak: Duration) -> Option<Timestamp> {
        let began = self.since.filter(|_| self.healthy)?;
        reachable_since.filter(|back| began < *back && *back < later(began, soak))
    }
}

/// Who created an instance, according to its marker label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maker {
    User,
    Placements,
    /// Another install strategy.
    Strategy,
}

impl Summarised for Instance {
    type Summary = InstanceSummary;

    fn summary(&self) -> InstanceSummary {
        InstanceSummary {
            status: self.status.id(),
            uid: TextId::of(&self.uid),
            owner: self.owner.as_deref().map(TextId::of),
            install_namespace: TextId::of(&self.install_namespace),
            hosting: self.hosting.as_deref().map(TextId::of),
            generation: self.generation,
            deleting: self.deleting,
            guarded: self.is_guarded(),
            made_by: match self.marker.as_deref() {
                None => Maker::User,
                Some("Placements") => Maker::Placements,
                Some(_) => Maker::Strategy,
            },
            made_by_ocm: self.made_by_ocm,
            has_own: self.has_own(),
            soak: SoakMark::of(&self.status),
        }
    }
}

impl ByCluster<Instance> {
    /// Whether pre-delete hooks run before any of them goes.
    pub fn has_guarded(&self) -> bool {
        self.entries().any(|entry| entry.summary.guarded)
    }

    /// The instances that have an override.
    pub fn with_own(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.entries().filter(|entry| entry.summary.has_own).map(|entry| entry.value)
    }
}

/// An instance's status, observed or desired. Most instances of a wave have the same one.
pub type InstanceStatus = Shared<StatusFields>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusFields {
    pub supported: Vec<GroupResource>,
    /// Sorted by kind; several of one kind, on an OCM hub, in the order in which they are listed.
    pub references: Vec<Reference>,
    /// Desired configs that cannot be used. Only on an OCM hub.
    pub unresolved: Vec<ConfigRef>,
    /// The namespace of the agent on its cluster. Ours on an OCM hub, where Aviary renders the
    /// works.
    pub namespace: Option<Text>,
    /// `healthCheck.mode`; the same.
    pub health_check: Option<Text>,
    pub desired_version: Option<Text>,
    pub current_version: Option<Text>,
    pub last_version: Option<Text>,
    /// Ours, and a bounded part of those of others.
    pub conditions: Vec<ObservedCondition>,
    /// The object has more conditions of others, or longer ones, than are kept here.
    pub has_more_conditions: bool,
}

/// One config of an instance: the assigned one, and the one applied in its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    pub kind: GroupResource,
    pub desired: Option<Pin>,
    pub applied: Option<Pin>,
    pub observed_generation: Option<i64>,
}

impl StatusFields {
    /// The assigned pins.
    pub fn told(&self) -> impl Iterator<Item = &Pin> + Clone {
        self.references.iter().filter_map(|reference| reference.desired.as_ref())
    }

    pub fn told_revision(&self) -> Revision {
        Revision::new(self.told().cloned().collect())
    }

    pub fn condition(&self, kind: &str) -> Option<&ObservedCondition> {
        ObservedCondition::find(&self.conditions, kind)
    }
}

/// The hashes annotated on a work, by kind, sorted.
pub type WorkHashes = Shared<Vec<(GroupResource, Hash)>>;

/// A condition that the agent reports about the current generation of a work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// Not reported, or reported about another generation.
    NotYet,
    Yes,
    No {
        message: Text,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_that_no_revision_can_hold_is_told_apart() {
        let nested =
            |levels: usize| (1..levels).fold(serde_json::json!([]), |inner, _| serde_json::json!([inner]));
        assert_eq!(Unkeepable::of(&nested(Unkeepable::MOST_LEVELS), 1024), None);
        assert_eq!(Unkeepable::of(&nested(Unkeepable::MOST_LEVELS + 1), 1024), Some(Unkeepable::TooDeep));
        let brackets = |count: usize| Value::Array(vec![serde_json::json!([]); count]);
        assert_eq!(Unkeepable::of(&brackets(Unkeepable::MOST_VALUES - 1), 1024), None);
        assert_eq!(Unkeepable::of(&brackets(Unkeepable::MOST_VALUES), 1024), Some(Unkeepable::TooDense));
        let most = Unkeepable::MOST_KIB * 1024;
        assert_eq!(Unkeepable::of(&Value::Null, most), None);
        assert_eq!(Unkeepable::of(&Value::Null, most + 1), Some(Unkeepable::TooLarge { kib: 1281 }));
    }
}
