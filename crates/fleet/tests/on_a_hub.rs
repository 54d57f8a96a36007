//! A simulated fleet on the embedded hub: registration, reports, and deliberate faults.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use aviary_api::{ManagedCluster, ManifestWork};
use aviary_engine::simulate::agents::{FailureKind, Profile};
use aviary_fleet::{
    Behaviour, FailureScope, LabelShare, Lie, RegisterError, SimulatedFailure, SimulatedFleet, members,
    remove,
};
use aviary_hub::Hub;
use aviary_testing::GIVE_UP;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct World {
    pub(crate) client: Client,
    _hub: Hub,
}

/// A running fleet.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }
}

pub(crate) fn instant(mut profile: Profile) -> Profile {
    profile.latency = (Duration::ZERO, Duration::ZERO);
    profile
}

fn honest() -> Behaviour {
    Behaviour { profile: instant(Profile::default()), ..Behaviour::default() }
}

/// Where something fails, the cluster does not accept it.
fn refusing() -> Behaviour {
    let honest = honest();
    Behaviour { profile: Profile { failure: FailureKind::Refuses, ..honest.profile.clone() }, ..honest }
}

impl World {
    pub(crate) async fn new() -> Self {
        let hub = Hub::ephemeral(Default::default()).await.unwrap();
        let client = hub.client();
        aviary_testing::install_crds(&client).await;
        Self { client, _hub: hub }
    }

    fn fleet(&self, count: usize, behaviour: Behaviour) -> SimulatedFleet {
        SimulatedFleet::new(self.client.clone(), members("c", count, &[], 1).unwrap(), behaviour)
    }

    /// Registers and runs a fleet.
    pub(crate) async fn run(&self, count: usize, behaviour: Behaviour) -> (SimulatedFleet, Running) {
        let fleet = self.fleet(count, behaviour);
        fleet.register(|| {}).await.unwrap();
        (fleet.clone(), start(&fleet))
    }

    fn clusters(&self) -> Api<ManagedCluster> {
        Api::all(self.client.clone())
    }

    pub(crate) fn works(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.client.clone(), cluster)
    }

    /// Creates or updates a work with a version on a cluster.
    pub(crate) async fn put(&self, cluster: &str, version: &str) {
        let object = work(version);
        let params = PatchParams::apply("test").force();
        self.works(cluster).patch("w", &params, &Patch::Apply(&object)).await.unwrap();
    }

    /// Waits until a work satisfies a condition.
    pub(crate) async fn until(&self, cluster: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let config = watcher::Config::default();
        let mut events = std::pin::pin!(watcher(self.works(cluster), config));
        let wait = async {
            while let Some(event) = events.next().await {
                if let Event::Apply(object) | Event::InitApply(object) = event.unwrap() {
                    let object = json!(object);
                    if is(&object) {
                        return object;
                    }
                }
            }
            panic!("the watch ended")
        };
        match tokio::time::timeout(GIVE_UP, wait).await {
            Ok(object) => object,
            Err(_) => panic!("{what}: not within {GIVE_UP:?}: {:?}", self.works(cluster).get("w").await),
        }
    }
}

pub(crate) fn start(fleet: &SimulatedFleet) -> Running {
    let (stop, stopped) = oneshot::channel();
    let fleet = fleet.clone();
    let task = tokio::spawn(async move { fleet.run(async { drop(stopped.await) }).await });
    Running { stop, task }
}

fn work(version: &str) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "labels": {"open-cluster-management.io/addon-version": version}},
        "spec": {
            "workload": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "there"}, "data": {"version": version}},
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": "there"}, "spec": {"replicas": 2}},
            ]},
            "manifestConfigs": [{
                "resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "agent", "namespace": "there"},
                "feedbackRules": [{"type": "WellKnownStatus"}],
            }],
        },
    })
}

/// A value of the Deployment of a work, as the agent reports it.
pub(crate) fn reported(work: &Value, name: &str) -> Option<i64> {
    let values = work["status"]["resourceStatus"]["manifests"][1]["statusFeedback"]["values"].as_array()?;
    values.iter().find(|value| value["name"] == name)?["fieldValue"]["integer"].as_i64()
}

