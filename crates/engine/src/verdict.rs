//! Where an add-on stands as a whole: one word, one line, and who waits for what.
//!
//! Owns the judgement that commands and the dashboard share, so that no two of them say different
//! things of one snapshot. It reads a plan and its report, and decides nothing about clusters.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::explain::{Decision, Phase, Wait};
use crate::fleet::Fleet;
use crate::name::ClusterName;
use crate::observed::{Observed, Pace, PlacementSpec, Selection};
use crate::plan::{ClusterReport, PlacementReport, Plan, Step, Why};
use crate::problem::Problem;
use crate::reason::Reason;
use crate::rollout::{Counts, State};
use crate::wire::wire_enum;

/// How many texts of one kind of reason are shown apart.
const MOST_TEXTS: usize = 4;

/// The clusters of an add-on by what is decided for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterTally {
    pub clusters: usize,
    pub settled: usize,
    pub in_flight: usize,
    pub failed: usize,
    /// All others: they wait, or come, or go.
    pub waiting: usize,
    /// Those to which something is still to happen.
    pub unsettled: usize,
}

impl ClusterTally {
    pub fn of(plan: &Plan) -> Self {
        let mut tally = Self { clusters: plan.report.clusters.len(), ..Self::default() };
        for cluster in &plan.report.clusters {
            let count = match cluster.decision.phase() {
                Phase::Settled => &mut tally.settled,
                Phase::Failed => &mut tally.failed,
                Phase::InFlight | Phase::Starting => &mut tally.in_flight,
                Phase::Waiting | Phase::Leaving | Phase::Creating | Phase::Deleting => &mut tally.waiting,
            };
            *count += 1;
            tally.unsettled += usize::from(!is_at_rest(&cluster.decision));
        }
        tally
    }
}

wire_enum! {
    /// The state of an add-on or of a placement in one word.
    pub enum Verdict {
        // Of an add-on.
        Done = "Done",
        Progressing = "Progressing",
        LeftAlone = "LeftAlone",
        // Of both.
        Failed = "Failed",
        // Of a placement.
        Empty = "Empty",
        Installing = "Installing",
        Installed = "Installed",
        Upgrading = "Upgrading",
        Upgraded = "Upgraded",
        WaitingForCanary = "WaitingForCanary",
        Paused = "Paused",
    }
}

/// The state of an add-on in a word (`Done`, `Progressing`, `Failed` or `LeftAlone`) and in a line.
///
/// The order of the questions is the policy: what a person must mend comes before what time mends.
pub fn judge(
    observed: &Observed,
    plan: &Plan,
    tally: &ClusterTally,
    problems: &[Problem],
) -> (Verdict, String) {
    let report = &plan.report;
    if let Some(why) = report.left_alone {
        return (
            if observed.addon.deleting { Verdict::Progressing } else { Verdict::LeftAlone },
            why.to_owned(),
        );
    }
    let settled = format!("{} of {} settled", tally.settled, counted(tally.clusters, "cluster"));
    let failed = report.placements.iter().find(|one| one.verdict() == Verdict::Failed);
    if let Some(failed) = failed {
        return (Verdict::Failed, format!("{}: {}", failed.name, failed.message));
    }
    if let Some(problem) = problems.iter().find(|problem| !problem.is_warning()) {
        return (Verdict::Failed, problem.to_string());
    }
    if report.placements.is_empty() && tally.failed > 0 && tally.failed == tally.unsettled {
        return (Verdict::Failed, format!("{settled}, {} failed", tally.failed));
    }
    if tally.unsettled > 0 {
        return (Verdict::Progressing, settled);
    }
    if let Some(pending) = not_taken_up(observed, plan) {
        return (Verdict::Progressing, pending);
    }
    (Verdict::Done, settled)
}

/// What was applied a moment ago and nobody has looked at yet. Without this question a script that
/// applies and waits would be told that all is done before anything has begun.
fn not_taken_up(observed: &Observed, plan: &Plan) -> Option<String> {
    let mut placements = observed.addon.strategy.placements().iter().map(|spec| &spec.name);
    let undecided =
        placements.find(|name| observed.placements.get(*name).is_some_and(Selection::is_undecided));
    if let Some(name) = undecided {
        return Some(format!("{name}: no placement controller has decided yet which clusters it selects"));
    }
    // A change of an instance alone, such as an override, shows in nothing else.
    let pending = [Step::Reserve, Step::Settle, Step::Start, Step::Render];
    let pending = pending.into_iter().any(|step| !plan.step(step).is_empty());
    pending.then(|| "the manager has not taken it up yet".to_owned())
}

