//! The manager: install, configuration, rollout and rendering on any Kubernetes API server.
//!
//! All decisions are made by `aviary-engine`. This crate observes (`watches`, `seen`, `stores`),
//! plans (`manager`) and writes (`execute`): one writer per object, and every write is conditional.

mod bounds;
mod depth;
mod election;
mod events;
mod execute;
mod kinds;
mod leader;
mod look;
mod manager;
mod metrics;
mod namespaces;
mod pages;
mod panics;
mod placement;
mod progress;
mod queue;
mod reach;
mod requests;
mod revisions;
mod rival;
mod schemas;
mod seen;
mod skipped;
mod stores;
mod tenure;
mod verify;
mod watches;
mod write_limit;

use std::sync::Arc;
use std::time::Duration;

use aviary_engine::observed::Options;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{oneshot, watch};

pub use bounds::{AnswerTooLong, BoundAnswers, Bounded, BoundedService};
pub use election::{Election, while_elected};
pub use events::EventDraft;
pub use look::{CompletedRevision, Follower, LookError, Scope, View};
pub use manager::ManagerHealth;
pub use metrics::Metrics;
pub use pages::in_pages;
pub use queue::WorkQueue;
pub use reach::{Outage, Reach};
pub use requests::{CountRequests, Counted};
pub use revisions::{StoredRevision, stored_template};
pub use rival::{OCM_LEASE, OCM_NAMESPACE, Rival, rival};
pub use skipped::{Skipped, why_skipped};

use execute::UNFENCED;
use leader::{Candidate, Leadership};
use manager::{Loop, Reporting};
use tenure::Tenure;

/// The only source of time of a manager.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The name of the Lease that managers share.
pub const LEASE: &str = "aviary-manager";

#[derive(Clone)]
pub struct Settings {
    /// Where revisions and the lease are kept.
    pub namespace: String,
    /// Unique to the process.
    pub identity: String,
    /// Whether other replicas may run.
    pub leader_elect: bool,
    /// Checks every plan against the invariants before it is executed.
    pub verify: bool,
    /// Also decides placements, for a hub without a placement controller.
    pub placement: bool,
    pub options: Options,
    pub clock: Clock,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { namespace, identity, leader_elect, verify, placement, options, clock: _ } = self;
        f.debug_struct("Settings")
            .field("namespace", namespace)
            .field("identity", identity)
            .field("leader_elect", leader_elect)
            .field("verify", verify)
            .field("placement", placement)
            .field("options", options)
            .finish_non_exhaustive()
    }
}

/// A manager that is not running yet.
pub struct Manager {
    client: Client,
    settings: Settings,
    health: watch::Sender<ManagerHealth>,
    metrics: Metrics,
    lease: Duration,
    rival_in: Option<String>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Manager {
    pub fn new(client: Client, settings: Settings) -> Self {
        Self {
            client,
            settings,
            health: watch::Sender::new(ManagerHealth::default()),
            metrics: Metrics::default(),
            lease: leader::DURATION,
            rival_in: None,
        }
    }

    /// Lease duration, in whole seconds: how long a silent leader keeps the lease. A short one
    /// means fast failover, and needless failovers on a slow hub.
    #[must_use]
    pub fn with_lease(mut self, duration: Duration) -> Self {
        self.lease = duration.max(Duration::from_secs(1));
        self
    }

    /// Does not lead while the add-on manager of Open Cluster Management holds its Lease in this
    /// namespace. Needs leader election.
    #[must_use]
    pub fn beside_ocm(mut self, namespace: Option<String>) -> Self {
        self.rival_in = namespace;
        self
    }

    /// Reports to these metrics.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    pub fn health(&self) -> watch::Receiver<ManagerHealth> {
        self.health.subscribe()
    }

    /// Runs until `stop` completes; then finishes its writes and hands over.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { client, settings, health, metrics, lease, rival_in } = self;
        let client = depth::shallow(client);
        let reporting = Reporting { health, metrics };
        let (candidacy, leadership) = watch::channel(Leadership::Waiting);
        if !settings.leader_elect {
            candidacy.send_replace(Leadership::Leading(UNFENCED));
            return work(client, settings, reporting, (leadership, Tenure::unlimited()), stop).await;
        }
        let tenure = Tenure::default();
        let candidate = Candidate {
            client: client.clone(),
            namespace: settings.namespace.clone(),
            name: LEASE.into(),
            identity: settings.identity.clone(),
            clock: Arc::clone(&settings.clock),
            duration: lease,
            tenure: tenure.clone(),
            rival_in,
        };
        let client = tenure.guard(client);
        tokio::select! {
            biased;
            () = work(client, settings, reporting, (leadership, tenure), stop) => {}
            () = candidate.run(&candidacy) => {}
        }
        candidate.hand_over().await;
    }
}

/// The loops of a manager, until `stop` completes.
async fn work(
    client: Client,
    settings: Settings,
    reporting: Reporting,
    (leadership, tenure): (watch::Receiver<Leadership>, Tenure),
    stop: impl Future<Output = ()> + Send,
) {
    let (running, stopped) = oneshot::channel::<()>();
    let placement = settings.placement.then(|| {
        let (client, leadership, clock) = (client.clone(), leadership.clone(), Arc::clone(&settings.clock));
        tokio::spawn(placement::run(client, leadership, clock, async { drop(stopped.await) }))
    });
    Loop::new(client, settings, reporting, tenure).run(leadership, stop).await;
    drop(running);
    if let Some(Err(error)) = async { Some(placement?.await) }.await {
        tracing::error!(%error, "the placement controller failed");
    }
}