/// The status and generation of a condition of a work.
pub(crate) fn said(work: &Value, type_: &str) -> Option<(String, i64)> {
    let conditions = work["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == type_)?;
    Some((condition["status"].as_str()?.to_owned(), condition["observedGeneration"].as_i64()?))
}

pub(crate) fn is_well(work: &Value) -> bool {
    let generation = work["metadata"]["generation"].as_i64().unwrap();
    let well = Some(("True".to_owned(), generation));
    said(work, "Applied") == well && said(work, "Available") == well
}

#[tokio::test]
async fn clusters_are_registered_with_labels_namespaces_and_conditions() {
    let world = World::new().await;
    let labels = [LabelShare { key: "stage".into(), value: "canary".into(), share: 0.2 }];
    let behaviour =
        Behaviour { profile: Profile { offline: 0.3, ..Profile::default() }, ..Behaviour::default() };
    let fleet = SimulatedFleet::new(world.client.clone(), members("c", 50, &labels, 1).unwrap(), behaviour);
    let mut calls = 0;
    let told = fleet.register(|| calls += 1).await.unwrap();
    assert_eq!((told.created, told.taken_over, told.others, calls), (50, 0, 0, 50));
    assert!((5..25).contains(&told.offline), "{} of 50", told.offline);

    let clusters = world.clusters().list(&Default::default()).await.unwrap().items;
    let canaries =
        clusters.iter().filter(|one| one.labels().get("stage").is_some_and(|stage| stage == "canary"));
    assert_eq!((clusters.len(), canaries.count()), (50, 10));
    let status = |cluster: &ManagedCluster, type_: &str| {
        let conditions = &cluster.status.as_ref().unwrap().conditions;
        aviary_api::Condition::find(conditions, type_).unwrap().status.clone()
    };
    for type_ in ["HubAcceptedManagedCluster", "ManagedClusterJoined"] {
        assert!(clusters.iter().all(|cluster| status(cluster, type_) == "True"), "{type_}");
    }
    let unknown = clusters.iter().filter(|one| status(one, "ManagedClusterConditionAvailable") == "Unknown");
    assert_eq!(unknown.count(), told.offline);
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    assert!(namespaces.get_opt("c-01").await.unwrap().is_some());
}

#[tokio::test]
async fn registering_again_takes_over_and_writes_nothing_that_is_so() {
    let world = World::new().await;
    world.fleet(10, honest()).register(|| {}).await.unwrap();
    let before = world.clusters().list(&Default::default()).await.unwrap();
    let told = world.fleet(10, honest()).register(|| {}).await.unwrap();
    assert_eq!((told.created, told.taken_over, told.others), (0, 10, 0));
    let after = world.clusters().list(&Default::default()).await.unwrap();
    assert_eq!(json!(before.items), json!(after.items));

    let fewer =
        SimulatedFleet::new(world.client.clone(), members("c", 10, &[], 1).unwrap()[..4].to_vec(), honest());
    assert_eq!(fewer.register(|| {}).await.unwrap().others, 6);
}

#[tokio::test]
async fn a_cluster_that_is_not_simulated_is_left_alone() {
    let world = World::new().await;
    let real: ManagedCluster = serde_json::from_value(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": "c-3"},
        "spec": {"hubAcceptsClient": true},
    }))
    .unwrap();
    world.clusters().create(&PostParams::default(), &real).await.unwrap();
    let refused = world.fleet(5, honest()).register(|| {}).await.unwrap_err();
    assert!(matches!(&refused, RegisterError::Foreign { name } if name == "c-3"), "{refused}");
    assert_eq!(
        world.clusters().list(&Default::default()).await.unwrap().items.len(),
        1,
        "nothing was registered"
    );
    remove(&world.client, || {}).await.unwrap();
    assert!(world.clusters().get_opt("c-3").await.unwrap().is_some());
}

#[tokio::test]
async fn a_removal_deletes_what_was_registered_and_all_that_is_in_it() {
    let world = World::new().await;
    let (_, running) = world.run(10, honest()).await;
    world.put("c-01", "v1").await;
    world.until("c-01", "an answer", is_well).await;
    let told = remove(&world.client, || {}).await.unwrap();
    assert_eq!((told.clusters, told.namespaces, told.leaving), (10, 10, 0));
    assert!(world.clusters().list(&Default::default()).await.unwrap().items.is_empty());
    let works: Api<ManifestWork> = Api::all(world.client.clone());
    assert!(works.list(&Default::default()).await.unwrap().items.is_empty());
    running.stop().await;
}

