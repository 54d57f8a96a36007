//! One run of a scenario: a hub, its users and agents, and managers that come and go, on one thread
//! and in virtual time.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use aviary_controller::{Manager, ManagerHealth, Settings};
use aviary_engine::observed::Options;
use aviary_hub::Hub;
use aviary_testing::{Random, as_authored};
use axum::Router;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::agents::{Agents, Rule};
use crate::fault::{Effect, Point};
use crate::hand::{Hand, KINDS, router};
use crate::leadership::{self, MANAGERS};
use crate::line::Line;
use crate::planted::Planted;
use crate::scenario::Step;
use crate::trouble::{Demand, Trouble};

/// Where managers keep what is theirs.
pub(crate) const NAMESPACE: &str = "open-cluster-management";
/// So long nothing happens where nothing will.
const QUIET: Duration = Duration::from_secs(3);
/// The same where only lists bring news, or a watch is cut at every event.
const VERY_QUIET: Duration = Duration::from_secs(70);
const TICK: Duration = Duration::from_millis(250);
/// Who is not at rest after this never will be.
const GIVE_UP: Duration = Duration::from_secs(4 * 3600);
/// A leader may be silent for so long: renewing costs a run more than waiting.
const LEASE: Duration = Duration::from_secs(60);

/// A time as everybody in a run sees it.
#[derive(Clone)]
pub(crate) struct Watch {
    begin: Timestamp,
    started: Instant,
}

impl Watch {
    fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.started.elapsed()).unwrap();
        self.begin.checked_add(since).unwrap()
    }
}

struct Running {
    line: Arc<Line>,
    task: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
    health: watch::Receiver<ManagerHealth>,
    leads_since: Option<Instant>,
}

impl Running {
    fn leads(&self) -> bool {
        let health = self.health.borrow();
        health.leading && health.is_ready()
    }
}

/// One rest, at the time of the manager.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) revision: u64,
    pub(crate) at: Timestamp,
}

pub(crate) struct World {
    pub(crate) hub: Hub,
    pub(crate) hand: Hand,
    router: Router,
    pub(crate) trouble: Trouble,
    agents: Agents,
    watch: Watch,
    skew: Arc<AtomicI64>,
    managers: Vec<Running>,
    beside: Option<(usize, Instant)>,
    planted: Option<Planted>,
    /// Time alone goes on with the scenario.
    pub(crate) slow: bool,
    pub(crate) marks: Vec<Mark>,
    /// Revisions that users wrote, from and to.
    pub(crate) users: Vec<(u64, u64)>,
}

/// Numbers that are the same in every run.
fn chance(seed: u64) -> aviary_hub::Chance {
    let random = Mutex::new(Random::new(seed));
    Arc::new(move |bytes: &mut [u8]| {
        random.lock().unwrap().fill(bytes);
        Ok(())
    })
}

/// Not polled while its line is closed, as a process that was stopped.
struct Pausable {
    manager: BoxFuture<'static, ()>,
    closed: Box<dyn Fn() -> bool + Send>,
    opens: Pin<Box<dyn Future<Output = ()> + Send>>,
    line: Arc<Line>,
}

impl Future for Pausable {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if (self.closed)() {
            self.opens = Box::pin(self.line.opens());
            match self.opens.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => {}
            }
        }
        self.manager.as_mut().poll(context)
    }
}

