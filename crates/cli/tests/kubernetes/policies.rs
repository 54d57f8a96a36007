//! The admission policies: they hold, they say why, and the server finds nothing to say against them.

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
    for policy in ["aviary-instance-configs", "aviary-manager-term"] {
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
    let reason = "spec.configs may not name configs in the namespace policy-two: an instance takes them from its own namespace, from one that \
                  its add-on names, or from open-cluster-management";
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
    // What is there already stays writable when the add-on stops naming its namespace.
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
    // An instance of an add-on that is not there yet is the manager's to judge.
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
    // kubectl reads before it patches, which a manager need not and may not.
    let patched = server.try_kubectl(&manager, &term("\"7\""), b"");
    let complaint = String::from_utf8_lossy(&patched.stderr).into_owned();
    assert!(complaint.contains("cannot get resource"), "{complaint}");
    server.kubectl("annotate clustermanagementaddon term other=thing", b"");
    server.kubectl(&term("null"), b"");
    server.kubectl("delete clustermanagementaddon term", b"");
}
