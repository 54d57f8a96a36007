//! A Lease that is lost, terms that are copied, answers that come late, passes that panic: none of
//! it needs anybody to mend it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aviary_controller::Metrics;
use futures_util::StreamExt;
use http::{Method, Request, Response};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::client::Body;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::service_fn;

use crate::agents::Agents;
use crate::objects::{GROUP, addon, instance, named_addon, object, place, reference, rolling};
use crate::rollout::{hub_config, template};
use crate::world::{GIVE_UP, Running, World, message};

const NAMESPACE: &str = "open-cluster-management";

/// Two clusters, and two versions to choose from.
async fn fleet(world: &World) {
    world.clusters("fleet", &["c1".to_owned(), "c2".to_owned()]).await;
    for (name, version) in [("one", "v1.0.0"), ("two", "v2.0.0"), ("three", "v3.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(name, version)).await;
    }
}

fn wants(config: &str) -> Value {
    addon(&[place("fleet", config, rolling(1))])
}

async fn completed(world: &World, what: &str) -> Value {
    let expected = format!("2/2 {what} completed with no errors.");
    json!(world.until("helloworld", &expected, |addon| message(addon, "fleet") == expected).await)
}

async fn delete_lease(world: &World) {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
    leases.delete("aviary-manager", &DeleteParams::default()).await.unwrap();
}

fn term(addon: &Value) -> u64 {
    addon["metadata"]["annotations"][format!("{GROUP}/manager-term")].as_str().unwrap().parse().unwrap()
}

/// Terms on the add-on are 2 or more afterwards.
async fn upgraded_by_a_second_leader(world: &World) -> (Running, u64) {
    fleet(world).await;
    let first = world.manager("first");
    world.put(wants("one")).await;
    completed(world, "install").await;
    first.stop().await;
    let second = world.manager("second");
    second.first_pass().await;
    world.put(wants("two")).await;
    let reached = term(&completed(world, "upgrade").await);
    assert!(reached >= 2, "the second leader has another term");
    (second, reached)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_finds_no_lease_goes_on_above_the_terms_on_add_ons() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (second, reached) = upgraded_by_a_second_leader(&world).await;
    second.stop().await;
    delete_lease(&world).await;
    let third = world.manager("third");
    third.first_pass().await;
    world.put(wants("three")).await;
    world.until_instances("helloworld", "v3.0.0", |all| all_have(all, "v3.0.0")).await;
    let after = term(&completed(&world, "upgrade").await);
    assert!(after > reached, "{after} after {reached}");
    third.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_lease_is_deleted_goes_on_in_a_higher_term() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (second, reached) = upgraded_by_a_second_leader(&world).await;
    delete_lease(&world).await;
    // It has made the Lease anew before it is asked for anything.
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
    let there = kube::runtime::wait::await_condition(leases, "aviary-manager", |lease: Option<&Lease>| {
        lease.is_some_and(|lease| lease.spec.as_ref().is_some_and(|spec| spec.lease_transitions > Some(0)))
    });
    tokio::time::timeout(GIVE_UP, there).await.expect("a new lease").unwrap();
    world.put(wants("three")).await;
    world.until_instances("helloworld", "v3.0.0", |all| all_have(all, "v3.0.0")).await;
    let after = term(&completed(&world, "upgrade").await);
    assert!(after > reached, "{after} after {reached}");
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_reset_stops_neither_this_leader_nor_the_next() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (second, reached) = upgraded_by_a_second_leader(&world).await;
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
    let reset = Patch::Merge(json!({"spec": {"leaseTransitions": 0}}));
    leases.patch("aviary-manager", &PatchParams::default(), &reset).await.unwrap();
    world.put(wants("three")).await;
    world.until_instances("helloworld", "v3.0.0", |all| all_have(all, "v3.0.0")).await;
    second.stop().await;

    leases.patch("aviary-manager", &PatchParams::default(), &reset).await.unwrap();
    let third = world.manager("third");
    third.first_pass().await;
    world.put(template("v4.0.0")).await;
    world.put(hub_config("four", "v4.0.0")).await;
    world.put(wants("four")).await;
    world.until_instances("helloworld", "v4.0.0", |all| all_have(all, "v4.0.0")).await;
    let after = term(&completed(&world, "upgrade").await);
    assert!(after > reached, "{after} after {reached}");
    third.stop().await;
}

fn all_have(all: &[aviary_api::ManagedClusterAddOn], version: &str) -> bool {
    all.len() == 2 && all.iter().all(|one| json!(one.status)["currentVersion"] == version)
}

/// The reason and the message of an add-on's condition `Valid`.
fn valid(addon: &Value) -> (String, String) {
    let conditions = addon["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let valid = conditions.iter().find(|one| one["type"] == "Valid").cloned().unwrap_or_default();
    let text = |part: &str| valid[part].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_on_with_a_copied_term_is_rolled_out_and_says_what_is_odd() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    fleet(&world).await;
    let manager = world.manager("only");
    manager.first_pass().await;
    // It comes from another hub, where it had got so far.
    world.put(copied(wants("one"), 57)).await;
    completed(&world, "install").await;
    told(&world, "57").await;
    // At rest nothing is written over it, and it is told for as long as it is there.
    world.put(copied(wants("one"), u64::MAX)).await;
    let odd = |addon: &aviary_api::ClusterManagementAddOn| valid(&json!(addon)).0 == "ManagerTermUnreached";
    let odd = json!(world.until("helloworld", "that its term is odd", odd).await);
    assert!(
        valid(&odd)
            .1
            .contains("manager-term is 18446744073709551615, which is higher than that of any manager"),
        "{odd}"
    );
    assert!(manager.health.borrow().is_ready(), "nothing is skipped");
    world.put(wants("three")).await;
    world.until_instances("helloworld", "v3.0.0", |all| all_have(all, "v3.0.0")).await;
    let healed = completed(&world, "upgrade").await;
    assert!(term(&healed) < 57, "the leader has put its own term there");
    assert_eq!(valid(&healed).0, "Valid");
    manager.stop().await;
}

fn copied(mut addon: Value, term: u64) -> Value {
    addon["metadata"]["annotations"] = json!({
        format!("{GROUP}/manager-term"): term.to_string(), format!("{GROUP}/manager-identity"): "elsewhere",
    });
    addon
}

/// Waits for the Event that tells of a term.
async fn told(world: &World, term: &str) {
    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    let mut all = std::pin::pin!(watcher(events, watcher::Config::default()).applied_objects());
    let wait = async {
        while let Some(event) = all.next().await {
            let Ok(Event { reason: Some(reason), note: Some(note), .. }) = event else { continue };
            if reason == "ManagerTermUnreached" && note.contains(term) {
                return;
            }
        }
    };
    tokio::time::timeout(GIVE_UP, wait).await.expect("an event");
}

/// Which requests are meant, by method and path.
type Requests = Arc<dyn Fn(&Method, &str) -> bool + Send + Sync>;

/// Holds the answers to requests back that are such, from the first on, until it is let go.
#[derive(Clone)]
struct Holdback {
    is: Requests,
    held: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Holdback {
    fn of(is: impl Fn(&Method, &str) -> bool + Send + Sync + 'static) -> Self {
        Self { is: Arc::new(is), held: watch::Sender::new(0), open: watch::Sender::new(false) }
    }

    fn client(&self, inner: &Client) -> Client {
        let (holdback, inner) = (self.clone(), inner.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (holdback, inner) = (holdback.clone(), inner.clone());
            async move {
                let is_late = (holdback.is)(request.method(), request.uri().path());
                let answer: Response<Body> = inner.send(request).await?;
                if is_late {
                    holdback.held.send_modify(|held| *held += 1);
                    let _ = holdback.open.subscribe().wait_for(|open| *open).await;
                }
                Ok::<_, kube::Error>(answer)
            }
        });
        Client::new(service, "default")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_on_that_is_created_again_while_an_answer_is_late_gets_its_instances() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    fleet(&world).await;
    for version in ["v1.0.0", "v2.0.0"] {
        world.put(other_template(version)).await;
    }
    let made = "/managedclusteraddons";
    let answers = Holdback::of(move |method, path| {
        *method == Method::POST && path.ends_with(made) && path.contains("/namespaces/c1/")
    });
    let beside = world.manager("before");
    world.put(named_addon("other", &[place("fleet", "one", rolling(1))])).await;
    world.until_instances("other", "v1.0.0", |all| all_have(all, "v1.0.0")).await;
    beside.stop().await;
    let manager = world.manager_through(answers.client(&world.managers), "held");
    manager.first_pass().await;
    world.put(wants("one")).await;
    let mut held = answers.held.subscribe();
    tokio::time::timeout(GIVE_UP, held.wait_for(|held| *held > 0)).await.expect("an instance").unwrap();
    world.delete(wants("one")).await;
    world.until_instances("helloworld", "all gone", <[_]>::is_empty).await;
    world.put(wants("one")).await;
    // What is reported after the deletion, by the same watch, has reached the manager: so the
    // deletion has.
    let own = json!({"configs": [reference("addonhubconfigs", None, "two")]});
    world.put(instance("c2", "other", own)).await;
    world
        .until_instances("other", "the override", |all| {
            all.iter().any(|one| json!(one.status)["desiredVersion"] == "v2.0.0")
        })
        .await;
    answers.open.send_replace(true);
    completed(&world, "install").await;
    world.until_on("helloworld", &["c1", "c2"]).await;
    manager.stop().await;
}

fn other_template(version: &str) -> Value {
    object(
        "AddOnTemplate",
        &format!("other-{version}"),
        json!({"spec": {"addonName": "other", "version": version, "agentSpec": {"workload": {"manifests": [{
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": "default"},
            "data": {"version": version},
        }]}}}}),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_the_pass_of_one_add_on_is_its_own_matter_and_told() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    fleet(&world).await;
    world.put(other_template("v1.0.0")).await;
    let (broken, panics) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let client = panicking(&world.managers, &broken, &panics);
    let metrics = Metrics::default();
    let manager = world.measured_manager(client, "panics", metrics.clone());
    world.put(named_addon("other", &[place("fleet", "one", rolling(1))])).await;
    let mut health = manager.health.clone();
    let skipped = health.wait_for(|health| !health.skipped.is_empty());
    let told = tokio::time::timeout(GIVE_UP, skipped).await.expect("to be told").unwrap().clone();
    assert!(!told.is_ready());
    assert_eq!(
        told.skipped.to_string(),
        "add-on other is skipped: its last pass panicked and is retried; see the log\n"
    );
    let metric = r#"aviary_addon_skipped{addon="other",reason="Panicked"} 1"#;
    assert!(metrics.tell(Timestamp::now()).contains(metric), "{}", metrics.tell(Timestamp::now()));
    world.put(wants("one")).await;
    completed(&world, "install").await;
    let most = panics.load(Ordering::Relaxed);
    assert!(most < 20, "{most} panics: each is tried again later than the one before");
    broken.store(false, Ordering::Relaxed);
    world.until_instances("other", "v1.0.0", |all| all_have(all, "v1.0.0")).await;
    let ready = health.wait_for(aviary_controller::ManagerHealth::is_ready);
    tokio::time::timeout(GIVE_UP, ready).await.expect("to be ready").unwrap();
    assert!(!metrics.tell(Timestamp::now()).contains("aviary_addon_skipped{"));
    manager.stop().await;
}

/// A client in which writes for the add-on `other` panic for as long as it is broken.
fn panicking(inner: &Client, broken: &Arc<AtomicBool>, panics: &Arc<AtomicUsize>) -> Client {
    let (inner, broken, panics) = (inner.clone(), Arc::clone(broken), Arc::clone(panics));
    let service = service_fn(move |request: Request<Body>| {
        let (inner, broken, panics) = (inner.clone(), Arc::clone(&broken), Arc::clone(&panics));
        async move {
            let is_of_other = request.uri().path().contains("/clustermanagementaddons/other");
            if is_of_other && *request.method() != Method::GET && broken.load(Ordering::Relaxed) {
                panics.fetch_add(1, Ordering::Relaxed);
                panic!("a panic that is being tried out");
            }
            inner.send(request).await
        }
    });
    Client::new(service, "default")
}
