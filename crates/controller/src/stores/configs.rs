//! Configs of every kind that is referenced, and the versions that they offer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aviary_engine::configs::{ConfigRef, GroupResource};
use aviary_engine::content::ConfigContent;
use aviary_engine::name::Text;
use aviary_engine::observed::{LiveConfig, Lookup, Offers, Template};
use serde_json::Value;

use crate::progress::Booked;
use crate::seen::{Change, Key, Refused, SeenConfig};
use crate::stores::own::is_own;
use crate::stores::{KindState, Relist, Stores};

/// A config as it is kept. Parsed JSON takes many times the memory of its text, so only what some
/// add-on looks up is parsed, and only if it is small. A template is parsed only for a plan that
/// reads it, which most plans do not: what is rendered comes from the stored revisions.
#[derive(Clone, Debug)]
pub(super) enum HeldConfig {
    Open(LiveConfig),
    Parked {
        /// Without its content.
        live: LiveConfig,
        text: Arc<str>,
    },
}

impl HeldConfig {
    fn parked(live: LiveConfig) -> Self {
        let text = live.content.to_text();
        Self::Parked { live: LiveConfig { content: ConfigContent::default(), ..live }, text }
    }

    /// Parsed here, so that it is parsed once and not by every plan, unless that takes much memory.
    fn open(live: LiveConfig) -> Self {
        if !live.content.is_small() {
            return Self::parked(live);
        }
        let _: &Arc<Value> = &live.content;
        Self::Open(live)
    }

    /// Its content is parsed when it is read.
    fn lent(&self) -> LiveConfig {
        match self {
            Self::Open(live) => live.clone(),
            Self::Parked { live, text } => {
                LiveConfig { content: ConfigContent::of_text(Arc::clone(text)), ..live.clone() }
            }
        }
    }

    fn is(&self, live: &LiveConfig) -> bool {
        let (Self::Open(known) | Self::Parked { live: known, .. }) = self;
        known.hash == live.hash && known.generation == live.generation
    }
}

impl Stores {
    /// Every kind of config that is referenced and may be. Naming another kind must not make the
    /// manager read it.
    pub(crate) fn referenced_kinds(&self) -> BTreeSet<GroupResource> {
        let mut kinds = BTreeSet::from(
            [GroupResource::templates(), GroupResource::policies(), GroupResource::records()]
                .map(Clone::clone),
        );
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
                self.drop_all_own(kind);
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
        let booked = match is_own(kind) {
            true => self.own(kind, change),
            false => self.book_seen(Relist::Config(kind.clone()), change, all),
        };
        if let Some(KindState::Listing { namespaced } | KindState::Forbidden { namespaced }) =
            self.kinds.get(kind).copied().filter(|_| is_end)
        {
            self.set_kind(kind, Some(KindState::Watched { namespaced }));
        }
        match booked {
            Booked::Nothing => {}
            Booked::Put(key, SeenConfig { own: Some(own), .. }) => self.put_own(&key.name, own),
            Booked::Put(_, _) if is_own(kind) => {}
            Booked::Gone(keys) if is_own(kind) => keys.iter().for_each(|key| self.drop_own(kind, &key.name)),
            Booked::Put(key, seen) => self.put_config(reference(key), seen),
            Booked::Gone(keys) => keys.into_iter().for_each(|key| self.drop_config(&reference(key))),
        }
    }

