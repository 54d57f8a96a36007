//! Reports of an agent on a work, with the reasons and messages of OCM's agent.

use aviary_api::ManifestWork;
use aviary_api::names::conditions::{APPLIED, AVAILABLE};
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::shared::Shared;
use aviary_engine::simulate::agents::{Answer, Pods};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::behaviour::{Early, Lie};
use crate::feedback::{Feedback, ObjectState};
use crate::outline::{Item, WorkOutline};

/// A generation that no object reaches.
const FUTURE: i64 = 1_000_000_000_000_000_000;

/// The message of an early report: by it, an agent that was restarted knows that it has more to
/// say.
const EARLY: &str = "All resources were available";

/// A report of one agent on one work.
#[derive(Debug)]
pub(crate) struct WorkReport {
    pub(crate) cluster: ClusterName,
    pub(crate) work: Text,
    pub(crate) uid: Text,
    /// The number of the report. A later report of the work replaces it.
    pub(crate) turn: u64,
    pub(crate) generation: i64,
    pub(crate) answer: Answer,
    pub(crate) lie: Option<Lie>,
    pub(crate) outline: Shared<WorkOutline>,
    pub(crate) before: Before,
    /// This report and those that follow it before the last one, which is not early.
    pub(crate) early: Vec<Early>,
    /// When the last one is due.
    pub(crate) last_at: Instant,
}

/// The status of the work before the report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    applied: Option<KnownCondition>,
    available: Option<KnownCondition>,
    /// The last report was too early.
    is_early: bool,
}

/// A condition without reason and message.
#[derive(Clone, Copy, Debug)]
struct KnownCondition {
    holds: bool,
    since: Timestamp,
    generation: i64,
}

impl Before {
    pub(crate) fn of(work: &ManifestWork) -> Self {
        let said = |type_: &str| {
            let conditions = &work.status.as_ref()?.conditions;
            let condition = aviary_api::Condition::find(conditions, type_)?;
            let holds = condition.is_true();
            (holds || condition.is_false()).then_some(())?;
            let generation = condition.observed_generation.unwrap_or(0);
            Some(KnownCondition { holds, since: condition.last_transition()?, generation })
        };
        let conditions = work.status.iter().flat_map(|status| &status.conditions);
        let is_early = conditions.into_iter().any(|said| said.message.as_deref() == Some(EARLY));
        Self { applied: said(APPLIED), available: said(AVAILABLE), is_early }
    }

    /// Whether the agent has nothing to add for this generation.
    pub(crate) fn is_answered(&self, generation: i64) -> bool {
        let now = |said: &&KnownCondition| said.generation == generation;
        let applied = self.applied.as_ref().filter(now);
        let outage = self.available.as_ref().filter(now).is_some_and(|said| !said.holds);
        applied.is_some() && !outage && !self.is_early
    }

    /// Whether the agent knows the work from an earlier generation.
    pub(crate) fn is_of_older(&self, generation: i64) -> bool {
        self.available.is_some_and(|said| said.generation < generation)
    }
}

impl WorkReport {
    /// The status of the work after this report.
    pub(crate) fn after(&self, now: Timestamp) -> Before {
        let Self { before, lie, .. } = self;
        let stale = before.available.map(|said| KnownCondition { generation: self.generation, ..said });
        let say = |holds: bool, earlier: Option<KnownCondition>| {
            // The time changes only when the status changes.
            let since = earlier.filter(|said| said.holds == holds).map_or(now, |said| said.since);
            Some(KnownCondition { holds, since, generation: self.told_generation() })
        };
        let (applied, available) = match self.early.first() {
            Some(Early::Stale) => (before.applied, stale),
            Some(Early::StaleApplied) => (say(true, before.applied), stale),
            // The previous version still runs; nothing is known about the current one.
            None if self.is_refusal() => (say(false, before.applied), before.available),
            // The objects exist, whatever their pods do.
            Some(Early::Unobserved) | None => (say(true, before.applied), say(true, before.available)),
        };
        let is_early = !self.early.is_empty();
        match lie {
            Some(Lie::OnlyAvailable) => Before { applied: None, available, is_early },
            _ => Before { applied, available, is_early },
        }
    }

    fn is_early(&self, early: Early) -> bool {
        self.early.first() == Some(&early)
    }

    /// The cluster does not accept the work.
    pub(crate) fn is_refusal(&self) -> bool {
        self.early.is_empty() && self.answer == Answer::Refused
    }

