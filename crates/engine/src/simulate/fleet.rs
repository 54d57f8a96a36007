//! Creates a simulated fleet: clusters for the placements of an add-on, all running a previous
//! revision.

use std::sync::Arc;

use aviary_api::names::{self, conditions::PROGRESSING};
use jiff::Timestamp;

use crate::configs::{Pin, Resolver, Revision};
use crate::hash;
use crate::health::Health;
use crate::name::{ClusterName, PlacementName, Text};
use crate::observed::{
    Cluster, ClusterGroup, Instance, InstanceStatus, Observed, ObservedCondition, Recorded, Reference, Seen,
    Selection, StatusFields, Work, WorkState,
};
use crate::reason::Reason;
use crate::render;
use crate::shared::Shared;

/// A canary placement gets a tenth of the clusters, and at least one.
const CANARY_SHARE: usize = 10;

/// Gives every listed placement that has no decisions its share of `clusters` clusters, and gives
/// every selected cluster without an instance a completed previous revision.
pub fn populate(observed: &mut Observed, clusters: usize, begin: Timestamp) {
    spread(observed, clusters);
    assume_clusters(observed);
    install_before(observed, begin);
}

/// Adds the clusters that decisions or instances name, if they are not given.
pub(crate) fn assume_clusters(observed: &mut Observed) {
    let selected = observed.placements.values().flat_map(|selection| selection.clusters().cloned());
    let named: Vec<ClusterName> = selected.chain(observed.instances.keys().cloned()).collect();
    for name in named {
        let labels = [("name".to_owned(), name.to_string())].into();
        let cluster = Cluster {
            name: name.clone(),
            labels,
            deleting: false,
            opted_out: false,
            unreachable: None,
            reachable_since: None,
            addon_annotations: Default::default(),
        };
        observed.clusters.get_or_insert_with(name, || cluster);
    }
}

fn spread(observed: &mut Observed, clusters: usize) {
    let specs = observed.addon.strategy.placements();
    let canaries: Vec<&PlacementName> = specs.iter().flat_map(|spec| spec.rollout.canaries()).collect();
    let mut names: Vec<PlacementName> = specs.iter().map(|spec| spec.name.clone()).collect();
    names.extend(canaries.iter().map(|&canary| canary.clone()));
    names.dedup();
    let empty: Vec<PlacementName> = names
        .iter()
        .filter(|name| observed.placements.get(*name).is_none_or(Selection::is_empty))
        .cloned()
        .collect();
    let (first, others): (Vec<PlacementName>, Vec<PlacementName>) =
        empty.into_iter().partition(|name| canaries.contains(&name));
    let for_canaries = if others.is_empty() { clusters } else { (clusters / CANARY_SHARE).max(1) };
    let mut wanted: Vec<(PlacementName, usize)> = share(&first, for_canaries);
    let left = clusters.saturating_sub(wanted.iter().map(|(_, count)| count).sum());
    wanted.extend(share(&others, left));
    for (name, count) in wanted {
        let width = count.to_string().len();
        let mut members: Vec<ClusterName> = (1..=count)
            .filter_map(|number| ClusterName::parse(&format!("{}-{number:0width$}", name.name)).ok())
            .collect();
        members.sort();
        let published = Some(members.len());
        let groups = vec![ClusterGroup { name: "".into(), clusters: members }];
        observed
            .placements
            .insert(name, Selection { published, counted: true, groups, ..Selection::default() });
    }
}

fn share(names: &[PlacementName], clusters: usize) -> Vec<(PlacementName, usize)> {
    let each = clusters.checked_div(names.len()).unwrap_or(0);
    let odd = clusters.checked_rem(names.len()).unwrap_or(0);
    names.iter().enumerate().map(|(i, name)| (name.clone(), each + usize::from(i < odd))).collect()
}

