//! A large fleet through install, canary upgrade, clusters that join and leave, and rollback, with
//! every plan verified. The manager and the hub are killed on the way.
//!
//! `make test` uses one thousand clusters, `make load` twenty thousand.

#![allow(clippy::print_stdout, reason = "a run of minutes tells where it is")]

use std::future::Future;

use aviary_api::{ClusterManagementAddOn, ManagedCluster, ManagedClusterAddOn};
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};

use crate::run::{GIVE_UP, Hub, get, start, until_leading};
use crate::transcript::desk;

/// The maximum size of an add-on's status, whatever the size of the fleet (invariant S16).
const STATUS: usize = 64 * 1024;
const MANAGER: &str = "manager --kubeconfig hub/kubeconfig --placement --verify --metrics 127.0.0.1:0 --log warn --lease-duration 3";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_of_a_thousand_goes_through_its_life_with_every_plan_verified() {
    life_of(1000, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: make load"]
async fn a_fleet_of_twenty_thousand_goes_through_its_life_with_every_plan_verified() {
    life_of(20_000, 400).await;
}

/// `memory` is the limit for a manager in MB, in addition to its memory without any add-on. A
/// verified plan has copies of the fleet.
async fn life_of(clusters: usize, memory: usize) {
    let (canary, churn) = (clusters / 10, clusters / 100);
    let desk = desk(&format!("processes-load-{clusters}"));
    let process = start(&desk, "hub --data-dir hub --listen 127.0.0.1:0");
    let address = process.address("Hub listening on").trim_start_matches("https://").to_owned();
    let hub = Hub::of(&desk, "hub/kubeconfig").await;
    hub.put_helloworld().await;
    hub.put(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "canary", "namespace": "default"},
        "spec": {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"canary": "yes"}}}}]},
    }))
    .await;
    let manager = start(&desk, MANAGER);
    until_leading(&manager.address("metrics")).await;
    let before = manager.memory("VmRSS");
    let fleet = |arguments: &str| {
        start(&desk, &format!("fleet --latency 0s..0s --kubeconfig hub/kubeconfig {arguments}"))
    };
    let main = clusters - canary;
    let _main = fleet(&format!("--prefix main --clusters {main}"));
    let _canary = fleet(&format!("--prefix canary --clusters {canary} --label canary=yes"));

    stage("install", want(&hub, "v1.0.0")).await;
    until_everywhere(&hub, clusters, "v1.0.0").await;

    // The manager is killed during the canary, the hub during the rest.
    stage("upgrade", want(&hub, "v2.0.0")).await;
    until_progress(&hub, "canary", |message| done(message) > canary / 4).await;
    let peak = manager.memory("VmHWM");
    manager.kill();
    let manager = start(&desk, MANAGER);
    until_progress(&hub, "all", |message| done(message) > main / 4 && message.contains("upgrad")).await;
    process.kill();
    let process = start(&desk, &format!("hub --data-dir hub --listen {address}"));
    until_everywhere(&hub, clusters, "v2.0.0").await;

    // One in a hundred clusters leaves, and as many join.
    let registered: Api<ManagedCluster> = Api::all(hub.client.clone());
    let all = registered.list_metadata(&ListParams::default()).await.unwrap();
    let going = all.iter().map(ResourceExt::name_any).filter(|name| name.starts_with("main-")).take(churn);
    let going: Vec<String> = going.collect();
    assert_eq!(going.len(), churn);
    stage(
        "churn",
        stream::iter(going).for_each_concurrent(16, |name| {
            let registered = registered.clone();
            async move {
                registered.delete(&name, &DeleteParams::default()).await.unwrap();
            }
        }),
    )
    .await;
    let _late = fleet(&format!("--prefix late --clusters {churn}"));
    until_everywhere(&hub, clusters, "v2.0.0").await;

    // A rollback, as an operator would do it.
    stage("rollback", async {
        let undone = desk.output("rollout undo helloworld --kubeconfig hub/kubeconfig");
        assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
    })
    .await;
    until_everywhere(&hub, clusters, "v1.0.0").await;

    let metrics = get(&manager.address("metrics"), "/metrics", None).await.1;
    let frozen: Vec<&str> = metrics.lines().filter(|line| line.starts_with("aviary_addon_frozen{")).collect();
    assert!(!frozen.is_empty() && frozen.iter().all(|line| line.ends_with(" 0")), "{frozen:?}");
    let broken: Vec<String> = Api::<Event>::all(hub.client.clone())
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some("InvariantBroken"))
        .map(|event| event.message.unwrap_or_default())
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
    let addon = Api::<ClusterManagementAddOn>::all(hub.client.clone()).get("helloworld").await.unwrap();
    let size = json!(addon.status).to_string().len();
    assert!(size < STATUS, "the status has {size} bytes");
    let peak = peak.max(manager.memory("VmHWM"));
    println!(
        "{clusters} clusters: {before} MB at first, {peak} MB at most; the add-on's status has {size} bytes"
    );
    assert!(peak <= before + memory, "{peak} MB at most, {before} MB before");

    // Everything is at rest.
    manager.stop("TERM");
    let objects = hub.versions().await;
    let manager = start(&desk, MANAGER);
    until_leading(&manager.address("metrics")).await;
    manager.stop("TERM");
    assert!(hub.versions().await == objects, "a restart changed something");
    process.stop("TERM");
}

