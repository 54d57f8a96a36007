//! A hub that stores something else than is written: a webhook or a schema strips parts of it, or
//! fills in others. Each write is made once, and the add-on is at rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aviary_testing::objects::names;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::Api;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use crate::agents::Agents;
use crate::counting::Counts;
use crate::objects::instance;
use crate::ocm_rollout::{
    REST, addon, at_rest, place, policy, prune, record, stays_at_rest, template, until_applied,
};
use crate::world::{GIVE_UP, World, managed_cluster};

const ADDON: &str = "helloworld";
const VALUES: &str = "addon.open-cluster-management.io/values";

/// What becomes of a patch of an instance's metadata.
#[derive(Clone, Copy, PartialEq)]
enum Metadata {
    /// This part of it is not stored.
    Without(&'static str),
    /// It is refused if it has the annotation.
    Refused,
}

/// A client of a hub with a webhook for the metadata of instances.
fn meddling(inner: &Client, what: Metadata, on: &Arc<AtomicBool>) -> Client {
    let (inner, on) = (inner.clone(), Arc::clone(on));
    let service = service_fn(move |request: Request<Body>| {
        let (inner, on) = (inner.clone(), Arc::clone(&on));
        async move {
            let path = request.uri().path();
            let is_metadata = *request.method() == Method::PATCH
                && path.contains("/managedclusteraddons/")
                && !path.ends_with("/status");
            if !is_metadata || !on.load(Ordering::Relaxed) {
                return inner.send(request).await;
            }
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let mut patch: Value = serde_json::from_slice(&body).unwrap();
            match what {
                Metadata::Without(part) => drop(patch["metadata"].as_object_mut().unwrap().remove(part)),
                Metadata::Refused if patch["metadata"]["annotations"][VALUES].is_null() => {}
                Metadata::Refused => {
                    let status = json!({
                        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
                        "message": "admission webhook denied the request",
                    });
                    let body = Body::from(status.to_string().into_bytes());
                    return Ok(Response::builder().status(403).body(body).unwrap());
                }
            }
            inner.send(Request::from_parts(parts, Body::from(patch.to_string().into_bytes()))).await
        }
    });
    Client::new(service, "default")
}

async fn until(what: &str, is: impl AsyncFn() -> bool) {
    let wait = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(GIVE_UP, wait).await.is_ok(), "not {what}");
}

fn annotated(value: &str) -> Value {
    let mut cluster = managed_cluster("fleet-00");
    cluster["metadata"]["annotations"] = json!({VALUES: value});
    cluster
}

async fn values(world: &World) -> Value {
    let one = world.get(&instance("fleet-00", ADDON, json!({}))).await.unwrap_or_default();
    one["metadata"]["annotations"][VALUES].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_and_annotations_that_the_hub_strips_are_written_once() {
    for part in ["ownerReferences", "annotations"] {
        let world = World::on_ocm().await;
        world.clusters("fleet", &names("fleet", 1)).await;
        world.put(template("v1.0.0")).await;
        world.put(instance("fleet-00", ADDON, json!({}))).await;
        let _agents = Agents::start(&world.client, |_| Ok(()));
        let counts = Counts::default();
        let on = Arc::new(AtomicBool::new(true));
        let client = counts.client(&meddling(&world.managers, Metadata::Without(part), &on));
        let manager = world.manager_through(client, "first");
        world.put(addon(&[place("fleet", "helloworld-v1.0.0", json!(1))])).await;
        until_applied(&world, "helloworld-v1.0.0").await;
        world.put(annotated("1")).await;
        let patched = || counts.seen().iter().any(|what| what.starts_with("PATCH managedclusteraddons 200"));
        until("a patch of the metadata", async || patched()).await;
        at_rest(&counts, Duration::from_secs(3)).await;
        let one = world.get(&instance("fleet-00", ADDON, json!({}))).await.unwrap();
        assert!(one["metadata"][part].as_object().is_none_or(|all| !all.contains_key(VALUES)), "{one:#}");
        assert_eq!(one["metadata"]["ownerReferences"].is_null(), part == "ownerReferences", "{one:#}");
        // It is tried again once the instance is another.
        on.store(false, Ordering::Relaxed);
        let mut changed = instance("fleet-00", ADDON, json!({}));
        changed["metadata"]["labels"] = json!({"team": "blue"});
        world.put(changed.clone()).await;
        until("stored", async || {
            let one = world.get(&changed).await.unwrap();
            !one["metadata"]["ownerReferences"].is_null() && one["metadata"]["annotations"][VALUES] == "1"
        })
        .await;
        at_rest(&counts, Duration::from_secs(2)).await;
        manager.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn annotations_that_the_hub_refuses_hold_nothing_else_and_follow_later() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &names("fleet", 2)).await;
    for version in ["v1.0.0", "v2.0.0"] {
        world.put(template(version)).await;
    }
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (counts, on) = (Counts::default(), Arc::new(AtomicBool::new(true)));
    let client = counts.client(&meddling(&world.managers, Metadata::Refused, &on));
    let manager = world.manager_through(client, "first");
    world.put(addon(&[place("fleet", "helloworld-v1.0.0", json!(1))])).await;
    until_applied(&world, "helloworld-v1.0.0").await;
    world.put(annotated("1")).await;
    until("refused", async || {
        counts.seen().iter().any(|what| what.starts_with("PATCH managedclusteraddons 403"))
    })
    .await;
    world.put(addon(&[place("fleet", "helloworld-v2.0.0", json!(1))])).await;
    until_applied(&world, "helloworld-v2.0.0").await;
    assert_eq!(values(&world).await, Value::Null);
    on.store(false, Ordering::Relaxed);
    until("annotated", async || values(&world).await == "1").await;
    at_rest(&counts, Duration::from_secs(2)).await;
    manager.stop().await;
}

/// Nobody foresaw that this hub prunes the generation that a condition is about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_the_hub_prunes_is_written_once() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &names("fleet", 2)).await;
    world.put(template("v1.0.0")).await;
    prune(&world, "addonrolloutrecords.addon.open-cluster-management.io").await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    world.put(addon(&[place("fleet", "helloworld-v1.0.0", json!(2))])).await;
    until_applied(&world, "helloworld-v1.0.0").await;
    at_rest(&counts, Duration::from_secs(3)).await;
    let stored = world.get(&record()).await.unwrap();
    let conditions = stored["status"]["conditions"].as_array().unwrap();
    let has_none = |one: &Value| one["observedGeneration"].is_null();
    assert!(!conditions.is_empty() && conditions.iter().all(has_none), "{stored:#}");
    // Labels of others do not make it another record.
    label(&world, record()).await;
    stays_at_rest(&counts, Duration::from_secs(3)).await;
    manager.stop().await;
}

