//! What testing from outside has found, on a hub: each was once otherwise.

use aviary_api::{ManagedCluster, ManifestWork};
use aviary_controller::{BoundAnswers, Scope, View, in_pages};
use http::Request;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::client::Body;
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tower::{Layer, service_fn};

use crate::agents::Agents;
use crate::objects::{addon, behind, instance, object, place, reference, rolling, update_all, within};
use crate::rollout::{hub_config, template};
use crate::world::{World, managed_cluster, message, names};

pub(crate) async fn world() -> World {
    let world = World::new().await;
    for (config, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(config, version)).await;
    }
    world
}

pub(crate) fn condition<'a>(conditions: &'a Value, kind: &str) -> &'a Value {
    let found = conditions.as_array().into_iter().flatten().find(|one| one["type"] == kind);
    found.unwrap_or(&Value::Null)
}

pub(crate) async fn work(world: &World, cluster: &str) -> ManifestWork {
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), cluster);
    works.get("addon-helloworld-deploy-0").await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_override_whose_object_is_deleted_moves_nothing() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=2, 1)).await;
    world.put(hub_config("mine", "v2.0.0")).await;
    world
        .put(instance("a1", "helloworld", json!({"configs": [reference("addonhubconfigs", None, "mine")]})))
        .await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    world
        .until("helloworld", "installed", |addon| {
            message(addon, "prod") == "2/2 install completed with no errors."
        })
        .await;
    let before = work(&world, "a1").await;
    world.delete(hub_config("mine", "v2.0.0")).await;
    world
        .until_instances("helloworld", "a1 says what is missing", |all| {
            all.iter().filter(|one| one.namespace().as_deref() == Some("a1")).any(|one| {
                let progressing = json!(one.status);
                condition(&progressing["conditions"], "Progressing")["reason"] == "UpgradeFailed"
            })
        })
        .await;
    assert_eq!(work(&world, "a1").await.meta().generation, before.meta().generation);
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_deleted_takes_instances_without_an_add_on_with_it() {
    let world = world().await;
    world.cluster("a1").await;
    world.cluster("a2").await;
    let mut held = managed_cluster("a1");
    held["metadata"]["finalizers"] = json!(["example.com/not-yet"]);
    world.put(held).await;
    for cluster in ["a1", "a2"] {
        world.put(instance(cluster, "stray", json!({}))).await;
    }
    let manager = world.manager("only");
    manager.first_pass().await;
    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    clusters.delete("a1", &DeleteParams::default()).await.unwrap();
    world.until_on("stray", &["a2"]).await;
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    clusters.patch("a1", &PatchParams::default(), &patch).await.unwrap();
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completed_placement_stays_completed_and_says_who_is_unhealthy() {
    let world = world().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=4, 1)).await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", rolling(2))])).await;
    let done = world
        .until("helloworld", "succeeded", |addon| {
            condition(&json!(addon.status)["conditions"], "Succeeded")["status"] == "True"
        })
        .await;
    assert_eq!(json!(done.status)["observedGeneration"], json!(done.metadata.generation));
    let progress = |addon: &Value, kind: &str| {
        condition(&addon["status"]["installProgression"][0]["conditions"], kind).clone()
    };
    let completed = progress(&json!(done), "Progressing");
    agents.answer(|work| {
        let is_a2 = work.namespace().as_deref() == Some("a2");
        Some(if is_a2 { Err("crash loop".to_owned()) } else { Ok(()) })
    });
    // An agent answers on a work that changes: somebody touches it.
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), "a2");
    let touch = Patch::Merge(json!({"spec": {"deleteOption": {"propagationPolicy": "Orphan"}}}));
    works.patch("addon-helloworld-deploy-0", &PatchParams::default(), &touch).await.unwrap();
    let unwell = world
        .until("helloworld", "a2 is named", |addon| {
            let healthy = progress(&json!(addon), "Healthy");
            healthy["status"] == "False" && healthy["message"] == "1 unhealthy: a2"
        })
        .await;
    let still = progress(&json!(unwell), "Progressing");
    assert_eq!(still["message"], "4/4 install completed with no errors.");
    assert_eq!(still["lastTransitionTime"], completed["lastTransitionTime"]);
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configs_without_a_spec_are_refused() {
    let world = world().await;
    let hub_config = object("AddOnHubConfig", "bare", json!({}));
    let deployment = within("default", object("AddOnDeploymentConfig", "bare", json!({})));
    for bare in [hub_config, deployment] {
        let refused = world.try_put(bare, true).await.unwrap_err();
        assert!(refused.to_string().contains("spec: Required value"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_that_was_rolled_back_from_waits_for_the_canary_again() {
    let world = world().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("canary", &names("c", 1..=1, 1)).await;
    world.clusters("prod", &names("p", 1..=3, 1)).await;
    let manager = world.manager("only");
    let wants = |config: &str| {
        addon(&[place("prod", config, behind("canary", 3)), place("canary", config, update_all())])
    };
    let completed = |words: &'static str| move |addon: &_| message(addon, "prod") == words;
    world.put(wants("one")).await;
    world.until("helloworld", "installed", completed("3/3 install completed with no errors.")).await;
    for config in ["two", "one"] {
        world.put(wants(config)).await;
        world
            .until("helloworld", "settled", |addon| {
                let conditions = json!(addon.status);
                let succeeded = condition(&conditions["conditions"], "Succeeded");
                succeeded["status"] == "True"
                    && succeeded["observedGeneration"] == json!(addon.metadata.generation)
            })
            .await;
    }
    let revisions: Api<ControllerRevision> = Api::all(world.client.clone());
    let withdrawn = ListParams::default().labels("addon.open-cluster-management.io/withdrawn=true");
    assert_eq!(revisions.list(&withdrawn).await.unwrap().items.len(), 2, "one for each placement");

    agents.answer(|work| {
        let is_canary = work.namespace().as_deref() == Some("c1");
        Some(if is_canary { Err("no".to_owned()) } else { Ok(()) })
    });
    world.put(wants("two")).await;
    world
        .until("helloworld", "the canary fails", |addon| message(addon, "canary").contains("1 failed: c1"))
        .await;
    for cluster in ["p1", "p2", "p3"] {
        let label = work(&world, cluster).await.labels()["open-cluster-management.io/addon-version"].clone();
        assert_eq!(label, "v1.0.0", "{cluster}");
    }
    agents.let_go();
    world.until("helloworld", "it passes", completed("3/3 upgrade completed with no errors.")).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_work_with_the_label_of_the_add_on_is_left_alone() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=1, 1)).await;
    let foreign = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "addon-helloworld-deploy-7", "namespace": "a1",
            "labels": {"open-cluster-management.io/addon-name": "helloworld"}},
        "spec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "default"}}]}},
    });
    world.put(foreign.clone()).await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    world
        .until("helloworld", "done", |addon| {
            message(addon, "prod") == "1/1 install completed with no errors."
        })
        .await;
    world.put(addon(&[place("prod", "two", update_all())])).await;
    world
        .until("helloworld", "done", |addon| {
            message(addon, "prod") == "1/1 upgrade completed with no errors."
        })
        .await;
    let left = world.get(&foreign).await.expect("it is still there");
    assert!(left["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(left["metadata"]["generation"], 1);
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn variables_that_expand_without_end_fail_one_add_on_and_no_other() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=1, 1)).await;
    let manifests: Vec<Value> = (0..12)
        .map(|number| json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}"), "namespace": "default"},
            "data": {"text": "{{V}}".repeat(20_000)},
        }))
        .collect();
    let mut huge = template("v1.0.0");
    huge["metadata"]["name"] = json!("huge-v1.0.0");
    huge["spec"]["addonName"] = json!("huge");
    huge["spec"]["agentSpec"]["workload"]["manifests"] = json!(manifests);
    world.put(huge).await;
    let variables = json!([{"name": "V", "value": "x".repeat(4096)}]);
    let settings =
        object("AddOnDeploymentConfig", "huge", json!({"spec": {"customizedVariables": variables}}));
    world.put(within("default", settings)).await;
    let mut placement = place("prod", "one", update_all());
    placement["configs"] = json!([reference("addondeploymentconfigs", Some("default"), "huge")]);
    let manager = world.manager("only");
    world.put(crate::objects::named_addon("huge", &[placement])).await;
    world
        .until("huge", "its author is told", |addon| {
            message(addon, "prod").contains("has more than 400 KiB once it is rendered")
        })
        .await;
    world.put(addon(&[place("prod", "one", update_all())])).await;
    world
        .until("helloworld", "done", |addon| {
            message(addon, "prod") == "1/1 install completed with no errors."
        })
        .await;
    manager.stop().await;
}

/// A client that reads answers as the command line does: bounded, and lists in pages that fit.
fn bounded(inner: &Client) -> Client {
    let inner = inner.clone();
    let service = service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    in_pages(Client::new(BoundAnswers.layer(service), "default"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_works_do_not_keep_a_manager_from_starting() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=1, 1)).await;
    // 50 times 395 KB: more than a page of a list may have.
    for number in 0..50 {
        world.put(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": format!("large-{number}"), "namespace": "a1",
                "labels": {"open-cluster-management.io/addon-name": "other"}},
            "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "large", "namespace": "default"}, "data": {"text": "x".repeat(395_000)}}]}},
        })).await;
    }
    let manager = world.manager_through(bounded(&world.managers), "only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    world
        .until("helloworld", "done", |addon| {
            message(addon, "prod") == "1/1 install completed with no errors."
        })
        .await;
    let scope = Scope { namespace: "open-cluster-management".into(), addon: None };
    let view = View::read(&bounded(&world.client), scope).await.unwrap();
    assert_eq!(view.addons(), ["helloworld".into()]);
    manager.stop().await;
}
