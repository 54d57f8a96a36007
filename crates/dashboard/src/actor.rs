//! Who does what: the name of a user, and a record of each action.
//!
//! Every executed action is logged, and recorded as an Event on the add-on with the name that the
//! hub knows the user by. A failure to record it blocks nothing: the action is done.

use aviary_api::ClusterManagementAddOn;
use aviary_api::visible::visible;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Resource};

use crate::action::{Action, ActionVerb};

/// The namespace of Events about cluster-scoped objects.
const NAMESPACE: &str = "default";
/// Kubernetes limits notes to 1024 bytes.
const LONGEST_NOTE: usize = 1000;
const LONGEST_NAME: usize = 200;

/// The name that the hub knows the user of a client by; `None` if it does not say.
pub(crate) async fn name(client: &Client) -> Option<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let review =
        review.map_err(|error| tracing::debug!(%error, "the hub does not say who a user is")).ok()?;
    let name = review.status?.user_info?.username?;
    Some(visible(&name).at_most(LONGEST_NAME).to_string())
}

/// Records an action that was executed.
pub(crate) async fn record(client: &Client, addon: &str, action: &Action, now: Timestamp) {
    let who = name(client).await.unwrap_or_else(|| "an unknown user".to_owned());
    let (reason, what) = told(action);
    tracing::info!(user = who, addon, action = reason, "{what}");
    let event = Event {
        metadata: ObjectMeta { generate_name: Some(format!("{addon}-")), ..ObjectMeta::default() },
        type_: Some("Normal".into()),
        reason: Some(reason.into()),
        note: Some(visible(&format!("{who} {what} with the dashboard")).at_most(LONGEST_NOTE).to_string()),
        action: Some("Operate".into()),
        event_time: Some(MicroTime(now)),
        reporting_controller: Some("aviary-dashboard".into()),
        reporting_instance: Some("aviary-dashboard".into()),
        regarding: Some(ObjectReference {
            api_version: Some(ClusterManagementAddOn::api_version(&()).into_owned()),
            kind: Some(ClusterManagementAddOn::kind(&()).into_owned()),
            name: Some(addon.to_owned()),
            ..ObjectReference::default()
        }),
        ..Event::default()
    };
    let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    if let Err(error) = events.create(&PostParams::default(), &event).await {
        tracing::warn!(addon, %error, "an action could not be recorded as an event");
    }
}

/// The reason of the Event, and what was done.
fn told(action: &Action) -> (&'static str, String) {
    let of = action.placement.as_deref().map(|placement| format!(" of {placement}")).unwrap_or_default();
    match action.verb {
        ActionVerb::Pause => ("Paused", format!("paused the rollout{of}")),
        ActionVerb::Resume => ("Resumed", format!("resumed the rollout{of}")),
        ActionVerb::Undo => {
            let to = action.to_revision.map(|number| format!(" to revision {number}")).unwrap_or_default();
            ("Undone", format!("rolled back{of}{to}"))
        }
        ActionVerb::Acknowledge => {
            let count = action.acknowledge.as_deref().unwrap_or_default();
            ("DeletionsApproved", format!("approved {count} deletions"))
        }
        ActionVerb::Retry => match &action.cluster {
            Some(cluster) => ("Retried", format!("retried cluster {cluster}")),
            None => ("Retried", format!("retried the failed clusters{of}")),
        },
    }
}
