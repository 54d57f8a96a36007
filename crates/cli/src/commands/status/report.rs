//! The progress of rollouts as data: what `-o json` prints, and the source of the text. Fields are
//! added, never changed or removed.

use aviary_controller::View;
use aviary_engine::fleet::Fleet;
use aviary_engine::observed::Observed;
use aviary_engine::plan::{self, ClusterReport, Plan};
use aviary_engine::problem::Problem;
use aviary_engine::reason::Reason;
use aviary_engine::tally::{ClusterState, ClusterTally};
use aviary_engine::verdict::{self, Verdict};
use jiff::Timestamp;
use serde::Serialize;

use super::Until;
use crate::commands::Outcome;
use crate::commands::plan::report::{PlacementSummary, ProblemLine, placements};
use crate::live::{LiveArgs, seconds};
use crate::output::{counted, first_few};

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
    pub(crate) observed: bool,
    pub(crate) clusters: usize,
    pub(crate) settled: usize,
    pub(crate) in_flight: usize,
    pub(crate) failed: usize,
    pub(crate) waiting: usize,
    pub(crate) leaving: usize,
    pub(crate) placements: Vec<PlacementState>,
    pub(crate) unsettled: Vec<Unsettled>,
    pub(crate) problems: Vec<ProblemLine>,
    /// The listed placements that do not exist.
    #[serde(skip)]
    missing: Vec<String>,
    /// Deletions wait for approval.
    #[serde(skip)]
    holds_deletions: bool,
    /// A placement has completed another revision than the desired one.
    #[serde(skip)]
    pub(crate) can_undo: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlacementState {
    pub(crate) state: Verdict,
    /// The older name of `settled`.
    pub(crate) done: usize,
    #[serde(flatten)]
    pub(crate) summary: PlacementSummary,
    /// Its rank in the order in which a revision reaches the placements.
    #[serde(skip)]
    pub(crate) position: usize,
}

impl PlacementState {
    pub(crate) fn counts(&self) -> String {
        let PlacementSummary { settled, in_flight, failed, waiting, leaving, .. } = &self.summary;
        let leaving = if *leaving > 0 { format!(", {leaving} leaving") } else { String::new() };
        format!("{settled} settled, {in_flight} in flight, {failed} failed, {waiting} waiting{leaving}")
    }

    /// How many clusters may be in flight. The budget does not limit first installs.
    pub(crate) fn pace(&self) -> String {
        match self.summary.budget {
            Some(_) if self.state == Verdict::Installing => "first installs all at once".to_owned(),
            Some(budget) => format!("at most {budget} at once"),
            None => "all at once".to_owned(),
        }
    }

    /// The counts that are not zero, the budget and the canary.
    pub(crate) fn counts_and_pace(&self) -> String {
        let PlacementSummary { in_flight, failed, waiting, leaving, canary, .. } = &self.summary;
        let parts =
            [(in_flight, "in flight"), (failed, "failed"), (waiting, "waiting"), (leaving, "leaving")];
        let parts = parts.into_iter().filter(|(count, _)| **count > 0);
        let mut parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        parts.push(self.pace());
        parts.extend(canary.as_ref().map(|canary| format!("behind {canary}")));
        parts.join(", ")
    }
}

/// The message of a placement that exists and is not decided yet.
pub(crate) const UNDECIDED: &str = "no placement controller has chosen its clusters yet";

/// A cluster that has not settled.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unsettled {
    pub(crate) cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) placement: Option<String>,
    pub(crate) kind: ClusterState,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<String>,
}

impl StatusReport {
    pub(crate) fn of(view: &mut View, now: Timestamp) -> Self {
        let mut add_ons = Vec::new();
        let mut not_probed = Vec::new();
        for addon in view.addons() {
            let state = view.observe(&addon, |observed| {
                let plan = plan::plan(observed, now).recorded();
                let count = plan.report.not_probed;
                not_probed.extend((count > 0).then(|| {
                    format!(
                        "not probed: {} of {addon} have works {}",
                        counted(count, "cluster"),
                        plan.report.maker_of_not_probed()
                    )
                }));
                AddOnState::of(observed, &plan)
            });
            add_ons.extend(state);
        }
        let notes = left_out(view).into_iter().chain(not_probed).collect();
        Self { version: 1, now: seconds(now).to_string(), notes, add_ons }
    }

    /// The outcome of the most urgent add-on.
    pub(crate) fn outcome(&self) -> Outcome {
        self.most_urgent().map_or(Outcome::Done, AddOnState::outcome)
    }

    /// The outcome of waiting for something.
    pub(crate) fn outcome_for(&self, until: Until) -> Outcome {
        let outcomes: Vec<Outcome> = self.add_ons.iter().map(|addon| addon.outcome_for(until)).collect();
        let any = |outcome: Outcome| outcomes.contains(&outcome);
        match until {
            Until::Settled => self.outcome(),
            // One halted add-on is enough.
            Until::Halted if any(Outcome::Done) => Outcome::Done,
            Until::Halted if any(Outcome::Progressing) => Outcome::Progressing,
            Until::Halted => Outcome::Failed,
            Until::CanaryPassed if any(Outcome::Failed) => Outcome::Failed,
            Until::CanaryPassed if any(Outcome::Progressing) => Outcome::Progressing,
            Until::CanaryPassed => Outcome::Done,
        }
    }

