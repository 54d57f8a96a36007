//! Configs and revisions: the configs of an add-on, layer by layer, and the hashes that pin them
//! (rules, chapter 2).
//!
//! Decides what is desired, never when a cluster gets it: that is [`crate::rollout`]. Reads the
//! content of a config only to find a version in it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::{Arc, LazyLock};

use aviary_api::names;
use serde_json::{Value, json};

use crate::hash::{self, Hash};
use crate::name::{Text, same};
use crate::observed::{InstallPlacement, Instance, Lookup, Observed, Reference, StatusFields, WorkHashes};
use crate::problem::Problem;
use crate::shared::{ById, Shared, SharedId};
use crate::versions;

/// A kind of config. Written `resource.group`.
#[derive(Clone, Debug, Eq, PartialOrd, Ord)]
pub struct GroupResource {
    pub group: Text,
    pub resource: Text,
}

impl PartialEq for GroupResource {
    fn eq(&self, other: &Self) -> bool {
        same(&self.resource, &other.resource) && same(&self.group, &other.group)
    }
}

impl std::hash::Hash for GroupResource {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.group, &self.resource).hash(state);
    }
}

impl GroupResource {
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }

    pub fn hub_configs() -> &'static Self {
        static KIND: LazyLock<GroupResource> =
            LazyLock::new(|| GroupResource::new(names::ADDON_GROUP, names::ADDON_HUB_CONFIGS));
        &KIND
    }

    pub fn deployment_configs() -> &'static Self {
        static KIND: LazyLock<GroupResource> =
            LazyLock::new(|| GroupResource::new(names::ADDON_GROUP, names::ADDON_DEPLOYMENT_CONFIGS));
        &KIND
    }

    /// Configs of this kind only select a version.
    pub(crate) fn chooses_version(&self) -> bool {
        [Self::hub_configs(), Self::templates()].contains(&self)
    }

    pub(crate) fn is_templates(&self) -> bool {
        self == Self::templates()
    }

    /// Secrets are never configs: the content of configs is copied into revisions, which more
    /// people may read.
    pub(crate) fn is_secrets(&self) -> bool {
        self.group.is_empty() && *self.resource == *"secrets"
    }

    pub fn templates() -> &'static Self {
        static KIND: LazyLock<GroupResource> =
            LazyLock::new(|| GroupResource::new(names::ADDON_GROUP, names::ADDON_TEMPLATES));
        &KIND
    }

    pub fn policies() -> &'static Self {
        static KIND: LazyLock<GroupResource> =
            LazyLock::new(|| GroupResource::new(names::ADDON_GROUP, names::ADDON_ROLLOUT_POLICIES));
        &KIND
    }

    pub fn records() -> &'static Self {
        static KIND: LazyLock<GroupResource> =
            LazyLock::new(|| GroupResource::new(names::ADDON_GROUP, names::ADDON_ROLLOUT_RECORDS));
        &KIND
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.resource)
        } else {
            write!(f, "{}.{}", self.resource, self.group)
        }
    }
}

/// A reference to one config object. Without a namespace it is cluster-scoped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigRef {
    pub kind: GroupResource,
    pub namespace: Option<Text>,
    pub name: Text,
}

impl fmt::Display for ConfigRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {}/{}", self.kind, namespace, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// A config together with the hash that pins its content. The hash identifies it; the name is for
/// messages. Small: thousands of instances pin the same few configs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pin {
    pub config: Arc<ConfigRef>,
    pub hash: Hash,
}

/// The pinned configs that a placement should run, sorted by kind; those of one kind, on a hub of
/// OCM, in the order in which they are listed.
///
/// Two revisions are equal if they pin the same content, so renaming a config starts no rollout.
#[derive(Clone, Default)]
pub struct Revision(Arc<Vec<Pin>>);

impl Revision {
    pub fn new(mut pins: Vec<Pin>) -> Self {
        // Stable, so the order within a kind stays.
        pins.sort_by(|a, b| a.config.kind.cmp(&b.config.kind));
        Self(Arc::new(pins))
    }

