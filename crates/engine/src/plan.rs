//! All of it together: a snapshot and a time in; what to write, and a reason for every cluster, out.
//!
//! Deterministic and total. An empty plan is the state of rest. Per cluster the writes come one after another over several
//! passes: its status says what it is told, then its works are rendered from that, then its status says what was applied. Whatever
//! is lost in between, the same rules go on from what is there.

mod members;

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use aviary_api::names::conditions::PROGRESSING;
use jiff::Timestamp;
use serde_json::Value;

use crate::by_cluster::Held;
use crate::configs::{ConfigRef, GroupResource, Pin, Revision};
use crate::explain::Decision;
use crate::fleet::{Fleet, Governor};
use crate::hash::Hash;
use crate::install::{self, Create, Delete};
use crate::name::{ClusterName, PlacementName, Text};
use crate::observed::{AddOnStatus, Condition, Instance, InstanceStatus, Lookup, Observed};
use crate::problem::Problem;
use crate::render::{Prepared, Site};
use crate::rollout::{self, Counts, Failure, Outcome, State, gate::Promotion};
use crate::status;

/// Everything to be written, in the order in which it is safe to write it.
#[derive(Debug, Default)]
pub struct Plan {
    /// Contents to keep before anybody is told their hash.
    pub keeps: Vec<Keep>,
    pub creates: Vec<Create>,
    pub deletes: Vec<Delete>,
    /// The add-on's own status, where it changes. Written before any start: it reserves the wave.
    pub addon: Option<AddOnStatus>,
    /// Statuses that tell an instance another revision.
    pub starts: Vec<StatusWrite>,
    /// All other statuses that change.
    pub statuses: Vec<StatusWrite>,
    pub works: Vec<WorkWrite>,
    pub surplus_works: Vec<SurplusWork>,
    /// AddOnHubConfigs whose status should list the versions offered.
    pub hub_configs: Vec<ConfigRef>,
    /// Revisions that placements completed.
    pub completed: Vec<(PlacementName, Revision)>,
    /// Contents that nobody needs any more.
    pub forgets: Vec<Hash>,
    pub events: Vec<Event>,
    pub report: Report,
    /// When to look again if nothing happens before.
    pub recheck_at: Option<Timestamp>,
}

impl Plan {
    /// Nothing is to be written: the add-on is at rest.
    pub fn is_at_rest(&self) -> bool {
        let Self {
            keeps,
            creates,
            deletes,
            addon,
            starts,
            statuses,
            works,
            surplus_works,
            completed,
            forgets,
            hub_configs: _,
            events: _,
            report: _,
            recheck_at: _,
        } = self;
        keeps.is_empty()
            && creates.is_empty()
            && deletes.is_empty()
            && addon.is_none()
            && starts.is_empty()
            && statuses.is_empty()
            && works.is_empty()
            && surplus_works.is_empty()
            && completed.is_empty()
            && forgets.is_empty()
    }
}

/// One write of a plan.
#[derive(Clone, Debug)]
pub enum Write {
    Keep(Keep),
    Create(Create),
    Delete(Delete),
    AddOn(Box<AddOnStatus>),
    Instance(Box<StatusWrite>),
    Work(Box<WorkWrite>),
    DeleteWork(SurplusWork),
    Complete(PlacementName, Revision),
    Forget(Hash),
}

impl Plan {
    /// The writes, in the order in which it is safe to make them: content before anybody is told its hash, the add-on's status before
    /// a wave, that a cluster has settled before another takes its slot, what was told before it is rendered.
    pub fn writes(self) -> impl Iterator<Item = Write> {
        let Self {
            keeps,
            creates,
            deletes,
            addon,
            starts,
            statuses,
            works,
            surplus_works,
            completed,
            forgets,
            hub_configs: _,
            events: _,
            report: _,
            recheck_at: _,
        } = self;
        (keeps.into_iter().map(Write::Keep))
            .chain(completed.into_iter().map(|(placement, revision)| Write::Complete(placement, revision)))
            .chain(addon.into_iter().map(|status| Write::AddOn(Box::new(status))))
            .chain(creates.into_iter().map(Write::Create))
            .chain(deletes.into_iter().map(Write::Delete))
            .chain(statuses.into_iter().chain(starts).map(|write| Write::Instance(Box::new(write))))
            .chain(works.into_iter().map(|write| Write::Work(Box::new(write))))
            .chain(surplus_works.into_iter().map(Write::DeleteWork))
            .chain(forgets.into_iter().map(Write::Forget))
    }
}

/// Content to keep under its hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep {
    pub pin: Pin,
    pub content: Arc<Value>,
}

/// The status of one instance; to be written only over the very object it was decided for.
#[derive(Clone, Debug)]
pub struct StatusWrite {
    /// Its fields can be read as if they were the write's own, but for the status.
    pub instance: Held<Instance>,
    pub status: InstanceStatus,
}

