//! Who leads: a leader that dies, hangs, or comes back never makes a rollout exceed its budget or
//! pass its canary by.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use aviary_controller::{Manager, Settings};
use aviary_engine::observed::Options;
use futures_util::future::join_all;
use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tower::service_fn;

use crate::agents::Agents;
use crate::audit::{Auditor, Commit, Fleet};
use crate::objects::{addon, behind, place, rolling};
use crate::rollout::{hub_config, template};
use crate::world::{GIVE_UP, World, message};

/// Long enough for a busy machine, short enough for a test.
const LEASE: Duration = Duration::from_secs(2);
const FLEET: usize = 12;
const FLEET_BUDGET: usize = 3;
const CANARIES: usize = 4;
const CANARY_BUDGET: usize = 2;

/// Which write is the first that hangs.
type Trigger = Box<dyn FnMut(&Request<Body>) -> bool + Send>;

/// The way of one manager to the hub, which can be made to hang: for the manager it is as if it had
/// been stopped in the middle of things.
#[derive(Clone)]
struct Gate {
    trigger: Arc<Mutex<Option<Trigger>>>,
    state: watch::Sender<Passage>,
    /// How many requests hang, or were held and are not answered yet.
    held: watch::Sender<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passage {
    Open,
    Shut,
}

impl Gate {
    fn open() -> Self {
        Self {
            trigger: Arc::default(),
            state: watch::Sender::new(Passage::Open),
            held: watch::Sender::new(0),
        }
    }

    /// Hangs from the first write on of which `trigger` says so.
    fn arm(&self, trigger: impl FnMut(&Request<Body>) -> bool + Send + 'static) {
        *self.trigger.lock().unwrap() = Some(Box::new(trigger));
    }

    async fn shut(&self) {
        let mut state = self.state.subscribe();
        let shut = state.wait_for(|state| *state == Passage::Shut);
        tokio::time::timeout(GIVE_UP, shut).await.expect("the leader to hang").unwrap();
    }

    fn is_shut(&self) -> bool {
        *self.state.borrow() == Passage::Shut
    }

    /// Lets everything through that hangs, and waits until it has been answered.
    async fn wake(&self) {
        *self.trigger.lock().unwrap() = None;
        self.state.send_replace(Passage::Open);
        let mut held = self.held.subscribe();
        let none = held.wait_for(|held| *held == 0);
        tokio::time::timeout(GIVE_UP, none).await.expect("what hung to be answered").unwrap();
    }

    fn note(&self, request: &Request<Body>) {
        let writes = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(request.method());
        if !writes || request.uri().path().contains("/leases") {
            return;
        }
        let mut trigger = self.trigger.lock().unwrap();
        if trigger.as_mut().is_some_and(|trigger| trigger(request)) {
            *trigger = None;
            self.state.send_replace(Passage::Shut);
        }
    }

    fn client(&self, inner: &Client) -> Client {
        let (gate, inner) = (self.clone(), inner.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (gate, inner) = (gate.clone(), inner.clone());
            async move {
                gate.note(&request);
                let held = gate.is_shut().then(|| Held::new(&gate));
                if held.is_some() {
                    let _ = gate.state.subscribe().wait_for(|state| *state == Passage::Open).await;
                }
                inner.send(request).await
            }
        });
        Client::new(service, "default")
    }
}

/// A request that hangs, until it is answered or given up.
struct Held(watch::Sender<usize>);

