//! Decides which instances to create and delete (rules, chapter 4).
//!
//! Never changes an instance, never deletes one that a user created because its cluster is
//! deselected, and never treats "unknown" as "none".

use std::collections::BTreeMap;
use std::sync::Arc;

use aviary_api::names;
use aviary_api::names::conditions::DELETIONS_HELD;

use crate::by_cluster::ByCluster;
use crate::explain::{Decision, Removal, Wait};
use crate::fleet::{ClusterFacts, Cohort, Fleet, FleetLine, InstanceFacts};
use crate::name::{ClusterName, Text};
use crate::observed::{Cluster, InstallRule, Instance, Maker, RefusedWrite};
use crate::problem::Problem;
use crate::reason::Reason;

/// An instance to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    pub cluster: ClusterName,
    pub install_namespace: Text,
    /// The value of the marker label.
    pub marker: &'static str,
    /// What it gets from its cluster, on an OCM hub.
    pub annotations: BTreeMap<Text, Text>,
}

/// An instance to delete, with its UID as a precondition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    pub cluster: ClusterName,
    pub uid: Text,
    pub why: Removal,
}

#[derive(Clone, Debug, Default)]
pub struct Install {
    pub creates: Vec<Create>,
    pub deletes: Vec<Delete>,
    /// For each cohort of the fleet; `None` if its instances exist and stay.
    pub decisions: Vec<Option<Decision>>,
    pub problem: Option<Problem>,
    /// The number of approved deletions in progress.
    pub acknowledged: Option<usize>,
}

/// The instances of an add-on that does not exist, on clusters that are being deleted. Nothing else
/// deletes them, and they would block the deletion of the cluster's namespace. Other instances
/// without an add-on belong to their users.
pub fn abandoned(instances: &ByCluster<Instance>, clusters: &ByCluster<Cluster>) -> Vec<Delete> {
    let is_leaving = |instance: &Instance| {
        !instance.deleting && clusters.get(&instance.cluster).is_some_and(|cluster| cluster.deleting)
    };
    let leaving = instances.values().filter(|instance| is_leaving(instance));
    leaving
        .map(|instance| Delete {
            cluster: instance.cluster.clone(),
            uid: instance.uid.clone(),
            why: Removal::ClusterDeleting,
        })
        .collect()
}

pub fn decide(fleet: &Fleet<'_>) -> Install {
    let uncertain = fleet.uncertain();
    let mut decisions: Vec<Option<Decision>> =
        fleet.cohorts.iter().map(|cohort| presence(fleet, &cohort.facts, uncertain)).collect();
    let count = |is_so: &dyn Fn(&Cohort<'_>, &Decision) -> bool| -> usize {
        let decided = fleet.cohorts.iter().zip(&decisions);
        let counted =
            decided.filter(|(cohort, one)| one.as_ref().is_some_and(|decision| is_so(cohort, decision)));
        counted.map(|(cohort, _)| cohort.members.len()).sum()
    };
    let deselected = count(&|_, decision| *decision == Decision::Delete(Removal::Deselected));
    let leaving = count(&|cohort, decision| {
        let under_way =
            *decision == Decision::Hold(Wait::Terminating) || cohort.facts.is_refused(RefusedWrite::Delete);
        under_way && !cohort.facts.selected
    });
    let brake = brake(fleet, deselected, leaving);
    if brake == BrakeState::Holds {
        for decision in decisions.iter_mut().flatten() {
            if *decision == Decision::Delete(Removal::Deselected) {
                *decision = Decision::Hold(Wait::DeletionHeld);
            }
        }
    }
    let mut install = Install { decisions, ..Install::default() };
    match brake {
        BrakeState::Holds => {
            let of = fleet.observed.instances.len();
            install.problem = Some(Problem::DeletionHeld { count: deselected, of });
        }
        BrakeState::Acknowledged(number) => install.acknowledged = Some(number),
        BrakeState::Free => {}
    }
    install.write(fleet);
    install
}

