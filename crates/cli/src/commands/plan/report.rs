//! The plan as data: what `-o json` prints, and the source of the text. Fields are added, never
//! changed or removed.

use std::collections::BTreeMap;

use aviary_engine::difference::{self, PinChange};
use aviary_engine::explain::{Decision, Phase};
use aviary_engine::fleet::Fleet;
use aviary_engine::name::ClusterName;
use aviary_engine::observed::Observed;
use aviary_engine::plan::{self, ClusterReport, Plan, Write};
use aviary_engine::problem::Problem;
use aviary_engine::reason::Reason;
use aviary_engine::verdict::{self, Verdict};
use jiff::Timestamp;
use serde::Serialize;

use super::radius::Waves;
use super::waves::{self, StartedCluster, Walk};
use crate::commands::source::{AddOnFleet, Fleets};
use crate::difference::Difference;
use crate::findings::Severity;
use crate::nearest::did_you_mean;
use crate::output::{counted, first_few};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanReport {
    pub(super) version: u32,
    pub(super) now: String,
    pub(super) notes: Vec<String>,
    /// What the files change on the hub; empty without a hub.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<Difference>,
    pub(super) add_ons: Vec<AddOnReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddOnReport {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) document: usize,
    pub(super) clusters: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_alone: Option<&'static str>,
    pub(super) at_rest: bool,
    pub(super) removals: Vec<Group>,
    pub(super) creates: Vec<Movement>,
    pub(super) starts: Vec<Movement>,
    pub(super) in_flight: Vec<Group>,
    pub(super) failed: Vec<Group>,
    pub(super) waiting: Vec<Group>,
    pub(super) settled: usize,
    pub(super) placements: Vec<PlacementSummary>,
    pub(super) waves: Waves,
    pub(super) problems: Vec<ProblemLine>,
    /// What the desired revisions change compared with the applied ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) contents: Vec<ContentChange>,
    /// Placements whose clusters are not chosen yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) undecided: Vec<String>,
    /// What is assumed, and then what others have made.
    pub(super) notes: Vec<String>,
    /// How many of the notes are assumptions.
    #[serde(skip)]
    pub(super) assumed: usize,
    /// What of another manager is taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) take_over: Option<TakeOver>,
    /// How many instances users have made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by_users: Option<usize>,
    /// Some of its instances exist already.
    #[serde(skip)]
    pub(super) installed: bool,
    /// How many deletions need approval.
    #[serde(skip)]
    pub(super) held_deletions: Option<usize>,
}

/// What a placement's desired revision changes.
#[derive(Debug, Serialize)]
pub(super) struct ContentChange {
    /// Placements with the same change.
    pub(super) placements: Vec<String>,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) configs: Vec<PinChange>,
}

/// Clusters with the same reason.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    pub(crate) count: usize,
    pub(crate) clusters: Vec<String>,
}

