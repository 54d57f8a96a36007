//! Everything that any rule may know about a cluster, as one value.
//!
//! Clusters with the same facts form a cohort, and rules are functions of `&ClusterFacts` and of
//! their placement's context. A test keeps rules from reading clusters, instances and works
//! themselves, so a rule depends on nothing by which clusters are not sorted.

use std::ops::Deref;
use std::sync::Arc;

use aviary_api::names::conditions::{AVAILABLE, PROGRESSING, REVISION_HEALTHY};
use jiff::{SignedDuration, Timestamp};

use crate::clock::{Doubt, RevisionClock};
use crate::configs::{Overrides, Pin, Revision};
use crate::evidence::{Evidence, told_same};
use crate::explain::Decision;
use crate::health::Health;
use crate::hooks::HookWork;
use crate::name::same;
use crate::observed::{
    ClusterSummary, Instance, InstanceStatus, Maker, ObservedCondition, Refusal, RefusedWrite, Unreachable,
    Work, WorkHashes, WorkState,
};
use crate::problem::Problem;
use crate::reason::Reason;
use crate::render::Rendering;

/// How long after its start a revision is given before bad health counts as a failure and is
/// reported.
const HEALTH_GRACE: SignedDuration = SignedDuration::from_secs(60);

pub type ClusterFacts<'a> = ClusterFactsOf<InstanceFacts<'a>, Arc<Refusal>>;

/// Generic so that the facts and the key by which clusters are sorted are one type: the key has
/// interned ids in place of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterFactsOf<I, R> {
    /// The install strategy selects it.
    pub selected: bool,
    /// It has no instance, and the hub has no namespace for one.
    pub lacks_namespace: bool,
    /// The hub refused a write for it.
    pub refusal: Option<R>,
    pub claim: Option<Claim>,
    /// `None`: the hub has no such cluster.
    pub cluster: Option<ClusterSummary>,
    /// Since when it cannot be reached.
    pub offline: Option<Unreachable>,
    pub instance: Option<I>,
}

/// Which placement governs a cluster, and the position of the cluster in that placement's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    pub(super) governor: u32,
    pub(super) stage: u32,
    /// It is one of that placement's canary clusters.
    pub(super) in_canary: bool,
}

impl<I, R> ClusterFactsOf<I, R> {
    /// The placement whose configs and strategy hold for it: the last in the list that selects it.
    pub fn governor(&self) -> Option<usize> {
        self.claim.map(|claim| claim.governor as usize)
    }

    /// Its place in the order in which that placement's stages go.
    pub fn stage(&self) -> usize {
        self.claim.map_or(0, |claim| claim.stage as usize)
    }

    pub(crate) fn in_canary(&self) -> bool {
        self.claim.is_some_and(|claim| claim.in_canary)
    }

    pub(crate) fn is_reachable(&self) -> bool {
        self.cluster.is_some_and(|cluster| cluster.reachable)
    }
}

impl ClusterFacts<'_> {
    /// The hub refuses this write.
    pub(crate) fn is_refused(&self, what: RefusedWrite) -> bool {
        self.refusal.as_ref().is_some_and(|refusal| refusal.what == what)
    }

    pub fn overrides(&self) -> Option<&Overrides> {
        self.instance.as_ref()?.overrides.as_deref()
    }
}

/// What the rules may know of an instance and its works.
#[derive(Clone, Debug)]
pub struct InstanceFacts<'a> {
    pub status: &'a InstanceStatus,
    pub generation: i64,
    /// The namespace of the agent, unless its configs say otherwise.
    pub install_namespace: &'a str,
    /// The other cluster on which it asks to run, although Aviary renders the add-on.
    pub refused_hosting: Option<&'a str>,
    /// It is being deleted.
    pub terminating: bool,
    /// Pre-delete hooks run before it goes.
    pub guarded: bool,
    /// The state of the work with those hooks.
    pub hook_work: HookWork,
    /// It belongs to an earlier add-on of this name.
    pub other_owner: bool,
    /// It has no add-on as owner yet.
    pub lacks_owner: bool,
    /// On a hub of OCM: it lacks annotations that its cluster has for it.
    pub lacks_annotations: bool,
    pub made_by: Maker,
    /// OCM's manager made it for an install strategy.
    pub made_by_ocm: bool,
    /// What its user chose for it.
    pub overrides: Option<Arc<Overrides>>,
    pub clock: Option<RevisionClock>,
    /// What its works should be rendered from; `None` if the add-on's own manager writes them.
    pub rendering: Option<Rendering>,
    pub evidence: Evidence,
    /// Its only work was rendered from the assigned revision, for this instance, and is unchanged
    /// since; or its works are accepted.
    pub works_stand: bool,
    /// Another manager rendered its works from the assigned revision: they stay as they are.
    pub accepted: bool,
    /// Since when its workloads are available, if that is not recorded and a soak depends on it.
    pub available_since: Option<Timestamp>,
    /// Since when the hub has contact with its cluster again, if that was lost within a soak.
    pub returned: Option<Timestamp>,
    /// Who rendered those of its works that have no probes.
    pub unprobed: Option<Unprobed>,
}

