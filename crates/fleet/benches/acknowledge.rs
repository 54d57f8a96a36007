//! Measures how fast a simulated fleet reports, and what that costs: reports per second and
//! CPU-seconds, on the embedded hub.
//!
//! Only prints figures; has no targets. Run it with `cargo bench --workspace --bench acknowledge`;
//! `--clusters N` selects the size of the fleet. It measures the whole path: works arrive by the
//! watch, reports are written, the hub commits them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement, run by hand"
)]

#[path = "../../hub/benches/process/mod.rs"]
#[allow(dead_code, reason = "the other benchmark uses all of it")]
mod process;

use std::time::Duration;

use aviary_api::ManifestWork;
use aviary_engine::simulate::agents::Profile;
use aviary_fleet::{Behaviour, SimulatedFleet, members};
use aviary_hub::{Hub, HubOptions};
use futures_util::{StreamExt, stream};
use kube::api::{Api, PostParams};
use process::{Spent, megabytes, peak_memory};
use serde_json::json;
use tokio::sync::oneshot;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().position(|one| one == "--clusters").and_then(|at| arguments.get(at + 1));
    let clusters: usize = given.map_or(20_000, |count| count.parse().expect("a number of clusters"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("{clusters} clusters, {} cores", std::thread::available_parallelism().map_or(0, usize::from));
    println!("hub        answers/s  CPU-seconds  CPU per answer  register/s  peak RSS");
    runtime.block_on(async {
        let hub = Hub::ephemeral(HubOptions::default()).await.unwrap();
        measure("ephemeral", &hub, clusters).await;
    });
    let directory = std::env::temp_dir().join(format!("aviary-acknowledge-{}", std::process::id()));
    runtime.block_on(async {
        let hub = Hub::open(&directory, HubOptions::default()).await.unwrap();
        measure("durable", &hub, clusters).await;
        hub.stop().await;
    });
    let _ = std::fs::remove_dir_all(&directory);
}

async fn measure(name: &str, hub: &Hub, clusters: usize) {
    let client = hub.client();
    aviary_testing::install_crds(&client).await;
    let profile = Profile { latency: (Duration::ZERO, Duration::ZERO), ..Profile::default() };
    let behaviour = Behaviour { profile, ..Behaviour::default() };
    let fleet = SimulatedFleet::new(client.clone(), members("c", clusters, &[], 1).unwrap(), behaviour);
    let began = Spent::now();
    fleet.register(|| {}).await.unwrap();
    let registered = clusters as f64 / began.until_now().time.as_secs_f64();

    // The works exist before the agents start: this measures reporting, not the creation of works.
    let puts = fleet.members().iter().map(|member| {
        let api: Api<ManifestWork> = Api::namespaced(client.clone(), member.name.as_str());
        async move { api.create(&PostParams::default(), &work()).await.map(drop) }
    });
    stream::iter(puts).buffer_unordered(64).for_each(|made| async { made.unwrap() }).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let began = Spent::now();
    let task = tokio::spawn({
        let fleet = fleet.clone();
        async move { fleet.run(async { drop(stopped.await) }).await }
    });
    while fleet.tally().reported < clusters as u64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let spent = began.until_now();
    stop.send(()).unwrap();
    task.await.unwrap();
    println!(
        "{name:<10} {:>9.0}  {:>11.2}  {:>11.0} µs  {registered:>10.0}  {} MiB",
        clusters as f64 / spent.time.as_secs_f64(),
        spent.cpu.as_secs_f64(),
        spent.cpu.as_secs_f64() / clusters as f64 * 1e6,
        megabytes(peak_memory()),
    );
}

fn work() -> ManifestWork {
    serde_json::from_value(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "addon-helloworld-deploy-0", "labels": {"open-cluster-management.io/addon-name": "helloworld"}},
        "spec": {"workload": {"manifests": [{
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": "there"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "agent"}}, "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "agent", "image": "example.com/agent:v1"}]},
            }},
        }]}},
    }))
    .unwrap()
}
