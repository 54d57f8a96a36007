//! The target revision of a placement: the desired one or, with a canary, the last known good one
//! (rules 5.4 to 5.6).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::standing::{CohortStanding, Judge, Targets};
use crate::configs::{GroupResource, Pin, Revision, Wanted};
use crate::explain::{CanaryWait, Wait};
use crate::fleet::{Canary, ClusterFacts, Fleet, Governor};
use crate::hash::Hash;
use crate::name::ClusterName;
use crate::observed::Pace;
use crate::plan::label;
use crate::problem::Problem;

/// The target of a placement.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub desired: Wanted,
    pub targets: Targets,
    /// Before this pass's clusters are judged.
    pub known_good: Option<Revision>,
    /// Why the desired revision may not reach gated clusters yet.
    pub gate: Option<Wait>,
    /// What made the known good revision change in this pass.
    pub promotion: Option<Promotion>,
    /// What is wrong with what the canary compares.
    pub gate_problem: Option<Problem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promotion {
    CanaryPassed,
    RolledBack,
    /// The canary compares nothing of what changed.
    NotCovered,
}

impl Aim {
    pub(crate) fn problem(&self) -> Option<&Problem> {
        self.desired.as_ref().err()
    }

    /// Whether clusters that have settled on the target are where the placement wants them in the
    /// end.
    pub(crate) fn target_is_desired(&self) -> bool {
        self.desired.as_ref().ok() == self.targets.target.as_ref()
    }
}

pub(super) fn aim(fleet: &Fleet<'_>, governor: &Governor<'_>, now: Timestamp) -> Aim {
    let recorded = governor.recorded;
    let before = known_good_before(governor);
    let desired = match &governor.desired {
        Ok(desired) => desired,
        Err(problem) => {
            // Clusters keep their revision; those in flight finish.
            let target = match governor.canaries.is_empty() {
                false => before.clone(),
                true => recorded.and_then(|recorded| recorded.desired.clone()),
            };
            let targets = Targets { target: target.clone(), canary: target, fresh: before.clone() };
            let desired = Err(problem.clone());
            return Aim {
                desired,
                targets,
                known_good: before,
                gate: None,
                promotion: None,
                gate_problem: None,
            };
        }
    };
    let passages = governor
        .canaries
        .iter()
        .map(|canary| Passage::of(fleet, governor, canary, desired, before.as_ref(), now));
    let Passage { gate, promotion, problem: gate_problem } =
        passages.reduce(Passage::and).unwrap_or(Passage::OPEN);
    let known_good = if promotion.is_some() { Some(desired.clone()) } else { before.clone() };
    // Without a known good revision, first installs proceed, and are judged against their assigned
    // revision.
    let target = match &known_good {
        Some(known_good) if !governor.canaries.is_empty() && known_good != desired => known_good,
        _ => desired,
    };
    let at_once = governor.spec.rollout.pace == Pace::AllAtOnce && governor.canaries.is_empty();
    let fresh = match &known_good {
        _ if governor.spec.rollout.paused || governor.fault.is_some() => before,
        Some(known_good) if !at_once => Some(known_good.clone()),
        _ => Some(desired.clone()),
    };
    let targets = Targets { target: Some(target.clone()), canary: Some(desired.clone()), fresh };
    Aim { desired: Ok(desired.clone()), targets, known_good, gate, promotion, gate_problem }
}

/// The known good revision as this pass finds it. Without a canary a rollback withdraws it before
/// all clusters have left it; with one it may have been withdrawn and have passed again since. If
/// the status has lost it, for example while there were no placements, it is read from the history.
fn known_good_before(governor: &Governor<'_>) -> Option<Revision> {
    let recorded = governor.recorded.and_then(|recorded| recorded.known_good.as_ref());
    match recorded {
        None => governor.standing_history().last().cloned(),
        Some(_) if governor.canaries.is_empty() => governor.standing(recorded),
        Some(known_good) => Some(known_good.clone()),
    }
}

/// What the canary makes of the desired revision.
struct Passage {
    gate: Option<Wait>,
    promotion: Option<Promotion>,
    problem: Option<Problem>,
}

