//! Leader election on a Lease: one of several managers works, the others wait.
//!
//! Owns the Lease. It avoids conflicts between managers, but safety comes from the term under which
//! every wave is started. Times are measured by this process alone, from when it saw the Lease
//! change, so clocks need not agree.

use std::time::Duration;

use aviary_api::names::annotations;
use aviary_engine::name::Text;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::execute::said;
use crate::rival::{OCM_LEASE, rival};
use crate::tenure::Tenure;

/// The default of how long a silent leader keeps the lease.
pub(crate) const DURATION: Duration = Duration::from_secs(15);

/// How many times the own duration a silent leader may keep the lease at most, whatever the lease
/// says of itself: somebody may have edited it.
const MOST_DURATIONS: u32 = 10;

/// Who leads, in which term: a number that rises whenever the leader changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leadership {
    Waiting,
    Leading(Term),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) number: u64,
    /// The previous leader, if it handed over. One that fell silent may still be about to write.
    pub(crate) handed_over_by: Option<Text>,
    /// How many Leases this process has created. A new Lease tells nothing about earlier leaders.
    pub(crate) leases: u32,
}

pub(crate) struct Candidate {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Unique to the process.
    pub(crate) identity: String,
    pub(crate) clock: crate::Clock,
    /// How long a silent leader keeps the lease.
    pub(crate) duration: Duration,
    pub(crate) tenure: Tenure,
    /// Where the Lease of OCM's add-on manager is. While that manager runs, this one does not lead.
    pub(crate) rival_in: Option<String>,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("the lease could not be read or written: {}", said(.0))]
    Lease(#[from] kube::Error),
    /// Nobody knows then who writes.
    #[error(
        "cannot find out whether the add-on manager of Open Cluster Management runs; this manager does not lead: \
         failed to read the Lease {}/{}: {}", .0, OCM_LEASE, said(.1)
    )]
    Rival(String, kube::Error),
    #[error("the hub did not answer a lease request in time")]
    Silence,
}

/// The trouble that was logged last: the same again is not news.
#[derive(Default)]
struct Reported(Option<String>);

impl Reported {
    /// Whether this differs from what was reported last.
    fn is_news(&mut self, trouble: Option<&Trouble>) -> bool {
        let text = trouble.map(Trouble::to_string);
        let is_news = text.is_some() && text != self.0;
        self.0 = text;
        is_news
    }
}

/// What a candidate remembers between attempts.
#[derive(Default)]
struct Memory {
    seen: Option<LeaseSighting>,
    term: Option<Term>,
    leases: u32,
    /// OCM's add-on manager ran when it was last looked for.
    has_rival: bool,
    /// The most transitions of any Lease that was seen or written: a term never goes back below.
    highest: i32,
}

/// What was last seen of the Lease, and when.
struct LeaseSighting {
    lease: Lease,
    at: Instant,
}

impl LeaseSighting {
    fn now(lease: Lease) -> Self {
        Self { lease, at: Instant::now() }
    }

    fn transitions(&self) -> i32 {
        self.lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0)
    }
}

impl Memory {
    fn note_transitions(&mut self) {
        let seen = self.seen.as_ref().map_or(0, LeaseSighting::transitions);
        self.highest = self.highest.max(seen);
    }
}

impl Candidate {
    /// A leader that could not renew for this long stops, before another can start.
    fn gives_up_after(&self) -> Duration {
        self.duration * 2 / 3
    }

    fn tries_every(&self) -> Duration {
        self.duration * 2 / 15
    }

