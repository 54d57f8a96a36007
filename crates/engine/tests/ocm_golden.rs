//! Whole works of the public shapes of templates, on a hub of OCM: everything that a cluster gets
//! is in one file. [`crate::ocm_templates`] says which parts are OCM's, and why.
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
use crate::story::Story;
use crate::story::rendering::works;

fn on_ocm(template: &Value, deployment: &Value) -> Story {
    let mut story = ready(template, deployment);
    story.world.observed.served.dialect = Dialect::Ocm;
    story
}

fn check(template: &Value, deployment: &Value, expected: &ExpectFile) {
    check_works(&on_ocm(template, deployment), expected);
}

/// The next pass writes this one work.
fn check_works(story: &Story, expected: &ExpectFile) {
    let works = works(&story.world.observed, story);
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

#[test]
fn registration_of_both_kinds_with_all_that_they_may_say() {
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "shared" });
    let permissions = json!([
        { "type": "CurrentCluster", "currentCluster": { "clusterRoleName": "agent" } },
        { "type": "SingleNamespace", "singleNamespace": { "namespace": "shared", "roleRef": role } },
    ]);
    let subject = json!({ "user": "agent", "groups": ["agents"], "organizationUnit": ["unit"] });
    let signer =
        json!({ "signerName": "example.com/signer-1", "subject": subject, "signingCA": { "name": "ca" } });
    let both = json!([
        { "type": "KubeClient", "kubeClient": { "hubPermissions": permissions } },
        { "type": "CustomSigner", "customSigner": signer },
    ]);
    check(&registering(both), &json!({}), &expect_file!["fixtures/ocm_golden/registrations.json"]);
}

#[test]
fn variables() {
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "{{CLUSTER_NAME}}", "namespace": "{{INSTALL_NAMESPACE}}" },
        "data": { "level": "{{LEVEL}}", "both": "{{CLUSTER_NAME}}/{{LEVEL}}", "quoted": "a \"{{LEVEL}}\"" },
    });
    let template = agent(json!([settings, workload("Deployment", "agent")]));
    let own = json!({ "customizedVariables": [{ "name": "LEVEL", "value": "7 \"high\"" }] });
    check(&template, &own, &expect_file!["fixtures/ocm_golden/variables.json"]);
}

#[test]
fn node_placement() {
    let kinds = [("Deployment", "agent"), ("DaemonSet", "node")];
    let template = agent(json!(kinds.map(|(kind, name)| workload(kind, name))));
    let nodes = json!({ "nodePlacement": {
        "nodeSelector": { "node-role.kubernetes.io/infra": "" },
        "tolerations": [{ "key": "infra", "operator": "Exists", "effect": "NoSchedule" }],
    } });
    check(&template, &nodes, &expect_file!["fixtures/ocm_golden/node_placement.json"]);
}

#[test]
fn what_a_template_says_of_its_works() {
    let mut template = deployment();
    let id = json!({ "group": "apps", "resource": "deployments", "name": "agent",
        "namespace": "open-cluster-management-agent-addon" });
    let path = json!({ "name": "ready", "path": ".status.readyReplicas" });
    template["agentSpec"]["manifestConfigs"] = json!([{
        "resourceIdentifier": id, "updateStrategy": { "type": "ServerSideApply" },
        "feedbackRules": [{ "type": "JSONPaths", "jsonPaths": [path] }],
    }]);
    template["agentSpec"]["deleteOption"] = json!({ "propagationPolicy": "Orphan" });
    let account = json!({ "namespace": "default", "name": "applier" });
    template["agentSpec"]["executor"] =
        json!({ "subject": { "type": "ServiceAccount", "serviceAccount": account } });
    check(&template, &json!({}), &expect_file!["fixtures/ocm_golden/work_options.json"]);
}

#[test]
fn hooks_are_in_a_work_of_their_own() {
    let marked = |kind: &str, version: &str, name: &str| {
        json!({
            "apiVersion": version, "kind": kind, "spec": {},
            "metadata": { "name": name, "namespace": "open-cluster-management-agent-addon",
                "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "" } },
        })
    };
    let template = agent(json!([
        workload("Deployment", "agent"),
        marked("Job", "batch/v1", "wipe"),
        marked("Pod", "v1", "sweep"),
    ]));
    let mut story = on_ocm(&template, &json!({}));
    // The finalizer comes before the first work.
    story.run("pass");
    check_works(&story, &expect_file!["fixtures/ocm_golden/hooks_deploy.json"]);
    story.run("settle\n stuck a1\n remove a1\n pass 0");
    check_works(&story, &expect_file!["fixtures/ocm_golden/hooks.json"]);
}

#[test]
fn a_hosted_instance_gets_no_work() {
    let mut story = on_ocm(&deployment(), &json!({}));
    assert_eq!(works(&story.world.observed, &story).len(), 1, "before it asks to be hosted");
    story.run("host a1 h1");
    assert_eq!(works(&story.world.observed, &story), Vec::<Value>::new());
    story.run("host a1");
    assert_eq!(works(&story.world.observed, &story).len(), 1, "when it no longer asks");
}

#[test]
fn everything_at_once() {
    let template = registering(json!([{ "type": "KubeClient", "kubeClient": {} }]));
    let deployment = json!({
        "agentInstallNamespace": "agents",
        "customizedVariables": [{ "name": "LEVEL", "value": "7" }],
        "nodePlacement": { "nodeSelector": { "disk": "ssd" } },
        "registries": [{ "source": "quay.io/ocm", "mirror": "mirror.example/ocm" }],
        "proxyConfig": { "httpsProxy": "http://p:2", "noProxy": ".svc" },
        "resourceRequirements": [{ "containerID": "*:*:agent", "resources": { "limits": { "cpu": "1" } } }],
    });
    check(&template, &deployment, &expect_file!["fixtures/ocm_golden/everything.json"]);
}
