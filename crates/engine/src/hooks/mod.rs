//! Pre-delete hooks: what runs on a cluster before an instance is removed from it (rules, 6.5).
//!
//! An instance whose template has hooks gets a finalizer before anything is deployed. When it is
//! deleted, its hooks get a work of their own. The finalizer is removed when they have completed,
//! when their deadline has passed, or when the cluster is gone. Only then do the works go.
//!
//! Everything is derived from the instance and its works, except when the hooks began: the
//! condition `HookManifestCompleted` of the instance records it.

pub(crate) mod draft;
pub(crate) mod read;

use std::time::Duration;

use aviary_api::names::conditions::HOOK_COMPLETED;
use jiff::Timestamp;
use serde_json::Value;

use crate::fleet::{ClusterFacts, InstanceFacts, WorkFacts, WorkOwner};
use crate::health::Health;
use crate::observed::{RefusedWrite, Seen};
use crate::render::hooks::is_hook;

/// How long hooks may take, unless their template says otherwise.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// The name of the work with an add-on's hooks. As in OCM.
pub fn work_name(addon: &str) -> String {
    format!("addon-{addon}-pre-delete")
}

/// Whether the content of a template has hooks.
pub(crate) fn are_in(template: &Value) -> bool {
    let manifests = template.pointer("/spec/agentSpec/workload/manifests").and_then(Value::as_array);
    manifests.into_iter().flatten().any(is_hook)
}

/// The state of the work with the hooks of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookWork {
    #[default]
    Absent,
    /// It is being deleted, or belongs to somebody else: its name is not free.
    Leaving,
    Running,
    Completed,
    /// A hook has failed, or was evicted.
    Failed,
}

impl HookWork {
    pub(crate) fn of(addon: &str, works: &[WorkFacts<'_>]) -> Self {
        if works.len() < 2 && works.iter().all(|work| !work.name.ends_with("-pre-delete")) {
            return Self::Absent;
        }
        let name = work_name(addon);
        let Some(work) = works.iter().find(|work| *work.name == *name) else { return Self::Absent };
        if work.deleting || work.owner != WorkOwner::Instance {
            return Self::Leaving;
        }
        match (&work.available, &work.health) {
            (Seen::Yes, Health::Healthy) => Self::Completed,
            (_, Health::Failed { .. }) => Self::Failed,
            _ => Self::Running,
        }
    }
}

/// What to do next for an instance that is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookStep {
    /// Records when the hooks begin, then writes their work.
    Begin,
    /// Writes the work.
    Write,
    /// Deletes the work, so that it is written again.
    Retry,
    /// Waits for the agent, at most until then.
    Wait(Timestamp),
    /// Nothing holds the instance any more.
    Release(Ending),
}

/// Why hooks no longer hold an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Completed,
    /// What it was assigned has no hooks.
    NoHooks,
    /// The hub has no such cluster any more: nothing can run there.
    ClusterGone,
    /// The deadline has passed.
    GivenUp,
}

impl Ending {
    /// Why the instance goes although its hooks have not completed.
    pub fn warning(self, addon: &str) -> Option<String> {
        let work = work_name(addon);
        match self {
            Self::Completed | Self::NoHooks => None,
            Self::ClusterGone => Some(format!(
                "the cluster is gone, so its pre-delete hooks cannot run; the instance is deleted without them ({work})"
            )),
            Self::GivenUp => Some(format!(
                "the pre-delete hooks did not complete before their deadline; the instance is deleted without them ({work})"
            )),
        }
    }
}

/// The next step for an instance that is being deleted; `None` if no hooks of ours hold it.
pub(crate) fn next(facts: &ClusterFacts<'_>, now: Timestamp) -> Option<HookStep> {
    let instance = facts.instance.as_ref().filter(|instance| instance.terminating && instance.guarded)?;
    // Without a template, the add-on's own manager runs the hooks.
    let rendering = instance.rendering.as_ref()?;
    if facts.cluster.is_none() {
        return Some(HookStep::Release(Ending::ClusterGone));
    }
    let deadline = match rendering {
        Ok(prepared) if !prepared.has_hooks() => return Some(HookStep::Release(Ending::NoHooks)),
        Ok(prepared) => prepared.hook_deadline(),
        Err(_) => DEADLINE,
    };
    if instance.hook_work == HookWork::Completed {
        return Some(HookStep::Release(Ending::Completed));
    }
    let Some(begun) = begun(instance) else {
        let until = now.checked_add(deadline).unwrap_or(Timestamp::MAX);
        return Some(if facts.is_refused(RefusedWrite::Status) {
            HookStep::Wait(until)
        } else {
            HookStep::Begin
        });
    };
    let until = begun.checked_add(deadline).unwrap_or(Timestamp::MAX);
    Some(match instance.hook_work {
        _ if now >= until => HookStep::Release(Ending::GivenUp),
        HookWork::Absent if rendering.is_ok() && !facts.is_refused(RefusedWrite::Work) => HookStep::Write,
        HookWork::Failed if rendering.is_ok() => HookStep::Retry,
        _ => HookStep::Wait(until),
    })
}

/// When its hooks began.
fn begun(instance: &InstanceFacts<'_>) -> Option<Timestamp> {
    instance.status.condition(HOOK_COMPLETED).filter(|condition| !condition.is_true())?.since
}
