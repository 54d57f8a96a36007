//! The clusters that all stories share: the hub with everything installed, the manager, and an
//! agent for each member.

use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::registration;
use crate::transcript::words;

pub(crate) const NAMESPACE: &str = "open-cluster-management";
/// The first is the canary.
pub(crate) const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];
/// Seconds between two reports of an agent. Stories wait for many of them.
const POLL: u64 = 2;
/// The same for OCM's agent, if it does not watch.
pub(crate) const POLL_OF_OCM: u64 = 10;
/// Longer than anything takes on a busy machine.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(240);

static LANE: OnceLock<Lane> = OnceLock::new();
static SETUP: Mutex<()> = Mutex::new(());
static TURNS: Turns = Turns { held: Mutex::new(Held { shared: 0, alone: false }), changed: Condvar::new() };

/// Who uses the clusters now. Stories that disturb nothing go first, all at once.
struct Turns {
    held: Mutex<Held>,
    changed: Condvar,
}

struct Held {
    shared: usize,
    alone: bool,
}

pub(crate) struct Lane {
    folder: PathBuf,
    /// The kubeconfig of the hub's administrator.
    hub: PathBuf,
    /// What the names of its logs begin with.
    logs: &'static str,
    processes: Mutex<BTreeMap<String, Child>>,
}

/// Held while a story runs.
pub(crate) enum Turn {
    Shared,
    Alone,
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Only a story that is alone disturbs the clusters. If they could not be set up, there is
        // nothing to heal.
        if matches!(self, Self::Alone)
            && std::thread::panicking()
            && let Some(lane) = LANE.get()
        {
            // A second panic would end the program, and with it the reports of all stories.
            let _ = catch_unwind(AssertUnwindSafe(|| lane.heal()));
        }
        let mut held = TURNS.held.lock().unwrap_or_else(PoisonError::into_inner);
        match self {
            Self::Shared => held.shared -= 1,
            Self::Alone => held.alone = false,
        }
        TURNS.changed.notify_all();
    }
}

pub(crate) fn shared() -> Turn {
    let held = TURNS.held.lock().unwrap_or_else(PoisonError::into_inner);
    let mut held = TURNS.changed.wait_while(held, |held| held.alone).unwrap_or_else(PoisonError::into_inner);
    held.shared += 1;
    Turn::Shared
}

/// For a story that disturbs the clusters. It waits until all others have ended.
pub(crate) fn alone() -> Turn {
    // This takes so long that all others have taken their turn.
    lane();
    let held = TURNS.held.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = TURNS.changed.wait_while(held, |held| held.alone || held.shared > 0);
    taken.unwrap_or_else(PoisonError::into_inner).alone = true;
    Turn::Alone
}

/// The clusters; the first caller installs everything.
pub(crate) fn lane() -> &'static Lane {
    // One story reports why it failed; the others do not try again for minutes.
    let _setup: MutexGuard<'_, ()> = SETUP.lock().expect("another story to have set up the clusters");
    LANE.get_or_init(|| {
        let folder = std::env::var_os("AVIARY_CLUSTERS")
            .expect("AVIARY_CLUSTERS to name the folder of the clusters: run make test-clusters");
        let folder = PathBuf::from(folder);
        let lane = Lane::new(folder.clone(), folder.join("hub/kubeconfig"), "");
        lane.install();
        lane.start_programs(&lane.manager_arguments(), &lane.path("manager.kubeconfig"));
        lane
    })
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

impl Lane {
    pub(crate) fn new(folder: PathBuf, hub: PathBuf, logs: &'static str) -> Self {
        Self { folder, hub, logs, processes: Mutex::default() }
    }

    /// Starts the manager, an agent for each member, and what sees their leases expire.
    pub(crate) fn start_programs(&self, manager: &[String], kubeconfig: &Path) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aviary"));
        command.args(manager).arg("--verify").arg("--kubeconfig").arg(kubeconfig);
        self.spawn("manager", command);
        for member in MEMBERS {
            self.start_agent(member);
        }
        registration::start(self.kubeconfig("hub"));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn kubeconfig(&self, cluster: &str) -> PathBuf {
        if cluster == "hub" {
            return self.hub.clone();
        }
        self.folder.join(cluster).join("kubeconfig")
    }

    /// A client belongs to the runtime of its test.
    pub(crate) async fn client(&self, cluster: &str) -> Client {
        client(&self.kubeconfig(cluster)).await
    }

    /// Installs what `aviary manifests` prints, as users do.
    fn install(&self) {
        let manifests = self.aviary("manifests --without monitoring");
        assert!(manifests.status.success(), "{}", String::from_utf8_lossy(&manifests.stderr));
        let file = self.path("manifests.yaml");
        std::fs::write(&file, manifests.stdout).unwrap();
        let told = self.kubectl("hub", &format!("apply --server-side -f {}", file.display()));
        let definitions = told
            .lines()
            .filter_map(|line| line.strip_prefix("customresourcedefinition.apiextensions.k8s.io/"));
        for name in definitions.filter_map(|line| line.split(' ').next()) {
            self.kubectl("hub", &format!("wait --for=condition=Established --timeout=60s crd/{name}"));
        }
        self.until("the roles to be put together", || {
            self.kubectl("hub", "get clusterrole aviary-config-kinds -o json").contains("addontemplates")
        });
        let token = self.token_of("aviary-manager");
        let admin = std::fs::read_to_string(self.kubeconfig("hub")).unwrap();
        let (start, rest) = admin.split_once("user: {token: ").unwrap();
        let (_, end) = rest.split_once('}').unwrap();
        std::fs::write(self.path("manager.kubeconfig"), format!("{start}user: {{token: {token}}}{end}"))
            .unwrap();
    }