    fn put_config(&mut self, config: ConfigRef, seen: SeenConfig) {
        let SeenConfig { live, template, offers, own: _ } = seen;
        let same = self.configs.get(&config).is_some_and(|known| known.is(&live))
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
        let held = match self.is_kept_open(&config) {
            true => HeldConfig::open(live),
            false => HeldConfig::parked(live),
        };
        self.configs.insert(config, held);
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

    fn is_kept_open(&self, config: &ConfigRef) -> bool {
        may_be_open(config) && self.addons.values().any(|entry| entry.looked_up.contains(config))
    }

    /// An add-on looks up other configs than before. Those that it needs are opened, and those that
    /// no add-on needs any more are parked. Configs that other add-ons use stay open.
    pub(super) fn change_looked_up(&mut self, before: &BTreeSet<ConfigRef>, after: &BTreeSet<ConfigRef>) {
        for config in after.iter().filter(|config| may_be_open(config)) {
            if let Some(held @ HeldConfig::Parked { .. }) = self.configs.get_mut(config) {
                *held = HeldConfig::open(held.lent());
            }
        }
        for config in before.difference(after) {
            self.mark_referrers(config);
            if !self.is_kept_open(config)
                && let Some(held) = self.configs.get_mut(config)
                && let HeldConfig::Open(live) = held
            {
                *held = HeldConfig::parked(live.clone());
            }
        }
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
            Some(_) => self.configs.get(config).map_or(Lookup::Missing, |held| Lookup::Found(held.lent())),
        }
    }

