//! Executes a plan stage by stage. Each write is conditional on the object being unchanged since
//! the decision.
//!
//! Owns the outcome of each write; the plan owns the order. A failed write is an outcome, never an
//! error: the other clusters continue, and the next plan starts from the current state.

mod addon;
mod instances;
mod outcome;
mod own;
mod revisions;
#[cfg(test)]
mod tests;
mod works;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::plan::{Plan, Stage, Step, Write};
use aviary_engine::served::Served;
use aviary_engine::status::publish;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use kube::Client;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use crate::events::Events;
use crate::leader::Term;
use crate::panics::Panic;
use crate::revisions::{Completed, Owner};
use crate::seen::{Echo, Echoed, Key, RefusedObject, WatchEvent, WriteRefused, WrittenBy};
use crate::stores::{Departed, Snapshot};
use crate::write_limit::WriteLimit;
pub(crate) use instances::look_for_namespace;
use outcome::{WriteResult, refusal};
pub(crate) use own::summarise;
pub(crate) use works::until_free;

/// The add-on that is written for, as the plan saw it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) name: Text,
    pub(crate) uid: Text,
    pub(crate) resource_version: Text,
    /// The order of its placements, as they are published.
    pub(crate) placements: Vec<PlacementName>,
    /// The leader whose term is written on it.
    pub(crate) written_by: WrittenBy,
    /// What the hub can store of it.
    pub(crate) served: Served,
}

impl Target {
    pub(crate) fn of(snapshot: &Snapshot<'_>) -> Self {
        let addon = &snapshot.addon;
        Self {
            name: addon.name.clone(),
            uid: addon.uid.clone(),
            resource_version: snapshot.entry().resource_version.clone(),
            placements: addon.strategy.placements().iter().map(|spec| spec.name.clone()).collect(),
            written_by: snapshot.entry().written_by.clone(),
            served: snapshot.served,
        }
    }

    /// An add-on that does not exist: nothing of its own can be written.
    pub(crate) fn absent(name: Text, written_by: WrittenBy) -> Self {
        let (uid, resource_version) = Default::default();
        Self { name, uid, resource_version, placements: Vec::new(), written_by, served: Served::default() }
    }
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) target: Target,
    pub(crate) plan: Plan,
    /// The completed revisions that are kept for the add-on.
    pub(crate) history: Vec<(Key, Completed)>,
    /// Instances that an earlier leader may still start. Its pending writes must be invalidated
    /// before this leader starts any.
    pub(crate) fence: Vec<(ClusterName, Text)>,
    /// Filled by the stores while the plan is executed.
    pub(crate) departed: Departed,
}

/// The result of an execution.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) written: usize,
    pub(crate) conflicts: usize,
    pub(crate) failed: usize,
    /// The hub refuses them for what is in them: each is tried again in its own time.
    pub(crate) refused: usize,
    /// The hub refuses a write that everything else of the add-on depends on.
    pub(crate) blocked: bool,
    /// A write failed because of a defect here.
    pub(crate) panicked: bool,
    /// Writes in a row that did not reach the hub.
    pub(crate) unanswered: usize,
}

/// After this many writes in a row that do not reach the hub, the rest of a plan is left for a
/// later pass. More than one: a write on which the connection always breaks must not stop others.
const GIVE_UP: usize = 3;

impl Tally {
    fn hub_is_away(&self) -> bool {
        self.unanswered >= GIVE_UP
    }
}

/// Writes for one leader.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) limit: WriteLimit,
    pub(crate) stores: mpsc::Sender<WatchEvent>,
    pub(crate) term: Term,
    pub(crate) identity: String,
    /// The term has ended: writes that have not begun are not made.
    pub(crate) over: Arc<AtomicBool>,
    /// By add-on, its resource version when the writes of earlier leaders were last invalidated.
    pub(crate) voided: Arc<Mutex<BTreeMap<Text, Text>>>,
    pub(crate) events: Events,
}

