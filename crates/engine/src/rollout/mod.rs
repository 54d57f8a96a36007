//! The rollout controller as a function: which clusters of a placement move now, and why the others do not (semantics §5).
//!
//! [`gate`] decides where to, [`standing`] where each cluster stands, [`budget`] who may go. This file puts the three together
//! for one placement. In flight is counted from the instances themselves before anything is chosen.

pub mod budget;
pub mod gate;
pub mod standing;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::configs::Revision;
use crate::evidence::told_includes;
use crate::explain::{Decision, Flight, Start, Wait};
use crate::fleet::{Fleet, Governor};
use crate::problem::Problem;
use budget::Ledger;
use gate::{Aim, Gate};
pub use standing::{Identified, live_generation};
use standing::{Judge, Standing, Standings};

/// What is decided for one placement.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub aim: Aim,
    /// The revision that all governed instances have settled on, or the one before.
    pub applied: Option<Revision>,
    /// A revision completed in this pass.
    pub completed: Option<Revision>,
    pub decisions: Decisions,
    pub counts: Counts,
    pub state: State,
    /// When a clock runs out, if nothing else happens before.
    pub recheck_at: Option<Timestamp>,
}

/// What the clusters of a placement are to do.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// The few different things that there are to do.
    pub moves: Vec<Move>,
    /// For each cluster that the placement governs, in order, its place in `moves`.
    pub of: Vec<u32>,
    /// How many of each kind start now.
    started: Vec<usize>,
}

/// A decision, and the revision that goes with it.
#[derive(Clone, Debug)]
pub struct Move {
    pub decision: Decision,
    /// What the instance is told: now if it starts, before otherwise. `None`: it keeps what it was told, whatever that is.
    pub told: Option<Arc<Identified>>,
    pub starts: bool,
}

/// Governed clusters by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub governed: usize,
    /// Told the target (or, where nothing was ever applied, what fresh instances get), settled or not.
    pub on_target: usize,
    /// Settled on the target.
    pub settled: usize,
    /// Settled on the desired revision, which may be another than the target.
    pub done: usize,
    pub failed: usize,
    /// Unsettled clusters that hold a slot, after this pass's starts.
    pub in_flight: usize,
    /// Not told the target yet.
    pub waiting: usize,
    /// Nothing was ever applied on them.
    pub fresh: usize,
    /// Have moved from one revision to another at least once.
    pub upgraded: usize,
    /// Not settled, and not inside the canary.
    pub unsettled_gated: usize,
    pub budget: usize,
}

/// Where the rollout as a whole stands.
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
    /// Nothing moves until somebody mends something.
    Failed(Failure),
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
                write!(f, "stopped, {failed} failed of {budget} allowed in flight")
            }
            Self::CompletedWithFailures { failed } => write!(f, "completed with failures, {failed} failed"),
        }
    }
}

/// Decides for every cluster that the placement governs.
pub fn decide(fleet: &Fleet<'_>, governor: &Governor<'_>, now: Timestamp) -> Outcome {
    let mut aim = gate::aim(fleet, governor, now);
    let judge = Judge::new(fleet, governor, &aim, now);
    let standings = judge.judge_all(fleet);
    let mut ledger = Ledger::open(governor, &aim, &standings);
    let decisions = ledger.assign(fleet, governor, &aim, &judge, &standings);
    let counts = count(fleet, &aim, &decisions, &standings, &ledger);
    let reached = reached(fleet, governor, &judge, &standings);
    let state = state(governor, &aim, &counts, &ledger);
    let recheck_at = standings.kinds.iter().filter_map(|kind| kind.standing.recheck_at()).min();

    let completed = reached
        .clone()
        .filter(|revision| !revision.is_empty() && governor.completed.last() != Some(revision));
    let applied = reached.or_else(|| governor.recorded.and_then(|recorded| recorded.applied.clone()));
    // Without a canary the known good revision is the one applied everywhere; with one, only until the first has passed.
    if governor.canary.is_none() || aim.known_good.is_none() {
        aim.known_good.clone_from(&applied);
    }
    Outcome { aim, applied, completed, decisions, counts, state, recheck_at }
}

