//! The store: one state, one order of changes, one writer.
//!
//! Owns the revision counter and the guarantee that acknowledged means on disk. Changes are ordered
//! under a short lock (the *head*, which runs ahead of the disk). One thread writes batches of
//! them, and only what it has written is *published*: visible to readers, sent to watchers,
//! acknowledged to writers. Must not know what an object means.

mod committer;
mod disk;
mod log;
pub(crate) mod object;
mod overlay;
mod state;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::oneshot;

use committer::Committer;
pub(crate) use disk::Disk;
pub use disk::DiskError;
pub(crate) use log::{CommittedEvent, EventKind, KindLog, Log, LogLimits, TooOld, line};
pub(crate) use state::{Objects, StoreState};

use crate::api::status::ApiError;
use crate::store::object::{Draft, ObjectFacts, ResourceId, StoreKey, StoredObject};

/// The first revision. Not 0: clients read "0" as "any revision". Not 1: that is used as a revision
/// that is too old.
const FIRST_REVISION: u64 = 2;

/// A change of one object, conditional on the object being unchanged.
#[derive(Debug)]
pub(crate) struct StoreChange {
    pub(crate) resource: ResourceId,
    pub(crate) key: StoreKey,
    /// The revision that the object must have; `None` if it must not exist.
    pub(crate) expect: Option<u64>,
    pub(crate) action: ChangeAction,
}

#[derive(Debug)]
pub(crate) enum ChangeAction {
    Put(Draft, ObjectFacts),
    Remove,
}

/// Why a change was not accepted. Nothing has happened.
#[derive(Debug)]
pub(crate) enum RefusedChange {
    /// The object is not as expected: read it again.
    Raced,
    /// Refused for another reason.
    By(Box<ApiError>),
    /// The store is closed.
    Closed,
}

/// The outcome of an accepted change: the written object, or the last state of a removed one.
pub(crate) type ChangeOutcome = Result<Arc<StoredObject>, LostChange>;

/// The disk refused the change. It is not stored, and no client has seen it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("failed to write to disk: {0}")]
pub(crate) struct LostChange(pub(crate) Arc<str>);

/// An accepted change that is not on disk yet.
#[derive(Debug)]
struct Pending {
    event: CommittedEvent,
    done: oneshot::Sender<ChangeOutcome>,
}

#[derive(Debug)]
struct StoreHead {
    state: StoreState,
    queue: Vec<Pending>,
    /// Waiters for the whole queue to be on disk.
    waiting: Vec<oneshot::Sender<Result<(), LostChange>>>,
    closed: bool,
}

/// The published state and its notifications.
#[derive(Debug)]
pub(crate) struct Published {
    state: RwLock<StoreState>,
    pub(crate) log: Log,
}

impl Published {
    /// The last state that is on disk.
    pub(crate) fn state(&self) -> StoreState {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
struct SharedStore {
    head: Mutex<StoreHead>,
    work: Condvar,
    published: Arc<Published>,
}

impl SharedStore {
    fn head(&self) -> MutexGuard<'_, StoreHead> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Called for every batch when readers can see it, and before its writers know.
pub(crate) type Observer = Box<dyn Fn(&StoreState, &[Arc<CommittedEvent>]) + Send>;

#[derive(Debug)]
pub(crate) struct Store {
    shared: Arc<SharedStore>,
    committer: Committer,
}

/// A store whose writer has not started, so that the loaded state can be examined first.
#[derive(Debug)]
pub(crate) struct Opened {
    disk: Disk,
    pub(crate) state: StoreState,
}

impl Opened {
    pub(crate) fn ephemeral() -> Self {
        Self::ephemeral_from(StoreState::restored(FIRST_REVISION, []))
    }

    /// A store in memory that starts with a state.
    pub(crate) fn ephemeral_from(state: StoreState) -> Self {
        Self { disk: Disk::None, state }
    }

    pub(crate) fn at(directory: &Path) -> Result<Self, DiskError> {
        let (disk, state) = Disk::open(directory)?;
        Ok(Self { disk, state })
    }

    pub(crate) fn start(self, limits: LogLimits, observer: Observer) -> Result<Store, std::io::Error> {
        let Self { disk, state } = self;
        let published = Arc::new(Published {
            log: Log::new(state.revision(), limits),
            state: RwLock::new(state.clone()),
        });
        let head = StoreHead { state, queue: Vec::new(), waiting: Vec::new(), closed: false };
        let shared = Arc::new(SharedStore { head: Mutex::new(head), work: Condvar::new(), published });
        let committer = Committer::start(&shared, disk, observer)?;
        Ok(Store { shared, committer })
    }
}

impl Store {
    pub(crate) fn published(&self) -> &Arc<Published> {
        &self.shared.published
    }

    /// The state with all accepted changes, on disk or not: the base of new changes.
    pub(crate) fn head(&self) -> StoreState {
        self.shared.head().state.clone()
    }

    /// Orders a change after all earlier ones. The receiver is notified when it is on disk.
    ///
    /// `allow` sees the state that the change will meet, so what it checks cannot change in
    /// between.
    pub(crate) fn submit(
        &self,
        change: StoreChange,
        allow: impl FnOnce(&StoreState) -> Result<(), ApiError>,
    ) -> Result<oneshot::Receiver<ChangeOutcome>, RefusedChange> {
        let mut head = self.shared.head();
        if head.closed {
            return Err(RefusedChange::Closed);
        }
        let before = head.state.get(&change.resource, &change.key).cloned();
        if before.as_ref().map(|stored| stored.revision) != change.expect {
            return Err(RefusedChange::Raced);
        }
        allow(&head.state).map_err(|failure| RefusedChange::By(Box::new(failure)))?;
        let event = head.state.apply(change, before);
        let (done, written) = oneshot::channel();
        head.queue.push(Pending { event, done });
        drop(head);
        self.committer.wake(&self.shared);
        Ok(written)
    }

    /// Waits until everything in a head up to a revision is on disk. Only then may a response
    /// depend on it.
    pub(crate) async fn settled(&self, state: &StoreState, revision: u64) -> Result<(), LostChange> {
        let written = {
            let mut head = self.shared.head();
            if !head.state.continues(state) {
                return Err(LostChange("an earlier write was lost".into()));
            }
            let published = self.published().state();
            if published.continues(state) && published.revision() >= revision {
                return Ok(());
            }
            if head.closed {
                return Err(LostChange("the hub has stopped".into()));
            }
            let (done, written) = oneshot::channel();
            head.waiting.push(done);
            written
        };
        self.committer.wake(&self.shared);
        written.await.unwrap_or_else(|_| Err(LostChange("the hub has stopped".into())))
    }

    /// Writes what was accepted, and ends. Later changes are refused.
    pub(crate) fn close(&self) {
        self.shared.head().closed = true;
        self.committer.end(&self.shared);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}
