//! What a template says about registration, parsed once from the content that an instance is
//! pinned to.
//!
//! An invalid entry becomes a [`TemplateProblem`] and affects only itself.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::names::KUBE_CLIENT;

/// The most entries of a list that are read. OCM's templates have one or two.
const MOST_ENTRIES: usize = 32;
/// The longest name that is read.
const LONGEST_NAME: usize = 571;

/// The registrations of one revision of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registrations {
    /// The add-on that the template belongs to.
    pub addon: String,
    /// `None` if agents do not register for the hub's API.
    pub kube_client: Option<KubeClientRegistration>,
    pub custom: Vec<CustomSignerRegistration>,
    pub problems: Vec<TemplateProblem>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeClientRegistration {
    pub permissions: Vec<Permission>,
}

/// A role to bind for the agent of each cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// `None` for the cluster's own namespace.
    pub namespace: Option<String>,
    pub role: GrantedRole,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrantedRole {
    pub kind: RoleKind,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoleKind {
    Role,
    ClusterRole,
}

impl RoleKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Role => "Role",
            Self::ClusterRole => "ClusterRole",
        }
    }

    pub fn resource(self) -> &'static str {
        match self {
            Self::Role => "roles",
            Self::ClusterRole => "clusterroles",
        }
    }
}

/// Certificates from a signer of the add-on's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomSignerRegistration {
    pub signer: String,
    /// `None` for the default subject of an agent.
    pub subject: Option<CertificateSubject>,
    pub ca: SecretRef,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CertificateSubject {
    pub user: String,
    pub groups: Vec<String>,
    #[serde(rename = "organizationUnit")]
    pub units: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(default)]
pub struct SecretRef {
    /// Empty for the namespace of this process.
    pub namespace: String,
    pub name: String,
}

