//! The known state of the hub, by add-on, updated by watch events.
//!
//! Owns the state of the manager, and which add-ons have changed. Must not make decisions or send
//! requests to the hub. The response to one of our writes counts until the watch has caught up, and
//! never replaces newer watch events (`progress`).

mod addons;
mod configs;
mod echoes;
mod instances;
mod own;
mod placements;
mod refusals;
mod revisions;
mod snapshot;
mod works;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use aviary_engine::by_cluster::ByCluster;
use aviary_engine::configs::{ConfigRef, GroupResource};
use aviary_engine::hash::Hash;
use aviary_engine::install::{self, Delete};
use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::normalise::{DecisionPart, PlacementPart};
use aviary_engine::observed::{
    AddOn, Cluster, Instance, Options, Record, Refusal, Revisions, Selection, StatusFields, Template, Work,
    WorkState,
};
use aviary_engine::policy::Policy;
use aviary_engine::problem::Problem;
use aviary_engine::served::{Dialect, Served};
use aviary_engine::shared::{Pool, Texts};
use jiff::Timestamp;

use crate::progress::{Booked, Booking};
use crate::revisions::Kept;
use crate::seen::{Change, Key, NamespaceMissing, Title, Version, WatchEvent, WrittenBy};
use configs::HeldConfig;
use echoes::Echoes;
pub(crate) use instances::Departed;
use instances::OverrideCounts;
use refusals::Refusals;
pub(crate) use snapshot::Snapshot;
use works::WorkHome;

/// What must have been listed once before anything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shelf {
    AddOns,
    Instances,
    Works,
    Clusters,
    Placements,
    Decisions,
    Revisions,
}

const SHELVES: [Shelf; 7] = [
    Shelf::AddOns,
    Shelf::Instances,
    Shelf::Works,
    Shelf::Clusters,
    Shelf::Placements,
    Shelf::Decisions,
    Shelf::Revisions,
];

/// One add-on and what concerns it alone. What add-ons share is in [`Stores`].
#[derive(Debug, Default)]
pub(crate) struct AddOnEntry {
    /// Whether the add-on itself exists: its instances may be seen first.
    pub(crate) present: bool,
    pub(crate) resource_version: Text,
    pub(crate) written_by: WrittenBy,
    /// Set if no leader can have written its term.
    pub(crate) odd_term: Option<Problem>,
    pub(crate) title: Title,
    addon: AddOn,
    instances: ByCluster<Instance>,
    works: ByCluster<Vec<Work>>,
    revisions: Revisions,
    /// What reading the add-on found wrong.
    problems: Vec<Problem>,
    instance_problems: BTreeMap<ClusterName, Vec<Problem>>,
    overrides: OverrideCounts,
    /// The configs that the last snapshot looked up.
    looked_up: BTreeSet<ConfigRef>,
    /// Writes that the hub refuses, by cluster, while they are not tried again.
    refused: Arc<BTreeMap<ClusterName, Refusal>>,
    /// Refused before, and being tried again.
    retried: Arc<BTreeMap<ClusterName, Refusal>>,
    /// Clusters whose instance the hub refuses to annotate, while it is not tried again.
    refused_annotations: Arc<BTreeSet<ClusterName>>,
    /// The configs whose status the hub refuses.
    refused_offers: BTreeSet<ConfigRef>,
    /// How often each write was refused, and when last.
    refusals: Refusals,
    /// What the hub has made of our writes.
    echoes: Echoes,
    record: Option<Record>,
    /// When its status was written last.
    pub(crate) status_written: Option<Timestamp>,
    /// The revisions kept under its name, for it or for an earlier add-on.
    kept: BTreeMap<Key, Kept>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindState {
    NotServed,
    /// It is served and being listed.
    Listing {
        namespaced: bool,
    },
    Watched {
        namespaced: bool,
    },
    /// It is served, and the hub does not let us list it. That is retried.
    Forbidden {
        namespaced: bool,
    },
}

/// Writes that are under way: when they began, and the instances that have gone since.
#[derive(Debug)]
struct Writing {
    begun: u64,
    departed: Departed,
}

#[derive(Debug, Default)]
pub(crate) struct Stores {
    addons: BTreeMap<Text, AddOnEntry>,
    clusters: ByCluster<Cluster>,
    placements: BTreeMap<PlacementName, PlacementPart>,
    decisions: BTreeMap<PlacementName, BTreeMap<Text, DecisionPart>>,
    decision_of: HashMap<Key, PlacementName>,
    selections: HashMap<PlacementName, (Selection, Vec<Problem>)>,
    configs: BTreeMap<ConfigRef, HeldConfig>,
    templates: BTreeMap<Text, (Text, Template)>,
    /// The versions that the statuses of AddOnHubConfigs list.
    listed_versions: BTreeMap<ConfigRef, Vec<Text>>,
    /// These are the stores of a manager. Only a manager writes those statuses, which takes a look
    /// at all add-ons, and only a manager learns from the hub which writes it refuses.
    is_manager: bool,
    kinds: BTreeMap<GroupResource, KindState>,
    work_of: HashMap<Key, WorkHome>,
    revision_of: HashMap<Key, Text>,
    bookings: BTreeMap<Relist, Booking>,
    /// Numbers lists and executions in the order in which they began.
    begun: u64,
    /// The writes that are under way for an add-on.
    writing: BTreeMap<Text, Writing>,
    dirty: BTreeSet<Text>,
    /// All namespaces of the hub, for a view that has listed them.
    namespaces: Option<BTreeSet<ClusterName>>,
    without_namespace: Arc<BTreeSet<ClusterName>>,
    policies: BTreeMap<Text, Arc<Policy>>,
    /// What policies apply to may have changed.
    policies_changed: bool,
    summarising: BTreeMap<Text, own::Summarising>,
    options: Options,
    /// What the hub's schemas can hold, once it has been read.
    served: Option<Served>,
    statuses: Pool<StatusFields>,
    states: Pool<WorkState>,
    hashes: Pool<Vec<(GroupResource, Hash)>>,
    /// Uids and namespaces: equal texts that are shared compare fast.
    texts: Texts,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relist {
    Shelf(Shelf),
    Config(GroupResource),
}

impl Stores {
    pub(crate) fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// The stores of a manager, which also writes the versions that AddOnHubConfigs offer.
    pub(crate) fn of_manager(options: Options) -> Self {
        Self { is_manager: true, ..Self::new(options) }
    }

