//! Kubernetes Events about add-ons.
//!
//! They are kept here even after the hub has expired them, so that the page can show what happened
//! while it was open. A user who may not read Events sees everything else.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;

use aviary_controller::Reach;
use futures_util::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::Api;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, watcher};
use kube::{Client, ResourceExt};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::summary::seconds;

/// The namespace of Events about cluster-scoped objects.
const NAMESPACE: &str = "default";
const KIND: &str = "ClusterManagementAddOn";
/// The maximum number of Events of one add-on.
const MOST_EVENTS: usize = 100;
const WAITING: usize = 256;

#[derive(Clone, Debug)]
pub(crate) struct AddOnEvent {
    addon: String,
    name: String,
    at: Timestamp,
    line: EventLine,
}

/// An Event, as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct EventLine {
    at: String,
    #[serde(rename = "type")]
    kind: String,
    reason: String,
    message: String,
    about: String,
}

/// Watches the Events about add-ons, until the receiver is dropped, if the user may read them.
pub(crate) fn follow(client: &Client, reach: Reach) -> mpsc::Receiver<AddOnEvent> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let api: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    let config = watcher::Config::default().fields(&format!("regarding.kind={KIND}"));
    tokio::spawn(async move {
        let mut events = pin!(watcher(api, config));
        let mut backoff = DefaultBackoff::default();
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = sender.closed() => return,
            };
            let failed = matches!(event, Some(Err(_)));
            match event {
                Some(Ok(watcher::Event::Apply(event) | watcher::Event::InitApply(event))) => {
                    let Some(happened) = AddOnEvent::of(&event) else { continue };
                    if sender.send(happened).await.is_err() {
                        return;
                    }
                }
                Some(Err(watcher::Error::InitialListFailed(kube::Error::Api(said))))
                    if matches!(said.code, 401 | 403) =>
                {
                    return tracing::debug!(message = said.message, "events are not shown");
                }
                Some(_) => {}
                None => return,
            }
            if !failed || reach.rest(backoff.next().unwrap_or_default()).await {
                backoff.reset();
            }
        }
    });
    receiver
}

impl AddOnEvent {
    fn of(event: &Event) -> Option<Self> {
        let about = event.regarding.as_ref()?;
        if about.kind.as_deref() != Some(KIND) {
            return None;
        }
        let series = event.series.as_ref().map(|series| series.last_observed_time.0);
        let at = series.or(event.event_time.as_ref().map(|at| at.0)).or(event
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|at| at.0))?;
        let addon = about.name.clone()?;
        let line = EventLine {
            at: seconds(at),
            kind: event.type_.clone().unwrap_or_else(|| "Normal".to_owned()),
            reason: event.reason.clone().unwrap_or_default(),
            message: event.note.clone().unwrap_or_default(),
            about: format!("{KIND} {addon}"),
        };
        Some(Self { addon, name: event.name_any(), at, line })
    }

    pub(crate) fn addon(&self) -> &str {
        &self.addon
    }
}

/// Events by add-on.
#[derive(Debug, Default)]
pub(crate) struct Chronicle(HashMap<String, BTreeMap<(Timestamp, String), EventLine>>);

impl Chronicle {
    pub(crate) fn take(&mut self, happened: AddOnEvent) {
        let AddOnEvent { addon, name, at, line } = happened;
        let of = self.0.entry(addon).or_default();
        // An Event whose count increases gets a new time.
        of.retain(|(_, known), _| *known != name);
        of.insert((at, name), line);
        if of.len() > MOST_EVENTS {
            of.pop_first();
        }
    }

    /// Newest first.
    pub(crate) fn of(&self, addon: &str) -> Vec<EventLine> {
        self.0.get(addon).into_iter().flat_map(|of| of.values().rev()).cloned().collect()
    }

    pub(crate) fn forget(&mut self, addon: &str) {
        self.0.remove(addon);
    }
}
