//! Whole works of the public shapes of templates, on a hub of OCM: everything that a cluster gets is
//! in one file. [`crate::ocm_templates`] says which parts are OCM's, and why.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and JSON is written where it is used"
)]

use aviary_engine::served::Dialect;
use expect_test::{ExpectFile, expect_file};
use serde_json::{Value, json};

use crate::ocm_templates::{agent, ready, workload};
use crate::story::rendering::works;

fn check(template: &Value, deployment: &Value, expected: &ExpectFile) {
    let mut story = ready(template, deployment);
    story.world.observed.served.dialect = Dialect::Ocm;
    let works = works(&story.world.observed, &story);
    assert_eq!(works.len(), 1, "one work");
    let shown = serde_json::to_string_pretty(&works).expect("JSON");
    expected.assert_eq(&(shown + "\n"));
}

fn deployment() -> Value {
    agent(json!([workload("Deployment", "agent")]))
}

fn registering(registration: Value) -> Value {
    let mut template = deployment();
    template["registration"] = registration;
    template
}

#[test]
fn registration_of_a_kube_client() {
    let permissions = json!([{ "type": "CurrentCluster", "currentCluster": { "clusterRoleName": "agent" } }]);
    let client = json!([{ "type": "KubeClient", "kubeClient": { "hubPermissions": permissions } }]);
    check(&registering(client), &json!({}), &expect_file!["fixtures/ocm_golden/registration.json"]);
}

#[test]
fn registration_with_a_custom_signer() {
    let signer = json!({ "signerName": "example.com/signer-1", "signingCA": { "name": "ca", "namespace": "default" } });
    let custom = json!([{ "type": "CustomSigner", "customSigner": signer }]);
    check(&registering(custom), &json!({}), &expect_file!["fixtures/ocm_golden/custom_signer.json"]);
}

#[test]
fn mirrors() {
    let mirrors = json!({ "registries": [{ "source": "quay.io/ocm", "mirror": "mirror.example/ocm" }] });
    check(&deployment(), &mirrors, &expect_file!["fixtures/ocm_golden/mirrors.json"]);
}

#[test]
fn a_proxy_with_its_certificates() {
    let proxy = json!({ "proxyConfig": {
        "httpProxy": "http://p:1", "httpsProxy": "http://p:2", "noProxy": ".svc", "caBundle": "Y2VydGlmaWNhdGU=",
    } });
    check(&deployment(), &proxy, &expect_file!["fixtures/ocm_golden/proxy.json"]);
}

#[test]
fn resources() {
    let rules = json!({ "resourceRequirements": [
        { "containerID": "*:*:*", "resources": { "requests": { "cpu": "1m" } } },
        { "containerID": "deployments:agent:side", "resources": { "limits": { "memory": "1Gi" } } },
    ] });
    check(&deployment(), &rules, &expect_file!["fixtures/ocm_golden/resources.json"]);
}

#[test]
fn an_install_namespace() {
    let subject = json!({ "kind": "ServiceAccount", "name": "agent", "namespace": "open-cluster-management-agent-addon" });
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" });
    let template = agent(json!([
        workload("Deployment", "agent"),
        { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "open-cluster-management-agent-addon" } },
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "agent" },
          "roleRef": role, "subjects": [subject] },
    ]));
    let moved = json!({ "agentInstallNamespace": "agents" });
    check(&template, &moved, &expect_file!["fixtures/ocm_golden/install_namespace.json"]);
}

#[test]
fn objects_that_stay() {
    let kept = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b" },
        "metadata": { "name": "data", "namespace": "default",
            "annotations": { "addon.open-cluster-management.io/deletion-orphan": "" } },
    });
    let template = agent(json!([workload("Deployment", "agent"), kept]));
    check(&template, &json!({}), &expect_file!["fixtures/ocm_golden/orphan.json"]);
}

#[test]
fn several_workloads() {
    let kinds = [("Deployment", "agent"), ("DaemonSet", "node"), ("StatefulSet", "store")];
    let template = agent(json!(kinds.map(|(kind, name)| workload(kind, name))));
    check(&template, &json!({}), &expect_file!["fixtures/ocm_golden/workloads.json"]);
}
