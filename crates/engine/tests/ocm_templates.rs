//! Works of public template shapes, compared with what OCM renders, field by field: registration,
//! several workloads, mirrors, proxy, resources, namespaces, orphans and hooks. The expected pod
//! templates are written by hand, from OCM's documentation and sources.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and JSON is written where it is used"
)]

use crate::story::Story;
use crate::story::rendering::works;
use serde_json::{Value, json};

/// A template of these manifests on one cluster, with a deployment config, ready to be rendered.
pub(crate) fn ready(template: &Value, deployment: &Value) -> Story {
    let mut story = Story::new();
    let mut spec = json!({ "addonName": "helloworld", "version": "v1.0.0" });
    for (key, value) in template.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    story.put_template(&json!({ "metadata": { "name": "tpl" }, "spec": spec }));
    story.put_config("addondeploymentconfigs", Some("default"), "deploy", &json!({ "spec": deployment }));
    story.run("place prod: a1\n rollout prod deploy=default/deploy\n pass 2");
    story
}

fn rendered(template: &Value, deployment: &Value) -> Value {
    let story = ready(template, deployment);
    let mut works = works(&story.world.observed, &story);
    assert_eq!(works.len(), 1, "one work");
    works.remove(0)
}

/// The manifests of the work without the digests that Aviary adds to them.
fn manifests(work: &Value) -> Vec<Value> {
    work["spec"]["workload"]["manifests"]
        .as_array()
        .expect("manifests")
        .iter()
        .map(aviary_testing::as_authored)
        .collect()
}

pub(crate) fn workload(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name, "namespace": "open-cluster-management-agent-addon" },
        "spec": { "template": { "spec": {
            "initContainers": [{ "name": "init", "image": "quay.io/ocm/init:v1" }],
            "containers": [
                { "name": "agent", "image": "quay.io/ocm/agent:v1", "env": [{ "name": "OWN", "value": "1" }] },
                { "name": "side", "image": "docker.io/library/side:v1" },
            ],
            "volumes": [{ "name": "tmp", "emptyDir": {} }],
        } } },
    })
}

pub(crate) fn agent(manifests: Value) -> Value {
    json!({ "agentSpec": { "workload": { "manifests": manifests } } })
}

fn pod(work: &Value, at: usize) -> Value {
    manifests(work)[at]["spec"]["template"]["spec"].clone()
}

fn env(pod: &Value, container: usize) -> Vec<String> {
    let all = pod["containers"][container]["env"].as_array().cloned().unwrap_or_default();
    all.iter()
        .map(|one| format!("{}={}", one["name"].as_str().unwrap(), one["value"].as_str().unwrap()))
        .collect()
}

#[test]
fn a_template_without_these_features_is_rendered_as_it_is() {
    let template = agent(json!([workload("Deployment", "agent"), workload("DaemonSet", "node")]));
    let work = rendered(&template, &json!({}));
    let authored = template["agentSpec"]["workload"]["manifests"].as_array().unwrap().clone();
    assert_eq!(manifests(&work), authored);
    assert_eq!(work["spec"].get("deleteOption"), None);
}

#[test]
fn registration_brings_environment_and_secrets_to_every_container() {
    let mut template = agent(json!([
        workload("Deployment", "agent"),
        workload("DaemonSet", "node"),
        workload("StatefulSet", "store")
    ]));
    template["registration"] = json!([
        { "type": "KubeClient", "kubeClient": {} },
        { "type": "CustomSigner", "customSigner": { "signerName": "example.com/signer-1" } },
    ]);
    let work =
        rendered(&template, &json!({ "agentInstallNamespace": "open-cluster-management-agent-addon" }));
    for at in [0, 1] {
        let pod = pod(&work, at);
        let own = [
            "HUB_KUBECONFIG=/managed/hub-kubeconfig/kubeconfig",
            "CLUSTER_NAME=a1",
            "INSTALL_NAMESPACE=open-cluster-management-agent-addon",
        ];
        assert_eq!(env(&pod, 0), [&["OWN=1"][..], &own[..]].concat(), "after its own");
        assert_eq!(env(&pod, 1), own);
        let mounts = json!([
            { "name": "hub-kubeconfig", "mountPath": "/managed/hub-kubeconfig" },
            { "name": "cert-example-com-signer-1", "mountPath": "/managed/example.com-signer-1" },
        ]);
        assert_eq!(pod["containers"][0]["volumeMounts"], mounts);
        assert_eq!(pod["containers"][1]["volumeMounts"], mounts);
        assert_eq!(
            pod["volumes"],
            json!([
                { "name": "tmp", "emptyDir": {} },
                { "name": "hub-kubeconfig", "secret": { "secretName": "helloworld-hub-kubeconfig" } },
                { "name": "cert-example-com-signer-1", "secret": { "secretName": "helloworld-example.com-signer-1-client-cert" } },
            ])
        );
        assert_eq!(
            pod["initContainers"],
            json!([{ "name": "init", "image": "quay.io/ocm/init:v1" }]),
            "as in OCM"
        );
    }
    assert_eq!(manifests(&work)[2], workload("StatefulSet", "store"), "as in OCM");
}

