//! The status of an add-on: one summary per placement, the versions it offers, and what is wrong
//! with its spec.
//!
//! Bounded whatever the fleet's size: counts, and at most ten named clusters.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use aviary_api::names::conditions::{
    DELETIONS_HELD, HEALTHY, INSTANCES_ADOPTED, NAMESPACES_MISSING, PLACEMENTS_RESOLVED, PROGRESSING,
    RECONCILING, STALLED, SUCCEEDED, VALID, WRITES_REFUSED,
};
use aviary_api::names::labels::INSTALLED_BY_STRATEGY;
use jiff::Timestamp;

use super::instance::Words;
use super::{Stated, ocm, refusals, set};
use crate::attempts;
use crate::configs::{ConfigRef, Revision};
use crate::explain::{Decision, Wait};
use crate::fleet::{Cohort, Fleet, Governor};
use crate::install::{self, Install, acknowledgement};
use crate::name::{ClusterName, Text, Word};
use crate::observed::{AddOnStatus, InstallRule, ObservedCondition, Recorded, RolloutSummary};
use crate::problem::Problem;
use crate::reason::Reason;
use crate::rollout::{Counts, Failure, PlacementOutcome, State, Unhealthy};
use crate::tally::ClusterTally;
use crate::verdict;
use crate::versions;

/// How many clusters or problems a message names at most.
pub(super) const NAMED: usize = 10;

/// The status that the add-on should have after this pass.
pub(crate) fn next(
    fleet: &Fleet<'_>,
    install: &Install,
    outcomes: &[PlacementOutcome],
    free: &PlacementOutcome,
    tally: ClusterTally,
    now: Timestamp,
) -> AddOnStatus {
    let addon = &fleet.observed.addon;
    let mut status = addon.status.clone();
    if fleet.observed.renders_templates() {
        let offered = fleet.resolver.offered.iter().take(versions::MOST_VERSIONS);
        status.supported_versions = offered.cloned().collect();
        status.default_version = versions::default_version(&fleet.resolver.offered);
    }
    status.placements = fleet
        .governors
        .iter()
        .zip(outcomes)
        .map(|(governor, outcome)| (governor.spec.name.clone(), recorded(fleet, governor, outcome, now)))
        .collect::<BTreeMap<_, _>>();
    status.observed_generation = Some(addon.generation);
    if fleet.observed.served.default_references {
        status.defaults = fleet.resolver.defaults();
    }
    status.attempts = attempts::next(fleet, outcomes, now);
    status.rollout = Some(RolloutSummary { version: desired_versions(fleet), tally });
    conditions(fleet, install, outcomes, &mut status, now);
    namespaces(fleet, install, &mut status, now);
    refused_writes(fleet, &mut status, now);
    kept_instances(fleet, &mut status, now);
    let all = overall(fleet, outcomes).or_else(|| without_placements(fleet, free));
    if let Some((status_of_all, reason, message)) = all {
        let stated = Stated { kind: PROGRESSING, status: status_of_all, reason, message: message.into() };
        set(&mut status.conditions, addon.generation, now, stated);
    }
    for stated in success(fleet, install, outcomes, free) {
        set(&mut status.conditions, addon.generation, now, stated);
    }
    fleet.observed.served.clip(&mut status, fleet.observed.record.is_some());
    status
}

/// The versions that the placements desire, each once.
fn desired_versions(fleet: &Fleet<'_>) -> Text {
    let mut versions: Vec<Text> = Vec::new();
    for revision in fleet.governors.iter().filter_map(|governor| governor.desired.as_ref().ok()) {
        let version = crate::plan::label(fleet.observed, revision);
        if !versions.contains(&version) && !revision.is_empty() && versions.len() < NAMED {
            versions.push(version);
        }
    }
    versions.join(", ").as_str().into()
}

/// How far the add-on as a whole is.
enum Success {
    Yes,
    /// It progresses by itself.
    NotYet {
        reason: Reason,
        message: String,
    },
    /// Somebody must fix something first.
    Stuck {
        reason: Reason,
        message: String,
    },
}

