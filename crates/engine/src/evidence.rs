//! What a cluster's works prove: whether the assigned revision is applied, and whether it is
//! healthy (rule 7.1).
//!
//! A revision counts as applied only if every work carries its hashes and the cluster's agent has
//! reported on the current generation of each work.

use aviary_api::names::conditions::{PROGRESSING, REVISION_HEALTHY};

use crate::configs::{GroupResource, Overrides, Pin, Revision};
use crate::fleet::WorkFacts;
use crate::hash::Hash;
use crate::health::{Health, Leniency, unbound};
use crate::name::Text;
use crate::observed::{Seen, StatusFields, Work, WorkState};
use crate::reason::Reason;
use crate::render::{Prepared, Rendering};
use crate::shared::Shared;

/// What is known of one instance from its works and its own status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// A revision was assigned at some time, possibly an empty one for an add-on without configs.
    pub told: bool,
    /// It has had something applied and healthy at some time.
    pub installed: bool,
    /// Some work of it has been applied at some time, healthy or not: nothing it gets from now on
    /// is a first install.
    pub delivered: bool,
    /// It has moved from one revision to another at some time.
    pub upgraded: bool,
    /// Its works carry exactly the assigned hashes.
    pub holds_told: bool,
    /// The same, leaving out the kinds that its user overrides.
    pub holds_placed: bool,
    /// The current generation of every work is applied and available.
    pub healthy: bool,
    /// The agent has reported success or failure for the current generation of every work.
    pub answered: bool,
    pub has_works: bool,
    /// It has works, and all are available and healthy.
    pub available: bool,
    /// What the agent reports about the objects of its works.
    pub health: Health,
    /// Why the agent could not apply the current generation of a work.
    pub failure: Option<Text>,
    /// Why a work is not available.
    pub unavailable: Option<Text>,
    /// Why the existing works do not prove the assigned revision.
    pub unproven: Option<Text>,
}

impl Evidence {
    pub(crate) fn of(
        status: &StatusFields,
        works: &[WorkFacts<'_>],
        overrides: Option<&Overrides>,
        prepared: Option<&Rendering>,
        version: Option<&Text>,
        leniency: Leniency,
        may_lack_probes: bool,
    ) -> Self {
        let proof = WorksProof { status, version };
        let told = was_told(status);
        let current =
            are_complete(works, prepared, may_lack_probes) && told && works.iter().all(|work| !work.deleting);
        let holds_told = current && works.iter().all(|work| proof.carries(work, None));
        let holds_placed = match overrides {
            None => holds_told,
            Some(_) => current && works.iter().all(|work| proof.carries(work, overrides)),
        };
        // An add-on's own manager sets the instance's Available.
        let own_word = match prepared {
            None => unbound::of_instance(status),
            Some(_) => Health::NotProbed,
        };
        let is_spoken_for = own_word.is_good(leniency);
        let is_well = |work: &WorkFacts<'_>| {
            work.applied == Seen::Yes && work.available == Seen::Yes && work.health.is_good(leniency)
        };
        let installed = was_installed(status);
        // A work that we rendered shows that something was assigned, also to an instance whose
        // status is gone.
        let was_applied =
            || works.iter().any(|work| work.was_applied && (told || work.rendered_from.is_some()));
        Self {
            told,
            installed,
            delivered: installed || was_delivered(status) || was_applied(),
            upgraded: was_upgraded(status),
            holds_told,
            holds_placed,
            healthy: current && is_spoken_for && works.iter().all(is_well),
            answered: current && works.iter().all(|work| work.applied != Seen::NotYet),
            has_works: !works.is_empty(),
            available: is_spoken_for
                && !works.is_empty()
                && works.iter().all(|work| work.available == Seen::Yes && work.health.is_good(leniency)),
            health: works
                .iter()
                .map(|work| work.health.clone().seen_in_use(leniency.has_settled))
                .fold(own_word, Health::worst),
            failure: unrendered(prepared, holds_told)
                .or_else(|| proof.rejection(works, overrides))
                .or_else(|| taken_before(status, works)),
            unavailable: works.iter().filter_map(|work| refusal(&work.available)).min(),
            unproven: works.iter().filter_map(|work| proof.lacks(work, overrides)).min(),
        }
    }

