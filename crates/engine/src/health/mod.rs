//! Health of what a work applies: evidence that a revision's workloads run, not only that their
//! objects exist.
//!
//! A standard work agent reports `Available` as soon as an object exists. So every rendered work
//! asks the agent for the fields of its objects that prove health ([`probes`]), as feedback rules
//! ([`instruct`]). The answer is reduced to one value per work when the work is read ([`read`]).
//! Evidence is bound to content: a probed object carries a digest of its manifest, and the agent
//! reports the digest together with the numbers, from the same read of the object. A report about
//! an earlier object therefore proves nothing, whatever generation it claims.

pub mod advice;
pub(crate) mod instruct;
pub(crate) mod probes;
pub(crate) mod read;
#[cfg(test)]
mod tests;
pub(crate) mod unbound;
pub mod well_known;

pub use instruct::{NoEffect, ObjectMark};
pub use unbound::NOT_BOUND;

use crate::name::Text;

/// What the agent reports about the objects of a work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Health {
    /// The work was rendered without probes, by an earlier version of Aviary or by somebody else.
    /// Only its conditions, and feedback that Aviary did not ask for, count as evidence.
    #[default]
    NotProbed,
    Healthy,
    /// All objects are healthy, but one that agents create only once is from another version, so
    /// the desired one has not run.
    Kept {
        why: Text,
    },
    /// Some object is not healthy yet, or not any more.
    Progressing {
        why: Text,
        /// No more is missing than the workload itself tolerates while it is in use.
        tolerable: bool,
    },
    /// The agent has reported nothing about some object.
    Unknown {
        why: Text,
    },
    /// Some object reports that it has failed.
    Failed {
        why: Text,
        /// As above: a cluster that has settled keeps its health.
        tolerable: bool,
    },
}

impl Health {
    /// The most telling of two: a failure, then something in progress, then something unknown, then
    /// what a workload in use tolerates. Of two alike, the one whose object sorts first.
    pub(crate) fn worst(self, other: Self) -> Self {
        let first = (self.rank(), other.why()) > (other.rank(), self.why());
        let (worst, other) = if first { (self, other) } else { (other, self) };
        match worst {
            // In use a failure may be tolerated where the other is not.
            Self::Failed { why, tolerable } => {
                Self::Failed { why, tolerable: tolerable && other.is_tolerable() }
            }
            worst => worst,
        }
    }

    /// No more is missing than a workload in use tolerates.
    fn is_tolerable(&self) -> bool {
        match self {
            Self::NotProbed | Self::Healthy => true,
            Self::Kept { .. } | Self::Unknown { .. } => false,
            Self::Progressing { tolerable, .. } | Self::Failed { tolerable, .. } => *tolerable,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::NotProbed => 0,
            Self::Healthy => 1,
            Self::Kept { .. } => 2,
            Self::Progressing { tolerable: true, .. } => 3,
            Self::Unknown { .. } => 4,
            Self::Progressing { tolerable: false, .. } => 5,
            Self::Failed { .. } => 6,
        }
    }

    /// A cluster that has settled cannot fail the rollout that brought it there: what fails on it
    /// later is bad health.
    pub(crate) fn seen_in_use(self, has_settled: bool) -> Self {
        match self {
            Self::Failed { why, tolerable } if has_settled => Self::Progressing { why, tolerable },
            health => health,
        }
    }

    /// The object and what is wrong with it.
    pub fn why(&self) -> Option<&Text> {
        match self {
            Self::NotProbed | Self::Healthy => None,
            Self::Kept { why }
            | Self::Progressing { why, .. }
            | Self::Unknown { why }
            | Self::Failed { why, .. } => Some(why),
        }
    }

    /// The object that it is about, such as `Deployment greeter/greeter`. What is wrong with it
    /// follows after a colon, and may change with every report.
    pub(crate) fn object(&self) -> Option<&str> {
        self.why().map(|why| why.split_once(": ").map_or(&**why, |(object, _)| object))
    }

    /// Whether a message tells of it, whatever numbers it has. Digits in the name of the object are
    /// no such numbers.
    pub(crate) fn is_told_by(&self, message: &str) -> bool {
        self.why().zip(self.object()).is_some_and(|(why, object)| {
            let before = message.split_once(object).map(|(_, detail)| detail);
            let detail = why.get(object.len()..).unwrap_or_default();
            before.is_some_and(|before| {
                before.starts_with(':') == detail.starts_with(':')
                    && without_digits(before) == without_digits(detail)
            })
        })
    }

    /// Nothing speaks against settling.
    pub(crate) fn is_good(&self, leniency: Leniency) -> bool {
        match self {
            Self::NotProbed | Self::Healthy => true,
            Self::Kept { .. } => leniency.has_returned,
            Self::Progressing { tolerable, .. } | Self::Failed { tolerable, .. } => {
                *tolerable && leniency.has_settled
            }
            Self::Unknown { .. } => false,
        }
    }
}

/// What two messages have in common that differ only in their numbers.
pub(crate) fn without_digits(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "")
}

/// What is tolerated on a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// It has settled: it keeps its health while no more is missing than its workloads tolerate.
    pub has_settled: bool,
    /// Its placement has rolled back to the revision: what ran then need not run again.
    pub has_returned: bool,
}
