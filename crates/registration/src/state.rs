//! What the watches have reported, and what follows from it. Pure: time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aviary_engine::hash::Hash;
use jiff::Timestamp;

use crate::backlog::Backlog;
use crate::decide::{
    ApprovalPolicy, RegistrationFacts, RequestDecision, RequestFacts, decide, effective_user,
};
use crate::grants::{self, ObjectKey, SeenBinding, WantedGrants};
use crate::instance::AgentInstance;
use crate::names::AgentKey;
use crate::request::SigningRequest;
use crate::template::Registrations;

/// The watched kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchedKind {
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
pub enum SeenObject {
    /// Whether the hub has accepted a cluster.
    Cluster(String, bool),
    Instance(Box<AgentInstance>),
    /// A template's name, or a revision's, with its add-on, hash and registrations.
    Content(String, TemplateContent),
    Binding(Box<SeenBinding>),
    Request(Box<SigningRequest>),
    /// The ServiceAccount or the Role of the token driver.
    Owned(OwnedObject),
}

#[derive(Clone, Debug)]
pub struct TemplateContent {
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
pub enum StateChange {
    /// A list begins: what does not follow is gone.
    Begin,
    Put(SeenObject),
    /// It exists, and cannot be read: its last known state stays.
    Unreadable(ObjectKey),
    Gone(ObjectKey),
    End,
}

#[derive(Debug)]
pub struct RegistrationState {
    pub policy: ApprovalPolicy,
    clusters: BTreeMap<String, bool>,
    instances: BTreeMap<AgentKey, AgentInstance>,
    contents: BTreeMap<(WatchedKind, String), TemplateContent>,
    bindings: BTreeMap<ObjectKey, SeenBinding>,
    bindings_of: BTreeMap<AgentKey, BTreeSet<ObjectKey>>,
    owned: BTreeMap<(WatchedKind, ObjectKey), OwnedObject>,
    pub backlog: Backlog,
    /// Lists in progress: what they contained so far.
    listing: BTreeMap<WatchedKind, BTreeSet<ObjectKey>>,
    listed: BTreeSet<WatchedKind>,
    dirty: BTreeSet<AgentKey>,
}

impl RegistrationState {
    pub fn new(policy: ApprovalPolicy) -> Self {
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
    pub fn needs(&self) -> Vec<WatchedKind> {
        let mut kinds = vec![
            WatchedKind::Cluster,
            WatchedKind::Instance,
            WatchedKind::Template,
            WatchedKind::Revision,
            WatchedKind::Binding,
            WatchedKind::Request,
        ];
        if self.policy.tokens {
            kinds.extend([WatchedKind::Account, WatchedKind::TokenRole]);
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

    pub fn take(&mut self, kind: WatchedKind, change: StateChange, now: Timestamp) {
        match change {
            StateChange::Begin => drop(self.listing.insert(kind, BTreeSet::new())),
            StateChange::Put(seen) => {
                if let Some(listing) = self.listing.get_mut(&kind) {
                    listing.insert(key_of(&seen));
                }
                self.put(kind, seen, now);
            }
            StateChange::Unreadable(key) => {
                if let Some(listing) = self.listing.get_mut(&kind) {
                    listing.insert(key);
                }
            }
            StateChange::Gone(key) => self.gone(kind, &key),
            StateChange::End => {
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

    fn known(&self, kind: WatchedKind) -> Vec<ObjectKey> {
        let plain = |name: &String| (String::new(), name.clone());
        match kind {
            WatchedKind::Cluster => self.clusters.keys().map(plain).collect(),
            WatchedKind::Instance => {
                self.instances.keys().map(|key| (key.cluster.clone(), key.addon.clone())).collect()
            }
            WatchedKind::Template | WatchedKind::Revision => {
                let of_kind = self.contents.keys().filter(|(one, _)| *one == kind);
                of_kind.map(|(_, name)| plain(name)).collect()
            }
            WatchedKind::Binding => self.bindings.keys().cloned().collect(),
            WatchedKind::Request => self.backlog.names().map(plain).collect(),
            WatchedKind::Account | WatchedKind::TokenRole => {
                self.owned.keys().filter(|(one, _)| *one == kind).map(|(_, key)| key.clone()).collect()
            }
        }
    }

    fn put(&mut self, kind: WatchedKind, seen: SeenObject, now: Timestamp) {
        match seen {
            SeenObject::Cluster(name, accepted) => {
                if self.clusters.insert(name.clone(), accepted) != Some(accepted) {
                    self.cluster_changed(&name);
                }
            }
            SeenObject::Instance(instance) => {
                let key = instance.key.clone();
                if self.instances.get(&key) != Some(&*instance) {
                    self.instances.insert(key.clone(), *instance);
                    self.changed(key);
                }
            }
            SeenObject::Content(name, content) => {
                let addon = content.addon.clone();
                if let Some(old) = self.contents.insert((kind, name), content) {
                    self.addon_changed(&old.addon);
                }
                self.addon_changed(&addon);
            }
            SeenObject::Binding(binding) => {
                self.forget_binding(&binding.key);
                if let Some(of) = whose(&binding) {
                    self.bindings_of.entry(of.clone()).or_default().insert(binding.key.clone());
                    self.dirty.insert(of);
                }
                self.bindings.insert(binding.key.clone(), *binding);
            }
            SeenObject::Request(request) => {
                let user = effective_user(&self.policy, &request).to_owned();
                self.backlog.put(*request, &user, now);
            }
            SeenObject::Owned(object) => {
                self.dirty.insert(object.of.clone());
                self.owned.insert((kind, object.key.clone()), object);
            }
        }
    }

    fn gone(&mut self, kind: WatchedKind, key: &ObjectKey) {
        match kind {
            WatchedKind::Cluster => {
                self.clusters.remove(&key.1);
                self.cluster_changed(&key.1);
            }
            WatchedKind::Instance => {
                let key = AgentKey::new(&key.0, &key.1);
                self.instances.remove(&key);
                self.changed(key);
            }
            WatchedKind::Template | WatchedKind::Revision => {
                if let Some(content) = self.contents.remove(&(kind, key.1.clone())) {
                    self.addon_changed(&content.addon);
                }
            }
            WatchedKind::Binding => self.forget_binding(key),
            WatchedKind::Request => self.backlog.remove(&key.1),
            WatchedKind::Account | WatchedKind::TokenRole => {
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

    pub fn instance(&self, key: &AgentKey) -> Option<&AgentInstance> {
        self.instances.get(key)
    }

    /// What the instance's template says; `None` if its content is not known.
    fn registrations(&self, instance: &AgentInstance) -> Option<&Arc<Registrations>> {
        let hash = instance.template.as_ref()?;
        let fits = |content: &&TemplateContent| content.addon == instance.key.addon && content.hash == *hash;
        self.contents.values().find(fits).map(|content| &content.registrations)
    }

    /// The decision about a request.
    pub fn decide(&self, request: &SigningRequest, now: Timestamp) -> RequestDecision {
        let instance = match self.instances.get(&request.of) {
            None => RegistrationFacts::Missing,
            Some(instance) if instance.template.is_none() => RegistrationFacts::NotATemplate,
            Some(instance) => match self.registrations(instance) {
                None => RegistrationFacts::Unknown,
                Some(registrations) => {
                    RegistrationFacts::Known { registrations, uses_tokens: instance.uses_tokens }
                }
            },
        };
        let accepted = self.clusters.get(&request.of.cluster).copied();
        let recently_approved = self.backlog.recently_approved(request, now);
        decide(&self.policy, request, RequestFacts { accepted, instance, recently_approved }, now)
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
    pub fn owned(&self, kind: WatchedKind, key: &ObjectKey) -> Option<&OwnedObject> {
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
    Known(Box<WantedGrants>),
}

/// The agent that a binding belongs to: by our annotation, or by OCM's label in a cluster's
/// namespace.
fn whose(binding: &SeenBinding) -> Option<AgentKey> {
    let by_label = || Some(AgentKey::new(&binding.key.0, binding.addon.as_deref()?));
    binding.of.clone().or_else(by_label)
}

fn key_of(seen: &SeenObject) -> ObjectKey {
    match seen {
        SeenObject::Cluster(name, _) | SeenObject::Content(name, _) => (String::new(), name.clone()),
        SeenObject::Instance(instance) => (instance.key.cluster.clone(), instance.key.addon.clone()),
        SeenObject::Binding(binding) => binding.key.clone(),
        SeenObject::Request(request) => (String::new(), request.name.clone()),
        SeenObject::Owned(object) => object.key.clone(),
    }
}
