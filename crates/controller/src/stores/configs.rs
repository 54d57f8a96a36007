//! Configs of every kind that is referenced, and the versions that they offer.

use std::collections::{BTreeMap, BTreeSet};

use aviary_engine::configs::{ConfigRef, GroupResource};
use aviary_engine::name::Text;
use aviary_engine::observed::{Lookup, Observed};

use crate::seen::{Change, Key, Refused, SeenConfig};
use crate::stores::{Booked, Kind, Known, Relist, Stores};

impl Stores {
    /// Every kind of config that is referenced anywhere and may be. Whoever names another must not make the manager read it.
    pub(crate) fn referenced_kinds(&self) -> BTreeSet<GroupResource> {
        let mut kinds = BTreeSet::from([GroupResource::templates().clone()]);
        for known in self.addons.values() {
            let addon = &known.observed.addon;
            let named = addon.referenced_configs().map(|config| &config.kind);
            kinds.extend(named.filter(|kind| addon.may_name(kind)).cloned());
            kinds.extend(known.overrides.kinds().filter(|kind| addon.may_override(kind)).cloned());
        }
        kinds
    }

    pub(crate) fn kinds(&self) -> &BTreeMap<GroupResource, Kind> {
        &self.kinds
    }

    /// Notes what a kind is, or that nobody asks for it any more.
    pub(crate) fn set_kind(&mut self, kind: &GroupResource, what: Option<Kind>) {
        let changed = match what {
            Some(what) => self.kinds.insert(kind.clone(), what) != Some(what),
            None => {
                self.configs.retain(|config, _| config.kind != *kind);
                self.offers.retain(|config, _| config.kind != *kind);
                self.relisting.remove(&Relist::Config(kind.clone()));
                self.kinds.remove(kind).is_some()
            }
        };
        if changed {
            self.mark_all();
        }
    }

    /// A kind that may not be listed is a problem of those who name it. One that was listed before stays as it was known.
    pub(super) fn refused(&mut self, refused: &Refused) {
        if let Some(Kind::Listing { namespaced }) = self.kinds.get(&refused.resource).copied() {
            self.set_kind(&refused.resource, Some(Kind::Forbidden { namespaced }));
        }
    }

    pub(super) fn config(&mut self, kind: &GroupResource, change: Change<SeenConfig>) {
        let of = Relist::Config(kind.clone());
        let reference = |key: &Key| ConfigRef {
            kind: kind.clone(),
            namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: key.name.clone(),
        };
        let gone = match self.book(&of, change) {
            Booked::Nothing => return,
            Booked::Put(key, seen) => {
                return self.put_config(reference(&key), seen);
            }
            Booked::Gone(keys) => keys.iter().map(reference).collect(),
            Booked::Complete(seen) => {
                if let Some(Kind::Listing { namespaced } | Kind::Forbidden { namespaced }) =
                    self.kinds.get(kind).copied()
                {
                    self.kinds.insert(kind.clone(), Kind::Watched { namespaced });
                    self.mark_all();
                }
                let seen: BTreeSet<ConfigRef> = seen.iter().map(reference).collect();
                let known = self.configs.keys().filter(|config| config.kind == *kind);
                known.filter(|config| !seen.contains(config)).cloned().collect::<Vec<_>>()
            }
        };
        for config in gone {
            self.drop_config(&config);
        }
    }

    fn put_config(&mut self, config: ConfigRef, seen: SeenConfig) {
        let SeenConfig { live, template, offers } = seen;
        let same = self
            .configs
            .get(&config)
            .is_some_and(|known| known.hash == live.hash && known.generation == live.generation)
            && offers.as_ref() == self.offers.get(&config);
        if same {
            return;
        }
        if let Some((addon, template)) = template {
            self.drop_template(&config.name);
            self.mark(&addon);
            self.templates.insert(config.name.clone(), (addon, template));
        }
        if let Some(offers) = offers {
            self.offers.insert(config.clone(), offers);
        }
        self.mark_referrers(&config);
        self.configs.insert(config, live);
    }

    fn drop_config(&mut self, config: &ConfigRef) {
        if config.kind == *GroupResource::templates() {
            self.drop_template(&config.name);
        }
        self.configs.remove(config);
        self.offers.remove(config);
        self.mark_referrers(config);
    }

    fn drop_template(&mut self, name: &Text) {
        if let Some((addon, _)) = self.templates.remove(name) {
            self.mark(&addon);
        }
    }

    /// Marks the add-ons that looked this config up when they were last planned. One whose references have changed since is marked already.
    fn mark_referrers(&mut self, config: &ConfigRef) {
        let looked_up = |known: &Known| known.observed.configs.contains_key(config);
        let concerned =
            self.addons.iter().filter(|(_, known)| looked_up(known)).map(|(name, _)| name.clone());
        self.dirty.extend(concerned);
    }

    /// Notes which versions an add-on has; gives back the AddOnHubConfigs whose status does not say so, with what it should say. A config
    /// that several add-ons refer to offers what any of them has.
    pub(crate) fn offer(
        &mut self,
        addon: &Text,
        configs: Vec<ConfigRef>,
        versions: Vec<Text>,
    ) -> Vec<(ConfigRef, Vec<Text>)> {
        let wanted = configs.clone();
        self.offered.insert(addon.clone(), (configs, versions));
        let offers_of = |config: &ConfigRef| {
            let mut offers: Vec<Text> = Vec::new();
            for (_, versions) in self.offered.values().filter(|(configs, _)| configs.contains(config)) {
                offers.extend(
                    versions.iter().filter(|version| !offers.contains(version)).cloned().collect::<Vec<_>>(),
                );
            }
            offers
        };
        let stale = wanted.into_iter().map(|config| (offers_of(&config), config));
        stale
            .filter(|(offers, config)| self.offers.get(config) != Some(offers))
            .map(|(offers, config)| (config, offers))
            .collect()
    }

    /// What there is of the configs that are referenced.
    pub(super) fn look_up(&self, observed: &mut Observed) {
        let overrides = observed.instances.with_own().flat_map(|instance| &instance.overrides);
        let wanted: BTreeSet<ConfigRef> =
            observed.addon.referenced_configs().chain(overrides).cloned().collect();
        let look_up = |config: &ConfigRef| match self.kinds.get(&config.kind) {
            None | Some(Kind::Unknown) => Lookup::UnknownKind,
            Some(
                Kind::Listing { namespaced: true }
                | Kind::Watched { namespaced: true }
                | Kind::Forbidden { namespaced: true },
            ) if config.namespace.is_none() => Lookup::NeedsNamespace,
            Some(Kind::Forbidden { .. }) => Lookup::Forbidden,
            Some(_) => self.configs.get(config).cloned().map_or(Lookup::Missing, Lookup::Found),
        };
        observed.configs = wanted.into_iter().map(|config| (config.clone(), look_up(&config))).collect();
    }
}
