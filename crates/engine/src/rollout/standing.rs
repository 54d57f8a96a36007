//! Where one cluster stands towards the revision it should get. Order of the checks is the policy.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::gate::Aim;
use crate::configs::{Pin, Revision};
use crate::evidence::{Clock, told_same};
use crate::explain::{Flight, Wait};
use crate::fleet::{Flag, Fleet, Governor, Member};
use crate::name::Text;
use crate::observed::{Lookup, Observed, Rollout, StatusFields};
use crate::versions;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Selected, and without an instance yet.
    Absent,
    /// Cannot be moved now, and holds no slot.
    Aside(Wait),
    /// Nothing was ever applied. Not throttled and not gated.
    Fresh {
        /// It was told what fresh instances get.
        told: bool,
        /// What it was told is the target.
        on_target: bool,
        /// What fresh instances get is the target: it is part of the rollout, or about to be.
        aims_at_target: bool,
        flight: Flight,
        reachable: bool,
        deadline: Option<Timestamp>,
    },
    /// Told the target and not settled on it.
    OnTarget { flight: Flight, reachable: bool, deadline: Option<Timestamp> },
    /// Told something else.
    Elsewhere {
        /// It has not arrived there: it is in flight already.
        moving: bool,
        /// It had arrived there and is not healthy any more.
        broken: bool,
        reachable: bool,
    },
    /// Applied at the target, available, and for long enough.
    Settled,
}

impl Standing {
    /// The failure that keeps it from settling.
    pub fn failed(&self) -> bool {
        match self {
            Self::OnTarget { flight, .. } => flight.is_failure(),
            Self::Fresh { flight, on_target, .. } => *on_target && flight.is_failure(),
            _ => false,
        }
    }

    /// When time alone changes where it stands.
    pub fn recheck_at(&self) -> Option<Timestamp> {
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

impl Standings {
    fn add(&mut self, kind: usize) {
        self.of.push(u32::try_from(kind).unwrap_or(u32::MAX));
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.count += 1;
        }
    }

    /// How many clusters there are of the kinds that are so.
    pub fn count(&self, are_so: impl Fn(&Kind) -> bool) -> usize {
        self.kinds.iter().filter(|kind| are_so(kind)).map(|kind| kind.count).sum()
    }
}

/// A revision with what is worked out from it once and not per cluster.
#[derive(Clone, Debug)]
pub struct Identified {
    pub revision: Revision,
    pub id: Text,
    /// The version that it stands for, where it can be told.
    pub version: Option<Text>,
    /// For each of its pins the generation of the live object, while that still has the pinned content.
    pub generations: Vec<Option<i64>>,
}

impl Identified {
    pub fn new(observed: &Observed, revision: &Revision) -> Self {
        let generations = revision.pins().iter().map(|pin| live_generation(observed, pin)).collect();
        let version = versions::of_revision(observed, revision);
        Self { revision: revision.clone(), id: revision.id(), version, generations }
    }
}

/// The generation of a config that still has the pinned content.
pub fn live_generation(observed: &Observed, pin: &Pin) -> Option<i64> {
    match observed.configs.get(&pin.config)? {
        Lookup::Found(live) if live.hash == pin.hash => Some(live.generation),
        _ => None,
    }
}

/// What a cluster's standing follows from. Clusters that are alike in all of it are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Alike {
    known: usize,
    stage: usize,
    in_canary: bool,
    terminating: bool,
    other_owner: bool,
}

/// Clusters that stand alike: they are judged, counted and, but for the budget, decided as one.
#[derive(Clone, Debug)]
pub struct Kind {
    pub standing: Standing,
    pub in_canary: bool,
    pub stage: usize,
    /// The position of the first of them, which speaks for all.
    pub first: usize,
    pub count: usize,
}

/// Where the clusters of a placement stand.
#[derive(Clone, Debug, Default)]
pub struct Standings {
    /// In the order in which they first appear.
    pub kinds: Vec<Kind>,
    /// For each cluster that the placement governs, in order, its place in `kinds`.
    pub of: Vec<u32>,
}

/// Judges the clusters of one placement against one aim.
#[derive(Debug)]
pub struct Judge<'a> {
    governor: &'a Governor<'a>,
    target: Option<Arc<Identified>>,
    canary_target: Option<Arc<Identified>>,
    fresh: Option<Arc<Identified>>,
    now: Timestamp,
}

impl<'a> Judge<'a> {
    pub fn new(fleet: &Fleet<'_>, governor: &'a Governor<'a>, aim: &Aim, now: Timestamp) -> Self {
        let identify = |revision: &Option<Revision>| {
            revision.as_ref().map(|revision| Arc::new(Identified::new(fleet.observed, revision)))
        };
        let target = identify(&aim.target);
        let canary_target =
            if aim.canary_target == aim.target { target.clone() } else { identify(&aim.canary_target) };
        let fresh = if aim.fresh == aim.target { target.clone() } else { identify(&aim.fresh) };
        Self { governor, target, canary_target, fresh, now }
    }

