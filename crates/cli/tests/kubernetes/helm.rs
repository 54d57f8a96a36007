//! The Helm chart has the same objects as `aviary manifests`, and can be installed and uninstalled.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::server::{NAMESPACE, Server, helm, installed};
use crate::transcript::plain_numbers;

const CHART: &str = "aviary deploy/helm/aviary";

/// Labels that only objects of a chart have.
const LABELS: [&str; 5] = [
    "helm.sh/chart",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
];

/// Objects by kind and name, without Helm's additions.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let mut named = BTreeMap::new();
    for mut object in objects.into_iter().filter(|object| !object.is_null()) {
        plain_numbers(&mut object);
        let metadata = object["metadata"].as_object_mut().unwrap();
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove("helm.sh/resource-policy");
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            labels.retain(|name, _| !LABELS.contains(&name.as_str()));
        }
        let name =
            format!("{} {}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let twice = named.insert(format!("{name} {namespace}"), object);
        assert!(twice.is_none(), "{name} is there twice");
    }
    named
}

fn same(server: &Server, values: &str, flags: &str) {
    let templated =
        helm(server, &format!("template {CHART} --kube-version 1.35.0 --namespace {NAMESPACE} {values}"));
    let templated = by_name(serde_saphyr::from_multiple(&templated).unwrap());
    let printed: Value = serde_json::from_str(&server.aviary(&format!("manifests -o json {flags}"))).unwrap();
    let mut printed = by_name(printed["items"].as_array().unwrap().clone());
    if !values.contains("namespace.create=true") {
        // An OCM hub has it already.
        let has_namespace = printed.remove(&format!("Namespace {NAMESPACE} ")).is_some();
        assert_eq!(has_namespace, !flags.contains("--flavor ocm"), "{flags}");
    }
    let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&templated), names(&printed), "{values}");
    for (name, object) in &printed {
        assert!(templated[name] == *object, "{name} differs with {values}");
    }
}

#[test]
fn the_chart_says_what_the_command_says() {
    let server = installed("helm-template");
    same(&server, "", "");
    same(&server, "--set namespace.create=true", "");
    same(
        &server,
        "--set flavor=ocm,image.registry=birds.example.org/,image.repository=other,image.tag=v1",
        "--flavor ocm --image birds.example.org/other:v1",
    );
    same(
        &server,
        "--set dashboard.enabled=true,dashboard.host=birds.example.org,monitoring.runbookUrl=https://birds.example.org/ops",
        "--dashboard-host birds.example.org --runbook-url https://birds.example.org/ops",
    );
    same(&server, "--set monitoring.enabled=false", "--without monitoring");
    same(&server, "--set registration.enabled=true", "--with registration");
    let signer = "registration.signers[0].name=example.com/a,registration.signers[0].secret.namespace=ns,registration.signers[0].secret.name=ca";
    let listed = helm(
        &server,
        &format!(
            "template {CHART} --kube-version 1.35.0 --namespace {NAMESPACE} --set registration.enabled=true,registration.tokens=true --set 'registration.clusterRoles={{reader}}' --set '{signer}'"
        ),
    );
    for part in [
        "- \"--signer=example.com/a=ns/ca\"\n",
        "- --tokens\n",
        "resourceNames: [\"reader\"]\n",
        "resourceNames: [\"example.com/a\"]\n",
        "resourceNames: [\"ca\"]\n",
        "the registration may not request tokens",
    ] {
        assert!(listed.contains(part), "no {part:?} in {listed}");
    }
    let with_more = helm(
        &server,
        &format!(
            "template {CHART} --kube-version 1.35.0 --namespace {NAMESPACE} --set replicas=3 --set 'extraArgs={{--verify,--history-limit=5}}'"
        ),
    );
    for part in ["replicas: 3\n", "- \"--verify\"\n", "- \"--history-limit=5\"\n"] {
        assert!(with_more.contains(part), "no {part:?} in {with_more}");
    }
}

