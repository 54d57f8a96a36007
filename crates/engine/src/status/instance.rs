//! The status of one instance: what it was told, what it has, and how far it is.

use std::collections::BTreeMap;

use aviary_api::names::{UNKNOWN_VERSION, conditions};
use jiff::Timestamp;

use super::{Stated, set};
use crate::configs::{ConfigRef, GroupResource, Pin, Revision};
use crate::evidence::{Clock, HEALTHY, NO_LONGER_HEALTHY, NOT_YET_HEALTHY, clock_message};
use crate::explain::{Decision, Flight, Wait};
use crate::fleet::{Fleet, Member};
use crate::name::{Text, Word};
use crate::observed::{Condition, Instance, InstanceStatus, Reference};
use crate::problem::Problem;
use crate::rollout::{Move, live_generation};
use crate::versions;

/// The status that the instance should have after this pass, where it is another than it has.
pub fn next(
    fleet: &Fleet<'_>,
    member: &Member<'_>,
    instance: &Instance,
    decided: &Move,
    now: Timestamp,
) -> Option<InstanceStatus> {
    let mut draft = Draft { now, generation: instance.generation, status: instance.status.clone() };
    if let Some(supported) = fleet.resolver.supported()
        && !supported.iter().eq(&instance.status.supported)
    {
        draft.status.supported = supported.iter().cloned().collect();
    }
    if !references_stand(member, instance, decided) {
        draft.status.references = references(fleet, member, instance, decided);
    }
    let changed = draft.status.told().map(|pin| &pin.hash).ne(instance.status.told().map(|pin| &pin.hash))
        || (draft.status.references.is_empty() && decided.starts);
    let progress = progress(member, instance, decided, changed);
    versions(fleet, member, instance, decided, &progress, &mut draft);
    report(fleet, member, instance, &progress, &mut draft);
    keep_clock(fleet, member, instance, decided, decided.starts || changed, &mut draft);
    (draft.status != instance.status).then_some(draft.status)
}

/// A status that is copied only once something in it changes: at rest, nothing is.
struct Draft {
    now: Timestamp,
    generation: i64,
    status: InstanceStatus,
}

impl Draft {
    fn state(&mut self, new: Stated) {
        let stands = self.status.condition(new.kind).is_some_and(|old| {
            old.status == new.status
                && old.reason == new.reason
                && old.message == new.message
                && old.observed_generation == Some(self.generation)
                && old.since.is_some()
        });
        if !stands {
            set(&mut self.status.conditions, self.generation, self.now, new);
        }
    }
}

/// How far the instance is with what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing was told, and nothing can be said.
    Untold,
    Moving {
        first: bool,
    },
    Failed {
        first: bool,
        why: Text,
    },
    /// A problem keeps it from what it should have; it stays on what it has, if it has what it was told.
    Stuck {
        first: bool,
        has_told: bool,
        problem: Problem,
    },
    Done {
        first: bool,
    },
}

fn progress(member: &Member<'_>, instance: &Instance, decided: &Move, changed: bool) -> Progress {
    let evidence = member.evidence();
    if decided.starts || changed {
        // What has arrived is recorded by the same write: from there it is an upgrade.
        return Progress::Moving { first: !evidence.installed && !evidence.arrived() };
    }
    // What it has lost and gets again is no upgrade.
    let first = !evidence.installed || (stays_first(instance) && applied_is_told(instance));
    let problem = match &decided.decision {
        Decision::Hold(Wait::Problem(problem)) => Some(&**problem),
        _ => member.overrides.and_then(|overrides| overrides.problems.first()),
    };
    let stuck_or_untold = || match problem {
        Some(problem) => Progress::Stuck { first, has_told: false, problem: problem.clone() },
        None => Progress::Untold,
    };
    if !evidence.told {
        return stuck_or_untold();
    }
    match &decided.decision {
        Decision::InFlight(Flight::Failed { why }) => return Progress::Failed { first, why: why.clone() },
        Decision::InFlight(flight @ Flight::TimedOut { .. }) => {
            let why = flight.to_string();
            return Progress::Failed { first, why: why.strip_prefix("failed: ").unwrap_or(&why).into() };
        }
        _ => {}
    }
    let has_it = evidence.arrived() || (evidence.holds_told && applied_is_told(instance));
    if !has_it {
        return match &evidence.failure {
            Some(why) => Progress::Failed { first, why: why.clone() },
            None => Progress::Moving { first },
        };
    }
    let first = first || stays_first(instance);
    match problem {
        // What it waits for now would be an upgrade, whatever it has had so far; only its own first configs belong to the install.
        Some(problem)
            if (decided.told.is_some() && member.overrides.is_none())
                || matches!(problem, Problem::VersionUnsupported { .. }) =>
        {
            Progress::Stuck { first: false, has_told: true, problem: problem.clone() }
        }
        Some(problem) => Progress::Stuck { first, has_told: true, problem: problem.clone() },
        None => Progress::Done { first },
    }
}

