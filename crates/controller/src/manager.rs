//! The manager's main loop. Watch events update the stores and mark add-ons as changed; a changed
//! add-on is planned after a short quiet period, and its plan is executed.
//!
//! Owns timing, and contains no rollout policy: that is in the engine. At most one plan per add-on
//! is executed at a time.

mod discovery;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aviary_engine::name::Text;
use aviary_engine::plan::{Plan, plan};
use aviary_engine::reason::EventReason;
use futures_util::FutureExt;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::Settings;
use crate::events::Events;
use crate::execute::{
    Executor, Job, SharedExecutor, Tally, Target, look_for_namespace, summarise, until_free,
};
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::panics::{Panic, contain};
use crate::queue::{LONG, QUIET, WorkQueue};
use crate::schemas;
use crate::seen::{WatchEvent, WrittenBy};
use crate::skipped::{SkipReason, Skipped};
use crate::stores::{Departed, Stores};
use crate::tenure::Tenure;
use crate::verify::broken_promise;
use crate::watches::{self, EVENTS_WAITING};
use crate::write_limit::WriteLimit;
use discovery::Discovery;
use terms::{Sighting, TermCheck, must_fence};

/// How soon to check again whether the lease has been confirmed.
const CONFIRMATION: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagerHealth {
    /// What all add-ons need has been listed once.
    pub listed: bool,
    /// Everything has been listed once.
    pub synced: bool,
    pub leading: bool,
    /// Every add-on has been planned once by this leader.
    pub first_pass_done: bool,
    /// Add-ons that this leader skips.
    pub skipped: Skipped,
}

impl ManagerHealth {
    /// Whether this replica does its job.
    pub fn is_ready(&self) -> bool {
        self.synced && (!self.leading || self.first_pass_done) && self.skipped.is_empty()
    }

    /// Whether this replica can do its job, whatever is wrong with single add-ons.
    pub fn is_serving(&self) -> bool {
        self.listed
    }
}

pub(crate) struct Reporting {
    pub(crate) health: watch::Sender<ManagerHealth>,
    pub(crate) metrics: Metrics,
}

pub(crate) struct Loop {
    client: Client,
    settings: Settings,
    stores: Stores,
    discovery: Discovery,
    sender: mpsc::Sender<WatchEvent>,
    events: mpsc::Receiver<WatchEvent>,
    watches: JoinSet<()>,
    executions: JoinSet<(Text, Result<Tally, Panic>)>,
    queue: WorkQueue<Text>,
    /// While this manager leads.
    executor: Option<SharedExecutor>,
    limit: WriteLimit,
    /// Add-ons that this leader has not planned yet.
    unplanned: BTreeSet<Text>,
    skipped: BTreeMap<Text, SkipReason>,
    /// Terms that another leader may have written, and when each was first seen.
    sighted: BTreeMap<Text, Sighting>,
    tenure: Tenure,
    /// Whether the term has been compared with those on add-ons.
    term: TermCheck,
    /// A CRD has changed, so schemas may have.
    schemas_changed: bool,
    reporting: Reporting,
}

