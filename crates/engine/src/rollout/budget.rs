//! Which clusters may start: slots, failures, stages. Used slots are counted first, then free ones
//! are assigned (rules 5.3 and 5.9).

use std::sync::Arc;

use super::standing::{CohortStanding, TargetRevision};
use super::{Move, MoveRun, RolloutView};
use crate::explain::{Decision, Flight, Start, Wait};
use crate::fleet::{BudgetShare, ClusterFacts, Cohort, Governor};
use crate::limit::Limit;
use crate::observed::Pace;
use crate::problem::Problem;

/// The state of a placement's budget.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// How many may be in flight; of no meaning where not `limited`.
    pub budget: usize,
    pub limited: bool,
    /// Clusters that hold a slot.
    pub slots_used: usize,
    /// Those that held one before anything was started.
    pub slots_held: usize,
    /// Of those, the ones that are moving. A cluster that is broken on its current revision holds a
    /// slot and is not moving.
    under_way: usize,
    pub failed: usize,
    /// Failed clusters that hold a slot.
    pub held_by_failed: usize,
    /// Set if more clusters have failed than are tolerated: both numbers, in this order.
    pub halted: Option<(usize, usize)>,
    /// The first stage that has not settled.
    open_stage: usize,
    /// What somebody must fix before anything moves.
    problem: Option<Arc<Problem>>,
}

impl Ledger {
    pub(super) fn open(view: &RolloutView<'_>) -> Self {
        let governor = view.governor;
        let governed = view.governed();
        let limit = match governor.spec.rollout.pace {
            Pace::Rolling(limit) => Some(limit),
            Pace::RollingByGroupSize => Some(governor.group_size.unwrap_or(Limit::DEFAULT)),
            Pace::AllAtOnce | Pace::PerGroup => None,
        };
        let failed = view.count(|_, standing| standing.failed());
        let tolerated = governor.spec.rollout.tolerated(governed);
        let halted = tolerated.filter(|&tolerated| failed > tolerated).map(|tolerated| (failed, tolerated));
        let forgiven = tolerated.is_some() && halted.is_none();
        let holds = |standing: &CohortStanding| holds_slot(standing, forgiven);
        let is_under_way =
            |standing: &CohortStanding| !matches!(standing, CohortStanding::Elsewhere { moving: false, .. });
        let slots_held = view.count(|_, standing| holds(standing));
        Self {
            budget: limit.map_or(governed, |limit| limit.of(governed)),
            limited: limit.is_some(),
            slots_used: slots_held,
            slots_held,
            under_way: view.count(|_, standing| holds(standing) && is_under_way(standing)),
            failed,
            held_by_failed: view.count(|_, standing| holds(standing) && standing.failed()),
            halted,
            open_stage: open_stage(view, forgiven),
            problem: governor.fault.as_ref().or(view.aim.problem()).cloned().map(Arc::new),
        }
    }

    /// Decides for every governed cluster, cohort by cohort; afterwards `slots_used` includes what
    /// was started.
    pub(crate) fn assign(&mut self, view: &RolloutView<'_>) -> Vec<Vec<MoveRun>> {
        let mut runs = Vec::with_capacity(view.standings.len());
        let mut candidates: Vec<(Rank, usize)> = Vec::new();
        for (at, (cohort, standing)) in view.cohorts().enumerate() {
            let alike = match Rank::of(standing) {
                None => Some(self.decide_standing(view, &cohort.facts, standing)),
                Some(_) => self.keeps(view, &cohort.facts).map(|wait| Move::stay(Decision::Hold(wait))),
            };
            candidates.extend(Rank::of(standing).filter(|_| alike.is_none()).map(|rank| (rank, at)));
            let all = cohort.members.len();
            runs.push(alike.into_iter().map(|decided| MoveRun { count: all, decided }).collect());
        }
        candidates.sort();
        for equals in candidates.chunk_by(|(rank, _), (other, _)| rank == other) {
            self.hand_out(view, equals, &mut runs);
        }
        runs
    }

