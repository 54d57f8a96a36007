//! A number of clusters, absolute or as a share of the governed ones. Parsed once. An invalid limit
//! is an error, never "no limit".

use std::fmt;

use aviary_api::IntOrString;

/// Why a limit cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "{given} is not a limit: give a whole number from {least} to 2147483647, or a percentage from {least}% to 100%"
)]
pub struct LimitError {
    given: String,
    least: u32,
}

/// At most this many clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Count(u32),
    Percent(u8),
}

impl Limit {
    /// The default of `maxConcurrentlyUpdating`.
    pub const DEFAULT: Self = Self::Percent(25);

    /// A budget: at least one cluster.
    pub fn budget(given: &IntOrString) -> Result<Self, LimitError> {
        Self::at_least(given, 1)
    }

    /// A tolerance: 0 is valid.
    pub fn tolerance(given: &IntOrString) -> Result<Self, LimitError> {
        Self::at_least(given, 0)
    }

    fn at_least(given: &IntOrString, least: u32) -> Result<Self, LimitError> {
        let parsed = match given {
            IntOrString::Int(count) => u32::try_from(*count).ok().and_then(Self::count),
            IntOrString::String(text) => match text.strip_suffix('%') {
                Some(share) => {
                    whole(share).and_then(|share| u8::try_from(share).ok()).and_then(Self::percent)
                }
                None => whole(text).and_then(Self::count),
            },
            IntOrString::Other(_) => None,
        };
        parsed
            .filter(|limit| limit.number() >= least)
            .ok_or_else(|| LimitError { given: shown(given), least })
    }

    fn count(count: u32) -> Option<Self> {
        (count <= i32::MAX as u32).then_some(Self::Count(count))
    }

    fn percent(share: u8) -> Option<Self> {
        (share <= 100).then_some(Self::Percent(share))
    }

    fn number(self) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(share) => u32::from(share),
        }
    }

    /// This limit as a number of clusters out of `governed`. Percentages are rounded up, so any
    /// share above 0 is at least one cluster. At most `governed`.
    pub fn of(self, governed: usize) -> usize {
        match self {
            Self::Count(count) => (count as usize).min(governed.max(1)),
            Self::Percent(0) => 0,
            Self::Percent(share) => (governed * usize::from(share)).div_ceil(100).max(1),
        }
    }
}

/// Digits only: no sign, no white space, no fraction.
fn whole(text: &str) -> Option<u32> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn shown(given: &IntOrString) -> String {
    match given {
        IntOrString::Int(count) => count.to_string(),
        IntOrString::String(text) => format!("{text:?}"),
        IntOrString::Other(value) => value.to_string(),
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(share) => write!(f, "{share}%"),
        }
    }
}
