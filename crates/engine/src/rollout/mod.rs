//! Decides which clusters of a placement move now, and why the others do not (rules, chapter 5).
//!
//! [`gate`] decides the target, [`standing`] the state of each cohort, [`budget`] which clusters
//! may start. This file combines them for one placement. Clusters in flight are counted from the
//! instances before any cluster is chosen.

mod budget;
mod gate;
mod reprobe;
mod standing;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::configs::Revision;
use crate::evidence::told_includes;
use crate::explain::{Decision, Flight, Wait};
use crate::fleet::{Cohort, Fleet, Governor};
use crate::name::{ClusterName, Text};
use crate::problem::Problem;
use budget::Ledger;
use gate::Aim;
pub(crate) use gate::Promotion;
use standing::{CohortStanding, Judge};
pub(crate) use standing::{REPORTING_LAG, TargetRevision, later, live_generation};

/// What is decided for one placement.
#[derive(Clone, Debug)]
pub(crate) struct PlacementOutcome {
    pub aim: Aim,
    /// The known good revision after this pass.
    pub known_good: Option<Revision>,
    /// The revision that all governed instances have settled on, or the one before.
    pub applied: Option<Revision>,
    /// A revision completed in this pass.
    pub completed: Option<Revision>,
    /// Revisions that a rollback withdraws.
    pub withdrawn: Vec<Revision>,
    pub unhealthy: Unhealthy,
    /// For each cohort that the placement governs, in order.
    pub moves: Vec<Vec<MoveRun>>,
    pub counts: Counts,
    pub state: State,
    /// When a clock runs out, if nothing else happens before.
    pub recheck_at: Option<Timestamp>,
}

/// What this many of a cohort's clusters do, in order of name. A cohort has one run, or two if the
/// budget is used up in between.
#[derive(Clone, Debug)]
pub(crate) struct MoveRun {
    pub count: usize,
    pub decided: Move,
}

/// A decision, and the revision that goes with it.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub decision: Decision,
    /// The assigned revision, new if the instance starts. `None` if it keeps its assigned revision,
    /// whatever that is.
    pub told: Option<Arc<TargetRevision>>,
    pub starts: bool,
    /// Its works of an earlier version of Aviary are rendered anew.
    pub reprobes: bool,
}

/// Governed clusters by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub governed: usize,
    /// Assigned the target (or, for first installs, the revision for first installs), settled or
    /// not.
    pub on_target: usize,
    /// Settled on the target.
    pub settled: usize,
    /// Settled on the desired revision, which may be another than the target.
    pub done: usize,
    pub failed: usize,
    /// Slots of the budget that are taken after this pass's starts: by clusters in flight, by
    /// failed ones, and by clusters that are unhealthy on their current revision.
    pub slots_used: usize,
    /// The same before this pass's starts: what the hub records.
    pub slots_held: usize,
    /// Not assigned the target yet.
    pub waiting: usize,
    /// Nothing was ever applied on them.
    pub fresh: usize,
    /// Have moved from one revision to another at least once.
    pub upgraded: usize,
    /// Not settled, and not inside the canary.
    pub unsettled_gated: usize,
    /// They keep what they have and count neither for nor against the rollout.
    pub left_out: usize,
    pub budget: usize,
}

/// Governed clusters that are not well, in or after a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unhealthy {
    pub count: usize,
    /// The first few of them.
    pub first: Vec<ClusterName>,
    /// What is not healthy on the first of them, if its agent says so.
    pub object: Option<Text>,
}

/// The first cluster of a placement that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstFailed<'f> {
    pub cluster: &'f ClusterName,
    pub flight: &'f Flight,
    /// The object that failed, if that is why.
    pub object: Option<&'f str>,
}

