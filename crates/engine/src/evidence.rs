//! What a cluster's works prove: whether it has what it was told, and whether that is healthy (semantics §7.1).
//!
//! Nothing counts as applied because somebody wrote so; it counts because every work carries the hashes and the cluster's
//! agent has reported on the work as it is now.

use aviary_api::names::conditions::{PROGRESSING, REVISION_HEALTHY};
use jiff::Timestamp;

use crate::configs::{Overrides, Pin, Revision};
use crate::name::{Text, same};
use crate::observed::{Instance, Seen, StatusFields, Work, WorkHashes, WorkState};
use crate::render::{Prepared, Rendering};
use crate::shared::Shared;

/// What is known of one instance from its works and its own status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// It was told something once; that may be nothing, for an add-on without configs.
    pub told: bool,
    /// It has had something applied at some time.
    pub installed: bool,
    /// It has moved from one revision to another at some time.
    pub upgraded: bool,
    /// Its works carry exactly the hashes it was told.
    pub holds_told: bool,
    /// The same, leaving out the kinds that its user overrides.
    pub holds_placed: bool,
    /// Every work is applied and available as it is now.
    pub healthy: bool,
    /// It has works, and all are available.
    pub available: bool,
    /// Why the agent could not apply a work as it is now.
    pub failure: Option<Text>,
    /// Why a work is not available.
    pub unavailable: Option<Text>,
}

impl Evidence {
    pub fn of<'a>(
        status: &StatusFields,
        works: &(impl Iterator<Item = &'a Work> + Clone),
        overrides: Option<&Overrides>,
        prepared: Option<&Rendering>,
    ) -> Self {
        // Where we render the works we know how many there must be; a part of them is not all of them.
        let complete = match prepared {
            Some(Ok(prepared)) => works.clone().count() == prepared.works(),
            Some(Err(_)) | None => works.clone().next().is_some(),
        };
        let told = was_told(status);
        let current = complete && told && works.clone().all(|work| !work.deleting);
        let holds_told = current && works.clone().all(|work| carries(work, status, None));
        let holds_placed = match overrides {
            None => holds_told,
            Some(_) => current && works.clone().all(|work| carries(work, status, overrides)),
        };
        let healthy =
            current && works.clone().all(|work| work.applied == Seen::Yes && work.available == Seen::Yes);
        // Only a refusal of what it was told counts against it, not one of what it had before. Of several, always the same one.
        let refused = works
            .clone()
            .filter(|work| carries(work, status, overrides))
            .filter_map(|work| refusal(&work.applied))
            .min();
        let unrendered = match prepared {
            Some(Err(problem)) if !holds_told => Some(problem.to_string().into()),
            _ => None,
        };
        Self {
            told,
            installed: was_installed(status),
            upgraded: was_upgraded(status),
            holds_told,
            holds_placed,
            healthy,
            available: works.clone().next().is_some()
                && works.clone().all(|work| work.available == Seen::Yes),
            failure: unrendered.or(refused).or_else(|| taken_before(status, works)),
            unavailable: works.clone().filter_map(|work| refusal(&work.available)).min(),
        }
    }

    /// Everything it was told is there, applied and available.
    pub fn arrived(&self) -> bool {
        self.holds_told && self.healthy
    }
}

/// What is said of a work that cannot be made because there is another of that name, whose it is not ours to touch.
const NAME_TAKEN: &str = "is there and belongs to somebody else: delete it, or give it another name";

impl Work {
    /// A work of somebody else with a name that ours should have, as it looks from here: not ours to write, and why nothing is applied.
    pub fn of_somebody_else(name: Text, told: &Revision) -> Self {
        let mut hashes: WorkHashes =
            told.pins().iter().map(|pin| (pin.config.kind.clone(), pin.hash.clone())).collect();
        hashes.sort();
        let message = format!("work {name} {NAME_TAKEN}").into();
        let state = WorkState {
            name,
            // It is waited for as for one that goes.
            deleting: true,
            version: None,
            rendered_from: None,
            applied: Seen::No { message },
            available: Seen::NotYet,
        };
        Self {
            uid: "".into(),
            resource_version: "".into(),
            generation: 0,
            owner: None,
            rendered_digest: None,
            digest: None,
            hashes: Some(hashes),
            state: Shared::new(state),
        }
    }
}

/// Nobody sees the works of others. So what was said of one stands for as long as there is none of ours: else a manager that starts would take
/// it back, to find the same again.
fn taken_before<'a>(status: &StatusFields, works: &(impl Iterator<Item = &'a Work> + Clone)) -> Option<Text> {
    let said = status.condition(PROGRESSING).filter(|_| works.clone().next().is_none())?;
    let why = said.message.strip_suffix(NAME_TAKEN).map(|_| &*said.message)?;
    let why = why.split_once(" failed: ").map_or(why, |(_, why)| why);
    Some(why.into())
}

fn refusal(seen: &Seen) -> Option<Text> {
    match seen {
        Seen::No { message } => Some(message.clone()),
        Seen::Yes | Seen::NotYet => None,
    }
}

/// Whether a work's annotations are the hashes the instance was told, of all kinds or of those that are not overridden.
fn carries(work: &Work, status: &StatusFields, overrides: Option<&Overrides>) -> bool {
    let counts = |kind: &_| overrides.is_none_or(|overrides| !overrides.covers(kind));
    let mut told = status.told().filter(|pin| counts(&pin.config.kind)).peekable();
    let Some(hashes) = &work.hashes else { return told.peek().is_none() };
    let mut found = hashes.iter().filter(|(kind, _)| counts(kind));
    told.all(|pin| found.next().is_some_and(|(kind, hash)| *kind == pin.config.kind && *hash == pin.hash))
        && found.next().is_none()
}