/// Prints the current stage, to show where a run timed out.
async fn stage(name: &str, doing: impl Future<Output = ()>) {
    println!("{name}");
    doing.await;
}

/// Sets the version of every cluster, a tenth at a time, canaries first.
async fn want(hub: &Hub, version: &str) {
    let limit = json!("10%");
    let placement = |name: &str, rollout: Value| json!({"name": name, "namespace": "default", "addonTemplate": {"desiredVersion": version}, "rolloutStrategy": rollout});
    let behind =
        json!({"placement": {"name": "canary", "namespace": "default"}, "maxConcurrentlyUpdating": limit});
    hub.put(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "helloworld"},
        "spec": {"installStrategy": {"type": "Placements", "placements": [
            placement("all", json!({"type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": behind})),
            placement("canary", json!({"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": limit}})),
        ]}},
    }))
    .await;
}

/// The count in a message such as "12/90 upgrading...".
fn done(message: &str) -> usize {
    message.split('/').next().and_then(|count| count.parse().ok()).unwrap_or_default()
}

/// Waits until the message of a placement satisfies a condition.
async fn until_progress(hub: &Hub, placement: &str, is: impl Fn(&str) -> bool) {
    let addons: Api<ClusterManagementAddOn> = Api::all(hub.client.clone());
    let mut stream =
        std::pin::pin!(watcher(addons, watcher::Config::default()).default_backoff().applied_objects());
    let mut last = String::new();
    let wait = async {
        loop {
            // A dropped watch is resumed.
            let Some(Ok(addon)) = stream.next().await else { continue };
            let status = json!(addon.status);
            let progressions = status["installProgression"].as_array().cloned().unwrap_or_default();
            let found = progressions.iter().find(|progression| progression["name"] == placement);
            let message =
                found.and_then(|found| found["conditions"][0]["message"].as_str()).unwrap_or_default();
            if is(message) {
                return;
            }
            message.clone_into(&mut last);
        }
    };
    let waited = tokio::time::timeout(GIVE_UP, wait).await;
    assert!(waited.is_ok(), "{placement} says {last:?}");
}

/// Waits until every placement reports completion, and this many instances have the version.
async fn until_everywhere(hub: &Hub, clusters: usize, version: &str) {
    let instances = Api::<ManagedClusterAddOn>::all(hub.client.clone());
    let stream = watcher(instances, watcher::Config::default()).default_backoff();
    let mut stream = std::pin::pin!(stream);
    let mut have = std::collections::BTreeSet::new();
    let wait = async {
        let mut listed = false;
        while !listed || have.len() != clusters {
            match stream.next().await {
                Some(Ok(watcher::Event::Init)) => have.clear(),
                Some(Ok(watcher::Event::InitDone)) => listed = true,
                Some(Ok(watcher::Event::InitApply(instance) | watcher::Event::Apply(instance))) => {
                    let name = instance.namespace().unwrap_or_default();
                    if json!(instance.status)["currentVersion"] == version {
                        have.insert(name);
                    } else {
                        have.remove(&name);
                    }
                }
                Some(Ok(watcher::Event::Delete(instance))) => {
                    have.remove(&instance.namespace().unwrap_or_default());
                }
                Some(Err(_)) | None => {}
            }
        }
    };
    let waited = tokio::time::timeout(GIVE_UP, wait).await;
    assert!(waited.is_ok(), "{} of {clusters} have {version}", have.len());
    for placement in ["all", "canary"] {
        until_progress(hub, placement, |message| message.contains("completed")).await;
    }
}
