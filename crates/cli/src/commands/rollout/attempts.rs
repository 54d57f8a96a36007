//! Rollouts that did not complete: those that the add-on's status keeps, and the current ones.

use aviary_engine::attempts::{self, Attempt, OpenRollout, RecordedFailure};
use aviary_engine::fleet::{Fleet, Governor};
use aviary_engine::reason::RolloutOutcome;
use jiff::Timestamp;
use serde::Serialize;

use crate::live::seconds;

/// One rollout of a placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttemptLine {
    placement: String,
    /// Such as "rolling out v2.0.0".
    pub(super) what: String,
    pub(super) started_at: String,
    /// Anything but completed.
    pub(super) outcome: RolloutOutcome,
    /// Why it failed, and what followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) took_seconds: Option<i64>,
}

/// The attempts of a placement, the oldest first.
pub(super) fn of(fleet: &Fleet<'_>, governor: &Governor<'_>) -> Vec<AttemptLine> {
    let name = &governor.spec.name;
    let line = |version: &str, started: Timestamp, outcome, why: Option<String>, ended: Option<Timestamp>| {
        AttemptLine {
            placement: name.to_string(),
            what: format!("rolling out {version}"),
            started_at: seconds(started).to_string(),
            outcome,
            why,
            ended_at: ended.map(|at| seconds(at).to_string()),
            took_seconds: ended.map(|at| at.duration_since(started).as_secs()),
        }
    };
    let kept = fleet.observed.addon.status.attempts.iter().filter(|one| one.placement == *name);
    let kept = kept.map(|Attempt { version, outcome, message, started, ended, .. }| {
        line(version, *started, outcome.as_reported(), Some(message.to_string()), Some(*ended))
    });
    let current = attempts::open(fleet, governor);
    let current = current.into_iter().map(|OpenRollout { version, started, failure }| match failure {
        Some(RecordedFailure { why, since }) => {
            line(&version, started, RolloutOutcome::Failed, Some(why.to_string()), since)
        }
        None => line(&version, started, RolloutOutcome::InProgress, None, None),
    });
    kept.chain(current).collect()
}
