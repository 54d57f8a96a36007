//! Reads a hub without managing it: the manager's own stores, filled from lists and optionally kept
//! up to date by watches.
//!
//! Used by commands and the dashboard. It uses the manager's code, so it sees what a manager there
//! would base its decisions on. Must never write.

mod lists;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use aviary_api::ObjectText;
use aviary_engine::configs::{ConfigRef, GroupResource, Revision};
use aviary_engine::name::{PlacementName, Text};
use aviary_engine::observed::{Lookup, Observed, Options};
use futures_util::future::{join, join_all};
use jiff::Timestamp;
use kube::Client;
use kube::api::ApiResource;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::depth;
use crate::kinds::{self, Found};
use crate::namespaces;
use crate::reach::{Outage, Reach};
use crate::schemas;
use crate::seen::{Change, ObjectVersion, Refused, WatchEvent, Watched};
use crate::stores::{AddOnEntry, KindState, Stores};
use crate::watches::{self, EVENTS_WAITING, KindVisitor, Which, watched_kinds};
use lists::Listed;

/// Up to this many configs of one kind are fetched one by one, which needs fewer rights than a list
/// and reads nothing else.
const MOST_FETCHES: usize = 32;
/// Changes that follow each other closely are reported together.
const QUIET: Duration = Duration::from_millis(100);
/// How long to wait before a config kind that the hub did not answer about is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Something could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to {doing}")]
pub struct LookError {
    /// What was being done, as in "list clustermanagementaddons.addon.open-cluster-management.io".
    pub doing: String,
    #[source]
    pub source: Box<kube::Error>,
}

impl LookError {
    fn new(doing: String, source: kube::Error) -> Self {
        Self { doing, source: Box::new(source) }
    }

    /// Whether the hub has answered, and refuses. Anything else may pass.
    fn is_refusal(&self) -> bool {
        matches!(&*self.source, kube::Error::Api(said) if matches!(said.code, 401 | 403))
    }
}

#[derive(Clone, Debug)]
pub struct Scope {
    /// Where the manager keeps revisions.
    pub namespace: String,
    /// One add-on only, and what it depends on.
    pub addon: Option<String>,
}

/// A completed revision of a placement.
#[derive(Clone, Debug)]
pub struct CompletedRevision {
    pub addon: Text,
    pub number: i64,
    pub placement: PlacementName,
    pub revision: Revision,
    /// When the rollout began, if it was recorded.
    pub started: Option<Timestamp>,
    /// When it was completed.
    pub at: Option<Timestamp>,
    /// The placement was rolled back from it. Rolling it out again is an upgrade.
    pub withdrawn: bool,
}

/// The state of a hub.
pub struct View {
    client: Client,
    scope: Scope,
    stores: Stores,
    /// Objects that cannot be parsed and are ignored.
    unread: Vec<String>,
    served: BTreeMap<GroupResource, ApiResource>,
}

impl Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl View {
    /// Reads everything once.
    pub async fn read(client: &Client, scope: Scope) -> Result<Self, LookError> {
        let client = depth::shallow(client.clone());
        // All lists are awaited, so that the same one of several failures is always reported.
        let lists = join_all(lists::all(&client, &scope));
        let (listed, (namespaces, served)) =
            join(lists, join(namespaces::list(&client), schemas::read(&client))).await;
        let listed = listed.into_iter().collect::<Result<Vec<_>, _>>()?;
        let stores = Stores::new(Options::default());
        let mut view = Self { client, scope, stores, unread: Vec::new(), served: BTreeMap::new() };
        for listed in listed {
            view.take(listed);
        }
        if let Some(all) = namespaces {
            view.stores.take(WatchEvent::Namespaces(all));
        }
        // Without them, everything is taken to be held: a view writes nothing.
        view.stores.take(WatchEvent::Served(served.unwrap_or_default()));
        view.complete().await?;
        Ok(view)
    }

    fn take(&mut self, listed: Listed) {
        for event in listed.events {
            self.stores.take(event);
        }
        self.unread.extend(listed.unread);
    }

    /// Reads the configs that are referenced and were not found before.
    pub async fn complete(&mut self) -> Result<(), LookError> {
        self.complete_kinds().await?;
        for (kind, resource) in self.served.clone() {
            for config in self.referenced(&kind, |found| matches!(found, Lookup::Missing)) {
                let object = lists::fetch(&self.client, &config, &resource).await?;
                match object.map(|object| lists::config_event(&kind, &object)) {
                    Some(Ok(event)) => self.stores.take(event),
                    Some(Err(invalid)) => self.unread.push(lists::unread(&kind, &invalid)),
                    None => {}
                }
            }
        }
        Ok(())
    }

