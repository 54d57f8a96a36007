//! What proves that a cluster has what it was assigned. Shares no code with the rules that it
//! checks.

use std::collections::{BTreeMap, BTreeSet};

use super::{governor, own_kinds, told_except, works_of};
use crate::clock::RevisionClock;
use crate::configs::{GroupResource, Revision};
use crate::health::Health;
use crate::name::PlacementName;
use crate::observed::{Instance, Observed, Seen, Work};
use crate::versions;

/// Whether every work carries the assigned hashes, and the agent reports its current generation as
/// applied, available and healthy.
pub(super) fn has_arrived(observed: &Observed, instance: &Instance) -> bool {
    has_arrived_except(observed, instance, &BTreeSet::new())
}

pub(super) fn has_arrived_except(
    observed: &Observed,
    instance: &Instance,
    own: &BTreeSet<GroupResource>,
) -> bool {
    is_applied_except(observed, instance, own) && is_healthy(observed, instance)
}

/// S20: where Aviary renders the works, the health of every work is proved.
pub(super) fn is_healthy(observed: &Observed, instance: &Instance) -> bool {
    works_of(observed, &instance.cluster).all(|work| is_proved_healthy(observed, instance, work))
}

/// S9: every work carries the assigned hashes, and is applied and available at its generation.
pub(super) fn is_applied(observed: &Observed, instance: &Instance) -> bool {
    is_applied_except(observed, instance, &BTreeSet::new())
}

fn is_applied_except(observed: &Observed, instance: &Instance, own: &BTreeSet<GroupResource>) -> bool {
    let told = told_except(instance, own);
    // A work without hashes that has the assigned version proves only the kinds that select the
    // version.
    let by_version = |work: &Work| {
        let version = versions::of_revision(observed, &instance.status.told_revision());
        let chooses = [GroupResource::hub_configs(), GroupResource::templates()];
        work.version.is_some()
            && work.version == version
            && told.iter().all(|(kind, _)| chooses.contains(&kind))
    };
    // Those of a work have no order.
    let mut sorted = told.clone();
    sorted.sort();
    let carries = |work: &Work| match &work.hashes {
        Some(hashes) => hashes.iter().filter(|(kind, _)| !own.contains(kind)).eq(sorted.iter()),
        None => told.is_empty() || by_version(work),
    };
    let mut works = works_of(observed, &instance.cluster).peekable();
    works.peek().is_some()
        && works.all(|work| carries(work) && work.applied == Seen::Yes && work.available == Seen::Yes)
}

/// Where a work asks for the health of its objects, nothing but a healthy answer counts. A cluster
/// that has settled on its revision may lack what its workload tolerates.
fn is_proved_healthy(observed: &Observed, instance: &Instance, work: &Work) -> bool {
    let had_arrived = || {
        let completed = governor(observed, &instance.cluster).is_none_or(|spec| {
            let recorded = observed.addon.status.placements.get(&spec.name);
            let applied = recorded.and_then(|recorded| recorded.applied.as_ref());
            let own = own_kinds(instance);
            let told = |revision: &Revision| {
                let pins = revision.pins().iter().filter(|pin| !own.contains(&pin.config.kind));
                let pins = pins.map(|pin| (pin.config.kind.clone(), pin.hash.clone()));
                pins.eq(told_except(instance, &own))
            };
            applied.is_some_and(told)
        });
        completed && RevisionClock::carried_by(&instance.status).is_some_and(|clock| clock.has_arrived)
    };
    match work.health {
        Health::Healthy => true,
        Health::NotProbed => !must_be_probed(instance),
        Health::Kept { .. } => has_returned(observed, instance),
        Health::Progressing { tolerable, .. } | Health::Failed { tolerable, .. } => {
            tolerable && had_arrived()
        }
        Health::Unknown { .. } => false,
    }
}

/// Whether its placement completed its revision and has taken back a later one. What agents create
/// only once may then be of the later one.
fn has_returned(observed: &Observed, instance: &Instance) -> bool {
    let own = own_kinds(instance);
    let wanted = told_except(instance, &own);
    let is_told = |revision: &Revision| {
        let pins = revision.pins().iter().filter(|pin| !own.contains(&pin.config.kind));
        pins.map(|pin| &pin.hash).eq(wanted.iter().map(|(_, hash)| hash))
    };
    governor(observed, &instance.cluster).is_some_and(|spec| {
        let of = |history: &BTreeMap<PlacementName, Vec<Revision>>| {
            history.get(&spec.name).cloned().unwrap_or_default()
        };
        !of(&observed.revisions.withdrawn).is_empty() && of(&observed.revisions.completed).iter().any(is_told)
    })
}

/// Whether only works with probes prove that it is healthy: Aviary renders them, and this version
/// has assigned the revision, so it has rendered them since. Works of the first version, which
/// named no placement in its clocks, and of other managers, which have none, are accepted without
/// probes; so is whatever becomes of a work after its cluster was healthy.
fn must_be_probed(instance: &Instance) -> bool {
    let is_rendered = instance.status.told().any(|pin| pin.config.kind == *GroupResource::templates());
    let clock = RevisionClock::carried_by(&instance.status);
    is_rendered && clock.is_some_and(|clock| clock.placement.is_some() && !clock.has_arrived)
}
