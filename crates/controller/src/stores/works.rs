//! Works of add-ons.

use aviary_engine::name::{ClusterName, Text};
use aviary_engine::observed::Work;

use crate::progress::Booked;
use crate::seen::{Change, Key, NameTaken, SeenWork, Version};
use crate::stores::{Relist, Shelf, Stores};

/// The instance that a work belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WorkHome {
    addon: Text,
    /// Where its instance is. A hosted work is in another namespace.
    cluster: ClusterName,
}

/// Whether a work among those of a cluster is the object of this key.
fn is_at(work: &Work, cluster: &ClusterName, key: &Key) -> bool {
    let namespace = work.hosted_on.as_deref().unwrap_or(cluster.as_str());
    work.name == key.name && *namespace == *key.namespace
}

impl Stores {
    pub(super) fn work(&mut self, change: Change<Box<SeenWork>>) {
        let all = |stores: &Self| stores.work_of.keys().cloned().collect();
        let of = Relist::Shelf(Shelf::Works);
        match self.book(of, change, Self::work_version, |_, seen| Some(seen.addon.clone()), all) {
            Booked::Nothing => {}
            Booked::Put(key, seen) => self.put_work(key, *seen),
            Booked::Gone(keys) => keys.iter().for_each(|key| self.drop_work(key)),
        }
    }

    fn work_version(&self, key: &Key) -> Option<Version> {
        let WorkHome { addon, cluster } = self.work_of.get(key)?;
        let works = self.addons.get(addon)?.works.get(cluster)?;
        let known = works.iter().find(|work| is_at(work, cluster, key))?;
        Some(Version::new(known.uid.clone(), &known.resource_version))
    }

    fn drop_work(&mut self, key: &Key) {
        let Some(WorkHome { addon, cluster }) = self.work_of.remove(key) else { return };
        self.retain_works(&addon, &cluster, |work| !is_at(work, &cluster, key));
    }

    fn retain_works(&mut self, addon: &Text, cluster: &ClusterName, keep: impl Fn(&Work) -> bool) {
        if let Some(entry) = self.addons.get_mut(addon) {
            let none_left = entry.works.get_mut(cluster).is_some_and(|mut works| {
                works.retain(keep);
                works.is_empty()
            });
            if none_left {
                entry.works.remove(cluster);
            }
        }
        self.mark(addon);
    }

    /// Puts a work among those of an add-on, in place of one with the same name.
    fn insert_work(&mut self, addon: &Text, cluster: ClusterName, work: Work) {
        let entry = self.addons.entry(addon.clone()).or_default();
        let mut works = entry.works.get_or_insert_with(cluster, Vec::new);
        works.retain(|old| old.name != work.name || old.hosted_on != work.hosted_on);
        let at = works.partition_point(|old| old.name < work.name);
        works.insert(at, work);
        drop(works);
        self.mark(addon);
    }

    /// Works of others are not watched. This one is stored with ours, marked as another owner's.
    pub(super) fn name_taken(&mut self, taken: NameTaken) {
        let NameTaken { addon, cluster, name, assigned } = taken;
        self.insert_work(&addon, cluster, Work::of_somebody_else(name, &assigned));
    }

    pub(super) fn name_freed(&mut self, freed: &NameTaken) {
        // A work of ours may have been seen under the name meanwhile. It has a uid.
        self.retain_works(&freed.addon, &freed.cluster, |work| {
            work.name != freed.name || !work.uid.is_empty() || work.hosted_on.is_some()
        });
    }

    fn put_work(&mut self, key: Key, seen: SeenWork) {
        let SeenWork { addon, cluster, mut work } = seen;
        let home = WorkHome { addon: addon.clone(), cluster: cluster.clone() };
        if self.work_of.get(&key).is_some_and(|before| *before != home) {
            self.drop_work(&key);
        }
        work.state = self.states.share(work.state);
        work.hashes = work.hashes.map(|hashes| self.hashes.share(hashes));
        if let Some(owner) = &mut work.owner {
            self.texts.share(owner);
        }
        self.insert_work(&addon, cluster, work);
        self.work_of.insert(key, home);
    }
}
