//! One add-on: its placements, its reasons, its revisions, and a row for every cluster.

use aviary_engine::duration;
use aviary_engine::explain::{Decision, Wait};
use aviary_engine::fleet::Fleet;
use aviary_engine::observed::{Observed, Pace, PlacementSpec, Rollout};
use aviary_engine::plan::{self, ClusterReport, PlacementReport, Plan};
use aviary_engine::problem::Problem;
use aviary_engine::rollout::State;
use aviary_engine::verdict;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::columns::{Columns, Rows, kind};
use crate::revisions::RevisionLine;
use crate::summary::{Summary, Title};
use crate::timeline::{Noted, Point, Timeline};
use crate::topic::{Picture, Step, data};

/// How many clusters stand for all with one reason, and how many reasons are told apart.
const EXAMPLES: usize = 3;
const MOST_REASONS: usize = 50;

/// An add-on as it is now.
pub(crate) struct Looked {
    /// All that is not by cluster and not by time.
    sections: Map<String, Value>,
    rows: Rows,
}

/// An add-on as it was told.
#[derive(Debug)]
pub(crate) struct Detail {
    now: String,
    sections: Map<String, Value>,
    columns: Columns,
    timeline: Vec<Point>,
}

impl Looked {
    pub(crate) fn of(
        fleet: &Fleet<'_>,
        plan: &Plan,
        problems: &[Problem],
        title: &Title,
        summary: &Summary,
        revisions: &[RevisionLine],
        events: &impl Serialize,
    ) -> Self {
        let mut sections = match json!(summary) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let mut put = |name: &str, value: Value| sections.insert(name.to_owned(), value);
        put("description", json!(title.description));
        put("placements", json!(placements(fleet.observed, plan)));
        put("problems", json!(problems.iter().map(problem_line).collect::<Vec<_>>()));
        put("brake", problems.iter().find_map(brake).unwrap_or(Value::Null));
        put("reasons", json!(reasons(plan)));
        put("revisions", json!(revisions));
        put("events", json!(events));
        // The rows have that name, and are as many.
        sections.remove("clusters");
        Self { sections, rows: Rows::of(fleet, plan) }
    }
}

impl Picture for Detail {
    const EVENT: &'static str = "addon";

    fn whole(&self) -> String {
        let mut fields = self.sections.clone();
        fields.insert("now".into(), json!(self.now));
        fields.insert("timeline".into(), json!(self.timeline));
        self.columns.tell(&mut fields);
        data(&fields)
    }
}

impl Detail {
    pub(crate) fn new(now: &str, looked: Looked, timeline: &Timeline) -> Self {
        let Looked { sections, rows } = looked;
        Self {
            now: now.to_owned(),
            sections,
            columns: Columns::new(&rows),
            timeline: timeline.points().to_vec(),
        }
    }

    /// Takes in what the add-on looks like now.
    pub(crate) fn take(&mut self, now: &str, looked: Looked, noted: &Noted, timeline: &Timeline) -> Step {
        let mut delta = Map::new();
        if !self.columns.take(&looked.rows, &mut delta) {
            *self = Self::new(now, looked, timeline);
            return Step::Whole;
        }
        for (name, value) in looked.sections {
            let known = self.sections.get(&name);
            if known == Some(&value) {
                continue;
            }
            match known.filter(|_| name == "revisions").and_then(|known| only_counts(known, &value)) {
                Some(counts) => delta.insert("revisionClusters".into(), counts),
                None => delta.insert(name.clone(), value.clone()),
            };
            self.sections.insert(name, value);
        }
        self.tell_time(noted, timeline, &mut delta);
        self.told(now, delta)
    }

    /// Only time has gone on.
    pub(crate) fn note(&mut self, now: &str, noted: &Noted, timeline: &Timeline) -> Step {
        let mut delta = Map::new();
        self.tell_time(noted, timeline, &mut delta);
        self.told(now, delta)
    }

    fn tell_time(&mut self, noted: &Noted, timeline: &Timeline, delta: &mut Map<String, Value>) {
        match noted {
            Noted::Nothing => {}
            Noted::Point(point) => {
                self.timeline.push(*point);
                delta.insert("timelineAppend".into(), json!([point]));
            }
            Noted::Whole => {
                self.timeline = timeline.points().to_vec();
                delta.insert("timeline".into(), json!(self.timeline));
            }
        }
    }

    fn told(&mut self, now: &str, mut delta: Map<String, Value>) -> Step {
        if delta.is_empty() {
            return Step::Nothing;
        }
        self.now = now.to_owned();
        delta.insert("now".into(), json!(now));
        Step::Delta { event: "addon-delta", data: data(&delta) }
    }
}

