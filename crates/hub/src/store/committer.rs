//! The one writer: takes all that has queued up, writes it in one transaction, and then tells the world.
//!
//! Owns the order *disk, readers, observer, watchers, writers*. While a batch is on its way to the disk the next one
//! gathers, so the more writers there are, the more each flush carries.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::disk::Disk;
use super::log::Event;
use super::{Lost, Observer, Pending, Shared, State};

pub(super) fn start(
    shared: Arc<Shared>,
    disk: Disk,
    observer: Observer,
) -> Result<JoinHandle<()>, std::io::Error> {
    Builder::new().name("hub-committer".into()).spawn(move || run(&shared, &disk, &observer))
}

fn run(shared: &Shared, disk: &Disk, observer: &Observer) {
    while let Some((batch, state)) = next_batch(shared) {
        let (events, done): (Vec<Arc<Event>>, Vec<_>) =
            batch.into_iter().map(|pending| (Arc::new(pending.event), pending.done)).unzip();
        match disk.write(&events, state.revision()) {
            Ok(()) => {
                publish(shared, state, &events, observer);
                for (event, done) in events.into_iter().zip(done) {
                    // A writer that has gone away misses nothing but the answer.
                    let _ = done.send(Ok(Arc::clone(&event.object)));
                }
            }
            Err(error) => {
                let lost = Lost(error.to_string().into());
                tracing::error!(error = %lost, changes = events.len(), "the store could not write; the changes are refused");
                for done in done.into_iter().chain(give_up(shared)) {
                    let _ = done.send(Err(lost.clone()));
                }
            }
        }
    }
}

/// Waits for work. None when the store is closed and everything is written.
fn next_batch(shared: &Shared) -> Option<(Vec<Pending>, State)> {
    let mut head = shared.head();
    while head.queue.is_empty() {
        if head.closed {
            return None;
        }
        head = shared.work.wait(head).unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    Some((std::mem::take(&mut head.queue), head.state.clone()))
}

fn publish(shared: &Shared, state: State, events: &[Arc<Event>], observer: &Observer) {
    let published = &shared.published;
    let revision = state.revision();
    published.log.append(events);
    *published.state.write().unwrap_or_else(std::sync::PoisonError::into_inner) = state.clone();
    observer(&state, events);
    published.log.tell(events);
    published.revision.send_replace(revision);
}

/// Forgets what could not be written, and what was already built upon it.
fn give_up(shared: &Shared) -> Vec<tokio::sync::oneshot::Sender<super::Written>> {
    let mut head = shared.head();
    let used = head.state.revision();
    head.state = shared.published.state();
    head.state.skip_to(used);
    std::mem::take(&mut head.queue).into_iter().map(|pending| pending.done).collect()
}
