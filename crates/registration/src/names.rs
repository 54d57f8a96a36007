//! The names that Open Cluster Management gives to agents: users, groups and DNS names.

/// The signer of certificates for clients of the hub's API.
pub const KUBE_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// Every authenticated user has this group. Older agents request it explicitly.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// On CSRs of a hub with a gRPC server: the user for whom the server created the CSR.
pub const ON_BEHALF_OF: &str = "open-cluster-management.io/csr-user";
/// On CSRs: the cluster. Anyone can set it.
pub const CLUSTER_LABEL: &str = "open-cluster-management.io/cluster-name";
/// On role bindings that grant what a template requests.
pub const TEMPLATE_LABEL: &str = "open-cluster-management.io/addon-template-name";
/// On role bindings of ours: the cluster and the add-on that they belong to.
pub const BINDING_OF: &str = "addon.open-cluster-management.io/registration-of";
/// On the objects of the token driver.
pub const TOKEN_LABEL: &str = "addon.open-cluster-management.io/token-infrastructure";
/// On the objects of the token driver: their add-on.
pub const TOKEN_ADDON_LABEL: &str = "addon.open-cluster-management.io/name";

const PREFIX: &str = "system:open-cluster-management:";

/// One add-on on one cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentKey {
    pub cluster: String,
    pub addon: String,
}

impl AgentKey {
    pub fn new(cluster: &str, addon: &str) -> Self {
        Self { cluster: cluster.to_owned(), addon: addon.to_owned() }
    }

    /// The group of this add-on's agent on this cluster only.
    pub fn group(&self) -> String {
        format!("{PREFIX}cluster:{}:addon:{}", self.cluster, self.addon)
    }

    /// The group of this add-on's agents on all clusters.
    pub fn common_group(&self) -> String {
        format!("{PREFIX}addon:{}", self.addon)
    }

    /// The groups that an agent requests, as it finds them in the status of its instance.
    pub fn groups(&self) -> Vec<String> {
        vec![self.group(), self.common_group()]
    }

    /// The user name of an agent of this add-on.
    pub fn user(&self, agent: &str) -> String {
        format!("{}:agent:{agent}", self.group())
    }

    /// The user name of the agent that a template deploys.
    pub fn default_user(&self) -> String {
        self.user(&self.account())
    }

    /// The agent's name, and the name of its ServiceAccount with the token driver.
    pub fn account(&self) -> String {
        format!("{}-agent", self.addon)
    }

    /// The user name of that ServiceAccount.
    pub fn account_user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.cluster, self.account())
    }

    /// The one DNS name that agents put into their requests.
    pub fn dns_name(&self) -> String {
        format!("{}.addon.open-cluster-management.io", self.addon)
    }
}

impl std::fmt::Display for AgentKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.cluster, self.addon)
    }
}

/// The group of a cluster's own agents.
pub fn cluster_group(cluster: &str) -> String {
    format!("{PREFIX}{cluster}")
}

/// The cluster and the agent's name in the user name of a cluster's own agent. An add-on's agent
/// has more parts in its name, and is none.
pub fn cluster_agent(username: &str) -> Option<(&str, &str)> {
    let (cluster, agent) = username.strip_prefix(PREFIX)?.split_once(':')?;
    let is_one = !cluster.is_empty() && !agent.is_empty() && !agent.contains(':');
    is_one.then_some((cluster, agent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clusters_own_agent_has_the_name_of_one() {
        let of = |name| cluster_agent(name);
        assert_eq!(of("system:open-cluster-management:c1:agent-7"), Some(("c1", "agent-7")));
        for other in [
            "system:open-cluster-management:c1",
            "system:open-cluster-management:c1:",
            "system:open-cluster-management::agent",
            "system:open-cluster-management:cluster:c1:addon:a:agent:a-agent",
            "System:open-cluster-management:c1:agent",
            "c1:agent",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
