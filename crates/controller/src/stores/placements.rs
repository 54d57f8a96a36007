//! Clusters, and which of them placements select.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aviary_api::{Placement, PlacementDecision};
use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::normalise;
use aviary_engine::observed::{Cluster, Observed};

use crate::seen::{Change, Key, placement_of};
use crate::stores::{Booked, Known, Relist, Shelf, Stores};

impl Stores {
    pub(super) fn cluster(&mut self, change: Change<Box<Cluster>>) {
        let gone: Vec<Key> = match self.book(&Relist::Shelf(Shelf::Clusters), change) {
            Booked::Nothing => return,
            Booked::Put(_, cluster) => {
                // A heartbeat changes nothing that is looked at.
                let known = self.clusters.get(&cluster.name);
                if known.is_some_and(|known| **known == *cluster) {
                    return;
                }
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

    pub(super) fn placement(&mut self, change: Change<Box<Placement>>) {
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

    pub(super) fn decision(&mut self, change: Change<Box<PlacementDecision>>) {
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

    /// The placements that an add-on lists, and those that it takes as canaries.
    pub(super) fn select(&mut self, observed: &mut Observed) {
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
}
