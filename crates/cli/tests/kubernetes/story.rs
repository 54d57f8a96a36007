//! A canary rollout on a real server: two managers as processes, with the shipped arguments and
//! roles, and a simulated fleet.

use std::fs;

use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use futures_util::StreamExt as _;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, watcher};
use serde_json::{Value, json};

use crate::run::{GIVE_UP, Hub, Process, get, start, until_ready};
use crate::server::{NAMESPACE, Server, installed, root};

const FLEET: usize = 40;
const CANARIES: usize = 10;

/// A manager as in the Deployment, except for the addresses: here two run on one machine.
fn manager(server: &Server, kubeconfig: &str) -> Process {
    let deployment = server.get(&format!("deployment aviary-manager -n {NAMESPACE}"));
    let arguments: Vec<String> = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|argument| argument.as_str().unwrap().replace("$(POD_NAMESPACE)", NAMESPACE))
        .map(|argument| argument.replace(":8443", ":0").replace("0.0.0.0:8081", "127.0.0.1:0"))
        .collect();
    assert!(arguments.contains(&"--placement".to_owned()), "{arguments:?}");
    start(&server.desk, &format!("{} --kubeconfig {kubeconfig} --verify --log warn", arguments.join(" ")))
}

/// The objects of `examples/canary`, and a version that no cluster can apply.
fn example() -> Vec<Value> {
    let mut objects = Vec::new();
    for file in ["placements", "configs", "templates"] {
        let text = fs::read_to_string(root().join("examples/canary").join(format!("{file}.yaml"))).unwrap();
        objects.extend(serde_saphyr::from_multiple::<Value>(&text).unwrap());
    }
    let named = |name: &str| objects.iter().find(|one| one["metadata"]["name"] == name).unwrap().clone();
    let (mut template, mut config) = (named("helloworld-v0.11.0"), named("hub-config-yyy"));
    template["metadata"]["name"] = "helloworld-v0.12.0".into();
    template["spec"]["version"] = "v0.12.0".into();
    config["metadata"]["name"] = "hub-config-zzz".into();
    config["spec"]["desiredVersion"] = "v0.12.0".into();
    objects.extend([template, config]);
    objects
}

/// The add-on of the example, with a config for both placements and without soaking.
fn addon(config: &str) -> Value {
    let text = fs::read_to_string(root().join("examples/canary/addon.yaml")).unwrap();
    let mut addon: Value = serde_saphyr::from_str(&text.replace("hub-config-yyy", config)).unwrap();
    let canary = &mut addon["spec"]["installStrategy"]["placements"][1]["rolloutStrategy"];
    canary.as_object_mut().unwrap().remove("minSuccessTime");
    addon
}

/// Waits until a placement of an add-on has this message.
async fn until_told(client: &Client, addon: &str, placement: &str, message: &str) {
    let addons: Api<ClusterManagementAddOn> = Api::all(client.clone());
    let named = Config::default().fields(&format!("metadata.name={addon}"));
    let mut last = Value::Null;
    let wait = async {
        let mut changes = std::pin::pin!(watcher(addons, named).default_backoff().applied_objects());
        while let Some(change) = changes.next().await {
            let Ok(addon) = change else { continue };
            last = json!(addon.status);
            let told = last["installProgression"].as_array().into_iter().flatten().any(|progress| {
                progress["name"] == placement
                    && progress["conditions"][0]["message"]
                        .as_str()
                        .is_some_and(|said| said.starts_with(message))
            });
            if told {
                return;
            }
        }
    };
    if tokio::time::timeout(GIVE_UP, wait).await.is_err() {
        panic!("{placement} does not say {message:?}, but {last:#}");
    }
}

async fn until_both(client: &Client, what: &str) {
    until_told(client, "helloworld", "canary-placement", &format!("{CANARIES}/{CANARIES} {what}")).await;
    until_told(client, "helloworld", "aws-placement", &format!("{FLEET}/{FLEET} {what}")).await;
}

/// How many instances are assigned a version, and how many run it.
async fn versions(client: &Client, version: &str) -> (usize, usize) {
    let instances: Api<ManagedClusterAddOn> = Api::all(client.clone());
    let all = instances.list(&ListParams::default().fields("metadata.name=helloworld")).await.unwrap().items;
    let with = |field: &str| all.iter().filter(|one| json!(one.status)[field] == version).count();
    (with("desiredVersion"), with("currentVersion"))
}

/// Waits until every instance reports that it runs a version: the add-on may report it slightly
/// earlier.
async fn until_all_run(client: &Client, version: &str) {
    let instances: Api<ManagedClusterAddOn> = Api::all(client.clone());
    let mut changes = std::pin::pin!(watcher(instances, Config::default()).default_backoff());
    let wait = async {
        while versions(client, version).await != (FLEET + CANARIES, FLEET + CANARIES) {
            changes.next().await;
        }
    };
    if tokio::time::timeout(GIVE_UP, wait).await.is_err() {
        panic!("{version} is not everywhere: {:?}", versions(client, version).await);
    }
}

