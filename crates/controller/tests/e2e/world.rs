//! A fleet on a hub, and a manager that looks after it.

use std::sync::Arc;
use std::time::Duration;

use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn, ManifestWork, PlacementDecision, crds};
use aviary_controller::{Clock, Manager, Metrics, Settings};
use aviary_engine::observed::Options;
use aviary_hub::{Converter, Hub, HubOptions};
use aviary_testing::{name_of, objects};
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::counting::Counts;
use crate::shared::{self, Turn};
use crate::show;

/// Longer than anything here takes on a busy machine.
pub(crate) use aviary_testing::GIVE_UP;

pub(crate) struct World {
    pub(crate) client: Client,
    /// With the rights of a manager, where there is such a thing.
    pub(crate) managers: Client,
    /// Its add-on kinds are served as v1beta1 too, if they are those of Open Cluster Management.
    pub(crate) converts: bool,
    _server: Server,
}

/// What a world lives on, for as long as it does.
enum Server {
    Embedded {
        _hub: Hub,
    },
    /// One for all tests: they take turns.
    Shared {
        _turn: Turn,
    },
}

/// A manager that runs until it is stopped.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    pub(crate) health: tokio::sync::watch::Receiver<aviary_controller::ManagerHealth>,
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
    /// A hub with our kinds, and nothing else on it.
    pub(crate) async fn new() -> Self {
        let world = Self::without_kinds().await;
        aviary_testing::prepare_hub(&world.client).await;
        world
    }

    /// A hub with the kinds of Open Cluster Management, those that Aviary adds to it, and nothing
    /// else.
    pub(crate) async fn on_ocm() -> Self {
        let world = Self::without_kinds().await;
        // The embedded hub converts by itself, and calls nobody. A server would call a webhook.
        let client_config = json!({"url": "https://127.0.0.1:1/convert"});
        let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": client_config});
        let conversion = json!({"strategy": "Webhook", "webhook": webhook});
        aviary_testing::prepare_ocm_hub(&world.client, world.converts.then_some(&conversion)).await;
        world
    }

    async fn without_kinds() -> Self {
        match shared::kubeconfig() {
            Some(file) => {
                let turn = Turn::take(&file).await;
                let managers = shared::managers_kubeconfig().unwrap_or_else(|| file.clone());
                Self {
                    client: shared::client(&file).await,
                    managers: shared::client(&managers).await,
                    converts: false,
                    _server: Server::Shared { _turn: turn },
                }
            }
            None => {
                let converter = Converter::new(|object, to| {
                    aviary_api::convert::convert(object, to).map_err(|error| error.to_string())
                });
                let converters =
                    crds::CONVERTED.iter().map(|name| ((*name).to_owned(), converter.clone())).collect();
                let options = HubOptions { converters, ..HubOptions::default() };
                let hub = Hub::ephemeral(options).await.unwrap();
                let (client, managers) = (hub.client(), hub.client());
                Self { client, managers, converts: true, _server: Server::Embedded { _hub: hub } }
            }
        }
    }

    pub(crate) fn manager(&self, identity: &str) -> Running {
        self.manager_with(self.managers.clone(), identity, false)
    }

    /// A manager whose requests are counted.
    pub(crate) fn counted_manager(&self, identity: &str) -> (Running, Counts) {
        let counts = Counts::default();
        (self.manager_with(counts.client(&self.managers), identity, false), counts)
    }

    /// A manager that reaches the hub by this client.
    pub(crate) fn manager_through(&self, client: Client, identity: &str) -> Running {
        self.manager_with(client, identity, false)
    }

    /// A manager that decides placements too.
    pub(crate) fn placing_manager(&self, client: Client, identity: &str) -> Running {
        self.manager_with(client, identity, true)
    }

    fn manager_with(&self, client: Client, identity: &str, placement: bool) -> Running {
        self.run(client, identity, placement, Arc::new(Timestamp::now))
    }

    /// A manager that goes by another clock.
    pub(crate) fn manager_at(&self, client: Client, identity: &str, clock: Clock) -> Running {
        self.run(client, identity, false, clock)
    }

    /// A manager that notes what it does in `metrics`.
    pub(crate) fn measured_manager(&self, client: Client, identity: &str, metrics: Metrics) -> Running {
        self.run_measured(client, identity, false, Arc::new(Timestamp::now), metrics)
    }

    fn run(&self, client: Client, identity: &str, placement: bool, clock: Clock) -> Running {
        self.run_measured(client, identity, placement, clock, Metrics::default())
    }

    fn run_measured(
        &self,
        client: Client,
        identity: &str,
        placement: bool,
        clock: Clock,
        metrics: Metrics,
    ) -> Running {
        let settings = Settings {
            namespace: "open-cluster-management".into(),
            identity: identity.into(),
            leader_elect: true,
            verify: true,
            placement,
            options: Options::default(),
            clock,
        };
        let manager = Manager::new(client, settings).with_metrics(metrics);
        let health = manager.health();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(manager.run(async { drop(stopped.await) }));
        Running { stop, task, health }
    }

    pub(crate) fn dynamic(&self, object: &Value) -> Api<DynamicObject> {
        aviary_testing::api_of(&self.client, object)
    }

    /// Creates an object, or merges it over the one that is there.
    pub(crate) async fn put(&self, object: Value) {
        aviary_testing::put(&self.client, &object).await;
    }

    /// The same with its status, where it has one.
    pub(crate) async fn put_whole(&self, object: Value) {
        aviary_testing::put_whole(&self.client, &object).await;
    }

    /// Takes an annotation from an object.
    pub(crate) async fn remove_annotation(&self, object: &Value, key: &str) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: null}}}));
        self.dynamic(object).patch(name_of(object), &PatchParams::default(), &patch).await.unwrap();
    }

    /// Takes an object away, and waits until that very one is gone: another of its name may be made
    /// at once. One that is not there is gone.
    pub(crate) async fn delete(&self, object: Value) {
        let (api, name) = (self.dynamic(&object), name_of(&object).to_owned());
        let Some(uid) = api.get_metadata_opt(&name).await.unwrap().and_then(|there| there.metadata.uid)
        else {
            return;
        };
        match api.delete(&name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => return,
            Err(error) => panic!("{name}: {error}"),
        }
        let gone = kube::runtime::wait::conditions::is_deleted(&uid);
        let gone = kube::runtime::wait::await_condition(api, &name, gone);
        tokio::time::timeout(GIVE_UP, gone).await.expect("to be deleted").unwrap();
    }

    /// The object as it is now.
    pub(crate) async fn get(&self, object: &Value) -> Option<Value> {
        self.dynamic(object).get_opt(name_of(object)).await.unwrap().map(|object| json!(object))
    }

    /// Stores an object that the schema of its kind forbids, as one from before that schema.
    pub(crate) async fn put_unchecked(&self, crd: &str, object: Value) {
        let schema = self.loosen(crd).await;
        self.put_soon(&object).await;
        self.tighten(crd, schema).await;
    }

    /// Lets a kind be anything. Gives back what it was, to [`World::tighten`] it again.
    pub(crate) async fn loosen(&self, crd: &str) -> Value {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let checked = json!(crds.get(crd).await.unwrap())["spec"]["versions"].clone();
        let mut unchecked = checked.clone();
        unchecked[0]["schema"]["openAPIV3Schema"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        self.tighten(crd, unchecked).await;
        checked
    }

    pub(crate) async fn tighten(&self, crd: &str, versions: Value) {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
        crds.patch(crd, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Puts an object of a kind that was loosened: a server may take a schema up a moment after it
    /// has answered for it, and tells nobody when.
    pub(crate) async fn put_soon(&self, object: &Value) {
        let wait = async {
            while self.try_store(object, false).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(GIVE_UP, wait).await;
        assert!(waited.is_ok(), "refused: {:?}", self.try_store(object, false).await);
    }

    /// Puts an object and its status, if the hub lets it.
    pub(crate) async fn try_store(&self, object: &Value, dry_run: bool) -> Result<(), kube::Error> {
        self.try_put(object.clone(), dry_run).await?;
        if object["status"].is_null() {
            return Ok(());
        }
        let (patch, params) =
            (json!({"status": object["status"]}), PatchParams { dry_run, ..PatchParams::default() });
        self.dynamic(object).patch_status(name_of(object), &params, &Patch::Merge(patch)).await.map(drop)
    }

    /// Creates an object, or merges it over the one that is there, if the hub lets it.
    pub(crate) async fn try_put(&self, object: Value, dry_run: bool) -> Result<(), kube::Error> {
        aviary_testing::try_put(&self.client, &object, dry_run).await
    }

    /// A cluster with its namespace.
    pub(crate) async fn cluster(&self, name: &str) {
        self.put(objects::namespace(name)).await;
        self.put(managed_cluster(name)).await;
    }

    /// Clusters with a namespace each, selected by a placement.
    pub(crate) async fn clusters(&self, placement: &str, names: &[String]) {
        stream::iter(names).for_each_concurrent(16, |name| self.cluster(name)).await;
        self.select(placement, names).await;
    }

    /// Says that a placement selects these clusters.
    pub(crate) async fn select(&self, placement: &str, names: &[String]) {
        let label = format!("cluster.open-cluster-management.io/placement={placement}");
        let pages: Api<PlacementDecision> = Api::namespaced(self.client.clone(), "default");
        let before = pages.list(&ListParams::default().labels(&label)).await.unwrap().items.len();
        // What is left of a larger selection is emptied.
        for index in 0..names.len().div_ceil(100).max(before) {
            let names: Vec<String> = names.iter().skip(100 * index).take(100).cloned().collect();
            self.put_whole(objects::decision(placement, index, &names)).await;
        }
        self.put_whole(objects::placement_of(placement, names.len())).await;
    }

    /// Waits until the statuses of an add-on's placements say this. See [`show::placements`].
    pub(crate) async fn until_told(&self, addon: &str, expected: &str) -> ClusterManagementAddOn {
        self.until_text(addon, expected, show::placements).await
    }

    /// Waits until the conditions of an add-on say this.
    pub(crate) async fn until_conditions(&self, addon: &str, expected: &str) -> ClusterManagementAddOn {
        self.until_text(addon, expected, show::conditions).await
    }

    async fn until_text(
        &self,
        addon: &str,
        expected: &str,
        show: impl Fn(&Value) -> String,
    ) -> ClusterManagementAddOn {
        let expected = show::plain(expected);
        self.until(addon, &expected, |addon| show::plain(&show(&json!(addon))) == expected).await
    }

    /// Waits until the status of an instance says this. See [`show::instance`].
    pub(crate) async fn until_instance(&self, cluster: &str, addon: &str, expected: &str) {
        let expected = show::plain(expected);
        let says = |all: &[ManagedClusterAddOn]| {
            let one = all.iter().find(|one| one.namespace().as_deref() == Some(cluster));
            one.is_some_and(|one| show::plain(&show::instance(&json!(one))) == expected)
        };
        self.until_instances(addon, &format!("{cluster}: {expected}"), says).await;
    }

    /// Waits until exactly these clusters have an instance.
    pub(crate) async fn until_on(&self, addon: &str, clusters: &[&str]) {
        self.until_instances(addon, &format!("on {clusters:?}"), |all| {
            let mut on: Vec<String> = all.iter().filter_map(ResourceExt::namespace).collect();
            on.sort();
            on == clusters
        })
        .await;
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
                match event {
                    // A watch may be cut, as when the schema of its kind changes: it goes on by
                    // itself.
                    Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) if is(&object) => {
                        return object;
                    }
                    _ => {}
                }
            }
            panic!("the watch ended")
        };
        match tokio::time::timeout(GIVE_UP, wait).await {
            Ok(object) => object,
            Err(_) => {
                let object = json!(api.get(addon).await.unwrap());
                let (placements, conditions) = (show::placements(&object), show::conditions(&object));
                let moving = self.moving(addon).await;
                panic!("not within {GIVE_UP:?}:\n{what}\n\nbut:\n{placements}{conditions}{moving}")
            }
        }
    }

    /// Waits until all instances of an add-on are as they should be.
    pub(crate) async fn until_instances(
        &self,
        addon: &str,
        what: &str,
        are: impl Fn(&[ManagedClusterAddOn]) -> bool,
    ) {
        let api: Api<DeserializeGuard<ManagedClusterAddOn>> = Api::all(self.client.clone());
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
        let wait = async {
            while !are(&self.instances(addon).await) {
                drop(events.next().await.unwrap());
            }
        };
        if tokio::time::timeout(GIVE_UP, wait).await.is_err() {
            let all = self.instances(addon).await;
            let told: String = all
                .iter()
                .map(|one| format!("{}\n{}", one.namespace().unwrap(), show::instance(&json!(one))))
                .collect();
            panic!("not within {GIVE_UP:?}:\n{what}\n\nbut:\n{told}");
        }
    }

    /// A few of the instances that are not done, with their works, to see why.
    async fn moving(&self, addon: &str) -> String {
        let mut told = String::new();
        let instances = self.instances(addon).await.into_iter().map(|one| json!(one));
        let is_moving = |one: &Value| {
            let conditions = one["status"]["conditions"].as_array().cloned().unwrap_or_default();
            !conditions.iter().any(|one| one["type"] == "Progressing" && one["status"] == "False")
        };
        for one in instances.filter(is_moving).take(3) {
            let cluster = one["metadata"]["namespace"].as_str().unwrap_or_default();
            told.push_str(&format!("\n{cluster}\n{}", show::instance(&one)));
            let works: Api<DynamicObject> =
                Api::namespaced_with(self.client.clone(), cluster, &ApiResource::erase::<ManifestWork>(&()));
            for work in works.list(&ListParams::default()).await.unwrap() {
                told.push_str(&format!(
                    "{}\n",
                    json!([work.metadata.generation, work.metadata.annotations, work.data["status"]])
                ));
            }
        }
        told
    }

    /// The instances of an add-on, but for any that cannot be read.
    pub(crate) async fn instances(&self, addon: &str) -> Vec<ManagedClusterAddOn> {
        let api: Api<DeserializeGuard<ManagedClusterAddOn>> = Api::all(self.client.clone());
        let all = api.list(&Default::default()).await.unwrap().items.into_iter().filter_map(|one| one.0.ok());
        all.filter(|instance| instance.name_any() == addon).collect()
    }
}

pub(crate) fn managed_cluster(name: &str) -> Value {
    objects::cluster(name, &json!({}))
}

/// Names of clusters: `aws001`, `aws002` and so on.
pub(crate) fn names(prefix: &str, numbers: std::ops::RangeInclusive<usize>, width: usize) -> Vec<String> {
    numbers.map(|number| format!("{prefix}{number:0width$}")).collect()
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
