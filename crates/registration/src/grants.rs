//! What an instance needs on the hub: role bindings, and the account of the token driver.
//!
//! Pure. Every binding names only the agent of one cluster, so a binding never grants anything to
//! the agents of other clusters.

use std::collections::BTreeSet;

use aviary_api::addon::{RegistrationConfig, Subject as StatusSubject};
use aviary_api::names::labels;
use k8s_openapi::api::rbac::v1::RoleBinding;
use serde_json::{Value, json};

use crate::decide::ApprovalPolicy;
use crate::instance::AgentInstance;
use crate::names::{
    AgentKey, BINDING_OF, KUBE_CLIENT, TEMPLATE_LABEL, TOKEN_ADDON_LABEL, TOKEN_LABEL, cluster_group,
};
use crate::template::{
    CertificateSubject, CustomSignerRegistration, GrantedRole, Permission, Registrations, RoleKind,
};

/// The longest value of a label.
const LONGEST_LABEL: usize = 63;

/// The namespace and name of an object.
pub type ObjectKey = (String, String);

/// What is wanted for one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedGrants {
    pub bindings: Vec<Binding>,
    /// `status.registrations`.
    pub registrations: Vec<Value>,
    /// Whether the agent gets a ServiceAccount, and its cluster the right to request tokens for it.
    pub account: bool,
    /// The template does not mention registration.
    pub is_nil: bool,
    /// What is wrong, for the condition.
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub namespace: String,
    pub name: String,
    pub role: GrantedRole,
    pub subject: Holder,
    /// The instance, if it is in the same namespace: the garbage collector then deletes both.
    pub owner: Option<String>,
    /// Whether the administrator must have listed the role. What the token driver binds is our own.
    pub is_requested: bool,
}

/// Who holds a role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Group(String),
    Account { namespace: String, name: String },
}

/// What is wanted for an instance whose template is known.
pub fn wanted(
    policy: &ApprovalPolicy,
    instance: &AgentInstance,
    registrations: &Registrations,
    is_accepted: bool,
) -> WantedGrants {
    let key = &instance.key;
    if registrations.is_empty() {
        return WantedGrants { is_nil: true, ..WantedGrants::default() };
    }
    let mut wanted = WantedGrants {
        problems: registrations.problems.iter().map(ToString::to_string).collect(),
        ..WantedGrants::default()
    };
    if !is_accepted {
        wanted.problems.push("the hub has not accepted the cluster (spec.hubAcceptsClient)".into());
        return wanted;
    }
    if let Some(client) = &registrations.kube_client {
        wanted.account = policy.tokens && instance.uses_tokens;
        wanted.registrations.push(kube_client(key, wanted.account));
        wanted.bindings = bindings(instance, &client.permissions, wanted.account);
    }
    if wanted.account {
        wanted.bindings.push(token_binding(instance));
    }
    for custom in &registrations.custom {
        match policy.ca_of(custom) {
            Some(Ok(_)) => wanted.registrations.push(custom_signer(key, custom)),
            Some(Err(())) => wanted.problems.push(format!(
                "the template names another signingCA for {} than the administrator (--signer)",
                custom.signer
            )),
            None => wanted
                .problems
                .push(format!("the administrator has not listed the signer {} (--signer)", custom.signer)),
        }
    }
    wanted
}

fn kube_client(key: &AgentKey, by_token: bool) -> Value {
    let subject = match by_token {
        false => StatusSubject { user: key.default_user(), groups: key.groups(), ..StatusSubject::default() },
        true => StatusSubject { user: key.account_user(), ..StatusSubject::default() },
    };
    registration(KUBE_CLIENT, subject)
}

fn custom_signer(key: &AgentKey, custom: &CustomSignerRegistration) -> Value {
    let subject = match &custom.subject {
        None => StatusSubject { user: key.default_user(), groups: key.groups(), ..StatusSubject::default() },
        Some(CertificateSubject { user, groups, units }) => {
            StatusSubject { user: user.clone(), groups: groups.clone(), organization_units: units.clone() }
        }
    };
    registration(&custom.signer, subject)
}

fn registration(signer: &str, subject: StatusSubject) -> Value {
    json!(RegistrationConfig {
        signer_name: signer.to_owned(),
        subject: Some(subject),
        ..RegistrationConfig::default()
    })
}