/// The revision that every governed instance has settled on in this snapshot. At least one must really have it: where users override
/// everything, a placement completes nothing. Nor does it while a cluster may have joined that is not known yet.
fn reached(
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    judge: &Judge<'_>,
    standings: &Standings,
) -> Option<Revision> {
    if governor.in_motion {
        return None;
    }
    // Those of a kind have been told the same, and stand alike towards every revision.
    let members = || standings.kinds.iter().filter_map(|kind| fleet.member(kind.first));
    let is_there = |revision: &Revision| {
        members().any(|member| member.status().is_some_and(|status| told_includes(status, revision.pins())))
    };
    let mut targets =
        standings.kinds.iter().map(|kind| judge.target_of(kind.in_canary).map(|target| &target.revision));
    let target = targets.next()??;
    if targets.all(|other| other == Some(target))
        && standings.kinds.iter().all(|kind| kind.standing == Standing::Settled)
    {
        return is_there(target).then(|| target.clone());
    }
    // The target may have moved on in the very moment in which the last cluster settled on the one before.
    let recorded = governor.recorded?;
    [&recorded.desired, &recorded.known_good]
        .into_iter()
        .flatten()
        .filter(|&before| recorded.applied.as_ref() != Some(before))
        .find(|&before| members().all(|member| judge.settled_on(&member, before)) && is_there(before))
        .cloned()
}

fn count(
    fleet: &Fleet<'_>,
    aim: &Aim,
    decisions: &Decisions,
    standings: &Standings,
    ledger: &Ledger,
) -> Counts {
    let mut counts = Counts {
        governed: standings.of.len(),
        in_flight: ledger.in_flight,
        failed: ledger.failed,
        budget: ledger.budget,
        ..Counts::default()
    };
    for (kind, &started) in standings.kinds.iter().zip(&decisions.started) {
        let all = kind.count;
        match &kind.standing {
            Standing::Settled => {
                counts.settled += all;
                counts.on_target += all;
                counts.done += if aim.target_is_desired() || kind.in_canary { all } else { 0 };
            }
            Standing::OnTarget { .. } => counts.on_target += all,
            Standing::Fresh { on_target, told, .. } => {
                counts.fresh += all;
                counts.on_target += if *on_target || *told { all } else { started };
            }
            Standing::Absent => {
                counts.fresh += all;
                counts.waiting += all;
            }
            Standing::Elsewhere { .. } | Standing::Aside(_) => {
                counts.on_target += started;
                counts.waiting += all - started;
            }
        }
        if kind.standing != Standing::Settled && !kind.in_canary {
            counts.unsettled_gated += all;
        }
        let upgraded = fleet.member(kind.first).is_some_and(|member| member.evidence().upgraded);
        counts.upgraded += if upgraded { all } else { 0 };
    }
    counts
}

/// The order of the questions is the policy: what a person must mend comes before what time mends.
fn state(governor: &Governor<'_>, aim: &Aim, counts: &Counts, ledger: &Ledger) -> State {
    if let Some(problem) = governor.fault.as_ref().or(aim.problem()) {
        return State::Failed(Failure::Problem(problem.clone()));
    }
    if counts.governed == 0 {
        return State::Empty;
    }
    let unsettled = counts.governed - counts.settled;
    if let Gate::Closed(wait @ Wait::Canary(_)) = &aim.gate
        && (counts.unsettled_gated == 0 || counts.in_flight == 0)
        && !aim.target_is_desired()
    {
        return State::WaitingForCanary(wait.clone());
    }
    if unsettled == 0 {
        return if counts.upgraded == 0 { State::InstallSucceeded } else { State::UpgradeSucceeded };
    }
    if unsettled == counts.failed {
        return State::Failed(Failure::CompletedWithFailures { failed: counts.failed });
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

/// The decision for a cluster that has been told its target.
fn flying(flight: &Flight) -> Decision {
    Decision::InFlight(flight.clone())
}

/// What kind of start it is, from where the cluster stands.
fn start_of(standing: &Standing) -> Start {
    match standing {
        Standing::Fresh { .. } | Standing::Absent => Start::Install,
        Standing::Elsewhere { moving: true, .. } => Start::Retarget,
        _ => Start::Update,
    }
}
