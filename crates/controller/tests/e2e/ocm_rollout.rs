//! Rollouts on a hub with the kinds of Open Cluster Management, and a hub that prunes what nobody
//! foresaw.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aviary_api::ManagedClusterAddOn;
use aviary_testing::objects::{manifest, names, template_of};
use futures_util::StreamExt;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::agents::Agents;
use crate::counting::{Counts, writes};
use crate::objects::{instance, reference};
use crate::world::{GIVE_UP, World};

/// For how long nothing may be written at rest.
pub(crate) const REST: Duration = Duration::from_secs(30);

/// A version of the add-on. OCM's schema refuses a variable as the namespace of a manifest.
pub(crate) fn template(version: &str) -> Value {
    let mut manifest = manifest(version);
    manifest["metadata"]["namespace"] = json!("open-cluster-management-agent-addon");
    template_of("helloworld", version, &json!([manifest]))
}

/// A placement as kubectl writes it: OCM's schema fills in the rest.
pub(crate) fn place(name: &str, template: &str, concurrency: Value) -> Value {
    let configs = [reference("addontemplates", None, template)];
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": concurrency}});
    json!({"name": name, "namespace": "default", "configs": configs, "rolloutStrategy": strategy})
}

pub(crate) fn addon(placements: &[Value]) -> Value {
    let supported = json!([{"group": "addon.open-cluster-management.io", "resource": "addontemplates"}]);
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "helloworld"},
        "spec": {"supportedConfigs": supported,
            "installStrategy": {"type": "Placements", "placements": placements}},
    })
}

/// Waits until every placement says that a template is applied everywhere.
pub(crate) async fn until_applied(world: &World, template: &str) {
    world
        .until("helloworld", template, |addon| {
            let status = json!(addon.status);
            let progressions = status["installProgressions"].as_array().cloned().unwrap_or_default();
            !progressions.is_empty()
                && progressions.iter().all(|one| {
                    let config = &one["configReferences"][0];
                    config["desiredConfig"]["name"] == template
                        && config["lastAppliedConfig"]["name"] == template
                })
        })
        .await;
}

/// Fails if any write is tried while nothing happens.
pub(crate) async fn at_rest(counts: &Counts, rest: Duration) {
    let written = async {
        // What was under way when the last status was seen.
        let mut quiet = 0;
        while quiet < 10 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            quiet = if writes(&counts.take()) == 0 { quiet + 1 } else { 0 };
        }
    };
    tokio::time::timeout(GIVE_UP, written).await.expect("to come to rest");
    stays_at_rest(counts, rest).await;
}

/// Fails if any write is tried from the last count on.
pub(crate) async fn stays_at_rest(counts: &Counts, rest: Duration) {
    let any = async {
        while counts.attempted().is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let any = tokio::time::timeout(rest, any).await;
    assert!(any.is_err(), "written at rest: {:?}", counts.attempted());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_on_an_ocm_hub_is_installed_upgraded_and_taken_back_and_rests() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &names("fleet", 12)).await;
    for version in ["v1.0.0", "v2.0.0"] {
        world.put(template(version)).await;
    }
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    let most = MostInFlight::watch(&world);
    for template in ["helloworld-v1.0.0", "helloworld-v2.0.0", "helloworld-v1.0.0"] {
        let wanted = addon(&[place("fleet", template, json!(3))]);
        match world.converts {
            // What v1beta1 calls otherwise is as it was.
            true if template == "helloworld-v2.0.0" => put_as_beta(&world, wanted).await,
            _ => world.put(wanted).await,
        }
        until_applied(&world, template).await;
        if world.converts {
            assert_beta_reads_the_same(&world, template).await;
        }
        world
            .until_instances("helloworld", template, |all| {
                all.len() == 12
                    && all.iter().all(|one| {
                        json!(one.status)["configReferences"][0]["lastAppliedConfig"]["name"] == template
                    })
            })
            .await;
    }
    at_rest(&counts, REST).await;
    assert!((1..=3).contains(&most.so_far()), "{} in flight at once", most.so_far());
    manager.stop().await;
}

