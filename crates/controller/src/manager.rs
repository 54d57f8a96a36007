//! The loop: what is seen is noted, an add-on with news is planned once things are quiet for a moment, and its plan is carried out.
//!
//! Owns when what happens. There is no policy in it: what is to be done is the engine's to say. One add-on has one plan under way at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aviary_engine::configs::GroupResource;
use aviary_engine::name::{PlacementName, Text};
use aviary_engine::plan::{Plan, plan};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::Settings;
use crate::events::Events;
use crate::execute::{
    Completed, Executor, Job, SharedExecutor, Tally, Target, UNFENCED, patience, until_free,
};
use crate::kinds::{self, ConfigWatches, Found};
use crate::leader::{Leadership, Term};
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::seen::News;
use crate::stores::Stores;
use crate::verify::broken_promise;
use crate::watches::{self, NEWS_WAITING};

/// News of one add-on are gathered for so long.
const QUIET: Duration = Duration::from_millis(50);
/// Nothing to wait for: look again then.
const LONG: Duration = Duration::from_secs(3600);

/// How the manager is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Everything has been listed once.
    pub synced: bool,
    pub leading: bool,
    /// Every add-on has been planned once by this leader.
    pub first_pass_done: bool,
}

impl Health {
    /// Whether this replica does what it is there for.
    pub fn is_ready(self) -> bool {
        self.synced && (!self.leading || self.first_pass_done)
    }
}

/// Where the loop tells how it is.
pub(crate) struct Tell {
    pub(crate) health: watch::Sender<Health>,
    pub(crate) metrics: Metrics,
}

pub(crate) struct Loop {
    client: Client,
    settings: Settings,
    stores: Stores,
    configs: ConfigWatches,
    news: (mpsc::Sender<News>, mpsc::Receiver<News>),
    watches: JoinSet<()>,
    executions: JoinSet<(Text, Tally)>,
    finding: JoinSet<Vec<(GroupResource, Found)>>,
    asked: BTreeSet<GroupResource>,
    ask_again: Option<Instant>,
    /// How often to ask again although the hub has answered.
    doubts: u8,
    /// When each add-on with news is planned.
    due: BTreeMap<Text, Instant>,
    busy: BTreeSet<Text>,
    failures: BTreeMap<Text, u32>,
    executor: Option<SharedExecutor>,
    pace: Pace,
    unplanned: BTreeSet<Text>,
    /// Add-ons whose plan would break a promise.
    frozen: BTreeSet<Text>,
    tell: Tell,
}

impl std::fmt::Debug for Loop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loop").field("due", &self.due).field("busy", &self.busy).finish_non_exhaustive()
    }
}

impl Loop {
    pub(crate) fn new(client: Client, settings: Settings, tell: Tell) -> Self {
        Self {
            stores: Stores::new(settings.options.clone()),
            client,
            settings,
            configs: ConfigWatches::default(),
            news: mpsc::channel(NEWS_WAITING),
            watches: JoinSet::new(),
            executions: JoinSet::new(),
            finding: JoinSet::new(),
            asked: BTreeSet::new(),
            ask_again: None,
            doubts: 0,
            due: BTreeMap::new(),
            busy: BTreeSet::new(),
            failures: BTreeMap::new(),
            executor: None,
            pace: Pace::default(),
            unplanned: BTreeSet::new(),
            frozen: BTreeSet::new(),
            tell,
        }
    }

    /// Runs until `stop` completes; then lets what is under way finish.
    pub(crate) async fn run(
        mut self,
        mut leadership: watch::Receiver<Leadership>,
        stop: impl Future<Output = ()>,
    ) {
        watches::start(&self.client, &self.settings.namespace, &self.news.0, &mut self.watches);
        let mut stop = std::pin::pin!(stop);
        self.lead(*leadership.borrow_and_update());
        loop {
            let next = self.next_plan().into_iter().chain(self.ask_again).min();
            let next = next.unwrap_or_else(|| Instant::now() + LONG);
            tokio::select! {
                // What is rare comes first, so that a flood of news holds none of it up; and of two runs alike both go alike.
                biased;
                () = &mut stop => break,
                changed = leadership.changed() => {
                    let now = if changed.is_ok() { *leadership.borrow_and_update() } else { Leadership::Waiting };
                    self.lead(now);
                }
                Some(done) = self.executions.join_next() => self.executed(done.ok()),
                Some(found) = self.finding.join_next() => self.found(found.unwrap_or_default()),
                Some(news) = self.news.1.recv() => self.take(Some(news)),
                () = sleep_until(next) => {}
            }
            self.look_for_kinds();
            self.note_dirty();
            self.plan_due();
            self.tell_health();
            self.tell.metrics.note_queue(self.due.len() + self.busy.len());
        }
        self.watches.shutdown().await;
        // Their news have nowhere to go, and must not hold them up.
        self.news.1.close();
        while self.executions.join_next().await.is_some() {}
    }

