//! The messages to the page about one add-on: the whole state, or a change. `page/messages.d.ts`
//! declares the same messages for the page.
//!
//! Owns the structure of these messages and nothing else. In a change, an omitted field is
//! unchanged.

use aviary_engine::explain::Decision;
use aviary_engine::name::Text;
use aviary_engine::reason::Reason;
use aviary_engine::tally::ClusterState;
use aviary_engine::verdict::Verdict;
use serde::Serialize;

use crate::events::EventLine;
use crate::revisions::RevisionLine;
use crate::timeline::TimelinePoint;

/// The state of a cluster, as the page shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ClusterKind {
    Settled,
    InFlight,
    Failed,
    Waiting,
    Leaving,
}

impl ClusterKind {
    pub(crate) fn of(decision: &Decision) -> Self {
        match decision.state() {
            ClusterState::Settled => Self::Settled,
            ClusterState::InFlight => Self::InFlight,
            ClusterState::Failed => Self::Failed,
            ClusterState::Waiting => Self::Waiting,
            ClusterState::Leaving => Self::Leaving,
        }
    }

    /// The name in the dictionary.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::InFlight => "inFlight",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Leaving => "leaving",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Heading {
    pub(crate) name: Text,
    pub(crate) display_name: Text,
    pub(crate) description: Option<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RolloutProgress {
    pub(crate) state: Verdict,
    pub(crate) message: String,
    pub(crate) settled: usize,
    pub(crate) in_flight: usize,
    pub(crate) failed: usize,
    pub(crate) waiting: usize,
    pub(crate) leaving: usize,
    pub(crate) version: Option<Text>,
    pub(crate) oldest_wait_since: Option<String>,
    pub(crate) paused: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlacementLine {
    pub(crate) name: String,
    /// Its rank in the order in which a revision reaches the placements.
    pub(crate) position: usize,
    pub(crate) state: Verdict,
    pub(crate) message: String,
    pub(crate) strategy: String,
    pub(crate) budget: Option<usize>,
    pub(crate) slots_used: usize,
    pub(crate) in_flight: usize,
    pub(crate) governed: usize,
    pub(crate) done: usize,
    pub(crate) failed: usize,
    pub(crate) waiting: usize,
    pub(crate) leaving: usize,
    pub(crate) gate: Option<GateLine>,
    pub(crate) paused: bool,
    pub(crate) wants: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) known_good: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct GateLine {
    /// All of them must pass.
    pub(crate) canaries: Vec<String>,
    pub(crate) open: bool,
    pub(crate) message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ProblemMessage {
    pub(crate) severity: &'static str,
    pub(crate) message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BrakeLine {
    pub(crate) held: usize,
    pub(crate) message: String,
    /// The deletion to approve.
    pub(crate) acknowledge: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ReasonLine {
    pub(crate) code: Reason,
    pub(crate) kind: ClusterKind,
    pub(crate) message: String,
    pub(crate) count: usize,
    pub(crate) examples: Vec<String>,
}

/// Everything about an add-on that is neither by cluster nor by time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Sections {
    #[serde(flatten)]
    pub(crate) heading: Heading,
    #[serde(flatten)]
    pub(crate) progress: RolloutProgress,
    pub(crate) placements: Vec<PlacementLine>,
    pub(crate) problems: Vec<ProblemMessage>,
    pub(crate) brake: Option<BrakeLine>,
    pub(crate) reasons: Vec<ReasonLine>,
    pub(crate) revisions: Vec<RevisionLine>,
    pub(crate) events: Vec<EventLine>,
}

/// One entry per cluster in each column. `kind`, `message` and `revision` are indexes into the
/// dictionary; -1 means none.
#[derive(Debug, Serialize)]
pub(crate) struct ClusterColumns<'a> {
    pub(crate) name: Vec<&'a str>,
    /// Index of a placement; -1 for none.
    pub(crate) placement: Vec<i64>,
    pub(crate) kind: Vec<i64>,
    pub(crate) message: Vec<i64>,
    pub(crate) revision: Vec<i64>,
    pub(crate) order: &'a [u32],
}

/// What changed about clusters.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterChanges<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) dictionary_append: &'a [String],
    /// Changed entries of the dictionary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) dictionary_set: Vec<(usize, String)>,
    /// Row, kind, message and revision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rows: Vec<(usize, i64, i64, i64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) append: Option<ClusterColumns<'a>>,
}

impl ClusterChanges<'_> {
    fn is_empty(&self) -> bool {
        let Self { dictionary_append, dictionary_set, rows, append } = self;
        dictionary_append.is_empty() && dictionary_set.is_empty() && rows.is_empty() && append.is_none()
    }
}

/// An add-on, whole: the event `addon`.
#[derive(Debug, Serialize)]
pub(crate) struct AddOnMessage<'a> {
    pub(crate) now: &'a str,
    #[serde(flatten)]
    pub(crate) sections: &'a Sections,
    pub(crate) timeline: &'a [TimelinePoint],
    pub(crate) dictionary: &'a [String],
    pub(crate) clusters: ClusterColumns<'a>,
}