/// Who rendered works without probes, of an add-on that Aviary renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unprobed {
    ByEarlierVersion,
    /// Such as OCM's.
    ByAnotherManager,
}

/// How long a cluster that has arrived keeps its recorded health, so that one that flaps is not
/// written all the time.
const QUIET: SignedDuration = SignedDuration::from_secs(60);

/// Until when a condition that changed a moment ago is left as it is.
pub(crate) fn quiet_until(changed: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    // A time ahead of the clock says nothing: it would hold the write until the clock gets there.
    let until = changed.filter(|changed| *changed <= now)?.checked_add(QUIET).ok()?;
    (now < until).then_some(until)
}

impl InstanceFacts<'_> {
    /// Whether it was assigned this revision, ignoring overridden kinds.
    pub fn is_told(&self, revision: &Revision) -> bool {
        self.evidence.told && told_same(self.status, revision.pins(), self.overrides.as_deref())
    }

    /// It cannot run where it asks to.
    pub(crate) fn hosting_problem(&self) -> Option<Problem> {
        self.refused_hosting.map(|cluster| Problem::HostingRefused { cluster: cluster.into() })
    }

    /// Whether all its overrides were assigned.
    pub(crate) fn is_told_overrides(&self) -> bool {
        self.overrides.as_ref().is_none_or(|overrides| overrides.are_told(self.status))
    }

    /// Its works ask the agent for the health of their objects.
    pub(crate) fn is_probed(&self) -> bool {
        let probed = self.rendering.as_ref().and_then(|rendering| rendering.as_ref().ok());
        probed.is_some_and(|prepared| prepared.is_probed()) && self.evidence.health != Health::NotProbed
    }

    /// Until when bad health does not count yet: right after a revision has started, reports of a
    /// failure may be left over from the one before.
    pub(crate) fn health_grace(&self, now: Timestamp) -> Option<Timestamp> {
        let started = self.clock.as_ref()?.started.min(now);
        let until = started.checked_add(HEALTH_GRACE).unwrap_or(Timestamp::MAX);
        (now < until).then_some(until)
    }

    /// Something of it was applied, and nothing has ever been healthy.
    pub(crate) fn was_never_healthy(&self) -> bool {
        let Evidence { delivered, installed, .. } = self.evidence;
        delivered && !installed && !self.evidence.arrived()
    }

    /// When to record that something of it was applied, should it not become healthy until then:
    /// its agent may take that back.
    pub(crate) fn never_healthy_from(&self, now: Timestamp) -> Option<Timestamp> {
        let recorded = self.status.condition(REVISION_HEALTHY);
        let is_recorded = recorded.is_some_and(|recorded| recorded.reason == Reason::NeverHealthy);
        self.health_grace(now).filter(|_| self.was_never_healthy() && !is_recorded)
    }

    /// Another manager has brought it to the assigned revision, and Aviary has not touched it
    /// since.
    pub(crate) fn is_taken_over(&self) -> bool {
        self.accepted && self.clock.is_none() && self.recorded_as_applied()
    }

    /// Since when it has the assigned revision, as that manager recorded it; long ago if it did
    /// not.
    pub(crate) fn taken_over_since(&self) -> Option<Timestamp> {
        let progressing = self.status.condition(PROGRESSING).filter(|said| said.status == "False");
        self.is_taken_over().then(|| progressing.and_then(|said| said.since).unwrap_or(Timestamp::MIN))
    }

    /// The object that keeps it from being healthy, whatever is decided for it.
    pub(crate) fn ailing_object(&self, decision: &Decision) -> Option<&str> {
        let Evidence { health, healthy, answered, delivered, .. } = &self.evidence;
        let is_said = match decision {
            Decision::InFlight(flight) => flight.reported().is_some_and(|why| health.why() == Some(why)),
            // On the revision that it has.
            Decision::Hold(_) => *delivered && *answered && !healthy,
            Decision::Create | Decision::Delete(_) | Decision::Start(_) | Decision::Settled => false,
        };
        health.object().filter(|_| is_said)
    }

    /// Its clock, if it is one of this revision.
    pub(crate) fn clock_of(&self, revision: &str) -> Option<&RevisionClock> {
        self.clock.as_ref().filter(|clock| *clock.revision == *revision)
    }

    /// It has been healthy since its revision was assigned, according to its clock.
    pub(crate) fn has_arrived(&self) -> bool {
        self.clock.as_ref().is_none_or(|clock| clock.has_arrived)
    }

    /// It has been healthy since its revision was assigned; without a clock, if the revision is
    /// recorded as applied.
    pub(crate) fn had_arrived(&self) -> bool {
        self.clock.as_ref().map_or_else(|| self.recorded_as_applied(), |clock| clock.has_arrived)
    }

    /// When to look again at a cluster whose recorded health is not what it reports now, and is
    /// left as it is for a moment.
    pub(crate) fn recorded_until(&self, now: Timestamp) -> Option<Timestamp> {
        let clock = self.clock.as_ref().filter(|clock| clock.has_arrived)?;
        let available = self.status.condition(AVAILABLE);
        let news = clock.healthy != self.evidence.arrived()
            || available.is_some_and(|condition| condition.is_true() != self.evidence.available);
        let of_clock = quiet_until(Some(clock.since), now);
        let of_available = quiet_until(available.and_then(|condition| condition.since), now);
        of_clock.into_iter().chain(of_available).min().filter(|_| news)
    }

    /// When to look again at a cluster whose bad health has changed a moment after it was written.
    pub(crate) fn ill_until(&self, now: Timestamp) -> Option<Timestamp> {
        let health = &self.evidence.health;
        health.why()?;
        let is_unknown = matches!(health, Health::Unknown { .. } | Health::Kept { .. });
        let is_old = |said: &&ObservedCondition| !health.is_told_by(&said.message);
        let available = self
            .status
            .condition(AVAILABLE)
            .filter(|said| !said.is_true() && ((said.status == "Unknown") != is_unknown || is_old(said)));
        let failed = self.status.condition(PROGRESSING).filter(|said| said.reason.is(Reason::is_failure));
        let said = available.into_iter().chain(failed.filter(is_old));
        said.filter_map(|said| quiet_until(said.since, now)).min()
    }

    /// It has the revision that its placement assigned, and is healthy.
    pub fn is_well(&self) -> bool {
        self.evidence.holds_placed && self.evidence.healthy
    }

    /// Its works carry the assigned revision, and it is healthy, or has been since the assignment.
    /// If it had the same revision earlier, left it and is returning, it is in flight.
    pub fn arrived_once(&self) -> bool {
        let recorded = || self.recorded_as_applied() && self.has_arrived();
        self.evidence.holds_placed && (self.evidence.healthy || recorded())
    }

    /// The assigned revision, without overridden kinds, is recorded as applied.
    fn recorded_as_applied(&self) -> bool {
        let overridden = |kind| self.overrides.as_ref().is_some_and(|overrides| overrides.covers(kind));
        let hash = |pin: &Option<Pin>| pin.as_ref().map(|pin| pin.hash.clone());
        self.status.references.iter().all(|reference| {
            overridden(&reference.kind) || hash(&reference.desired) == hash(&reference.applied)
        })
    }
}