#[tokio::test]
async fn a_work_is_reported_as_an_agent_reports_it() {
    let world = World::new().await;
    let (fleet, running) = world.run(1, honest()).await;
    world.put("c-1", "v1").await;
    let first = world.until("c-1", "an answer", is_well).await;
    let manifests = first["status"]["resourceStatus"]["manifests"].as_array().unwrap();
    assert_eq!(
        manifests[1]["resourceMeta"],
        json!({"ordinal": 1, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "agent",
            "namespace": "there"})
    );
    let states = |manifest: &Value| -> Vec<String> {
        let conditions = manifest["conditions"].as_array().unwrap().iter();
        conditions
            .map(|one| format!("{} {}", one["type"].as_str().unwrap(), one["reason"].as_str().unwrap()))
            .collect()
    };
    let of_objects = ["Applied AppliedManifestComplete", "Available ResourceAvailable"];
    assert_eq!(
        states(&manifests[0]),
        [&of_objects[..], &["StatusFeedbackSynced NoStatusFeedbackSynced"]].concat()
    );
    assert_eq!(
        states(&manifests[1]),
        [&of_objects[..], &["StatusFeedbackSynced StatusFeedbackSynced"]].concat()
    );
    assert_eq!(
        manifests[1]["statusFeedback"]["values"][0],
        json!({"name": "ReadyReplicas", "fieldValue": {"type": "Integer", "integer": 2}})
    );

    world.put("c-1", "v2").await;
    let second = world
        .until("c-1", "an answer to the change", |work| work["metadata"]["generation"] == 2 && is_well(work));
    let since = |work: &Value| work["status"]["conditions"][0]["lastTransitionTime"].clone();
    assert_eq!(since(&second.await), since(&first), "what holds has held since then");
    running.stop().await;
    let tally = fleet.tally();
    let counts = (tally.seen, tally.reported, tally.refused, tally.retried);
    assert_eq!(counts, (2, 3, 0, 0), "the change is first reported with the values of v1");
}

#[tokio::test]
async fn works_that_were_there_before_the_agents_are_answered_and_answers_are_not_repeated() {
    let world = World::new().await;
    let fleet = world.fleet(3, honest());
    fleet.register(|| {}).await.unwrap();
    world.put("c-1", "v1").await;
    let running = start(&fleet);
    let answered = world.until("c-1", "an answer", is_well).await;
    running.stop().await;

    let fleet = world.fleet(3, honest());
    let running = start(&fleet);
    // The second work comes later in the stream: when it has a report, the first has been
    // processed.
    world.put("c-2", "v1").await;
    world.until("c-2", "an answer", is_well).await;
    running.stop().await;
    assert_eq!(fleet.tally().reported, 1);
    assert_eq!(json!(world.works("c-1").get("w").await.unwrap()), answered);
}

#[tokio::test]
async fn failures_by_version_hit_that_version_only() {
    let world = World::new().await;
    let failures = vec![SimulatedFailure { scope: FailureScope::Version("v2".into()), share: 1.0 }];
    let (fleet, running) = world.run(1, Behaviour { failures, ..refusing() }).await;
    world.put("c-1", "v1").await;
    world.until("c-1", "v1 is well", is_well).await;
    world.put("c-1", "v2").await;
    let refused =
        world.until("c-1", "v2 is refused", |work| said(work, "Applied") == Some(("False".into(), 2))).await;
    assert_eq!(said(&refused, "Available"), Some(("True".into(), 2)), "what was there before is still there");
    world.put("c-1", "v3").await;
    world.until("c-1", "v3 is well", is_well).await;
    running.stop().await;
    assert_eq!(fleet.tally().refused, 1);
}

