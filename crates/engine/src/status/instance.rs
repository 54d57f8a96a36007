//! The status of one instance: what it was told, what it has, and how far it is.

use std::collections::BTreeMap;

use aviary_api::names::{UNKNOWN_VERSION, conditions};
use jiff::Timestamp;

use super::{Stated, set};
use crate::configs::{ConfigRef, GroupResource, Pin, Revision};
use crate::evidence::{Clock, clock_message};
use crate::explain::{Decision, Flight, Wait};
use crate::fleet::{Fleet, Member};
use crate::name::Text;
use crate::observed::{Instance, InstanceStatus, Lookup, Reference, Seen};
use crate::problem::Problem;
use crate::rollout::Move;
use crate::versions;

/// The status that the instance should have after this pass.
pub fn next(fleet: &Fleet<'_>, member: &Member<'_>, instance: &Instance, decided: &Move, now: Timestamp) -> InstanceStatus {
    let mut status = instance.status.clone();
    if let Some(supported) = fleet.resolver.supported() {
        status.supported = supported.iter().cloned().collect();
    }
    status.references = references(fleet, member, instance, decided);
    let changed = status.told().map(|pin| &pin.hash).ne(instance.status.told().map(|pin| &pin.hash))
        || (status.references.is_empty() && decided.starts);
    let progress = progress(member, instance, decided, changed);
    versions(fleet, member, instance, decided, &progress, &mut status);
    report(fleet, member, instance, decided, &progress, &mut status, now);
    status
}

/// How far the instance is with what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing was told, and nothing can be said.
    Untold,
    Moving { first: bool },
    Failed { first: bool, why: Text },
    /// A problem keeps it from what it should have; it stays on what it has.
    Stuck { first: bool, problem: Problem },
    Done { first: bool },
}

fn progress(member: &Member<'_>, instance: &Instance, decided: &Move, changed: bool) -> Progress {
    let evidence = &member.evidence;
    let first = !evidence.installed;
    if decided.starts || changed {
        return Progress::Moving { first };
    }
    let problem = match &decided.decision {
        Decision::Hold(Wait::Problem(problem)) => Some(problem),
        _ => member.overrides.as_ref().and_then(|overrides| overrides.problems.first()),
    };
    let untold = instance.status.references.iter().all(|reference| reference.desired.is_none())
        && instance.status.condition(conditions::PROGRESSING).is_none();
    if untold {
        return problem.map_or(Progress::Untold, |problem| Progress::Stuck { first, problem: problem.clone() });
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
            None if nothing_told(instance) => problem.map_or(Progress::Untold, |problem| Progress::Stuck { first, problem: problem.clone() }),
            None => Progress::Moving { first },
        };
    }
    match problem {
        Some(problem) => Progress::Stuck { first: false, problem: problem.clone() },
        None => Progress::Done { first: first || stays_first(instance) },
    }
}