/// The event that records what was sent, for a hub that stored something else. `None` if it must
/// be sent again all the same.
pub(crate) fn echo(
    addon: &Text,
    of: Echoed,
    resource_version: Text,
    sent: &Write,
    target: (&[PlacementName], &Served),
) -> Option<WatchEvent> {
    let (order, served) = target;
    let sent = publish::timeless(sent, order, served)?;
    Some(WatchEvent::Echo(Echo { addon: addon.clone(), of, resource_version, sent }))
}

/// Shared by all executions of one term.
pub(crate) type SharedExecutor = Arc<Executor>;

/// The term of a manager without leader election: it neither writes nor checks terms.
pub(crate) const UNFENCED: Term = Term { number: u64::MAX, handed_over_by: None, leases: 0 };

/// Clusters whose status could not be written.
type Missed = Mutex<BTreeSet<ClusterName>>;

impl Executor {
    /// Carries out a plan. The answers to its writes go to the stores, so that the next plan sees
    /// them.
    pub(crate) async fn execute(&self, job: Job) -> Tally {
        let mut tally = Tally::default();
        let missed = Missed::default();
        for stage in &job.plan.stages {
            let whole = match stage.step {
                Step::Reserve if !job.fence.is_empty() => {
                    self.fence_off(&job.target, &job.fence, &mut tally).await;
                    return tally;
                }
                Step::Reserve => self.reserve(&job, stage, &mut tally).await,
                Step::Keep if !self.still_exists(&job.target, &mut tally).await => return tally,
                _ => self.write_stage(&job, stage, &missed, &mut tally).await,
            };
            if (!whole && stage.step.is_required()) || tally.hub_is_away() {
                return tally;
            }
            // Only what others depend on counts.
            tally.blocked = false;
        }
        tally
    }

    async fn write_stage(&self, job: &Job, stage: &Stage, missed: &Missed, tally: &mut Tally) -> bool {
        // If an instance is gone, a work for it would be garbage-collected and created again in
        // every pass.
        let is_missed = |write: &&Write| match write {
            Write::Work(write) => lock(missed).contains(&write.cluster),
            _ => false,
        };
        let writes: Vec<&Write> = stage.writes.iter().filter(|write| !is_missed(write)).collect();
        self.all(writes, |write| self.write(job, write, missed).boxed(), tally).await
    }

    async fn write(&self, job: &Job, write: &Write, missed: &Missed) -> WriteResult {
        let addon = &job.target.name;
        let owner = Owner { namespace: &self.namespace, addon, uid: &job.target.uid };
        let outcome = match write {
            Write::Keep(keep) => self.keep(owner, keep).await,
            Write::Hold(hash) => self.hold(addon, hash).await,
            Write::Withdraw(placement, revision) => self.withdraw(&job.history, placement, revision).await,
            Write::Complete(completion) => self.complete(owner, &job.history, completion).await,
            Write::AddOn(status) => self.write_addon(job, Some((write, status))).await,
            Write::Record(record) => self.write_record(&job.target, write, record).await,
            Write::Offer(offer) => self.offer(offer).await,
            Write::Create(create) => self.create_instance(owner, create).await,
            Write::Delete(delete) => self.delete_instance(addon, delete).await,
            Write::Instance(status) => {
                let outcome = self.write_status(&job.target, write, status).await;
                if !matches!(outcome, WriteResult::Written(_)) {
                    lock(missed).insert(status.cluster.clone());
                }
                outcome
            }
            Write::Guard(guard) => self.write_guard(&job.target, write, guard).await,
            // Nothing in the request depends on the instance, so the hub would accept it.
            Write::Work(write) if job.departed.contains(write.instance_uid()) => WriteResult::Conflict,
            Write::Work(write) => self.write_work(addon, write).await,
            Write::DeleteWork(surplus) => self.delete_work(surplus).await,
            Write::Forget(hash) => self.forget(addon, hash).await,
        };
        match (outcome, refusable(write)) {
            (WriteResult::Failed(error), Some(object)) => match refusal(&error) {
                Some(why) => {
                    tracing::warn!(
                        %addon, object = %object, error = said(&error),
                        "the hub refuses a write; it is tried again, and the others go on"
                    );
                    let refused = WriteRefused { addon: addon.clone(), object, why };
                    self.send([WatchEvent::WriteRefused(refused)]).await;
                    WriteResult::Refused
                }
                None => WriteResult::Failed(error),
            },
            (outcome, _) => outcome,
        }
    }

