//! The snapshot: everything about one add-on at one moment, as plain values in one model.
//!
//! Filled by [`crate::normalise`] from whatever dialect the objects were written in. What is not
//! needed for a decision is not here: a store that keeps these values keeps no manifests, no
//! managed fields, no spelling variants.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::by_cluster::{ByCluster, Summarised};
use crate::configs::{ConfigRef, GroupResource, Pin, Revision};
use crate::hash::Hash;
use crate::limit::Limit;
use crate::name::{self, ClusterName, PlacementName, Text, TextId, Word};
use crate::problem::Problem;
use crate::reason::ConditionReason;
use crate::selector::Selector;
use crate::shared::{Shared, SharedId};

/// One add-on and all that bears on it.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub addon: AddOn,
    pub clusters: ByCluster<Cluster>,
    pub instances: ByCluster<Instance>,
    pub works: ByCluster<Vec<Work>>,
    /// Placements that exist. One that is listed and not here is unknown, which is not the same as
    /// empty.
    pub placements: BTreeMap<PlacementName, Selection>,
    pub configs: BTreeMap<ConfigRef, Lookup>,
    /// The templates whose `addonName` is this add-on.
    pub templates: Vec<Template>,
    pub revisions: Revisions,
    /// Clusters of which the hub has said that it has no namespace for them.
    pub without_namespace: Arc<BTreeSet<ClusterName>>,
    /// Clusters for which the hub refused a write. It is not tried again while it is here.
    pub refused: Arc<BTreeMap<ClusterName, Refusal>>,
    /// AddOnHubConfigs whose status is the manager's to keep; none where nobody writes it.
    pub offers: BTreeMap<ConfigRef, Offers>,
    /// What normalising found wrong.
    pub problems: Vec<Problem>,
    pub options: Options,
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
}

impl RefusedWrite {
    pub fn object(self) -> &'static str {
        match self {
            Self::Create => "the new instance",
            Self::Status => "the status of the instance",
            Self::Work => "the work",
        }
    }
}

/// The versions of an AddOnHubConfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// What its status lists.
    pub listed: Vec<Text>,
    /// The versions of the other add-ons that reference it.
    pub others: BTreeMap<Text, Vec<Text>>,
}

impl Observed {
    /// Whether we render this add-on's works from templates, or somebody else writes them.
    pub fn renders_templates(&self) -> bool {
        self.addon.renders_templates(self.templates.iter())
    }

    /// The content that a hash pins: from the kept revisions, else from a live object that still
    /// has that very content.
    pub fn content(&self, pin: &Pin) -> Option<&Arc<Value>> {
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

/// How the manager was started, as far as decisions depend on it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespaces from which any instance may take configs.
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

/// Deleting more than this at once needs a person's word. Both must be passed.
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
    pub deleting: bool,
    /// Annotated `lifecycle: self`: left alone.
    pub self_managed: bool,
    pub allow_deletions: Option<usize>,
    pub defaults: Vec<ConfigRef>,
    /// `spec.supportedConfigs`, where given.
    pub supported: Option<Vec<GroupResource>>,
    pub strategy: InstallStrategy,
    pub status: AddOnStatus,
}

impl AddOn {
    /// Whether we render its works from templates, given those that are for it.
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

    /// Whether a config of this kind may be looked at because somebody names it: one of the core
    /// kinds only where the author of the add-on lists it, and Secrets never.
    pub fn may_name(&self, kind: &GroupResource) -> bool {
        !kind.is_secrets() && (!kind.group.is_empty() || self.lists(kind))
    }

    /// Whether one that an instance names may be looked at, as far as the add-on tells.
    pub fn may_override(&self, kind: &GroupResource) -> bool {
        self.may_name(kind) && (self.supported.is_none() || self.lists(kind))
    }
}

/// Which clusters get the add-on.
#[derive(Clone, Debug, Default)]
pub enum InstallStrategy {
    #[default]
    Manual,
    Labels(Selector),
    Placements(Vec<PlacementSpec>),
    /// Cannot be read: nothing is created, nothing is deleted.
    Unusable(Problem),
}

impl InstallStrategy {
    pub fn placements(&self) -> &[PlacementSpec] {
        match self {
            Self::Placements(placements) => placements,
            _ => &[],
        }
    }