impl Held {
    fn new(gate: &Gate) -> Self {
        gate.held.send_modify(|held| *held += 1);
        Self(gate.held.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}

struct Replica {
    task: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    health: watch::Receiver<aviary_controller::ManagerHealth>,
}

impl Replica {
    fn start(client: Client, identity: &str) -> Self {
        let settings = Settings {
            namespace: "open-cluster-management".into(),
            identity: identity.into(),
            leader_elect: true,
            verify: true,
            placement: false,
            options: Options::default(),
            clock: Arc::new(Timestamp::now),
        };
        let manager = Manager::new(client, settings).with_lease(LEASE);
        let health = manager.health();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(manager.run(async { drop(stopped.await) }));
        Self { task, stop, health }
    }

    async fn leads(&self) {
        let mut health = self.health.clone();
        let leads = health.wait_for(|health| health.leading && health.first_pass_done);
        tokio::time::timeout(GIVE_UP, leads).await.expect("it to lead").unwrap();
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number:02}")).collect()
}

fn wants(config: &str) -> Value {
    addon(&[
        place("fleet", config, behind("canary", FLEET_BUDGET)),
        place("canary", config, rolling(CANARY_BUDGET)),
    ])
}

/// A fleet with version one everywhere.
async fn installed(world: &World, leader: &Replica) {
    world.clusters("fleet", &names("fleet", FLEET)).await;
    world.clusters("canary", &names("canary", CANARIES)).await;
    for version in ["v1.0.0", "v2.0.0"] {
        world.put(template(version)).await;
    }
    world.put(hub_config("one", "v1.0.0")).await;
    world.put(hub_config("two", "v2.0.0")).await;
    world.put(wants("one")).await;
    leader.leads().await;
    all_have(world, "v1.0.0").await;
    world
        .until("helloworld", "the install", |addon| {
            message(addon, "fleet") == "12/12 install completed with no errors."
                && message(addon, "canary") == "4/4 install completed with no errors."
        })
        .await;
}

async fn all_have(world: &World, version: &str) {
    world
        .until_instances("helloworld", version, |all| {
            all.len() == FLEET + CANARIES
                && all.iter().all(|one| json!(one.status)["currentVersion"] == version)
        })
        .await;
}

/// What must hold after every write.
fn check(fleet: &Fleet, commit: &Commit) {
    let of = |prefix: &str| fleet.in_flight().iter().filter(|cluster| cluster.starts_with(prefix)).count();
    let after = || format!("after {} {}/{}", commit.kind, commit.cluster, commit.name);
    assert!(of("fleet") <= FLEET_BUDGET, "{} of the fleet in flight {}", of("fleet"), after());
    assert!(of("canary") <= CANARY_BUDGET, "{} canaries in flight {}", of("canary"), after());
    let version = |object: &Value, which: &str| object["status"][which] == "v2.0.0";
    let begun = fleet
        .instances()
        .any(|(cluster, object)| cluster.starts_with("fleet") && version(object, "desiredVersion"));
    let canaries = fleet.instances().filter(|(cluster, _)| cluster.starts_with("canary"));
    let passed = canaries.filter(|(_, object)| version(object, "currentVersion")).count();
    assert!(!begun || passed == CANARIES, "the fleet began with {passed} canaries passed, {}", after());
}

/// The leader hangs at its n-th write of a canary rollout, another replica goes on, and then the
/// first one comes back and writes what it had in mind. Says whether it came to that.
async fn hangs_at(number: usize) -> bool {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let gate = Gate::open();
    let first = Replica::start(gate.client(&world.managers), "first");
    installed(&world, &first).await;
    let second = Replica::start(world.managers.clone(), "second");
    let audit = Auditor::start(&world.client, "helloworld").await;
    let mut left = number;
    gate.arm(move |_| {
        left = left.saturating_sub(1);
        left == 0
    });
    world.put(wants("two")).await;
    all_have(&world, "v2.0.0").await;
    let hung = gate.is_shut();
    gate.wake().await;
    world
        .until("helloworld", "the upgrade", |addon| {
            message(addon, "fleet") == "12/12 upgrade completed with no errors."
                && message(addon, "canary") == "4/4 upgrade completed with no errors."
        })
        .await;
    first.stop().await;
    second.stop().await;
    audit.end(check).await;
    all_have(&world, "v2.0.0").await;
    hung
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_hangs_at_any_write_of_a_canary_rollout_is_replaced_within_the_budget() {
    let hung = join_all((1..=40).step_by(3).map(hangs_at)).await;
    // On a busy machine a leader may be replaced before its turn to hang comes.
    assert!(hung.iter().any(|hung| *hung), "nobody hung");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wave_that_an_earlier_leader_had_in_mind_is_void_once_another_starts_one() {
    let world = World::new().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    let gate = Gate::open();
    let first = Replica::start(gate.client(&world.managers), "first");
    installed(&world, &first).await;
    // The first leader has reserved the fleet's first wave, and hangs before the first start of it.
    gate.arm(|request| {
        let path = request.uri().path();
        path.contains("/namespaces/fleet-") && path.ends_with("/managedclusteraddons/helloworld/status")
    });
    agents.let_go_of(|cluster| cluster.starts_with("canary"));
    world.put(wants("two")).await;
    gate.shut().await;
    let second = Replica::start(world.managers.clone(), "second");
    // Nothing of the fleet has started, and from now on only one at a time may.
    let audit = Auditor::start(&world.client, "helloworld").await;
    world
        .put(addon(&[
            place("fleet", "two", behind("canary", 1)),
            place("canary", "two", rolling(CANARY_BUDGET)),
        ]))
        .await;
    let started = |all: &[aviary_api::ManagedClusterAddOn]| {
        all.iter().filter(|one| json!(one.status)["desiredVersion"] == "v2.0.0").count()
    };
    world.until_instances("helloworld", "the second leader's wave", |all| started(all) == CANARIES + 1).await;
    gate.wake().await;
    agents.let_go();
    all_have(&world, "v2.0.0").await;
    first.stop().await;
    second.stop().await;
    audit
        .end(|fleet, commit| {
            let moving: Vec<&String> =
                fleet.in_flight().iter().filter(|cluster| cluster.starts_with("fleet")).collect();
            assert!(moving.len() <= 1, "{moving:?} after {} {}/{}", commit.kind, commit.cluster, commit.name);
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stops_hands_over_at_once_and_nothing_is_written_for_it() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let first = Replica::start(world.managers.clone(), "first");
    installed(&world, &first).await;
    let audit = Auditor::start(&world.client, "helloworld").await;
    first.stop().await;
    let second = Replica::start(world.managers.clone(), "second");
    second.leads().await;
    second.stop().await;
    let mut writes = 0;
    audit.end(|_, _| writes += 1).await;
    assert_eq!(writes, 0, "nothing had changed");
}
