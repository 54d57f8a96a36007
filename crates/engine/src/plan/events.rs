//! Kubernetes Events: what happened to a placement since its recorded status.

use aviary_api::names::conditions::{PROGRESSING, STALLED};

use super::{Event, label};
use crate::fleet::{Fleet, Governor};
use crate::observed::ObservedCondition;
use crate::reason::{EventReason, Reason};
use crate::rollout::{PlacementOutcome, Promotion, State};
use crate::verdict::counted;

/// The events since the recorded status. Each event comes from a change of the recorded state, so
/// it is published once.
pub(super) fn of(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &PlacementOutcome) -> Vec<Event> {
    let mut events = Vec::new();
    let mut tell =
        |reason, message| events.push(Event { placement: governor.spec.name.clone(), reason, message });
    let recorded = governor.recorded;
    let clusters = outcome.counts.governed;
    let progressing =
        recorded.and_then(|recorded| ObservedCondition::find(&recorded.conditions, PROGRESSING));
    // A placement may be decided after its revision is desired: only then does the rollout start.
    let was_empty = progressing.is_some_and(|condition| {
        condition.message.starts_with("0/0 ") || condition.message.contains(" 0/0 ")
    });
    if let Ok(desired) = &outcome.aim.desired
        && !desired.is_empty()
        && (was_empty || recorded.and_then(|recorded| recorded.desired.as_ref()) != Some(desired))
    {
        let shown = label(fleet.observed, desired);
        // Clusters that already run it are not touched.
        let left = counted(clusters - outcome.counts.done - outcome.counts.left_out, "cluster");
        let is_rollback = governor.completed.contains(desired);
        match (is_rollback, clusters, outcome.counts.done + outcome.counts.left_out == clusters) {
            // There is nothing to report about clusters that are not there.
            (_, 0, _) => {}
            (true, _, true) => {
                tell(EventReason::RolledBack, format!("{shown} is desired again; no cluster had left it"));
            }
            (true, _, false) => tell(EventReason::RolledBack, format!("rolling back to {shown} on {left}")),
            (false, _, true) => {
                tell(
                    EventReason::RolloutStarted,
                    format!("{shown} is desired; every cluster has it already"),
                );
            }
            (false, _, false) => tell(EventReason::RolloutStarted, format!("rolling out {shown} to {left}")),
        }
    }
    if let (Some(Promotion::CanaryPassed), Some(passed)) = (outcome.aim.promotion, &outcome.known_good) {
        tell(EventReason::CanaryPassed, format!("{} passed the canary", label(fleet.observed, passed)));
    }
    let before = recorded.and_then(|recorded| recorded.applied.as_ref());
    if let Some(applied) = outcome.applied.as_ref().filter(|applied| !applied.is_empty())
        && before != Some(applied)
        && [outcome.known_good.as_ref(), recorded.and_then(|recorded| recorded.known_good.as_ref())]
            .contains(&Some(applied))
    {
        let (shown, all) = (label(fleet.observed, applied), clusters - outcome.counts.left_out);
        match all {
            0 => {}
            1 => tell(EventReason::RolloutCompleted, format!("its cluster has {shown}")),
            _ => tell(EventReason::RolloutCompleted, format!("all {all} clusters have {shown}")),
        }
    }
    // OCM's words for progress do not say so; there, it has a condition of its own.
    let stalled = recorded.and_then(|recorded| ObservedCondition::find(&recorded.conditions, STALLED));
    let was_failed = progressing.is_some_and(|condition| condition.reason.is(Reason::is_failure))
        || stalled.is_some_and(ObservedCondition::is_true);
    if let State::Failed(failure) = &outcome.state
        && !was_failed
    {
        let is_halted = outcome.state.is_halted();
        tell(
            if is_halted { EventReason::RolloutHalted } else { EventReason::RolloutFailed },
            failure.to_string(),
        );
    }
    events
}
