//! The works of one instance, as the hub has them.

use super::*;

/// A ManifestWork of the add-on, without its manifests.
#[derive(Clone, Debug)]
pub struct Work {
    pub uid: Text,
    pub resource_version: Text,
    pub generation: i64,
    /// Uid of the owning instance.
    pub owner: Option<Text>,
    /// The digest of the manifests as we wrote them, from an annotation.
    pub rendered_digest: Option<Text>,
    /// The digest of the current manifests.
    pub digest: Option<Text>,
    /// The hashes in its annotations; `None` if there are none, or if they contradict each other.
    pub hashes: Option<WorkHashes>,
    /// Since when all its workloads that say so are available, by the clock of their cluster.
    pub available_since: Option<Timestamp>,
    /// Accessible through `Deref`.
    pub state: Shared<WorkState>,
}

/// A summary of a cluster's works. Most clusters have one work.
#[derive(Clone, Copy, Debug)]
pub enum WorksSummary {
    None,
    One(WorkSummary),
    Several,
}

#[derive(Clone, Copy, Debug)]
pub struct WorkSummary {
    pub(crate) state: SharedId,
    pub(crate) hashes: Option<SharedId>,
    pub(crate) owner: Option<TextId>,
    /// Unchanged since it was rendered.
    pub(crate) untouched: bool,
    pub(crate) available_since: Option<Timestamp>,
}

impl Summarised for Vec<Work> {
    type Summary = WorksSummary;

    fn summary(&self) -> WorksSummary {
        match self.as_slice() {
            [] => WorksSummary::None,
            [one] => WorksSummary::One(one.summary()),
            _ => WorksSummary::Several,
        }
    }
}

impl Work {
    pub(crate) fn summary(&self) -> WorkSummary {
        WorkSummary {
            state: self.state.id(),
            hashes: self.hashes.as_ref().map(Shared::id),
            owner: self.owner.as_deref().map(TextId::of),
            untouched: self.is_untouched(),
            available_since: self.available_since,
        }
    }

    /// It counts as a work of the instance: it is in the namespace of the instance's cluster; or in
    /// that of the hosting cluster that the instance names, and the add-on has its own manager.
    /// Other clusters' agents can label their works as they like.
    pub(crate) fn is_of(&self, hosting: Option<&str>, is_rendered: bool) -> bool {
        self.state.is_of(hosting, is_rendered)
    }

    /// Its manifests are unchanged since we wrote them.
    pub(crate) fn is_untouched(&self) -> bool {
        match (&self.rendered_digest, &self.digest) {
            (Some(written), Some(found)) => name::same(written, found),
            _ => false,
        }
    }
}

/// The part of a work that most clusters of a fleet have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkState {
    pub name: Text,
    /// The hosting cluster in whose namespace it is; `None` if it is in that of its own cluster.
    pub hosted_on: Option<Text>,
    pub deleting: bool,
    pub version: Option<Text>,
    /// The annotation that names the inputs it was rendered from.
    pub rendered_from: Option<Text>,
    pub applied: Seen,
    /// Its agent reports, of whatever generation, that it was applied.
    pub was_applied: bool,
    pub available: Seen,
    pub health: Health,
    /// It asks for the health of its objects.
    pub probed: bool,
    /// The objects that it applies.
    pub objects: Vec<ObjectMark>,
}

impl WorkState {
    pub(crate) fn is_of(&self, hosting: Option<&str>, is_rendered: bool) -> bool {
        self.hosted_on.as_deref().is_none_or(|on| !is_rendered && hosting == Some(on))
    }
}

impl Deref for Work {
    type Target = WorkState;

    fn deref(&self) -> &WorkState {
        &self.state
    }
}

impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut WorkState {
        &mut self.state
    }
}