    /// Whether every kind that all add-ons need has been listed once. Before that, nothing may be
    /// decided: unknown is not absent.
    pub(crate) fn are_complete(&self) -> bool {
        let is_listed =
            |shelf: &Shelf| self.bookings.get(&Relist::Shelf(*shelf)).is_some_and(|one| one.is_listed);
        self.served.is_some() && SHELVES.iter().all(is_listed)
    }

    /// Whether the state of every kind of config that an add-on depends on is known. Kinds that
    /// only an instance references, and that its add-on does not list, are not waited for.
    pub(crate) fn are_configs_known(&self, addon: &str) -> bool {
        let known = |kind: &GroupResource| {
            self.kinds.get(kind).is_some_and(|state| !matches!(state, KindState::Listing { .. }))
        };
        self.addons.get(addon).is_none_or(|entry| {
            let spec = &entry.addon;
            let ours = [GroupResource::hub_configs(), GroupResource::deployment_configs()];
            let counts =
                |kind: &&GroupResource| spec.may_override(kind) && (spec.lists(kind) || ours.contains(kind));
            let mut named = spec.referenced_configs().filter(|config| spec.may_name(&config.kind));
            known(GroupResource::templates())
                && known(GroupResource::policies())
                && known(GroupResource::records())
                && named.all(|config| known(&config.kind))
                && entry.overrides.kinds().filter(counts).all(known)
        })
    }

    /// Takes the add-ons that have changed since the last call.
    pub(crate) fn take_dirty(&mut self) -> BTreeSet<Text> {
        std::mem::take(&mut self.dirty)
    }

    pub(crate) fn mark(&mut self, addon: &Text) {
        self.dirty.insert(addon.clone());
    }

    pub(crate) fn mark_all(&mut self) {
        self.dirty.extend(self.addons.keys().cloned());
    }

    pub(crate) fn addons(&self) -> impl Iterator<Item = &Text> {
        self.addons.iter().filter(|(_, entry)| entry.present).map(|(name, _)| name)
    }

    pub(crate) fn note_term(&mut self, addon: &str, odd: Option<Problem>) {
        if let Some(entry) = self.addons.get_mut(addon) {
            entry.odd_term = odd;
        }
    }

    /// Instances of an add-on that does not exist, on clusters that are being deleted.
    pub(crate) fn abandoned(&self, addon: &str) -> Vec<Delete> {
        // OCM's registration removes them on its hubs.
        let is_ocm = self.served.is_some_and(|served| served.dialect == Dialect::Ocm);
        let absent = self.addons.get(addon).filter(|entry| !entry.present && !is_ocm);
        absent.map_or_else(Vec::new, |entry| {
            let mut deletes = install::abandoned(&entry.instances, &self.clusters);
            deletes.retain(|delete| !entry.refused.contains_key(&delete.cluster));
            deletes
        })
    }

    pub(crate) fn entry(&self, addon: &str) -> Option<&AddOnEntry> {
        self.addons.get(addon)
    }

