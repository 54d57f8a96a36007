//! Kubernetes Events about requests that are left alone. Their number is limited: whoever creates
//! many bad requests must not fill the hub with Events.

use aviary_api::visible::visible;
use aviary_controller::Clock;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::task::JoinSet;

use super::FinishedTask;
use crate::refusal::RequestRefusal;
use crate::request::SigningRequest;

/// Kubernetes limits notes to 1024 bytes.
const LONGEST_NOTE: usize = 1000;
/// The namespace of Events about cluster-scoped objects.
const NAMESPACE: &str = "default";
/// How many Events are published between two refills.
const MOST: usize = 60;

pub(super) struct EventPublisher {
    api: Api<Event>,
    identity: String,
    clock: Clock,
    left: usize,
    dropped: usize,
}

impl EventPublisher {
    pub(super) fn new(client: Client, identity: &str, clock: Clock) -> Self {
        Self {
            api: Api::namespaced(client, NAMESPACE),
            identity: identity.to_owned(),
            clock,
            left: MOST,
            dropped: 0,
        }
    }

    pub(super) fn refill(&mut self) {
        if self.dropped > 0 {
            tracing::warn!(
                dropped = self.dropped,
                "requests were left alone without an event, because there were too many"
            );
        }
        (self.left, self.dropped) = (MOST, 0);
    }

    pub(super) fn refused(
        &mut self,
        request: &SigningRequest,
        refusal: &RequestRefusal,
        tasks: &mut JoinSet<FinishedTask>,
    ) {
        let note = format!("The request is left alone: {refusal}");
        self.publish(request, refusal.code(), &note, tasks);
    }

    pub(super) fn publish(
        &mut self,
        request: &SigningRequest,
        reason: &'static str,
        note: &str,
        tasks: &mut JoinSet<FinishedTask>,
    ) {
        if self.left == 0 {
            self.dropped += 1;
            return;
        }
        self.left -= 1;
        let note = visible(note).at_most(LONGEST_NOTE).to_string();
        tracing::info!(request = request.name, agent = %request.of, reason, note, "an event about a request");
        let event = Event {
            metadata: ObjectMeta {
                generate_name: Some("aviary-registration-".into()),
                ..ObjectMeta::default()
            },
            type_: Some("Warning".into()),
            reason: Some(reason.into()),
            note: Some(note),
            action: Some("Registration".into()),
            event_time: Some(MicroTime((self.clock)())),
            reporting_controller: Some("aviary-registration".into()),
            reporting_instance: Some(self.identity.clone()),
            regarding: Some(ObjectReference {
                api_version: Some("certificates.k8s.io/v1".into()),
                kind: Some("CertificateSigningRequest".into()),
                name: Some(request.name.clone()),
                uid: Some(request.uid.clone()),
                ..ObjectReference::default()
            }),
            ..Event::default()
        };
        let api = self.api.clone();
        tasks.spawn(async move {
            if let Err(error) = api.create(&PostParams::default(), &event).await {
                tracing::warn!(%error, reason, "an event could not be published");
            }
            FinishedTask::Event
        });
    }
}