    /// Takes what is there, so that a burst of news makes one plan.
    fn take(&mut self, first: Option<News>) {
        let mut look_again = false;
        let mut next = first.or_else(|| self.news.1.try_recv().ok());
        while let Some(news) = next {
            look_again |= matches!(news, News::Kinds);
            if let News::Taken(taken) = &news {
                self.watches.spawn(until_free(self.client.clone(), taken.clone(), self.news.0.clone()));
            }
            self.stores.take(news);
            next = self.news.1.try_recv().ok();
        }
        if look_again {
            self.asked.clear();
            self.ask(self.configs.watched());
            // A server may serve a kind, or stop to, a moment after it has said so.
            self.doubts = 2;
            self.ask_again = Some(Instant::now() + Duration::from_secs(1));
        }
    }

    /// Asks the hub for kinds that are referenced and not known.
    fn look_for_kinds(&mut self) {
        if self.ask_again.is_some_and(|at| at <= Instant::now()) {
            self.ask_again = None;
            self.asked.clear();
            if self.doubts > 0 {
                self.doubts -= 1;
                self.ask(self.configs.watched());
                self.ask_again = (self.doubts > 0).then(|| Instant::now() + Duration::from_secs(5));
            }
        }
        let missing: Vec<GroupResource> = self
            .configs
            .missing(&self.stores)
            .into_iter()
            .filter(|kind| !self.asked.contains(kind))
            .collect();
        self.ask(missing);
    }

    fn ask(&mut self, kinds: Vec<GroupResource>) {
        if kinds.is_empty() {
            return;
        }
        self.asked.extend(kinds.iter().cloned());
        let client = self.client.clone();
        self.finding.spawn(async move { kinds::find(&client, kinds).await });
    }

    fn found(&mut self, found: Vec<(GroupResource, Found)>) {
        let watched = self.configs.watched();
        let (known, new): (Vec<_>, Vec<_>) = found.into_iter().partition(|(kind, _)| watched.contains(kind));
        let gone: Vec<GroupResource> = known
            .into_iter()
            .filter(|(_, found)| matches!(found, Found::NotServed))
            .map(|(kind, _)| kind)
            .collect();
        self.configs.forget_all(&mut self.stores, &gone);
        let again = self.configs.adjust(&mut self.stores, new, &self.client, &self.news.0, &mut self.watches);
        // What nobody refers to is not watched any more. Should somebody again, it is asked for again.
        let referenced = self.stores.referenced_kinds();
        self.asked.retain(|kind| referenced.contains(kind));
        if again {
            self.ask_again = Some(Instant::now() + Duration::from_secs(5));
        }
    }

    fn lead(&mut self, leadership: Leadership) {
        let Leadership::Leading(term) = leadership else {
            if let Some(executor) = self.executor.take() {
                executor.over.store(true, Ordering::Relaxed);
                tracing::info!("this manager does not lead any more");
            }
            return self.tell.metrics.note_leading(false);
        };
        if self.executor.as_ref().is_some_and(|executor| executor.term == term) {
            return;
        }
        if let Some(executor) = &self.executor {
            executor.over.store(true, Ordering::Relaxed);
        }
        tracing::info!(term = term.number, "this manager leads");
        self.tell.metrics.note_leading(true);
        self.executor = Some(Arc::new(Executor {
            client: self.client.clone(),
            namespace: self.settings.namespace.clone(),
            pace: self.pace.clone(),
            news: self.news.0.clone(),
            term,
            over: Arc::default(),
            voided: Arc::default(),
            events: Events::new(
                self.client.clone(),
                &self.settings.identity,
                Arc::clone(&self.settings.clock),
            ),
        }));
        self.unplanned = self.stores.addons().cloned().collect();
        for addon in self.unplanned.clone() {
            self.stores.mark(&addon);
        }
    }

    fn note_dirty(&mut self) {
        let due = Instant::now() + QUIET;
        for addon in self.stores.take_dirty() {
            let at = self.due.entry(addon).or_insert(due);
            *at = (*at).min(due);
        }
    }

    /// Whether an add-on can be planned: nothing is written for it, and what it rests on is known.
    fn can_be_planned(&self, addon: &Text) -> bool {
        !self.busy.contains(addon) && self.stores.is_told(addon)
    }

    /// When the next add-on can be planned by time alone. One that is being written for waits for that to end, and all wait for the lists.
    fn next_plan(&self) -> Option<Instant> {
        if !self.stores.are_complete() {
            return None;
        }
        self.due.iter().filter(|(addon, _)| self.can_be_planned(addon)).map(|(_, at)| *at).min()
    }

    fn plan_due(&mut self) {
        if !self.stores.are_complete() {
            return;
        }
        let Some(executor) = self.executor.clone() else {
            // Whoever leads plans them; should we come to lead, we plan all.
            self.due.clear();
            return;
        };
        let now = Instant::now();
        let ready: Vec<Text> = self
            .due
            .iter()
            .filter(|(addon, at)| **at <= now && self.can_be_planned(addon))
            .map(|(addon, _)| addon.clone())
            .collect();
        for addon in ready {
            self.due.remove(&addon);
            self.pass(&addon, &executor);
            self.unplanned.remove(&addon);
        }
    }

