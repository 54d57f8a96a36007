//! Combines all decisions: takes a snapshot and a time, and returns what to write and a reason for
//! every cluster.
//!
//! Deterministic and total. An empty plan means that the add-on is at rest. The writes for one
//! cluster take several passes: its status records the assigned revision, then its works are
//! rendered from that, then its status records what was applied. If anything is lost in between,
//! the next pass resumes from the current state.

mod counts;
mod events;
mod members;
mod report;
mod works;

pub use counts::{COUNTS_AT_MOST_EVERY, same_status};
pub use report::{ClusterReport, PlacementReport, Report, Why};

use std::collections::{BTreeMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use aviary_api::names::conditions::PROGRESSING;
use jiff::Timestamp;
use serde_json::Value;

use crate::attempts::Attempt;
use crate::by_cluster::RowRef;
use crate::configs::{ConfigRef, Pin, Revision};
use crate::content::ConfigContent;
use crate::explain::Decision;
use crate::fleet::{Cohort, Fleet, Governor, Unprobed};
use crate::hash::Hash;
use crate::health::Health;
use crate::health::ObjectMark;
use crate::hooks::{self, Ending};
use crate::install::{self, Create, Delete};
use crate::name::{ClusterName, PlacementName, Text};
use crate::observed::{AddOnStatus, Instance, InstanceStatus, Lookup, Maker, Observed, ObservedCondition};
use crate::problem::Problem;
use crate::reason::EventReason;
use crate::render::{Prepared, WorkSite};
use crate::rollout::{self, PlacementOutcome};
use crate::status;
use crate::tally::ClusterTally;
use crate::versions::MOST_VERSIONS;

/// The writes in a safe order, and the reasons for them.
#[derive(Debug, Default)]
pub struct Plan {
    /// In order of [`Step`].
    pub stages: Vec<Stage>,
    /// Published after the add-on's status has recorded the transitions that they report.
    pub events: Vec<Event>,
    pub report: Report,
    /// When to plan again if nothing changes before.
    pub recheck_at: Option<Timestamp>,
}

/// Writes that may run concurrently, after the previous stage is finished.
#[derive(Debug)]
pub struct Stage {
    pub step: Step,
    /// Never empty, except for a reservation that does not change the add-on's status.
    pub writes: Vec<Write>,
}

/// The purpose of a stage. The order of the variants is the order of the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Content is stored before any instance is assigned its hash.
    Keep,
    /// Comes before the add-on's status records the rollback. If the manager died in between, a
    /// later return to a revision that is not withdrawn would look like a rollback and bypass the
    /// gate.
    Withdraw,
    Complete,
    /// The add-on's own status reserves the wave: a manager that no longer leads fails here and
    /// starts nothing.
    Reserve,
    /// An approved deletion is on record before anything is deleted.
    Record,
    Offer,
    Create,
    Delete,
    /// Settled statuses come before starts: an observer that counts statuses never sees more than
    /// the budget in flight.
    Settle,
    /// Statuses that assign an instance another revision.
    Start,
    /// Finalizers of instances: put on before anything is deployed that needs pre-delete hooks, and
    /// taken off when the hooks have run.
    Guard,
    /// Works are rendered from what a status records, so they follow the statuses.
    Render,
    RemoveWorks,
    Forget,
}

impl Step {
    /// Whether later stages may run only if all writes of this one succeeded.
    pub fn is_required(self) -> bool {
        match self {
            Self::Keep | Self::Withdraw | Self::Complete | Self::Reserve | Self::Record => true,
            Self::Offer
            | Self::Create
            | Self::Delete
            | Self::Settle
            | Self::Start
            | Self::Guard
            | Self::Render
            | Self::RemoveWorks
            | Self::Forget => false,
        }
    }
}

/// One write of a plan.
#[derive(Clone, Debug)]
pub enum Write {
    Keep(Keep),
    /// Stored content stays while hooks may need it.
    Hold(Hash),
    Withdraw(PlacementName, Revision),
    Complete(Completion),
    AddOn(Box<AddOnStatus>),
    Record(Box<RecordWrite>),
    Offer(Offer),
    Create(Create),
    Delete(Delete),
    Instance(StatusWrite),
    Guard(GuardWrite),
    Work(Box<WorkWrite>),
    DeleteWork(SurplusWork),
    Forget(Hash),
}

