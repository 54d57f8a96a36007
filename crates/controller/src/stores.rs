//! Everything that is known of the hub, by add-on: the snapshots that plans are made from, kept up to date piece by piece.
//!
//! Owns the memory of the manager and which add-ons have news. Must not decide anything, and must not talk to the hub. An object is never
//! replaced by an older state of itself: the answer to our own write stands until the watch has caught up.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use aviary_api::{Placement, PlacementDecision};
use aviary_engine::configs::{ConfigRef, GroupResource, Revision};
use aviary_engine::hash::Hash;
use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::normalise;
use aviary_engine::observed::{
    Cluster, LiveConfig, Lookup, Observed, Options, Selection, StatusFields, Template, WorkState,
};
use aviary_engine::problem::Problem;
use aviary_engine::shared::Pool;

use crate::revisions::{Kept, What};
use crate::seen::{Change, Key, News, SeenAddOn, SeenConfig, SeenInstance, SeenWork, placement_of};

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
    /// Completed revisions by number, and which objects keep contents.
    completed: BTreeMap<Key, (i64, PlacementName, Revision)>,
    contents: BTreeMap<Key, Hash>,
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
}

#[derive(Debug, Default)]
pub(crate) struct Stores {
    addons: BTreeMap<Text, Known>,
    clusters: BTreeMap<ClusterName, Arc<Cluster>>,
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

    /// Whether everything has been listed once. Before that nothing may be decided: what is not known is not absent.
    pub(crate) fn are_complete(&self) -> bool {
        SHELVES.iter().all(|shelf| self.listed.contains(shelf))
            && !self.kinds.values().any(|kind| matches!(kind, Kind::Listing { .. }))
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

    /// Every kind of config that is referenced anywhere.
    pub(crate) fn referenced_kinds(&self) -> BTreeSet<GroupResource> {
        let mut kinds = BTreeSet::from([GroupResource::templates().clone()]);
        for known in self.addons.values() {
            kinds.extend(known.observed.addon.referenced_configs().map(|config| config.kind.clone()));
            let overrides = known.observed.instances.values().flat_map(|instance| &instance.overrides);
            kinds.extend(overrides.map(|config| config.kind.clone()));
        }
        kinds
    }

    pub(crate) fn kinds(&self) -> &BTreeMap<GroupResource, Kind> {
        &self.kinds
    }

    /// Notes what a kind is, or that nobody asks for it any more.
    pub(crate) fn set_kind(&mut self, kind: &GroupResource, what: Option<Kind>) {
        let changed = match what {
            Some(what) => self.kinds.insert(kind.clone(), what) != Some(what),
            None => {
                self.configs.retain(|config, _| config.kind != *kind);
                self.relisting.remove(&Relist::Config(kind.clone()));
                self.kinds.remove(kind).is_some()
            }
        };
        if changed {
            self.mark_all();
        }
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
            News::Kinds => self.mark_all(),
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
            Change::Gone(key) => Booked::Gone(vec![key]),
            Change::End => Booked::Complete(self.relisting.remove(of).unwrap_or_default()),
        }
    }

    fn finish(&mut self, shelf: Shelf) {
        if self.listed.insert(shelf) {
            self.mark_all();
        }
    }

