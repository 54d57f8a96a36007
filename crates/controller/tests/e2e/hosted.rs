//! Hosted mode, on a hub with the kinds of Open Cluster Management: an instance whose agent runs on
//! another cluster.

use std::time::Duration;

use serde_json::{Value, json};

use crate::agents::Agents;
use crate::objects::{instance, within};
use crate::ocm_rollout::{addon as of_template, at_rest, place, template, until_applied};
use crate::ocm_statuses::{
    ADDON, FIRST, OwnManager, addon, config, manual, told, until_condition, until_told,
};
use crate::world::World;

const HOSTING: &str = "addon.open-cluster-management.io/hosting-cluster-name";
const COMPLETED: [&str; 3] = ["False", "Completed", "completed with no errors."];

/// The instance of a cluster, with the annotation that asks for a hosting cluster.
fn asking(cluster: &str, hosting: &str) -> Value {
    let mut asking = instance(cluster, ADDON, json!({}));
    asking["metadata"]["annotations"] = json!({HOSTING: hosting});
    asking
}

/// The work is in the namespace of the hosting cluster, and its label names the cluster of its
/// instance.
#[tokio::test]
async fn hosted_works_belong_to_the_instance_that_their_label_names() {
    let world = World::on_ocm().await;
    for cluster in ["c1", "h1", "h2"] {
        world.cluster(cluster).await;
    }
    world.put(config("default", "shared", "test")).await;
    let (manager, counts) = world.counted_manager("first");
    world.put(addon(Some("shared"), manual())).await;
    world.put(asking("c1", "h1")).await;
    world.put(instance("h1", ADDON, json!({}))).await;
    let own = OwnManager(&world);
    for cluster in ["c1", "h1"] {
        until_told(&world, cluster, json!([told("default", "shared", FIRST, 1)])).await;
    }
    own.deliver_on("h1", "c1").await;
    own.report_on(OwnManager::work_on("h1", "c1"), "True", Some("True")).await;
    until_condition(&world, "c1", "Progressing", COMPLETED).await;
    // It is none of the instance on the hosting cluster, which has no work yet.
    let applied = json!({"type": "ManifestApplied", "status": "True", "reason": "AddonManifestApplied",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    own.say("h1", applied).await;
    until_condition(&world, "h1", "Progressing", ["True", "Progressing", "progressing... no addon works"])
        .await;
    own.deliver("h1").await;
    own.report("h1", "True", Some("True")).await;
    until_condition(&world, "h1", "Progressing", COMPLETED).await;
    // Nor is one of the instance that another cluster says is.
    own.deliver_on("h2", "c1").await;
    own.report_on(OwnManager::work_on("h2", "c1"), "False", None).await;
    at_rest(&counts, Duration::from_secs(2)).await;
    until_condition(&world, "c1", "Progressing", COMPLETED).await;
    // When it is gone, so is what proved that the instance has its configs.
    world.delete(OwnManager::work_on("h1", "c1")).await;
    world.put(config("default", "shared", "test1")).await;
    until_condition(&world, "c1", "Progressing", ["True", "Progressing", "progressing... no addon works"])
        .await;
    manager.stop().await;
}

fn deployed(cluster: &str) -> Value {
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "addon-helloworld-deploy-0"}});
    within(cluster, work)
}

/// Whoever may edit the annotation must not be able to place works on another cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_is_not_hosted_and_works_that_are_there_stay() {
    let world = World::on_ocm().await;
    let clusters = ["c1".to_owned(), "c2".to_owned()];
    world.cluster("h1").await;
    world.clusters("fleet", &clusters).await;
    for version in ["v1.0.0", "v2.0.0"] {
        world.put(template(version)).await;
    }
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    world.put(asking("c1", "h1")).await;
    world.put(of_template(&[place("fleet", "helloworld-v1.0.0", json!(2))])).await;
    until_applied(&world, "helloworld-v1.0.0").await;
    let refused = "the instance asks to be hosted on cluster \"h1\", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name";
    let refused = ["False", "HostingClusterInvalid", refused];
    until_condition(&world, "c1", "HostingClusterValidity", refused).await;
    for cluster in ["c1", "h1"] {
        assert!(world.get(&deployed(cluster)).await.is_none(), "{cluster}");
    }
    let before = world.get(&deployed("c2")).await.unwrap();
    world.put(asking("c2", "h1")).await;
    until_condition(&world, "c2", "HostingClusterValidity", refused).await;
    world.put(of_template(&[place("fleet", "helloworld-v2.0.0", json!(2))])).await;
    at_rest(&counts, Duration::from_secs(2)).await;
    let after = world.get(&deployed("c2")).await.unwrap();
    assert_eq!(before["spec"], after["spec"]);
    // Without the annotation they get what their placement wants.
    for cluster in ["c1", "c2"] {
        world.remove_annotation(&instance(cluster, ADDON, json!({})), HOSTING).await;
    }
    until_applied(&world, "helloworld-v2.0.0").await;
    for cluster in ["c1", "c2"] {
        until_condition(&world, cluster, "HostingClusterValidity", [""; 3]).await;
        until_condition(&world, cluster, "Progressing", COMPLETED).await;
    }
    manager.stop().await;
}