#[tokio::test]
async fn failures_by_label_hit_clusters_with_that_label() {
    let world = World::new().await;
    let scope = FailureScope::Label { key: "stage".into(), value: "canary".into() };
    let behaviour = Behaviour { failures: vec![SimulatedFailure { scope, share: 1.0 }], ..refusing() };
    let mut members = members("c", 2, &[], 1).unwrap();
    members[0].labels = BTreeMap::from([("stage".to_owned(), "canary".to_owned())]);
    let fleet = SimulatedFleet::new(world.client.clone(), members, behaviour);
    fleet.register(|| {}).await.unwrap();
    let running = start(&fleet);
    world.put("c-1", "v1").await;
    world.put("c-2", "v1").await;
    world.until("c-1", "the canary refuses", |work| said(work, "Applied") == Some(("False".into(), 1))).await;
    world.until("c-2", "the other is well", is_well).await;
    running.stop().await;
}

#[tokio::test]
async fn failures_by_share_hit_that_share_and_the_same_clusters_every_time() {
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        let world = World::new().await;
        let behaviour = Behaviour {
            profile: instant(Profile { fail: 0.5, ..Profile::default() }),
            ..Behaviour::default()
        };
        let (fleet, running) = world.run(20, behaviour).await;
        let mut failed = Vec::new();
        for member in fleet.members() {
            let name = member.name.as_str();
            world.put(name, "v1").await;
            let answered = world.until(name, "an answer", |work| said(work, "Applied").is_some()).await;
            assert!(is_well(&answered), "the objects exist, whatever their pods do");
            // A pod of the new version is beside those of the old one, and does not become ready.
            failed.extend((reported(&answered, "Replicas") == Some(3)).then(|| name.to_owned()));
        }
        running.stop().await;
        assert!((4..16).contains(&failed.len()), "{failed:?}");
        outcomes.push(failed);
    }
    assert_eq!(outcomes[0], outcomes[1]);
}

#[tokio::test]
async fn a_flapping_cluster_goes_down_once_and_recovers() {
    let world = World::new().await;
    let behaviour =
        Behaviour { profile: instant(Profile { flap: 1.0, ..Profile::default() }), ..Behaviour::default() };
    let fleet = world.fleet(1, behaviour);
    fleet.register(|| {}).await.unwrap();
    let mut events = Box::pin(watcher(world.works("c-1"), watcher::Config::default()));
    let seen = async {
        let mut seen = Vec::new();
        while seen.len() < 3 {
            match events.next().await.unwrap().unwrap() {
                Event::Apply(object) => {
                    let work = json!(object);
                    seen.extend(said(&work, "Available").map(|_| reported(&work, "AvailableReplicas")));
                }
                // From here on no event is missed.
                Event::InitDone => world.put("c-1", "v1").await,
                _ => {}
            }
        }
        seen
    };
    let running = start(&fleet);
    let seen = tokio::time::timeout(GIVE_UP, seen).await.expect("three reports");
    assert_eq!(seen, [Some(2), None, Some(2)], "a counter of 0 is left out");
    running.stop().await;
}

#[tokio::test]
async fn an_offline_cluster_never_answers() {
    let world = World::new().await;
    let profile = instant(Profile { offline: 0.5, ..Profile::default() });
    let (fleet, running) = world.run(10, Behaviour { profile, ..Behaviour::default() }).await;
    let clusters = world.clusters().list(&Default::default()).await.unwrap().items;
    let is_offline = |cluster: &ManagedCluster| {
        let conditions = &cluster.status.as_ref().unwrap().conditions;
        aviary_api::Condition::find(conditions, "ManagedClusterConditionAvailable").unwrap().status
            == "Unknown"
    };
    let (offline, online): (Vec<_>, Vec<_>) = clusters.iter().partition(|cluster| is_offline(cluster));
    assert!(!offline.is_empty() && !online.is_empty());
    // The online clusters come last: when they have reported, the others have been processed as
    // well.
    for cluster in offline.iter().chain(&online) {
        world.put(&cluster.name_any(), "v1").await;
    }
    for cluster in &online {
        world.until(&cluster.name_any(), "an answer", is_well).await;
    }
    running.stop().await;
    assert_eq!(fleet.tally().seen, 10);
    for cluster in &offline {
        assert_eq!(world.works(&cluster.name_any()).get("w").await.unwrap().status, None);
    }
}