/// How many clusters were upgraded at once: they have another revision than they were assigned.
struct MostInFlight {
    most: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for MostInFlight {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl MostInFlight {
    fn watch(world: &World) -> Self {
        let most = Arc::new(AtomicUsize::new(0));
        let instances: Api<ManagedClusterAddOn> = Api::all(world.client.clone());
        let counted = Arc::clone(&most);
        let task = tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher(instances, watcher::Config::default()).applied_objects());
            let mut in_flight: BTreeSet<String> = BTreeSet::new();
            while let Some(event) = events.next().await {
                let Ok(instance) = event else { continue };
                let cluster = instance.metadata.namespace.clone().unwrap_or_default();
                let reference = json!(instance.status)["configReferences"][0].clone();
                let [desired, applied] =
                    ["desiredConfig", "lastAppliedConfig"].map(|one| &reference[one]["specHash"]);
                // First installs are not throttled.
                if applied.is_string() && desired != applied {
                    in_flight.insert(cluster);
                } else {
                    in_flight.remove(&cluster);
                }
                counted.fetch_max(in_flight.len(), Ordering::Relaxed);
            }
        });
        Self { most, task }
    }

    fn so_far(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

fn as_beta(mut object: Value) -> Value {
    object["apiVersion"] = json!("addon.open-cluster-management.io/v1beta1");
    object
}

/// Writes the install strategy of an add-on as a client of v1beta1 does.
async fn put_as_beta(world: &World, addon: Value) {
    let mut beta = as_beta(addon);
    beta["spec"].as_object_mut().unwrap().remove("supportedConfigs");
    world.put(beta).await;
}

async fn assert_beta_reads_the_same(world: &World, template: &str) {
    let stored = world.get(&addon(&[])).await.unwrap();
    assert_eq!(stored["spec"]["supportedConfigs"], addon(&[])["spec"]["supportedConfigs"], "{stored:#}");
    let seen = world.get(&as_beta(addon(&[]))).await.unwrap();
    let supported = json!([{"group": "addon.open-cluster-management.io", "resource": "addontemplates",
        "name": "__reserved_no_default__"}]);
    assert_eq!(seen["spec"]["defaultConfigs"], supported, "{seen:#}");
    let progression = &seen["status"]["installProgressions"][0];
    assert_eq!(progression["configReferences"][0]["lastAppliedConfig"]["name"], template, "{seen:#}");
    let instance = world.get(&as_beta(instance("fleet-00", "helloworld", json!({})))).await.unwrap();
    assert_eq!(instance["status"]["configReferences"][0]["desiredConfig"]["name"], template, "{instance:#}");
}

/// Nobody foresaw that this hub prunes the generation that a condition is about: every pass would
/// state the condition anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_the_hub_prunes_is_written_once() {
    let world = World::new().await;
    world.clusters("fleet", &names("fleet", 3)).await;
    world.put(template("v1.0.0")).await;
    for crd in ["managedclusteraddons", "clustermanagementaddons"] {
        prune(&world, &format!("{crd}.addon.open-cluster-management.io")).await;
    }
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    world.put(addon(&[place("fleet", "helloworld-v1.0.0", json!(3))])).await;
    until_applied(&world, "helloworld-v1.0.0").await;
    let addon = world.get(&addon(&[])).await.unwrap();
    let conditions = addon["status"]["conditions"].as_array().cloned().unwrap_or_default();
    assert!(
        !conditions.is_empty() && conditions.iter().all(|one| one["observedGeneration"].is_null()),
        "{addon:#}"
    );
    at_rest(&counts, Duration::from_secs(5)).await;
    manager.stop().await;
}

/// Takes a field away from every condition of a kind.
pub(crate) async fn prune(world: &World, crd: &str) {
    let mut versions = world.loosen(crd).await;
    for version in versions.as_array_mut().unwrap() {
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"];
        status["properties"]["conditions"]["items"]["properties"]
            .as_object_mut()
            .unwrap()
            .remove("observedGeneration")
            .unwrap();
    }
    world.tighten(crd, versions).await;
}

pub(crate) fn policy(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnRolloutPolicy",
        "metadata": {"name": name}, "spec": spec,
    })
}