impl Plan {
    fn new(drafts: Drafts, events: Vec<Event>, report: Report, recheck_at: Option<Timestamp>) -> Self {
        let stages = drafts.0.into_iter().map(|(step, writes)| Stage { step, writes }).collect();
        Self { stages, events, report, recheck_at }
    }

    fn left_alone(why: &'static str) -> Self {
        Self { report: Report { left_alone: Some(why), ..Report::default() }, ..Self::default() }
    }

    /// A plan with only these deletions.
    pub fn of_deletes(deletes: Vec<Delete>) -> Self {
        let mut drafts = Drafts::default();
        drafts.extend(Step::Delete, deletes.into_iter().map(Write::Delete));
        Self::new(drafts, Vec::new(), Report::default(), None)
    }

    /// The same plan, with a report of recorded facts instead of planned ones. For everything that
    /// shows a state.
    pub fn recorded(mut self) -> Self {
        self.report = self.report.recorded();
        self
    }

    /// Nothing has to be written.
    pub fn is_at_rest(&self) -> bool {
        self.stages.is_empty()
    }

    /// All writes, in order.
    pub fn writes(self) -> impl Iterator<Item = Write> {
        self.stages.into_iter().flat_map(|stage| stage.writes)
    }

    /// The writes of one step.
    pub fn step(&self, step: Step) -> &[Write] {
        self.stages.iter().find(|stage| stage.step == step).map_or(&[], |stage| &stage.writes)
    }

    /// The instances that are assigned another revision.
    pub fn starts(&self) -> impl Iterator<Item = &StatusWrite> {
        self.step(Step::Start).iter().filter_map(|write| match write {
            Write::Instance(write) => Some(write),
            _ => None,
        })
    }

    /// The add-on's status, where it changes.
    pub fn addon(&self) -> Option<&AddOnStatus> {
        self.step(Step::Reserve).iter().find_map(|write| match write {
            Write::AddOn(status) => Some(&**status),
            _ => None,
        })
    }
}

/// The stages while they are being filled.
#[derive(Debug, Default)]
pub(crate) struct Drafts(BTreeMap<Step, Vec<Write>>);

impl Drafts {
    pub(crate) fn push(&mut self, step: Step, write: Write) {
        self.0.entry(step).or_default().push(write);
    }

    pub(crate) fn extend(&mut self, step: Step, writes: impl IntoIterator<Item = Write>) {
        let mut writes = writes.into_iter().peekable();
        if writes.peek().is_some() {
            self.0.entry(step).or_default().extend(writes);
        }
    }
}

/// What is remembered of an add-on, written on condition that its record is unchanged.
#[derive(Clone, Debug)]
pub struct RecordWrite {
    /// Empty if there is no record yet.
    pub uid: Text,
    pub resource_version: Text,
    pub generation: i64,
    pub addon_generation: i64,
    pub conditions: Vec<ObservedCondition>,
    pub attempts: Vec<Attempt>,
    /// How many deletions have been approved and are under way.
    pub acknowledged: Option<usize>,
}

/// A revision that a placement has completed, and how many completions to keep, including this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub placement: PlacementName,
    pub revision: Revision,
    pub keep: usize,
    /// When the rollout to it began, if the status records it.
    pub started: Option<Timestamp>,
}

/// An AddOnHubConfig and the versions that its status should list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub config: ConfigRef,
    pub versions: Vec<Text>,
}

/// Content to keep under its hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep {
    pub pin: Pin,
    pub content: ConfigContent,
    /// Hooks may need it, also after the add-on is deleted.
    pub held: bool,
}

/// The status of one instance, written on condition that the instance is unchanged.
#[derive(Clone, Debug)]
pub struct StatusWrite {
    /// Accessible through `Deref`, except for its status.
    pub instance: RowRef<Instance>,
    pub status: InstanceStatus,
    /// `status.supportedConfigs` may be written: it is not that of the add-on's own manager.
    pub owns_supported: bool,
}

