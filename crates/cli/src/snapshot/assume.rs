//! Assumptions about objects that the files do not contain.

use std::collections::BTreeSet;
use std::sync::Arc;

use aviary_api::names::conditions::{AVAILABLE, PROGRESSING};
use aviary_engine::configs::{Pin, Revision};
use aviary_engine::health::Health;
use aviary_engine::name::ClusterName;
use aviary_engine::observed::{Cluster, Instance, Observed, Seen, Work, WorkState};
use aviary_engine::reason::Reason;
use aviary_engine::render::{self, Templates};
use aviary_engine::shared::Shared;

use super::hub::HubObjects;

/// Without any ManagedCluster, assumes that all clusters in decisions and instances exist.
pub(super) fn clusters(hub: &mut HubObjects<'_>) {
    let decided = hub.decisions.values().flatten().flat_map(|decision| {
        decision
            .status
            .iter()
            .flat_map(|status| &status.decisions)
            .map(|decided| decided.cluster_name.as_str())
    });
    let named: BTreeSet<ClusterName> = decided.filter_map(|name| ClusterName::parse(name).ok()).collect();
    let held = hub.instances.values().flatten().map(|read| read.instance.cluster.clone());
    for name in named.into_iter().chain(held) {
        let cluster = Cluster {
            name: name.clone(),
            labels: Default::default(),
            deleting: false,
            opted_out: false,
            unreachable: None,
            reachable_since: None,
            addon_annotations: Default::default(),
        };
        hub.clusters.insert(name, Arc::new(cluster));
    }
}

/// Assumes that an add-on from a file, which was never on a hub, owns its instances.
pub(super) fn ownership(observed: &mut Observed) {
    if observed.addon.uid.is_empty()
        && let Some(owner) = observed.instances.values().find_map(|instance| instance.owner.clone())
    {
        observed.addon.uid = owner;
    }
}

/// Assumes that a placement has completed the revision that it has applied. The files do not
/// contain the rest of its history.
pub(super) fn history(observed: &mut Observed) {
    for (placement, recorded) in &observed.addon.status.placements {
        if let Some(applied) = &recorded.applied {
            observed.revisions.completed.insert(placement.clone(), vec![applied.clone()]);
        }
    }
}

/// Without any work of the add-on, assumes that instances run what their status reports. Returns
/// the note about it.
pub(super) fn works(observed: &mut Observed) -> Option<String> {
    let mut templates = Templates::new(observed);
    let assumed: Vec<(ClusterName, Vec<Work>)> = observed
        .instances
        .values()
        .map(|instance| (instance.cluster.clone(), works_of(observed, instance, &mut templates)))
        .filter(|(_, works)| !works.is_empty())
        .collect();
    if assumed.is_empty() {
        return None;
    }
    for (cluster, works) in assumed {
        observed.works.insert(cluster, Arc::new(works));
    }
    Some(
        "the files contain none of its ManifestWorks: its instances are assumed to run what their status reports"
            .to_owned(),
    )
}

fn works_of(observed: &Observed, instance: &Instance, templates: &mut Templates<'_>) -> Vec<Work> {
    let progressing = instance.status.condition(PROGRESSING);
    let failed = progressing.filter(|condition| condition.reason.is(Reason::is_failure));
    let arrived = progressing.is_some_and(|condition| condition.reason.is(Reason::is_success));
    let applied: Vec<Pin> =
        instance.status.references.iter().filter_map(|reference| reference.applied.clone()).collect();
    let has = match failed {
        Some(_) => instance.status.told_revision(),
        None => Revision::new(applied),
    };
    if has.pins().is_empty() && !arrived && failed.is_none() {
        return Vec::new();
    }
    let unavailable = instance.status.condition(AVAILABLE).filter(|condition| &*condition.status == "False");
    let state = WorkState {
        name: format!("addon-{}-deploy", observed.addon.name).into(),
        hosted_on: None,
        deleting: false,
        version: None,
        rendered_from: None,
        applied: failed.map_or(Seen::Yes, |condition| Seen::No { message: (*condition.message).into() }),
        was_applied: failed.is_none(),
        available: unavailable
            .map_or(Seen::Yes, |condition| Seen::No { message: (*condition.message).into() }),
        health: Health::NotProbed,
        probed: true,
        objects: Vec::new(),
    };
    let work = Work {
        uid: "".into(),
        resource_version: "".into(),
        generation: 1,
        owner: Some(instance.uid.clone()),
        rendered_digest: None,
        digest: None,
        hashes: Some(has.pins().iter().map(|pin| (pin.config.kind.clone(), pin.hash.clone())).collect()),
        available_since: None,
        state: Shared::new(state.clone()),
    };
    let Some(Ok(prepared)) = templates.prepare(has.pins().iter()) else { return vec![work] };
    let inputs = prepared.inputs(&instance.install_namespace);
    (0..prepared.works())
        .map(|index| Work {
            rendered_digest: Some(inputs.as_str().into()),
            digest: Some(inputs.as_str().into()),
            state: Shared::new(WorkState {
                name: render::work_name(&observed.addon.name, index).into(),
                rendered_from: Some(inputs.as_str().into()),
                ..state.clone()
            }),
            ..work.clone()
        })
        .collect()
}