#[test]
fn hub_kubeconfig_is_a_variable_of_templates_that_register() {
    let settings = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" }, "data": { "path": "{{HUB_KUBECONFIG}}" } }]);
    let mut template = agent(settings);
    let mut story = ready(&template, &json!({}));
    story.run("show a1");
    assert!(story.told.contains("uses the variable HUB_KUBECONFIG, which is not defined"), "{}", story.told);
    template["registration"] = json!([{ "type": "KubeClient" }]);
    let path = |deployment: &Value| manifests(&rendered(&template, deployment))[0]["data"]["path"].clone();
    assert_eq!(path(&json!({})), "/managed/hub-kubeconfig/kubeconfig");
    let own = json!({ "customizedVariables": [{ "name": "HUB_KUBECONFIG", "value": "/elsewhere" }] });
    assert_eq!(path(&own), "/elsewhere", "a default, as in OCM");
}

#[test]
fn on_a_hub_of_ocm_every_container_knows_its_cluster() {
    let mut story = ready(&agent(json!([workload("Deployment", "agent")])), &json!({}));
    story.world.observed.served.dialect = aviary_engine::served::Dialect::Ocm;
    let work = works(&story.world.observed, &story).remove(0);
    assert_eq!(env(&pod(&work, 0), 1), ["CLUSTER_NAME=a1"]);
}

#[test]
fn mirrors_replace_images_by_the_last_rule_that_matches() {
    let images = |registries: Value| {
        let work =
            rendered(&agent(json!([workload("Deployment", "agent")])), &json!({ "registries": registries }));
        let pod = pod(&work, 0);
        [0, 1].map(|at| pod["containers"][at]["image"].as_str().unwrap().to_owned())
    };
    let (agent, side) = ("quay.io/ocm/agent:v1".to_owned(), "docker.io/library/side:v1".to_owned());
    assert_eq!(
        images(json!([{ "source": "quay.io/ocm", "mirror": "mirror.example/ocm" }])),
        ["mirror.example/ocm/agent:v1".to_owned(), side.clone()]
    );
    assert_eq!(
        images(json!([{ "source": "quay.io/ocm/", "mirror": "mirror.example/" }])),
        ["mirror.example/agent:v1".to_owned(), side.clone()]
    );
    assert_eq!(
        images(json!([{ "source": "", "mirror": "m.example" }])),
        ["m.example/agent:v1", "m.example/side:v1"]
    );
    assert_eq!(
        images(
            json!([{ "source": "quay.io/ocm", "mirror": "one" }, { "source": "quay.io", "mirror": "two" }, { "source": "gcr.io", "mirror": "three" }])
        ),
        ["two/ocm/agent:v1".to_owned(), side.clone()],
        "the last that matches"
    );
    assert_eq!(images(json!([])), [agent, side]);
}

#[test]
fn a_proxy_with_its_certificates_reaches_every_container() {
    let proxy = json!({ "proxyConfig": {
        "httpProxy": "http://p:1", "httpsProxy": "http://p:2", "noProxy": ".svc", "caBundle": "Y2VydGlmaWNhdGU=",
    } });
    let work = rendered(&agent(json!([workload("DaemonSet", "node")])), &proxy);
    let pod = pod(&work, 0);
    assert_eq!(
        env(&pod, 1),
        [
            "HTTP_PROXY=http://p:1",
            "http_proxy=http://p:1",
            "HTTPS_PROXY=http://p:2",
            "https_proxy=http://p:2",
            "NO_PROXY=.svc",
            "no_proxy=.svc",
            "CA_BUNDLE_FILE_PATH=/managed/proxy-ca/ca-bundle.crt",
        ]
    );
    assert_eq!(
        pod["containers"][1]["volumeMounts"],
        json!([{ "name": "proxy-ca-bundle", "mountPath": "/managed/proxy-ca" }])
    );
    assert_eq!(
        pod["volumes"][1],
        json!({ "name": "proxy-ca-bundle", "configMap": { "name": "helloworld-proxy-ca" } })
    );
    assert_eq!(
        manifests(&work)[1],
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "helloworld-proxy-ca", "namespace": "open-cluster-management-agent-addon" },
            "data": { "ca-bundle.crt": "certificate" },
        })
    );
    let only_ca = rendered(
        &agent(json!([workload("Deployment", "agent")])),
        &json!({ "proxyConfig": { "caBundle": "Y2VydGlmaWNhdGU=" } }),
    );
    assert_eq!(manifests(&only_ca)[0], workload("Deployment", "agent"), "without a proxy nothing mounts it");
    assert_eq!(manifests(&only_ca).len(), 2);
}

