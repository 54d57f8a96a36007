//! The desired statuses (rules, chapter 7). Derived from the snapshot every time; only what cannot
//! be derived is recorded: the assigned and applied revisions, and since when.

pub(crate) mod addon;
pub(crate) mod instance;
mod ocm;
pub mod publish;
pub mod refusals;
mod wording;

pub(crate) use addon::PlacementSentence;

use aviary_api::names::conditions;
use jiff::Timestamp;

use crate::name::Word;
use crate::observed::ObservedCondition;
use crate::reason::Reason;

/// The types, statuses and messages of most conditions.
pub(crate) const VOCABULARY: &[&str] = &[
    "",
    "True",
    "False",
    "Unknown",
    conditions::PROGRESSING,
    conditions::CONFIGURED,
    conditions::AVAILABLE,
    conditions::REVISION_HEALTHY,
    "installing...",
    "install completed with no errors.",
    "upgrading...",
    "upgrade completed with no errors.",
    "all configurations are resolved",
    "all works are available",
    conditions::MANIFEST_APPLIED,
    conditions::REGISTRATION_APPLIED,
    conditions::REGISTRATION_CONFIGURED,
    ocm::COMPLETED,
    ocm::CONFIGURED,
    ocm::NOT_CONFIGURED,
    ocm::WAITING,
    ocm::NOT_READY,
    ocm::MISMATCH,
    ocm::APPLIED,
];

/// The conditions of an instance that we write.
pub(crate) const OURS: [&str; 6] = [
    conditions::PROGRESSING,
    conditions::CONFIGURED,
    conditions::AVAILABLE,
    conditions::REVISION_HEALTHY,
    conditions::HOOK_COMPLETED,
    conditions::HOSTING_CLUSTER_VALIDITY,
];

/// The longest message of a condition. Names and texts of others are in them.
const LONGEST_MESSAGE: usize = 4096;

/// Sets a condition. The time changes only when the status does.
pub(crate) fn set(conditions: &mut Vec<ObservedCondition>, generation: i64, now: Timestamp, new: Stated) {
    let Stated { kind, status, reason, mut message } = new;
    if let Some((end, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
        message = Word::Owned(message.get(..end).unwrap_or_default().to_owned());
    }
    let since = |old: Option<&ObservedCondition>| match old {
        Some(old) if old.status == status => old.since.or(Some(now)),
        _ => Some(now),
    };
    let at = conditions.iter().position(|condition| condition.kind == kind);
    let old = at.and_then(|at| conditions.get(at));
    let condition = ObservedCondition {
        kind: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message,
        since: since(old),
        observed_generation: Some(generation),
    };
    match at.and_then(|at| conditions.get_mut(at)) {
        Some(slot) => *slot = condition,
        None => conditions.push(condition),
    }
}

/// A condition as it should be.
pub(crate) struct Stated {
    pub(crate) kind: &'static str,
    pub(crate) status: &'static str,
    pub(crate) reason: Reason,
    pub(crate) message: Word,
}
