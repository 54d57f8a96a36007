//! One harness: processes of the real binary, and a client that looks at the same hub.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use axum::http::Request;
use futures_util::StreamExt as _;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};

use crate::transcript::Desk;

/// Longer than anything here takes on a busy machine.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(300);

/// A process of ours, up to the line that says that it can be stopped. It does not outlive the test.
pub(crate) struct Process {
    child: Child,
    told: String,
}

impl Process {
    /// Starts a command that runs until it is stopped; waits until it says so.
    pub(crate) fn start(desk: &Desk, arguments: &str) -> Self {
        Self::start_until(desk, arguments, "Ctrl-C")
    }

    /// Starts a command, and waits until it has said something.
    pub(crate) fn start_until(desk: &Desk, arguments: &str, said: &str) -> Self {
        let mut command = desk.command(arguments);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = String::new();
        while !told.contains(said) {
            told.push_str(&lines.next().expect("it to say that it runs").unwrap());
            told.push('\n');
        }
        // What it says later is nobody's, and must not hold it up.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, told }
    }

    /// The last word of the line that begins with `what`.
    pub(crate) fn word(&self, what: &str) -> &str {
        let line = self.told.lines().find(|line| line.trim_start().starts_with(what)).unwrap();
        line.split_whitespace().last().unwrap()
    }

