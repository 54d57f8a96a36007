//! A look at a hub without managing it: the manager's own stores, filled from lists, and kept up to date by watches where asked.
//!
//! Owns reading for people. One code path with the manager: what is seen here is what a manager there would decide on. Must never write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use aviary_api::names;
use aviary_api::{
    ClusterManagementAddOn, Guarded, ManagedCluster, ManagedClusterAddOn, ManifestWork, Placement,
    PlacementDecision,
};
use aviary_engine::configs::{ConfigRef, GroupResource, Revision};
use aviary_engine::name::{PlacementName, Text};
use aviary_engine::observed::{Lookup, Observed, Options};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::error_boundary::InvalidObject;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::depth;
use crate::kinds::{self, Found};
use crate::seen::{self, Change, Key, News, Refused};
use crate::stores::{Kind, Known, Stores};
use crate::watches::{self, NEWS_WAITING};

/// How many objects are asked for at once.
const PAGE: u32 = 500;
/// Up to so many configs of one kind are fetched one by one, which needs fewer rights than a list and reads nothing else.
const MOST_FETCHES: usize = 32;
/// A list whose pages have expired is begun again so often.
const MOST_RESTARTS: usize = 3;
/// Changes that come one upon the other are told together.
const QUIET: Duration = Duration::from_millis(100);

/// Something could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to {doing}")]
pub struct LookError {
    /// What was being done, as in "list clustermanagementaddons.addon.open-cluster-management.io".
    pub doing: String,
    #[source]
    pub source: Box<kube::Error>,
}

/// What is looked at.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Where the manager keeps revisions.
    pub namespace: String,
    /// One add-on only, and what bears on it.
    pub addon: Option<String>,
}

/// A revision that a placement has completed, as it is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    pub addon: Text,
    pub number: i64,
    pub placement: PlacementName,
    pub revision: Revision,
    pub at: Option<Timestamp>,
}

/// A hub as it was seen.
pub struct View {
    client: Client,
    scope: Scope,
    stores: Stores,
    /// Objects that cannot be understood and are left out.
    unread: Vec<String>,
    served: BTreeMap<GroupResource, ApiResource>,
}

impl Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// What one list brought.
#[derive(Default)]
struct Listed {
    news: Vec<News>,
    unread: Vec<String>,
}

impl View {
    /// Reads everything once.
    pub async fn read(client: &Client, scope: Scope) -> Result<Self, LookError> {
        let client = depth::shallow(client.clone());
        // All are waited for, so that of several failures always the first is told.
        let listed = join_all(lists(&client, &scope)).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut view = Self {
            client,
            scope,
            stores: Stores::new(Options::default()),
            unread: Vec::new(),
            served: BTreeMap::new(),
        };
        for listed in listed {
            view.take(listed);
        }
        view.complete().await?;
        Ok(view)
    }

    fn take(&mut self, listed: Listed) {
        for news in listed.news {
            self.stores.take(news);
        }
        self.unread.extend(listed.unread);
    }

    /// Reads the configs that are referenced and were not found before.
    pub async fn complete(&mut self) -> Result<(), LookError> {
        self.complete_kinds().await?;
        for (kind, resource) in self.served.clone() {
            let missing = self.referenced(&kind, |found| matches!(found, Lookup::Missing));
            for config in missing {
                let object = fetch(&self.client, &config, &resource).await?;
                if let Some(object) = object {
                    self.stores.take(config_news(&kind, &object));
                }
            }
        }
        Ok(())
    }

    /// Reads the configs of kinds that were not known before.
    async fn complete_kinds(&mut self) -> Result<(), LookError> {
        let missing: Vec<GroupResource> = self
            .stores
            .referenced_kinds()
            .into_iter()
            .filter(|kind| !self.stores.kinds().contains_key(kind))
            .collect();
        for (kind, found) in kinds::find(&self.client, missing).await {
            match found {
                Found::Served { resource, namespaced } => {
                    let wanted = self.wanted(&kind);
                    let listed = configs(&self.client, &kind, &resource, wanted).await?;
                    // Nothing is noted before all is there: who stops waiting in between asks again.
                    self.stores.set_kind(&kind, Some(Kind::Listing { namespaced }));
                    self.take(listed);
                    self.served.insert(kind, resource);
                }
                Found::NotServed => self.stores.set_kind(&kind, Some(Kind::Unknown)),
                Found::NotTold(why) => {
                    let doing = format!("find out whether {kind} are served");
                    return Err(LookError { doing, source: Box::new(kube::Error::Service(why.into())) });
                }
            }
        }
        Ok(())
    }

