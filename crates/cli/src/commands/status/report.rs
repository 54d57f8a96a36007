//! The progress of rollouts as data: what `-o json` prints, and the source of the text. Fields are
//! added, never changed or removed.

use aviary_controller::View;
use aviary_engine::explain::Phase;
use aviary_engine::observed::Observed;
use aviary_engine::plan::{self, ClusterReport, Plan};
use aviary_engine::reason::Reason;
use aviary_engine::verdict::{self, ClusterTally, Verdict};
use jiff::Timestamp;
use serde::Serialize;

use crate::commands::Outcome;
use crate::commands::plan::report::{PlacementSummary, ProblemLine, placements};
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
    pub(crate) state: Verdict,
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
    pub(crate) state: Verdict,
    /// Settled on the desired revision. A canary may still keep it from being the target.
    pub(crate) done: usize,
    #[serde(flatten)]
    pub(crate) summary: PlacementSummary,
}

impl PlacementState {
    /// In flight, failed, and not started, on the way to the desired revision.
    pub(crate) fn left(&self) -> [usize; 3] {
        let one = &self.summary;
        let moving = one.in_flight.saturating_sub(one.failed);
        [moving, one.failed, one.governed.saturating_sub(self.done + moving + one.failed)]
    }

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
    pub(crate) kind: Phase,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<String>,
}

impl StatusReport {
    pub(crate) fn of(view: &mut View, now: Timestamp) -> Self {
        let mut add_ons = Vec::new();
        for addon in view.addons() {
            add_ons.extend(
                view.observe(&addon, |observed| AddOnState::of(observed, &plan::plan(observed, now))),
            );
        }
        Self { version: 1, now: seconds(now).to_string(), notes: left_out(view), add_ons }
    }

    /// The outcome of the most urgent add-on.
    pub(crate) fn outcome(&self) -> Outcome {
        self.most_urgent().map_or(Outcome::Done, AddOnState::outcome)
    }

    /// The add-on that most needs attention.
    pub(crate) fn most_urgent(&self) -> Option<&AddOnState> {
        self.add_ons.iter().min_by_key(|addon| match addon.outcome() {
            Outcome::Failed | Outcome::NotDone => 0,
            Outcome::Progressing => 1,
            Outcome::Done => 2,
        })
    }
}

/// Objects that could not be read, a few of them by name.
pub(crate) fn left_out(view: &View) -> Vec<String> {
    const NAMED: usize = 5;
    let unread = view.unread();
    let mut notes: Vec<String> = unread
        .iter()
        .take(NAMED)
        .map(|object| format!("ignored, because it cannot be read: {object}"))
        .collect();
    if unread.len() > NAMED {
        notes.push(format!("and {} that cannot be read", counted(unread.len() - NAMED, "more object")));
    }
    notes
}

impl AddOnState {
    pub(crate) fn of(observed: &Observed, plan: &Plan) -> Self {
        let mut unsettled: Vec<&ClusterReport> =
            plan.report.clusters.iter().filter(|cluster| !verdict::is_at_rest(&cluster.decision)).collect();
        unsettled.sort_by_key(|cluster| cluster.decision.phase().rank());
        let placements: Vec<PlacementState> = plan
            .report
            .placements
            .iter()
            .zip(placements(observed, plan))
            .map(|(report, summary)| PlacementState {
                state: report.verdict(),
                done: report.counts.done,
                summary,
            })
            .collect();
        let problems = verdict::problems(observed, plan.report.problems.iter());
        let tally = ClusterTally::of(plan);
        let (state, message) = verdict::judge(observed, plan, &tally, &problems);
        Self {
            name: observed.addon.name.to_string(),
            state,
            message,
            clusters: tally.clusters,
            settled: tally.settled,
            in_flight: tally.in_flight,
            failed: tally.failed,
            waiting: tally.waiting,
            placements,
            unsettled: unsettled.into_iter().map(|cluster| Unsettled::of(observed, cluster)).collect(),
            problems: problems.iter().map(ProblemLine::of).collect(),
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self.state {
            Verdict::Failed => Outcome::Failed,
            Verdict::Progressing => Outcome::Progressing,
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
            kind: cluster.decision.phase(),
            reason: cluster.decision.code(),
            message: cluster.decision.to_string(),
            told: cluster.told.as_deref().map(str::to_owned),
        }
    }
}