    /// Nothing was ever applied on the cluster: a failure is one of the install.
    pub fn never_applied(&self) -> bool {
        !self.delivered && !self.arrived()
    }

    /// The assigned revision is applied and available.
    pub fn arrived(&self) -> bool {
        self.holds_told && self.healthy
    }
}

/// The message if a work cannot be created because a work of another owner has its name.
const NAME_TAKEN: &str = "exists and has another owner: delete or rename it";

pub(crate) fn name_taken(work: &str) -> Text {
    format!("work {work} {NAME_TAKEN}").into()
}

impl Work {
    /// Represents another owner's work that has the name of one of ours: it is not written, and
    /// explains why nothing is applied.
    pub fn of_somebody_else(name: Text, told: &Revision) -> Self {
        let message = name_taken(&name);
        let state = WorkState {
            name,
            hosted_on: None,
            // Like a work that is being deleted: we wait until the name is free.
            deleting: true,
            version: None,
            rendered_from: None,
            applied: Seen::No { message },
            was_applied: false,
            available: Seen::NotYet,
            health: Health::NotProbed,
            probed: false,
            objects: Vec::new(),
        };
        Self {
            uid: "".into(),
            resource_version: "".into(),
            generation: 0,
            owner: None,
            rendered_digest: None,
            digest: None,
            hashes: Some(told.hashes()),
            available_since: None,
            state: Shared::new(state),
        }
    }
}

