//! Configs and revisions: what an add-on is configured with, layer by layer, and which hash pins it (semantics §2).
//!
//! This module decides *what is wanted*. It never decides when a cluster gets it (that is [`crate::rollout`]), and it never
//! reads a config's content except to find a version in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock};

use aviary_api::names;
use serde_json::{Value, json};

use crate::hash::{self, Hash};
use crate::name::{Text, same};
use crate::observed::{Instance, Lookup, Observed, PlacementSpec, Reference};
use crate::problem::Problem;
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

    pub fn templates() -> &'static Self {
        static KIND: LazyLock<GroupResource> =
            LazyLock::new(|| GroupResource::new(names::ADDON_GROUP, names::ADDON_TEMPLATES));
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

/// A config together with the hash that pins its content. The name is for people; the hash is what counts. Small: thousands of instances
/// pin the same few configs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pin {
    pub config: Arc<ConfigRef>,
    pub hash: Hash,
}

/// The ordered set of pinned configs that a placement wants, at most one of each kind.
///
/// Two revisions are the same when they pin the same content: a config that was only renamed starts no rollout.
#[derive(Clone, Default)]
pub struct Revision(Arc<Vec<Pin>>);

impl Revision {
    pub fn new(mut pins: Vec<Pin>) -> Self {
        pins.sort_by(|a, b| a.config.kind.cmp(&b.config.kind));
        pins.dedup_by(|later, earlier| later.config.kind == earlier.config.kind);
        Self(Arc::new(pins))
    }

    pub fn pins(&self) -> &[Pin] {
        &self.0
    }

    /// Of an add-on without configs. There is nothing to record of it, to keep, or to go back to.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn pin(&self, kind: &GroupResource) -> Option<&Pin> {
        self.0.iter().find(|pin| pin.config.kind == *kind)
    }

    /// A short name for what this pins: equal for equal revisions.
    pub fn id(&self) -> Text {
        Self::id_of(self.pins().iter().map(|pin| (&pin.config.kind, &pin.hash)))
    }

    /// The short name of the revision with these hashes, which are in the order of their kinds.
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

    /// Whether the content is the same, and the names as well.
    pub fn same_names(&self, other: &Self) -> bool {
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

/// What one layer (the add-on, a placement, an instance) says about one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Config(ConfigRef),
    /// The version shorthand: an AddOnHubConfig that stands inline.
    Version(Text),
}

type Layered = BTreeMap<GroupResource, Source>;

/// Lays configs and the version shorthand over what is there: whole replacement, kind by kind.
/// A reference to an AddOnHubConfig in the same layer is more explicit than the shorthand, and wins.
fn overlay(layers: &mut Layered, configs: &[ConfigRef], version: Option<&Text>) {
    if let Some(version) = version {
        layers.insert(GroupResource::hub_configs().clone(), Source::Version(version.clone()));
    }
    for config in configs {
        layers.insert(config.kind.clone(), Source::Config(config.clone()));
    }
}

/// The revision wanted for an instance or a placement, or why it cannot be told.
pub type Wanted = Result<Revision, Problem>;

/// What an instance's own configs change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Kinds that follow the instance and not its placement.
    pub kinds: BTreeSet<GroupResource>,
    /// The pins of those kinds.
    pub pins: Vec<Pin>,
    /// What is wrong with the others: they are left out, the rest goes on.
    pub problems: Vec<Problem>,
}

impl Overrides {
    pub fn covers(&self, kind: &GroupResource) -> bool {
        self.kinds.contains(kind)
    }

    /// Why an instance that was told nothing yet must not begin: it chooses a version, and cannot have it.
    pub fn keeps_from_starting(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| {
            matches!(problem, Problem::VersionUnsupported { .. } | Problem::VersionAmbiguous { .. })
        })
    }

    fn add(&mut self, pin: Pin) {
        self.kinds.insert(pin.config.kind.clone());
        self.pins.push(pin);
    }

    fn drop_kind(&mut self, kind: &GroupResource) {
        self.kinds.remove(kind);
        self.pins.retain(|pin| pin.config.kind != *kind);
    }
}

