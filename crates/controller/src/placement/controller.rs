//! The loop over placements: what is seen is noted, a placement with news is decided once things are quiet for a moment, and the decision is written.
//!
//! Owns when what happens; there is no policy in it. It writes only while this manager leads, one rewrite per placement at a time, and what fails
//! for one placement is tried again for that one alone.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::time::Duration;

use aviary_api::{
    Guarded, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision,
};
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::Config;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::choose::Cluster;
use super::scope::ClusterSet;
use super::store::{News, Store};
use super::write::{self, Written, write};
use crate::Clock;
use crate::execute::patience;
use crate::leader::Leadership;
use crate::pace::Pace;
use crate::seen::Key;
use crate::watches::{NEWS_WAITING, Told, follow};

impl Told for News {}

/// News of one placement are gathered for so long.
const QUIET: Duration = Duration::from_millis(50);
/// Nothing to wait for: look again then.
const LONG: Duration = Duration::from_secs(3600);

/// Decides placements until `stop` completes; then lets what is under way finish.
pub(crate) async fn run(
    client: Client,
    mut leadership: watch::Receiver<Leadership>,
    clock: Clock,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let (sender, mut news) = mpsc::channel(NEWS_WAITING);
    let mut watches = JoinSet::new();
    start(&client, &sender, &mut watches);
    let mut state = Loop::new(client, clock);
    state.lead(*leadership.borrow_and_update());
    loop {
        let next = state.due.values().min().copied().unwrap_or_else(|| Instant::now() + LONG);
        tokio::select! {
            () = &mut stop => break,
            Some(first) = news.recv() => {
                state.store.take(first);
                // A burst of news makes one decision.
                while let Ok(more) = news.try_recv() {
                    state.store.take(more);
                }
            }
            Some(done) = state.writing.join_next() => state.written(done.ok()),
            changed = leadership.changed() => match changed {
                Ok(()) => state.lead(*leadership.borrow_and_update()),
                // Nobody is left to make it lead.
                Err(_) => break,
            },
            () = sleep_until(next), if state.may_decide() => {}
        }
        state.note_dirty();
        state.decide_due();
    }
    watches.shutdown().await;
    while state.writing.join_next().await.is_some() {}
}

fn start(client: &Client, news: &mpsc::Sender<News>, tasks: &mut JoinSet<()>) {
    let clusters: Api<Guarded<ManagedCluster>> = Api::all(client.clone());
    let cluster = |object: ManagedCluster| Cluster::read(&object).ok();
    tasks.spawn(follow(clusters, Config::default(), news.clone(), cluster, News::Cluster));
    let sets: Api<Guarded<ManagedClusterSet>> = Api::all(client.clone());
    let set = |object: ManagedClusterSet| Some(ClusterSet::read(&object));
    tasks.spawn(follow(sets, Config::default(), news.clone(), set, News::Set));
    let bindings: Api<Guarded<ManagedClusterSetBinding>> = Api::all(client.clone());
    let binding = |object: ManagedClusterSetBinding| Some(object.spec.cluster_set.into());
    tasks.spawn(follow(bindings, Config::default(), news.clone(), binding, News::Binding));
    let placements: Api<Guarded<Placement>> = Api::all(client.clone());
    let placement = |object: Placement| Some(Box::new(write::placement(object)));
    tasks.spawn(follow(placements, Config::default(), news.clone(), placement, News::Placement));
    let decisions: Api<Guarded<PlacementDecision>> = Api::all(client.clone());
    let decision = |object: PlacementDecision| Some(Box::new(write::decision(object)));
    tasks.spawn(follow(decisions, Config::default(), news.clone(), decision, News::Decision));
}

struct Loop {
    client: Client,
    clock: Clock,
    store: Store,
    pace: Pace,
    leading: bool,
    /// When each placement with news is decided.
    due: BTreeMap<Key, Instant>,
    busy: BTreeSet<Key>,
    failures: BTreeMap<Key, u32>,
    writing: JoinSet<(Key, Written)>,
}

impl Loop {
    fn new(client: Client, clock: Clock) -> Self {
        Self {
            client,
            clock,
            store: Store::default(),
            pace: Pace::default(),
            leading: false,
            due: BTreeMap::new(),
            busy: BTreeSet::new(),
            failures: BTreeMap::new(),
            writing: JoinSet::new(),
        }
    }

    fn lead(&mut self, leadership: Leadership) {
        self.leading = matches!(leadership, Leadership::Leading { .. });
        if self.leading {
            self.store.mark_all();
        }
    }

    fn may_decide(&self) -> bool {
        self.leading && self.store.is_complete()
    }

    fn note_dirty(&mut self) {
        for placement in self.store.take_dirty() {
            self.soon(placement, QUIET);
        }
    }

    fn soon(&mut self, placement: Key, wait: Duration) {
        let at = Instant::now() + wait;
        let due = self.due.entry(placement).or_insert(at);
        *due = (*due).min(at);
    }

    fn decide_due(&mut self) {
        if !self.leading {
            // Whoever leads decides them; should we come to lead, we decide all.
            self.due.clear();
        }
        if !self.may_decide() {
            return;
        }
        let now = Instant::now();
        let ready: Vec<Key> = self.due.extract_if(.., |_, at| *at <= now).map(|(key, _)| key).collect();
        for placement in ready {
            // What is being written is looked at again when it has been.
            if !self.busy.contains(&placement) {
                self.decide(placement);
            }
        }
    }

    fn decide(&mut self, placement: Key) {
        let now = (self.clock)();
        let Some(pass) = self.store.pass(&placement, now) else {
            self.failures.remove(&placement);
            return;
        };
        if let Some(at) = pass.recheck_at {
            let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default().clamp(QUIET, LONG);
            self.soon(placement.clone(), wait);
        }
        if pass.rewrite.is_empty() {
            self.failures.remove(&placement);
            return;
        }
        self.busy.insert(placement.clone());
        let (client, pace) = (self.client.clone(), self.pace.clone());
        self.writing.spawn(async move {
            let written = write(client, pace, placement.clone(), pass).await;
            (placement, written)
        });
    }

    fn written(&mut self, done: Option<(Key, Written)>) {
        let Some((placement, Written { news, failure })) = done else {
            tracing::error!("a rewrite ended without a word; every placement is decided again");
            self.busy.clear();
            return self.store.mark_all();
        };
        self.busy.remove(&placement);
        let count = news.len();
        news.into_iter().for_each(|one| self.store.take(one));
        tracing::debug!(namespace = %placement.namespace, placement = %placement.name, count, "decisions were written");
        let Some(failure) = failure else {
            // Also what was due while it was busy.
            return self.soon(placement, QUIET);
        };
        if !failure.is_conflict() {
            tracing::warn!(error = &failure as &dyn Error, "a decision was not written; it is tried again");
        }
        let failures = self.failures.entry(placement.clone()).or_insert(0);
        *failures += 1;
        let wait = patience(*failures);
        // What it wrote makes it due at once, which must not outrun the wait.
        self.store.unmark(&placement);
        self.due.insert(placement, Instant::now() + wait);
    }
}
