//! Watching the hub: one stream per kind, read into the engine's values as it arrives.
//!
//! Owns the streams: paged lists, resumed watches, back-off. An object that cannot be read is one object's problem: it is logged, and what was
//! known of it before stays.

use std::fmt::Debug;
use std::sync::Arc;

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
use kube::core::error_boundary::InvalidObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::seen::{self, Change, Key, News, Refused};

/// How many news may wait: a slow reader slows the streams, and nothing grows.
pub(crate) const NEWS_WAITING: usize = 4096;

/// Starts the watches that every manager has.
pub(crate) fn start(client: &Client, namespace: &str, news: &mpsc::Sender<News>, tasks: &mut JoinSet<()>) {
    start_for(client, namespace, None, news, tasks);
    tasks.spawn(follow_kinds(client.clone(), news.clone()));
}

/// The label selector of what belongs to an add-on, or to any.
pub(crate) fn label_of(addon: Option<&str>) -> String {
    match addon.filter(|addon| addon.len() <= names::MAX_NAME) {
        Some(addon) => format!("{}={addon}", labels::ADDON_NAME),
        None => labels::ADDON_NAME.to_owned(),
    }
}

/// Starts the watches of everything that add-ons are made of; of one add-on only, where one is given.
pub(crate) fn start_for(
    client: &Client,
    namespace: &str,
    addon: Option<&str>,
    news: &mpsc::Sender<News>,
    tasks: &mut JoinSet<()>,
) {
    let all = watcher::Config::default;
    let named = || match addon {
        Some(addon) => all().fields(&format!("metadata.name={addon}")),
        None => all(),
    };
    let ours = || all().labels(&label_of(addon));
    let addons: Api<Guarded<ClusterManagementAddOn>> = Api::all(client.clone());
    tasks.spawn(follow(
        addons,
        named(),
        news.clone(),
        |object| Some(Box::new(seen::addon(&object))),
        News::AddOn,
    ));
    let instances: Api<Guarded<ManagedClusterAddOn>> = Api::all(client.clone());
    tasks.spawn(follow(
        instances,
        named(),
        news.clone(),
        |object| seen::instance(&object).map(Box::new),
        News::Instance,
    ));
    let works: Api<Guarded<ManifestWork>> = Api::all(client.clone());
    tasks.spawn(follow(works, ours(), news.clone(), |object| seen::work(&object).map(Box::new), News::Work));
    let clusters: Api<Guarded<ManagedCluster>> = Api::all(client.clone());
    tasks.spawn(follow(
        clusters,
        all(),
        news.clone(),
        |object| seen::cluster(&object).map(Box::new),
        News::Cluster,
    ));
    let placements: Api<Guarded<Placement>> = Api::all(client.clone());
    tasks.spawn(follow(
        placements,
        all(),
        news.clone(),
        |object| Some(Box::new(seen::placement(object))),
        News::Placement,
    ));
    let decisions: Api<Guarded<PlacementDecision>> = Api::all(client.clone());
    tasks.spawn(follow(
        decisions,
        all(),
        news.clone(),
        |object| Some(Box::new(seen::decision(object))),
        News::Decision,
    ));
    let revisions: Api<Guarded<ControllerRevision>> = Api::namespaced(client.clone(), namespace);
    tasks.spawn(follow(revisions, ours(), news.clone(), |object| seen::revision(&object), News::Revision));
}

/// What can be told of a watch. Who manages has nothing to do about a refusal but to try again; who looks on behalf of a person has.
pub(crate) trait Told: Sized {
    fn refused(_: Refused) -> Option<Self> {
        None
    }
}

impl Told for News {
    fn refused(refused: Refused) -> Option<Self> {
        Some(Self::Refused(refused))
    }
}

/// That the hub does not know us, or does not let us; `None`: something else is the matter.
fn refusal(resource: &GroupResource, error: watcher::Error) -> Option<Refused> {
    let said = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(said))
        | watcher::Error::WatchStartFailed(kube::Error::Api(said))
        | watcher::Error::WatchFailed(kube::Error::Api(said))
        | watcher::Error::WatchError(said) => said,
        _ => return None,
    };
    matches!(said.code, 401 | 403).then(|| Refused {
        resource: resource.clone(),
        doing: format!("watch {resource}"),
        said,
    })
}

