//! The hub: the state that its parts share, how it opens and how it stops.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::{Semaphore, watch};

use crate::api::http_api;
use crate::api::read::snapshots::Snapshots;
use crate::api::status::ApiError;
use crate::api::write::{Body, Mode, RequestScope, create};
use crate::collector::{self, Queue};
use crate::kinds::resource::{Converter, KindTable, Resource};
use crate::kinds::{builtin, crd};
use crate::security::access::Role;
use crate::security::tokens::Identity;
use crate::store::object::StoredObject;
use crate::store::{CommittedEvent, DiskError, LogLimits, Opened, Store, StoreState};

/// Namespaces that always exist.
pub(crate) const FIRST_NAMESPACES: [&str; 2] = ["default", "kube-system"];

/// The hub's only source of time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The hub's only source of random bytes: UIDs and the ends of generated names.
pub type Chance = Arc<dyn Fn(&mut [u8]) -> std::io::Result<()> + Send + Sync>;

/// Settings of a hub.
#[derive(Clone)]
pub struct HubOptions {
    pub clock: Clock,
    pub chance: Chance,
    /// The maximum number of concurrent watches.
    pub most_watches: usize,
    /// How many events are kept for watchers, over all kinds.
    pub events_kept: usize,
    /// How many bytes of events are kept.
    pub event_bytes_kept: usize,
    /// Objects of kind `Event` are deleted after this time.
    pub event_lifetime: Duration,
    /// Converters between the versions of a CRD, by the CRD's name. A CRD with the conversion
    /// strategy `Webhook` is refused unless it has a converter here.
    pub converters: BTreeMap<String, Converter>,
}

impl Default for HubOptions {
    fn default() -> Self {
        let limits = LogLimits::default();
        Self {
            clock: Arc::new(Timestamp::now),
            chance: Arc::new(|bytes| {
                getrandom::fill(bytes).map_err(|error| std::io::Error::other(error.to_string()))
            }),
            most_watches: 16_384,
            events_kept: limits.events,
            event_bytes_kept: limits.bytes,
            event_lifetime: Duration::from_secs(3600),
            converters: BTreeMap::new(),
        }
    }
}

impl std::fmt::Debug for HubOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            clock: _,
            chance: _,
            most_watches,
            events_kept,
            event_bytes_kept,
            event_lifetime,
            converters,
        } = self;
        f.debug_struct("Options")
            .field("most_watches", most_watches)
            .field("events_kept", events_kept)
            .field("event_bytes_kept", event_bytes_kept)
            .field("event_lifetime", event_lifetime)
            .field("converters", converters)
            .finish_non_exhaustive()
    }
}

/// Why a hub could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("failed to start the writer of the store")]
    Writer(#[source] std::io::Error),
    #[error("the stored CRD {name} cannot be served: {why}")]
    Crd { name: String, why: String },
    #[error("failed to create the first namespaces: {0}")]
    Begin(String),
    #[error("the built-in kinds are invalid: {0}")]
    BuiltIn(String),
}

/// An embedded, Kubernetes-compatible API server. Clones share the same hub.
#[derive(Clone, Debug)]
pub struct Hub {
    pub(crate) inner: Arc<HubState>,
}

impl Hub {
    /// Opens the hub in a directory, which is created if it does not exist. Only one process can
    /// open it.
    pub async fn open(directory: &Path, options: HubOptions) -> Result<Self, OpenError> {
        Self::start(Opened::at(directory)?, options).await
    }

    /// A hub in memory; its data is discarded when it stops.
    pub async fn ephemeral(options: HubOptions) -> Result<Self, OpenError> {
        Self::start(Opened::ephemeral(), options).await
    }

    /// A new hub in memory that starts with the state of this one. Cheap: nothing is copied.
    pub async fn fork(&self, options: HubOptions) -> Result<Self, OpenError> {
        let opened = Opened::ephemeral_from(self.inner.store.published().state());
        Self::start_with(opened, self.inner.table(), options).await
    }

    async fn start(opened: Opened, options: HubOptions) -> Result<Self, OpenError> {
        let table = Arc::new(restore(&opened.state, &options)?);
        Self::start_with(opened, table, options).await
    }

    async fn start_with(
        opened: Opened,
        table: Arc<KindTable>,
        options: HubOptions,
    ) -> Result<Self, OpenError> {
        let rows = Arc::new(ServedKinds { table: RwLock::new(table), changed: watch::Sender::new(0) });
        let queue = Arc::new(Queue::default());
        queue.look_at_all(&opened.state);
        let limits = LogLimits { events: options.events_kept, bytes: options.event_bytes_kept };
        let observer = {
            let (rows, queue) = (Arc::clone(&rows), Arc::clone(&queue));
            Box::new(move |state: &StoreState, events: &[Arc<CommittedEvent>]| {
                rows.follow(events);
                queue.follow(state, events);
            })
        };
        let store = opened.start(limits, observer).map_err(OpenError::Writer)?;
        let inner = Arc::new(HubState {
            store,
            rows,
            queue,
            snapshots: Snapshots::default(),
            watches: Arc::new(Semaphore::new(options.most_watches)),
            stopping: watch::Sender::new(false),
            options,
        });
        for name in FIRST_NAMESPACES {
            inner
                .ensure_namespace(name)
                .await
                .map_err(|failure| OpenError::Begin(failure.message().to_owned()))?;
        }
        collector::start(&inner);
        Ok(Self { inner })
    }

    /// The API as a service. Every request must have an [`Identity`] among its extensions:
    /// authentication happens elsewhere.
    pub fn router(&self) -> Router {
        let inner = Arc::clone(&self.inner);
        Router::new().fallback(move |request| http_api::handle(Arc::clone(&inner), request))
    }

