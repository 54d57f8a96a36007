//! A hub that listens, a manager that looks after it, agents that answer, and a desk to type
//! commands at. All that is waited for is a change on the hub, with a time limit.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Output, Stdio};
use std::sync::{Arc, LazyLock, Mutex, mpsc};
use std::time::Duration;

use aviary_api::ManifestWork;
use aviary_controller::{Manager, ManagerHealth, Scope, Settings, View};
use aviary_engine::observed::{Observed, Options};
use aviary_engine::plan::{Plan, plan};
use aviary_hub::security::Role;
use aviary_hub::{Endpoint, Hub, HubOptions};
pub(crate) use aviary_testing::objects::{addon, hub_config, names, template};
use aviary_testing::{objects, resource_status};
use expect_test::Expect;
use futures_util::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use regex::Regex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::transcript::{Desk, desk, told};

/// Longer than anything here takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);
const ADDONS: &str = "addon.open-cluster-management.io";

/// How agents react to versions.
#[derive(Debug, Default)]
pub(crate) struct Mood {
    /// They reject these versions.
    pub(crate) refuse: BTreeSet<String>,
    /// They do not report on these.
    pub(crate) ignore: BTreeSet<String>,
    /// Their message about a rejected version; the default is about an image that cannot be pulled.
    pub(crate) complaint: Option<String>,
}

pub(crate) struct World {
    // The first field, so that all tasks end before anything else is dropped.
    runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) desk: Desk,
    mood: Arc<Mutex<Mood>>,
    endpoint: Arc<Endpoint>,
    address: std::net::SocketAddr,
    manager: Mutex<Option<AbortHandle>>,
}

impl World {
    /// Ends the manager. What it has done stays.
    pub(crate) fn dismiss_manager(&self) {
        if let Some(manager) = self.manager.lock().unwrap().take() {
            manager.abort();
        }
    }

    /// A connection to the hub that can be cut, with a kubeconfig `line.kubeconfig` for it.
    pub(crate) fn with_line(mut self) -> (Self, Line) {
        let listener = self.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let token = self.endpoint.issue_token("line", Role::Admin).unwrap();
        self.desk = self.desk.file("line.kubeconfig", self.endpoint.kubeconfig(address, token.expose()));
        let line = Line {
            handle: self.runtime.handle().clone(),
            address,
            hub: self.address,
            carrier: Mutex::default(),
        };
        line.carry(listener);
        (self, line)
    }

    /// A hub with our kinds, without a manager.
    pub(crate) fn quiet(name: &str) -> Self {
        let world = Self::bare(name);
        world.block_on(aviary_testing::prepare_hub(&world.client));
        world
    }

    /// A hub without our kinds.
    pub(crate) fn bare(name: &str) -> Self {
        Self::on_hub(name, HubOptions::default())
    }

