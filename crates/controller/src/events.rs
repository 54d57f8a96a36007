//! Kubernetes Events on the add-on, one for each transition.
//!
//! A failure to publish an Event blocks nothing.

use aviary_api::ClusterManagementAddOn;
use aviary_api::visible::visible;
use aviary_engine::plan;
use aviary_engine::reason::EventReason;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Resource};

use crate::Clock;
use crate::execute::Target;

/// Kubernetes limits notes to 1024 bytes.
const LONGEST_NOTE: usize = 1000;
/// The namespace of Events about cluster-scoped objects.
const NAMESPACE: &str = "default";

/// Publishes every Event separately. kube's recorder merges Events of one reason and keeps only the
/// first note.
#[derive(Clone)]
pub(crate) struct Events {
    api: Api<Event>,
    identity: String,
    clock: Clock,
}

impl Events {
    pub(crate) fn new(client: Client, identity: &str, clock: Clock) -> Self {
        Self { api: Api::namespaced(client, NAMESPACE), identity: identity.to_owned(), clock }
    }

    pub(crate) async fn publish(&self, about: &Target, events: &[plan::Event]) {
        for event in events {
            let note = format!("{}: {}", event.placement, event.message);
            self.publish_one(about, event.reason, &note).await;
        }
    }

    pub(crate) async fn publish_one(&self, about: &Target, reason: EventReason, note: &str) {
        let event = Event {
            metadata: ObjectMeta { generate_name: Some(format!("{}-", about.name)), ..ObjectMeta::default() },
            type_: Some(if reason.is_warning() { "Warning" } else { "Normal" }.into()),
            reason: Some(reason.to_string()),
            note: Some(as_note(note)),
            action: Some("Rollout".into()),
            event_time: Some(MicroTime((self.clock)())),
            reporting_controller: Some("aviary-manager".into()),
            reporting_instance: Some(self.identity.clone()),
            regarding: Some(ObjectReference {
                api_version: Some(ClusterManagementAddOn::api_version(&()).into_owned()),
                kind: Some(ClusterManagementAddOn::kind(&()).into_owned()),
                name: Some(about.name.to_string()),
                uid: Some(about.uid.to_string()),
                ..ObjectReference::default()
            }),
            ..Event::default()
        };
        if let Err(error) = self.api.create(&PostParams::default(), &event).await {
            tracing::warn!(addon = %about.name, %reason, %error, "an event could not be published");
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