fn bindings(instance: &AgentInstance, permissions: &[Permission], by_token: bool) -> Vec<Binding> {
    let key = &instance.key;
    let subject = match by_token {
        false => Holder::Group(key.group()),
        true => Holder::Account { namespace: key.cluster.clone(), name: key.account() },
    };
    let mut names = BTreeSet::new();
    let binding = |permission: &Permission| {
        let Permission { namespace, role } = permission;
        let is_own = namespace.as_ref().is_none_or(|namespace| *namespace == key.cluster);
        let namespace = namespace.as_ref().unwrap_or(&key.cluster).clone();
        // OCM's name. In a namespace that clusters share, each has its own binding.
        let mut name =
            format!("open-cluster-management:{}:{}:agent", key.addon, role.kind.name().to_lowercase());
        if !is_own {
            name.push_str(&format!(":{}", key.cluster));
        }
        if !names.insert((namespace.clone(), name.clone())) {
            name.push_str(&format!(":{}", role.name));
        }
        let owner = is_own.then(|| instance.uid.clone());
        Binding { namespace, name, role: role.clone(), subject: subject.clone(), owner, is_requested: true }
    };
    permissions.iter().map(binding).collect()
}

/// The name of the Role that lets a cluster request tokens for an agent, and of its binding.
pub fn token_role(key: &AgentKey) -> String {
    format!("{}-token-role", key.addon)
}

fn token_binding(instance: &AgentInstance) -> Binding {
    let key = &instance.key;
    Binding {
        namespace: key.cluster.clone(),
        name: token_role(key),
        role: GrantedRole { kind: RoleKind::Role, name: token_role(key) },
        subject: Holder::Group(cluster_group(&key.cluster)),
        owner: Some(instance.uid.clone()),
        is_requested: false,
    }
}

impl Binding {
    pub fn key(&self) -> ObjectKey {
        (self.namespace.clone(), self.name.clone())
    }

    /// The object to create, or to replace another state with.
    pub fn object(&self, of: &AgentKey) -> Value {
        let subject = match &self.subject {
            Holder::Group(name) => json!({"kind": "Group", "apiGroup": RBAC, "name": name}),
            Holder::Account { namespace, name } => {
                json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
            }
        };
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "RoleBinding",
            "metadata": metadata(of, &self.namespace, &self.name, self.owner.as_deref()),
            "roleRef": {"apiGroup": RBAC, "kind": self.role.kind.name(), "name": self.role.name},
            "subjects": [subject],
        })
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn metadata(of: &AgentKey, namespace: &str, name: &str, owner: Option<&str>) -> Value {
    // The watch of role bindings selects by the first label.
    let mut labels = json!({TEMPLATE_LABEL: ""});
    let is_token = name == token_role(of) || name == of.account();
    if let Some(all) = labels.as_object_mut() {
        if is_token {
            all.insert(TOKEN_LABEL.into(), "true".into());
        }
        if of.addon.len() <= LONGEST_LABEL {
            let label = if is_token { TOKEN_ADDON_LABEL } else { labels::ADDON_NAME };
            all.insert(label.into(), of.addon.clone().into());
        }
    }
    let mut metadata = json!({
        "namespace": namespace,
        "name": name,
        "labels": labels,
        "annotations": {BINDING_OF: of.to_string()},
    });
    if let Some(uid) = owner {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "addon.open-cluster-management.io/v1alpha1",
            "kind": "ManagedClusterAddOn",
            "name": of.addon,
            "uid": uid,
        }]);
    }
    metadata
}

/// The ServiceAccount whose tokens an agent uses.
pub fn account(instance: &AgentInstance) -> Value {
    let key = &instance.key;
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(key, &key.cluster, &key.account(), Some(&instance.uid)),
        "automountServiceAccountToken": false,
    })
}

/// The Role that lets the cluster request tokens for that account, and for no other.
pub fn token_rules(key: &AgentKey) -> Value {
    json!([{"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [key.account()], "verbs": ["create"]}])
}

pub fn token_role_object(instance: &AgentInstance) -> Value {
    let key = &instance.key;
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "Role",
        "metadata": metadata(key, &key.cluster, &token_role(key), Some(&instance.uid)),
        "rules": token_rules(key),
    })
}

/// A role binding as it is on the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenBinding {
    pub key: ObjectKey,
    pub uid: String,
    pub resource_version: String,
    /// By our annotation.
    pub of: Option<AgentKey>,
    /// The add-on by OCM's label: OCM's manager made it, and ours may take it over.
    pub addon: Option<String>,
    role: Option<GrantedRole>,
    /// `None` if there is a holder that we never write.
    holders: Option<Vec<Holder>>,
    owners: Vec<String>,
}

