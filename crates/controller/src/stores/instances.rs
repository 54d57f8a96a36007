//! Instances of add-ons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use aviary_engine::configs::GroupResource;
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::observed::Instance;

use crate::progress::Booked;
use crate::seen::{Change, Key, SeenInstance, Version};
use crate::stores::{Relist, Shelf, Stores};

impl Stores {
    pub(super) fn instance(&mut self, change: Change<Box<SeenInstance>>) {
        let all = |stores: &Self| {
            let entries = stores.addons.iter();
            let all = entries.flat_map(|(addon, entry)| entry.instances.keys().map(move |one| (addon, one)));
            all.map(|(addon, one)| Key { namespace: one.as_str().into(), name: addon.clone() }).collect()
        };
        let of = Relist::Shelf(Shelf::Instances);
        match self.book(of, change, Self::instance_version, |key, _| Some(key.name.clone()), all) {
            Booked::Nothing => {}
            Booked::Put(key, seen) => self.put_instance(&key.name, *seen),
            Booked::Gone(keys) => keys.into_iter().for_each(|key| self.drop_instance(key)),
        }
    }

    fn drop_instance(&mut self, key: Key) {
        if let (Ok(cluster), Some(entry)) =
            (ClusterName::parse(&key.namespace), self.addons.get_mut(&key.name))
        {
            entry.instance_problems.remove(&cluster);
            entry.forget_refusals(&cluster);
            if let Some(old) = entry.instances.remove(&cluster) {
                entry.overrides.leave(&old);
                if let Some(writing) = self.writing.get(&key.name) {
                    writing.departed.insert(&old.uid);
                }
            }
        }
        self.dirty.insert(key.name);
    }

    fn instance_version(&self, key: &Key) -> Option<Version> {
        let cluster = ClusterName::parse(&key.namespace).ok()?;
        let known = self.addons.get(&key.name)?.instances.get(&cluster)?;
        Some(Version::new(known.uid.clone(), &known.resource_version))
    }

    fn put_instance(&mut self, addon: &Text, seen: SeenInstance) {
        let SeenInstance { mut instance, problems } = seen;
        instance.status = self.statuses.share(instance.status);
        let Instance { uid, owner, marker, install_namespace, .. } = &mut instance;
        for text in [uid, install_namespace].into_iter().chain(owner).chain(marker) {
            self.texts.share(text);
        }
        let entry = self.addons.entry(addon.clone()).or_default();
        let (cluster, uid) = (instance.cluster.clone(), instance.uid.clone());
        if problems.is_empty() {
            entry.instance_problems.remove(&cluster);
        } else {
            entry.instance_problems.insert(cluster.clone(), problems);
        }
        entry.void_refusal(&instance);
        entry.overrides.join(&instance);
        if let Some(old) = entry.instances.insert(cluster, Arc::new(instance)) {
            entry.overrides.leave(&old);
            if let Some(writing) = self.writing.get(addon).filter(|_| old.uid != uid) {
                writing.departed.insert(&old.uid);
            }
        }
        self.mark(addon);
    }
}

/// The uids of the instances that have gone since a plan was made. Its execution may take long, and
/// must not deploy anything for them any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Departed(Arc<Mutex<BTreeSet<Text>>>);

impl Departed {
    fn insert(&self, uid: &Text) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.clone());
    }

    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(uid)
    }
}

/// How many instances override a config of each kind. So the kinds to watch are known without
/// scanning all instances.
#[derive(Debug, Default)]
pub(super) struct OverrideCounts(BTreeMap<GroupResource, usize>);

impl OverrideCounts {
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
