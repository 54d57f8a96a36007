//! The known state of the hub that placements need, and which placements have changed.
//!
//! Owns the state of the placement controller. Must not send requests to the hub. The response to
//! one of our writes counts until the watch has caught up, and never replaces newer watch events
//! (`progress`).

use std::collections::{BTreeMap, BTreeSet};

use aviary_api::names::annotations;
use aviary_api::{Placement, PlacementDecision};
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::placement::{CandidateCluster, ClusterSet, Rewrite, Sets, choose, pages, rewrite};
use jiff::Timestamp;
use kube::core::ObjectMeta;

use crate::progress::{Booked, Booking};
use crate::seen::{Change, Key, ObjectVersion, Version, placement_of};

#[derive(Debug)]
pub(crate) enum PlacementEvent {
    Cluster(Change<CandidateCluster>),
    Set(Change<ClusterSet>),
    /// The set that is bound.
    Binding(Change<Text>),
    Placement(Change<Box<Placement>>),
    Decision(Change<Box<PlacementDecision>>),
}

#[derive(Debug)]
struct ObjectsOfKind<T> {
    objects: BTreeMap<Key, T>,
    booking: Booking,
}

impl<T> Default for ObjectsOfKind<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), booking: Booking::default() }
    }
}

impl<T: PartialEq> ObjectsOfKind<T> {
    /// Returns the key of the changed object and its previous state. `moment` is when a list
    /// begins, or when a write was sent.
    fn take(
        &mut self,
        change: Change<T>,
        moment: u64,
        version: impl Fn(&T) -> Version,
    ) -> Vec<(Key, Option<T>)> {
        let Self { objects, booking } = self;
        let known = |key: &Key| objects.get(key).map(&version);
        match booking.book(change, moment, known, || objects.keys().cloned().collect()) {
            Booked::Nothing => Vec::new(),
            Booked::Put(key, new) => self.put(key, new),
            Booked::Gone(keys) => keys.into_iter().flat_map(|key| self.remove(key)).collect(),
        }
    }

    fn put(&mut self, key: Key, new: T) -> Vec<(Key, Option<T>)> {
        if self.objects.get(&key).is_some_and(|old| *old == new) {
            return Vec::new();
        }
        let old = self.objects.insert(key.clone(), new);
        vec![(key, old)]
    }

    fn remove(&mut self, key: Key) -> Vec<(Key, Option<T>)> {
        self.objects.remove(&key).map(|old| (key, Some(old))).into_iter().collect()
    }
}

#[derive(Debug)]
pub(crate) struct PlacementPass {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) rewrite: Rewrite,
    pub(crate) recheck_at: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct PlacementStore {
    clusters: ObjectsOfKind<CandidateCluster>,
    sets: ObjectsOfKind<ClusterSet>,
    bindings: ObjectsOfKind<Text>,
    placements: ObjectsOfKind<Box<Placement>>,
    decisions: ObjectsOfKind<Box<PlacementDecision>>,
    decisions_of: BTreeMap<Key, BTreeSet<Key>>,
    dirty: BTreeSet<Key>,
    /// Numbers lists and rewrites in the order in which they began.
    begun: u64,
}

impl PlacementStore {
    /// Whether everything has been listed once. Before that, nothing may be decided: unknown is not
    /// absent.
    pub(crate) fn is_complete(&self) -> bool {
        let Self { clusters, sets, bindings, placements, decisions, decisions_of: _, dirty: _, begun: _ } =
            self;
        let listed =
            [&clusters.booking, &sets.booking, &bindings.booking, &placements.booking, &decisions.booking];
        listed.into_iter().all(|booking| booking.is_listed)
    }

