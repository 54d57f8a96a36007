//! What a plan says about every cluster and every placement.

use std::ops::Deref;
use std::sync::Arc;

use crate::explain::Decision;
use crate::name::{ClusterName, PlacementName, Text};
use crate::problem::Problem;
use crate::reason::Reason;
use crate::rollout::{Counts, State};
use crate::status::PlacementSentence;
use crate::tally::ClusterTally;

/// The reasons, for every cluster and every placement.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In order of cluster name.
    pub clusters: Vec<ClusterReport>,
    pub placements: Vec<PlacementReport>,
    pub problems: Vec<Problem>,
    /// How many clusters have works without probes, of an earlier version of Aviary or of another
    /// manager.
    pub not_probed: usize,
    /// How many of those have none of an earlier version.
    pub not_probed_of_another: usize,
    /// How many clusters have works that another manager rendered from their revision, and keep
    /// them.
    pub accepted: usize,
    /// How many instances of OCM's manager get the marker of the install strategy.
    pub adopted: usize,
    /// How many instances users have made: they go with the add-on.
    pub by_users: usize,
    /// Why the add-on is ignored, if it is.
    pub left_alone: Option<&'static str>,
}

impl Report {
    /// Who rendered the works without probes.
    pub fn maker_of_not_probed(&self) -> &'static str {
        match self.not_probed_of_another {
            0 => "of an earlier version of Aviary",
            all if all == self.not_probed => "of another manager",
            _ => "of an earlier version of Aviary or of another manager",
        }
    }
}

/// Small: a fleet has thousands of reports, and few different reasons.
#[derive(Clone, Debug)]
pub struct ClusterReport {
    pub cluster: ClusterName,
    /// Accessible through `Deref`.
    pub why: Arc<Why>,
}

impl Deref for ClusterReport {
    type Target = Why;

    fn deref(&self) -> &Why {
        &self.why
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    pub placement: Option<usize>,
    pub decision: Decision,
    /// The version or, without versions, the revision that it is assigned after this pass.
    pub told: Option<Text>,
    /// The same before this pass, as the hub records it.
    pub was_told: Option<Text>,
    /// The object that keeps it from being healthy, such as `Deployment greeter/greeter`.
    pub object: Option<Text>,
}

#[derive(Clone, Debug)]
pub struct PlacementReport {
    pub name: PlacementName,
    pub state: State,
    pub counts: Counts,
    /// The governed clusters by recorded state.
    pub tally: ClusterTally,
    /// The condition `Progressing` in the status.
    pub reason: Reason,
    pub message: String,
    /// The same, before it was written as text.
    pub(super) sentence: PlacementSentence,
    pub desired: Option<Text>,
    pub target: Option<Text>,
}

impl PlacementReport {
    /// The message without the counts in front. They count clusters that are assigned the target
    /// as updated, so they contradict settled clusters beside them.
    pub fn without_counts(&self) -> &str {
        self.sentence.text()
    }

    /// Takes the starts of this plan back out of the counts: they are planned, not recorded.
    pub(crate) fn without_starts(&mut self, starts: usize) {
        self.counts.on_target = self.counts.on_target.saturating_sub(starts);
        self.counts.slots_used = self.counts.slots_held;
        self.sentence.take_back(starts);
        self.message = self.sentence.to_string();
    }
}