async fn put_all(hub: &Hub, objects: Vec<Value>) {
    for object in objects {
        hub.put(object).await;
    }
}

/// Removes the clusters and everything else.
fn clean(server: &Server) {
    server.kubectl("delete clustermanagementaddons --all", b"");
    server.aviary("fleet --remove --kubeconfig admin.kubeconfig");
    for kind in ["addontemplates", "addonhubconfigs"] {
        server.kubectl(&format!("delete {kind} --all"), b"");
    }
    server.kubectl("delete placements,placementdecisions,addondeploymentconfigs --all -A", b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_rollout_a_bad_version_and_the_way_back_with_the_rights_that_are_shipped() {
    let server = installed("story");
    let hub = server.hub().await;
    let client = hub.client.clone();
    let kubeconfig = server.kubeconfig_of(NAMESPACE, "aviary-manager");
    let first = manager(&server, &kubeconfig);
    let second = manager(&server, &kubeconfig);
    until_ready(&first.address("health")).await;
    until_ready(&second.address("health")).await;
    let fleet = start(
        &server.desk,
        &format!(
            "fleet --clusters {} --label cloud=aws --label stage=canary:20% --latency 20ms..200ms --fail-version v0.12.0 --failure refuses --kubeconfig admin.kubeconfig",
            FLEET + CANARIES
        ),
    );
    put_all(&hub, example()).await;

    hub.put(addon("hub-config-xxx")).await;
    until_both(&client, "install completed with no errors.").await;
    until_all_run(&client, "v0.10.0").await;

    // The canary goes first, and one manager is stopped in the middle.
    hub.put(addon("hub-config-yyy")).await;
    until_told(&client, "helloworld", "aws-placement", "waitingForCanary...").await;
    first.stop("TERM");
    until_both(&client, "upgrade completed with no errors.").await;
    until_all_run(&client, "v0.11.0").await;

    // A version that fails everywhere stops at the canary's budget.
    hub.put(addon("hub-config-zzz")).await;
    until_told(&client, "helloworld", "canary-placement", "3/10 upgrade failed").await;
    assert_eq!(versions(&client, "v0.12.0").await, (3, 0), "a quarter of ten canaries");
    assert_eq!(versions(&client, "v0.11.0").await.0, FLEET + CANARIES - 3);

    // An operator sees why, and rolls back.
    let operator = server.account_with("aviary-operator");
    let told = server.desk.output(&format!("explain helloworld --kubeconfig {operator}"));
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("canary"), "{told}");
    let undone = server.desk.run(&format!("rollout undo helloworld --kubeconfig {operator}"));
    assert!(!undone.contains("exit"), "{undone}");
    until_both(&client, "upgrade completed with no errors.").await;
    until_all_run(&client, "v0.11.0").await;
    let status = server.desk.run(&format!("status helloworld --kubeconfig {operator}"));
    assert!(!status.contains("exit"), "{status}");

    // Events are in the expected namespace.
    let events = server.kubectl("get events -n default -o json", b"");
    for reason in ["RolloutStarted", "CanaryPassed", "RolloutCompleted"] {
        assert!(events.contains(reason), "no {reason}");
    }
    metrics_are_for_those_who_are_let(&server, &second).await;
    server.kubectl("delete clustermanagementaddon helloworld", b"");
    server.until("everything of the add-on to go", || {
        let left =
            server.kubectl("get managedclusteraddons,manifestworks,controllerrevisions -A -o name", b"");
        left.trim().is_empty()
    });
    second.stop("TERM");
    fleet.stop("TERM");
    clean(&server);
}

async fn metrics_are_for_those_who_are_let(server: &Server, manager: &Process) {
    let base = manager.address("metrics");
    let token = |kubeconfig: &str| {
        let text = fs::read_to_string(server.desk.path(kubeconfig)).unwrap();
        text.split("token: ").nth(1).unwrap().trim_end().trim_end_matches(['}', ']']).to_owned()
    };
    let (code, text) =
        get(&base, "/metrics", Some(&token(&server.account_with("aviary-metrics-reader")))).await;
    assert_eq!(code, 200, "{text}");
    assert!(text.contains("aviary_leader 1\n"), "{text}");
    // By now every metric that the alerts and the dashboard use has been exported. Metrics about
    // problems have at least their type.
    let is_told = |line: &str, name: &str| {
        line.split(['{', ' ']).next() == Some(name)
            || line.strip_prefix("# TYPE ").is_some_and(|of| of.starts_with(name))
    };
    let looked_at = server.aviary("manifests -o json");
    let words = looked_at.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    for name in words.filter(|word| word.starts_with("aviary_")) {
        assert!(text.lines().any(|line| is_told(line, name)), "{name} is not told: {text}");
    }
    assert_eq!(get(&base, "/metrics", Some(&token(&server.account_with("aviary-view")))).await.0, 403);
    assert_eq!(get(&base, "/metrics", None).await.0, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_of_config_that_the_manager_may_not_read_is_one_add_ons_problem_and_heals_with_a_role() {
    let server = installed("forbidden");
    let hub = server.hub().await;
    let client = hub.client.clone();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "tales.story.example.com"},
        "spec": {
            "group": "story.example.com", "scope": "Cluster", "names": {"plural": "tales", "kind": "Tale"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    hub.put(definition).await;
    server.kubectl("wait --for=condition=Established crd/tales.story.example.com", b"");
    let kubeconfig = server.kubeconfig_of(NAMESPACE, "aviary-manager");
    let manager = manager(&server, &kubeconfig);
    until_ready(&manager.address("health")).await;
    let fleet = start(
        &server.desk,
        "fleet --clusters 4 --label cloud=aws --latency 20ms..50ms --kubeconfig admin.kubeconfig",
    );
    hub.put_helloworld().await;
    hub.put(json!({"apiVersion": "story.example.com/v1", "kind": "Tale", "metadata": {"name": "one"}, "spec": {}})).await;

    // One add-on references a kind that the manager may not read, and another one Secrets.
    for (name, group, resource) in [("teller", "story.example.com", "tales"), ("thief", "", "secrets")] {
        let namespace = (resource == "secrets").then_some("kube-system");
        let config = json!({"group": group, "resource": resource, "namespace": namespace, "name": "one"});
        let template = json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate", "metadata": {"name": name},
            "spec": {"addonName": name, "version": "v1.0.0", "agentSpec": {"workload": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}},
            ]}}},
        });
        hub.put(template).await;
        hub.put(json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn", "metadata": {"name": name},
            "spec": {
                "supportedConfigs": [{"group": group, "resource": resource}],
                "installStrategy": {"type": "Placements", "placements": [{"name": "all", "namespace": "default", "configs": [config]}]},
            },
        }))
        .await;
    }
    hub.want("v1.0.0").await;
    hub.until_done(4, "v1.0.0").await;
    let says = |addon: &str, what: &str| {
        server.get(&format!("clustermanagementaddon {addon}"))["status"].to_string().contains(what)
    };
    server.until("what teller lacks", || says("teller", "the hub does not let the manager read"));
    server.until("what thief may not have", || says("thief", "a Secret cannot be a config"));

    server.kubectl(
        "apply -f -",
        b"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: aviary-config-kinds-tales
  labels: {addon.open-cluster-management.io/aggregate-to-config-kinds: 'true'}
rules:
- {apiGroups: [story.example.com], resources: [tales], verbs: [list, watch]}
",
    );
    until_told(&client, "teller", "all", "4/4 install completed with no errors.").await;
    assert!(says("thief", "a Secret cannot be a config"), "nobody has let it");
    manager.stop("TERM");
    fleet.stop("TERM");
    server.kubectl("delete clusterrole aviary-config-kinds-tales", b"");
    clean(&server);
    server.kubectl("delete crd tales.story.example.com", b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_and_decisions_that_are_too_many_are_deleted() {
    const CLUSTERS: usize = 4;
    let server = installed("surplus");
    let hub = server.hub().await;
    let manager = manager(&server, &server.kubeconfig_of(NAMESPACE, "aviary-manager"));
    until_ready(&manager.address("health")).await;
    let fleet = start(
        &server.desk,
        &format!("fleet --clusters {CLUSTERS} --latency 20ms..50ms --kubeconfig admin.kubeconfig"),
    );
    hub.put_helloworld().await;
    // More than one work can hold: two for each cluster.
    let large = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
            "data": {"text": "x".repeat(300 * 1024)},
        })
    };
    hub.put(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate", "metadata": {"name": "helloworld-large"},
        "spec": {"addonName": "helloworld", "version": "v0.9.0", "agentSpec": {"workload": {"manifests": [large("one"), large("two")]}}},
    }))
    .await;
    // A group for each cluster, and therefore as many decisions.
    let placement = |groups: Value| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "all", "namespace": "default"}, "spec": {"decisionStrategy": groups},
        })
    };
    let count = |what: &str| server.kubectl(&format!("get {what} -A -o name"), b"").lines().count();
    hub.put(placement(json!({"groupStrategy": {"clustersPerDecisionGroup": 1}}))).await;
    hub.want("v0.9.0").await;
    hub.until_done(CLUSTERS, "v0.9.0").await;
    assert_eq!(count("manifestworks"), 2 * CLUSTERS);
    server.until("a decision for each group", || count("placementdecisions") == CLUSTERS);

    hub.want("v1.0.0").await;
    hub.until_done(CLUSTERS, "v1.0.0").await;
    server.until("one work for each cluster", || count("manifestworks") == CLUSTERS);
    hub.put(placement(Value::Null)).await;
    server.until("one decision for all", || count("placementdecisions") == 1);
    manager.stop("TERM");
    fleet.stop("TERM");
    clean(&server);
}
