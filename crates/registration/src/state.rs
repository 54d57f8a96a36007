//! What the watches have reported, and what follows from it. Pure: time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aviary_engine::hash::Hash;
use jiff::Timestamp;

use crate::backlog::Backlog;
use crate::decide::{Decision, Facts, InstanceFacts, Policy, decide, effective_user};
use crate::grants::{self, ObjectKey, SeenBinding, Wanted};
use crate::instance::Instance;
use crate::names::AgentKey;
use crate::request::Request;
use crate::template::Registrations;

/// The watched kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Cluster,
    Instance,
    Template,
    Revision,
    Binding,
    Request,
    Account,
    TokenRole,
}

/// One object, or what became of it.
#[derive(Clone, Debug)]
pub enum Seen {
    /// Whether the hub has accepted a cluster.
    Cluster(String, bool),
    Instance(Box<Instance>),
    /// A template's name, or a revision's, with its add-on, hash and registrations.
    Content(String, Content),
    Binding(Box<SeenBinding>),
    Request(Box<Request>),
    /// The ServiceAccount or the Role of the token driver.
    Owned(OwnedObject),
}

#[derive(Clone, Debug)]
pub struct Content {
    pub addon: String,
    pub hash: Hash,
    pub registrations: Arc<Registrations>,
}

/// An object of the token driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedObject {
    pub key: ObjectKey,
    pub of: AgentKey,
    pub uid: String,
    pub resource_version: String,
    /// Whether its content is what it must be.
    pub is_right: bool,
}

/// A change of one kind.
#[derive(Debug)]
pub enum Change {
    /// A list begins: what does not follow is gone.
    Begin,
    Put(Seen),
    /// It exists, and cannot be read: its last known state stays.
    Unreadable(ObjectKey),
    Gone(ObjectKey),
    End,
}

#[derive(Debug)]
pub struct State {
    pub policy: Policy,
    clusters: BTreeMap<String, bool>,
    instances: BTreeMap<AgentKey, Instance>,
    contents: BTreeMap<(Kind, String), Content>,
    bindings: BTreeMap<ObjectKey, SeenBinding>,
    bindings_of: BTreeMap<AgentKey, BTreeSet<ObjectKey>>,
    owned: BTreeMap<(Kind, ObjectKey), OwnedObject>,
    pub backlog: Backlog,
    /// Lists in progress: what they contained so far.
    listing: BTreeMap<Kind, BTreeSet<ObjectKey>>,
    listed: BTreeSet<Kind>,
    dirty: BTreeSet<AgentKey>,
}