    /// A token of a ServiceAccount of ours, for eight hours. Old versions of kubectl have no
    /// `create token`.
    fn token_of(&self, account: &str) -> String {
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 28800},
        });
        let file = self.path("token-request.json");
        std::fs::write(&file, request.to_string()).unwrap();
        let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token");
        let told = self.kubectl("hub", &format!("create --raw {path} -f {}", file.display()));
        let told: Value = serde_json::from_str(&told).unwrap();
        told["status"]["token"].as_str().expect("a token").to_owned()
    }

    /// Those of the manager's Deployment, except for the addresses.
    pub(crate) fn manager_arguments(&self) -> Vec<String> {
        let deployment =
            self.kubectl("hub", &format!("get deployment aviary-manager -n {NAMESPACE} -o json"));
        let deployment: Value = serde_json::from_str(&deployment).unwrap();
        let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        let adapted = arguments.iter().map(|argument| {
            let argument = argument.as_str().unwrap().replace("$(POD_NAMESPACE)", NAMESPACE);
            argument.replace(":8443", ":0").replace("0.0.0.0:8081", "127.0.0.1:0")
        });
        adapted.collect()
    }

    pub(crate) fn start_agent(&self, member: &str) {
        self.start_agent_polling(member, POLL);
    }

    pub(crate) fn start_agent_polling(&self, member: &str, seconds: u64) {
        let program = std::env::var_os("AVIARY_WORK_AGENT").expect("AVIARY_WORK_AGENT to name the agent");
        let mut command = Command::new(program);
        command.arg("--hub").arg(self.kubeconfig("hub")).arg("--member").arg(self.kubeconfig(member));
        let stage = if member == MEMBERS[0] { "canary" } else { "fleet" };
        command.args(["--cluster", member, "--label", &format!("stage={stage}")]);
        command.args(["--poll", &seconds.to_string()]);
        self.spawn(&agent(member), command);
    }

    pub(crate) fn spawn(&self, name: &str, mut command: Command) {
        let log = self.path(&format!("{}{name}.log", self.logs));
        let log = File::options().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        self.processes.lock().unwrap().insert(name.to_owned(), child);
    }

    /// Stops an agent without closing its connections, as if the network swallowed everything.
    pub(crate) fn freeze_agent(&self, member: &str) {
        self.signal_agent(member, "STOP");
    }

    /// What happened meanwhile reaches the agent late.
    pub(crate) fn thaw_agent(&self, member: &str) {
        self.signal_agent(member, "CONT");
    }

    fn signal_agent(&self, member: &str, signal: &str) {
        let id = self.processes.lock().unwrap()[&agent(member)].id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status().unwrap();
        assert!(sent.success(), "{signal} to the agent of {member}");
    }

    /// Kills an agent, without a chance to clean up.
    pub(crate) fn kill_agent(&self, member: &str) {
        let mut child = self.processes.lock().unwrap().remove(&agent(member)).expect("it to run");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Starts what a failed story has left dead, and every agent anew, as one may be suspended or
    /// report less often: so that the story fails no other.
    fn heal(&self) {
        for member in MEMBERS {
            let left = self.processes.lock().unwrap_or_else(PoisonError::into_inner).remove(&agent(member));
            if let Some(mut left) = left {
                left.kill().unwrap();
                left.wait().unwrap();
            }
            self.start_agent(member);
        }
        for (cluster, program) in
            [("hub", "kube-apiserver"), ("member2", "kube-apiserver"), ("member1", "kubelet")]
        {
            if !self.path(cluster).join(format!("{program}.pid")).exists() {
                self.start(cluster, program);
            }
        }
    }

    /// Kills a program of a cluster.
    pub(crate) fn kill(&self, cluster: &str, program: &str) {
        self.script("kill", cluster, program);
    }

    pub(crate) fn start(&self, cluster: &str, program: &str) {
        self.script("start", cluster, program);
    }

    fn script(&self, verb: &str, cluster: &str, program: &str) {
        let mut command = Command::new(root().join("hack/clusters.sh"));
        let status = command.arg(verb).arg(&self.folder).args([cluster, program]).status().unwrap();
        assert!(status.success(), "{verb} {program} of {cluster}: {status}");
    }

    /// Our command, with the hub's administrator.
    pub(crate) fn aviary(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aviary"));
        command.args(words(arguments)).env("KUBECONFIG", self.kubeconfig("hub"));
        command.output().unwrap()
    }

    #[track_caller]
    pub(crate) fn kubectl(&self, cluster: &str, arguments: &str) -> String {
        let program = std::env::var("AVIARY_KUBECTL").unwrap_or_else(|_| "kubectl".into());
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(self.kubeconfig(cluster)).args(words(arguments));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Polls, because no event reports it.
    pub(crate) fn until(&self, what: &str, is: impl Fn() -> bool) {
        let give_up = Instant::now() + GIVE_UP;
        while !is() {
            assert!(Instant::now() < give_up, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn agent(member: &str) -> String {
    format!("agent-{member}")
}

pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}