impl PlacementOutcome {
    /// The cohorts that failed.
    pub(crate) fn failed<'f, 'a: 'f>(
        &'f self,
        fleet: &'f Fleet<'a>,
        governor: &'f Governor<'a>,
    ) -> impl Iterator<Item = &'f Cohort<'a>> + Clone {
        let all = fleet.cohorts_of(governor).zip(&self.moves);
        all.filter(|(_, runs)| failure(runs).is_some()).map(|(cohort, _)| cohort)
    }

    pub(crate) fn first_failed<'f>(
        &'f self,
        fleet: &'f Fleet<'_>,
        governor: &'f Governor<'_>,
    ) -> Option<FirstFailed<'f>> {
        let (cluster, first) = fleet.first_of(self.failed(fleet, governor))?;
        let (_, runs) =
            fleet.cohorts_of(governor).zip(&self.moves).find(|(cohort, _)| std::ptr::eq(*cohort, first))?;
        let (decision, flight) = failure(runs)?;
        let object = first.facts.instance.as_ref().and_then(|instance| instance.ailing_object(decision));
        Some(FirstFailed { cluster, flight, object })
    }
}

/// How the clusters of a cohort failed, if they did.
fn failure(runs: &[MoveRun]) -> Option<(&Decision, &Flight)> {
    runs.iter().find_map(|run| match &run.decided.decision {
        decision @ Decision::InFlight(flight) if flight.is_failure() => Some((decision, flight)),
        _ => None,
    })
}

/// The state of the rollout as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No cluster is governed.
    Empty,
    Installing,
    InstallSucceeded,
    Upgrading,
    UpgradeSucceeded,
    WaitingForCanary(Wait),
    Paused,
    /// Nothing moves until somebody fixes something.
    Failed(Failure),
}

impl State {
    /// Whether failed clusters keep the others from starting.
    pub fn is_halted(&self) -> bool {
        matches!(self, Self::Failed(Failure::Halted { .. } | Failure::Stalled { .. }))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Problem(Problem),
    /// More failed than tolerated.
    Halted {
        failed: usize,
        tolerated: usize,
    },
    /// Every slot is held by a failed cluster.
    Stalled {
        failed: usize,
        budget: usize,
    },
    /// All others have settled.
    CompletedWithFailures {
        failed: usize,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(problem) => problem.fmt(f),
            Self::Halted { failed, tolerated } => {
                write!(f, "halted, {failed} failed and {tolerated} tolerated")
            }
            Self::Stalled { failed, budget } => {
                write!(f, "stopped, {failed} failed, {budget} of {budget} slots taken")
            }
            Self::CompletedWithFailures { failed } => write!(f, "completed with failures, {failed} failed"),
        }
    }
}

/// One placement's rollout: its targets, and the standing of each cohort.
struct RolloutView<'a> {
    fleet: &'a Fleet<'a>,
    governor: &'a Governor<'a>,
    aim: Aim,
    judge: Judge<'a>,
    /// For each cohort that the placement governs, in order.
    standings: Vec<CohortStanding>,
}

impl<'a> RolloutView<'a> {
    fn new(fleet: &'a Fleet<'a>, governor: &'a Governor<'a>, now: Timestamp) -> Self {
        let aim = gate::aim(fleet, governor, now);
        let judge = Judge::new(fleet.observed, governor, &aim.targets, aim.gate.clone(), now);
        let standings = fleet.cohorts_of(governor).map(|cohort| judge.judge(&cohort.facts)).collect();
        Self { fleet, governor, aim, judge, standings }
    }

    fn cohorts(&self) -> impl Iterator<Item = (&'a Cohort<'a>, &CohortStanding)> + Clone {
        self.fleet.cohorts_of(self.governor).zip(&self.standings)
    }

    fn cohort(&self, at: usize) -> Option<&'a Cohort<'a>> {
        self.fleet.cohorts.get(*self.governor.cohorts.get(at)?)
    }

