//! The Helm chart has the same objects as `aviary manifests`, and can be installed and uninstalled.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::server::{NAMESPACE, Server, helm, installed};
use crate::transcript::plain_numbers;

const CHART: &str = "aviary deploy/helm/aviary";

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
        printed.remove(&format!("Namespace {NAMESPACE} ")).unwrap();
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
    same(&server, "--set flavor=ocm,image=other:1", "--flavor ocm --image other:1");
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
        11,
        "{left}"
    );
    server.install();
}