fn was_told(status: &StatusFields) -> bool {
    status.told().next().is_some() || status.condition(REVISION_HEALTHY).is_some()
}

fn was_upgraded(status: &StatusFields) -> bool {
    status.last_version.is_some()
        || status.condition(PROGRESSING).is_some_and(|condition| {
            matches!(&*condition.reason, "Upgrading" | "UpgradeSucceed" | "UpgradeFailed" | "Rollingback")
        })
}

/// It was rendered from what the instance is told.
pub fn is_rendered_as_told(
    work: &Work,
    prepared: &Prepared,
    status: &StatusFields,
    install_namespace: &str,
) -> bool {
    let Some(hashes) = &work.hashes else { return false };
    let told = status.told().map(|pin| (&pin.config.kind, &pin.hash));
    work.rendered_from.as_deref().is_some_and(|mark| prepared.marks(mark, install_namespace))
        && work.version == prepared.version_label()
        && hashes.iter().map(|(kind, hash)| (kind, hash)).eq(told)
}

/// It was written for this instance, and nobody has changed it since.
pub fn is_as_written_for(work: &Work, instance: &Instance) -> bool {
    work.is_untouched() && work.owner.as_ref().is_some_and(|owner| same(owner, &instance.uid))
}

/// The add-on has been there once: something is recorded as applied, or, for an add-on without configs, its condition says so.
fn was_installed(status: &StatusFields) -> bool {
    status.references.iter().any(|reference| reference.applied.is_some())
        || status.condition(PROGRESSING).is_some_and(|condition| {
            matches!(
                &*condition.reason,
                "InstallSucceed"
                    | "Upgrading"
                    | "UpgradeSucceed"
                    | "UpgradeFailed"
                    | "Succeed"
                    | "Rollingback"
            )
        })
}

/// Whether what the instance was told is the same as `pins`, leaving out the kinds that its user overrides.
pub fn told_same(status: &StatusFields, pins: &[Pin], overrides: Option<&Overrides>) -> bool {
    let counts = |pin: &&Pin| overrides.is_none_or(|overrides| !overrides.covers(&pin.config.kind));
    let mut wanted = pins.iter().filter(counts);
    let mut told = status.told().filter(counts);
    loop {
        match (wanted.next(), told.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a.hash == b.hash && a.config.kind == b.config.kind => {}
            _ => return false,
        }
    }
}

/// Whether what the instance was told includes all of `pins`, whoever decided it.
pub fn told_includes(status: &StatusFields, pins: &[Pin]) -> bool {
    let mut told = status.told();
    pins.iter().all(|pin| told.any(|own| own.config.kind == pin.config.kind && own.hash == pin.hash))
}

/// Reasons of the condition that keeps the clock.
pub const HEALTHY: &str = "Healthy";
pub const NOT_YET_HEALTHY: &str = "NotYetHealthy";
pub const NO_LONGER_HEALTHY: &str = "NoLongerHealthy";

/// When the present revision started on this cluster, and since when it has been healthy or not. Kept in a condition of the
/// instance, so that a restart of the manager starts no clock anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    pub started: Timestamp,
    pub healthy: bool,
    /// It has been healthy at some time since then.
    pub has_arrived: bool,
    /// Since when `healthy` is what it is.
    pub since: Timestamp,
}

impl Clock {
    /// The clock that an instance carries, if it is one of `revision`.
    pub fn of(status: &StatusFields, revision: &str) -> Option<Self> {
        let condition = status.condition(REVISION_HEALTHY)?;
        Self::is_for(&condition.message, revision).then(|| Self::carried_by(status)).flatten()
    }

    /// The clock that an instance carries, of whatever it was told last.
    pub fn carried_by(status: &StatusFields) -> Option<Self> {
        let condition = status.condition(REVISION_HEALTHY)?;
        let started = read_message(&condition.message)?;
        Some(Self {
            started,
            healthy: condition.is_true(),
            has_arrived: condition.is_true() || condition.reason == NO_LONGER_HEALTHY,
            since: condition.since.unwrap_or(started),
        })
    }

    /// The revision that the clock with this message is for.
    pub fn revision(message: &str) -> &str {
        let rest = message.strip_prefix("revision ").and_then(|rest| rest.split_once(" started at "));
        rest.map_or("", |(revision, _)| revision)
    }

    /// When the clock with this message started.
    pub fn started(message: &str) -> Option<Timestamp> {
        read_message(message)
    }

    /// Whether a condition's message is that of a clock for this revision.
    pub fn is_for(message: &str, revision: &str) -> bool {
        let rest = message.strip_prefix("revision ").and_then(|rest| rest.strip_prefix(revision));
        rest.is_some_and(|rest| rest.starts_with(" started at "))
    }

    /// Since when it is neither settled nor on its way for the first time.
    pub fn unsettled_since(&self) -> Timestamp {
        if self.healthy { self.started } else { self.started.max(self.since) }
    }
}

/// The message under which the start of a revision is kept.
pub fn clock_message(revision: &str, started: Timestamp) -> String {
    format!("revision {revision} started at {started}")
}

fn read_message(message: &str) -> Option<Timestamp> {
    let (_, started) = message.strip_prefix("revision ")?.split_once(" started at ")?;
    started.parse().ok()
}
