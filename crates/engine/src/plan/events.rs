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
        promoted(fleet, outcome),
        started(fleet, governor, outcome),
        completed(fleet, governor, outcome),
        failed(fleet, governor, outcome),
    ];
    let told = told.into_iter().flatten();
    told.map(|(reason, message)| Event { placement: governor.spec.name.clone(), reason, message }).collect()
}

fn started(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &PlacementOutcome) -> Option<Told> {
    let recorded = governor.recorded;
    let clusters = outcome.counts.governed;
    let desired = outcome.aim.desired.as_ref().ok().filter(|desired| !desired.is_empty())?;
    // A placement may be decided after its revision is desired: only then does the rollout start.
    let was_empty = recorded_counts(governor).is_some_and(|progress| progress.governed == 0);
    let is_new = was_empty || recorded.and_then(|recorded| recorded.desired.as_ref()) != Some(desired);
    // First installs are not gated.
    let is_gated = outcome.aim.gate.is_some() && outcome.aim.known_good.is_some();
    let shown = label(fleet.observed, desired);
    // Clusters that already run it are not touched.
    let left = clusters - outcome.counts.done - outcome.counts.left_out;
    if is_gated {
        // Only its clusters in the canary start before the gate opens.
        let unsettled = clusters - outcome.counts.settled - outcome.counts.left_out;
        let first = unsettled.saturating_sub(outcome.counts.unsettled_gated);
        let message = || format!("rolling out {shown} to {} in the canary", counted(first, "cluster"));
        return (is_new && first > 0).then(|| (EventReason::RolloutStarted, message()));
    }
    let starts = is_new || (left > 0 && gate_opens(governor, outcome));
    if !starts {
        return None;
    }
    let is_rollback = governor.completed.contains(desired);
    let on = counted(left, "cluster");
    match (is_rollback, clusters, left) {
        // There is nothing to report about clusters that are not there.
        (_, 0, _) => None,
        (true, _, 0) => {
            Some((EventReason::RolledBack, format!("{shown} is desired again; no cluster had left it")))
        }
        (true, ..) => Some((EventReason::RolledBack, format!("rolling back to {shown} on {on}"))),
        (false, _, 0) => {
            Some((EventReason::RolloutStarted, format!("{shown} is desired; every cluster has it already")))
        }
        (false, ..) => Some((EventReason::RolloutStarted, format!("rolling out {shown} to {on}"))),
    }
}

/// Whether clusters that a closed gate kept back may start from this pass on.
fn gate_opens(governor: &Governor<'_>, outcome: &PlacementOutcome) -> bool {
    let was_gated = governor.recorded.is_some_and(|recorded| recorded.known_good.is_some());
    let was_waiting = recorded_condition(governor, PROGRESSING)
        .is_some_and(|condition| condition.reason == Reason::WaitingForCanary);
    was_gated && (outcome.aim.promotion.is_some() || was_waiting)
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
    if (was_known && !is_back(governor, outcome)) || !good.contains(&Some(applied)) {
        return None;
    }
    let (shown, all) = (label(fleet.observed, applied), outcome.counts.governed - outcome.counts.left_out);
    match all {
        0 => None,
        1 => Some((EventReason::RolloutCompleted, format!("its cluster has {shown}"))),
        _ => Some((EventReason::RolloutCompleted, format!("all {all} clusters have {shown}"))),
    }
}

/// Whether all clusters are back on the revision that the placement had completed before, and that
/// some had left. Its recorded revisions are the same all the time.
fn is_back(governor: &Governor<'_>, outcome: &PlacementOutcome) -> bool {
    let desired = outcome.aim.desired.as_ref().ok();
    let was_desired =
        governor.recorded.is_some_and(|recorded| recorded.desired.as_ref() == desired && desired.is_some());
    let was_under_way = recorded_condition(governor, PROGRESSING)
        .is_some_and(|condition| !condition.reason.is(Reason::is_success))
        && recorded_counts(governor).is_none_or(|progress| progress.governed > 0);
    let is_complete = matches!(outcome.state, State::InstallSucceeded | State::UpgradeSucceeded);
    was_desired
        && was_under_way
        && is_complete
        && outcome.counts.fresh == 0
        && outcome.applied.as_ref() == desired
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

fn recorded_counts(governor: &Governor<'_>) -> Option<ProgressCounts> {
    ProgressCounts::read(&recorded_condition(governor, PROGRESSING)?.message)
}

fn recorded_condition<'a>(governor: &Governor<'a>, kind: &str) -> Option<&'a ObservedCondition> {
    ObservedCondition::find(&governor.recorded?.conditions, kind)
}
