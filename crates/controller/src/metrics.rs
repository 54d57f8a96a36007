//! Prometheus metrics: the state of every rollout, and the manager's requests to the hub.
//!
//! Owns the names. Series grow with add-ons and placements, never with the fleet: no label has a
//! cluster's name, and of the objects of an add-on, whose names may, at most ten have a series. The
//! state of a rollout comes from the report of its last plan, so that
//! conditions, `aviary explain` and metrics never disagree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aviary_api::names::conditions::PROGRESSING;
use aviary_engine::explain::Phase;
use aviary_engine::name::Text;
use aviary_engine::observed::{Observed, ObservedCondition};
use aviary_engine::plan::{Completion, Plan, Step, Write};
use aviary_engine::verdict;
use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::execute::Tally;

/// The placement of clusters that none governs.
const NO_PLACEMENT: &str = "";

/// How many unhealthy objects of an add-on have a series of their own: those on most clusters.
const MOST_OBJECTS: usize = 10;

/// Stands for all other objects.
const OTHER_OBJECTS: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RolloutLabels {
    addon: String,
    /// `namespace/name`, as in messages.
    placement: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RolloutState {
    addon: String,
    placement: String,
    state: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UnhealthyObject {
    addon: String,
    placement: String,
    /// `Kind namespace/name`, as in messages.
    object: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RevisionInfo {
    addon: String,
    placement: String,
    desired: String,
    target: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AddOnLabel {
    addon: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProblemLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SkippedLabel {
    addon: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    verb: String,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteOutcome {
    outcome: &'static str,
}

/// Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    board: Arc<Board>,
    started: Family<RolloutLabels, Counter>,
    settled: Family<RolloutLabels, Counter>,
    failed: Family<RolloutLabels, Counter>,
    rollouts: Family<RolloutLabels, Histogram, fn() -> Histogram>,
    plans: Histogram,
    writes: Family<WriteOutcome, Counter>,
    requests: Family<Request, Counter>,
    queue: Gauge,
    leader: Gauge,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        // From a second to four days.
        let rollouts =
            Family::new_with_constructor((|| Histogram::new(exponential_buckets(1.0, 3.0, 12))) as fn() -> _);
        let mut new = Self {
            registry: Arc::default(),
            board: Arc::default(),
            started: Family::default(),
            settled: Family::default(),
            failed: Family::default(),
            rollouts,
            // From 100 µs to 3 s.
            plans: Histogram::new(exponential_buckets(0.0001, 2.0, 16)),
            writes: Family::default(),
            requests: Family::default(),
            queue: Gauge::default(),
            leader: Gauge::default(),
        };
        let mut registry = Registry::with_prefix("aviary");
        registry.register_collector(Box::new(Arc::clone(&new.board)));
        let help = "Clusters that were assigned another revision";
        registry.register("clusters_started", help, new.started.clone());
        let help = "Clusters that settled on their assigned revision";
        registry.register("clusters_settled", help, new.settled.clone());
        let help = "Clusters that failed their assigned revision or timed out";
        registry.register("clusters_failed", help, new.failed.clone());
        registry.register_with_unit(
            "rollout_duration",
            "From the start of a rollout to its completion",
            Unit::Seconds,
            new.rollouts.clone(),
        );
        registry.register_with_unit(
            "plan_duration",
            "Time to plan one add-on",
            Unit::Seconds,
            new.plans.clone(),
        );
        registry.register("writes", "Writes of plans, by outcome", new.writes.clone());
        registry.register("api_requests", "Requests to the hub, by verb and code", new.requests.clone());
        let help = "Add-ons that wait to be planned or are being written";
        registry.register("queue_depth", help, new.queue.clone());
        registry.register(
            "leader",
            "1 while this manager holds the lease; addon_skipped shows the add-ons that it skips",
            new.leader.clone(),
        );
        new.registry = Arc::new(registry);
        new
    }
}

/// The report of a plan on one placement.
#[derive(Clone, Debug, Default)]
struct Standing {
    /// How many clusters have each phase and reason.
    clusters: BTreeMap<(&'static str, &'static str), u32>,
    /// On how many clusters each object keeps the cluster from being healthy.
    objects: BTreeMap<Text, u32>,
    in_flight: usize,
    slots_used: usize,
    budget: usize,
    is_halted: bool,
    settled: usize,
    failed: usize,
    desired: Text,
    target: Text,
    waits_since: Option<Timestamp>,
}

#[derive(Clone, Debug, Default)]
struct AddOnStanding {
    placements: BTreeMap<String, Standing>,
    /// How many problems have each reason.
    problems: BTreeMap<&'static str, usize>,
    frozen: bool,
    /// Why it is skipped.
    skipped: Option<&'static str>,
}

/// The last report of every add-on.
#[derive(Debug, Default)]
struct Board {
    addons: Mutex<BTreeMap<Text, AddOnStanding>>,
    now: Mutex<Option<Timestamp>>,
}

impl Metrics {
    /// All metrics as text for Prometheus. Waits are measured until `now`.
    pub fn tell(&self, now: Timestamp) -> String {
        *self.board.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Counts a request to the hub; without a code it was not answered.
    pub fn note_request(&self, verb: &'static str, code: Option<u16>) {
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        self.requests.get_or_create(&Request { verb: verb.into(), code }).inc();
    }

    pub(crate) fn note_plan(&self, observed: &Observed, plan: &Plan, took: Duration, now: Timestamp) {
        self.plans.observe(took.as_secs_f64());
        let new = standing_of(observed, plan);
        let addon = &observed.addon.name;
        for (placement, new) in &new.placements {
            let of = RolloutLabels { addon: addon.to_string(), placement: placement.clone() };
            let starts: u32 = new
                .clusters
                .iter()
                .filter(|((kind, _), _)| *kind == Phase::Starting.as_str())
                .map(|(_, count)| count)
                .sum();
            if starts > 0 {
                self.started.get_or_create(&of).inc_by(u64::from(starts));
            }
        }
        self.note_completed(observed, plan, now);
        let mut board = self.board.addons();
        let old = board.insert(addon.clone(), new.clone()).unwrap_or_default();
        drop(board);
        for (placement, new) in new.placements {
            // A state that existed at the first pass, or before the target changed, is not a new
            // transition.
            let Some(old) = old.placements.get(&placement).filter(|old| old.target == new.target) else {
                continue;
            };
            let of = RolloutLabels { addon: addon.to_string(), placement };
            let more = |new: usize, old: usize| new.saturating_sub(old) as u64;
            self.settled.get_or_create(&of).inc_by(more(new.settled, old.settled));
            self.failed.get_or_create(&of).inc_by(more(new.failed, old.failed));
        }
    }

    /// The start is in the status that is about to change, so a restart in between does not matter.
    fn note_completed(&self, observed: &Observed, plan: &Plan, now: Timestamp) {
        for write in plan.step(Step::Complete) {
            let Write::Complete(Completion { placement, .. }) = write else { continue };
            let recorded = observed.addon.status.placements.get(placement);
            let progressing =
                recorded.and_then(|recorded| ObservedCondition::find(&recorded.conditions, PROGRESSING));
            if let Some(since) = progressing.filter(|condition| condition.is_true()).and_then(|is| is.since) {
                let of = RolloutLabels {
                    addon: observed.addon.name.to_string(),
                    placement: placement.to_string(),
                };
                self.rollouts.get_or_create(&of).observe(now.duration_since(since).as_secs_f64());
            }
        }
    }

    pub(crate) fn note_frozen(&self, addon: &Text) {
        self.board.addons().entry(addon.clone()).or_default().frozen = true;
    }

    pub(crate) fn note_skipped(&self, addon: &Text, reason: Option<&'static str>) {
        self.board.addons().entry(addon.clone()).or_default().skipped = reason;
    }

    pub(crate) fn note_written(&self, tally: Tally) {
        let of = |outcome, count: usize| {
            self.writes.get_or_create(&WriteOutcome { outcome }).inc_by(count as u64);
        };
        of("written", tally.written);
        of("conflict", tally.conflicts);
        of("failed", tally.failed);
        of("refused", tally.refused);
    }

    /// The add-on does not exist any more.
    pub(crate) fn forget(&self, addon: &Text) {
        let Some(gone) = self.board.addons().remove(addon) else { return };
        for placement in gone.placements.into_keys() {
            let of = RolloutLabels { addon: addon.to_string(), placement };
            self.started.remove(&of);
            self.settled.remove(&of);
            self.failed.remove(&of);
            self.rollouts.remove(&of);
        }
    }

    /// Only the leader reports rollouts.
    pub(crate) fn note_leading(&self, leads: bool) {
        self.leader.set(i64::from(leads));
        if !leads {
            self.board.addons().clear();
        }
    }

    pub(crate) fn note_queue(&self, depth: usize) {
        self.queue.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}

fn standing_of(observed: &Observed, plan: &Plan) -> AddOnStanding {
    let report = &plan.report;
    let mut by_index: Vec<Standing> = report
        .placements
        .iter()
        .map(|placement| Standing {
            in_flight: placement.tally.in_flight,
            slots_used: placement.counts.slots_held,
            budget: placement.counts.budget,
            is_halted: placement.state.is_halted(),
            settled: placement.counts.settled,
            failed: placement.counts.failed,
            desired: placement.desired.clone().unwrap_or_default(),
            target: placement.target.clone().unwrap_or_default(),
            waits_since: verdict::waits_since(observed, placement),
            ..Standing::default()
        })
        .collect();
    let mut free = Standing::default();
    for cluster in &report.clusters {
        let of = cluster.placement.and_then(|index| by_index.get_mut(index)).unwrap_or(&mut free);
        let (phase, reason) = (cluster.decision.phase(), cluster.decision.code());
        *of.clusters.entry((phase.as_str(), reason.as_str())).or_default() += 1;
        if let Some(object) = &cluster.object {
            *of.objects.entry(object.clone()).or_default() += 1;
        }
    }
    sum_other_objects(by_index.iter_mut().chain([&mut free]).map(|standing| &mut standing.objects).collect());
    let named = report.placements.iter().map(|placement| placement.name.to_string());
    let mut placements: BTreeMap<String, Standing> = named.zip(by_index).collect();
    if !free.clusters.is_empty() {
        placements.insert(NO_PLACEMENT.into(), free);
    }
    let mut problems: BTreeMap<&'static str, usize> = BTreeMap::new();
    for problem in &report.problems {
        *problems.entry(problem.code().as_str()).or_default() += 1;
    }
    AddOnStanding { placements, problems, frozen: false, skipped: None }
}

/// Adds up all but the few objects of an add-on that are unhealthy on most clusters: the name of an
/// object may contain that of its cluster, and series must not grow with the fleet.
fn sum_other_objects(of_placements: Vec<&mut BTreeMap<Text, u32>>) {
    let mut totals: BTreeMap<Text, u32> = BTreeMap::new();
    for (object, count) in of_placements.iter().flat_map(|objects| objects.iter()) {
        *totals.entry(object.clone()).or_default() += count;
    }
    let mut by_count: Vec<(Text, u32)> = totals.into_iter().collect();
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named: BTreeSet<Text> = by_count.into_iter().take(MOST_OBJECTS).map(|(object, _)| object).collect();
    for objects in of_placements {
        let all = std::mem::take(objects);
        for (object, count) in all {
            let under = if named.contains(&object) { object } else { OTHER_OBJECTS.into() };
            *objects.entry(under).or_default() += count;
        }
    }
}

impl Board {
    fn addons(&self) -> MutexGuard<'_, BTreeMap<Text, AddOnStanding>> {
        self.addons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Board {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let now = *self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let addons = self.addons();
        let mut gauges = Gauges(encoder);
        encode_rollouts(&mut gauges, &addons, now)?;
        encode_objects(&mut gauges, &addons)?;
        encode_addons(&mut gauges, &addons)
    }
}

type Standings = BTreeMap<Text, AddOnStanding>;

fn encode_rollouts(gauges: &mut Gauges<'_>, addons: &Standings, now: Option<Timestamp>) -> fmt::Result {
    let placements = || {
        addons.iter().flat_map(|(addon, standing)| {
            standing.placements.iter().map(move |(placement, standing)| {
                (RolloutLabels { addon: addon.to_string(), placement: placement.clone() }, standing)
            })
        })
    };
    let governed = || placements().filter(|(of, _)| of.placement != NO_PLACEMENT);
    let states = placements().flat_map(|(of, standing)| {
        standing.clusters.iter().map(move |((state, reason), count)| {
            let RolloutLabels { addon, placement } = of.clone();
            (RolloutState { addon, placement, state, reason }, i64::from(*count))
        })
    });
    gauges.put("clusters", "Clusters by state, and the reason for it", None, states)?;
    let budgets = governed().map(|(of, standing)| (of, count(standing.budget)));
    gauges.put(
        "rollout_budget",
        "How many slots there are: how many clusters may hold one at once",
        None,
        budgets,
    )?;
    let in_flight = governed().map(|(of, standing)| (of, count(standing.in_flight)));
    let help = "Clusters that are assigned a revision, and have neither settled on it nor failed";
    gauges.put("rollout_in_flight", help, None, in_flight)?;
    let slots = governed().map(|(of, standing)| (of, count(standing.slots_used)));
    let help = "Slots of the budget that are taken, by clusters in flight, failed or unhealthy";
    gauges.put("rollout_slots_used", help, None, slots)?;
    let halted = governed().map(|(of, standing)| (of, i64::from(standing.is_halted)));
    let help = "1 while failed clusters keep the others from starting: more failed than is tolerated, or they hold every slot";
    gauges.put("rollout_halted", help, None, halted)?;
    let waits = governed().map(|(of, standing)| {
        let wait = now
            .zip(standing.waits_since)
            .map_or(0, |(now, since)| now.duration_since(since).as_secs().max(0));
        (of, wait)
    });
    let help = "How long clusters have been waiting for a rollout to reach them";
    gauges.put("rollout_oldest_wait", help, Some(&Unit::Seconds), waits)?;
    let revisions = governed().map(|(of, standing)| {
        let RolloutLabels { addon, placement } = of;
        let (desired, target) = (standing.desired.to_string(), standing.target.to_string());
        (RevisionInfo { addon, placement, desired, target }, 1)
    });
    gauges.put(
        "revision_info",
        "The desired revision and the one being rolled out; always 1",
        None,
        revisions,
    )
}

fn encode_objects(gauges: &mut Gauges<'_>, addons: &Standings) -> fmt::Result {
    let objects = addons.iter().flat_map(|(addon, standing)| {
        standing.placements.iter().flat_map(move |(placement, standing)| {
            standing.objects.iter().map(move |(object, count)| {
                let (addon, placement, object) = (addon.to_string(), placement.clone(), object.to_string());
                (UnhealthyObject { addon, placement, object }, i64::from(*count))
            })
        })
    });
    let help = "Clusters that are not healthy, by the object that keeps them from it";
    gauges.put("unhealthy_clusters", help, None, objects)
}

fn encode_addons(gauges: &mut Gauges<'_>, addons: &Standings) -> fmt::Result {
    let label = |addon: &Text| AddOnLabel { addon: addon.to_string() };
    let problems =
        addons.iter().map(|(addon, standing)| (label(addon), count(standing.problems.values().sum())));
    gauges.put("addon_problems", "Number of problems in an add-on's input", None, problems)?;
    let mut by_reason: BTreeMap<&'static str, usize> = BTreeMap::new();
    for (reason, found) in addons.values().flat_map(|standing| &standing.problems) {
        *by_reason.entry(reason).or_default() += found;
    }
    let by_reason = by_reason.into_iter().map(|(reason, found)| (ProblemLabel { reason }, count(found)));
    gauges.put("problems", "Number of problems in the input of all add-ons, by reason", None, by_reason)?;
    let frozen = addons.iter().map(|(addon, standing)| (label(addon), i64::from(standing.frozen)));
    gauges.put(
        "addon_frozen",
        "1 while the add-on is frozen: its plan violates an invariant",
        None,
        frozen,
    )?;
    let skipped = addons.iter().filter_map(|(addon, standing)| {
        Some((SkippedLabel { addon: addon.to_string(), reason: standing.skipped? }, 1))
    });
    gauges.put("addon_skipped", "1: this leader does nothing for the add-on, and why", None, skipped)
}

fn count(of: usize) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

struct Gauges<'e>(DescriptorEncoder<'e>);

impl Gauges<'_> {
    fn put<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        values: impl Iterator<Item = (L, i64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for (labels, value) in values {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use aviary_engine::explain::{Decision, Flight};
    use aviary_engine::name::ClusterName;
    use aviary_engine::plan::{ClusterReport, Report, Why};

    use super::*;

    /// A cluster that this object keeps from being healthy.
    fn unhealthy(number: usize, object: Option<&str>) -> ClusterReport {
        let decision = Decision::InFlight(Flight::Updating);
        let why =
            Why { placement: None, decision, told: None, was_told: None, object: object.map(Text::from) };
        ClusterReport { cluster: ClusterName::parse(&format!("c{number}")).unwrap(), why: Arc::new(why) }
    }

    /// The lines about unhealthy objects, after a plan with this report.
    fn told(clusters: Vec<ClusterReport>) -> Vec<String> {
        let metrics = Metrics::default();
        let mut observed = Observed::default();
        observed.addon.name = "helloworld".into();
        let plan = Plan { report: Report { clusters, ..Report::default() }, ..Plan::default() };
        metrics.note_plan(&observed, &plan, Duration::ZERO, Timestamp::UNIX_EPOCH);
        let text = metrics.tell(Timestamp::UNIX_EPOCH);
        text.lines()
            .filter(|line| line.starts_with("aviary_unhealthy_clusters{"))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn unhealthy_clusters_are_counted_by_the_object_that_is_to_blame() {
        let greeter = Some("Deployment greeter/greeter");
        let clusters = [greeter, Some("Job greeter/migrate"), None, greeter].into_iter().enumerate();
        assert_eq!(
            told(clusters.map(|(number, object)| unhealthy(number, object)).collect()),
            [
                r#"aviary_unhealthy_clusters{addon="helloworld",placement="",object="Deployment greeter/greeter"} 2"#,
                r#"aviary_unhealthy_clusters{addon="helloworld",placement="",object="Job greeter/migrate"} 1"#,
            ]
        );
        assert!(told(vec![unhealthy(0, None)]).is_empty(), "nothing is said of a healthy fleet");
    }

    /// An object may be named after its cluster.
    #[test]
    fn series_do_not_grow_with_the_objects_of_a_fleet() {
        let own = (0..1000).map(|number| unhealthy(number, Some(&format!("Deployment c{number}/agent"))));
        let shared = (1000..1003).map(|number| unhealthy(number, Some("Deployment shared/agent")));
        let told = told(own.chain(shared).collect());
        assert_eq!(told.len(), MOST_OBJECTS + 1, "{told:?}");
        assert!(told.iter().any(|line| line.ends_with(r#"object="Deployment shared/agent"} 3"#)), "{told:?}");
        assert!(told.iter().any(|line| line.ends_with(r#"object="other"} 991"#)), "{told:?}");
    }
}
