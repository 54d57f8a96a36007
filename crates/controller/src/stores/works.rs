//! Works of add-ons.

use aviary_engine::name::ClusterName;
use aviary_engine::observed::Work;

use crate::seen::{Change, Key, SeenWork, Taken};
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

    /// Others' works are not watched: this one is put among ours, as what it is.
    pub(super) fn taken(&mut self, taken: Taken) {
        let Taken { addon, cluster, name, told } = taken;
        let known = self.addons.entry(addon.clone()).or_default();
        let mut works = known.observed.works.get_or_insert_with(cluster, Vec::new);
        works.retain(|work| work.name != name);
        works.push(Work::of_somebody_else(name, &told));
        works.sort_by(|a, b| a.name.cmp(&b.name));
        drop(works);
        self.mark(&addon);
    }

    pub(super) fn freed(&mut self, freed: &Taken) {
        let Taken { addon, cluster, name, .. } = freed;
        if let Some(known) = self.addons.get_mut(addon) {
            let works = &mut known.observed.works;
            let none_left = works.get_mut(cluster).is_some_and(|mut works| {
                // Not one of ours that has been seen there meanwhile.
                works.retain(|work| work.name != *name || !work.uid.is_empty());
                works.is_empty()
            });
            if none_left {
                works.remove(cluster);
            }
        }
        self.mark(addon);
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