    /// An in-process client, without a socket, with all rights.
    pub fn client(&self) -> kube::Client {
        let administrator = Identity::new("system:admin", Role::Admin);
        let service = self.router().layer(axum::Extension(administrator));
        kube::Client::new(service, "default")
    }

    /// The time as the hub sees it.
    pub fn now(&self) -> Timestamp {
        self.inner.now()
    }

    /// The revision of the last change that readers can see.
    pub fn revision(&self) -> u64 {
        self.inner.store.published().state().revision()
    }

    /// Ends all watches; clients reconnect later.
    pub(crate) fn end_watches(&self) {
        self.inner.stopping.send_replace(true);
    }

    /// Ends all watches and writes what was accepted. Later writes are refused.
    pub async fn stop(&self) {
        self.end_watches();
        let inner = Arc::clone(&self.inner);
        // Joining the writer blocks until the disk is done.
        if tokio::task::spawn_blocking(move || inner.store.close()).await.is_err() {
            tracing::error!("the store did not close cleanly");
        }
    }

    /// Deletes expired events. The hub does so by itself every minute.
    pub async fn expire_events(&self) {
        collector::expire_events(&self.inner).await;
    }
}

/// The table of kinds, which changes with CRDs.
#[derive(Debug)]
struct ServedKinds {
    table: RwLock<Arc<KindTable>>,
    changed: watch::Sender<u64>,
}

impl ServedKinds {
    /// Updates the table from committed CRDs.
    fn follow(&self, events: &[Arc<CommittedEvent>]) {
        for event in events.iter().filter(|event| &*event.resource == builtin::CRDS) {
            let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
            let table = Arc::make_mut(&mut table);
            let gone = event.kind == crate::store::EventKind::Deleted;
            if let Some((plural, group)) = event.object.name().split_once('.') {
                table.remove(group, plural);
            }
            if !gone && let Err(why) = add_row(table, &event.object) {
                tracing::error!(crd = event.object.name(), why, "a CRD that was admitted cannot be served");
            }
            self.changed.send_modify(|count| *count += 1);
        }
    }
}

/// Adds the row of a stored CRD, if it is established.
fn add_row(table: &mut KindTable, stored: &StoredObject) -> Result<(), String> {
    let object = stored.value();
    if !crd::is_established(&object) {
        return Ok(());
    }
    let converter = table.converter(stored.name()).cloned();
    let mut resource = crd::resource(&object, converter.as_ref()).map_err(|causes| format!("{causes:?}"))?;
    resource.terminating = stored.facts.terminating;
    table.insert(resource);
    Ok(())
}

fn restore(state: &StoreState, options: &HubOptions) -> Result<KindTable, OpenError> {
    let table = builtin::table().map_err(|causes| OpenError::BuiltIn(format!("{causes:?}")))?;
    let mut table = table.with_converters(options.converters.clone());
    for stored in state.objects(builtin::CRDS).values() {
        let name = stored.name().to_owned();
        add_row(&mut table, stored).map_err(|why| OpenError::Crd { name, why })?;
    }
    Ok(table)
}

/// The shared state of a hub.
#[derive(Debug)]
pub(crate) struct HubState {
    pub(crate) store: Store,
    rows: Arc<ServedKinds>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) snapshots: Snapshots,
    pub(crate) watches: Arc<Semaphore>,
    stopping: watch::Sender<bool>,
    pub(crate) options: HubOptions,
}

impl HubState {
    pub(crate) fn table(&self) -> Arc<KindTable> {
        Arc::clone(&self.rows.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a kind still exists.
    pub(crate) fn serves(&self, resource: &Resource) -> bool {
        self.table().get(&resource.group, &resource.names.plural).is_some_and(|row| row.id == resource.id)
    }

    pub(crate) fn kinds_changed(&self) -> watch::Receiver<u64> {
        self.rows.changed.subscribe()
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.options.clock)()
    }

    /// The time in the format of metadata: UTC, in seconds.
    pub(crate) fn now_text(&self) -> String {
        let now = self.now();
        Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
    }

    pub(crate) fn random_uid(&self) -> Result<String, ApiError> {
        let mut bytes = [0_u8; 16];
        (self.options.chance)(&mut bytes).map_err(ApiError::internal)?;
        let mut number = u128::from_be_bytes(bytes);
        // A version 4 UUID.
        number = number & !(0xf << 76) | 4 << 76;
        number = number & !(0b11 << 62) | 0b10 << 62;
        let hex = format!("{number:032x}");
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| hex.get(range).unwrap_or_default());
        Ok(parts.join("-"))
    }

    pub(crate) fn random_text(&self, letters: &[u8], length: usize) -> Result<String, ApiError> {
        let mut bytes = vec![0_u8; length];
        (self.options.chance)(&mut bytes).map_err(ApiError::internal)?;
        let letter = |byte: &u8| {
            letters.get(usize::from(*byte) % letters.len().max(1)).map(|letter| char::from(*letter))
        };
        Ok(bytes.iter().filter_map(letter).collect())
    }

    async fn ensure_namespace(self: &Arc<Self>, name: &str) -> Result<(), ApiError> {
        if self.store.head().get(builtin::NAMESPACES, name).is_some() {
            return Ok(());
        }
        let table = self.table();
        let resource = table.get("", builtin::NAMESPACES).cloned().ok_or_else(ApiError::no_such_path)?;
        let scope = RequestScope { resource, version: 0, namespace: None };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        create::create(self, &scope, Body { object, duplicates: Vec::new() }, Mode::default()).await.map(drop)
    }
}

impl Drop for HubState {
    fn drop(&mut self) {
        self.queue.close();
    }
}