impl Passage {
    const OPEN: Self = Self { gate: None, promotion: None, problem: None };

    fn promoted(promotion: Promotion) -> Self {
        Self { promotion: Some(promotion), ..Self::OPEN }
    }

    fn closed(wait: Wait) -> Self {
        Self { gate: Some(wait), ..Self::OPEN }
    }

    fn waits(governor: &Governor<'_>, canary: &Canary<'_>, wait: CanaryWait) -> Self {
        let wait = match governor.spec.rollout.by.of_canary(canary.name) {
            Some(policy) => CanaryWait::Required { policy: policy.clone(), wait: Box::new(wait) },
            None => wait,
        };
        Self::closed(Wait::Canary(Arc::new(wait)))
    }

    /// What two canaries make of it: both must pass.
    fn and(self, other: Self) -> Self {
        let (first, second) = if self.gate.is_some() { (self, other) } else { (other, self) };
        let promotion = match (first.promotion, second.promotion) {
            _ if first.gate.is_some() => None,
            // Whether it is a rollback does not depend on the canary.
            (Some(Promotion::NotCovered), Some(other)) => Some(other),
            (promotion, Some(_)) => promotion,
            (_, None) => None,
        };
        Self { gate: first.gate, promotion, problem: first.problem.or(second.problem) }
    }

    fn of(
        fleet: &Fleet<'_>,
        governor: &Governor<'_>,
        canary: &Canary<'_>,
        desired: &Revision,
        known_good: Option<&Revision>,
        now: Timestamp,
    ) -> Self {
        // A strategy that cannot be used promotes nothing; where clusters stand is judged all the
        // same.
        if known_good == Some(desired) || governor.fault.is_some() {
            return Self::OPEN;
        }
        if governor.completed.contains(desired) {
            return Self::promoted(Promotion::RolledBack);
        }
        if let Some(left) = left_on_known_good(fleet, governor, desired, known_good, now) {
            return Self::closed(Wait::KnownGoodFirst { left });
        }
        if let Some(wait) = can_pass(canary) {
            return Self::waits(governor, canary, wait);
        }
        let comparison = CanaryComparison::of(fleet, canary, desired, known_good);
        let (placement, name) = (governor.spec.name.clone(), canary.name.clone());
        if let Some(cluster) = comparison.compares_nothing(fleet).cloned() {
            let wait = CanaryWait::ComparesNothing { placement: name.clone(), cluster: cluster.clone() };
            let problem = Problem::CanaryComparesNothing { placement, canary: name, cluster };
            return Self { problem: Some(problem), ..Self::waits(governor, canary, wait) };
        }
        if let Some(kinds) = comparison.uncovered_change() {
            let problem = Problem::NotCoveredByCanary { placement, canary: name, kinds };
            return Self { problem: Some(problem), ..Self::promoted(Promotion::NotCovered) };
        }
        match comparison.not_passed(fleet, canary, now) {
            None => Self::promoted(Promotion::CanaryPassed),
            Some(wait) => Self::waits(governor, canary, wait),
        }
    }
}

/// How many gated clusters are still on their way to the known good revision. Failed ones are at
/// their end. First installs, and what was never healthy since, are not part of a rollout: clusters
/// that join must not be able to keep the next revision away forever.
fn left_on_known_good(
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    desired: &Revision,
    known_good: Option<&Revision>,
    now: Timestamp,
) -> Option<usize> {
    let known_good = known_good?.clone();
    // After all clusters have settled on it, a cluster that becomes unhealthy does not count as in
    // flight again.
    let was_completed =
        governor.recorded.is_some_and(|recorded| recorded.applied.as_ref() == Some(&known_good));
    let targets =
        Targets { target: Some(known_good.clone()), canary: Some(desired.clone()), fresh: Some(known_good) };
    let closed = Some(Wait::KnownGoodFirst { left: 0 });
    let judge = Judge::new(fleet.observed, governor, &targets, closed, now);
    let is_left = |facts: &ClusterFacts<'_>| {
        let standing = judge.judge(facts);
        let under_way = match standing {
            CohortStanding::OnTarget { .. } => !(was_completed && standing.is_assigned()),
            CohortStanding::Elsewhere { .. } => true,
            _ => false,
        };
        let was_well = facts.instance.as_ref().is_some_and(|instance| instance.evidence.installed);
        under_way && was_well && !standing.has_failed() && !standing.is_doubted()
    };
    let gated = fleet.cohorts_of(governor).filter(|cohort| !cohort.facts.in_canary());
    let left = gated.filter(|cohort| is_left(&cohort.facts)).map(|cohort| cohort.members.len()).sum();
    (left > 0).then_some(left)
}