    /// The configs of a kind that somebody refers to; `None` where all of them bear on what is seen, or they are many.
    fn wanted(&mut self, kind: &GroupResource) -> Option<BTreeSet<ConfigRef>> {
        if kind == GroupResource::templates() {
            return None;
        }
        let wanted = self.referenced(kind, |_| true);
        (wanted.len() <= MOST_FETCHES).then_some(wanted)
    }

    /// The configs of a kind that somebody refers to, by what was found.
    fn referenced(&mut self, kind: &GroupResource, found: impl Fn(&Lookup) -> bool) -> BTreeSet<ConfigRef> {
        let mut referenced = BTreeSet::new();
        for addon in self.addons() {
            self.stores.observe(&addon, |observed| {
                let of_kind = observed.configs.iter().filter(|(config, _)| config.kind == *kind);
                referenced
                    .extend(of_kind.filter(|(_, looked)| found(looked)).map(|(config, _)| config.clone()));
            });
        }
        referenced
    }

    /// The add-ons that are there.
    pub fn addons(&self) -> Vec<Text> {
        self.stores.addons().cloned().collect()
    }

    /// Looks at an add-on; `None` when there is none of this name.
    pub fn observe<T>(&mut self, addon: &str, look: impl FnOnce(&Observed) -> T) -> Option<T> {
        self.stores.observe(&addon.into(), look)
    }

    /// What an add-on's placements completed, in order of number.
    pub fn history(&self, addon: &str) -> Vec<Kept> {
        let completed = self.stores.known(addon).into_iter().flat_map(Known::completed);
        let mut history: Vec<Kept> = completed
            .map(|(_, completed)| Kept {
                addon: addon.into(),
                number: completed.number,
                placement: completed.placement.clone(),
                revision: completed.revision.clone(),
                at: completed.at,
            })
            .collect();
        history.sort_by(|a, b| (&a.placement, a.number).cmp(&(&b.placement, b.number)));
        history
    }

    /// How its author calls an add-on, and what they say of it.
    pub fn title(&self, addon: &str) -> [Option<Text>; 2] {
        let known = self.stores.known(addon).filter(|known| known.present);
        let title = known.map(|known| known.title.clone()).unwrap_or_default();
        [title.display_name, title.description]
    }

    /// Objects that could not be understood.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Looks at the hub as it would be with this object on it. Nothing is written.
    pub fn suppose(&mut self, kind: &GroupResource, object: &Value) {
        let group = &*kind.group;
        let news = match (group, &*kind.resource) {
            (names::ADDON_GROUP, names::CLUSTER_MANAGEMENT_ADDONS) => {
                typed(object, |object: &ClusterManagementAddOn| {
                    let seen = Box::new(seen::addon(object));
                    Some(News::AddOn(Change::Put(Key::of(&object.metadata), seen)))
                })
            }
            (names::ADDON_GROUP, names::MANAGED_CLUSTER_ADDONS) => {
                typed(object, |object: &ManagedClusterAddOn| {
                    let seen = Box::new(seen::instance(object)?);
                    Some(News::Instance(Change::Put(Key::of(&object.metadata), seen)))
                })
            }
            (names::CLUSTER_GROUP, names::MANAGED_CLUSTERS) => typed(object, |object: &ManagedCluster| {
                let seen = Box::new(seen::cluster(object)?);
                Some(News::Cluster(Change::Put(Key::of(&object.metadata), seen)))
            }),
            (names::CLUSTER_GROUP, names::PLACEMENTS) => typed(object, |object: &Placement| {
                let seen = Box::new(seen::placement(object.clone()));
                Some(News::Placement(Change::Put(Key::of(&object.metadata), seen)))
            }),
            (names::CLUSTER_GROUP, names::PLACEMENT_DECISIONS) => {
                typed(object, |object: &PlacementDecision| {
                    let seen = Box::new(seen::decision(object.clone()));
                    Some(News::Decision(Change::Put(Key::of(&object.metadata), seen)))
                })
            }
            (names::WORK_GROUP, names::MANIFEST_WORKS) => typed(object, |object: &ManifestWork| {
                let seen = Box::new(seen::work(object)?);
                Some(News::Work(Change::Put(Key::of(&object.metadata), seen)))
            }),
            _ => typed(object, |object: &DynamicObject| {
                let change = Change::Put(Key::of(&object.metadata), seen::config(kind, object));
                Some(News::Config(kind.clone(), change))
            }),
        };
        if let Some(news) = news {
            self.stores.take(news);
        }
    }

