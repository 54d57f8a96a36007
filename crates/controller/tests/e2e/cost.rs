//! What the manager asks of the hub: writes per cluster, no reads of configs, no conflicts, nothing
//! at rest.

use std::collections::BTreeMap;

use aviary_testing::objects::template_of;
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::counting::writes;
use crate::rollout::{addon, hub_config, template};
use crate::world::{World, message};

const CLUSTERS: usize = 500;

/// Ends when every instance runs this version, with nothing left to write.
async fn settled(world: &World, version: &str) {
    world
        .until_instances("helloworld", version, |all| {
            all.len() == CLUSTERS
                && all.iter().all(|one| {
                    let status = json!(one.status);
                    let progressing = status["conditions"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .find(|one| one["type"] == "Progressing");
                    status["currentVersion"] == version
                        && progressing.is_some_and(|one| one["status"] == "False")
                })
        })
        .await;
}

fn assert_frugal(counts: &BTreeMap<String, usize>, most_per_cluster: usize) {
    let of_clusters = |what: &str| what.contains(" managedclusteraddons") || what.contains(" manifestworks");
    let per_cluster: BTreeMap<String, usize> = counts
        .iter()
        .filter(|(what, _)| of_clusters(what))
        .map(|(what, count)| (what.clone(), *count))
        .collect();
    let written = writes(&per_cluster);
    assert!(written <= most_per_cluster * CLUSTERS, "{written} writes: {counts:#?}");
    // The add-on is written before any of its clusters is started, so once for all that start
    // together. How many that are depends on how fast hub and agents answer; one by one they must
    // not be.
    let others = writes(counts) - written;
    assert!(others <= CLUSTERS / 4, "{others} other writes: {counts:#?}");
    let conflicts: usize =
        counts.iter().filter(|(what, _)| what.ends_with(" 409")).map(|(_, count)| count).sum();
    assert_eq!(conflicts, 0, "{counts:#?}");
    let is_read = |what: &String| what.starts_with("GET ") && !what.starts_with("GET leases");
    assert!(!counts.keys().any(is_read), "objects are read one by one: {counts:#?}");
}

/// A version whose health is asked for: its agents answer with feedback.
fn probed_template(version: &str) -> Value {
    template_of(
        "helloworld",
        version,
        &json!([{
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "agent", "namespace": "{{INSTALL_NAMESPACE}}"},
            "spec": {
                "replicas": 3, "selector": {"matchLabels": {"app": "agent"}},
                "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "agent", "image": version}]}},
            },
        }]),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_costs_four_writes_per_cluster_an_upgrade_three_and_rest_nothing() {
    cost_of(template).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_probes_an_install_costs_four_writes_per_cluster_an_upgrade_three_and_rest_nothing() {
    cost_of(probed_template).await;
}

async fn cost_of(template: fn(&str) -> Value) {
    let world = World::new().await;
    let names: Vec<String> = (0..CLUSTERS).map(|number| format!("cluster-{number:03}")).collect();
    world.clusters("fleet", &names).await;
    world.clusters("canary", &[]).await;
    for (config, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(config, version)).await;
    }
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    world.put(without_canary(addon("one"))).await;
    settled(&world, "v1.0.0").await;
    assert_frugal(&counts.take(), 4);
    world.put(without_canary(addon("two"))).await;
    settled(&world, "v2.0.0").await;
    assert_frugal(&counts.take(), 3);
    world
        .until("helloworld", "the end", |addon| {
            message(addon, "fleet") == "500/500 upgrade completed with no errors."
        })
        .await;
    manager.stop().await;
    counts.take();

    // A new manager lists everything, and finds nothing to do.
    let (manager, counts) = world.counted_manager("second");
    manager.first_pass().await;
    manager.stop().await;
    let after_restart = counts.take();
    assert_eq!(writes(&after_restart), 0, "{after_restart:#?}");
}

/// The same add-on on the fleet alone.
fn without_canary(mut addon: Value) -> Value {
    let mut fleet = addon["spec"]["installStrategy"]["placements"][0].take();
    fleet["rolloutStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": "25%"}});
    addon["spec"]["installStrategy"]["placements"] = json!([fleet]);
    addon
}