    /// The same on a hub with these options.
    pub(crate) fn on_hub(name: &str, options: HubOptions) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (hub, endpoint, listener) = runtime.block_on(async {
            let hub = Hub::ephemeral(options).await.unwrap();
            let endpoint = Endpoint::ephemeral(&hub, &[]).unwrap();
            (hub, Arc::new(endpoint), TcpListener::bind("127.0.0.1:0").await.unwrap())
        });
        let address = listener.local_addr().unwrap();
        let client = runtime.block_on(async { hub.client() });
        let served = Arc::clone(&endpoint);
        runtime.spawn(async move { hub.serve(listener, &served, std::future::pending()).await });
        let desk = desk(&format!("verbs-{name}")).file("home/.keep", "");
        let world = Self {
            runtime,
            client,
            desk,
            mood: Arc::default(),
            endpoint,
            address,
            manager: Mutex::default(),
        };
        world.with_token("hub.kubeconfig", "admin", Role::Admin)
    }

    /// Writes a kubeconfig for another user.
    pub(crate) fn with_token(mut self, file: &str, name: &str, role: Role) -> Self {
        let token = self.endpoint.issue_token(name, role).unwrap();
        self.desk = self.desk.file(file, self.endpoint.kubeconfig(self.address, token.expose()));
        self
    }

    pub(crate) fn with_wrong_token(mut self, file: &str) -> Self {
        self.desk = self.desk.file(file, self.endpoint.kubeconfig(self.address, "aviary_nobody"));
        self
    }

    pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
        self.desk = self.desk.file(name, text);
        self
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// A hub with a manager and agents: twelve clusters behind a canary of four, all on v1.0.0.
    pub(crate) fn installed(name: &str) -> Self {
        let world = Self::quiet(name).looked_after();
        world.block_on(world.fleet());
        world.give(addon("one"));
        world.until("the install", |_, plan| {
            plan.report
                .placements
                .iter()
                .all(|placement| placement.message.ends_with("install completed with no errors."))
        });
        world
    }

    /// Starts a manager and the agents.
    pub(crate) fn looked_after(self) -> Self {
        let client = self.client.clone();
        self.looked_after_through(client).0
    }

    /// The same, with a manager that has this client, and the manager's health.
    pub(crate) fn looked_after_through(self, client: Client) -> (Self, watch::Receiver<ManagerHealth>) {
        let settings = Settings {
            namespace: "open-cluster-management".into(),
            identity: "manager-1".into(),
            leader_elect: true,
            verify: true,
            placement: false,
            options: Options::default(),
            clock: Arc::new(Timestamp::now),
        };
        let manager = Manager::new(client, settings);
        let health = manager.health();
        let manager = self.runtime.spawn(manager.run(std::future::pending()));
        *self.manager.lock().unwrap() = Some(manager.abort_handle());
        self.runtime.spawn(agents(self.client.clone(), Arc::clone(&self.mood)));
        (self, health)
    }

    /// Waits for the Lease of the manager to be as it should.
    pub(crate) async fn until_lease(&self, is: impl Fn(&Lease) -> bool) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "open-cluster-management");
        let mut stream = std::pin::pin!(watcher(leases, watcher::Config::default()));
        let wait = async {
            while let Some(event) = stream.next().await {
                if let Ok(Event::Apply(lease) | Event::InitApply(lease)) = event
                    && is(&lease)
                {
                    return;
                }
            }
        };
        tokio::time::timeout(LIMIT, wait).await.expect("the Lease is as it should be");
    }

    /// A manager leads elsewhere.
    pub(crate) async fn led(&self) {
        let now = format!("{:.6}", Timestamp::now());
        self.put(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "aviary-manager", "namespace": "open-cluster-management"},
            "spec": {"holderIdentity": "elsewhere", "leaseDurationSeconds": 3600, "renewTime": now},
        }))
        .await;
    }

    pub(crate) async fn fleet(&self) {
        self.clusters("fleet", &names("fleet", 12)).await;
        self.clusters("canary", &names("canary", 4)).await;
        for version in ["v1.0.0", "v2.0.0", "v3.0.0"] {
            self.put(template(version)).await;
        }
        for (name, version) in [("one", "v1.0.0"), ("two", "v2.0.0"), ("three", "v3.0.0")] {
            self.put(hub_config(name, version)).await;
        }
    }

    /// Changes how agents react from now on.
    pub(crate) fn mood(&self, change: impl FnOnce(&mut Mood)) {
        change(&mut self.mood.lock().unwrap());
    }

    /// Creates an object, or merges it into the existing one.
    pub(crate) fn give(&self, object: Value) {
        self.block_on(self.put(object));
    }

    async fn put(&self, object: Value) {
        aviary_testing::put_whole(&self.client, &object).await;
    }

    /// Clusters with a namespace each, selected by a placement.
    pub(crate) async fn clusters(&self, placement: &str, names: &[String]) {
        for name in names {
            self.put(objects::namespace(name)).await;
            self.put(objects::cluster(name, &json!({"stage": placement}))).await;
        }
        self.put(objects::decision(placement, 1, names)).await;
        self.put(objects::placement_of(placement, names.len())).await;
    }

    /// Waits until the add-on satisfies a condition, and its manager has nothing left to write.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is: impl Fn(&Observed, &Plan) -> bool) {
        let wait = async {
            let scope =
                Scope { namespace: "open-cluster-management".into(), addon: Some("helloworld".into()) };
            let mut follower = View::read(&self.client, scope).await.unwrap().follow();
            loop {
                let there = follower.view().observe("helloworld", |observed| {
                    let plan = plan(observed, Timestamp::now());
                    plan.is_at_rest() && is(observed, &plan)
                });
                if there == Some(true) {
                    return;
                }
                follower.changed().await.unwrap();
            }
        };
        if self.block_on(async { tokio::time::timeout(LIMIT, wait).await }).is_err() {
            panic!("{what}: not within {LIMIT:?}: {}", self.run("status helloworld"));
        }
    }

    /// Waits until every placement's message is this.
    #[track_caller]
    pub(crate) fn until_all(&self, message: &str) {
        self.until(message, |_, plan| {
            plan.report.placements.iter().all(|placement| placement.message.ends_with(message))
        });
    }

    /// The canary has rejected v3.0.0, and the fleet is waiting for it.
    pub(crate) fn refused(name: &str) -> Self {
        let world = Self::installed(name);
        world.mood(|mood| mood.refuse.extend(["v3.0.0".to_owned()]));
        world.give(addon("three"));
        world.until("the canary to fail", |_, plan| {
            plan.report.placements.iter().any(|placement| placement.message.contains("stopped, 2 failed"))
        });
        world
    }

    fn line(&self, arguments: &str) -> String {
        match arguments.contains("--kubeconfig") {
            true => arguments.to_owned(),
            false => format!("{arguments} --kubeconfig hub.kubeconfig"),
        }
    }

    /// The output of a command, by default on the hub of this world.
    pub(crate) fn output(&self, arguments: &str) -> Output {
        self.desk.output(&self.line(arguments))
    }

    /// The transcript of a command, with varying parts masked and without the options for the hub.
    pub(crate) fn run(&self, arguments: &str) -> String {
        mask(&told(&format!("aviary {arguments}"), &self.output(arguments)))
    }

    #[track_caller]
    pub(crate) fn check(&self, arguments: &str, expected: &Expect) {
        expected.assert_eq(&self.run(arguments));
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &str, code: i32) -> Value {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn get(&self, kind: &str, name: &str) -> Value {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let version = match kind {
            "ManifestWork" => "work.open-cluster-management.io/v1".to_owned(),
            _ => format!("{ADDONS}/v1alpha1"),
        };
        let object =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
        let found = self.block_on(aviary_testing::api_of(&self.client, &object).get(name)).unwrap();
        serde_json::to_value(found).unwrap()
    }
}