fn applied_is_told(instance: &Instance) -> bool {
    instance.status.references.iter().all(|reference| match (&reference.desired, &reference.applied) {
        (Some(desired), Some(applied)) => desired.hash == applied.hash,
        (None, None) => true,
        _ => false,
    })
}

/// It was installed and has not been upgraded since.
fn stays_first(instance: &Instance) -> bool {
    instance.status.condition(conditions::PROGRESSING).is_some_and(|condition| {
        matches!(&*condition.reason, "Installing" | "InstallSucceed" | "InstallFailed")
    })
}

/// Whether the references are already what [`references`] would make them, for the usual case that nothing of its own is in play.
fn references_stand(member: &Member<'_>, instance: &Instance, decided: &Move) -> bool {
    let recorded = &instance.status.references;
    let arrived = member.evidence().arrived();
    let told = decided.told.as_deref();
    let told_stands = told.is_none_or(|told| {
        let pins = told.revision.pins().iter().zip(&told.generations);
        told.revision.pins().len() == recorded.len()
            && recorded.iter().zip(pins).all(|(reference, (pin, generation))| {
                reference.desired.as_ref() == Some(pin)
                    && (generation.is_none() || reference.observed_generation.is_some())
            })
    });
    member.overrides.is_none()
        && told_stands
        && (!arrived || recorded.iter().all(|reference| reference.applied == reference.desired))
}

fn references(fleet: &Fleet<'_>, member: &Member<'_>, instance: &Instance, decided: &Move) -> Vec<Reference> {
    let recorded = &instance.status.references;
    let mut next: BTreeMap<&GroupResource, (Option<Pin>, Option<Pin>)> = BTreeMap::new();
    for reference in recorded {
        // What has been proved to be there is applied; until then it is what was there before.
        let applied =
            if member.evidence().arrived() { reference.desired.clone() } else { reference.applied.clone() };
        let keeps = decided.told.is_none();
        let desired = reference.desired.clone().filter(|_| keeps);
        next.insert(&reference.kind, (desired, applied));
    }
    let told = decided.told.as_ref().map_or(&[][..], |told| told.revision.pins());
    let overridden = member.overrides.map_or(&[][..], |overrides| overrides.pins.as_slice());
    for pin in told.iter().chain(overridden) {
        let (desired, applied) = next.entry(&pin.config.kind).or_default();
        *desired = Some(pin.clone());
        // The same content under another name is what is there already.
        if applied.as_ref().is_some_and(|applied| applied.hash == pin.hash) {
            *applied = Some(pin.clone());
        }
    }
    next.into_iter()
        .filter(|(_, (desired, applied))| desired.is_some() || applied.is_some())
        .map(|(kind, (desired, applied))| Reference {
            observed_generation: desired.as_ref().and_then(|pin| generation(fleet, pin, recorded)),
            kind: kind.clone(),
            desired,
            applied,
        })
        .collect()
}

/// The generation at which the config got the content that is pinned: as recorded, so that an edit that was taken back is not news; else of
/// the live object while it still has that content.
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

fn versions(
    fleet: &Fleet<'_>,
    member: &Member<'_>,
    instance: &Instance,
    decided: &Move,
    progress: &Progress,
    draft: &mut Draft,
) {
    let recorded = &instance.status;
    let own = member.overrides.is_some();
    let of_told =
        || versions::of_revision(fleet.observed, &Revision::new(draft.status.told().cloned().collect()));
    let told = match &decided.told {
        Some(told) if !own => told.version.clone(),
        // While a version is wanted that there is not, that is recorded, and not the one of what it was told.
        None if !own && recorded.current_version.as_deref() == Some(UNKNOWN_VERSION) => {
            of_told().or_else(|| recorded.desired_version.clone())
        }
        None if !own => recorded.desired_version.clone(),
        _ => of_told(),
    };
    let told = told.filter(|_| own || draft.status.told().next().is_some());
    let wanted = match progress {
        Progress::Stuck { problem: Problem::VersionUnsupported { version, .. }, .. } => Some(version.clone()),
        _ => told.clone(),
    };
    if wanted.is_none() && recorded.desired_version.is_none() {
        return;
    }
    if wanted != recorded.desired_version {
        let status = &mut *draft.status;
        status.last_version = recorded.desired_version.clone().map(|last| {
            let offered = fleet.resolver.offered.is_empty() || fleet.resolver.offered.contains(&last);
            if offered { last } else { UNKNOWN_VERSION.into() }
        });
        status.desired_version = wanted;
    }
    let current = match progress {
        Progress::Stuck { problem: Problem::VersionUnsupported { .. }, .. } => Some(UNKNOWN_VERSION.into()),
        Progress::Done { .. } | Progress::Stuck { has_told: true, .. } => told,
        Progress::Moving { .. } | Progress::Failed { .. } => Some(UNKNOWN_VERSION.into()),
        Progress::Stuck { .. } | Progress::Untold => recorded.current_version.clone(),
    };
    if current != draft.status.current_version {
        draft.status.current_version = current;
    }
}

