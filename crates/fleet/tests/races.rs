//! A manager and agents that report too early: nothing settles on the values of older objects.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aviary_api::{ManagedClusterAddOn, ManifestWork};
use aviary_engine::simulate::agents::Profile;
use aviary_fleet::{Behaviour, LabelShare, Races, SimulatedFleet, members};
use futures_util::StreamExt;
use kube::api::Api;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::rehearsed::{addon, hub_with, manage, put, start};

/// All of them: first stale, then applied and stale, then ahead of its controller.
const EVERY: Races = Races { stale: 1.0, stale_applied: 1.0, unobserved: 1.0 };
const CLUSTERS: usize = 6;

/// How far a work of a generation is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    /// Not at all.
    Nothing,
    /// `Available`, with older values.
    Stale,
    /// `Applied` as well, with older values.
    StaleApplied,
    /// The values are of the new object, but its controller has not seen it.
    Unobserved,
    All,
}

fn told(work: &Value) -> Told {
    let manifest = &work["spec"]["workload"]["manifests"][0];
    let values = &work["status"]["resourceStatus"]["manifests"][0]["statusFeedback"]["values"];
    let value = |name: &str| -> Value {
        let one = values.as_array().and_then(|all| all.iter().find(|one| one["name"] == name));
        let field = one.map(|one| one["fieldValue"].clone()).unwrap_or_default();
        if field["string"].is_null() { field["integer"].clone() } else { field["string"].clone() }
    };
    let holds = |type_: &str| {
        let conditions = work["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| {
            one["type"] == type_
                && one["status"] == "True"
                && one["observedGeneration"] == work["metadata"]["generation"]
        })
    };
    let digest = value("aviary-digest");
    let annotations = manifest["metadata"]["annotations"].as_object().unwrap();
    let is_of_this_object = annotations.values().any(|annotation| *annotation == digest);
    match (holds("Applied"), holds("Available")) {
        (_, false) => Told::Nothing,
        (false, true) => Told::Stale,
        (true, true) if !is_of_this_object => Told::StaleApplied,
        (true, true) if value("aviary-observed") != value("aviary-generation") => Told::Unobserved,
        (true, true) => Told::All,
    }
}

fn runs(instance: &ManagedClusterAddOn, version: &str) -> bool {
    let status = json!(instance.status);
    let references = status["configReferences"].as_array().cloned().unwrap_or_default();
    references.iter().any(|one| one["lastAppliedConfig"]["name"] == version)
}

/// What the commits of the works were on each cluster, in their order, when its instance was
/// recorded as running the version.
async fn reports_before_settling(client: Client, version: &str) -> BTreeMap<String, Vec<Told>> {
    let config = watcher::Config::default;
    let works: Api<ManifestWork> = Api::all(client.clone());
    let instances: Api<ManagedClusterAddOn> = Api::all(client);
    let works = watcher(works, config()).map(|event| (Some(event.unwrap()), None));
    let instances = watcher(instances, config()).map(|event| (None, Some(event.unwrap())));
    let mut events = std::pin::pin!(futures_util::stream::select(works, instances));
    let mut commits: Vec<(u64, String, Told)> = Vec::new();
    let mut settled: BTreeMap<String, u64> = BTreeMap::new();
    let revision = |object: Option<String>| object.unwrap().parse::<u64>().unwrap();
    // The watches may be apart: all reports up to the last settling are needed.
    let mut seen = 0;
    while settled.len() < CLUSTERS || settled.values().any(|at| *at > seen) {
        match events.next().await.unwrap() {
            (Some(Event::Apply(work) | Event::InitApply(work)), _) => {
                seen = revision(work.resource_version());
                let object = json!(work);
                if object["metadata"]["name"] != "marker" && object["metadata"]["generation"] == 2 {
                    commits.push((seen, work.namespace().unwrap(), told(&object)));
                }
            }
            (_, Some(Event::Apply(instance) | Event::InitApply(instance))) if runs(&instance, version) => {
                let at = revision(instance.resource_version());
                settled.entry(instance.namespace().unwrap()).or_insert(at);
            }
            _ => {}
        }
    }
    let before = |cluster: &String, at: u64| {
        let of = commits.iter().filter(|(when, of, _)| of == cluster && *when < at);
        of.map(|(_, _, told)| *told).collect()
    };
    settled.iter().map(|(cluster, at)| (cluster.clone(), before(cluster, *at))).collect()
}

/// Waits until every instance is recorded as running the version.
async fn until_all_run(client: &Client, version: &str) -> BTreeSet<String> {
    let instances: Api<ManagedClusterAddOn> = Api::all(client.clone());
    let mut events = std::pin::pin!(watcher(instances, watcher::Config::default()));
    let mut done = BTreeSet::new();
    while done.len() < CLUSTERS {
        if let Event::Apply(one) | Event::InitApply(one) = events.next().await.unwrap().unwrap()
            && runs(&one, version)
        {
            done.insert(one.namespace().unwrap());
        }
    }
    done
}

/// In virtual time, so that the manager has all the time it wants between two reports.
#[tokio::test(start_paused = true)]
async fn nothing_settles_on_a_report_of_the_older_objects() {
    let (_hub, client) = hub_with(|version| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one", "namespace": "there"},
            "spec": {"replicas": 2, "template": {"metadata": {"labels": {"version": version}}}},
        })
    })
    .await;
    let time = Duration::from_secs(80);
    let profile = Profile { latency: (time, time), ..Profile::default() };
    let label = |key: &str, share: f64| LabelShare {
        key: key.into(),
        value: if share < 1.0 { "yes" } else { "all" }.into(),
        share,
    };
    let members = members("c", CLUSTERS, &[label("fleet", 1.0), label("canary", 0.34)], 1).unwrap();
    let fleet = SimulatedFleet::new(
        client.clone(),
        members,
        Behaviour { profile, races: EVERY, ..Behaviour::default() },
    );
    fleet.register(|| {}).await.unwrap();
    let (agents, manager) = (start(&fleet), manage(&client));
    put(&client, addon("v1", "100%")).await;
    until_all_run(&client, "v1").await;

    let watched = tokio::spawn(reports_before_settling(client.clone(), "v2"));
    put(&client, addon("v2", "100%")).await;
    let done = until_all_run(&client, "v2").await;
    // A later commit of a work shows that no report was missed.
    let marker = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "marker", "namespace": done.first()}, "spec": {"workload": {"manifests": []}},
    });
    put(&client, marker).await;
    let reports = watched.await.unwrap();
    manager.stop().await;
    agents.stop().await;
    assert_eq!(reports.len(), CLUSTERS);
    for (cluster, mut told) in reports {
        told.dedup();
        assert_eq!(
            told,
            [Told::Nothing, Told::Stale, Told::StaleApplied, Told::Unobserved, Told::All],
            "{cluster}: recorded as running v2 before its last report"
        );
    }
}