    async fn complete_kinds(&mut self) -> Result<(), LookError> {
        for (kind, found) in kinds::find(&self.client, self.stores.unknown_kinds()).await {
            match found {
                Found::Served { resource, namespaced } => {
                    let wanted = self.wanted(&kind);
                    let listed = lists::configs(&self.client, &kind, &resource, wanted).await?;
                    // Recorded only after everything is read, so that a cancelled call is repeated
                    // completely.
                    self.stores.set_kind(&kind, Some(KindState::Listing { namespaced }));
                    self.take(listed);
                    self.served.insert(kind, resource);
                }
                Found::NotServed => self.stores.set_kind(&kind, Some(KindState::NotServed)),
                Found::NoAnswer(why) => {
                    let doing = format!("find out whether {kind} are served");
                    return Err(LookError::new(doing, kube::Error::Service(why.into())));
                }
            }
        }
        Ok(())
    }

    /// The configs of a kind that are referenced; `None` if all of them are needed, or if there are
    /// many.
    fn wanted(&mut self, kind: &GroupResource) -> Option<BTreeSet<ConfigRef>> {
        if [GroupResource::templates(), GroupResource::policies(), GroupResource::records()].contains(&kind) {
            return None;
        }
        let wanted = self.referenced(kind, |_| true);
        (wanted.len() <= MOST_FETCHES).then_some(wanted)
    }

    /// The referenced configs of a kind whose lookup result matches.
    fn referenced(&mut self, kind: &GroupResource, found: impl Fn(&Lookup) -> bool) -> BTreeSet<ConfigRef> {
        let mut referenced = BTreeSet::new();
        for addon in self.addons() {
            let Some(observed) = self.stores.observe(&addon) else { continue };
            let of_kind = observed.configs.iter().filter(|(config, _)| config.kind == *kind);
            referenced.extend(of_kind.filter(|(_, looked)| found(looked)).map(|(config, _)| config.clone()));
        }
        referenced
    }

    pub fn addons(&self) -> Vec<Text> {
        self.stores.addons().cloned().collect()
    }

    /// Calls `look` with the snapshot of an add-on. Returns `None` if it does not exist.
    pub fn observe<T>(&mut self, addon: &str, look: impl FnOnce(&Observed) -> T) -> Option<T> {
        self.stores.observe(&addon.into()).map(|snapshot| look(&snapshot))
    }

    /// The completed revisions of an add-on's placements, in order of number.
    pub fn history(&self, addon: &str) -> Vec<CompletedRevision> {
        let completed = self.stores.entry(addon).into_iter().flat_map(AddOnEntry::completed);
        let mut history: Vec<CompletedRevision> = completed
            .map(|(_, completed)| CompletedRevision {
                addon: addon.into(),
                number: completed.number,
                placement: completed.placement.clone(),
                revision: completed.revision.clone(),
                started: completed.started,
                at: completed.at,
                withdrawn: completed.withdrawn,
            })
            .collect();
        history.sort_by(|a, b| (&a.placement, a.number).cmp(&(&b.placement, b.number)));
        history
    }

    /// The display name and the description of an add-on.
    pub fn title(&self, addon: &str) -> [Option<Text>; 2] {
        let entry = self.stores.entry(addon).filter(|entry| entry.present);
        let title = entry.map(|entry| entry.title.clone()).unwrap_or_default();
        [title.display_name, title.description]
    }

    /// Objects that could not be parsed.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Pretends that this object is on the hub. Nothing is written.
    pub fn suppose(&mut self, kind: &GroupResource, object: &Value) {
        let mut supposed = Suppose { kind, object, is_watched: false, event: None };
        watched_kinds(&mut supposed);
        let Suppose { is_watched, event, .. } = supposed;
        let config = || lists::config_event(kind, &typed::<ObjectText>(object)?).ok();
        if let Some(event) = if is_watched { event } else { config() } {
            self.stores.take(event);
        }
    }

    /// Keeps the view up to date from now on.
    pub fn follow(self) -> Follower {
        Follower::new(self)
    }
}

fn typed<T: DeserializeOwned>(object: &Value) -> Option<T> {
    serde_json::from_value(object.clone()).ok()
}

/// Finds the watched kind of an object, and parses it.
struct Suppose<'a> {
    kind: &'a GroupResource,
    object: &'a Value,
    is_watched: bool,
    event: Option<WatchEvent>,
}