impl Install {
    /// The writes for the decisions, cluster by cluster. Deletions on clusters that are being
    /// deleted come first.
    fn write(&mut self, fleet: &Fleet<'_>) {
        if self.decisions.iter().all(Option::is_none) {
            return;
        }
        for line in &fleet.lines {
            let Some(Some(decision)) = self.decisions.get(line.cohort()) else { continue };
            match decision {
                Decision::Create => self.creates.extend(create(fleet, line)),
                Decision::Delete(why) => {
                    let instance = fleet.observed.instances.get(line.name);
                    self.deletes.extend(instance.map(|instance| Delete {
                        cluster: line.name.clone(),
                        uid: instance.uid.clone(),
                        why: why.clone(),
                    }));
                }
                _ => {}
            }
        }
        self.deletes.sort_by_key(|delete| delete.why == Removal::Deselected);
    }
}

/// Whether an instance should exist. `None` if it exists and stays; the rollout then decides its
/// revision.
fn presence(fleet: &Fleet<'_>, facts: &ClusterFacts<'_>, uncertain: bool) -> Option<Decision> {
    let is_leaving = facts.cluster.is_some_and(|cluster| cluster.deleting);
    let Some(instance) = &facts.instance else {
        return Some(match facts.cluster {
            None => Decision::Hold(Wait::ClusterAbsent),
            Some(_) if is_leaving => Decision::Hold(Wait::ClusterDeleting),
            Some(cluster) if cluster.opted_out => Decision::Hold(Wait::OptedOut),
            Some(_) if facts.lacks_namespace => Decision::Hold(Wait::NamespaceMissing),
            Some(_) => held_by_the_hub(facts).unwrap_or(Decision::Create),
        });
    };
    if instance.terminating {
        return Some(Decision::Hold(Wait::Terminating));
    }
    // OCM's registration removes them there, by its own priorities.
    if is_leaving && fleet.observed.served.is_ocm() {
        return Some(Decision::Hold(Wait::ClusterDeleting));
    }
    if is_leaving {
        return Some(held_by_the_hub(facts).unwrap_or(Decision::Delete(Removal::ClusterDeleting)));
    }
    // The garbage collector deletes instances of an earlier add-on of the same name.
    let made_by_strategy = instance.made_by != Maker::User && !instance.other_owner;
    if facts.selected || !made_by_strategy {
        // Without its ManagedCluster nothing can be delivered, and no placement governs it: it must
        // not fall back to the defaults.
        return facts.cluster.is_none().then_some(Decision::Hold(Wait::ClusterAbsent));
    }
    match &fleet.observed.addon.strategy {
        strategy @ (InstallRule::Manual | InstallRule::Unusable(_)) => {
            is_kept(strategy, instance).then_some(Decision::Hold(Wait::Kept))
        }
        InstallRule::Placements(_) if uncertain => Some(Decision::Hold(Wait::DeletionWaits)),
        InstallRule::Placements(_) | InstallRule::Labels(_) => {
            Some(held_by_the_hub(facts).unwrap_or(Decision::Delete(Removal::Deselected)))
        }
    }
}

/// The strategy has changed to one without placements: what they made keeps its revision, although
/// none governs it any more.
pub(crate) fn is_kept(strategy: &InstallRule, instance: &InstanceFacts<'_>) -> bool {
    matches!(strategy, InstallRule::Manual | InstallRule::Unusable(_))
        && instance.made_by == Maker::Placements
}

/// The marker that an instance of OCM's manager gets: an install strategy made it, only another
/// manager executed it. On a hub without OCM nobody but Aviary makes instances for a strategy.
pub(crate) fn adoption(fleet: &Fleet<'_>, instance: &InstanceFacts<'_>) -> Option<&'static str> {
    let observed = fleet.observed;
    let is_free = instance.made_by == Maker::User && !instance.lacks_owner && !instance.other_owner;
    let by_placements = matches!(observed.addon.strategy, InstallRule::Placements(_));
    let adopts = is_free && instance.made_by_ocm && observed.served.is_ocm() && by_placements;
    adopts.then(|| observed.addon.strategy.marker())
}