    pub fn pins(&self) -> &[Pin] {
        &self.0
    }

    /// An add-on without configs has an empty revision. It is neither recorded nor stored, and
    /// cannot be rolled back to.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first config of a kind: the one that counts where only one can.
    pub fn pin(&self, kind: &GroupResource) -> Option<&Pin> {
        self.pins_of(kind).next()
    }

    /// All configs of a kind, in order.
    pub fn pins_of(&self, kind: &GroupResource) -> impl Iterator<Item = &Pin> + Clone {
        self.0.iter().filter(move |pin| pin.config.kind == *kind)
    }

    /// The hashes by kind as a work carries them: sorted, because its annotation says nothing of
    /// the order within a kind.
    pub fn hashes(&self) -> WorkHashes {
        let mut hashes: Vec<(GroupResource, Hash)> =
            self.pins().iter().map(|pin| (pin.config.kind.clone(), pin.hash.clone())).collect();
        hashes.sort();
        Shared::new(hashes)
    }

    /// Whether both pin the same content of a kind.
    pub fn same_of(&self, other: &Self, kind: &GroupResource) -> bool {
        self.pins_of(kind).map(|pin| &pin.hash).eq(other.pins_of(kind).map(|pin| &pin.hash))
    }

    /// A short id, equal for equal revisions.
    pub fn id(&self) -> Text {
        Self::id_of(self.pins().iter().map(|pin| (&pin.config.kind, &pin.hash)))
    }

    /// The id of the revision with these hashes, which must be sorted by kind.
    pub fn id_of<'a>(hashes: impl Iterator<Item = (&'a GroupResource, &'a Hash)>) -> Text {
        let mut text = String::new();
        for (kind, hash) in hashes {
            text.push_str(&kind.to_string());
            text.push('=');
            text.push_str(hash.as_str());
            text.push('\n');
        }
        hash::of_bytes(text.as_bytes()).as_str().get(..12).unwrap_or_default().into()
    }

    /// Whether both the content and the names are equal.
    pub(crate) fn same_names(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl PartialEq for Revision {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.len() == other.0.len()
                && self
                    .0
                    .iter()
                    .zip(other.0.iter())
                    .all(|(a, b)| a.hash == b.hash && a.config.kind == b.config.kind))
    }
}

impl Eq for Revision {}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.pins().iter().map(|pin| format!("{}@{}", pin.config.name, pin.hash.short())))
            .finish()
    }
}

/// The configs of some revisions side by side: by kind, and within a kind in order.
pub fn side_by_side<const N: usize>(
    revisions: [Option<&Revision>; N],
) -> Vec<(&GroupResource, [Option<&Pin>; N])> {
    let pins = revisions.iter().flatten().flat_map(|revision| revision.pins());
    let kinds: BTreeSet<&GroupResource> = pins.map(|pin| &pin.config.kind).collect();
    let mut rows = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let mut lists = revisions.map(|one| one.into_iter().flat_map(move |one| one.pins_of(kind)));
        loop {
            let row = lists.each_mut().map(Iterator::next);
            if row.iter().all(Option::is_none) {
                break;
            }
            rows.push((kind, row));
        }
    }
    rows
}

/// What one layer (the add-on, a placement, an instance) sets for one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ConfigSource {
    Config(ConfigRef),
    /// More configs than can be used: this is the last one.
    TooMany(ConfigRef),
    /// The version shorthand: an inline AddOnHubConfig.
    Version(Text),
}

/// How many configs that cannot be used a status lists.
const MOST_UNRESOLVED: usize = 32;

/// How many configs of one kind a list may have. They are all listed in the status of every
/// instance.
pub(crate) const MOST_OF_ONE_KIND: usize = 32;