impl KindVisitor for Suppose<'_> {
    fn visit<K: Watched<WatchEvent>>(&mut self, _: Which) {
        if *self.kind != GroupResource::new(&K::group(&()), &K::plural(&())) {
            return;
        }
        self.is_watched = true;
        self.event = typed::<K>(self.object).and_then(|object| {
            let version = ObjectVersion::of(object.meta());
            Some((K::EVENT)(Change::Put(version, object.read()?)))
        });
    }
}

/// A view that is kept up to date.
pub struct Follower {
    view: View,
    events: mpsc::Receiver<WatchEvent>,
    sender: mpsc::Sender<WatchEvent>,
    watches: JoinSet<()>,
    watched: BTreeSet<GroupResource>,
    refused: Option<LookError>,
    reach: Reach,
    outage: watch::Receiver<Option<Outage>>,
    /// When the current changes are reported.
    settles_at: Option<Instant>,
}

impl Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("view", &self.view).finish_non_exhaustive()
    }
}

impl Follower {
    fn new(view: View) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_WAITING);
        let mut watches = JoinSet::new();
        let only = view.scope.addon.as_deref();
        let reach = Reach::default();
        watches.spawn(reach.clone().keep_asking(view.client.clone()));
        watches::start_for(&view.client, &view.scope.namespace, only, Some(&reach), &sender, &mut watches);
        watches.spawn(namespaces::follow(view.client.clone(), reach.clone(), sender.clone()));
        let outage = reach.subscribe();
        let (watched, refused, settles_at) = (BTreeSet::new(), None, None);
        let mut follower =
            Self { view, events, sender, watches, watched, refused, reach, outage, settles_at };
        follower.view.stores.take_dirty();
        follower.watch_configs();
        follower
    }

    fn watch_configs(&mut self) {
        for (kind, resource) in &self.view.served {
            if self.watched.insert(kind.clone()) {
                let (client, kind) = (self.view.client.clone(), kind.clone());
                let (resource, reach) = (resource.clone(), Some(self.reach.clone()));
                let watch = watches::follow_configs(client, kind, resource, reach, self.sender.clone());
                self.watches.spawn(watch);
            }
        }
    }

    pub fn view(&mut self) -> &mut View {
        &mut self.view
    }

    /// Since when the hub has been unreachable, and why. `None` while it answers.
    pub fn outage(&self) -> Option<Outage> {
        self.reach.outage()
    }

    /// Whether the hub answers, for whoever watches more of it.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Waits until something about an add-on may have changed, or the outage of the hub.
    /// Cancel-safe.
    pub async fn changed(&mut self) -> Result<(), LookError> {
        self.changed_addons().await.map(drop)
    }

    /// Waits until something may have changed, and returns about which add-ons: about none if it is
    /// the outage of the hub. Cancel-safe.
    pub async fn changed_addons(&mut self) -> Result<BTreeSet<Text>, LookError> {
        loop {
            if self.settles_at.is_none() {
                // Neither channel closes, because this holds both senders.
                tokio::select! {
                    event = self.events.recv() => event.into_iter().for_each(|event| self.take(event)),
                    _ = self.outage.changed() => return Ok(self.view.stores.take_dirty()),
                }
            }
            // If a call is cancelled, the next one reports its changes at this time.
            let until = *self.settles_at.get_or_insert_with(|| Instant::now() + QUIET);
            while let Ok(Some(event)) = timeout_at(until, self.events.recv()).await {
                self.take(event);
            }
            self.settles_at = self.complete().await?.then(|| Instant::now() + ASK_AGAIN);
            let changed = self.view.stores.take_dirty();
            if !changed.is_empty() || self.refused.is_some() {
                return Ok(changed);
            }
        }
    }

    /// Reads the kinds of config that are new. Returns whether the hub has to be asked again.
    async fn complete(&mut self) -> Result<bool, LookError> {
        if self.view.stores.unknown_kinds().is_empty() {
            return Ok(false);
        }
        match self.view.complete_kinds().await {
            Ok(()) => {
                self.watch_configs();
                Ok(false)
            }
            Err(error) if error.is_refusal() => Err(error),
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "a kind of config is asked for again"
                );
                self.reach.doubt();
                Ok(true)
            }
        }
    }

    /// Takes the hub's last refusal of a watch.
    pub fn take_refusal(&mut self) -> Option<LookError> {
        self.refused.take()
    }

    fn take(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Refused(Refused { doing, said, .. }) => {
                self.refused = Some(LookError::new(doing, kube::Error::Api(said)));
            }
            event => self.view.stores.take(event),
        }
    }
}
