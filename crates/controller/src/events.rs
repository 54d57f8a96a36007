//! Telling people what happened: Events on the add-on, once for each transition.
//!
//! Owns their publication. An event that cannot be published is not worth holding anything up for.

use aviary_api::ClusterManagementAddOn;
use aviary_engine::plan;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};

use crate::execute::Target;

/// What Kubernetes takes as a note.
const LONGEST_NOTE: usize = 1000;

#[derive(Clone)]
pub(crate) struct Events(Recorder);

impl Events {
    pub(crate) fn new(client: Client, identity: &str) -> Self {
        let reporter = Reporter { controller: "aviary-manager".into(), instance: Some(identity.into()) };
        Self(Recorder::new(client, reporter))
    }

    pub(crate) async fn publish(&self, about: &Target, events: &[plan::Event]) {
        for event in events {
            let note = format!("{}: {}", event.placement, event.message);
            self.tell(about, event.reason, &note).await;
        }
    }

    pub(crate) async fn tell(&self, about: &Target, reason: &str, note: &str) {
        let warns = matches!(reason, "RolloutHalted" | "RolloutFailed" | "InvariantBroken");
        let reference = ObjectReference {
            api_version: Some(ClusterManagementAddOn::api_version(&()).into_owned()),
            kind: Some(ClusterManagementAddOn::kind(&()).into_owned()),
            name: Some(about.name.to_string()),
            uid: Some(about.uid.to_string()),
            ..ObjectReference::default()
        };
        let event = Event {
            type_: if warns { EventType::Warning } else { EventType::Normal },
            reason: reason.into(),
            note: Some(note.chars().take(LONGEST_NOTE).collect()),
            action: "Rollout".into(),
            secondary: None,
        };
        if let Err(error) = self.0.publish(&event, &reference).await {
            tracing::warn!(addon = %about.name, reason, %error, "an event could not be published");
        }
    }
}
