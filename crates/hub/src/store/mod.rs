//! The store: one state, one order of changes, one writer.
//!
//! Owns the revision counter and the promise that acknowledged means on disk. Changes are ordered under a short lock (the
//! *head*, which runs ahead of the disk); one thread writes whole batches of them, and only what it has written is
//! *published*: seen by readers, told to watchers, acknowledged to writers. Must not know what an object means.

mod committer;
mod disk;
mod log;
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
pub(crate) use log::{Event, EventKind, Log, LogLimits, TooOld, Topic, line};
pub(crate) use state::{Objects, State};

use crate::object::{Draft, Facts, Key, ResourceId, Stored};
use crate::status::Failure;

/// Where a new store begins. Not 0: clients read "0" as "any revision". Not 1: that is what is too old everywhere.
const FIRST_REVISION: u64 = 2;

/// One change of one object, on the condition that it still is as its author saw it.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) resource: ResourceId,
    pub(crate) key: Key,
    /// The revision the object must have; none if it must not be there.
    pub(crate) expect: Option<u64>,
    pub(crate) action: Action,
}

#[derive(Debug)]
pub(crate) enum Action {
    Put(Draft, Facts),
    Remove,
}

/// Why a change was not accepted. Nothing has happened.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The object is not as expected. Read it again.
    Raced,
    /// Something else stands in the way.
    By(Box<Failure>),
    /// The store is closed.
    Closed,
}

/// The outcome of an accepted change: the object as written, or as it was last when it was removed.
pub(crate) type Written = Result<Arc<Stored>, Lost>;

/// The disk refused the change. It is not stored, and nobody has seen it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("failed to write to disk: {0}")]
pub(crate) struct Lost(pub(crate) Arc<str>);

/// An accepted change that is on its way to the disk.
#[derive(Debug)]
struct Pending {
    event: Event,
    done: oneshot::Sender<Written>,
}

#[derive(Debug)]
struct Head {
    state: State,
    queue: Vec<Pending>,
    /// Who waits until all of the queue is on disk.
    waiting: Vec<oneshot::Sender<Result<(), Lost>>>,
    closed: bool,
}

/// What readers see and wait on.
#[derive(Debug)]
pub(crate) struct Published {
    state: RwLock<State>,
    pub(crate) log: Log,
}

impl Published {
    /// The last state that is on disk.
    pub(crate) fn state(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
struct Shared {
    head: Mutex<Head>,
    work: Condvar,
    published: Arc<Published>,
}

impl Shared {
    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is told of every batch when readers can see it and before its writers know.
pub(crate) type Observer = Box<dyn Fn(&State, &[Arc<Event>]) + Send>;

#[derive(Debug)]
pub(crate) struct Store {
    shared: Arc<Shared>,
    committer: Committer,
}

/// A store whose writer has not started: what was on disk can be looked at first.
#[derive(Debug)]
pub(crate) struct Opened {
    disk: Disk,
    pub(crate) state: State,
}

impl Opened {
    pub(crate) fn ephemeral() -> Self {
        Self::ephemeral_from(State::restored(FIRST_REVISION, []))
    }

    /// A store that begins with a state and keeps nothing.
    pub(crate) fn ephemeral_from(state: State) -> Self {
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
        let head = Head { state, queue: Vec::new(), waiting: Vec::new(), closed: false };
        let shared = Arc::new(Shared { head: Mutex::new(head), work: Condvar::new(), published });
        let committer = Committer::start(&shared, disk, observer)?;
        Ok(Store { shared, committer })
    }
}

impl Store {
    pub(crate) fn published(&self) -> &Arc<Published> {
        &self.shared.published
    }

    /// The state with all accepted changes, on disk or not: what a new change must be based on.
    pub(crate) fn head(&self) -> State {
        self.shared.head().state.clone()
    }

    /// Orders a change behind all earlier ones. The receiver hears when it is on disk.
    ///
    /// `allow` sees the state that the change will meet: what it allows cannot become untrue in between.
    pub(crate) fn submit(
        &self,
        change: Change,
        allow: impl FnOnce(&State) -> Result<(), Failure>,
    ) -> Result<oneshot::Receiver<Written>, Refused> {
        let mut head = self.shared.head();
        if head.closed {
            return Err(Refused::Closed);
        }
        let before = head.state.get(&change.resource, &change.key).cloned();
        if before.as_ref().map(|stored| stored.revision) != change.expect {
            return Err(Refused::Raced);
        }
        allow(&head.state).map_err(|failure| Refused::By(Box::new(failure)))?;
        let event = head.state.apply(change, before);
        let (done, written) = oneshot::channel();
        head.queue.push(Pending { event, done });
        drop(head);
        self.committer.wake(&self.shared);
        Ok(written)
    }

    /// Waits until all that a head contains up to a revision is on disk. What was told of it may be told only then.
    pub(crate) async fn settled(&self, state: &State, revision: u64) -> Result<(), Lost> {
        let written = {
            let mut head = self.shared.head();
            if !head.state.continues(state) {
                return Err(Lost("an earlier write was lost".into()));
            }
            let published = self.published().state();
            if published.continues(state) && published.revision() >= revision {
                return Ok(());
            }
            if head.closed {
                return Err(Lost("the hub has stopped".into()));
            }
            let (done, written) = oneshot::channel();
            head.waiting.push(done);
            written
        };
        self.committer.wake(&self.shared);
        written.await.unwrap_or_else(|_| Err(Lost("the hub has stopped".into())))
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