impl SeenBinding {
    pub fn read(object: RoleBinding) -> Option<Self> {
        let RoleBinding { metadata, role_ref, subjects } = object;
        let annotation = metadata.annotations.as_ref().and_then(|all| all.get(BINDING_OF));
        let of = annotation
            .and_then(|of| of.split_once('/'))
            .map(|(cluster, addon)| AgentKey::new(cluster, addon));
        let kind = match role_ref.kind.as_str() {
            "Role" => Some(RoleKind::Role),
            "ClusterRole" => Some(RoleKind::ClusterRole),
            _ => None,
        };
        let holder = |subject: k8s_openapi::api::rbac::v1::Subject| match subject.kind.as_str() {
            "Group" => Some(Holder::Group(subject.name)),
            "ServiceAccount" => {
                Some(Holder::Account { namespace: subject.namespace.unwrap_or_default(), name: subject.name })
            }
            _ => None,
        };
        Some(Self {
            key: (metadata.namespace?, metadata.name?),
            uid: metadata.uid?,
            resource_version: metadata.resource_version?,
            of,
            addon: metadata.labels.as_ref().and_then(|all| all.get(labels::ADDON_NAME)).cloned(),
            role: kind.map(|kind| GrantedRole { kind, name: role_ref.name }),
            holders: subjects.unwrap_or_default().into_iter().take(64).map(holder).collect(),
            owners: metadata
                .owner_references
                .unwrap_or_default()
                .into_iter()
                .map(|owner| owner.uid)
                .collect(),
        })
    }

    fn may_be_taken(&self, of: &AgentKey) -> bool {
        match &self.of {
            Some(other) => other == of,
            // OCM's bindings in a cluster's namespace; those in shared namespaces have other names.
            None => self.key.0 == of.cluster && self.addon.as_deref() == Some(&of.addon),
        }
    }

    fn is(&self, of: &AgentKey, wanted: &Binding) -> bool {
        let holders = self.holders.as_deref() == Some(std::slice::from_ref(&wanted.subject));
        let owned = wanted.owner.as_ref().is_none_or(|owner| self.owners == [owner.clone()]);
        self.of.as_ref() == Some(of) && holders && owned
    }
}

/// A write to role bindings. Each is conditional on the state that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingWrite {
    Delete {
        key: ObjectKey,
        uid: String,
    },
    Create(Binding),
    Replace {
        binding: Binding,
        uid: String,
        resource_version: String,
    },
    /// Another owner has the name.
    Taken(Binding),
}

/// The writes that turn what is there into what is wanted: `there` are the bindings of this
/// instance, and those that have a wanted name.
pub fn binding_writes(of: &AgentKey, wanted: &[Binding], there: &[&SeenBinding]) -> Vec<BindingWrite> {
    let names: BTreeSet<ObjectKey> = wanted.iter().map(Binding::key).collect();
    let mut writes: Vec<BindingWrite> = there
        .iter()
        .filter(|seen| seen.of.as_ref() == Some(of) && !names.contains(&seen.key))
        .map(|seen| BindingWrite::Delete { key: seen.key.clone(), uid: seen.uid.clone() })
        .collect();
    for binding in wanted {
        let key = binding.key();
        match there.iter().find(|seen| seen.key == key) {
            None => writes.push(BindingWrite::Create(binding.clone())),
            Some(seen) if !seen.may_be_taken(of) => writes.push(BindingWrite::Taken(binding.clone())),
            // The role of a binding cannot change.
            Some(seen) if seen.role.as_ref() != Some(&binding.role) => {
                writes.push(BindingWrite::Delete { key, uid: seen.uid.clone() });
                writes.push(BindingWrite::Create(binding.clone()));
            }
            Some(seen) if seen.is(of, binding) => {}
            Some(seen) => writes.push(BindingWrite::Replace {
                binding: binding.clone(),
                uid: seen.uid.clone(),
                resource_version: seen.resource_version.clone(),
            }),
        }
    }
    writes
}