    /// Starts the first of the candidates of one rank, in order of name, as far as the budget goes.
    fn hand_out(&mut self, view: &RolloutView<'_>, candidates: &[(Rank, usize)], runs: &mut [Vec<MoveRun>]) {
        let equals: Vec<(usize, &Cohort<'_>, &CohortStanding)> = candidates
            .iter()
            .filter_map(|&(_, at)| Some((at, view.cohort(at)?, view.standings.get(at)?)))
            .collect();
        // Those of one rank hold a slot already, or none of them does.
        let hold_one_already = equals.first().is_some_and(|(_, _, standing)| holds_slot(standing, false));
        let taken = if hold_one_already { self.under_way } else { self.slots_used };
        let slots = if self.limited { self.budget.saturating_sub(taken) } else { usize::MAX };
        let end = end_of_first(slots, equals.iter().map(|(_, cohort, _)| cohort.members.as_slice()));
        let starting = |cohort: &Cohort<'_>| cohort.members.partition_point(|&position| position < end);
        let started: usize = equals.iter().map(|(_, cohort, _)| starting(cohort)).sum();
        self.under_way += started;
        self.slots_used += if hold_one_already { 0 } else { started };
        for (at, cohort, standing) in equals {
            let (Some(runs), Some(target)) = (runs.get_mut(at), view.judge.target_of(&cohort.facts)) else {
                continue;
            };
            let wait = match cohort.facts.offline {
                Some(offline) => Wait::Offline { since: offline.since },
                None => self.full(),
            };
            let count = starting(cohort);
            let start = MoveRun { count, decided: Move::start(standing, target) };
            let hold =
                MoveRun { count: cohort.members.len() - count, decided: Move::stay(Decision::Hold(wait)) };
            runs.extend([start, hold].into_iter().filter(|run| run.count > 0));
        }
    }

    /// Who holds the slots.
    fn full(&self) -> Wait {
        Wait::BudgetFull {
            in_flight: self.under_way.saturating_sub(self.held_by_failed),
            failed: self.held_by_failed,
            unhealthy: self.slots_used.saturating_sub(self.under_way),
            budget: self.budget,
        }
    }

    /// What clusters do that are no candidates for a new slot.
    fn decide_standing(
        &self,
        view: &RolloutView<'_>,
        facts: &ClusterFacts<'_>,
        standing: &CohortStanding,
    ) -> Move {
        let target = view.judge.target_of(facts);
        match standing {
            CohortStanding::Absent => Move::stay(Decision::Create),
            CohortStanding::Aside(wait) | CohortStanding::LeftOut(wait) => {
                Move::stay(Decision::Hold(wait.clone()))
            }
            CohortStanding::Settled => {
                let wants_more = !facts.in_canary() && !view.aim.target_is_desired();
                let decision = match (&self.problem, &view.aim.gate) {
                    (Some(problem), _) if wants_more => Decision::Hold(Wait::Problem(Arc::clone(problem))),
                    (None, Some(wait)) if wants_more => Decision::Hold(wait.clone()),
                    _ => Decision::Settled,
                };
                Move::on(decision, target)
            }
            CohortStanding::Stuck { flight, .. } => Move::stay(Decision::InFlight(flight.clone())),
            // Whatever made it turn to the target, it stays with it.
            CohortStanding::OnTarget { flight, .. }
            | CohortStanding::Fresh { on_target: true, flight, .. } => {
                Move::on(Decision::InFlight(flight.clone()), target)
            }
            CohortStanding::Fresh { told: true, flight, .. } => {
                Move::on(Decision::InFlight(flight.clone()), view.judge.fresh())
            }
            CohortStanding::Fresh { .. } => match view.judge.fresh() {
                Some(revision) => Move::start(standing, revision),
                None => {
                    let wait = self.frozen(view.governor).unwrap_or(Wait::NothingKnownGood);
                    Move::stay(Decision::Hold(wait))
                }
            },
            CohortStanding::Elsewhere { .. } => match (self.blocked(view, facts), target) {
                (None, Some(revision)) => Move::start(standing, revision),
                (wait, _) => Move::stay(Decision::Hold(wait.unwrap_or(Wait::NothingKnownGood))),
            },
        }
    }

    /// Why a candidate may not start, whatever the budget.
    fn keeps(&self, view: &RolloutView<'_>, facts: &ClusterFacts<'_>) -> Option<Wait> {
        let nothing = || view.judge.target_of(facts).is_none().then_some(Wait::NothingKnownGood);
        let blocked = self.blocked(view, facts).or_else(nothing);
        blocked.or_else(|| self.before_its_stage(view.governor, facts.stage()))
    }

    /// Why nothing of this placement may be started, in order of what to fix first.
    fn blocked(&self, view: &RolloutView<'_>, facts: &ClusterFacts<'_>) -> Option<Wait> {
        if let Some(wait) = self.frozen(view.governor) {
            return Some(wait);
        }
        // With a known good revision clusters move towards that; without one the gate keeps them
        // where they are.
        if let Some(wait) = &view.aim.gate
            && view.aim.known_good.is_none()
            && !facts.in_canary()
        {
            return Some(wait.clone());
        }
        self.halted.map(|(failed, tolerated)| Wait::Halted { failed, tolerated })
    }

    /// Whether no cluster may be started, whatever the budget.
    pub(super) fn starts_nothing(&self, governor: &Governor<'_>) -> bool {
        self.frozen(governor).is_some() || self.halted.is_some()
    }

    fn frozen(&self, governor: &Governor<'_>) -> Option<Wait> {
        if let Some(problem) = &self.problem {
            return Some(Wait::Problem(Arc::clone(problem)));
        }
        let rollout = &governor.spec.rollout;
        rollout.paused.then(|| match &rollout.by.paused {
            Some(policy) => Wait::PausedBy { policy: policy.clone() },
            None => Wait::Paused,
        })
    }

    fn before_its_stage(&self, governor: &Governor<'_>, stage: usize) -> Option<Wait> {
        let first = governor.stages.get(self.open_stage)?;
        (stage > self.open_stage).then(|| Wait::Stage { first: first.name.clone() })
    }
}

/// The order in which clusters that arrived at another revision get slots. Broken ones come first:
/// they hold a slot anyway until they are healthy. Reachable clusters come before the others.
/// Clusters whose own override may be the cause come last, so that they delay no other cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Broken,
    Well,
    OfflineBroken,
    Offline,
    Doubted,
}