/// The same for this kind: an instance has one version.
fn most_of(kind: &GroupResource) -> usize {
    if kind == GroupResource::hub_configs() { 1 } else { MOST_OF_ONE_KIND }
}

/// What is set for each kind, in order; never nothing.
type Layered = BTreeMap<GroupResource, Vec<ConfigSource>>;

/// Adds a layer: its configs and its version shorthand replace earlier ones kind by kind. A
/// reference to an AddOnHubConfig wins over the shorthand in the same layer. Of several configs of
/// one kind only the last one counts if `takes_last`, and otherwise all.
fn overlay(layers: &mut Layered, configs: &[ConfigRef], version: Option<&Text>, takes_last: bool) {
    if let Some(version) = version {
        layers.insert(GroupResource::hub_configs().clone(), vec![ConfigSource::Version(version.clone())]);
    }
    let mut own = Layered::new();
    for config in configs {
        let sources = own.entry(config.kind.clone()).or_default();
        if takes_last {
            sources.clear();
        }
        let source = ConfigSource::Config(config.clone());
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    for (kind, sources) in &mut own {
        if sources.len() > most_of(kind)
            && let Some(ConfigSource::Config(last)) = sources.pop()
        {
            *sources = vec![ConfigSource::TooMany(last)];
        }
    }
    layers.extend(own);
}

/// The desired revision of an instance or a placement, or why it cannot be resolved.
pub type Wanted = Result<Revision, Problem>;

/// The effect of an instance's own configs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Overrides {
    /// Its version comes from the shorthand.
    pub by_version: bool,
    /// A config that it references selects its version.
    pub by_config: bool,
    /// Kinds that follow the instance and not its placement.
    pub kinds: BTreeSet<GroupResource>,
    /// The pins of those kinds.
    pub pins: Vec<Pin>,
    /// Overrides that the instance may not use. They are ignored; the others are applied.
    pub problems: Vec<Problem>,
    /// An allowed override that cannot be resolved. Until it can, the instance keeps its revision.
    pub unresolved: Option<Problem>,
    /// The overrides that are not applied, for whatever reason.
    pub unused: Vec<ConfigRef>,
}

impl Overrides {
    pub fn covers(&self, kind: &GroupResource) -> bool {
        self.kinds.contains(kind)
    }

    /// The most serious problem.
    pub fn problem(&self) -> Option<&Problem> {
        self.all_problems().next()
    }

    pub(crate) fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        self.unresolved.iter().chain(&self.problems)
    }

    /// Whether an instance with this status was assigned all of the overrides, and no other config
    /// of their kinds.
    pub(crate) fn are_told(&self, status: &StatusFields) -> bool {
        self.pins.iter().map(|pin| &pin.config.kind).all(|kind| {
            let own = self.pins.iter().filter(|pin| pin.config.kind == *kind).map(|pin| &pin.hash);
            own.eq(status.told().filter(|told| told.config.kind == *kind).map(|told| &told.hash))
        })
    }

    fn add(&mut self, pin: Pin) {
        self.kinds.insert(pin.config.kind.clone());
        self.pins.push(pin);
    }

    /// Called if an override cannot be resolved. Then none is applied, because they belong
    /// together.
    fn give_up(&mut self, status: &StatusFields, problem: Problem) {
        self.unresolved.get_or_insert(problem);
        self.pins = status.told().filter(|pin| self.kinds.contains(&pin.config.kind)).cloned().collect();
    }
}

/// Resolves layers of configs against one snapshot.
#[derive(Debug)]
pub struct Resolver<'a> {
    observed: &'a Observed,
    /// The available versions, newest first.
    pub offered: Vec<Text>,
    supported: Option<BTreeSet<GroupResource>>,
    /// Aviary rendered this add-on before, and no template is left.
    templates_gone: bool,
    /// Namespaces whose configs every instance may use: those that the add-on references, and those
    /// in the manager's flags.
    open_namespaces: BTreeSet<Text>,
    /// Of several configs of one kind in one list, only the last one counts.
    takes_last: bool,
}

