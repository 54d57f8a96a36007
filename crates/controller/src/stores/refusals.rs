//! Writes that the hub refuses for what is in the object, and when each is tried again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aviary_engine::name::{ClusterName, Text};
use aviary_engine::observed::{Instance, Refusal, RefusedWrite};
use tokio::time::Instant;

use crate::seen::{RefusedObject, WriteRefused};
use crate::stores::{AddOnEntry, Stores};

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A write that was not refused for this long has gone through in between.
const FORGOTTEN: Duration = Duration::from_secs(600);

#[derive(Clone, Debug)]
struct Attempts {
    count: u32,
    last: Instant,
}

/// How often each write was refused, and when last. Bounded by the clusters and configs of the
/// add-on.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<RefusedKey, Attempts>);

/// A refused object, whatever the revision.
type RefusedKey = (Option<ClusterName>, &'static str, Text);

fn key(object: &RefusedObject) -> RefusedKey {
    match object {
        RefusedObject::NewInstance(cluster) => (Some(cluster.clone()), "create", "".into()),
        RefusedObject::Status(cluster) => (Some(cluster.clone()), "status", "".into()),
        RefusedObject::Annotations(cluster) => (Some(cluster.clone()), "annotations", "".into()),
        RefusedObject::Work(cluster, _) => (Some(cluster.clone()), "work", "".into()),
        RefusedObject::Instance(cluster) => (Some(cluster.clone()), "delete", "".into()),
        RefusedObject::Offer(config) => (None, "offer", config.name.clone()),
    }
}

impl RefusedObject {
    fn of_cluster(&self) -> Option<(&ClusterName, RefusedWrite)> {
        match self {
            Self::NewInstance(cluster) => Some((cluster, RefusedWrite::Create)),
            Self::Status(cluster) => Some((cluster, RefusedWrite::Status)),
            Self::Work(cluster, _) => Some((cluster, RefusedWrite::Work)),
            Self::Instance(cluster) => Some((cluster, RefusedWrite::Delete)),
            Self::Annotations(_) | Self::Offer(_) => None,
        }
    }
}

impl AddOnEntry {
    /// The instance is gone, and what was refused for it.
    pub(super) fn forget_refusals(&mut self, cluster: &ClusterName) {
        self.refusals.0.retain(|(of, ..), _| of.as_ref() != Some(cluster));
        for known in [&mut self.refused, &mut self.retried] {
            if known.contains_key(cluster) {
                Arc::make_mut(known).remove(cluster);
            }
        }
        if self.refused_annotations.contains(cluster) {
            Arc::make_mut(&mut self.refused_annotations).remove(cluster);
        }
    }

    /// Forgets that the hub refused a work, when its instance is assigned another revision.
    pub(super) fn void_refusal(&mut self, instance: &Instance) {
        let is_work = |refusal: &Refusal| refusal.what == RefusedWrite::Work;
        let told_before = || self.instances.get(&instance.cluster).map(|old| old.status.told_revision());
        if self.refused.get(&instance.cluster).is_some_and(is_work)
            && told_before() != Some(instance.status.told_revision())
        {
            Arc::make_mut(&mut self.refused).remove(&instance.cluster);
        }
    }
}

impl Stores {
    /// How long to wait before a refused write is tried again: longer each time.
    pub(crate) fn pause_after(&self, refused: &WriteRefused) -> Duration {
        let known = self.addons.get(&refused.addon).and_then(|one| one.refusals.0.get(&key(&refused.object)));
        let count = known.filter(|known| known.last.elapsed() < FORGOTTEN).map_or(0, |known| known.count);
        Duration::from_secs(1 << count.min(6)).min(LONGEST_PAUSE)
    }

    pub(super) fn write_refused(&mut self, refused: WriteRefused) {
        let WriteRefused { addon, object, why } = refused;
        let Some(entry) = self.addons.get_mut(&addon) else { return };
        let attempts = entry.refusals.0.entry(key(&object));
        let attempts = attempts.or_insert_with(|| Attempts { count: 0, last: Instant::now() });
        if attempts.last.elapsed() >= FORGOTTEN {
            attempts.count = 0;
        }
        attempts.count += 1;
        attempts.last = Instant::now();
        match (object.of_cluster(), object.clone()) {
            (Some((cluster, what)), _) => {
                Arc::make_mut(&mut entry.retried).remove(cluster);
                // Of two refusals that of the status counts: without it nothing else can be said.
                let keeps =
                    |known: &Refusal| known.what == RefusedWrite::Status && what == RefusedWrite::Work;
                if !entry.refused.get(cluster).is_some_and(keeps) {
                    Arc::make_mut(&mut entry.refused).insert(cluster.clone(), Refusal { what, why });
                }
            }
            (None, RefusedObject::Annotations(cluster)) => {
                Arc::make_mut(&mut entry.refused_annotations).insert(cluster);
            }
            (None, RefusedObject::Offer(config)) => {
                entry.refused_offers.insert(config);
            }
            (None, _) => {}
        }
        self.mark(&addon);
    }

    pub(super) fn retry_write(&mut self, refused: &WriteRefused) {
        let WriteRefused { addon, object, .. } = refused;
        let Some(entry) = self.addons.get_mut(addon) else { return };
        match object.of_cluster() {
            Some((cluster, what)) => {
                if entry.refused.get(cluster).is_some_and(|refusal| refusal.what == what) {
                    let refusal = Arc::make_mut(&mut entry.refused).remove(cluster);
                    let retried = refusal.map(|refusal| (cluster.clone(), refusal));
                    Arc::make_mut(&mut entry.retried).extend(retried);
                }
            }
            None => match object {
                RefusedObject::Annotations(cluster) => {
                    Arc::make_mut(&mut entry.refused_annotations).remove(cluster);
                }
                _ => entry.refused_offers.retain(|config| *object != RefusedObject::Offer(config.clone())),
            },
        }
        self.mark(addon);
    }

    /// All planned writes are done: retried writes have succeeded, or are no longer needed.
    pub(crate) fn end_retries(&mut self, addon: &Text) {
        let Some(entry) = self.addons.get_mut(addon) else { return };
        if !entry.retried.is_empty() {
            entry.retried = Arc::default();
            self.mark(addon);
        }
    }
}
