//! What is to go wrong in one run, how often each point was passed, and what became of it. All
//! parts of a run share it.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::fault::{Effect, Fault, POINTS, Point};
use crate::leadership::Surpass;
use crate::loss::Loss;

/// After something went wrong the manager may wait so long before it tries again.
const PATIENCE: Duration = Duration::from_secs(8);

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Demand {
    /// The manager has crashed: start another.
    Restart { stale: bool },
    /// The manager is not heard of: start another beside it, and wake this one when that is at
    /// rest.
    Beside { paused: usize },
    /// Another takes part in the election.
    Candidate,
    /// Something was taken away: put it back in time.
    Restore(Loss),
}

/// A write of a manager that the hub has carried out, or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrote {
    pub(crate) manager: usize,
    pub(crate) method: String,
    pub(crate) path: String,
    /// Revisions of the hub before and after.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl fmt::Display for Wrote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { manager, method, path, from, to } = self;
        write!(f, "{manager} {method} {path} ({from}..{to})")
    }
}

#[derive(Debug, Default)]
struct Inner {
    armed: Vec<Fault>,
    always: Vec<Effect>,
    counts: [usize; POINTS],
    struck: usize,
    requests: usize,
    stalled: usize,
    lease_commits: u64,
    quiet_after: Option<Instant>,
    lease_lost: Option<(usize, Instant)>,
    hidden_until: Option<Instant>,
    demands: Vec<Demand>,
    surpass: Vec<Surpass>,
    wrote: Vec<Wrote>,
    /// The kind of every write that was asked for.
    kinds: Vec<String>,
    /// Whether an answer is to come late: only then it matters what watches have told.
    is_late: bool,
    watched: BTreeSet<String>,
    told: BTreeSet<u64>,
    overtaken: usize,
    /// What a fault should have done and has not.
    missed: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble(Arc<Mutex<Inner>>);

/// Counts as under way for as long as it lives.
#[derive(Debug)]
pub(crate) struct Stall(Trouble);

impl Drop for Stall {
    fn drop(&mut self) {
        self.0.inner().stalled -= 1;
        self.0.note();
    }
}

impl Trouble {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        let (always, armed): (Vec<Fault>, Vec<Fault>) =
            faults.iter().copied().partition(|fault| fault.point == Point::Always);
        let always: Vec<Effect> = always.into_iter().map(|fault| fault.effect).collect();
        let struck = always.len();
        let is_late = armed.iter().any(|fault| matches!(fault.effect, Effect::LateAnswer(_)));
        Self(Arc::new(Mutex::new(Inner { armed, always, struck, is_late, ..Inner::default() })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// A point is passed. What goes wrong here, if anything.
    pub(crate) fn pass(&self, point: Point) -> Option<Effect> {
        let mut inner = self.inner();
        inner.counts[point as usize] += 1;
        let count = inner.counts[point as usize];
        let at = inner.armed.iter().position(|fault| fault.point == point && fault.at == count)?;
        let effect = inner.armed.remove(at).effect;
        inner.struck += 1;
        drop(inner);
        self.note();
        Some(effect)
    }

    pub(crate) fn always(&self, effect: Effect) -> bool {
        self.inner().always.contains(&effect)
    }

    /// Something has just gone wrong: it takes a moment until that is made good.
    pub(crate) fn note(&self) {
        self.busy_for(PATIENCE);
    }

    pub(crate) fn busy_for(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut inner = self.inner();
        inner.quiet_after = Some(inner.quiet_after.map_or(until, |other| other.max(until)));
    }

    pub(crate) fn stall(&self) -> Stall {
        self.inner().stalled += 1;
        Stall(self.clone())
    }

    pub(crate) fn is_busy(&self) -> bool {
        let inner = self.inner();
        inner.stalled > 0
            || !inner.demands.is_empty()
            || inner.quiet_after.is_some_and(|until| until > Instant::now())
    }

    pub(crate) fn demand(&self, demand: Demand) {
        self.inner().demands.push(demand);
    }

    pub(crate) fn next_demand(&self) -> Option<Demand> {
        let mut inner = self.inner();
        (!inner.demands.is_empty()).then(|| inner.demands.remove(0))
    }

    /// A term that the Lease must get above.
    pub(crate) fn surpass(&self, seen: Surpass) {
        self.inner().surpass.push(seen);
    }

    pub(crate) fn to_surpass(&self) -> Vec<Surpass> {
        self.inner().surpass.clone()
    }

    pub(crate) fn lose_lease(&self, manager: usize, time: Duration) {
        self.inner().lease_lost = Some((manager, Instant::now() + time));
        self.busy_for(time);
    }

    pub(crate) fn has_lost_lease(&self, manager: usize) -> bool {
        self.inner().lease_lost.is_some_and(|(of, until)| of == manager && until > Instant::now())
    }

    pub(crate) fn hide_kinds(&self, time: Duration) {
        self.inner().hidden_until = Some(Instant::now() + time);
        self.busy_for(time + Duration::from_secs(40));
    }

    pub(crate) fn hides_kinds(&self) -> bool {
        self.inner().hidden_until.is_some_and(|until| until > Instant::now())
    }

    pub(crate) fn asked(&self) {
        self.inner().requests += 1;
    }

    pub(crate) fn requests(&self) -> usize {
        self.inner().requests
    }

    pub(crate) fn wrote(&self, wrote: Wrote) {
        self.inner().wrote.push(wrote);
    }

    /// A manager asks for a write: what kind it is.
    pub(crate) fn asked_to_write(&self, method: &str, path: &str) {
        let part = if path.ends_with("/status") { "/status" } else { "" };
        self.inner().kinds.push(format!("{method} {}{part}", resource(path)));
    }

    pub(crate) fn take_kinds(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().kinds)
    }

    /// A manager watches the kind of this path.
    pub(crate) fn watches(&self, path: &str) {
        self.inner().watched.insert(resource(path).to_owned());
    }

    /// A watch has told of something.
    pub(crate) fn told(&self, event: &[u8]) {
        let mut inner = self.inner();
        if inner.is_late
            && let Ok(event) = serde_json::from_slice::<Value>(event)
            && let Some(version) = event["object"]["metadata"]["resourceVersion"].as_str()
        {
            inner.told.extend(version.parse::<u64>());
        }
    }

    /// The answer to a write that changed the hub goes out now: its event must have overtaken it.
    pub(crate) fn answers_late(&self, path: &str, changed: RangeInclusive<u64>) {
        let mut inner = self.inner();
        if changed.is_empty() || !inner.watched.contains(resource(path)) {
            return;
        }
        if inner.told.range(changed).next().is_some() {
            inner.overtaken += 1;
        } else {
            inner.missed.push(format!("the answer to a write of {path} was not overtaken by its event"));
        }
    }

    /// How many answers were overtaken, and what was missed.
    pub(crate) fn overtaken(&self) -> (usize, Vec<String>) {
        let inner = self.inner();
        (inner.overtaken, inner.missed.clone())
    }

    pub(crate) fn lease_committed(&self, commits: u64) {
        self.inner().lease_commits += commits;
    }

    pub(crate) fn lease_commits(&self) -> u64 {
        self.inner().lease_commits
    }

    pub(crate) fn counts(&self) -> [usize; POINTS] {
        self.inner().counts
    }

    pub(crate) fn struck(&self) -> usize {
        self.inner().struck
    }

    pub(crate) fn take_writes(&self) -> Vec<Wrote> {
        std::mem::take(&mut self.inner().wrote)
    }
}

/// The resource that a path is about: `/apis/GROUP/VERSION/namespaces/c1/RESOURCE/NAME/status`.
fn resource(path: &str) -> &str {
    let mut parts = path.split('/').skip(1);
    let version = if parts.next() == Some("api") { 1 } else { 2 };
    let rest: Vec<&str> = parts.skip(version).collect();
    match rest.as_slice() {
        ["namespaces", _, resource, ..] | [resource, ..] => resource,
        [] => "",
    }
}