/// Where pods run, how their image is found, and how Prometheus finds us, for production.
#[test]
fn the_values_of_a_production_hub_reach_the_objects() {
    let server = installed("helm-values");
    let digest = format!("sha256:{}", "0".repeat(64));
    let values = format!(
        r#"{{"global": {{"imageRegistry": "birds.example.org/mirror"}},
        "image": {{"registry": "not.used", "digest": "{digest}", "pullPolicy": "Always"}},
        "imagePullSecrets": [{{"name": "pull"}}], "nodeSelector": {{"pool": "infra"}},
        "tolerations": [{{"key": "infra", "operator": "Exists"}}],
        "affinity": {{"nodeAffinity": {{}}}}, "priorityClassName": "system-cluster-critical",
        "commonLabels": {{"team": "fleet"}}, "podLabels": {{"cost": "fleet"}},
        "monitoring": {{"labels": {{"release": "prometheus"}}, "interval": "1m"}},
        "dashboard": {{"enabled": true, "enableWrites": true, "tlsSecret": "wildcard",
        "ingress": {{"className": "nginx", "annotations": {{"a.example/b": "c"}}}}}}}}"#
    );
    std::fs::write(server.desk.path("values.json"), values).unwrap();
    let file = server.desk.path("values.json");
    let command =
        format!("template {CHART} --kube-version 1.35.0 --namespace {NAMESPACE} -f {}", file.display());
    let objects: Vec<Value> = serde_saphyr::from_multiple(&helm(&server, &command)).unwrap();
    let of = |kind: &str, name: &str| {
        let is = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        objects.iter().find(is).unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    for name in ["aviary-manager", "aviary-dashboard"] {
        let template = &of("Deployment", name)["spec"]["template"];
        assert_eq!(template["metadata"]["labels"]["cost"], "fleet");
        let pod = &template["spec"];
        let container = &pod["containers"][0];
        assert_eq!(container["image"], format!("birds.example.org/mirror/aviary@{digest}"));
        assert_eq!(
            (&container["imagePullPolicy"], &pod["priorityClassName"]),
            (&"Always".into(), &"system-cluster-critical".into())
        );
        assert_eq!(
            (&pod["imagePullSecrets"][0]["name"], &pod["nodeSelector"]["pool"]),
            (&"pull".into(), &"infra".into())
        );
        assert_eq!(
            (&pod["tolerations"][0]["key"], pod["affinity"]["nodeAffinity"].is_object()),
            (&"infra".into(), true)
        );
    }
    for kind in ["ServiceMonitor", "PrometheusRule"] {
        assert_eq!(of(kind, "aviary-manager")["metadata"]["labels"]["release"], "prometheus");
    }
    assert_eq!(of("ServiceMonitor", "aviary-manager")["spec"]["endpoints"][0]["interval"], "1m");
    let dashboard = &of("Deployment", "aviary-dashboard")["spec"]["template"]["spec"];
    assert!(dashboard["containers"][0]["args"].as_array().unwrap().contains(&"--enable-writes".into()));
    assert_eq!(dashboard["volumes"][0]["secret"]["secretName"], "wildcard");
    let ingress = of("Ingress", "aviary-dashboard");
    assert_eq!(
        (&ingress["spec"]["ingressClassName"], &ingress["spec"]["tls"][0]["secretName"]),
        (&"nginx".into(), &"wildcard".into())
    );
    assert_eq!(ingress["metadata"]["annotations"]["a.example/b"], "c");
    for object in
        objects.iter().filter(|object| !object.is_null() && object["kind"] != "CustomResourceDefinition")
    {
        let labels = &object["metadata"]["labels"];
        for label in LABELS {
            assert!(labels[label].is_string(), "{} has no {label}", object["metadata"]["name"]);
        }
        assert_eq!((&labels["team"], &labels["app.kubernetes.io/name"]), (&"fleet".into(), &"aviary".into()));
    }
}

#[test]
fn the_chart_installs_and_leaves_the_definitions_when_it_goes() {
    let server = installed("helm-install");
    // Helm takes over what kubectl has applied.
    let told = helm(&server, &format!("upgrade --install {CHART} --namespace {NAMESPACE} --take-ownership"));
    assert!(told.contains("STATUS: deployed"), "{told}");
    helm(&server, &format!("uninstall aviary --namespace {NAMESPACE}"));
    assert_eq!(server.kubectl("get clusterrole aviary-manager --ignore-not-found", b""), "");
    let left = server.kubectl("get crd -o name", b"");
    assert_eq!(
        left.lines().filter(|line| line.ends_with("open-cluster-management.io")).count(),
        aviary_api::crds::all().len(),
        "{left}"
    );
    server.install();
}