    /// The value of the marker label on instances that this strategy makes.
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
pub struct PlacementSpec {
    pub name: PlacementName,
    pub configs: Vec<ConfigRef>,
    /// The version shorthand of `addonTemplate`.
    pub version: Option<Text>,
    pub install_namespace: Option<Text>,
    pub rollout: Rollout,
    /// Its rollout strategy cannot be used: nothing but known good installs moves until it is
    /// fixed.
    pub fault: Option<Problem>,
}

/// A rollout strategy in the one form that all dialects come down to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    pub pace: Pace,
    /// The placement whose clusters must have a revision applied and healthy first.
    pub canary: Option<PlacementName>,
    /// Decision groups that go before all others, in this order.
    pub mandatory: Vec<GroupKey>,
    pub max_failures: Option<Limit>,
    pub progress_deadline: Option<Duration>,
    pub min_success_time: Duration,
    pub paused: bool,
}

/// How many clusters may be in flight at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    #[default]
    AllAtOnce,
    Rolling(Limit),
    /// As many as the placement puts into one decision group, else the default budget.
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

/// What the add-on's status says, as far as it is memory and not derived anew.
#[derive(Clone, Debug, Default)]
pub struct AddOnStatus {
    /// The generation of the add-on that the rest speaks of.
    pub observed_generation: Option<i64>,
    pub placements: BTreeMap<PlacementName, Recorded>,
    pub supported_versions: Vec<Text>,
    pub default_version: Option<Text>,
    pub conditions: Vec<Condition>,
}

/// What is remembered of a placement's rollout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    pub desired: Option<Revision>,
    pub known_good: Option<Revision>,
    pub applied: Option<Revision>,
    pub conditions: Vec<Condition>,
}

/// A condition, in any status.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    pub kind: Word,
    /// `True`, `False` or `Unknown`.
    pub status: Word,
    pub reason: ConditionReason,
    pub message: Word,
    pub since: Option<Timestamp>,
    pub observed_generation: Option<i64>,
}

impl Condition {
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
    /// Annotated to get no add-on by itself.
    pub opted_out: bool,
    /// Since when the hub reports it unreachable.
    pub unreachable: Option<Unreachable>,
}

/// What the rules may know of a cluster itself. Part of the facts by which clusters are sorted into
/// cohorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterSummary {
    pub deleting: bool,
    pub opted_out: bool,
    pub reachable: bool,
}

impl Summarised for Cluster {
    type Summary = ClusterSummary;

    fn summary(&self) -> ClusterSummary {
        let Self { deleting, opted_out, unreachable, name: _, labels: _ } = self;
        ClusterSummary { deleting: *deleting, opted_out: *opted_out, reachable: unreachable.is_none() }
    }
}

/// The hub has no contact with the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unreachable {
    pub since: Option<Timestamp>,
}

/// A placement's decisions, complete or not.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The count that the placement publishes, if it publishes one.
    pub published: Option<usize>,
    /// The placement says beside the count how far it could be satisfied: somebody has counted.
    /// Then 0 is a count, too.
    pub counted: bool,
    /// How many clusters the placement puts into one decision group.
    pub group_size: Option<Limit>,
    /// Decision groups in their order; without groups, one. No cluster is in two of them.
    pub groups: Vec<DecisionGroup>,
    /// How many names were decided that no cluster can have. They are left out, and counted where
    /// counts are compared.
    pub refused: usize,
}

#[derive(Clone, Debug, Default)]
pub struct DecisionGroup {
    pub name: Text,
    pub clusters: Vec<ClusterName>,
}

impl Selection {
    pub fn clusters(&self) -> impl Iterator<Item = &ClusterName> {
        self.groups.iter().flat_map(|group| &group.clusters)
    }

    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.clusters.len()).sum()
    }

    /// The published count and what the decisions hold, where the two do not agree: its decisions
    /// are being rewritten.
    pub fn in_motion(&self) -> Option<(usize, usize)> {
        let (published, decided) = (self.published.unwrap_or(0), self.len() + self.refused);
        let says = published > 0 || (self.counted && self.published.is_some());
        (says && published != decided).then_some((published, decided))
    }

    /// Nobody has said yet what it selects: no count and no decision. What clusters do does not
    /// hang on it; what people are told does.
    pub(crate) fn is_undecided(&self) -> bool {
        self.published.is_none() && self.refused == 0 && self.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.clusters.is_empty())
    }
}