/// Configs were never told, although there are some to tell: the add-on waits for them.
fn nothing_told(instance: &Instance) -> bool {
    let reason = instance.status.condition(conditions::PROGRESSING).map(|condition| &*condition.reason);
    instance.status.told().next().is_none() && matches!(reason, Some("InstallFailed" | "Failed" | "ConfigurationUnsupported"))
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

fn references(fleet: &Fleet<'_>, member: &Member<'_>, instance: &Instance, decided: &Move) -> Vec<Reference> {
    let recorded = &instance.status.references;
    let mut next: BTreeMap<&GroupResource, (Option<Pin>, Option<Pin>)> = BTreeMap::new();
    for reference in recorded {
        // What has been proved to be there is applied; until then it is what was there before.
        let applied =
            if member.evidence.arrived() { reference.desired.clone() } else { reference.applied.clone() };
        let keeps = decided.told.is_none();
        let desired = reference.desired.clone().filter(|_| keeps);
        next.insert(&reference.kind, (desired, applied));
    }
    let told = decided.told.as_ref().map_or(&[][..], |told| told.revision.pins());
    let overridden = member.overrides.as_ref().map_or(&[][..], |overrides| overrides.pins.as_slice());
    for pin in told.iter().chain(overridden) {
        next.entry(&pin.config.kind).or_default().0 = Some(pin.clone());
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

/// The generation of the config whose content is pinned: of the live object while it still has that content.
fn generation(fleet: &Fleet<'_>, pin: &Pin, recorded: &[Reference]) -> Option<i64> {
    match fleet.observed.configs.get(&pin.config) {
        Some(Lookup::Found(live)) if live.hash == pin.hash => Some(live.generation),
        _ => recorded
            .iter()
            .find(|reference| reference.desired.as_ref().is_some_and(|desired| desired.hash == pin.hash))
            .and_then(|reference| reference.observed_generation),
    }
}

fn versions(
    fleet: &Fleet<'_>,
    member: &Member<'_>,
    instance: &Instance,
    decided: &Move,
    progress: &Progress,
    status: &mut InstanceStatus,
) {
    let own = member.overrides.is_some();
    let told = match &decided.told {
        Some(told) if !own => told.version.clone(),
        None if !own => instance.status.desired_version.clone().filter(|_| status.told().next().is_some()),
        _ => versions::of_revision(fleet.observed, &Revision::new(status.told().cloned().collect())),
    };
    let wanted = match progress {
        Progress::Stuck { problem: Problem::VersionUnsupported { version, .. }, .. } => Some(version.clone()),
        _ => told.clone(),
    };
    if wanted.is_none() && instance.status.desired_version.is_none() {
        return;
    }
    if wanted != instance.status.desired_version {
        status.last_version = instance.status.desired_version.clone().map(|last| {
            let offered = fleet.resolver.offered.is_empty() || fleet.resolver.offered.contains(&last);
            if offered { last } else { UNKNOWN_VERSION.into() }
        });
        status.desired_version.clone_from(&wanted);
    }
    status.current_version = match progress {
        Progress::Done { .. } => told,
        Progress::Stuck { problem: Problem::VersionUnsupported { .. }, .. }
        | Progress::Moving { .. }
        | Progress::Failed { .. } => Some(UNKNOWN_VERSION.into()),
        Progress::Stuck { .. } | Progress::Untold => instance.status.current_version.clone(),
    };
}

fn report(
    fleet: &Fleet<'_>,
    member: &Member<'_>,
    instance: &Instance,
    decided: &Move,
    progress: &Progress,
    status: &mut InstanceStatus,
    now: Timestamp,
) {
    let InstanceStatus { conditions, desired_version, last_version, .. } = status;
    let mut state = |new: Stated<'_>| set(conditions, instance.generation, now, new);
    let wording = if by_shorthand(fleet, member, instance) {
        drafts(progress, desired_version.as_deref(), last_version.as_deref())
    } else {
        final_words(progress, last_version.as_deref())
    };
    if let Some((truth, reason, message)) = wording {
        state(Stated { kind: conditions::PROGRESSING, status: truth, reason, message: &message });
        let problem = match progress {
            Progress::Stuck { problem, .. } => Some(problem),
            _ => member.overrides.as_ref().and_then(|overrides| overrides.problems.first()),
        };
        let (truth, reason, message) = match problem {
            None => ("True", "ConfigurationsConfigured", "all configurations are resolved".to_owned()),
            Some(problem) => ("False", problem.code(), problem.to_string()),
        };
        state(Stated { kind: conditions::CONFIGURED, status: truth, reason, message: &message });
    }
    if fleet.observed.renders_templates()
        && let Some((truth, reason, message)) = availability(member, instance)
    {
        state(Stated { kind: conditions::AVAILABLE, status: truth, reason, message: &message });
    }
    if let Some(told) = &decided.told {
        let clock = Clock::of(instance, &told.id).filter(|_| !decided.starts);
        let started = clock.map_or(now, |clock| clock.started);
        let healthy = !decided.starts && member.evidence.holds_placed && member.evidence.healthy;
        state(Stated {
            kind: conditions::REVISION_HEALTHY,
            status: if healthy { "True" } else { "False" },
            reason: if healthy { "Healthy" } else { "NotHealthy" },
            message: &clock_message(&told.id, started),
        });
    }
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
    let placement = member.governor.and_then(|index| fleet.observed.addon.strategy.placements().get(index));
    instance.version.is_some()
        || placement.is_some_and(|placement| {
            placement.version.is_some() && !explicit(&placement.configs)
        })
}

type Wording = Option<(&'static str, &'static str, String)>;

/// The words of the final document.
fn final_words(progress: &Progress, last: Option<&str>) -> Wording {
    Some(match progress {
        Progress::Untold => return None,
        Progress::Moving { first: true } => ("True", "Installing", "installing...".to_owned()),
        Progress::Moving { first: false } => ("True", "Upgrading", "upgrading...".to_owned()),
        Progress::Done { first: true } => ("False", "InstallSucceed", "install completed with no errors.".to_owned()),
        Progress::Done { first: false } => ("False", "UpgradeSucceed", "upgrade completed with no errors.".to_owned()),
        Progress::Failed { first: true, why } => ("False", "InstallFailed", format!("install failed: {why}")),
        Progress::Failed { first: false, why } => ("False", "UpgradeFailed", format!("upgrade failed: {why}")),
        Progress::Stuck { problem: problem @ Problem::ConfigUnsupported { .. }, .. } => {
            ("False", "ConfigurationUnsupported", problem.to_string())
        }
        Progress::Stuck { first, problem } => {
            let reason = if *first { "InstallFailed" } else { "UpgradeFailed" };
            ("False", reason, stuck(*first, problem, last))
        }
    })
}

/// The words of the earlier drafts.
fn drafts(progress: &Progress, desired: Option<&str>, last: Option<&str>) -> Wording {
    let version = desired.unwrap_or(UNKNOWN_VERSION);
    let back = last.is_some_and(|last| last != UNKNOWN_VERSION && versions::compare(version, last).is_lt());
    Some(match progress {
        Progress::Untold => return None,
        Progress::Moving { first } if *first || last.is_none_or(|last| last == UNKNOWN_VERSION) => {
            ("True", "Installing", format!("Installing addon to version {version}."))
        }
        Progress::Moving { .. } if back => ("True", "Rollingback", format!("Rollingback addon to version {version}.")),
        Progress::Moving { .. } => ("True", "Upgrading", format!("Upgrading addon to version {version}.")),
        Progress::Done { .. } => ("False", "Succeed", "install completed with no errors.".to_owned()),
        Progress::Failed { first, why } => {
            ("False", "Failed", format!("{} failed: {why}", if *first { "install" } else { "upgrade" }))
        }
        Progress::Stuck { first, problem } => ("False", "Failed", stuck(*first, problem, last)),
    })
}

fn stuck(first: bool, problem: &Problem, last: Option<&str>) -> String {
    match problem {
        Problem::VersionUnsupported { version, .. } => {
            let back = last.is_some_and(|last| last != UNKNOWN_VERSION && versions::compare(version, last).is_lt());
            match (first, back) {
                (true, _) => format!("could not install invalid version {version}"),
                (false, true) => format!("could not rollback to invalid version {version}"),
                (false, false) => format!("could not upgrade to invalid version {version}"),
            }
        }
        problem if first => format!("install failed: {problem}"),
        problem => format!("upgrade failed: {problem}"),
    }
}

/// What the works say. While the agent has not reported on them as they are now, what was said before stands: it would only be
/// written to be written again.
fn availability(member: &Member<'_>, instance: &Instance) -> Wording {
    if let Some(why) = &member.evidence.unavailable {
        return Some(("False", "WorkNotAvailable", why.to_string()));
    }
    if !member.works.is_empty() && member.works.iter().all(|work| work.available == Seen::Yes) {
        return Some(("True", "WorksAvailable", "all works are available".to_owned()));
    }
    let unsaid = instance.status.condition(conditions::AVAILABLE).is_none();
    unsaid.then(|| ("Unknown", "WorksNotReported", "the agent has not reported on all works yet".to_owned()))
}
