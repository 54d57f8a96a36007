//! Which role may do what: one pure table of rules.
//!
//! Owns the decision and the wording of a refusal. Must not look at objects, tokens or sockets; must
//! refuse what no rule names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the holder of a token is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Everything.
    Admin,
    /// Sees everything but secrets, changes nothing.
    ReadOnly,
    /// The agent of one managed cluster: works in the cluster's namespace and nowhere else.
    Agent { namespace: String },
}

/// A request as an authorizer sees it (Kubernetes' `RequestInfo`).
///
/// Either `non_resource_path` is set, or `resource` is not empty. `name` of a list or watch is the one of
/// a `metadata.name=` field selector, and only if the selector is really applied.
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

/// A refusal; [`Denied::message`] words it as Kubernetes does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    object: String,
    action: String,
}

/// Whether `role` may do `request`.
pub fn allowed(role: &Role, request: &Access<'_>) -> Result<(), Denied> {
    let permitted = match role {
        Role::Admin => true,
        Role::ReadOnly => is_public(request) || reader(request),
        Role::Agent { namespace } => is_public(request) || agent(namespace, request),
    };
    if permitted { Ok(()) } else { Err(Denied::new(request)) }
}

const READ: [&str; 3] = ["get", "list", "watch"];
const CHANGE: [&str; 2] = ["update", "patch"];
const CLUSTERS: &str = "cluster.open-cluster-management.io";

fn reads(request: &Access<'_>) -> bool {
    READ.contains(&request.verb)
}

fn changes(request: &Access<'_>) -> bool {
    CHANGE.contains(&request.verb)
}

/// What every authenticated client may do: learn the API and ask about itself.
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
    // Nothing may climb out of a prefix again, however the router reads it.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte);
    let climbs = !path.bytes().all(plain) || path.split('/').any(|segment| segment == "..");
    EXACT.contains(&path) || (!climbs && BELOW.iter().any(|prefix| path.starts_with(prefix)))
}

fn reader(request: &Access<'_>) -> bool {
    let secret = request.group.is_empty() && request.resource == "secrets";
    request.non_resource_path.is_none() && reads(request) && !secret
}

/// The order is the policy: cluster-scoped exceptions first, then the fence, then what is inside it.
fn agent(own: &str, request: &Access<'_>) -> bool {
    if request.non_resource_path.is_some() {
        return false;
    }
    let named_as_own = request.name == Some(own);
    match (request.group, request.resource, request.subresource) {
        (CLUSTERS, "managedclusters", None) => return named_as_own && reads(request),
        (CLUSTERS, "managedclusters", Some("status")) => {
            return named_as_own && (request.verb == "get" || changes(request));
        }
        (CLUSTERS, "managedclusters", Some(_)) => return false,
        // A Namespace lies in itself to an authorizer, yet its labels and its end are not the agent's.
        ("", "namespaces", None) => return named_as_own && request.verb == "get",
        ("", "namespaces", Some(_)) => return false,
        _ => {}
    }
    if request.namespace != Some(own) {
        return false;
    }
    if !matches!(request.subresource, None | Some("status")) {
        return false;
    }
    if reads(request) {
        return true;
    }
    if changes(request) {
        // Rights are given to agents, never by them.
        return request.group != "rbac.authorization.k8s.io";
    }
    let creatable = matches!(
        (request.group, request.resource),
        ("" | "events.k8s.io", "events") | ("coordination.k8s.io", "leases")
    );
    request.verb == "create" && request.subresource.is_none() && creatable
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

    /// The message of the 403 `Status`, word for word that of kube-apiserver.
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
