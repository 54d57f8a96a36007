//! How long this process may write: the leader's own view of its lease, by its monotonic clock.
//!
//! Owns the deadline. All writes check it, so writing stops in time even while a renewal hangs.
//! Safety between two leaders comes from the term, not from this (decision 8).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::service_fn;

/// Shared by the candidate, which sets it, and all writers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tenure(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<LeaseState>,
    raised: Notify,
    /// The add-ons that the leader skips, for the Lease.
    skipped: Mutex<Option<String>>,
}

#[derive(Clone, Copy, Debug, Default)]
enum LeaseState {
    #[default]
    NotHeld,
    Held {
        /// When the last successful renewal began.
        renewed: Instant,
        deadline: Instant,
        /// The next term must be above this one.
        floor: u64,
    },
    /// Without leader election.
    Unlimited,
}

/// The error of a write that comes too late.
#[derive(Debug, thiserror::Error)]
#[error("this manager does not hold the lease any more, so it writes nothing")]
struct Over;

impl Tenure {
    pub(crate) fn unlimited() -> Self {
        let tenure = Self::default();
        *tenure.state() = LeaseState::Unlimited;
        tenure
    }

    fn state(&self) -> MutexGuard<'_, LeaseState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease was renewed by a request sent at `began`: the hub counts from then or later.
    pub(crate) fn renew(&self, began: Instant, duration: Duration) {
        let mut state = self.state();
        let floor = if let LeaseState::Held { floor, .. } = *state { floor } else { 0 };
        *state = LeaseState::Held { renewed: began, deadline: began + duration, floor };
    }

    pub(crate) fn end(&self) {
        *self.state() = LeaseState::NotHeld;
    }

    /// How much of the lease is left; `None` if it is not held.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        match *self.state() {
            LeaseState::NotHeld => None,
            LeaseState::Held { deadline, .. } => Some(deadline.saturating_duration_since(Instant::now())),
            LeaseState::Unlimited => Some(Duration::MAX),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.time_left().is_none_or(|left| left.is_zero())
    }

    /// Whether the hub has confirmed the lease since `moment`.
    pub(crate) fn confirmed_since(&self, moment: Instant) -> bool {
        match *self.state() {
            LeaseState::NotHeld => false,
            LeaseState::Held { renewed, deadline, .. } => renewed > moment && Instant::now() < deadline,
            LeaseState::Unlimited => true,
        }
    }

    /// Requests a term above `floor`. It arrives as a change of leadership.
    pub(crate) fn raise_above(&self, floor: u64) {
        if let LeaseState::Held { floor: old, .. } = &mut *self.state() {
            *old = floor.max(*old);
        }
        self.0.raised.notify_one();
    }

    pub(crate) fn floor(&self) -> u64 {
        if let LeaseState::Held { floor, .. } = *self.state() { floor } else { 0 }
    }

    /// Has the next renewal record these add-ons as skipped.
    pub(crate) fn note_skipped(&self, skipped: Option<String>) {
        *self.0.skipped.lock().unwrap_or_else(PoisonError::into_inner) = skipped;
    }

    pub(crate) fn skipped(&self) -> Option<String> {
        self.0.skipped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Completes when a higher term was requested.
    pub(crate) async fn raised(&self) {
        self.0.raised.notified().await;
    }

    /// Wraps a client so that it writes nothing once the lease has expired.
    pub(crate) fn guard(&self, inner: Client) -> Client {
        let (tenure, namespace) = (self.clone(), inner.default_namespace().to_owned());
        let service = service_fn(move |request: Request<Body>| {
            let (tenure, inner) = (tenure.clone(), inner.clone());
            async move {
                if request.method() != Method::GET && tenure.is_over() {
                    return Err(Box::<dyn std::error::Error + Send + Sync>::from(Over));
                }
                let answer: Response<Body> = inner.send(request).await?;
                Ok(answer)
            }
        });
        Client::new(service, namespace)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, PostParams};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_after_the_deadline() {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let hub = service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, kube::Error>(Response::new(Body::from(br#"{"metadata": {}}"#.to_vec()))) }
        });
        let tenure = Tenure::default();
        let api: Api<ConfigMap> = Api::namespaced(tenure.guard(Client::new(hub, "default")), "default");
        let write = || async { api.create(&PostParams::default(), &ConfigMap::default()).await };
        assert!(
            write().await.unwrap_err().to_string().contains("does not hold the lease"),
            "it never held one"
        );
        tenure.renew(Instant::now(), Duration::from_secs(10));
        tokio::time::advance(Duration::from_millis(9999)).await;
        assert!(write().await.is_ok());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(write().await.is_err());
        assert!(api.get("any").await.is_ok(), "reading goes on");
        assert_eq!(sent.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_attempt_that_began_later_confirms_the_lease() {
        let tenure = Tenure::default();
        let began = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        let seen = Instant::now();
        tenure.renew(began, Duration::from_secs(10));
        assert!(!tenure.confirmed_since(seen));
        tokio::time::advance(Duration::from_secs(1)).await;
        tenure.renew(Instant::now(), Duration::from_secs(10));
        assert!(tenure.confirmed_since(seen));
        tenure.end();
        assert!(!tenure.confirmed_since(seen));
    }
}
