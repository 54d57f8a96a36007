//! Twenty thousand clusters: events stay small, and there are no requests per cluster.

use std::sync::atomic::Ordering;

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

use crate::world::{ADDONS, World, addon, apply, hub, hub_config, put, rows, template, told};

const CLUSTERS: usize = 20_000;
/// The number of clusters in one PlacementDecision.
const DECIDED: usize = 100;

fn name(number: usize) -> String {
    format!("cluster-{number:05}")
}

fn instance(number: usize) -> Value {
    json!({
        "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ManagedClusterAddOn",
        "metadata": {"name": "helloworld", "namespace": name(number)}, "spec": {},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_clusters_are_cheap_to_tell() {
    let hub = hub().await;
    let client = hub.client();
    let version = "cluster.open-cluster-management.io/v1beta1";
    let clusters = (0..CLUSTERS).map(|number| {
        json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name(number)}, "spec": {"hubAcceptsClient": true}})
    });
    let decisions = (0..CLUSTERS / DECIDED).map(|part| {
        let decided: Vec<Value> = (part * DECIDED..(part + 1) * DECIDED)
            .map(|number| json!({"clusterName": name(number), "reason": ""}))
            .collect();
        json!({"apiVersion": version, "kind": "PlacementDecision",
            "metadata": {"name": format!("fleet-{part}"), "namespace": "default",
                "labels": {"cluster.open-cluster-management.io/placement": "fleet"}},
            "status": {"decisions": decided}})
    });
    let canary = json!({"apiVersion": version, "kind": "Placement", "metadata": {"name": "canary", "namespace": "default"},
        "spec": {}, "status": {"numberOfSelectedClusters": 0}});
    let mut fleet = canary.clone();
    fleet["metadata"]["name"] = json!("fleet");
    fleet["status"]["numberOfSelectedClusters"] = json!(CLUSTERS);
    let ten = (0..10).map(
        |number| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name(number * 1999)}}),
    );
    let others = [canary, fleet, template("v1.0.0"), hub_config("v1.0.0"), addon("v1.0.0")];
    stream::iter(clusters.chain(decisions).chain(ten).chain(others))
        .for_each_concurrent(64, |object| put(&client, object))
        .await;

    let world = World::over(hub, false).await;
    let looked = world.requests.load(Ordering::Relaxed);
    // Lists have pages of five hundred, and everything is listed twice: once to read and once to
    // start watching.
    assert!(looked < 2 * (CLUSTERS / 500) + 60, "{looked} requests for {CLUSTERS} clusters");

    let mut stream = world.stream("/api/stream?addon=helloworld").await;
    let first = stream.next().await;
    assert_eq!(first.data["clusters"]["name"].as_array().unwrap().len(), CLUSTERS);
    assert!(first.size < 32 * CLUSTERS, "{} bytes for {CLUSTERS} clusters", first.size);
    let mut state = Value::Null;
    apply(&mut state, &first);

    for number in 0..10 {
        world.put(instance(number * 1999)).await;
    }
    let mut sizes = Vec::new();
    let told_it = |state: &Value| {
        state["reasons"]
            .as_array()
            .unwrap()
            .iter()
            .any(|reason| reason["code"] == "NotStarted" && reason["count"] == 10)
    };
    while !told_it(&state) {
        let event = stream.next().await;
        assert_eq!(event.name, "addon-delta", "the whole again");
        sizes.push(event.size);
        apply(&mut state, &event);
    }
    assert!(sizes.iter().sum::<usize>() < 16 << 10, "{sizes:?} bytes for ten clusters");
    assert!(sizes.iter().all(|size| *size < 4 << 10), "{sizes:?} bytes");
    let moved = rows(&state).iter().filter(|row| row.ends_with("not started yet")).count();
    assert_eq!(moved, 10);
    assert!(
        world.requests.load(Ordering::Relaxed) < 2 * (CLUSTERS / 500) + 80,
        "nothing is asked for a change"
    );

    // More readers cost no additional requests, and get the same.
    for _ in 0..5 {
        let other = world.stream("/api/stream?addon=helloworld").await.next().await;
        assert_eq!(told(&other.data)["clusters"], told(&state)["clusters"]);
    }
}
