//! What the agent of a managed cluster may do: what the registration and work agents of Open
//! Cluster Management need on a hub, less what would let a cluster change what it is given.
//!
//! Two rights are narrower than there. A work agent may update and delete works: here it changes
//! their finalizers, which is what it updates them for. A registration agent may update its
//! ManagedCluster: here only the status.

use super::{Access, AccessRule, Extent, READ, RuleScope};

const ADDONS: &str = "addon.open-cluster-management.io";
const CLUSTERS: &str = "cluster.open-cluster-management.io";
const WORKS: &str = "work.open-cluster-management.io";
const REPORT: &[&str] = &["update", "patch"];

pub(super) const RULES: [AccessRule; 10] = [
    rule(WORKS, "manifestworks", &READ),
    AccessRule { extent: Extent::Finalizers, ..rule(WORKS, "manifestworks", REPORT) },
    rule(WORKS, "manifestworks/status", REPORT),
    rule(ADDONS, "managedclusteraddons", &READ),
    rule(ADDONS, "managedclusteraddons/status", REPORT),
    rule("coordination.k8s.io", "leases", &["get", "list", "watch", "create", "update", "patch"]),
    rule("", "events", &["create", "update", "patch"]),
    rule("events.k8s.io", "events", &["list", "watch", "create", "update", "patch"]),
    AccessRule { place: RuleScope::Named, ..rule(CLUSTERS, "managedclusters", &READ) },
    AccessRule { place: RuleScope::Named, ..rule(CLUSTERS, "managedclusters/status", REPORT) },
];

const fn rule(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> AccessRule {
    AccessRule { group, resource, verbs, place: RuleScope::Namespace, extent: Extent::Anything }
}

/// What the agent of the cluster `own` may change with `request`. `None` if the request is not
/// allowed.
pub(super) fn extent(own: &str, request: &Access<'_>) -> Option<Extent> {
    let holds = |rule: &&AccessRule| {
        rule.group == request.group
            && names(rule.resource, request)
            && rule.verbs.contains(&request.verb)
            && match rule.place {
                RuleScope::Namespace => request.namespace == Some(own),
                RuleScope::Named => request.namespace.is_none() && request.name == Some(own),
            }
    };
    RULES.iter().find(holds).map(|rule| rule.extent)
}

fn names(resource: &str, request: &Access<'_>) -> bool {
    match request.subresource {
        Some(part) => resource.split_once('/') == Some((request.resource, part)),
        None => resource == request.resource,
    }
}