    /// Takes the placements that have changed since the last call.
    pub(crate) fn take_dirty(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.dirty)
    }

    pub(crate) fn unmark(&mut self, placement: &Key) {
        self.dirty.remove(placement);
    }

    pub(crate) fn mark_all(&mut self) {
        self.dirty.extend(self.placements.objects.keys().cloned());
    }

    /// Called when writes begin. Pass the returned number to [`PlacementStore::take_written`] with
    /// their responses.
    pub(crate) fn begin_writes(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// Stores the responses to writes that began at `sent`.
    pub(crate) fn take_written(&mut self, events: Vec<PlacementEvent>, sent: u64) {
        for event in events {
            self.take_at(event, sent);
        }
    }

    pub(crate) fn take(&mut self, event: PlacementEvent) {
        self.begun += 1;
        self.take_at(event, self.begun);
    }

    fn take_at(&mut self, event: PlacementEvent, moment: u64) {
        let all = match event {
            PlacementEvent::Cluster(change) => !self.clusters.take(change, moment, unwritten).is_empty(),
            PlacementEvent::Set(change) => !self.sets.take(change, moment, unwritten).is_empty(),
            PlacementEvent::Binding(change) => !self.bindings.take(change, moment, unwritten).is_empty(),
            PlacementEvent::Placement(change) => {
                let changed = self.placements.take(change, moment, |known| version(&known.metadata));
                self.dirty.extend(changed.into_iter().map(|(key, _)| key));
                false
            }
            PlacementEvent::Decision(change) => {
                let changed = self.decisions.take(change, moment, |known| version(&known.metadata));
                changed.into_iter().for_each(|(key, old)| self.file(&key, old.as_deref()));
                false
            }
        };
        if all {
            self.mark_all();
        }
    }

    /// Updates the index from placements to decisions.
    fn file(&mut self, key: &Key, old: Option<&PlacementDecision>) {
        if let Some(placement) = old.and_then(owner) {
            if let Some(decisions) = self.decisions_of.get_mut(&placement) {
                decisions.remove(key);
            }
            self.dirty.insert(placement);
        }
        if let Some(placement) = self.decisions.objects.get(key).and_then(|new| owner(new)) {
            self.decisions_of.entry(placement.clone()).or_default().insert(key.clone());
            self.dirty.insert(placement);
        }
    }

    /// `None` if the placement does not exist, or another controller decides it.
    pub(crate) fn pass(&self, key: &Key, now: Timestamp) -> Option<PlacementPass> {
        let placement = self.placements.objects.get(key).filter(|placement| !is_left_alone(placement))?;
        let decisions = || {
            let keys = self.decisions_of.get(key).into_iter().flatten();
            keys.filter_map(|key| self.decisions.objects.get(key)).map(|decision| &**decision)
        };
        let before: BTreeSet<ClusterName> = decisions()
            .flat_map(pages::clusters)
            .filter_map(|name| self.clusters.objects.get(&at_hub(name)))
            .map(|cluster| cluster.name.clone())
            .collect();
        let sets = Sets { sets: &self.sets.objects, bindings: &self.bindings.objects };
        let chosen = choose(placement, self.clusters.objects.values(), sets, &before, now);
        tracing::debug!(namespace = %key.namespace, placement = %key.name, counts = ?chosen.counts, "chosen");
        Some(PlacementPass {
            uid: placement.metadata.uid.clone().unwrap_or_default(),
            resource_version: placement.metadata.resource_version.clone().unwrap_or_default(),
            rewrite: rewrite(placement, decisions(), &self.taken(key), &chosen, now),
            recheck_at: chosen.recheck_at,
        })
    }

    /// The numbers of all decisions with the placement's name prefix, whatever their labels.
    fn taken(&self, placement: &Key) -> BTreeSet<u64> {
        let prefix = pages::prefix(&placement.name);
        let first = Key { namespace: placement.namespace.clone(), name: prefix.as_str().into() };
        let named = self.decisions.objects.range(&first..).map(|(key, _)| key);
        named
            .take_while(|key| key.namespace == placement.namespace && key.name.starts_with(&prefix))
            .filter_map(|key| pages::number(&placement.name, &key.name))
            .collect()
    }
}

fn version(metadata: &ObjectMeta) -> Version {
    ObjectVersion::of(metadata).version
}

/// The version of objects that are never written here: every watch event counts.
fn unwritten<T>(_: &T) -> Version {
    Version::default()
}

fn owner(decision: &PlacementDecision) -> Option<Key> {
    placement_of(decision).map(|placement| Key { namespace: placement.namespace, name: placement.name })
}

fn at_hub(name: &str) -> Key {
    Key { namespace: "".into(), name: name.into() }
}

fn is_left_alone(placement: &Placement) -> bool {
    let annotations = placement.metadata.annotations.as_ref();
    placement.metadata.deletion_timestamp.is_some()
        || annotations
            .and_then(|annotations| annotations.get(annotations::SCHEDULING_DISABLED))
            .is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests;
