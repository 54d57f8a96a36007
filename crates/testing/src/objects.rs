//! Objects of the API, as a user would write them.

use serde_json::{Value, json};

pub const ADDON_GROUP: &str = "addon.open-cluster-management.io";
const ADDON_VERSION: &str = "addon.open-cluster-management.io/v1alpha1";
const PLACEMENT_VERSION: &str = "cluster.open-cluster-management.io/v1beta1";

/// Where the manager keeps its lease and its revisions.
pub const MANAGER_NAMESPACE: &str = "open-cluster-management";

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// The manifest of an add-on that shows its cluster and its version.
pub fn manifest(version: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "agent", "namespace": "{{INSTALL_NAMESPACE}}"},
        "data": {"cluster": "{{CLUSTER_NAME}}", "version": version},
    })
}

/// A version of an add-on.
pub fn template_of(addon: &str, version: &str, manifests: &Value) -> Value {
    json!({
        "apiVersion": ADDON_VERSION, "kind": "AddOnTemplate", "metadata": {"name": format!("{addon}-{version}")},
        "spec": {"addonName": addon, "version": version, "agentSpec": {"workload": {"manifests": manifests}}},
    })
}

/// A version of `helloworld`.
pub fn template(version: &str) -> Value {
    template_of("helloworld", version, &json!([manifest(version)]))
}

pub fn hub_config(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": ADDON_VERSION, "kind": "AddOnHubConfig", "metadata": {"name": name},
        "spec": {"desiredVersion": version},
    })
}

/// A cluster that may join.
pub fn cluster(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": true},
    })
}

/// A placement that selects clusters by their labels.
pub fn placement_by_labels(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": PLACEMENT_VERSION, "kind": "Placement", "metadata": {"name": name, "namespace": "default"},
        "spec": {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}]},
    })
}

/// A placement whose status says that it selects this many clusters.
pub fn placement_of(name: &str, clusters: usize) -> Value {
    let (satisfied, reason) =
        if clusters == 0 { ("False", "NoManagedClusterMatched") } else { ("True", "AllDecisionsScheduled") };
    let condition = json!({
        "type": "PlacementSatisfied", "status": satisfied, "reason": reason, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    json!({
        "apiVersion": PLACEMENT_VERSION, "kind": "Placement", "metadata": {"name": name, "namespace": "default"},
        "spec": {}, "status": {"numberOfSelectedClusters": clusters, "conditions": [condition]},
    })
}

/// One page of the decisions of a placement.
pub fn decision(placement: &str, page: usize, clusters: &[String]) -> Value {
    let decisions: Vec<Value> =
        clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    json!({
        "apiVersion": PLACEMENT_VERSION, "kind": "PlacementDecision",
        "metadata": {"name": format!("{placement}-{page}"), "namespace": "default",
            "labels": {"cluster.open-cluster-management.io/placement": placement}},
        "status": {"decisions": decisions},
    })
}

/// An add-on at the version of a config, on the placement `fleet` behind the placement `canary`,
/// with these budgets.
pub fn addon_behind_canary(name: &str, config: &str, fleet: &str, canary: &str) -> Value {
    let configs = json!([{"group": ADDON_GROUP, "resource": "addonhubconfigs", "name": config}]);
    json!({
        "apiVersion": ADDON_VERSION, "kind": "ClusterManagementAddOn", "metadata": {"name": name},
        "spec": {"installStrategy": {"type": "Placements", "placements": [
            {"name": "fleet", "namespace": "default", "configs": configs, "rolloutStrategy": {
                "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": {
                    "placement": {"name": "canary", "namespace": "default"}, "maxConcurrentlyUpdating": fleet}}},
            {"name": "canary", "namespace": "default", "configs": configs, "rolloutStrategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": canary}}},
        ]}},
    })
}

/// `helloworld` at the version of a config, on `fleet` behind `canary`.
pub fn addon(config: &str) -> Value {
    addon_behind_canary("helloworld", config, "25%", "50%")
}

/// `c-00`, `c-01` and so on.
pub fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number:02}")).collect()
}
