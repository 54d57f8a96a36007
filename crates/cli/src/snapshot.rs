//! Builds snapshots from documents: for each add-on, everything in the files that relates to it, in
//! the engine's model.
//!
//! Files rarely contain everything that a hub contains. Missing objects are assumed in a way that
//! gives a useful answer, and every assumption is listed in the notes. Makes no decisions: that is
//! the engine's job.

mod assume;
mod hub;

use std::sync::Arc;

use aviary_api::ClusterManagementAddOn;
use aviary_engine::configs::ConfigRef;
use aviary_engine::name::PlacementName;
use aviary_engine::normalise;
use aviary_engine::observed::{Lookup, Observed, Selection};
use aviary_engine::policy;
use aviary_engine::problem::Problem;

use crate::documents::Document;
use crate::findings::Finding;
use crate::kinds::Kinds;
pub(crate) use hub::is_config;
use hub::{HubObjects, ReadInstance, bare};

#[derive(Debug)]
pub(crate) struct FileSnapshot<'d> {
    /// In the order of the files.
    pub(crate) addons: Vec<AddOnSnapshot<'d>>,
    /// Assumptions about the whole fleet.
    pub(crate) notes: Vec<String>,
    /// Objects that cannot be used and are ignored.
    pub(crate) findings: Vec<Finding>,
}

/// One add-on and everything related to it.
#[derive(Debug)]
pub(crate) struct AddOnSnapshot<'d> {
    pub(crate) document: &'d Document,
    pub(crate) observed: Observed,
    /// Problems with instances, each with its document.
    pub(crate) instance_problems: Vec<(&'d Document, Problem)>,
    /// Assumptions about this add-on.
    pub(crate) notes: Vec<String>,
}

/// Builds the snapshots. `former` are documents that a change replaced; instances may still be
/// assigned their content.
pub(crate) fn build<'d>(documents: &'d [Document], former: &[Document], kinds: &Kinds) -> FileSnapshot<'d> {
    let mut hub = HubObjects::default();
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
            notes.push("the files contain no ManagedCluster: every cluster that they name is assumed to exist and to be reachable".to_owned());
        }
    }
    let addons = hub.addons.iter().map(|(document, addon)| hub.snapshot_of(document, addon, kinds)).collect();
    FileSnapshot { addons, notes, findings: hub.findings }
}

impl<'d> HubObjects<'d> {
    fn snapshot_of(
        &self,
        document: &'d Document,
        object: &ClusterManagementAddOn,
        kinds: &Kinds,
    ) -> AddOnSnapshot<'d> {
        let (mut addon, mut problems) = normalise::addon(object);
        problems.extend(policy::apply(&mut addon, self.policies.iter()));
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

    /// Resolves the placements that the add-on lists, and those that it uses as canaries.
    fn select(&self, observed: &mut Observed, notes: &mut Vec<String>) {
        let listed = observed.addon.strategy.placements();
        let canaries = listed.iter().flat_map(|spec| spec.rollout.canaries());
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
                    notes.push(format!("placement {name} has no PlacementDecision in the files: it is assumed to select no cluster"));
                    placement.clone()
                }
                (None, Some(_)) => {
                    notes.push(format!(
                        "placement {name} is not in the files: it is assumed to select the clusters in its decisions"
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

    /// Adds all configs. Marks each reference that needs a namespace and has none.
    fn configure(&self, observed: &mut Observed, kinds: &Kinds) {
        observed.templates = self.templates.get(&observed.addon.name).cloned().unwrap_or_default();
        observed.configs =
            self.configs.iter().map(|(config, live)| (config.clone(), Lookup::Found(live.clone()))).collect();
        let kept = self.configs.values().chain(&self.former);
        observed.revisions.contents = kept.map(|live| (live.hash.clone(), live.content.clone())).collect();
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