pub(crate) fn record() -> Value {
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnRolloutRecord",
        "metadata": {"name": "helloworld"},
    })
}

/// Waits until the record of the add-on is as it should be.
async fn until_recorded(world: &World, what: &str, is: impl Fn(&Value) -> bool) {
    let wait = async {
        while !world.get(&record()).await.is_some_and(|record| is(&record)) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(GIVE_UP, wait).await;
    assert!(waited.is_ok(), "not {what}: {:#}", json!(world.get(&record()).await));
}

fn condition<'a>(record: &'a Value, kind: &str) -> &'a Value {
    let all = record["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

/// How many instances are assigned a template.
async fn assigned(world: &World, template: &str) -> Vec<String> {
    let all = world.instances("helloworld").await;
    let on = all
        .into_iter()
        .filter(|one| json!(one.status)["configReferences"][0]["desiredConfig"]["name"] == template);
    let mut on: Vec<String> = on.filter_map(|one| one.metadata.namespace).collect();
    on.sort();
    on
}

/// Waits until exactly these clusters are assigned a template: the record of a wave is written
/// before its instances. Fails as soon as any other cluster is assigned it.
async fn until_assigned(world: &World, template: &str, clusters: &[String]) {
    let wait = async {
        loop {
            let now = assigned(world, template).await;
            assert!(now.iter().all(|one| clusters.contains(one)), "{now:?}");
            if now == clusters {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(GIVE_UP, wait).await;
    assert!(waited.is_ok(), "not assigned {template}: {clusters:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_an_ocm_hub_a_policy_adds_a_canary_and_the_record_has_the_conditions() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &names("fleet", 6)).await;
    world.clusters("canary", &names("canary", 2)).await;
    for version in ["v1.0.0", "v2.0.0"] {
        world.put(template(version)).await;
    }
    let agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    let canary = json!({"placement": {"name": "canary", "namespace": "default"}});
    world.put(policy("first", json!({"addOns": {"names": ["helloworld"]}, "canary": canary}))).await;
    let at = |template: &str| {
        addon(&[place("fleet", template, json!("100%")), place("canary", template, json!("100%"))])
    };
    world.put(at("helloworld-v1.0.0")).await;
    until_applied(&world, "helloworld-v1.0.0").await;
    until_recorded(&world, "succeeded", |record| condition(record, "Succeeded")["status"] == "True").await;
    // The canary's agents say nothing, so nobody else moves.
    agents.answer(|_| None);
    world.put(at("helloworld-v2.0.0")).await;
    until_recorded(&world, "waiting", |record| {
        condition(record, "Succeeded")["message"].as_str().is_some_and(|text| {
            text.contains("waitingForCanary") && text.contains("AddOnRolloutPolicy first requires it")
        })
    })
    .await;
    until_assigned(&world, "helloworld-v2.0.0", &names("canary", 2)).await;
    agents.let_go();
    until_applied(&world, "helloworld-v2.0.0").await;
    until_recorded(&world, "succeeded again", |record| condition(record, "Succeeded")["status"] == "True")
        .await;
    let status = world.get(&policy("first", json!({}))).await.unwrap()["status"].clone();
    assert_eq!((&status["addOns"], &status["placements"]), (&json!(1), &json!(2)), "{status:#}");
    at_rest(&counts, Duration::from_secs(5)).await;
    manager.stop().await;
}

/// Waits until the placement says so many times out.
async fn until_progressing(world: &World, ending: &str) {
    world
        .until("helloworld", ending, |addon| {
            let conditions = json!(addon.status)["installProgressions"][0]["conditions"].clone();
            let all = conditions.as_array().cloned().unwrap_or_default();
            let progressing = all.iter().find(|one| one["type"] == "Progressing");
            progressing.is_some_and(|one| one["message"].as_str().unwrap_or_default().ends_with(ending))
        })
        .await;
}

/// An add-on that tolerates every failure, waits for nothing, and never pauses.
fn on_one_at_a_time(template: &str) -> Value {
    let mut placement = place("fleet", template, json!(1));
    placement["rolloutStrategy"]["progressive"]["maxFailures"] = json!("100%");
    addon(&[placement])
}

fn rule(mut spec: Value) -> Value {
    spec["addOns"] = json!({"names": ["helloworld"]});
    policy("rule", spec)
}

/// What the add-on does not ask for is the policy's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_an_ocm_hub_a_policy_pauses_halts_times_out_and_soaks() {
    let world = World::on_ocm().await;
    let fleet = names("fleet", 4);
    world.clusters("fleet", &fleet).await;
    for version in ["v1.0.0", "v2.0.0", "v3.0.0"] {
        world.put(template(version)).await;
    }
    let agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    world.put(on_one_at_a_time("helloworld-v1.0.0")).await;
    until_applied(&world, "helloworld-v1.0.0").await;

    world.put(rule(json!({"paused": true}))).await;
    world.put(on_one_at_a_time("helloworld-v2.0.0")).await;
    until_recorded(&world, "paused", |record| {
        let message = &condition(record, "Succeeded")["message"];
        message.as_str().is_some_and(|text| text.ends_with("upgrading... paused"))
    })
    .await;
    at_rest(&counts, Duration::from_secs(2)).await;
    assert!(assigned(&world, "helloworld-v2.0.0").await.is_empty());
    world.put(rule(json!({"paused": null}))).await;
    until_applied(&world, "helloworld-v2.0.0").await;

    // The first cluster refuses the next version.
    world.put(rule(json!({"maxFailures": 0}))).await;
    agents.answer(|work| {
        let is_first = work.metadata.namespace.as_deref() == Some("fleet-00");
        let is_third = json!(work).to_string().contains("v3.0.0");
        Some(if is_first && is_third { Err("no space left".to_owned()) } else { Ok(()) })
    });
    world.put(on_one_at_a_time("helloworld-v3.0.0")).await;
    until_progressing(&world, "1 failed 0 timeout.").await;
    at_rest(&counts, Duration::from_secs(2)).await;
    assert_eq!(assigned(&world, "helloworld-v3.0.0").await, fleet[..1]);
    agents.let_go();
    until_applied(&world, "helloworld-v3.0.0").await;

    // Nobody reports, until the deadline has passed.
    agents.answer(|_| None);
    world.put(rule(json!({"progressDeadline": "5s"}))).await;
    world.put(on_one_at_a_time("helloworld-v1.0.0")).await;
    until_progressing(&world, "0 failed 1 timeout.").await;
    assert_eq!(assigned(&world, "helloworld-v1.0.0").await, fleet[..1]);
    agents.let_go();
    until_applied(&world, "helloworld-v1.0.0").await;

    // All at once, and each has to stay healthy for 3 s. The hub has times in whole seconds.
    let soak = Duration::from_secs(2);
    world.put(rule(json!({"progressDeadline": null, "minSuccessTime": "3s"}))).await;
    let begun = Instant::now();
    world.put(addon(&[place("fleet", "helloworld-v2.0.0", json!("100%"))])).await;
    until_applied(&world, "helloworld-v2.0.0").await;
    assert!(begun.elapsed() >= soak, "after {:?}", begun.elapsed());
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_an_ocm_hub_the_brake_holds_until_its_number_is_acknowledged() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &names("fleet", 20)).await;
    world.put(template("v1.0.0")).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("first");
    let object = addon(&[place("fleet", "helloworld-v1.0.0", json!("100%"))]);
    world.put(object.clone()).await;
    until_applied(&world, "helloworld-v1.0.0").await;
    world.select("fleet", &names("fleet", 8)).await;
    until_recorded(&world, "held", |record| condition(record, "DeletionsHeld")["reason"] == "DeletionHeld")
        .await;
    assert_eq!(world.instances("helloworld").await.len(), 20);
    at_rest(&counts, Duration::from_secs(3)).await;
    let mut allowed = object;
    allowed["metadata"]["annotations"] = json!({"addon.open-cluster-management.io/allow-deletions": "12"});
    world.put(allowed).await;
    world.until_instances("helloworld", "eight", |all| all.len() == 8).await;
    until_recorded(&world, "over", |record| condition(record, "DeletionsHeld")["reason"] == "NothingHeld")
        .await;
    at_rest(&counts, Duration::from_secs(3)).await;
    manager.stop().await;
}
