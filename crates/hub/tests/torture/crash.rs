//! `kill -9` under load, repeatedly: acknowledged writes survive, objects are complete, and no
//! visible revision is reused.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aviary_testing::Random;
use futures_util::StreamExt;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::child::Served;
use crate::support::{Place, config_map, maps, revision, within};

const ROUNDS: u64 = 50;
const WRITERS: usize = 64;
const KEYS_PER_WRITER: u64 = 3;
/// The kill comes when up to this many new revisions were seen.
const LATEST_KILL: usize = 100;

/// The content of an object. It is written to several fields, so that a partial object can be
/// detected.
type Value = u64;

/// One object as its only writer knows it.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The last acknowledged value and revision; `None` if there is no object.
    acknowledged: Option<(Value, u64)>,
    /// A request without a response: the object may have this state.
    unanswered: Option<Option<Value>>,
}

/// The object of each revision, as far as any client has seen.
#[derive(Debug, Default)]
struct Revisions(Mutex<HashMap<u64, String>>);

impl Revisions {
    fn saw(&self, revision: u64, name: &str) {
        let mut seen = self.0.lock().unwrap();
        let before = seen.insert(revision, name.to_owned());
        assert!(before.as_deref().is_none_or(|before| before == name), "{revision}: {before:?} and {name}");
    }

    /// After an acknowledged write, no client can have seen its revision on another object.
    fn newest(&self) -> u64 {
        self.0.lock().unwrap().keys().copied().max().unwrap_or(0)
    }
}

fn object(name: &str, value: Value) -> ConfigMap {
    let filler = value.to_string().repeat(40);
    config_map(name, &[("first", value.to_string()), ("filler", filler), ("last", value.to_string())])
}

fn value_of(object: &ConfigMap) -> Value {
    let data = object.data.as_ref().unwrap();
    let value: Value = data["first"].parse().unwrap();
    assert_eq!(data["last"], value.to_string(), "{object:?} is half-written");
    assert_eq!(data["filler"], value.to_string().repeat(40), "{object:?} is half-written");
    value
}

/// Writes until the hub is gone.
async fn write(
    maps: Api<ConfigMap>,
    mut known: BTreeMap<String, Known>,
    mut random: Random,
    seen: Arc<Revisions>,
) -> BTreeMap<String, Known> {
    let names: Vec<String> = known.keys().cloned().collect();
    loop {
        let name = &names[random.below(names.len())];
        let entry = known.get_mut(name).unwrap();
        let value = random.number() >> 1;
        let what = random.below(10);
        entry.unanswered = Some((what < 8 || entry.acknowledged.is_none()).then_some(value));
        let written = match (entry.acknowledged, what) {
            (None, _) => maps.create(&PostParams::default(), &object(name, value)).await.map(Some),
            (Some((_, revision)), 0..4) => {
                let mut new = object(name, value);
                new.metadata.resource_version = Some(revision.to_string());
                maps.replace(name, &PostParams::default(), &new).await.map(Some)
            }
            (Some(_), 4..8) => {
                let patch = Patch::Merge(json!({"data": object(name, value).data}));
                maps.patch(name, &PatchParams::default(), &patch).await.map(Some)
            }
            (Some(_), _) => maps.delete(name, &DeleteParams::default()).await.map(|_| None),
        };
        match written {
            Ok(written) => {
                let revision = written.as_ref().map(revision);
                if let Some(revision) = revision {
                    seen.saw(revision, name);
                }
                entry.acknowledged = revision.map(|revision| (value, revision));
                entry.unanswered = None;
            }
            Err(kube::Error::Api(status)) => panic!("{name} was refused: {status:?}"),
            Err(_) => return known,
        }
    }
}

/// A client that follows by watching, and lists only if it has to.
#[derive(Debug, Default)]
struct Mirror {
    objects: BTreeMap<String, u64>,
    last: u64,
    relists: usize,
}

impl Mirror {
    /// Follows until the connection breaks, or until this object has been created.
    async fn follow(mut self, maps: Api<ConfigMap>, until: Option<String>, seen: Arc<Revisions>) -> Self {
        'again: loop {
            let started = maps.watch(&WatchParams::default(), &self.last.to_string()).await;
            let Ok(stream) = started else { return self };
            let mut stream = Box::pin(stream);
            while let Some(Ok(event)) = stream.next().await {
                match event {
                    WatchEvent::Added(map) | WatchEvent::Modified(map) => {
                        value_of(&map);
                        self.note(&map, &seen);
                        self.objects.insert(map.name_any(), revision(&map));
                        if Some(map.name_any()) == until {
                            return self;
                        }
                    }
                    WatchEvent::Deleted(map) => {
                        self.note(&map, &seen);
                        self.objects.remove(&map.name_any());
                    }
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(status) => {
                        assert_eq!(status.code, 410, "{status:?}");
                        self.relist(&maps).await;
                        if until.as_ref().is_some_and(|name| self.objects.contains_key(name)) {
                            return self;
                        }
                        continue 'again;
                    }
                }
            }
            return self;
        }
    }

    fn note(&mut self, map: &ConfigMap, seen: &Revisions) {
        assert!(revision(map) > self.last, "events must come in order, once");
        self.last = revision(map);
        seen.saw(self.last, &map.name_any());
    }

    async fn relist(&mut self, maps: &Api<ConfigMap>) {
        let (objects, last) = crate::support::listed(maps).await;
        *self = Self { objects, last, relists: self.relists + 1 };
    }
}

