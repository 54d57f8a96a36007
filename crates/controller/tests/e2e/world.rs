//! A fleet on a hub, and a manager that looks after it.

use std::sync::Arc;
use std::time::Duration;

use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use aviary_controller::{Manager, Settings};
use aviary_engine::observed::Options;
use aviary_hub::Hub;
use futures_util::StreamExt;
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::counting::Counts;

const GIVE_UP: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) hub: Hub,
}

/// A manager that runs until it is stopped.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    health: tokio::sync::watch::Receiver<aviary_controller::Health>,
}

impl Running {
    /// Waits until every add-on has been planned once.
    pub(crate) async fn first_pass(&self) {
        let mut health = self.health.clone();
        let wait = health.wait_for(|health| health.leading && health.first_pass_done);
        tokio::time::timeout(GIVE_UP, wait).await.expect("a first pass").unwrap();
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }
}

impl World {
    /// A hub with our kinds.
    pub(crate) async fn new() -> Self {
        let hub = Hub::ephemeral(Default::default()).await.unwrap();
        let world = Self { client: hub.client(), hub };
        for crd in aviary_api::crds::all() {
            world.put(serde_json::to_value(crd).unwrap()).await;
        }
        world.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "open-cluster-management"}})).await;
        world
    }

    pub(crate) fn manager(&self, identity: &str) -> Running {
        self.manager_with(self.client.clone(), identity, false)
    }

    /// A manager whose requests are counted.
    pub(crate) fn counted_manager(&self, identity: &str) -> (Running, Counts) {
        let counts = Counts::default();
        (self.manager_with(counts.client(&self.hub), identity, false), counts)
    }

    /// A manager that decides placements too.
    pub(crate) fn placing_manager(&self, client: Client, identity: &str) -> Running {
        self.manager_with(client, identity, true)
    }

    fn manager_with(&self, client: Client, identity: &str, placement: bool) -> Running {
        let settings = Settings {
            namespace: "open-cluster-management".into(),
            identity: identity.into(),
            leader_elect: true,
            verify: true,
            placement,
            options: Options::default(),
            clock: Arc::new(Timestamp::now),
        };
        let manager = Manager::new(client, settings);
        let health = manager.health();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(manager.run(async { drop(stopped.await) }));
        Running { stop, task, health }
    }

    fn dynamic(&self, object: &Value) -> Api<DynamicObject> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
        match text("/metadata/namespace") {
            "" => Api::all_with(self.client.clone(), &kind),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &kind),
        }
    }

    /// Creates an object, or merges it over the one that is there.
    pub(crate) async fn put(&self, object: Value) {
        let api = self.dynamic(&object);
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap().to_owned();
        let made = api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap()).await;
        match made {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {
                api.patch(&name, &PatchParams::default(), &Patch::Merge(object)).await.unwrap();
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }

    pub(crate) async fn put_status(&self, object: Value) {
        let api = self.dynamic(&object);
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap().to_owned();
        let patch = json!({"status": object["status"]});
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Clusters with a namespace each, selected by a placement.
    pub(crate) async fn clusters(&self, placement: &str, names: &[String]) {
        for name in names {
            self.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
            self.put(json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
                "spec": {"hubAcceptsClient": true},
            }))
            .await;
        }
        let version = "cluster.open-cluster-management.io/v1beta1";
        let count = names.len();
        let place = json!({
            "apiVersion": version, "kind": "Placement", "metadata": {"name": placement, "namespace": "default"}, "spec": {},
            "status": {"numberOfSelectedClusters": count},
        });
        for (index, names) in names.chunks(100).enumerate() {
            let decisions: Vec<Value> =
                names.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
            let decision = json!({
                "apiVersion": version, "kind": "PlacementDecision",
                "metadata": {"name": format!("{placement}-{index}"), "namespace": "default",
                    "labels": {"cluster.open-cluster-management.io/placement": placement}},
                "status": {"decisions": decisions},
            });
            self.put(decision.clone()).await;
            self.put_status(decision).await;
        }
        self.put(place.clone()).await;
        self.put_status(place).await;
    }

    /// Waits until an add-on is as it should be.
    pub(crate) async fn until(
        &self,
        addon: &str,
        what: &str,
        is: impl Fn(&ClusterManagementAddOn) -> bool,
    ) -> ClusterManagementAddOn {
        let api: Api<ClusterManagementAddOn> = Api::all(self.client.clone());
        let config = watcher::Config::default().fields(&format!("metadata.name={addon}"));
        let mut events = std::pin::pin!(watcher(api.clone(), config));
        let wait = async {
            while let Some(event) = events.next().await {
                match event.unwrap() {
                    watcher::Event::Apply(object) | watcher::Event::InitApply(object) if is(&object) => {
                        return object;
                    }
                    _ => {}
                }
            }
            panic!("the watch ended")
        };
        match tokio::time::timeout(GIVE_UP, wait).await {
            Ok(object) => object,
            Err(_) => panic!(
                "{what}: not within {GIVE_UP:?}; the add-on is {}",
                json!(api.get(addon).await.unwrap().status)
            ),
        }
    }

    /// Waits until all instances of an add-on are as they should be.
    pub(crate) async fn until_instances(
        &self,
        addon: &str,
        what: &str,
        are: impl Fn(&[ManagedClusterAddOn]) -> bool,
    ) {
        let api: Api<ManagedClusterAddOn> = Api::all(self.client.clone());
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
        let wait = async {
            while !are(&self.instances(addon).await) {
                events.next().await.unwrap().unwrap();
            }
        };
        if tokio::time::timeout(GIVE_UP, wait).await.is_err() {
            panic!("{what}: not within {GIVE_UP:?}: {}", json!(self.instances(addon).await));
        }
    }

    pub(crate) async fn instances(&self, addon: &str) -> Vec<ManagedClusterAddOn> {
        let api: Api<ManagedClusterAddOn> = Api::all(self.client.clone());
        let all = api.list(&Default::default()).await.unwrap();
        all.items.into_iter().filter(|instance| instance.name_any() == addon).collect()
    }
}

/// The message of a placement's `Progressing` condition.
pub(crate) fn message(addon: &ClusterManagementAddOn, placement: &str) -> String {
    let status = json!(addon.status);
    let progressions = status["installProgression"].as_array().cloned().unwrap_or_default();
    let of = progressions.iter().find(|progression| progression["name"] == placement);
    let conditions = of.and_then(|of| of["conditions"].as_array()).cloned().unwrap_or_default();
    let progressing = conditions.iter().find(|condition| condition["type"] == "Progressing");
    progressing.and_then(|condition| condition["message"].as_str()).unwrap_or_default().to_owned()
}
