//! Configs of every kind that is referenced, and the versions that they offer.

use std::collections::{BTreeMap, BTreeSet};

use aviary_engine::configs::{ConfigRef, GroupResource};
use aviary_engine::name::Text;
use aviary_engine::observed::{Lookup, Offers, Template};

use crate::progress::Booked;
use crate::seen::{Change, Key, Refused, SeenConfig};
use crate::stores::{KindState, Relist, Stores};

impl Stores {
    /// Every kind of config that is referenced and may be. Naming another kind must not make the
    /// manager read it.
    pub(crate) fn referenced_kinds(&self) -> BTreeSet<GroupResource> {
        let mut kinds = BTreeSet::from([GroupResource::templates().clone()]);
        for entry in self.addons.values() {
            let addon = &entry.addon;
            let named = addon.referenced_configs().map(|config| &config.kind);
            kinds.extend(named.filter(|kind| addon.may_name(kind)).cloned());
            kinds.extend(entry.overrides.kinds().filter(|kind| addon.may_override(kind)).cloned());
        }
        kinds
    }

    pub(crate) fn unknown_kinds(&self) -> Vec<GroupResource> {
        let mut kinds: Vec<GroupResource> = self.referenced_kinds().into_iter().collect();
        kinds.retain(|kind| !self.kinds.contains_key(kind));
        kinds
    }

    pub(crate) fn kinds(&self) -> &BTreeMap<GroupResource, KindState> {
        &self.kinds
    }

    /// Records the state of a kind; `None` if it is no longer referenced.
    pub(crate) fn set_kind(&mut self, kind: &GroupResource, what: Option<KindState>) {
        let changed = match what {
            Some(what) => self.kinds.insert(kind.clone(), what) != Some(what),
            None => {
                self.configs.retain(|config, _| config.kind != *kind);
                self.listed_versions.retain(|config, _| config.kind != *kind);
                self.bookings.remove(&Relist::Config(kind.clone()));
                self.kinds.remove(kind).is_some()
            }
        };
        if changed {
            self.mark_all();
        }
    }

    /// A kind that may not be listed is a problem of those who reference it. What was listed before
    /// stays known.
    pub(super) fn refused(&mut self, refused: &Refused) {
        if let Some(KindState::Listing { namespaced }) = self.kinds.get(&refused.resource).copied() {
            self.set_kind(&refused.resource, Some(KindState::Forbidden { namespaced }));
        }
    }

    pub(super) fn config(&mut self, kind: &GroupResource, change: Change<SeenConfig>) {
        let is_end = matches!(change, Change::End);
        let reference = |key: Key| ConfigRef {
            kind: kind.clone(),
            namespace: Some(key.namespace).filter(|namespace| !namespace.is_empty()),
            name: key.name,
        };
        let all = |stores: &Self| {
            let configs = stores.configs.keys().filter(|config| config.kind == *kind);
            let key = |config: &ConfigRef| Key {
                namespace: config.namespace.clone().unwrap_or_default(),
                name: config.name.clone(),
            };
            configs.map(key).collect()
        };
        let booked = self.book_seen(Relist::Config(kind.clone()), change, all);
        if let Some(KindState::Listing { namespaced } | KindState::Forbidden { namespaced }) =
            self.kinds.get(kind).copied().filter(|_| is_end)
        {
            self.set_kind(kind, Some(KindState::Watched { namespaced }));
        }
        match booked {
            Booked::Nothing => {}
            Booked::Put(key, seen) => self.put_config(reference(key), seen),
            Booked::Gone(keys) => keys.into_iter().for_each(|key| self.drop_config(&reference(key))),
        }
    }

    fn put_config(&mut self, config: ConfigRef, seen: SeenConfig) {
        let SeenConfig { live, template, offers } = seen;
        let same = self
            .configs
            .get(&config)
            .is_some_and(|known| known.hash == live.hash && known.generation == live.generation)
            && offers.as_ref() == self.listed_versions.get(&config);
        if same {
            return;
        }
        if let Some((addon, template)) = template {
            self.drop_template(&config.name);
            self.mark(&addon);
            self.templates.insert(config.name.clone(), (addon, template));
        }
        if let Some(offers) = offers {
            self.listed_versions.insert(config.clone(), offers);
        }
        self.mark_referrers(&config);
        self.configs.insert(config, live);
    }

    fn drop_config(&mut self, config: &ConfigRef) {
        if config.kind == *GroupResource::templates() {
            self.drop_template(&config.name);
        }
        self.configs.remove(config);
        self.listed_versions.remove(config);
        self.mark_referrers(config);
    }

    fn drop_template(&mut self, name: &Text) {
        if let Some((addon, _)) = self.templates.remove(name) {
            self.mark(&addon);
        }
    }

    /// Marks the add-ons that looked this config up when they were last observed. One whose
    /// references have changed since is marked already.
    fn mark_referrers(&mut self, config: &ConfigRef) {
        let referrers = self.addons.iter().filter(|(_, entry)| entry.looked_up.contains(config));
        self.dirty.extend(referrers.map(|(name, _)| name.clone()));
    }

    pub(super) fn templates_of(&self, addon: &Text) -> Vec<Template> {
        let templates = self.templates.values().filter(|(of, _)| of == addon);
        templates.map(|(_, template)| template.clone()).collect()
    }

    pub(super) fn look_up(&self, config: &ConfigRef) -> Lookup {
        match self.kinds.get(&config.kind) {
            None | Some(KindState::NotServed) => Lookup::UnknownKind,
            Some(
                KindState::Listing { namespaced: true }
                | KindState::Watched { namespaced: true }
                | KindState::Forbidden { namespaced: true },
            ) if config.namespace.is_none() => Lookup::NeedsNamespace,
            Some(KindState::Forbidden { .. }) => Lookup::Forbidden,
            Some(_) => self.configs.get(config).cloned().map_or(Lookup::Missing, Lookup::Found),
        }
    }

    /// What the AddOnHubConfigs among `configs` list, and which versions the other add-ons have
    /// that reference them. The add-on that asks is not in the store while it is observed.
    pub(super) fn offers(&self, configs: &BTreeSet<ConfigRef>) -> BTreeMap<ConfigRef, Offers> {
        if !self.offers_versions {
            return BTreeMap::new();
        }
        let of = |config: &ConfigRef| {
            let others = self.addons.iter().filter(|(name, other)| {
                let templates = self.templates.values().filter(|(of, _)| of == *name);
                other.looked_up.contains(config)
                    && other.addon.renders_templates(templates.map(|(_, template)| template))
            });
            let versions =
                others.map(|(name, other)| (name.clone(), other.addon.status.supported_versions.clone()));
            let listed = self.listed_versions.get(config).cloned().unwrap_or_default();
            Offers { listed, others: versions.collect() }
        };
        let hub_configs = configs.iter().filter(|config| config.kind == *GroupResource::hub_configs());
        hub_configs.map(|config| (config.clone(), of(config))).collect()
    }
}
