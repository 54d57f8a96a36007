//! What is known of the hub, as far as placements need it, and which placements have news.
//!
//! Owns the memory of the placement controller. Must not talk to the hub. An object is never replaced by an older state of itself: the answer to
//! our own write stands until the watch has caught up.

use std::collections::{BTreeMap, BTreeSet};

use aviary_api::names::annotations;
use aviary_api::{Placement, PlacementDecision};
use aviary_engine::name::{ClusterName, Text};
use jiff::Timestamp;
use kube::core::ObjectMeta;

use super::choose::{Cluster, choose};
use super::decisions::{Rewrite, rewrite};
use super::pages;
use super::scope::{ClusterSet, Sets};
use crate::seen::{Change, Key, placement_of};
use crate::stores::is_newer;

/// Something that was seen.
#[derive(Debug)]
pub(crate) enum News {
    Cluster(Change<Cluster>),
    Set(Change<ClusterSet>),
    /// The set that is bound.
    Binding(Change<Text>),
    Placement(Change<Box<Placement>>),
    Decision(Change<Box<PlacementDecision>>),
}

/// The objects of one kind.
#[derive(Debug)]
struct Shelf<T> {
    objects: BTreeMap<Key, T>,
    /// What a list that is under way has brought so far.
    relisting: Option<BTreeSet<Key>>,
    listed: bool,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), relisting: None, listed: false }
    }
}

impl<T: PartialEq> Shelf<T> {
    /// Says what is different: where, and what was there before.
    fn take(&mut self, change: Change<T>, may_replace: impl Fn(&T, &T) -> bool) -> Vec<(Key, Option<T>)> {
        match change {
            Change::Begin => self.relisting = Some(BTreeSet::new()),
            Change::Put(key, new) => {
                if let Some(relisting) = &mut self.relisting {
                    relisting.insert(key.clone());
                }
                let old = self.objects.get(&key);
                if old.is_none_or(|old| *old != new && may_replace(&new, old)) {
                    let old = self.objects.insert(key.clone(), new);
                    return vec![(key, old)];
                }
            }
            Change::Unreadable(key) => {
                if let Some(listed) = &mut self.relisting {
                    listed.insert(key);
                }
            }
            Change::Gone(key) => {
                return self.objects.remove(&key).map(|old| (key, Some(old))).into_iter().collect();
            }
            Change::End => {
                self.listed = true;
                let there = self.relisting.take().unwrap_or_default();
                let gone = self.objects.extract_if(.., |key, _| !there.contains(key));
                return gone.map(|(key, old)| (key, Some(old))).collect();
            }
        }
        Vec::new()
    }
}

/// What to do for one placement.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) rewrite: Rewrite,
    pub(crate) recheck_at: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct Store {
    clusters: Shelf<Cluster>,
    sets: Shelf<ClusterSet>,
    bindings: Shelf<Text>,
    placements: Shelf<Box<Placement>>,
    decisions: Shelf<Box<PlacementDecision>>,
    decisions_of: BTreeMap<Key, BTreeSet<Key>>,
    dirty: BTreeSet<Key>,
}

impl Store {
    /// Whether everything has been listed once. Before that nothing may be decided: what is not known is not absent.
    pub(crate) fn is_complete(&self) -> bool {
        let Self { clusters, sets, bindings, placements, decisions, decisions_of: _, dirty: _ } = self;
        clusters.listed && sets.listed && bindings.listed && placements.listed && decisions.listed
    }

    /// The placements that have news since the last call.
    pub(crate) fn take_dirty(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.dirty)
    }

    /// Forgets what is new of a placement.
    pub(crate) fn unmark(&mut self, placement: &Key) {
        self.dirty.remove(placement);
    }

    pub(crate) fn mark_all(&mut self) {
        self.dirty.extend(self.placements.objects.keys().cloned());
    }

    pub(crate) fn take(&mut self, news: News) {
        let all = match news {
            News::Cluster(change) => !self.clusters.take(change, |_, _| true).is_empty(),
            News::Set(change) => !self.sets.take(change, |_, _| true).is_empty(),
            News::Binding(change) => !self.bindings.take(change, |_, _| true).is_empty(),
            News::Placement(change) => {
                let changed = self.placements.take(change, |new, old| newer(&new.metadata, &old.metadata));
                self.dirty.extend(changed.into_iter().map(|(key, _)| key));
                false
            }
            News::Decision(change) => {
                let changed = self.decisions.take(change, |new, old| newer(&new.metadata, &old.metadata));
                changed.into_iter().for_each(|(key, old)| self.file(&key, old.as_deref()));
                false
            }
        };
        if all {
            self.mark_all();
        }
    }

    /// Notes of which placement a decision was and is.
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

    /// None: the placement is gone, or not ours to decide.
    pub(crate) fn pass(&self, key: &Key, now: Timestamp) -> Option<Pass> {
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
        Some(Pass {
            uid: placement.metadata.uid.clone().unwrap_or_default(),
            resource_version: placement.metadata.resource_version.clone().unwrap_or_default(),
            rewrite: rewrite(placement, decisions(), &self.taken(key), &chosen, now),
            recheck_at: chosen.recheck_at,
        })
    }

    /// The numbers of all decisions that bear the placement's name, whatever their labels say.
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

fn newer(new: &ObjectMeta, old: &ObjectMeta) -> bool {
    let version = |metadata: &ObjectMeta| metadata.resource_version.clone().unwrap_or_default();
    // Made anew, it is another object.
    new.uid != old.uid || is_newer(&version(new), &version(old))
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
