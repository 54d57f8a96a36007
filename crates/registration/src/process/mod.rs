//! The process: watches the hub, asks the pure core, and executes.
//!
//! Owns timing and concurrency, and no policy. Every write is conditional on what was seen, so two
//! leaders cannot harm each other; a successor continues after any crash, because everything is
//! decided from what is on the hub.

mod events;
mod instances;
mod requests;
mod watches;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aviary_controller::{Clock, Election, WorkQueue, while_elected};
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::decide::{ApprovalPolicy, RequestDecision};
use crate::names::AgentKey;
use crate::refusal::RequestRefusal;
use crate::request::SigningRequest;
use crate::state::{RegistrationState, StateChange, Want, WatchedKind};
use events::EventPublisher;
use instances::{InstanceJob, execute_instance};
use requests::{Answered, CsrAction, execute_request};

/// The name of the Lease that these processes share.
pub const LEASE: &str = "aviary-registration";
/// Changes of one instance are gathered for this long.
const QUIET: Duration = Duration::from_millis(50);
/// How many instances and requests are written for at once.
const MOST_AT_ONCE: usize = 8;
/// How many changes may wait.
const CHANGES_WAITING: usize = 1024;
/// How often approvals that no longer count are forgotten, and forgotten requests are looked for.
const HOUSEKEEPING: Duration = Duration::from_secs(30);

/// What the process needs.
#[derive(Clone)]
pub struct RegistrationSettings {
    pub policy: ApprovalPolicy,
    /// Unique to the process.
    pub identity: String,
    /// `None` without leader election.
    pub lease: Option<Duration>,
    pub clock: Clock,
}

impl fmt::Debug for RegistrationSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, identity, lease, clock: _ } = self;
        f.debug_struct("Settings")
            .field("policy", policy)
            .field("identity", identity)
            .field("lease", lease)
            .finish_non_exhaustive()
    }
}

/// Runs until `stop` completes; then finishes its writes and hands over. `ready` tells whether
/// everything has been listed.
pub async fn run(
    client: Client,
    settings: RegistrationSettings,
    ready: watch::Sender<bool>,
    stop: impl Future<Output = ()>,
) {
    let election = Election {
        namespace: settings.policy.namespace.clone(),
        lease: LEASE.to_owned(),
        identity: settings.identity.clone(),
        duration: settings.lease,
        clock: Arc::clone(&settings.clock),
    };
    while_elected(client, election, |client, leading| {
        RegistrationLoop::new(client, settings, ready).run(leading, stop)
    })
    .await;
}

/// What a task has done.
#[derive(Debug)]
enum FinishedTask {
    Instance { key: AgentKey, failed: bool },
    Request(Answered),
    Event,
}

struct RegistrationLoop {
    client: Client,
    settings: RegistrationSettings,
    state: RegistrationState,
    sender: mpsc::Sender<(WatchedKind, StateChange)>,
    changes: mpsc::Receiver<(WatchedKind, StateChange)>,
    watches: JoinSet<()>,
    request_watch: Option<AbortHandle>,
    tasks: JoinSet<FinishedTask>,
    queue: WorkQueue<AgentKey>,
    /// Requests that are being written.
    busy: BTreeSet<String>,
    /// Requests that changed while they were being written.
    missed: BTreeSet<String>,
    /// Requests that could not be written, and are tried again later.
    failed: BTreeSet<String>,
    bindable: instances::Bindable,
    events: EventPublisher,
    leads: bool,
    ready: watch::Sender<bool>,
}

impl RegistrationLoop {
    fn new(client: Client, settings: RegistrationSettings, ready: watch::Sender<bool>) -> Self {
        let (sender, changes) = mpsc::channel(CHANGES_WAITING);
        Self {
            state: RegistrationState::new(settings.policy.clone()),
            events: EventPublisher::new(client.clone(), &settings.identity, Arc::clone(&settings.clock)),
            bindable: instances::Bindable::new(client.clone()),
            client,
            settings,
            sender,
            changes,
            watches: JoinSet::new(),
            request_watch: None,
            tasks: JoinSet::new(),
            queue: WorkQueue::default(),
            busy: BTreeSet::new(),
            missed: BTreeSet::new(),
            failed: BTreeSet::new(),
            leads: false,
            ready,
        }
    }

    async fn run(mut self, mut leading: watch::Receiver<bool>, stop: impl Future<Output = ()>) {
        for kind in self.state.needs() {
            self.watch(kind);
        }
        let mut stop = std::pin::pin!(stop);
        let mut housekeeping = Instant::now() + HOUSEKEEPING;
        self.lead(*leading.borrow_and_update());
        loop {
            let can_start = self.tasks.len() < MOST_AT_ONCE;
            let due = if self.leads && can_start { self.queue.next(|_| true) } else { None };
            let next = due.unwrap_or(housekeeping).min(housekeeping);
            tokio::select! {
                biased;
                () = &mut stop => break,
                Ok(()) = leading.changed() => {
                    let leads = *leading.borrow_and_update();
                    self.lead(leads);
                }
                Some(done) = self.tasks.join_next() => self.finish(done),
                Some((kind, change)) = self.changes.recv() => self.take(kind, change),
                () = sleep_until(next) => {}
            }
            if housekeeping <= Instant::now() {
                housekeeping = Instant::now() + HOUSEKEEPING;
                self.keep_house();
            }
            self.start_work();
        }
        self.watches.shutdown().await;
        while self.tasks.join_next().await.is_some() {}
    }