    /// Goes on looking: what changes on the hub from now on is seen.
    pub fn follow(self) -> Follower {
        Follower::new(self)
    }
}

fn typed<T: DeserializeOwned>(object: &Value, read: impl Fn(&T) -> Option<News>) -> Option<News> {
    read(&serde_json::from_value(object.clone()).ok()?)
}

/// A view that is kept up to date.
pub struct Follower {
    view: View,
    news: mpsc::Receiver<News>,
    sender: mpsc::Sender<News>,
    watches: JoinSet<()>,
    watched: BTreeSet<GroupResource>,
    refused: Option<LookError>,
    /// When the changes that are under way are told.
    settles_at: Option<Instant>,
}

impl Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("view", &self.view).finish_non_exhaustive()
    }
}

impl Follower {
    fn new(view: View) -> Self {
        let (sender, news) = mpsc::channel(NEWS_WAITING);
        let mut watches = JoinSet::new();
        let only = view.scope.addon.as_deref();
        watches::start_for(&view.client, &view.scope.namespace, only, &sender, &mut watches);
        let mut follower =
            Self { view, news, sender, watches, watched: BTreeSet::new(), refused: None, settles_at: None };
        follower.view.stores.take_dirty();
        follower.watch_configs();
        follower
    }

    fn watch_configs(&mut self) {
        for (kind, resource) in &self.view.served {
            if self.watched.insert(kind.clone()) {
                let (client, kind) = (self.view.client.clone(), kind.clone());
                let watch = watches::follow_configs(client, kind, resource.clone(), self.sender.clone());
                self.watches.spawn(watch);
            }
        }
    }

    pub fn view(&mut self) -> &mut View {
        &mut self.view
    }

    /// Waits until something that bears on an add-on may have changed. It may be given up waiting for at any time.
    pub async fn changed(&mut self) -> Result<(), LookError> {
        self.changed_addons().await.map(drop)
    }

    /// Waits until something may have changed, and says about which add-ons. It may be given up waiting for at any time.
    pub async fn changed_addons(&mut self) -> Result<BTreeSet<Text>, LookError> {
        loop {
            if self.settles_at.is_none()
                && let Some(news) = self.news.recv().await
            {
                self.take(news);
            }
            // Who gave up waiting in the middle of some changes waits for their end, not for the next ones.
            let until = *self.settles_at.get_or_insert_with(|| Instant::now() + QUIET);
            // The sender is held here: there always is a next one to wait for.
            while let Ok(Some(news)) = timeout_at(until, self.news.recv()).await {
                self.take(news);
            }
            let known = self.view.stores.kinds();
            if self.view.stores.referenced_kinds().iter().any(|kind| !known.contains_key(kind)) {
                self.view.complete_kinds().await?;
                self.watch_configs();
            }
            self.settles_at = None;
            let changed = self.view.stores.take_dirty();
            if !changed.is_empty() || self.refused.is_some() {
                return Ok(changed);
            }
        }
    }

    /// That the hub does not let us watch any more, since it was last asked for.
    pub fn take_refusal(&mut self) -> Option<LookError> {
        self.refused.take()
    }

    fn take(&mut self, news: News) {
        match news {
            News::Refused(Refused { doing, said, .. }) => {
                self.refused = Some(LookError { doing, source: Box::new(kube::Error::Api(said)) });
            }
            news => self.view.stores.take(news),
        }
    }
}

/// The lists that every look needs.
fn lists<'a>(client: &'a Client, scope: &'a Scope) -> Vec<BoxFuture<'a, Result<Listed, LookError>>> {
    let all = ListParams::default;
    let (named, labelled) = match scope.addon.as_deref() {
        Some(addon) => {
            (all().fields(&format!("metadata.name={addon}")), all().labels(&watches::label_of(Some(addon))))
        }
        None => (all(), all().labels(&watches::label_of(None))),
    };
    vec![
        list(
            Api::all(client.clone()),
            named.clone(),
            |object: ClusterManagementAddOn| Some(Box::new(seen::addon(&object))),
            News::AddOn,
        )
        .boxed(),
        list(
            Api::all(client.clone()),
            named,
            |object: ManagedClusterAddOn| seen::instance(&object).map(Box::new),
            News::Instance,
        )
        .boxed(),
        list(
            Api::all(client.clone()),
            labelled.clone(),
            |object: ManifestWork| seen::work(&object).map(Box::new),
            News::Work,
        )
        .boxed(),
        list(
            Api::all(client.clone()),
            all(),
            |object: ManagedCluster| seen::cluster(&object).map(Box::new),
            News::Cluster,
        )
        .boxed(),
        list(
            Api::all(client.clone()),
            all(),
            |object: Placement| Some(Box::new(seen::placement(object))),
            News::Placement,
        )
        .boxed(),
        list(
            Api::all(client.clone()),
            all(),
            |object: PlacementDecision| Some(Box::new(seen::decision(object))),
            News::Decision,
        )
        .boxed(),
        revisions(client, &scope.namespace, labelled).boxed(),
    ]
}

