//! The manager: install, configuration, rollout and rendering on any Kubernetes API server.
//!
//! Everything that is decided is decided by `aviary-engine`. This crate sees (`watches`, `seen`, `stores`), asks it (`manager`), and writes what
//! it says (`execute`), one writer per object and every write on a condition.

mod depth;
mod events;
mod execute;
mod kinds;
mod leader;
mod look;
mod manager;
mod metrics;
mod pace;
mod placement;
mod requests;
mod revisions;
mod seen;
mod stores;
mod verify;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use aviary_engine::observed::Options;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{oneshot, watch};

pub use look::{Follower, Kept, LookError, Scope, View};
pub use manager::Health;
pub use metrics::Metrics;
pub use requests::{CountRequests, Counted};

use execute::UNFENCED;
use leader::{Candidate, Leadership};
use manager::{Loop, Tell};

/// Tells the time. The manager asks nobody else.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The name of the Lease that managers share.
const LEASE: &str = "aviary-manager";

/// How a manager runs.
#[derive(Clone)]
pub struct Settings {
    /// Where revisions and the lease are kept.
    pub namespace: String,
    /// Different for every process.
    pub identity: String,
    /// Whether others may run beside this one.
    pub leader_elect: bool,
    /// Checks every plan against the promises before it is carried out.
    pub verify: bool,
    /// Decides placements too, on a hub that has no placement controller.
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
    health: watch::Sender<Health>,
    metrics: Metrics,
    lease: Duration,
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
            health: watch::Sender::new(Health::default()),
            metrics: Metrics::default(),
            lease: leader::DURATION,
        }
    }

    /// Takes a leader for gone that was silent for so long, in whole seconds. The shorter, the sooner another takes over, and the sooner a slow
    /// hub makes them change for nothing.
    #[must_use]
    pub fn with_lease(mut self, duration: Duration) -> Self {
        self.lease = duration.max(Duration::from_secs(1));
        self
    }

    /// Notes what it does in `metrics`.
    #[must_use]
    pub fn told_to(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// How it is, from now on.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// Runs until `stop` completes; then finishes what is under way and hands over.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { client, settings, health, metrics, lease } = self;
        let client = depth::shallow(client);
        let tell = Tell { health, metrics };
        let (candidacy, leadership) = watch::channel(Leadership::Waiting);
        if !settings.leader_elect {
            // Nobody else is there to be told apart from.
            candidacy.send_replace(Leadership::Leading(UNFENCED));
            return work(client, settings, tell, leadership, stop).await;
        }
        let candidate = Candidate {
            client: client.clone(),
            namespace: settings.namespace.clone(),
            name: LEASE.into(),
            identity: settings.identity.clone(),
            clock: Arc::clone(&settings.clock),
            duration: lease,
        };
        tokio::select! {
            biased;
            () = work(client, settings, tell, leadership, stop) => {}
            () = candidate.run(&candidacy) => {}
        }
        candidate.hand_over().await;
    }
}

/// The loops of a manager, until `stop` completes.
async fn work(
    client: Client,
    settings: Settings,
    tell: Tell,
    leadership: watch::Receiver<Leadership>,
    stop: impl Future<Output = ()> + Send,
) {
    let (running, stopped) = oneshot::channel::<()>();
    let placement = settings.placement.then(|| {
        let (client, leadership, clock) = (client.clone(), leadership.clone(), Arc::clone(&settings.clock));
        tokio::spawn(placement::run(client, leadership, clock, async { drop(stopped.await) }))
    });
    Loop::new(client, settings, tell).run(leadership, stop).await;
    drop(running);
    if let Some(Err(error)) = async { Some(placement?.await) }.await {
        tracing::error!(%error, "the placement controller did not end well");
    }
}
