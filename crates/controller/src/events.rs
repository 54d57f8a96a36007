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
        let event = EventDraft {
            addon: &about.name,
            uid: Some(&about.uid),
            kind: if reason.is_warning() { "Warning" } else { "Normal" },
            reason: reason.as_str(),
            note,
            action: "Rollout",
            component: COMPONENT,
            instance: &self.identity,
        };
        let event = event.at(self.next_time());
        if let Err(error) = self.api.create(&PostParams::default(), &event).await {
            tracing::warn!(addon = %about.name, %reason, %error, "an event could not be published");
        }
    }
}

/// An Event about an add-on, by any component: all of one add-on are listed in one order.
#[derive(Debug)]
pub struct EventDraft<'a> {
    pub addon: &'a str,
    /// `kubectl describe` shows only Events with the UID.
    pub uid: Option<&'a str>,
    /// `Normal` or `Warning`.
    pub kind: &'static str,
    pub reason: &'a str,
    pub note: &'a str,
    pub action: &'static str,
    pub component: &'static str,
    pub instance: &'a str,
}

impl EventDraft<'_> {
    /// Events of one add-on sort by name, because every time has as many digits.
    pub fn at(&self, at: Timestamp) -> Event {
        let Self { addon, uid, kind, reason, note, action, component, instance } = *self;
        let seconds = Timestamp::from_second(at.as_second()).unwrap_or(at);
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{addon}.{:016x}", at.as_microsecond())),
                ..ObjectMeta::default()
            },
            type_: Some(kind.into()),
            reason: Some(reason.into()),
            message: Some(as_note(note)),
            action: Some(action.into()),
            event_time: Some(MicroTime(at)),
            first_timestamp: Some(Time(seconds)),
            last_timestamp: Some(Time(seconds)),
            count: Some(1),
            source: Some(EventSource { component: Some(component.into()), ..EventSource::default() }),
            reporting_component: Some(component.into()),
            reporting_instance: Some(instance.into()),
            involved_object: ObjectReference {
                api_version: Some(ClusterManagementAddOn::api_version(&()).into_owned()),
                kind: Some(ClusterManagementAddOn::kind(&()).into_owned()),
                name: Some(addon.into()),
                uid: uid.map(Into::into),
                ..ObjectReference::default()
            },
            ..Event::default()
        }
    }
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
