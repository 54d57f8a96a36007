//! The snapshot of one add-on that a plan is made from.

use std::mem::take;
use std::ops::Deref;
use std::sync::Arc;

use aviary_engine::name::Text;
use aviary_engine::observed::{AddOn, Observed};
use aviary_engine::status::refusals;

use crate::stores::{AddOnEntry, Stores};

/// Everything about one add-on at this moment, lent by the stores without copying. Dropping the
/// snapshot returns it.
#[derive(Debug)]
pub(crate) struct Snapshot<'s> {
    stores: &'s mut Stores,
    /// The add-on's entry, without the parts that are lent.
    entry: AddOnEntry,
    name: Text,
    observed: Observed,
}

impl Stores {
    /// The add-on as it is now. One that does not exist is as if it were being deleted, while hooks
    /// still have to run before its instances go; otherwise `None`.
    pub(crate) fn observe(&mut self, addon: &Text) -> Option<Snapshot<'_>> {
        let mut entry = self.addons.remove(addon)?;
        if !entry.present {
            if !entry.instances.has_guarded() && entry.revisions.held.is_empty() {
                self.addons.insert(addon.clone(), entry);
                return None;
            }
            entry.addon = AddOn { name: addon.clone(), deleting: true, ..AddOn::default() };
        }
        let mut problems = entry.problems.clone();
        self.govern(&mut entry.addon, &mut problems);
        let served = self.served.unwrap_or_default();
        let record = self.record_of(&entry);
        if !served.addon_conditions {
            entry.addon.status.conditions =
                record.as_ref().map_or_else(Vec::new, |record| record.conditions.clone());
            entry.addon.status.attempts =
                record.as_ref().map_or_else(Vec::new, |record| record.attempts.clone());
        }
        problems.extend(entry.instance_problems.values().flatten().cloned());
        problems.extend(entry.odd_term.clone());
        let overrides = entry.instances.with_own().flat_map(|instance| &instance.overrides);
        let looked_up = entry.addon.referenced_configs().chain(overrides).cloned().collect();
        let before = std::mem::replace(&mut entry.looked_up, looked_up);
        if before != entry.looked_up {
            self.change_looked_up(&before, &entry.looked_up);
        }
        // A reader of the hub knows only what the leader says.
        let told = (!self.is_manager).then(|| refusals::told(&entry.addon.status.conditions));
        let (refused, refused_unnamed) = match told {
            Some(told) => (Arc::new(told.named), told.unnamed),
            None => (Arc::clone(&entry.refused), 0),
        };
        let observed = Observed {
            placements: self.select(&entry.addon, &mut problems),
            configs: entry.looked_up.iter().map(|config| (config.clone(), self.look_up(config))).collect(),
            templates: self.templates_of(addon),
            offers: self.offers(&entry.looked_up, &entry.refused_offers),
            without_namespace: Arc::clone(&self.without_namespace),
            refused,
            retried: Arc::clone(&entry.retried),
            refused_annotations: Arc::clone(&entry.refused_annotations),
            refused_unnamed,
            problems,
            options: self.options.clone(),
            served,
            record,
            addon: take(&mut entry.addon),
            clusters: take(&mut self.clusters),
            instances: take(&mut entry.instances),
            works: take(&mut entry.works),
            revisions: take(&mut entry.revisions),
        };
        Some(Snapshot { stores: self, entry, name: addon.clone(), observed })
    }
}

impl Snapshot<'_> {
    pub(crate) fn entry(&self) -> &AddOnEntry {
        &self.entry
    }
}

impl Deref for Snapshot<'_> {
    type Target = Observed;

    fn deref(&self) -> &Observed {
        &self.observed
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let Self { stores, entry, name, observed } = self;
        stores.clusters = take(&mut observed.clusters);
        entry.addon = take(&mut observed.addon);
        entry.instances = take(&mut observed.instances);
        entry.works = take(&mut observed.works);
        entry.revisions = take(&mut observed.revisions);
        entry.revisions.rest();
        stores.addons.insert(take(name), take(entry));
    }
}
