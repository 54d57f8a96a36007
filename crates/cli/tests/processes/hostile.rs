//! A template that is small and would render to a gigabyte: what it costs the manager.

use std::time::Duration;

use aviary_api::ClusterManagementAddOn;
use futures_util::StreamExt as _;
use kube::api::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};

use crate::run::{Hub, start, until_leading};
use crate::transcript::desk;

/// In MB, in addition to the memory of a manager without any add-on.
const MEMORY: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h1_a_template_that_expands_without_end_costs_the_manager_less_than_64_mb() {
    let desk = desk("processes-hostile");
    let _hub = start(&desk, "hub --ephemeral --listen 127.0.0.1:0 --kubeconfig-out kubeconfig");
    let hub = Hub::of(&desk, "kubeconfig").await;
    hub.put_helloworld().await;
    let arguments = "manager --kubeconfig kubeconfig --placement --metrics 127.0.0.1:0 --log warn";
    let manager = start(&desk, arguments);
    until_leading(&manager.address("metrics")).await;
    let before = manager.memory("VmRSS");
    let _fleet = start(&desk, "fleet --clusters 3 --latency 0s..0s --kubeconfig kubeconfig");
    hub.want("v1.0.0").await;
    hub.until_done(3, "v1.0.0").await;
    let config_map = |number: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}"), "namespace": "default"},
            "data": {"text": "{{V}}".repeat(20_000)}})
    };
    let manifests: Vec<Value> = (0..12).map(config_map).collect();
    let version = "addon.open-cluster-management.io/v1alpha1";
    hub.put(json!({"apiVersion": version, "kind": "AddOnTemplate", "metadata": {"name": "huge"},
        "spec": {"addonName": "huge", "version": "v1.0.0", "agentSpec": {"workload": {"manifests": manifests}}}}))
        .await;
    hub.put(json!({"apiVersion": version, "kind": "AddOnDeploymentConfig",
        "metadata": {"name": "huge", "namespace": "default"},
        "spec": {"customizedVariables": [{"name": "V", "value": "x".repeat(4096)}]}}))
        .await;
    hub.put(json!({"apiVersion": version, "kind": "ClusterManagementAddOn", "metadata": {"name": "huge"},
    "spec": {"installStrategy": {"type": "Placements", "placements": [{
        "name": "all", "namespace": "default",
        "configs": [{"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
            "namespace": "default", "name": "huge"}],
    }]}}}))
    .await;
    until_told(&hub, "has more than 400 KiB after its variables are filled in").await;
    let peak = manager.memory("VmHWM");
    assert!(peak < before + MEMORY, "{peak} MB at its peak, {before} MB before");
    manager.stop("TERM");
}

/// Waits until the author of `huge` is told.
async fn until_told(hub: &Hub, why: &str) {
    let addons: Api<ClusterManagementAddOn> = Api::all(hub.client.clone());
    let stream = watcher(addons, watcher::Config::default()).default_backoff().applied_objects();
    let told = async {
        let mut stream = std::pin::pin!(stream);
        loop {
            let Some(Ok(addon)) = stream.next().await else { continue };
            if json!(addon.status).to_string().contains(why) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), told).await.expect("its author is told");
}