/// What is known of a referenced config.
#[derive(Clone, Debug)]
pub enum Lookup {
    Found(LiveConfig),
    Missing,
    /// The hub serves no such resource.
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
    pub content: Arc<Value>,
    pub unkeepable: Option<Unkeepable>,
}

/// Why a content cannot be kept as a revision, and so be told to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unkeepable {
    #[error("it has {kib} KiB of content, more than {}", Self::MOST_KIB)]
    TooLarge { kib: usize },
    #[error("its content nests deeper than {} levels", Self::MOST_LEVELS)]
    TooDeep,
    #[error("its content has more than {} values", Self::MOST_VALUES)]
    TooDense,
}

impl Unkeepable {
    /// The largest content, in KiB: an API server takes objects of 1.5 MiB, and a revision is a
    /// little more than its content.
    pub(crate) const MOST_KIB: usize = 1280;
    /// The most levels: a revision has a few more, and many a JSON parser ends soon after a
    /// hundred.
    pub const MOST_LEVELS: usize = 90;

    /// The most values, counting every list, map, text and number. A value takes up to a hundred
    /// bytes in memory, even where it has two in the text.
    pub const MOST_VALUES: usize = 100_000;

    /// What is wrong with a content of this many bytes.
    pub fn of(content: &Value, bytes: usize) -> Option<Self> {
        if bytes > Self::MOST_KIB * 1024 {
            return Some(Self::TooLarge { kib: bytes.div_ceil(1024) });
        }
        let mut pending = vec![(content, 1)];
        let mut values = 0;
        while let Some((value, level)) = pending.pop() {
            values += 1;
            if values + pending.len() > Self::MOST_VALUES {
                return Some(Self::TooDense);
            }
            match value {
                Value::Array(_) | Value::Object(_) if level > Self::MOST_LEVELS => {
                    return Some(Self::TooDeep);
                }
                Value::Array(items) => pending.extend(items.iter().map(|item| (item, level + 1))),
                Value::Object(fields) => pending.extend(fields.values().map(|field| (field, level + 1))),
                _ => {}
            }
        }
        None
    }
}

/// An AddOnTemplate of this add-on.
#[derive(Clone, Debug)]
pub struct Template {
    pub name: Text,
    pub version: Option<Text>,
    pub hash: Hash,
    pub generation: i64,
    pub content: Arc<Value>,
    pub unkeepable: Option<Unkeepable>,
}

impl Template {
    pub fn pin(&self) -> Pin {
        let config =
            ConfigRef { kind: GroupResource::templates().clone(), namespace: None, name: self.name.clone() };
        Pin { config: Arc::new(config), hash: self.hash.clone() }
    }
}

/// Contents kept by hash, and what each placement completed.
#[derive(Clone, Debug, Default)]
pub struct Revisions {
    pub contents: BTreeMap<Hash, Arc<Value>>,
    /// Oldest first.
    pub completed: BTreeMap<PlacementName, Vec<Revision>>,
    /// Completed, and then rolled back from: to want one of them again is an upgrade like any
    /// other.
    pub withdrawn: BTreeMap<PlacementName, Vec<Revision>>,
}

impl Revisions {
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
    /// Which install strategy made it; none: a user did.
    pub marker: Option<Text>,
    /// The uid of the add-on that owns it.
    pub owner: Option<Text>,
    pub install_namespace: Text,
    pub overrides: Vec<ConfigRef>,
    /// The version shorthand.
    pub version: Option<Text>,
    pub status: InstanceStatus,
}

impl Instance {
    /// Its user chose a config or a version for it.
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
    pub(crate) generation: i64,
    pub(crate) deleting: bool,
    pub(crate) made_by: Maker,
    pub(crate) has_own: bool,
}