fn report(
    fleet: &Fleet<'_>,
    member: &Member<'_>,
    instance: &Instance,
    progress: &Progress,
    draft: &mut Draft,
) {
    let last = draft.status.last_version.as_deref();
    let wording = if by_shorthand(fleet, member, instance) {
        drafts(progress, draft.status.desired_version.as_deref(), last)
    } else {
        final_words(progress, last)
    };
    if let Some((truth, reason, message)) = wording {
        draft.state(Stated { kind: conditions::PROGRESSING, status: truth, reason, message });
        let problem = match progress {
            Progress::Stuck { problem, .. } => Some(problem),
            _ => member.overrides.and_then(|overrides| overrides.problems.first()),
        };
        let (truth, reason, message) = match problem {
            None => ("True", "ConfigurationsConfigured", Word::Borrowed("all configurations are resolved")),
            Some(problem) => ("False", problem.code(), problem.to_string().into()),
        };
        draft.state(Stated { kind: conditions::CONFIGURED, status: truth, reason, message });
    }
    if fleet.renders
        && let Some((truth, reason, message)) = availability(member, instance)
    {
        draft.state(Stated { kind: conditions::AVAILABLE, status: truth, reason, message });
    }
}

/// When what it was told started here, whether it is healthy, and if not, whether it ever was. Whoever decides what it is told, its placement
/// or its user, the clock starts with it.
fn keep_clock(
    fleet: &Fleet<'_>,
    member: &Member<'_>,
    instance: &Instance,
    decided: &Move,
    starts: bool,
    draft: &mut Draft,
) {
    let told = decided.told.as_deref();
    let kept = instance.status.condition(conditions::REVISION_HEALTHY);
    if told.is_none() && kept.is_none() {
        return;
    }
    // While it is told nothing new its clock runs on. Where its user decides what it gets, its placement's revision may change under it: then
    // the clock is that of the new one, but whether it has been healthy with what it has does not change.
    let running = kept.filter(|_| !starts);
    let has_arrived =
        running.is_some_and(|condition| condition.is_true() || condition.reason == NO_LONGER_HEALTHY);
    let running =
        running.filter(|condition| told.is_none_or(|told| Clock::is_for(&condition.message, &told.id)));
    let healthy = !starts && member.evidence().arrived();
    let reason = match (healthy, has_arrived) {
        (true, _) => HEALTHY,
        (false, true) => NO_LONGER_HEALTHY,
        (false, false) => NOT_YET_HEALTHY,
    };
    let ahead = matches!(decided.decision, Decision::InFlight(_))
        && minds_clocks(fleet, member)
        && running.is_some_and(|condition| is_ahead(condition, draft.now));
    let message = match running {
        Some(condition)
            if condition.reason == reason
                && condition.observed_generation == Some(draft.generation)
                && !ahead =>
        {
            return;
        }
        Some(condition) if ahead => clock_message(Clock::revision(&condition.message), draft.now).into(),
        Some(condition) => condition.message.clone(),
        None => clock_message(told.map_or("", |told| &told.id), draft.now).into(),
    };
    let status = if healthy { "True" } else { "False" };
    draft.state(Stated { kind: conditions::REVISION_HEALTHY, status, reason, message });
    if ahead {
        let now = draft.now;
        let clocks =
            draft.status.conditions.iter_mut().filter(|one| one.kind == conditions::REVISION_HEALTHY);
        clocks.for_each(|clock| clock.since = Some(now));
    }
}

/// The rollout that it is in waits for times to pass.
fn minds_clocks(fleet: &Fleet<'_>, member: &Member<'_>) -> bool {
    let placement = member.governor().and_then(|index| fleet.observed.addon.strategy.placements().get(index));
    placement.is_some_and(|placement| {
        !placement.rollout.min_success_time.is_zero() || placement.rollout.progress_deadline.is_some()
    })
}

/// It was written when some clock was ahead of this one. What is under way would wait until then: it begins anew.
fn is_ahead(condition: &Condition, now: Timestamp) -> bool {
    condition.since.is_some_and(|since| since > now)
        || Clock::started(&condition.message).is_some_and(|started| started > now)
}

