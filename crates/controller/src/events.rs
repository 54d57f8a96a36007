//! Telling people what happened: Events on the add-on, once for each transition.
//!
//! Owns their publication. An event that cannot be published is not worth holding anything up for.

use aviary_api::ClusterManagementAddOn;
use aviary_engine::plan;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Resource};

use crate::Clock;
use crate::execute::Target;

/// What Kubernetes takes as a note.
const LONGEST_NOTE: usize = 1000;
/// Where Events about objects without a namespace are.
const NAMESPACE: &str = "default";

/// Publishes every Event on its own: kube's recorder counts those of one reason together, and keeps the words of the first only.
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
            self.tell(about, event.reason, &note).await;
        }
    }

    pub(crate) async fn tell(&self, about: &Target, reason: &str, note: &str) {
        let warns = matches!(reason, "RolloutHalted" | "RolloutFailed" | "InvariantBroken");
        let event = Event {
            metadata: ObjectMeta {
                // The server ends it, so that no two are one.
                generate_name: Some(format!("{}-", about.name)),
                ..ObjectMeta::default()
            },
            type_: Some(if warns { "Warning" } else { "Normal" }.into()),
            reason: Some(reason.into()),
            note: Some(note.chars().take(LONGEST_NOTE).collect()),
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
            tracing::warn!(addon = %about.name, reason, %error, "an event could not be published");
        }
    }
}