/// What is wrong with one entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateProblem {
    #[error("spec.registration is not a list of at most {MOST_ENTRIES} entries")]
    NotAList,
    #[error("spec.registration[{0}] cannot be read")]
    Unreadable(usize),
    #[error("spec.registration[{0}]: type must be KubeClient or CustomSigner")]
    Type(usize),
    #[error("spec.registration[{0}]: only one entry may have type KubeClient")]
    SecondKubeClient(usize),
    #[error(
        "spec.registration[{0}].customSigner needs a signerName other than Kubernetes' own, and signingCA.name"
    )]
    CustomSigner(usize),
    #[error("spec.registration[{0}].customSigner: another entry has the same signerName")]
    SecondSigner(usize),
    #[error(
        "spec.registration[{0}].kubeClient.hubPermissions[{1}] needs the field that its type names, with a role"
    )]
    Permission(usize, usize),
    #[error("spec.registration[{0}].kubeClient.hubPermissions has more than {MOST_ENTRIES} entries")]
    TooManyPermissions(usize),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RegistrationEntry {
    r#type: String,
    kube_client: Option<KubeClientEntry>,
    custom_signer: Option<CustomSignerEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct KubeClientEntry {
    hub_permissions: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PermissionEntry {
    r#type: String,
    current_cluster: Option<CurrentCluster>,
    single_namespace: Option<SingleNamespace>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CurrentCluster {
    cluster_role_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SingleNamespace {
    namespace: String,
    role_ref: RoleRef,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RoleRef {
    kind: String,
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CustomSignerEntry {
    signer_name: String,
    subject: Option<CertificateSubject>,
    #[serde(rename = "signingCA")]
    signing_ca: SecretRef,
}

impl Registrations {
    /// Reads the content of a template: an object with `spec`.
    pub fn read(content: &Value) -> Self {
        let text = |pointer| content.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let mut read = Self { addon: text("/spec/addonName").to_owned(), ..Self::default() };
        let entries = match content.pointer("/spec/registration") {
            None | Some(Value::Null) => return read,
            Some(Value::Array(entries)) if entries.len() <= MOST_ENTRIES => entries,
            Some(_) => {
                read.problems.push(TemplateProblem::NotAList);
                return read;
            }
        };
        let mut signers = BTreeSet::new();
        for (index, entry) in entries.iter().enumerate() {
            let result = match RegistrationEntry::deserialize(entry) {
                Ok(entry) => read.take(index, entry, &mut signers),
                Err(_) => Err(TemplateProblem::Unreadable(index)),
            };
            read.problems.extend(result.err());
        }
        read
    }

    /// Whether the template says nothing about registration.
    pub fn is_empty(&self) -> bool {
        self.kube_client.is_none() && self.custom.is_empty() && self.problems.is_empty()
    }

    pub fn custom(&self, signer: &str) -> Option<&CustomSignerRegistration> {
        self.custom.iter().find(|custom| custom.signer == signer)
    }

    fn take(
        &mut self,
        index: usize,
        entry: RegistrationEntry,
        signers: &mut BTreeSet<String>,
    ) -> Result<(), TemplateProblem> {
        match entry.r#type.as_str() {
            "KubeClient" if self.kube_client.is_some() => Err(TemplateProblem::SecondKubeClient(index)),
            "KubeClient" => {
                let listed = entry.kube_client.unwrap_or_default().hub_permissions;
                self.kube_client =
                    Some(KubeClientRegistration { permissions: self.permissions(index, &listed) });
                Ok(())
            }
            "CustomSigner" => {
                let custom =
                    entry.custom_signer.and_then(custom).ok_or(TemplateProblem::CustomSigner(index))?;
                if !signers.insert(custom.signer.clone()) {
                    return Err(TemplateProblem::SecondSigner(index));
                }
                self.custom.push(custom);
                Ok(())
            }
            _ => Err(TemplateProblem::Type(index)),
        }
    }

    fn permissions(&mut self, index: usize, listed: &[Value]) -> Vec<Permission> {
        if listed.len() > MOST_ENTRIES {
            self.problems.push(TemplateProblem::TooManyPermissions(index));
            return Vec::new();
        }
        let mut permissions = BTreeSet::new();
        for (at, value) in listed.iter().enumerate() {
            match PermissionEntry::deserialize(value).ok().and_then(permission) {
                Some(permission) => drop(permissions.insert(permission)),
                None => self.problems.push(TemplateProblem::Permission(index, at)),
            }
        }
        permissions.into_iter().collect()
    }
}

fn custom(entry: CustomSignerEntry) -> Option<CustomSignerRegistration> {
    let CustomSignerEntry { signer_name: signer, subject, signing_ca: ca } = entry;
    // kubernetes.io/* belongs to Kubernetes: nobody else may sign for it.
    let is_own = |domain: &str| domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    let (domain, path) = signer.split_once('/')?;
    let fits = is_name(domain) && is_name(path) && signer.len() <= LONGEST_NAME && is_name(&ca.name);
    (fits && signer != KUBE_CLIENT && !is_own(domain)).then_some(CustomSignerRegistration {
        signer,
        subject,
        ca,
    })
}

fn permission(entry: PermissionEntry) -> Option<Permission> {
    let PermissionEntry { r#type, current_cluster, single_namespace } = entry;
    let (namespace, kind, name) = match r#type.as_str() {
        "CurrentCluster" => (None, RoleKind::ClusterRole, current_cluster?.cluster_role_name),
        "SingleNamespace" => {
            let SingleNamespace { namespace, role_ref } = single_namespace?;
            let kind = match role_ref.kind.as_str() {
                "Role" => RoleKind::Role,
                "ClusterRole" => RoleKind::ClusterRole,
                _ => return None,
            };
            (Some(namespace).filter(|namespace| is_name(namespace))?.into(), kind, role_ref.name)
        }
        _ => return None,
    };
    // The names of roles may contain colons, and nothing that is special in a path.
    let is_role =
        !name.is_empty() && name.len() <= 253 && !name.contains(['/', '%']) && name != "." && name != "..";
    is_role.then_some(Permission { namespace, role: GrantedRole { kind, name } })
}

/// Returns true if the text is an object name that is safe in a URL path.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    !text.is_empty() && text.len() <= 253 && text.chars().all(fits) && text != "." && text != ".."
}
