//! A hub that refuses what is written for one cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use aviary_controller::{ManagerHealth, Metrics, Scope, View};
use aviary_engine::observed::Observed;
use aviary_engine::plan::plan;
use aviary_engine::reason::Reason;
use http::{Method, Request, Response};
use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tower::service_fn;

use crate::agents::Agents;
use crate::objects::{addon, named_addon, place, rolling};
use crate::rollout::{hub_config, template};
use crate::world::{GIVE_UP, World, message, names};

/// A client whose writes to paths with this part are too large while `full`.
fn refusing(inner: &Client, part: &'static str, full: &Arc<AtomicBool>) -> Client {
    refusing_if(inner, full, move |method, path| *method != Method::GET && path.contains(part))
}

/// A client whose requests are refused while `full`, if they are such.
fn refusing_if(
    inner: &Client,
    full: &Arc<AtomicBool>,
    is_such: impl Fn(&Method, &str) -> bool + Clone + Send + 'static,
) -> Client {
    let (inner, full) = (inner.clone(), Arc::clone(full));
    let service = service_fn(move |request: Request<Body>| {
        let (inner, full) = (inner.clone(), Arc::clone(&full));
        let is_such = is_such(request.method(), request.uri().path());
        async move {
            let refuses = is_such && full.load(Ordering::Relaxed);
            if !refuses {
                return inner.send(request).await;
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "reason": "",
                "message": "etcdserver: request is too large",
            });
            let body = Body::from(status.to_string().into_bytes());
            Ok(Response::builder().status(500).body(body).unwrap())
        }
    });
    Client::new(service, "default")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_status_is_too_large_stops_no_rollout_of_one_at_a_time_and_heals() {
    let world = World::new().await;
    for (config, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(config, version)).await;
    }
    world.clusters("prod", &names("a", 1..=3, 1)).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let full = Arc::new(AtomicBool::new(false));
    let client = refusing(&world.managers, "/namespaces/a1/managedclusteraddons", &full);
    let manager = world.manager_through(client, "only");
    world.put(addon(&[place("prod", "one", rolling(1))])).await;
    let installed = "3/3 install completed with no errors.";
    world.until("helloworld", installed, |addon| message(addon, "prod") == installed).await;

    full.store(true, Ordering::Relaxed);
    world.put(addon(&[place("prod", "two", rolling(1))])).await;
    let have = |version: &'static str, clusters: &'static [&'static str]| {
        move |all: &[ManagedClusterAddOn]| {
            let has = |cluster: &&str| {
                let of = |one: &&ManagedClusterAddOn| one.namespace().as_deref() == Some(*cluster);
                all.iter().find(of).is_some_and(|one| json!(one.status)["currentVersion"] == version)
            };
            clusters.iter().all(has)
        }
    };
    world.until_instances("helloworld", "the others go on", have("v2.0.0", &["a2", "a3"])).await;
    world
        .until("helloworld", "the refusal is named", |addon| {
            let conditions = json!(addon.status)["conditions"].clone();
            conditions.as_array().into_iter().flatten().any(|one| {
                one["type"] == "WritesRefused"
                    && one["status"] == "True"
                    && one["message"].as_str().is_some_and(|said| said.contains("a1"))
            })
        })
        .await;
    // Those who only read the hub know it too, although they have no memory of the leader's writes.
    let scope = Scope { namespace: "open-cluster-management".into(), addon: Some("helloworld".into()) };
    let mut view = View::read(&world.client, scope).await.unwrap();
    let read = |observed: &Observed| plan(observed, Timestamp::now()).report;
    let report = view.observe("helloworld", read).unwrap();
    let a1 = report.clusters.iter().find(|one| one.cluster.as_str() == "a1").unwrap();
    assert_eq!(a1.decision.code(), Reason::WriteRefused, "{}", a1.decision);
    assert!(a1.decision.to_string().contains("request is too large"), "{}", a1.decision);

    full.store(false, Ordering::Relaxed);
    world.until_instances("helloworld", "a1 follows", have("v2.0.0", &["a1", "a2", "a3"])).await;
    manager.stop().await;
}

