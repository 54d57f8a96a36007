//! A manager and a fleet that outlive their hub: it stops during a rollout, restarts, and the
//! rollout continues.

use crate::run::{Hub, start, until_leading};
use crate::transcript::desk;

const CLUSTERS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_dies_in_the_middle_of_a_rollout_finds_everybody_where_they_were() {
    let desk = desk("processes-survival");
    let process = start(&desk, "hub --data-dir hub --listen 127.0.0.1:0");
    let address = process.address("Hub listening on").trim_start_matches("https://").to_owned();
    let hub = Hub::of(&desk, "hub/kubeconfig").await;
    hub.put_helloworld().await;
    let manager = start(
        &desk,
        "manager --kubeconfig hub/kubeconfig --placement --verify --metrics 127.0.0.1:0 --log warn --lease-duration 3",
    );
    until_leading(&manager.address("metrics")).await;
    let _fleet = start(
        &desk,
        &format!("fleet --clusters {CLUSTERS} --latency 50ms..200ms --kubeconfig hub/kubeconfig"),
    );
    hub.want("v1.0.0").await;
    hub.until_done(CLUSTERS, "v1.0.0").await;

    hub.want("v2.0.0").await;
    process.kill();
    let process = start(&desk, &format!("hub --data-dir hub --listen {address}"));
    hub.until_done(CLUSTERS, "v2.0.0").await;

    // Once more, with a clean shutdown.
    hub.want("v1.0.0").await;
    process.stop("TERM");
    let _process = start(&desk, &format!("hub --data-dir hub --listen {address}"));
    hub.until_done(CLUSTERS, "v1.0.0").await;
    until_leading(&manager.address("metrics")).await;
    manager.stop("TERM");
}