impl Deref for StatusWrite {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

/// The metadata of one instance, written on condition that the instance is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardWrite {
    pub cluster: ClusterName,
    pub uid: Text,
    pub resource_version: Text,
    /// All that the instance should have; `None` if they stay as they are.
    pub finalizers: Option<Vec<Text>>,
    /// The add-on becomes an owner.
    pub owns: bool,
    /// Beside others.
    pub has_other_owners: bool,
    /// The value of the marker label, if it gets one.
    pub marker: Option<&'static str>,
    /// Annotations that it gets from its cluster, beside those that it has.
    pub annotations: BTreeMap<Text, Text>,
    /// Why hooks no longer hold it, if they do not.
    pub ending: Option<Ending>,
}

impl GuardWrite {
    pub(crate) fn new(instance: &Instance, finalizers: Option<Vec<Text>>, ending: Option<Ending>) -> Self {
        let Instance { cluster, uid, resource_version, .. } = instance;
        Self {
            cluster: cluster.clone(),
            uid: uid.clone(),
            resource_version: resource_version.clone(),
            finalizers,
            owns: false,
            has_other_owners: instance.has_other_owners,
            marker: None,
            annotations: BTreeMap::new(),
            ending,
        }
    }

    /// It only annotates the instance.
    pub fn only_annotates(&self) -> bool {
        self.finalizers.is_none() && !self.owns && self.marker.is_none()
    }
}

/// Which of a cluster's works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkPart {
    /// The deploy work of this index.
    Deploy(usize),
    /// The pre-delete hooks.
    Hooks,
}

/// A work to create or to restore.
#[derive(Clone, Debug)]
pub struct WorkWrite {
    pub cluster: ClusterName,
    pub name: String,
    /// UID and resource version of the existing work.
    pub replaces: Option<(Text, Text)>,
    prepared: Arc<Prepared>,
    part: WorkPart,
    install_namespace: Text,
    instance_uid: Text,
    told: Revision,
}

impl WorkWrite {
    pub(crate) fn new(
        instance: &Instance,
        prepared: &Arc<Prepared>,
        part: WorkPart,
        replaces: Option<(Text, Text)>,
    ) -> Self {
        let name = match part {
            WorkPart::Deploy(index) => prepared.work_name(index),
            WorkPart::Hooks => prepared.hook_work_name(),
        };
        Self {
            cluster: instance.cluster.clone(),
            name,
            replaces,
            prepared: Arc::clone(prepared),
            part,
            install_namespace: instance.install_namespace.clone(),
            instance_uid: instance.uid.clone(),
            told: instance.status.told_revision(),
        }
    }

    /// The work to write.
    pub fn object(&self) -> Value {
        match self.part {
            WorkPart::Deploy(index) => {
                let told: Vec<&Pin> = self.told.pins().iter().collect();
                self.prepared.work(index, &self.site(), &told)
            }
            WorkPart::Hooks => self.prepared.hook_work(&self.site()),
        }
    }

    /// Whether it takes much memory while it is written.
    pub fn is_heavy(&self) -> bool {
        self.prepared.is_heavy()
    }

    pub fn part(&self) -> WorkPart {
        self.part
    }

    /// What it is rendered from.
    pub fn told(&self) -> &Revision {
        &self.told
    }

    /// The annotation that names everything it is rendered from.
    pub fn inputs(&self) -> String {
        self.prepared.inputs(&self.install_namespace)
    }

    pub fn version(&self) -> Option<&Text> {
        self.prepared.version.as_ref()
    }

    /// What is known about its health before the agent has reported anything.
    pub fn health_before_reports(&self) -> Health {
        if self.part == WorkPart::Hooks {
            return Health::Unknown { why: "the hooks have not completed".into() };
        }
        match self.probed_object() {
            Some(object) => Health::Unknown {
                why: format!("{object}: the work agent has not reported its health yet").into(),
            },
            None => Health::Healthy,
        }
    }

    /// The first object whose health the agent is asked for.
    pub(crate) fn probed_object(&self) -> Option<String> {
        let WorkPart::Deploy(index) = self.part else { return None };
        let object = self.prepared.probed_object(index)?;
        Some(object.replace("{{INSTALL_NAMESPACE}}", &self.install_namespace))
    }

