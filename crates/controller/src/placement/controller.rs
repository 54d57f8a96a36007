//! The placement controller's main loop: receives watch events, decides changed placements, and
//! writes decisions.
//!
//! Owns timing, and contains no policy. Writes only while this manager leads, at most one rewrite
//! per placement at a time. A failure is retried only for its placement.

use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use aviary_api::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision};
use aviary_engine::name::Text;
use aviary_engine::placement::{CandidateCluster, ClusterSet};
use futures_util::FutureExt;
use kube::Client;
use kube::runtime::watcher::Config;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::store::{PlacementEvent, PlacementStore};
use super::write::{self, Written, write};
use crate::Clock;
use crate::leader::Leadership;
use crate::panics::{Panic, contain};
use crate::queue::{LONG, QUIET, WorkQueue};
use crate::seen::{Change, Key, Watched};
use crate::watches::{EVENTS_WAITING, StoreEvent, follow};
use crate::write_limit::WriteLimit;

impl StoreEvent for PlacementEvent {}

/// Decides placements until `stop` completes; then lets writes finish.
pub(crate) async fn run(
    client: Client,
    mut leadership: watch::Receiver<Leadership>,
    clock: Clock,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let (sender, mut events) = mpsc::channel(EVENTS_WAITING);
    let mut watches = JoinSet::new();
    start(&client, &sender, &mut watches);
    let mut state = PlacementLoop::new(client, clock);
    state.lead(&leadership.borrow_and_update());
    loop {
        let next = state.queue.next(|_| true).unwrap_or_else(|| Instant::now() + LONG);
        tokio::select! {
            () = &mut stop => break,
            Some(first) = events.recv() => {
                state.store.take(first);
                // A burst of events leads to one decision.
                while let Ok(more) = events.try_recv() {
                    state.store.take(more);
                }
            }
            Some(Ok(done)) = state.writing.join_next() => state.written(done),
            changed = leadership.changed() => match changed {
                Ok(()) => state.lead(&leadership.borrow_and_update()),
                // The candidate has stopped: this manager will not lead again.
                Err(_) => break,
            },
            () = sleep_until(next), if state.may_decide() => {}
        }
        state.note_changes();
        state.decide_due();
    }
    watches.shutdown().await;
    while state.writing.join_next().await.is_some() {}
}

fn start(client: &Client, events: &mpsc::Sender<PlacementEvent>, tasks: &mut JoinSet<()>) {
    start_one::<ManagedCluster>(client, events, tasks);
    start_one::<ManagedClusterSet>(client, events, tasks);
    start_one::<ManagedClusterSetBinding>(client, events, tasks);
    start_one::<Placement>(client, events, tasks);
    start_one::<PlacementDecision>(client, events, tasks);
}

fn start_one<K: Watched<PlacementEvent>>(
    client: &Client,
    events: &mpsc::Sender<PlacementEvent>,
    tasks: &mut JoinSet<()>,
) {
    tasks.spawn(follow::<K, PlacementEvent>(K::api(client, ""), Config::default(), None, events.clone()));
}

impl Watched<PlacementEvent> for ManagedCluster {
    type Seen = CandidateCluster;
    const EVENT: fn(Change<Self::Seen>) -> PlacementEvent = PlacementEvent::Cluster;

    fn read(self) -> Option<Self::Seen> {
        CandidateCluster::read(&self).ok()
    }
}

impl Watched<PlacementEvent> for ManagedClusterSet {
    type Seen = ClusterSet;
    const EVENT: fn(Change<Self::Seen>) -> PlacementEvent = PlacementEvent::Set;

    fn read(self) -> Option<Self::Seen> {
        Some(ClusterSet::read(&self))
    }
}

impl Watched<PlacementEvent> for ManagedClusterSetBinding {
    type Seen = Text;
    const EVENT: fn(Change<Self::Seen>) -> PlacementEvent = PlacementEvent::Binding;

    fn read(self) -> Option<Self::Seen> {
        Some(self.spec.cluster_set.into())
    }
}