/// What `kubectl wait` and GitOps tools look at: `Succeeded`, and `Reconciling` and `Stalled` as
/// kstatus reads them.
fn success(
    fleet: &Fleet<'_>,
    install: &Install,
    outcomes: &[PlacementOutcome],
    free: &PlacementOutcome,
) -> [Stated; 3] {
    let (succeeded, reconciling, stalled) = match judge(fleet, install, outcomes, free) {
        Success::Yes => {
            let message = || Word::from("every placement has completed the desired revision");
            (
                ("True", Reason::Settled, message()),
                ("False", Reason::Settled, message()),
                ("False", Reason::Settled, message()),
            )
        }
        Success::NotYet { reason, message } => {
            let (message, same) = (Word::from(message.clone()), Word::from(message));
            let stalled = ("False", Reason::NotStalled, "nothing is stalled".into());
            (("False", reason, message), ("True", reason, same), stalled)
        }
        Success::Stuck { reason, message } => {
            let (message, same) = (Word::from(message.clone()), Word::from(message));
            (
                ("False", reason, message),
                ("False", Reason::Stalled, "the rollout continues when the cause is fixed".into()),
                ("True", reason, same),
            )
        }
    };
    let stated = |kind, (status, reason, message)| Stated { kind, status, reason, message };
    [stated(SUCCEEDED, succeeded), stated(RECONCILING, reconciling), stated(STALLED, stalled)]
}

/// The order of the questions is the policy: what somebody must fix comes before what time fixes.
fn judge(
    fleet: &Fleet<'_>,
    install: &Install,
    outcomes: &[PlacementOutcome],
    free: &PlacementOutcome,
) -> Success {
    stuck(fleet, install, outcomes)
        .or_else(|| unsettled(fleet, outcomes))
        .or_else(|| incomplete(fleet, install))
        .unwrap_or_else(|| ungoverned(fleet, free))
}

/// What somebody must fix first.
fn stuck(fleet: &Fleet<'_>, install: &Install, outcomes: &[PlacementOutcome]) -> Option<Success> {
    for (governor, outcome) in fleet.governors.iter().zip(outcomes) {
        let unknown = !governor.known;
        if unknown || matches!(outcome.state, State::Failed(_)) {
            let (_, reason, message) = summary(fleet, governor, outcome);
            return Some(Success::Stuck { reason, message: format!("{}: {message}", governor.spec.name) });
        }
    }
    // Held deletions go on only after an approval.
    let problem = fleet.problems.iter().chain(&install.problem).find(|problem| !problem.is_warning())?;
    Some(Success::Stuck { reason: problem.code(), message: problem.to_string() })
}

/// A placement that has not completed its revision.
fn unsettled(fleet: &Fleet<'_>, outcomes: &[PlacementOutcome]) -> Option<Success> {
    // Before its clusters are known, a placement has completed nothing.
    let uncertain =
        fleet.governors.iter().find_map(|governor| verdict::uncertain(fleet.observed, governor.spec));
    if let Some((reason, message)) = uncertain {
        return Some(Success::NotYet { reason, message });
    }
    // A rollout stays completed while clusters join; the add-on has not succeeded on those yet.
    let all = || {
        fleet.governors.iter().zip(outcomes).filter(|(_, outcome)| {
            outcome.counts.fresh > 0
                || !matches!(outcome.state, State::Empty | State::InstallSucceeded | State::UpgradeSucceeded)
        })
    };
    // A pause is the reason only where nothing moves.
    let paused = all().find(|(_, outcome)| outcome.state == State::Paused);
    let paused = paused.filter(|_| !all().any(|(_, outcome)| is_moving(outcome)));
    let (governor, outcome) = paused.or_else(|| all().next())?;
    let (truth, reason, message) = summary(fleet, governor, outcome);
    let name = &governor.spec.name;
    let (reason, message) = match truth {
        _ if paused.is_some() => (Reason::Paused, format!("{name}: {message}")),
        "True" => (reason, format!("{name}: {message}")),
        _ => (Reason::Installing, format!("{name}: {} installing...", outcome.counts.fresh)),
    };
    let is_paused = |(other, outcome): &(&Governor<'_>, &PlacementOutcome)| {
        // The message names its own pause.
        let is_named = std::ptr::eq(*other, governor) && outcome.state == State::Paused;
        other.spec.rollout.paused && !is_named
    };
    let names: Vec<String> =
        all().filter(is_paused).take(NAMED).map(|(other, _)| other.spec.name.to_string()).collect();
    let also = if outcome.state == State::Paused { "also paused" } else { "paused" };
    let paused = if names.is_empty() { String::new() } else { format!("; {also}: {}", names.join(", ")) };
    Some(Success::NotYet { reason, message: message + &paused })
}

