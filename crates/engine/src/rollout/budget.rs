//! Who may go: slots, failures, stages. Counted first, handed out after; a limit that is full stays full (semantics §5.3, §5.9).

use std::sync::Arc;

use super::gate::{Aim, Gate};
use super::standing::{Identified, Judge, Kind, Standing, Standings};
use super::{Decisions, Move, flying, start_of};
use crate::explain::{Decision, Flight, Wait};
use crate::fleet::{Fleet, Governor};
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
    pub fn open(governor: &Governor<'_>, aim: &Aim, standings: &Standings) -> Self {
        let governed = standings.of.len();
        let limit = match governor.spec.rollout.pace {
            Pace::Rolling(limit) => Some(limit),
            Pace::RollingByGroupSize => Some(governor.group_size.unwrap_or(Limit::DEFAULT)),
            Pace::AllAtOnce | Pace::PerGroup => None,
        };
        let failed = standings.count(|kind| kind.standing.failed());
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
        for Kind { standing, count, .. } in &standings.kinds {
            if holds_slot(standing, forgiven) {
                ledger.in_flight += count;
                if !matches!(standing, Standing::Elsewhere { moving: false, .. }) {
                    ledger.under_way += count;
                }
                if standing.failed() {
                    ledger.held_by_failed += count;
                }
            }
        }
        ledger.open_stage = open_stage(governor, standings, forgiven);
        ledger
    }

    /// Decides for every governed cluster; afterwards `in_flight` includes what was started.
    pub fn assign(
        &mut self,
        fleet: &Fleet<'_>,
        governor: &Governor<'_>,
        aim: &Aim,
        judge: &Judge<'_>,
        standings: &Standings,
    ) -> Decisions {
        let mut decisions = Decisions::default();
        // What all of a kind do alike; `None`: each of them is a candidate.
        let alike: Vec<Option<u32>> = standings
            .kinds
            .iter()
            .map(|kind| {
                let decided = self.decide_standing(governor, aim, judge, kind);
                decided.map(|decided| decisions.share(decided))
            })
            .collect();
        let mut candidates = Candidates::default();
        decisions.of.reserve_exact(standings.of.len());
        for (at, &kind) in standings.of.iter().enumerate() {
            let of_kind = alike.get(kind as usize).copied().flatten();
            if of_kind.is_none() {
                candidates.add(at, standings.kinds.get(kind as usize));
            }
            decisions.of.push(of_kind.unwrap_or_default());
        }
        for (kind, of_kind) in standings.kinds.iter().zip(alike) {
            let starts = of_kind.is_some_and(|decided| decisions.starts(decided));
            decisions.started.push(if starts { kind.count } else { 0 });
        }
        for at in candidates.in_order() {
            let Some(of) = standings.of.get(at).map(|&kind| kind as usize) else { continue };
            let Some(kind) = standings.kinds.get(of) else { continue };
            let decided = self.decide_candidate(fleet, governor, aim, judge, kind);
            decisions.decide(at, of, decided);
        }
        decisions
    }

    /// Clusters that need no new slot; `None`: these do.
    fn decide_standing(
        &self,
        governor: &Governor<'_>,
        aim: &Aim,
        judge: &Judge<'_>,
        kind: &Kind,
    ) -> Option<Move> {
        let Kind { standing, in_canary, .. } = kind;
        let target = judge.target_of(*in_canary);
        Some(match standing {
            Standing::Elsewhere { moving: false, .. } => return None,
            Standing::Absent => Move::stay(Decision::Create),
            Standing::Aside(wait) => Move::stay(Decision::Hold(wait.clone())),
            Standing::Settled => {
                let wants_more = !in_canary && !aim.target_is_desired();
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
            Standing::Elsewhere { .. } => match (self.blocked(governor, aim, *in_canary), target) {
                (None, Some(revision)) => Move::start(standing, revision),
                (Some(wait), _) => Move::stay(Decision::Hold(wait)),
                (None, None) => Move::stay(Decision::Hold(Wait::NothingKnownGood)),
            },
        })
    }

    /// A cluster that has arrived at another revision, and would be moved into flight.
    fn decide_candidate(
        &mut self,
        fleet: &Fleet<'_>,
        governor: &Governor<'_>,
        aim: &Aim,
        judge: &Judge<'_>,
        kind: &Kind,
    ) -> Move {
        let Kind { standing, in_canary, stage, .. } = kind;
        let blocked = self.blocked(governor, aim, *in_canary);
        let Some(target) = judge.target_of(*in_canary) else {
            return Move::stay(Decision::Hold(blocked.unwrap_or(Wait::NothingKnownGood)));
        };
        if let Some(wait) = blocked.or_else(|| self.before_its_stage(governor, *stage)) {
            return Move::stay(Decision::Hold(wait));
        }
        let holds_one_already = matches!(standing, Standing::Elsewhere { broken: true, reachable: true, .. });
        let taken = if holds_one_already { self.under_way } else { self.in_flight };
        if self.limited && taken >= self.budget {
            // One that is offline is the only one of its kind.
            let offline = fleet.member(kind.first).and_then(|member| member.offline());
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
    fn blocked(&self, governor: &Governor<'_>, aim: &Aim, in_canary: bool) -> Option<Wait> {
        if let Some(wait) = self.frozen(governor) {
            return Some(wait);
        }
        // With a known good revision clusters move towards that; without one the gate keeps them where they are.
        if let Gate::Closed(wait) = &aim.gate
            && aim.known_good.is_none()
            && !in_canary
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

/// Clusters that would be moved into flight, by their place among those of the placement.
#[derive(Default)]
struct Candidates {
    broken: Vec<usize>,
    well: Vec<usize>,
    offline_broken: Vec<usize>,
    offline: Vec<usize>,
}

impl Candidates {
    fn add(&mut self, at: usize, kind: Option<&Kind>) {
        let Some(Standing::Elsewhere { broken, reachable, .. }) = kind.map(|kind| &kind.standing) else {
            return;
        };
        match (reachable, broken) {
            (true, true) => self.broken.push(at),
            (true, false) => self.well.push(at),
            (false, true) => self.offline_broken.push(at),
            (false, false) => self.offline.push(at),
        }
    }

    /// Broken ones first: they have nothing to lose and hold a slot until they are well. Those that can be reached before the others, each
    /// in order of name.
    fn in_order(self) -> impl Iterator<Item = usize> {
        let Self { broken, well, offline_broken, offline } = self;
        broken.into_iter().chain(well).chain(offline_broken).chain(offline)
    }
}

impl Decisions {
    /// How many moves are compared with: as many as commonly alternate.
    const COMPARED: usize = 8;

    /// The place of a move: clusters that are to do the same have one.
    fn share(&mut self, made: Move) -> u32 {
        let compared = self.moves.len().saturating_sub(Self::COMPARED);
        let before = self.moves.iter().enumerate().skip(compared).rev().find(|(_, before)| before.is(&made));
        let at = before.map(|(at, _)| at);
        let at = at.unwrap_or_else(|| {
            self.moves.push(made);
            self.moves.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    fn starts(&self, decided: u32) -> bool {
        self.moves.get(decided as usize).is_some_and(|decided| decided.starts)
    }

    /// Decides for the cluster at this place among those of the placement.
    fn decide(&mut self, at: usize, kind: usize, decided: Move) {
        if let Some(started) = self.started.get_mut(kind) {
            *started += usize::from(decided.starts);
        }
        let decided = self.share(decided);
        if let Some(place) = self.of.get_mut(at) {
            *place = decided;
        }
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
fn open_stage(governor: &Governor<'_>, standings: &Standings, forgiven: bool) -> usize {
    let is_open = |kind: &&Kind| {
        let mandatory = governor.stages.get(kind.stage).is_some_and(|stage| stage.mandatory);
        let done = kind.standing == Standing::Settled || (kind.standing.failed() && forgiven && !mandatory);
        !done
    };
    standings.kinds.iter().filter(is_open).map(|kind| kind.stage).min().unwrap_or(0)
}
