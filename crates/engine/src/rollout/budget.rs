//! Who may go: slots, failures, stages. Counted first, handed out after; a limit that is full stays full (semantics §5.3, §5.9).

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use super::gate::{Aim, Gate};
use super::standing::{Identified, Judge, Standing};
use super::{Move, flying, start_of};
use crate::explain::{Decision, Flight, Wait};
use crate::fleet::{Fleet, Governor, Member};
use crate::limit::Limit;
use crate::observed::Pace;
use crate::problem::Problem;

/// The state of a placement's budget.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// How many may be in flight; of no meaning where not `limited`.
    pub budget: usize,
    pub limited: bool,
    /// Clusters that hold a slot.
    pub in_flight: usize,
    /// Of those, the ones that were told something and have not arrived: a cluster that is broken where it stands holds a slot
    /// and is not under way.
    under_way: usize,
    pub failed: usize,
    /// Failed clusters that hold a slot.
    pub held_by_failed: usize,
    /// More failed than tolerated: how many, and how many would be.
    pub halted: Option<(usize, usize)>,
    /// The first stage that has not settled.
    open_stage: usize,
    /// What somebody must mend before anything moves.
    problem: Option<Arc<Problem>>,
}

impl Ledger {
    pub fn open(
        fleet: &Fleet<'_>,
        governor: &Governor<'_>,
        aim: &Aim,
        standings: &[(usize, Rc<Standing>)],
    ) -> Self {
        let governed = standings.len();
        let limit = match governor.spec.rollout.pace {
            Pace::Rolling(limit) => Some(limit),
            Pace::RollingByGroupSize => Some(governor.group_size.unwrap_or(Limit::DEFAULT)),
            Pace::AllAtOnce | Pace::PerGroup => None,
        };
        let failed = standings.iter().filter(|(_, standing)| standing.failed()).count();
        let tolerated = governor.spec.rollout.max_failures.map(|limit| limit.of(governed));
        let halted = tolerated.filter(|&tolerated| failed > tolerated).map(|tolerated| (failed, tolerated));
        let mut ledger = Self {
            budget: limit.map_or(governed, |limit| limit.of(governed)),
            limited: limit.is_some(),
            in_flight: 0,
            under_way: 0,
            failed,
            held_by_failed: 0,
            halted,
            open_stage: 0,
            problem: governor.fault.as_ref().or(aim.problem()).cloned().map(Arc::new),
        };
        let forgiven = tolerated.is_some() && halted.is_none();
        for (_, standing) in standings {
            if holds_slot(standing, forgiven) {
                ledger.in_flight += 1;
                ledger.under_way +=
                    usize::from(!matches!(**standing, Standing::Elsewhere { moving: false, .. }));
                ledger.held_by_failed += usize::from(standing.failed());
            }
        }
        ledger.open_stage = open_stage(fleet, governor, standings, forgiven);
        ledger
    }

    /// Decides for every governed cluster; afterwards `in_flight` includes what was started.
    pub fn assign(
        &mut self,
        fleet: &Fleet<'_>,
        governor: &Governor<'_>,
        aim: &Aim,
        judge: &Judge<'_>,
        standings: &[(usize, Rc<Standing>)],
    ) -> Vec<(usize, Rc<Move>)> {
        let mut moves: Vec<Option<Rc<Move>>> = vec![None; standings.len()];
        let mut shared = Moves::default();
        let mut candidates = Vec::new();
        for (at, ((position, standing), decided)) in standings.iter().zip(&mut moves).enumerate() {
            if let Standing::Elsewhere { moving: false, broken, reachable } = &**standing {
                // Broken ones first: they have nothing to lose and hold a slot until they are well. Then those that can be
                // reached, then the others, each in order of name.
                candidates.push((!reachable, !broken, at));
                continue;
            }
            *decided = Some(shared.share(self.decide_standing(governor, aim, judge, *position, standing)));
        }
        candidates.sort();
        for (_, _, at) in candidates {
            if let (Some((position, standing)), Some(decided)) = (standings.get(at), moves.get_mut(at)) {
                let candidate = self.decide_candidate(fleet, governor, aim, judge, *position, standing);
                *decided = Some(shared.share(candidate));
            }
        }
        let decided = standings.iter().zip(moves);
        decided.filter_map(|((position, _), decided)| Some((*position, decided?))).collect()
    }

    /// Clusters that need no new slot.
    fn decide_standing(
        &self,
        governor: &Governor<'_>,
        aim: &Aim,
        judge: &Judge<'_>,
        position: usize,
        standing: &Standing,
    ) -> Move {
        let target = judge.target_of(position);
        match standing {
            Standing::Absent => Move::stay(Decision::Create),
            Standing::Aside(wait) => Move::stay(Decision::Hold(wait.clone())),
            Standing::Settled => {
                let wants_more = !governor.in_canary(position) && !aim.target_is_desired();
                let decision = match (&self.problem, &aim.gate) {
                    (Some(problem), _) if wants_more => Decision::Hold(Wait::Problem(Arc::clone(problem))),
                    (None, Gate::Closed(wait)) if wants_more => Decision::Hold(wait.clone()),
                    _ => Decision::Settled,
                };
                Move::on(decision, target)
            }
            Standing::OnTarget { flight, .. } => Move::on(flying(flight), target),
            // Whatever made it turn to the target, it stays with it.
            Standing::Fresh { on_target: true, flight, .. } => Move::on(flying(flight), target),
            Standing::Fresh { told: true, flight, .. } => Move::on(flying(flight), judge.fresh()),
            Standing::Fresh { .. } => match judge.fresh() {
                Some(revision) => Move::start(standing, revision),
                None => Move::stay(Decision::Hold(self.frozen(governor).unwrap_or(Wait::NothingKnownGood))),
            },
            Standing::Elsewhere { .. } => match (self.blocked(governor, aim, position), target) {
                (None, Some(revision)) => Move::start(standing, revision),
                (Some(wait), _) => Move::stay(Decision::Hold(wait)),
                (None, None) => Move::stay(Decision::Hold(Wait::NothingKnownGood)),
            },
        }
    }