impl World {
    /// A world that begins as another ended.
    pub(crate) async fn fork(
        from: &Hub,
        begin: Timestamp,
        trouble: Trouble,
        rule: Rule,
        seed: u64,
        planted: Option<Planted>,
    ) -> Self {
        let watch = Watch { begin, started: Instant::now() };
        let clock = {
            let watch = watch.clone();
            Arc::new(move || watch.now())
        };
        let options =
            aviary_hub::HubOptions { clock, chance: chance(seed), ..aviary_hub::HubOptions::default() };
        let hub = from.fork(options).await.unwrap();
        let router = router(&hub);
        let hand = Hand::new(router.clone());
        let agents = Agents::start(hand.clone(), trouble.clone(), rule, hub.revision()).await;
        Self {
            hub,
            hand,
            router,
            trouble,
            agents,
            watch,
            skew: Arc::default(),
            managers: Vec::new(),
            beside: None,
            planted,
            slow: false,
            marks: Vec::new(),
            users: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.watch.now()
    }

    pub(crate) fn start_manager(&mut self, stale: Option<u64>) {
        let id = self.managers.len();
        let line = Line::new(
            id,
            &self.hub,
            self.router.clone(),
            &self.trouble,
            stale,
            &self.skew,
            self.planted.clone(),
        );
        let (watch, skew) = (self.watch.clone(), Arc::clone(&self.skew));
        let settings = Settings {
            namespace: NAMESPACE.into(),
            identity: format!("{MANAGERS}{}-{id}", self.hub.revision()),
            leader_elect: true,
            // What is written is checked against what is there, which is more.
            verify: false,
            placement: false,
            options: Options::default(),
            clock: Arc::new(move || {
                let skew = SignedDuration::from_secs(skew.load(Ordering::Relaxed));
                watch.now().checked_add(skew).unwrap()
            }),
        };
        let manager = Manager::new(line.client(), settings).with_lease(LEASE);
        let health = manager.health();
        let (stop, stopped) = oneshot::channel::<()>();
        let manager = manager.run(async { drop(stopped.await) }).boxed();
        let closed = Box::new(line.closed());
        let opens = Box::pin(line.opens());
        let task = tokio::spawn(Pausable { manager, closed, opens, line: Arc::clone(&line) });
        // One that crashes is not told to stop, and must not take the drop of its sender for that.
        self.managers.push(Running { line, task, stop: Some(stop), health, leads_since: None });
    }

    /// Ends all managers in order; what they hold is handed over.
    pub(crate) async fn stop(&mut self) {
        for manager in &mut self.managers {
            if let Some(stop) = manager.stop.take() {
                let _ = stop.send(());
            }
            if !manager.task.is_finished() {
                let _ = (&mut manager.task).await;
            }
        }
    }

    /// Ends all managers as a crash does.
    pub(crate) fn kill(&mut self) {
        for manager in &mut self.managers {
            manager.line.die();
            manager.task.abort();
        }
    }

    pub(crate) async fn take(&mut self, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            let from = self.hub.revision();
            match step {
                Step::Put(object) => self.hand.put(object).await,
                Step::PutUnchecked(crd, object) => self.put_unchecked(crd, object).await,
                Step::Delete(object) => self.hand.delete(object).await,
                Step::HandToAnother => self.hand_to_another().await,
                Step::MakeAgain(object) => self.make_again(object).await,
                Step::Join(name) => self.join(name).await,
                Step::Select(placement, clusters) => self.select(placement, clusters).await,
                Step::Agents(rule) => self.agents.follow(*rule),
                Step::Wait(milliseconds) => sleep(Duration::from_millis(*milliseconds)).await,
                Step::Rest => {
                    self.rest().await?;
                    let skew = SignedDuration::from_secs(self.skew.load(Ordering::Relaxed));
                    let at = self.now().checked_add(skew).unwrap();
                    self.marks.push(Mark { revision: self.hub.revision(), at });
                    continue;
                }
                Step::Pause => {
                    self.rest().await?;
                    continue;
                }
            }
            if !matches!(step, Step::Agents(_) | Step::Wait(_) | Step::Select(..)) {
                self.users.push((from, self.hub.revision()));
            }
        }
        Ok(())
    }

    /// Takes from every work what only Aviary puts there.
    async fn hand_to_another(&self) {
        use aviary_api::names::{annotations as ours, labels};
        for work in self.hand.list(&KINDS[2]).await {
            let manifests = work.pointer("/spec/workload/manifests").and_then(Value::as_array);
            let manifests: Vec<Value> = manifests.into_iter().flatten().map(as_authored).collect();
            let patch = json!({
                "metadata": {
                    "labels": {labels::ADDON_VERSION: null},
                    "annotations": {
                        ours::CONFIGS_SPEC_HASH: null, ours::RENDERED_FROM: null, ours::RENDERED_DIGEST: null,
                        ours::PROBES_DIGEST: null,
                    },
                },
                "spec": {"manifestConfigs": null, "workload": {"manifests": manifests}},
            });
            let text = |part: &str| work["metadata"][part].as_str().unwrap_or_default().to_owned();
            let path = format!(
                "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks/{}",
                text("namespace"),
                text("name")
            );
            self.hand.patch(&path, &patch).await;
        }
    }

    async fn make_again(&mut self, object: &Value) {
        let begun = Instant::now();
        while self.hand.find(object).await.is_some() && begun.elapsed() < GIVE_UP {
            sleep(TICK).await;
            self.serve_demands().await;
        }
        self.hand.put(object).await;
    }

