//! Fleets to plan for: the worked examples of the final design document, as files.

use aviary_engine::hash;
use serde_json::{Value, json};

pub(crate) const NOW: &str = "--now 2026-01-01T00:00:00Z";

/// Documents as a stream.
pub(crate) fn stream(documents: &[Value]) -> String {
    documents.iter().map(|document| format!("---\n{}", serde_saphyr::to_string(document).unwrap())).collect()
}

/// `aws001`, `aws002` and so on.
pub(crate) fn names(prefix: &str, count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("{prefix}{number:03}")).collect()
}

/// A placement's decisions, a hundred to an object.
pub(crate) fn decisions(placement: &str, clusters: &[String]) -> Vec<Value> {
    let page = |(index, clusters): (usize, &[String])| {
        let decisions: Vec<Value> =
            clusters.iter().map(|cluster| json!({ "clusterName": cluster, "reason": "" })).collect();
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "PlacementDecision",
            "metadata": {
                "name": format!("{placement}-decision-{}", index + 1),
                "namespace": "default",
                "labels": { "cluster.open-cluster-management.io/placement": placement },
            },
            "status": { "decisions": decisions },
        })
    };
    clusters.chunks(100).enumerate().map(page).collect()
}

/// A cluster with labels, reachable or not.
pub(crate) fn cluster(name: &str, labels: &Value, reachable: bool) -> Value {
    let status = if reachable { "True" } else { "Unknown" };
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": { "name": name, "labels": labels },
        "spec": { "hubAcceptsClient": true },
        "status": { "conditions": [{
            "type": "ManagedClusterConditionAvailable", "status": status, "reason": "Lease",
            "message": "", "lastTransitionTime": "2025-12-31T00:00:00Z",
        }] },
    })
}

pub(crate) fn hub_config(name: &str, version: &str) -> Value {
    aviary_testing::objects::hub_config(name, version)
}

/// One entry of an add-on's list of placements, with the config of its clusters.
pub(crate) fn placement(name: &str, config: &str, rollout: &Value) -> Value {
    let mut entry = json!({
        "name": name, "namespace": "default",
        "configs": [{
            "group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": config,
        }],
    });
    if !rollout.is_null() {
        entry["rolloutStrategy"] = rollout.clone();
    }
    entry
}

pub(crate) fn rolling(limit: &str) -> Value {
    json!({ "type": "RollingUpdate", "rollingUpdate": { "maxConcurrentlyUpdating": limit } })
}

pub(crate) fn with_canary(canary: &str, limit: &str) -> Value {
    json!({
        "type": "RollingUpdateWithCanary",
        "rollingUpdateWithCanary": {
            "placement": { "name": canary, "namespace": "default" }, "maxConcurrentlyUpdating": limit,
        },
    })
}

pub(crate) fn addon(placements: &[Value]) -> Value {
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1",
        "kind": "ClusterManagementAddOn",
        "metadata": { "name": "helloworld" },
        "spec": { "installStrategy": { "type": "Placements", "placements": placements } },
    })
}

/// Adds a placement's desired, known good and applied config to an add-on's status.
pub(crate) fn progression(addon: &mut Value, placement: &str, [desired, good, applied]: [&Value; 3]) {
    let hash = |config: &Value| hash::spec_hash(config).to_string();
    let entry = json!({
        "name": placement, "namespace": "default",
        "configReferences": [{
            "group": "addon.open-cluster-management.io", "resource": "addonhubconfigs",
            "name": desired["metadata"]["name"],
            "desiredConfigSpecHash": hash(desired),
            "lastKnownGoodConfigSpecHash": hash(good),
            "lastAppliedConfigSpecHash": hash(applied),
        }],
    });
    let status =
        addon.as_object_mut().unwrap().entry("status").or_insert_with(|| json!({ "installProgression": [] }));
    status["installProgression"].as_array_mut().unwrap().push(entry);
}

/// An instance that the install strategy created, with an assigned and an applied config.
pub(crate) fn instance(cluster: &str, told: &Value, applied: &Value) -> Value {
    let hash = |config: &Value| hash::spec_hash(config).to_string();
    let reason = if told == applied { "UpgradeSucceed" } else { "Upgrading" };
    let status = if told == applied { "False" } else { "True" };
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1",
        "kind": "ManagedClusterAddOn",
        "metadata": {
            "name": "helloworld", "namespace": cluster,
            "labels": { "addon.open-cluster-management.io/installed-by-strategy": "Placements" },
        },
        "spec": {},
        "status": {
            "configReferences": [{
                "group": "addon.open-cluster-management.io", "resource": "addonhubconfigs",
                "name": told["metadata"]["name"],
                "desiredConfigSpecHash": hash(told), "lastAppliedConfigSpecHash": hash(applied),
            }],
            "conditions": [{
                "type": "Progressing", "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2025-12-31T00:00:00Z",
            }],
        },
    })
}

/// A work of an add-on that renders its own, from a config; without a complaint, the agent has
/// applied it.
pub(crate) fn work(cluster: &str, config: &Value, complaint: Option<&str>) -> Value {
    let name = config["metadata"]["name"].as_str().unwrap_or_default();
    let key = format!("addonhubconfigs.addon.open-cluster-management.io/{name}");
    let condition = |kind: &str| {
        let (status, message) = complaint.map_or(("True", ""), |complaint| ("False", complaint));
        json!({
            "type": kind, "status": status, "reason": "Agent", "message": message,
            "lastTransitionTime": "2025-12-31T00:00:00Z", "observedGeneration": 2,
        })
    };
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": "addon-helloworld-deploy", "namespace": cluster, "generation": 2,
            "labels": { "open-cluster-management.io/addon-name": "helloworld" },
            "annotations": { "configSpecHash": json!({ key: hash::spec_hash(config).as_str() }).to_string() },
        },
        "spec": { "workload": { "manifests": [] } },
        "status": { "conditions": [condition("Applied"), condition("Available")] },
    })
}
