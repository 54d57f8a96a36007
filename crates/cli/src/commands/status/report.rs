//! Where rollouts stand, as data: what `-o json` prints, and what the text is made from. Fields are added, never changed or removed.

use aviary_controller::View;
use aviary_engine::explain::{Decision, Wait};
use aviary_engine::observed::Observed;
use aviary_engine::plan::{self, ClusterReport, Plan};
use aviary_engine::rollout::{Failure, State};
use jiff::Timestamp;
use serde::Serialize;

use crate::commands::Outcome;
use crate::commands::plan::report::{PlacementSummary, ProblemLine, placements, problems};
use crate::findings::Severity;
use crate::live::seconds;
use crate::output::counted;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusReport {
    version: u32,
    pub(crate) now: String,
    pub(crate) notes: Vec<String>,
    pub(crate) add_ons: Vec<AddOnState>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddOnState {
    pub(crate) name: String,
    pub(crate) state: &'static str,
    pub(crate) message: String,
    pub(crate) clusters: usize,
    pub(crate) settled: usize,
    pub(crate) in_flight: usize,
    pub(crate) failed: usize,
    pub(crate) waiting: usize,
    pub(crate) placements: Vec<PlacementState>,
    pub(crate) unsettled: Vec<Unsettled>,
    pub(crate) problems: Vec<ProblemLine>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlacementState {
    pub(crate) state: &'static str,
    /// Settled on what the placement wants in the end, which a canary may still keep from being its target.
    pub(crate) done: usize,
    #[serde(flatten)]
    pub(crate) summary: PlacementSummary,
}

impl PlacementState {
    /// On their way, failed, and not started, towards what is wanted in the end.
    pub(crate) fn left(&self) -> [usize; 3] {
        let one = &self.summary;
        let moving = one.in_flight.saturating_sub(one.failed);
        [moving, one.failed, one.governed.saturating_sub(self.done + moving + one.failed)]
    }

    /// How many have what is wanted, have been told it, or failed at it.
    pub(crate) fn counts(&self) -> String {
        let [moving, failed, waiting] = self.left();
        format!("{} done, {moving} in flight, {failed} failed, {waiting} waiting", self.done)
    }
}

/// A cluster that has not settled.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unsettled {
    pub(crate) cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) placement: Option<String>,
    pub(crate) kind: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<String>,
}

impl StatusReport {
    /// Of all add-ons that are seen.
    pub(crate) fn of(view: &mut View, now: Timestamp) -> Self {
        let mut add_ons = Vec::new();
        for addon in view.addons() {
            add_ons.extend(
                view.observe(&addon, |observed| AddOnState::of(observed, &plan::plan(observed, now))),
            );
        }
        Self { version: 1, now: seconds(now).to_string(), notes: left_out(view), add_ons }
    }

    /// The outcome of all: of the one that most wants to be looked at.
    pub(crate) fn outcome(&self) -> Outcome {
        self.most_urgent().map_or(Outcome::Done, AddOnState::outcome)
    }

    /// The add-on that most wants to be looked at.
    pub(crate) fn most_urgent(&self) -> Option<&AddOnState> {
        self.add_ons.iter().min_by_key(|addon| match addon.outcome() {
            Outcome::Failed | Outcome::NotDone => 0,
            Outcome::Progressing => 1,
            Outcome::Done => 2,
        })
    }
}

/// Objects that could not be understood, a few by name.
pub(crate) fn left_out(view: &View) -> Vec<String> {
    const NAMED: usize = 5;
    let unread = view.unread();
    let mut notes: Vec<String> = unread
        .iter()
        .take(NAMED)
        .map(|object| format!("left out, because it cannot be read: {object}"))
        .collect();
    if unread.len() > NAMED {
        notes.push(format!("and {} that cannot be read", counted(unread.len() - NAMED, "more object")));
    }
    notes
}