/// A connection to the hub that can be cut and restored.
pub(crate) struct Line {
    handle: Handle,
    address: std::net::SocketAddr,
    hub: std::net::SocketAddr,
    carrier: Mutex<Option<AbortHandle>>,
}

impl Line {
    /// Carries connections until it is cut. Dropping the task closes all of them.
    fn carry(&self, listener: TcpListener) {
        let hub = self.hub;
        let carrier = self.handle.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                connections.spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(hub).await {
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
        *self.carrier.lock().unwrap() = Some(carrier.abort_handle());
    }

    pub(crate) fn cut(&self) {
        self.carrier.lock().unwrap().take().unwrap().abort();
    }

    pub(crate) fn restore(&self) {
        let listener = self.handle.block_on(async {
            loop {
                // The address is free as soon as the aborted task is dropped.
                match TcpListener::bind(self.address).await {
                    Ok(listener) => return listener,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        });
        self.carry(listener);
    }
}

/// A command that is still running, and the lines that it has printed.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    pub(crate) printed: Vec<String>,
}

impl Running {
    /// Starts a command on the hub's cuttable line.
    pub(crate) fn start(world: &World, arguments: &str) -> Self {
        let mut command = world.desk.command(&format!("{arguments} --kubeconfig line.kubeconfig"));
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines, printed: Vec::new() }
    }

    /// Waits for a line that contains this.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: &str) -> String {
        let deadline = std::time::Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let _ = self.child.kill();
                panic!("{wanted:?} was not printed: {:#?}", self.printed);
            };
            self.printed.push(line.clone());
            if line.contains(wanted) {
                return line;
            }
        }
    }

    /// Whether the command has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end, and returns the exit code.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<String>) {
        let code = self.child.wait().unwrap().code();
        self.printed.extend(self.lines.iter());
        (code, self.printed)
    }

    /// Waits for the end, and returns the exit code and standard error.
    pub(crate) fn end_with_complaint(self) -> (Option<i32>, String) {
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        // How long rollouts took. The mask is as wide as the column, whose padding it replaces.
        (r"TIME  (\d+[dhms])+ +", "TIME  TOOK  "),
        (r"(failed|replaced) after (\d+[dhms])+:", "$1 after TOOK:"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r" --kubeconfig hub\.kubeconfig", ""),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
    ];
    rules.map(|(pattern, mask)| (Regex::new(pattern).unwrap(), mask)).into()
});

pub(crate) fn mask(told: &str) -> String {
    MASKS.iter().fold(told.to_owned(), |told, (pattern, mask)| pattern.replace_all(&told, *mask).into_owned())
}

/// The agents of all clusters: they report once for every generation of a work, by their current
/// mood.
async fn agents(client: Client, mood: Arc<Mutex<Mood>>) {
    let works: Api<ManifestWork> = Api::all(client.clone());
    let mut events = std::pin::pin!(watcher(works, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let Ok(Event::Apply(work) | Event::InitApply(work)) = event else { continue };
        let version = json!(work)["spec"]["workload"]["manifests"][0]["data"]["version"].clone();
        let version = version.as_str().unwrap_or_default();
        let answer = {
            let mood = mood.lock().unwrap();
            let complaint = || {
                let usual = || format!("image of {version} cannot be pulled");
                mood.refuse.contains(version).then(|| mood.complaint.clone().unwrap_or_else(usual))
            };
            (!mood.ignore.contains(version)).then(complaint)
        };
        if let Some(complaint) = answer {
            report(&client, &work, complaint).await;
        }
    }
}

async fn report(client: &Client, work: &ManifestWork, complaint: Option<String>) {
    let generation = work.metadata.generation;
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if conditions.iter().any(|condition| condition.observed_generation == generation) {
        return;
    }
    let (status, message) = match complaint {
        None => ("True", String::new()),
        Some(complaint) => ("False", complaint),
    };
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": status, "reason": "Answered", "message": message, "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let objects = resource_status(&json!(work), status == "True");
    let patch = json!({"status": {
        "conditions": [condition("Applied"), condition("Available")], "resourceStatus": objects,
    }});
    let works: Api<ManifestWork> = Api::namespaced(client.clone(), &work.namespace().unwrap_or_default());
    let answered = works.patch_status(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
    if let Err(error) = answered
        && !matches!(&error, kube::Error::Api(status) if status.code == 404)
    {
        panic!("an agent could not answer: {error}");
    }
}
