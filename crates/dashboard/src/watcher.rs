//! Watches a hub: computes every change once and sends it to all viewers.
//!
//! Owns the pace. Changes that arrive together are computed together, and computing never takes
//! more than a third of the time, however large the fleet. After the first list, the hub is only
//! watched.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aviary_controller::{Clock, Follower, LookError, Outage, Reach, Scope, View};
use aviary_engine::fleet::Fleet;
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::observed::Observed;
use aviary_engine::plan::{self, Plan};
use aviary_engine::selector::Selector;
use aviary_engine::verdict;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use crate::access::LINGER;
use crate::cluster::ClusterOverview;
use crate::detail::{Detail, Looked};
use crate::events::{self, AddOnEvent, Chronicle};
use crate::list::AddOnList;
use crate::revisions;
use crate::summary::{AddOnTitle, Summary, seconds};
use crate::timeline::{Noted, Timeline};
use crate::topic::{ChangeEffect, Topic};

/// The maximum number of streams of one watcher.
const MOST_STREAMS: usize = 64;
/// The longest pause after a computation.
const LONGEST_REST: Duration = Duration::from_secs(2);
const COMMANDS_WAITING: usize = 64;

/// A watcher, as viewers hold it. It ends with the last of them.
pub(crate) struct Watcher {
    commands: mpsc::Sender<WatcherRequest>,
    list: Arc<Topic<AddOnList>>,
    seats: Arc<Semaphore>,
    over: Arc<AtomicBool>,
    reach: Reach,
    _place: Option<OwnedSemaphorePermit>,
}

enum WatcherRequest {
    Detail(Text, oneshot::Sender<Arc<Topic<Detail>>>),
    Cluster(Text, ClusterName, oneshot::Sender<Option<ClusterOverview>>),
    Select(Text, Selector, oneshot::Sender<Option<Vec<ClusterName>>>),
}

impl Watcher {
    /// Reads the hub, and keeps watching it.
    pub(crate) async fn start(
        client: &Client,
        scope: Scope,
        clock: &Clock,
        outages: &Arc<OutageLog>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Arc<Self>, LookError> {
        let follower = View::read(client, scope).await?.follow();
        let reach = follower.reach().clone();
        let (commands, received) = mpsc::channel(COMMANDS_WAITING);
        let list = Arc::new(Topic::new(Some(AddOnList::new(&seconds(clock())))));
        let over = Arc::new(AtomicBool::new(false));
        let mut state = WatcherState {
            follower,
            clock: Arc::clone(clock),
            outage: OutageNote { log: Arc::clone(outages), reported: false },
            chronicle: Chronicle::default(),
            list: Arc::clone(&list),
            details: HashMap::new(),
            timelines: HashMap::new(),
            rechecks: HashMap::new(),
            dirty: BTreeSet::new(),
            rested: Instant::now(),
        };
        state.dirty.extend(state.follower.view().addons());
        // The list is ready before anybody requests it.
        state.work_out();
        let happened = events::follow(client, reach.clone());
        let ended = Arc::clone(&over);
        tokio::spawn(async move {
            if let Err(error) = state.go_on(received, happened).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the hub can no longer be watched; viewers have to reconnect"
                );
            }
            ended.store(true, Ordering::Release);
            state.end();
        });
        Ok(Arc::new(Self {
            commands,
            list,
            seats: Arc::new(Semaphore::new(MOST_STREAMS)),
            over,
            reach,
            _place: place,
        }))
    }

    /// Whether it has ended by itself.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn list(&self) -> Arc<Topic<AddOnList>> {
        Arc::clone(&self.list)
    }

    /// Whether the hub answers.
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Reserves a stream.
    pub(crate) fn seat(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.seats).try_acquire_owned().ok()
    }

    /// The topic of one add-on, even if it does not exist. `None` if the watcher has ended.
    pub(crate) async fn detail(&self, addon: Text) -> Option<Arc<Topic<Detail>>> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(WatcherRequest::Detail(addon, reply)).await.ok()?;
        answer.await.ok()
    }

    /// One cluster of an add-on. The outer `None` means that the watcher has ended; the inner, that
    /// there is no such cluster.
    pub(crate) async fn cluster(&self, addon: Text, cluster: ClusterName) -> Option<Option<ClusterOverview>> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(WatcherRequest::Cluster(addon, cluster, reply)).await.ok()?;
        answer.await.ok()
    }

    /// The clusters of an add-on whose labels match. The outer `None` means that the watcher has
    /// ended; the inner, that there is no such add-on.
    pub(crate) async fn select(&self, addon: Text, selector: Selector) -> Option<Option<Vec<ClusterName>>> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(WatcherRequest::Select(addon, selector, reply)).await.ok()?;
        answer.await.ok()
    }
}

/// The clusters of an add-on whose labels match: those with an instance, and those that it selects.
fn selected(observed: &Observed, selector: &Selector) -> Vec<ClusterName> {
    let matches = |name: &&ClusterName| {
        observed.clusters.get(name).is_some_and(|cluster| selector.matches(&cluster.labels))
    };
    let fleet = Fleet::line_up(observed);
    fleet.lines.iter().map(|line| line.name).filter(matches).cloned().collect()
}

