//! Which namespaces the hub has.
//!
//! A manager learns from the answer to a create that a cluster has no namespace. A view creates
//! nothing, so it lists namespaces: it must not report that an instance is being created when it
//! cannot be. Without the right to list them, a view does not know.

use std::collections::BTreeSet;

use aviary_engine::name::ClusterName;
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use tokio::sync::mpsc;

use crate::reach::Reach;
use crate::seen::WatchEvent;
use crate::watches::Retries;

const PAGE: u32 = 500;

/// The namespaces that may be those of clusters; `None` if they cannot be listed.
pub(crate) async fn list(client: &Client) -> Option<BTreeSet<ClusterName>> {
    let api: Api<Namespace> = Api::all(client.clone());
    let mut names = BTreeSet::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let listed = match api.list_metadata(&page).await {
            Ok(listed) => listed,
            Err(error) => {
                tracing::debug!(%error, "namespaces cannot be listed; clusters without a namespace are not detected");
                return None;
            }
        };
        names.extend(listed.items.iter().filter_map(name_of));
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Some(names),
        }
    }
}

/// Watches the namespaces until the receiver is dropped.
pub(crate) async fn follow(client: Client, reach: Reach, events: mpsc::Sender<WatchEvent>) {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(client);
    let open = || watcher(api.clone(), watcher::Config::default());
    let mut retries = Retries::new(Some(reach));
    let stream = open();
    pin_mut!(stream);
    let mut listed = BTreeSet::new();
    loop {
        let next = tokio::select! {
            next = stream.next() => next,
            () = retries.connection_lost() => {
                stream.set(open());
                continue;
            }
        };
        let Some(event) = next else { return };
        let failed = event.is_err();
        let seen = match event {
            Ok(Event::Init) => {
                listed.clear();
                None
            }
            Ok(Event::InitApply(object)) => {
                listed.extend(name_of(&object));
                None
            }
            Ok(Event::InitDone) => Some(WatchEvent::Namespaces(std::mem::take(&mut listed))),
            Ok(Event::Apply(object)) => name_of(&object).map(WatchEvent::NamespaceFound),
            Ok(Event::Delete(object)) => name_of(&object).map(WatchEvent::NamespaceGone),
            Err(error) => {
                tracing::debug!(%error, "the watch of namespaces was interrupted");
                None
            }
        };
        if let Some(seen) = seen
            && events.send(seen).await.is_err()
        {
            return;
        }
        retries.pace(failed).await;
    }
}

fn name_of(object: &PartialObjectMeta<Namespace>) -> Option<ClusterName> {
    ClusterName::parse(&object.name_any()).ok()
}
