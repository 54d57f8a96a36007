//! A rollout on a simulated fleet starts the same clusters in the same order, and stops at the same
//! point, as a rehearsal with the same seed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use aviary_controller::{Manager, Scope, Settings, View};
use aviary_engine::observed::{Observed, Options};
use aviary_engine::simulate::agents::{FailureKind, Profile};
use aviary_engine::simulate::{Rehearsal, rehearse};
use aviary_fleet::{Behaviour, LabelShare, SimulatedFleet, members};
use aviary_hub::Hub;
use aviary_testing::{GIVE_UP, objects};
use futures_util::StreamExt;
use jiff::Timestamp;
use kube::api::Api;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A task that can be stopped.
pub(crate) struct Running(oneshot::Sender<()>, JoinHandle<()>);

impl Running {
    pub(crate) async fn stop(self) {
        let _ = self.0.send(());
        self.1.await.unwrap();
    }
}

pub(crate) async fn put(client: &Client, object: Value) {
    aviary_testing::put(client, &object).await;
}

pub(crate) fn addon(version: &str, budget: &str) -> Value {
    objects::addon_behind_canary("hello", version, budget, budget)
}

async fn hub() -> (Hub, Client) {
    hub_with(|version| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "there"}, "data": {"version": version},
        })
    })
    .await
}

/// A hub with two versions of an add-on, each of one manifest.
pub(crate) async fn hub_with(manifest: impl Fn(&str) -> Value) -> (Hub, Client) {
    let hub = Hub::ephemeral(Default::default()).await.unwrap();
    let client = hub.client();
    aviary_testing::prepare_hub(&client).await;
    for (name, label) in [("fleet", "all"), ("canary", "yes")] {
        aviary_testing::put(&client, &objects::placement_by_labels(name, &json!({name: label}))).await;
    }
    for version in ["v1", "v2"] {
        let manifests = json!([manifest(version)]);
        aviary_testing::put(&client, &objects::template_of("hello", version, &manifests)).await;
        aviary_testing::put(&client, &objects::hub_config(version, version)).await;
    }
    (hub, client)
}

fn fleet(client: &Client, profile: Profile) -> SimulatedFleet {
    let label =
        |key: &str, value: &str, share: f64| LabelShare { key: key.into(), value: value.into(), share };
    let labels = [label("fleet", "all", 1.0), label("canary", "yes", 0.2)];
    let behaviour = Behaviour { profile, ..Behaviour::default() };
    SimulatedFleet::new(client.clone(), members("c", 40, &labels, 1).unwrap(), behaviour)
}

pub(crate) fn start(fleet: &SimulatedFleet) -> Running {
    let (stop, stopped) = oneshot::channel();
    let fleet = fleet.clone();
    Running(stop, tokio::spawn(async move { fleet.run(async { drop(stopped.await) }).await }))
}

pub(crate) fn manage(client: &Client) -> Running {
    let settings = Settings {
        namespace: "open-cluster-management".into(),
        identity: "test".into(),
        leader_elect: false,
        verify: true,
        placement: true,
        options: Options::default(),
        clock: Arc::new(Timestamp::now),
    };
    let (stop, stopped) = oneshot::channel();
    Running(stop, tokio::spawn(Manager::new(client.clone(), settings).run(async { drop(stopped.await) })))
}

async fn observed(client: &Client) -> Observed {
    let scope = Scope { namespace: "open-cluster-management".into(), addon: Some("hello".into()) };
    let mut view = View::read(client, scope).await.unwrap();
    view.observe("hello", Observed::clone).unwrap()
}

/// Waits until the add-on's status satisfies `is` for both placements.
async fn until(client: &Client, is: impl Fn(&Value, &Value) -> bool) {
    let api: Api<ClusterManagementAddOn> = Api::all(client.clone());
    let mut events = std::pin::pin!(watcher(api.clone(), watcher::Config::default()));
    let wait = async {
        while let Some(event) = events.next().await {
            if let Event::Apply(object) | Event::InitApply(object) = event.unwrap() {
                let status = json!(object.status);
                let of = |index: usize| status["installProgression"][index]["conditions"][0].clone();
                if is(&of(0), &of(1)) {
                    return;
                }
            }
        }
    };
    if tokio::time::timeout(GIVE_UP, wait).await.is_err() {
        panic!("not within {GIVE_UP:?}: {}", json!(api.get("hello").await.unwrap().status));
    }
}

/// The clusters that are assigned v2, in the order of the commits, until there are `count`.
async fn starts(client: Client, count: usize) -> Vec<String> {
    let api: Api<ManagedClusterAddOn> = Api::all(client);
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    let mut told: Vec<String> = Vec::new();
    while told.len() < count {
        let event =
            tokio::time::timeout(GIVE_UP, events.next()).await.expect("another start").unwrap().unwrap();
        if let Event::Apply(object) | Event::InitApply(object) = event {
            let status = json!(object.status);
            let references = status["configReferences"].as_array().cloned().unwrap_or_default();
            let is_told = references.iter().any(|one| one["desiredConfig"]["name"] == "v2");
            let cluster = object.namespace().unwrap();
            if is_told && !told.contains(&cluster) {
                told.push(cluster);
            }
        }
    }
    told
}

