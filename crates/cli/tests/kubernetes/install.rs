//! Everything can be applied twice, in every form, and the result passes the hub's own checks.

use serde_json::{Value, json};

use crate::server::{NAMESPACE, installed, root, server, succeeded};

#[test]
fn what_is_printed_applies_and_a_second_time_makes_nothing_new() {
    let server = server("install");
    server.install();
    let again = server.kubectl("apply -f -", server.aviary("manifests").as_bytes());
    assert!(again.lines().count() > 30, "{again}");
    let new: Vec<&str> = again.lines().filter(|line| line.ends_with(" created")).collect();
    assert!(new.is_empty(), "{new:?}");
    // Also server-side, which is recommended; nothing else has written these fields.
    let shapes = [
        "manifests --flavor standalone",
        "manifests --flavor standalone --without monitoring",
        "manifests --flavor ocm",
        "manifests -o json",
    ];
    for shape in shapes {
        let printed = server.aviary(shape);
        server.kubectl("apply --server-side --dry-run=server --force-conflicts -f -", printed.as_bytes());
    }
}

#[test]
fn the_overlays_of_kustomize_apply_too() {
    let server = installed("overlays");
    for overlay in ["ocm", "standalone"] {
        let folder = root().join("deploy/kustomize/overlays").join(overlay);
        server.kubectl(&format!("apply --dry-run=server -k '{}'", folder.display()), b"");
    }
}

#[test]
fn another_namespace_and_image_apply_too() {
    let server = installed("namespace");
    let printed =
        server.aviary("manifests --namespace elsewhere --image example.com/aviary:test --without monitoring");
    server.kubectl("create namespace elsewhere --dry-run=client -o yaml", b"");
    // If the namespace does not exist yet, a dry run cannot check what goes into it.
    succeeded("namespace", server.try_kubectl("admin.kubeconfig", "create namespace elsewhere", b""));
    let told = server.kubectl("apply --dry-run=server -f -", printed.as_bytes());
    assert!(told.contains("deployment.apps/aviary-manager created (server dry run)"), "{told}");
    server.kubectl("delete namespace elsewhere --wait=false", b"");
}

/// The pod of the Deployment.
fn pod(deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "aviary-manager-test", "namespace": NAMESPACE, "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    })
}

#[test]
fn a_pod_of_the_deployment_is_admitted_where_restricted_is_enforced() {
    let server = installed("pod");
    let labels = server.get(&format!("namespace {NAMESPACE}"))["metadata"]["labels"].clone();
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
    let pod = pod(&server.get(&format!("deployment aviary-manager -n {NAMESPACE}")));
    let output = server.try_kubectl("admin.kubeconfig", "create -f -", pod.to_string().as_bytes());
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    succeeded("the pod", output);
    assert!(!complaint.contains("Warning"), "{complaint}");
    let made = server.get(&format!("pod aviary-manager-test -n {NAMESPACE}"));
    assert_eq!(made["spec"]["serviceAccountName"], "aviary-manager");
    let mounts = made["spec"]["containers"][0]["volumeMounts"].to_string();
    assert!(mounts.contains("/var/run/secrets/kubernetes.io/serviceaccount"), "it has no token: {mounts}");
    server.kubectl(&format!("delete pod aviary-manager-test -n {NAMESPACE} --force --grace-period=0"), b"");

    // A pod without these settings is rejected, so the check is active.
    let mut loose = pod;
    loose["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = true.into();
    let told = server.refused("admin.kubeconfig", "create -f -", loose.to_string().as_bytes());
    assert!(told.contains("violates PodSecurity \"restricted:latest\""), "{told}");
}

#[test]
fn roles_for_people_become_part_of_the_roles_that_they_have() {
    let server = installed("people");
    for (role, holds) in
        [("view", "addontemplates"), ("edit", "managedclusteraddons"), ("admin", "managedclusteraddons")]
    {
        server
            .until(role, || server.kubectl(&format!("get clusterrole {role} -o json"), b"").contains(holds));
    }
    let may = |account: &str, what: &str| {
        let output = server.try_kubectl(account, &format!("auth can-i {what}"), b"");
        String::from_utf8(output.stdout).unwrap().trim() == "yes"
    };
    let (view, edit, operator) =
        (server.account_with("view"), server.account_with("edit"), server.account_with("aviary-operator"));
    let addons = "clustermanagementaddons.addon.open-cluster-management.io";
    let instances = "managedclusteraddons.addon.open-cluster-management.io";
    let templates = "addontemplates.addon.open-cluster-management.io";
    let works = "manifestworks.work.open-cluster-management.io";
    assert!(may(&view, &format!("list {addons}")) && !may(&view, &format!("patch {instances}")));
    assert!(!may(&view, &format!("get {works}")), "works may hold secrets");
    assert!(may(&edit, &format!("patch {instances}")));
    assert!(!may(&edit, &format!("patch {addons}")) && !may(&edit, &format!("create {templates}")));
    assert!(!may(&edit, &format!("create {works}")), "whoever writes works runs what they like on clusters");
    assert!(may(&operator, &format!("patch {addons}")) && may(&operator, &format!("list {works}")));
    assert!(!may(&operator, &format!("patch {works}")) && !may(&operator, "get secrets"));
}