    /// How many clusters there are in the cohorts that are so.
    fn count(&self, is_so: impl Fn(&Cohort<'a>, &CohortStanding) -> bool) -> usize {
        let counted = self.cohorts().filter(|(cohort, standing)| is_so(cohort, standing));
        counted.map(|(cohort, _)| cohort.members.len()).sum()
    }

    fn governed(&self) -> usize {
        self.count(|_, _| true)
    }
}

/// Decides for every cluster that the placement governs.
pub(crate) fn decide<'a>(
    fleet: &'a Fleet<'a>,
    governor: &'a Governor<'a>,
    now: Timestamp,
) -> PlacementOutcome {
    let view = RolloutView::new(fleet, governor, now);
    let mut ledger = Ledger::open(&view);
    let mut moves = ledger.assign(&view);
    reprobe::choose(&view, &ledger, &mut moves);
    let counts = count(&view, &moves, &ledger);
    let reached = reached(&view);
    let recorded_applied = || governor.recorded.and_then(|recorded| recorded.applied.clone());
    let applied = reached.clone().or_else(recorded_applied);
    // Without a canary the known good revision is the one applied everywhere, unless a rollback has
    // withdrawn it.
    let known_good = match &view.aim.known_good {
        _ if governor.canaries.is_empty() => reached.clone().or_else(|| governor.standing(applied.as_ref())),
        Some(known_good) => Some(known_good.clone()),
        None => reached.clone().filter(|_| is_first_good(&view)),
    };
    // The next revision may have passed in the same pass in which the last cluster settled on the
    // one before.
    let before = governor.recorded.and_then(|recorded| recorded.known_good.as_ref());
    let is_good = |revision: &Revision| {
        governor.canaries.is_empty() || known_good.as_ref() == Some(revision) || before == Some(revision)
    };
    let completed = reached.filter(|revision| {
        !revision.is_empty() && governor.completed.last() != Some(revision) && is_good(revision)
    });
    let all_assigned = view.standings.iter().all(CohortStanding::is_assigned);
    let is_complete = applied.is_some() && applied == view.aim.targets.target && all_assigned;
    let state = state(&view, &counts, &ledger, is_complete);
    let instances = fleet.cohorts_of(governor).filter_map(|cohort| cohort.facts.instance.as_ref());
    let unrecorded = instances
        .flat_map(|instance| {
            [instance.recorded_until(now), instance.never_healthy_from(now), instance.ill_until(now)]
        })
        .flatten();
    let recheck_at = view.standings.iter().filter_map(CohortStanding::recheck_at).chain(unrecorded).min();
    let withdrawn = governor.newly_withdrawn().to_vec();
    let unhealthy = unhealthy(&view, &moves);
    let aim = view.aim;
    PlacementOutcome {
        aim,
        known_good,
        applied,
        completed,
        withdrawn,
        unhealthy,
        moves,
        counts,
        state,
        recheck_at,
    }
}

/// Whether the first revision that a gated placement has everywhere may count as known good without
/// a canary: first installs are not gated. Canary clusters and overrides of users prove nothing
/// about the clusters behind the gate.
fn is_first_good(view: &RolloutView<'_>) -> bool {
    let is_installed = |cohort: &Cohort<'_>, standing: &CohortStanding| {
        !cohort.facts.in_canary()
            && *standing == CohortStanding::Settled
            && cohort.facts.overrides().is_none()
    };
    !view.standings.iter().any(CohortStanding::is_behind_gate)
        && view.cohorts().any(|(cohort, standing)| is_installed(cohort, standing))
}

fn unhealthy(view: &RolloutView<'_>, moves: &[Vec<MoveRun>]) -> Unhealthy {
    const NAMED: usize = 10;
    let unwell = || view.cohorts().filter(|(_, standing)| standing.is_unhealthy()).map(|(cohort, _)| cohort);
    let object = view.fleet.first_of(unwell()).and_then(|(_, first)| {
        let mut all = view.cohorts().zip(moves);
        let (_, runs) = all.find(|((cohort, _), _)| std::ptr::eq(*cohort, first))?;
        let instance = first.facts.instance.as_ref()?;
        runs.iter().find_map(|run| instance.ailing_object(&run.decided.decision))
    });
    Unhealthy {
        count: view.count(|_, standing| standing.is_unhealthy()),
        first: view.fleet.first_names(unwell(), NAMED).into_iter().cloned().collect(),
        object: object.map(Text::from),
    }
}

/// The revision that every governed instance has settled on in this snapshot. At least one must
/// really have it: where users override everything, a placement completes nothing. Nor does it
/// while a cluster may have joined that is not known yet.
fn reached(view: &RolloutView<'_>) -> Option<Revision> {
    let RolloutView { governor, judge, .. } = view;
    if governor.in_motion {
        return None;
    }
    let counted = || view.cohorts().filter(|(_, standing)| !standing.is_left_out());
    let facts = || counted().map(|(cohort, _)| &cohort.facts);
    let is_there = |revision: &Revision| {
        facts()
            .filter_map(|facts| facts.instance.as_ref())
            .any(|instance| told_includes(instance.status, revision.pins()))
    };
    let mut targets = facts().map(|facts| judge.target_of(facts).map(|target| &target.revision));
    let target = targets.next()??;
    if targets.all(|other| other == Some(target))
        && counted().all(|(_, standing)| *standing == CohortStanding::Settled)
    {
        return is_there(target).then(|| target.clone());
    }
    // The target may have changed in the same pass in which the last cluster settled on the one
    // before.
    let recorded = governor.recorded?;
    [&recorded.desired, &recorded.known_good]
        .into_iter()
        .flatten()
        .filter(|&before| recorded.applied.as_ref() != Some(before))
        .find(|&before| facts().all(|facts| judge.settled_on(facts, before)) && is_there(before))
        .cloned()
}

