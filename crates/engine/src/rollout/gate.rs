//! Where a placement's clusters should go: the desired revision, or with a canary the last known good one (semantics §5.4–5.6).

use std::sync::Arc;

use jiff::Timestamp;

use super::standing::{Judge, Standing};
use crate::configs::{Revision, Wanted};
use crate::evidence::told_includes;
use crate::explain::{CanaryWait, Wait};
use crate::fleet::{Canary, Flag, Fleet, Governor, Member};
use crate::name::ClusterName;
use crate::observed::Pace;
use crate::problem::Problem;

/// Where to.
#[derive(Clone, Debug)]
pub struct Aim {
    pub desired: Wanted,
    /// For the clusters that the canary gates, or for all where there is none.
    pub target: Option<Revision>,
    /// For the clusters inside the canary: they are never gated by it.
    pub canary_target: Option<Revision>,
    /// For instances on which nothing was ever applied.
    pub fresh: Option<Revision>,
    pub known_good: Option<Revision>,
    pub gate: Gate,
    /// What made the known good revision change in this pass.
    pub promotion: Option<Promotion>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    Open,
    /// The desired revision may not reach gated clusters yet.
    Closed(Wait),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promotion {
    CanaryPassed,
    RolledBack,
}

impl Aim {
    pub fn problem(&self) -> Option<&Problem> {
        self.desired.as_ref().err()
    }

