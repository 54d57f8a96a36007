//! What was committed, state by state: every write of instances and works, in the order in which
//! the hub made it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use aviary_api::names::annotations::CONFIGS_SPEC_HASH;
use aviary_api::names::labels::ADDON_NAME;
use aviary_api::{ManagedClusterAddOn, ManifestWork};
use futures_util::{StreamExt, TryStreamExt};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::world::GIVE_UP;

/// An object, and the state that a write left it in. None: it is gone.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    version: u64,
    pub(crate) kind: String,
    pub(crate) cluster: String,
    pub(crate) name: String,
    pub(crate) object: Option<Value>,
}

impl Commit {
    fn key(&self) -> (&str, &str, &str) {
        (&self.kind, &self.cluster, &self.name)
    }
}

/// Follows all writes for one add-on from when it is started.
pub(crate) struct Auditor {
    client: Client,
    addon: String,
    /// What there was at the start.
    there: Vec<Commit>,
    log: Arc<Mutex<Vec<Commit>>>,
    grown: watch::Receiver<()>,
    _watches: JoinSet<()>,
}

/// The instances and works of an add-on at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    instances: BTreeMap<String, Value>,
    works: BTreeMap<String, BTreeMap<String, Value>>,
    in_flight: BTreeSet<String>,
    /// Every instance that went since the start.
    pub(crate) deleted: Vec<String>,
}

impl Fleet {
    /// Clusters that had something and are on their way to something else.
    pub(crate) fn in_flight(&self) -> &BTreeSet<String> {
        &self.in_flight
    }

    pub(crate) fn instances(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.instances.iter().map(|(cluster, object)| (cluster.as_str(), object))
    }

    pub(crate) fn works(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.works
            .iter()
            .flat_map(|(cluster, works)| works.values().map(move |work| (cluster.as_str(), work)))
    }

    fn commit(&mut self, commit: &Commit) {
        let Commit { kind, cluster, name, object, .. } = commit;
        let works = self.works.entry(cluster.clone()).or_default();
        match (kind.as_str(), object) {
            ("ManagedClusterAddOn", Some(object)) => {
                drop(self.instances.insert(cluster.clone(), object.clone()));
            }
            ("ManagedClusterAddOn", None) => {
                self.instances.remove(cluster);
                self.deleted.push(cluster.clone());
            }
            (_, Some(object)) => drop(works.insert(name.clone(), object.clone())),
            (_, None) => drop(works.remove(name)),
        }
        if self.instances.get(cluster).is_some_and(|instance| is_moving(instance, works.values())) {
            self.in_flight.insert(cluster.clone());
        } else {
            self.in_flight.remove(cluster);
        }
    }
}

/// Whether an instance that had something does not have what it is told, or not in good health. The
/// works prove it: its own status says so a moment later.
fn is_moving<'a>(instance: &Value, mut works: impl Iterator<Item = &'a Value>) -> bool {
    let references = instance["status"]["configReferences"].as_array().cloned().unwrap_or_default();
    let hashes = |which: &str| -> BTreeSet<String> {
        let all = references.iter().filter_map(|one| one[which].as_str());
        all.filter(|hash| !hash.is_empty()).map(str::to_owned).collect()
    };
    let told = hashes("desiredConfigSpecHash");
    !hashes("lastAppliedConfigSpecHash").is_empty()
        && works.any(|work| !is_healthy(work) || carried(work) != told)
}

/// The hashes that a work was rendered from.
fn carried(work: &Value) -> BTreeSet<String> {
    let text = work["metadata"]["annotations"][CONFIGS_SPEC_HASH].as_str().unwrap_or("{}");
    let map: BTreeMap<String, String> = serde_json::from_str(text).unwrap();
    map.into_values().collect()
}

fn is_healthy(work: &Value) -> bool {
    let conditions = work["status"]["conditions"].as_array().cloned().unwrap_or_default();
    ["Applied", "Available"].iter().all(|kind| {
        conditions.iter().any(|one| {
            one["type"] == *kind
                && one["status"] == "True"
                && one["observedGeneration"] == work["metadata"]["generation"]
        })
    })
}