    /// A cluster that has arrived at another revision, and would be moved into flight.
    fn decide_candidate(
        &mut self,
        fleet: &Fleet<'_>,
        governor: &Governor<'_>,
        aim: &Aim,
        judge: &Judge<'_>,
        position: usize,
        standing: &Standing,
    ) -> Move {
        let Some(target) = judge.target_of(position) else {
            return Move::stay(Decision::Hold(
                self.blocked(governor, aim, position).unwrap_or(Wait::NothingKnownGood),
            ));
        };
        let member = fleet.members.get(position);
        let stage = member.map_or(0, |member| member.stage);
        if let Some(wait) =
            self.blocked(governor, aim, position).or_else(|| self.before_its_stage(governor, stage))
        {
            return Move::stay(Decision::Hold(wait));
        }
        let holds_one_already = matches!(standing, Standing::Elsewhere { broken: true, reachable: true, .. });
        let taken = if holds_one_already { self.under_way } else { self.in_flight };
        if self.limited && taken >= self.budget {
            let offline = member.and_then(Member::offline);
            return Move::stay(Decision::Hold(match offline {
                Some(offline) => Wait::Offline { since: offline.since },
                None => Wait::BudgetFull { in_flight: self.in_flight, budget: self.budget },
            }));
        }
        self.under_way += 1;
        self.in_flight += usize::from(!holds_one_already);
        Move::start(standing, target)
    }

    /// Why nothing of this placement may be started, in order of what to mend first.
    fn blocked(&self, governor: &Governor<'_>, aim: &Aim, position: usize) -> Option<Wait> {
        if let Some(wait) = self.frozen(governor) {
            return Some(wait);
        }
        // With a known good revision clusters move towards that; without one the gate keeps them where they are.
        if let Gate::Closed(wait) = &aim.gate
            && aim.known_good.is_none()
            && !governor.in_canary(position)
        {
            return Some(wait.clone());
        }
        self.halted.map(|(failed, tolerated)| Wait::Halted { failed, tolerated })
    }

    fn frozen(&self, governor: &Governor<'_>) -> Option<Wait> {
        if let Some(problem) = &self.problem {
            return Some(Wait::Problem(Arc::clone(problem)));
        }
        governor.spec.rollout.paused.then_some(Wait::Paused)
    }

    fn before_its_stage(&self, governor: &Governor<'_>, stage: usize) -> Option<Wait> {
        let first = governor.stages.get(self.open_stage)?;
        (stage > self.open_stage).then(|| Wait::Stage { first: first.name.clone() })
    }
}

/// The moves made so far, of which there are few: clusters that are to do the same share one.
#[derive(Default)]
struct Moves {
    latest: VecDeque<Rc<Move>>,
}

impl Moves {
    /// How many are compared with: as many as commonly alternate.
    const COMPARED: usize = 8;

    fn share(&mut self, made: Move) -> Rc<Move> {
        if let Some(same) = self.latest.iter().find(|before| before.is(&made)) {
            return Rc::clone(same);
        }
        let made = Rc::new(made);
        self.latest.truncate(Self::COMPARED - 1);
        self.latest.push_front(Rc::clone(&made));
        made
    }
}

impl Move {
    /// Whether it is the same, down to the very revision.
    pub fn is(&self, other: &Self) -> bool {
        let same_told = match (&self.told, &other.told) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        same_told && self.starts == other.starts && self.decision == other.decision
    }

    /// It is told nothing new, and keeps what it was told.
    pub fn stay(decision: Decision) -> Self {
        Self { decision, told: None, starts: false }
    }

    fn on(decision: Decision, told: Option<&Arc<Identified>>) -> Self {
        Self { decision, told: told.cloned(), starts: false }
    }

    fn start(standing: &Standing, told: &Arc<Identified>) -> Self {
        Self { decision: Decision::Start(start_of(standing)), told: Some(Arc::clone(told)), starts: true }
    }
}

/// Whether a cluster counts against the budget. A failed one does, unless failures are tolerated; an offline one that was never
/// started does not, and one that went offline in flight only until its deadline.
fn holds_slot(standing: &Standing, forgiven: bool) -> bool {
    match standing {
        Standing::OnTarget { flight, reachable, .. } => match flight {
            Flight::TimedOut { .. } if !reachable => false,
            flight => !(forgiven && flight.is_failure()),
        },
        // A first install of another revision than the target is no part of the rollout, so clusters that join cannot block it.
        Standing::Fresh { flight, reachable, on_target, aims_at_target, told, .. } => {
            *reachable && (*on_target || *aims_at_target) && !(forgiven && *told && flight.is_failure())
        }
        Standing::Elsewhere { moving, broken, reachable } => *moving || (*broken && *reachable),
        Standing::Absent | Standing::Aside(_) | Standing::Settled => false,
    }
}

/// The first stage with a cluster that has neither settled nor failed within what is tolerated.
fn open_stage(
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    standings: &[(usize, Rc<Standing>)],
    forgiven: bool,
) -> usize {
    standings
        .iter()
        .filter_map(|(position, standing)| {
            let stage = fleet.members.get(*position)?.stage;
            let mandatory = governor.stages.get(stage).is_some_and(|stage| stage.mandatory);
            let done = **standing == Standing::Settled || (standing.failed() && forgiven && !mandatory);
            (!done).then_some(stage)
        })
        .min()
        .unwrap_or(0)
}