    fn watch(&mut self, kind: WatchedKind) {
        let (client, namespace) = (self.client.clone(), self.settings.policy.namespace.clone());
        let handle = self.watches.spawn(watches::follow(client, namespace, kind, self.sender.clone()));
        if kind == WatchedKind::Request {
            self.request_watch = Some(handle);
        }
    }

    fn lead(&mut self, leads: bool) {
        if leads && !self.leads {
            tracing::info!("this process leads");
            self.state.mark_all();
        } else if !leads && self.leads {
            tracing::info!("this process no longer leads");
        }
        self.leads = leads;
    }

    /// Takes in all waiting changes.
    fn take(&mut self, kind: WatchedKind, change: StateChange) {
        let now = (self.settings.clock)();
        self.state.take(kind, change, now);
        while let Ok((kind, change)) = self.changes.try_recv() {
            self.state.take(kind, change, now);
        }
        let is_complete = self.state.is_complete();
        self.ready.send_if_modified(|ready| std::mem::replace(ready, is_complete) != is_complete);
    }

    fn keep_house(&mut self) {
        let now = (self.settings.clock)();
        self.state.backlog.prune(now);
        self.state.backlog.reconsider_told(RequestRefusal::TooMany { approved: 0 }.code());
        for name in std::mem::take(&mut self.failed) {
            self.state.backlog.wait(&name);
        }
        let forgotten = self.state.backlog.forgotten();
        if self.state.backlog.should_list_again() {
            tracing::warn!(forgotten, "too many requests at once: reading the list again");
            if let Some(watch) = self.request_watch.take() {
                watch.abort();
            }
            self.watch(WatchedKind::Request);
        }
        self.events.refill();
    }

    fn start_work(&mut self) {
        for key in self.state.take_dirty() {
            self.queue.soon(key, QUIET);
        }
        if !self.leads || !self.state.is_complete() {
            return;
        }
        // Requests first: an agent waits for each, and instances are many.
        while self.tasks.len() < MOST_AT_ONCE {
            let Some(request) = self.state.backlog.take_next() else { break };
            self.answer(request);
        }
        if self.tasks.len() >= MOST_AT_ONCE {
            return;
        }
        for key in self.queue.take_ready(|_| true) {
            if self.tasks.len() < MOST_AT_ONCE {
                self.reconcile(key);
            } else {
                self.queue.soon(key, Duration::ZERO);
            }
        }
    }

    fn answer(&mut self, request: SigningRequest) {
        if self.busy.contains(&request.name) {
            self.missed.insert(request.name);
            return;
        }
        let now = (self.settings.clock)();
        let answer = match self.state.decide(&request, now) {
            RequestDecision::Ignore(_) => return,
            RequestDecision::Refuse(refusal) => {
                if self.state.backlog.tell(&request.name, refusal.code()) {
                    self.events.refused(&request, &refusal, &mut self.tasks);
                }
                return;
            }
            RequestDecision::Approve => {
                self.state.backlog.approved(&request, now, now);
                CsrAction::Approve
            }
            RequestDecision::Sign { ca, asked } => CsrAction::Sign { ca, asked },
        };
        self.busy.insert(request.name.clone());
        let (client, clock) = (self.client.clone(), Arc::clone(&self.settings.clock));
        self.tasks.spawn(async move {
            FinishedTask::Request(execute_request(client, request, answer, clock()).await)
        });
    }

    fn reconcile(&mut self, key: AgentKey) {
        let want = self.state.want(&key);
        if want == Want::NotOurs {
            return;
        }
        let Some(job) = InstanceJob::new(&self.state, &key, want) else { return };
        self.queue.begin(key.clone());
        let (client, clock, bindable) =
            (self.client.clone(), Arc::clone(&self.settings.clock), self.bindable.clone());
        self.tasks.spawn(async move {
            let failed = execute_instance(client, job, bindable, clock()).await;
            FinishedTask::Instance { key, failed }
        });
    }

    fn finish(&mut self, done: Result<FinishedTask, tokio::task::JoinError>) {
        match done {
            Ok(FinishedTask::Instance { key, failed }) => {
                self.queue.end(&key);
                if failed {
                    self.queue.put_off(&key);
                } else {
                    self.queue.succeeded(&key);
                }
            }
            Ok(FinishedTask::Request(answered)) => {
                let name = answered.name;
                self.busy.remove(&name);
                if self.missed.remove(&name) {
                    self.state.backlog.wait(&name);
                }
                if let Some((request, reason, note)) = answered.event {
                    if self.state.backlog.tell(&name, reason) {
                        self.events.publish(&request, reason, &note, &mut self.tasks);
                    }
                    self.failed.insert(name);
                }
            }
            Ok(FinishedTask::Event) => {}
            Err(error) => tracing::error!(%error, "a task failed"),
        }
    }
}