impl State {
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            clusters: BTreeMap::new(),
            instances: BTreeMap::new(),
            contents: BTreeMap::new(),
            bindings: BTreeMap::new(),
            bindings_of: BTreeMap::new(),
            owned: BTreeMap::new(),
            backlog: Backlog::default(),
            listing: BTreeMap::new(),
            listed: BTreeSet::new(),
            dirty: BTreeSet::new(),
        }
    }

    /// The kinds that must be listed before anything is decided.
    pub fn needs(&self) -> Vec<Kind> {
        let mut kinds =
            vec![Kind::Cluster, Kind::Instance, Kind::Template, Kind::Revision, Kind::Binding, Kind::Request];
        if self.policy.tokens {
            kinds.extend([Kind::Account, Kind::TokenRole]);
        }
        kinds
    }

    /// Unknown is not empty: nothing is decided before everything has been listed once.
    pub fn is_complete(&self) -> bool {
        self.needs().iter().all(|kind| self.listed.contains(kind))
    }

    pub fn take_dirty(&mut self) -> BTreeSet<AgentKey> {
        std::mem::take(&mut self.dirty)
    }

    /// Marks everything, for a new leader.
    pub fn mark_all(&mut self) {
        self.dirty.extend(self.instances.keys().cloned());
        self.dirty.extend(self.bindings_of.keys().cloned());
        let agents: Vec<AgentKey> = self.instances.keys().cloned().collect();
        for agent in agents {
            self.backlog.reconsider(&agent);
        }
    }

    pub fn take(&mut self, kind: Kind, change: Change, now: Timestamp) {
        match change {
            Change::Begin => drop(self.listing.insert(kind, BTreeSet::new())),
            Change::Put(seen) => {
                if let Some(listing) = self.listing.get_mut(&kind) {
                    listing.insert(key_of(&seen));
                }
                self.put(kind, seen, now);
            }
            Change::Unreadable(key) => {
                if let Some(listing) = self.listing.get_mut(&kind) {
                    listing.insert(key);
                }
            }
            Change::Gone(key) => self.gone(kind, &key),
            Change::End => {
                if let Some(listed) = self.listing.remove(&kind) {
                    for key in self.known(kind) {
                        if !listed.contains(&key) {
                            self.gone(kind, &key);
                        }
                    }
                }
                self.listed.insert(kind);
            }
        }
    }

    fn known(&self, kind: Kind) -> Vec<ObjectKey> {
        let plain = |name: &String| (String::new(), name.clone());
        match kind {
            Kind::Cluster => self.clusters.keys().map(plain).collect(),
            Kind::Instance => {
                self.instances.keys().map(|key| (key.cluster.clone(), key.addon.clone())).collect()
            }
            Kind::Template | Kind::Revision => {
                let of_kind = self.contents.keys().filter(|(one, _)| *one == kind);
                of_kind.map(|(_, name)| plain(name)).collect()
            }
            Kind::Binding => self.bindings.keys().cloned().collect(),
            Kind::Request => self.backlog.names().map(plain).collect(),
            Kind::Account | Kind::TokenRole => {
                self.owned.keys().filter(|(one, _)| *one == kind).map(|(_, key)| key.clone()).collect()
            }
        }
    }

    fn put(&mut self, kind: Kind, seen: Seen, now: Timestamp) {
        match seen {
            Seen::Cluster(name, accepted) => {
                if self.clusters.insert(name.clone(), accepted) != Some(accepted) {
                    self.cluster_changed(&name);
                }
            }
            Seen::Instance(instance) => {
                let key = instance.key.clone();
                if self.instances.get(&key) != Some(&*instance) {
                    self.instances.insert(key.clone(), *instance);
                    self.changed(key);
                }
            }
            Seen::Content(name, content) => {
                let addon = content.addon.clone();
                if let Some(old) = self.contents.insert((kind, name), content) {
                    self.addon_changed(&old.addon);
                }
                self.addon_changed(&addon);
            }
            Seen::Binding(binding) => {
                self.forget_binding(&binding.key);
                if let Some(of) = whose(&binding) {
                    self.bindings_of.entry(of.clone()).or_default().insert(binding.key.clone());
                    self.dirty.insert(of);
                }
                self.bindings.insert(binding.key.clone(), *binding);
            }
            Seen::Request(request) => {
                let user = effective_user(&self.policy, &request).to_owned();
                self.backlog.put(*request, &user, now);
            }
            Seen::Owned(object) => {
                self.dirty.insert(object.of.clone());
                self.owned.insert((kind, object.key.clone()), object);
            }
        }
    }

    fn gone(&mut self, kind: Kind, key: &ObjectKey) {
        match kind {
            Kind::Cluster => {
                self.clusters.remove(&key.1);
                self.cluster_changed(&key.1);
            }
            Kind::Instance => {
                let key = AgentKey::new(&key.0, &key.1);
                self.instances.remove(&key);
                self.changed(key);
            }
            Kind::Template | Kind::Revision => {
                if let Some(content) = self.contents.remove(&(kind, key.1.clone())) {
                    self.addon_changed(&content.addon);
                }
            }
            Kind::Binding => self.forget_binding(key),
            Kind::Request => self.backlog.remove(&key.1),
            Kind::Account | Kind::TokenRole => {
                if let Some(object) = self.owned.remove(&(kind, key.clone())) {
                    self.dirty.insert(object.of);
                }
            }
        }
    }

    fn forget_binding(&mut self, key: &ObjectKey) {
        let Some(of) = self.bindings.remove(key).as_ref().and_then(whose) else { return };
        if let Some(keys) = self.bindings_of.get_mut(&of) {
            keys.remove(key);
            if keys.is_empty() {
                self.bindings_of.remove(&of);
            }
        }
        self.dirty.insert(of);
    }

    fn changed(&mut self, key: AgentKey) {
        self.backlog.reconsider(&key);
        self.dirty.insert(key);
    }

    fn cluster_changed(&mut self, name: &str) {
        let from = AgentKey::new(name, "");
        let of_cluster = self.instances.range(from..).take_while(|(key, _)| key.cluster == name);
        let keys: Vec<AgentKey> = of_cluster.map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.changed(key);
        }
    }

    fn addon_changed(&mut self, addon: &str) {
        let keys: Vec<AgentKey> = self.instances.keys().filter(|key| key.addon == addon).cloned().collect();
        for key in keys {
            self.changed(key);
        }
    }

    pub fn instance(&self, key: &AgentKey) -> Option<&Instance> {
        self.instances.get(key)
    }

    /// What the instance's template says; `None` if its content is not known.
    fn registrations(&self, instance: &Instance) -> Option<&Arc<Registrations>> {
        let hash = instance.template.as_ref()?;
        let fits = |content: &&Content| content.addon == instance.key.addon && content.hash == *hash;
        self.contents.values().find(fits).map(|content| &content.registrations)
    }

    /// The decision about a request.
    pub fn decide(&self, request: &Request, now: Timestamp) -> Decision {
        let instance = match self.instances.get(&request.of) {
            None => InstanceFacts::Missing,
            Some(instance) if instance.template.is_none() => InstanceFacts::NotATemplate,
            Some(instance) => match self.registrations(instance) {
                None => InstanceFacts::Unknown,
                Some(registrations) => {
                    InstanceFacts::Known { registrations, uses_tokens: instance.uses_tokens }
                }
            },
        };
        let accepted = self.clusters.get(&request.of.cluster).copied();
        let recently_approved = self.backlog.recently_approved(request, now);
        decide(&self.policy, request, Facts { accepted, instance, recently_approved }, now)
    }

    /// What is wanted for an instance.
    pub fn want(&self, key: &AgentKey) -> Want {
        let Some(instance) = self.instances.get(key) else { return Want::Nothing };
        if instance.template.is_none() {
            return Want::NotOurs;
        }
        let Some(registrations) = self.registrations(instance) else { return Want::Unknown };
        // An instance in a namespace without a cluster gets nothing.
        let is_accepted = self.clusters.get(&key.cluster).copied().unwrap_or(false);
        Want::Known(Box::new(grants::wanted(&self.policy, instance, registrations, is_accepted)))
    }

    /// The bindings of an instance, and those that have a wanted name.
    pub fn bindings(&self, key: &AgentKey, wanted: &[grants::Binding]) -> Vec<&SeenBinding> {
        let mut keys: BTreeSet<ObjectKey> = self.bindings_of.get(key).cloned().unwrap_or_default();
        keys.extend(wanted.iter().map(grants::Binding::key));
        keys.iter().filter_map(|key| self.bindings.get(key)).collect()
    }

    /// The agent's ServiceAccount, or the Role to request its tokens.
    pub fn owned(&self, kind: Kind, key: &ObjectKey) -> Option<&OwnedObject> {
        self.owned.get(&(kind, key.clone()))
    }
}

/// What is wanted for an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// It does not exist: nothing may be left of it.
    Nothing,
    /// Its add-on has no template, and registers its agents itself.
    NotOurs,
    /// Its template is unknown: everything stays as it is.
    Unknown,
    Known(Box<Wanted>),
}

/// The agent that a binding belongs to: by our annotation, or by OCM's label in a cluster's
/// namespace.
fn whose(binding: &SeenBinding) -> Option<AgentKey> {
    let by_label = || Some(AgentKey::new(&binding.key.0, binding.addon.as_deref()?));
    binding.of.clone().or_else(by_label)
}

fn key_of(seen: &Seen) -> ObjectKey {
    match seen {
        Seen::Cluster(name, _) | Seen::Content(name, _) => (String::new(), name.clone()),
        Seen::Instance(instance) => (instance.key.cluster.clone(), instance.key.addon.clone()),
        Seen::Binding(binding) => binding.key.clone(),
        Seen::Request(request) => (String::new(), request.name.clone()),
        Seen::Owned(object) => object.key.clone(),
    }
}