impl Deref for StatusWrite {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

/// One work to create, or to put right.
#[derive(Clone, Debug)]
pub struct WorkWrite {
    pub cluster: ClusterName,
    pub name: String,
    /// Uid and resource version of the work that is there.
    pub replaces: Option<(Text, Text)>,
    prepared: Arc<Prepared>,
    index: usize,
    install_namespace: Text,
    instance_uid: Text,
    told: Revision,
}

impl WorkWrite {
    /// The work as it is to be written.
    pub fn object(&self) -> Value {
        let told: Vec<&Pin> = self.told.pins().iter().collect();
        let site = Site {
            cluster: &self.cluster,
            install_namespace: &self.install_namespace,
            instance_uid: &self.instance_uid,
        };
        self.prepared.work(self.index, &site, &told)
    }

    /// What it is rendered from.
    pub fn told(&self) -> &Revision {
        &self.told
    }

    /// The mark of all that it is rendered from.
    pub fn inputs(&self) -> String {
        self.prepared.inputs(&self.install_namespace)
    }

    pub fn version(&self) -> Option<&Text> {
        self.prepared.version.as_ref()
    }

    pub fn instance_uid(&self) -> &Text {
        &self.instance_uid
    }
}

/// A work of an earlier, longer template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurplusWork {
    pub cluster: ClusterName,
    pub name: Text,
    pub uid: Text,
}

/// Something worth telling people once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub placement: PlacementName,
    pub reason: &'static str,
    pub message: String,
}

/// Why, for every cluster and every placement.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In order of cluster name.
    pub clusters: Vec<ClusterReport>,
    pub placements: Vec<PlacementReport>,
    pub problems: Vec<Problem>,
    /// The add-on is left alone, and why.
    pub left_alone: Option<&'static str>,
}

/// Small: a fleet has thousands, and few different ones.
#[derive(Clone, Debug)]
pub struct ClusterReport {
    pub cluster: ClusterName,
    /// Its fields can be read as if they were the report's own.
    pub why: Arc<Why>,
}

impl Deref for ClusterReport {
    type Target = Why;

    fn deref(&self) -> &Why {
        &self.why
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    pub placement: Option<usize>,
    pub decision: Decision,
    /// The version or, without versions, the revision that it has been told after this pass.
    pub told: Option<Text>,
}

#[derive(Clone, Debug)]
pub struct PlacementReport {
    pub name: PlacementName,
    pub state: State,
    pub counts: Counts,
    /// `Progressing`, as it stands in the status.
    pub reason: &'static str,
    pub message: String,
    pub desired: Option<Text>,
    pub target: Option<Text>,
}

/// Decides everything about one add-on.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    // Kubernetes keeps times in whole seconds: what is written must read back as the same.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let mut plan = Plan::default();
    if observed.addon.self_managed {
        plan.report.left_alone = Some("its lifecycle annotation says that it manages itself");
        return plan;
    }
    if observed.addon.deleting {
        plan.report.left_alone = Some("it is being deleted, and its instances with it");
        return plan;
    }
    let fleet = Fleet::line_up(observed);
    let install = install::decide(&fleet);
    let outcomes: Vec<Outcome> =
        fleet.governors.iter().map(|governor| rollout::decide(&fleet, governor, now)).collect();
    let free = rollout::decide(&fleet, &fleet.free, now);

    plan.keeps = keeps(&fleet);
    members::decide(&fleet, &install, &outcomes, &free, now, &mut plan);
    let status = status::addon::next(&fleet, &install, &outcomes, now);
    plan.addon = (!same_status(&status, &observed.addon.status)).then_some(status);
    plan.hub_configs = hub_configs(observed);
    for (governor, outcome) in fleet.governors.iter().zip(&outcomes) {
        let name = &governor.spec.name;
        plan.completed.extend(outcome.completed.clone().map(|revision| (name.clone(), revision)));
        plan.events.extend(events(&fleet, governor, outcome));
        let (_, reason, message) = status::addon::summary(&fleet, governor, outcome);
        plan.report.placements.push(PlacementReport {
            name: name.clone(),
            state: outcome.state.clone(),
            counts: outcome.counts,
            reason,
            message,
            desired: outcome.aim.desired.as_ref().ok().map(|revision| label(observed, revision)),
            target: outcome.aim.target.as_ref().map(|revision| label(observed, revision)),
        });
    }
    plan.recheck_at = outcomes.iter().chain([&free]).filter_map(|outcome| outcome.recheck_at).min();
    plan.forgets = forgets(&fleet, &outcomes);
    plan.creates = install.creates;
    plan.deletes = install.deletes;
    plan.report.problems = fleet.problems.into_iter().chain(install.problem).collect();
    plan
}

/// A revision for people: its version, else its id.
pub fn label(observed: &Observed, revision: &Revision) -> Text {
    crate::versions::of_revision(observed, revision).unwrap_or_else(|| revision.id())
}

