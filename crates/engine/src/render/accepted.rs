//! Which works are accepted as they are: those that an earlier version of Aviary or another manager
//! rendered from the assigned revision.
//!
//! An upgrade of the manager, and a take-over from OCM's, rewrite nothing. Such works are rendered
//! anew when the revision of their cluster changes, by that rollout.

use super::Prepared;
use crate::fleet::WorkFacts;

impl Prepared {
    /// Whether these are all works that a cluster should have.
    pub(crate) fn is_all(&self, works: &[WorkFacts<'_>]) -> bool {
        let is_mixed = || self.splits_anew() && works.iter().any(WorkFacts::is_without_probes);
        self.accepts(works) || (works.len() == self.works() && !is_mixed())
    }

    /// Whether these are all works as somebody else rendered them.
    pub(crate) fn accepts(&self, works: &[WorkFacts<'_>]) -> bool {
        self.accepts_of_first(works) || self.accepts_of_another(works)
    }

    /// Whether these are all works as a version without probes rendered them.
    fn accepts_of_first(&self, works: &[WorkFacts<'_>]) -> bool {
        let is_of_first = |work: &WorkFacts<'_>| {
            let index = self.work_index(&work.name);
            work.is_of_first() && index.is_some_and(|index| index < self.first_works)
        };
        works.len() == self.first_works && works.iter().all(is_of_first)
    }

    /// Whether these are all works as another manager rendered them. How it splits the manifests is
    /// its own affair, so what counts is that they have as many objects as the template.
    pub(crate) fn accepts_of_another(&self, works: &[WorkFacts<'_>]) -> bool {
        let is_of_another =
            |work: &WorkFacts<'_>| work.is_of_another() && self.work_index(&work.name).is_some();
        if works.is_empty() || !works.iter().all(is_of_another) {
            return false;
        }
        let objects: usize = works.iter().map(|work| work.objects.len()).sum();
        let raw = self.raw_manifests().len();
        objects >= self.deployed.iter().filter(|&&at| at < raw).count()
    }

    /// Whether the manifests are split into another number of works than by the first version of
    /// Aviary, which split by size alone.
    pub(crate) fn splits_anew(&self) -> bool {
        self.works() != self.first_works
    }
}