    /// Where every governed cluster stands. Those that are alike are judged once.
    pub fn judge_all(&self, fleet: &Fleet<'_>) -> Standings {
        let mut standings = Standings::default();
        standings.of.reserve_exact(self.governor.members.len());
        let mut kinds: HashMap<Alike, usize> = HashMap::new();
        // By what is known: neighbours mostly are alike.
        let mut last: Vec<Option<(Alike, usize)>> = vec![None; fleet.known.len()];
        for &position in &self.governor.members {
            let Some(line) = fleet.lines.get(position) else { continue };
            let alike = Alike {
                known: line.known_at(),
                stage: line.stage(),
                in_canary: self.governor.in_canary(position),
                terminating: line.is(Flag::Terminating),
                other_owner: line.is(Flag::OtherOwner),
            };
            // Since when a cluster is offline, and what its user chose, are its own.
            let like_others = line.is(Flag::Reachable) && !line.is(Flag::HasOverrides);
            let kind = match last.get(alike.known) {
                _ if !like_others => self.new_kind(fleet, position, alike, &mut standings),
                Some(Some((before, kind))) if *before == alike => *kind,
                _ => {
                    let kind = *kinds
                        .entry(alike)
                        .or_insert_with(|| self.new_kind(fleet, position, alike, &mut standings));
                    if let Some(last) = last.get_mut(alike.known) {
                        *last = Some((alike, kind));
                    }
                    kind
                }
            };
            standings.add(kind);
        }
        standings
    }

    fn new_kind(&self, fleet: &Fleet<'_>, first: usize, alike: Alike, standings: &mut Standings) -> usize {
        let Alike { in_canary, stage, .. } = alike;
        let member = fleet.member(first);
        let standing = member.map_or(Standing::Absent, |member| self.judge(in_canary, &member));
        standings.kinds.push(Kind { standing, in_canary, stage, first, count: 0 });
        standings.kinds.len() - 1
    }

    /// What a cluster should get.
    pub fn target_of(&self, in_canary: bool) -> Option<&Arc<Identified>> {
        if in_canary { self.canary_target.as_ref() } else { self.target.as_ref() }
    }

    /// What instances get on which nothing was ever applied.
    pub fn fresh(&self) -> Option<&Arc<Identified>> {
        self.fresh.as_ref()
    }

    /// The clock of a revision on this cluster, where the strategy has any use for one.
    fn clock(&self, status: &StatusFields, of: Option<&Arc<Identified>>) -> Option<Clock> {
        let Rollout { min_success_time, progress_deadline, .. } = &self.governor.spec.rollout;
        if min_success_time.is_zero() && progress_deadline.is_none() {
            return None;
        }
        Clock::of(status, &of?.id)
    }

    pub fn judge(&self, in_canary: bool, member: &Member<'_>) -> Standing {
        let Some(status) = member.status() else { return Standing::Absent };
        if let Some(wait) = aside(member) {
            return Standing::Aside(wait);
        }
        if self.governor.later_uncertain && member.evidence().told && !self.ever_wanted(member, status) {
            return Standing::Aside(Wait::PlacementUncertain);
        }
        let target = self.target_of(in_canary);
        let told =
            |one: Option<&Arc<Identified>>| one.is_some_and(|one| is_told(member, status, &one.revision));
        let on_target = told(target);
        let reachable = member.is(Flag::Reachable);
        let evidence = member.evidence();
        if !evidence.installed && !evidence.arrived() {
            let told_fresh = told(self.fresh());
            let clock = self.clock(status, if on_target { target } else { self.fresh() });
            let (flight, deadline) = self.flight(member, clock.as_ref(), Flight::Installing);
            if told_fresh && !on_target && target.is_some() && flight.is_failure() {
                // What is known good does not install here; perhaps what comes next does.
                return Standing::Elsewhere { moving: false, broken: true, reachable };
            }
            let aims_at_target = self.fresh().map(|fresh| &fresh.id) == target.map(|target| &target.id);
            return Standing::Fresh {
                told: told_fresh,
                on_target,
                aims_at_target,
                flight,
                reachable,
                deadline,
            };
        }
        if !on_target {
            let moving = !arrived_once(member, status);
            let broken = !moving && !evidence.healthy;
            return Standing::Elsewhere { moving, broken, reachable };
        }
        let clock = self.clock(status, target);
        if evidence.holds_placed && evidence.healthy {
            return match self.soaks_until(clock.as_ref()) {
                Some(until) => {
                    Standing::OnTarget { flight: Flight::Soaking { until }, reachable, deadline: None }
                }
                None => Standing::Settled,
            };
        }
        let (flight, deadline) = self.flight(member, clock.as_ref(), Flight::Updating);
        Standing::OnTarget { flight, reachable, deadline }
    }

