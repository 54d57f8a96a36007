//! The status of one instance: its assigned and applied revision, and its progress.

use std::collections::BTreeSet;

use aviary_api::names::{UNKNOWN_VERSION, conditions};
use jiff::Timestamp;
use serde_json::Value;

use super::ocm::{self, Awaited};
use super::wording::{ILL, drafts, final_words, with_numbers_of};
use super::{Stated, set};
use crate::clock::{ClockStart, Doubt, RevisionClock};
use crate::configs::{ConfigRef, GroupResource, Overrides, Pin, Revision, side_by_side};
use crate::explain::{Decision, Flight, Wait};
use crate::fleet::{ClusterFacts, Fleet, InstanceFacts, quiet_until};
use crate::health::Health;
use crate::name::{Text, Word};
use crate::observed::{InstanceStatus, ObservedCondition, Reference};
use crate::problem::Problem;
use crate::reason::Reason;
use crate::rollout::{Move, live_generation};
use crate::versions;

/// The status that the instance should have after this pass, where it is another than it has.
pub(crate) fn next(
    fleet: &Fleet<'_>,
    facts: &ClusterFacts<'_>,
    instance: &InstanceFacts<'_>,
    decided: &Move,
    now: Timestamp,
) -> Option<InstanceStatus> {
    let status = instance.status.clone();
    let mut draft = StatusDraft { fleet, facts, instance, decided, now, moves: decided.starts, status };
    // An add-on's own manager owns this field, whatever the spec lists. On a hub of our own, the
    // spec's list stands there until that manager writes its own.
    let listed = &instance.status.supported;
    let is_ours = fleet.renders || (listed.is_empty() && !fleet.observed.served.is_ocm());
    if let Some(supported) = fleet.resolver.supported().filter(|_| is_ours)
        && !is_same_set(supported, listed)
    {
        draft.status.supported = supported.iter().cloned().collect();
    }
    if !references_stand(instance, decided) {
        draft.status.references = references(fleet, instance, decided);
    }
    draft.list_unresolved();
    let changed = draft.status.told().map(|pin| &pin.hash).ne(instance.status.told().map(|pin| &pin.hash))
        || (draft.status.references.is_empty() && decided.starts);
    draft.moves |= changed;
    let progress = progress(instance, decided, changed);
    draft.versions(&progress);
    draft.report(&progress, changed);
    draft.judge_hosting();
    if !draft.is_left_as_found(&progress) {
        draft.keep_clock(decided.starts || changed);
    }
    // Fields that do not justify a write of their own are written with other changes.
    if draft.status != *instance.status {
        draft.locate_agent();
        draft.report_applied(&progress);
        draft.report_registration();
    }
    (draft.status != *instance.status).then_some(draft.status)
}

/// Whoever wrote the list chose its order.
fn is_same_set(kinds: &BTreeSet<GroupResource>, listed: &[GroupResource]) -> bool {
    kinds.len() == listed.len() && listed.iter().all(|kind| kinds.contains(kind))
}

/// A status that is copied only once something in it changes: at rest, nothing is.
struct StatusDraft<'f> {
    fleet: &'f Fleet<'f>,
    facts: &'f ClusterFacts<'f>,
    instance: &'f InstanceFacts<'f>,
    decided: &'f Move,
    now: Timestamp,
    /// It is assigned another revision in this pass. What its works prove is about the one before.
    moves: bool,
    status: InstanceStatus,
}

/// The progress of an instance with its assigned revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InstanceProgress {
    /// No revision was assigned, and there is nothing to report.
    Untold,
    Moving {
        first: bool,
    },
    Failed {
        first: bool,
        why: Text,
    },
    /// A problem blocks its desired revision; it keeps its current revision, if that is the
    /// assigned one.
    Stuck {
        first: bool,
        has_told: bool,
        problem: Problem,
    },
    Done {
        first: bool,
    },
}

