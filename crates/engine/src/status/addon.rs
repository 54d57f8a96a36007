//! The status of an add-on: one summary per placement, the versions it offers, and what is wrong with its spec.
//!
//! Bounded whatever the fleet's size: counts, and at most ten named clusters.

use std::collections::BTreeMap;

use aviary_api::names::conditions::{DELETIONS_HELD, PLACEMENTS_RESOLVED, PROGRESSING, VALID};
use jiff::Timestamp;

use super::{Stated, set};
use crate::configs::Revision;
use crate::explain::Decision;
use crate::fleet::{Fleet, Governor};
use crate::install::{ACKNOWLEDGED, Install, acknowledgement};
use crate::observed::{AddOnStatus, InstallStrategy, Recorded};
use crate::problem::Problem;
use crate::rollout::{Failure, Move, Outcome, State};
use crate::versions;

/// How many clusters or problems a message names at most.
const NAMED: usize = 10;

/// The status that the add-on should have after this pass.
pub fn next(fleet: &Fleet<'_>, install: &Install, outcomes: &[Outcome], now: Timestamp) -> AddOnStatus {
    let addon = &fleet.observed.addon;
    let mut status = addon.status.clone();
    if fleet.observed.renders_templates() {
        status.supported_versions.clone_from(&fleet.resolver.offered);
        status.default_version = versions::default_version(&fleet.resolver.offered);
    }
    status.placements = fleet
        .governors
        .iter()
        .zip(outcomes)
        .map(|(governor, outcome)| (governor.spec.name.clone(), recorded(fleet, governor, outcome, now)))
        .collect::<BTreeMap<_, _>>();
    conditions(fleet, install, &mut status, now);
    if let Some((status_of_all, reason, message)) = overall(fleet, outcomes) {
        let stated = Stated { kind: PROGRESSING, status: status_of_all, reason, message: message.into() };
        set(&mut status.conditions, addon.generation, now, stated);
    }
    status
}

/// The add-on in one line: the placement that most wants to be looked at speaks for all.
fn overall(fleet: &Fleet<'_>, outcomes: &[Outcome]) -> Option<(&'static str, &'static str, String)> {
    let urgency = |state: &State| match state {
        State::Failed(_) => 0,
        State::Upgrading | State::Installing | State::Paused => 1,
        State::WaitingForCanary(_) => 2,
        State::UpgradeSucceeded => 3,
        State::InstallSucceeded => 4,
        State::Empty => 5,
    };
    let (governor, outcome) =
        fleet.governors.iter().zip(outcomes).min_by_key(|(_, outcome)| urgency(&outcome.state))?;
    let (status, reason, message) = summary(fleet, governor, outcome);
    Some((status, reason, format!("{}: {message}", governor.spec.name)))
}

fn recorded(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &Outcome, now: Timestamp) -> Recorded {
    let mut recorded = governor.recorded.cloned().unwrap_or_default();
    // A status cannot tell an empty revision from none: what could not be read back would be written again for ever.
    let told = |revision: &Option<Revision>| revision.clone().filter(|revision| !revision.is_empty());
    if let Ok(desired) = &outcome.aim.desired {
        recorded.desired = told(&Some(desired.clone()));
    }
    recorded.known_good = told(&outcome.aim.known_good);
    recorded.applied = told(&outcome.applied);
    let (status, reason, message) = summary(fleet, governor, outcome);
    let stated = Stated { kind: PROGRESSING, status, reason, message: message.into() };
    set(&mut recorded.conditions, fleet.observed.addon.generation, now, stated);
    recorded
}

/// One sentence on a placement.
pub fn summary(
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    outcome: &Outcome,
) -> (&'static str, &'static str, String) {
    let counts = &outcome.counts;
    // On a revision that cannot be told, nobody is.
    let on_target = if outcome.aim.problem().is_some() { 0 } else { counts.on_target };
    let progress = format!("{on_target}/{}", counts.governed);
    let first = outcome.applied.is_none() && counts.upgraded == 0;
    let failed = |why: String| match first {
        true => ("False", "InstallFailed", format!("{progress} install failed: {why}")),
        false => ("False", "UpgradeFailed", format!("{progress} upgrade failed: {why}")),
    };
    if !governor.known {
        return failed(Problem::PlacementUnknown { placement: governor.spec.name.clone() }.to_string());
    }
    match &outcome.state {
        State::Empty => ("False", "InstallSucceed", format!("{progress} the placement selects no cluster")),
        State::Installing => ("True", "Installing", format!("{progress} installing...")),
        State::InstallSucceeded => {
            ("False", "InstallSucceed", format!("{progress} install completed with no errors."))
        }
        State::Upgrading => ("True", "Upgrading", format!("{progress} upgrading...")),
        State::UpgradeSucceeded => {
            ("False", "UpgradeSucceed", format!("{progress} upgrade completed with no errors."))
        }
        State::WaitingForCanary(wait) => ("True", "WaitingForCanary", format!("waitingForCanary... {wait}")),
        State::Paused => ("True", "Upgrading", format!("{progress} upgrading... paused")),
        State::Failed(Failure::Problem(problem)) => failed(problem.to_string()),
        State::Failed(failure) => failed(format!("{failure}: {}", failed_clusters(fleet, governor, outcome))),
    }
}

