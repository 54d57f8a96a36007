//! Who does what: the name of a user, and a record of each action.
//!
//! Every executed action is logged, and recorded as an Event on the add-on with the name that the
//! hub knows the user by. A failure to record it blocks nothing: the action is done.

use aviary_api::ClusterManagementAddOn;
use aviary_api::visible::visible;
use aviary_controller::EventDraft;
use aviary_engine::reason::EventReason;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, PostParams};

use crate::action::{Action, ActionVerb};

/// The namespace of Events about cluster-scoped objects.
const NAMESPACE: &str = "default";
/// The reporting controller.
const COMPONENT: &str = "aviary-dashboard";
/// How many Events of one microsecond are expected at most.
const MOST_TRIES: usize = 4;
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
    tracing::info!(user = who, addon, action = reason.as_str(), "{what}");
    let note = format!("{who} {what} with the dashboard");
    let addons: Api<ClusterManagementAddOn> = Api::all(client.clone());
    let uid = addons.get_metadata(addon).await.ok().and_then(|addon| addon.metadata.uid);
    let event = EventDraft {
        addon,
        uid: uid.as_deref(),
        kind: "Normal",
        reason: reason.as_str(),
        note: &note,
        action: "Operate",
        component: COMPONENT,
        instance: COMPONENT,
    };
    if let Err(error) = create(client, &event, now).await {
        tracing::warn!(addon, %error, "an action could not be recorded as an event");
    }
}

/// The name of an Event is its time. If that is taken, the next microsecond is used.
async fn create(client: &Client, event: &EventDraft<'_>, mut at: Timestamp) -> Result<(), kube::Error> {
    let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    for _ in 1..MOST_TRIES {
        match events.create(&PostParams::default(), &event.at(at)).await {
            Err(kube::Error::Api(said)) if said.code == 409 => {
                at = Timestamp::from_microsecond(at.as_microsecond() + 1).unwrap_or(at);
            }
            done => return done.map(drop),
        }
    }
    events.create(&PostParams::default(), &event.at(at)).await.map(drop)
}

/// The reason of the Event, and what was done.
fn told(action: &Action) -> (EventReason, String) {
    let of = action.placement.as_deref().map(|placement| format!(" of {placement}")).unwrap_or_default();
    match action.verb {
        ActionVerb::Pause => (EventReason::Paused, format!("paused the rollout{of}")),
        ActionVerb::Resume => (EventReason::Resumed, format!("resumed the rollout{of}")),
        // An undo can also go forward, to a revision that had been rolled back.
        ActionVerb::Undo => match action.to_revision {
            Some(number) => (EventReason::Undone, format!("set the rollout{of} to its revision {number}")),
            None => (EventReason::Undone, format!("undid the rollout{of}")),
        },
        ActionVerb::Acknowledge => {
            let count = action.acknowledge.as_deref().unwrap_or_default();
            (EventReason::DeletionsApproved, format!("approved {count} deletions"))
        }
        ActionVerb::Retry => match &action.cluster {
            Some(cluster) => (EventReason::Retried, format!("retried cluster {cluster}")),
            None => (EventReason::Retried, format!("retried the failed clusters{of}")),
        },
    }
}
