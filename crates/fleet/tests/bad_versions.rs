//! The ways in which a version can fail, as the hub gets to see them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::time::Duration;

use aviary_engine::simulate::agents::{FailureKind, Profile};
use aviary_fleet::{Behaviour, FailureScope, Races, SimulatedFailure};
use aviary_testing::GIVE_UP;
use futures_util::StreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;

use crate::on_a_hub::{World, is_well, reported, said};

/// Where v2 fails in this way, on every cluster.
fn failing(failure: FailureKind) -> Behaviour {
    let latency = (Duration::ZERO, Duration::ZERO);
    Behaviour {
        profile: Profile { latency, failure, ..Profile::default() },
        failures: vec![SimulatedFailure { scope: FailureScope::Version("v2".into()), share: 1.0 }],
        races: Races::NONE,
        ..Behaviour::default()
    }
}

#[tokio::test]
async fn pods_that_exit_at_start_are_seen_in_the_counts_only() {
    let world = World::new().await;
    let (fleet, running) = world.run(1, failing(FailureKind::Exits)).await;
    world.put("c-1", "v1").await;
    let well = world.until("c-1", "v1 is well", is_well).await;
    assert_eq!((reported(&well, "Replicas"), reported(&well, "AvailableReplicas")), (Some(2), Some(2)));
    world.put("c-1", "v2").await;
    let is_looping = |work: &_| reported(work, "AvailableReplicas") == Some(1);
    let looping = world.until("c-1", "a crash loop", is_looping).await;
    assert!(is_well(&looping), "its objects exist");
    assert_eq!(reported(&looping, "Replicas"), Some(2), "one of them has replaced a pod of v1");
    running.stop().await;
    assert_eq!((fleet.tally().reported, fleet.tally().refused), (2, 0));
}

#[tokio::test]
async fn a_version_that_crashes_was_ready_before() {
    let world = World::new().await;
    let (fleet, running) = world.run(1, failing(FailureKind::Crashes)).await;
    world.put("c-1", "v1").await;
    world.until("c-1", "v1 is well", is_well).await;
    world.put("c-1", "v2").await;
    let is_down = |work: &_| is_well(work) && reported(work, "AvailableReplicas").is_none();
    let down = world.until("c-1", "the pods have crashed", is_down).await;
    assert_eq!((down["metadata"]["generation"].as_i64(), reported(&down, "Replicas")), (Some(2), Some(2)));
    running.stop().await;
    assert_eq!(fleet.tally().reported, 3, "v1, v2 ready, v2 crashed");
}

#[tokio::test]
async fn a_version_that_flaps_is_ready_and_crashes_by_turns() {
    let world = World::new().await;
    let (fleet, running) = world.run(1, failing(FailureKind::Flaps)).await;
    world.put("c-1", "v1").await;
    let mut events = Box::pin(watcher(world.works("c-1"), watcher::Config::default()));
    let seen = async {
        let mut seen = Vec::new();
        while seen.len() < 42 {
            match events.next().await.unwrap().unwrap() {
                Event::Apply(object) if is_well(&json!(object)) => {
                    let work = json!(object);
                    seen.extend(
                        (work["metadata"]["generation"] == 2).then(|| reported(&work, "AvailableReplicas")),
                    );
                }
                // From here on no event is missed.
                Event::InitDone => {
                    world.until("c-1", "v1 is well", is_well).await;
                    world.put("c-1", "v2").await;
                }
                _ => {}
            }
        }
        seen
    };
    let seen = tokio::time::timeout(GIVE_UP, seen).await.expect("all reports");
    assert!(seen.chunks(2).all(|turn| turn == [Some(2), None]), "{seen:?}: a counter of 0 is left out");
    running.stop().await;
    assert_eq!(fleet.tally().reported, 1 + 42, "v1, and v2 ready and crashed");
}

#[tokio::test]
async fn a_silent_agent_leaves_the_report_on_the_version_before() {
    let world = World::new().await;
    let (fleet, running) = world.run(2, failing(FailureKind::Silent)).await;
    world.put("c-1", "v1").await;
    let before = world.until("c-1", "v1 is well", is_well).await;
    world.put("c-1", "v2").await;
    // This comes later in the stream: when it has a report, the silent one has been seen.
    world.put("c-2", "v1").await;
    world.until("c-2", "v1 is well", is_well).await;
    running.stop().await;
    let silent = json!(world.works("c-1").get("w").await.unwrap());
    assert_eq!(silent["metadata"]["generation"], 2);
    assert_eq!(silent["status"], before["status"]);
    assert_eq!(said(&silent, "Applied"), Some(("True".to_owned(), 1)));
    assert_eq!((fleet.tally().seen, fleet.tally().reported), (3, 2));
}
