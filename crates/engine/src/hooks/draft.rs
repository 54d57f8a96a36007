//! The writes for instances that hooks hold, and the contents that those hooks are rendered from.

use std::collections::{HashMap, HashSet};

use aviary_api::names::conditions::HOOK_COMPLETED;
use aviary_api::names::finalizers::PRE_DELETE_HOOK;
use jiff::Timestamp;

use super::{Ending, HookStep, HookWork, are_in, next, work_name};
use crate::configs::Pin;
use crate::fleet::{ClusterFacts, Fleet};
use crate::hash::Hash;
use crate::name::Text;
use crate::observed::{Instance, InstanceStatus, Observed, Work};
use crate::plan::{Drafts, GuardWrite, StatusWrite, Step, SurplusWork, WorkPart, WorkWrite, Write};
use crate::reason::Reason;
use crate::status::{Stated, set};

/// Drafts the writes for every instance that is being deleted and that hooks hold. Returns when to
/// look again if nothing changes before.
pub(crate) fn leaving(fleet: &Fleet<'_>, now: Timestamp, drafts: &mut Drafts) -> Option<Timestamp> {
    let mut recheck_at: Option<Timestamp> = None;
    for cohort in &fleet.cohorts {
        let Some(step) = next(&cohort.facts, now) else { continue };
        if let HookStep::Wait(until) = step {
            recheck_at = Some(recheck_at.map_or(until, |other| other.min(until)));
            continue;
        }
        let mut instances = fleet.observed.instances.cursor();
        for &at in &cohort.members {
            let Some(line) = fleet.lines.get(at as usize) else { continue };
            let Some(instance) = instances.hold(line.name) else { continue };
            let draft = HookDraft { addon: &fleet.observed.addon.name, facts: &cohort.facts, now };
            match step {
                HookStep::Begin => {
                    draft.work(&instance, drafts);
                    let (status, owns_supported) = (draft.begun(&instance), fleet.owns_supported());
                    drafts.push(
                        Step::Settle,
                        Write::Instance(StatusWrite { instance, status, owns_supported }),
                    );
                }
                HookStep::Write => draft.work(&instance, drafts),
                HookStep::Retry => {
                    let works = fleet.observed.works.get(line.name);
                    draft.retry(&instance, works.map_or(&[][..], |works| works.as_slice()), drafts);
                }
                HookStep::Release(ending) => drafts.push(Step::Guard, release(&instance, ending)),
                HookStep::Wait(_) => {}
            }
        }
    }
    recheck_at
}

struct HookDraft<'f> {
    addon: &'f Text,
    facts: &'f ClusterFacts<'f>,
    now: Timestamp,
}

impl HookDraft<'_> {
    fn work(&self, instance: &Instance, drafts: &mut Drafts) {
        let Some(facts) = self.facts.instance.as_ref() else { return };
        let (HookWork::Absent, Some(Ok(prepared))) = (facts.hook_work, &facts.rendering) else { return };
        let write = WorkWrite::new(instance, prepared, WorkPart::Hooks, None);
        drafts.push(Step::Render, Write::Work(Box::new(write)));
    }

    fn retry(&self, instance: &Instance, works: &[Work], drafts: &mut Drafts) {
        let name = work_name(self.addon);
        let is_own = |work: &&Work| *work.name == *name && work.is_of(None, true);
        let failed = works.iter().filter(|work| is_own(work) && !work.deleting);
        let surplus = failed.map(|work| SurplusWork {
            cluster: instance.cluster.clone(),
            name: work.name.clone(),
            uid: work.uid.clone(),
        });
        drafts.extend(Step::RemoveWorks, surplus.map(Write::DeleteWork));
    }

    /// Records when the hooks began. Their deadline counts from here, also if the manager was away
    /// when the instance was deleted.
    fn begun(&self, instance: &Instance) -> InstanceStatus {
        let deadline = match self.facts.instance.as_ref().and_then(|facts| facts.rendering.as_ref()) {
            Some(Ok(prepared)) => prepared.hook_deadline(),
            _ => super::DEADLINE,
        };
        let until = self.now.checked_add(deadline).unwrap_or(Timestamp::MAX);
        let message = format!(
            "hook manifestWork {} is not completed; it is given up at {until}.",
            work_name(self.addon)
        );
        let mut status = instance.status.clone();
        let stated = Stated {
            kind: HOOK_COMPLETED,
            status: "False",
            reason: Reason::HookManifestIsNotCompleted,
            message: message.into(),
        };
        set(&mut status.conditions, instance.generation, self.now, stated);
        status
    }
}

/// Puts the finalizer on an instance, so that its hooks run before it goes.
pub(crate) fn guarded(instance: &Instance) -> Vec<Text> {
    instance.finalizers.iter().cloned().chain([PRE_DELETE_HOOK.into()]).collect()
}

fn release(instance: &Instance, ending: Ending) -> Write {
    let others = instance.finalizers.iter().filter(|one| ***one != *PRE_DELETE_HOOK);
    Write::Guard(GuardWrite::new(instance, Some(others.cloned().collect()), Some(ending)))
}

/// The contents that hooks of instances are rendered from, and those that are about to be assigned
/// with hooks.
pub(crate) fn needed(fleet: &Fleet<'_>) -> HashSet<Hash> {
    let observed = fleet.observed;
    let mut needed: HashSet<Hash> = HashSet::new();
    let mut known: HashMap<Hash, bool> = HashMap::new();
    let mut has_hooks = |pin: &Pin| {
        pin.config.kind.is_templates()
            && *known
                .entry(pin.hash.clone())
                .or_insert_with(|| observed.content(pin).is_some_and(|content| are_in(content)))
    };
    for governor in fleet.governors.iter().chain([&fleet.free]) {
        if let Ok(desired) = &governor.desired
            && desired.pins().iter().any(&mut has_hooks)
        {
            needed.extend(desired.pins().iter().map(|pin| pin.hash.clone()));
        }
    }
    let mut seen = HashSet::new();
    for instance in fleet.cohorts.iter().filter_map(|cohort| cohort.facts.instance.as_ref()) {
        if seen.insert(instance.status.id()) && instance.status.told().any(&mut has_hooks) {
            needed.extend(instance.status.told().map(|pin| pin.hash.clone()));
        }
    }
    needed
}

/// The stored contents that no hook needs any more, once the add-on itself is gone. Nothing else
/// would release them.
pub(crate) fn released(observed: &Observed, fleet: &Fleet<'_>) -> Vec<Hash> {
    if observed.revisions.held.is_empty() {
        return Vec::new();
    }
    let instances = fleet.cohorts.iter().filter_map(|cohort| cohort.facts.instance.as_ref());
    let guarded = instances.filter(|instance| instance.guarded);
    let needed: HashSet<&Hash> =
        guarded.flat_map(|instance| instance.status.told()).map(|pin| &pin.hash).collect();
    observed.revisions.held.iter().filter(|hash| !needed.contains(hash)).cloned().collect()
}

/// Contents that are stored and must stay while hooks need them.
pub(crate) fn holds(observed: &Observed, needed: &HashSet<Hash>) -> Vec<Hash> {
    let stored = needed.iter().filter(|hash| observed.revisions.contents.contains_key(*hash));
    let mut holds: Vec<Hash> =
        stored.filter(|hash| !observed.revisions.held.contains(*hash)).cloned().collect();
    holds.sort();
    holds
}
