//! Five thousand clusters: the memory of a manager, and that it writes nothing if nothing has
//! changed.

use crate::run::{Hub, start, until_leading};
use crate::transcript::desk;

const CLUSTERS: usize = 5000;
/// In MB, in addition to the memory of a manager without any add-on.
const MEMORY: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_clusters_take_little_memory_and_a_restart_writes_nothing() {
    let desk = desk("processes-scale");
    let _hub = start(&desk, "hub --ephemeral --listen 127.0.0.1:0 --kubeconfig-out kubeconfig");
    let hub = Hub::of(&desk, "kubeconfig").await;
    hub.put_helloworld().await;
    let arguments = "manager --kubeconfig kubeconfig --placement --metrics 127.0.0.1:0 --log warn";
    let manager = start(&desk, arguments);
    until_leading(&manager.address("metrics")).await;
    let before = manager.memory("VmRSS");
    let _fleet =
        start(&desk, &format!("fleet --clusters {CLUSTERS} --latency 0s..0s --kubeconfig kubeconfig"));
    hub.want("v1.0.0").await;
    hub.until_done(CLUSTERS, "v1.0.0").await;
    hub.want("v2.0.0").await;
    hub.until_done(CLUSTERS, "v2.0.0").await;
    let peak = manager.memory("VmHWM");
    assert!(peak <= before + MEMORY, "{peak} MB at its peak, {before} MB before");

    manager.stop("TERM");
    let objects = hub.versions().await;
    assert!(objects.len() > 2 * CLUSTERS);
    let manager = start(&desk, arguments);
    until_leading(&manager.address("metrics")).await;
    manager.stop("TERM");
    let after = hub.versions().await;
    let changed: Vec<&String> = after.iter().filter(|object| !objects.contains(object)).take(10).collect();
    assert!(after == objects, "a restart changed {changed:?}");
}
