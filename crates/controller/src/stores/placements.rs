//! Clusters, and which of them placements select.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aviary_engine::name::{ClusterName, PlacementName};
use aviary_engine::normalise::{self, PlacementPart};
use aviary_engine::observed::{AddOn, Cluster, Selection};
use aviary_engine::problem::Problem;

use crate::progress::Booked;
use crate::seen::{Change, Key, SeenDecision};
use crate::stores::{Relist, Shelf, Stores};

impl Stores {
    pub(super) fn cluster(&mut self, change: Change<Box<Cluster>>) {
        let all = |stores: &Self| {
            let names = stores.clusters.keys();
            names.map(|name| Key { namespace: "".into(), name: name.as_str().into() }).collect()
        };
        match self.book_seen(Relist::Shelf(Shelf::Clusters), change, all) {
            Booked::Nothing => {}
            Booked::Put(_, cluster) => self.put_cluster(*cluster),
            Booked::Gone(keys) => {
                for key in keys {
                    if let Ok(cluster) = ClusterName::parse(&key.name) {
                        self.clusters.remove(&cluster);
                        Arc::make_mut(&mut self.without_namespace).remove(&cluster);
                    }
                    self.mark_all();
                }
            }
        }
    }

    fn put_cluster(&mut self, cluster: Cluster) {
        // A heartbeat changes nothing that is used.
        if self.clusters.get(&cluster.name).is_some_and(|known| **known == cluster) {
            return;
        }
        if self.namespaces.as_ref().is_some_and(|all| !all.contains(&cluster.name)) {
            Arc::make_mut(&mut self.without_namespace).insert(cluster.name.clone());
        }
        self.clusters.insert(cluster.name.clone(), Arc::new(cluster));
        self.mark_all();
    }

    pub(super) fn placement(&mut self, change: Change<PlacementPart>) {
        let all = |stores: &Self| {
            let names = stores.placements.keys();
            names.map(|at| Key { namespace: at.namespace.clone(), name: at.name.clone() }).collect()
        };
        match self.book_seen(Relist::Shelf(Shelf::Placements), change, all) {
            Booked::Nothing => {}
            Booked::Put(_, placement) => {
                let name = placement.name.clone();
                self.placements.insert(name.clone(), placement);
                self.reselect(&name);
            }
            Booked::Gone(keys) => {
                for key in keys {
                    let name = PlacementName::new(&key.namespace, &key.name);
                    self.placements.remove(&name);
                    self.reselect(&name);
                }
            }
        }
    }

    pub(super) fn decision(&mut self, change: Change<SeenDecision>) {
        let all = |stores: &Self| stores.decision_of.keys().cloned().collect();
        match self.book_seen(Relist::Shelf(Shelf::Decisions), change, all) {
            Booked::Nothing => {}
            Booked::Put(key, SeenDecision { placement, part }) => {
                self.drop_decision(&key);
                if let Some(placement) = placement {
                    self.decision_of.insert(key.clone(), placement.clone());
                    self.decisions.entry(placement.clone()).or_default().insert(key.name, part);
                    self.reselect(&placement);
                }
            }
            Booked::Gone(keys) => keys.iter().for_each(|key| self.drop_decision(key)),
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

    fn reselect(&mut self, placement: &PlacementName) {
        self.selections.remove(placement);
        let depends = |addon: &AddOn| {
            let mut listed = addon.strategy.placements().iter();
            listed.any(|spec| {
                spec.name == *placement || spec.rollout.canaries().any(|canary| canary == placement)
            })
        };
        let concerned = self.addons.iter().filter(|(_, entry)| depends(&entry.addon));
        self.dirty.extend(concerned.map(|(name, _)| name.clone()));
    }

    /// The selections of the placements that an add-on lists or uses as canaries.
    pub(super) fn select(
        &mut self,
        addon: &AddOn,
        problems: &mut Vec<Problem>,
    ) -> BTreeMap<PlacementName, Selection> {
        let listed = addon.strategy.placements();
        let canaries = listed.iter().flat_map(|spec| spec.rollout.canaries());
        let wanted: BTreeSet<&PlacementName> = listed.iter().map(|spec| &spec.name).chain(canaries).collect();
        let mut selections = BTreeMap::new();
        for name in wanted {
            let Some(placement) = self.placements.get(name) else { continue };
            let decisions = self.decisions.get(name);
            let (selection, found) = self.selections.entry(name.clone()).or_insert_with(|| {
                normalise::selection_of(placement, decisions.into_iter().flat_map(BTreeMap::values))
            });
            problems.extend(found.iter().cloned());
            selections.insert(name.clone(), selection.clone());
        }
        selections
    }
}