fn progress(instance: &InstanceFacts<'_>, decided: &Move, changed: bool) -> InstanceProgress {
    let evidence = &instance.evidence;
    let of_overrides = || instance.overrides.as_ref().and_then(|overrides| overrides.problem());
    if decided.starts || changed {
        // What has arrived is recorded by the same write: from there it is an upgrade.
        let first = !evidence.installed && !evidence.arrived();
        return match of_overrides() {
            Some(problem) => InstanceProgress::Stuck {
                first: evidence.never_applied(),
                has_told: false,
                problem: problem.clone(),
            },
            None => InstanceProgress::Moving { first },
        };
    }
    // After anything was applied, a failure is a failed upgrade. To restore what was lost is not an
    // upgrade.
    let never = evidence.never_applied();
    let first = !evidence.installed || (stays_first(instance) && applied_is_told(instance));
    let problem = match &decided.decision {
        Decision::Hold(Wait::Problem(problem)) => Some(&**problem),
        _ => of_overrides(),
    };
    let stuck = |has_told| {
        problem.map(|problem| InstanceProgress::Stuck { first: never, has_told, problem: problem.clone() })
    };
    if !evidence.told {
        return stuck(false).unwrap_or(InstanceProgress::Untold);
    }
    match &decided.decision {
        Decision::InFlight(Flight::Failed { why }) => {
            return InstanceProgress::Failed { first: never, why: why.clone() };
        }
        Decision::InFlight(flight @ (Flight::TimedOut { .. } | Flight::Refused(_))) => {
            let why = flight.to_string();
            let why = why.strip_prefix("failed: ").unwrap_or(&why).into();
            return InstanceProgress::Failed { first: never, why };
        }
        _ => {}
    }
    // Health may change. Having the assigned revision requires a report on the current works, after
    // the assignment.
    let has_it = evidence.arrived()
        || (evidence.holds_told && evidence.answered && applied_is_told(instance) && instance.has_arrived());
    if let Some(stuck) = stuck(has_it) {
        return stuck;
    }
    match &evidence.failure {
        _ if has_it => InstanceProgress::Done { first: first || stays_first(instance) },
        Some(why) => InstanceProgress::Failed { first: never, why: why.clone() },
        None => InstanceProgress::Moving { first },
    }
}

fn applied_is_told(instance: &InstanceFacts<'_>) -> bool {
    instance.status.references.iter().all(|reference| match (&reference.desired, &reference.applied) {
        (Some(desired), Some(applied)) => desired.hash == applied.hash,
        (None, None) => true,
        _ => false,
    })
}

/// It was installed and has not been upgraded since.
fn stays_first(instance: &InstanceFacts<'_>) -> bool {
    instance
        .status
        .condition(conditions::PROGRESSING)
        .is_some_and(|condition| condition.reason.is(Reason::is_install))
}

/// A failure is reported, as one of an upgrade once anything was applied.
fn has_failed(instance: &InstanceFacts<'_>, decided: &Move) -> bool {
    let has_problem = || instance.overrides.as_ref().is_some_and(|own| own.problem().is_some());
    instance.evidence.failure.is_some()
        || has_problem()
        || match &decided.decision {
            Decision::InFlight(flight) => flight.is_failure(),
            Decision::Hold(wait) => matches!(wait, Wait::Problem(_)),
            _ => false,
        }
}

/// Whether the references are already what [`references`] would make them, for the usual case that
/// nothing of its own is in play.
fn references_stand(instance: &InstanceFacts<'_>, decided: &Move) -> bool {
    let recorded = &instance.status.references;
    let arrived = instance.evidence.arrived();
    let told = decided.told.as_deref();
    let told_stands = told.is_none_or(|told| {
        let pins = told.revision.pins().iter().zip(&told.generations);
        told.revision.pins().len() == recorded.len()
            && recorded.iter().zip(pins).all(|(reference, (pin, generation))| {
                reference.desired.as_ref() == Some(pin)
                    && (generation.is_none() || reference.observed_generation.is_some())
            })
    });
    instance.overrides.is_none()
        && told_stands
        && (!arrived || recorded.iter().all(|reference| reference.applied == reference.desired))
}