/// Why a canary cannot pass anything, whatever its clusters have. An empty canary never passes.
fn can_pass(canary: &Canary<'_>) -> Option<CanaryWait> {
    let placement = canary.name.clone();
    let Some(clusters) = &canary.clusters else { return Some(CanaryWait::NotFound { placement }) };
    if let Some((published, decided)) = canary.in_motion {
        return Some(CanaryWait::InMotion { placement, published, decided });
    }
    clusters.is_empty().then_some(CanaryWait::Empty { placement })
}

/// The kinds of config in which two revisions differ. A config that is only in one of them is a
/// change, too.
fn changed_kinds<'r>(from: &'r Revision, to: &'r Revision) -> impl Iterator<Item = &'r GroupResource> {
    let kinds: BTreeSet<&GroupResource> =
        from.pins().iter().chain(to.pins()).map(|pin| &pin.config.kind).collect();
    kinds.into_iter().filter(move |kind| !from.same_of(to, kind))
}

/// What of a revision each canary cluster can prove (rule 5.4, "What is compared").
struct CanaryComparison<'f> {
    desired: &'f Revision,
    /// The kinds in which it differs from the known good revision; none where there is no such
    /// revision.
    changed: Vec<&'f GroupResource>,
    cohorts: Vec<(&'f ClusterFacts<'f>, Compared<'f>)>,
    /// For each canary cluster that is there, its position and its place in `cohorts`.
    clusters: Vec<(usize, usize)>,
    /// The desired configs of some canary cluster are unknown, so nothing may be ignored for it.
    incomplete: bool,
}

/// What one canary cluster must have: the hashes of each kind in order, or none of that kind.
#[derive(Default)]
struct Compared<'f> {
    kinds: Vec<(&'f GroupResource, Vec<&'f Hash>)>,
    left_out: Vec<&'f GroupResource>,
}

impl<'f> CanaryComparison<'f> {
    fn of(
        fleet: &'f Fleet<'f>,
        canary: &Canary<'_>,
        desired: &'f Revision,
        known_good: Option<&'f Revision>,
    ) -> Self {
        let changed: Vec<&GroupResource> =
            known_good.into_iter().flat_map(|known_good| changed_kinds(known_good, desired)).collect();
        let mut cohorts = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut clusters = Vec::with_capacity(canary.members.len());
        for position in canary.members.iter().map(|&position| position as usize) {
            let Some(line) = fleet.lines.get(position) else { continue };
            let Some(facts) = fleet.facts(position) else { continue };
            let place = *places.entry(line.cohort()).or_insert_with(|| {
                let compared = compare(desired, &changed, |kind| wanted(fleet, facts, kind));
                cohorts.push((facts, compared));
                cohorts.len() - 1
            });
            clusters.push((position, place));
        }
        let is_unknown = |(facts, _): &(&ClusterFacts<'_>, _)| {
            let told = facts.instance.as_ref().is_some_and(|instance| instance.evidence.told);
            fleet.governor_of(facts).desired.is_err() && !told
        };
        let incomplete = cohorts.iter().any(is_unknown)
            || canary.clusters.as_ref().is_none_or(|all| all.len() > clusters.len());
        Self { desired, changed, cohorts, clusters, incomplete }
    }

    /// The first canary cluster of a cohort.
    fn first(&self, is_so: impl Fn(usize) -> bool) -> Option<usize> {
        self.clusters.iter().find(|(_, cohort)| is_so(*cohort)).map(|(position, _)| *position)
    }