/// Whether some cluster of the placement is started, or in flight and not failed.
fn is_moving(outcome: &PlacementOutcome) -> bool {
    let moves = |decision: &Decision| match decision {
        Decision::Start(_) => true,
        Decision::InFlight(flight) => !flight.is_failure(),
        _ => false,
    };
    outcome.counts.fresh > 0 || outcome.moves.iter().flatten().any(|run| moves(&run.decided.decision))
}

/// Instances that do not exist yet, and writes that the hub refuses.
fn incomplete(fleet: &Fleet<'_>, install: &Install) -> Option<Success> {
    let is_missing = |decision: &Option<Decision>| {
        matches!(decision, Some(Decision::Create | Decision::Hold(Wait::NamespaceMissing)))
    };
    let decided = fleet.cohorts.iter().zip(&install.decisions).filter(|(_, decision)| is_missing(decision));
    let missing: usize = decided.map(|(cohort, _)| cohort.members.len()).sum();
    if missing > 0 {
        let message = format!("{} no instance yet", counted_as(missing, "cluster has", "clusters have"));
        return Some(Success::NotYet { reason: Reason::Installing, message });
    }
    let count = count_refused(fleet);
    (count > 0).then(|| {
        let clusters = counted_as(count, "cluster", "clusters");
        let message = format!("the hub refuses what is to be written for {clusters}");
        Success::NotYet { reason: Reason::WriteRefused, message }
    })
}

/// Instances that no placement governs.
fn ungoverned(fleet: &Fleet<'_>, free: &PlacementOutcome) -> Success {
    let Counts { governed, settled, left_out, .. } = free_counts(fleet, free);
    match governed - settled - left_out {
        0 => Success::Yes,
        count => Success::NotYet {
            reason: Reason::Upgrading,
            message: format!("{count} that no placement governs have not settled"),
        },
    }
}

/// The add-on in one line: that of the placement that most needs attention.
fn overall(fleet: &Fleet<'_>, outcomes: &[PlacementOutcome]) -> Option<(&'static str, Reason, String)> {
    let urgency = |governor: &Governor<'_>, state: &State| match state {
        _ if !governor.known => 0,
        State::Failed(_) => 0,
        State::Upgrading | State::Installing | State::Paused => 1,
        State::WaitingForCanary(_) => 2,
        State::UpgradeSucceeded => 3,
        State::InstallSucceeded => 4,
        State::Empty => 5,
    };
    let (governor, outcome) = fleet
        .governors
        .iter()
        .zip(outcomes)
        .min_by_key(|(governor, outcome)| urgency(governor, &outcome.state))?;
    let (status, reason, message) = summary(fleet, governor, outcome);
    Some((status, reason, format!("{}: {message}", governor.spec.name)))
}

/// The same where there is no placement any more: what was said of one must not stay.
fn without_placements(fleet: &Fleet<'_>, free: &PlacementOutcome) -> Option<(&'static str, Reason, String)> {
    ObservedCondition::find(&fleet.observed.addon.status.conditions, PROGRESSING)?;
    let Counts { governed, settled, left_out, failed, .. } = free_counts(fleet, free);
    let instances = |count| counted_as(count, "instance", "instances");
    Some(match governed - settled - left_out {
        0 => ("False", Reason::Settled, "nothing is rolled out: no placement governs an instance".to_owned()),
        count if count == failed => {
            let message = format!("upgrade failed: {} that no placement governs", instances(count));
            ("False", Reason::UpgradeFailed, message)
        }
        count => {
            let message = format!("upgrading... {} that no placement governs", instances(count));
            ("True", Reason::Upgrading, message)
        }
    })
}

