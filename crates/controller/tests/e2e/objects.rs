//! The objects that tests put on the hub.

use serde_json::{Value, json};

pub(crate) const GROUP: &str = "addon.open-cluster-management.io";

/// An object of the add-on group.
pub(crate) fn object(kind: &str, name: &str, rest: Value) -> Value {
    let mut object =
        json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind, "metadata": {"name": name}});
    let rest = rest.as_object().cloned().unwrap_or_default();
    object.as_object_mut().unwrap().extend(rest);
    object
}

/// The same object in a namespace.
pub(crate) fn within(namespace: &str, mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

/// The add-on `helloworld` with these placements.
pub(crate) fn addon(placements: &[Value]) -> Value {
    named_addon("helloworld", placements)
}

pub(crate) fn named_addon(name: &str, placements: &[Value]) -> Value {
    let strategy = json!({"type": "Placements", "labelSelector": null, "placements": placements});
    object("ClusterManagementAddOn", name, json!({"spec": {"installStrategy": strategy}}))
}

/// An instance that a user makes.
pub(crate) fn instance(cluster: &str, addon: &str, spec: Value) -> Value {
    within(cluster, object("ManagedClusterAddOn", addon, json!({"spec": spec})))
}

/// A placement that wants one AddOnHubConfig.
pub(crate) fn place(name: &str, config: &str, strategy: Value) -> Value {
    let configs = [reference("addonhubconfigs", None, config)];
    json!({"name": name, "namespace": "default", "configs": configs, "rolloutStrategy": strategy})
}

pub(crate) fn reference(resource: &str, namespace: Option<&str>, name: &str) -> Value {
    let mut reference = json!({"group": GROUP, "resource": resource, "name": name});
    if let Some(namespace) = namespace {
        reference["namespace"] = json!(namespace);
    }
    reference
}

pub(crate) fn update_all() -> Value {
    json!({"type": "UpdateAll"})
}

pub(crate) fn rolling(limit: impl Into<Value>) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": limit.into()}})
}

pub(crate) fn behind(canary: &str, limit: impl Into<Value>) -> Value {
    json!({"type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": {
        "placement": {"name": canary, "namespace": "default"}, "maxConcurrentlyUpdating": limit.into(),
    }})
}
