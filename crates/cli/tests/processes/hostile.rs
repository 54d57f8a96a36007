//! Templates that are small and would take a gigabyte, rendered or parsed: what they cost the
//! manager.

use std::time::Duration;

use aviary_api::ClusterManagementAddOn;
use futures_util::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};

use crate::run::{Hub, Process, start, until_leading};
use crate::transcript::{Desk, desk};

const VERSION: &str = "addon.open-cluster-management.io/v1alpha1";

/// In MB, in addition to the memory of a manager without any add-on.
const MEMORY: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h1_a_template_that_expands_without_end_costs_the_manager_less_than_64_mb() {
    let desk = desk("processes-hostile");
    let victim = Victim::start(&desk, 3).await;
    let hub = &victim.hub;
    let config_map = |number: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}"), "namespace": "default"},
            "data": {"text": "{{V}}".repeat(20_000)}})
    };
    let manifests: Vec<Value> = (0..12).map(config_map).collect();
    hub.put(template("huge", "huge", &manifests)).await;
    hub.put(json!({"apiVersion": VERSION, "kind": "AddOnDeploymentConfig",
        "metadata": {"name": "huge", "namespace": "default"},
        "spec": {"customizedVariables": [{"name": "V", "value": "x".repeat(4096)}]}}))
        .await;
    hub.put(addon(
        "huge",
        &json!([{"group": "addon.open-cluster-management.io",
        "resource": "addondeploymentconfigs", "namespace": "default", "name": "huge"}]),
    ))
    .await;
    until_told(hub, "has more than 400 KiB once it is rendered").await;
    victim.assert_small();
}

/// A proxy is added to every container, and a container may be two bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h1_a_long_proxy_for_many_containers_costs_the_manager_less_than_64_mb() {
    let desk = desk("processes-proxy");
    let victim = Victim::start(&desk, 3).await;
    let hub = &victim.hub;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "wide", "namespace": "default"},
        "spec": {"template": {"spec": {"containers": vec![json!({}); 1000]}}}});
    hub.put(template("wide", "wide", &[deployment])).await;
    hub.put(json!({"apiVersion": VERSION, "kind": "AddOnDeploymentConfig",
        "metadata": {"name": "wide", "namespace": "default"},
        "spec": {"proxyConfig": {"httpProxy": "x".repeat(1 << 20)}}}))
        .await;
    hub.put(addon(
        "wide",
        &json!([{"group": "addon.open-cluster-management.io",
        "resource": "addondeploymentconfigs", "namespace": "default", "name": "wide"}]),
    ))
    .await;
    until_told(hub, "Deployment.apps default/wide has more than 400 KiB").await;
    victim.assert_small();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h1_a_template_of_nothing_but_small_values_costs_the_manager_less_than_64_mb() {
    let desk = desk("processes-dense");
    let victim = Victim::start(&desk, 3).await;
    victim.hub.put(template("dense", "dense", &[dense(170_000)])).await;
    victim.hub.put(addon("dense", &json!([]))).await;
    until_told(&victim.hub, "its content has more than").await;
    // The others go on.
    victim.hub.want("v2.0.0").await;
    victim.hub.until_done(3, "v2.0.0").await;
    victim.assert_small();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h1_a_template_as_dense_as_may_be_on_many_clusters_costs_the_manager_less_than_64_mb() {
    let desk = desk("processes-densest");
    let victim = Victim::start(&desk, 20).await;
    // Near what an API server stores, of which a work takes 400 KiB.
    let padding = |number: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("p{number}"), "namespace": "default"},
            "data": {"text": "x".repeat(300_000)}})
    };
    let manifests = [dense(11_900), padding(1), padding(2), padding(3)];
    victim.hub.put(template("densest", "densest", &manifests)).await;
    victim.hub.put(addon("densest", &json!([]))).await;
    until_told(&victim.hub, "20/20 install completed with no errors.").await;
    // Every edit is another revision, and ten of them are kept.
    let mut edited = template("densest", "densest", &manifests);
    edited["spec"]["version"] = json!("v1.0.1");
    victim.hub.put(edited).await;
    until_told(&victim.hub, "20/20 upgrade completed with no errors.").await;
    victim.assert_small();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h1_many_templates_as_dense_as_may_be_cost_the_manager_less_than_64_mb() {
    let desk = desk("processes-templates");
    let victim = Victim::start(&desk, 3).await;
    // Of 450 KB each.
    let padding = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "padding", "namespace": "default"},
        "data": {"text": "x".repeat(300_000)}});
    for number in 1..=20 {
        let mut one = template("many", &format!("many-{number}"), &[dense(11_900), padding.clone()]);
        one["spec"]["version"] = json!(format!("v{number}.0.0"));
        victim.hub.put(one).await;
    }
    victim.hub.put(addon("many", &json!([]))).await;
    until_told(&victim.hub, "3/3 install completed with no errors.").await;
    victim.assert_small();
}

/// A manager with an add-on on some clusters, and its memory before.
struct Victim {
    hub: Hub,
    manager: Process,
    before: usize,
    _others: [Process; 2],
}

impl Victim {
    async fn start(desk: &Desk, clusters: usize) -> Self {
        let server = start(desk, "hub --ephemeral --listen 127.0.0.1:0 --kubeconfig-out kubeconfig");
        let hub = Hub::of(desk, "kubeconfig").await;
        hub.put_helloworld().await;
        let arguments = "manager --kubeconfig kubeconfig --placement --metrics 127.0.0.1:0 --log warn";
        let manager = start(desk, arguments);
        until_leading(&manager.address("metrics")).await;
        let before = manager.memory("VmRSS");
        let arguments = format!("fleet --clusters {clusters} --latency 0s..0s --kubeconfig kubeconfig");
        let fleet = start(desk, &arguments);
        hub.want("v1.0.0").await;
        hub.until_done(clusters, "v1.0.0").await;
        Self { hub, manager, before, _others: [server, fleet] }
    }

    fn assert_small(self) {
        let (peak, before) = (self.manager.memory("VmHWM"), self.before);
        assert!(peak < before + MEMORY, "{peak} MB at its peak, {before} MB before");
        self.manager.stop("TERM");
    }
}

fn template(addon: &str, name: &str, manifests: &[Value]) -> Value {
    json!({"apiVersion": VERSION, "kind": "AddOnTemplate", "metadata": {"name": name},
        "spec": {"addonName": addon, "version": "v1.0.0", "agentSpec": {"workload": {"manifests": manifests}}}})
}

/// A manifest of this many maps, each of which takes a hundred times the memory of its text.
fn dense(maps: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dense", "namespace": "default"},
        "data": {"all": vec![json!({"a": 1}); maps]}})
}

/// An add-on for all clusters.
fn addon(name: &str, configs: &Value) -> Value {
    json!({"apiVersion": VERSION, "kind": "ClusterManagementAddOn", "metadata": {"name": name},
        "spec": {"installStrategy": {"type": "Placements",
            "placements": [{"name": "all", "namespace": "default", "configs": configs}]}}})
}

/// Waits until the author of the hostile add-on is told.
async fn until_told(hub: &Hub, why: &str) {
    let addons: Api<ClusterManagementAddOn> = Api::all(hub.client.clone());
    let stream = watcher(addons, watcher::Config::default()).default_backoff().applied_objects();
    let told = async {
        let mut stream = std::pin::pin!(stream);
        loop {
            let Some(Ok(addon)) = stream.next().await else { continue };
            if addon.name_any() != "helloworld" && json!(addon.status).to_string().contains(why) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), told).await.expect("its author is told");
}