impl std::fmt::Debug for Loop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loop").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Loop {
    pub(crate) fn new(client: Client, settings: Settings, reporting: Reporting, tenure: Tenure) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_WAITING);
        Self {
            stores: Stores::of_manager(settings.options.clone()),
            client,
            settings,
            discovery: Discovery::default(),
            sender,
            events,
            watches: JoinSet::new(),
            executions: JoinSet::new(),
            queue: WorkQueue::default(),
            executor: None,
            limit: WriteLimit::default(),
            unplanned: BTreeSet::new(),
            skipped: BTreeMap::new(),
            sighted: BTreeMap::new(),
            tenure,
            term: TermCheck::ToDo,
            schemas_changed: false,
            reporting,
        }
    }

    /// Runs until `stop` completes; then lets executions finish.
    pub(crate) async fn run(
        mut self,
        mut leadership: watch::Receiver<Leadership>,
        stop: impl Future<Output = ()>,
    ) {
        watches::start(&self.client, &self.settings.namespace, &self.sender, &mut self.watches);
        self.watches.spawn(schemas::find(self.client.clone(), self.sender.clone()));
        let mut stop = std::pin::pin!(stop);
        self.lead(leadership.borrow_and_update().clone());
        loop {
            let next = self.next_pass().into_iter().chain(self.discovery.ask_again()).min();
            let next = next.unwrap_or_else(|| Instant::now() + LONG);
            tokio::select! {
                // Rare events come first, so that a flood of watch events does not hold them up.
                // `biased` also keeps runs deterministic.
                biased;
                () = &mut stop => break,
                changed = leadership.changed() => {
                    let now = if changed.is_ok() { leadership.borrow_and_update().clone() } else { Leadership::Waiting };
                    self.lead(now);
                }
                Some(Ok((addon, tally))) = self.executions.join_next() => self.record(&addon, tally),
                Some(found) = self.discovery.found() => self.adjust_config_watches(found),
                Some(event) = self.events.recv() => self.take(Some(event)),
                () = sleep_until(next) => {}
            }
            self.discovery.look(&self.stores, &self.client);
            self.note_changes();
            self.pass_over_due();
            self.summarise_policies();
            self.report_health();
            self.reporting.metrics.note_queue(self.queue.len());
        }
        self.watches.shutdown().await;
        // Nothing receives the responses to writes any more; a full channel must not block the
        // writes.
        self.events.close();
        while self.executions.join_next().await.is_some() {}
    }

    /// Takes in all waiting events, so that a burst leads to one pass.
    fn take(&mut self, first: Option<WatchEvent>) {
        let mut next = first.or_else(|| self.events.try_recv().ok());
        while let Some(event) = next {
            let (client, sender) = (&self.client, &self.sender);
            match &event {
                WatchEvent::Kinds => {
                    self.discovery.kinds_changed(client);
                    self.schemas_changed = true;
                }
                WatchEvent::NameTaken(taken) => {
                    self.watches.spawn(until_free(client.clone(), taken.clone(), sender.clone()));
                }
                WatchEvent::NamespaceMissing(missing) if self.stores.awaits(missing) => {
                    self.watches.spawn(look_for_namespace(client.clone(), missing.clone(), sender.clone()));
                }
                WatchEvent::WriteRefused(refused) => {
                    let (pause, refused) = (self.stores.pause_after(refused), refused.clone());
                    let sender = sender.clone();
                    self.watches.spawn(async move {
                        tokio::time::sleep(pause).await;
                        // The receiver is gone only when the manager stops.
                        let _ = sender.send(WatchEvent::RetryWrite(refused)).await;
                    });
                }
                _ => {}
            }
            self.stores.take(event);
            next = self.events.try_recv().ok();
        }
        if std::mem::take(&mut self.schemas_changed) {
            self.watches.spawn(schemas::find(self.client.clone(), self.sender.clone()));
        }
    }

    fn lead(&mut self, leadership: Leadership) {
        let Leadership::Leading(term) = leadership else {
            if let Some(executor) = self.executor.take() {
                executor.over.store(true, Ordering::Relaxed);
                tracing::info!("this manager no longer leads");
            }
            self.term = TermCheck::ToDo;
            self.skipped.clear();
            self.queue.end_suspensions();
            self.sighted.clear();
            return self.reporting.metrics.note_leading(false);
        };
        if self.executor.as_ref().is_some_and(|executor| executor.term == term) {
            return;
        }
        if let Some(executor) = &self.executor {
            executor.over.store(true, Ordering::Relaxed);
        }
        self.term = if self.term == TermCheck::Raised { TermCheck::Done } else { TermCheck::ToDo };
        tracing::info!(term = term.number, "this manager leads");
        self.reporting.metrics.note_leading(true);
        let (identity, clock) = (&self.settings.identity, &self.settings.clock);
        self.executor = Some(Arc::new(Executor {
            client: self.client.clone(),
            namespace: self.settings.namespace.clone(),
            limit: self.limit.clone(),
            stores: self.sender.clone(),
            term,
            identity: identity.clone(),
            over: Arc::default(),
            voided: Arc::default(),
            events: Events::new(self.client.clone(), identity, Arc::clone(clock)),
        }));
        self.unplanned = self.stores.addons().cloned().collect();
        // Also those that are gone: hooks of their instances may still have to run.
        self.stores.mark_all();
    }

    /// Writes into policies what they apply to.
    fn summarise_policies(&mut self) {
        if self.executor.is_none() || !self.stores.are_complete() {
            return;
        }
        for (policy, summary) in self.stores.stale_policies() {
            let (client, stores, now) = (self.client.clone(), self.sender.clone(), (self.settings.clock)());
            self.watches.spawn(summarise(client, stores, policy, summary, now));
        }
    }

    fn note_changes(&mut self) {
        for addon in self.stores.take_dirty() {
            self.queue.soon(addon, QUIET);
        }
    }

    /// When the next pass is due by time alone. Add-ons whose plan is being executed are left out,
    /// and nothing is due before the first lists are complete.
    fn next_pass(&self) -> Option<Instant> {
        if !self.stores.are_complete() || self.term == TermCheck::Raised {
            return None;
        }
        self.queue.next(|addon| self.stores.are_configs_known(addon))
    }

    fn pass_over_due(&mut self) {
        if !self.stores.are_complete() {
            return;
        }
        let Some(executor) = self.executor.clone() else {
            // Another manager plans them. When this one becomes the leader, it plans all.
            return self.queue.clear();
        };
        if !self.has_its_term(&executor) {
            return;
        }
        for addon in self.queue.take_ready(|addon| self.stores.are_configs_known(addon)) {
            match contain(|| self.pass(&addon, &executor)) {
                Ok(Pass::Skipped) => {}
                Ok(Pass::Done) => {
                    self.queue.end_suspension(&addon);
                    self.unplanned.remove(&addon);
                }
                Err(panic) => self.panicked(&addon, &panic),
            }
        }
    }

    /// One pass over an add-on: observe, plan, reserve, execute, record. The first two happen here;
    /// the execution reserves the wave and writes the rest; [`Self::record`] processes the result.
    fn pass(&mut self, addon: &Text, executor: &SharedExecutor) -> Pass {
        if let Some(reason) = self.may_be_led_by_another(addon, executor) {
            tracing::warn!(%addon, %reason, "another manager may lead; skipping the add-on");
            self.skip(addon, reason);
            self.queue.later(addon, CONFIRMATION);
            return Pass::Skipped;
        }
        let now = (self.settings.clock)();
        let Some(snapshot) = self.stores.observe(addon) else {
            self.forget(addon, executor);
            return Pass::Done;
        };
        let started = Instant::now();
        let mut plan = snapshot.without_echoes(plan(&snapshot, now));
        plan.hold_counts(&snapshot, snapshot.entry().status_written, now);
        if snapshot.entry().present {
            self.reporting.metrics.note_plan(&snapshot, &plan, started.elapsed(), now);
        } else {
            self.reporting.metrics.forget(addon);
        }
        let broken = if self.settings.verify { broken_promise(&snapshot, &plan) } else { None };
        let job = Job::new(&snapshot, plan, executor);
        drop(snapshot);
        self.report_odd_term(executor, &job.target);
        if let Some(broken) = broken {
            self.freeze(executor, job.target, broken);
            return Pass::Skipped;
        }
        if self.skipped.remove(addon).is_some() {
            self.reporting.metrics.note_skipped(addon, None);
        }
        self.pass_again(addon, &job.plan, now);
        if job.plan.is_at_rest() {
            self.queue.succeeded(addon);
            self.stores.end_retries(addon);
        } else {
            if job.plan.addon().is_some() {
                self.stores.note_status_written(addon, now);
            }
            self.execute(executor, job);
        }
        Pass::Done
    }

    fn execute(&mut self, executor: &SharedExecutor, mut job: Job) {
        let (executor, addon) = (Arc::clone(executor), job.target.name.clone());
        self.queue.begin(addon.clone());
        job.departed = self.stores.begin_writes(&addon);
        self.executions.spawn(async move {
            let tally = AssertUnwindSafe(executor.execute(job)).catch_unwind().await;
            (addon, tally.map_err(|panic| Panic::of(&*panic)))
        });
    }

    fn record(&mut self, addon: &Text, result: Result<Tally, Panic>) {
        // The responses to its writes are queued, and must be in the next snapshot.
        self.take(None);
        self.queue.end(addon);
        self.stores.end_writes(addon);
        let tally = match result {
            Ok(tally) => tally,
            Err(panic) => return self.panicked(addon, &panic),
        };
        self.reporting.metrics.note_written(tally);
        let Tally { written, conflicts, failed, refused, blocked, panicked, unanswered: _ } = tally;
        tracing::debug!(%addon, written, conflicts, failed, refused, "executed a plan");
        if panicked {
            self.skip(addon, SkipReason::Panicked);
            self.queue.suspend(addon);
        } else if failed > 0 || conflicts > 0 {
            if blocked {
                tracing::warn!(%addon, "the hub refuses to write the add-on; it is skipped and retried, and other add-ons continue");
                self.skip(addon, SkipReason::WriteRefused);
            }
            self.queue.put_off(addon);
        } else {
            self.stores.end_retries(addon);
            self.queue.succeeded(addon);
            self.stores.mark(addon);
        }
    }

    fn skip(&mut self, addon: &Text, reason: SkipReason) {
        self.reporting.metrics.note_skipped(addon, Some(reason.code().as_str()));
        self.skipped.insert(addon.clone(), reason);
    }

    /// The add-on does not exist any more. Deletes the instances that it leaves behind on clusters
    /// that are being deleted.
    fn forget(&mut self, addon: &Text, executor: &SharedExecutor) {
        self.skipped.remove(addon);
        self.sighted.remove(addon);
        self.queue.succeeded(addon);
        self.reporting.metrics.forget(addon);
        let deletes = self.stores.abandoned(addon);
        if !deletes.is_empty() {
            let target = Target::absent(addon.clone(), WrittenBy::default());
            let plan = Plan::of_deletes(deletes);
            let (history, fence, departed) = Default::default();
            self.execute(executor, Job { target, plan, history, fence, departed });
        }
    }

    /// A panic affects only this add-on. It is retried with backoff.
    fn panicked(&mut self, addon: &Text, panic: &Panic) {
        tracing::error!(%addon, %panic, "a pass panicked; it is retried, and other add-ons continue");
        self.skip(addon, SkipReason::Panicked);
        self.queue.suspend(addon);
    }

    /// Freezes an add-on until its plan no longer violates an invariant, and publishes one Event.
    fn freeze(&mut self, executor: &SharedExecutor, target: Target, broken: String) {
        self.reporting.metrics.note_frozen(&target.name);
        tracing::error!(addon = %target.name, broken, "a plan would violate an invariant and is not executed");
        let said = self.skipped.get(&target.name) == Some(&SkipReason::InvariantBroken);
        self.skip(&target.name, SkipReason::InvariantBroken);
        if !said {
            let events = executor.events.clone();
            self.watches.spawn(async move {
                events.publish_one(&target, EventReason::InvariantBroken, &broken).await;
            });
        }
    }

    /// Schedules another pass if the plan says that time alone will change something.
    fn pass_again(&mut self, addon: &Text, plan: &Plan, now: Timestamp) {
        if let Some(at) = plan.recheck_at {
            let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default().max(QUIET);
            self.queue.soon(addon.clone(), wait);
        }
    }

    fn report_health(&self) {
        let mut addons = self.stores.addons();
        let listed = self.stores.are_complete();
        let synced = listed && addons.all(|addon| self.stores.are_configs_known(addon));
        let health = ManagerHealth {
            listed,
            synced,
            leading: self.executor.is_some(),
            first_pass_done: synced && self.unplanned.is_empty(),
            skipped: Skipped::of(&self.skipped),
        };
        self.reporting.health.send_if_modified(|old| {
            let changed = *old != health;
            if old.skipped != health.skipped {
                self.tenure.note_skipped(health.skipped.to_note());
            }
            *old = health;
            changed
        });
    }
}

impl Job {
    fn new(snapshot: &crate::stores::Snapshot<'_>, plan: Plan, executor: &Executor) -> Self {
        let target = Target::of(snapshot);
        let must_fence = plan.starts().next().is_some() && must_fence(&target.written_by, executor);
        let instances = snapshot.instances.iter().filter(|_| must_fence);
        let fence = instances.map(|(cluster, instance)| (cluster.clone(), instance.uid.clone())).collect();
        let history = snapshot.completed().map(|(key, completed)| (key.clone(), completed.clone()));
        Self { target, plan, history: history.collect(), fence, departed: Departed::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Done,
    /// The add-on is skipped for now.
    Skipped,
}
