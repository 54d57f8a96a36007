//! What the store makes of what it sees.

use aviary_api::ManagedCluster;
use serde_json::{Value, json};

use aviary_engine::placement::DecisionWrite;

use super::*;
use crate::seen::{Change, Key, ObjectVersion, Version};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn placement(spec: &Value) -> Placement {
    let metadata =
        json!({"name": "p", "namespace": "here", "uid": "uid-of-p", "resourceVersion": "1", "generation": 3});
    serde_json::from_value(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "metadata": metadata, "spec": spec,
    }))
    .unwrap()
}

fn key(namespace: &str, name: &str) -> Key {
    Key { namespace: namespace.into(), name: name.into() }
}

/// The object of that name in its only state.
fn seen(key: Key) -> ObjectVersion {
    ObjectVersion { key, version: Version::default() }
}

fn put(placement: Placement) -> PlacementEvent {
    PlacementEvent::Placement(Change::Put(ObjectVersion::of(&placement.metadata), Box::new(placement)))
}

fn p() -> Key {
    key("here", "p")
}

fn cluster(name: &str, labels: &Value, heartbeat: &str) -> PlacementEvent {
    let object: ManagedCluster = serde_json::from_value(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels},
        "status": {"conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True", "message": heartbeat}]},
    }))
    .unwrap();
    PlacementEvent::Cluster(Change::Put(seen(key("", name)), CandidateCluster::read(&object).unwrap()))
}

fn decision(version: &str, of: &str, clusters: &[&str]) -> PlacementEvent {
    let decided: Vec<Value> =
        clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    let object: PlacementDecision = serde_json::from_value(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {
            "name": "p-decision-1", "namespace": "here", "uid": "one", "resourceVersion": version,
            "labels": {
                "cluster.open-cluster-management.io/placement": of,
                "cluster.open-cluster-management.io/decision-group-index": "0",
                "cluster.open-cluster-management.io/decision-group-name": "",
            },
            "ownerReferences": [{"apiVersion": "v1", "kind": "Placement", "name": "p", "uid": "uid-of-p"}],
        },
        "status": {"decisions": decided},
    }))
    .unwrap();
    PlacementEvent::Decision(Change::Put(ObjectVersion::of(&object.metadata), Box::new(object)))
}

/// The same as the answer to a write.
fn written(event: PlacementEvent) -> Vec<PlacementEvent> {
    match event {
        PlacementEvent::Decision(Change::Put(version, object)) => {
            vec![PlacementEvent::Decision(Change::Written(version, object))]
        }
        other => vec![other],
    }
}

/// A store that has listed the placement `p` and the cluster `a`.
fn store() -> PlacementStore {
    let mut store = PlacementStore::default();
    for news in [
        PlacementEvent::Cluster(Change::Begin),
        cluster("a", &json!({}), "first"),
        PlacementEvent::Cluster(Change::End),
        PlacementEvent::Set(Change::Begin),
        PlacementEvent::Set(Change::End),
        PlacementEvent::Binding(Change::Begin),
        PlacementEvent::Binding(Change::End),
        PlacementEvent::Placement(Change::Begin),
        put(placement(&json!({}))),
        PlacementEvent::Placement(Change::End),
        PlacementEvent::Decision(Change::Begin),
    ] {
        store.take(news);
    }
    assert!(!store.is_complete(), "decisions are still being listed");
    store.take(PlacementEvent::Decision(Change::End));
    assert!(store.is_complete());
    assert!(store.take_dirty().contains(&p()));
    store
}

fn steps(store: &PlacementStore) -> Vec<DecisionWrite> {
    store.pass(&p(), now()).unwrap().rewrite.steps
}

#[test]
fn a_heartbeat_is_no_news_and_a_label_is() {
    let mut store = store();
    store.take(cluster("a", &json!({}), "second"));
    assert!(store.take_dirty().is_empty());
    store.take(cluster("a", &json!({"env": "prod"}), "second"));
    assert!(store.take_dirty().contains(&p()));
}

#[test]
fn a_set_concerns_every_placement() {
    let mut store = store();
    store.take(PlacementEvent::Set(Change::Put(seen(key("", "mine")), ClusterSet::ByItsLabel)));
    assert!(store.take_dirty().contains(&p()));
}

#[test]
fn what_a_new_list_does_not_bring_is_gone() {
    let mut store = store();
    store.take(cluster("b", &json!({}), "first"));
    for news in [
        PlacementEvent::Cluster(Change::Begin),
        cluster("b", &json!({}), "first"),
        PlacementEvent::Cluster(Change::End),
    ] {
        store.take(news);
    }
    let [DecisionWrite::Create(page)] = &steps(&store)[..] else { panic!("one page") };
    assert_eq!(page.clusters, [ClusterName::parse("b").unwrap()]);
}

#[test]
fn an_answer_stands_until_the_watch_has_caught_up() {
    let mut store = store();
    let sent = store.begin_writes();
    store.take_written(written(decision("7", "p", &["a"])), sent);
    store.take(decision("5", "p", &[]));
    assert_eq!(steps(&store), [], "the older state is not taken for the newer");
}

#[test]
fn a_late_answer_brings_no_decision_back_that_is_gone() {
    let mut store = store();
    let sent = store.begin_writes();
    store.take(decision("5", "p", &["a"]));
    let PlacementEvent::Decision(Change::Put(mut gone, _)) = decision("6", "p", &[]) else {
        panic!("a decision")
    };
    gone.version.number = 8;
    store.take(PlacementEvent::Decision(Change::Gone(gone)));
    store.take_written(written(decision("7", "p", &["a"])), sent);
    let [DecisionWrite::Create(_)] = &steps(&store)[..] else { panic!("the page is made again") };
}

#[test]
fn a_decision_that_changes_hands_is_news_for_both() {
    let mut store = store();
    store.take(decision("5", "p", &["a"]));
    store.take_dirty();
    store.take(decision("6", "other", &["a"]));
    let dirty = store.take_dirty();
    assert!(dirty.contains(&p()) && dirty.contains(&key("here", "other")));
    let [DecisionWrite::Create(page)] = &steps(&store)[..] else { panic!("one page") };
    assert_eq!(page.name, "p-decision-2", "the name is taken, whatever the label says");
}

#[test]
fn a_placement_that_is_disabled_or_going_is_left_alone() {
    let mut store = store();
    let mut object = placement(&json!({}));
    object.metadata.resource_version = Some("2".into());
    let annotation = "cluster.open-cluster-management.io/experimental-scheduling-disable";
    object.metadata.annotations = Some([(annotation.to_owned(), "true".to_owned())].into());
    store.take(put(object.clone()));
    assert!(store.pass(&p(), now()).is_none());
    object.metadata.resource_version = Some("3".into());
    object.metadata.annotations = None;
    store.take(put(object.clone()));
    assert!(store.pass(&p(), now()).is_some());
    object.metadata.resource_version = Some("4".into());
    object.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    store.take(put(object));
    assert!(store.pass(&p(), now()).is_none());
}