/// Compares a rehearsal with a real run: the order of starts, and the clusters that are stuck at
/// the end. Uses the first seed whose rehearsal is `worth` comparing.
async fn compare(
    budget: &str,
    profile: Profile,
    worth: fn(&Rehearsal) -> bool,
) -> (Rehearsal, Vec<String>, BTreeSet<String>) {
    let (_hub, client) = hub().await;
    let instant = Profile { latency: (Duration::ZERO, Duration::ZERO), ..profile.clone() };
    // All clusters start with v1, including those that will be offline.
    let well = fleet(&client, Profile { fail: 0.0, offline: 0.0, flap: 0.0, ..instant.clone() });
    well.register(|| {}).await.unwrap();
    let (agents, manager) = (start(&well), manage(&client));
    put(&client, addon("v1", budget)).await;
    let complete =
        |condition: &Value| condition["message"].as_str().is_some_and(|text| text.contains("completed"));
    until(&client, |fleet, canary| complete(fleet) && complete(canary)).await;
    manager.stop().await;
    agents.stop().await;

    put(&client, addon("v2", budget)).await;
    let snapshot = observed(&client).await;
    let rehearsed = (1..100).map(|seed| {
        let profile = Profile { seed, ..instant.clone() };
        (rehearse(snapshot.clone(), &profile, Timestamp::now()), profile)
    });
    let (rehearsal, profile) = rehearsed.into_iter().find(|(rehearsal, _)| worth(rehearsal)).expect("a seed");
    let real = fleet(&client, profile);
    real.register(|| {}).await.unwrap();

    let seen = tokio::spawn(starts(client.clone(), rehearsal.starts.len()));
    let (agents, manager) = (start(&real), manage(&client));
    let end: Vec<String> = rehearsal.end.iter().map(|placement| placement.message.clone()).collect();
    let says = |condition: &Value, expected: &str| {
        // The text of a failure differs.
        let counts = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
        counts(condition["message"].as_str().unwrap_or_default()) == counts(expected)
    };
    let order = seen.await.unwrap();
    until(&client, |fleet, canary| says(fleet, &end[0]) && says(canary, &end[1])).await;
    manager.stop().await;
    agents.stop().await;
    let instances: Api<ManagedClusterAddOn> = Api::all(client.clone());
    let all = instances.list(&Default::default()).await.unwrap().items;
    let told = all.iter().filter(|one| {
        let status = json!(one.status);
        let references = status["configReferences"].as_array().cloned().unwrap_or_default();
        references
            .iter()
            .any(|one| one["desiredConfig"]["name"] == "v2" && one["lastAppliedConfig"]["name"] != "v2")
    });
    (rehearsal, order, told.map(|one| one.namespace().unwrap()).collect())
}

fn rehearsed(rehearsal: &Rehearsal) -> Vec<String> {
    rehearsal.starts.iter().map(|start| start.cluster.to_string()).collect()
}

/// Clusters that were started and have not settled.
fn stuck(rehearsal: &Rehearsal) -> BTreeSet<String> {
    let started: BTreeSet<String> = rehearsed(rehearsal).into_iter().collect();
    let unsettled = rehearsal.unsettled.iter().map(|(cluster, _)| cluster.to_string());
    unsettled.filter(|cluster| started.contains(cluster)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_at_a_time_the_order_is_the_same_to_the_last() {
    let (rehearsal, order, standing) = compare("1", Profile::default(), |_| true).await;
    assert_eq!(order.len(), 40);
    assert_eq!(order, rehearsed(&rehearsal));
    assert_eq!(standing, BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_stop_it_at_the_same_cluster() {
    // The rollout passes the canary and stops in the middle of the fleet.
    let in_the_fleet = |rehearsal: &Rehearsal| (12..36).contains(&rehearsal.starts.len());
    let profile = Profile { fail: 0.05, failure: FailureKind::Refuses, ..Profile::default() };
    let (rehearsal, order, standing) = compare("1", profile, in_the_fleet).await;
    assert_eq!(order, rehearsed(&rehearsal));
    assert_eq!((standing.len(), standing), (1, stuck(&rehearsal)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_at_a_time_the_same_clusters_start_and_stand() {
    let in_the_fleet = |rehearsal: &Rehearsal| (12..36).contains(&rehearsal.starts.len());
    let profile = Profile { fail: 0.15, failure: FailureKind::Refuses, ..Profile::default() };
    let (rehearsal, order, standing) = compare("15%", profile, in_the_fleet).await;
    let set = |names: Vec<String>| names.into_iter().collect::<BTreeSet<String>>();
    assert_eq!(set(order), set(rehearsed(&rehearsal)));
    assert_eq!(standing, stuck(&rehearsal));
    assert!(standing.len() > 1, "{standing:?}");
}