/// Whether the condition says this of the add-on.
fn says(addon: &ClusterManagementAddOn, kind: &str, status: &str, part: &str) -> bool {
    let conditions = json!(addon.status)["conditions"].clone();
    conditions.as_array().into_iter().flatten().any(|one| {
        one["type"] == kind
            && one["status"] == status
            && one["message"].as_str().is_some_and(|said| said.contains(part))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_the_hub_does_not_delete_is_named_and_the_others_go() {
    let world = World::new().await;
    world.put(template("v1.0.0")).await;
    world.put(hub_config("one", "v1.0.0")).await;
    world.clusters("prod", &names("a", 1..=4, 1)).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let full = Arc::new(AtomicBool::new(true));
    let client = refusing_if(&world.managers, &full, |method, path| {
        *method == Method::DELETE && path.contains("/namespaces/a1/managedclusteraddons/")
    });
    let manager = world.manager_through(client, "only");
    world.put(addon(&[place("prod", "one", rolling(1))])).await;
    let installed = "4/4 install completed with no errors.";
    world.until("helloworld", installed, |addon| message(addon, "prod") == installed).await;

    world.select("prod", &names("a", 3..=4, 1)).await;
    world.until_on("helloworld", &["a1", "a3", "a4"]).await;
    let why = "a1: the hub refuses to delete the instance: etcdserver: request is too large";
    world.until("helloworld", why, |addon| says(addon, "WritesRefused", "True", why)).await;
    full.store(false, Ordering::Relaxed);
    world.until_on("helloworld", &["a3", "a4"]).await;
    world
        .until("helloworld", "nothing is refused", |addon| {
            says(addon, "WritesRefused", "False", "the hub takes what is written")
        })
        .await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_on_whose_status_the_hub_refuses_is_skipped_by_name_and_others_go_on() {
    let world = World::new().await;
    world.put(template("v1.0.0")).await;
    let mut others = template("v1.0.0");
    others["metadata"]["name"] = json!("other-v1.0.0");
    others["spec"]["addonName"] = json!("other");
    world.put(others).await;
    world.put(hub_config("one", "v1.0.0")).await;
    world.clusters("prod", &names("a", 1..=3, 1)).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let full = Arc::new(AtomicBool::new(true));
    let client = refusing(&world.managers, "/clustermanagementaddons/helloworld/status", &full);
    let metrics = Metrics::default();
    let manager = world.measured_manager(client, "only", metrics.clone());
    world.put(addon(&[place("prod", "one", rolling(1))])).await;
    let mut health = manager.health.clone();
    let skipped = "add-on helloworld is skipped: the hub refuses to write its status";
    let told = health.wait_for(|health| health.skipped.to_string().contains(skipped));
    let told = tokio::time::timeout(GIVE_UP, told).await.expect(skipped).unwrap().clone();
    assert!(!told.is_ready() && told.is_serving(), "{told:?}");

    world.put(named_addon("other", &[place("prod", "one", rolling(1))])).await;
    let installed = "3/3 install completed with no errors.";
    world.until("other", installed, |addon| message(addon, "prod") == installed).await;
    assert!(world.instances("helloworld").await.is_empty(), "nothing is done that was not reserved");
    let refused = metrics.tell(Timestamp::now());
    let attempts = |told: &str| -> u64 {
        let line =
            told.lines().find_map(|line| line.strip_prefix(r#"aviary_writes_total{outcome="failed"} "#));
        line.and_then(|count| count.parse().ok()).unwrap_or(0)
    };
    assert!((1..30).contains(&attempts(&refused)), "it is retried with backoff: {refused}");

    full.store(false, Ordering::Relaxed);
    world.until("helloworld", installed, |addon| message(addon, "prod") == installed).await;
    let is_well = health.wait_for(ManagerHealth::is_ready);
    tokio::time::timeout(GIVE_UP, is_well).await.expect("nothing is skipped").unwrap();
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_of_others_stay_as_they_are_however_many_and_long_they_are() {
    let world = World::new().await;
    for (config, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(config, version)).await;
    }
    world.clusters("prod", &names("a", 1..=2, 1)).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", rolling(1))])).await;
    let installed = "2/2 install completed with no errors.";
    world.until("helloworld", installed, |addon| message(addon, "prod") == installed).await;

    let api: Api<ManagedClusterAddOn> = Api::namespaced(world.client.clone(), "a1");
    let others: Vec<Value> = (0..50)
        .map(|at| {
            json!({
                "type": format!("Theirs{at}"), "status": "True", "reason": "Given",
                "message": "m".repeat(if at == 7 { 5000 } else { 10 }),
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        })
        .collect();
    let ours = json!(api.get("helloworld").await.unwrap().status)["conditions"].clone();
    // Ours come last, behind all of theirs.
    let all: Vec<Value> = others.iter().cloned().chain(ours.as_array().unwrap().iter().cloned()).collect();
    let patch = Patch::Merge(json!({"status": {"conditions": all}}));
    api.patch_status("helloworld", &PatchParams::default(), &patch).await.unwrap();

    world.put(addon(&[place("prod", "two", rolling(1))])).await;
    let upgraded = "2/2 upgrade completed with no errors.";
    world.until("helloworld", upgraded, |addon| message(addon, "prod") == upgraded).await;
    let status = json!(api.get("helloworld").await.unwrap().status);
    assert_eq!(status["currentVersion"], "v2.0.0");
    let after = status["conditions"].as_array().unwrap();
    for theirs in &others {
        let kept = after.iter().find(|one| one["type"] == theirs["type"]);
        assert_eq!(kept, Some(theirs));
    }
    let is_ours = |one: &&Value| one["type"] == "Progressing" && one["reason"] == "UpgradeSucceed";
    assert_eq!(after.iter().filter(is_ours).count(), 1, "{after:?}");
    manager.stop().await;
}
