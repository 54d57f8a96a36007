//! The state of an add-on as a whole: one word, one line, and the waiting clusters by reason.
//!
//! Shared by commands and the dashboard, so that they never report different states for the same
//! snapshot. Reads a plan and its report; decides nothing about clusters.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use aviary_api::names::conditions::PROGRESSING;
use jiff::Timestamp;

use crate::explain::{Decision, Wait};
use crate::fleet::Fleet;
use crate::name::{ClusterName, PlacementName};
use crate::observed::{InstallPlacement, Observed, ObservedCondition, Pace, Selection};
use crate::plan::{ClusterReport, PlacementReport, Plan, Report, Step, Why};
use crate::problem::Problem;
use crate::reason::Reason;
use crate::rollout::{Counts, State};
use crate::tally::{ClusterState, ClusterTally};
use crate::wire::wire_enum;

/// How many different messages with the same reason are shown separately.
const MOST_TEXTS: usize = 4;

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
        Undecided = "Undecided",
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
/// The order of the questions is the policy: what somebody must fix comes before what time fixes.
/// An override that cannot be resolved moves no cluster: it is named and does not change the word.
/// `problems` are those of [`problems`].
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
    let paused = paused(observed);
    let failed = report.placements.iter().find(|one| one.verdict() == Verdict::Failed);
    if let Some(failed) = failed {
        return (Verdict::Failed, format!("{}: {}{paused}", failed.name, failed.without_counts()));
    }
    if let Some(problem) = report.problems.iter().find(|problem| !problem.is_warning()) {
        return (Verdict::Failed, format!("{problem}{paused}"));
    }
    let settled = settled + &broken_overrides(report, problems);
    let unsettled = tally.unsettled().saturating_sub(left_out(report).count());
    if unsettled > tally.failed {
        return (Verdict::Progressing, format!("{settled}{paused}"));
    }
    if let Some(pending) = not_taken_up(observed, plan) {
        return (Verdict::Progressing, pending);
    }
    match tally.failed {
        0 => (Verdict::Done, settled + &paused),
        // Nothing moves a failed cluster, also in a placement that had completed before.
        failed => (Verdict::Failed, format!("{settled}, {failed} failed{paused}")),
    }
}

/// What is wrong with the overrides of instances, each once. A problem of a placement's own
/// revision has failed the placement, so whatever is left here is about overrides.
fn broken_overrides(report: &Report, problems: &[Problem]) -> String {
    let others =
        problems.iter().filter(|problem| !problem.is_warning() && !report.problems.contains(problem));
    let of_left_out = left_out(report).filter_map(|cluster| match &cluster.decision {
        Decision::Hold(Wait::Problem(problem)) => Some(&**problem),
        _ => None,
    });
    let broken: BTreeSet<String> =
        others.chain(of_left_out).collect::<HashSet<_>>().into_iter().map(ToString::to_string).collect();
    match (broken.first(), broken.len()) {
        (None, _) => String::new(),
        (Some(first), 1) => format!("; broken override: {first}"),
        (Some(first), all) => {
            format!("; broken overrides: {first}, and {}", counted(all - 1, "more problem"))
        }
    }
}

/// Clusters whose override cannot be resolved, in no placement or in one that completed without
/// them.
fn left_out(report: &Report) -> impl Iterator<Item = &ClusterReport> {
    report.clusters.iter().filter(|cluster| {
        let placement = cluster.placement.and_then(|index| report.placements.get(index));
        let is_complete = placement.is_none_or(|placement| {
            matches!(placement.verdict(), Verdict::Installed | Verdict::Upgraded | Verdict::Empty)
        });
        let is_refused = cluster.decision.code() == Reason::WriteRefused;
        is_complete && !is_refused && matches!(cluster.decision, Decision::Hold(Wait::Problem(_)))
    })
}

/// Since when clusters of a placement have been waiting for its rollout, which is in progress or
/// has stopped.
pub fn waits_since(observed: &Observed, placement: &PlacementReport) -> Option<Timestamp> {
    let recorded = observed.addon.status.placements.get(&placement.name)?;
    let condition = ObservedCondition::find(&recorded.conditions, PROGRESSING)?;
    let stands = condition.is_true() || condition.reason.is(Reason::is_failure);
    condition.since.filter(|_| stands && placement.tally.waiting > 0)
}

/// The placements that exist, and for which no controller has chosen clusters yet.
pub fn undecided(observed: &Observed) -> impl Iterator<Item = &PlacementName> {
    let placements = observed.addon.strategy.placements().iter().map(|spec| &spec.name);
    placements.filter(|name| observed.placements.get(*name).is_some_and(Selection::is_undecided))
}

/// The state of a placement in one word, also if no controller has chosen its clusters yet.
pub fn of_placement(observed: &Observed, report: &PlacementReport) -> Verdict {
    match report.verdict() {
        Verdict::Empty if undecided(observed).any(|name| *name == report.name) => Verdict::Undecided,
        verdict => verdict,
    }
}

