//! Watchers: whatever their number, and however slow one is, the others get every event in order,
//! once.

use std::process::Command;
use std::time::Duration;

use aviary_hub::{Hub, HubOptions};
use axum::body::Body;
use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt};
use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{config_map, ephemeral, listed, maps, revision, within};
use crate::tls::Server;

const EVENTS: u64 = 50_000;
const WRITERS: u64 = 8;

/// The resident memory of this process.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

async fn write_events(api: &Api<ConfigMap>, count: u64, filler: usize) {
    let writers = (0..WRITERS).map(|writer| {
        let api = api.clone();
        tokio::spawn(async move {
            let (name, filler) = (format!("w{writer}"), "x".repeat(filler));
            api.create(&PostParams::default(), &config_map(&name, &[])).await.unwrap();
            for number in 1..count / WRITERS {
                let map = config_map(&name, &[("n", number.to_string()), ("filler", filler.clone())]);
                api.replace(&name, &PostParams::default(), &map).await.unwrap();
            }
        })
    });
    for writer in within("everything is written", join_all(writers)).await {
        writer.unwrap();
    }
}

/// Counts the events of a watcher until all writers are done. A revision that does not increase is
/// a failure.
async fn hears_all(api: Api<ConfigMap>, from: u64, count: u64) {
    let mut last = from;
    let mut stream = Box::pin(api.watch(&WatchParams::default(), &from.to_string()).await.unwrap());
    for number in 0..count {
        match stream.next().await.unwrap().unwrap() {
            WatchEvent::Added(map) | WatchEvent::Modified(map) => {
                assert!(revision(&map) > last, "event {number} of {count} comes late or twice");
                last = revision(&map);
            }
            other => panic!("event {number} of {count}: {other:?}"),
        }
    }
}

/// Set in the process that measures its own memory, in which no other test runs.
const ALONE: &str = "AVIARY_TORTURE_ALONE";

#[test]
fn a_watcher_that_does_not_read_costs_nothing_and_is_told_that_it_is_too_late() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "watchers::the_story_of_a_watcher_that_does_not_read", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && output.contains("the story has ended well"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_story_of_a_watcher_that_does_not_read() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let hub =
        ephemeral(HubOptions { events_kept: 10_000, event_bytes_kept: 16 << 20, ..HubOptions::default() })
            .await;
    let api = maps(&hub.client());
    let (_, from) = listed(&api).await;
    let path = format!("/api/v1/namespaces/default/configmaps?watch=1&resourceVersion={from}");

    // One in process, one behind a socket; neither reads. A third one does.
    let identity = aviary_hub::security::Identity::new("slow", aviary_hub::security::Role::Admin);
    let request = Request::get(&path).extension(identity).body(Body::empty()).unwrap();
    let silent = tower::ServiceExt::oneshot(hub.router(), request).await.unwrap();
    let server = Server::start(&hub, None, 0).await;
    let mut stream = server.connect("http/1.1").await;
    let ask =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", server.token);
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert_eq!(within("a head", lines.next_line()).await.unwrap().unwrap(), "HTTP/1.1 200 OK");

    let before = resident();
    // 4 KiB each: 200 MiB in total.
    write_events(&api, EVENTS, 4096).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 120 << 20, "{} MiB more for {} MiB of events", grown >> 20, (EVENTS * 4096) >> 20);

    let (_, newest) = listed(&api).await;
    let lines_of_silent = within("the silent watcher's end", silent.into_body().collect()).await.unwrap();
    let lines_of_silent = lines_of_silent.to_bytes();
    let mut told = lines_of_silent.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    expired(told.next().unwrap());
    assert_eq!(told.next(), None);

    // Behind a socket it first gets what was already in transit, in order, and then that it is too
    // old.
    let mut last = from;
    let end = loop {
        let line = within("the slow watcher's end", lines.next_line()).await.unwrap().unwrap();
        let Some(event) = line.find('{').map(|start| &line[start..]).filter(|line| line.contains("\"type\""))
        else {
            continue;
        };
        let event: Value = serde_json::from_str(event).unwrap();
        if event["type"] == "ERROR" {
            break event;
        }
        let revision = event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        assert!(revision > last && revision < newest);
        last = revision;
    };
    expired(end.to_string().as_bytes());
    server.stop().await;
    println!("the story has ended well");
}

fn expired(line: &[u8]) {
    let event: Value = serde_json::from_slice(line).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&"ERROR".into(), &410.into()), "{event}");
    assert_eq!(event["object"]["reason"], "Expired");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watchers_hear_every_event_in_order_once() {
    let hub = ephemeral(HubOptions::default()).await;
    let api = maps(&hub.client());
    let (_, from) = listed(&api).await;
    let count = 40 * WRITERS;
    let watchers: Vec<_> = (0..1_000).map(|_| tokio::spawn(hears_all(api.clone(), from, count))).collect();
    write_events(&api, count, 10).await;
    for watcher in within("all watchers have heard all", join_all(watchers)).await {
        watcher.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_too_many_is_refused_and_one_that_ends_makes_room() {
    let hub: Hub = ephemeral(HubOptions { most_watches: 3, ..HubOptions::default() }).await;
    let api = maps(&hub.client());
    let watch = || async { api.watch(&WatchParams::default(), "0").await.map(Box::pin) };
    let mut held = vec![watch().await.unwrap(), watch().await.unwrap(), watch().await.unwrap()];
    let refused = watch().await.err().unwrap();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 429));
    held.pop();
    held.push(watch().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_watches_end_when_the_hub_does() {
    let hub = ephemeral(HubOptions::default()).await;
    let api = maps(&hub.client());
    let params = WatchParams::default();
    let streams = join_all((0..10).map(|_| api.watch(&params, "0"))).await;
    hub.stop().await;
    for stream in streams {
        let rest =
            tokio::time::timeout(Duration::from_secs(60), stream.unwrap().try_collect::<Vec<_>>()).await;
        assert!(rest.expect("the watch ends").is_ok());
    }
}
