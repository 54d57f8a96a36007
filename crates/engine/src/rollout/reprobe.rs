//! Which works of an earlier version of Aviary are rendered anew, with probes, where somebody asked
//! for it (`aviary rollout reprobe`). Otherwise they wait for the next revision.
//!
//! Decided anew in every pass from the works as they are, so nothing is recorded. A cluster is
//! unsettled from the write until its agent reports healthy objects. So the number of unsettled
//! clusters bounds what is under way, and unhealthy clusters stop the rest.

use super::budget::{Ledger, end_of_first};
use super::standing::CohortStanding;
use super::{Move, MoveRun, RolloutView};
use crate::fleet::Cohort;
use crate::limit::Limit;

/// At most this share of a placement's clusters at once, whatever its strategy allows.
const AT_ONCE: Limit = Limit::DEFAULT;

/// Chooses settled clusters, in order of name, as far as the limit goes.
pub(super) fn choose(view: &RolloutView<'_>, ledger: &Ledger, moves: &mut [Vec<MoveRun>]) {
    if !view.fleet.observed.addon.reprobe || ledger.starts_nothing(view.governor) {
        return;
    }
    let most = AT_ONCE.of(view.governed()).min(ledger.budget);
    let unsettled = view.count(|_, standing| is_under_way(standing)).max(ledger.slots_used);
    let candidates: Vec<(usize, &Cohort<'_>)> = view
        .cohorts()
        .enumerate()
        .filter(|(_, (cohort, standing))| {
            let is_unprobed =
                cohort.facts.instance.as_ref().is_some_and(|instance| instance.unprobed.is_some());
            is_unprobed && cohort.facts.is_reachable() && **standing == CohortStanding::Settled
        })
        .map(|(at, (cohort, _))| (at, cohort))
        .collect();
    let slots = most.saturating_sub(unsettled);
    let end = end_of_first(slots, candidates.iter().map(|(_, cohort)| cohort.members.as_slice()));
    for (at, cohort) in candidates {
        let count = cohort.members.partition_point(|&position| position < end);
        let Some(runs) = moves.get_mut(at).filter(|runs| count > 0 && runs.len() == 1) else { continue };
        let Some(MoveRun { decided, .. }) = runs.first().cloned() else { continue };
        let chosen = Move { reprobes: true, ..decided.clone() };
        let rest = MoveRun { count: cohort.members.len() - count, decided };
        *runs = [MoveRun { count, decided: chosen }, rest].into_iter().filter(|run| run.count > 0).collect();
    }
}

fn is_under_way(standing: &CohortStanding) -> bool {
    match standing {
        CohortStanding::OnTarget { .. } | CohortStanding::Stuck { .. } => true,
        CohortStanding::Elsewhere { moving, broken, .. } => *moving || *broken,
        CohortStanding::Absent
        | CohortStanding::Aside(_)
        | CohortStanding::LeftOut(_)
        | CohortStanding::Fresh { .. }
        | CohortStanding::Settled => false,
    }
}
