//! Runs a fleet: one watch for the works of all clusters, one for the clusters, and the reports of
//! the agents.
//!
//! Owns the watches and the writes. The [`ReportSchedule`] decides what is reported and when.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aviary_api::names::finalizers::MANIFEST_WORK_CLEANUP;
use aviary_api::{Condition, Guarded, ManagedCluster, ManifestWork};
use aviary_engine::name::ClusterName;
use futures_util::{Stream, StreamExt, pin_mut};
use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::behaviour::Behaviour;
use crate::member::Member;
use crate::register::{self, RegisterError, Registered};
use crate::report::WorkReport;
use crate::requests::{AT_ONCE, has_code, passes};
use crate::schedule::ReportSchedule;
use crate::seen::{AgentWork, ReportResponse};

/// Returns the time for conditions.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How long to sleep if nothing is due.
const LONG: Duration = Duration::from_secs(3600);

/// Simulated clusters on a hub.
#[derive(Clone)]
pub struct SimulatedFleet {
    client: watch::Sender<Client>,
    members: Arc<[Member]>,
    behaviour: Behaviour,
    clock: Clock,
    counts: Arc<FleetCounters>,
}

impl std::fmt::Debug for SimulatedFleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet")
            .field("members", &self.members.len())
            .field("behaviour", &self.behaviour)
            .finish_non_exhaustive()
    }
}

/// Counters of the fleet's agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetTally {
    /// Works that were new or had changed.
    pub seen: u64,
    /// Reports that were written.
    pub reported: u64,
    /// Reports that a work could not be applied.
    pub refused: u64,
    /// Reports that had to be retried.
    pub retried: u64,
}

#[derive(Debug, Default)]
struct FleetCounters {
    seen: AtomicU64,
    reported: AtomicU64,
    refused: AtomicU64,
    retried: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The pauses between attempts to watch a hub that is away: a hub that restarts should not wait
/// long for its agents.
#[derive(Debug)]
struct Pauses(Duration);

impl Pauses {
    const FIRST: Duration = Duration::from_millis(500);
    const LONGEST: Duration = Duration::from_secs(5);
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.0;
        self.0 = (pause * 2).min(Self::LONGEST);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0 = Self::FIRST;
    }
}

impl SimulatedFleet {
    pub fn new(client: Client, members: Vec<Member>, behaviour: Behaviour) -> Self {
        let clock: Clock = Arc::new(Timestamp::now);
        let client = watch::Sender::new(client);
        Self { client, members: members.into(), behaviour, clock, counts: Arc::default() }
    }

    /// Uses another clock.
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Watches everything anew through another client. After an outage, connections of the one
    /// before may be dead, and stay open.
    pub fn reconnect(&self, client: Client) {
        self.client.send_replace(client);
    }

    fn client(&self) -> Client {
        self.client.borrow().clone()
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn tally(&self) -> FleetTally {
        let FleetCounters { seen, reported, refused, retried } = &*self.counts;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FleetTally {
            seen: read(seen),
            reported: read(reported),
            refused: read(refused),
            retried: read(retried),
        }
    }

    /// Registers the clusters on the hub, a few at a time, and takes over those of an earlier
    /// fleet. Calls `done` after each.
    pub async fn register(&self, done: impl FnMut()) -> Result<Registered, RegisterError> {
        let agents = self.behaviour.agents();
        let offline = |cluster: &ClusterName| agents.is_offline(cluster);
        register::register(&self.client(), &self.members, offline, (self.clock)(), done).await
    }

    /// Reports on every work of every cluster until `stop` completes, then finishes the writes in
    /// progress. Watches are resumed whenever the hub is back.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let (works, clusters) = (self.watch_works(), self.watch_clusters());
        let mut reconnected = self.client.subscribe();
        pin_mut!(works, clusters, stop);
        let mut office = Office {
            fleet: self,
            schedule: ReportSchedule::new(self.behaviour.clone(), &self.members),
            errands: VecDeque::new(),
            running: JoinSet::new(),
        };
        loop {
            office.send_out();
            let next = office.wake_at();
            tokio::select! {
                () = &mut stop => break,
                Ok(()) = reconnected.changed() => {
                    works.set(self.watch_works());
                    clusters.set(self.watch_clusters());
                }
                Some(event) = works.next() => office.see_work(event),
                Some(event) = clusters.next() => office.see_cluster(event),
                Some(done) = office.running.join_next() => office.take_back(done.ok()),
                () = sleep_until(next) => {}
            }
        }
        // Counts writes that finish last.
        while let Some(done) = office.running.join_next().await {
            office.take_back(done.ok());
        }
    }

    fn watch_works(&self) -> impl Stream<Item = watcher::Result<Event<AgentWork>>> + use<> {
        let works = Api::all(self.client());
        watcher(works, watcher::Config::default()).backoff(Pauses(Pauses::FIRST))
    }

    fn watch_clusters(&self) -> impl Stream<Item = watcher::Result<Event<Guarded<ManagedCluster>>>> + use<> {
        let ours = watcher::Config::default().labels(&register::selector());
        watcher(Api::all(self.client()), ours).backoff(Pauses(Pauses::FIRST))
    }
}

#[derive(Debug)]
enum Errand {
    Report(WorkReport),
    /// The agent has finished with a work that is being deleted.
    Release {
        cluster: String,
        work: String,
        finalizers: Vec<String>,
    },
    /// The conditions of a cluster on the hub are wrong.
    Conditions {
        cluster: ClusterName,
        before: Vec<Condition>,
    },
}

/// The outcome of a write.
type Returned = (Errand, Timestamp, Result<(), kube::Error>);

struct Office<'a> {
    fleet: &'a SimulatedFleet,
    schedule: ReportSchedule,
    errands: VecDeque<Errand>,
    running: JoinSet<Returned>,
}

