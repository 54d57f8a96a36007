//! Kubernetes Events: what happened to a placement since its recorded status.

use aviary_api::names::conditions::{PROGRESSING, STALLED};

use super::{Event, label};
use crate::fleet::{Fleet, Governor};
use crate::observed::ObservedCondition;
use crate::reason::{EventReason, Reason};
use crate::rollout::{Failure, PlacementOutcome, Promotion, State};
use crate::status::addon::{ProgressCounts, clipped};
use crate::verdict::counted;

/// What one event says.
type Told = (EventReason, String);

/// The events since the recorded status. Each event comes from a change of the recorded state, so
/// it is published once.
pub(super) fn of(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &PlacementOutcome) -> Vec<Event> {
    let told = [
        started(fleet, governor, outcome),
        promoted(fleet, outcome),
        completed(fleet, governor, outcome),
        failed(fleet, governor, outcome),
    ];
    let told = told.into_iter().flatten();
    told.map(|(reason, message)| Event { placement: governor.spec.name.clone(), reason, message }).collect()
}

fn started(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &PlacementOutcome) -> Option<Told> {
    let recorded = governor.recorded;
    let clusters = outcome.counts.governed;
    // A placement may be decided after its revision is desired: only then does the rollout start.
    let was_empty = recorded_condition(governor, PROGRESSING)
        .and_then(|condition| ProgressCounts::read(&condition.message))
        .is_some_and(|progress| progress.governed == 0);
    let desired = outcome.aim.desired.as_ref().ok().filter(|desired| !desired.is_empty())?;
    if !was_empty && recorded.and_then(|recorded| recorded.desired.as_ref()) == Some(desired) {
        return None;
    }
    let shown = label(fleet.observed, desired);
    // Clusters that already run it are not touched.
    let left = counted(clusters - outcome.counts.done - outcome.counts.left_out, "cluster");
    let is_rollback = governor.completed.contains(desired);
    match (is_rollback, clusters, outcome.counts.done + outcome.counts.left_out == clusters) {
        // There is nothing to report about clusters that are not there.
        (_, 0, _) => None,
        (true, _, true) => {
            Some((EventReason::RolledBack, format!("{shown} is desired again; no cluster had left it")))
        }
        (true, _, false) => Some((EventReason::RolledBack, format!("rolling back to {shown} on {left}"))),
        (false, _, true) => {
            Some((EventReason::RolloutStarted, format!("{shown} is desired; every cluster has it already")))
        }
        (false, _, false) => Some((EventReason::RolloutStarted, format!("rolling out {shown} to {left}"))),
    }
}

fn promoted(fleet: &Fleet<'_>, outcome: &PlacementOutcome) -> Option<Told> {
    let passed = outcome.known_good.as_ref()?;
    let is_promotion = matches!(outcome.aim.promotion, Some(Promotion::CanaryPassed));
    let message = || format!("{} passed the canary", label(fleet.observed, passed));
    is_promotion.then(|| (EventReason::CanaryPassed, message()))
}

fn completed(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &PlacementOutcome) -> Option<Told> {
    let recorded = governor.recorded;
    let applied = outcome.applied.as_ref().filter(|applied| !applied.is_empty())?;
    let was_known = recorded.and_then(|recorded| recorded.applied.as_ref()) == Some(applied);
    let good = [outcome.known_good.as_ref(), recorded.and_then(|recorded| recorded.known_good.as_ref())];
    if was_known || !good.contains(&Some(applied)) {
        return None;
    }
    let (shown, all) = (label(fleet.observed, applied), outcome.counts.governed - outcome.counts.left_out);
    match all {
        0 => None,
        1 => Some((EventReason::RolloutCompleted, format!("its cluster has {shown}"))),
        _ => Some((EventReason::RolloutCompleted, format!("all {all} clusters have {shown}"))),
    }
}

fn failed(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &PlacementOutcome) -> Option<Told> {
    // OCM's words for progress do not say so; there, it has a condition of its own.
    let was_failed = recorded_condition(governor, PROGRESSING)
        .is_some_and(|condition| condition.reason.is(Reason::is_failure))
        || recorded_condition(governor, STALLED).is_some_and(ObservedCondition::is_true);
    let State::Failed(failure) = &outcome.state else { return None };
    if was_failed {
        return None;
    }
    let reason =
        if outcome.state.is_halted() { EventReason::RolloutHalted } else { EventReason::RolloutFailed };
    let first = match failure {
        Failure::Problem(_) => None,
        _ => outcome.first_failed(fleet, governor),
    };
    let message = match first {
        Some(first) => format!("{failure}; {} {}", first.cluster, clipped(&first.flight.to_string())),
        None => failure.to_string(),
    };
    Some((reason, message))
}

fn recorded_condition<'a>(governor: &Governor<'a>, kind: &str) -> Option<&'a ObservedCondition> {
    ObservedCondition::find(&governor.recorded?.conditions, kind)
}