    /// Kinds that some canary cluster does not prove. Which version is chosen is proved by its
    /// template.
    fn left_out(&self) -> Vec<GroupResource> {
        let templates = self.desired.pin(GroupResource::templates()).is_some();
        let kinds: BTreeSet<&GroupResource> =
            self.cohorts.iter().flat_map(|(_, compared)| compared.left_out.iter().copied()).collect();
        let kinds = kinds.into_iter().filter(|&kind| !templates || kind != GroupResource::hub_configs());
        kinds.cloned().collect()
    }

    /// The kinds that changed, where no canary cluster proves any of them.
    fn uncovered_change(&self) -> Option<Vec<GroupResource>> {
        let proves = |kind: &&GroupResource| {
            self.cohorts.iter().any(|(_, compared)| !compared.left_out.contains(kind))
        };
        let uncovered = !self.incomplete && !self.changed.is_empty() && !self.changed.iter().any(proves);
        uncovered.then(|| self.changed.iter().map(|&kind| kind.clone()).collect())
    }

    /// The first canary cluster that has nothing in common with the placement: whatever it is like,
    /// it proves nothing.
    fn compares_nothing(&self, fleet: &'f Fleet<'_>) -> Option<&'f ClusterName> {
        if self.desired.is_empty() {
            return None;
        }
        let nothing = |compared: &Compared<'_>| compared.kinds.iter().all(|(_, hashes)| hashes.is_empty());
        let position =
            self.first(|at| self.cohorts.get(at).is_some_and(|(_, compared)| nothing(compared)))?;
        fleet.lines.get(position).map(|line| line.name)
    }

    /// What the canary still lacks, if anything.
    fn not_passed(&self, fleet: &Fleet<'_>, canary: &Canary<'_>, now: Timestamp) -> Option<CanaryWait> {
        let soaks: Vec<Option<Judge<'_>>> = fleet.governors.iter().map(|own| soak(fleet, own, now)).collect();
        let soak_of = |facts: &ClusterFacts<'_>| soaks.get(facts.governor()?)?.as_ref();
        let missing: Vec<bool> = self
            .cohorts
            .iter()
            .map(|(facts, compared)| !has_passed(facts, compared, soak_of(facts)))
            .collect();
        let is_missing = |at: usize| missing.get(at) == Some(&true);
        let clusters = canary.clusters.as_deref().unwrap_or_default();
        let outside = clusters.len() - self.clusters.len();
        let missing = self.clusters.iter().filter(|(_, at)| is_missing(*at)).count() + outside;
        if missing == 0 {
            return None;
        }
        let first = match self.first(is_missing) {
            Some(position) => fleet.lines.get(position).map(|line| line.name),
            // Selected by the canary only, and without an instance.
            None => {
                let lines = self.clusters.iter().filter_map(|(position, _)| fleet.lines.get(*position));
                let there: HashSet<&ClusterName> = lines.map(|line| line.name).collect();
                clusters.iter().copied().filter(|name| !there.contains(name)).min()
            }
        }?;
        if let Some(wait) = self.asked_for_another(fleet, canary, is_missing) {
            return Some(wait);
        }
        Some(CanaryWait::NotPassed {
            placement: canary.name.clone(),
            missing,
            of: clusters.len(),
            first: first.clone(),
            not_compared: self.left_out(),
        })
    }
}

impl CanaryComparison<'_> {
    /// The canary placement asks no cluster that has not passed for the desired revision, so time
    /// changes nothing.
    fn asked_for_another(
        &self,
        fleet: &Fleet<'_>,
        canary: &Canary<'_>,
        is_missing: impl Fn(usize) -> bool,
    ) -> Option<CanaryWait> {
        let missing = self.cohorts.iter().enumerate().filter(|(at, _)| is_missing(*at));
        let mut asked = missing.map(|(_, (facts, compared))| {
            let governor = fleet.governor_of(facts);
            let wanted = governor.desired.as_ref().ok().filter(|_| governor.spec.name == *canary.name)?;
            let is_own = |kind: &GroupResource| {
                facts.overrides().is_some_and(|own| own.pins.iter().any(|pin| pin.config.kind == *kind))
            };
            let differs = |(kind, hashes): &(&GroupResource, Vec<&Hash>)| {
                !is_own(kind) && !wanted.pins_of(kind).map(|pin| &pin.hash).eq(hashes.iter().copied())
            };
            compared.kinds.iter().any(differs).then(|| label(fleet.observed, wanted))
        });
        let wanted = asked.next()??;
        let desired = label(fleet.observed, self.desired);
        let is_other = asked.all(|other| other.is_some()) && wanted != desired;
        is_other.then(|| CanaryWait::AskedForAnother { placement: canary.name.clone(), wanted, desired })
    }
}