/// Counts of the instances that no placement governs. With placements, such an instance is a
/// user's, or on its way out.
fn free_counts(fleet: &Fleet<'_>, free: &PlacementOutcome) -> Counts {
    match fleet.observed.addon.strategy {
        InstallRule::Placements(_) => Counts::default(),
        _ => free.counts,
    }
}

fn recorded(
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    outcome: &PlacementOutcome,
    now: Timestamp,
) -> Recorded {
    let mut recorded = governor.recorded.cloned().unwrap_or_default();
    // A status cannot distinguish an empty revision from none, and what cannot be read back would
    // be written again forever.
    let told = |revision: &Option<Revision>| revision.clone().filter(|revision| !revision.is_empty());
    if let Ok(desired) = &outcome.aim.desired {
        recorded.desired = told(&Some(desired.clone()));
    }
    recorded.known_good = told(&outcome.known_good);
    recorded.applied = told(&outcome.applied);
    let is_ocm = fleet.observed.served.is_ocm();
    let pinned = recorded.desired.as_ref();
    let is_pinned = |config: &&ConfigRef| pinned.is_some_and(|desired| desired.pin(&config.kind).is_some());
    // OCM lists one beside others of its kind that can be used: what is listed stays while it is
    // true.
    let known = std::mem::take(&mut recorded.unresolved);
    let counts = |one: &&ConfigRef| !is_pinned(one) || known.contains(one);
    recorded.unresolved = governor.unresolved.iter().filter(counts).cloned().collect();
    let (status, reason, message) = summary(fleet, governor, outcome);
    let mut state = |stated| set(&mut recorded.conditions, fleet.observed.addon.generation, now, stated);
    // The one place that picks a vocabulary for placements.
    if is_ocm {
        let (status, reason, message) = ocm::placement(fleet, governor, outcome);
        state(Stated { kind: PROGRESSING, status, reason, message });
    } else {
        state(Stated { kind: PROGRESSING, status, reason, message: message.to_string().into() });
    }
    state(health(&outcome.unhealthy));
    // OCM's words do not say that nothing moves any more, nor why.
    if is_ocm {
        let stated = match !governor.known || matches!(outcome.state, State::Failed(_)) {
            true => Stated { kind: STALLED, status: "True", reason, message: message.to_string().into() },
            false => {
                let message = "nothing is stalled".into();
                Stated { kind: STALLED, status: "False", reason: Reason::NotStalled, message }
            }
        };
        state(stated);
    }
    recorded
}

/// A completed rollout stays completed. Unhealthy clusters are reported in a separate condition.
fn health(unhealthy: &Unhealthy) -> Stated {
    let Unhealthy { count, first, object } = unhealthy;
    if *count == 0 {
        let message = "no cluster is unhealthy".into();
        return Stated { kind: HEALTHY, status: "True", reason: Reason::Healthy, message };
    }
    let shown: Vec<String> = first.iter().map(ToString::to_string).collect();
    let names = and_more(&shown.join(", "), count - shown.len());
    let message = format!("{count} unhealthy: {names}{}", on_first(first.first(), object.as_deref()));
    Stated { kind: HEALTHY, status: "False", reason: Reason::ClustersUnhealthy, message: message.into() }
}

/// What is not healthy on the first cluster. Only its name: the numbers change with every report,
/// and the status must not be written for each.
fn on_first(cluster: Option<&ClusterName>, object: Option<&str>) -> String {
    let shown = cluster.zip(object);
    shown.map(|(cluster, object)| format!("; {cluster}: {}", clipped(object))).unwrap_or_default()
}

