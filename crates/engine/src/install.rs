//! The install controller as a function: which instances to create and which to delete (semantics §4).
//!
//! It never changes an instance, never deletes one that a user made, and never takes "unknown" for "none".

use std::collections::BTreeMap;

use aviary_api::names;
use aviary_api::names::conditions::DELETIONS_HELD;

use crate::explain::{Decision, Removal, Wait};
use crate::fleet::{Flag, Fleet, Line};
use crate::name::{ClusterName, Text};
use crate::observed::{InstallStrategy, Instance};
use crate::problem::Problem;

/// An instance to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    pub cluster: ClusterName,
    pub install_namespace: Text,
    /// The value of the marker label.
    pub marker: &'static str,
}

/// An instance to delete, and only this very one.
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
    /// By position in the fleet: clusters about which the rollout has nothing to say.
    pub decisions: BTreeMap<usize, Decision>,
    pub problem: Option<Problem>,
    /// So many deletions are under way on a person's word.
    pub acknowledged: Option<usize>,
}

enum Presence {
    Create,
    Delete(Removal),
    Hold(Wait),
    /// It is there and stays; what it is told is for the rollout.
    Stays,
}

pub fn decide(fleet: &Fleet<'_>) -> Install {
    let uncertain = fleet.uncertain();
    let mut install = Install::default();
    let mut deselected = Vec::new();
    let mut leaving = 0;
    for &position in &fleet.in_question {
        let Some(member) = fleet.lines.get(position) else { continue };
        match presence(fleet, member, uncertain) {
            Presence::Create => {
                install.creates.push(create(fleet, member));
                install.decisions.insert(position, Decision::Create);
            }
            Presence::Delete(Removal::Deselected) => deselected.push(position),
            Presence::Delete(why) => install.delete(position, member, why),
            Presence::Hold(wait) => {
                leaving += usize::from(wait == Wait::Terminating && !member.is(Flag::Selected));
                install.decisions.insert(position, Decision::Hold(wait));
            }
            Presence::Stays => {}
        }
    }
    let brake = brake(fleet, deselected.len(), leaving);
    for &position in &deselected {
        match fleet.lines.get(position) {
            Some(_) if brake == Brake::Holds => {
                install.decisions.insert(position, Decision::Hold(Wait::DeletionHeld));
            }
            Some(member) => install.delete(position, member, Removal::Deselected),
            None => {}
        }
    }
    match brake {
        Brake::Holds => {
            let of = fleet.observed.instances.len();
            install.problem = Some(Problem::DeletionHeld { count: deselected.len(), of });
        }
        Brake::Acknowledged(number) => install.acknowledged = Some(number),
        Brake::Free => {}
    }
    install
}

impl Install {
    fn delete(&mut self, position: usize, member: &Line<'_>, why: Removal) {
        if let Some(instance) = member.instance {
            self.deletes.push(Delete {
                cluster: member.name.clone(),
                uid: instance.uid.clone(),
                why: why.clone(),
            });
            self.decisions.insert(position, Decision::Delete(why));
        }
    }
}

fn presence(fleet: &Fleet<'_>, member: &Line<'_>, uncertain: bool) -> Presence {
    let Some(instance) = member.instance else {
        return match member {
            absent if !absent.is(Flag::Present) => Presence::Hold(Wait::ClusterAbsent),
            leaving if leaving.is(Flag::Leaving) => Presence::Hold(Wait::ClusterDeleting),
            opted_out if opted_out.is(Flag::OptedOut) => Presence::Hold(Wait::OptedOut),
            _ => Presence::Create,
        };
    };
    if member.is(Flag::Terminating) {
        return Presence::Hold(Wait::Terminating);
    }
    if member.is(Flag::Leaving) {
        return Presence::Delete(Removal::ClusterDeleting);
    }
    if member.is(Flag::Selected) || !made_by_strategy(instance, fleet) {
        // Without its ManagedCluster nothing can be delivered, and no placement governs it: it must not fall back to the defaults.
        return if member.is(Flag::Present) { Presence::Stays } else { Presence::Hold(Wait::ClusterAbsent) };
    }
    match &fleet.observed.addon.strategy {
        // Changed to Manual: everything is kept. What placements had rolled out stays as it is; no placement governs it any more.
        InstallStrategy::Manual | InstallStrategy::Unusable(_) => match instance.marker.as_deref() {
            Some("Placements") => Presence::Hold(Wait::Kept),
            _ => Presence::Stays,
        },
        InstallStrategy::Placements(_) if uncertain => Presence::Hold(Wait::DeletionWaits),
        InstallStrategy::Placements(_) | InstallStrategy::Labels(_) => Presence::Delete(Removal::Deselected),
    }
}

/// It carries our marker, and is not a leftover of an earlier add-on of the same name.
fn made_by_strategy(instance: &Instance, fleet: &Fleet<'_>) -> bool {
    instance.marker.is_some()
        && instance.owner.as_deref().is_none_or(|owner| owner == &*fleet.observed.addon.uid)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brake {
    Free,
    Holds,
    /// It would hold, had not somebody given this number.
    Acknowledged(usize),
}

/// Deletions under way count towards the brake, so that it cannot be passed in small steps; what needs a person's word is
/// the number still to be deleted. That word holds until they are deleted, however often that is interrupted: the add-on's status says what
/// it was given for, so that it is good for nothing else later.
fn brake(fleet: &Fleet<'_>, deselected: usize, leaving: usize) -> Brake {
    let addon = &fleet.observed.addon;
    let brake = fleet.observed.options.brake;
    let at_once = deselected + leaving;
    let holds = deselected > 0
        && at_once > brake.more_than
        && at_once * 100 > fleet.observed.instances.len() * brake.more_than_percent;
    if !holds {
        return Brake::Free;
    }
    let given = |number: usize| {
        let message = acknowledgement(number);
        addon.status.conditions.iter().any(|condition| {
            condition.kind == DELETIONS_HELD
                && condition.reason == ACKNOWLEDGED
                && *condition.message == *message
        })
    };
    match addon.allow_deletions {
        Some(number) if number == deselected || (at_once <= number && given(number)) => {
            Brake::Acknowledged(number)
        }
        _ => Brake::Holds,
    }
}

/// The reason of a condition that says which number of deletions was acknowledged.
pub const ACKNOWLEDGED: &str = "DeletionAcknowledged";

pub fn acknowledgement(number: usize) -> String {
    format!("{number} deletions were acknowledged and are under way")
}

fn create(fleet: &Fleet<'_>, member: &Line<'_>) -> Create {
    let strategy = &fleet.observed.addon.strategy;
    let placement = member.governor().and_then(|index| strategy.placements().get(index));
    let namespace = placement.and_then(|placement| placement.install_namespace.clone());
    Create {
        cluster: member.name.clone(),
        install_namespace: namespace.unwrap_or_else(|| names::DEFAULT_INSTALL_NAMESPACE.into()),
        marker: strategy.marker(),
    }
}
