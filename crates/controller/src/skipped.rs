//! Add-ons that this leader skips, and why.
//!
//! Owns what `/readyz` and the metrics report about them: a leader that skips add-ons must not look
//! healthy.

use std::collections::BTreeMap;
use std::fmt;

use aviary_engine::name::Text;

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
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::OtherTerm { .. } => "OtherTerm",
            Self::Panicked => "Panicked",
            Self::InvariantBroken => "InvariantBroken",
            Self::WriteRefused => "WriteRefused",
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
