//! A hub whose add-on kinds are those of Open Cluster Management.

use std::sync::Arc;
use std::time::Duration;

use aviary_controller::{Manager, OCM_LEASE, OCM_NAMESPACE, Settings};
use aviary_engine::observed::Options;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::world::{GIVE_UP, World};

const ADDONS: &str = "addon.open-cluster-management.io/v1alpha1";

fn addon(rollout: Value) -> Value {
    json!({
        "apiVersion": ADDONS, "kind": "ClusterManagementAddOn", "metadata": {"name": "shaped"},
        "spec": {"installStrategy": {"type": "Placements", "placements": [
            {"name": "all", "namespace": "default", "rolloutStrategy": rollout},
        ]}},
    })
}

async fn read(world: &World, object: &Value) -> Value {
    let api = aviary_testing::api_of(&world.client, object);
    serde_json::to_value(api.get(aviary_testing::name_of(object)).await.unwrap()).unwrap()
}

#[tokio::test]
async fn its_add_ons_have_ocms_defaults_and_none_of_our_fields() {
    let world = World::on_ocm().await;
    let object = addon(json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}, "paused": true}));
    aviary_testing::put(&world.client, &object).await;
    let status = json!({
        "conditions": [{"type": "Valid", "status": "True", "reason": "Valid", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "installProgression": [{"name": "all", "namespace": "default"}],
        "installProgressions": [{"name": "all", "namespace": "default"}],
    });
    let mut whole = object.clone();
    whole["status"] = status;
    aviary_testing::put_status(&world.client, &whole).await;
    let stored = read(&world, &object).await;
    assert_eq!(
        stored["spec"]["installStrategy"]["placements"][0]["rolloutStrategy"],
        json!({"type": "Progressive", "progressive": {
            "maxConcurrency": 2, "maxFailures": 0, "minSuccessTime": "0", "progressDeadline": "None",
        }})
    );
    assert_eq!(stored["status"], json!({"installProgressions": [{"name": "all", "namespace": "default"}]}));
}

#[tokio::test]
async fn it_refuses_our_spellings_of_a_rollout() {
    let world = World::on_ocm().await;
    let refused =
        aviary_testing::try_put(&world.client, &addon(json!({"type": "RollingUpdate"})), true).await;
    let told = refused.expect_err("a type that OCM does not know").to_string();
    assert!(told.contains("rolloutStrategy.type"), "{told}");
}

#[tokio::test]
async fn its_instances_have_a_namespace_by_default_and_no_version() {
    let world = World::on_ocm().await;
    aviary_testing::put(
        &world.client,
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}}),
    )
    .await;
    let object = json!({
        "apiVersion": ADDONS, "kind": "ManagedClusterAddOn", "metadata": {"name": "shaped", "namespace": "c1"},
        "spec": {"desiredVersion": "1.0"},
    });
    aviary_testing::put(&world.client, &object).await;
    let stored = read(&world, &object).await;
    assert_eq!(stored["spec"], json!({"installNamespace": "open-cluster-management-agent-addon"}));
}

fn ocms_lease(age: i64) -> Value {
    let renewed = Timestamp::now() - SignedDuration::from_secs(age);
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": OCM_LEASE, "namespace": OCM_NAMESPACE},
        "spec": {"holderIdentity": "ocm", "leaseDurationSeconds": 137, "renewTime": format!("{renewed:.6}")},
    })
}

#[tokio::test]
async fn a_manager_stops_leading_while_ocms_manager_runs() {
    let world = World::on_ocm().await;
    aviary_testing::put(&world.client, &aviary_testing::objects::namespace(OCM_NAMESPACE)).await;
    aviary_testing::put(&world.client, &ocms_lease(140)).await;
    let settings = Settings {
        namespace: "open-cluster-management".into(),
        identity: "beside".into(),
        leader_elect: true,
        verify: true,
        placement: false,
        options: Options::default(),
        clock: Arc::new(Timestamp::now),
    };
    let manager = Manager::new(world.client.clone(), settings)
        .with_lease(Duration::from_secs(3))
        .beside_ocm(Some(OCM_NAMESPACE.into()));
    let mut health = manager.health();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(manager.run(async { drop(stopped.await) }));
    for (age, leads) in [(140, true), (1, false), (140, true)] {
        aviary_testing::put(&world.client, &ocms_lease(age)).await;
        let wait = health.wait_for(|health| health.leading == leads);
        let seen = tokio::time::timeout(GIVE_UP, wait).await;
        assert!(seen.is_ok(), "OCM's manager renewed its Lease {age} s ago");
    }
    drop(stop);
    task.await.unwrap();
}