#[tokio::test]
async fn liars_lie() {
    for (lie, applied, available) in [
        (Lie::OldGeneration, Some(("True".to_owned(), 1)), Some(("True".to_owned(), 1))),
        (Lie::OnlyAvailable, None, Some(("True".to_owned(), 2))),
    ] {
        let world = World::new().await;
        let fleet = world.fleet(1, Behaviour { lies: vec![(lie, 1.0)], ..honest() });
        fleet.register(|| {}).await.unwrap();
        world.put("c-1", "v1").await;
        world.put("c-1", "v2").await;
        let running = start(&fleet);
        let told = world.until("c-1", "a lie", |work| said(work, "Available").is_some()).await;
        assert_eq!((said(&told, "Applied"), said(&told, "Available")), (applied, available), "{lie:?}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_takes_its_time() {
    let world = World::new().await;
    let hour = Duration::from_secs(3600);
    let profile = Profile { latency: (hour, hour * 2), ..Profile::default() };
    let (_, running) = world.run(1, Behaviour { profile, ..Behaviour::default() }).await;
    let start = tokio::time::Instant::now();
    world.put("c-1", "v1").await;
    let api = world.works("c-1");
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(object) | Event::InitApply(object)) = event
            && is_well(&json!(object))
        {
            break;
        }
    }
    let took = start.elapsed();
    assert!(took >= hour && took < hour * 3, "{took:?}");
    running.stop().await;
}

#[tokio::test]
async fn conditions_that_somebody_changes_are_put_right() {
    let world = World::new().await;
    let (_, running) = world.run(1, honest()).await;
    let wrong = json!({"status": {"conditions": [{
        "type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "Gone", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }, {
        "type": "Foreign", "status": "True", "reason": "Theirs", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    world.clusters().patch_status("c-1", &PatchParams::default(), &Patch::Merge(wrong)).await.unwrap();
    let mut events = std::pin::pin!(watcher(world.clusters(), watcher::Config::default()));
    let wait = async {
        while let Some(event) = events.next().await {
            if let Event::Apply(object) | Event::InitApply(object) = event.unwrap() {
                let conditions = object.status.unwrap().conditions;
                let holds = |type_: &str| {
                    aviary_api::Condition::find(&conditions, type_)
                        .is_some_and(aviary_api::Condition::is_true)
                };
                if ["ManagedClusterConditionAvailable", "ManagedClusterJoined", "Foreign"]
                    .into_iter()
                    .all(holds)
                {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(GIVE_UP, wait).await.expect("the conditions put right");
    running.stop().await;
}

#[tokio::test]
async fn a_work_that_waits_for_its_agent_to_clean_up_is_released() {
    let world = World::new().await;
    let (_, running) = world.run(1, honest()).await;
    world.put("c-1", "v1").await;
    world.until("c-1", "an answer", is_well).await;
    let finalizer =
        json!({"metadata": {"finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"]}});
    let works = world.works("c-1");
    works.patch("w", &PatchParams::default(), &Patch::Merge(finalizer)).await.unwrap();
    works.delete("w", &DeleteParams::default()).await.unwrap();
    let mut events = std::pin::pin!(watcher(works.clone(), watcher::Config::default()));
    let wait = async {
        // Either the list no longer contains it, or a deletion event arrives.
        let mut there = false;
        while let Some(event) = events.next().await {
            match event.unwrap() {
                Event::InitApply(_) => there = true,
                Event::InitDone if !there => return,
                Event::Delete(_) => return,
                _ => {}
            }
        }
    };
    tokio::time::timeout(GIVE_UP, wait).await.expect("the work gone");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_clusters_are_answered_for_through_one_watch() {
    let world = World::new().await;
    let (fleet, running) = world.run(1000, honest()).await;
    for member in fleet.members() {
        world.put(member.name.as_str(), "v1").await;
    }
    let works: Api<ManifestWork> = Api::all(world.client.clone());
    let mut events = std::pin::pin!(watcher(works, watcher::Config::default()));
    let mut well = std::collections::BTreeSet::new();
    let wait = async {
        while well.len() < 1000 {
            if let Event::Apply(object) | Event::InitApply(object) = events.next().await.unwrap().unwrap()
                && is_well(&json!(object))
            {
                well.insert(object.namespace().unwrap());
            }
        }
    };
    tokio::time::timeout(GIVE_UP, wait).await.expect("all answers");
    running.stop().await;
    assert_eq!(fleet.tally().reported, 1000);
}