impl<'a> Resolver<'a> {
    pub fn new(observed: &'a Observed) -> Self {
        let supported = match &observed.addon.supported {
            Some(listed) => Some(listed.iter().cloned().collect()),
            None if observed.renders_templates() => Some(
                [
                    GroupResource::hub_configs(),
                    GroupResource::deployment_configs(),
                    GroupResource::templates(),
                ]
                .into_iter()
                .cloned()
                .collect(),
            ),
            None => None,
        };
        let referenced = observed.addon.referenced_configs().filter_map(|config| config.namespace.clone());
        let open_namespaces = referenced.chain(observed.options.config_namespaces.iter().cloned()).collect();
        let templates_gone = !observed.renders_templates() && was_rendered(observed);
        let (offered, takes_last) = (versions::offered(observed), !observed.served.is_ocm());
        Self { observed, offered, supported, templates_gone, open_namespaces, takes_last }
    }

    /// The kinds of config that instances may override; `None` if the add-on's own manager decides
    /// that.
    pub fn supported(&self) -> Option<&BTreeSet<GroupResource>> {
        self.supported.as_ref()
    }

    /// Resolves the add-on's defaults and, if given, a placement's configs.
    pub(crate) fn wanted_by(&self, placement: Option<&InstallPlacement>) -> Wanted {
        self.resolve(&self.layers_of(placement))
    }

    fn layers_of(&self, placement: Option<&InstallPlacement>) -> Layered {
        let mut layers = Layered::new();
        overlay(&mut layers, &self.observed.addon.defaults, None, self.takes_last);
        if let Some(placement) = placement {
            overlay(&mut layers, &placement.configs, placement.version.as_ref(), self.takes_last);
        }
        layers
    }

    /// Resolves an instance's own configs, on top of its placement's or the add-on's. `None` if it
    /// has none.
    pub fn overrides(&self, placement: Option<&InstallPlacement>, instance: &Instance) -> Option<Overrides> {
        if !instance.has_own() {
            return None;
        }
        let mut found = Overrides {
            by_version: instance.version.is_some(),
            by_config: instance.overrides.iter().any(|config| config.kind.chooses_version()),
            ..Overrides::default()
        };
        let usable = self.usable(instance, &mut found.problems);
        let mut own = Layered::new();
        overlay(&mut own, &usable, instance.version.as_ref(), self.takes_last);
        if let Err(problem) = self.resolve_own(&own, placement, &mut found) {
            found.kinds.extend(own.into_keys());
            if found.covers(GroupResource::hub_configs()) {
                found.kinds.insert(GroupResource::templates().clone());
            }
            found.give_up(&instance.status, problem);
        }
        let is_used = |config: &&ConfigRef| found.pins.iter().any(|pin| *pin.config == **config);
        let counts = |config: &&ConfigRef| {
            let last = || instance.overrides.iter().rev().find(|other| other.kind == config.kind);
            !self.takes_last || last() == Some(*config)
        };
        let unused = instance.overrides.iter().filter(|config| !is_used(config) && counts(config));
        found.unused = unused.take(MOST_UNRESOLVED).cloned().collect();
        Some(found)
    }

    /// The desired configs of a placement, or of the add-on, that cannot be used.
    pub(crate) fn unresolved(&self, placement: Option<&InstallPlacement>) -> Vec<ConfigRef> {
        let layers = self.layers_of(placement);
        let unusable = layers.values().flatten().filter_map(|source| match source {
            ConfigSource::Config(config) | ConfigSource::TooMany(config) => {
                self.pin_of(source).is_err().then(|| config.clone())
            }
            ConfigSource::Version(_) => None,
        });
        unusable.take(MOST_UNRESOLVED).collect()
    }