/// Resolves layers of configs against one snapshot.
#[derive(Debug)]
pub struct Resolver<'a> {
    observed: &'a Observed,
    /// The versions offered, newest first.
    pub offered: Vec<Text>,
    supported: Option<BTreeSet<GroupResource>>,
    /// We rendered this add-on before, and there is nothing left to render it from.
    templates_gone: bool,
    /// Namespaces that the add-on's author or the manager's flags opened to every instance.
    open_namespaces: BTreeSet<Text>,
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
        Self { observed, offered: versions::offered(observed), supported, templates_gone, open_namespaces }
    }

    /// The kinds of config that instances may override; `None` where that is for the add-on's own manager to say.
    pub fn supported(&self) -> Option<&BTreeSet<GroupResource>> {
        self.supported.as_ref()
    }

    /// What the add-on's defaults and, where one is given, a placement's configs add up to.
    pub fn wanted_by(&self, placement: Option<&PlacementSpec>) -> Wanted {
        self.resolve(&self.layers_of(placement))
    }

    fn layers_of(&self, placement: Option<&PlacementSpec>) -> Layered {
        let mut layers = Layered::new();
        overlay(&mut layers, &self.observed.addon.defaults, None);
        if let Some(placement) = placement {
            overlay(&mut layers, &placement.configs, placement.version.as_ref());
        }
        layers
    }

    /// Resolves an instance's own configs over what its placement (or the add-on) says. `None` when it has none.
    pub fn overrides(&self, placement: Option<&PlacementSpec>, instance: &Instance) -> Option<Overrides> {
        if !instance.has_own() {
            return None;
        }
        let mut found = Overrides::default();
        let usable = self.usable(instance, &mut found.problems);
        let mut own = Layered::new();
        overlay(&mut own, &usable, instance.version.as_ref());
        for source in own.values() {
            match self.pin_of(source) {
                Ok(pin) => found.add(pin),
                Err(problem) => found.problems.push(problem),
            }
        }
        if !found.covers(GroupResource::hub_configs()) || found.covers(GroupResource::templates()) {
            return Some(found);
        }
        // A version chooses a template, so an instance's own version takes the template out of its placement's hands too.
        let mut layers = self.layers_of(placement);
        overlay(&mut layers, &usable, instance.version.as_ref());
        match self.template_of(&layers) {
            Ok(Some(pin)) => found.add(pin),
            Ok(None) => {}
            Err(problem) => {
                // It cannot have the version it asks for, and did not ask for its placement's: it stays on what it was told.
                for kind in [GroupResource::hub_configs(), GroupResource::templates()] {
                    found.drop_kind(kind);
                    let told = instance.status.told().find(|pin| pin.config.kind == *kind);
                    told.into_iter().for_each(|pin| found.add(pin.clone()));
                }
                found.problems.push(problem);
            }
        }
        Some(found)
    }

    /// An instance's configs that it may have; what is wrong with the others goes to `refused`.
    fn usable(&self, instance: &Instance, refused: &mut Vec<Problem>) -> Vec<ConfigRef> {
        let mut usable = Vec::new();
        for config in &instance.overrides {
            let supported = match &self.supported {
                Some(supported) => supported.contains(&config.kind),
                None => instance.status.supported.contains(&config.kind),
            };
            if !supported {
                refused.push(Problem::ConfigUnsupported { config: config.clone() });
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

    /// An override reaches what is cluster-scoped, in the cluster's own namespace, in a namespace that the add-on itself
    /// references, or in one that the manager was told to allow: its author must not be able to read more through us.
    fn may_reach(&self, instance: &Instance, config: &ConfigRef) -> bool {
        config.namespace.as_ref().is_none_or(|namespace| {
            **namespace == *instance.cluster.as_str() || self.open_namespaces.contains(namespace)
        })
    }

    fn resolve(&self, layers: &Layered) -> Wanted {
        let mut pins = Vec::with_capacity(layers.len() + 1);
        for source in layers.values() {
            pins.push(self.pin_of(source)?);
        }
        pins.extend(self.template_of(layers)?);
        Ok(Revision::new(pins))
    }

    fn pin_of(&self, source: &Source) -> Result<Pin, Problem> {
        let config = match source {
            Source::Version(version) => {
                return Ok(Pin {
                    config: inline_config(version),
                    hash: hash::spec_hash(&inline_content(version)),
                });
            }
            Source::Config(config) => config,
        };
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

    /// The template that the layers choose: by reference, else by version, else the default version's. Checks the version on
    /// the way, also for an add-on that renders its own works but publishes its versions.
    fn template_of(&self, layers: &Layered) -> Result<Option<Pin>, Problem> {
        if layers.contains_key(GroupResource::templates()) {
            return Ok(None);
        }
        if self.templates_gone {
            return Err(Problem::TemplatesGone);
        }
        let asked = match layers.get(GroupResource::hub_configs()) {
            Some(Source::Version(version)) => Some(version.clone()),
            Some(Source::Config(config)) => match self.observed.configs.get(config) {
                Some(Lookup::Found(live)) => version_in(&live.content),
                _ => None,
            },
            None => None,
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

/// Some instance was told a template of ours.
fn was_rendered(observed: &Observed) -> bool {
    // Neighbours mostly have the same status, which needs one look.
    let mut last = 0;
    let mut instances = observed.instances.entries();
    instances.any(|instance| {
        let seen = std::mem::replace(&mut last, instance.glance.status) == instance.glance.status;
        let is_template = |reference: &Reference| reference.kind == *GroupResource::templates();
        !seen && instance.value.status.references.iter().any(is_template)
    })
}

/// The version shorthand reads as an AddOnHubConfig named after its version.
fn inline_config(version: &Text) -> Arc<ConfigRef> {
    Arc::new(ConfigRef { kind: GroupResource::hub_configs().clone(), namespace: None, name: version.clone() })
}

/// The content of the AddOnHubConfig that a version shorthand stands for.
pub fn inline_content(version: &str) -> Value {
    json!({ "spec": { "desiredVersion": version } })
}

/// The version that an AddOnHubConfig asks for.
pub fn version_in(hub_config: &Value) -> Option<Text> {
    let version = hub_config.get("spec")?.get("desiredVersion")?.as_str()?;
    (!version.is_empty()).then(|| version.into())
}