/// What an agent says, cut to a length that fits into a message.
pub(crate) fn clipped(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 256;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

fn and_more(shown: &str, more: usize) -> String {
    if more == 0 { shown.to_owned() } else { format!("{shown} and {more} more") }
}

/// How many clusters of a placement have its revision. Messages begin with it; a hub keeps no other
/// counts of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgressCounts {
    pub(crate) done: usize,
    pub(crate) governed: usize,
}

impl fmt::Display for ProgressCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.done, self.governed)
    }
}

impl ProgressCounts {
    /// The counts in a recorded message, in our words or in OCM's.
    pub(crate) fn read(message: &str) -> Option<Self> {
        message.split(' ').find_map(|word| {
            let (done, governed) = word.split_once('/')?;
            Some(Self { done: done.parse().ok()?, governed: governed.parse().ok()? })
        })
    }
}

/// One sentence on a placement.
#[derive(Clone, Debug)]
pub(crate) struct PlacementSentence {
    /// Not every sentence has it.
    progress: Option<ProgressCounts>,
    text: Word,
}

impl PlacementSentence {
    /// Without its counts.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The sentence before `starts` more clusters were assigned the target.
    pub(crate) fn take_back(&mut self, starts: usize) {
        if let Some(progress) = &mut self.progress {
            progress.done = progress.done.saturating_sub(starts);
        }
    }
}

impl fmt::Display for PlacementSentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(progress) = self.progress {
            write!(f, "{progress} ")?;
        }
        f.write_str(&self.text)
    }
}

/// The condition `Progressing` of a placement: its status, its reason and its message.
pub(crate) fn summary(
    fleet: &Fleet<'_>,
    governor: &Governor<'_>,
    outcome: &PlacementOutcome,
) -> (&'static str, Reason, PlacementSentence) {
    let counts = &outcome.counts;
    // If the desired revision cannot be resolved, no cluster counts as on target.
    let on_target = if outcome.aim.problem().is_some() { 0 } else { counts.on_target };
    let progress = ProgressCounts { done: on_target, governed: counts.governed };
    let (status, reason, text) = without_counts(fleet, governor, outcome);
    let is_counted = reason != Reason::WaitingForCanary;
    (status, reason, PlacementSentence { progress: is_counted.then_some(progress), text })
}

/// The same, without its counts.
fn without_counts(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &PlacementOutcome) -> Words {
    let first = outcome.applied.is_none() && outcome.counts.upgraded == 0;
    let failed = |why: String| match first {
        true => ("False", Reason::InstallFailed, Word::from(format!("install failed: {why}"))),
        false => ("False", Reason::UpgradeFailed, Word::from(format!("upgrade failed: {why}"))),
    };
    if !governor.known {
        return failed(Problem::PlacementUnknown { placement: governor.spec.name.clone() }.to_string());
    }
    match &outcome.state {
        State::Empty if governor.in_motion => {
            let reason = if first { Reason::Installing } else { Reason::Upgrading };
            ("True", reason, "the placement's decisions are not known yet".into())
        }
        State::Empty => ("False", Reason::InstallSucceed, "the placement selects no cluster".into()),
        State::Installing => ("True", Reason::Installing, "installing...".into()),
        State::InstallSucceeded => {
            ("False", Reason::InstallSucceed, "install completed with no errors.".into())
        }
        State::Upgrading => ("True", Reason::Upgrading, "upgrading...".into()),
        State::UpgradeSucceeded => {
            ("False", Reason::UpgradeSucceed, "upgrade completed with no errors.".into())
        }
        State::WaitingForCanary(wait) => {
            ("True", Reason::WaitingForCanary, format!("waitingForCanary... {wait}").into())
        }
        State::Paused => ("True", Reason::Upgrading, "upgrading... paused".into()),
        State::Failed(Failure::Problem(problem)) => failed(problem.to_string()),
        State::Failed(failure) => failed(format!("{failure}: {}", failed_clusters(fleet, governor, outcome))),
    }
}

/// The first few clusters that failed, and which object did on the first.
fn failed_clusters(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &PlacementOutcome) -> String {
    let (names, _) = named(fleet, outcome.failed(fleet, governor));
    let first = outcome.first_failed(fleet, governor);
    let on_first = first.map(|first| on_first(Some(first.cluster), first.object));
    format!("{names}{}", on_first.unwrap_or_default())
}

