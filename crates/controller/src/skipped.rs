//! Add-ons that this leader skips, and why.
//!
//! Owns what `/readyz`, the metrics and the Lease report about them: a leader that skips add-ons
//! must not look healthy.

use std::collections::BTreeMap;
use std::fmt;

use aviary_api::names::annotations;
use aviary_engine::name::Text;
use aviary_engine::reason::SkipCode;
use k8s_openapi::api::coordination::v1::Lease;
use serde::{Deserialize, Serialize};

/// How many are listed by name.
const NAMED: usize = 10;

/// Why an add-on is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkipReason {
    /// Another manager may lead: the hub has not confirmed the lease since its term was seen.
    OtherTerm {
        term: u64,
        own: u64,
    },
    /// The message is only in the log, because anybody may read `/readyz`.
    Panicked,
    InvariantBroken,
    /// The hub refuses to write the add-on's status or its revisions, which all else depends on.
    WriteRefused,
}

impl SkipReason {
    /// Its name in metrics.
    pub(crate) fn code(&self) -> SkipCode {
        match self {
            Self::OtherTerm { .. } => SkipCode::OtherTerm,
            Self::Panicked => SkipCode::Panicked,
            Self::InvariantBroken => SkipCode::InvariantBroken,
            Self::WriteRefused => SkipCode::WriteRefused,
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherTerm { term, own } => write!(
                f,
                "it carries term {term} of another manager, and the lease of this manager (term {own}) has not been confirmed since"
            ),
            Self::Panicked => f.write_str("its last pass panicked and is retried; see the log"),
            Self::InvariantBroken => f.write_str("its plan would violate an invariant and is not executed"),
            Self::WriteRefused => f.write_str(
                "the hub refuses to write its status or its revisions, which is retried; see the log",
            ),
        }
    }
}

/// The add-ons that are skipped: the first by name, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    named: Vec<(Text, SkipReason)>,
    count: usize,
}

impl Skipped {
    pub(crate) fn of(all: &BTreeMap<Text, SkipReason>) -> Self {
        let named = all.iter().take(NAMED).map(|(addon, reason)| (addon.clone(), *reason));
        Self { named: named.collect(), count: all.len() }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What the Lease records; `None` if no add-on is skipped.
    pub(crate) fn to_note(&self) -> Option<String> {
        let named = self.named.iter().map(|(addon, reason)| (addon.to_string(), reason.to_string()));
        let note = SkippedNote { named: named.collect(), more: self.count - self.named.len() };
        (!self.is_empty()).then(|| serde_json::to_string(&note).ok())?
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SkippedNote {
    named: BTreeMap<String, String>,
    more: usize,
}

/// Why the leader does nothing for an add-on, as far as its Lease records it.
pub fn why_skipped(lease: &Lease, addon: &str) -> Option<String> {
    let note = lease.metadata.annotations.as_ref()?.get(annotations::SKIPPED_ADDONS)?;
    let SkippedNote { mut named, more } = serde_json::from_str(note).unwrap_or_default();
    let unnamed =
        || format!("it skips {more} more add-ons than its Lease names, and this may be one of them");
    named.remove(addon).or_else(|| (more > 0).then(unnamed))
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (addon, reason) in &self.named {
            writeln!(f, "add-on {addon} is skipped: {reason}")?;
        }
        match self.count - self.named.len() {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_lease_records_which_add_ons_are_skipped_and_why() {
        let lease = |count: usize| {
            let all =
                (0..count).map(|at| (format!("a{at:02}").into(), SkipReason::InvariantBroken)).collect();
            let note = Skipped::of(&all).to_note();
            let lease: Lease = serde_json::from_value(
                json!({"metadata": {"annotations": {annotations::SKIPPED_ADDONS: note}}}),
            )
            .unwrap_or_default();
            lease
        };
        assert_eq!(why_skipped(&lease(0), "a00"), None);
        let why = SkipReason::InvariantBroken.to_string();
        assert_eq!(why_skipped(&lease(1), "a00"), Some(why.clone()));
        assert_eq!(why_skipped(&lease(1), "other"), None);
        assert_eq!(why_skipped(&lease(NAMED + 2), "a09"), Some(why));
        assert!(why_skipped(&lease(NAMED + 2), "a10").unwrap().contains("2 more"));
    }
}
