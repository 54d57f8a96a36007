//! Streams: the whole state first, then changes, and nothing else.

use std::time::Duration;

use aviary_controller::{Scope, View};
use serde_json::{Value, json};

use crate::world::{ADDONS, LIMIT, World, addon, apply, is_complete, rows, told};

const ONE: &str = "/api/stream?addon=helloworld";

fn named(name: &str) -> Value {
    json!({
        "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ClusterManagementAddOn", "metadata": {"name": name},
        "spec": {"installStrategy": {"type": "Manual"}},
    })
}

fn renamed(name: &str, display: &str) -> Value {
    let mut addon = named(name);
    addon["spec"]["addOnMeta"] = json!({"displayName": display});
    addon
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_told_once_and_then_only_what_changes() {
    let world = World::quiet().await;
    world.put(named("one")).await;
    let mut stream = world.stream("/api/stream").await;
    let mut first = stream.next().await;
    assert_eq!(first.name, "addons");
    if first.data["addons"] == json!([]) {
        // The watcher started before the add-on existed.
        first = stream.next().await;
        first.data["addons"] = first.data["changed"].clone();
    }
    let mut summary = first.data["addons"][0].clone();
    assert!(first.data["now"].as_str().unwrap().ends_with('Z'), "{}", first.data);
    summary["oldestWaitSince"] = Value::Null;
    assert_eq!(
        summary,
        json!({
            "name": "one", "displayName": "one", "state": "Progressing", "message": "the manager has not processed the change yet", "clusters": 0, "settled": 0,
            "inFlight": 0, "failed": 0, "waiting": 0, "leaving": 0, "placements": 0, "version": null, "oldestWaitSince": null, "paused": false,
        })
    );
    // First a change that is not shown, and then one that is: the first must not be sent.
    world
        .put(json!({"apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ClusterManagementAddOn",
        "metadata": {"name": "one", "annotations": {"example.com/note": "x"}}, "spec": {}}))
        .await;
    world.put(renamed("two", "Two")).await;
    let delta = stream.next().await;
    assert_eq!(delta.name, "addons-delta");
    assert_eq!(delta.data["changed"].as_array().unwrap().len(), 1);
    assert_eq!((&delta.data["changed"][0]["displayName"], &delta.data["gone"]), (&json!("Two"), &json!([])));
    world.delete(&named("one")).await;
    let delta = stream.next().await;
    assert_eq!((&delta.data["changed"], &delta.data["gone"]), (&json!([]), &json!(["one"])));
}

/// The main property: a reader that applies every change always has the same state as a reader that
/// connects at that moment.
#[tokio::test(flavor = "multi_thread")]
async fn changes_add_up_to_the_whole_at_every_moment_of_a_rollout() {
    let world = World::at_work(24, 6).await;
    let mut stream = world.stream(ONE).await;
    let gone = stream.next().await;
    assert_eq!((gone.name.as_str(), &gone.data), ("gone", &json!({})), "it is not there yet");
    world.put(addon("v1.0.0")).await;
    let mut state = Value::Null;
    let mut version = "v1.0.0";
    let (mut compared, mut deltas, mut wholes) = (0, 0, 0);
    // What readers that connected later received, by event id.
    let mut others: Vec<(String, Value)> = Vec::new();
    loop {
        let event = stream.next().await;
        wholes += usize::from(event.name == "addon");
        deltas += usize::from(event.name == "addon-delta");
        if !apply(&mut state, &event) {
            continue;
        }
        others.retain(|(id, whole)| {
            if *id != event.id {
                return true;
            }
            assert_eq!(told(&state), told(whole), "at {id}");
            compared += 1;
            false
        });
        let fresh = world.stream(ONE).await.next().await;
        if fresh.id == event.id {
            assert_eq!(told(&state), told(&fresh.data), "at {}", event.id);
            compared += 1;
        } else {
            others.push((fresh.id, fresh.data));
        }
        let done = state["state"] == "Done" && state["settled"] == 30 && is_complete(&state, version);
        match (done, version) {
            (true, "v1.0.0") => {
                version = "v2.0.0";
                world.put(addon(version)).await;
            }
            (true, _) => break,
            _ => {}
        }
    }
    assert!(compared > 1 && deltas > 0, "{compared} compared, {deltas} changes");
    assert!(wholes < 5, "{wholes} times the whole");
    assert_eq!(rows(&state).len(), 30);
    assert!(rows(&state).iter().all(|row| row.contains(" settled 0 v2.0.0 settled")), "{:?}", rows(&state));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_add_on_is_told_with_all_that_the_contract_names() {
    let world = World::installed(8, 2).await;
    let state = world.stream(ONE).await.next().await.data;
    let fields: Vec<&str> = state.as_object().unwrap().keys().map(String::as_str).collect();
    let contract = [
        "brake",
        "clusters",
        "description",
        "dictionary",
        "displayName",
        "events",
        "failed",
        "inFlight",
        "leaving",
        "message",
        "name",
        "now",
        "oldestWaitSince",
        "paused",
        "placements",
        "problems",
        "reasons",
        "revisions",
        "settled",
        "state",
        "timeline",
        "version",
        "waiting",
    ];
    assert_eq!(fields, contract);
    assert_eq!((&state["displayName"], &state["description"]), (&json!("Hello"), &json!("Says hello")));
    let fleet = &state["placements"][0];
    assert_eq!(
        *fleet,
        json!({
            "name": "default/fleet", "position": 1, "state": "Installed", "message": "8/8 install completed with no errors.",
            "strategy": "RollingUpdateWithCanary 25%", "budget": 2, "slotsUsed": 0, "inFlight": 0, "governed": 8, "done": 8, "failed": 0,
            "waiting": 0, "leaving": 0, "gate": {"canaries": ["default/canary"], "open": true, "message": fleet["gate"]["message"]},
            "paused": false, "wants": "v1.0.0", "target": "v1.0.0", "knownGood": "v1.0.0",
        })
    );
    assert_eq!(
        (&state["placements"][1]["position"], &state["placements"][1]["gate"]),
        (&json!(0), &Value::Null)
    );
    let line = &state["revisions"][0];
    assert_eq!(
        (&line["label"], &line["number"], &line["placement"], &line["current"], &line["clusters"]),
        (&json!("v1.0.0"), &json!(1), &json!("default/fleet"), &json!(true), &json!(8))
    );
    assert_eq!(state["version"], "v1.0.0");
    let event = &state["events"][0];
    assert_eq!(
        (&event["reason"], &event["type"], &event["about"]),
        (&json!("RolloutCompleted"), &json!("Normal"), &json!("ClusterManagementAddOn helloworld"))
    );
    assert_eq!(rows(&state)[0], r#"canary-1 "default/canary" settled 0 v1.0.0 settled"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_canary_holds_the_fleet_and_every_cluster_says_why() {
    let world = World::installed(8, 4).await;
    world.put(addon("v3.0.0")).await;
    let state =
        world.until("the canary to fail", |state| state["failed"] == 2 && state["state"] == "Failed").await;
    let gate = &state["placements"][0]["gate"];
    assert_eq!(gate["open"], false, "{gate}");
    assert_eq!(state["placements"][0]["waiting"], 8);
    let reasons: Vec<(&Value, &Value, &Value)> = state["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| (&reason["code"], &reason["kind"], &reason["count"]))
        .collect();
    assert_eq!(reasons[0], (&json!("Failed"), &json!("failed"), &json!(2)), "{reasons:?}");
    assert!(reasons.contains(&(&json!("WaitingForCanary"), &json!("waiting"), &json!(8))), "{reasons:?}");
    let examples = state["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| reason["examples"].as_array().unwrap().len());
    assert!(examples.max().unwrap() <= 3);
    assert!(state["oldestWaitSince"].is_string());
    let line = &state["revisions"][0];
    assert_eq!(
        (&line["label"], &line["number"], &line["current"]),
        (&json!("v3.0.0"), &Value::Null, &json!(true))
    );
    assert!(line["changes"].to_string().contains("v1.0.0 → v3.0.0"), "{line}");
}

/// No canary delays a rollback, so none has passed for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_not_shown_as_a_gate_that_opened() {
    let world = World::installed(8, 4).await;
    world.put(addon("v2.0.0")).await;
    let state = world.until("the upgrade", |state| is_complete(state, "v2.0.0")).await;
    assert_eq!(state["placements"][0]["gate"]["open"], true, "{state:#}");
    let mut back = addon("v1.0.0");
    back["spec"]["installStrategy"]["placements"][0]["rolloutStrategy"]["paused"] = json!(true);
    world.put(back).await;
    let is_back = |state: &Value| {
        state["placements"][0]["state"] == "Paused" && state["placements"][0]["wants"] == "v1.0.0"
    };
    let state = world.until("the rollback", is_back).await;
    assert_eq!(state["placements"][0]["gate"], Value::Null, "{state:#}");
}

/// A follower can wait for other things at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_was_given_up_waiting_for_is_told_the_next_time() {
    let world = World::quiet().await;
    let scope = Scope { namespace: "open-cluster-management".into(), addon: None };
    let mut follower = View::read(&world.client, scope).await.unwrap().follow();
    world.put(named("helloworld")).await;
    let told = tokio::time::timeout(LIMIT, async {
        loop {
            // Shorter than the time for which changes are collected.
            let waited = tokio::time::timeout(Duration::from_millis(10), follower.changed_addons()).await;
            if waited.is_ok_and(|changed| changed.unwrap().contains("helloworld")) {
                return;
            }
        }
    });
    assert!(told.await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_was_away_gets_only_what_it_missed() {
    let world = World::quiet().await;
    world.put(named("helloworld")).await;
    world.until("the add-on to be seen", |state| !state.is_null()).await;
    let mut witness = world.stream(ONE).await;
    let first = witness.next().await;
    world.put(renamed("helloworld", "Another")).await;
    let seen = witness.next().await;
    assert_eq!((seen.name.as_str(), &seen.data["displayName"]), ("addon-delta", &json!("Another")));
    let missed = world.stream_from(ONE, Some(&first.id)).await.next().await;
    assert_eq!((missed.id, missed.name, missed.data), (seen.id.clone(), seen.name, seen.data));
    for stale in ["0-0", "", "x-y", &format!("{}9", seen.id)] {
        let whole = world.stream_from(ONE, Some(stale)).await.next().await;
        assert_eq!((whole.name.as_str(), whole.id.as_str()), ("addon", seen.id.as_str()), "{stale:?}");
    }
    // A reader that is up to date gets nothing until something changes.
    let mut up_to_date = world.stream_from(ONE, Some(&seen.id)).await;
    world.put(renamed("helloworld", "A third")).await;
    assert_eq!(up_to_date.next().await.data["displayName"], "A third");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_add_on_that_goes_is_gone_and_comes_back_whole() {
    let world = World::quiet().await;
    world.put(named("helloworld")).await;
    world.until("the add-on to be seen", |state| !state.is_null()).await;
    let mut stream = world.stream(ONE).await;
    assert_eq!(stream.next().await.name, "addon");
    world.delete(&named("helloworld")).await;
    assert_eq!(stream.next().await.name, "gone");
    world.put(renamed("helloworld", "Again")).await;
    let again = stream.next().await;
    assert_eq!((again.name.as_str(), &again.data["displayName"]), ("addon", &json!("Again")));
    world.dashboard.close();
    let ended = tokio::time::timeout(LIMIT, stream.read()).await.unwrap();
    assert!(ended.is_none(), "a stream ends when the dashboard closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_rest_nothing_is_sent_and_nothing_is_asked_of_the_hub() {
    let world = World::installed(6, 2).await;
    let mut stream = world.stream(ONE).await;
    let first = stream.next().await;
    let before = world.requests.load(std::sync::atomic::Ordering::Relaxed);
    // Many changes of objects that make no visible difference, and then one that does.
    for round in 0..20 {
        world
            .put(json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": "fleet-1", "annotations": {"example.com/round": round.to_string()}},
                "spec": {"hubAcceptsClient": true},
            }))
            .await;
    }
    world
        .put(json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "noted", "namespace": "default"},
            "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "test", "reportingInstance": "test",
            "action": "Test", "reason": "Noted", "type": "Normal", "note": "something happened",
            "regarding": {"apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ClusterManagementAddOn", "name": "helloworld"},
        }))
        .await;
    let next = stream.next().await;
    let fields: Vec<&String> = next.data.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["events", "now"], "{}", next.data);
    let number = |id: &str| id.split_once('-').unwrap().1.parse::<u64>().unwrap();
    assert_eq!(number(&next.id), number(&first.id) + 1, "nothing came in between");
    assert_eq!(world.requests.load(std::sync::atomic::Ordering::Relaxed), before, "watches alone tell it");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_come_through_as_data_and_break_nothing() {
    let world = World::quiet().await;
    let nasty = "<img src=x onerror=alert(1)>\n\nevent: gone\ndata: {}\n\n\u{2028}</script><script>alert(2)</script>\"'&\\";
    let mut addon = renamed("helloworld", nasty);
    addon["spec"]["addOnMeta"]["description"] = json!(nasty);
    world.put(addon).await;
    let state = world.until("the add-on to be seen", |state| !state.is_null()).await;
    assert_eq!((&state["displayName"], &state["description"]), (&json!(nasty), &json!(nasty)));
    let cluster = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}});
    world.put(cluster).await;
    world
        .put(json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": true}}))
        .await;
    world
        .put(json!({
            "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ManagedClusterAddOn",
            "metadata": {"name": "helloworld", "namespace": "c1"}, "spec": {},
            "status": {"conditions": [{"type": "Available", "status": "False", "reason": "Nasty", "message": nasty,
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        }))
        .await;
    world.until("the cluster to be seen", |state| state["clusters"]["name"] == json!(["c1"])).await;
    let (status, detail) = world.get("/api/addons/helloworld/clusters/c1").await;
    assert_eq!(status, 200, "{detail}");
    assert_eq!(detail["conditions"][0]["message"], nasty);
}