    /// The objects in it; not worked out where the cluster has no other work.
    pub(crate) fn objects(&self) -> Vec<ObjectMark> {
        match self.part {
            WorkPart::Deploy(index) if self.prepared.works() > 1 => {
                self.prepared.objects(index, &self.site())
            }
            _ => Vec::new(),
        }
    }

    fn site(&self) -> WorkSite<'_> {
        WorkSite {
            cluster: &self.cluster,
            install_namespace: &self.install_namespace,
            instance_uid: &self.instance_uid,
        }
    }

    /// The instance that it is written for.
    pub fn instance_uid(&self) -> &Text {
        &self.instance_uid
    }
}

/// A work that the current template no longer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurplusWork {
    pub cluster: ClusterName,
    pub name: Text,
    pub uid: Text,
}

/// A Kubernetes Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub placement: PlacementName,
    pub reason: EventReason,
    pub message: String,
}

/// Decides everything about one add-on.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    // Kubernetes stores times in whole seconds, and a value must be the same when it is read back.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    if observed.addon.self_managed {
        return Plan::left_alone("its lifecycle annotation says that it manages itself");
    }
    if observed.addon.deleting {
        return leaving(observed, now);
    }
    let fleet = Fleet::line_up(observed);
    let install = install::decide(&fleet);
    let outcomes: Vec<PlacementOutcome> =
        fleet.governors.iter().map(|governor| rollout::decide(&fleet, governor, now)).collect();
    let free = rollout::decide(&fleet, &fleet.free, now);

    let mut drafts = Drafts::default();
    let clusters = members::decide(&fleet, &install, &outcomes, &free, now, &mut drafts);
    let for_hooks = hooks::draft::needed(&fleet);
    drafts.extend(Step::Keep, keeps(&fleet, &for_hooks).into_iter().map(Write::Keep));
    drafts.extend(Step::Keep, hooks::draft::holds(observed, &for_hooks).into_iter().map(Write::Hold));
    let hooks_until = hooks::draft::leaving(&fleet, now, &mut drafts);
    for (governor, outcome) in fleet.governors.iter().zip(&outcomes) {
        record(observed, governor, outcome, &mut drafts);
    }
    // The status is written with the rest of the plan, so it counts what the plan starts, as its
    // messages do. Otherwise every wave would need another write.
    let (_, tally) = ClusterTally::by_placement(0, &clusters, Decision::next_state);
    let mut status = status::addon::next(&fleet, &install, &outcomes, &free, tally, now);
    drafts.extend(Step::Record, remember(observed, &mut status, install.acknowledged));
    let offers = offers(observed, &status.supported_versions);
    drafts.extend(Step::Offer, offers.into_iter().map(Write::Offer));
    if !same_status(&status, &observed.addon.status) {
        drafts.push(Step::Reserve, Write::AddOn(Box::new(status)));
    } else if drafts.0.contains_key(&Step::Start) {
        drafts.0.entry(Step::Reserve).or_default();
    }
    drafts.extend(Step::Forget, forgets(&fleet, &outcomes).into_iter().map(Write::Forget));
    drafts.extend(Step::Create, install.creates.into_iter().map(Write::Create));
    drafts.extend(Step::Delete, install.deletes.into_iter().map(Write::Delete));

    if fleet.is_unnameable() {
        // The API would refuse every object that is labelled with the add-on's name.
        drafts.0.retain(|step, _| matches!(step, Step::Reserve | Step::Record));
    }
    let events = fleet.governors.iter().zip(&outcomes);
    let events = events.flat_map(|(governor, outcome)| events::of(&fleet, governor, outcome)).collect();
    let recheck_at = outcomes.iter().chain([&free]).filter_map(|outcome| outcome.recheck_at);
    let recheck_at = recheck_at.chain(hooks_until).min();
    Plan::new(drafts, events, report(fleet, outcomes, clusters, install.problem), recheck_at)
}

