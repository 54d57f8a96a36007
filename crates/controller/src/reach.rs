//! Whether a hub answers, and since when it does not.
//!
//! A watch that is cut off is routine, and a watch on a dead connection is silent, so neither
//! tells. Owns one small request to the hub that is repeated, the state that follows from it, and
//! how watches wait for a hub that is away. It logs nothing: whoever shows the state decides how to
//! report it.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

/// How often the hub is asked while everything is well.
const BETWEEN: Duration = Duration::from_secs(10);
/// A hub that has not answered by then counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pauses between questions to a hub that is away.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const MOST_CAUSES: usize = 16;
/// The longest cause that is kept, in characters.
const LONGEST_CAUSE: usize = 300;

/// The hub does not answer. What is known of it is stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the first question was asked that got no answer.
    pub since: Timestamp,
    /// Why the last question got no answer.
    pub cause: String,
}

/// Whether a hub answers. Clones share the state.
#[derive(Clone, Debug)]
pub struct Reach(Arc<ReachState>);

#[derive(Debug)]
struct ReachState {
    outage: watch::Sender<Option<Outage>>,
    doubt: Notify,
}

impl Default for Reach {
    fn default() -> Self {
        Self(Arc::new(ReachState { outage: watch::Sender::new(None), doubt: Notify::new() }))
    }
}

impl Reach {
    /// The current outage. `None` while the hub answers.
    pub fn outage(&self) -> Option<Outage> {
        self.0.outage.borrow().clone()
    }

    /// Follows the outage: it begins, its cause changes, it ends.
    pub fn subscribe(&self) -> watch::Receiver<Option<Outage>> {
        self.0.outage.subscribe()
    }

    /// Something failed: asks the hub now.
    pub fn doubt(&self) {
        self.0.doubt.notify_one();
    }

    /// Asks the hub again and again. Runs until it is dropped.
    pub async fn keep_asking(self, client: Client) {
        loop {
            tokio::select! {
                () = self.0.doubt.notified() => {}
                () = sleep(BETWEEN) => {}
            }
            let begun = Timestamp::now();
            if ask(&client).await.is_ok() {
                continue;
            }
            // A server that is replaced behind a load balancer refuses a connection or two.
            let mut pause = FIRST_PAUSE;
            loop {
                sleep(pause).await;
                let Err(cause) = ask(&client).await else { break };
                self.set(Some(Outage { since: begun, cause }));
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            self.set(None);
        }
    }

    fn set(&self, outage: Option<Outage>) {
        self.0.outage.send_if_modified(|known| {
            let changed = *known != outage;
            *known = outage;
            changed
        });
    }

    /// Waits before something is tried again: this long, or until an outage is over. Returns
    /// whether one is.
    pub async fn rest(&self, pause: Duration) -> bool {
        self.doubt();
        tokio::select! {
            () = sleep(pause) => false,
            () = self.outage_over() => true,
        }
    }

    /// Waits until an outage is over: the current one, or the next one.
    pub async fn outage_over(&self) {
        let mut outage = self.subscribe();
        // The channel cannot close: this holds its sender.
        let _ = outage.wait_for(Option::is_some).await;
        let _ = outage.wait_for(Option::is_none).await;
    }
}

/// Asks for the version of the hub, which everyone may read. Whatever the hub itself answers will
/// do.
async fn ask(client: &Client) -> Result<(), String> {
    let request = Request::get("/version").body(Body::empty()).map_err(|error| error.to_string())?;
    let cause = match timeout(PATIENCE, client.send(request)).await {
        Ok(Ok(answer)) if answer.status().is_server_error() => format!("the hub answers {}", answer.status()),
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => innermost(&error),
        Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
    };
    Err(cause.chars().take(LONGEST_CAUSE).collect())
}

/// The cause that says most to a user, such as "Connection refused".
fn innermost(error: &kube::Error) -> String {
    let first: &dyn std::error::Error = error;
    let chain = std::iter::successors(Some(first), |error| error.source());
    // Bounded, because an error may name itself as its source.
    chain.take(MOST_CAUSES).last().unwrap_or(first).to_string()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU16, Ordering};

    use http::{Response, StatusCode};
    use tower::service_fn;

    use super::*;

    /// A hub that answers everything with a status, which can be changed.
    fn hub(status: &Arc<AtomicU16>) -> Client {
        let status = Arc::clone(status);
        let service = service_fn(move |_: Request<Body>| {
            let code = StatusCode::from_u16(status.load(Ordering::Relaxed)).unwrap();
            async move {
                let mut answer = Response::new(Body::from(b"{}".to_vec()));
                *answer.status_mut() = code;
                Ok::<_, Infallible>(answer)
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_has_a_beginning_and_an_end() {
        let status = Arc::new(AtomicU16::new(200));
        let (reach, before) = (Reach::default(), Timestamp::now());
        let mut seen = reach.subscribe();
        let asking = tokio::spawn(reach.clone().keep_asking(hub(&status)));
        assert!(timeout(10 * BETWEEN, seen.changed()).await.is_err(), "all is well");

        status.store(503, Ordering::Relaxed);
        timeout(10 * BETWEEN, seen.changed()).await.unwrap().unwrap();
        let outage = reach.outage().unwrap();
        assert!(outage.since >= before && outage.since <= Timestamp::now(), "{outage:?}");
        assert!(outage.cause.contains("503"), "{outage:?}");
        assert!(timeout(100 * LONGEST_PAUSE, seen.changed()).await.is_err(), "it is reported once");

        status.store(200, Ordering::Relaxed);
        timeout(10 * BETWEEN, seen.changed()).await.unwrap().unwrap();
        assert_eq!(reach.outage(), None);
        asking.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_an_answer_and_one_failure_is_no_outage() {
        let status = Arc::new(AtomicU16::new(401));
        let reach = Reach::default();
        let mut seen = reach.subscribe();
        let asking = tokio::spawn(reach.clone().keep_asking(hub(&status)));
        assert!(timeout(3 * BETWEEN, seen.changed()).await.is_err());
        status.store(503, Ordering::Relaxed);
        reach.doubt();
        // The first question has failed; the second comes after the first pause.
        sleep(FIRST_PAUSE / 2).await;
        status.store(200, Ordering::Relaxed);
        assert!(timeout(3 * BETWEEN, seen.changed()).await.is_err());
        asking.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_the_hub_goes_on_when_it_is_back() {
        let status = Arc::new(AtomicU16::new(503));
        let reach = Reach::default();
        let asking = tokio::spawn(reach.clone().keep_asking(hub(&status)));
        let waits = tokio::spawn({
            let reach = reach.clone();
            async move { (reach.rest(1000 * LONGEST_PAUSE).await, tokio::time::Instant::now()) }
        });
        timeout(10 * BETWEEN, reach.subscribe().wait_for(Option::is_some)).await.unwrap().unwrap();
        let back = tokio::time::Instant::now();
        status.store(200, Ordering::Relaxed);
        let (over, at) = waits.await.unwrap();
        assert!(over && at - back <= LONGEST_PAUSE, "it waits for the hub, not for its own pause");
        asking.abort();
    }
}
