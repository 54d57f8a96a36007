//! Documents as snapshots: for each add-on, all that the files say about it, in the engine's own model.
//!
//! Files rarely hold everything that a hub holds. What is left out is assumed in favour of a useful answer, and every assumption is
//! said in the notes. Reading decides nothing: that is the engine's.

mod assume;
mod hub;

use std::sync::Arc;

use aviary_api::ClusterManagementAddOn;
use aviary_engine::configs::ConfigRef;
use aviary_engine::name::PlacementName;
use aviary_engine::normalise;
use aviary_engine::observed::{Lookup, Observed, Selection};
use aviary_engine::problem::Problem;

use crate::documents::Document;
use crate::findings::Finding;
use crate::kinds::Kinds;
pub(crate) use hub::is_config;
use hub::{Hub, ReadInstance, bare};

/// Everything in the files.
#[derive(Debug)]
pub(crate) struct Snapshot<'d> {
    /// In the order of the files.
    pub(crate) addons: Vec<AddOnSnapshot<'d>>,
    /// Assumptions about the fleet as a whole.
    pub(crate) notes: Vec<String>,
    /// Objects that cannot be used and are left out.
    pub(crate) findings: Vec<Finding>,
}

/// One add-on and all that bears on it.
#[derive(Debug)]
pub(crate) struct AddOnSnapshot<'d> {
    pub(crate) document: &'d Document,
    pub(crate) observed: Observed,
    /// What reading found wrong with instances, each with its document.
    pub(crate) instance_problems: Vec<(&'d Document, Problem)>,
    /// Assumptions about this add-on.
    pub(crate) notes: Vec<String>,
}

/// Puts the snapshots together. `former` are documents that a change replaced: what they held may still be told somewhere.
pub(crate) fn build<'d>(documents: &'d [Document], former: &[Document], kinds: &Kinds) -> Snapshot<'d> {
    let mut hub = Hub::default();
    for document in documents {
        hub.read(document, kinds);
    }
    for document in former.iter().filter(|document| is_config(document)) {
        hub.former.push(normalise::config(&document.value));
    }
    let mut notes = Vec::new();
    if !hub.has_clusters {
        assume::clusters(&mut hub);
        if !hub.clusters.is_empty() {
            notes.push("no ManagedCluster is in the files: every cluster that they name is taken to exist and to be reachable".to_owned());
        }
    }
    let addons = hub.addons.iter().map(|(document, addon)| hub.snapshot_of(document, addon, kinds)).collect();
    Snapshot { addons, notes, findings: hub.findings }
}

impl<'d> Hub<'d> {
    fn snapshot_of(
        &self,
        document: &'d Document,
        object: &ClusterManagementAddOn,
        kinds: &Kinds,
    ) -> AddOnSnapshot<'d> {
        let (addon, problems) = normalise::addon(object);
        let name = addon.name.clone();
        let mut observed =
            Observed { addon, problems, clusters: self.clusters.clone(), ..Observed::default() };
        let mut notes = Vec::new();
        let mut instance_problems = Vec::new();
        for ReadInstance { document, instance, problems } in self.instances.get(&name).into_iter().flatten() {
            instance_problems.extend(problems.iter().map(|problem| (*document, problem.clone())));
            observed.instances.insert(instance.cluster.clone(), Arc::new(instance.clone()));
        }
        self.select(&mut observed, &mut notes);
        self.configure(&mut observed, kinds);
        match self.works.get(&name) {
            Some(works) => {
                for (cluster, works) in works {
                    let mut works = works.clone();
                    works.sort_by(|a, b| a.name.cmp(&b.name));
                    observed.works.insert(cluster.clone(), Arc::new(works));
                }
            }
            None => notes.extend(assume::works(&mut observed)),
        }
        assume::ownership(&mut observed);
        assume::history(&mut observed);
        AddOnSnapshot { document, observed, instance_problems, notes }
    }

    /// The placements that the add-on lists, and those that it takes as canaries.
    fn select(&self, observed: &mut Observed, notes: &mut Vec<String>) {
        let listed = observed.addon.strategy.placements();
        let canaries = listed.iter().filter_map(|spec| spec.rollout.canary.as_ref());
        let wanted: Vec<PlacementName> =
            listed.iter().map(|spec| &spec.name).chain(canaries).cloned().collect();
        for name in wanted {
            if observed.placements.contains_key(&name) {
                continue;
            }
            let decisions = self.decisions.get(&name);
            let placement = match (self.placements.get(&name), decisions) {
                (Some(placement), Some(_)) => placement.clone(),
                (Some(placement), None) => {
                    notes.push(format!("placement {name} has no PlacementDecision in the files: it is taken to select no cluster"));
                    placement.clone()
                }
                (None, Some(_)) => {
                    notes.push(format!(
                        "placement {name} is not in the files: it is taken to select what its decisions say"
                    ));
                    bare(&name)
                }
                (None, None) => continue,
            };
            let (selection, problems): (Selection, Vec<Problem>) =
                normalise::selection(&placement, decisions.into_iter().flatten());
            observed.problems.extend(problems);
            observed.placements.insert(name, selection);
        }
    }

    /// All configs, and for each reference that needs a namespace and has none, that it does.
    fn configure(&self, observed: &mut Observed, kinds: &Kinds) {
        observed.templates = self.templates.get(&observed.addon.name).cloned().unwrap_or_default();
        observed.configs =
            self.configs.iter().map(|(config, live)| (config.clone(), Lookup::Found(live.clone()))).collect();
        let kept = self.configs.values().chain(&self.former);
        observed.revisions.contents =
            kept.map(|live| (live.hash.clone(), Arc::clone(&live.content))).collect();
        let overrides = observed.instances.values().flat_map(|instance| &instance.overrides);
        let unnamed: Vec<ConfigRef> = observed
            .addon
            .referenced_configs()
            .chain(overrides)
            .filter(|config| {
                config.namespace.is_none()
                    && !self.configs.contains_key(config)
                    && self.is_namespaced(config, kinds)
            })
            .cloned()
            .collect();
        observed.configs.extend(unnamed.into_iter().map(|config| (config, Lookup::NeedsNamespace)));
    }

    fn is_namespaced(&self, config: &ConfigRef, kinds: &Kinds) -> bool {
        match kinds.by_resource(&config.kind.group, &config.kind.resource) {
            Some(kind) => kind.namespaced,
            None => self.configs.keys().any(|known| known.kind == config.kind && known.namespace.is_some()),
        }
    }
}