    /// Whether clusters that have settled on the target are where the placement wants them in the end.
    pub fn target_is_desired(&self) -> bool {
        self.desired.as_ref().ok() == self.target.as_ref()
    }
}

pub fn aim(fleet: &Fleet<'_>, governor: &Governor<'_>, now: Timestamp) -> Aim {
    let recorded = governor.recorded;
    let known_good = recorded.and_then(|recorded| recorded.known_good.clone());
    let mut aim = Aim {
        desired: governor.desired.clone(),
        target: None,
        canary_target: None,
        fresh: known_good.clone(),
        known_good,
        gate: Gate::Open,
        promotion: None,
    };
    let Ok(desired) = &governor.desired else {
        // Clusters stay on what they have; those under way finish.
        aim.target = match &governor.canary {
            Some(_) => aim.known_good.clone(),
            None => recorded.and_then(|recorded| recorded.desired.clone()),
        };
        aim.canary_target.clone_from(&aim.target);
        return aim;
    };
    aim.canary_target = Some(desired.clone());
    match &governor.canary {
        None => aim.target = Some(desired.clone()),
        Some(canary) => pass_canary(&mut aim, fleet, governor, canary, desired, now),
    }
    let frozen = governor.spec.rollout.paused || governor.fault.is_some();
    if frozen {
        return aim;
    }
    let at_once = governor.spec.rollout.pace == Pace::AllAtOnce && governor.canary.is_none();
    if at_once || aim.known_good.is_none() {
        aim.fresh = Some(desired.clone());
    } else {
        aim.fresh.clone_from(&aim.known_good);
    }
    aim
}

fn pass_canary(
    aim: &mut Aim,
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    canary: &Canary<'_>,
    desired: &Revision,
    now: Timestamp,
) {
    if aim.known_good.as_ref() == Some(desired) {
        aim.target = Some(desired.clone());
        return;
    }
    if governor.completed.contains(desired) && governor.fault.is_none() {
        promote(aim, desired, Promotion::RolledBack);
        return;
    }
    if governor.fault.is_some() {
        // A strategy that cannot be used promotes nothing; where clusters stand is judged all the same.
        aim.target = aim.known_good.clone().or_else(|| Some(desired.clone()));
        return;
    }
    if aim.known_good.is_some()
        && let Some(left) = left_on_known_good(aim, fleet, governor, now)
    {
        aim.target.clone_from(&aim.known_good);
        aim.gate = Gate::Closed(Wait::KnownGoodFirst { left });
        return;
    }
    match canary_wait(fleet, canary, desired, now) {
        None => promote(aim, desired, Promotion::CanaryPassed),
        Some(wait) => {
            // Without a known good revision the first installs go ahead, and are judged against what they were told.
            aim.target = aim.known_good.clone().or_else(|| Some(desired.clone()));
            aim.gate = Gate::Closed(Wait::Canary(Arc::new(wait)));
        }
    }
}

fn promote(aim: &mut Aim, desired: &Revision, promotion: Promotion) {
    aim.known_good = Some(desired.clone());
    aim.target = Some(desired.clone());
    aim.promotion = Some(promotion);
}

/// How many gated clusters are still on their way to the known good revision. Failed ones are at their end, and first installs are
/// not part of a rollout: clusters that join must not be able to keep the next revision away for ever.
fn left_on_known_good(
    aim: &Aim,
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    now: Timestamp,
) -> Option<usize> {
    let known_good = Aim { target: aim.known_good.clone(), ..aim.clone() };
    let judge = Judge::new(fleet, governor, &known_good, now);
    let left = judge.judge_all(fleet).count(|kind| {
        let under_way = matches!(kind.standing, Standing::OnTarget { .. } | Standing::Elsewhere { .. });
        under_way && !kind.standing.failed() && !kind.in_canary
    });
    (left > 0).then_some(left)
}

/// What the canary still lacks, if anything. An empty canary never passes.
fn canary_wait(
    fleet: &Fleet<'_>,
    canary: &Canary<'_>,
    desired: &Revision,
    now: Timestamp,
) -> Option<CanaryWait> {
    let placement = canary.name.clone();
    let Some(clusters) = &canary.clusters else { return Some(CanaryWait::NotFound { placement }) };
    if let Some((published, decided)) = canary.in_motion {
        return Some(CanaryWait::InMotion { placement, published, decided });
    }
    if clusters.is_empty() {
        return Some(CanaryWait::Empty { placement });
    }
    let soaks: Vec<Option<Soak<'_>>> =
        fleet.governors.iter().map(|own| Soak::of(fleet, own, desired, now)).collect();
    let has_passed = |position: usize| {
        fleet.member(position).is_some_and(|member| {
            let own = soaks.get(member.governor().unwrap_or(usize::MAX)).and_then(Option::as_ref);
            has_passed(&member, desired, own)
        })
    };
    let mut first = None;
    let mut passes = 0;
    for &position in &canary.members {
        if has_passed(position) {
            passes += 1;
        } else {
            first = first.or(Some(position));
        }
    }
    let missing = clusters.len() - passes;
    if missing == 0 {
        return None;
    }
    let first = first_missing(fleet, canary, first, clusters)?;
    Some(CanaryWait::NotPassed { placement, missing, of: clusters.len(), first })
}

fn first_missing(
    fleet: &Fleet<'_>,
    canary: &Canary<'_>,
    first: Option<usize>,
    clusters: &[&ClusterName],
) -> Option<ClusterName> {
    let name = |position: usize| fleet.lines.get(position).map(|line| line.name);
    let by_member = first.and_then(name);
    // Otherwise it is one that is no member at all: selected by the canary only, and without an instance.
    let outside = || {
        let members: std::collections::HashSet<&ClusterName> =
            canary.members.iter().filter_map(|&position| name(position)).collect();
        clusters.iter().copied().filter(|name| !members.contains(name)).min()
    };
    by_member.or_else(outside).cloned()
}

/// A canary cluster has the revision's configs, whoever gave them to it, applied and healthy for as long as its own placement asks.
fn has_passed(member: &Member<'_>, desired: &Revision, soak: Option<&Soak<'_>>) -> bool {
    member.status().is_some_and(|status| {
        !member.is(Flag::Terminating)
            && told_includes(status, desired.pins())
            && member.evidence().arrived()
            && soak.is_none_or(|soak| soak.has_soaked(member))
    })
}

/// A placement that lets its clusters soak, as a judge of whether they have.
struct Soak<'a> {
    judge: Judge<'a>,
}

impl Soak<'_> {
    fn has_soaked(&self, member: &Member<'_>) -> bool {
        // Inside the canary or not: its target is the same.
        self.judge.judge(true, member) == Standing::Settled
    }
}

impl<'a> Soak<'a> {
    fn of(fleet: &Fleet<'_>, own: &'a Governor<'a>, desired: &Revision, now: Timestamp) -> Option<Self> {
        if own.spec.rollout.min_success_time.is_zero() {
            return None;
        }
        let target = own.desired.clone().ok();
        let aim = Aim {
            desired: Ok(desired.clone()),
            target: target.clone(),
            canary_target: target,
            fresh: None,
            known_good: None,
            gate: Gate::Open,
            promotion: None,
        };
        Some(Self { judge: Judge::new(fleet, own, &aim, now) })
    }
}