/// Follows the objects of one kind for as long as somebody listens.
pub(crate) async fn follow<K, T, N>(
    api: Api<Guarded<K>>,
    config: watcher::Config,
    news: mpsc::Sender<N>,
    read: impl Fn(K) -> Option<T> + Send,
    wrap: impl Fn(Change<T>) -> N + Send,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Default,
    T: Send,
    N: Told,
{
    let stream = watcher(api, config).default_backoff();
    pin_mut!(stream);
    let read = |guarded: Guarded<K>| match guarded.0 {
        Ok(object) => {
            let key = Key::of(object.meta());
            match read(object) {
                Some(read) => Change::Put(key, read),
                None => Change::Unreadable(key),
            }
        }
        Err(invalid) => {
            unreadable(&K::kind(&K::DynamicType::default()), Key::of(&invalid.metadata), &invalid)
        }
    };
    while let Some(event) = stream.next().await {
        let change = match event {
            Ok(Event::Init) => Change::Begin,
            Ok(Event::InitDone) => Change::End,
            Ok(Event::Apply(object) | Event::InitApply(object)) => read(object),
            Ok(Event::Delete(object)) => Change::Gone(Key::of(object.meta())),
            Err(error) => {
                let kind = K::DynamicType::default();
                interrupted(&K::kind(&kind), &error);
                let resource = GroupResource::new(&K::group(&kind), &K::plural(&kind));
                if let Some(refused) = refusal(&resource, error).and_then(N::refused)
                    && news.send(refused).await.is_err()
                {
                    return;
                }
                continue;
            }
        };
        if news.send(wrap(change)).await.is_err() {
            return;
        }
    }
}

/// Follows the configs of one kind.
pub(crate) async fn follow_configs(
    client: Client,
    kind: GroupResource,
    resource: ApiResource,
    news: mpsc::Sender<News>,
) {
    let api: Api<Guarded<DynamicObject>> = Api::all_with(client, &resource);
    let stream = watcher(api, watcher::Config::default()).default_backoff();
    pin_mut!(stream);
    let kind = Arc::new(kind);
    while let Some(event) = stream.next().await {
        let change = match event {
            Ok(Event::Init) => Change::Begin,
            Ok(Event::InitDone) => Change::End,
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let key = Key::of(object.meta());
                match object.0 {
                    Ok(object) => Change::Put(key, seen::config(&kind, &object)),
                    Err(invalid) => unreadable(&kind.to_string(), key, &invalid),
                }
            }
            Ok(Event::Delete(object)) => Change::Gone(Key::of(object.meta())),
            Err(error) => {
                interrupted(&kind.to_string(), &error);
                if let Some(refused) = refusal(&kind, error).and_then(News::refused)
                    && news.send(refused).await.is_err()
                {
                    return;
                }
                continue;
            }
        };
        if news.send(News::Config((*kind).clone(), change)).await.is_err() {
            return;
        }
    }
}

/// Tells when a kind may have come or gone.
async fn follow_kinds(client: Client, news: mpsc::Sender<News>) {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    let stream = watcher(api, watcher::Config::default()).default_backoff();
    pin_mut!(stream);
    let mut known = std::collections::HashMap::new();
    while let Some(event) = stream.next().await {
        let changed = match event {
            // Its status too: that a kind is established, and so served, is told nowhere else.
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let version = object.metadata.resource_version.clone();
                known.insert(object.name_any(), version.clone()) != Some(version)
            }
            Ok(Event::Delete(object)) => known.remove(&object.name_any()).is_some(),
            _ => false,
        };
        if changed && news.send(News::Kinds).await.is_err() {
            return;
        }
    }
}

fn unreadable<T>(kind: &str, object: Key, error: &InvalidObject) -> Change<T> {
    tracing::warn!(kind, ?object, %error, "an object cannot be read and is left as it was known");
    Change::Unreadable(object)
}

/// A list that fails holds everything up; a watch that ends is daily bread.
fn interrupted(kind: &str, error: &watcher::Error) {
    match error {
        watcher::Error::InitialListFailed(error) => {
            tracing::warn!(kind, %error, "a list failed and is tried again: nothing is decided before it is there");
        }
        error => tracing::debug!(kind, %error, "a watch was interrupted and goes on"),
    }
}
