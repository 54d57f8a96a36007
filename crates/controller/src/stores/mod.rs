//! Everything that is known of the hub, by add-on: the snapshots that plans are made from, kept up to date piece by piece.
//!
//! Owns the memory of the manager and which add-ons have news. Must not decide anything, and must not talk to the hub. An object is never
//! replaced by an older state of itself: the answer to our own write stands until the watch has caught up.

mod addons;
mod configs;
mod instances;
mod placements;
mod revisions;
mod works;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aviary_api::{Placement, PlacementDecision};
use aviary_engine::by_cluster::ByCluster;
use aviary_engine::configs::{ConfigRef, GroupResource};
use aviary_engine::hash::Hash;
use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::observed::{
    Cluster, LiveConfig, Observed, Options, Selection, StatusFields, Template, WorkState,
};
use aviary_engine::problem::Problem;
use aviary_engine::shared::{Pool, Texts};

use crate::revisions::Kept;
use crate::seen::{Change, Key, News, Title};
use instances::Overrides;

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

/// One add-on and all that bears on it, but for what add-ons share.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Whether the add-on itself is there: its instances may be seen first.
    pub(crate) present: bool,
    pub(crate) resource_version: Text,
    pub(crate) term: u64,
    observed: Observed,
    /// What reading the add-on found wrong.
    problems: Vec<Problem>,
    instance_problems: BTreeMap<ClusterName, Vec<Problem>>,
    overrides: Overrides,
    /// How its author calls it.
    pub(crate) title: Title,
    /// What is kept under its name, for it or for an earlier one.
    kept: BTreeMap<Key, Kept>,
}

