//! Watches the hub: one stream per kind, parsed into the engine's values as it arrives.
//!
//! Owns the streams: paged lists, resumed watches, backoff, and the one table of watched kinds. An
//! object that cannot be parsed is logged, and its last known state is kept.

use std::collections::HashMap;
use std::fmt::Debug;

use aviary_api::names::{self, labels};
use aviary_api::{
    ClusterManagementAddOn, Guarded, ManagedCluster, ManagedClusterAddOn, ManifestWork, Placement,
    PlacementDecision,
};
use aviary_engine::configs::GroupResource;
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

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
    visitor.visit::<ManifestWork>(Which::Labelled);
    visitor.visit::<ManagedCluster>(Which::All);
    visitor.visit::<Placement>(Which::All);
    visitor.visit::<PlacementDecision>(Which::All);
    visitor.visit::<ControllerRevision>(Which::Labelled);
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
    start_for(client, namespace, None, events, tasks);
    tasks.spawn(follow_kinds(client.clone(), events.clone()));
}

/// Starts the watches for all add-ons, or for one.
pub(crate) fn start_for(
    client: &Client,
    namespace: &str,
    addon: Option<&str>,
    events: &mpsc::Sender<WatchEvent>,
    tasks: &mut JoinSet<()>,
) {
    watched_kinds(&mut Start { client, namespace, addon, events, tasks });
}

struct Start<'a> {
    client: &'a Client,
    namespace: &'a str,
    addon: Option<&'a str>,
    events: &'a mpsc::Sender<WatchEvent>,
    tasks: &'a mut JoinSet<()>,
}

impl KindVisitor for Start<'_> {
    fn visit<K: Watched<WatchEvent>>(&mut self, which: Which) {
        let (label_selector, field_selector) = which.selectors(self.addon);
        let config = watcher::Config { label_selector, field_selector, ..watcher::Config::default() };
        let api = K::api(self.client, self.namespace);
        self.tasks.spawn(follow::<K, WatchEvent>(api, config, self.events.clone()));
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
    events: mpsc::Sender<E>,
) {
    let resource = GroupResource::new(&K::group(&()), &K::plural(&()));
    stream(api, config, &resource, events, K::read, K::EVENT).await;
}

/// Follows the configs of one kind.
pub(crate) async fn follow_configs(
    client: Client,
    kind: GroupResource,
    resource: ApiResource,
    events: mpsc::Sender<WatchEvent>,
) {
    let api: Api<Guarded<DynamicObject>> = Api::all_with(client, &resource);
    let read = |object: DynamicObject| Some(seen::config(&kind, &object));
    let wrap = |change| WatchEvent::Config(kind.clone(), change);
    stream(api, watcher::Config::default(), &kind, events, read, wrap).await;
}

async fn stream<K, T, E>(
    api: Api<Guarded<K>>,
    config: watcher::Config,
    resource: &GroupResource,
    events: mpsc::Sender<E>,
    read: impl Fn(K) -> Option<T>,
    wrap: impl Fn(Change<T>) -> E,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    E: StoreEvent,
{
    let stream = watcher(api, config).default_backoff();
    pin_mut!(stream);
    while let Some(event) = stream.next().await {
        let event = match event {
            Ok(Event::Init) => wrap(Change::Begin),
            Ok(Event::InitDone) => wrap(Change::End),
            Ok(Event::Apply(object) | Event::InitApply(object)) => wrap(put(resource, object, &read)),
            Ok(Event::Delete(object)) => wrap(Change::Gone(ObjectVersion::of(object.meta()))),
            Err(error) => {
                note_interruption(resource, &error);
                match refusal(resource, error).and_then(E::refused) {
                    Some(refused) => refused,
                    None => continue,
                }
            }
        };
        if events.send(event).await.is_err() {
            return;
        }
    }
}

fn put<K: Resource, T>(
    resource: &GroupResource,
    object: Guarded<K>,
    read: impl Fn(K) -> Option<T>,
) -> Change<T> {
    let version = ObjectVersion::of(object.meta());
    match object.0.map(read) {
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

/// A dropped watch is routine; a failed list blocks planning.
fn note_interruption(resource: &GroupResource, error: &watcher::Error) {
    match error {
        watcher::Error::InitialListFailed(error) => {
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