    /// Makes writes concurrently, as many at once as the hub takes. Returns whether all were made.
    async fn all<'a, T: Sync>(
        &'a self,
        writes: Vec<&'a T>,
        make: impl Fn(&'a T) -> BoxFuture<'a, WriteResult> + Send,
        tally: &mut Tally,
    ) -> bool {
        let mut waiting = writes.into_iter();
        let mut running = FuturesUnordered::new();
        let mut whole = true;
        loop {
            if waiting.len() > 0 && (self.over.load(Ordering::Relaxed) || tally.hub_is_away()) {
                tracing::warn!(left = waiting.len(), "the rest of the writes is left for a later pass");
                tally.failed += waiting.len();
                waiting = Vec::new().into_iter();
                whole = false;
            }
            let outcome = tokio::select! {
                biased;
                Some(outcome) = running.next(), if !running.is_empty() => outcome,
                Some(slot) = self.limit.slot(), if waiting.len() > 0 => {
                    if let Some(write) = waiting.next() {
                        running.push(self.timed(make(write), slot));
                    }
                    continue;
                }
                else => break,
            };
            whole &= self.note(outcome, tally).await;
        }
        whole
    }

    async fn timed(&self, write: BoxFuture<'_, WriteResult>, slot: OwnedSemaphorePermit) -> WriteResult {
        let started = Instant::now();
        let outcome = AssertUnwindSafe(write).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|panic| WriteResult::Panicked(Panic::of(&*panic)));
        self.limit.give_back(slot, started.elapsed(), outcome.is_overload());
        outcome
    }

    /// Counts an outcome and sends what was written to the stores. Returns whether it was written.
    async fn note(&self, outcome: WriteResult, tally: &mut Tally) -> bool {
        let unanswered = if outcome.is_unanswered() { tally.unanswered + 1 } else { 0 };
        let is_first = std::mem::replace(&mut tally.unanswered, unanswered) == 0;
        match outcome {
            WriteResult::Written(events) => {
                tally.written += 1;
                self.send(events).await;
                return true;
            }
            WriteResult::Conflict => tally.conflicts += 1,
            WriteResult::Failed(error) => {
                // While the hub is away, all writes fail for the same reason.
                if is_first {
                    tracing::warn!(error = said(&error), "a write failed and is retried");
                }
                tally.failed += 1;
                tally.blocked |= refusal(&error).is_some();
            }
            WriteResult::Refused => tally.refused += 1,
            WriteResult::Panicked(panic) => {
                tracing::error!(%panic, "a write panicked and is retried");
                tally.failed += 1;
                tally.panicked = true;
            }
        }
        false
    }

    async fn send(&self, events: impl IntoIterator<Item = WatchEvent>) {
        for event in events {
            // The receiver is gone only when the manager stops.
            let _ = self.stores.send(event).await;
        }
    }
}

/// The object of a write that concerns one cluster or one config: if the hub refuses it, the rest
/// goes on.
fn refusable(write: &Write) -> Option<RefusedObject> {
    match write {
        Write::Create(create) => Some(RefusedObject::NewInstance(create.cluster.clone())),
        Write::Delete(delete) => Some(RefusedObject::Instance(delete.cluster.clone())),
        Write::Instance(write) => Some(RefusedObject::Status(write.cluster.clone())),
        Write::Guard(write) if write.only_annotates() => {
            Some(RefusedObject::Annotations(write.cluster.clone()))
        }
        Write::Guard(write) => Some(RefusedObject::Status(write.cluster.clone())),
        Write::Work(write) => Some(RefusedObject::Work(write.cluster.clone(), write.told().id())),
        Write::Offer(offer) => Some(RefusedObject::Offer(offer.config.clone())),
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The hub's error message without its envelope.
pub(crate) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} ({})", status.message, status.code),
        error => error.to_string(),
    }
}