/// The current state of each object is the acknowledged one, or the one that was requested when the
/// hub was killed.
fn check(known: &mut BTreeMap<String, Known>, found: &BTreeMap<String, ConfigMap>) {
    for (name, known) in known {
        let is = found.get(name).map(|map| (value_of(map), revision(map)));
        let as_told = is == known.acknowledged;
        let as_asked = known.unanswered.is_some_and(|asked| {
            let newer = match (is, known.acknowledged) {
                (Some((_, now)), Some((_, then))) => now > then,
                _ => true,
            };
            is.map(|(value, _)| value) == asked && newer
        });
        assert!(as_told || as_asked, "{name} is {is:?}, its writer knows {known:?}");
        *known = Known { acknowledged: is, unanswered: None };
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_killed_fifty_times_loses_nothing_it_acknowledged() {
    let place = Place::new();
    let seen = Arc::new(Revisions::default());
    let mut random = Random::new(1);
    let mut writers: Vec<BTreeMap<String, Known>> = (0..WRITERS)
        .map(|writer| {
            (0..KEYS_PER_WRITER).map(|key| (format!("w{writer}-{key}"), Known::default())).collect()
        })
        .collect();
    let mut mirror = Mirror::default();
    let mut markers = BTreeMap::new();
    let (mut acknowledged, mut continued) = (0, 0);
    for round in 0..=ROUNDS {
        let served = Served::start(place.path(), 100_000).await;
        let maps = maps(&served.client);

        // Reads what the kill left.
        let list = maps.list(&ListParams::default()).await.unwrap();
        let reached: u64 = list.metadata.resource_version.as_deref().unwrap().parse().unwrap();
        assert!(reached >= seen.newest(), "a list of {reached}, and someone has seen {}", seen.newest());
        let found: BTreeMap<String, ConfigMap> = list.into_iter().map(|map| (map.name_any(), map)).collect();
        for known in &mut writers {
            check(known, &found);
        }
        let unknown = found.keys().find(|name| !name.starts_with('w') && !name.starts_with("marker"));
        assert_eq!(unknown, None, "nobody has made it");
        for (name, revision) in &markers {
            assert_eq!(found.get(name).map(crate::support::revision), Some(*revision), "{name}");
        }

        // The next revision is new to all clients, and a watcher that resumes misses nothing.
        let marker = format!("marker-{round}");
        let made = maps.create(&PostParams::default(), &object(&marker, round)).await.unwrap();
        assert!(revision(&made) > seen.newest(), "{} was given before", revision(&made));
        assert!(revision(&made) > reached);
        seen.saw(revision(&made), &marker);
        markers.insert(marker.clone(), revision(&made));
        let relists = mirror.relists;
        mirror =
            within("the watcher resumes", mirror.follow(maps.clone(), Some(marker), Arc::clone(&seen))).await;
        continued += usize::from(mirror.relists == relists);
        assert_eq!(mirror.objects, crate::support::listed(&maps).await.0);
        if round == ROUNDS {
            served.stop().await;
            break;
        }

        // Load, and the kill in the middle of it.
        let watching: JoinHandle<Mirror> =
            tokio::spawn(std::mem::take(&mut mirror).follow(maps.clone(), None, Arc::clone(&seen)));
        let before = seen.0.lock().unwrap().len();
        let writing: Vec<JoinHandle<_>> = writers
            .drain(..)
            .map(|known| {
                let random = Random::new(random.number());
                tokio::spawn(write(maps.clone(), known, random, Arc::clone(&seen)))
            })
            .collect();
        let kill_at = before + 1 + random.below(LATEST_KILL);
        let enough = async {
            while seen.0.lock().unwrap().len() < kill_at {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        within("enough revisions to be seen", enough).await;
        served.kill();
        let ended = within("the writers notice", join_all(writing)).await;
        writers = ended.into_iter().map(Result::unwrap).collect();
        mirror = within("the watcher notices", watching).await.unwrap();
        acknowledged += seen.0.lock().unwrap().len() - before;
    }
    println!("{acknowledged} revisions seen; the watcher went on without a list {continued} times");
    assert!(acknowledged > 1_000, "the kills came too early: only {acknowledged} revisions were seen");
}