impl Auditor {
    pub(crate) async fn start(client: &Client, addon: &str) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let (grow, grown) = watch::channel(());
        let mut watches = JoinSet::new();
        let follow = Follow { addon: addon.to_owned(), log: Arc::clone(&log), grow };
        let mut there = follow.clone().start::<ManagedClusterAddOn>(client, &mut watches).await;
        there.extend(follow.start::<ManifestWork>(client, &mut watches).await);
        Self { client: client.clone(), addon: addon.to_owned(), there, log, grown, _watches: watches }
    }

    /// Waits until everything that is on the hub now has been seen, and shows each state since the
    /// start, with the write that led to it.
    pub(crate) async fn end(mut self, mut check: impl FnMut(&Fleet, &Commit)) -> Fleet {
        let lists = [
            listed::<ManagedClusterAddOn>(&self.client, &self.addon).await,
            listed::<ManifestWork>(&self.client, &self.addon).await,
        ];
        let wait = async {
            while !self.has_seen(&lists) {
                self.grown.changed().await.unwrap();
            }
        };
        tokio::time::timeout(GIVE_UP, wait).await.expect("the watches bring what is there");
        let mut log = self.log.lock().unwrap().clone();
        log.sort_by_key(|commit| commit.version);
        let mut fleet = Fleet::default();
        for commit in &self.there {
            fleet.commit(commit);
        }
        for commit in &log {
            fleet.commit(commit);
            check(&fleet, commit);
        }
        fleet
    }

    /// Asserts that never more than so many clusters were on their way at once, and that so many
    /// were at some time.
    pub(crate) async fn end_within(self, limit: usize) -> Fleet {
        let mut most = 0;
        let fleet = self
            .end(|fleet, commit| {
                let count = fleet.in_flight().len();
                assert!(
                    count <= limit,
                    "{count} in flight after {} {}/{}",
                    commit.kind,
                    commit.cluster,
                    commit.name
                );
                most = most.max(count);
            })
            .await;
        assert_eq!(most, limit, "the budget was never used up");
        fleet
    }

    fn has_seen(&self, lists: &[(String, Vec<Commit>)]) -> bool {
        let log = self.log.lock().unwrap();
        let mut latest: BTreeMap<(&str, &str, &str), &Commit> = BTreeMap::new();
        latest.extend(self.there.iter().chain(log.iter()).map(|commit| (commit.key(), commit)));
        let mut wanted = lists.iter().flat_map(|(_, listed)| listed);
        let listed: BTreeSet<_> = wanted.clone().map(Commit::key).collect();
        let listed_at = lists.iter().map(|(version, _)| version.parse::<u64>().unwrap()).min().unwrap();
        // What is not listed has come since, or its end has not been seen.
        let is_over = |commit: &Commit| commit.object.is_none() || commit.version > listed_at;
        wanted.all(|one| latest.get(&one.key()).is_some_and(|seen| seen.version >= one.version))
            && latest.iter().all(|(key, commit)| listed.contains(key) || is_over(commit))
    }
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[derive(Clone)]
struct Follow {
    addon: String,
    log: Arc<Mutex<Vec<Commit>>>,
    grow: watch::Sender<()>,
}

impl Follow {
    /// Gives back what is there, and follows what comes after.
    async fn start<K>(self, client: &Client, watches: &mut JoinSet<()>) -> Vec<Commit>
    where
        K: Resource<DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Serialize
            + std::fmt::Debug
            + Send
            + 'static,
    {
        let (mut from, there) = listed::<K>(client, &self.addon).await;
        let api: Api<K> = Api::all(client.clone());
        watches.spawn(async move {
            loop {
                let stream = api.watch(&WatchParams::default().timeout(290), &from).await.unwrap();
                let mut stream = std::pin::pin!(stream.into_stream());
                while let Some(event) = stream.next().await {
                    let (object, gone) = match event.unwrap() {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                        WatchEvent::Deleted(object) => (object, true),
                        WatchEvent::Bookmark(_) => continue,
                        WatchEvent::Error(error) => panic!("the audit lost its watch: {error:?}"),
                    };
                    from = object.resource_version().unwrap();
                    if belongs(&object, &self.addon) {
                        self.log.lock().unwrap().push(commit(&object, gone));
                        self.grow.send_replace(());
                    }
                }
            }
        });
        there
    }
}

fn belongs<K: Resource<DynamicType = ()>>(object: &K, addon: &str) -> bool {
    object.labels().get(ADDON_NAME).map(String::as_str) == Some(addon)
        || (K::kind(&()) == "ManagedClusterAddOn" && object.name_any() == addon)
}

fn commit<K: Resource<DynamicType = ()> + Serialize>(object: &K, gone: bool) -> Commit {
    let value = json!(object);
    Commit {
        version: version_of(&value),
        kind: K::kind(&()).into_owned(),
        cluster: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        object: (!gone).then_some(value),
    }
}

/// The resource version of the list, and what of it belongs to the add-on.
async fn listed<K>(client: &Client, addon: &str) -> (String, Vec<Commit>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let all = Api::<K>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    let ours = all.items.iter().filter(|object| belongs(*object, addon)).map(|object| commit(object, false));
    (all.metadata.resource_version.clone().unwrap_or_default(), ours.collect())
}
