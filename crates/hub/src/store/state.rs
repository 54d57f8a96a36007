//! All objects at one revision. Cloning is almost free, so every page of a list, every batch and
//! every reader has its own state.
//!
//! Owns the maps and the index of dependents. Must not use the disk or the clock.

use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::log::{CommittedEvent, EventKind};
use super::{ChangeAction, StoreChange};
use crate::store::object::{ResourceId, StoreKey, StoredObject};

/// The objects of one kind, by key.
pub(crate) type Objects = OrdMap<StoreKey, Arc<StoredObject>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct StoreState {
    revision: u64,
    /// How often changes were lost before this state. States with the same number share one
    /// history.
    losses: u64,
    kinds: OrdMap<ResourceId, Objects>,
    /// Objects with owners, by the owner's UID.
    dependents: OrdSet<(Arc<str>, ResourceId, StoreKey)>,
    /// Objects that are being deleted, by UID.
    terminating: OrdMap<Arc<str>, (ResourceId, StoreKey)>,
}

impl StoreState {
    /// The state that was read from disk.
    pub(crate) fn restored(
        revision: u64,
        objects: impl IntoIterator<Item = (ResourceId, Arc<StoredObject>)>,
    ) -> Self {
        let mut state = Self { revision, ..Self::default() };
        for (resource, stored) in objects {
            state.put(&resource, &stored);
        }
        state
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, resource: &str, key: &str) -> Option<&Arc<StoredObject>> {
        self.kinds.get(resource)?.get(key)
    }

    /// The objects of a kind.
    pub(crate) fn objects(&self, resource: &str) -> Objects {
        self.kinds.get(resource).cloned().unwrap_or_default()
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&ResourceId, &Objects)> {
        self.kinds.iter()
    }

    /// The objects that have an owner with this UID.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(ResourceId, Arc<StoredObject>)> {
        let uid: Arc<str> = uid.into();
        let empty: Arc<str> = "".into();
        let from = (Arc::clone(&uid), Arc::clone(&empty), empty);
        let found = self.dependents.range((Bound::Included(from), Bound::Unbounded));
        found
            .take_while(|(owner, ..)| *owner == uid)
            .filter_map(|(_, resource, key)| Some((resource.clone(), self.get(resource, key)?.clone())))
            .collect()
    }

    /// The object with this UID, if it is being deleted.
    pub(crate) fn terminating_by_uid(&self, uid: &str) -> Option<(ResourceId, Arc<StoredObject>)> {
        let (resource, key) = self.terminating.get(uid)?;
        Some((resource.clone(), self.get(resource, key)?.clone()))
    }

    /// Applies a change under the next revision.
    pub(super) fn apply(&mut self, change: StoreChange, before: Option<Arc<StoredObject>>) -> CommittedEvent {
        self.revision += 1;
        let StoreChange { resource, key, action, .. } = change;
        match action {
            ChangeAction::Put(draft, facts) => {
                let stored =
                    Arc::new(StoredObject::new(key, self.revision, draft.seal(self.revision), facts));
                self.put(&resource, &stored);
                let kind = if before.is_some() { EventKind::Modified } else { EventKind::Added };
                CommittedEvent::new(resource, kind, stored, before)
            }
            ChangeAction::Remove => {
                let last = self.remove(&resource, &key).or_else(|| before.clone());
                let buried = last.map_or_else(
                    || {
                        StoredObject::new(
                            Arc::clone(&key),
                            self.revision,
                            Default::default(),
                            Default::default(),
                        )
                    },
                    |last| last.bury(self.revision),
                );
                CommittedEvent::new(resource, EventKind::Deleted, Arc::new(buried), before)
            }
        }
    }

    /// After a failed write: lost changes are undone, and their revisions are not reused.
    pub(super) fn lose_up_to(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
        self.losses += 1;
    }

    /// Whether nothing of an earlier state was lost on the way to this one.
    pub(super) fn continues(&self, earlier: &Self) -> bool {
        self.losses == earlier.losses
    }

    fn put(&mut self, resource: &ResourceId, stored: &Arc<StoredObject>) {
        for owner in &stored.facts.owners {
            self.dependents.insert((Arc::from(&*owner.uid), resource.clone(), stored.key.clone()));
        }
        if stored.facts.terminating {
            self.terminating.insert(Arc::from(&*stored.facts.uid), (resource.clone(), stored.key.clone()));
        }
        let objects = self.kinds.entry(resource.clone()).or_default();
        let before = objects.insert(stored.key.clone(), Arc::clone(stored));
        if let Some(before) = before {
            let still = |uid: &str| stored.facts.owners.iter().any(|owner| *owner.uid == *uid);
            self.disown(resource, &before, |uid| !still(uid));
        }
    }

    fn remove(&mut self, resource: &ResourceId, key: &StoreKey) -> Option<Arc<StoredObject>> {
        let objects = self.kinds.get_mut(resource)?;
        let before = objects.remove(key)?;
        if objects.is_empty() {
            self.kinds.remove(resource);
        }
        self.disown(resource, &before, |_| true);
        self.terminating.remove(&*before.facts.uid);
        Some(before)
    }

    fn disown(&mut self, resource: &ResourceId, stored: &StoredObject, which: impl Fn(&str) -> bool) {
        for owner in stored.facts.owners.iter().filter(|owner| which(&owner.uid)) {
            self.dependents.remove(&(Arc::from(&*owner.uid), resource.clone(), stored.key.clone()));
        }
    }
}
