//! The state of a cohort relative to its target revision. The order of the checks is the policy.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::clock::RevisionClock;
use crate::configs::{Pin, Revision};
use crate::explain::{Flight, Wait};
use crate::fleet::{BudgetShare, ClusterFacts, Governor, InstanceFacts};
use crate::health::Health;
use crate::install::is_kept;
use crate::name::{PlacementName, Text};
use crate::observed::{InstallRule, Lookup, Observed, Refusal, RefusedWrite, Rollout};
use crate::problem::Problem;
use crate::versions;

/// How much later than it happens a standard agent, which polls, reports a change of an object.
pub(crate) const REPORTING_LAG: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CohortStanding {
    /// Selected, and without an instance yet.
    Absent,
    /// Cannot be moved now, and holds no slot.
    Aside(Wait),
    /// Keeps what it has, and the placement's rollout continues and completes without it.
    LeftOut(Wait),
    /// Nothing was ever applied. Not throttled and not gated.
    Fresh {
        /// It was assigned the revision for first installs.
        told: bool,
        /// Its assigned revision is the target.
        on_target: bool,
        /// The revision for first installs is the target, so it is part of the rollout.
        aims_at_target: bool,
        flight: Flight,
        reachable: bool,
        deadline: Option<Timestamp>,
        share: BudgetShare,
    },
    /// Assigned the target and not settled on it.
    OnTarget {
        flight: Flight,
        reachable: bool,
        deadline: Option<Timestamp>,
        share: BudgetShare,
        /// It has been healthy there since the revision was assigned.
        had_arrived: bool,
    },
    /// Assigned another revision.
    Elsewhere {
        /// It has not arrived there: it is in flight already.
        moving: bool,
        /// It had arrived there and is not healthy any more.
        broken: bool,
        reachable: bool,
        share: BudgetShare,
    },
    /// Moving to another revision. The hub refuses the status write that would assign the target.
    Stuck { flight: Flight, reachable: bool, share: BudgetShare },
    /// Applied at the target, available, and for long enough.
    Settled,
}

impl CohortStanding {
    /// It failed, whoever is to blame.
    pub(super) fn has_failed(&self) -> bool {
        match self {
            Self::OnTarget { flight, .. } | Self::Stuck { flight, .. } => flight.is_failure(),
            Self::Fresh { flight, on_target, .. } => *on_target && flight.is_failure(),
            _ => false,
        }
    }

    /// It failed, and that may be the revision's fault.
    pub(super) fn failed(&self) -> bool {
        self.has_failed() && !self.is_doubted()
    }

    /// Its own override may be what it suffers from: it starts last.
    pub(crate) fn is_doubted(&self) -> bool {
        match self {
            Self::Fresh { share, .. }
            | Self::Elsewhere { share, .. }
            | Self::OnTarget { share, .. }
            | Self::Stuck { share, .. } => *share != BudgetShare::Full,
            Self::Absent | Self::Aside(_) | Self::LeftOut(_) | Self::Settled => false,
        }
    }

    pub(crate) fn is_left_out(&self) -> bool {
        matches!(self, Self::LeftOut(_))
    }

    /// It came from elsewhere, and the gate is closed.
    pub(super) fn is_behind_gate(&self) -> bool {
        matches!(self, Self::LeftOut(Wait::Canary(_) | Wait::KnownGoodFirst { .. }))
    }

    /// It was assigned its target, and nothing that its placement moved is still in flight. An
    /// instance that is being created, or assigned a revision now, follows at once. One that is
    /// being deleted is moved nowhere: its successor is a first install.
    pub(super) fn is_assigned(&self) -> bool {
        match self {
            Self::Settled | Self::Absent | Self::Fresh { .. } | Self::LeftOut(_) => true,
            Self::Aside(Wait::Terminating) => true,
            Self::OnTarget { share, had_arrived, .. } => *had_arrived || *share != BudgetShare::Full,
            Self::Elsewhere { .. } | Self::Stuck { .. } | Self::Aside(_) => false,
        }
    }