    pub(crate) fn has_canary(&self) -> bool {
        let mut placements = self.add_ons.iter().flat_map(|addon| &addon.placements);
        placements.any(|placement| placement.summary.canary.is_some())
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
        unsettled.sort_by_key(|cluster| cluster.decision.state().rank());
        let placements: Vec<PlacementState> = plan
            .report
            .placements
            .iter()
            .zip(placements(observed, plan))
            .zip(verdict::positions(observed.addon.strategy.placements()))
            .map(|((report, mut summary), position)| {
                let state = verdict::of_placement(observed, report);
                if state == Verdict::Undecided {
                    summary.reason = Reason::PlacementUndecided;
                    summary.message = UNDECIDED.to_owned();
                }
                PlacementState { state, done: report.tally.settled, summary, position }
            })
            .collect();
        let problems = verdict::problems(observed, plan.report.problems.iter());
        let tally = ClusterTally::of(&plan.report.clusters);
        let (state, message) = verdict::judge(observed, plan, &tally, &problems);
        Self {
            name: observed.addon.name.to_string(),
            state,
            message,
            observed: verdict::not_taken_up(observed, plan).is_none(),
            clusters: tally.clusters,
            settled: tally.settled,
            in_flight: tally.in_flight,
            failed: tally.failed,
            waiting: tally.waiting,
            leaving: tally.leaving,
            placements,
            unsettled: unsettled.into_iter().map(|cluster| Unsettled::of(observed, cluster)).collect(),
            missing: missing(&problems),
            holds_deletions: problems.iter().any(|one| matches!(one, Problem::DeletionHeld { .. })),
            can_undo: can_undo(observed),
            problems: problems.iter().map(ProblemLine::of).collect(),
        }
    }

    /// The next step where it has nothing to do with the rollout itself.
    pub(crate) fn first_step(&self, program: &str, live: &LiveArgs) -> Option<String> {
        if !self.missing.is_empty() {
            let placements = first_few(&self.missing);
            return Some(format!("create the Placement {placements}, or correct the add-on's placements"));
        }
        if self.holds_deletions {
            let name = &self.name;
            return Some(format!(
                "{program} plan {name}{} # what would be deleted, and how to approve it",
                live.typed()
            ));
        }
        let mut placements = self.placements.iter().filter(|_| self.state == Verdict::Progressing);
        let undecided = placements.find(|placement| placement.state == Verdict::Undecided)?;
        let (namespace, name) = undecided.summary.placement.split_once('/')?;
        Some(format!(
            "{} -n {namespace} get placement {name} -o yaml # which controller should decide it",
            live.hub.kubectl()
        ))
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self.state {
            Verdict::Failed => Outcome::Failed,
            Verdict::Progressing => Outcome::Progressing,
            _ => Outcome::Done,
        }
    }
}

impl AddOnState {
    fn outcome_for(&self, until: Until) -> Outcome {
        match (until, self.outcome()) {
            (Until::Settled, outcome) => outcome,
            (Until::Halted, Outcome::Failed | Outcome::NotDone) => Outcome::Done,
            (Until::Halted, Outcome::Done) => Outcome::Failed,
            (Until::Halted, Outcome::Progressing) => Outcome::Progressing,
            (Until::CanaryPassed, _) if self.observed && self.canaries_passed() => Outcome::Done,
            (Until::CanaryPassed, Outcome::Done) => Outcome::Progressing,
            (Until::CanaryPassed, outcome) => outcome,
        }
    }

    /// Whether no placement is kept from its desired revision by a canary.
    fn canaries_passed(&self) -> bool {
        let mut gated = self.placements.iter().filter(|placement| placement.summary.canary.is_some());
        gated.all(|placement| {
            let one = &placement.summary;
            placement.state != Verdict::WaitingForCanary && one.desired.is_some() && one.desired == one.target
        })
    }
}

fn missing(problems: &[Problem]) -> Vec<String> {
    let missing = problems.iter().filter_map(|problem| match problem {
        Problem::PlacementUnknown { placement } => Some(placement.to_string()),
        _ => None,
    });
    missing.collect()
}

/// Whether there is a revision to roll back to.
fn can_undo(observed: &Observed) -> bool {
    Fleet::line_up(observed).governors.iter().any(|governor| {
        let completed = observed.revisions.completed.get(&governor.spec.name);
        completed.into_iter().flatten().any(|revision| governor.desired.as_ref().ok() != Some(revision))
    })
}

impl Unsettled {
    fn of(observed: &Observed, cluster: &ClusterReport) -> Self {
        let placement = cluster.placement.and_then(|index| observed.addon.strategy.placements().get(index));
        Self {
            cluster: cluster.cluster.to_string(),
            placement: placement.map(|spec| spec.name.to_string()),
            kind: cluster.decision.state(),
            reason: cluster.decision.code(),
            message: cluster.decision.to_string(),
            told: cluster.told.as_deref().map(str::to_owned),
        }
    }
}
