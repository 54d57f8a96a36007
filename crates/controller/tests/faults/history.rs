//! Everything that the hub has committed in a run, in its order, and what follows from it: states
//! at rest, lives of objects.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::hand::{Hand, KINDS};

/// Kind, namespace, name.
pub(crate) type Key = (usize, String, String);

/// One committed change.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) gone: bool,
    /// As it is afterwards; as it was last, when it is gone.
    pub(crate) object: Arc<Value>,
}

/// The kinds that are looked at: all but CRDs.
const LOOKED_AT: usize = 10;

pub(crate) fn key(kind: usize, object: &Value) -> Key {
    let text = |part: &str| object["metadata"][part].as_str().unwrap_or_default().to_owned();
    (kind, text("namespace"), text("name"))
}

pub(crate) fn show(key: &Key) -> String {
    format!("{} {}/{}", KINDS[key.0].2, key.1, key.2)
}

pub(crate) type Objects = BTreeMap<Key, Arc<Value>>;

/// Everything that is there.
pub(crate) async fn objects(hand: &Hand) -> Objects {
    let mut all = Objects::new();
    for (index, kind) in KINDS.iter().enumerate().take(LOOKED_AT) {
        all.extend(hand.list(kind).await.into_iter().map(|object| (key(index, &object), Arc::new(object))));
    }
    all
}

/// Everything that happened after a revision.
pub(crate) async fn read(hand: &Hand, after: u64) -> Vec<Commit> {
    let of_kind = |(index, kind): (usize, &'static crate::hand::Kind)| async move {
        let events = hand.watch(kind, after, 1).await;
        let commits = events.filter_map(|mut event| async move {
            let gone = match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => false,
                Some("DELETED") => true,
                Some("BOOKMARK") => return None,
                _ => panic!("the history is lost: {event}"),
            };
            let mut object = event["object"].take();
            // Items of lists do not say it.
            object["kind"] = json!(kind.2);
            let revision = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            Some(Commit { revision, key: key(index, &object), gone, object: Arc::new(object) })
        });
        commits.collect::<Vec<_>>().await
    };
    let all = join_all(KINDS.iter().enumerate().take(LOOKED_AT).map(of_kind)).await;
    let mut all: Vec<Commit> = all.into_iter().flatten().collect();
    all.sort_by_key(|commit| commit.revision);
    all
}

/// An object without what differs between two runs alike: uids, revisions, times, terms.
pub(crate) fn normal(object: &Value) -> Value {
    let mut object = object.clone();
    let generation = object["metadata"]["generation"].clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|part, _| {
            [
                "name",
                "namespace",
                "labels",
                "annotations",
                "ownerReferences",
                "finalizers",
                "deletionTimestamp",
            ]
            .contains(&part.as_str())
        });
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(aviary_api::names::annotations::MANAGER_TERM);
            annotations.remove(aviary_api::names::annotations::MANAGER_IDENTITY);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    // Times are not compared, and this one is missing where a rollout began unseen.
    if let Some(completed) = object.pointer_mut("/data/completed").and_then(Value::as_object_mut) {
        completed.remove("startedAt");
    }
    let attempts = object.pointer_mut("/status/attempts").and_then(Value::as_array_mut);
    for attempt in attempts.into_iter().flatten().filter_map(Value::as_object_mut) {
        attempt.remove("startedAt");
    }
    if let Some(object) = object.as_object_mut() {
        object.remove("apiVersion");
        object.remove("kind");
    }
    mask(&mut object, &generation);
    object
}

fn mask(value: &mut Value, generation: &Value) {
    match value {
        Value::Object(parts) => {
            for (name, part) in parts {
                match name.as_str() {
                    "uid" | "lastObservedGeneration" => *part = json!("-"),
                    "observedGeneration" => *part = json!(if part == generation { "current" } else { "old" }),
                    _ => mask(part, generation),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, generation)),
        Value::String(text) => *text = without_times(text),
        _ => {}
    }
}

/// `2026-01-02T03:04:05Z` becomes `T`.
fn without_times(text: &str) -> String {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00Z";
    let is_time = |part: &[u8]| {
        part.len() == SHAPE.len()
            && part.iter().zip(SHAPE).all(
                |(byte, shape)| {
                    if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape }
                },
            )
    };
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if rest.as_bytes().get(..SHAPE.len()).is_some_and(is_time) {
            plain.push('T');
            rest = &rest[SHAPE.len()..];
        } else {
            plain.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    plain
}

/// A number for all that was committed, to the byte.
pub(crate) fn trace(commits: &[Commit]) -> u64 {
    let mut trace = DefaultHasher::new();
    for Commit { revision, key, gone, object } in commits {
        (revision, key, gone, object.to_string()).hash(&mut trace);
    }
    trace.finish()
}

/// How often each object was made and taken away.
pub(crate) type Lives = BTreeMap<Key, (usize, usize)>;

/// Instances, works and revisions: what a manager makes.
pub(crate) fn lives(before: &Objects, commits: &[Commit]) -> Lives {
    let mut there: BTreeMap<&Key, bool> = before.keys().map(|key| (key, true)).collect();
    let mut lives = Lives::new();
    for commit in commits.iter().filter(|commit| [1, 2, 6].contains(&commit.key.0)) {
        let was = there.insert(&commit.key, !commit.gone).unwrap_or(false);
        match (was, commit.gone) {
            (false, false) => lives.entry(commit.key.clone()).or_default().0 += 1,
            (true, true) => lives.entry(commit.key.clone()).or_default().1 += 1,
            _ => {}
        }
    }
    lives
}