fn references(fleet: &Fleet<'_>, instance: &InstanceFacts<'_>, decided: &Move) -> Vec<Reference> {
    let recorded = &instance.status.references;
    let keeps = || recorded.iter().filter_map(|reference| reference.desired.clone());
    let mut desired: Vec<Pin> = match &decided.told {
        Some(told) => told.revision.pins().to_vec(),
        None => keeps().collect(),
    };
    let overridden = instance.overrides.as_ref().map_or(&[][..], |overrides| overrides.pins.as_slice());
    desired.retain(|pin| overridden.iter().all(|own| own.config.kind != pin.config.kind));
    desired.extend_from_slice(overridden);
    // What has been proved to be there is applied; until then it is what was there before.
    let applied = match instance.evidence.arrived() {
        true => keeps().collect(),
        false => recorded.iter().filter_map(|reference| reference.applied.clone()).collect(),
    };
    let (desired, applied) = (Revision::new(desired), Revision::new(applied));
    let reference = |(kind, [desired, applied]): (&GroupResource, [Option<&Pin>; 2])| {
        // The same content under another name is what is there already.
        let same = desired.filter(|desired| applied.is_some_and(|applied| applied.hash == desired.hash));
        Reference {
            observed_generation: desired.and_then(|pin| generation(fleet, pin, recorded)),
            kind: kind.clone(),
            desired: desired.cloned(),
            applied: same.or(applied).cloned(),
        }
    };
    side_by_side([Some(&desired), Some(&applied)]).into_iter().map(reference).collect()
}

/// The generation at which the config got the pinned content. The recorded generation comes first,
/// so that an edit that was reverted causes no write; then that of the live object, while it has
/// the pinned content.
fn generation(fleet: &Fleet<'_>, pin: &Pin, recorded: &[Reference]) -> Option<i64> {
    let stands = recorded.iter().find(|reference| reference.desired.as_ref() == Some(pin));
    let stands = stands.and_then(|reference| reference.observed_generation);
    stands.or_else(|| live_generation(fleet.observed, pin)).or_else(|| {
        let same = |reference: &&Reference| {
            reference.desired.as_ref().is_some_and(|desired| desired.hash == pin.hash)
        };
        recorded.iter().find(same).and_then(|reference| reference.observed_generation)
    })
}

