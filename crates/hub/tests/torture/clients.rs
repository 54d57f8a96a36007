//! kube-rs reflectors and controllers that survive cuts, gaps and restarts, in process and over
//! TLS.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::{Store, reflector, store};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::{config_map, listed, maps, revision, within};
use world::{Way, World};

/// A client that reconnects at once, so that the test does not wait for backoff.
#[derive(Debug)]
struct Soon;

impl Iterator for Soon {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(20))
    }
}

impl Backoff for Soon {
    fn reset(&mut self) {}
}

/// The controller's record: the last revision of each object that it saw.
#[derive(Debug)]
struct Reconciled {
    at: Mutex<BTreeMap<String, u64>>,
    news: watch::Sender<()>,
}

/// All clients of the hub.
struct Followers {
    stores: Vec<(&'static str, Store<ConfigMap>)>,
    reconciled: Arc<Reconciled>,
    news: watch::Sender<()>,
    _tasks: JoinSet<()>,
}

impl Followers {
    fn start(client: &kube::Client) -> Self {
        let news = watch::Sender::new(());
        let mut tasks = JoinSet::new();
        let mut stores = Vec::new();
        let lists = watcher::Config::default();
        for (what, config) in [
            ("by lists and watches", lists.clone()),
            ("by pages and watches", lists.clone().page_size(3)),
            ("by streaming lists", lists.streaming_lists()),
        ] {
            let (reader, writer) = store();
            let stream = reflector(writer, watcher(maps(client), config).backoff(Soon));
            let news = news.clone();
            tasks.spawn(stream.for_each(move |_| {
                news.send_replace(());
                std::future::ready(())
            }));
            stores.push((what, reader));
        }
        let reconciled = Arc::new(Reconciled { at: Mutex::default(), news: news.clone() });
        let controller = Controller::new(maps(client), watcher::Config::default());
        stores.push(("of the controller", controller.store()));
        let reconcile = |map: Arc<ConfigMap>, context: Arc<Reconciled>| async move {
            context.at.lock().unwrap().insert(map.name_any(), revision(&map));
            context.news.send_replace(());
            Ok::<_, Infallible>(Action::await_change())
        };
        let policy = |_: Arc<ConfigMap>, _: &Infallible, _: Arc<_>| Action::await_change();
        tasks.spawn(
            controller.run(reconcile, policy, Arc::clone(&reconciled)).for_each(|_| std::future::ready(())),
        );
        Self { stores, reconciled, news, _tasks: tasks }
    }

    /// Waits until all of them have the state of the hub.
    async fn know(&self, api: &Api<ConfigMap>, after: &str) {
        let (expected, _) = listed(api).await;
        let mut news = self.news.subscribe();
        let missing = || -> Option<String> {
            for (what, store) in &self.stores {
                let known: BTreeMap<String, u64> =
                    store.state().iter().map(|map| (map.name_any(), revision(map))).collect();
                if known != expected {
                    return Some(format!("the store {what} is not the list: {known:?}, {expected:?}"));
                }
            }
            let reconciled = self.reconciled.at.lock().unwrap();
            let late: BTreeSet<&String> = expected
                .iter()
                .filter(|(name, at)| reconciled.get(*name) != Some(*at))
                .map(|(name, _)| name)
                .collect();
            (!late.is_empty()).then(|| format!("the controller has not seen {late:?}"))
        };
        let wait = async {
            while missing().is_some() {
                news.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(Duration::from_secs(90), wait).await.is_err() {
            panic!("after {after}: {}", missing().unwrap_or_default());
        }
    }
}

/// Changes everything: every remaining object gets a new revision, some are deleted, some created.
async fn change(api: &Api<ConfigMap>, round: usize, updates: usize) {
    let post = PostParams::default();
    for number in 0..4 {
        api.create(&post, &config_map(&format!("r{round}-{number}"), &[])).await.unwrap();
    }
    let (before, _) = listed(api).await;
    for name in before.keys().filter(|name| name.ends_with("-3") && !name.starts_with(&format!("r{round}-")))
    {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let (left, _) = listed(api).await;
    for update in 0..updates {
        for name in left.keys() {
            let map = config_map(name, &[("round", round.to_string()), ("update", update.to_string())]);
            api.replace(name, &post, &map).await.unwrap();
        }
    }
}

async fn followers_survive(way: Way) {
    // A log so short that a client has to list again after a short absence.
    let mut world = World::new(way, 60).await;
    let followers = Followers::start(&world.client);
    change(&world.direct(), 0, 1).await;
    followers.know(&world.direct(), "the start").await;

    world.away();
    change(&world.direct(), 1, 1).await;
    world.back();
    followers.know(&world.direct(), "a cut").await;

    world.away();
    change(&world.direct(), 2, 15).await;
    world.back();
    followers.know(&world.direct(), "a gap in the log").await;

    world.restart().await;
    change(&world.direct(), 3, 1).await;
    followers.know(&world.direct(), "a restart").await;

    world.away();
    change(&world.direct(), 4, 1).await;
    world.restart().await;
    change(&world.direct(), 5, 2).await;
    world.back();
    followers.know(&world.direct(), "a cut and a restart").await;

    // Nothing remains of what was deleted while they were away.
    let (left, _) = listed(&world.direct()).await;
    assert!(left.keys().all(|name| !name.ends_with("-3") || name.starts_with("r5-")), "{left:?}");
    drop(followers);
    within("the world ends", world.end()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reflectors_and_controllers_in_process_survive_cuts_gaps_and_restarts() {
    followers_survive(Way::InProcess).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reflectors_and_controllers_over_tls_survive_cuts_gaps_and_restarts() {
    followers_survive(Way::Tls).await;
}