impl Watched<PlacementEvent> for Placement {
    type Seen = Box<Placement>;
    const EVENT: fn(Change<Self::Seen>) -> PlacementEvent = PlacementEvent::Placement;

    fn read(self) -> Option<Self::Seen> {
        Some(Box::new(write::placement(self)))
    }
}

impl Watched<PlacementEvent> for PlacementDecision {
    type Seen = Box<PlacementDecision>;
    const EVENT: fn(Change<Self::Seen>) -> PlacementEvent = PlacementEvent::Decision;

    fn read(self) -> Option<Self::Seen> {
        Some(Box::new(write::decision(self)))
    }
}

struct Done {
    placement: Key,
    /// When its writes began, as a number of the store.
    sent: u64,
    result: Result<Written, Panic>,
}

struct PlacementLoop {
    client: Client,
    clock: Clock,
    store: PlacementStore,
    limit: WriteLimit,
    leading: bool,
    queue: WorkQueue<Key>,
    writing: JoinSet<Done>,
}

impl PlacementLoop {
    fn new(client: Client, clock: Clock) -> Self {
        Self {
            client,
            clock,
            store: PlacementStore::default(),
            limit: WriteLimit::default(),
            leading: false,
            queue: WorkQueue::default(),
            writing: JoinSet::new(),
        }
    }

    fn lead(&mut self, leadership: &Leadership) {
        self.leading = matches!(leadership, Leadership::Leading { .. });
        if self.leading {
            self.store.mark_all();
        }
    }

    fn may_decide(&self) -> bool {
        self.leading && self.store.is_complete()
    }

    fn note_changes(&mut self) {
        for placement in self.store.take_dirty() {
            self.queue.soon(placement, QUIET);
        }
    }

    fn decide_due(&mut self) {
        if !self.leading {
            // Another manager decides them. When this one becomes the leader, it decides all.
            self.queue.clear();
        }
        if !self.may_decide() {
            return;
        }
        for placement in self.queue.take_ready(|_| true) {
            if let Err(panic) = contain(|| self.decide(&placement)) {
                self.panicked(&placement, &panic);
            }
        }
    }

    fn decide(&mut self, placement: &Key) {
        let now = (self.clock)();
        let Some(pass) = self.store.pass(placement, now) else {
            return self.queue.succeeded(placement);
        };
        if let Some(at) = pass.recheck_at {
            let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default().clamp(QUIET, LONG);
            self.queue.soon(placement.clone(), wait);
        }
        if pass.rewrite.is_empty() {
            return self.queue.succeeded(placement);
        }
        self.queue.begin(placement.clone());
        let (client, limit, placement) = (self.client.clone(), self.limit.clone(), placement.clone());
        let sent = self.store.begin_writes();
        self.writing.spawn(async move {
            let written =
                AssertUnwindSafe(write(client, limit, placement.clone(), pass)).catch_unwind().await;
            Done { placement, sent, result: written.map_err(|panic| Panic::of(&*panic)) }
        });
    }

    fn written(&mut self, done: Done) {
        let Done { placement, sent, result } = done;
        self.queue.end(&placement);
        let Written { events, failure } = match result {
            Ok(written) => written,
            Err(panic) => return self.panicked(&placement, &panic),
        };
        let count = events.len();
        self.store.take_written(events, sent);
        tracing::debug!(namespace = %placement.namespace, placement = %placement.name, count, "decisions were written");
        let Some(failure) = failure else {
            return self.queue.soon(placement, QUIET);
        };
        if !failure.is_conflict() {
            tracing::warn!(error = &failure as &dyn Error, "failed to write a placement decision; retrying");
        }
        self.put_off(&placement);
    }

    /// A panic affects only this placement.
    fn panicked(&mut self, placement: &Key, panic: &Panic) {
        tracing::error!(namespace = %placement.namespace, placement = %placement.name, %panic, "deciding a placement panicked; retrying");
        self.put_off(placement);
    }

    fn put_off(&mut self, placement: &Key) {
        // Its own writes have marked it as changed, which must not shorten the backoff.
        self.store.unmark(placement);
        self.queue.put_off(placement);
    }
}