/// Nothing is to happen to it any more.
pub fn is_at_rest(decision: &Decision) -> bool {
    matches!(decision, Decision::Settled | Decision::Hold(Wait::Kept))
}

impl PlacementReport {
    /// The state of the placement in one word. A placement that is not known has failed, whatever
    /// its clusters do.
    pub fn verdict(&self) -> Verdict {
        match &self.state {
            _ if self.reason.is_failure() => Verdict::Failed,
            State::Empty => Verdict::Empty,
            State::Installing => Verdict::Installing,
            State::InstallSucceeded => Verdict::Installed,
            State::Upgrading => Verdict::Upgrading,
            State::UpgradeSucceeded => Verdict::Upgraded,
            State::WaitingForCanary(_) => Verdict::WaitingForCanary,
            State::Paused => Verdict::Paused,
            State::Failed(_) => Verdict::Failed,
        }
    }
}

/// How many clusters of a placement may be in flight; `None` where the strategy sets no number.
pub fn budget(spec: &PlacementSpec, counts: &Counts) -> Option<usize> {
    match spec.rollout.pace {
        Pace::Rolling(_) | Pace::RollingByGroupSize => Some(counts.budget),
        Pace::AllAtOnce | Pace::PerGroup => None,
    }
}

/// What is wrong, each once: what was told, what is wrong with the placements' revisions, and with
/// what instances override.
pub fn problems<'p>(observed: &Observed, told: impl Iterator<Item = &'p Problem>) -> Vec<Problem> {
    problems_in(&Fleet::line_up(observed), told)
}

/// The same of a fleet that is lined up already.
pub fn problems_in<'p>(fleet: &Fleet<'_>, told: impl Iterator<Item = &'p Problem>) -> Vec<Problem> {
    let wanted = fleet.governors.iter().filter_map(|governor| governor.desired.as_ref().err());
    let overrides = fleet.overrides().flat_map(|overrides| &overrides.problems);
    let mut seen = BTreeSet::new();
    let found: Vec<&Problem> = wanted.chain(overrides).collect();
    let mut all: Vec<Problem> = told.filter(|problem| seen.insert(problem.to_string())).cloned().collect();
    all.extend(found.into_iter().filter(|problem| seen.insert(problem.to_string())).cloned());
    all
}

/// Clusters with the same reason.
#[derive(Clone, Debug)]
pub struct ReasonGroup<'p> {
    /// What the first of them has; all have its kind and its code.
    pub why: &'p Why,
    pub message: String,
    pub clusters: Vec<&'p ClusterName>,
}

/// Clusters by reason: the same text together, and where texts are many, the same kind of reason.
pub fn groups<'p>(clusters: impl Iterator<Item = &'p ClusterReport>) -> Vec<ReasonGroup<'p>> {
    let mut groups: Vec<ReasonGroup<'p>> = Vec::new();
    let mut known: HashMap<(Reason, String), usize> = HashMap::new();
    // A text is made once for all that share it: a fleet has thousands of clusters and few
    // different reasons.
    let mut by_address: HashMap<*const Why, usize> = HashMap::new();
    for cluster in clusters {
        let at = *by_address.entry(Arc::as_ptr(&cluster.why)).or_insert_with(|| {
            let (code, message) = (cluster.decision.code(), cluster.decision.to_string());
            *known.entry((code, message.clone())).or_insert_with(|| {
                groups.push(ReasonGroup { why: &cluster.why, message, clusters: Vec::new() });
                groups.len() - 1
            })
        });
        if let Some(group) = groups.get_mut(at) {
            group.clusters.push(&cluster.cluster);
        }
    }
    let mut texts: HashMap<Reason, usize> = HashMap::new();
    for group in &groups {
        *texts.entry(group.why.decision.code()).or_default() += 1;
    }
    let mut merged: Vec<ReasonGroup<'p>> = Vec::new();
    let mut place: HashMap<Reason, usize> = HashMap::new();
    for mut group in groups {
        let code = group.why.decision.code();
        let others = texts.get(&code).copied().unwrap_or(0).saturating_sub(1);
        if others < MOST_TEXTS {
            merged.push(group);
            continue;
        }
        match place.get(&code).and_then(|&at| merged.get_mut(at)) {
            Some(known) => known.clusters.append(&mut group.clusters),
            None => {
                place.insert(code, merged.len());
                group.message = format!("{} (and {others} texts like it)", group.message);
                merged.push(group);
            }
        }
    }
    merged
}

/// A number with its noun.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