    fn addon(&mut self, change: Change<Box<SeenAddOn>>) {
        let gone = match self.book(&Relist::Shelf(Shelf::AddOns), change) {
            Booked::Nothing => return,
            Booked::Put(key, seen) => return self.put_addon(&key.name, *seen),
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::AddOns);
                let there = self.addons.iter().filter(|(_, known)| known.present);
                let keys = there.map(|(name, _)| Key { namespace: "".into(), name: name.clone() });
                keys.filter(|key| !seen.contains(key)).collect()
            }
        };
        for key in gone {
            if let Some(known) = self.addons.get_mut(&key.name) {
                known.present = false;
                known.observed.addon = Default::default();
            }
            self.offered.remove(&key.name);
            self.dirty.insert(key.name);
        }
    }

    fn put_addon(&mut self, name: &Text, seen: SeenAddOn) {
        let known = self.addons.entry(name.clone()).or_default();
        if known.present
            && known.observed.addon.uid == seen.addon.uid
            && !is_newer(&seen.resource_version, &known.resource_version)
        {
            return;
        }
        let SeenAddOn { addon, problems, resource_version, term } = seen;
        known.present = true;
        known.resource_version = resource_version;
        known.term = term;
        known.problems = problems;
        known.observed.addon = addon;
        self.mark(name);
    }

    fn instance(&mut self, change: Change<Box<SeenInstance>>) {
        let gone = match self.book(&Relist::Shelf(Shelf::Instances), change) {
            Booked::Nothing => return,
            Booked::Put(key, seen) => return self.put_instance(&key.name, *seen),
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::Instances);
                let all = self.addons.iter().flat_map(|(addon, known)| {
                    known
                        .observed
                        .instances
                        .keys()
                        .map(|cluster| Key { namespace: cluster.as_str().into(), name: addon.clone() })
                });
                all.filter(|key| !seen.contains(key)).collect()
            }
        };
        for key in gone {
            if let (Ok(cluster), Some(known)) =
                (ClusterName::parse(&key.namespace), self.addons.get_mut(&key.name))
            {
                known.observed.instances.remove(&cluster);
                known.instance_problems.remove(&cluster);
            }
            self.dirty.insert(key.name);
        }
    }

    fn put_instance(&mut self, addon: &Text, seen: SeenInstance) {
        let SeenInstance { mut instance, problems } = seen;
        instance.status = self.statuses.share(instance.status);
        let known = self.addons.entry(addon.clone()).or_default();
        let cluster = instance.cluster.clone();
        let old = known.observed.instances.get(&cluster);
        if old.is_some_and(|old| {
            old.uid == instance.uid && !is_newer(&instance.resource_version, &old.resource_version)
        }) {
            return;
        }
        if problems.is_empty() {
            known.instance_problems.remove(&cluster);
        } else {
            known.instance_problems.insert(cluster.clone(), problems);
        }
        known.observed.instances.insert(cluster, Arc::new(instance));
        self.mark(addon);
    }

    fn work(&mut self, change: Change<Box<SeenWork>>) {
        let gone = match self.book(&Relist::Shelf(Shelf::Works), change) {
            Booked::Nothing => return,
            Booked::Put(key, seen) => return self.put_work(key, *seen),
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::Works);
                self.work_of.keys().filter(|key| !seen.contains(key)).cloned().collect()
            }
        };
        for key in gone {
            self.drop_work(&key);
        }
    }

    fn drop_work(&mut self, key: &Key) {
        let Some(addon) = self.work_of.remove(key) else { return };
        let Ok(cluster) = ClusterName::parse(&key.namespace) else { return };
        if let Some(known) = self.addons.get_mut(&addon)
            && let Some(works) = known.observed.works.get_mut(&cluster)
        {
            let works = Arc::make_mut(works);
            works.retain(|work| work.name != key.name);
            if works.is_empty() {
                known.observed.works.remove(&cluster);
            }
        }
        self.mark(&addon);
    }

    fn put_work(&mut self, key: Key, seen: SeenWork) {
        let SeenWork { addon, cluster, mut work } = seen;
        if self.work_of.get(&key).is_some_and(|before| *before != addon) {
            self.drop_work(&key);
        }
        work.state = self.states.share(work.state);
        work.hashes = work.hashes.map(|hashes| self.hashes.share(hashes));
        let known = self.addons.entry(addon.clone()).or_default();
        let works = Arc::make_mut(known.observed.works.entry(cluster).or_default());
        match works.iter_mut().find(|known| known.name == work.name) {
            Some(old) if old.uid == work.uid && !is_newer(&work.resource_version, &old.resource_version) => {
                return;
            }
            Some(old) => *old = work,
            None => {
                works.push(work);
                works.sort_by(|a, b| a.name.cmp(&b.name));
            }
        }
        self.work_of.insert(key, addon.clone());
        self.mark(&addon);
    }

    fn cluster(&mut self, change: Change<Box<Cluster>>) {
        let gone: Vec<Key> = match self.book(&Relist::Shelf(Shelf::Clusters), change) {
            Booked::Nothing => return,
            Booked::Put(_, cluster) => {
                self.clusters.insert(cluster.name.clone(), Arc::new(*cluster));
                return self.mark_all();
            }
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::Clusters);
                let all =
                    self.clusters.keys().map(|name| Key { namespace: "".into(), name: name.as_str().into() });
                all.filter(|key| !seen.contains(key)).collect()
            }
        };
        for key in gone {
            if let Ok(cluster) = ClusterName::parse(&key.name) {
                self.clusters.remove(&cluster);
            }
        }
        self.mark_all();
    }

    fn placement(&mut self, change: Change<Box<Placement>>) {
        let name_of = |key: &Key| PlacementName::new(&key.namespace, &key.name);
        let gone = match self.book(&Relist::Shelf(Shelf::Placements), change) {
            Booked::Nothing => return,
            Booked::Put(key, placement) => {
                let name = name_of(&key);
                self.placements.insert(name.clone(), *placement);
                return self.reselect(&name);
            }
            Booked::Gone(keys) => keys.iter().map(name_of).collect(),
            Booked::Complete(seen) => {
                self.finish(Shelf::Placements);
                let seen: BTreeSet<PlacementName> = seen.iter().map(name_of).collect();
                self.placements.keys().filter(|name| !seen.contains(name)).cloned().collect::<Vec<_>>()
            }
        };
        for name in gone {
            self.placements.remove(&name);
            self.reselect(&name);
        }
    }

    fn decision(&mut self, change: Change<Box<PlacementDecision>>) {
        let gone = match self.book(&Relist::Shelf(Shelf::Decisions), change) {
            Booked::Nothing => return,
            Booked::Put(key, decision) => {
                self.drop_decision(&key);
                if let Some(placement) = placement_of(&decision) {
                    self.decision_of.insert(key.clone(), placement.clone());
                    self.decisions.entry(placement.clone()).or_default().insert(key.name, *decision);
                    self.reselect(&placement);
                }
                return;
            }
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::Decisions);
                self.decision_of.keys().filter(|key| !seen.contains(key)).cloned().collect()
            }
        };
        for key in gone {
            self.drop_decision(&key);
        }
    }

    fn drop_decision(&mut self, key: &Key) {
        let Some(placement) = self.decision_of.remove(key) else { return };
        if let Some(decisions) = self.decisions.get_mut(&placement) {
            decisions.remove(&key.name);
            if decisions.is_empty() {
                self.decisions.remove(&placement);
            }
        }
        self.reselect(&placement);
    }

    /// What a placement selects has changed.
    fn reselect(&mut self, placement: &PlacementName) {
        self.selections.remove(placement);
        let concerned = |known: &Known| {
            let listed = known.observed.addon.strategy.placements();
            listed
                .iter()
                .any(|spec| spec.name == *placement || spec.rollout.canary.as_ref() == Some(placement))
        };
        let concerned: Vec<Text> =
            self.addons.iter().filter(|(_, known)| concerned(known)).map(|(name, _)| name.clone()).collect();
        self.dirty.extend(concerned);
    }

    fn config(&mut self, kind: &GroupResource, change: Change<SeenConfig>) {
        let of = Relist::Config(kind.clone());
        let reference = |key: &Key| ConfigRef {
            kind: kind.clone(),
            namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: key.name.clone(),
        };
        let gone = match self.book(&of, change) {
            Booked::Nothing => return,
            Booked::Put(key, seen) => {
                let SeenConfig { live, template, offers } = seen;
                if let Some(offers) = offers {
                    self.offers.insert(reference(&key), offers);
                }
                if let Some((addon, template)) = template {
                    self.templates.insert(key.name.clone(), (addon, template));
                }
                self.configs.insert(reference(&key), live);
                return self.mark_all();
            }
            Booked::Gone(keys) => keys.iter().map(reference).collect(),
            Booked::Complete(seen) => {
                if let Some(Kind::Listing { namespaced }) = self.kinds.get(kind).copied() {
                    self.kinds.insert(kind.clone(), Kind::Watched { namespaced });
                }
                let seen: BTreeSet<ConfigRef> = seen.iter().map(reference).collect();
                let known = self.configs.keys().filter(|config| config.kind == *kind);
                known.filter(|config| !seen.contains(config)).cloned().collect::<Vec<_>>()
            }
        };
        for config in gone {
            if config.kind == *GroupResource::templates() {
                self.templates.remove(&config.name);
            }
            self.configs.remove(&config);
            self.offers.remove(&config);
        }
        self.mark_all();
    }

    /// Notes which versions an add-on has; gives back the AddOnHubConfigs whose status does not say so, with what it should say. A config
    /// that several add-ons refer to offers what any of them has.
    pub(crate) fn offer(
        &mut self,
        addon: &Text,
        configs: Vec<ConfigRef>,
        versions: Vec<Text>,
    ) -> Vec<(ConfigRef, Vec<Text>)> {
        let wanted = configs.clone();
        self.offered.insert(addon.clone(), (configs, versions));
        let offers_of = |config: &ConfigRef| {
            let mut offers: Vec<Text> = Vec::new();
            for (_, versions) in self.offered.values().filter(|(configs, _)| configs.contains(config)) {
                offers.extend(
                    versions.iter().filter(|version| !offers.contains(version)).cloned().collect::<Vec<_>>(),
                );
            }
            offers
        };
        let stale = wanted.into_iter().map(|config| (offers_of(&config), config));
        stale
            .filter(|(offers, config)| self.offers.get(config) != Some(offers))
            .map(|(offers, config)| (config, offers))
            .collect()
    }

    fn revision(&mut self, change: Change<Kept>) {
        let gone = match self.book(&Relist::Shelf(Shelf::Revisions), change) {
            Booked::Nothing => return,
            Booked::Put(key, kept) => {
                let Kept { addon, what } = kept;
                let known = self.addons.entry(addon.clone()).or_default();
                match what {
                    What::Content { hash, content } => {
                        known.contents.insert(key.clone(), hash.clone());
                        known.observed.revisions.contents.insert(hash, content);
                    }
                    What::Completed { number, placement, revision } => {
                        known.completed.insert(key.clone(), (number, placement, revision));
                    }
                }
                self.revision_of.insert(key, addon.clone());
                return self.mark(&addon);
            }
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::Revisions);
                self.revision_of.keys().filter(|key| !seen.contains(key)).cloned().collect()
            }
        };
        for key in gone {
            let Some(addon) = self.revision_of.remove(&key) else { continue };
            if let Some(known) = self.addons.get_mut(&addon) {
                known.completed.remove(&key);
                if let Some(hash) = known.contents.remove(&key) {
                    known.observed.revisions.contents.remove(&hash);
                }
            }
            self.mark(&addon);
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
        observed.revisions.completed = history(&known.completed);
        self.select(observed);
        self.look_up(observed);
        observed.clusters = std::mem::take(&mut self.clusters);
        let seen = look(observed);
        self.clusters = std::mem::take(&mut observed.clusters);
        self.addons.insert(addon.clone(), known);
        Some(seen)
    }

    /// The placements that an add-on lists, and those that it takes as canaries.
    fn select(&mut self, observed: &mut Observed) {
        let listed = observed.addon.strategy.placements();
        let canaries = listed.iter().filter_map(|spec| spec.rollout.canary.as_ref());
        let wanted: BTreeSet<PlacementName> =
            listed.iter().map(|spec| &spec.name).chain(canaries).cloned().collect();
        observed.placements.clear();
        for name in wanted {
            let Some(placement) = self.placements.get(&name) else { continue };
            let decisions = self.decisions.get(&name);
            let (selection, problems) = self.selections.entry(name.clone()).or_insert_with(|| {
                normalise::selection(placement, decisions.into_iter().flat_map(BTreeMap::values))
            });
            observed.problems.extend(problems.iter().cloned());
            observed.placements.insert(name, selection.clone());
        }
    }

    /// What there is of the configs that are referenced.
    fn look_up(&self, observed: &mut Observed) {
        let overrides = observed.instances.values().flat_map(|instance| &instance.overrides);
        let wanted: BTreeSet<ConfigRef> =
            observed.addon.referenced_configs().chain(overrides).cloned().collect();
        let look_up = |config: &ConfigRef| match self.kinds.get(&config.kind) {
            None | Some(Kind::Unknown) => Lookup::UnknownKind,
            Some(Kind::Listing { namespaced: true } | Kind::Watched { namespaced: true })
                if config.namespace.is_none() =>
            {
                Lookup::NeedsNamespace
            }
            Some(_) => self.configs.get(config).cloned().map_or(Lookup::Missing, Lookup::Found),
        };
        observed.configs = wanted.into_iter().map(|config| (config.clone(), look_up(&config))).collect();
    }

    /// The number that the next completed revision gets, and the objects beyond the limit once it is there.
    pub(crate) fn next_completed(&self, addon: &str, placement: &PlacementName) -> (i64, Vec<Key>) {
        let Some(known) = self.addons.get(addon) else { return (1, Vec::new()) };
        let mut of_placement: Vec<(i64, &Key)> = known
            .completed
            .iter()
            .filter(|(_, (_, of, _))| of == placement)
            .map(|(key, (number, ..))| (*number, key))
            .collect();
        of_placement.sort();
        let next = of_placement.last().map_or(1, |(number, _)| number + 1);
        let surplus = (of_placement.len() + 1).saturating_sub(self.options.history_limit);
        (next, of_placement.into_iter().take(surplus).map(|(_, key)| key.clone()).collect())
    }
}

enum Booked<T> {
    Nothing,
    Put(Key, T),
    Gone(Vec<Key>),
    Complete(BTreeSet<Key>),
}

/// What each placement completed, oldest first; of one that was completed again, the last time counts.
fn history(
    completed: &BTreeMap<Key, (i64, PlacementName, Revision)>,
) -> BTreeMap<PlacementName, Vec<Revision>> {
    let mut numbered: Vec<&(i64, PlacementName, Revision)> = completed.values().collect();
    numbered.sort_by_key(|(number, ..)| *number);
    let mut history: BTreeMap<PlacementName, Vec<Revision>> = BTreeMap::new();
    for (_, placement, revision) in numbered {
        let of = history.entry(placement.clone()).or_default();
        of.retain(|known| known != revision);
        of.push(revision.clone());
    }
    history
}