    async fn join(&self, name: &str) {
        self.hand.put(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
            "spec": {"hubAcceptsClient": true},
        });
        self.hand.put(&cluster).await;
    }

    async fn put_unchecked(&self, crd: &str, object: &Value) {
        let named = json!({"kind": "CustomResourceDefinition", "metadata": {"name": crd}});
        let checked = self.hand.find(&named).await.unwrap();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}");
        let mut versions = checked["spec"]["versions"].clone();
        versions[0]["schema"]["openAPIV3Schema"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        self.hand.patch(&path, &json!({"spec": {"versions": versions}})).await;
        self.hand.put(object).await;
        self.hand.patch(&path, &json!({"spec": {"versions": checked["spec"]["versions"]}})).await;
    }

    /// Pages first, then how many there are in all: as a placement controller writes them.
    async fn select(&mut self, placement: &str, clusters: &[&'static str]) {
        let version = "cluster.open-cluster-management.io/v1beta1";
        let labels = json!({"cluster.open-cluster-management.io/placement": placement});
        let pages = clusters.len().div_ceil(2);
        let count = self
            .hand
            .find(&json!({"kind": "Placement", "metadata": {"name": placement, "namespace": "default"}}))
            .await;
        if count.is_none() {
            self.hand.put(&json!({
                "apiVersion": version, "kind": "Placement", "metadata": {"name": placement, "namespace": "default"}, "spec": {},
            })).await;
        }
        for page in 0.. {
            let decisions: Vec<Value> = (clusters.iter().skip(2 * page).take(2))
                .map(|name| json!({"clusterName": name, "reason": ""}))
                .collect();
            let mut decision = json!({
                "apiVersion": version, "kind": "PlacementDecision",
                "metadata": {"name": format!("{placement}-{page}"), "namespace": "default", "labels": labels},
            });
            if page >= pages && self.hand.find(&decision).await.is_none() {
                break;
            }
            decision["status"] = json!({"decisions": decisions});
            let from = self.hub.revision();
            self.hand.put(&decision).await;
            self.users.push((from, self.hub.revision()));
            if self.trouble.pass(Point::Decision) == Some(Effect::Torn) {
                sleep(Duration::from_secs(5)).await;
            }
        }
        let from = self.hub.revision();
        self.hand.put(&json!({
            "apiVersion": version, "kind": "Placement", "metadata": {"name": placement, "namespace": "default"},
            "spec": {}, "status": {"numberOfSelectedClusters": clusters.len(), "conditions": [{
                "type": "PlacementSatisfied", "status": if clusters.is_empty() { "False" } else { "True" },
                "reason": "Decided", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        })).await;
        self.users.push((from, self.hub.revision()));
    }

    /// What has happened, the lease apart.
    fn activity(&self) -> u64 {
        self.hub.revision() - self.trouble.lease_commits()
    }

    /// Waits until nothing happens any more, and does what faults demand meanwhile.
    async fn rest(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        let quiet =
            if self.slow || self.trouble.always(Effect::ListsOnly) || self.trouble.always(Effect::CutEach) {
                VERY_QUIET
            } else {
                QUIET
            };
        let (mut seen, mut since) = (self.activity(), Instant::now());
        loop {
            sleep(TICK).await;
            self.serve_demands().await;
            let activity = self.activity();
            if activity != seen || self.trouble.is_busy() || self.beside.is_some() || !self.is_led() {
                (seen, since) = (activity, Instant::now());
            }
            if since.elapsed() >= quiet {
                let broken = leadership::broken(&self.hand, self.leader(), &self.trouble.to_surpass()).await;
                return broken.map_or(Ok(()), Err);
            }
            if begun.elapsed() > GIVE_UP {
                return Err(format!("never comes to rest: {} requests", self.trouble.requests()));
            }
        }
    }

    fn is_led(&self) -> bool {
        self.leader().is_some()
    }

    /// The newest manager that leads.
    fn leader(&self) -> Option<usize> {
        self.managers
            .iter()
            .rposition(|manager| manager.leads() && !manager.line.is_dead() && !manager.line.is_stale())
    }

    async fn serve_demands(&mut self) {
        while let Some(demand) = self.trouble.next_demand() {
            match demand {
                Demand::Restart { stale } => {
                    for manager in self.managers.iter_mut().filter(|manager| manager.line.is_dead()) {
                        manager.task.abort();
                    }
                    sleep(Duration::from_secs(1)).await;
                    let revision = self.marks.last().map_or(self.began_at(), |mark| mark.revision);
                    self.start_manager(stale.then_some(revision));
                    self.trouble.note();
                }
                Demand::Beside { paused } => {
                    self.start_manager(None);
                    self.beside = Some((paused, Instant::now()));
                }
                Demand::Candidate => self.start_manager(None),
                Demand::Restore(loss) => {
                    let from = self.hub.revision();
                    loss.restore(&self.hand).await;
                    self.users.push((from, self.hub.revision()));
                    self.trouble.busy_for(Duration::from_secs(40));
                }
            }
        }
        for manager in &mut self.managers {
            let leads = manager.health.borrow().leading;
            if !leads {
                manager.leads_since = None;
            } else if manager.leads_since.is_none() {
                manager.leads_since = Some(Instant::now());
            }
            let led_for = manager.leads_since.map(|since| since.elapsed()).unwrap_or_default();
            if manager.line.is_stale() && led_for > Duration::from_secs(10) {
                manager.line.catch_up();
                self.trouble.note();
            }
        }
        if let Some((paused, _)) = self.beside {
            let newest = self.managers.last().unwrap();
            let led_for = newest.leads_since.map(|since| since.elapsed()).unwrap_or_default();
            if newest.leads() && led_for > Duration::from_secs(6) {
                self.managers[paused].line.wake();
                self.beside = None;
                self.trouble.note();
            }
        }
    }

    fn began_at(&self) -> u64 {
        self.users.first().map_or_else(|| self.hub.revision(), |(from, _)| *from)
    }
}