/// What changed: the event `addon-delta`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddOnDelta<'a> {
    pub(crate) now: &'a str,
    #[serde(flatten)]
    pub(crate) heading: Option<&'a Heading>,
    #[serde(flatten)]
    pub(crate) progress: Option<&'a RolloutProgress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) placements: Option<&'a [PlacementLine]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problems: Option<&'a [ProblemMessage]>,
    /// The inner `None` is sent when the brake no longer holds anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) brake: Option<Option<&'a BrakeLine>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasons: Option<&'a [ReasonLine]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revisions: Option<&'a [RevisionLine]>,
    /// The counts of all revisions, if nothing else about them changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision_clusters: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<&'a [EventLine]>,
    #[serde(flatten)]
    pub(crate) clusters: ClusterChanges<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeline: Option<&'a [TimelinePoint]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeline_append: Option<[TimelinePoint; 1]>,
}

impl<'a> AddOnDelta<'a> {
    /// The fields of `new` that differ from `old`.
    pub(crate) fn between(old: &Sections, new: &'a Sections) -> Self {
        let revisions = (old.revisions != new.revisions).then_some(new.revisions.as_slice());
        let counts = revisions.filter(|new| only_counts(&old.revisions, new));
        Self {
            heading: (old.heading != new.heading).then_some(&new.heading),
            progress: (old.progress != new.progress).then_some(&new.progress),
            placements: (old.placements != new.placements).then_some(&new.placements),
            problems: (old.problems != new.problems).then_some(&new.problems),
            brake: (old.brake != new.brake).then_some(new.brake.as_ref()),
            reasons: (old.reasons != new.reasons).then_some(&new.reasons),
            revisions: revisions.filter(|_| counts.is_none()),
            revision_clusters: counts.map(|lines| lines.iter().map(|line| line.clusters).collect()),
            events: (old.events != new.events).then_some(&new.events),
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            now: _,
            heading,
            progress,
            placements,
            problems,
            brake,
            reasons,
            revisions,
            revision_clusters,
            events,
            clusters,
            timeline,
            timeline_append,
        } = self;
        heading.is_none()
            && progress.is_none()
            && placements.is_none()
            && problems.is_none()
            && brake.is_none()
            && reasons.is_none()
            && revisions.is_none()
            && revision_clusters.is_none()
            && events.is_none()
            && clusters.is_empty()
            && timeline.is_none()
            && timeline_append.is_none()
    }
}

/// Whether only their counts differ. The rest is long, and the counts change with every wave.
fn only_counts(old: &[RevisionLine], new: &[RevisionLine]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.differs_in_count_only(new))
}

#[cfg(test)]
mod tests;