    /// Runs for leadership until the sender has no listeners, and sends every change.
    pub(crate) async fn run(&self, leadership: &watch::Sender<Leadership>) {
        let (mut memory, mut reported) = (Memory::default(), Reported::default());
        while !leadership.is_closed() {
            if self.tenure.is_over() {
                self.stand_down(leadership);
            }
            let began = Instant::now();
            // An attempt ends with the lease: whatever the hub does, this process stops writing in
            // time.
            let left = self.tenure.time_left().unwrap_or(self.gives_up_after());
            let outcome = timeout(left, self.attempt(&mut memory)).await.unwrap_or(Err(Trouble::Silence));
            if reported.is_news(outcome.as_ref().err())
                && let Err(trouble) = &outcome
            {
                tracing::warn!("{trouble}");
            }
            match outcome {
                Ok(Some(won)) => {
                    self.tenure.renew(began, self.gives_up_after());
                    memory.term = Some(won.clone());
                    set(leadership, Leadership::Leading(won));
                }
                Ok(None) => self.stand_down(leadership),
                Err(_) => {}
            }
            let left = self.tenure.time_left().unwrap_or(Duration::MAX);
            tokio::select! {
                biased;
                () = sleep(self.tries_every().min(left)) => {}
                () = self.tenure.raised() => {}
                () = leadership.closed() => {}
            }
        }
    }

    fn stand_down(&self, leadership: &watch::Sender<Leadership>) {
        self.tenure.end();
        set(leadership, Leadership::Waiting);
    }

    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Whether OCM's add-on manager runs. If the hub does not say, the attempt fails: nobody knows
    /// then who writes.
    async fn has_rival(&self, memory: &mut Memory) -> Result<bool, Trouble> {
        let Some(namespace) = &self.rival_in else { return Ok(false) };
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        let lease = leases.get_opt(OCM_LEASE).await;
        let lease = lease.map_err(|error| Trouble::Rival(namespace.clone(), error))?;
        let rival = lease.and_then(|lease| rival(&lease, (self.clock)()));
        match &rival {
            Some(rival) if !memory.has_rival => tracing::warn!(
                lease = format!("{namespace}/{OCM_LEASE}"),
                holder = rival.holder,
                renewed = %rival.renewed,
                "the add-on manager of Open Cluster Management runs and writes the same objects; this manager does not lead \
                 until the feature AddonManagement of the ClusterManager is disabled"
            ),
            None if memory.has_rival => {
                tracing::info!("the add-on manager of Open Cluster Management no longer runs");
            }
            _ => {}
        }
        memory.has_rival = rival.is_some();
        Ok(memory.has_rival)
    }

    /// One attempt; returns the term if we lead.
    async fn attempt(&self, memory: &mut Memory) -> Result<Option<Term>, Trouble> {
        if self.has_rival(memory).await? {
            return Ok(None);
        }
        let Some(lease) = self.api().get_opt(&self.name).await? else {
            return self.create(memory).await;
        };
        let changed = memory
            .seen
            .as_ref()
            .is_none_or(|seen| seen.lease.metadata.resource_version != lease.metadata.resource_version);
        if changed {
            memory.seen = Some(LeaseSighting::now(lease.clone()));
        }
        memory.note_transitions();
        let Some((transitions, handed_over_by)) = self.may_take(&lease, memory) else { return Ok(None) };
        let wanted = self.lease(Some(&lease), transitions);
        match self.api().replace(&self.name, &PostParams::default(), &wanted).await {
            Ok(written) => {
                memory.seen = Some(LeaseSighting::now(written));
                memory.note_transitions();
                let term = Term { number: number(transitions), handed_over_by, leases: memory.leases };
                // A renewal does not change how the term began.
                let same = |old: &Term| old.number == term.number && old.leases == term.leases;
                Ok(Some(memory.term.clone().filter(same).unwrap_or(term)))
            }
            Err(error) => lost(error),
        }
    }

