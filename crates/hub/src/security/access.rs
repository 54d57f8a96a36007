//! Authorization: pure tables of rules for each role.
//!
//! Owns the decision and the message of a refusal. Must not use objects, tokens or sockets; refuses
//! everything that no rule allows.

mod agent;

use std::fmt;

use serde::{Deserialize, Serialize};

/// The role of a token's owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// May do everything.
    Admin,
    /// May read everything except Secrets, and change nothing.
    ReadOnly,
    /// The agent of one managed cluster: reads its cluster's works and instances, and reports on
    /// them.
    Agent { namespace: String },
}

/// How much of an object a permitted write may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    #[default]
    Anything,
    /// `metadata.finalizers`, and nothing else that a client can set.
    Finalizers,
}

/// One rule of a role, as RBAC would write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRule {
    pub group: &'static str,
    /// `resource` or `resource/subresource`.
    pub resource: &'static str,
    pub verbs: &'static [&'static str],
    pub place: RuleScope,
    pub extent: Extent,
}

/// The scope of a rule for agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleScope {
    /// In the namespace of its cluster.
    Namespace,
    /// On the cluster-scoped object with the name of its cluster.
    Named,
}

/// A request as an authorizer sees it (Kubernetes' `RequestInfo`).
///
/// Either `non_resource_path` is set, or `resource` is not empty. `name` of a list or watch is the
/// one of a `metadata.name=` field selector, and only if the selector is really applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: Option<&'a str>,
    pub namespace: Option<&'a str>,
    pub name: Option<&'a str>,
    pub non_resource_path: Option<&'a str>,
}

/// A refusal; [`Denied::message`] has Kubernetes' message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    object: String,
    action: String,
}

/// Whether `role` may execute `request`, and how much of an object a write may change.
pub fn allowed(role: &Role, request: &Access<'_>) -> Result<Extent, Denied> {
    let extent = match role {
        Role::Admin => Some(Extent::Anything),
        _ if is_public(request) => Some(Extent::Anything),
        Role::ReadOnly => reader(request).then_some(Extent::Anything),
        Role::Agent { namespace } => agent::extent(namespace, request),
    };
    extent.ok_or_else(|| Denied::new(request))
}

/// The rules of a role that has a table, for `namespace`.
pub fn rules<'r>(
    role: &Role,
    namespace: &'r str,
) -> Option<impl Iterator<Item = &'static AccessRule> + use<'r>> {
    let Role::Agent { namespace: own } = role else { return None };
    let inside = own == namespace;
    Some(agent::RULES.iter().filter(move |rule| inside || rule.place == RuleScope::Named))
}

const READ: [&str; 3] = ["get", "list", "watch"];

fn reads(request: &Access<'_>) -> bool {
    READ.contains(&request.verb)
}

/// What every authenticated client may do: discovery, and reviews about itself.
fn is_public(request: &Access<'_>) -> bool {
    match request.non_resource_path {
        Some(path) => request.verb == "get" && is_discovery(path),
        None => request.verb == "create" && request.subresource.is_none() && is_self_review(request),
    }
}

fn is_self_review(request: &Access<'_>) -> bool {
    matches!(
        (request.group, request.resource),
        ("authorization.k8s.io", "selfsubjectaccessreviews" | "selfsubjectrulesreviews")
            | ("authentication.k8s.io", "selfsubjectreviews")
    )
}

fn is_discovery(path: &str) -> bool {
    const EXACT: [&str; 8] =
        ["/api", "/apis", "/version", "/openapi/v2", "/openapi/v3", "/healthz", "/livez", "/readyz"];
    const BELOW: [&str; 5] = ["/api/", "/apis/", "/openapi/v3/", "/livez/", "/readyz/"];
    // No path may leave its prefix, however the router reads it.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte);
    let climbs = !path.bytes().all(plain) || path.split('/').any(|segment| segment == "..");
    EXACT.contains(&path) || (!climbs && BELOW.iter().any(|prefix| path.starts_with(prefix)))
}

fn reader(request: &Access<'_>) -> bool {
    let secret = request.group.is_empty() && request.resource == "secrets";
    request.non_resource_path.is_none() && reads(request) && !secret
}

impl Denied {
    fn new(request: &Access<'_>) -> Self {
        let Access { verb, group, resource, subresource, namespace, name, non_resource_path } = *request;
        if let Some(path) = non_resource_path {
            return Self { object: String::new(), action: format!("{verb} path {path:?}") };
        }
        let mut object = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        if let Some(name) = name {
            object.push_str(&format!(" {name:?}"));
        }
        let target = match subresource {
            Some(subresource) => format!("{resource}/{subresource}"),
            None => resource.to_owned(),
        };
        let place = match namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        Self { object, action: format!("{verb} resource {target:?} in API group {group:?} {place}") }
    }

    /// The message of the 403 `Status`, exactly as in kube-apiserver.
    pub fn message(&self, user: &str) -> String {
        let Self { object, action } = self;
        let subject = if object.is_empty() { String::new() } else { format!("{object} is ") };
        format!("{subject}forbidden: User {user:?} cannot {action}")
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "forbidden: cannot {}", self.action)
    }
}

impl std::error::Error for Denied {}

#[cfg(test)]
mod tests;