impl Rank {
    /// `None`: it needs no new slot.
    fn of(standing: &CohortStanding) -> Option<Self> {
        let CohortStanding::Elsewhere { moving, broken, reachable, share } = standing else { return None };
        match (reachable, broken) {
            _ if *moving && *share != BudgetShare::None => None,
            _ if standing.is_doubted() => Some(Self::Doubted),
            (true, true) => Some(Self::Broken),
            (true, false) => Some(Self::Well),
            (false, true) => Some(Self::OfflineBroken),
            (false, false) => Some(Self::Offline),
        }
    }
}

/// The position before which the first clusters of these cohorts are, as many as there are slots.
pub(super) fn end_of_first<'m>(slots: usize, cohorts: impl Iterator<Item = &'m [u32]> + Clone) -> u32 {
    let all: usize = cohorts.clone().map(<[u32]>::len).sum();
    if slots >= all {
        return u32::MAX;
    }
    if slots == 0 {
        return 0;
    }
    let mut positions: Vec<u32> = cohorts.flatten().copied().collect();
    *positions.select_nth_unstable(slots).1
}

impl Move {
    /// It keeps its assigned revision.
    pub(crate) fn stay(decision: Decision) -> Self {
        Self { decision, told: None, starts: false, reprobes: false }
    }

    fn on(decision: Decision, told: Option<&Arc<TargetRevision>>) -> Self {
        Self { decision, told: told.cloned(), starts: false, reprobes: false }
    }

    fn start(standing: &CohortStanding, told: &Arc<TargetRevision>) -> Self {
        let start = match standing {
            CohortStanding::Fresh { .. } | CohortStanding::Absent => Start::Install,
            CohortStanding::Elsewhere { moving: true, .. } => Start::Retarget,
            _ => Start::Update,
        };
        Self { decision: Decision::Start(start), told: Some(Arc::clone(told)), starts: true, reprobes: false }
    }
}

/// Whether a cluster counts against the budget. A failed one does, unless failures are tolerated;
/// an offline one that was never started does not, and one that went offline in flight only until
/// its deadline.
fn holds_slot(standing: &CohortStanding, forgiven: bool) -> bool {
    match standing {
        CohortStanding::OnTarget { share: BudgetShare::None, .. }
        | CohortStanding::Stuck { share: BudgetShare::None, .. }
        | CohortStanding::Elsewhere { share: BudgetShare::None, .. } => false,
        CohortStanding::OnTarget { flight, reachable, .. }
        | CohortStanding::Stuck { flight, reachable, .. } => match flight {
            Flight::TimedOut { .. } if !reachable => false,
            flight => !(forgiven && flight.is_failure()),
        },
        CohortStanding::Fresh { .. } if standing.is_doubted() => false,
        // A first install of another revision than the target is no part of the rollout, so
        // clusters that join cannot block it.
        CohortStanding::Fresh { flight, reachable, on_target, aims_at_target, told, .. } => {
            *reachable && (*on_target || *aims_at_target) && !(forgiven && *told && flight.is_failure())
        }
        CohortStanding::Elsewhere { moving, broken, reachable, .. } => *moving || (*broken && *reachable),
        CohortStanding::Absent
        | CohortStanding::Aside(_)
        | CohortStanding::LeftOut(_)
        | CohortStanding::Settled => false,
    }
}

/// The first stage with a cluster that has neither settled nor failed within what is tolerated.
fn open_stage(view: &RolloutView<'_>, forgiven: bool) -> usize {
    let is_open = |facts: &ClusterFacts<'_>, standing: &CohortStanding| {
        let mandatory = view.governor.stages.get(facts.stage()).is_some_and(|stage| stage.mandatory);
        // Broken overrides and clusters that cannot be moved do not block the stage.
        let aside = standing.is_left_out()
            || (standing.is_doubted() && !matches!(standing, CohortStanding::Elsewhere { .. }));
        let done =
            *standing == CohortStanding::Settled || aside || (standing.failed() && forgiven && !mandatory);
        !done
    };
    let open = view.cohorts().filter(|(cohort, standing)| is_open(&cohort.facts, standing));
    open.map(|(cohort, _)| cohort.facts.stage()).min().unwrap_or(0)
}
