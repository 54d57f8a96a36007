//! Revisions that are kept: contents by hash, and what placements completed.

use std::collections::BTreeMap;
use std::sync::Arc;

use aviary_engine::configs::Revision;
use aviary_engine::name::PlacementName;

use crate::revisions::{Completed, Kept, What};
use crate::seen::{Change, Key};
use crate::stores::{Booked, Known, Relist, Shelf, Stores};

impl Stores {
    pub(super) fn revision(&mut self, change: Change<Kept>) {
        let gone = match self.book(&Relist::Shelf(Shelf::Revisions), change) {
            Booked::Nothing => return,
            Booked::Put(key, kept) => {
                let addon = kept.addon.clone();
                let known = self.addons.entry(addon.clone()).or_default();
                known.kept.insert(key.clone(), kept);
                known.sort_kept();
                self.revision_of.insert(key, addon.clone());
                return self.mark(&addon);
            }
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::Revisions);
                self.revision_of.keys().filter(|key| !seen.contains(key)).cloned().collect()
            }
        };
        for key in gone {
            let Some(addon) = self.revision_of.remove(&key) else { continue };
            if let Some(known) = self.addons.get_mut(&addon) {
                known.kept.remove(&key);
                known.sort_kept();
            }
            self.mark(&addon);
        }
    }

    /// The number that the next completed revision gets, and the objects beyond the limit once it is there.
    pub(crate) fn next_completed(&self, addon: &str, placement: &PlacementName) -> (i64, Vec<Key>) {
        let Some(known) = self.addons.get(addon) else { return (1, Vec::new()) };
        let mut of_placement: Vec<(i64, &Key)> = known
            .completed()
            .filter(|(_, completed)| completed.placement == *placement)
            .map(|(key, completed)| (completed.number, key))
            .collect();
        of_placement.sort();
        let next = of_placement.last().map_or(1, |(number, _)| number + 1);
        let surplus = (of_placement.len() + 1).saturating_sub(self.options.history_limit);
        (next, of_placement.into_iter().take(surplus).map(|(_, key)| key.clone()).collect())
    }
}

impl Known {
    /// What is kept for this very add-on: what was kept for an earlier one of its name is on its way out.
    fn ours(&self) -> impl Iterator<Item = (&Key, &Kept)> {
        let uid = &self.observed.addon.uid;
        self.kept.iter().filter(move |(_, kept)| kept.owner.as_ref().is_none_or(|owner| owner == uid))
    }

    pub(crate) fn completed(&self) -> impl Iterator<Item = (&Key, &Completed)> {
        self.ours().filter_map(|(key, kept)| match &kept.what {
            What::Completed(completed) => Some((key, completed)),
            What::Content { .. } => None,
        })
    }

    /// Revisions or the add-on have changed.
    pub(super) fn sort_kept(&mut self) {
        let contents = self.ours().filter_map(|(_, kept)| match &kept.what {
            What::Content { hash, content } => Some((hash.clone(), Arc::clone(content))),
            What::Completed(_) => None,
        });
        self.observed.revisions.contents = contents.collect();
        self.observed.revisions.completed = history(self.completed().map(|(_, completed)| completed));
    }
}

/// What each placement completed, oldest first; of one that was completed again, the last time counts.
fn history<'a>(completed: impl Iterator<Item = &'a Completed>) -> BTreeMap<PlacementName, Vec<Revision>> {
    let mut numbered: Vec<&Completed> = completed.collect();
    numbered.sort_by_key(|completed| completed.number);
    let mut history: BTreeMap<PlacementName, Vec<Revision>> = BTreeMap::new();
    for Completed { placement, revision, .. } in numbered {
        let of = history.entry(placement.clone()).or_default();
        of.retain(|known| known != revision);
        of.push(revision.clone());
    }
    history
}