#[test]
fn what_a_deployment_config_cannot_mean_is_named() {
    for (deployment, why) in [
        (json!({ "proxyConfig": { "caBundle": "***" } }), "its proxyConfig.caBundle is not text in base64"),
        (
            json!({ "resourceRequirements": [{ "containerID": "agent", "resources": {} }] }),
            "is not of the form kind:workload:container",
        ),
    ] {
        let mut story = ready(&agent(json!([workload("Deployment", "agent")])), &deployment);
        assert!(works(&story.world.observed, &story).is_empty());
        story.run("show a1");
        assert!(
            story.told.contains(
                "addondeploymentconfigs.addon.open-cluster-management.io default/deploy cannot be used"
            ),
            "{}",
            story.told
        );
        assert!(story.told.contains(why), "{}", story.told);
    }
}

#[test]
fn resources_are_set_by_the_last_rule_that_matches() {
    let of = |cpu: &str| json!({ "requests": { "cpu": cpu } });
    let rules = json!({ "resourceRequirements": [
        { "containerID": "*:*:*", "resources": of("1m") },
        { "containerID": "deployments:*:*", "resources": of("2m") },
        { "containerID": "deployments:agent:side", "resources": of("3m") },
        { "containerID": "statefulsets:*:*", "resources": of("4m") },
    ] });
    let work =
        rendered(&agent(json!([workload("Deployment", "agent"), workload("DaemonSet", "node")])), &rules);
    let resources =
        |at: usize, container: usize| pod(&work, at)["containers"][container]["resources"].clone();
    assert_eq!([resources(0, 0), resources(0, 1), resources(1, 0)], [of("2m"), of("3m"), of("1m")]);
}

#[test]
fn an_install_namespace_moves_everything_that_has_one() {
    let template = agent(json!([
        workload("Deployment", "agent"),
        { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "open-cluster-management-agent-addon" } },
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "agent" },
          "subjects": [{ "kind": "ServiceAccount", "name": "agent", "namespace": "open-cluster-management-agent-addon" }] },
        { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "s", "namespace": "x" }, "data": { "ns": "{{INSTALL_NAMESPACE}}" } },
    ]));
    let work = rendered(&template, &json!({ "agentInstallNamespace": "agents" }));
    let all = manifests(&work);
    assert_eq!(all[0]["metadata"]["namespace"], "agents");
    assert_eq!(all[1]["metadata"]["name"], "agents");
    assert_eq!(
        (&all[2]["subjects"][0]["namespace"], all[2]["metadata"].get("namespace")),
        (&json!("agents"), None)
    );
    assert_eq!(
        (&all[3]["metadata"]["namespace"], &all[3]["data"]["ns"]),
        (&json!("agents"), &json!("agents"))
    );
    // The agent is asked about the object where it is.
    assert_eq!(work["spec"]["manifestConfigs"][0]["resourceIdentifier"]["namespace"], "agents");
    let twins = json!([
        { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "s", "namespace": "x" } },
        { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "s", "namespace": "y" } },
    ]);
    let mut story = ready(&agent(twins), &json!({ "agentInstallNamespace": "agents" }));
    story.run("show a1");
    assert!(story.told.contains("template tpl has ConfigMap agents/s twice"), "{}", story.told);
}

#[test]
fn objects_that_are_to_stay_are_orphaned() {
    let mark = |mut manifest: Value| {
        manifest["metadata"]["annotations"] =
            json!({ "addon.open-cluster-management.io/deletion-orphan": "" });
        manifest
    };
    let stays = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "data" } });
    let policy = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": { "name": "deny", "namespace": "data" } });
    let template = agent(json!([workload("Deployment", "agent"), mark(stays.clone()), mark(policy.clone())]));
    let rules = json!([
        { "group": "", "resource": "namespaces", "name": "data" },
        { "group": "networking.k8s.io", "resource": "networkpolicies", "name": "deny", "namespace": "data" },
    ]);
    let expected = json!({ "propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": { "orphaningRules": rules } });
    assert_eq!(rendered(&template, &json!({}))["spec"]["deleteOption"], expected);
    // What the author asked for stays.
    let mut all = template.clone();
    all["agentSpec"]["deleteOption"] = json!({ "propagationPolicy": "Orphan" });
    assert_eq!(rendered(&all, &json!({}))["spec"]["deleteOption"], json!({ "propagationPolicy": "Orphan" }));
    let mut some = template;
    let first = json!({ "group": "apps", "resource": "deployments", "name": "agent", "namespace": "x" });
    some["agentSpec"]["deleteOption"] = json!({ "propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": { "orphaningRules": [first] }, "ttlSecondsAfterFinished": 5 });
    let merged = rendered(&some, &json!({}))["spec"]["deleteOption"].clone();
    assert_eq!(merged["selectivelyOrphans"]["orphaningRules"].as_array().unwrap().len(), 3);
    assert_eq!(merged["ttlSecondsAfterFinished"], 5);
}
