//! Watches the hub: one stream per kind, parsed into the engine's values as it arrives.
//!
//! Owns the streams: paged lists, resumed watches, backoff, and the one table of watched kinds. An
//! object that cannot be parsed is logged, and its last known state is kept.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use aviary_api::names::{self, labels};
use aviary_api::work::WorkText;
use aviary_api::{
    ClusterManagementAddOn, Guarded, ManagedCluster, ManagedClusterAddOn, ObjectText, Placement,
    PlacementDecision,
};
use aviary_engine::configs::GroupResource;
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource};
use kube::core::PartialObjectMeta;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::reach::Reach;
use crate::revisions::StoredRevision;
use crate::seen::{self, Change, Key, ObjectVersion, Refused, WatchEvent, Watched};

/// How many events may wait: a slow reader slows the streams down, and memory stays bounded.
pub(crate) const EVENTS_WAITING: usize = 4096;

/// Which objects of a kind are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// If only one add-on is needed, the objects with its name.
    Named,
    /// If only one add-on is needed, the objects with its label.
    Labelled,
}

/// An action for every watched kind.
pub(crate) trait KindVisitor {
    fn visit<K: Watched<WatchEvent>>(&mut self, which: Which);
}

/// The watched kinds. Kinds of config are not among them: those are watched while they are
/// referenced.
pub(crate) fn watched_kinds(visitor: &mut impl KindVisitor) {
    visitor.visit::<ClusterManagementAddOn>(Which::Named);
    visitor.visit::<ManagedClusterAddOn>(Which::Named);
    visitor.visit::<WorkText>(Which::Labelled);
    visitor.visit::<ManagedCluster>(Which::All);
    visitor.visit::<Placement>(Which::All);
    visitor.visit::<PlacementDecision>(Which::All);
    visitor.visit::<StoredRevision>(Which::Labelled);
}

impl Which {
    /// The label and field selectors for one add-on, or for all.
    pub(crate) fn selectors(self, addon: Option<&str>) -> (Option<String>, Option<String>) {
        // A longer name does not fit into a label: then all labelled objects are watched.
        let labelled = match addon.filter(|addon| addon.len() <= names::MAX_NAME) {
            Some(addon) => format!("{}={addon}", labels::ADDON_NAME),
            None => labels::ADDON_NAME.to_owned(),
        };
        match self {
            Self::All => (None, None),
            Self::Named => (None, addon.map(|addon| format!("metadata.name={addon}"))),
            Self::Labelled => (Some(labelled), None),
        }
    }
}

/// Starts the watches that a manager always has.
pub(crate) fn start(
    client: &Client,
    namespace: &str,
    events: &mpsc::Sender<WatchEvent>,
    tasks: &mut JoinSet<()>,
) {
    start_for(client, namespace, None, None, events, tasks);
    tasks.spawn(follow_kinds(client.clone(), events.clone()));
}

/// Starts the watches for all add-ons, or for one. With `reach`, they wait for a hub that is away.
pub(crate) fn start_for(
    client: &Client,
    namespace: &str,
    addon: Option<&str>,
    reach: Option<&Reach>,
    events: &mpsc::Sender<WatchEvent>,
    tasks: &mut JoinSet<()>,
) {
    watched_kinds(&mut WatchStarter { client, namespace, addon, reach, events, tasks });
}

struct WatchStarter<'a> {
    client: &'a Client,
    namespace: &'a str,
    addon: Option<&'a str>,
    reach: Option<&'a Reach>,
    events: &'a mpsc::Sender<WatchEvent>,
    tasks: &'a mut JoinSet<()>,
}

impl KindVisitor for WatchStarter<'_> {
    fn visit<K: Watched<WatchEvent>>(&mut self, which: Which) {
        let (label_selector, field_selector) = which.selectors(self.addon);
        let config = watcher::Config { label_selector, field_selector, ..watcher::Config::default() };
        let api = K::api(self.client, self.namespace);
        let reach = self.reach.cloned();
        self.tasks.spawn(follow::<K, WatchEvent>(api, config, reach, self.events.clone()));
    }
}

/// An event of a store. A manager can only retry a refused watch; a view reports it to its user.
pub(crate) trait StoreEvent: Sized {
    fn refused(_: Refused) -> Option<Self> {
        None
    }
}

impl StoreEvent for WatchEvent {
    fn refused(refused: Refused) -> Option<Self> {
        Some(Self::Refused(refused))
    }
}

/// Watches the objects of one kind until the receiver is dropped.
pub(crate) async fn follow<K: Watched<E>, E: StoreEvent>(
    api: Api<Guarded<K>>,
    config: watcher::Config,
    reach: Option<Reach>,
    events: mpsc::Sender<E>,
) {
    let resource = GroupResource::new(&K::group(&()), &K::plural(&()));
    let source = Source { api, config, resource: &resource, reach };
    stream(source, events, K::try_read, K::EVENT).await;
}

/// Follows the configs of one kind.
pub(crate) async fn follow_configs(
    client: Client,
    kind: GroupResource,
    resource: ApiResource,
    reach: Option<Reach>,
    events: mpsc::Sender<WatchEvent>,
) {
    let api: Api<Guarded<ObjectText>> = Api::all_with(client, &resource);
    let source = Source { api, config: watcher::Config::default(), resource: &kind, reach };
    let read = |object: ObjectText| seen::config(&kind, &object).map(Some);
    let wrap = |change| WatchEvent::Config(kind.clone(), change);
    stream(source, events, read, wrap).await;
}