fn count(view: &RolloutView<'_>, moves: &[Vec<MoveRun>], ledger: &Ledger) -> Counts {
    let mut counts = Counts {
        governed: view.governed(),
        slots_used: ledger.slots_used,
        slots_held: ledger.slots_held,
        failed: ledger.failed,
        budget: ledger.budget,
        ..Counts::default()
    };
    for ((cohort, standing), runs) in view.cohorts().zip(moves) {
        let all = cohort.members.len();
        let started: usize = runs.iter().filter(|run| run.decided.starts).map(|run| run.count).sum();
        let in_canary = cohort.facts.in_canary();
        let evidence = cohort.facts.instance.as_ref().map(|instance| &instance.evidence);
        match standing {
            CohortStanding::Settled => {
                counts.settled += all;
                counts.on_target += all;
                counts.done += if view.aim.target_is_desired() || in_canary { all } else { 0 };
            }
            CohortStanding::OnTarget { .. } => {
                counts.on_target += all;
                counts.fresh += if evidence.is_some_and(|evidence| evidence.installed) { 0 } else { all };
            }
            CohortStanding::LeftOut(_) => counts.left_out += all,
            CohortStanding::Fresh { on_target, told, .. } => {
                counts.fresh += all;
                counts.on_target += if *on_target || *told { all } else { started };
            }
            CohortStanding::Absent => {
                counts.fresh += all;
                counts.waiting += all;
            }
            CohortStanding::Elsewhere { .. } | CohortStanding::Stuck { .. } | CohortStanding::Aside(_) => {
                counts.on_target += started;
                counts.waiting += all - started;
            }
        }
        if *standing != CohortStanding::Settled && !standing.is_left_out() && !in_canary {
            counts.unsettled_gated += all;
        }
        counts.upgraded += if evidence.is_some_and(|evidence| evidence.upgraded) { all } else { 0 };
    }
    counts
}

/// The order of the questions is the policy: what somebody must fix comes before what time fixes.
fn state(view: &RolloutView<'_>, counts: &Counts, ledger: &Ledger, is_complete: bool) -> State {
    let RolloutView { governor, aim, .. } = view;
    if let Some(problem) = governor.fault.as_ref().or(aim.problem()) {
        return State::Failed(Failure::Problem(problem.clone()));
    }
    if counts.governed == 0 {
        return State::Empty;
    }
    let unsettled = counts.governed - counts.settled - counts.left_out;
    if let Some(wait @ Wait::Canary(_)) = &aim.gate
        && (is_complete || counts.unsettled_gated == 0 || counts.slots_used == 0)
        && (!aim.target_is_desired() || view.standings.iter().any(CohortStanding::is_behind_gate))
    {
        return State::WaitingForCanary(wait.clone());
    }
    if unsettled == 0 || (is_complete && aim.target_is_desired()) {
        return if counts.upgraded == 0 { State::InstallSucceeded } else { State::UpgradeSucceeded };
    }
    let failed = view.count(|_, standing| standing.has_failed());
    if unsettled == failed {
        return State::Failed(Failure::CompletedWithFailures { failed });
    }
    if let Some((failed, tolerated)) = ledger.halted {
        return State::Failed(Failure::Halted { failed, tolerated });
    }
    if ledger.limited && counts.waiting > 0 && ledger.held_by_failed >= ledger.budget {
        return State::Failed(Failure::Stalled { failed: ledger.held_by_failed, budget: ledger.budget });
    }
    if governor.spec.rollout.paused && counts.waiting > 0 {
        return State::Paused;
    }
    if unsettled == counts.fresh { State::Installing } else { State::Upgrading }
}