    /// What the AddOnHubConfigs among `configs` list, and which versions the other add-ons have
    /// that reference them. The add-on that asks is not in the store while it is observed.
    pub(super) fn offers(
        &self,
        configs: &BTreeSet<ConfigRef>,
        refused: &BTreeSet<ConfigRef>,
    ) -> BTreeMap<ConfigRef, Offers> {
        if !self.is_manager {
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
        let hub_configs = configs
            .iter()
            .filter(|config| config.kind == *GroupResource::hub_configs() && !refused.contains(config));
        hub_configs.map(|config| (config.clone(), of(config))).collect()
    }
}

/// Templates are large and plans seldom read them.
fn may_be_open(config: &ConfigRef) -> bool {
    config.kind != *GroupResource::templates()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use aviary_api::ObjectText;
    use serde_json::json;

    use super::*;
    use crate::seen;

    fn seen_config(name: &str, spec: &Value) -> (ConfigRef, SeenConfig) {
        let kind = GroupResource::deployment_configs().clone();
        let object: ObjectText = serde_json::from_value(json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec,
        }))
        .unwrap();
        let seen = seen::config(&kind, &object).unwrap();
        (ConfigRef { kind, namespace: Some("default".into()), name: name.into() }, seen)
    }

    /// How many bytes of text are kept, and how many JSON values.
    fn kept(stores: &Stores) -> (usize, usize) {
        fn values(value: &Value) -> usize {
            match value {
                Value::Array(all) => 1 + all.iter().map(values).sum::<usize>(),
                Value::Object(all) => 1 + all.values().map(values).sum::<usize>(),
                _ => 1,
            }
        }
        stores.configs.values().fold((0, 0), |(bytes, count), held| match held {
            HeldConfig::Open(live) => (bytes, count + values(&live.content)),
            HeldConfig::Parked { live, text } => (bytes + text.len(), count + values(&live.content)),
        })
    }

    #[test]
    fn a_config_that_nobody_references_is_kept_as_text_and_parsed_when_somebody_does() {
        let mut stores = Stores::default();
        let brackets = json!({"x": vec![json!([]); 1_000]});
        for number in 0..20 {
            let (config, seen) = seen_config(&format!("c{number}"), &brackets);
            stores.put_config(config, seen);
        }
        let (bytes, values) = kept(&stores);
        assert!(bytes > 20_000);
        assert_eq!(values, 20);

        let (wanted, seen) = seen_config("c7", &brackets);
        let after = BTreeSet::from([wanted.clone()]);
        stores.change_looked_up(&BTreeSet::new(), &after);
        assert_eq!(stores.configs.get(&wanted).unwrap().lent().content, seen.live.content);
        assert!(kept(&stores).1 > 1_000);
        stores.change_looked_up(&after, &BTreeSet::new());
        assert_eq!(kept(&stores), (bytes, values));
    }

    #[test]
    fn h1_a_dense_config_stays_text_also_while_an_add_on_references_it() {
        let mut stores = Stores::default();
        let (config, seen) = seen_config("dense", &json!({"x": vec![json!([]); 50_000]}));
        assert_eq!(seen.live.unkeepable, None);
        stores.put_config(config.clone(), seen);
        let text_only = kept(&stores);
        assert_eq!(text_only.1, 1);
        stores.change_looked_up(&BTreeSet::new(), &BTreeSet::from([config.clone()]));
        assert_eq!(kept(&stores), text_only);
        assert_eq!(
            stores.configs[&config].lent().content["spec"]["x"].as_array().map(Vec::len),
            Some(50_000)
        );
        assert_eq!(kept(&stores), text_only, "what a plan parses goes with the plan");
    }

    #[test]
    fn of_a_config_that_cannot_be_used_nothing_is_kept() {
        let mut stores = Stores::default();
        let (config, seen) = seen_config("dense", &json!({"x": vec![json!([]); 200_000]}));
        assert!(seen.live.unkeepable.is_some());
        stores.put_config(config, seen);
        assert_eq!(kept(&stores), (4, 1));
    }

    #[test]
    fn templates_are_kept_as_text_also_where_an_addon_references_them() {
        let mut stores = Stores::default();
        let kind = GroupResource::templates();
        for number in 0..20 {
            let object: ObjectText = serde_json::from_value(json!({
                "metadata": {"name": format!("t{number}")},
                "spec": {"addonName": "a", "version": format!("v{number}.0.0"), "all": vec![json!([]); 50_000]},
            }))
            .unwrap();
            let config = ConfigRef { kind: kind.clone(), namespace: None, name: format!("t{number}").into() };
            stores.put_config(config, seen::config(kind, &object).unwrap());
        }
        let parsed = kept(&stores).1;
        assert_eq!(parsed, 20);
        let all: BTreeSet<ConfigRef> = stores.configs.keys().cloned().collect();
        stores.change_looked_up(&BTreeSet::new(), &all);
        assert_eq!(kept(&stores).1, parsed);
        let lent = stores.templates_of(&"a".into());
        assert_eq!(lent.len(), 20);
        assert_eq!(lent[0].content["spec"]["all"].as_array().map(Vec::len), Some(50_000));
        assert!(stores.templates_of(&"a".into()).iter().all(|template| !template.content.is_parsed()));
    }

    #[test]
    fn the_author_of_a_dense_template_is_told_although_it_is_never_parsed() {
        let kind = GroupResource::templates();
        let object: ObjectText = serde_json::from_value(json!({
            "metadata": {"name": "dense", "generation": 3},
            "spec": {"addonName": "a", "version": "v1", "all": vec![json!({"a": 1}); 170_000]},
        }))
        .unwrap();
        let SeenConfig { live, template, .. } = seen::config(kind, &object).unwrap();
        let (addon, template) = template.unwrap();
        assert_eq!((&*addon, template.version.as_deref(), live.generation), ("a", Some("v1"), 3));
        assert_eq!(template.unkeepable, Some(aviary_engine::observed::Unkeepable::TooDense));
        assert_eq!(live.unkeepable, Some(aviary_engine::observed::Unkeepable::TooDense));
    }

    /// Otherwise the version would no longer be offered, and the fleet would go to an older one.
    #[test]
    fn a_dense_template_keeps_the_version_that_a_manifest_states() {
        let kind = GroupResource::templates();
        let version = json!({"addon.open-cluster-management.io/template-version": "v2", "other": {}});
        let manifests = json!([
            {"metadata": {"name": "a"}, "data": vec![json!({"a": 1}); 30_000]},
            {"metadata": {"annotations": version}},
        ]);
        let object: ObjectText = serde_json::from_value(json!({
            "metadata": {"name": "dense"},
            "spec": {"addonName": "a", "agentSpec": {"workload": {"manifests": manifests}}},
        }))
        .unwrap();
        let (_, template) = seen::config(kind, &object).unwrap().template.unwrap();
        assert_eq!(template.version.as_deref(), Some("v2"));
        assert_eq!(template.unkeepable, Some(aviary_engine::observed::Unkeepable::TooDense));
    }
}
