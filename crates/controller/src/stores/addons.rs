//! Add-ons, as they come and go.

use crate::seen::{Change, Key, SeenAddOn};
use crate::stores::{Booked, Relist, Shelf, Stores, is_newer};
use aviary_engine::name::Text;

impl Stores {
    pub(super) fn addon(&mut self, change: Change<Box<SeenAddOn>>) {
        let gone = match self.book(&Relist::Shelf(Shelf::AddOns), change) {
            Booked::Nothing => return,
            Booked::Put(key, seen) => return self.put_addon(&key.name, *seen),
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::AddOns);
                let there = self.addons.iter().filter(|(_, known)| known.present);
                let keys = there.map(|(name, _)| Key { namespace: "".into(), name: name.clone() });
                keys.filter(|key| !seen.contains(key)).collect()
            }
        };
        for key in gone {
            if let Some(known) = self.addons.get_mut(&key.name) {
                known.present = false;
                known.observed.addon = Default::default();
            }
            self.offered.remove(&key.name);
            self.dirty.insert(key.name);
        }
    }

    fn put_addon(&mut self, name: &Text, seen: SeenAddOn) {
        let known = self.addons.entry(name.clone()).or_default();
        if known.present
            && known.observed.addon.uid == seen.addon.uid
            && !is_newer(&seen.resource_version, &known.resource_version)
        {
            return;
        }
        let SeenAddOn { mut addon, title, problems, resource_version, term } = seen;
        self.texts.share(&mut addon.uid);
        known.present = true;
        known.resource_version = resource_version;
        known.term = term;
        known.title = title;
        known.problems = problems;
        let another = known.observed.addon.uid != addon.uid;
        known.observed.addon = addon;
        if another {
            known.sort_kept();
        }
        self.mark(name);
    }
}