fn same_status(a: &AddOnStatus, b: &AddOnStatus) -> bool {
    let AddOnStatus { placements, supported_versions, default_version, conditions } = a;
    *supported_versions == b.supported_versions
        && *default_version == b.default_version
        && *conditions == b.conditions
        && placements.len() == b.placements.len()
        && placements.iter().zip(&b.placements).all(|((name, one), (other_name, other))| {
            let same = |x: &Option<Revision>, y: &Option<Revision>| match (x, y) {
                (Some(x), Some(y)) => x.same_names(y),
                (None, None) => true,
                _ => false,
            };
            name == other_name
                && same(&one.desired, &other.desired)
                && same(&one.known_good, &other.known_good)
                && same(&one.applied, &other.applied)
                && one.conditions == other.conditions
        })
}

/// Contents that somebody is, or is about to be, told, and that are not kept yet. The version shorthand needs no keeping: its
/// name is its content.
fn keeps(fleet: &Fleet<'_>) -> Vec<Keep> {
    let observed = fleet.observed;
    let wanted =
        fleet.governors.iter().chain([&fleet.free]).filter_map(|governor| governor.desired.as_ref().ok());
    let own = fleet.overridden.iter().flat_map(|(_, overrides)| &overrides.pins);
    let mut seen = HashSet::new();
    wanted
        .flat_map(Revision::pins)
        .chain(own)
        .filter(|pin| !observed.revisions.contents.contains_key(&pin.hash) && seen.insert(&pin.hash))
        .filter_map(|pin| Some(Keep { pin: pin.clone(), content: Arc::clone(observed.content(pin)?) }))
        .collect()
}

/// Kept contents that are neither wanted, known good, applied, told, nor in any placement's history.
fn forgets(fleet: &Fleet<'_>, outcomes: &[Outcome]) -> Vec<Hash> {
    let observed = fleet.observed;
    let mut left: HashSet<&Hash> = observed.revisions.contents.keys().collect();
    let mut need = |pins: &[Pin]| {
        for pin in pins {
            left.remove(&pin.hash);
        }
    };
    for (governor, outcome) in fleet.governors.iter().zip(outcomes) {
        let aim = &outcome.aim;
        let remembered = governor
            .recorded
            .into_iter()
            .flat_map(|recorded| [&recorded.desired, &recorded.known_good, &recorded.applied]);
        let current = [&aim.target, &aim.canary_target, &aim.known_good, &outcome.applied];
        for revision in remembered.chain(current).flatten() {
            need(revision.pins());
        }
        for revision in governor.completed.iter().rev().take(observed.options.history_limit) {
            need(revision.pins());
        }
    }
    if let Ok(revision) = &fleet.free.desired {
        need(revision.pins());
    }
    let told = fleet.known.iter().filter_map(|known| known.status).flat_map(|status| &status.references);
    let told = told.flat_map(|reference| [&reference.desired, &reference.applied]).flatten();
    let own = fleet.overridden.iter().flat_map(|(_, overrides)| &overrides.pins);
    for pin in told.chain(own) {
        if left.is_empty() {
            break;
        }
        left.remove(&pin.hash);
    }
    let mut forgets: Vec<Hash> = left.into_iter().cloned().collect();
    forgets.sort();
    forgets
}

/// The AddOnHubConfigs that the add-on or its instances reference and that exist.
fn hub_configs(observed: &Observed) -> Vec<ConfigRef> {
    if !observed.renders_templates() {
        return Vec::new();
    }
    observed
        .configs
        .iter()
        .filter(|(config, found)| {
            config.kind == *GroupResource::hub_configs() && matches!(found, Lookup::Found(_))
        })
        .map(|(config, _)| config.clone())
        .collect()
}

/// What happened since the recorded status, told once: an event follows a change of what is recorded.
fn events(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &Outcome) -> Vec<Event> {
    let mut events = Vec::new();
    let mut tell =
        |reason, message| events.push(Event { placement: governor.spec.name.clone(), reason, message });
    let recorded = governor.recorded;
    let clusters = outcome.counts.governed;
    if let Ok(desired) = &outcome.aim.desired
        && !desired.is_empty()
        && recorded.and_then(|recorded| recorded.desired.as_ref()) != Some(desired)
    {
        let shown = label(fleet.observed, desired);
        match governor.completed.contains(desired) {
            true => tell("RolledBack", format!("rolling back to {shown} on {clusters} clusters")),
            false => tell("RolloutStarted", format!("rolling out {shown} to {clusters} clusters")),
        }
    }
    if let (Some(Promotion::CanaryPassed), Some(passed)) = (outcome.aim.promotion, &outcome.aim.known_good) {
        tell("CanaryPassed", format!("{} passed the canary", label(fleet.observed, passed)));
    }
    if let Some(completed) = &outcome.completed {
        tell(
            "RolloutCompleted",
            format!("all {clusters} clusters have {}", label(fleet.observed, completed)),
        );
    }
    let progressing = recorded.and_then(|recorded| Condition::find(&recorded.conditions, PROGRESSING));
    let was_failed =
        progressing.is_some_and(|condition| matches!(&*condition.reason, "InstallFailed" | "UpgradeFailed"));
    if let State::Failed(failure) = &outcome.state
        && !was_failed
    {
        let stands = matches!(failure, Failure::Halted { .. } | Failure::Stalled { .. });
        tell(if stands { "RolloutHalted" } else { "RolloutFailed" }, failure.to_string());
    }
    events
}
