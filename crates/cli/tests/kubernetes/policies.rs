//! The admission policies: they work, their messages are clear, and the server reports no
//! type-checking warnings.

use serde_json::{Value, json};

use crate::server::{NAMESPACE, Server, installed};

const GROUP: &str = "addon.open-cluster-management.io";

fn put(server: &Server, object: &Value) {
    server.kubectl("apply -f -", object.to_string().as_bytes());
}

fn instance(namespace: Option<&str>) -> Value {
    let mut config = json!({"group": GROUP, "resource": "addondeploymentconfigs", "name": "x"});
    if let Some(namespace) = namespace {
        config["namespace"] = namespace.into();
    }
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ManagedClusterAddOn",
        "metadata": {"name": "reach", "namespace": "policy-one"}, "spec": {"configs": [config]},
    })
}

#[test]
fn the_server_finds_nothing_wrong_with_their_expressions() {
    let server = installed("expressions");
    for policy in ["aviary-instance-configs", "aviary-manager-term", "aviary-fleet-policies"] {
        let what = format!("validatingadmissionpolicy {policy}");
        server.until("the expressions to be checked", || {
            let policy = server.get(&what);
            policy["status"]["observedGeneration"] == policy["metadata"]["generation"]
        });
        let status = server.get(&what)["status"].clone();
        assert_eq!(status["typeChecking"], json!({}), "{policy}");
    }
}

#[test]
fn an_instance_may_not_reach_for_configs_of_other_clusters() {
    let server = installed("reach");
    for namespace in ["policy-one", "policy-two"] {
        put(&server, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
    }
    let addon = |name: &str, supported: Value, placements: Value| {
        json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ClusterManagementAddOn", "metadata": {"name": name},
            "spec": {"supportedConfigs": supported, "installStrategy": {"type": "Manual", "placements": placements}},
        })
    };
    let supported = json!([{"group": GROUP, "resource": "addondeploymentconfigs", "defaultConfig": {"namespace": "by-default", "name": "d"}}]);
    let config = |namespace: &str| json!([{"group": GROUP, "resource": "addondeploymentconfigs", "namespace": namespace, "name": "d"}]);
    let placements = json!([
        {"name": "a", "namespace": "default", "configs": config("by-placement")},
        {"name": "b", "namespace": "default", "addonTemplate": {"configs": config("by-template")}},
    ]);
    put(&server, &addon("reach", supported, placements));
    put(&server, &addon("beside", json!([]), json!([])));
    server.until("the policy to be in force", || {
        !server
            .try_kubectl(
                "admin.kubeconfig",
                "apply --dry-run=server -f -",
                instance(Some("policy-two")).to_string().as_bytes(),
            )
            .status
            .success()
    });
    let told =
        server.refused("admin.kubeconfig", "apply -f -", instance(Some("policy-two")).to_string().as_bytes());
    let reason = "spec.configs may not reference configs in the namespace policy-two: an instance may use configs from its own namespace, from a namespace that \
                  its add-on references, or from open-cluster-management";
    assert!(told.contains(reason), "{told}");
    for allowed in [
        None,
        Some("policy-one"),
        Some("by-default"),
        Some("by-placement"),
        Some("by-template"),
        Some(NAMESPACE),
    ] {
        put(&server, &instance(allowed));
    }
    // An existing instance stays writable when the add-on no longer references its namespace.
    put(&server, &instance(Some("by-placement")));
    put(&server, &addon("reach", json!([]), json!([])));
    server.until("the policy to see the add-on", || {
        !server
            .try_kubectl(
                "admin.kubeconfig",
                "apply --dry-run=server -f -",
                instance(Some("by-template")).to_string().as_bytes(),
            )
            .status
            .success()
    });
    server.kubectl("label managedclusteraddon reach -n policy-one touched=yes", b"");
    // If its add-on does not exist yet, only the manager can judge an instance.
    server.kubectl("delete clustermanagementaddon reach beside", b"");
    server.until("the policy to see that the add-on is gone", || {
        server
            .try_kubectl(
                "admin.kubeconfig",
                "apply --dry-run=server -f -",
                instance(Some("policy-two")).to_string().as_bytes(),
            )
            .status
            .success()
    });
    server.kubectl("delete namespace policy-one policy-two --wait=false", b"");
}

