//! The harness: processes of the real binary, and a client of the same hub.

use std::time::Duration;

use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use aviary_testing::objects;
pub(crate) use aviary_testing::{GIVE_UP, Process};
use axum::http::Request;
use futures_util::StreamExt as _;
use kube::api::{Api, DynamicObject, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};

use crate::transcript::Desk;

/// Starts a command that runs until it is stopped, and waits until it is ready.
pub(crate) fn start(desk: &Desk, arguments: &str) -> Process {
    Process::start_until(desk.command(arguments), "Ctrl-C")
}

/// The status and text of a response.
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

/// Polls until the response satisfies a condition: no event reports it.
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

/// Polls until a manager leads and has planned everything.
pub(crate) async fn until_leading(base: &str) {
    until(base, "/metrics", |_, text| text.contains("aviary_leader 1\n")).await;
    until_ready(base).await;
}

pub(crate) struct Hub {
    pub(crate) client: Client,
}

impl Hub {
    pub(crate) async fn of(desk: &Desk, kubeconfig: &str) -> Self {
        let read = Kubeconfig::read_from(desk.path(kubeconfig)).unwrap();
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
        Self { client: Client::try_from(config).unwrap() }
    }

    /// Creates an object, or merges it into the existing one.
    pub(crate) async fn put(&self, object: Value) {
        aviary_testing::put(&self.client, &object).await;
    }

    /// Merges a status into the existing one.
    pub(crate) async fn put_status(&self, object: Value) {
        aviary_testing::put_status(&self.client, &object).await;
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
            self.put(objects::template(version)).await;
        }
    }

    /// Sets the version of every cluster, a quarter of them at a time.
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

    /// Waits until the add-on and its instances report completion.
    pub(crate) async fn until_done(&self, clusters: usize, version: &str) {
        let done = format!("{clusters}/{clusters} ");
        let addons: Api<ClusterManagementAddOn> = Api::all(self.client.clone());
        let stream = watcher(addons, watcher::Config::default()).default_backoff().applied_objects();
        let wait = async {
            let mut stream = std::pin::pin!(stream);
            loop {
                // A dropped watch is resumed.
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

    /// Waits until the add-on's instance on a cluster exists.
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