    /// There is no Lease. The new one continues above the last that was seen. It is raised above
    /// the terms on add-ons later.
    async fn create(&self, memory: &mut Memory) -> Result<Option<Term>, Trouble> {
        let floor = i32::try_from(self.tenure.floor()).unwrap_or(i32::MAX);
        let next = memory.highest.saturating_add(1).max(floor);
        let transitions = if memory.seen.is_some() { next } else { floor };
        match self.api().create(&PostParams::default(), &self.lease(None, transitions)).await {
            Ok(made) => {
                memory.seen = Some(LeaseSighting::now(made));
                memory.note_transitions();
                memory.leases += 1;
                Ok(Some(Term { number: number(transitions), handed_over_by: None, leases: memory.leases }))
            }
            Err(error) => lost(error),
        }
    }

    /// The transitions with which the Lease can be taken or kept, and who handed it over; `None` if
    /// another manager holds it.
    fn may_take(&self, lease: &Lease, memory: &Memory) -> Option<(i32, Option<Text>)> {
        let spec = lease.spec.clone().unwrap_or_default();
        // A Lease that somebody has reset goes on above all that was seen.
        let given = spec.lease_transitions.unwrap_or(0);
        let was_reset = given < memory.highest;
        let transitions = given.max(memory.highest);
        let silent_for = memory.seen.as_ref().map(|seen| seen.at.elapsed()).unwrap_or_default();
        let lasts = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(self.duration, Duration::from_secs)
            .min(self.duration * MOST_DURATIONS);
        let by = lease.metadata.annotations.as_ref().and_then(|all| all.get(annotations::HANDED_OVER_BY));
        match spec.holder_identity.as_deref().unwrap_or_default() {
            mine if mine == self.identity => {
                let floor = i32::try_from(self.tenure.floor()).unwrap_or(i32::MAX);
                Some((transitions.saturating_add(i32::from(was_reset)).max(floor), None))
            }
            "" => Some((transitions.saturating_add(1), by.map(|by| by.as_str().into()))),
            _ if silent_for > lasts => Some((transitions.saturating_add(1), None)),
            _ => None,
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
        let noted = lease.metadata.annotations.get_or_insert_default();
        noted.remove(annotations::HANDED_OVER_BY);
        noted.remove(annotations::SKIPPED_ADDONS);
        noted.extend(self.tenure.skipped().map(|skipped| (annotations::SKIPPED_ADDONS.to_owned(), skipped)));
        lease.spec = serde_json::from_value(spec).ok();
        lease
    }

    /// Lets the next leader start at once. If the hub does not answer, the lease expires.
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
        let noted = lease.metadata.annotations.get_or_insert_default();
        noted.insert(annotations::HANDED_OVER_BY.into(), self.identity.clone());
        noted.remove(annotations::SKIPPED_ADDONS);
        if let Err(error) = self.api().replace(&self.name, &PostParams::default(), &lease).await {
            tracing::debug!(error = said(&error), "the lease was not handed over; it will expire");
        }
    }
}

/// The term of a Lease after this many transitions.
fn number(transitions: i32) -> u64 {
    u64::try_from(transitions).unwrap_or(0) + 1
}

/// Another candidate was faster.
fn lost(error: kube::Error) -> Result<Option<Term>, Trouble> {
    match error {
        kube::Error::Api(status) if status.code == 409 => Ok(None),
        error => Err(error.into()),
    }
}