/// How an unsettled cluster counts in its placement's rollout (rule 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetShare {
    /// It holds a slot, and its failure is one of the revision.
    Full,
    /// Its own override may be at fault: it holds a slot until its agent has answered, and its
    /// failure does not count.
    SlotOnly,
    /// Its own override may be at fault, and its placement moves nothing there any more.
    None,
}

impl BudgetShare {
    fn doubted(doubt: Option<Doubt>) -> Self {
        if doubt.is_some() { Self::None } else { Self::Full }
    }
}

/// Whether an instance that is unwell may suffer from its own override, and not from what its
/// placement moves it to. Without an override there is no doubt.
impl InstanceFacts<'_> {
    pub(crate) fn doubt_before_start(&self) -> Option<Doubt> {
        self.overrides.as_ref()?;
        let told = self.is_told_overrides();
        if self.is_well() && told {
            return None;
        }
        let was_unwell = self.clock.as_ref().is_none_or(|clock| clock.has_arrived || clock.doubt.is_some());
        (was_unwell || !told).then_some(Doubt::Before)
    }

    /// The share in the budget of an instance that is assigned another revision than its target,
    /// and may be in flight. If its override may be at fault, it has not started for the target,
    /// whatever it was started for before: otherwise those that never answer would keep their slots
    /// in every rollout that follows.
    pub(crate) fn share_elsewhere(&self) -> BudgetShare {
        BudgetShare::doubted(self.doubt_before_start())
    }

    /// The share in the budget of an instance on which nothing was ever applied: at its first start
    /// it counts like any other.
    pub(crate) fn share_of_fresh(&self, started: bool) -> BudgetShare {
        if self.overrides.is_none() || !self.evidence.told {
            return BudgetShare::Full;
        }
        if !started || !self.is_told_overrides() {
            return BudgetShare::None;
        }
        BudgetShare::doubted(self.clock.as_ref().and_then(|clock| clock.doubt))
    }

    /// The share in the budget of an instance that is assigned its target and has not settled.
    pub(crate) fn share_on_target(&self, target: Option<&str>) -> BudgetShare {
        let (Some(_), Some(clock)) = (&self.overrides, &self.clock) else { return BudgetShare::Full };
        let told = self.is_told_overrides();
        // Its user has changed the override and the change is not assigned yet, or its placement
        // has changed a kind that it overrides.
        let changed = !told || target.is_none_or(|target| self.clock_of(target).is_none());
        let doubt = match clock.has_arrived {
            true if changed => Some(Doubt::ByUser),
            false if !told => Some(clock.doubt.unwrap_or(Doubt::Before)),
            _ => clock.doubt,
        };
        match doubt {
            None => BudgetShare::Full,
            Some(Doubt::Before) if !self.evidence.answered => BudgetShare::SlotOnly,
            Some(Doubt::Before | Doubt::ByUser) => BudgetShare::None,
        }
    }
}