impl Office<'_> {
    /// When the next write is due. With the maximum number of writes in progress, waits for one to
    /// finish.
    fn wake_at(&mut self) -> Instant {
        let free = self.running.len() < AT_ONCE;
        self.schedule.next_due().filter(|_| free).unwrap_or_else(|| Instant::now() + LONG)
    }

    fn send_out(&mut self) {
        let now = Instant::now();
        while self.running.len() < AT_ONCE {
            let next = self.errands.pop_front().or_else(|| self.schedule.take_due(now).map(Errand::Report));
            let Some(errand) = next else { break };
            let (client, time) = (self.fleet.client(), (self.fleet.clock)());
            let offline = match &errand {
                Errand::Conditions { cluster, .. } => self.schedule.behaviour().agents().is_offline(cluster),
                Errand::Report(_) | Errand::Release { .. } => false,
            };
            self.running.spawn(async move {
                let result = run(&client, &errand, offline, time).await;
                (errand, time, result)
            });
        }
    }

    fn take_back(&mut self, returned: Option<Returned>) {
        let Some((errand, time, result)) = returned else {
            tracing::error!("a report ended without a result");
            return;
        };
        let now = Instant::now();
        let counts = &self.fleet.counts;
        match (errand, result) {
            (Errand::Report(report), Ok(())) => {
                count(&counts.reported);
                if report.is_refusal() {
                    count(&counts.refused);
                }
                self.schedule.written(report, time, now);
            }
            (Errand::Report(report), Err(error)) if passes(&error) => {
                count(&counts.retried);
                tracing::debug!(cluster = %report.cluster, work = %report.work, %error, "retrying a report");
                self.schedule.failed(report, now);
            }
            (Errand::Report(report), Err(error)) => {
                // Deleted or replaced: the watch reports that. Retrying does not help with any
                // other error.
                if !has_code(&error, 404) && !has_code(&error, 409) {
                    tracing::warn!(cluster = %report.cluster, work = %report.work, %error, "a report was rejected");
                }
                self.schedule.dropped(&report, now);
            }
            (_, Ok(())) => {}
            (errand, Err(error)) => {
                tracing::warn!(?errand, %error, "a write failed; the next event of the object retries it");
            }
        }
    }

    fn see_work(&mut self, event: Result<Event<AgentWork>, watcher::Error>) {
        match event {
            Ok(Event::Init) => self.schedule.begin_listing(),
            Ok(Event::InitDone) => self.schedule.end_listing(),
            Ok(Event::Apply(AgentWork(work)) | Event::InitApply(AgentWork(work))) => self.take_work(&work),
            Ok(Event::Delete(AgentWork(work))) => self.schedule.lose(&work),
            Err(error) => tracing::debug!(%error, "the watch for works was interrupted and resumes"),
        }
    }

    fn take_work(&mut self, work: &ManifestWork) {
        if work.metadata.deletion_timestamp.is_none() {
            if self.schedule.see(work, Instant::now()) {
                count(&self.fleet.counts.seen);
            }
            return;
        }
        self.schedule.lose(work);
        let namespace = work.namespace().unwrap_or_default();
        let (held, others): (Vec<String>, Vec<String>) =
            work.finalizers().iter().cloned().partition(|name| name == MANIFEST_WORK_CLEANUP);
        // The fleet sets no finalizers. If a real agent set one before, there is nothing left to
        // clean up.
        if !held.is_empty() && self.schedule.has(&namespace).is_some() {
            let (cluster, work) = (namespace, work.name_any());
            self.errands.push_back(Errand::Release { cluster, work, finalizers: others });
        }
    }

    fn see_cluster(&mut self, event: Result<Event<Guarded<ManagedCluster>>, watcher::Error>) {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => match object.0 {
                Ok(cluster) => self.take_cluster(cluster),
                Err(error) => tracing::warn!(%error, "a cluster cannot be read and is ignored"),
            },
            Ok(Event::Delete(object)) => {
                let name = object.meta().name.as_deref().and_then(|name| self.schedule.has(name)).cloned();
                if let Some(name) = name {
                    self.schedule.leave(&name);
                }
            }
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) => tracing::debug!(%error, "the watch for clusters was interrupted and resumes"),
        }
    }

    fn take_cluster(&mut self, cluster: ManagedCluster) {
        let Some(name) = self.schedule.has(&cluster.name_any()).cloned() else { return };
        if let Some(labels) = &cluster.metadata.labels {
            self.schedule.relabel(&name, labels);
        }
        let offline = self.schedule.behaviour().agents().is_offline(&name);
        let before = cluster.status.map(|status| status.conditions).unwrap_or_default();
        if cluster.metadata.deletion_timestamp.is_none() && !register::are_kept(&before, offline) {
            self.errands.push_back(Errand::Conditions { cluster: name, before });
        }
    }
}

async fn run(client: &Client, errand: &Errand, offline: bool, time: Timestamp) -> Result<(), kube::Error> {
    let works = |cluster: &str| Api::<ReportResponse>::namespaced(client.clone(), cluster);
    match errand {
        Errand::Report(report) => {
            let patch = Patch::Merge(report.patch(time));
            let api = works(report.cluster.as_str());
            api.patch_status(&report.work, &PatchParams::default(), &patch).await.map(drop)
        }
        Errand::Release { cluster, work, finalizers } => {
            let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
            match works(cluster).patch(work, &PatchParams::default(), &patch).await {
                Err(error) if !has_code(&error, 404) => Err(error),
                _ => Ok(()),
            }
        }
        Errand::Conditions { cluster, before } => {
            register::tell(client, cluster.as_str(), before, offline, time).await
        }
    }
}