#[test]
fn the_term_is_the_managers_alone() {
    let server = installed("term");
    let addon = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ClusterManagementAddOn", "metadata": {"name": "term"}, "spec": {}});
    put(&server, &addon);
    let manager = server.kubeconfig_of(NAMESPACE, "aviary-manager");
    let annotate = "patch clustermanagementaddon term --type=merge -p";
    let term = |value: &str| {
        format!("{annotate} '{{\"metadata\":{{\"annotations\":{{\"{GROUP}/manager-term\":{value}}}}}}}'")
    };
    server.until("the policy to be in force", || {
        !server
            .try_kubectl("admin.kubeconfig", &format!("{} --dry-run=server", term("\"99\"")), b"")
            .status
            .success()
    });
    let told = server.refused("admin.kubeconfig", &term("\"99\""), b"");
    assert!(told.contains("only the manager may set the annotation addon.open-cluster-management.io/manager-term; it may be removed"), "{told}");
    // An export from another hub must not bring its term along.
    for (annotation, value) in [("manager-term", "57"), ("manager-identity", "elsewhere")] {
        let mut exported = addon.clone();
        exported["metadata"] =
            json!({"name": "exported", "annotations": {format!("{GROUP}/{annotation}"): value}});
        let told = server.refused("admin.kubeconfig", "create -f -", exported.to_string().as_bytes());
        assert!(
            told.contains(&format!("only the manager may set the annotation {GROUP}/{annotation}")),
            "{told}"
        );
    }
    // kubectl reads before it patches; a manager does not need to, and may not.
    let patched = server.try_kubectl(&manager, &term("\"7\""), b"");
    let complaint = String::from_utf8_lossy(&patched.stderr).into_owned();
    assert!(complaint.contains("cannot get resource"), "{complaint}");
    server.kubectl("annotate clustermanagementaddon term other=thing", b"");
    server.kubectl(&term("null"), b"");
    server.kubectl("delete clustermanagementaddon term", b"");
}

#[test]
fn only_who_may_cover_the_fleet_writes_policies_without_names() {
    let server = installed("fleet-policies");
    let account = |name: &str, role: &str| {
        put(
            &server,
            &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}),
        );
        put(
            &server,
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
            }),
        );
        server.kubeconfig_of(NAMESPACE, name)
    };
    let operator = account("policy-operator", "aviary-operator");
    let keeper = account("policy-keeper", "aviary-fleet-policies");
    let policy = |add_ons: Value| {
        json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "AddOnRolloutPolicy", "metadata": {"name": "covers"},
            "spec": {"addOns": add_ons, "paused": true},
        })
        .to_string()
    };
    let named = policy(json!({"names": ["one"]}));
    let by_label = policy(json!({"labelSelector": {"matchLabels": {"a": "b"}}}));
    let mut all: Value = serde_json::from_str(&named).unwrap();
    all["spec"].as_object_mut().unwrap().remove("addOns");
    let all = all.to_string();
    let apply = "apply --dry-run=server -f -";
    server.until("the policy to be in force", || {
        !server.try_kubectl(&operator, apply, all.as_bytes()).status.success()
            && server.try_kubectl(&keeper, apply, all.as_bytes()).status.success()
    });
    for fleet_wide in [&all, &by_label] {
        let told = server.refused(&operator, "apply -f -", fleet_wide.as_bytes());
        assert!(told.contains("a policy that does not name its add-ons covers the whole fleet"), "{told}");
    }
    let done = server.try_kubectl(&operator, "apply -f -", named.as_bytes());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // Nor does a policy become one, or go.
    let told = server.refused(&operator, "apply -f -", by_label.as_bytes());
    assert!(told.contains("covers the whole fleet"), "{told}");
    let done = server.try_kubectl(&keeper, "apply -f -", by_label.as_bytes());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let told = server.refused(&operator, "delete addonrolloutpolicy covers", b"");
    assert!(told.contains("covers the whole fleet"), "{told}");
    let done = server.try_kubectl(&keeper, "delete addonrolloutpolicy covers", b"");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    server.kubectl("delete clusterrolebinding policy-operator policy-keeper", b"");
}