fn report(
    fleet: Fleet<'_>,
    outcomes: Vec<PlacementOutcome>,
    clusters: Vec<ClusterReport>,
    brake: Option<Problem>,
) -> Report {
    let (tallies, _) = ClusterTally::by_placement(fleet.governors.len(), &clusters, Decision::state);
    let placements = fleet.governors.iter().zip(&outcomes).zip(tallies);
    let placements =
        placements.map(|((governor, outcome), tally)| placement(&fleet, governor, outcome, tally)).collect();
    let unprobed = |by: Unprobed| -> usize {
        let is_it =
            |cohort: &&Cohort<'_>| cohort.facts.instance.as_ref().is_some_and(|one| one.unprobed == Some(by));
        fleet.cohorts.iter().filter(is_it).map(|cohort| cohort.members.len()).sum()
    };
    let not_probed_of_another = unprobed(Unprobed::ByAnotherManager);
    let not_probed = unprobed(Unprobed::ByEarlierVersion) + not_probed_of_another;
    let [accepted, adopted, by_users] = taken_over(&fleet);
    let gates = outcomes.into_iter().filter_map(|outcome| outcome.aim.gate_problem);
    let problems = fleet.problems.into_iter().chain(brake).chain(gates).collect();
    Report {
        clusters,
        placements,
        problems,
        not_probed,
        not_probed_of_another,
        accepted,
        adopted,
        by_users,
        left_alone: None,
    }
}

/// An add-on that is being deleted, or that does not exist any more: nothing is rolled out. Hooks
/// run before the instances are removed. The stored content from which they are rendered is deleted
/// afterwards.
fn leaving(observed: &Observed, now: Timestamp) -> Plan {
    let report = Plan::left_alone("it is being deleted, and its instances with it").report;
    let mut drafts = Drafts::default();
    let mut abandoned = install::abandoned(&observed.instances, &observed.clusters);
    // OCM's registration removes them on its hubs.
    let is_ocm = observed.served.is_ocm();
    abandoned.retain(|delete| !is_ocm && !observed.refused.contains_key(&delete.cluster));
    drafts.extend(Step::Delete, abandoned.into_iter().map(Write::Delete));
    if !observed.instances.has_guarded() && observed.revisions.held.is_empty() {
        return Plan::new(drafts, Vec::new(), report, None);
    }
    let fleet = Fleet::line_up(observed);
    let recheck_at = hooks::draft::leaving(&fleet, now, &mut drafts);
    let released = hooks::draft::released(observed, &fleet);
    drafts.extend(Step::Forget, released.into_iter().map(Write::Forget));
    Plan::new(drafts, Vec::new(), report, recheck_at)
}

/// Moves conditions and attempts into the record, if the add-on's own status cannot hold them.
fn remember(observed: &Observed, status: &mut AddOnStatus, acknowledged: Option<usize>) -> Option<Write> {
    let record = observed.record.as_ref().filter(|_| !observed.served.addon_conditions)?;
    let before = &observed.addon.status;
    let conditions = std::mem::replace(&mut status.conditions, before.conditions.clone());
    let attempts = std::mem::replace(&mut status.attempts, before.attempts.clone());
    (conditions != before.conditions || attempts != before.attempts).then(|| {
        Write::Record(Box::new(RecordWrite {
            uid: record.uid.clone(),
            resource_version: record.resource_version.clone(),
            generation: record.generation,
            addon_generation: observed.addon.generation,
            conditions,
            attempts,
            acknowledged,
        }))
    })
}

/// Records completed and withdrawn revisions.
fn record(observed: &Observed, governor: &Governor<'_>, outcome: &PlacementOutcome, drafts: &mut Drafts) {
    let name = &governor.spec.name;
    let completed = outcome.completed.iter().map(|revision| {
        let keep = observed.options.history_limit;
        let progressing =
            governor.recorded.and_then(|recorded| ObservedCondition::find(&recorded.conditions, PROGRESSING));
        let started = progressing.filter(|condition| condition.is_true()).and_then(|is| is.since);
        Write::Complete(Completion { placement: name.clone(), revision: revision.clone(), keep, started })
    });
    drafts.extend(Step::Complete, completed);
    let withdrawn = outcome.withdrawn.iter();
    drafts.extend(Step::Withdraw, withdrawn.map(|revision| Write::Withdraw(name.clone(), revision.clone())));
}

