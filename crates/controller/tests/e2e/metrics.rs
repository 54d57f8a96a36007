//! What Prometheus is told in the course of a rollout.

use std::sync::Arc;

use aviary_api::ManifestWork;
use aviary_controller::{Manager, Metrics, Settings};
use aviary_engine::observed::Options;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::json;
use tokio::sync::oneshot;

use crate::agents::Agents;
use crate::objects::{addon, named_addon, place, rolling};
use crate::rollout::{hub_config, template};
use crate::world::{GIVE_UP, World, message};

/// The value of a metric; a name that is not there has none.
fn value(metrics: &Metrics, name: &str) -> Option<f64> {
    let told = metrics.tell(Timestamp::now());
    let line = told.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

async fn until_value(metrics: &Metrics, name: &str, wanted: f64) {
    let there = async {
        while value(metrics, name) != Some(wanted) {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(GIVE_UP, there).await;
    assert!(waited.is_ok(), "{name} is {:?}, not {wanted}", value(metrics, name));
}

fn of_fleet(name: &str) -> String {
    format!(r#"{name}{{addon="helloworld",placement="default/fleet"}}"#)
}

/// What an agent is asked to run.
fn version(work: &ManifestWork) -> &str {
    work.labels().get("open-cluster-management.io/addon-version").map_or("", String::as_str)
}

fn clusters(state: &str, reason: &str) -> String {
    format!(
        r#"aviary_clusters{{addon="helloworld",placement="default/fleet",state="{state}",reason="{reason}"}}"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_is_told_by_state_and_reason_and_forgotten_with_its_addon() {
    let world = World::new().await;
    let names: Vec<String> = (0..12).map(|number| format!("fleet-{number:02}")).collect();
    world.clusters("fleet", &names).await;
    for (name, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(name, version)).await;
    }
    let agents = Agents::start(&world.client, |_| Ok(()));
    let metrics = Metrics::default();
    let settings = Settings {
        namespace: "open-cluster-management".into(),
        identity: "told".into(),
        leader_elect: true,
        verify: true,
        placement: false,
        options: Options::default(),
        clock: Arc::new(Timestamp::now),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let manager = Manager::new(world.managers.clone(), settings).with_metrics(metrics.clone());
    let running = tokio::spawn(manager.run(async { drop(stopped.await) }));
    let wants = |config: &str| addon(&[place("fleet", config, rolling(3))]);

    world.put(wants("one")).await;
    world
        .until("helloworld", "the install", |addon| {
            message(addon, "fleet") == "12/12 install completed with no errors."
        })
        .await;
    let all_have = async |version: &str| {
        world
            .until_instances("helloworld", version, |all| {
                all.len() == 12 && all.iter().all(|one| json!(one.status)["currentVersion"] == version)
            })
            .await;
    };
    all_have("v1.0.0").await;
    assert_eq!(value(&metrics, "aviary_leader"), Some(1.0));
    assert_eq!(value(&metrics, &of_fleet("aviary_rollout_budget")), Some(3.0));
    assert_eq!(value(&metrics, &of_fleet("aviary_rollout_halted")), Some(0.0));

    agents.answer(|_| None);
    world.put(wants("two")).await;
    world.until("helloworld", "the first wave", |addon| message(addon, "fleet") == "3/12 upgrading...").await;
    world
        .until_instances("helloworld", "three in flight", |all| {
            all.iter().filter(|one| json!(one.status)["desiredVersion"] == "v2.0.0").count() == 3
        })
        .await;
    // A planned start counts once it is recorded, as in `aviary status`.
    until_value(&metrics, &of_fleet("aviary_rollout_in_flight"), 3.0).await;
    assert_eq!(value(&metrics, &of_fleet("aviary_rollout_slots_used")), Some(3.0));
    assert_eq!(value(&metrics, &clusters("hold", "BudgetFull")), Some(9.0));
    let revision = r#"aviary_revision_info{addon="helloworld",placement="default/fleet",desired="v2.0.0",target="v2.0.0"}"#;
    assert_eq!(value(&metrics, revision), Some(1.0));
    assert!(value(&metrics, &of_fleet("aviary_rollout_oldest_wait_seconds")).is_some());

    agents.let_go();
    all_have("v2.0.0").await;
    world
        .until("helloworld", "the upgrade", |addon| {
            message(addon, "fleet") == "12/12 upgrade completed with no errors."
        })
        .await;
    assert_eq!(value(&metrics, &clusters("hold", "BudgetFull")), None, "nobody waits any more");
    assert_eq!(value(&metrics, &of_fleet("aviary_rollout_duration_seconds_count")), Some(2.0));
    assert!(value(&metrics, &of_fleet("aviary_clusters_started_total")) >= Some(24.0));
    assert!(value(&metrics, r#"aviary_writes_total{outcome="written"}"#) > Some(60.0));
    assert_eq!(value(&metrics, r#"aviary_writes_total{outcome="failed"}"#), Some(0.0));
    assert!(!metrics.tell(Timestamp::now()).contains("fleet-0"), "no cluster is named");

    world.delete(wants("two")).await;
    let forgotten = async {
        while value(&metrics, &of_fleet("aviary_rollout_budget")).is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(GIVE_UP, forgotten).await.expect("nothing to be told of an add-on that is gone");
    let _ = stop.send(());
    running.await.unwrap();
}

/// In flight has one meaning: a failed cluster is not in flight, although it holds a slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_cluster_holds_a_slot_and_is_not_in_flight() {
    let world = World::new().await;
    world.clusters("fleet", &["fleet-00", "fleet-01", "fleet-02", "fleet-03"].map(String::from)).await;
    for (name, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(name, version)).await;
    }
    let agents = Agents::start(&world.client, |_| Ok(()));
    let metrics = Metrics::default();
    let manager = world.measured_manager(world.managers.clone(), "told", metrics.clone());
    let wants = |config: &str| addon(&[place("fleet", config, rolling(2))]);
    world.put(wants("one")).await;
    let installed = "4/4 install completed with no errors.";
    world.until("helloworld", "the install", |addon| message(addon, "fleet") == installed).await;

    agents.answer(|work| Some(if version(work) == "v2.0.0" { Err("no such image".into()) } else { Ok(()) }));
    world.put(wants("two")).await;
    let stopped = "2/4 upgrade failed: stopped, 2 failed, 2 of 2 slots taken";
    world.until("helloworld", "the failure", |addon| message(addon, "fleet").starts_with(stopped)).await;
    until_value(&metrics, &clusters("failed", "Failed"), 2.0).await;
    assert_eq!(value(&metrics, &of_fleet("aviary_rollout_in_flight")), Some(0.0));
    assert_eq!(value(&metrics, &of_fleet("aviary_rollout_slots_used")), Some(2.0));
    assert_eq!(value(&metrics, &of_fleet("aviary_rollout_budget")), Some(2.0));
    // Its waiting clusters say that the budget is full: they cannot tell that the rollout is
    // halted.
    assert_eq!(value(&metrics, &of_fleet("aviary_rollout_halted")), Some(1.0));

    world.put(wants("one")).await;
    world.until("helloworld", "the way back", |addon| message(addon, "fleet").starts_with("4/4 ")).await;
    until_value(&metrics, &of_fleet("aviary_rollout_halted"), 0.0).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn problems_are_counted_by_reason_over_all_add_ons() {
    let world = World::new().await;
    world.put(hub_config("one", "v1.0.0")).await;
    let metrics = Metrics::default();
    let manager = world.measured_manager(world.managers.clone(), "told", metrics.clone());
    for name in ["helloworld", "other"] {
        world.put(named_addon(name, &[place("nowhere", "one", rolling(1))])).await;
        world
            .until(name, "its placement is missing", |addon| {
                let conditions = json!(addon.status)["conditions"].clone();
                let mut all = conditions.as_array().into_iter().flatten();
                all.any(|one| one["type"] == "PlacementsResolved" && one["status"] == "False")
            })
            .await;
    }
    assert_eq!(value(&metrics, r#"aviary_problems{reason="PlacementUnknown"}"#), Some(2.0));
    manager.stop().await;
}
