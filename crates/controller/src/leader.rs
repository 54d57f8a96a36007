//! Leader election on a Lease: of several managers one works, the others wait.
//!
//! Owns the Lease. It keeps managers out of each other's way and is not what makes them safe: that is the term, which every wave is started
//! under. Times are measured by this process alone, from when it saw the Lease change, so clocks need not agree.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::execute::said;

/// How long a leader may be silent, unless it is told otherwise.
pub(crate) const DURATION: Duration = Duration::from_secs(15);

/// Who leads, in which term: a number that rises whenever the leader changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leadership {
    Waiting,
    Leading(Term),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) number: u64,
    /// The leader before has said that it is done. One that fell silent may still be about to write.
    pub(crate) handed_over: bool,
}

/// A candidate.
pub(crate) struct Candidate {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Different for every process.
    pub(crate) identity: String,
    pub(crate) clock: crate::Clock,
    /// How long a leader may be silent.
    pub(crate) duration: Duration,
}

/// What was last seen of the Lease, and when.
struct Sighting {
    lease: Lease,
    at: Instant,
}

impl Candidate {
    /// A leader that could not renew for so long stops by itself, before anybody else starts.
    fn gives_up_after(&self) -> Duration {
        self.duration * 2 / 3
    }

    fn tries_every(&self) -> Duration {
        self.duration * 2 / 15
    }

    /// Runs for leadership until the sender has no listeners; tells every change.
    pub(crate) async fn run(&self, leadership: &watch::Sender<Leadership>) {
        let mut seen: Option<Sighting> = None;
        let mut term: Option<Term> = None;
        let mut renewed = Instant::now();
        while !leadership.is_closed() {
            match timeout(self.gives_up_after(), self.attempt(&mut seen)).await {
                Ok(Ok(Some(won))) => {
                    renewed = Instant::now();
                    // A renewal says nothing of how the term began.
                    let won = term.filter(|term| term.number == won.number).unwrap_or(won);
                    term = Some(won);
                    set(leadership, Leadership::Leading(won));
                }
                Ok(Ok(None)) => set(leadership, Leadership::Waiting),
                Ok(Err(error)) => {
                    tracing::warn!(error = said(&error), "the lease could not be read or written");
                }
                Err(_) => tracing::warn!("the lease was not answered for in time"),
            }
            if renewed.elapsed() > self.gives_up_after() {
                set(leadership, Leadership::Waiting);
            }
            tokio::select! {
                biased;
                () = sleep(self.tries_every()) => {}
                () = leadership.closed() => {}
            }
        }
    }

    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// One try: the term, if we lead.
    async fn attempt(&self, seen: &mut Option<Sighting>) -> Result<Option<Term>, kube::Error> {
        let Some(lease) = self.api().get_opt(&self.name).await? else {
            return match self.api().create(&PostParams::default(), &self.lease(None, 0)).await {
                Ok(made) => {
                    *seen = Some(Sighting { lease: made, at: Instant::now() });
                    Ok(Some(Term { number: 1, handed_over: true }))
                }
                Err(error) => lost(error),
            };
        };
        let changed = seen
            .as_ref()
            .is_none_or(|seen| seen.lease.metadata.resource_version != lease.metadata.resource_version);
        if changed {
            *seen = Some(Sighting { lease: lease.clone(), at: Instant::now() });
        }
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        let transitions = spec.lease_transitions.unwrap_or(0);
        let silent_for = seen.as_ref().map(|seen| seen.at.elapsed()).unwrap_or_default();
        let given = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(self.duration, Duration::from_secs);
        let (transitions, handed_over) = match holder.as_str() {
            mine if mine == self.identity => (transitions, false),
            "" => (transitions.saturating_add(1), true),
            _ if silent_for > given => (transitions.saturating_add(1), false),
            _ => return Ok(None),
        };
        let wanted = self.lease(Some(&lease), transitions);
        match self.api().replace(&self.name, &PostParams::default(), &wanted).await {
            Ok(written) => {
                *seen = Some(Sighting { lease: written, at: Instant::now() });
                Ok(Some(Term { number: u64::try_from(transitions).unwrap_or(0) + 1, handed_over }))
            }
            Err(error) => lost(error),
        }
    }

    fn lease(&self, old: Option<&Lease>, transitions: i32) -> Lease {
        let now = micro_time((self.clock)());
        let mine = old
            .and_then(|old| old.spec.as_ref())
            .is_some_and(|spec| spec.holder_identity.as_deref() == Some(&self.identity));
        let acquired = old.and_then(|old| old.spec.as_ref()?.acquire_time.clone()).filter(|_| mine);
        let acquired = acquired.map_or_else(|| now.clone(), |time| json!(time));
        let spec = json!({
            "holderIdentity": self.identity, "leaseDurationSeconds": self.duration.as_secs().max(1), "leaseTransitions": transitions,
            "renewTime": now, "acquireTime": acquired,
        });
        let mut lease = old.cloned().unwrap_or_default();
        lease.metadata.name = Some(self.name.clone());
        lease.metadata.namespace = Some(self.namespace.clone());
        lease.spec = serde_json::from_value(spec).ok();
        lease
    }

    /// Lets the next one start at once. Where the hub does not answer it learns by itself.
    pub(crate) async fn hand_over(&self) {
        let _ = timeout(self.gives_up_after(), self.release()).await;
    }

    async fn release(&self) {
        let Ok(Some(mut lease)) = self.api().get_opt(&self.name).await else { return };
        let Some(spec) =
            lease.spec.as_mut().filter(|spec| spec.holder_identity.as_deref() == Some(&self.identity))
        else {
            return;
        };
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        if let Err(error) = self.api().replace(&self.name, &PostParams::default(), &lease).await {
            tracing::debug!(error = said(&error), "the lease was not handed over; it will expire");
        }
    }
}

/// Somebody else was faster.
fn lost(error: kube::Error) -> Result<Option<Term>, kube::Error> {
    match error {
        kube::Error::Api(status) if status.code == 409 => Ok(None),
        error => Err(error),
    }
}

/// As Kubernetes writes a MicroTime.
fn micro_time(now: Timestamp) -> serde_json::Value {
    json!(format!("{now:.6}"))
}

fn set(leadership: &watch::Sender<Leadership>, new: Leadership) {
    leadership.send_if_modified(|old| {
        let changed = *old != new;
        *old = new;
        changed
    });
}