    /// Something is wrong on the cluster, as opposed to not being there yet.
    pub(crate) fn is_unhealthy(&self) -> bool {
        let is_wrong = |flight: &Flight| flight.is_failure() || matches!(flight, Flight::Unavailable { .. });
        match self {
            Self::OnTarget { flight, .. } | Self::Stuck { flight, .. } => is_wrong(flight),
            Self::Fresh { flight, told, on_target, .. } => (*told || *on_target) && is_wrong(flight),
            Self::Elsewhere { broken, .. } => *broken,
            Self::Absent | Self::Aside(_) | Self::LeftOut(_) | Self::Settled => false,
        }
    }

    /// What the hub's refusal makes of it. A cluster that was not started for the target stays as
    /// it is and is left out. One that was started has failed, as it would if its agent had
    /// refused.
    fn refused(self, refusal: &Refusal, reachable: bool) -> Self {
        let problem = Arc::new(Problem::refused(refusal));
        let flight = Flight::Refused(Arc::clone(&problem));
        match (refusal.what, self) {
            (
                RefusedWrite::Status,
                Self::Elsewhere { moving: false, .. } | Self::Fresh { told: false, on_target: false, .. },
            ) => Self::LeftOut(Wait::Problem(problem)),
            (RefusedWrite::Status, Self::Elsewhere { reachable, share, .. }) => {
                Self::Stuck { flight, reachable, share }
            }
            (RefusedWrite::Status, Self::Settled) => Self::OnTarget {
                flight,
                reachable,
                deadline: None,
                share: BudgetShare::Full,
                had_arrived: true,
            },
            (_, Self::OnTarget { reachable, share, had_arrived, .. }) => {
                Self::OnTarget { flight, reachable, deadline: None, share, had_arrived }
            }
            (_, Self::Fresh { told, on_target, aims_at_target, reachable, share, .. })
                if told || on_target =>
            {
                Self::Fresh { told, on_target, aims_at_target, flight, reachable, deadline: None, share }
            }
            (_, standing) => standing,
        }
    }

    /// When time alone changes its standing.
    pub(super) fn recheck_at(&self) -> Option<Timestamp> {
        match self {
            Self::OnTarget { flight: Flight::Soaking { until }, .. } => Some(*until),
            Self::OnTarget { flight, deadline, .. } | Self::Fresh { flight, deadline, .. }
                if !flight.is_failure() =>
            {
                *deadline
            }
            _ => None,
        }
    }
}

/// A revision with what is worked out from it once and not per cluster.
#[derive(Clone, Debug)]
pub(crate) struct TargetRevision {
    pub revision: Revision,
    pub id: Text,
    /// Its version, if known.
    pub version: Option<Text>,
    /// For each of its pins the generation of the live object, while that still has the pinned
    /// content.
    pub generations: Vec<Option<i64>>,
}

impl TargetRevision {
    pub(crate) fn new(observed: &Observed, revision: &Revision) -> Self {
        let generations = revision.pins().iter().map(|pin| live_generation(observed, pin)).collect();
        let version = versions::of_revision(observed, revision);
        Self { revision: revision.clone(), id: revision.id(), version, generations }
    }
}

/// The generation of a config that still has the pinned content.
pub(crate) fn live_generation(observed: &Observed, pin: &Pin) -> Option<i64> {
    match observed.configs.get(&pin.config)? {
        Lookup::Found(live) if live.hash == pin.hash => Some(live.generation),
        _ => None,
    }
}

/// The revisions that a placement's clusters should get.
#[derive(Clone, Debug)]
pub(crate) struct Targets<R = Revision> {
    /// For the clusters that the canary gates, or for all where there is none.
    pub target: Option<R>,
    /// For the clusters inside the canary: they are never gated by it.
    pub canary: Option<R>,
    /// For instances on which nothing was ever applied.
    pub fresh: Option<R>,
}

