//! Good versions: an install, an upgrade through the canary, and the removal.

use serde_json::json;

use crate::embedded::embedded;
use crate::lane::shared;
use crate::story::{Story, condition};
use crate::workloads::deployment;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_and_a_canary_upgrade_reach_real_pods_and_the_removal_leaves_none() {
    installs_and_upgrades(Story::new("greeter", shared()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_and_a_canary_upgrade_by_an_embedded_hub_reach_real_pods() {
    installs_and_upgrades(Story::on(embedded, "greeter-too", shared()).await).await;
}

async fn installs_and_upgrades(story: Story) {
    for version in ["v1", "v2"] {
        story.publish(version, &json!([deployment(&story.name, version, &["serve"])])).await;
    }
    install(&story).await;
    story.want("v2").await;
    until_the_canary_runs_before_the_fleet(&story).await;
    story.until_done("v2").await;
    for member in &story.members {
        story.until_runs(member, "v2").await;
        let available = condition(&story.instance(member.name).await.unwrap(), "Available");
        assert_eq!(available["status"], "True", "{available}");
    }
    story.finish().await;
}

async fn install(story: &Story) {
    story.want("v1").await;
    story.until_done("v1").await;
    // A cluster is done only when its pods have been ready, so all of them run.
    for member in &story.members {
        let pods = member.pods(&story.name).await;
        let started = pods.iter().filter(|pod| pod.version == "v1" && pod.started).count();
        assert_eq!((pods.len(), started), (2, 2), "{}: {pods:?}", member.name);
    }
    story.until_all_run("v1").await;
}

/// The fleet is not touched before the canary's pods run.
async fn until_the_canary_runs_before_the_fleet(story: &Story) {
    story
        .until("v2 on the canary", async || {
            let canary = story.members[0].runs(&story.name, "v2", 2).await;
            if !canary {
                for member in &story.members[1..] {
                    let generation = member.deployment(&story.name).await?["metadata"]["generation"].clone();
                    // Read again: the canary may have become ready in between.
                    let still_not = !story.members[0].runs(&story.name, "v2", 2).await;
                    assert!(generation == 1 || !still_not, "{} moved before the canary", member.name);
                }
            }
            canary.then_some(())
        })
        .await;
}
