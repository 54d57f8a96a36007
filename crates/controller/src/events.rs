//! Kubernetes Events on the add-on, one for each transition.
//!
//! A failure to publish an Event blocks nothing. Events are listed in the order in which they
//! happened: by name, and by every time that kubectl sorts by.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aviary_api::ClusterManagementAddOn;
use aviary_api::visible::visible;
use aviary_engine::plan;
use aviary_engine::reason::EventReason;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Resource};

use crate::Clock;
use crate::execute::Target;

/// Kubernetes limits notes to 1024 bytes.
const LONGEST_NOTE: usize = 1000;
/// The namespace of Events about cluster-scoped objects.
const NAMESPACE: &str = "default";
/// The reporting controller.
const COMPONENT: &str = "aviary-manager";

/// Publishes every Event separately. kube's recorder merges Events of one reason and keeps only the
/// first note. Events of the core group, because only those may have the times that `kubectl get
/// --sort-by` and `kubectl describe` use.
#[derive(Clone)]
pub(crate) struct Events {
    api: Api<Event>,
    identity: String,
    clock: Clock,
    /// The time of the last Event, in microseconds.
    last: Arc<AtomicI64>,
}

impl Events {
    pub(crate) fn new(client: Client, identity: &str, clock: Clock) -> Self {
        Self {
            api: Api::namespaced(client, NAMESPACE),
            identity: identity.to_owned(),
            clock,
            last: Arc::default(),
        }
    }

    pub(crate) async fn publish(&self, about: &Target, events: &[plan::Event]) {
        for event in events {
            let note = format!("{}: {}", event.placement, event.message);
            self.publish_one(about, event.reason, &note).await;
        }
    }

    /// The current time, or a microsecond after the last Event: no two have the same time.
    fn next_time(&self) -> Timestamp {
        let now = (self.clock)();
        let next = |last: i64| now.as_microsecond().max(last.saturating_add(1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        // The closure always returns a value.
        let last = last.unwrap_or_else(|last| last);
        Timestamp::from_microsecond(next(last)).unwrap_or(now)
    }

    pub(crate) async fn publish_one(&self, about: &Target, reason: EventReason, note: &str) {
        let at = self.next_time();
        let seconds = Timestamp::from_second(at.as_second()).unwrap_or(at);
        let event = Event {
            metadata: ObjectMeta { name: Some(name(about, at)), ..ObjectMeta::default() },
            type_: Some(if reason.is_warning() { "Warning" } else { "Normal" }.into()),
            reason: Some(reason.to_string()),
            message: Some(as_note(note)),
            action: Some("Rollout".into()),
            event_time: Some(MicroTime(at)),
            first_timestamp: Some(Time(seconds)),
            last_timestamp: Some(Time(seconds)),
            count: Some(1),
            source: Some(EventSource { component: Some(COMPONENT.into()), ..EventSource::default() }),
            reporting_component: Some(COMPONENT.into()),
            reporting_instance: Some(self.identity.clone()),
            involved_object: ObjectReference {
                api_version: Some(ClusterManagementAddOn::api_version(&()).into_owned()),
                kind: Some(ClusterManagementAddOn::kind(&()).into_owned()),
                name: Some(about.name.to_string()),
                uid: Some(about.uid.to_string()),
                ..ObjectReference::default()
            },
            ..Event::default()
        };
        if let Err(error) = self.api.create(&PostParams::default(), &event).await {
            tracing::warn!(addon = %about.name, %reason, %error, "an event could not be published");
        }
    }
}

/// The name of an Event. Names of one add-on sort by time, because every time has as many digits.
fn name(about: &Target, at: Timestamp) -> String {
    format!("{}.{:016x}", about.name, at.as_microsecond())
}

/// A text that Kubernetes accepts as a note, and that is safe to show on a terminal.
fn as_note(text: &str) -> String {
    visible(text).at_most(LONGEST_NOTE).to_string()
}

#[cfg(test)]
mod tests {
    use aviary_api::visible::is_hidden;

    use super::*;

    #[test]
    fn whatever_an_event_tells_it_is_one_line_that_kubernetes_takes() {
        let note = as_note("default/prod: v1\u{1b}[2J\r\nrollout completed\u{202e}\u{200b}");
        assert_eq!(note, r"default/prod: v1\u{1b}[2J\r\nrollout completed\u{202e}\u{200b}");
        for text in ["é".repeat(2000), "\u{202e}".repeat(2000), "a".repeat(2000)] {
            let note = as_note(&text);
            assert!(note.len() <= 1024 && !note.chars().any(is_hidden), "{note}");
        }
    }
}