/// Works of other owners are not watched. So the message is kept until our work exists. Otherwise a
/// restarted manager would remove the message and then find the same problem again.
fn taken_before(status: &StatusFields, works: &[WorkFacts<'_>]) -> Option<Text> {
    let said = status.condition(PROGRESSING).filter(|_| works.is_empty())?;
    let why = said.message.strip_suffix(NAME_TAKEN).map(|_| &*said.message)?;
    let why = why.split_once(" failed: ").map_or(why, |(_, why)| why);
    Some(why.into())
}

/// Whether these are all works of the assigned revision. If Aviary renders them, it knows how many
/// there must be; a part is not enough.
fn are_complete(works: &[WorkFacts<'_>], prepared: Option<&Rendering>, may_lack_probes: bool) -> bool {
    match prepared {
        Some(Ok(prepared)) => {
            prepared.is_all(works) && (may_lack_probes || !works.iter().any(WorkFacts::is_without_probes))
        }
        Some(Err(_)) | None => !works.is_empty(),
    }
}

/// Why the assigned revision cannot be rendered. None if the works already carry the revision.
fn unrendered(prepared: Option<&Rendering>, holds_told: bool) -> Option<Text> {
    match prepared {
        Some(Err(problem)) if !holds_told => Some(problem.to_string().into()),
        _ => None,
    }
}

fn refusal(seen: &Seen) -> Option<Text> {
    match seen {
        Seen::No { message } => Some(message.clone()),
        Seen::Yes | Seen::NotYet => None,
    }
}

/// What an instance's works must prove.
struct WorksProof<'a> {
    status: &'a StatusFields,
    /// The assigned version.
    version: Option<&'a Text>,
}

impl<'a> WorksProof<'a> {
    /// Whether a work proves the assigned revision: all kinds, or those that are not overridden.
    fn carries(&self, work: &WorkFacts<'_>, overrides: Option<&Overrides>) -> bool {
        let Some(hashes) = work.hashes else {
            return match self.shows_version(work) {
                true => self.told(overrides).all(|pin| pin.config.kind.chooses_version()),
                false => self.told(overrides).next().is_none(),
            };
        };
        let counts = |kind: &_| overrides.is_none_or(|overrides| !overrides.covers(kind));
        are_hashes_of(hashes.iter().filter(|(kind, _)| counts(kind)), self.told(overrides))
    }

    /// Why the agent could not apply the assigned revision. A rejection of an earlier revision does
    /// not count. Of several, always the same one.
    fn rejection(&self, works: &[WorkFacts<'_>], overrides: Option<&Overrides>) -> Option<Text> {
        let carriers = works.iter().filter(|work| self.carries(work, overrides));
        carriers.filter_map(|work| refusal(&work.applied)).min()
    }

    /// Why a work that carries no hashes, but the right version, is not enough.
    fn lacks(&self, work: &WorkFacts<'_>, overrides: Option<&Overrides>) -> Option<Text> {
        if work.hashes.is_some() || !self.shows_version(work) {
            return None;
        }
        let unproven = self.told(overrides).find(|pin| !pin.config.kind.chooses_version())?;
        let (name, kind) = (&work.name, &unproven.config.kind);
        Some(
            format!("work {name} carries a version but no config hashes, so nothing proves its {kind}")
                .into(),
        )
    }

    /// Its manager labels works with a version, as the earlier design documents have it, and this
    /// is the one.
    fn shows_version(&self, work: &WorkFacts<'_>) -> bool {
        self.version.is_some() && work.version.as_ref() == self.version
    }

    fn told<'s>(&'s self, overrides: Option<&'s Overrides>) -> impl Iterator<Item = &'a Pin> + Clone + 's {
        self.status.told().filter(move |pin| overrides.is_none_or(|own| !own.covers(&pin.config.kind)))
    }
}

fn was_told(status: &StatusFields) -> bool {
    status.told().next().is_some() || status.condition(REVISION_HEALTHY).is_some()
}

fn was_upgraded(status: &StatusFields) -> bool {
    status.last_version.is_some() || reports_upgrade(status)
}

/// Whether the reported reason is that of an upgrade that really was one. If something was applied
/// but never healthy, its failure is reported as `UpgradeFailed` although nothing was upgraded.
fn reports_upgrade(status: &StatusFields) -> bool {
    !was_delivered(status)
        && status.condition(PROGRESSING).is_some_and(|condition| condition.reason.is(Reason::is_upgrade))
}

/// Whether it was rendered from the assigned revision of the instance.
pub(crate) fn is_rendered_as_told(
    work: &WorkFacts<'_>,
    prepared: &Prepared,
    status: &StatusFields,
    install_namespace: &str,
) -> bool {
    work.rendered_from.as_deref().is_some_and(|mark| prepared.marks(mark, install_namespace))
        && work.version == prepared.version_label()
        && carries_told(work, status)
}

/// Whether its hashes are those of the assigned revision.
pub(crate) fn carries_told(work: &WorkFacts<'_>, status: &StatusFields) -> bool {
    work.hashes.is_some_and(|hashes| are_hashes_of(hashes.iter(), status.told()))
}

/// Whether a work with these hashes has these pins. The hashes of one kind are in no order.
fn are_hashes_of<'h>(
    hashes: impl Iterator<Item = &'h (GroupResource, Hash)>,
    pins: impl Iterator<Item = &'h Pin> + Clone,
) -> bool {
    let hashes = hashes.map(|(kind, hash)| (kind, hash));
    let pins = pins.map(|pin| (&pin.config.kind, &pin.hash));
    // Only several of one kind may be in another order: this is called for every work.
    if pins.clone().is_sorted() {
        return hashes.eq(pins);
    }
    let mut sorted: Vec<_> = pins.collect();
    sorted.sort();
    hashes.eq(sorted)
}

/// The add-on has been there once: something is recorded as applied, or, for an add-on without
/// configs, its condition says so.
fn was_installed(status: &StatusFields) -> bool {
    status.references.iter().any(|reference| reference.applied.is_some())
        || reports_upgrade(status)
        || status.condition(PROGRESSING).is_some_and(|condition| condition.reason.is(Reason::is_success))
}

fn was_delivered(status: &StatusFields) -> bool {
    status.condition(REVISION_HEALTHY).is_some_and(|condition| condition.reason == Reason::NeverHealthy)
}

/// Whether the assigned revision equals `pins`, ignoring overridden kinds.
pub(crate) fn told_same(status: &StatusFields, pins: &[Pin], overrides: Option<&Overrides>) -> bool {
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

/// Whether the assigned revision includes all of `pins`, whoever assigned it.
pub(crate) fn told_includes(status: &StatusFields, pins: &[Pin]) -> bool {
    let mut told = status.told();
    pins.iter().all(|pin| told.any(|own| own.config.kind == pin.config.kind && own.hash == pin.hash))
}
