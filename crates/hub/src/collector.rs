//! Garbage collection: dependents, the contents of namespaces, the objects of a CRD, old events.
//!
//! Owns the consequences of deletions. Level-triggered: a task names an object to examine, never
//! what to do. So an unnecessary task costs little, and a lost one is found again when the hub
//! starts.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::api::status::ApiError;
use crate::api::write::delete::{self, DeleteOptions, FOREGROUND, ORPHAN};
use crate::api::write::patch::Patch;
use crate::api::write::update::{self, NewState, WrittenPart};
use crate::api::write::{Body, Mode, RequestScope};
use crate::hub::HubState;
use crate::kinds::builtin::{CRDS, EVENTS, NAMESPACES};
use crate::kinds::crd::CLEANUP;
use crate::kinds::resource::KindTable;
use crate::store::object::{ResourceId, StoreKey, StoredObject};
use crate::store::{CommittedEvent, EventKind, StoreState};

/// How often expired events are deleted.
const EXPIRE_EVERY: Duration = Duration::from_secs(60);
/// How long to wait before a failed task is retried.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Something to examine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// An object with owners, or one whose deletion waits for its dependents.
    Object(ResourceId, StoreKey),
    /// The dependents of a deleted object.
    Dependents(String),
    /// A namespace that is being deleted.
    Namespace(String),
    /// A CRD that is being deleted.
    Crd(String),
}

/// The queue of tasks.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    tasks: Mutex<BTreeSet<Task>>,
    news: Notify,
    closed: std::sync::atomic::AtomicBool,
}

impl Queue {
    fn push(&self, task: Task) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).insert(task);
        self.news.notify_one();
    }

    fn pop(&self) -> Option<Task> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, std::sync::atomic::Ordering::Release);
        self.news.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Queues everything that could be unfinished when a hub starts.
    pub(crate) fn look_at_all(&self, state: &StoreState) {
        for (resource, objects) in state.kinds() {
            for stored in objects.values() {
                self.look_at(resource, stored);
            }
        }
    }

    /// Queues tasks for a batch of changes.
    pub(crate) fn follow(&self, state: &StoreState, events: &[Arc<CommittedEvent>]) {
        for event in events {
            let stored = &event.object;
            if event.kind != EventKind::Deleted {
                self.look_at(&event.resource, stored);
                // An owner that waits for this object may be free now.
                for owner in event.before.iter().flat_map(|before| &before.facts.owners) {
                    if state.terminating_by_uid(&owner.uid).is_some() {
                        self.push(Task::Dependents(owner.uid.to_string()));
                    }
                }
                continue;
            }
            if !state.dependents(&stored.facts.uid).is_empty() {
                self.push(Task::Dependents(stored.facts.uid.to_string()));
            }
            for owner in &stored.facts.owners {
                self.push(Task::Dependents(owner.uid.to_string()));
            }
            let is_terminating = |resource: &str, key: &str| {
                state.get(resource, key).is_some_and(|stored| stored.facts.terminating)
            };
            if let Some(namespace) = stored.namespace()
                && is_terminating(NAMESPACES, namespace)
            {
                self.push(Task::Namespace(namespace.to_owned()));
            }
            if is_terminating(CRDS, &event.resource) {
                self.push(Task::Crd(event.resource.to_string()));
            }
        }
    }

    fn look_at(&self, resource: &ResourceId, stored: &StoredObject) {
        let terminating = stored.facts.terminating;
        match &**resource {
            NAMESPACES if terminating => self.push(Task::Namespace(stored.name().to_owned())),
            CRDS if terminating => self.push(Task::Crd(stored.name().to_owned())),
            _ => {}
        }
        let waits = held_by(stored, FOREGROUND) || held_by(stored, ORPHAN);
        if waits || !stored.facts.owners.is_empty() {
            self.push(Task::Object(resource.clone(), stored.key.clone()));
        }
    }
}

/// Starts the collector of a hub. It ends with the hub.
pub(crate) fn start(hub: &Arc<HubState>) {
    let (hub, queue) = (Arc::downgrade(hub), Arc::clone(&hub.queue));
    tokio::spawn(run(hub, queue));
}