    /// The add-on's default configs, and the hash of each that can be used.
    pub(crate) fn defaults(&self) -> Vec<(ConfigRef, Option<Hash>)> {
        let mut layers = Layered::new();
        overlay(&mut layers, &self.observed.addon.defaults, None, self.takes_last);
        let hash = |source: &ConfigSource| self.pin_of(source).ok().map(|pin| pin.hash);
        let configs = layers.into_values().flatten().filter_map(|source| match &source {
            ConfigSource::Config(config) | ConfigSource::TooMany(config) => {
                Some((config.clone(), hash(&source)))
            }
            ConfigSource::Version(_) => None,
        });
        configs.collect()
    }

    /// Pins the configs of an instance's own layer, and the template that its version selects.
    fn resolve_own(
        &self,
        own: &Layered,
        placement: Option<&InstallPlacement>,
        found: &mut Overrides,
    ) -> Result<(), Problem> {
        for source in own.values().flatten() {
            found.add(self.pin_of(source)?);
        }
        if !own.contains_key(GroupResource::hub_configs()) || own.contains_key(GroupResource::templates()) {
            return Ok(());
        }
        // A version selects a template, so an instance's own version also overrides its placement's
        // template.
        let mut layers = self.layers_of(placement);
        layers.extend(own.clone());
        self.template_of(&layers)?.into_iter().for_each(|pin| found.add(pin));
        Ok(())
    }

    /// An instance's configs that it may use. Problems with the others are added to `refused`.
    fn usable(&self, instance: &Instance, refused: &mut Vec<Problem>) -> Vec<ConfigRef> {
        let mut usable = Vec::new();
        for config in &instance.overrides {
            let supported = match &self.supported {
                Some(supported) => supported.contains(&config.kind),
                None => instance.status.supported.contains(&config.kind),
            };
            if !supported {
                refused.push(Problem::ConfigUnsupported { config: config.clone() });
            } else if let Some(owner) = self.template_owner(config) {
                refused.push(Problem::TemplateOfAnother { template: config.name.clone(), owner });
            } else if !self.may_reach(instance, config) {
                refused.push(Problem::ConfigOutOfReach {
                    config: config.clone(),
                    cluster: instance.cluster.clone(),
                });
            } else {
                usable.push(config.clone());
            }
        }
        usable
    }

    /// The other add-on that a template belongs to. An instance may use only templates of its own
    /// add-on: its user may not be allowed to deploy others.
    fn template_owner(&self, config: &ConfigRef) -> Option<Text> {
        if config.kind != *GroupResource::templates() {
            return None;
        }
        let Some(Lookup::Found(live)) = self.observed.configs.get(config) else { return None };
        let owner = live.content.get("spec")?.get("addonName")?.as_str()?;
        (*owner != *self.observed.addon.name).then(|| owner.into())
    }

    /// An override may reference a cluster-scoped config, or one in the cluster's namespace, in a
    /// namespace that the add-on references, or in one that the manager's flags allow. Otherwise
    /// its user could read more through the manager than RBAC allows.
    fn may_reach(&self, instance: &Instance, config: &ConfigRef) -> bool {
        config.namespace.as_ref().is_none_or(|namespace| {
            **namespace == *instance.cluster.as_str() || self.open_namespaces.contains(namespace)
        })
    }

    fn resolve(&self, layers: &Layered) -> Wanted {
        let mut pins = Vec::with_capacity(layers.len() + 1);
        for source in layers.values().flatten() {
            pins.push(self.pin_of(source)?);
        }
        pins.extend(self.template_of(layers)?);
        Ok(Revision::new(pins))
    }