    pub(crate) fn take(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::AddOn(change) => self.addon(change),
            WatchEvent::Instance(change) => self.instance(change),
            WatchEvent::Work(change) => self.work(change),
            WatchEvent::Cluster(change) => self.cluster(change),
            WatchEvent::Placement(change) => self.placement(change),
            WatchEvent::Decision(change) => self.decision(change),
            WatchEvent::Config(kind, change) => self.config(&kind, change),
            WatchEvent::Revision(change) => self.revision(change),
            WatchEvent::NameTaken(taken) => self.name_taken(taken),
            WatchEvent::NameFreed(freed) => self.name_freed(&freed),
            WatchEvent::NamespaceMissing(NamespaceMissing { cluster, .. })
            | WatchEvent::NamespaceGone(cluster) => self.set_namespace(cluster, false),
            WatchEvent::NamespaceFound(cluster) => self.set_namespace(cluster, true),
            WatchEvent::Namespaces(all) => self.set_namespaces(all),
            WatchEvent::WriteRefused(refused) => self.write_refused(refused),
            WatchEvent::RetryWrite(refused) => self.retry_write(&refused),
            WatchEvent::Kinds => self.mark_all(),
            WatchEvent::Served(served) => {
                if self.served.replace(served) != Some(served) {
                    self.mark_all();
                }
            }
            WatchEvent::Echo(echo) => self.echo(echo),
            WatchEvent::SummarisedPolicy(summarised) => self.summarised(summarised),
            WatchEvent::Refused(refused) => self.refused(&refused),
        }
    }

    /// Writes for an add-on begin: their answers may come at any time until they end. Returns the
    /// instances that go meanwhile.
    pub(crate) fn begin_writes(&mut self, addon: &Text) -> Departed {
        self.begun += 1;
        let departed = Departed::default();
        self.writing.insert(addon.clone(), Writing { begun: self.begun, departed: departed.clone() });
        departed
    }

    pub(crate) fn end_writes(&mut self, addon: &str) {
        self.writing.remove(addon);
    }

    pub(crate) fn note_status_written(&mut self, addon: &str, now: Timestamp) {
        if let Some(entry) = self.addons.get_mut(addon) {
            entry.status_written = Some(now);
        }
    }

    fn set_namespace(&mut self, cluster: ClusterName, exists: bool) {
        if let Some(all) = &mut self.namespaces {
            if exists {
                all.insert(cluster.clone());
            } else {
                all.remove(&cluster);
            }
        }
        let missing = Arc::make_mut(&mut self.without_namespace);
        let changed = match exists {
            true => missing.remove(&cluster),
            false => self.clusters.contains_key(&cluster) && missing.insert(cluster),
        };
        if changed {
            self.mark_all();
        }
    }

    fn set_namespaces(&mut self, all: BTreeSet<ClusterName>) {
        let missing = self.clusters.keys().filter(|cluster| !all.contains(cluster)).cloned().collect();
        self.namespaces = Some(all);
        if *self.without_namespace != missing {
            self.without_namespace = Arc::new(missing);
            self.mark_all();
        }
    }

    /// Whether a task should look for the namespace of a cluster: one task for each cluster that
    /// exists.
    pub(crate) fn awaits(&self, missing: &NamespaceMissing) -> bool {
        let NamespaceMissing { cluster, looked_for, .. } = missing;
        self.clusters.contains_key(cluster) && (*looked_for || !self.without_namespace.contains(cluster))
    }

    /// Books a change of a kind that only the watch reports. `all` are the objects that are known.
    fn book_seen<T>(&mut self, of: Relist, change: Change<T>, all: impl Fn(&Self) -> Vec<Key>) -> Booked<T> {
        self.book(of, change, |_, _| None, |_, _| None, all)
    }

    /// Books a change. `version` is the known version of an object, `addon` the add-on that it was
    /// written for, and `all` are the objects that are known.
    fn book<T>(
        &mut self,
        of: Relist,
        change: Change<T>,
        version: impl Fn(&Self, &Key) -> Option<Version>,
        addon: impl Fn(&Key, &T) -> Option<Text>,
        all: impl Fn(&Self) -> Vec<Key>,
    ) -> Booked<T> {
        let moment = match &change {
            Change::Begin => {
                self.begun += 1;
                self.begun
            }
            Change::Written(object, value) => {
                let writing = addon(&object.key, value).and_then(|addon| self.writing.get(&addon));
                writing.map_or(self.begun, |writing| writing.begun)
            }
            _ => 0,
        };
        let mut booking = self.bookings.remove(&of).unwrap_or_default();
        let was_listed = booking.is_listed;
        let booked = booking.book(change, moment, |key| version(self, key), || all(self));
        if booking.is_listed && !was_listed {
            self.mark_all();
        }
        self.bookings.insert(of, booking);
        booked
    }
}