async fn run(hub: Weak<HubState>, queue: Arc<Queue>) {
    let mut expiry = tokio::time::interval(EXPIRE_EVERY);
    while !queue.is_closed() {
        while let Some(task) = queue.pop() {
            let Some(hub) = hub.upgrade() else { return };
            if let Err(failure) = look(&hub, &task).await {
                tracing::debug!(?task, why = failure.message(), "a deletion is not finished yet");
                let queue = Arc::clone(&queue);
                tokio::spawn(async move {
                    tokio::time::sleep(RETRY_AFTER).await;
                    queue.push(task);
                });
            }
        }
        tokio::select! {
            biased;
            () = queue.news.notified() => {}
            _ = expiry.tick() => {
                let Some(hub) = hub.upgrade() else { return };
                expire_events(&hub).await;
            }
        }
    }
}

async fn look(hub: &Arc<HubState>, task: &Task) -> Result<(), ApiError> {
    let state = hub.store.published().state();
    match task {
        Task::Object(resource, key) => match state.get(resource, key).cloned() {
            Some(stored) => object(hub, &state, resource, &stored).await,
            None => Ok(()),
        },
        Task::Dependents(uid) => {
            for (resource, stored) in state.dependents(uid) {
                object(hub, &state, &resource, &stored).await?;
            }
            // An owner that waited for this object may be free now.
            match state.terminating_by_uid(uid) {
                Some((resource, owner)) => object(hub, &state, &resource, &owner).await,
                None => Ok(()),
            }
        }
        Task::Namespace(name) => namespace(hub, &state, name).await,
        Task::Crd(name) => crd(hub, &state, name).await,
    }
}

/// The kind and namespace of a stored object.
fn scope_of(hub: &HubState, resource: &str, stored: &StoredObject) -> Option<RequestScope> {
    let table = hub.table();
    let resource = table.stored().find(|row| &*row.id == resource)?.clone();
    let version = resource.versions.iter().position(|version| version.storage)?;
    Some(RequestScope { resource, version, namespace: stored.namespace().map(str::to_owned) })
}

async fn object(
    hub: &Arc<HubState>,
    state: &StoreState,
    resource: &ResourceId,
    stored: &Arc<StoredObject>,
) -> Result<(), ApiError> {
    let Some(scope) = scope_of(hub, resource, stored) else { return Ok(()) };
    if held_by(stored, ORPHAN) {
        for (resource, dependent) in state.dependents(&stored.facts.uid) {
            disown(hub, &resource, &dependent, |uid| *uid != *stored.facts.uid).await?;
        }
        return release(hub, &scope, stored, ORPHAN).await;
    }
    if held_by(stored, FOREGROUND) {
        let dependents = state.dependents(&stored.facts.uid);
        let blocks = |dependent: &StoredObject| blocked_owners(dependent).any(|uid| *uid == stored.facts.uid);
        let waiting = waiting_for(state, stored);
        let mut blocked = false;
        for (resource, dependent) in &dependents {
            // Two objects that wait for each other would wait forever.
            blocked |= blocks(dependent) && !waiting.contains(&dependent.facts.uid);
            self::dependent(hub, state, resource, dependent).await?;
        }
        return if blocked { Ok(()) } else { release(hub, &scope, stored, FOREGROUND).await };
    }
    dependent(hub, state, resource, stored).await
}

/// Whether an object is being deleted and has this finalizer.
fn held_by(stored: &StoredObject, finalizer: &str) -> bool {
    stored.facts.terminating && stored.facts.finalizers.iter().any(|name| **name == *finalizer)
}

/// The owners that cannot be deleted before this object.
fn blocked_owners(stored: &StoredObject) -> impl Iterator<Item = &Box<str>> {
    let blocking = stored.facts.owners.iter().filter(|owner| owner.block_owner_deletion == Some(true));
    blocking.map(|owner| &owner.uid)
}

/// The UIDs of all owners, direct and indirect, that wait for this object to be deleted.
fn waiting_for(state: &StoreState, stored: &StoredObject) -> BTreeSet<Box<str>> {
    let mut waiting = BTreeSet::new();
    let mut pending: Vec<Box<str>> = blocked_owners(stored).cloned().collect();
    while let Some(uid) = pending.pop() {
        let owner = state.terminating_by_uid(&uid).filter(|(_, owner)| held_by(owner, FOREGROUND));
        if let Some((_, owner)) = owner
            && waiting.insert(uid)
        {
            pending.extend(blocked_owners(&owner).cloned());
        }
    }
    waiting
}