/// Why it is not known yet which clusters an existing placement selects.
pub(crate) fn uncertain(observed: &Observed, spec: &InstallPlacement) -> Option<(Reason, String)> {
    let (name, selection) = (&spec.name, observed.placements.get(&spec.name)?);
    if selection.is_undecided() {
        let message = format!("{name}: no placement controller has decided yet which clusters it selects");
        return Some((Reason::PlacementUndecided, message));
    }
    if selection.outdated {
        let message = format!("{name}: its clusters have not been chosen again since it was changed");
        return Some((Reason::PlacementInMotion, message));
    }
    let (published, decided) = selection.in_motion()?;
    let message = format!("{name}: its decisions hold {decided} of {published} clusters so far");
    Some((Reason::PlacementInMotion, message))
}

/// Names the paused placements, also while there is nothing to start: the next change would not.
fn paused(observed: &Observed) -> String {
    let paused = observed.addon.strategy.placements().iter().filter(|spec| spec.rollout.paused);
    let names: Vec<String> = paused.map(|spec| spec.name.to_string()).collect();
    if names.is_empty() { String::new() } else { format!("; paused: {}", names.join(", ")) }
}

/// A change that the manager has not processed yet. Without this check, a script that applies a
/// change and waits would see success before anything has started.
pub fn not_taken_up(observed: &Observed, plan: &Plan) -> Option<String> {
    let mut placements = observed.addon.strategy.placements().iter();
    if let Some((_, message)) = placements.find_map(|spec| uncertain(observed, spec)) {
        return Some(message);
    }
    let addon = &observed.addon;
    if addon.status.observed_generation.is_some_and(|seen| seen != addon.generation) {
        return Some("the manager has not processed the change yet".to_owned());
    }
    // A change of a single instance, such as an override, shows only here.
    let pending = [Step::Reserve, Step::Settle, Step::Start, Step::Render];
    let pending = pending.into_iter().any(|step| !plan.step(step).is_empty());
    pending.then(|| "the manager has not processed the change yet".to_owned())
}

/// Whether nothing more will happen to the cluster.
pub fn is_at_rest(decision: &Decision) -> bool {
    decision.state() == ClusterState::Settled
}

impl PlacementReport {
    /// The state of the placement in one word. An unknown placement has failed, whatever the state
    /// of its clusters.
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

/// How many clusters of a placement may be in flight; `None` if the strategy sets no limit.
pub fn budget(spec: &InstallPlacement, counts: &Counts) -> Option<usize> {
    match spec.rollout.pace {
        Pace::Rolling(_) | Pace::RollingByGroupSize => Some(counts.budget),
        Pace::AllAtOnce | Pace::PerGroup => None,
    }
}

/// The rank of each placement in the order in which a revision reaches them: a canary comes before
/// the placements that wait for it.
pub fn positions(specs: &[InstallPlacement]) -> Vec<usize> {
    let depths = depths(specs);
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by_key(|&at| (depths.get(at), at));
    let mut positions = vec![0; specs.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if let Some(position) = positions.get_mut(at) {
            *position = rank;
        }
    }
    positions
}

/// How many canaries each placement waits for, one after the other.
fn depths(specs: &[InstallPlacement]) -> Vec<usize> {
    let mut canaries: Vec<(usize, usize)> = Vec::new();
    for (at, spec) in specs.iter().enumerate() {
        let place = |canary: &PlacementName| specs.iter().position(|other| other.name == *canary);
        canaries.extend(spec.rollout.canaries().filter_map(place).map(|canary| (at, canary)));
    }
    let mut depths = vec![0; specs.len()];
    // A cycle is reported as a problem elsewhere. Here the loop only has to terminate.
    for _ in specs {
        let before = depths.clone();
        for &(at, canary) in &canaries {
            let least = depths.get(canary).map_or(0, |depth| depth + 1);
            if let Some(depth) = depths.get_mut(at) {
                *depth = least.max(*depth);
            }
        }
        if depths == before {
            break;
        }
    }
    depths
}

/// All problems, each once: those given, those of the placements' revisions, and those of
/// overrides.
pub fn problems<'p>(observed: &Observed, told: impl Iterator<Item = &'p Problem>) -> Vec<Problem> {
    problems_in(&Fleet::line_up(observed), told)
}

/// The same, for a fleet that is already lined up.
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
    /// The decision of the first cluster; all have the same phase and reason.
    pub why: &'p Why,
    pub message: String,
    pub clusters: Vec<&'p ClusterName>,
}

/// Groups clusters by message or, if there are many different messages, by reason.
pub fn groups<'p>(clusters: impl Iterator<Item = &'p ClusterReport>) -> Vec<ReasonGroup<'p>> {
    let mut groups: Vec<ReasonGroup<'p>> = Vec::new();
    let mut known: HashMap<(Reason, String), usize> = HashMap::new();
    // Each message is formatted once: a fleet has thousands of clusters and few different reasons.
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
                group.message = format!("{} (and {others} similar messages)", group.message);
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