/// Clusters with the same change.
#[derive(Debug, Serialize)]
pub(super) struct Movement {
    pub(crate) kind: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) placement: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    pub(crate) count: usize,
    pub(crate) clusters: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlacementSummary {
    pub(crate) placement: String,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) desired: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) canary: Option<String>,
    pub(crate) paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<usize>,
    pub(crate) governed: usize,
    pub(crate) on_target: usize,
    pub(crate) settled: usize,
    pub(crate) in_flight: usize,
    pub(crate) failed: usize,
    pub(crate) waiting: usize,
    pub(crate) leaving: usize,
    pub(crate) slots_used: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct ProblemLine {
    pub(crate) severity: Severity,
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

impl PlanReport {
    pub(super) fn of(fleets: Fleets, labels: &[String], now: Timestamp) -> Self {
        let Fleets { addons, notes, differences } = fleets;
        Self {
            version: 1,
            now: now.to_string(),
            notes,
            changes: differences,
            add_ons: addons.iter().map(|addon| AddOnReport::of(addon, labels, now)).collect(),
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        self.add_ons.iter().any(AddOnReport::has_errors)
    }
}

impl AddOnReport {
    pub(super) fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    fn of(fleet: &AddOnFleet, labels: &[String], now: Timestamp) -> Self {
        let AddOnFleet { name, file, document, observed, instance_problems, notes, unknown } = fleet;
        let plan = plan::plan(observed, now);
        let walk = waves::walk(observed, now);
        let clusters = &plan.report.clusters;
        let with =
            |wanted: fn(&Decision) -> bool| clusters.iter().filter(move |cluster| wanted(&cluster.decision));
        let mut removals = groups(with(|decision| matches!(decision, Decision::Delete(_))));
        if observed.addon.deleting {
            removals.push(uninstalls(observed));
        }
        Self {
            name: name.clone(),
            file: file.clone(),
            document: *document,
            clusters: clusters.len(),
            left_alone: plan.report.left_alone,
            at_rest: plan.is_at_rest(),
            removals,
            creates: creates(observed, &plan, &walk),
            starts: movements(observed, &waves::starts(observed, &plan)),
            in_flight: groups(with(|decision| decision.phase() == Phase::InFlight)),
            failed: groups(with(|decision| decision.phase() == Phase::Failed)),
            waiting: groups(with(|decision| matches!(decision, Decision::Hold(_)))),
            settled: with(|decision| *decision == Decision::Settled).count(),
            placements: placements(observed, &plan),
            waves: Waves::of(observed, clusters, &walk, labels),
            problems: problems(observed, plan.report.problems.iter().chain(instance_problems))
                .into_iter()
                .chain(unknown.iter().map(|message| ProblemLine {
                    severity: Severity::Warning,
                    reason: Reason::PlacementUndecided,
                    message: message.clone(),
                }))
                .chain(first_installs(observed, &plan))
                .collect(),
            contents: contents(observed),
            undecided: verdict::undecided(observed).map(ToString::to_string).collect(),
            assumed: notes.len(),
            notes: notes.iter().cloned().chain(taken_over(&plan)).collect(),
            take_over: TakeOver::of(&plan),
            by_users: Some(plan.report.by_users).filter(|count| *count > 0),
            installed: !observed.instances.is_empty(),
            held_deletions: plan.report.problems.iter().find_map(|problem| match problem {
                Problem::DeletionHeld { count, .. } => Some(*count),
                _ => None,
            }),
        }
    }
}

/// What is taken over from another manager.
#[derive(Debug, Serialize)]
pub(super) struct TakeOver {
    /// Clusters whose works stay as that manager rendered them.
    pub(super) accepted: usize,
    /// Instances that get the marker of the install strategy.
    pub(super) adopted: usize,
    /// Works that this plan would write over.
    pub(super) rewritten: usize,
}

impl TakeOver {
    fn of(plan: &Plan) -> Option<Self> {
        let (accepted, adopted) = (plan.report.accepted, plan.report.adopted);
        (accepted + adopted > 0).then(|| Self { accepted, adopted, rewritten: rewritten(plan) })
    }
}

fn rewritten(plan: &Plan) -> usize {
    let writes = plan.stages.iter().flat_map(|stage| &stage.writes);
    writes.filter(|write| matches!(write, Write::Work(work) if work.replaces.is_some())).count()
}

/// What a user should know about instances and works that others have made.
fn taken_over(plan: &Plan) -> Vec<String> {
    let (accepted, adopted, by_users) = (plan.report.accepted, plan.report.adopted, plan.report.by_users);
    let mut notes = Vec::new();
    if accepted > 0 {
        notes.push(format!(
            "{} rewritten now; {}: another manager rendered the works from the assigned revision; they stay as they are until the \
             revision changes",
            counted(rewritten(plan), "work"),
            counted(accepted, "cluster")
        ));
    }
    if adopted > 0 {
        notes.push(format!(
            "{}: made by OCM's manager; the install strategy takes over, so it deletes them when their cluster is deselected",
            counted(adopted, "instance")
        ));
    }
    if by_users > 0 {
        notes.push(format!(
            "{}: made by users; they stay when their cluster is deselected, and are deleted with the add-on",
            counted(by_users, "instance")
        ));
    }
    notes
}

/// Deleting an add-on deletes its instances.
fn uninstalls(observed: &Observed) -> Group {
    let clusters: Vec<String> = observed.instances.keys().map(ToString::to_string).collect();
    let message = "the add-on is being deleted, and its instances with it".to_owned();
    Group { reason: Reason::AddOnDeleting, message, count: clusters.len(), clusters }
}

/// Groups clusters by message, or by reason if there are many messages.
pub(crate) fn groups<'p>(clusters: impl Iterator<Item = &'p ClusterReport>) -> Vec<Group> {
    let group = |group: verdict::ReasonGroup<'_>| Group {
        reason: group.why.decision.code(),
        message: group.message,
        count: group.clusters.len(),
        clusters: group.clusters.into_iter().map(ToString::to_string).collect(),
    };
    verdict::groups(clusters).into_iter().map(group).collect()
}

/// Groups starts with the same change, in the order in which they happen.
pub(super) fn movements(observed: &Observed, starts: &[StartedCluster]) -> Vec<Movement> {
    let mut movements: Vec<Movement> = Vec::new();
    for start in starts {
        let placement = start.placement.and_then(|index| observed.addon.strategy.placements().get(index));
        let placement = placement.map(|spec| spec.name.to_string());
        let same = |known: &&mut Movement| {
            known.kind == start.kind
                && known.placement == placement
                && known.from == start.from
                && known.to == start.to
        };
        match movements.iter_mut().find(same) {
            Some(known) => {
                known.count += 1;
                known.clusters.push(start.cluster.to_string());
            }
            None => movements.push(Movement {
                kind: start.kind,
                placement,
                from: start.from.clone(),
                to: start.to.clone(),
                count: 1,
                clusters: vec![start.cluster.to_string()],
            }),
        }
    }
    movements
}

