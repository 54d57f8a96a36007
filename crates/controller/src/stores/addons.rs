//! Add-ons, as they come and go.

use std::collections::BTreeSet;

use crate::progress::Booked;
use crate::seen::{Change, Key, SeenAddOn, Version};
use crate::stores::{Relist, Shelf, Stores};
use aviary_engine::name::Text;

impl Stores {
    pub(super) fn addon(&mut self, change: Change<Box<SeenAddOn>>) {
        let all = |stores: &Self| {
            let names = stores.addons().cloned();
            names.map(|name| Key { namespace: "".into(), name }).collect()
        };
        let of = Relist::Shelf(Shelf::AddOns);
        match self.book(of, change, Self::addon_version, |key, _| Some(key.name.clone()), all) {
            Booked::Nothing => {}
            Booked::Put(key, seen) => self.put_addon(&key.name, *seen),
            Booked::Gone(keys) => {
                for key in keys {
                    if let Some(entry) = self.addons.get_mut(&key.name) {
                        entry.present = false;
                        entry.addon = Default::default();
                        entry.sort_kept();
                        self.policies_changed = true;
                        let before = std::mem::take(&mut entry.looked_up);
                        self.change_looked_up(&before, &BTreeSet::new());
                    }
                    self.dirty.insert(key.name);
                }
            }
        }
    }

    fn addon_version(&self, key: &Key) -> Option<Version> {
        let entry = self.addons.get(&key.name).filter(|entry| entry.present)?;
        Some(Version::new(entry.addon.uid.clone(), &entry.resource_version))
    }

    /// The highest term up to `most` on an add-on. The term `own` of `identity` does not count.
    pub(crate) fn highest_term(&self, identity: &str, own: u64, most: u64) -> u64 {
        let there = self.addons.values().filter(|entry| entry.present).map(|entry| &entry.written_by);
        let others = there.filter(|by| *by.leader != *identity || by.term > own).map(|by| by.term);
        others.filter(|term| *term <= most).max().unwrap_or(0)
    }

    fn put_addon(&mut self, name: &Text, seen: SeenAddOn) {
        let entry = self.addons.entry(name.clone()).or_default();
        let SeenAddOn { mut addon, title, problems, resource_version, written_by } = seen;
        self.texts.share(&mut addon.uid);
        entry.present = true;
        entry.resource_version = resource_version;
        entry.written_by = written_by;
        entry.title = title;
        entry.problems = problems;
        let another = entry.addon.uid != addon.uid;
        entry.addon = addon;
        if another {
            entry.sort_kept();
        }
        self.policies_changed = true;
        self.mark(name);
    }
}