    /// Whether what it was told is something that this placement wants or wanted: if not, another placement told it.
    fn ever_wanted(&self, member: &Member<'_>, status: &StatusFields) -> bool {
        let now =
            [&self.target, &self.canary_target, &self.fresh].into_iter().flatten().map(|one| &one.revision);
        let recorded = self.governor.recorded.into_iter();
        let before = recorded
            .flat_map(|recorded| [&recorded.desired, &recorded.known_good, &recorded.applied])
            .flatten();
        now.chain(before).chain(self.governor.completed).any(|revision| is_told(member, status, revision))
    }

    /// Whether the cluster has arrived at `revision` and has been healthy there for as long as asked.
    pub fn settled_on(&self, member: &Member<'_>, revision: &Revision) -> bool {
        let evidence = member.evidence();
        member.status().is_some_and(|status| {
            aside(member).is_none()
                && is_told(member, status, revision)
                && (evidence.installed || evidence.arrived())
                && evidence.holds_placed
                && evidence.healthy
                && !self.soaks_on(status, revision)
        })
    }

    fn soaks_on(&self, status: &StatusFields, revision: &Revision) -> bool {
        let soaks = !self.governor.spec.rollout.min_success_time.is_zero();
        soaks && self.soaks_until(Clock::of(status, &revision.id()).as_ref()).is_some()
    }

    fn soaks_until(&self, clock: Option<&Clock>) -> Option<Timestamp> {
        let soak = self.governor.spec.rollout.min_success_time;
        if soak.is_zero() {
            return None;
        }
        // Healthy in this snapshot for the first time: the soak begins now, when that is written down.
        // One that was written by a clock ahead of this one begins now, too.
        let since = clock.filter(|clock| clock.healthy).map_or(self.now, |clock| clock.since.min(self.now));
        let until = later(since, soak);
        (self.now < until).then_some(until)
    }

    /// Why it has not settled, and when its deadline passes.
    fn flight(
        &self,
        member: &Member<'_>,
        clock: Option<&Clock>,
        underway: Flight,
    ) -> (Flight, Option<Timestamp>) {
        let evidence = member.evidence();
        if let Some(why) = &evidence.failure {
            return (Flight::Failed { why: why.clone() }, None);
        }
        let limit = self.governor.spec.rollout.progress_deadline;
        let since = clock.map_or(self.now, |clock| clock.unsettled_since().min(self.now));
        let deadline = limit.map(|limit| later(since, limit));
        if let (Some(limit), Some(deadline)) = (limit, deadline)
            && self.now >= deadline
        {
            return (Flight::TimedOut { after: limit }, None);
        }
        if let Some(offline) = member.offline() {
            return (Flight::Offline { since: offline.since }, deadline);
        }
        let had_arrived = member.status().is_some_and(|status| arrived_once(member, status));
        let flight = match &evidence.unavailable {
            Some(why) if evidence.holds_placed => Flight::Unavailable { why: why.clone() },
            _ if had_arrived => Flight::Unavailable { why: "the agent has not reported on it yet".into() },
            _ => underway,
        };
        (flight, deadline)
    }
}

fn aside(member: &Member<'_>) -> Option<Wait> {
    if member.is(Flag::Terminating) {
        return Some(Wait::Terminating);
    }
    if member.is(Flag::OtherOwner) {
        return Some(Wait::OtherOwner);
    }
    let problem = member.overrides.filter(|_| !member.evidence().told)?.keeps_from_starting()?;
    Some(Wait::Problem(Arc::new(problem.clone())))
}

fn is_told(member: &Member<'_>, status: &StatusFields, revision: &Revision) -> bool {
    member.evidence().told && told_same(status, revision.pins(), member.overrides)
}

/// Its works hold what it was told, and it is, or has been since it was told, healthy there. That it once had the same before it went
/// away and came back does not count: it is on its way.
fn arrived_once(member: &Member<'_>, status: &StatusFields) -> bool {
    member.evidence().holds_placed
        && (member.evidence().healthy
            || (recorded_as_applied(member, status)
                && Clock::carried_by(status).is_none_or(|clock| clock.has_arrived)))
}

/// What it was told of the kinds that are not overridden is recorded as applied.
fn recorded_as_applied(member: &Member<'_>, status: &StatusFields) -> bool {
    status.references.iter().all(|reference| {
        let overridden = member.overrides.is_some_and(|overrides| overrides.covers(&reference.kind));
        let hash = |pin: &Option<Pin>| pin.as_ref().map(|pin| pin.hash.clone());
        overridden || hash(&reference.desired) == hash(&reference.applied)
    })
}

/// Saturating: a time that cannot be told is never reached.
fn later(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}
