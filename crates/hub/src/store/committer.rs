//! The only writer: takes everything in the queue, writes it in one transaction, and then publishes
//! it.
//!
//! Owns the order *disk, readers, observer, watchers, writers*. While a batch is being written the
//! next one queues up, so each flush carries more when there are more writers. Without a disk there
//! is nothing to wait for: the thread that submits a change publishes it, and no writer thread is
//! needed.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use tokio::sync::oneshot;

use super::disk::Disk;
use super::log::CommittedEvent;
use super::{LostChange, Observer, Pending, SharedStore, StoreHead, StoreState};

/// The component that writes accepted changes.
pub(super) enum Committer {
    /// A separate thread, until it is stopped.
    Thread(Mutex<Option<JoinHandle<()>>>),
    /// The submitting thread. One at a time, to keep the order.
    InPlace(Mutex<Observer>),
}

impl fmt::Debug for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Thread(_) => "Thread",
            Self::InPlace(_) => "InPlace",
        })
    }
}

impl Committer {
    pub(super) fn start(
        shared: &Arc<SharedStore>,
        mut disk: Disk,
        observer: Observer,
    ) -> Result<Self, std::io::Error> {
        if matches!(disk, Disk::None) {
            return Ok(Self::InPlace(Mutex::new(observer)));
        }
        let shared = Arc::clone(shared);
        let thread = Builder::new().name("hub-committer".into()).spawn(move || {
            let _last = Last(&shared);
            while let Some(batch) = next_batch(&shared) {
                commit(&shared, &mut disk, &observer, batch);
            }
        })?;
        Ok(Self::Thread(Mutex::new(Some(thread))))
    }

    /// Notifies the writer of new changes.
    pub(super) fn wake(&self, shared: &SharedStore) {
        match self {
            Self::Thread(_) => shared.work.notify_one(),
            Self::InPlace(observer) => {
                let observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
                let batch = take(&mut shared.head());
                commit(shared, &mut Disk::None, &observer, batch);
            }
        }
    }

    /// Waits until everything is written. Nothing more may be submitted.
    pub(super) fn end(&self, shared: &SharedStore) {
        self.wake(shared);
        let Self::Thread(thread) = self else { return };
        let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the writer of the store has panicked");
        }
    }
}

/// The changes of one transaction, and their waiters.
struct Batch {
    changes: Vec<Pending>,
    waiting: Vec<oneshot::Sender<Result<(), LostChange>>>,
    state: StoreState,
}

fn commit(shared: &SharedStore, disk: &mut Disk, observer: &Observer, batch: Batch) {
    let Batch { changes, waiting, state } = batch;
    let (events, done): (Vec<Arc<CommittedEvent>>, Vec<_>) =
        changes.into_iter().map(|pending| (Arc::new(pending.event), pending.done)).unzip();
    let written =
        if events.is_empty() { Ok(()) } else { disk.write(&events, &shared.published.state(), &state) };
    match written {
        Ok(()) => {
            if !events.is_empty() {
                publish(shared, &state, &events, observer);
            }
            // A waiter that has gone away only misses the response.
            for (event, done) in events.into_iter().zip(done) {
                let _ = done.send(Ok(Arc::clone(&event.object)));
            }
            for done in waiting {
                let _ = done.send(Ok(()));
            }
        }
        Err(error) => {
            let lost = LostChange(error.to_string().into());
            tracing::error!(error = %lost, changes = events.len(), "the store could not write; the changes are refused");
            let (later, later_waiting) = give_up(shared);
            for done in done.into_iter().chain(later.into_iter().map(|pending| pending.done)) {
                let _ = done.send(Err(lost.clone()));
            }
            for done in waiting.into_iter().chain(later_waiting) {
                let _ = done.send(Err(lost.clone()));
            }
        }
    }
}

/// Waits for work. `None` when the store is closed and everything is written.
fn next_batch(shared: &SharedStore) -> Option<Batch> {
    let mut head = shared.head();
    while head.queue.is_empty() && head.waiting.is_empty() {
        if head.closed {
            return None;
        }
        head = shared.work.wait(head).unwrap_or_else(PoisonError::into_inner);
    }
    Some(take(&mut head))
}

fn take(head: &mut MutexGuard<'_, StoreHead>) -> Batch {
    Batch {
        changes: std::mem::take(&mut head.queue),
        waiting: std::mem::take(&mut head.waiting),
        state: head.state.clone(),
    }
}

fn publish(shared: &SharedStore, state: &StoreState, events: &[Arc<CommittedEvent>], observer: &Observer) {
    let published = &shared.published;
    published.log.append(events);
    *published.state.write().unwrap_or_else(PoisonError::into_inner) = state.clone();
    observer(state, events);
    published.log.tell(events);
}

/// Drops what could not be written, and everything that was based on it.
fn give_up(shared: &SharedStore) -> (Vec<Pending>, Vec<oneshot::Sender<Result<(), LostChange>>>) {
    let mut head = shared.head();
    let used = head.state.revision();
    head.state = shared.published.state();
    head.state.lose_up_to(used);
    (std::mem::take(&mut head.queue), std::mem::take(&mut head.waiting))
}

/// However the writer ends, no waiter is left waiting.
struct Last<'s>(&'s SharedStore);

impl Drop for Last<'_> {
    fn drop(&mut self) {
        let mut head = self.0.head();
        head.closed = true;
        head.queue.clear();
        head.waiting.clear();
    }
}