impl StatusDraft<'_> {
    fn state(&mut self, kind: &'static str, (status, reason, message): Words) {
        let generation = self.instance.generation;
        let stands = self.status.condition(kind).is_some_and(|old| {
            old.status == status
                && old.reason == reason
                && old.message == message
                && (old.observed_generation == Some(generation) || self.is_as_ocm_writes(kind))
                && old.since.is_some()
        });
        if !stands {
            let stated = Stated { kind, status, reason, message };
            set(&mut self.status.conditions, generation, self.now, stated);
        }
    }

    /// Tells of bad health. Other words for it count as a change, so that the next are not written
    /// for a minute.
    fn state_ill(&mut self, kind: &'static str, words: Words) {
        let Self { instance, now, .. } = *self;
        self.state(kind, words);
        let said = instance.status.condition(kind);
        let is_reworded = |next: &ObservedCondition| {
            said.is_some_and(|said| said.status == next.status && said.message != next.message)
        };
        if self.status.condition(kind).is_some_and(is_reworded) {
            let stated = self.status.conditions.iter_mut().filter(|one| one.kind == kind);
            stated.for_each(|one| one.since = Some(now));
        }
    }

    /// Other words for bad health wait for a minute after those before.
    fn has_just_said_otherwise(&self, said: Option<&ObservedCondition>, message: &str) -> bool {
        said.is_some_and(|said| said.message != *message && quiet_until(said.since, self.now).is_some())
    }

    fn is_ocm(&self) -> bool {
        self.fleet.observed.served.is_ocm()
    }

    /// OCM gives its conditions no generation. What it wrote before us stands.
    fn is_as_ocm_writes(&self, kind: &str) -> bool {
        self.is_ocm() && kind != conditions::REVISION_HEALTHY
    }

    /// On an OCM hub, configs that cannot be used are listed without a hash, unless the instance
    /// was assigned another of that kind, which it keeps. What is listed stays while it is true.
    fn list_unresolved(&mut self) {
        if !self.is_ocm() && self.status.unresolved.is_empty() {
            return;
        }
        let mut listed: Vec<ConfigRef> = Vec::new();
        if self.is_ocm() {
            let own = self.facts.overrides();
            let unused = own.map_or(&[][..], |own| own.unused.as_slice());
            let is_placed = |config: &&ConfigRef| own.is_none_or(|own| !own.covers(&config.kind));
            let placed = self.fleet.governor_of(self.facts).unresolved.iter().filter(is_placed);
            let is_told = |kind: &GroupResource| self.status.told().any(|pin| pin.config.kind == *kind);
            // OCM lists one beside others of its kind that can be used.
            let known = &self.status.unresolved;
            let counts = |config: &&ConfigRef| !is_told(&config.kind) || known.contains(config);
            listed.extend(unused.iter().chain(placed).filter(counts).cloned());
            listed.sort_by(|a, b| a.kind.cmp(&b.kind));
            listed.dedup();
        }
        if listed != self.status.unresolved {
            self.status.unresolved = listed;
        }
    }

    /// Where the agent runs and who checks its health, as OCM's registration reads it. Of an add-on
    /// with its own manager, that manager says so.
    fn locate_agent(&mut self) {
        if !self.is_ocm() || !self.fleet.renders || self.status.told().next().is_none() {
            return;
        }
        let observed = self.fleet.observed;
        let config = self.status.told().find(|pin| pin.config.kind == *GroupResource::deployment_configs());
        let stated = config.and_then(|pin| {
            let stated = observed.content(pin)?.pointer("/spec/agentInstallNamespace")?.as_str()?;
            Some(stated).filter(|stated| !stated.is_empty())
        });
        let namespace = stated.unwrap_or(self.instance.install_namespace);
        if self.status.namespace.as_deref() != Some(namespace) {
            self.status.namespace = Some(namespace.into());
        }
        const MODE: &str = "Customized";
        if self.status.health_check.as_deref() != Some(MODE) {
            self.status.health_check = Some(MODE.into());
        }
    }

    /// `ManifestApplied`, on an OCM hub.
    fn report_applied(&mut self, progress: &InstanceProgress) {
        let Self { fleet, instance, .. } = *self;
        let evidence = &instance.evidence;
        if !self.is_ocm() || !fleet.renders || self.moves || !evidence.answered {
            return;
        }
        if self.is_left_as_found(progress) {
            return;
        }
        self.state(conditions::MANIFEST_APPLIED, ocm::manifests(evidence.failure.is_none()));
        if let Some(words) = self.wording(progress) {
            self.state_progress(progress, words);
        }
    }

    /// `Progressing`. Of a failure that the agent reports as bad health, other words are written at
    /// most once a minute.
    fn state_progress(&mut self, progress: &InstanceProgress, words: Words) {
        const KIND: &str = conditions::PROGRESSING;
        let is_ill = matches!(progress, InstanceProgress::Failed { .. })
            && self.instance.evidence.failure.is_none()
            && self.instance.evidence.health.why().is_some();
        if !is_ill {
            return self.state(KIND, words);
        }
        let said =
            self.status.condition(KIND).filter(|said| said.status == words.0 && said.reason == words.1);
        if !self.has_just_said_otherwise(said, &words.2) {
            self.state_ill(KIND, words);
        }
    }

    /// `RegistrationApplied`, on an OCM hub, where the template requests no registration: agents of
    /// OCM wait for the condition. Whatever it says already is left to registration.
    fn report_registration(&mut self) {
        const KIND: &str = conditions::REGISTRATION_APPLIED;
        if !self.is_ocm() || !self.fleet.renders || self.status.condition(KIND).is_some() {
            return;
        }
        let requests_none = |content: &Value| match content.pointer("/spec/registration") {
            None | Some(Value::Null) => true,
            Some(requested) => requested.as_array().is_some_and(Vec::is_empty),
        };
        let template = self.status.told().find(|pin| pin.config.kind.is_templates());
        if template.and_then(|pin| self.fleet.observed.content(pin)).is_some_and(|one| requests_none(one)) {
            let words = ("True", Reason::NilRegistration, conditions::REGISTRATION_CONFIGURED.into());
            self.state(KIND, words);
        }
    }

    /// The one place that picks a vocabulary: OCM's on its hubs, the drafts' where a version was
    /// given by the drafts' shorthand, otherwise that of the final design document.
    fn wording(&self, progress: &InstanceProgress) -> Option<Words> {
        let goes_back = || self.goes_back(progress);
        let words = match self.by_shorthand() {
            _ if self.is_ocm() => ocm::progressing(progress, self.awaited()),
            true => drafts(progress, &self.status, goes_back()),
            false => final_words(progress, goes_back()),
        };
        match progress {
            InstanceProgress::Failed { .. } => {
                let said = self.status.condition(conditions::PROGRESSING);
                words.map(|words| with_numbers_of(said, words, &self.instance.evidence.health))
            }
            _ => words,
        }
    }

    /// Whether the instance moves, or should move, to an older version than it has.
    fn goes_back(&self, progress: &InstanceProgress) -> bool {
        let last = || self.status.last_version.clone();
        let (to, from) = match progress {
            // It returns to what is applied before another revision got there: it is on its way
            // from the version that was wanted before.
            InstanceProgress::Moving { .. } if self.status.told_revision() == self.applied() => {
                (self.status.desired_version.as_ref(), last())
            }
            InstanceProgress::Moving { .. } => {
                (self.status.desired_version.as_ref(), self.applied_version().or_else(last))
            }
            InstanceProgress::Stuck { problem: Problem::VersionUnsupported { version, .. }, .. } => {
                (Some(version), self.applied_version().or_else(last))
            }
            _ => return false,
        };
        to.zip(from).is_some_and(|(to, from)| *from != *UNKNOWN_VERSION && versions::is_before(to, &from))
    }

    fn applied(&self) -> Revision {
        let references = self.status.references.iter();
        Revision::new(references.filter_map(|reference| reference.applied.clone()).collect())
    }

    fn applied_version(&self) -> Option<Text> {
        versions::of_revision(self.fleet.observed, &self.applied())
    }

    fn awaited(&self) -> Awaited {
        let evidence = &self.instance.evidence;
        match self.status.condition(conditions::MANIFEST_APPLIED) {
            None => Awaited::Applied,
            // Its works follow at once.
            Some(_) if self.fleet.renders || (evidence.holds_told && !self.moves) => Awaited::Ready,
            Some(_) if evidence.has_works => Awaited::Revision,
            Some(_) => Awaited::Works,
        }
    }

    fn versions(&mut self, progress: &InstanceProgress) {
        let Self { fleet, instance, decided, .. } = *self;
        if !fleet.observed.served.instance_versions {
            return;
        }
        let recorded = instance.status;
        let own = instance.overrides.is_some();
        let of_told = || versions::of_revision(fleet.observed, &self.status.told_revision());
        let told = match &decided.told {
            Some(told) if !own => told.version.clone(),
            // If the desired version does not exist, it is recorded, and not the version of the
            // assigned revision.
            None if !own && recorded.current_version.as_deref() == Some(UNKNOWN_VERSION) => {
                of_told().or_else(|| recorded.desired_version.clone())
            }
            None if !own => recorded.desired_version.clone(),
            _ => of_told(),
        };
        let is_told = self.status.told().next().is_some();
        let told = told.filter(|_| own || is_told);
        let wanted = match progress {
            InstanceProgress::Stuck { problem: Problem::VersionUnsupported { version, .. }, .. } => {
                Some(version.clone())
            }
            _ => told.clone(),
        };
        if wanted.is_none() && recorded.desired_version.is_none() {
            return;
        }
        if wanted != recorded.desired_version {
            let status = &mut *self.status;
            status.last_version = recorded.desired_version.clone().map(|last| {
                let offered = fleet.resolver.offered.is_empty() || fleet.resolver.offered.contains(&last);
                if offered { last } else { UNKNOWN_VERSION.into() }
            });
            status.desired_version = wanted;
        }
        let current = match progress {
            InstanceProgress::Stuck { problem: Problem::VersionUnsupported { .. }, .. } => {
                Some(UNKNOWN_VERSION.into())
            }
            InstanceProgress::Done { .. } | InstanceProgress::Stuck { has_told: true, .. } => told,
            InstanceProgress::Moving { .. } | InstanceProgress::Failed { .. } => Some(UNKNOWN_VERSION.into()),
            InstanceProgress::Stuck { .. } if is_told => Some(UNKNOWN_VERSION.into()),
            InstanceProgress::Stuck { .. } | InstanceProgress::Untold => recorded.current_version.clone(),
        };
        if current != self.status.current_version {
            self.status.current_version = current;
        }
    }

    fn report(&mut self, progress: &InstanceProgress, changed: bool) {
        let as_found = self.is_left_as_found(progress);
        if let Some(words) = self.wording(progress) {
            let says_done =
                |said: &ObservedCondition| said.status == "False" && said.reason.is(Reason::is_success);
            let said = self.status.condition(conditions::PROGRESSING);
            if !(as_found && said.is_some_and(says_done)) {
                self.state_progress(progress, words);
            }
            let problem = match progress {
                InstanceProgress::Stuck { problem, .. } => Some(problem),
                _ => self.facts.overrides().and_then(Overrides::problem),
            };
            let words: Words = match problem {
                None if self.is_ocm() => ocm::configured(&self.decided.decision),
                None => ("True", Reason::ConfigurationsConfigured, "all configurations are resolved".into()),
                Some(problem) => ("False", problem.code(), problem.to_string().into()),
            };
            if !(as_found && self.says_true_too(conditions::CONFIGURED, &words)) {
                self.state(conditions::CONFIGURED, words);
            }
        }
        // While OCM's hub has no contact with a cluster, its registration writes this condition.
        let is_reachable = self.facts.cluster.is_none_or(|cluster| cluster.reachable);
        if self.fleet.renders
            && (is_reachable || !self.is_ocm())
            && let Some(words) = availability(self.instance, self.now)
        {
            let said = self.status.condition(conditions::AVAILABLE);
            let words = self.without_new_numbers(words, said);
            let is_moving = self.decided.starts || changed;
            let as_found = as_found && self.says_true_too(conditions::AVAILABLE, &words);
            let is_held = self.is_quiet(said, words.0 == "True") || self.has_just_said_ill(said, &words);
            if !as_found && (is_moving || !is_held) {
                match ILL.contains(&words.1) {
                    true => self.state_ill(conditions::AVAILABLE, words),
                    false => self.state(conditions::AVAILABLE, words),
                }
            }
        }
    }

    /// Whether it may run on the hosting cluster that it names. Of an add-on with its own manager,
    /// that manager decides it.
    fn judge_hosting(&mut self) {
        const KIND: &str = conditions::HOSTING_CLUSTER_VALIDITY;
        if let Some(problem) = self.instance.hosting_problem() {
            self.state(KIND, ("False", problem.code(), problem.to_string().into()));
        } else if self.fleet.renders
            && self.status.condition(KIND).is_some_and(|said| said.reason == Reason::HostingClusterInvalid)
        {
            self.status.conditions.retain(|one| one.kind != KIND);
        }
    }

    /// The words for `Available`. Bad health keeps the message that was given if only its numbers
    /// change: each would be a write per cluster.
    fn without_new_numbers(&self, words: Words, said: Option<&ObservedCondition>) -> Words {
        let is_ill = matches!(words.1, Reason::HealthUnknown | Reason::WorkloadUnhealthy);
        let words = match self.is_ocm() {
            true => ocm::available(words, &self.fleet.observed.addon.name),
            false => words,
        };
        if is_ill { with_numbers_of(said, words, &self.instance.evidence.health) } else { words }
    }

    /// Bad health that changes, as when a report comes and goes or another object is worse, is
    /// written at most once a minute.
    fn has_just_said_ill(&self, said: Option<&ObservedCondition>, (_, reason, message): &Words) -> bool {
        let said = said.filter(|said| ILL.into_iter().any(|ill| said.reason == ill));
        ILL.contains(reason) && self.has_just_said_otherwise(said, message)
    }

    /// Another manager has brought it here, and all is well: what that manager says of it stays
    /// until something changes, and no clock is needed.
    fn is_left_as_found(&self, progress: &InstanceProgress) -> bool {
        matches!(progress, InstanceProgress::Done { .. }) && self.instance.is_taken_over()
    }

    /// The condition is True already, in whatever words.
    fn says_true_too(&self, kind: &str, (status, ..): &Words) -> bool {
        *status == "True" && self.status.condition(kind).is_some_and(ObservedCondition::is_true)
    }

    /// When the assigned revision started here, whether it is healthy, and if not, whether it ever
    /// was. The clock starts with every new assignment, by the placement or by the user.
    fn keep_clock(&mut self, starts: bool) {
        let Self { instance, decided, now, .. } = *self;
        let told = decided.told.as_deref();
        let kept = instance.status.condition(conditions::REVISION_HEALTHY);
        if told.is_none() && kept.is_none() {
            return;
        }
        // The clock continues until another revision is assigned. If its user overrides everything,
        // its placement's revision may change meanwhile: then the clock is that of the new
        // revision, but its health is kept.
        let kept = kept.filter(|_| !starts);
        let running = kept
            .filter(|condition| told.is_none_or(|told| RevisionClock::is_for(&condition.message, &told.id)));
        let health = self.health(starts, kept, running);
        let reason = match kept.filter(|_| self.is_quiet(kept, health == Reason::Healthy)) {
            Some(condition) if condition.is_true() => Reason::Healthy,
            Some(_) if health == Reason::Healthy => Reason::NoLongerHealthy,
            _ => health,
        };
        let ahead = matches!(decided.decision, Decision::InFlight(_))
            && self.minds_clocks()
            && running.is_some_and(|condition| is_ahead(condition, now));
        let was_down = matches!(decided.decision, Decision::InFlight(Flight::Soaking { .. }))
            && running.is_some_and(ObservedCondition::is_true)
            && (instance.available_since.is_some() || instance.returned.is_some_and(|back| back <= now));
        if let Some(condition) = running
            && condition.reason == reason
            && condition.observed_generation == Some(instance.generation)
            && !ahead
            && !was_down
        {
            return;
        }
        let start = match running {
            Some(condition) => ClockStart::read(&condition.message),
            None => Some(self.clock_start(starts)),
        };
        let available_since = instance.available_since.filter(|_| reason == Reason::Healthy);
        let message: Word = match (start, running) {
            (Some(start), _) => {
                let at = if ahead { now } else { start.at };
                let available_since = available_since.or(start.available_since);
                ClockStart { at, available_since, ..start }.to_string().into()
            }
            (None, Some(condition)) => condition.message.clone(),
            (None, None) => return,
        };
        let status = if reason == Reason::Healthy { "True" } else { "False" };
        self.state(conditions::REVISION_HEALTHY, (status, reason, message));
        if ahead || was_down {
            let clocks =
                self.status.conditions.iter_mut().filter(|one| one.kind == conditions::REVISION_HEALTHY);
            clocks.for_each(|clock| clock.since = Some(now));
        }
    }

    /// Whether a condition that changed a moment ago stays as it is, although health has changed: a
    /// cluster that has arrived and flaps is written at most once a minute. A soak must see at once
    /// that health is lost.
    fn is_quiet(&self, condition: Option<&ObservedCondition>, is_well: bool) -> bool {
        let clock = self.instance.clock.as_ref().filter(|clock| clock.has_arrived);
        let flaps = |clock: &RevisionClock| {
            quiet_until(Some(clock.since), self.now).is_some()
                || quiet_until(condition.and_then(|condition| condition.since), self.now).is_some()
        };
        let soaks = || !self.fleet.governor_of(self.facts).spec.rollout.min_success_time.is_zero();
        condition.is_some_and(|condition| condition.is_true() != is_well)
            && clock.is_some_and(flaps)
            && (is_well || !soaks())
    }

    /// The reason of the condition that keeps the clock.
    fn health(
        &self,
        starts: bool,
        kept: Option<&ObservedCondition>,
        running: Option<&ObservedCondition>,
    ) -> Reason {
        let Self { instance, decided, now, .. } = *self;
        let evidence = &instance.evidence;
        let has_arrived =
            kept.is_some_and(|condition| condition.is_true() || condition.reason == Reason::NoLongerHealthy);
        // Without this record an agent that takes its report back would make it a first install
        // again. A revision that has only just started gets the time to become healthy first.
        let delivered = instance.was_never_healthy();
        let never = match running {
            Some(condition) if condition.reason == Reason::NeverHealthy => true,
            Some(_) => {
                delivered
                    && (evidence.unavailable.is_some()
                        || instance.health_grace(now).is_none()
                        || has_failed(instance, decided))
            }
            None => delivered,
        };
        // Time in which nobody hears from the cluster is no part of a soak: it starts again.
        let is_silent = matches!(decided.decision, Decision::InFlight(Flight::Offline { .. }));
        match (!starts && evidence.arrived() && !is_silent, has_arrived) {
            (true, _) => Reason::Healthy,
            (false, true) => Reason::NoLongerHealthy,
            (false, false) if never => Reason::NeverHealthy,
            (false, false) => Reason::NotYetHealthy,
        }
    }

    /// The start of a clock. It records which placement moves the cluster, and whether an override
    /// may be to blame for a failure.
    fn clock_start(&self, changes: bool) -> ClockStart {
        let Self { fleet, facts, instance, decided, .. } = self;
        let before = instance.clock.as_ref();
        let doubt = instance.overrides.as_ref().and_then(|_| match before {
            _ if decided.starts => instance.doubt_before_start(),
            // On its way already, and its user changes the override, or its placement's revision
            // changes in what the user overrides.
            Some(clock) if !clock.has_arrived && changes => Some(clock.doubt.unwrap_or(Doubt::Before)),
            Some(clock) if !clock.has_arrived => clock.doubt,
            _ if changes || !instance.evidence.healthy => Some(Doubt::ByUser),
            _ => None,
        });
        let placement = match before {
            Some(clock) if !decided.starts => clock.placement.clone(),
            _ => Some(fleet.governor_of(facts).spec.name.clone()),
        };
        let revision = decided.told.as_ref().map_or_else(|| "".into(), |told| told.id.clone());
        ClockStart { revision, at: self.now, placement, doubt, available_since: None }
    }

    /// The rollout that it is in waits for times to pass.
    fn minds_clocks(&self) -> bool {
        let rollout = &self.fleet.governor_of(self.facts).spec.rollout;
        !rollout.min_success_time.is_zero() || rollout.progress_deadline.is_some()
    }

    /// A version was given by the drafts' shorthand.
    fn by_shorthand(&self) -> bool {
        let own = self.facts.overrides();
        if own.is_some_and(|own| own.by_config) {
            return false;
        }
        let placement = self.fleet.governor_of(self.facts).spec;
        let is_explicit = || placement.configs.iter().any(|config| config.kind.chooses_version());
        own.is_some_and(|own| own.by_version) || (placement.version.is_some() && !is_explicit())
    }
}

