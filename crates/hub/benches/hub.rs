//! Benchmarks of the hub: durable writes, lists, watches, memory, restart.
//!
//! `cargo bench -p aviary-hub` prints a table; counts, CPU seconds and memory are more comparable
//! between machines than times. The same writes on a hub without a disk show the cost of the disk,
//! and the most that a faster store could gain.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark talks to people, and stops when it cannot go on"
)]

mod process;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use aviary_hub::security::Role;
use aviary_hub::{Endpoint, Hub, HubOptions};
use futures_util::AsyncBufReadExt;
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use process::{Spent, megabytes, peak_memory, resident};
use tokio::net::TcpListener;
use tokio::sync::Barrier;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // First, while no freed memory can be reused.
        memory_and_lists().await;
        println!("\ndurable creates of 2 KiB objects");
        for (writers, count) in [(1, 1_000), (64, 20_000)] {
            let place = Place::new("in-process");
            let hub = place.open().await;
            report("in process", writers, creates(&hub.client(), writers, count).await);
            hub.stop().await;

            let place = Place::new("tls");
            let hub = place.open().await;
            let (client, stop) = over_tls(&hub, &place).await;
            report("over TLS", writers, creates(&client, writers, count).await);
            stop.send(()).ok();

            let hub = Hub::ephemeral(HubOptions::default()).await.expect("a hub");
            report("without a disk", writers, creates(&hub.client(), writers, count).await);
        }
        fan_out(1_000, 200).await;
        restart(100_000).await;
        println!("\npeak memory of all this: {} MB", megabytes(peak_memory()));
    });
}

/// A directory that is removed on drop.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}"));
        let _ = std::fs::remove_dir_all(&place);
        Self(place)
    }

    async fn open(&self) -> Hub {
        Hub::open(&self.0, HubOptions::default()).await.expect("a hub")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A TLS client on loopback, and the sender that stops the server.
async fn over_tls(hub: &Hub, place: &Place) -> (Client, tokio::sync::oneshot::Sender<()>) {
    let endpoint = Endpoint::open(hub, &place.0, &[]).expect("an endpoint");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let token = endpoint.issue_token("bench", Role::Admin).expect("a token");
    let text = endpoint.kubeconfig(address, token.expose());
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let hub = hub.clone();
    tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        hub.serve(listener, &endpoint, stopped).await.expect("served");
    });
    let config = Kubeconfig::from_yaml(&text).expect("a kubeconfig");
    let config =
        kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.expect("a config");
    (Client::try_from(config).expect("a client"), stop)
}

fn object(name: &str) -> String {
    let filling = "x".repeat(1_860);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"app":"bench"}}}},"data":{{"value":"{filling}"}}}}"#
    )
}

async fn send(client: &Client, method: &str, path: &str, body: String) -> http::Response<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    client.send(request.body(Body::from(body.into_bytes())).expect("a request")).await.expect("an answer")
}

async fn create(client: &Client, name: &str) {
    let answer = send(client, "POST", MAPS, object(name)).await;
    assert_eq!(answer.status(), 201);
    answer.into_body().collect().await.expect("a whole answer");
}

/// Creates objects with this many concurrent writers.
async fn creates(client: &Client, writers: usize, count: usize) -> (usize, Spent) {
    let next = Arc::new(AtomicUsize::new(0));
    let before = Spent::now();
    let tasks: Vec<_> = (0..writers)
        .map(|_| {
            let (client, next) = (client.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    create(&client, &format!("object-{number}")).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a writer that ends");
    }
    (count, before.until_now())
}

fn report(how: &str, writers: usize, (count, spent): (usize, Spent)) {
    let rate = count as f64 / spent.time.as_secs_f64();
    let cpu = spent.cpu.as_secs_f64() * 1e6 / count as f64;
    println!(
        "  {how:<15} {writers:>3} writers  {rate:>8.0} per second  {cpu:>6.0} µs of CPU each (client included)"
    );
}

async fn memory_and_lists() {
    let hub = Hub::ephemeral(HubOptions { events_kept: 1, ..HubOptions::default() }).await.expect("a hub");
    let client = hub.client();
    let before = resident();
    creates(&client, 64, 10_000).await;
    println!("memory of 10,000 objects of 2 KiB: {} MB", megabytes(resident().saturating_sub(before)));
    for (what, path) in
        [("all at once", MAPS.to_owned()), ("by label", format!("{MAPS}?labelSelector=app%3Dbench"))]
    {
        let before = Spent::now();
        let body = send(&client, "GET", &path, String::new())
            .await
            .into_body()
            .collect()
            .await
            .expect("a list")
            .to_bytes();
        let spent = before.until_now();
        println!(
            "list of 10,000 objects, {what}: {:.0?}, {:.0?} of CPU, {} MB",
            spent.time,
            spent.cpu,
            megabytes(body.len())
        );
    }
}

/// Every event reaches every watcher.
async fn fan_out(watchers: usize, events: usize) {
    let hub = Hub::ephemeral(HubOptions::default()).await.expect("a hub");
    let client = hub.client();
    let ready = Arc::new(Barrier::new(watchers + 1));
    let tasks: Vec<_> = (0..watchers)
        .map(|_| {
            let (client, ready) = (client.clone(), Arc::clone(&ready));
            tokio::spawn(async move {
                let request = Request::get(format!("{MAPS}?watch=true&labelSelector=app%3Dbench"))
                    .body(Vec::new())
                    .expect("a request");
                let mut lines = client.request_stream(request).await.expect("a watch");
                ready.wait().await;
                let mut line = String::new();
                for _ in 0..events {
                    line.clear();
                    lines.read_line(&mut line).await.expect("a line");
                    assert!(line.starts_with(r#"{"type":"ADDED""#), "{line}");
                }
            })
        })
        .collect();
    ready.wait().await;
    let memory = resident();
    let before = Spent::now();
    creates(&client, 16, events).await;
    for task in tasks {
        task.await.expect("a watcher that ends");
    }
    let spent = before.until_now();
    let delivered = watchers * events;
    println!(
        "{events} events to {watchers} watchers: {:.0} deliveries per second, {:.1} µs of CPU each, {} MB more memory",
        delivered as f64 / spent.time.as_secs_f64(),
        spent.cpu.as_secs_f64() * 1e6 / delivered as f64,
        megabytes(resident().saturating_sub(memory)),
    );
}

async fn restart(count: usize) {
    let place = Place::new("restart");
    let hub = place.open().await;
    creates(&hub.client(), 64, count).await;
    hub.stop().await;
    drop(hub);
    let size = std::fs::metadata(place.0.join("hub.redb")).map_or(0, |file| file.len());
    let started = Instant::now();
    let before = Spent::now();
    let hub = place.open().await;
    let spent = before.until_now();
    println!(
        "restart with {count} objects: {:.2?}, {:.2?} of CPU; {} MB on disk",
        started.elapsed(),
        spent.cpu,
        megabytes(usize::try_from(size).unwrap_or(usize::MAX))
    );
    hub.stop().await;
}