/// What is known of a kind of config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unknown,
    /// It is served and being listed.
    Listing {
        namespaced: bool,
    },
    Watched {
        namespaced: bool,
    },
    /// It is served, and the hub does not let us list it. That is tried again.
    Forbidden {
        namespaced: bool,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Stores {
    addons: BTreeMap<Text, Known>,
    clusters: ByCluster<Cluster>,
    placements: BTreeMap<PlacementName, Placement>,
    decisions: BTreeMap<PlacementName, BTreeMap<Text, PlacementDecision>>,
    decision_of: HashMap<Key, PlacementName>,
    selections: HashMap<PlacementName, (Selection, Vec<Problem>)>,
    configs: BTreeMap<ConfigRef, LiveConfig>,
    templates: BTreeMap<Text, (Text, Template)>,
    /// The versions that the statuses of AddOnHubConfigs offer, and those that add-ons have.
    offers: BTreeMap<ConfigRef, Vec<Text>>,
    offered: BTreeMap<Text, (Vec<ConfigRef>, Vec<Text>)>,
    kinds: BTreeMap<GroupResource, Kind>,
    work_of: HashMap<Key, Text>,
    revision_of: HashMap<Key, Text>,
    /// What a list that is under way has brought so far.
    relisting: BTreeMap<Relist, BTreeSet<Key>>,
    listed: BTreeSet<Shelf>,
    dirty: BTreeSet<Text>,
    options: Options,
    statuses: Pool<StatusFields>,
    states: Pool<WorkState>,
    hashes: Pool<Vec<(GroupResource, Hash)>>,
    /// Uids of owners and owned, namespaces: what is one text is equal without a look at it.
    texts: Texts,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relist {
    Shelf(Shelf),
    Config(GroupResource),
}

/// Whether `new` may replace `old`: resource versions are numbers that rise.
pub(crate) fn is_newer(new: &str, old: &str) -> bool {
    match (new.parse::<u64>(), old.parse::<u64>()) {
        (Ok(new), Ok(old)) => new >= old,
        _ => true,
    }
}

impl Stores {
    pub(crate) fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Whether everything has been listed once that all add-ons rest on. Before that nothing may be decided: what is not known is not absent.
    pub(crate) fn are_complete(&self) -> bool {
        SHELVES.iter().all(|shelf| self.listed.contains(shelf))
    }

    /// Whether the hub has said of every kind of config that bears on an add-on whether it serves it, and listed those that it does. What an
    /// instance asks for and its add-on does not know holds nothing up.
    pub(crate) fn is_told(&self, addon: &str) -> bool {
        let told = |kind: &GroupResource| {
            self.kinds.get(kind).is_some_and(|kind| !matches!(kind, Kind::Listing { .. }))
        };
        self.addons.get(addon).is_none_or(|known| {
            let spec = &known.observed.addon;
            let ours = [GroupResource::hub_configs(), GroupResource::deployment_configs()];
            let counts =
                |kind: &&GroupResource| spec.may_override(kind) && (spec.lists(kind) || ours.contains(kind));
            let mut named = spec.referenced_configs().filter(|config| spec.may_name(&config.kind));
            told(GroupResource::templates())
                && named.all(|config| told(&config.kind))
                && known.overrides.kinds().filter(counts).all(told)
        })
    }

    /// The add-ons that have news since the last call.
    pub(crate) fn take_dirty(&mut self) -> BTreeSet<Text> {
        std::mem::take(&mut self.dirty)
    }

    pub(crate) fn mark(&mut self, addon: &Text) {
        self.dirty.insert(addon.clone());
    }

    fn mark_all(&mut self) {
        self.dirty.extend(self.addons.keys().cloned());
    }

    /// The add-ons that are there.
    pub(crate) fn addons(&self) -> impl Iterator<Item = &Text> {
        self.addons.iter().filter(|(_, known)| known.present).map(|(name, _)| name)
    }

    pub(crate) fn known(&self, addon: &str) -> Option<&Known> {
        self.addons.get(addon)
    }

    /// Takes in something that was seen.
    pub(crate) fn take(&mut self, news: News) {
        match news {
            News::AddOn(change) => self.addon(change),
            News::Instance(change) => self.instance(change),
            News::Work(change) => self.work(change),
            News::Cluster(change) => self.cluster(change),
            News::Placement(change) => self.placement(change),
            News::Decision(change) => self.decision(change),
            News::Config(kind, change) => self.config(&kind, change),
            News::Revision(change) => self.revision(change),
            News::Taken(taken) => self.taken(taken),
            News::Freed(freed) => self.freed(&freed),
            News::Kinds => self.mark_all(),
            // What was seen before stays; whoever follows decides what to make of it.
            News::Refused(refused) => self.refused(&refused),
        }
    }

    /// Books a change of a list; gives back the object to put, or the keys that are gone.
    fn book<T>(&mut self, of: &Relist, change: Change<T>) -> Booked<T> {
        match change {
            Change::Begin => {
                self.relisting.insert(of.clone(), BTreeSet::new());
                Booked::Nothing
            }
            Change::Put(key, object) => {
                if let Some(seen) = self.relisting.get_mut(of) {
                    seen.insert(key.clone());
                }
                Booked::Put(key, object)
            }
            Change::Unreadable(key) => {
                if let Some(seen) = self.relisting.get_mut(of) {
                    seen.insert(key);
                }
                Booked::Nothing
            }
            Change::Gone(key) => Booked::Gone(vec![key]),
            Change::End => Booked::Complete(self.relisting.remove(of).unwrap_or_default()),
        }
    }

    fn finish(&mut self, shelf: Shelf) {
        if self.listed.insert(shelf) {
            self.mark_all();
        }
    }

    /// Looks at an add-on as it is now. Nothing is copied: what add-ons share is lent for as long as the look takes.
    pub(crate) fn observe<T>(&mut self, addon: &Text, look: impl FnOnce(&Observed) -> T) -> Option<T> {
        let mut known = self.addons.remove(addon)?;
        if !known.present {
            self.addons.insert(addon.clone(), known);
            return None;
        }
        let observed = &mut known.observed;
        observed.options = self.options.clone();
        observed.problems.clone_from(&known.problems);
        observed.problems.extend(known.instance_problems.values().flatten().cloned());
        observed.templates = self
            .templates
            .values()
            .filter(|(of, _)| of == addon)
            .map(|(_, template)| template.clone())
            .collect();
        self.select(observed);
        self.look_up(observed);
        observed.clusters = std::mem::take(&mut self.clusters);
        let seen = look(observed);
        self.clusters = std::mem::take(&mut observed.clusters);
        self.addons.insert(addon.clone(), known);
        Some(seen)
    }
}

enum Booked<T> {
    Nothing,
    Put(Key, T),
    Gone(Vec<Key>),
    Complete(BTreeSet<Key>),
}