/// What the rules may know of a work.
#[derive(Clone, Copy, Debug)]
pub struct WorkFacts<'a> {
    pub state: &'a WorkState,
    pub hashes: Option<&'a WorkHashes>,
    pub owner: WorkOwner,
    /// Unchanged since it was rendered.
    pub untouched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkOwner {
    Nobody,
    /// The instance on its cluster.
    Instance,
    /// An instance that is gone.
    Other,
}

impl Deref for WorkFacts<'_> {
    type Target = WorkState;

    fn deref(&self) -> &WorkState {
        self.state
    }
}

impl<'a> WorkFacts<'a> {
    pub(crate) fn of(work: &'a Work, instance: &Instance) -> Self {
        let owner = match &work.owner {
            None => WorkOwner::Nobody,
            Some(owner) if same(owner, &instance.uid) => WorkOwner::Instance,
            Some(_) => WorkOwner::Other,
        };
        Self { state: &work.state, hashes: work.hashes.as_ref(), owner, untouched: work.is_untouched() }
    }

    /// A foreign work with the add-on's label: it has no owner, and Aviary did not render it.
    /// Aviary neither writes nor deletes it.
    pub(crate) fn is_foreign(&self) -> bool {
        self.owner == WorkOwner::Nobody && self.rendered_from.is_none()
    }

    /// A version of Aviary without probes rendered it.
    pub(crate) fn is_of_first(&self) -> bool {
        self.rendered_from.is_some() && !self.probed
    }

    /// Another manager, such as OCM's, rendered it for the instance on its cluster.
    pub(crate) fn is_of_another(&self) -> bool {
        self.rendered_from.is_none() && !self.probed && self.owner == WorkOwner::Instance
    }

    /// It has no probes: a version of Aviary without probes rendered it, or another manager did.
    pub(crate) fn is_without_probes(&self) -> bool {
        self.is_of_first() || self.is_of_another()
    }

    /// It was written for the instance on its cluster, and is unchanged since.
    pub(crate) fn is_as_written(&self) -> bool {
        self.untouched && self.owner == WorkOwner::Instance
    }

    /// It is one of the instance's works: where we render them, only ours are.
    pub(crate) fn belongs_to(&self, rendering: Option<&Rendering>) -> bool {
        match rendering {
            Some(Ok(prepared)) => prepared.work_index(&self.name).is_some() && !self.is_foreign(),
            Some(Err(_)) | None => true,
        }
    }
}