impl AddOnState {
    pub(crate) fn of(observed: &Observed, plan: &Plan) -> Self {
        let clusters = &plan.report.clusters;
        let of_kind = |kind: &str| clusters.iter().filter(|cluster| cluster.decision.kind() == kind).count();
        let mut unsettled: Vec<&ClusterReport> =
            clusters.iter().filter(|cluster| !is_at_rest(&cluster.decision)).collect();
        unsettled.sort_by_key(|cluster| rank(&cluster.decision));
        let placements: Vec<PlacementState> = plan
            .report
            .placements
            .iter()
            .zip(placements(observed, plan))
            .map(|(report, summary)| PlacementState {
                state: word(&report.state, report.reason),
                done: report.counts.done,
                summary,
            })
            .collect();
        let problems = problems(observed, plan.report.problems.iter());
        let mut state = Self {
            name: observed.addon.name.to_string(),
            state: "",
            message: String::new(),
            clusters: clusters.len(),
            settled: of_kind("settled"),
            in_flight: of_kind("in flight") + of_kind("start"),
            failed: of_kind("failed"),
            waiting: of_kind("hold") + of_kind("create") + of_kind("delete"),
            placements,
            unsettled: unsettled.into_iter().map(|cluster| Unsettled::of(observed, cluster)).collect(),
            problems,
        };
        (state.state, state.message) = state.judged(plan.report.left_alone, observed.addon.deleting);
        state
    }

    /// The order of the questions is the policy: what a person must mend comes before what time mends.
    fn judged(&self, left_alone: Option<&str>, deleting: bool) -> (&'static str, String) {
        if let Some(why) = left_alone {
            return (if deleting { "Progressing" } else { "LeftAlone" }, why.to_owned());
        }
        let settled = format!("{} of {} settled", self.settled, counted(self.clusters, "cluster"));
        if let Some(failed) = self.placements.iter().find(|placement| placement.state == "Failed") {
            return ("Failed", format!("{}: {}", failed.summary.placement, failed.summary.message));
        }
        if let Some(problem) = self.problems.iter().find(|problem| problem.severity == Severity::Error) {
            return ("Failed", problem.message.clone());
        }
        if self.placements.is_empty() && self.failed > 0 && self.failed == self.unsettled.len() {
            return ("Failed", format!("{settled}, {} failed", self.failed));
        }
        if !self.unsettled.is_empty() {
            return ("Progressing", settled);
        }
        ("Done", settled)
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self.state {
            "Failed" => Outcome::Failed,
            "Progressing" => Outcome::Progressing,
            _ => Outcome::Done,
        }
    }
}

impl Unsettled {
    fn of(observed: &Observed, cluster: &ClusterReport) -> Self {
        let placement = cluster.placement.and_then(|index| observed.addon.strategy.placements().get(index));
        Self {
            cluster: cluster.cluster.to_string(),
            placement: placement.map(|spec| spec.name.to_string()),
            kind: cluster.decision.kind(),
            reason: cluster.decision.code(),
            message: cluster.decision.to_string(),
            told: cluster.told.as_deref().map(str::to_owned),
        }
    }
}

/// Nothing is to happen to it any more.
fn is_at_rest(decision: &Decision) -> bool {
    matches!(decision, Decision::Settled | Decision::Hold(Wait::Kept))
}

/// What wants to be looked at first.
fn rank(decision: &Decision) -> u8 {
    match decision {
        Decision::InFlight(flight) if flight.is_failure() => 0,
        Decision::Delete(_) => 1,
        Decision::InFlight(_) => 2,
        Decision::Start(_) | Decision::Create => 3,
        Decision::Hold(_) => 4,
        Decision::Settled => 5,
    }
}

/// The state of a placement in one word.
fn word(state: &State, reason: &str) -> &'static str {
    match state {
        _ if reason.ends_with("Failed") => "Failed",
        State::Empty => "Empty",
        State::Installing => "Installing",
        State::InstallSucceeded => "Installed",
        State::Upgrading => "Upgrading",
        State::UpgradeSucceeded => "Upgraded",
        State::WaitingForCanary(_) => "WaitingForCanary",
        State::Paused => "Paused",
        State::Failed(
            Failure::Problem(_)
            | Failure::Halted { .. }
            | Failure::Stalled { .. }
            | Failure::CompletedWithFailures { .. },
        ) => "Failed",
    }
}