async fn revisions(client: &Client, namespace: &str, params: ListParams) -> Result<Listed, LookError> {
    let api: Api<Guarded<ControllerRevision>> = Api::namespaced(client.clone(), namespace);
    list(api, params, |object: ControllerRevision| seen::revision(&object), News::Revision).await
}

/// All objects of one kind, page by page, each read as it arrives.
async fn list<K, T>(
    api: Api<Guarded<K>>,
    params: ListParams,
    read: impl Fn(K) -> Option<T> + Send,
    wrap: impl Fn(Change<T>) -> News + Send,
) -> Result<Listed, LookError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let resource = GroupResource::new(&K::group(&()), &K::plural(&()));
    let failed = |error| LookError { doing: format!("list {resource}"), source: Box::new(error) };
    let mut restarts = 0;
    'whole: loop {
        let mut listed = Listed { news: vec![wrap(Change::Begin)], ..Listed::default() };
        let mut page = params.clone().limit(PAGE);
        loop {
            let objects = match api.list(&page).await {
                Err(kube::Error::Api(status)) if status.code == 410 && restarts < MOST_RESTARTS => {
                    restarts += 1;
                    continue 'whole;
                }
                other => other.map_err(failed)?,
            };
            for object in objects.items {
                let (key, read) = match object.0 {
                    Ok(object) => (Key::of(object.meta()), read(object)),
                    Err(invalid) => {
                        listed.unread.push(unread(&resource, &invalid));
                        (Key::of(&invalid.metadata), None)
                    }
                };
                listed.news.extend(read.map(|read| wrap(Change::Put(key, read))));
            }
            match objects.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => break,
            }
        }
        listed.news.push(wrap(Change::End));
        return Ok(listed);
    }
}

fn unread(kind: &GroupResource, invalid: &InvalidObject) -> String {
    let Key { namespace, name } = Key::of(&invalid.metadata);
    format!("{kind} {namespace}/{name}: {invalid}")
}

/// The configs of one kind: those that are wanted, or all.
async fn configs(
    client: &Client,
    kind: &GroupResource,
    resource: &ApiResource,
    wanted: Option<BTreeSet<ConfigRef>>,
) -> Result<Listed, LookError> {
    let wrap = |change| News::Config(kind.clone(), change);
    let mut listed = Listed { news: vec![wrap(Change::Begin)], ..Listed::default() };
    match wanted {
        Some(wanted) => {
            for config in wanted {
                let object = fetch(client, &config, resource).await?;
                listed.news.extend(object.map(|object| config_news(kind, &object)));
            }
        }
        None => {
            let api: Api<Guarded<DynamicObject>> = Api::all_with(client.clone(), resource);
            let failed = |error| LookError { doing: format!("list {kind}"), source: Box::new(error) };
            let mut page = ListParams::default().limit(PAGE);
            loop {
                let objects = api.list(&page).await.map_err(failed)?;
                for object in objects.items {
                    match object.0 {
                        Ok(object) => listed.news.push(config_news(kind, &object)),
                        Err(invalid) => listed.unread.push(unread(kind, &invalid)),
                    }
                }
                match objects.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => page = page.continue_token(&token),
                    None => break,
                }
            }
        }
    }
    listed.news.push(wrap(Change::End));
    Ok(listed)
}

/// One config, if it is there.
async fn fetch(
    client: &Client,
    config: &ConfigRef,
    resource: &ApiResource,
) -> Result<Option<DynamicObject>, LookError> {
    let api: Api<DynamicObject> = match &config.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let failed = |error| LookError { doing: format!("read {config}"), source: Box::new(error) };
    api.get_opt(&config.name).await.map_err(failed)
}

fn config_news(kind: &GroupResource, object: &DynamicObject) -> News {
    News::Config(kind.clone(), Change::Put(Key::of(&object.metadata), seen::config(kind, object)))
}