/// It was written when some clock was ahead of this one. Clusters in flight would wait until that
/// time, so their clock restarts now.
fn is_ahead(condition: &ObservedCondition, now: Timestamp) -> bool {
    condition.since.is_some_and(|since| since > now)
        || ClockStart::read(&condition.message).is_some_and(|start| start.at > now)
}

/// Status, reason and message of a condition.
pub(super) type Words = (&'static str, Reason, Word);

/// The state of the works. Until the agent has reported on their current generation, the previous
/// condition is kept, to save a write.
fn availability(instance: &InstanceFacts<'_>, now: Timestamp) -> Option<Words> {
    if let Some(why) = &instance.evidence.unavailable {
        return Some(("False", Reason::WorkNotAvailable, why.to_string().into()));
    }
    if let Some(words) = ill_health(instance, now) {
        return Some(words);
    }
    if instance.evidence.available {
        return Some(("True", Reason::WorksAvailable, "all works are available".into()));
    }
    let unsaid = instance.status.condition(conditions::AVAILABLE).is_none();
    // On an instance that had arrived, what was reported is gone, and what it proved with it.
    (unsaid || instance.arrived_once())
        .then(|| ("Unknown", Reason::WorksNotReported, "the agent has not reported on all works yet".into()))
}

/// What the agent reports about an object that is not healthy. Not while a revision has only just
/// started.
fn ill_health(instance: &InstanceFacts<'_>, now: Timestamp) -> Option<Words> {
    let evidence = &instance.evidence;
    let why =
        evidence.health.why().filter(|_| evidence.holds_told && evidence.answered && !evidence.healthy)?;
    if !instance.arrived_once() && instance.health_grace(now).is_some() {
        return None;
    }
    let (state, reason) = match evidence.health {
        Health::Unknown { .. } | Health::Kept { .. } => ("Unknown", Reason::HealthUnknown),
        _ => ("False", Reason::WorkloadUnhealthy),
    };
    Some((state, reason, why.to_string().into()))
}
