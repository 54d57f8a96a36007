//! What a placement has decided, as it stands on the hub: complete, changing, or not yet.

use crate::limit::Limit;
use crate::name::{ClusterName, Text};

/// A placement's decisions, complete or not.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The count that the placement publishes, if it publishes one.
    pub published: Option<usize>,
    /// It has the condition `PlacementSatisfied`: a controller has counted. Only then 0 is trusted.
    pub counted: bool,
    /// Changed since it was decided, if its controller records that. Affects only messages.
    pub outdated: bool,
    /// How many clusters the placement puts into one decision group.
    pub group_size: Option<Limit>,
    /// Decision groups in their order; without groups, one. No cluster is in two of them.
    pub groups: Vec<ClusterGroup>,
    /// How many decided names no cluster can have: ignored, but included when counts are compared.
    pub refused: usize,
}

#[derive(Clone, Debug, Default)]
pub struct ClusterGroup {
    pub name: Text,
    pub clusters: Vec<ClusterName>,
}

impl Selection {
    pub fn clusters(&self) -> impl Iterator<Item = &ClusterName> {
        self.groups.iter().flat_map(|group| &group.clusters)
    }

    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.clusters.len()).sum()
    }

    /// The published count and the number of decisions, if they differ: the decisions are being
    /// rewritten.
    pub fn in_motion(&self) -> Option<(usize, usize)> {
        let (published, decided) = (self.published.unwrap_or(0), self.len() + self.refused);
        let says = published > 0 || (self.counted && self.published.is_some());
        (says && published != decided).then_some((published, decided))
    }

    /// No controller has decided yet what it selects: there is no decision, and no trusted count. A
    /// Placement that was deleted and made again is so for a moment, and selects what it did
    /// before.
    pub(crate) fn is_undecided(&self) -> bool {
        let has_counted = self.counted && self.published.is_some();
        !has_counted && self.published.unwrap_or(0) == 0 && self.refused == 0 && self.is_empty()
    }

    /// Its clusters are not known yet, or are changing.
    pub(crate) fn is_unsure(&self) -> bool {
        self.is_undecided() || self.in_motion().is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.clusters.is_empty())
    }
}