fn placement(
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    outcome: &PlacementOutcome,
    tally: ClusterTally,
) -> PlacementReport {
    let (_, reason, sentence) = status::addon::summary(fleet, governor, outcome);
    PlacementReport {
        name: governor.spec.name.clone(),
        state: outcome.state.clone(),
        counts: outcome.counts,
        tally,
        reason,
        message: sentence.to_string(),
        sentence,
        desired: outcome.aim.desired.as_ref().ok().map(|revision| label(fleet.observed, revision)),
        target: outcome.aim.targets.target.as_ref().map(|revision| label(fleet.observed, revision)),
    }
}

/// The display name of a revision: its version, otherwise its id.
pub fn label(observed: &Observed, revision: &Revision) -> Text {
    crate::versions::of_revision(observed, revision).unwrap_or_else(|| revision.id())
}

/// Contents of assigned and desired revisions that are not stored yet. The version shorthand needs
/// no storage: its name is its content.
fn keeps(fleet: &Fleet<'_>, for_hooks: &HashSet<Hash>) -> Vec<Keep> {
    let observed = fleet.observed;
    let wanted =
        fleet.governors.iter().chain([&fleet.free]).filter_map(|governor| governor.desired.as_ref().ok());
    let own = fleet.overrides().flat_map(|overrides| &overrides.pins);
    let mut seen = HashSet::new();
    wanted
        .flat_map(Revision::pins)
        .chain(own)
        .filter(|pin| !observed.revisions.contents.contains_key(&pin.hash) && seen.insert(&pin.hash))
        .filter_map(|pin| {
            let held = for_hooks.contains(&pin.hash);
            Some(Keep { pin: pin.clone(), content: observed.unread_content(pin)?.clone(), held })
        })
        .collect()
}

/// Stored contents that are neither desired, known good, applied, assigned, nor in any placement's
/// history.
fn forgets(fleet: &Fleet<'_>, outcomes: &[PlacementOutcome]) -> Vec<Hash> {
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
        let current = [&aim.targets.target, &aim.targets.canary, &outcome.known_good, &outcome.applied];
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
    let instances = fleet.cohorts.iter().filter_map(|cohort| cohort.facts.instance.as_ref());
    let told = instances.flat_map(|instance| &instance.status.references);
    let told = told.flat_map(|reference| [&reference.desired, &reference.applied]).flatten();
    let own = fleet.overrides().flat_map(|overrides| &overrides.pins);
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

/// The AddOnHubConfigs whose status does not list the right versions. A config that several add-ons
/// reference lists the versions of all of them.
fn offers(observed: &Observed, versions: &[Text]) -> Vec<Offer> {
    if !observed.renders_templates() {
        return Vec::new();
    }
    let exists = |config: &ConfigRef| matches!(observed.configs.get(config), Some(Lookup::Found(_)));
    let offers = observed.offers.iter().filter(|(config, _)| exists(config)).filter_map(|(config, known)| {
        let mut all: BTreeMap<&Text, &[Text]> =
            known.others.iter().map(|(addon, versions)| (addon, versions.as_slice())).collect();
        all.insert(&observed.addon.name, versions);
        let mut wanted: Vec<Text> = Vec::new();
        for version in all.into_values().flatten() {
            if wanted.len() < MOST_VERSIONS && !wanted.contains(version) {
                wanted.push(version.clone());
            }
        }
        (known.listed != wanted).then(|| Offer { config: config.clone(), versions: wanted })
    });
    offers.collect()
}

/// How many clusters have accepted works, and how many instances are adopted and made by users.
fn taken_over(fleet: &Fleet<'_>) -> [usize; 3] {
    let mut counts = [0; 3];
    for cohort in &fleet.cohorts {
        let Some(instance) = cohort.facts.instance.as_ref().filter(|instance| !instance.terminating) else {
            continue;
        };
        let adopted = install::adoption(fleet, instance).is_some();
        let by_user = instance.made_by == Maker::User && !adopted;
        for (count, is_so) in counts.iter_mut().zip([instance.accepted, adopted, by_user]) {
            *count += if is_so { cohort.members.len() } else { 0 };
        }
    }
    counts
}