fn install_before(observed: &mut Observed, begin: Timestamp) {
    let rendered = observed.renders_templates();
    let resolver = Resolver::new(observed);
    let mut before: Vec<(PlacementName, Revision)> = Vec::new();
    for spec in observed.addon.strategy.placements() {
        if let Ok(desired) = resolver.wanted_by(Some(spec)) {
            before.push((spec.name.clone(), revision_before(&desired)));
        }
    }
    drop(resolver);
    let work_name: Text = match rendered {
        true => render::work_name(&observed.addon.name, 0).into(),
        false => "own-manager".into(),
    };
    for (name, revision) in &before {
        let members: Vec<ClusterName> = observed
            .placements
            .get(name)
            .map(|selection| selection.clusters().cloned().collect())
            .unwrap_or_default();
        let (status, work) = (status(revision, begin), work(&work_name, revision));
        let install_namespace: Text = names::DEFAULT_INSTALL_NAMESPACE.into();
        let owner = observed.addon.uid.clone();
        let mut made = false;
        for cluster in members {
            if observed.instances.contains_key(&cluster) {
                continue;
            }
            made = true;
            let instance = instance(&cluster, &owner, &install_namespace, &status);
            let owned = Work { owner: Some(instance.uid.clone()), ..work.clone() };
            observed.works.insert(cluster.clone(), Arc::new(vec![owned]));
            observed.instances.insert(cluster, Arc::new(instance));
        }
        if made && !observed.addon.status.placements.contains_key(name) {
            record_completed(observed, name, revision);
        }
    }
}

/// Records that the placement has completed the revision.
fn record_completed(observed: &mut Observed, name: &PlacementName, revision: &Revision) {
    let known = Some(revision.clone());
    let recorded = Recorded {
        desired: known.clone(),
        known_good: known.clone(),
        applied: known,
        unresolved: Vec::new(),
        conditions: Vec::new(),
    };
    observed.addon.status.placements.insert(name.clone(), recorded);
    observed.revisions.completed.entry(name.clone()).or_default().push(revision.clone());
}

fn instance(
    cluster: &ClusterName,
    owner: &Text,
    install_namespace: &Text,
    status: &InstanceStatus,
) -> Instance {
    Instance {
        cluster: cluster.clone(),
        uid: format!("uid-{cluster}").into(),
        resource_version: "0".into(),
        generation: 1,
        deleting: false,
        finalizers: Vec::new(),
        marker: Some("Placements".into()),
        owner: Some(owner.clone()),
        has_other_owners: false,
        made_by_ocm: false,
        install_namespace: install_namespace.clone(),
        hosting: None,
        addon_annotations: Default::default(),
        overrides: Vec::new(),
        version: None,
        status: status.clone(),
    }
}

/// A previous revision: the same kinds of config with other content.
fn revision_before(desired: &Revision) -> Revision {
    let pins = desired.pins().iter().map(|pin| Pin {
        config: pin.config.clone(),
        hash: hash::of_bytes(format!("before {}", pin.config.kind).as_bytes()),
    });
    Revision::new(pins.collect())
}

fn status(revision: &Revision, begin: Timestamp) -> InstanceStatus {
    let references = revision.pins().iter().map(|pin| Reference {
        kind: pin.config.kind.clone(),
        desired: Some(pin.clone()),
        applied: Some(pin.clone()),
        observed_generation: None,
    });
    let installed = ObservedCondition {
        kind: PROGRESSING.into(),
        status: "False".into(),
        reason: Reason::InstallSucceed.into(),
        message: "install completed with no errors.".into(),
        since: Some(begin),
        observed_generation: Some(1),
    };
    InstanceStatus::new(StatusFields {
        references: references.collect(),
        conditions: vec![installed],
        ..StatusFields::default()
    })
}

fn work(name: &Text, revision: &Revision) -> Work {
    let state = WorkState {
        name: name.clone(),
        hosted_on: None,
        deleting: false,
        version: None,
        rendered_from: None,
        applied: Seen::Yes,
        was_applied: true,
        available: Seen::Yes,
        health: Health::NotProbed,
        probed: false,
        objects: Vec::new(),
    };
    Work {
        uid: "uid-before".into(),
        resource_version: "0".into(),
        generation: 1,
        owner: None,
        rendered_digest: None,
        digest: None,
        hashes: Some(revision.hashes()),
        available_since: None,
        state: Shared::new(state),
    }
}