/// At most ten clusters of these cohorts, how many more there are, and how many in all.
fn named<'f, 'a: 'f>(
    fleet: &'f Fleet<'a>,
    cohorts: impl Iterator<Item = &'f Cohort<'a>> + Clone,
) -> (String, usize) {
    let all: usize = cohorts.clone().map(|cohort| cohort.members.len()).sum();
    let first = fleet.first_names(cohorts, NAMED);
    let shown: Vec<&str> = first.iter().map(|name| name.as_str()).collect();
    (and_more(&shown.join(", "), all - shown.len()), all)
}

/// Says which clusters have no namespace, and when all have theirs again.
fn namespaces(fleet: &Fleet<'_>, install: &Install, status: &mut AddOnStatus, now: Timestamp) {
    let is_missing = |decision: &Option<Decision>| {
        decision.as_ref().is_some_and(|decision| *decision == Decision::Hold(Wait::NamespaceMissing))
    };
    let decided = fleet.cohorts.iter().zip(&install.decisions);
    let missing = decided.filter(|(_, decision)| is_missing(decision)).map(|(cohort, _)| cohort);
    let (names, count) = named(fleet, missing);
    let was_said = status.conditions.iter().any(|condition| condition.kind == NAMESPACES_MISSING);
    let (status_of_it, reason, message) = match count {
        0 if !was_said => return,
        0 => ("False", Reason::NothingMissing, "every cluster has its namespace".to_owned()),
        count => {
            let message = format!(
                "{} waiting for {}: {names}",
                counted_as(count, "cluster is", "clusters are"),
                if count == 1 { "its namespace on the hub" } else { "their namespaces on the hub" },
            );
            ("True", Wait::NamespaceMissing.code(), message)
        }
    };
    let stated = Stated { kind: NAMESPACES_MISSING, status: status_of_it, reason, message: message.into() };
    set(&mut status.conditions, fleet.observed.addon.generation, now, stated);
}

/// Says for which clusters the hub refuses writes, and when it refuses none any more.
fn refused_writes(fleet: &Fleet<'_>, status: &mut AddOnStatus, now: Timestamp) {
    let first = fleet.first_names(refused(fleet), NAMED);
    let refused = first.into_iter().filter_map(|name| Some((name, fleet.observed.refused.get(name)?)));
    let named: BTreeMap<_, _> = refused.chain(fleet.observed.retried.iter()).collect();
    let named: Vec<_> = named.into_iter().take(NAMED).collect();
    let was_said = status.conditions.iter().any(|condition| condition.kind == WRITES_REFUSED);
    let (truth, reason, message) = match count_refused(fleet) {
        0 if !was_said => return,
        0 => ("False", Reason::NothingRefused, "the hub takes what is written".to_owned()),
        count => ("True", Reason::WriteRefused, refusals::message(&named, count)),
    };
    let stated = Stated { kind: WRITES_REFUSED, status: truth, reason, message: message.into() };
    set(&mut status.conditions, fleet.observed.addon.generation, now, stated);
}

/// The cohorts for which the hub refuses a write.
fn refused<'f, 'a: 'f>(fleet: &'f Fleet<'a>) -> impl Iterator<Item = &'f Cohort<'a>> + Clone {
    fleet.cohorts.iter().filter(|cohort| cohort.facts.refusal.is_some())
}

/// How many clusters the hub refuses a write for, named or not.
fn count_refused(fleet: &Fleet<'_>) -> usize {
    let named: usize = refused(fleet).map(|cohort| cohort.members.len()).sum();
    named + fleet.observed.retried.len() + fleet.observed.refused_unnamed
}