/// The first few clusters that failed.
fn failed_clusters(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &Outcome) -> String {
    let decisions = &outcome.decisions;
    let is_failure =
        |decided: &Move| matches!(&decided.decision, Decision::InFlight(flight) if flight.is_failure());
    let failures: Vec<bool> = decisions.moves.iter().map(is_failure).collect();
    let failed = governor
        .members
        .iter()
        .zip(&decisions.of)
        .filter(|&(_, &decided)| failures.get(decided as usize) == Some(&true))
        .filter_map(|(&position, _)| fleet.lines.get(position))
        .map(|line| line.name.to_string());
    named(failed)
}

/// At most ten of them, and how many more there are.
fn named(all: impl Iterator<Item = String>) -> String {
    let mut all = all;
    let shown: Vec<String> = all.by_ref().take(NAMED).collect();
    let more = all.count();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn conditions(fleet: &Fleet<'_>, install: &Install, status: &mut AddOnStatus, now: Timestamp) {
    let generation = fleet.observed.addon.generation;
    let mut state = |new: Stated| set(&mut status.conditions, generation, now, new);
    let (about_placements, about_spec): (Vec<&Problem>, Vec<&Problem>) =
        fleet.problems.iter().partition(|problem| {
            matches!(
                problem,
                Problem::PlacementUnknown { .. }
                    | Problem::PlacementInMotion { .. }
                    | Problem::ClusterNameInvalid { .. }
            )
        });
    let serious = about_spec.iter().find(|problem| !problem.is_warning());
    let text = sentence(&about_spec);
    state(match (serious, about_spec.first()) {
        (Some(problem), _) => {
            Stated { kind: VALID, status: "False", reason: problem.code(), message: text.clone().into() }
        }
        (None, Some(warning)) => {
            Stated { kind: VALID, status: "True", reason: warning.code(), message: text.clone().into() }
        }
        (None, None) => {
            Stated { kind: VALID, status: "True", reason: "Valid", message: "the spec is valid".into() }
        }
    });
    if matches!(fleet.observed.addon.strategy, InstallStrategy::Placements(_)) {
        let text = sentence(&about_placements);
        state(match about_placements.first() {
            Some(problem) => Stated {
                kind: PLACEMENTS_RESOLVED,
                status: "False",
                reason: problem.code(),
                message: text.clone().into(),
            },
            None => Stated {
                kind: PLACEMENTS_RESOLVED,
                status: "True",
                reason: "Resolved",
                message: "all placements are known".into(),
            },
        });
    }
    let was_held =
        fleet.observed.addon.status.conditions.iter().any(|condition| condition.kind == DELETIONS_HELD);
    match (&install.problem, install.acknowledged) {
        (Some(problem), _) => state(Stated {
            kind: DELETIONS_HELD,
            status: "True",
            reason: problem.code(),
            message: problem.to_string().into(),
        }),
        (None, Some(number)) => state(Stated {
            kind: DELETIONS_HELD,
            status: "False",
            reason: ACKNOWLEDGED,
            message: acknowledgement(number).into(),
        }),
        (None, None) if was_held => state(Stated {
            kind: DELETIONS_HELD,
            status: "False",
            reason: "NothingHeld",
            message: "no deletion is held back".into(),
        }),
        (None, None) => {}
    }
}

fn sentence(problems: &[&Problem]) -> String {
    let mut all = problems.iter().map(ToString::to_string);
    let shown: Vec<String> = all.by_ref().take(NAMED).collect();
    let more = all.count();
    let shown = shown.join("; ");
    if more == 0 { shown } else { format!("{shown}; and {more} more") }
}
