//! Fleets as the first version left them. Its own code has rendered the works and written the
//! statuses in `fixtures/first-version`; nothing of them is made by the code of today.

use std::sync::Arc;

use aviary_engine::configs::{ConfigRef, GroupResource, Pin, Revision};
use aviary_engine::hash::Hash;
use aviary_engine::name::PlacementName;
use aviary_engine::normalise;
use serde_json::Value;

use super::{Story, cluster, names};

/// 500 clusters with each strategy: `settled` on v1, or `in-flight` to v2.
pub(crate) fn first_version(set: &str) -> Vec<(String, Story)> {
    let text = match set {
        "settled" => include_str!("../fixtures/first-version/settled.json"),
        "in-flight" => include_str!("../fixtures/first-version/in-flight.json"),
        other => panic!("there is no fixture {other}"),
    };
    let fixture: Value = serde_json::from_str(text).unwrap();
    let fleets = fixture["fleets"].as_array().unwrap().iter();
    fleets.map(|fleet| (fleet["strategy"].as_str().unwrap().to_owned(), story(&fixture, fleet))).collect()
}

fn story(fixture: &Value, fleet: &Value) -> Story {
    let mut story = Story::new();
    story.now = fleet["now"].as_str().unwrap().parse().unwrap();
    story.run(fixture["given"].as_str().unwrap());
    let (addon, problems) = normalise::addon(&serde_json::from_value(fleet["addon"].clone()).unwrap());
    assert!(problems.is_empty(), "{problems:?}");
    story.addon = fleet["addon"].clone();
    let observed = &mut story.world.observed;
    observed.addon = addon;
    for object in of_clusters(fixture, &fleet["instances"]) {
        let (instance, problems) = normalise::instance(&serde_json::from_value(object).unwrap()).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        observed.instances.insert(instance.cluster.clone(), instance);
    }
    for object in of_clusters(fixture, &fleet["works"]) {
        let name = cluster(object["metadata"]["namespace"].as_str().unwrap());
        let (_, work) = normalise::work(&serde_json::from_value(object).unwrap()).unwrap();
        observed.works.get_or_insert_with(name, Vec::new).push(work);
    }
    for hash in fleet["stored"].as_array().unwrap() {
        let hash = hash.as_str().unwrap();
        let content = fixture["contents"][hash].clone().into();
        observed.revisions.contents.insert(Hash::recorded(hash).unwrap(), content);
    }
    for (placement, revisions) in fleet["completed"].as_object().unwrap() {
        let (namespace, name) = placement.split_once('/').unwrap();
        let revisions = revisions.as_array().unwrap().iter().map(revision).collect();
        observed.revisions.completed.insert(PlacementName::new(namespace, name), revisions);
    }
    story
}

fn of_clusters(fixture: &Value, groups: &Value) -> impl Iterator<Item = Value> {
    groups.as_array().unwrap().iter().flat_map(|group| {
        let at = usize::try_from(group["object"].as_u64().unwrap()).unwrap();
        let text = fixture["objects"][at].to_string();
        let clusters = names(group["clusters"].as_str().unwrap()).into_iter();
        clusters.map(move |name| serde_json::from_str(&text.replace("CLUSTER", &name)).unwrap())
    })
}

fn revision(pins: &Value) -> Revision {
    let pins = pins.as_array().unwrap().iter().map(|pin| {
        let text = |field: &str| pin[field].as_str();
        let config = ConfigRef {
            kind: GroupResource::new(text("group").unwrap(), text("resource").unwrap()),
            namespace: text("namespace").map(Into::into),
            name: text("name").unwrap().into(),
        };
        Pin { config: Arc::new(config), hash: Hash::recorded(text("hash").unwrap()).unwrap() }
    });
    Revision::new(pins.collect())
}