/// The clusters whose instances stay when they are deselected, although a strategy of OCM's may
/// have made them: on a hub of OCM, their number and the first few names.
pub(crate) fn kept(fleet: &Fleet<'_>, most: usize) -> (usize, Vec<ClusterName>) {
    let by_placements = matches!(fleet.observed.addon.strategy, InstallRule::Placements(_));
    if !fleet.observed.served.is_ocm() || !by_placements {
        return (0, Vec::new());
    }
    let is_kept = |cohort: &&Cohort<'_>| {
        cohort.facts.instance.as_ref().is_some_and(|instance| {
            instance.made_by == Maker::User
                && !instance.terminating
                && !instance.other_owner
                && adoption(fleet, instance).is_none()
        })
    };
    let mut positions: Vec<u32> =
        fleet.cohorts.iter().filter(is_kept).flat_map(|cohort| cohort.members.iter().copied()).collect();
    positions.sort_unstable();
    let lines = positions.iter().filter_map(|&at| fleet.lines.get(at as usize));
    (positions.len(), lines.take(most).map(|line| line.name.clone()).collect())
}

/// The hub refuses to create or to delete the instance.
fn held_by_the_hub(facts: &ClusterFacts<'_>) -> Option<Decision> {
    let refusal = facts.refusal.as_ref();
    let refusal =
        refusal.filter(|refusal| matches!(refusal.what, RefusedWrite::Create | RefusedWrite::Delete))?;
    Some(Decision::Hold(Wait::Problem(Arc::new(Problem::refused(refusal)))))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BrakeState {
    Free,
    Holds,
    /// It would hold, but somebody approved this number.
    Acknowledged(usize),
}

/// Deletions in progress count towards the brake, so that it cannot be bypassed in small steps. The
/// number to approve is the number still to be deleted. The add-on's status records the approved
/// number, so an approval survives interruptions and is not valid for later deletions.
fn brake(fleet: &Fleet<'_>, deselected: usize, leaving: usize) -> BrakeState {
    let addon = &fleet.observed.addon;
    let brake = fleet.observed.options.brake;
    let at_once = deselected + leaving;
    let holds = deselected > 0
        && at_once > brake.more_than
        && at_once * 100 > fleet.observed.instances.len() * brake.more_than_percent;
    if !holds {
        return BrakeState::Free;
    }
    let given = |number: usize| {
        let message = acknowledgement(number);
        addon.status.conditions.iter().any(|condition| {
            condition.kind == DELETIONS_HELD
                && condition.reason == Reason::DeletionAcknowledged
                && *condition.message == *message
        })
    };
    match addon.allow_deletions {
        Some(number) if number == deselected || (at_once <= number && given(number)) => {
            BrakeState::Acknowledged(number)
        }
        _ => BrakeState::Holds,
    }
}

pub(crate) fn acknowledgement(number: usize) -> String {
    format!("{number} deletions were acknowledged and are under way")
}

fn create(fleet: &Fleet<'_>, line: &FleetLine<'_>) -> Option<Create> {
    let facts = &fleet.cohorts.get(line.cohort())?.facts;
    let namespace = fleet.governor_of(facts).spec.install_namespace.clone();
    Some(Create {
        cluster: line.name.clone(),
        install_namespace: namespace.unwrap_or_else(|| names::DEFAULT_INSTALL_NAMESPACE.into()),
        marker: fleet.observed.addon.strategy.marker(),
        annotations: match fleet.observed.clusters.get(line.name) {
            Some(cluster) if fleet.observed.served.is_ocm() => cluster.addon_annotations.clone(),
            _ => BTreeMap::new(),
        },
    })
}