/// Instances that are created now, with the revision that they are assigned afterwards.
fn creates(observed: &Observed, plan: &Plan, walk: &Walk) -> Vec<Movement> {
    let later: BTreeMap<&ClusterName, &StartedCluster> =
        walk.waves.iter().flat_map(|wave| &wave.starts).rev().map(|start| (&start.cluster, start)).collect();
    let created = plan.report.clusters.iter().filter(|cluster| cluster.decision == Decision::Create);
    let created: Vec<StartedCluster> = created
        .map(|cluster| StartedCluster {
            cluster: cluster.cluster.clone(),
            placement: cluster.placement,
            kind: cluster.decision.code(),
            from: None,
            to: later.get(&cluster.cluster).and_then(|start| start.to.clone()),
        })
        .collect();
    movements(observed, &created)
}

/// The canaries of a placement, in one text.
fn canaries(spec: &aviary_engine::observed::InstallPlacement) -> Option<String> {
    let all: Vec<String> = spec.rollout.canaries().map(ToString::to_string).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

pub(crate) fn placements(observed: &Observed, plan: &Plan) -> Vec<PlacementSummary> {
    let specs = observed.addon.strategy.placements();
    let summary = |(report, spec): (&plan::PlacementReport, &aviary_engine::observed::InstallPlacement)| {
        PlacementSummary {
            placement: report.name.to_string(),
            reason: report.reason,
            message: report.without_counts().to_owned(),
            desired: report.desired.as_deref().map(str::to_owned),
            target: report.target.as_deref().map(str::to_owned),
            canary: canaries(spec),
            paused: spec.rollout.paused,
            budget: verdict::budget(spec, &report.counts),
            governed: report.tally.clusters,
            on_target: report.counts.on_target,
            settled: report.tally.settled,
            in_flight: report.tally.in_flight,
            failed: report.tally.failed,
            waiting: report.tally.waiting,
            leaving: report.tally.leaving,
            slots_used: report.counts.slots_held,
        }
    };
    plan.report.placements.iter().zip(specs).map(summary).collect()
}

/// What each placement's desired revision changes compared with the one that it has applied.
fn contents(observed: &Observed) -> Vec<ContentChange> {
    let fleet = Fleet::line_up(observed);
    let mut changes: Vec<ContentChange> = Vec::new();
    for governor in &fleet.governors {
        let applied = governor.recorded.and_then(|recorded| recorded.applied.as_ref());
        let (Some(applied), Ok(desired)) = (applied, &governor.desired) else { continue };
        let configs = difference::of_revisions(observed, applied, desired);
        if configs.is_empty() {
            continue;
        }
        let placement = governor.spec.name.to_string();
        let label = |revision| plan::label(observed, revision).to_string();
        let (from, to) = (label(applied), label(desired));
        let same =
            |known: &&mut ContentChange| known.from == from && known.to == to && known.configs == configs;
        match changes.iter_mut().find(same) {
            Some(known) => known.placements.push(placement),
            None => changes.push(ContentChange { placements: vec![placement], from, to, configs }),
        }
    }
    changes
}

/// All problems, each once: of the add-on, of its placements' revisions, and of the instances'
/// overrides.
pub(crate) fn problems<'p>(observed: &Observed, told: impl Iterator<Item = &'p Problem>) -> Vec<ProblemLine> {
    verdict::problems(observed, told).iter().map(ProblemLine::of).collect()
}

/// The versions that can be used instead of one that does not exist.
fn offered(problem: &Problem) -> String {
    let Problem::VersionUnsupported { version, supported } = problem else { return String::new() };
    let offered: Vec<&str> = supported.iter().map(|version| &**version).collect();
    match offered.is_empty() {
        true => ": the add-on has no versions".to_owned(),
        false => {
            let meant = did_you_mean(version, offered.iter().copied());
            format!(": the add-on has {}{meant}", first_few(&offered))
        }
    }
}

/// What a user should know before a first install.
fn first_installs(observed: &Observed, plan: &Plan) -> Vec<ProblemLine> {
    let mut lines: Vec<ProblemLine> = verdict::undecided(observed)
        .map(|name| ProblemLine {
            severity: Severity::Warning,
            reason: Reason::PlacementUndecided,
            message: format!(
                "{name} is not decided yet: no placement controller has chosen its clusters, so this plan does not include them"
            ),
        })
        .collect();
    let specs = observed.addon.strategy.placements();
    for (report, spec) in plan.report.placements.iter().zip(specs) {
        let undecided = verdict::undecided(observed).any(|name| *name == spec.name);
        let Some(budget) = verdict::budget(spec, &report.counts) else { continue };
        let fresh = report.counts.fresh;
        let installs = report.verdict() != Verdict::Failed;
        if (fresh > budget && installs) || undecided {
            let which = match undecided {
                true => "every cluster that it selects is installed".to_owned(),
                false => format!("{} are installed", counted(fresh, "cluster")),
            };
            lines.push(ProblemLine {
                severity: Severity::Warning,
                reason: Reason::FirstInstallsNotThrottled,
                message: format!(
                    "{}: {which} at once: the rollout strategy limits updates, not first installs",
                    report.name
                ),
            });
        }
    }
    lines
}

impl ProblemLine {
    pub(crate) fn of(problem: &Problem) -> Self {
        Self {
            severity: if problem.is_warning() { Severity::Warning } else { Severity::Error },
            reason: problem.code(),
            message: format!("{problem}{}", offered(problem)),
        }
    }
}
