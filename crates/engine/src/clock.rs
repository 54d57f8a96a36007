//! When a revision started on a cluster, and whether an override may be the cause if it does not
//! become healthy.
//!
//! Stored in a condition of the instance, so that a restart of the manager resets no clock.

use std::fmt;

use aviary_api::names::conditions::REVISION_HEALTHY;
use jiff::Timestamp;

use crate::name::{PlacementName, Text};
use crate::observed::StatusFields;
use crate::reason::Reason;

/// When the current revision started on this cluster, and since when it has been healthy or
/// unhealthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionClock {
    /// The id of the revision.
    pub revision: Text,
    pub started: Timestamp,
    pub healthy: bool,
    /// It has been healthy at some time since the start.
    pub has_arrived: bool,
    /// Since when `healthy` has its current value.
    pub since: Timestamp,
    /// Since when its workloads were available when the soak began.
    pub available_since: Option<Timestamp>,
    pub doubt: Option<Doubt>,
    /// The placement that governed the cluster then, with an empty name if none did; `None` if an
    /// earlier version of Aviary wrote the clock.
    pub placement: Option<PlacementName>,
}

/// Why an unhealthy instance with overrides does not count against its placement's revision (rule
/// 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It was unhealthy before its placement moved it, or its override changed on the way.
    Before,
    /// Its user moved it, not its placement.
    ByUser,
}

impl Doubt {
    const ALL: [Self; 2] = [Self::Before, Self::ByUser];

    fn words(self) -> &'static str {
        match self {
            Self::Before => "its override was in doubt",
            Self::ByUser => "its override changed",
        }
    }
}

impl RevisionClock {
    /// The clock in an instance's status, for the revision that it was assigned last.
    pub(crate) fn carried_by(status: &StatusFields) -> Option<Self> {
        let condition = status.condition(REVISION_HEALTHY)?;
        let start = ClockStart::read(&condition.message)?;
        Some(Self {
            revision: start.revision,
            started: start.at,
            healthy: condition.is_true(),
            has_arrived: condition.is_true() || condition.reason == Reason::NoLongerHealthy,
            since: condition.since.unwrap_or(start.at),
            available_since: start.available_since,
            doubt: start.doubt,
            placement: start.placement,
        })
    }

    /// Whether a condition's message is that of a clock for this revision.
    pub(crate) fn is_for(message: &str, revision: &str) -> bool {
        let rest = message.strip_prefix("revision ").and_then(|rest| rest.strip_prefix(revision));
        rest.is_some_and(|rest| rest.starts_with(" started at "))
    }

    /// Whether works without probes prove anything. They do if the first version of Aviary started
    /// the revision: its clocks name no placement. This version starts a revision with probes. If
    /// these are missing before the revision was healthy, somebody has changed the works.
    pub(crate) fn may_lack_probes(&self) -> bool {
        self.has_arrived || self.placement.is_none()
    }

    /// Since when an unhealthy one is unsettled: since the start, or since it stopped being
    /// healthy.
    pub(crate) fn unsettled_since(&self) -> Timestamp {
        self.started.max(self.since)
    }
}

/// The start of a revision on a cluster, as stored in the message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockStart {
    pub revision: Text,
    pub at: Timestamp,
    pub placement: Option<PlacementName>,
    pub doubt: Option<Doubt>,
    /// Since when its workloads were available when the soak began, by the clock of the cluster.
    pub available_since: Option<Timestamp>,
}

/// In the message: no placement governed the cluster.
const UNGOVERNED: &str = "the add-on's defaults";

/// In the message, before a time.
pub(crate) const AVAILABLE_SINCE: &str = "workloads available since ";

impl ClockStart {
    pub fn read(message: &str) -> Option<Self> {
        let (revision, rest) = message.strip_prefix("revision ")?.split_once(" started at ")?;
        let mut parts = rest.split("; ");
        let rest = parts.next().unwrap_or_default();
        let (mut doubt, mut available_since) = (None, None);
        for part in parts {
            match part.strip_prefix(AVAILABLE_SINCE) {
                Some(time) => available_since = time.parse().ok(),
                None => doubt = Doubt::ALL.into_iter().find(|doubt| doubt.words() == part),
            }
        }
        let (at, placement) = match rest.split_once(" by ") {
            Some((at, UNGOVERNED)) => (at, Some(PlacementName::new("", ""))),
            Some((at, name)) => {
                let name = name.strip_prefix("placement ").and_then(|name| name.split_once('/'));
                (at, name.map(|(namespace, name)| PlacementName::new(namespace, name)))
            }
            None => (rest, None),
        };
        Some(Self { revision: revision.into(), at: at.parse().ok()?, placement, doubt, available_since })
    }
}

impl fmt::Display for ClockStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "revision {} started at {}", self.revision, self.at)?;
        match &self.placement {
            Some(placement) if placement.name.is_empty() => write!(f, " by {UNGOVERNED}")?,
            Some(placement) => write!(f, " by placement {placement}")?,
            None => {}
        }
        if let Some(doubt) = self.doubt {
            write!(f, "; {}", doubt.words())?;
        }
        match self.available_since {
            Some(since) => write!(f, "; {AVAILABLE_SINCE}{since}"),
            None => Ok(()),
        }
    }
}