/// What a stream watches.
struct Source<'a, K> {
    api: Api<Guarded<K>>,
    config: watcher::Config,
    resource: &'a GroupResource,
    reach: Option<Reach>,
}

async fn stream<K, T, E>(
    source: Source<'_, K>,
    events: mpsc::Sender<E>,
    read: impl Fn(K) -> Result<Option<T>, Box<InvalidObject>>,
    wrap: impl Fn(Change<T>) -> E,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    E: StoreEvent,
{
    let Source { api, config, resource, reach } = source;
    let open = || watcher(api.clone(), config.clone());
    let mut retries = Retries::new(reach);
    let stream = open();
    pin_mut!(stream);
    loop {
        let next = tokio::select! {
            next = stream.next() => next,
            () = retries.connection_lost() => {
                stream.set(open());
                continue;
            }
        };
        let Some(next) = next else { return };
        let failed = next.is_err();
        let event = match next {
            Ok(Event::Init) => Some(wrap(Change::Begin)),
            Ok(Event::InitDone) => Some(wrap(Change::End)),
            Ok(Event::Apply(object) | Event::InitApply(object)) => Some(wrap(put(resource, object, &read))),
            Ok(Event::Delete(object)) => Some(wrap(Change::Gone(ObjectVersion::of(object.meta())))),
            Err(error) => {
                note_interruption(resource, &error, retries.reach.is_some());
                refusal(resource, error).and_then(E::refused)
            }
        };
        if let Some(event) = event
            && events.send(event).await.is_err()
        {
            return;
        }
        retries.pace(failed).await;
    }
}

/// The longest pause between retries: without events a manager cannot decide. One process with a
/// dozen watches does not burden a hub.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How a watch waits after a failure.
pub(crate) struct Retries {
    reach: Option<Reach>,
    backoff: DefaultBackoff,
    /// The watch has reported an error. It connects again when it is polled next.
    failed: bool,
}

impl Retries {
    pub(crate) fn new(reach: Option<Reach>) -> Self {
        Self { reach, backoff: DefaultBackoff::default(), failed: false }
    }

    /// Waits after a failure: longer each time, but not longer than an outage of the hub.
    pub(crate) async fn pace(&mut self, failed: bool) {
        if !failed {
            return self.backoff.reset();
        }
        self.failed = true;
        let pause = self.backoff.next().unwrap_or_default();
        match &self.reach {
            Some(reach) => {
                if reach.rest(pause).await {
                    self.failed = false;
                    self.backoff.reset();
                }
            }
            None => tokio::time::sleep(pause.min(LONGEST_PAUSE)).await,
        }
    }

    /// Returns after an outage in which the watch did not fail: its connection may be dead, and a
    /// dead connection is silent for minutes. Cancel-safe.
    pub(crate) async fn connection_lost(&mut self) {
        let Some(reach) = &self.reach else { return std::future::pending().await };
        loop {
            reach.outage_over().await;
            if !std::mem::take(&mut self.failed) {
                return;
            }
        }
    }
}

fn put<K: Resource, T>(
    resource: &GroupResource,
    object: Guarded<K>,
    read: impl Fn(K) -> Result<Option<T>, Box<InvalidObject>>,
) -> Change<T> {
    let version = ObjectVersion::of(object.meta());
    match object.0.map_err(Box::new).and_then(read) {
        Ok(Some(seen)) => Change::Put(version, seen),
        Ok(None) => Change::Unreadable(version),
        Err(error) => {
            let Key { namespace, name } = &version.key;
            tracing::warn!(%resource, %namespace, %name, %error, "an object cannot be read; its last known state is kept");
            Change::Unreadable(version)
        }
    }
}

/// The hub's refusal, if the error is one.
fn refusal(resource: &GroupResource, error: watcher::Error) -> Option<Refused> {
    let said = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(said))
        | watcher::Error::WatchStartFailed(kube::Error::Api(said))
        | watcher::Error::WatchFailed(kube::Error::Api(said))
        | watcher::Error::WatchError(said) => said,
        _ => return None,
    };
    let doing = format!("watch {resource}");
    matches!(said.code, 401 | 403).then(|| Refused { resource: resource.clone(), doing, said })
}

/// A dropped watch is routine; a failed list blocks planning. A view reports an outage as a whole.
fn note_interruption(resource: &GroupResource, error: &watcher::Error, in_view: bool) {
    match error {
        watcher::Error::InitialListFailed(error) if !in_view => {
            tracing::warn!(%resource, %error, "a list failed and is retried; nothing is planned until it succeeds");
        }
        error => tracing::debug!(%resource, %error, "a watch was interrupted and is resumed"),
    }
}

/// Reports when a kind may have been installed or removed.
async fn follow_kinds(client: Client, events: mpsc::Sender<WatchEvent>) {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    let stream = watcher(api, watcher::Config::default()).default_backoff();
    pin_mut!(stream);
    let mut known = HashMap::new();
    while let Some(event) = stream.next().await {
        let changed = match event {
            // The status matters, because it shows whether the kind is served.
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let version = object.metadata.resource_version.clone();
                known.insert(object.name_any(), version.clone()) != Some(version)
            }
            Ok(Event::Delete(object)) => known.remove(&object.name_any()).is_some(),
            _ => false,
        };
        if changed && events.send(WatchEvent::Kinds).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn however_often_a_watch_of_a_manager_has_failed_it_soon_tries_again() {
        let mut retries = Retries::new(None);
        for _ in 0..20 {
            let before = Instant::now();
            retries.pace(true).await;
            assert!(before.elapsed() <= LONGEST_PAUSE);
        }
    }
}
