//! What the words about clusters mean: settled, in flight, failed, waiting, leaving.
//!
//! The only definition of these words. Commands, JSON, the rehearsal, the dashboard and the
//! glossary in ARCHITECTURE.md use it. A cluster is in exactly one of these states, so the counts
//! of an add-on or a placement add up to its clusters. Counts facts that the hub records; what a
//! plan would do next counts only once it is written.

use std::collections::HashMap;
use std::sync::Arc;

use crate::explain::{Decision, Flight, Phase, Start, Wait};
use crate::plan::{ClusterReport, Report, Why};
use crate::wire::wire_enum;

wire_enum! {
    /// Where a cluster is, by what the hub records.
    pub enum ClusterState {
        /// Runs the desired revision, healthy for long enough; or nothing is desired of it.
        Settled = "settled",
        /// Assigned a revision, and neither settled on it nor failed.
        InFlight = "in flight",
        /// Assigned a revision, and failed on it.
        Failed = "failed",
        /// Not assigned the revision that it should run.
        Waiting = "waiting",
        /// No longer selected, or being deleted.
        Leaving = "leaving",
    }
}

impl ClusterState {
    /// The order in which states are shown: what needs attention first.
    pub fn rank(self) -> u8 {
        match self {
            Self::Failed => 0,
            Self::Leaving => 1,
            Self::InFlight => 2,
            Self::Waiting => 3,
            Self::Settled => 4,
        }
    }
}

impl Decision {
    /// Where the cluster is before the plan is executed: a planned start or create is not a fact.
    pub fn state(&self) -> ClusterState {
        match self {
            Self::Start(Start::Retarget) => ClusterState::InFlight,
            Self::Start(Start::Install | Start::Update) | Self::Create => ClusterState::Waiting,
            _ => self.next_state(),
        }
    }

    /// Where the cluster is once the plan has been executed.
    pub fn next_state(&self) -> ClusterState {
        match self.phase() {
            Phase::Settled => ClusterState::Settled,
            Phase::Failed => ClusterState::Failed,
            Phase::InFlight | Phase::Starting => ClusterState::InFlight,
            Phase::Waiting if matches!(self, Self::Hold(Wait::Kept)) => ClusterState::Settled,
            Phase::Waiting | Phase::Creating => ClusterState::Waiting,
            Phase::Leaving | Phase::Deleting => ClusterState::Leaving,
        }
    }

    /// The decision as a fact: what is planned has not happened yet.
    fn recorded(&self, starts_pending: bool) -> Option<Self> {
        match self {
            Self::Create => Some(Self::Hold(Wait::NotCreated)),
            Self::Start(Start::Retarget) => Some(Self::InFlight(Flight::Updating)),
            Self::Start(Start::Install | Start::Update) => Some(Self::Hold(Wait::NotStarted)),
            // The planned starts would fill the budget; they have not happened.
            Self::Hold(Wait::BudgetFull { .. }) if starts_pending => Some(Self::Hold(Wait::NotStarted)),
            _ => None,
        }
    }
}

/// The clusters of an add-on or a placement, counted by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterTally {
    /// All of them: the sum of the others.
    pub clusters: usize,
    pub settled: usize,
    pub in_flight: usize,
    pub failed: usize,
    pub waiting: usize,
    pub leaving: usize,
}

impl ClusterTally {
    pub fn add(&mut self, state: ClusterState) {
        self.add_all(state, 1);
    }

    fn add_all(&mut self, state: ClusterState, clusters: usize) {
        self.clusters += clusters;
        *match state {
            ClusterState::Settled => &mut self.settled,
            ClusterState::InFlight => &mut self.in_flight,
            ClusterState::Failed => &mut self.failed,
            ClusterState::Waiting => &mut self.waiting,
            ClusterState::Leaving => &mut self.leaving,
        } += clusters;
    }

    /// Clusters that have been assigned the revision that they should run.
    pub fn started(&self) -> usize {
        self.settled + self.in_flight + self.failed
    }

    /// Clusters to which something still happens, or should.
    pub fn unsettled(&self) -> usize {
        self.clusters - self.settled
    }

    pub fn of(clusters: &[ClusterReport]) -> Self {
        let mut tally = Self::default();
        for cluster in clusters {
            tally.add(cluster.decision.state());
        }
        tally
    }

    /// One tally per placement, in their order, and one for the clusters in no placement.
    pub fn by_placement(
        placements: usize,
        clusters: &[ClusterReport],
        state: impl Fn(&Decision) -> ClusterState,
    ) -> (Vec<Self>, Self) {
        let mut tallies = vec![Self::default(); placements];
        let mut free = Self::default();
        // Neighbours mostly share one answer.
        for alike in clusters.chunk_by(|one, next| Arc::ptr_eq(&one.why, &next.why)) {
            let Some(Why { placement, decision, .. }) = alike.first().map(|first| &*first.why) else {
                continue;
            };
            let of = placement.and_then(|index| tallies.get_mut(index)).unwrap_or(&mut free);
            of.add_all(state(decision), alike.len());
        }
        (tallies, free)
    }
}

impl Report {
    /// The report as facts: planned creates and starts are shown as not done yet, and every cluster
    /// with the revision that it is assigned now. For everything that shows a state, not a plan.
    pub fn recorded(&self) -> Self {
        let mut pending = vec![false; self.placements.len()];
        let mut starts = vec![0_usize; self.placements.len()];
        for cluster in &self.clusters {
            let Decision::Start(start) = &cluster.decision else { continue };
            let Some(index) = cluster.placement else { continue };
            if let (Some(pending), Some(starts)) = (pending.get_mut(index), starts.get_mut(index)) {
                *pending |= *start != Start::Retarget;
                *starts += 1;
            }
        }
        let mut recorded = self.clone();
        let mut known: HashMap<*const Why, Arc<Why>> = HashMap::new();
        for cluster in &mut recorded.clusters {
            let why = &cluster.why;
            let starts_pending =
                why.placement.and_then(|index| pending.get(index)).copied().unwrap_or_default();
            let fact = known.entry(Arc::as_ptr(why)).or_insert_with(|| {
                match why.decision.recorded(starts_pending) {
                    None => Arc::clone(why),
                    Some(decision) => {
                        let told = why.was_told.clone();
                        let object = why.object.clone();
                        let was_told = told.clone();
                        Arc::new(Why { placement: why.placement, decision, told, was_told, object })
                    }
                }
            });
            cluster.why = Arc::clone(fact);
        }
        for (placement, starts) in recorded.placements.iter_mut().zip(starts) {
            placement.without_starts(starts);
        }
        recorded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_no_fact() {
        for planned in [Decision::Create, Decision::Start(Start::Install), Decision::Start(Start::Update)] {
            assert_eq!(planned.state(), ClusterState::Waiting, "{planned:?}");
        }
        assert_eq!(Decision::Start(Start::Retarget).state(), ClusterState::InFlight);
        assert_eq!(Decision::Start(Start::Update).next_state(), ClusterState::InFlight);
    }

    #[test]
    fn every_cluster_is_in_exactly_one_state() {
        let mut tally = ClusterTally::default();
        for state in ClusterState::ALL {
            tally.add(*state);
        }
        let ClusterTally { clusters, settled, in_flight, failed, waiting, leaving } = tally;
        assert_eq!(clusters, settled + in_flight + failed + waiting + leaving);
        assert_eq!((clusters, tally.started(), tally.unsettled()), (5, 3, 4));
    }
}
