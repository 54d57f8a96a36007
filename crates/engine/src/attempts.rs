//! Rollouts that end without completing: they failed, or another revision replaced them.
//!
//! The add-on's status keeps the last of them for the history. They are recorded by the write that
//! records the next desired revision, so they need no write of their own. No decision reads them.

use aviary_api::names::conditions::{PROGRESSING, STALLED};
use jiff::Timestamp;

use crate::configs::Revision;
use crate::fleet::{Fleet, Governor};
use crate::name::{PlacementName, Text};
use crate::observed::ObservedCondition;
use crate::plan::label;
use crate::reason::{Reason, RolloutOutcome};
use crate::rollout::PlacementOutcome;

/// An add-on keeps this many at most, and each of its placements as many as completed revisions.
const MOST: usize = 50;
const LONGEST_MESSAGE: usize = 256;

/// A rollout that did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub placement: PlacementName,
    /// The version or, without versions, the id of the revision.
    pub version: Text,
    pub outcome: AttemptOutcome,
    /// Why it failed, and what followed it.
    pub message: Text,
    /// When its first cluster was started.
    pub started: Timestamp,
    /// When it failed, or was replaced.
    pub ended: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    Failed,
    /// Another revision was desired before it ended.
    Replaced,
    /// The same, and the placement had completed that revision before.
    RolledBack,
}

impl AttemptOutcome {
    const ALL: [Self; 3] = [Self::Failed, Self::Replaced, Self::RolledBack];

    /// As one of all outcomes of a rollout.
    pub fn as_reported(self) -> RolloutOutcome {
        match self {
            Self::Failed => RolloutOutcome::Failed,
            Self::Replaced => RolloutOutcome::Replaced,
            Self::RolledBack => RolloutOutcome::RolledBack,
        }
    }

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        self.as_reported().as_str()
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// A rollout that has neither completed nor been replaced, as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRollout {
    pub version: Text,
    pub started: Timestamp,
    pub failure: Option<RecordedFailure>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFailure {
    pub why: Text,
    pub since: Option<Timestamp>,
}

/// The rollouts of a placement that are under way or have failed: to its desired revision, and with
/// a canary to the known good one.
pub fn open(fleet: &Fleet<'_>, governor: &Governor<'_>) -> Vec<OpenRollout> {
    open_revisions(fleet, governor).into_iter().map(|(_, one)| one).collect()
}

fn open_revisions<'a>(fleet: &Fleet<'_>, governor: &Governor<'a>) -> Vec<(&'a Revision, OpenRollout)> {
    let Some(recorded) = governor.recorded else { return Vec::new() };
    let known_good = recorded.known_good.as_ref().filter(|good| recorded.desired.as_ref() != Some(good));
    let candidates = recorded.desired.iter().chain(known_good);
    let candidates = candidates.filter(|revision| recorded.applied.as_ref() != Some(revision));
    let open = candidates.filter_map(|revision| {
        let id = revision.id();
        let instances = fleet.cohorts_of(governor).filter_map(|cohort| cohort.facts.instance.as_ref());
        // A revision that no cluster was assigned was only desired.
        let started = instances.filter_map(|one| one.clock_of(&id)).map(|clock| clock.started).min()?;
        let (version, failure) = (label(fleet.observed, revision), failure(&recorded.conditions));
        Some((revision, OpenRollout { version, started, failure }))
    });
    open.collect()
}

/// On an OCM hub, `Progressing` has OCM's words, and `Stalled` says why nothing moves.
fn failure(conditions: &[ObservedCondition]) -> Option<RecordedFailure> {
    let mut stated =
        [STALLED, PROGRESSING].into_iter().filter_map(|kind| ObservedCondition::find(conditions, kind));
    let failed = stated.find(|condition| condition.reason.is(Reason::is_failure))?;
    let why = failed.message.split_once(" failed: ").map_or(&*failed.message, |(_, why)| why);
    Some(RecordedFailure { why: why.into(), since: failed.since })
}

/// The attempts that the add-on's status should list after this pass, the oldest first.
pub(crate) fn next(fleet: &Fleet<'_>, outcomes: &[PlacementOutcome], now: Timestamp) -> Vec<Attempt> {
    let placements = fleet.governors.iter().zip(outcomes);
    let limit = fleet.observed.options.history_limit;
    let mut all: Vec<Attempt> = Vec::new();
    for (governor, outcome) in placements {
        let name = &governor.spec.name;
        let kept = fleet.observed.addon.status.attempts.iter().filter(|one| one.placement == *name).cloned();
        let mut of_placement: Vec<Attempt> = kept.chain(ended(fleet, governor, outcome, now)).collect();
        let surplus = of_placement.len().saturating_sub(limit);
        all.extend(of_placement.drain(..).skip(surplus));
    }
    all.sort_by(|one, other| (one.ended, &one.placement).cmp(&(other.ended, &other.placement)));
    let surplus = all.len().saturating_sub(MOST);
    all.split_off(surplus)
}

/// The rollouts that this pass ends without their completion.
fn ended(
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    outcome: &PlacementOutcome,
    now: Timestamp,
) -> Vec<Attempt> {
    let Ok(desired) = &outcome.aim.desired else { return Vec::new() };
    let goes_on = |revision: &Revision| {
        let now = [Some(desired), outcome.known_good.as_ref(), outcome.applied.as_ref()];
        now.contains(&Some(revision))
    };
    let (back, next) = (governor.completed.contains(desired), label(fleet.observed, desired));
    let followed = if back { format!("rolled back to {next}") } else { format!("replaced by {next}") };
    let over = open_revisions(fleet, governor).into_iter().filter(|(revision, _)| !goes_on(revision));
    let attempts = over.map(|(_, OpenRollout { version, started, failure })| {
        let (outcome, message, ended) = match failure {
            Some(RecordedFailure { why, since }) => {
                (AttemptOutcome::Failed, format!("{why}; {followed}"), since.unwrap_or(now))
            }
            None if back => (AttemptOutcome::RolledBack, followed.clone(), now),
            None => (AttemptOutcome::Replaced, followed.clone(), now),
        };
        let (placement, message) = (governor.spec.name.clone(), clipped(&message));
        Attempt { placement, version, outcome, message, started, ended }
    });
    attempts.collect()
}

fn clipped(message: &str) -> Text {
    match message.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()).into(),
        None => message.into(),
    }
}
