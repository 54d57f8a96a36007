//! Revisions that are kept: contents by hash, and what placements completed.

use std::collections::BTreeMap;

use aviary_engine::configs::Revision;
use aviary_engine::content::ConfigContent;
use aviary_engine::hash::Hash;
use aviary_engine::name::{PlacementName, Text};

use crate::progress::Booked;
use crate::revisions::{Completed, Kept, What};
use crate::seen::{Change, Key, Version};
use crate::stores::{AddOnEntry, Relist, Shelf, Snapshot, Stores};

impl Stores {
    pub(super) fn revision(&mut self, change: Change<Kept>) {
        let all = |stores: &Self| stores.revision_of.keys().cloned().collect();
        let of = Relist::Shelf(Shelf::Revisions);
        match self.book(of, change, Self::revision_version, |_, kept| Some(kept.addon.clone()), all) {
            Booked::Nothing => {}
            Booked::Put(key, kept) => {
                let addon = kept.addon.clone();
                let entry = self.addons.entry(addon.clone()).or_default();
                entry.kept.insert(key.clone(), kept);
                entry.sort_kept();
                self.mark(&addon);
                self.revision_of.insert(key, addon);
            }
            Booked::Gone(keys) => keys.iter().for_each(|key| self.drop_revision(key)),
        }
    }

    fn drop_revision(&mut self, key: &Key) {
        let Some(addon) = self.revision_of.remove(key) else { return };
        if let Some(entry) = self.addons.get_mut(&addon) {
            entry.kept.remove(key);
            entry.sort_kept();
        }
        self.mark(&addon);
    }

    fn revision_version(&self, key: &Key) -> Option<Version> {
        let entry = self.addons.get(self.revision_of.get(key)?)?;
        entry.kept.get(key).map(|kept| kept.version.clone())
    }
}

/// What is kept for the add-on with this uid. What was kept for an earlier one of its name is being
/// garbage-collected.
fn kept_for<'a>(kept: &'a BTreeMap<Key, Kept>, uid: &'a Text) -> impl Iterator<Item = (&'a Key, &'a Kept)> {
    kept.iter().filter(move |(_, kept)| kept.owner.as_ref().is_none_or(|owner| owner == uid))
}

fn completed_for<'a>(
    kept: &'a BTreeMap<Key, Kept>,
    uid: &'a Text,
) -> impl Iterator<Item = (&'a Key, &'a Completed)> {
    kept_for(kept, uid).filter_map(|(key, kept)| match &kept.what {
        What::Completed(completed) => Some((key, completed)),
        What::Content { .. } => None,
    })
}

impl Snapshot<'_> {
    pub(crate) fn completed(&self) -> impl Iterator<Item = (&Key, &Completed)> {
        completed_for(&self.entry().kept, &self.addon.uid)
    }
}

impl AddOnEntry {
    pub(crate) fn completed(&self) -> impl Iterator<Item = (&Key, &Completed)> {
        completed_for(&self.kept, &self.addon.uid)
    }

    /// Sorts what is kept into contents and history, after either or the add-on has changed.
    pub(super) fn sort_kept(&mut self) {
        fn content(kept: &Kept) -> Option<(&Hash, &ConfigContent)> {
            match &kept.what {
                What::Content { hash, content } => Some((hash, content)),
                What::Completed(_) => None,
            }
        }
        let own = kept_for(&self.kept, &self.addon.uid).map(|(_, kept)| kept);
        // Instances of an earlier add-on of this name may still have to run their hooks.
        let held = || self.kept.values().filter(|kept| kept.held).filter_map(content);
        let contents = own.filter_map(content).chain(held());
        self.revisions.contents = contents.map(|(hash, content)| (hash.clone(), content.clone())).collect();
        self.revisions.held = held().map(|(hash, _)| hash.clone()).collect();
        let (completed, withdrawn) = history(self.completed().map(|(_, completed)| completed));
        self.revisions.completed = completed;
        self.revisions.withdrawn = withdrawn;
    }
}

type History = BTreeMap<PlacementName, Vec<Revision>>;

/// What each placement completed, and what it has withdrawn since, oldest first. If one was
/// completed several times, the last time counts.
fn history<'a>(completed: impl Iterator<Item = &'a Completed>) -> (History, History) {
    let mut numbered: Vec<&Completed> = completed.collect();
    numbered.sort_by_key(|completed| completed.number);
    let (mut standing, mut gone) = (History::new(), History::new());
    for Completed { placement, revision, withdrawn, .. } in numbered {
        for history in [&mut standing, &mut gone] {
            history.entry(placement.clone()).or_default().retain(|known| known != revision);
        }
        let history = if *withdrawn { &mut gone } else { &mut standing };
        history.entry(placement.clone()).or_default().push(revision.clone());
    }
    (standing, gone)
}
