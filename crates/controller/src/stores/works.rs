//! Works of add-ons.

use aviary_engine::name::ClusterName;

use crate::seen::{Change, Key, SeenWork};
use crate::stores::{Booked, Relist, Shelf, Stores, is_newer};

impl Stores {
    pub(super) fn work(&mut self, change: Change<Box<SeenWork>>) {
        let gone = match self.book(&Relist::Shelf(Shelf::Works), change) {
            Booked::Nothing => return,
            Booked::Put(key, seen) => return self.put_work(key, *seen),
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::Works);
                self.work_of.keys().filter(|key| !seen.contains(key)).cloned().collect()
            }
        };
        for key in gone {
            self.drop_work(&key);
        }
    }

    fn drop_work(&mut self, key: &Key) {
        let Some(addon) = self.work_of.remove(key) else { return };
        let Ok(cluster) = ClusterName::parse(&key.namespace) else { return };
        if let Some(known) = self.addons.get_mut(&addon) {
            let works = &mut known.observed.works;
            let none_left = works.get_mut(&cluster).is_some_and(|mut works| {
                works.retain(|work| work.name != key.name);
                works.is_empty()
            });
            if none_left {
                works.remove(&cluster);
            }
        }
        self.mark(&addon);
    }

    fn put_work(&mut self, key: Key, seen: SeenWork) {
        let SeenWork { addon, cluster, mut work } = seen;
        if self.work_of.get(&key).is_some_and(|before| *before != addon) {
            self.drop_work(&key);
        }
        work.state = self.states.share(work.state);
        work.hashes = work.hashes.map(|hashes| self.hashes.share(hashes));
        if let Some(owner) = &mut work.owner {
            self.texts.share(owner);
        }
        let known = self.addons.entry(addon.clone()).or_default();
        let mut works = known.observed.works.get_or_insert_with(cluster, Vec::new);
        match works.iter_mut().find(|known| known.name == work.name) {
            Some(old) if old.uid == work.uid && !is_newer(&work.resource_version, &old.resource_version) => {
                return;
            }
            Some(old) => *old = work,
            None => {
                works.push(work);
                works.sort_by(|a, b| a.name.cmp(&b.name));
            }
        }
        drop(works);
        self.work_of.insert(key, addon.clone());
        self.mark(&addon);
    }
}