/// Who made an instance, as its marker label says.
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
            generation: self.generation,
            deleting: self.deleting,
            made_by: match self.marker.as_deref() {
                None => Maker::User,
                Some("Placements") => Maker::Placements,
                Some(_) => Maker::Strategy,
            },
            has_own: self.has_own(),
        }
    }
}

impl ByCluster<Instance> {
    /// Those whose users chose a config or a version for them.
    pub fn with_own(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.entries().filter(|entry| entry.summary.has_own).map(|entry| entry.value)
    }
}

/// An instance's status, both as it was found and as it should be. The instances of one wave mostly
/// have the same.
pub type InstanceStatus = Shared<StatusFields>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusFields {
    pub supported: Vec<GroupResource>,
    /// Sorted by kind, at most one of each.
    pub references: Vec<Reference>,
    pub desired_version: Option<Text>,
    pub current_version: Option<Text>,
    pub last_version: Option<Text>,
    pub conditions: Vec<Condition>,
}

/// One kind of config of an instance: what it was told to have, and what it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    pub kind: GroupResource,
    pub desired: Option<Pin>,
    pub applied: Option<Pin>,
    pub observed_generation: Option<i64>,
}

impl StatusFields {
    /// What the instance was told to have.
    pub fn told(&self) -> impl Iterator<Item = &Pin> {
        self.references.iter().filter_map(|reference| reference.desired.as_ref())
    }

    pub fn told_revision(&self) -> Revision {
        Revision::new(self.told().cloned().collect())
    }

    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        Condition::find(&self.conditions, kind)
    }
}

/// A ManifestWork of the add-on, without its manifests.
#[derive(Clone, Debug)]
pub struct Work {
    pub uid: Text,
    pub resource_version: Text,
    pub generation: i64,
    /// Uid of the owning instance.
    pub owner: Option<Text>,
    /// Our mark of the manifests as we wrote them.
    pub rendered_digest: Option<Text>,
    /// The digest of the manifests as they are.
    pub digest: Option<Text>,
    /// What its annotations say it was made from; `None` when they say nothing, or contradict each
    /// other.
    pub hashes: Option<WorkHashes>,
    /// Its fields can be read and set as if they were the work's own.
    pub state: Shared<WorkState>,
}

/// A cluster's works in short. Nearly every cluster has one.
#[derive(Clone, Copy, Debug)]
pub enum WorksSummary {
    None,
    One(WorkSummary),
    Several,
}

#[derive(Clone, Copy, Debug)]
pub struct WorkSummary {
    pub(crate) state: SharedId,
    pub(crate) hashes: Option<SharedId>,
    pub(crate) owner: Option<TextId>,
    /// Nobody has changed it since it was rendered.
    pub(crate) untouched: bool,
}

impl Summarised for Vec<Work> {
    type Summary = WorksSummary;

    fn summary(&self) -> WorksSummary {
        match self.as_slice() {
            [] => WorksSummary::None,
            [one] => WorksSummary::One(one.summary()),
            _ => WorksSummary::Several,
        }
    }
}

impl Work {
    pub(crate) fn summary(&self) -> WorkSummary {
        WorkSummary {
            state: self.state.id(),
            hashes: self.hashes.as_ref().map(Shared::id),
            owner: self.owner.as_deref().map(TextId::of),
            untouched: self.is_untouched(),
        }
    }

    /// Its manifests are still those that we wrote.
    pub(crate) fn is_untouched(&self) -> bool {
        match (&self.rendered_digest, &self.digest) {
            (Some(written), Some(found)) => name::same(written, found),
            _ => false,
        }
    }
}

/// What of a work is not its cluster's own: across a fleet mostly the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkState {
    pub name: Text,
    pub deleting: bool,
    pub version: Option<Text>,
    /// Our mark of the inputs it was rendered from.
    pub rendered_from: Option<Text>,
    pub applied: Seen,
    pub available: Seen,
}

impl Deref for Work {
    type Target = WorkState;

    fn deref(&self) -> &WorkState {
        &self.state
    }
}

impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut WorkState {
        &mut self.state
    }
}

/// The hashes annotated on a work, by kind, sorted.
pub type WorkHashes = Shared<Vec<(GroupResource, Hash)>>;

/// A condition that the cluster's agent reports, as far as it speaks of the work as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// Not reported, or reported of another generation.
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