    fn pass(&mut self, addon: &Text, executor: &SharedExecutor) {
        let now = (self.settings.clock)();
        let Some(known) = self.stores.known(addon) else { return };
        if known.term > executor.term.number {
            tracing::warn!(%addon, term = executor.term.number, newer = known.term, "a newer leader is at work; this one does nothing");
            return;
        }
        let (resource_version, term) = (known.resource_version.clone(), known.term);
        let (verify, metrics) = (self.settings.verify, &self.tell.metrics);
        let looked = self.stores.observe(addon, |observed| {
            let broken = if verify { broken_promise(observed, now) } else { None };
            let placements: Vec<PlacementName> =
                observed.addon.strategy.placements().iter().map(|spec| spec.name.clone()).collect();
            let started = Instant::now();
            let plan = plan(observed, now);
            metrics.note_plan(observed, &plan, started.elapsed(), now);
            let versions = plan.addon.as_ref().unwrap_or(&observed.addon.status).supported_versions.clone();
            let fence = if plan.starts.is_empty() || !must_fence(term, executor.term) {
                Vec::new()
            } else {
                let all = observed.instances.iter();
                all.map(|(cluster, instance)| (cluster.clone(), instance.uid.clone())).collect()
            };
            (plan, placements, observed.addon.uid.clone(), versions, broken, fence)
        });
        let Some((plan, placements, uid, versions, broken, fence)) = looked else {
            return self.tell.metrics.forget(addon);
        };
        let target = Target { name: addon.clone(), uid, resource_version, placements, term };
        if let Some(broken) = broken {
            return self.freeze(executor, target, broken);
        }
        self.frozen.remove(addon);
        let offers = self.stores.offer(addon, plan.hub_configs.clone(), versions);
        self.look_again(addon, &plan, now);
        if plan.is_at_rest() && offers.is_empty() {
            self.failures.remove(addon);
            return;
        }
        let completed = plan.completed.iter().map(|(placement, revision)| {
            let (number, surplus) = self.stores.next_completed(addon, placement);
            Completed { placement: placement.clone(), revision: revision.clone(), number, surplus }
        });
        let completed: Vec<Completed> = completed.collect();
        self.busy.insert(addon.clone());
        let (executor, addon) = (Arc::clone(executor), addon.clone());
        self.executions.spawn(async move {
            let tally = executor.execute(Job { target, plan, completed, offers, fence }).await;
            (addon, tally)
        });
    }

    /// Leaves an add-on as it is, and says so once, until its plan breaks no promise any more.
    fn freeze(&mut self, executor: &SharedExecutor, target: Target, broken: String) {
        self.tell.metrics.note_frozen(&target.name);
        tracing::error!(addon = %target.name, broken, "a plan would break a promise and is not carried out");
        if self.frozen.insert(target.name.clone()) {
            let events = executor.events.clone();
            self.watches.spawn(async move { events.tell(&target, "InvariantBroken", &broken).await });
        }
    }

    /// Comes back when the plan says that time alone will change something.
    fn look_again(&mut self, addon: &Text, plan: &Plan, now: Timestamp) {
        let Some(at) = plan.recheck_at else { return };
        let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default().max(QUIET);
        let at = Instant::now() + wait;
        let due = self.due.entry(addon.clone()).or_insert(at);
        *due = (*due).min(at);
    }

    fn executed(&mut self, done: Option<(Text, Tally)>) {
        // What it wrote is in the queue, and must be in the next plan's view.
        self.take(None);
        let Some((addon, tally)) = done else {
            tracing::error!("an execution ended without a word; everything is planned again");
            self.busy.clear();
            return self
                .due
                .extend(self.stores.addons().map(|addon| (addon.clone(), Instant::now() + QUIET)));
        };
        self.busy.remove(&addon);
        self.tell.metrics.note_written(tally);
        tracing::debug!(%addon, written = tally.written, conflicts = tally.conflicts, failed = tally.failed, "a plan was carried out");
        if tally.failed == 0 && tally.conflicts == 0 {
            self.failures.remove(&addon);
            return self.stores.mark(&addon);
        }
        let failures = self.failures.entry(addon.clone()).or_insert(0);
        *failures += 1;
        let at = Instant::now() + patience(*failures);
        self.due.insert(addon, at);
    }

    fn tell_health(&self) {
        let synced =
            self.stores.are_complete() && self.stores.addons().all(|addon| self.stores.is_told(addon));
        let health = Health {
            synced,
            leading: self.executor.is_some(),
            first_pass_done: synced && self.unplanned.is_empty(),
        };
        self.tell.health.send_if_modified(|old| {
            let changed = *old != health;
            *old = health;
            changed
        });
    }
}

/// Whether the leader that wrote `last` on the add-on may still be about to start instances of it, seen by the leader of `now`.
fn must_fence(last: u64, now: Term) -> bool {
    let nobody_was_before = last == 0 || last >= now.number;
    let said_it_is_done = now.handed_over && last + 1 == now.number;
    now != UNFENCED && !nobody_was_before && !said_it_is_done
}
