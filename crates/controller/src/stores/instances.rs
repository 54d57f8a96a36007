//! Instances of add-ons.

use std::collections::BTreeMap;
use std::sync::Arc;

use aviary_engine::configs::GroupResource;
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::observed::Instance;

use crate::seen::{Change, Key, SeenInstance};
use crate::stores::{Booked, Relist, Shelf, Stores, is_newer};

impl Stores {
    pub(super) fn instance(&mut self, change: Change<Box<SeenInstance>>) {
        let gone = match self.book(&Relist::Shelf(Shelf::Instances), change) {
            Booked::Nothing => return,
            Booked::Put(key, seen) => return self.put_instance(&key.name, *seen),
            Booked::Gone(keys) => keys,
            Booked::Complete(seen) => {
                self.finish(Shelf::Instances);
                let all = self.addons.iter().flat_map(|(addon, known)| {
                    known
                        .observed
                        .instances
                        .keys()
                        .map(|cluster| Key { namespace: cluster.as_str().into(), name: addon.clone() })
                });
                all.filter(|key| !seen.contains(key)).collect()
            }
        };
        for key in gone {
            if let (Ok(cluster), Some(known)) =
                (ClusterName::parse(&key.namespace), self.addons.get_mut(&key.name))
            {
                known.instance_problems.remove(&cluster);
                if let Some(old) = known.observed.instances.remove(&cluster) {
                    known.overrides.leave(&old);
                }
            }
            self.dirty.insert(key.name);
        }
    }

    fn put_instance(&mut self, addon: &Text, seen: SeenInstance) {
        let SeenInstance { mut instance, problems } = seen;
        instance.status = self.statuses.share(instance.status);
        let Instance { uid, owner, marker, install_namespace, .. } = &mut instance;
        for text in [uid, install_namespace].into_iter().chain(owner).chain(marker) {
            self.texts.share(text);
        }
        let known = self.addons.entry(addon.clone()).or_default();
        let cluster = instance.cluster.clone();
        let old = known.observed.instances.get(&cluster);
        if old.is_some_and(|old| {
            old.uid == instance.uid && !is_newer(&instance.resource_version, &old.resource_version)
        }) {
            return;
        }
        if problems.is_empty() {
            known.instance_problems.remove(&cluster);
        } else {
            known.instance_problems.insert(cluster.clone(), problems);
        }
        known.overrides.join(&instance);
        if let Some(old) = known.observed.instances.insert(cluster, Arc::new(instance)) {
            known.overrides.leave(&old);
        }
        self.mark(addon);
    }
}

/// How many instances override a config of each kind: which kinds are watched follows from it, without a look at every instance.
#[derive(Debug, Default)]
pub(super) struct Overrides(BTreeMap<GroupResource, usize>);

impl Overrides {
    pub(super) fn kinds(&self) -> impl Iterator<Item = &GroupResource> {
        self.0.keys()
    }

    fn join(&mut self, instance: &Instance) {
        for config in &instance.overrides {
            *self.0.entry(config.kind.clone()).or_default() += 1;
        }
    }

    fn leave(&mut self, instance: &Instance) {
        for config in &instance.overrides {
            if let Some(count) = self.0.get_mut(&config.kind) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(&config.kind);
                }
            }
        }
    }
}