/// The counts of revisions, if nothing else about them is another: the rest is long, and the counts change with every wave.
fn only_counts(known: &Value, new: &Value) -> Option<Value> {
    let (known, new) = (known.as_array()?, new.as_array()?);
    let same = |(known, new): (&Value, &Value)| {
        let (Some(known), Some(new)) = (known.as_object(), new.as_object()) else { return false };
        known.len() == new.len()
            && known.iter().all(|(key, value)| key == "clusters" || new.get(key) == Some(value))
    };
    let all_same = known.len() == new.len() && known.iter().zip(new).all(same);
    all_same.then(|| new.iter().map(|line| line.get("clusters").cloned().unwrap_or_default()).collect())
}

fn problem_line(problem: &Problem) -> Value {
    let severity = if problem.is_warning() { "warning" } else { "error" };
    json!({"severity": severity, "message": problem.to_string()})
}

fn brake(problem: &Problem) -> Option<Value> {
    let Problem::DeletionHeld { count, .. } = problem else { return None };
    Some(json!({"held": count, "message": problem.to_string(), "acknowledge": count.to_string()}))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlacementLine {
    name: String,
    position: usize,
    state: &'static str,
    message: String,
    strategy: String,
    budget: Option<usize>,
    in_flight: usize,
    governed: usize,
    done: usize,
    failed: usize,
    waiting: usize,
    gate: Option<Value>,
    paused: bool,
    wants: Option<String>,
    target: Option<String>,
    known_good: Option<String>,
}

/// In the order of the add-on's list.
fn placements(observed: &Observed, plan: &Plan) -> Vec<PlacementLine> {
    let specs = observed.addon.strategy.placements();
    let positions = positions(specs);
    let waits = canary_waits(specs.len(), &plan.report.clusters);
    let lines = plan.report.placements.iter().zip(specs).zip(positions).zip(waits);
    lines
        .map(|(((report, spec), position), wait)| {
            let counts = &report.counts;
            let recorded = observed.addon.status.placements.get(&spec.name);
            let good = recorded.and_then(|recorded| recorded.known_good.as_ref());
            // Settled on what is wanted in the end, on the way there, failed at it, and not started.
            let moving = counts.in_flight.saturating_sub(counts.failed);
            PlacementLine {
                name: report.name.to_string(),
                position,
                state: verdict::word(&report.state, report.reason),
                message: report.message.clone(),
                strategy: strategy(&spec.rollout),
                budget: verdict::budget(spec, counts),
                in_flight: moving,
                governed: counts.governed,
                done: counts.done,
                failed: counts.failed,
                waiting: counts.governed.saturating_sub(counts.done + moving + counts.failed),
                gate: gate(spec, report, wait),
                paused: spec.rollout.paused,
                wants: report.desired.as_deref().map(str::to_owned),
                target: report.target.as_deref().map(str::to_owned),
                known_good: good.map(|good| plan::label(observed, good).to_string()),
            }
        })
        .collect()
}

/// What holds the gate of each placement shut, as its clusters say.
fn canary_waits(placements: usize, clusters: &[ClusterReport]) -> Vec<Option<String>> {
    let mut waits = vec![None; placements];
    for cluster in clusters {
        if let (Decision::Hold(Wait::Canary(wait)), Some(place)) =
            (&cluster.decision, cluster.placement.and_then(|index| waits.get_mut(index)))
            && place.is_none()
        {
            *place = Some(wait.to_string());
        }
    }
    waits
}

fn gate(spec: &PlacementSpec, report: &PlacementReport, wait: Option<String>) -> Option<Value> {
    let canary = spec.rollout.canary.as_ref()?.to_string();
    let shut = match &report.state {
        State::WaitingForCanary(wait) => Some(wait.to_string()),
        _ => wait,
    };
    let message = shut.clone().unwrap_or_else(|| format!("open: what is wanted has passed {canary}"));
    Some(json!({"canary": canary, "open": shut.is_none(), "message": message}))
}

/// The rank of each placement in the order in which a revision reaches them: a canary goes before what waits for it.
fn positions(specs: &[PlacementSpec]) -> Vec<usize> {
    let canary_of = |spec: &PlacementSpec| {
        let canary = spec.rollout.canary.as_ref()?;
        specs.iter().position(|other| other.name == *canary)
    };
    let depth = |mut at: usize| {
        let mut depth = 0;
        // A cycle is a problem of its own: here it only must come to an end.
        while let Some(canary) = specs.get(at).and_then(canary_of).filter(|_| depth <= specs.len()) {
            at = canary;
            depth += 1;
        }
        depth
    };
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by_key(|&at| (depth(at), at));
    let mut positions = vec![0; specs.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if let Some(position) = positions.get_mut(at) {
            *position = rank;
        }
    }
    positions
}

/// A rollout strategy in one line.
fn strategy(rollout: &Rollout) -> String {
    let kind = if rollout.canary.is_some() { "RollingUpdateWithCanary" } else { "RollingUpdate" };
    let mut line = match rollout.pace {
        Pace::AllAtOnce => "UpdateAll".to_owned(),
        Pace::Rolling(limit) => format!("{kind} {limit}"),
        Pace::RollingByGroupSize => format!("{kind} by the size of decision groups"),
        Pace::PerGroup => "group by group".to_owned(),
    };
    if !rollout.mandatory.is_empty() {
        line.push_str(", mandatory groups first");
    }
    if let Some(limit) = &rollout.max_failures {
        line.push_str(&format!(", tolerates {limit} failed"));
    }
    if let Some(deadline) = rollout.progress_deadline {
        line.push_str(&format!(", deadline {}", duration::shown(deadline)));
    }
    if !rollout.min_success_time.is_zero() {
        line.push_str(&format!(", soaks {}", duration::shown(rollout.min_success_time)));
    }
    line
}

#[derive(Serialize)]
struct ReasonLine<'a> {
    code: &'static str,
    kind: u8,
    message: String,
    count: usize,
    examples: Vec<&'a str>,
}