/// Judges where clusters stand towards the targets of their placement.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    governor: &'a Governor<'a>,
    targets: Targets<Arc<TargetRevision>>,
    /// Why the desired revision may not reach gated clusters yet.
    gate: Option<Wait>,
    strategy: &'a InstallRule,
    now: Timestamp,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        observed: &'a Observed,
        governor: &'a Governor<'a>,
        targets: &Targets,
        gate: Option<Wait>,
        now: Timestamp,
    ) -> Self {
        let of = |revision: &Option<Revision>| {
            revision.as_ref().map(|revision| Arc::new(TargetRevision::new(observed, revision)))
        };
        let target = of(&targets.target);
        let same_or = |other: &Option<Revision>| {
            if *other == targets.target { target.clone() } else { of(other) }
        };
        let (canary, fresh) = (same_or(&targets.canary), same_or(&targets.fresh));
        let strategy = &observed.addon.strategy;
        Self { governor, targets: Targets { target, canary, fresh }, gate, strategy, now }
    }

    /// What a cluster should get.
    pub(crate) fn target_of(&self, facts: &ClusterFacts<'_>) -> Option<&Arc<TargetRevision>> {
        if facts.in_canary() { self.targets.canary.as_ref() } else { self.targets.target.as_ref() }
    }

    /// The revision for first installs.
    pub(super) fn fresh(&self) -> Option<&Arc<TargetRevision>> {
        self.targets.fresh.as_ref()
    }

    /// The clock of a revision on this cluster, where the strategy has any use for one.
    fn clock<'f>(
        &self,
        instance: &'f InstanceFacts<'_>,
        of: Option<&Arc<TargetRevision>>,
    ) -> Option<&'f RevisionClock> {
        let Rollout { min_success_time, progress_deadline, .. } = &self.governor.spec.rollout;
        if min_success_time.is_zero() && progress_deadline.is_none() {
            return None;
        }
        instance.clock_of(&of?.id)
    }

    pub(super) fn judge(&self, facts: &ClusterFacts<'_>) -> CohortStanding {
        let standing = self.judge_written(facts);
        match &facts.refusal {
            Some(refusal) => standing.refused(refusal, facts.is_reachable()),
            None => standing,
        }
    }

    /// Where it stands if the hub takes what is written for it.
    fn judge_written(&self, facts: &ClusterFacts<'_>) -> CohortStanding {
        let Some(instance) = &facts.instance else { return CohortStanding::Absent };
        if let Some(aside) = aside(instance) {
            return aside;
        }
        if is_kept(self.strategy, instance) {
            return CohortStanding::LeftOut(Wait::Kept);
        }
        let evidence = &instance.evidence;
        if self.governor.later_uncertain && evidence.told && !self.ever_wanted(instance) {
            return CohortStanding::Aside(Wait::PlacementUncertain);
        }
        let target = self.target_of(facts);
        let on_target = is_told(instance, target);
        let reachable = facts.is_reachable();
        if !evidence.delivered {
            return self.fresh_standing(facts, instance, on_target);
        }
        if !on_target {
            if let Some(wait) = self.joined_behind(facts, instance) {
                return CohortStanding::LeftOut(wait);
            }
            // Applied and never healthy: it is broken on its current revision, not in flight.
            // Healthy works of another revision mean that it is in flight from that revision.
            let moving = !instance.arrived_once() && (evidence.installed || evidence.healthy);
            let broken = !moving && !evidence.healthy;
            let share = instance.share_elsewhere();
            return CohortStanding::Elsewhere { moving, broken, reachable, share };
        }
        let clock = self.clock(instance, target);
        let share = instance.share_on_target(target.map(|target| &*target.id));
        let had_arrived = instance.had_arrived();
        if instance.is_well() {
            return match self.soaks_until(facts, instance, clock) {
                Some(_) if let Some(offline) = facts.offline => CohortStanding::OnTarget {
                    flight: Flight::Offline { since: offline.since },
                    reachable,
                    deadline: None,
                    share,
                    had_arrived,
                },
                Some(until) => CohortStanding::OnTarget {
                    flight: Flight::Soaking { until },
                    reachable,
                    deadline: None,
                    share,
                    had_arrived,
                },
                None => CohortStanding::Settled,
            };
        }
        let underway = if evidence.installed { Flight::Updating } else { Flight::Installing };
        let (flight, deadline) = self.flight(facts, instance, clock, underway);
        CohortStanding::OnTarget { flight, reachable, deadline, share, had_arrived }
    }

    /// Nothing was ever applied on it.
    fn fresh_standing(
        &self,
        facts: &ClusterFacts<'_>,
        instance: &InstanceFacts<'_>,
        on_target: bool,
    ) -> CohortStanding {
        let (target, fresh) = (self.target_of(facts), self.fresh());
        let told = is_told(instance, fresh);
        let reachable = facts.is_reachable();
        let clock = self.clock(instance, if on_target { target } else { fresh });
        let (flight, deadline) = self.flight(facts, instance, clock, Flight::Installing);
        let share = instance.share_of_fresh(on_target || told);
        if told && !on_target && target.is_some() && flight.is_failure() {
            // What is known good does not install here; perhaps what comes next does.
            return CohortStanding::Elsewhere { moving: false, broken: true, reachable, share };
        }
        let aims_at_target = fresh.map(|fresh| &fresh.id) == target.map(|target| &target.id);
        CohortStanding::Fresh { told, on_target, aims_at_target, flight, reachable, deadline, share }
    }

    /// Why a cluster that came from elsewhere with its instance stays on what it has: the gate is
    /// closed, and what this placement has behind it is not what the cluster came with (rule 5.8).
    /// While the placement rolls to its known good revision, only a cluster that another listed
    /// placement moved is known to have joined. The others cannot be distinguished from those that
    /// were governed from the start, perhaps under another name, so all of them go there.
    fn joined_behind(&self, facts: &ClusterFacts<'_>, instance: &InstanceFacts<'_>) -> Option<Wait> {
        let gate = self.gate.as_ref().filter(|_| !facts.in_canary())?;
        let rolling = self.governor.is_rolling_to_known_good();
        let placement = instance.clock.as_ref().and_then(|clock| clock.placement.as_ref());
        let joined = match placement {
            Some(placement) if *placement == self.governor.spec.name => false,
            Some(placement) => !rolling || self.is_listed(placement),
            None => !rolling && !self.ever_rolled_out(instance),
        };
        joined.then(|| gate.clone())
    }

    fn is_listed(&self, placement: &PlacementName) -> bool {
        self.strategy.placements().iter().any(|spec| spec.name == *placement)
    }

    /// Whether its assigned revision is one that this placement has rolled out.
    fn ever_rolled_out(&self, instance: &InstanceFacts<'_>) -> bool {
        let recorded = self.governor.recorded.into_iter();
        let recorded = recorded.flat_map(|recorded| [&recorded.known_good, &recorded.applied]).flatten();
        let history = self.governor.completed.iter().chain(self.governor.withdrawn);
        recorded.chain(history).any(|revision| instance.is_told(revision))
    }

    /// Whether its assigned revision is or was desired by this placement. If not, another placement
    /// assigned it.
    fn ever_wanted(&self, instance: &InstanceFacts<'_>) -> bool {
        let Targets { target, canary, fresh } = &self.targets;
        let recorded = self.governor.recorded.and_then(|recorded| recorded.desired.as_ref());
        [target, canary, fresh].into_iter().any(|one| is_told(instance, one.as_ref()))
            || recorded.is_some_and(|desired| instance.is_told(desired))
            || self.ever_rolled_out(instance)
    }

    /// Whether the cluster has arrived at `revision` and has been healthy there for as long as
    /// asked.
    pub(super) fn settled_on(&self, facts: &ClusterFacts<'_>, revision: &Revision) -> bool {
        facts.instance.as_ref().is_some_and(|instance| {
            aside(instance).is_none()
                && instance.is_told(revision)
                && instance.evidence.delivered
                && instance.is_well()
                && !self.soaks_on(facts, instance, revision)
        })
    }

    fn soaks_on(&self, facts: &ClusterFacts<'_>, instance: &InstanceFacts<'_>, revision: &Revision) -> bool {
        let soaks = !self.governor.spec.rollout.min_success_time.is_zero();
        soaks && self.soaks_until(facts, instance, instance.clock_of(&revision.id())).is_some()
    }

    fn soaks_until(
        &self,
        facts: &ClusterFacts<'_>,
        instance: &InstanceFacts<'_>,
        clock: Option<&RevisionClock>,
    ) -> Option<Timestamp> {
        let soak = self.governor.spec.rollout.min_success_time;
        if soak.is_zero() {
            return None;
        }
        // A crash within the soak is reported later than it happens.
        let soak = if instance.is_probed() { soak.saturating_add(REPORTING_LAG) } else { soak };
        // Healthy for the first time in this snapshot: the soak begins now. It also begins now if
        // the recorded start is in the future.
        let recorded = clock.filter(|clock| clock.healthy).map(|clock| clock.since);
        let since = recorded.or_else(|| instance.taken_over_since());
        let since = since.map_or(self.now, |since| since.min(self.now));
        let until = later(since, soak);
        // Its workloads were down between two reports: the soak begins again, also if that is
        // reported only after its end.
        let was_down = clock.is_some_and(|clock| clock.healthy && clock.available_since.is_some())
            && instance.available_since.is_some_and(|back| self.now < until || back < until);
        // The hub had no contact with it within the soak, and no manager ran to see that.
        let was_silent = clock.is_some_and(|clock| clock.healthy)
            && instance.returned.is_some_and(|back| back <= self.now && back < until);
        if was_down || was_silent {
            return Some(later(self.now, soak));
        }
        // While nobody hears from the cluster its soak does not end.
        let is_silent = facts.offline.is_some_and(|offline| offline.since.is_none_or(|gone| gone < until));
        (self.now < until || is_silent).then_some(until)
    }

    /// Why it has not settled, and when its deadline passes.
    fn flight(
        &self,
        facts: &ClusterFacts<'_>,
        instance: &InstanceFacts<'_>,
        clock: Option<&RevisionClock>,
        underway: Flight,
    ) -> (Flight, Option<Timestamp>) {
        let evidence = &instance.evidence;
        if let Some(why) = &evidence.failure {
            return (Flight::Failed { why: why.clone() }, None);
        }
        let unhealthy = evidence.health.why().filter(|_| evidence.holds_placed && evidence.answered);
        let grace = instance.health_grace(self.now).filter(|_| unhealthy.is_some());
        if let (Health::Failed { why, .. }, Some(_), None) = (&evidence.health, unhealthy, grace) {
            return (Flight::Failed { why: why.clone() }, None);
        }
        let limit = self.governor.spec.rollout.progress_deadline;
        // While it is recorded as healthy, it has lost its health only now.
        let since = clock.filter(|clock| !clock.healthy).map(|clock| clock.unsettled_since().min(self.now));
        let since = since.unwrap_or(self.now);
        let deadline = limit.map(|limit| later(since, limit));
        if let (Some(limit), Some(deadline)) = (limit, deadline)
            && self.now >= deadline
        {
            return (Flight::TimedOut { after: limit, why: unhealthy.cloned() }, None);
        }
        let recheck = deadline.into_iter().chain(grace).min();
        if let Some(offline) = facts.offline {
            return (Flight::Offline { since: offline.since }, recheck);
        }
        let flight = match &evidence.unavailable {
            Some(why) if evidence.holds_placed => Flight::Unavailable { why: why.clone() },
            _ if let Some(why) = &evidence.unproven => Flight::Unproven { why: why.clone() },
            _ if let Some(why) = unhealthy => match &evidence.health {
                _ if instance.arrived_once() => Flight::Unavailable { why: why.clone() },
                Health::Unknown { .. } | Health::Kept { .. } => Flight::HealthUnknown { why: why.clone() },
                _ => Flight::Progressing { why: why.clone() },
            },
            _ if instance.arrived_once() => {
                Flight::Unavailable { why: "the agent has not reported on it yet".into() }
            }
            _ => underway,
        };
        (flight, recheck)
    }
}

/// Whatever its placement wants, it cannot be moved.
fn aside(instance: &InstanceFacts<'_>) -> Option<CohortStanding> {
    if instance.terminating {
        return Some(CohortStanding::Aside(Wait::Terminating));
    }
    if instance.other_owner {
        return Some(CohortStanding::Aside(Wait::OtherOwner));
    }
    let unresolved = || instance.overrides.as_ref()?.unresolved.clone();
    let problem = instance.hosting_problem().or_else(unresolved)?;
    Some(CohortStanding::LeftOut(Wait::Problem(Arc::new(problem))))
}

fn is_told(instance: &InstanceFacts<'_>, target: Option<&Arc<TargetRevision>>) -> bool {
    target.is_some_and(|target| instance.is_told(&target.revision))
}

/// Adds without overflowing; an unrepresentable time is treated as "never".
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}