    /// The state of the workloads.
    fn object_state(&self) -> ObjectState {
        match self.answer {
            _ if self.is_early(Early::Unobserved) => ObjectState::Unobserved,
            Answer::Available { .. } | Answer::Refused => ObjectState::Healthy,
            Answer::Unready(Pods::NeverReady) => ObjectState::Unready,
            Answer::Unready(Pods::Exit) => ObjectState::Looping,
            Answer::Exceeded(Pods::NeverReady) => ObjectState::Exceeded,
            Answer::Exceeded(Pods::Exit) => ObjectState::LoopingOn,
            Answer::Unavailable | Answer::Crashed { .. } => ObjectState::Down,
        }
    }

    fn told_generation(&self) -> i64 {
        match self.lie {
            Some(Lie::OldGeneration) => self.generation - 1,
            Some(Lie::FutureGeneration) => FUTURE,
            Some(Lie::OnlyAvailable | Lie::Silence) | None => self.generation,
        }
    }

    /// The patch that writes the report, conditional on this work's UID.
    pub(crate) fn patch(&self, now: Timestamp) -> Value {
        json!({"metadata": {"uid": self.uid}, "status": self.status(now)})
    }

    fn status(&self, now: Timestamp) -> Value {
        let said = self.after(now);
        let count = self.outline.items.len();
        let applied = said.applied.map(|said| {
            let (reason, message) = match said.holds {
                true => ("AppliedManifestWorkComplete", "Apply manifest work complete"),
                false => ("AppliedManifestWorkFailed", "Failed to apply manifest work: simulated failure"),
            };
            condition(APPLIED, said, reason, message)
        });
        let is_early = said.is_early;
        let available = said.available.map(|said| match said.holds {
            true if is_early => condition(AVAILABLE, said, "ResourcesAvailable", EARLY),
            true => condition(AVAILABLE, said, "ResourcesAvailable", "All resources are available"),
            false => {
                let message = format!("{count} of {count} resources are not available");
                condition(AVAILABLE, said, "ResourcesNotAvailable", &message)
            }
        });
        let conditions: Vec<Value> = applied.into_iter().chain(available).collect();
        if self.is_early(Early::Stale) || self.is_early(Early::StaleApplied) {
            // What stands there is of the older objects.
            return json!({"conditions": conditions});
        }
        let manifests: Vec<Value> =
            self.outline.items.iter().map(|item| manifest(item, &said, now, self.object_state())).collect();
        json!({"conditions": conditions, "resourceStatus": {"manifests": manifests}})
    }
}

/// One entry of `resourceStatus.manifests`. All objects of a work have the same state.
fn manifest(item: &Item, said: &Before, now: Timestamp, state: ObjectState) -> Value {
    let mut conditions = Vec::with_capacity(3);
    if let Some(applied) = said.applied {
        let (reason, message) = match applied.holds {
            true => ("AppliedManifestComplete", "Apply manifest complete"),
            false => ("AppliedManifestFailed", "Failed to apply manifest: simulated failure"),
        };
        conditions.push(of_object(APPLIED, applied.holds, applied.since, reason, message));
    }
    if let Some(available) = said.available {
        let (reason, message) = match available.holds {
            true => ("ResourceAvailable", "Resource is available"),
            false => ("ResourceNotAvailable", "Resource is not available"),
        };
        conditions.push(of_object(AVAILABLE, available.holds, available.since, reason, message));
    }
    // Feedback is reported as long as there is something to report on.
    let since = said.available.or(said.applied).map_or(now, |said| said.since);
    let told = |holds: bool, reason: &str, message: &str| {
        of_object("StatusFeedbackSynced", holds, since, reason, message)
    };
    let values = match item.feedback(state) {
        Feedback::NotAsked => {
            conditions.push(told(true, "NoStatusFeedbackSynced", ""));
            None
        }
        Feedback::Found(values) => {
            conditions.push(told(true, "StatusFeedbackSynced", ""));
            Some(values)
        }
        Feedback::Incomplete(values, why) => {
            let message = format!("Sync status feedback failed with error {why}");
            conditions.push(told(false, "StatusFeedbackSyncFailed", &message));
            Some(values)
        }
    };
    let feedback = values.map_or_else(|| json!({}), |values| json!({"values": values}));
    json!({"resourceMeta": item.meta, "statusFeedback": feedback, "conditions": conditions})
}

fn condition(type_: &str, said: KnownCondition, reason: &str, message: &str) -> Value {
    let mut condition = of_object(type_, said.holds, said.since, reason, message);
    condition["observedGeneration"] = json!(said.generation);
    condition
}

fn of_object(type_: &str, holds: bool, since: Timestamp, reason: &str, message: &str) -> Value {
    let status = if holds { "True" } else { "False" };
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": seconds(since)})
}

/// A time in the format of conditions.
pub(crate) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