    fn pin_of(&self, source: &ConfigSource) -> Result<Pin, Problem> {
        let config = match source {
            ConfigSource::Version(version) => {
                return Ok(Pin {
                    config: inline_config(version),
                    hash: hash::spec_hash(&inline_content(version)),
                });
            }
            ConfigSource::TooMany(config) => {
                let most = most_of(&config.kind);
                return Err(Problem::ConfigsOfOneKind { config: config.clone(), most });
            }
            ConfigSource::Config(config) => config,
        };
        if config.kind.is_secrets() {
            return Err(Problem::SecretAsConfig { config: config.clone() });
        }
        if !self.observed.addon.may_name(&config.kind) {
            return Err(Problem::CoreConfigNotListed { config: config.clone() });
        }
        match self.observed.configs.get(config) {
            Some(Lookup::Found(live)) => match live.unkeepable {
                Some(why) => Err(Problem::ConfigUnkeepable { config: config.clone(), why }),
                None => Ok(Pin { config: Arc::new(config.clone()), hash: live.hash.clone() }),
            },
            Some(Lookup::NeedsNamespace) => Err(Problem::ConfigNeedsNamespace { config: config.clone() }),
            Some(Lookup::UnknownKind) => Err(Problem::ConfigKindUnknown { config: config.clone() }),
            Some(Lookup::Forbidden) => Err(Problem::ConfigForbidden { config: config.clone() }),
            Some(Lookup::Missing) | None => Err(Problem::ConfigMissing { config: config.clone() }),
        }
    }

    /// The template that the layers select: by reference, otherwise by version, otherwise that of
    /// the default version. Also checks the version, even for an add-on whose own manager renders
    /// works but publishes versions.
    fn template_of(&self, layers: &Layered) -> Result<Option<Pin>, Problem> {
        if layers.contains_key(GroupResource::templates()) {
            return Ok(None);
        }
        if self.templates_gone {
            return Err(Problem::TemplatesGone);
        }
        let asked = match layers.get(GroupResource::hub_configs()).and_then(|sources| sources.first()) {
            Some(ConfigSource::Version(version)) => Some(version.clone()),
            Some(ConfigSource::Config(config)) => match self.observed.configs.get(config) {
                Some(Lookup::Found(live)) => version_in(&live.content),
                _ => None,
            },
            Some(ConfigSource::TooMany(_)) | None => None,
        };
        if self.offered.is_empty() {
            return Ok(None);
        }
        let Some(version) = asked.or_else(|| versions::default_version(&self.offered)) else {
            return Ok(None);
        };
        if !self.offered.contains(&version) {
            return Err(Problem::VersionUnsupported { version, supported: self.offered.clone() });
        }
        let mut providers =
            self.observed.templates.iter().filter(|template| template.version.as_ref() == Some(&version));
        match (providers.next(), providers.next()) {
            (Some(template), None) => {
                let pin = template.pin();
                match template.unkeepable {
                    Some(why) => Err(Problem::ConfigUnkeepable { config: (*pin.config).clone(), why }),
                    None => Ok(Some(pin)),
                }
            }
            (Some(one), Some(other)) => {
                Err(Problem::VersionAmbiguous { version, templates: [one.name.clone(), other.name.clone()] })
            }
            (None, _) => Ok(None),
        }
    }
}

/// Whether any instance was assigned a template.
fn was_rendered(observed: &Observed) -> bool {
    let mut seen: HashSet<SharedId, ById> = HashSet::default();
    let is_template = |reference: &Reference| reference.kind == *GroupResource::templates();
    observed.instances.entries().any(|instance| {
        seen.insert(instance.summary.status) && instance.value.status.references.iter().any(is_template)
    })
}

/// The AddOnHubConfig that the version shorthand stands for; its name is the version.
fn inline_config(version: &Text) -> Arc<ConfigRef> {
    Arc::new(ConfigRef { kind: GroupResource::hub_configs().clone(), namespace: None, name: version.clone() })
}

/// The content of the AddOnHubConfig that a version shorthand stands for.
pub fn inline_content(version: &str) -> Value {
    json!({ "spec": { "desiredVersion": version } })
}

/// The version that an AddOnHubConfig asks for.
pub(crate) fn version_in(hub_config: &Value) -> Option<Text> {
    let version = hub_config.get("spec")?.get("desiredVersion")?.as_str()?;
    (!version.is_empty()).then(|| version.into())
}