/// An object is deleted with the last of its owners; references to other deleted owners are
/// removed.
async fn dependent(
    hub: &Arc<HubState>,
    state: &StoreState,
    resource: &ResourceId,
    stored: &Arc<StoredObject>,
) -> Result<(), ApiError> {
    if stored.facts.terminating || stored.facts.owners.is_empty() {
        return Ok(());
    }
    let table = hub.table();
    let owners = || stored.facts.owners.iter().map(|owner| (owner, standing(state, &table, stored, owner)));
    let staying: Vec<&str> = owners()
        .filter(|(_, is)| matches!(is, OwnerState::There | OwnerState::Unknown))
        .map(|(owner, _)| &*owner.uid)
        .collect();
    if staying.is_empty() {
        // An owner that waits for its dependents waits for theirs too. One that is gone does not: a
        // finalizer of this object then keeps its own dependents.
        let is_awaited = owners().any(|(_, is)| is == OwnerState::Going);
        let has_dependents = !state.dependents(&stored.facts.uid).is_empty();
        let policy = if is_awaited && has_dependents { "Foreground" } else { "Background" };
        return remove(hub, resource, stored, policy).await;
    }
    if staying.len() < stored.facts.owners.len() {
        return disown(hub, resource, stored, |uid| staying.contains(&uid)).await;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    There,
    /// It waits for its dependents to be deleted.
    Going,
    Gone,
    /// Of a kind that the hub does not serve: unknown.
    Unknown,
}

fn standing(
    state: &StoreState,
    table: &KindTable,
    dependent: &StoredObject,
    owner: &crate::store::object::OwnerReference,
) -> OwnerState {
    let Some(resource) = table.by_kind(&owner.api_version, &owner.kind) else { return OwnerState::Unknown };
    let key = match (resource.namespaced, dependent.namespace()) {
        (true, Some(namespace)) => format!("{namespace}/{}", owner.name),
        (true, None) => return OwnerState::Gone,
        (false, _) => owner.name.to_string(),
    };
    match state.get(&resource.id, &key) {
        Some(found) if found.facts.uid != owner.uid => OwnerState::Gone,
        Some(found) if held_by(found, FOREGROUND) => OwnerState::Going,
        Some(_) => OwnerState::There,
        None => OwnerState::Gone,
    }
}

async fn remove(
    hub: &Arc<HubState>,
    resource: &str,
    stored: &StoredObject,
    policy: &str,
) -> Result<(), ApiError> {
    let Some(scope) = scope_of(hub, resource, stored) else { return Ok(()) };
    // Deletes only the state that was examined: the object may have a new owner since.
    let preconditions = delete::Preconditions {
        uid: Some(stored.facts.uid.to_string()),
        resource_version: Some(stored.revision.to_string()),
    };
    let options = DeleteOptions {
        preconditions: Some(preconditions),
        propagation_policy: Some(policy.into()),
        ..DeleteOptions::default()
    };
    match delete::begin(hub, &scope, stored.name(), &options).await {
        Err(failure) if failure.code != http::StatusCode::NOT_FOUND => Err(failure),
        _ => Ok(()),
    }
}

/// Removes a finalizer.
async fn release(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    stored: &StoredObject,
    finalizer: &str,
) -> Result<(), ApiError> {
    let left: Vec<&str> =
        stored.facts.finalizers.iter().map(|name| &**name).filter(|name| *name != finalizer).collect();
    patch(hub, scope, stored, json!({"finalizers": left})).await
}

/// Removes owner references.
async fn disown(
    hub: &Arc<HubState>,
    resource: &str,
    stored: &StoredObject,
    keep: impl Fn(&str) -> bool,
) -> Result<(), ApiError> {
    let Some(scope) = scope_of(hub, resource, stored) else { return Ok(()) };
    let object = stored.value();
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let left: Vec<&Value> =
        owners.filter(|owner| owner.get("uid").and_then(Value::as_str).is_some_and(&keep)).collect();
    patch(hub, &scope, stored, json!({"ownerReferences": left})).await
}

/// Changes metadata if the object is unchanged. If it was changed, that change queues the task
/// again.
async fn patch(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    stored: &StoredObject,
    mut metadata: Value,
) -> Result<(), ApiError> {
    metadata["resourceVersion"] = json!(stored.revision.to_string());
    let wanted = NewState::Patch(Patch::Merge(json!({"metadata": metadata})));
    done(update::update(hub, scope, stored.name(), WrittenPart::Main, &wanted, Mode::default()).await)
}

fn done(outcome: Result<crate::api::write::WriteResponse, ApiError>) -> Result<(), ApiError> {
    match outcome {
        Err(failure) if failure.code == http::StatusCode::NOT_FOUND => Ok(()),
        other => other.map(drop),
    }
}

async fn namespace(hub: &Arc<HubState>, state: &StoreState, name: &str) -> Result<(), ApiError> {
    let Some(stored) = state.get(NAMESPACES, name).filter(|stored| stored.facts.terminating) else {
        return Ok(());
    };
    let prefix = format!("{name}/");
    let mut left = 0;
    for (resource, objects) in state.kinds() {
        let inside: Vec<Arc<StoredObject>> = objects
            .range::<_, str>((Bound::Included(prefix.as_str()), Bound::Unbounded))
            .map(|(_, stored)| stored)
            .take_while(|stored| stored.key.starts_with(&prefix))
            .cloned()
            .collect();
        left += inside.len();
        let waiting: Vec<Arc<StoredObject>> =
            inside.into_iter().filter(|stored| !stored.facts.terminating).collect();
        if let Some(scope) = waiting.first().and_then(|first| scope_of(hub, resource, first)) {
            delete::delete_all(hub, &scope, waiting, &DeleteOptions::default()).await?;
        }
    }
    if left > 0 {
        return Ok(());
    }
    let Some(scope) = scope_of(hub, NAMESPACES, stored) else { return Ok(()) };
    let mut object = stored.value();
    object["spec"] = json!({"finalizers": []});
    let wanted = NewState::Body(Body { object, duplicates: Vec::new() });
    done(update::update(hub, &scope, name, WrittenPart::Finalize, &wanted, Mode::default()).await)
}

async fn crd(hub: &Arc<HubState>, state: &StoreState, name: &str) -> Result<(), ApiError> {
    let Some(stored) = state.get(CRDS, name).filter(|stored| stored.facts.terminating) else { return Ok(()) };
    let objects: Vec<Arc<StoredObject>> = state.objects(name).values().cloned().collect();
    let left = objects.len();
    let waiting: Vec<Arc<StoredObject>> =
        objects.into_iter().filter(|stored| !stored.facts.terminating).collect();
    if let Some(scope) = waiting.first().and_then(|first| scope_of(hub, name, first)) {
        delete::delete_all(hub, &scope, waiting, &DeleteOptions::default()).await?;
    }
    if left > 0 {
        return Ok(());
    }
    let Some(scope) = scope_of(hub, CRDS, stored) else { return Ok(()) };
    release(hub, &scope, stored, CLEANUP).await
}

/// Deletes expired events.
pub(crate) async fn expire_events(hub: &Arc<HubState>) {
    let lifetime =
        jiff::SignedDuration::try_from(hub.options.event_lifetime).unwrap_or(jiff::SignedDuration::MAX);
    let Some(limit) = hub.now().checked_sub(lifetime).ok() else { return };
    let state = hub.store.published().state();
    let old: Vec<Arc<StoredObject>> =
        state.objects(EVENTS).values().filter(|stored| last_seen(&stored.value()) < limit).cloned().collect();
    let Some(scope) = old.first().and_then(|first| scope_of(hub, EVENTS, first)) else { return };
    if let Err(failure) = delete::delete_all(hub, &scope, old, &DeleteOptions::default()).await {
        tracing::warn!(why = failure.message(), "old events could not be deleted");
    }
}

fn last_seen(event: &Value) -> Timestamp {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    let time = |pointer: &&str| event.pointer(pointer)?.as_str()?.parse().ok();
    times.iter().filter_map(time).max().unwrap_or(Timestamp::MAX)
}