    /// The address under which something is told.
    pub(crate) fn address(&self, what: &str) -> String {
        let url = self.word(what);
        let end = url.find("://").map_or(0, |at| at + 3);
        let end = url[end..].find('/').map_or(url.len(), |at| end + at);
        url[..end].replace("0.0.0.0", "127.0.0.1")
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) {
        let pid = self.child.id().to_string();
        // Only a shell can be relied on to have `kill`.
        assert!(Command::new("sh").args(["-c", "kill -TERM \"$0\"", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    /// Ends it without a word.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A figure of the kernel's about its memory, in MB.
    pub(crate) fn memory(&self, which: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(which)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The code and the text of an answer.
pub(crate) async fn get(base: &str, path: &str, token: Option<&str>) -> (u16, String) {
    let mut config = Config::new(base.parse().unwrap());
    config.accept_invalid_certs = true;
    config.auth_info.token = token.map(|token| token.to_owned().into());
    let client = Client::try_from(config).unwrap();
    let answer = client.send(Request::get(path).body(kube::client::Body::empty()).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let body = axum::body::to_bytes(axum::body::Body::new(answer.into_body()), 1 << 20).await.unwrap();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

/// Asks until the answer is as it should be: nothing else tells of it.
async fn until(base: &str, path: &str, is: impl Fn(u16, &str) -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let wait = async {
        loop {
            ticks.tick().await;
            let (code, text) = get(base, path, None).await;
            if is(code, &text) {
                return;
            }
        }
    };
    tokio::time::timeout(GIVE_UP, wait)
        .await
        .unwrap_or_else(|_| panic!("{path} does not answer as it should"));
}

pub(crate) async fn until_ready(base: &str) {
    until(base, "/readyz", |code, _| code == 200).await;
}

/// Asks until a manager leads and has planned everything.
pub(crate) async fn until_leading(base: &str) {
    until(base, "/metrics", |_, text| text.contains("aviary_leader 1\n")).await;
    until_ready(base).await;
}

/// What is on a hub.
pub(crate) struct Hub {
    pub(crate) client: Client,
}

impl Hub {
    pub(crate) async fn of(desk: &Desk, kubeconfig: &str) -> Self {
        let read = Kubeconfig::read_from(desk.path(kubeconfig)).unwrap();
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
        Self { client: Client::try_from(config).unwrap() }
    }

    /// Creates an object, or merges it over the one that is there.
    pub(crate) async fn put(&self, object: Value) {
        let (api, name) = self.place(&object);
        let name = name.as_str();
        match api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {
                api.patch(name, &PatchParams::default(), &Patch::Merge(&object)).await.unwrap();
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }

    /// Merges a status over the one that is there.
    pub(crate) async fn put_status(&self, object: Value) {
        let (api, name) = self.place(&object);
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&object)).await.unwrap();
    }

    /// Where an object belongs, and its name.
    fn place(&self, object: &Value) -> (Api<DynamicObject>, String) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
        let api = match text("/metadata/namespace") {
            "" => Api::all_with(self.client.clone(), &kind),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &kind),
        };
        (api, text("/metadata/name").to_owned())
    }

    /// An add-on `helloworld` for all clusters, in two versions.
    pub(crate) async fn put_helloworld(&self) {
        self.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})).await;
        self.put(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "all", "namespace": "default"}, "spec": {},
        }))
        .await;
        for version in ["v1.0.0", "v2.0.0"] {
            let manifest = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hello", "namespace": "{{INSTALL_NAMESPACE}}"},
                "data": {"version": version, "cluster": "{{CLUSTER_NAME}}"},
            });
            self.put(json!({
                "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate",
                "metadata": {"name": format!("helloworld-{version}")},
                "spec": {"addonName": "helloworld", "version": version, "agentSpec": {"workload": {"manifests": [manifest]}}},
            }))
            .await;
        }
    }

    /// Has every cluster get this version, a quarter of them at a time.
    pub(crate) async fn want(&self, version: &str) {
        self.put(json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
            "metadata": {"name": "helloworld"},
            "spec": {"installStrategy": {"type": "Placements", "placements": [{
                "name": "all", "namespace": "default", "addonTemplate": {"desiredVersion": version},
                "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": "25%"}},
            }]}},
        }))
        .await;
    }

    /// Waits until the add-on says that it is done everywhere, and its instances say so too.
    pub(crate) async fn until_done(&self, clusters: usize, version: &str) {
        let done = format!("{clusters}/{clusters} ");
        let addons: Api<ClusterManagementAddOn> = Api::all(self.client.clone());
        let stream = watcher(addons, watcher::Config::default()).default_backoff().applied_objects();
        let wait = async {
            let mut stream = std::pin::pin!(stream);
            loop {
                // A watch that was cut is taken up again.
                let Some(Ok(addon)) = stream.next().await else { continue };
                let status = json!(addon.status);
                let message =
                    status["installProgression"][0]["conditions"][0]["message"].as_str().unwrap_or_default();
                if message.starts_with(&done)
                    && message.contains("completed")
                    && self.all_have(clusters, version).await
                {
                    return;
                }
            }
        };
        if tokio::time::timeout(GIVE_UP, wait).await.is_err() {
            let addon =
                Api::<ClusterManagementAddOn>::all(self.client.clone()).get("helloworld").await.unwrap();
            panic!("{version} is not everywhere: {}", json!(addon.status));
        }
    }

    /// Waits until the add-on's instance of a cluster is there.
    pub(crate) async fn until_made(&self, cluster: &str) {
        let instances = Api::<ManagedClusterAddOn>::namespaced(self.client.clone(), cluster);
        let stream = watcher(instances, watcher::Config::default()).default_backoff().applied_objects();
        let mut stream = std::pin::pin!(stream);
        let wait = async { while !matches!(stream.next().await, Some(Ok(_))) {} };
        tokio::time::timeout(GIVE_UP, wait).await.unwrap_or_else(|_| panic!("{cluster} gets no instance"));
    }

    async fn all_have(&self, clusters: usize, version: &str) -> bool {
        let instances = Api::<ManagedClusterAddOn>::all(self.client.clone());
        let stream = watcher(instances, watcher::Config::default()).default_backoff().applied_objects();
        let mut stream = std::pin::pin!(stream);
        let mut have = std::collections::BTreeSet::new();
        while have.len() < clusters {
            let Some(Ok(instance)) = stream.next().await else { continue };
            if json!(instance.status)["currentVersion"] == version {
                have.insert(instance.namespace().unwrap_or_default());
            }
        }
        true
    }

    /// Every object that a manager writes, with its resource version.
    pub(crate) async fn versions(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (group, version, kind) in [
            ("addon.open-cluster-management.io", "v1alpha1", "ClusterManagementAddOn"),
            ("addon.open-cluster-management.io", "v1alpha1", "ManagedClusterAddOn"),
            ("work.open-cluster-management.io", "v1", "ManifestWork"),
            ("cluster.open-cluster-management.io", "v1beta1", "Placement"),
            ("cluster.open-cluster-management.io", "v1beta1", "PlacementDecision"),
            ("apps", "v1", "ControllerRevision"),
            ("", "v1", "Event"),
        ] {
            let api: Api<DynamicObject> = Api::all_with(
                self.client.clone(),
                &ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)),
            );
            let listed = api.list_metadata(&ListParams::default()).await.unwrap();
            all.extend(listed.items.iter().map(|object| {
                format!(
                    "{kind} {}/{} {:?}",
                    object.namespace().unwrap_or_default(),
                    object.name_any(),
                    object.resource_version()
                )
            }));
        }
        all
    }
}
