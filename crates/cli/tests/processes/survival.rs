//! A manager and a fleet that outlive their hub: it goes in the middle of things, comes back, and the rollout goes on.

use crate::run::{Hub, Process, until_leading};
use crate::transcript::desk;

const CLUSTERS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_dies_in_the_middle_of_a_rollout_finds_everybody_where_they_were() {
    let desk = desk("processes-survival");
    let process = Process::start(&desk, "hub --data-dir hub --listen 127.0.0.1:0");
    let address = process.address("The hub listens on").trim_start_matches("https://").to_owned();
    let hub = Hub::of(&desk, "hub/kubeconfig").await;
    hub.put_helloworld().await;
    let manager = Process::start(
        &desk,
        "manager --kubeconfig hub/kubeconfig --placement --verify --metrics 127.0.0.1:0 --log warn --lease-duration 3",
    );
    until_leading(&manager.address("metrics")).await;
    let _fleet = Process::start(
        &desk,
        &format!("fleet --clusters {CLUSTERS} --latency 50ms..200ms --kubeconfig hub/kubeconfig"),
    );
    hub.want("v1.0.0").await;
    hub.until_done(CLUSTERS, "v1.0.0").await;

    hub.want("v2.0.0").await;
    process.kill();
    let process = Process::start(&desk, &format!("hub --data-dir hub --listen {address}"));
    hub.until_done(CLUSTERS, "v2.0.0").await;

    // And once more, politely.
    hub.want("v1.0.0").await;
    process.stop();
    let _process = Process::start(&desk, &format!("hub --data-dir hub --listen {address}"));
    hub.until_done(CLUSTERS, "v1.0.0").await;
    until_leading(&manager.address("metrics")).await;
    manager.stop();
}