fn counted_as(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Whether the spec and the placements can be used, and whether deletions are held back.
fn conditions(
    fleet: &Fleet<'_>,
    install: &Install,
    outcomes: &[PlacementOutcome],
    status: &mut AddOnStatus,
    now: Timestamp,
) {
    let generation = fleet.observed.addon.generation;
    let mut state = |new: Stated| set(&mut status.conditions, generation, now, new);
    // That a change is not covered is worth a warning when it is planned, and no state.
    let gates = outcomes.iter().filter_map(|outcome| outcome.aim.gate_problem.as_ref());
    let gates = gates.filter(|problem| !problem.is_warning());
    let (about_placements, about_spec): (Vec<&Problem>, Vec<&Problem>) =
        fleet.problems.iter().chain(gates).partition(|problem| {
            matches!(
                problem,
                Problem::PlacementUnknown { .. }
                    | Problem::PlacementUndecided { .. }
                    | Problem::PlacementInMotion { .. }
                    | Problem::ClusterNameInvalid { .. }
            )
        });
    let serious = about_spec.iter().find(|problem| !problem.is_warning());
    let (truth, reason) = match (serious, about_spec.first()) {
        (Some(problem), _) => ("False", problem.code()),
        (None, Some(warning)) => ("True", warning.code()),
        (None, None) => ("True", Reason::Valid),
    };
    let message = sentence(&about_spec).unwrap_or_else(|| "the spec is valid".into());
    state(Stated { kind: VALID, status: truth, reason, message });
    if matches!(fleet.observed.addon.strategy, InstallRule::Placements(_)) {
        let (truth, reason) =
            about_placements.first().map_or(("True", Reason::Resolved), |problem| ("False", problem.code()));
        let message = sentence(&about_placements).unwrap_or_else(|| "all placements are known".into());
        state(Stated { kind: PLACEMENTS_RESOLVED, status: truth, reason, message });
    }
    let was_held =
        fleet.observed.addon.status.conditions.iter().any(|condition| condition.kind == DELETIONS_HELD);
    let (truth, reason, message) = match (&install.problem, install.acknowledged) {
        (Some(problem), _) => ("True", problem.code(), problem.to_string().into()),
        (None, Some(number)) => ("False", Reason::DeletionAcknowledged, acknowledgement(number).into()),
        (None, None) if was_held => ("False", Reason::NothingHeld, "no deletion is held back".into()),
        (None, None) => return,
    };
    state(Stated { kind: DELETIONS_HELD, status: truth, reason, message });
}

/// The first few problems in one sentence; `None` where there are none.
fn sentence(problems: &[&Problem]) -> Option<Word> {
    let shown: Vec<String> = problems.iter().take(NAMED).map(ToString::to_string).collect();
    let shown = shown.join("; ");
    match problems.len().saturating_sub(NAMED) {
        _ if problems.is_empty() => None,
        0 => Some(shown.into()),
        more => Some(format!("{shown}; and {more} more").into()),
    }
}

/// On a hub of OCM: instances that the install strategy may have made, and that stay all the same
/// when they are deselected, because nothing proves it.
fn kept_instances(fleet: &Fleet<'_>, status: &mut AddOnStatus, now: Timestamp) {
    let (count, first) = install::kept(fleet, NAMED);
    let was_kept = status.conditions.iter().any(|condition| condition.kind == INSTANCES_ADOPTED);
    let (truth, reason, message) = match count {
        0 if was_kept => {
            ("True", Reason::NothingKept, "every instance belongs to the install strategy".into())
        }
        0 => return,
        count => {
            let names: Vec<&str> = first.iter().map(ClusterName::as_str).collect();
            let more = if count > names.len() { ", and more" } else { "" };
            let message = format!(
                "{count} of {} instances stay when their cluster is deselected, because somebody other than OCM's manager has \
                 written them: {}{more}; to hand one to the install strategy, set its label {INSTALLED_BY_STRATEGY} to {}",
                fleet.observed.instances.len(),
                names.join(", "),
                fleet.observed.addon.strategy.marker(),
            );
            ("False", Reason::InstancesKept, message.into())
        }
    };
    let stated = Stated { kind: INSTANCES_ADOPTED, status: truth, reason, message };
    set(&mut status.conditions, fleet.observed.addon.generation, now, stated);
}
