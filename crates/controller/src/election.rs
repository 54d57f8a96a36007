//! Leader election for a process that is not the manager.
//!
//! The same Lease protocol and the same guard of writes. Such a process does not number its terms
//! on objects: each of its writes must be safe if two leaders send it.

use std::fmt;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;

use crate::Clock;
use crate::depth;
use crate::leader::{Candidate, Leadership};
use crate::tenure::Tenure;

/// Which Lease to hold.
#[derive(Clone)]
pub struct Election {
    pub namespace: String,
    pub lease: String,
    /// Unique to the process.
    pub identity: String,
    /// `None` without leader election.
    pub duration: Option<Duration>,
    pub clock: Clock,
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, lease, identity, duration, clock: _ } = self;
        f.debug_struct("Election")
            .field("namespace", namespace)
            .field("lease", lease)
            .field("identity", identity)
            .field("duration", duration)
            .finish_non_exhaustive()
    }
}

/// Runs `work` until it completes, with a client whose writes fail while the Lease is not held, and
/// with news about whether it is held. Then hands over.
pub async fn while_elected<F: Future<Output = ()>>(
    client: Client,
    election: Election,
    work: impl FnOnce(Client, watch::Receiver<bool>) -> F,
) {
    let client = depth::shallow(client);
    let (leads, is_leading) = watch::channel(false);
    let Some(duration) = election.duration else {
        leads.send_replace(true);
        return work(client, is_leading).await;
    };
    let (candidacy, mut leadership) = watch::channel(Leadership::Waiting);
    let tenure = Tenure::default();
    let candidate = Candidate {
        client: client.clone(),
        namespace: election.namespace,
        name: election.lease,
        identity: election.identity,
        clock: election.clock,
        duration: duration.max(Duration::from_secs(1)),
        tenure: tenure.clone(),
        rival_in: None,
    };
    let tell = async {
        while leadership.changed().await.is_ok() {
            leads.send_replace(matches!(*leadership.borrow_and_update(), Leadership::Leading(_)));
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = work(tenure.guard(client), is_leading) => {}
        () = candidate.run(&candidacy) => {}
        () = tell => {}
    }
    candidate.hand_over().await;
}