/// The one place that picks a vocabulary: the drafts' where a version was given by the drafts' shorthand.
fn by_shorthand(fleet: &Fleet<'_>, member: &Member<'_>, instance: &Instance) -> bool {
    let explicit = |configs: &[ConfigRef]| {
        let chooses = [GroupResource::hub_configs(), GroupResource::templates()];
        configs.iter().any(|config| chooses.contains(&&config.kind))
    };
    if explicit(&instance.overrides) {
        return false;
    }
    let placement = member.governor().and_then(|index| fleet.observed.addon.strategy.placements().get(index));
    instance.version.is_some()
        || placement.is_some_and(|placement| placement.version.is_some() && !explicit(&placement.configs))
}

type Wording = Option<(&'static str, &'static str, Word)>;

/// The words of the final document.
fn final_words(progress: &Progress, last: Option<&str>) -> Wording {
    Some(match progress {
        Progress::Untold => return None,
        Progress::Moving { first: true } => ("True", "Installing", "installing...".into()),
        Progress::Moving { first: false } => ("True", "Upgrading", "upgrading...".into()),
        Progress::Done { first: true } => {
            ("False", "InstallSucceed", "install completed with no errors.".into())
        }
        Progress::Done { first: false } => {
            ("False", "UpgradeSucceed", "upgrade completed with no errors.".into())
        }
        Progress::Failed { first: true, why } => {
            ("False", "InstallFailed", format!("install failed: {why}").into())
        }
        Progress::Failed { first: false, why } => {
            ("False", "UpgradeFailed", format!("upgrade failed: {why}").into())
        }
        Progress::Stuck { problem: problem @ Problem::ConfigUnsupported { .. }, .. } => {
            ("False", "ConfigurationUnsupported", problem.to_string().into())
        }
        Progress::Stuck { first, problem, .. } => {
            let reason = if *first { "InstallFailed" } else { "UpgradeFailed" };
            ("False", reason, stuck(*first, problem, last).into())
        }
    })
}

/// The words of the earlier drafts.
fn drafts(progress: &Progress, desired: Option<&str>, last: Option<&str>) -> Wording {
    let version = desired.unwrap_or(UNKNOWN_VERSION);
    Some(match progress {
        Progress::Untold => return None,
        Progress::Moving { first } if *first || last.is_none_or(|last| last == UNKNOWN_VERSION) => {
            ("True", "Installing", format!("Installing addon to version {version}.").into())
        }
        Progress::Moving { .. } if goes_back(version, last) => {
            ("True", "Rollingback", format!("Rollingback addon to version {version}.").into())
        }
        Progress::Moving { .. } => {
            ("True", "Upgrading", format!("Upgrading addon to version {version}.").into())
        }
        Progress::Done { .. } => ("False", "Succeed", "install completed with no errors.".into()),
        Progress::Failed { first, why } => (
            "False",
            "Failed",
            format!("{} failed: {why}", if *first { "install" } else { "upgrade" }).into(),
        ),
        Progress::Stuck { problem: problem @ Problem::ConfigUnsupported { .. }, .. } => {
            ("False", "ConfigurationUnsupported", problem.to_string().into())
        }
        Progress::Stuck { first, problem, .. } => ("False", "Failed", stuck(*first, problem, last).into()),
    })
}

fn goes_back(version: &str, last: Option<&str>) -> bool {
    last.is_some_and(|last| last != UNKNOWN_VERSION && versions::is_before(version, last))
}

fn stuck(first: bool, problem: &Problem, last: Option<&str>) -> String {
    match problem {
        Problem::VersionUnsupported { version, .. } => match (first, goes_back(version, last)) {
            (true, _) => format!("could not install invalid version {version}"),
            (false, true) => format!("could not rollback to invalid version {version}"),
            (false, false) => format!("could not upgrade to invalid version {version}"),
        },
        problem if first => format!("install failed: {problem}"),
        problem => format!("upgrade failed: {problem}"),
    }
}

/// What the works say. While the agent has not reported on them as they are now, what was said before stands: it would only be
/// written to be written again.
fn availability(member: &Member<'_>, instance: &Instance) -> Wording {
    if let Some(why) = &member.evidence().unavailable {
        return Some(("False", "WorkNotAvailable", why.to_string().into()));
    }
    if member.evidence().available {
        return Some(("True", "WorksAvailable", "all works are available".into()));
    }
    let unsaid = instance.status.condition(conditions::AVAILABLE).is_none();
    unsaid.then(|| ("Unknown", "WorksNotReported", "the agent has not reported on all works yet".into()))
}