/// A time as Kubernetes writes a MicroTime.
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Method, Request, Response};
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    /// A hub that lets a candidate create the Lease. After that one request fails slowly, and all
    /// others hang.
    fn slow_then_silent() -> Client {
        let asked = Arc::new(AtomicUsize::new(0));
        let service = service_fn(move |request: Request<Body>| {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            async move {
                let answer =
                    |code, body: Vec<u8>| Response::builder().status(code).body(Body::from(body)).unwrap();
                if *request.method() == Method::POST {
                    let lease = request.into_body().collect_bytes().await?;
                    return Ok::<_, kube::Error>(answer(201, lease.to_vec()));
                }
                let failure = |code: u16, reason: &str| {
                    let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": ""});
                    answer(code, status.to_string().into_bytes())
                };
                match number {
                    0 => return Ok(failure(404, "NotFound")),
                    2 => sleep(Duration::from_millis(7500)).await,
                    _ => std::future::pending().await,
                }
                Ok(failure(500, "InternalError"))
            }
        });
        Client::new(service, "default")
    }

    fn candidate(tenure: Tenure) -> Candidate {
        Candidate {
            client: slow_then_silent(),
            namespace: "default".into(),
            name: "lease".into(),
            identity: "only".into(),
            clock: Arc::new(|| Timestamp::UNIX_EPOCH),
            duration: DURATION,
            tenure,
            rival_in: None,
        }
    }

    #[test]
    fn the_same_trouble_is_reported_once_until_it_is_over() {
        let refused = |message: &str| {
            let status = kube::core::Status { message: message.into(), code: 403, ..Default::default() };
            Trouble::Rival("hub".into(), kube::Error::Api(status.boxed()))
        };
        let text = refused("no").to_string();
        assert!(text.ends_with("failed to read the Lease hub/manager-lock: no (403)"), "{text}");
        let mut reported = Reported::default();
        let told = [Some("no"), Some("no"), Some("never"), Some("never"), None, Some("never")]
            .map(|message| reported.is_news(message.map(refused).as_ref()));
        assert_eq!(told, [true, false, true, false, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_claims_to_last_for_years_is_taken_when_nobody_renews_it() {
        let candidate = candidate(Tenure::default());
        let spec =
            json!({"holderIdentity": "nobody", "leaseTransitions": 7, "leaseDurationSeconds": i32::MAX});
        let lease: Lease =
            serde_json::from_value(json!({"metadata": {"name": "lease"}, "spec": spec})).unwrap();
        let memory = Memory { seen: Some(LeaseSighting::now(lease.clone())), ..Memory::default() };
        let taken = || candidate.may_take(&lease, &memory).map(|(at, _)| at);
        tokio::time::advance(DURATION * MOST_DURATIONS).await;
        assert_eq!(taken(), None, "its holder may be slower than this manager");
        tokio::time::advance(DURATION).await;
        assert_eq!(taken(), Some(8), "no manager is that slow");
    }

    #[tokio::test]
    async fn a_lease_that_is_reset_or_deleted_never_lowers_the_term() {
        let candidate = candidate(Tenure::default());
        let lease = |holder: &str, transitions: i32| -> Lease {
            let spec = json!({"holderIdentity": holder, "leaseTransitions": transitions, "leaseDurationSeconds": 15});
            serde_json::from_value(json!({"metadata": {"name": "lease"}, "spec": spec})).unwrap()
        };
        let taken = |memory: &Memory, lease: &Lease| candidate.may_take(lease, memory).map(|(at, _)| at);
        let mut memory = Memory { seen: Some(LeaseSighting::now(lease("only", 7))), ..Memory::default() };
        memory.note_transitions();
        assert_eq!(taken(&memory, &lease("only", 7)), Some(7), "a renewal keeps the term");
        assert_eq!(taken(&memory, &lease("only", 0)), Some(8), "somebody has reset it");
        assert_eq!(taken(&memory, &lease("", 0)), Some(8), "somebody has reset and released it");
        assert_eq!(taken(&memory, &lease("other", 0)), None, "somebody else has made it anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_stops_in_time_whatever_an_attempt_to_renew_is_doing() {
        let tenure = Tenure::default();
        let candidate = candidate(tenure.clone());
        let (sender, mut leadership) = watch::channel(Leadership::Waiting);
        let began = Instant::now();
        tokio::spawn(async move { candidate.run(&sender).await });
        leadership.wait_for(|now| matches!(now, Leadership::Leading(_))).await.unwrap();
        assert!(!tenure.is_over());
        leadership.wait_for(|now| *now == Leadership::Waiting).await.unwrap();
        assert!(began.elapsed() <= DURATION * 2 / 3, "it led for {:?}", began.elapsed());
        assert!(tenure.is_over());
    }
}
