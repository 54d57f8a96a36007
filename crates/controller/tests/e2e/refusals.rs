//! A hub that refuses what is written for one cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, Request, Response};
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::json;
use tower::service_fn;

use crate::agents::Agents;
use crate::objects::{addon, place, rolling};
use crate::rollout::{hub_config, template};
use crate::world::{World, message, names};

/// A client whose writes to paths with this part are too large while `full`.
fn refusing(inner: &Client, part: &'static str, full: &Arc<AtomicBool>) -> Client {
    let (inner, full) = (inner.clone(), Arc::clone(full));
    let service = service_fn(move |request: Request<Body>| {
        let (inner, full) = (inner.clone(), Arc::clone(&full));
        async move {
            let refuses = *request.method() != Method::GET
                && request.uri().path().contains(part)
                && full.load(Ordering::Relaxed);
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
        move |all: &[aviary_api::ManagedClusterAddOn]| {
            let has = |cluster: &&str| {
                let of =
                    |one: &&aviary_api::ManagedClusterAddOn| one.namespace().as_deref() == Some(*cluster);
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
    full.store(false, Ordering::Relaxed);
    world.until_instances("helloworld", "a1 follows", have("v2.0.0", &["a1", "a2", "a3"])).await;
    manager.stop().await;
}