/// Somebody else puts a label and an annotation on an object.
async fn label(world: &World, mut object: Value) {
    object["metadata"]["labels"] = json!({"team": "blue"});
    object["metadata"]["annotations"] = json!({"note": "checked"});
    world.put(object.clone()).await;
    let stored = world.get(&object).await.unwrap();
    assert_eq!(stored["metadata"]["labels"]["team"], "blue", "{stored:#}");
}

const POLICIES: &str = "addonrolloutpolicies.addon.open-cluster-management.io";
const RECORDS: &str = "addonrolloutrecords.addon.open-cluster-management.io";

/// Changes the schema of a kind's status.
async fn change_status(world: &World, crd: &str, change: impl Fn(&mut Value)) {
    let mut versions = world.loosen(crd).await;
    for version in versions.as_array_mut().unwrap() {
        change(&mut version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]);
    }
    world.tighten(crd, versions).await;
}

fn rule() -> Value {
    policy("rule", json!({"addOns": {"names": [ADDON]}, "maxFailures": 1}))
}

/// Waits until the policy's status says how many add-ons it is about.
async fn until_summarised(world: &World) {
    until("summarised", async || {
        world.get(&rule()).await.is_some_and(|stored| stored["status"]["addOns"] == 1)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_and_records_are_at_rest_whatever_the_server_defaults_and_others_label() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &names("fleet", 2)).await;
    world.put(template("v1.0.0")).await;
    for crd in [POLICIES, RECORDS] {
        change_status(&world, crd, |fields| {
            fields["team"] = json!({"type": "string", "default": "none"});
            fields["conditions"]["items"]["properties"]["severity"] =
                json!({"type": "string", "default": "low"});
        })
        .await;
    }
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    world.put(rule()).await;
    world.put(addon(&[place("fleet", "helloworld-v1.0.0", json!(2))])).await;
    until_applied(&world, "helloworld-v1.0.0").await;
    until_summarised(&world).await;
    at_rest(&counts, Duration::from_secs(2)).await;
    for object in [rule(), record()] {
        let stored = world.get(&object).await.unwrap();
        assert_eq!(stored["status"]["conditions"][0]["severity"], "low", "{stored:#}");
        assert_eq!(stored["status"]["team"], "none", "{stored:#}");
        label(&world, object).await;
    }
    stays_at_rest(&counts, REST).await;
    manager.stop().await;
}

/// Nobody foresaw that this hub prunes what tells that the status is current.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_whose_status_the_hub_prunes_is_summarised_once() {
    let world = World::on_ocm().await;
    change_status(&world, POLICIES, |fields| {
        fields.as_object_mut().unwrap().remove("observedGeneration").unwrap();
    })
    .await;
    let (manager, counts) = world.counted_manager("first");
    world.put(rule()).await;
    world.put(addon(&[])).await;
    until_summarised(&world).await;
    at_rest(&counts, Duration::from_secs(3)).await;
    let stored = world.get(&rule()).await.unwrap();
    assert!(stored["status"]["observedGeneration"].is_null(), "{stored:#}");
    label(&world, rule()).await;
    stays_at_rest(&counts, Duration::from_secs(3)).await;
    // What the policy is about is still followed.
    let mut changed = rule();
    changed["spec"]["addOns"]["names"] = json!([ADDON, "other"]);
    world.put(changed).await;
    let mut other = addon(&[]);
    other["metadata"]["name"] = json!("other");
    world.put(other).await;
    until("summarised again", async || world.get(&rule()).await.unwrap()["status"]["addOns"] == 2).await;
    at_rest(&counts, Duration::from_secs(3)).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_with_a_default_of_the_hub_is_written_once() {
    const CRD: &str = "clustermanagementaddons.addon.open-cluster-management.io";
    let world = World::new().await;
    world.clusters("fleet", &names("fleet", 2)).await;
    let mut bare = template("v1.0.0");
    bare["spec"].as_object_mut().unwrap().remove("version");
    world.put(bare).await;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let before = json!(crds.get(CRD).await.unwrap())["spec"]["versions"].clone();
    let mut versions = before.clone();
    for version in versions.as_array_mut().unwrap() {
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"];
        status["properties"]["defaultVersion"]["default"] = json!("v9.9.9");
    }
    world.tighten(CRD, versions).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    world.put(addon(&[place("fleet", "helloworld-v1.0.0", json!(2))])).await;
    until_applied(&world, "helloworld-v1.0.0").await;
    at_rest(&counts, Duration::from_secs(3)).await;
    let stored = world.get(&addon(&[])).await.unwrap();
    assert_eq!(stored["status"]["defaultVersion"], "v9.9.9", "{stored:#}");
    manager.stop().await;
    world.tighten(CRD, before).await;
}