/// What is not settled, and why: failed, removing, in flight, waiting; the largest group first.
fn reasons(plan: &Plan) -> Vec<ReasonLine<'_>> {
    let unsettled = plan.report.clusters.iter().filter(|cluster| cluster.decision != Decision::Settled);
    let mut groups = verdict::groups(unsettled);
    groups.sort_by_key(|group| (verdict::rank(&group.why.decision), std::cmp::Reverse(group.clusters.len())));
    groups
        .into_iter()
        .take(MOST_REASONS)
        .map(|group| ReasonLine {
            code: group.why.decision.code(),
            kind: kind(&group.why.decision),
            message: group.message,
            count: group.clusters.len(),
            examples: group.clusters.iter().take(EXAMPLES).map(|cluster| cluster.as_str()).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use aviary_engine::limit::Limit;
    use aviary_engine::name::PlacementName;

    use super::*;

    fn spec(name: &str, canary: Option<&str>) -> PlacementSpec {
        let of = |name: &str| PlacementName::new("default", name);
        PlacementSpec {
            name: of(name),
            configs: Vec::new(),
            version: None,
            install_namespace: None,
            rollout: Rollout { canary: canary.map(of), ..Rollout::default() },
            fault: None,
        }
    }

    #[test]
    fn a_canary_goes_before_what_waits_for_it() {
        let specs = [
            spec("fleet", Some("early")),
            spec("early", Some("canary")),
            spec("canary", None),
            spec("other", None),
        ];
        assert_eq!(positions(&specs), [3, 2, 0, 1]);
        let outside = [spec("fleet", Some("elsewhere")), spec("other", None)];
        assert_eq!(positions(&outside), [0, 1], "a canary that is not in the list holds no place");
        let cycle = [spec("a", Some("b")), spec("b", Some("a"))];
        assert_eq!(positions(&cycle).len(), 2, "a cycle comes to an end");
    }

    #[test]
    fn a_strategy_is_one_line() {
        let mut rollout = Rollout::default();
        assert_eq!(strategy(&rollout), "UpdateAll");
        rollout.pace = Pace::Rolling(Limit::Percent(25));
        rollout.max_failures = Some(Limit::Count(2));
        rollout.min_success_time = std::time::Duration::from_secs(300);
        assert_eq!(strategy(&rollout), "RollingUpdate 25%, tolerates 2 failed, soaks 5m");
        rollout.canary = Some(PlacementName::new("default", "canary"));
        assert!(strategy(&rollout).starts_with("RollingUpdateWithCanary 25%"));
    }

    #[test]
    fn only_the_counts_of_revisions_are_told_where_nothing_else_changed() {
        let line = |label: &str, clusters: usize| json!({"label": label, "clusters": clusters});
        let known = json!([line("v1", 3), line("v2", 0)]);
        assert_eq!(only_counts(&known, &json!([line("v1", 1), line("v2", 2)])), Some(json!([1, 2])));
        assert_eq!(only_counts(&known, &json!([line("v1", 3)])), None);
        assert_eq!(only_counts(&known, &json!([line("v1", 3), line("v3", 0)])), None);
    }
}
