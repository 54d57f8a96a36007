//! Placements on a hub that has nobody else to decide them.

use aviary_api::{ManagedCluster, Placement, PlacementDecision};
use aviary_engine::name::ClusterName;
use aviary_engine::normalise;
use futures_util::StreamExt;
use http::{Request, Response, StatusCode};
use kube::api::{Api, DeleteParams, ListParams};
use kube::client::Body;
use kube::runtime::watcher::{Config, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tower::service_fn;

use crate::agents::Agents;
use crate::counting::{Counts, writes};
use crate::rollout::{addon, hub_config, template};
use crate::world::{GIVE_UP, World};

const LABEL: &str = "cluster.open-cluster-management.io/placement";

fn cluster(name: &str, env: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": {"env": env}}, "spec": {"hubAcceptsClient": true},
    })
}

fn placement(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

fn of_env(env: &str) -> Value {
    json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": env}}}}]})
}

async fn decisions(client: &Client, placement: &str) -> Vec<PlacementDecision> {
    let api: Api<PlacementDecision> = Api::namespaced(client.clone(), "default");
    api.list(&ListParams::default().labels(&format!("{LABEL}={placement}"))).await.unwrap().items
}

/// Waits until a placement and its decisions are as they should be, with nothing in motion.
async fn until(
    world: &World,
    name: &str,
    what: &str,
    is: impl Fn(&Placement, &[PlacementDecision]) -> bool,
) -> (Placement, Vec<PlacementDecision>) {
    let placements: Api<Placement> = Api::namespaced(world.client.clone(), "default");
    let pages: Api<PlacementDecision> = Api::namespaced(world.client.clone(), "default");
    let news = futures_util::stream::select(
        watcher(placements.clone(), Config::default()).map(drop),
        watcher(pages, Config::default()).map(drop),
    );
    let mut news = std::pin::pin!(news);
    let wait = async {
        loop {
            news.next().await.unwrap();
            let placement = placements.get(name).await.unwrap();
            let decisions = decisions(&world.client, name).await;
            let (selection, _) = normalise::selection(&placement, &decisions);
            if placement.status.is_some() && selection.in_motion().is_none() && is(&placement, &decisions) {
                return (placement, decisions);
            }
        }
    };
    match tokio::time::timeout(GIVE_UP, wait).await {
        Ok(seen) => seen,
        Err(_) => panic!("{what}: not within {GIVE_UP:?}: {}", json!(decisions(&world.client, name).await)),
    }
}

/// Waits until exactly these clusters are selected, and counted.
async fn until_selected(world: &World, name: &str, wanted: &[&str]) {
    until(world, name, &wanted.join(" "), |placement, decisions| {
        let (selection, _) = normalise::selection(placement, decisions);
        let selected: Vec<&str> = selection.clusters().map(ClusterName::as_str).collect();
        selected == wanted && selection.published == Some(wanted.len())
    })
    .await;
}

fn reason(placement: &Placement, type_: &str) -> String {
    let conditions = &placement.status.as_ref().unwrap().conditions;
    conditions.iter().find(|one| one.type_ == type_).and_then(|one| one.reason.clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_placement_selects_by_label_and_follows_its_clusters() {
    let world = World::new().await;
    for (name, env) in [("a", "prod"), ("b", "test"), ("c", "prod")] {
        world.put(cluster(name, env)).await;
    }
    let manager = world.placing_manager(world.managers.clone(), "only");
    world.put(placement("prod", &of_env("prod"))).await;
    world.put(placement("test", &of_env("test"))).await;
    until_selected(&world, "prod", &["a", "c"]).await;
    until_selected(&world, "test", &["b"]).await;

    world.put(cluster("b", "prod")).await;
    until_selected(&world, "prod", &["a", "b", "c"]).await;
    until_selected(&world, "test", &[]).await;

    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    clusters.delete("a", &DeleteParams::default()).await.unwrap();
    until_selected(&world, "prod", &["b", "c"]).await;

    // Once the hub has a set, a namespace needs a binding.
    let version = "cluster.open-cluster-management.io/v1beta2";
    world.put(json!({"apiVersion": version, "kind": "ManagedClusterSet", "metadata": {"name": "mine"}, "spec": {}})).await;
    let (unbound, _) = until(&world, "prod", "nothing without a binding", |placement, _| {
        placement.status.as_ref().unwrap().number_of_selected_clusters == Some(0)
    })
    .await;
    assert_eq!(reason(&unbound, "PlacementSatisfied"), "NoManagedClusterSetBindings");
    world
        .put(json!({
            "apiVersion": version, "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "mine", "namespace": "default"}, "spec": {"clusterSet": "mine"},
        }))
        .await;
    let mut member = cluster("c", "prod");
    member["metadata"]["labels"]["cluster.open-cluster-management.io/clusterset"] = json!("mine");
    world.put(member).await;
    until_selected(&world, "prod", &["c"]).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clusters_make_a_few_decisions_with_few_writes_and_none_at_rest() {
    let world = World::new().await;
    for number in 0..250 {
        world.put(cluster(&format!("cluster-{number:03}"), "prod")).await;
    }
    world.put(placement("fleet", &json!({}))).await;
    let counts = Counts::default();
    let manager = world.placing_manager(counts.client(&world.managers), "first");
    let (fleet, decisions) = until(&world, "fleet", "all of them", |placement, _| {
        !placement.status.as_ref().unwrap().decision_groups.is_empty()
    })
    .await;
    manager.stop().await;
    let first = counts.take();
    assert_eq!(writes(&first), 8, "a count, three decisions in two writes each, a status: {first:#?}");

    assert_eq!(decisions.len(), 3);
    for (index, decision) in decisions.iter().enumerate() {
        assert_eq!(decision.name_any(), format!("fleet-decision-{}", index + 1));
        assert_eq!(decision.labels()["cluster.open-cluster-management.io/decision-group-index"], "0");
        assert_eq!(decision.labels()["cluster.open-cluster-management.io/decision-group-name"], "");
        assert_eq!(decision.owner_references()[0].uid, fleet.uid().unwrap());
        let count = decision.status.as_ref().unwrap().decisions.len();
        assert_eq!(count, if index < 2 { 100 } else { 50 });
    }
    let status = json!(fleet.status);
    assert_eq!(status["numberOfSelectedClusters"], 250);
    assert_eq!(
        status["decisionGroups"],
        json!([{
            "decisionGroupIndex": 0, "decisionGroupName": "", "clusterCount": 250,
            "decisions": ["fleet-decision-1", "fleet-decision-2", "fleet-decision-3"],
        }])
    );
    assert_eq!(reason(&fleet, "PlacementSatisfied"), "AllDecisionsScheduled");
    assert_eq!(reason(&fleet, "PlacementMisconfigured"), "Succeedconfigured");

    // Another manager finds nothing to do for it; that it has looked is seen by what it does for a
    // second one.
    let counts = Counts::default();
    let manager = world.placing_manager(counts.client(&world.managers), "second");
    world.put(placement("one", &json!({"numberOfClusters": 1}))).await;
    until_selected(&world, "one", &["cluster-000"]).await;
    // One cluster more is one decision and one count.
    world.put(cluster("cluster-000a", "prod")).await;
    until(&world, "fleet", "one more", |placement, _| {
        placement.status.as_ref().unwrap().number_of_selected_clusters == Some(251)
    })
    .await;
    manager.stop().await;
    let second = counts.take();
    assert_eq!(writes(&second), 3 + 2, "{second:#?}");
    let conflicts =
        |counts: &std::collections::BTreeMap<String, usize>| counts.keys().any(|what| what.ends_with(" 409"));
    assert!(!conflicts(&first) && !conflicts(&second), "{first:#?} {second:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_on_follows_the_placements_that_the_manager_decides() {
    let world = World::new().await;
    for (name, env) in [("a", "fleet"), ("b", "fleet"), ("c", "canary")] {
        world.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
        world.put(cluster(name, env)).await;
    }
    world.put(template("v1.0.0")).await;
    world.put(hub_config("one", "v1.0.0")).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.placing_manager(world.managers.clone(), "only");
    for env in ["fleet", "canary"] {
        world.put(placement(env, &of_env(env))).await;
    }
    world.put(addon("one")).await;
    world.until_instances("helloworld", "on all three", |all| all.len() == 3).await;
    world.put(cluster("b", "none")).await;
    world
        .until_instances("helloworld", "on two", |all| {
            all.iter().all(|one| one.namespace().unwrap() != "b") && all.len() == 2
        })
        .await;
    manager.stop().await;
}

/// A client whose requests for one placement's decisions fail while `failing`.
fn failing_client(inner: &Client, failing: &Arc<AtomicBool>) -> Client {
    let (inner, failing) = (inner.clone(), Arc::clone(failing));
    let service = service_fn(move |request: Request<Body>| {
        let fails = request.uri().path().contains("/bad-decision-") && failing.load(Ordering::SeqCst);
        let inner = inner.clone();
        async move {
            if fails {
                let failure = Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR);
                return Ok(failure.body(Body::empty()).unwrap());
            }
            inner.send(request).await
        }
    });
    Client::new(service, "default")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_for_one_placement_does_not_stop_the_others_and_heals() {
    let world = World::new().await;
    world.put(cluster("a", "prod")).await;
    world.put(placement("bad", &json!({}))).await;
    let cel = json!({"requiredClusterSelector": {"celSelector": {"celExpressions": ["true"]}}});
    world.put(placement("wrong", &json!({"predicates": [cel]}))).await;
    let failing = Arc::new(AtomicBool::new(true));
    let manager = world.placing_manager(failing_client(&world.managers, &failing), "only");
    let (wrong, none) = until(&world, "wrong", "a condition", |_, _| true).await;
    assert_eq!(reason(&wrong, "PlacementMisconfigured"), "Misconfigured");
    assert!(none.is_empty(), "what cannot be read decides nothing");
    world.put(placement("good", &json!({}))).await;
    until_selected(&world, "good", &["a"]).await;
    let placements: Api<Placement> = Api::namespaced(world.client.clone(), "default");
    assert!(placements.get("bad").await.unwrap().status.is_none(), "not counted before it is decided");
    failing.store(false, Ordering::SeqCst);
    until_selected(&world, "bad", &["a"]).await;
    manager.stop().await;
}