/// The configs of a kind that a canary cluster should have. If they cannot be resolved, the
/// assigned ones count.
fn wanted<'f>(fleet: &'f Fleet<'_>, facts: &'f ClusterFacts<'_>, kind: &GroupResource) -> Vec<&'f Pin> {
    let is_of_kind = |pin: &&Pin| pin.config.kind == *kind;
    let Ok(desired) = &fleet.governor_of(facts).desired else {
        let instance = facts.instance.as_ref();
        return instance.into_iter().flat_map(|one| one.status.told().filter(is_of_kind)).collect();
    };
    let own = facts.overrides().into_iter().flat_map(|own| own.pins.iter().filter(is_of_kind));
    let own: Vec<&Pin> = own.collect();
    if own.is_empty() { desired.pins_of(kind).collect() } else { own }
}

/// What a canary cluster with these configs can prove of a revision. The template, or where there
/// is none the version, is always compared. Any other kind is compared only where the cluster
/// references the same object or has the same content.
fn compare<'f>(
    desired: &'f Revision,
    changed: &[&'f GroupResource],
    wanted: impl Fn(&GroupResource) -> Vec<&'f Pin>,
) -> Compared<'f> {
    let template = desired.pin(GroupResource::templates());
    let always = if template.is_some() { GroupResource::templates() } else { GroupResource::hub_configs() };
    let mut compared = Compared::default();
    let kinds: BTreeSet<&GroupResource> = desired.pins().iter().map(|pin| &pin.config.kind).collect();
    for kind in kinds {
        let (own, pins) = (wanted(kind), desired.pins_of(kind));
        let is_same = |(own, pin): (&&Pin, &Pin)| own.config == pin.config || own.hash == pin.hash;
        let hashes: Vec<&Hash> = pins.clone().map(|pin| &pin.hash).collect();
        if (own.len() == hashes.len() && own.iter().zip(pins).all(is_same)) || kind == always {
            compared.kinds.push((kind, hashes));
        } else {
            compared.left_out.push(kind);
        }
    }
    // A config that is taken away is proved by a cluster that has none either.
    for &kind in changed.iter().filter(|kind| desired.pin(kind).is_none()) {
        match wanted(kind).is_empty() {
            true => compared.kinds.push((kind, Vec::new())),
            false => compared.left_out.push(kind),
        }
    }
    compared
}

/// Whether a canary cluster has passed: it is assigned the compared configs, has applied them, and
/// has been healthy for as long as its own placement requires. It does not matter who assigned
/// them.
fn has_passed(facts: &ClusterFacts<'_>, compared: &Compared<'_>, soak: Option<&Judge<'_>>) -> bool {
    facts.instance.as_ref().is_some_and(|instance| {
        let has = |(kind, wanted): &(&GroupResource, Vec<&Hash>)| {
            let told = instance.status.told().filter(|pin| pin.config.kind == **kind);
            told.map(|pin| &pin.hash).eq(wanted.iter().copied())
        };
        !instance.terminating
            && compared.kinds.iter().all(has)
            && instance.evidence.arrived()
            && soak.is_none_or(|soak| soak.judge(facts) == CohortStanding::Settled)
    })
}

/// A placement that lets its clusters soak, as a judge of whether they have settled on what it
/// wants.
fn soak<'a>(fleet: &Fleet<'a>, own: &'a Governor<'a>, now: Timestamp) -> Option<Judge<'a>> {
    if own.spec.rollout.min_success_time.is_zero() {
        return None;
    }
    let target = own.desired.clone().ok();
    let targets = Targets { target: target.clone(), canary: target, fresh: None };
    Some(Judge::new(fleet.observed, own, &targets, None, now))
}