/// How many watchers see an outage of the hub: it is logged once, however many users there are.
#[derive(Debug, Default)]
pub(crate) struct OutageLog(AtomicUsize);

/// Whether one watcher has reported the outage that it sees.
struct OutageNote {
    log: Arc<OutageLog>,
    reported: bool,
}

impl OutageNote {
    fn take(&mut self, outage: Option<&Outage>) {
        if outage.is_some() == self.reported {
            return;
        }
        self.reported = outage.is_some();
        match outage {
            Some(Outage { since, cause }) => {
                if self.log.0.fetch_add(1, Ordering::AcqRel) == 0 {
                    let since = seconds(*since);
                    tracing::warn!(since, cause, "the hub is unreachable; pages say since when");
                }
            }
            None => {
                if self.log.0.fetch_sub(1, Ordering::AcqRel) == 1 {
                    tracing::info!("the hub is reachable again");
                }
            }
        }
    }
}

impl Drop for OutageNote {
    fn drop(&mut self) {
        if self.reported {
            self.log.0.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The state of the watcher, and what was sent.
struct WatcherState {
    follower: Follower,
    clock: Clock,
    outage: OutageNote,
    chronicle: Chronicle,
    list: Arc<Topic<AddOnList>>,
    details: HashMap<Text, WatchedAddOn>,
    timelines: HashMap<Text, Timeline>,
    /// When the state of an add-on changes by time alone.
    rechecks: HashMap<Text, Timestamp>,
    /// Add-ons that may have changed.
    dirty: BTreeSet<Text>,
    /// The earliest time of the next computation.
    rested: Instant,
}

/// An add-on that has viewers, or had some a moment ago.
struct WatchedAddOn {
    topic: Arc<Topic<Detail>>,
    alone_since: Option<Instant>,
}

/// The result of one pass over an add-on.
struct AddOnPass {
    summary: Summary,
    looked: Option<Looked>,
    recheck_at: Option<Timestamp>,
}

impl WatcherState {
    /// Runs until the last reference to the watcher is dropped.
    async fn go_on(
        &mut self,
        mut commands: mpsc::Receiver<WatcherRequest>,
        mut happened: mpsc::Receiver<AddOnEvent>,
    ) -> Result<(), LookError> {
        loop {
            let due = self.due();
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.answer(command),
                    None => return Ok(()),
                },
                changed = self.follower.changed_addons() => {
                    self.dirty.extend(changed?);
                    let outage = self.follower.outage();
                    self.outage.take(outage.as_ref());
                    if let Some(refusal) = self.follower.take_refusal() {
                        return Err(refusal);
                    }
                }
                Some(happened) = happened.recv() => {
                    self.dirty.insert(happened.addon().into());
                    self.chronicle.take(happened);
                }
                () = sleep_until(due) => self.work_out(),
            }
        }
    }

    /// The time for decisions. It stands still while the hub is unreachable: a deadline that passes
    /// then says nothing about a cluster.
    fn now(&self) -> Timestamp {
        self.follower.outage().map_or_else(|| (self.clock)(), |outage| outage.since)
    }

    fn end(&self) {
        self.list.end();
        self.details.values().for_each(|watched| watched.topic.end());
    }

    /// When there is something to do.
    fn due(&self) -> Option<Instant> {
        let now = (self.clock)();
        let when = |at: Timestamp| {
            let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
            Instant::now() + wait
        };
        let dirty = (!self.dirty.is_empty()).then_some(self.rested);
        // Decisions are made in whole seconds: slightly later, the second is certainly over.
        let recheck = self.rechecks.values().min().map(|at| when(*at) + Duration::from_secs(1));
        let recheck = recheck.filter(|_| self.follower.outage().is_none());
        let point = self.timelines.values().filter_map(Timeline::due).map(|(at, _)| when(at)).min();
        let left =
            self.details.values().filter_map(|watched| watched.alone_since).min().map(|at| at + LINGER);
        let unnoticed = self
            .details
            .values()
            .any(|watched| watched.alone_since.is_none() && watched.topic.listeners() == 0);
        let notice = unnoticed.then(|| Instant::now() + LINGER);
        [dirty, recheck, point, left, notice].into_iter().flatten().min()
    }

    /// Computes what may have changed, and sends it.
    fn work_out(&mut self) {
        let begun = Instant::now();
        self.forget_unwatched(begun);
        let now = (self.clock)();
        let decided = self.now();
        self.dirty
            .extend(self.rechecks.iter().filter(|(_, at)| **at < decided).map(|(addon, _)| addon.clone()));
        if begun >= self.rested && !self.dirty.is_empty() {
            let mut summaries = Vec::new();
            for addon in std::mem::take(&mut self.dirty) {
                let summary = self.look_at(&addon, now);
                summaries.push((addon, summary));
            }
            self.list.change(|list| match list {
                Some(list) => list.take(&seconds(now), summaries),
                None => ChangeEffect::Nothing,
            });
            self.rested = Instant::now() + (begun.elapsed() * 2).min(LONGEST_REST);
        }
        self.note_points(now);
    }

    /// Updates one add-on: its line in the list, and everything if it has viewers.
    fn look_at(&mut self, addon: &Text, now: Timestamp) -> Option<Summary> {
        let is_watched = self.details.contains_key(addon);
        let Some(pass) = self.pass(addon, now, is_watched) else {
            self.rechecks.remove(addon);
            self.timelines.remove(addon);
            self.chronicle.forget(addon);
            if let Some(watched) = self.details.get(addon) {
                watched.topic.change(|state| {
                    if state.take().is_some() { ChangeEffect::Whole } else { ChangeEffect::Nothing }
                });
            }
            return None;
        };
        let AddOnPass { summary, looked, recheck_at } = pass;
        match recheck_at.filter(|at| *at >= now) {
            Some(at) => self.rechecks.insert(addon.clone(), at),
            None => self.rechecks.remove(addon),
        };
        let line = self.timelines.entry(addon.clone()).or_default();
        let noted = line.note(summary.counts(), now);
        if let (Some(watched), Some(looked)) = (self.details.get(addon), looked) {
            let now = seconds(now);
            watched.topic.change(|state| match state {
                Some(detail) => detail.take(&now, looked, &noted, line),
                None => {
                    *state = Some(Detail::new(&now, looked, line));
                    ChangeEffect::Whole
                }
            });
        }
        Some(summary)
    }

    /// Asks the engine. Computes only what will be sent.
    fn pass(&mut self, addon: &Text, now: Timestamp, whole: bool) -> Option<AddOnPass> {
        let now = self.now().min(now);
        let seeds = !self.timelines.contains_key(addon);
        let events = if whole { self.chronicle.of(addon) } else { Vec::new() };
        let view = self.follower.view();
        let [display_name, description] = view.title(addon);
        let title = AddOnTitle { display_name, description };
        let history = if whole { view.history(addon) } else { Vec::new() };
        let (pass, line) = view.observe(addon, |observed| {
            let plan = plan::plan(observed, now).recorded();
            let fleet = Fleet::line_up(observed);
            let problems = verdict::problems_in(&fleet, plan.report.problems.iter());
            let summary = Summary::of(observed, &plan, &problems, &title);
            let looked = whole.then(|| {
                let revisions = revisions::lines(&fleet, &plan, &history);
                Looked::of(&fleet, &plan, &problems, &title, &summary, revisions, events)
            });
            let line = seeds.then(|| Timeline::seeded(observed, &plan));
            (AddOnPass { summary, looked, recheck_at: plan.recheck_at }, line)
        })?;
        if let Some(line) = line {
            self.timelines.insert(addon.clone(), line);
        }
        Some(pass)
    }

    fn answer(&mut self, command: WatcherRequest) {
        match command {
            WatcherRequest::Detail(addon, reply) => {
                // The requester may have gone away.
                let _ = reply.send(self.detail(addon));
            }
            WatcherRequest::Cluster(addon, cluster, reply) => {
                let now = self.now();
                let find = |observed: &Observed| {
                    let plan: Plan = plan::plan(observed, now).recorded();
                    ClusterOverview::of(observed, &plan, &cluster)
                };
                let _ = reply.send(self.follower.view().observe(&addon, find).flatten());
            }
            WatcherRequest::Select(addon, selector, reply) => {
                let find = |observed: &Observed| selected(observed, &selector);
                let _ = reply.send(self.follower.view().observe(&addon, find));
            }
        }
    }

    fn detail(&mut self, addon: Text) -> Arc<Topic<Detail>> {
        if let Some(watched) = self.details.get_mut(&addon) {
            watched.alone_since = None;
            return Arc::clone(&watched.topic);
        }
        let now = (self.clock)();
        let detail = self.pass(&addon, now, true).and_then(|pass| {
            let line = self.timelines.entry(addon.clone()).or_default();
            line.note(pass.summary.counts(), now);
            Some(Detail::new(&seconds(now), pass.looked?, line))
        });
        let topic = Arc::new(Topic::new(detail));
        self.details.insert(addon, WatchedAddOn { topic: Arc::clone(&topic), alone_since: None });
        topic
    }

    /// Drops add-ons that have had no viewers for a while.
    fn forget_unwatched(&mut self, now: Instant) {
        self.details.retain(|_, watched| {
            if watched.topic.listeners() > 0 {
                watched.alone_since = None;
                return true;
            }
            now.duration_since(*watched.alone_since.get_or_insert(now)) < LINGER
        });
    }

    /// Records the last counts of a second that is over.
    fn note_points(&mut self, now: Timestamp) {
        for (addon, line) in &mut self.timelines {
            let Some((_, counts)) = line.due().filter(|(at, _)| *at <= now) else { continue };
            let noted = line.note(counts, now);
            if let Some(watched) = self.details.get(addon).filter(|_| noted != Noted::Nothing) {
                watched.topic.change(|state| match state {
                    Some(detail) => detail.note(&seconds(now), &noted, line),
                    None => ChangeEffect::Nothing,
                });
            }
        }
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
