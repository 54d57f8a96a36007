//! Rollouts that did not complete, from the Events about an add-on. The hub keeps Events for a limited
//! time, one hour by default; completed revisions are kept by the manager.

use aviary_engine::reason::EventReason;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use serde::Serialize;

use crate::connect::Connection;
use crate::live::seconds;

/// The namespace of Events about cluster-scoped objects.
const NAMESPACE: &str = "default";
/// More Events than this are not read.
const MOST_EVENTS: u32 = 1000;

/// One rollout of a placement, as its Events tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attempt {
    pub(super) placement: String,
    /// What began, such as "rolling out v2 to 12 clusters".
    pub(super) what: String,
    pub(super) started_at: String,
    /// InProgress, Completed, Failed, or Replaced by the next one.
    pub(super) outcome: &'static str,
    /// Why it failed, or what replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) took_seconds: Option<i64>,
}

/// An Event about a placement.
#[derive(Clone, Debug)]
struct Happened {
    at: Timestamp,
    reason: EventReason,
    placement: String,
    message: String,
}

/// Reads the attempts, oldest first. Without the right to read Events, there are none to show.
pub(super) async fn read(connection: &Connection, addon: &str, uid: &str) -> Vec<Attempt> {
    let api: Api<Event> = Api::namespaced(connection.client.clone(), NAMESPACE);
    let about = format!("involvedObject.kind=ClusterManagementAddOn,involvedObject.name={addon}");
    let params = ListParams::default().fields(&about).limit(MOST_EVENTS);
    let Ok(listed) = api.list(&params).await else { return Vec::new() };
    let own = listed.items.iter().filter(|event| event.involved_object.uid.as_deref() == Some(uid));
    attempts(own.filter_map(happened).collect())
}

fn happened(event: &Event) -> Option<Happened> {
    let reason = event.reason.as_deref()?;
    let (placement, message) = event.message.as_deref()?.split_once(": ")?;
    let at = event.event_time.as_ref().map(|at| at.0);
    Some(Happened {
        at: at.or_else(|| event.last_timestamp.as_ref().map(|at| at.0))?,
        reason: *EventReason::ALL.iter().find(|known| known.as_str() == reason)?,
        placement: placement.to_owned(),
        message: message.to_owned(),
    })
}

fn attempts(mut events: Vec<Happened>) -> Vec<Attempt> {
    events.sort_by_key(|event| event.at);
    let mut attempts: Vec<(Timestamp, Attempt)> = Vec::new();
    for Happened { at, reason, placement, message } in events {
        let open = attempts.iter_mut().rev().find(|(_, one)| one.placement == placement);
        let mut close = |outcome: &'static str, why: Option<String>| {
            if let Some((started, attempt)) = open
                && (attempt.outcome == "InProgress"
                    || (attempt.outcome == "Failed" && outcome == "Completed"))
            {
                attempt.outcome = outcome;
                attempt.why = why;
                attempt.ended_at = Some(seconds(at).to_string());
                attempt.took_seconds = Some(at.duration_since(*started).as_secs());
            }
        };
        match reason {
            EventReason::RolloutCompleted => close("Completed", None),
            EventReason::RolloutHalted | EventReason::RolloutFailed => close("Failed", Some(message)),
            EventReason::RolloutStarted | EventReason::RolledBack => {
                close("Replaced", Some(message.clone()));
                let attempt = Attempt {
                    placement,
                    what: message,
                    started_at: seconds(at).to_string(),
                    outcome: "InProgress",
                    why: None,
                    ended_at: None,
                    took_seconds: None,
                };
                attempts.push((at, attempt));
            }
            EventReason::CanaryPassed
            | EventReason::InvariantBroken
            | EventReason::ManagerTermUnreached
            | EventReason::HooksGivenUp => {}
        }
    }
    attempts.into_iter().map(|(_, attempt)| attempt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(second: i64, reason: EventReason, message: &str) -> Happened {
        let at = Timestamp::from_second(1_767_225_600 + second).unwrap();
        Happened { at, reason, placement: "default/fleet".to_owned(), message: message.to_owned() }
    }

    #[test]
    fn an_attempt_ends_with_the_next_one_or_with_its_outcome() {
        let told = attempts(vec![
            event(30, EventReason::RolloutHalted, "halted, 2 failed and 1 tolerated"),
            event(0, EventReason::RolloutStarted, "rolling out v1 to 4 clusters"),
            event(10, EventReason::RolloutCompleted, "all 4 clusters have v1"),
            event(20, EventReason::RolloutStarted, "rolling out v2 to 4 clusters"),
            event(40, EventReason::RolledBack, "rolling back to v1 on 2 clusters"),
        ]);
        let told: Vec<(&str, &str, Option<i64>)> =
            told.iter().map(|one| (one.what.as_str(), one.outcome, one.took_seconds)).collect();
        assert_eq!(
            told,
            [
                ("rolling out v1 to 4 clusters", "Completed", Some(10)),
                ("rolling out v2 to 4 clusters", "Failed", Some(10)),
                ("rolling back to v1 on 2 clusters", "InProgress", None),
            ]
        );
    }
}
