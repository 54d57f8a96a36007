//! Pre-delete hooks on a hub that collects garbage: what is removed, and when.

use std::time::Duration;

use aviary_testing::objects::{manifest, template_of};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::objects::{addon, instance, place, update_all, within};
use crate::rollout::hub_config;
use crate::world::{GIVE_UP, Running, World, managed_cluster, message};

const FINALIZER: &str = "addon.open-cluster-management.io/addon-pre-delete";
const DEPLOY: &str = "addon-helloworld-deploy-0";
const HOOKS: &str = "addon-helloworld-pre-delete";

/// The agents of two clusters have installed a template with a Job that runs before an instance
/// goes. They report on everything but the hooks.
struct Installed {
    world: World,
    agents: Agents,
    manager: Running,
}

impl Installed {
    async fn with(annotations: Value) -> Self {
        let world = World::new().await;
        let mut marks = annotations;
        marks[FINALIZER] = json!("");
        let hook = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "cleanup", "namespace": "default", "annotations": marks},
            "spec": {"template": {"spec": {"containers": [{"name": "cleanup", "image": "v1.0.0"}]}}},
        });
        world.put(template_of("helloworld", "v1.0.0", &json!([manifest("v1.0.0"), hook]))).await;
        world.put(hub_config("one", "v1.0.0")).await;
        world.clusters("prod", &["c1".to_owned(), "c2".to_owned()]).await;
        let agents = Agents::held(&world.client);
        agents.answer(|work| (work.name_any() == DEPLOY).then_some(Ok(())));
        let manager = world.manager("only");
        world.put(addon(&[place("prod", "one", update_all())])).await;
        let installed = "2/2 install completed with no errors.";
        world.until("helloworld", "installed", |addon| message(addon, "prod") == installed).await;
        Self { world, agents, manager }
    }

    async fn work(&self, cluster: &str, name: &str) -> Option<Value> {
        let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": name}});
        self.world.get(&within(cluster, work)).await
    }

    async fn instance(&self, cluster: &str) -> Option<Value> {
        self.world.get(&instance(cluster, "helloworld", json!({}))).await
    }

    /// Deletes an object, and does not wait until it is gone.
    async fn begin_to_delete(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.world.dynamic(object).delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn begin_to_remove(&self, cluster: &str) {
        self.begin_to_delete(&instance(cluster, "helloworld", json!({}))).await;
    }

    /// Waits until there is a work with hooks, and another one than before. Nothing of the instance
    /// is removed by then.
    async fn until_hook(&self, cluster: &str, before: &Value) -> Value {
        let found = async {
            loop {
                if let Some(work) = self.work(cluster, HOOKS).await
                    && work["metadata"]["uid"] != *before
                    && work["metadata"]["deletionTimestamp"].is_null()
                {
                    return work;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let work = tokio::time::timeout(GIVE_UP, found).await.expect("a work with hooks");
        let deployed = self.work(cluster, DEPLOY).await.unwrap();
        assert!(deployed["metadata"]["deletionTimestamp"].is_null(), "{deployed:#}");
        let instance = self.instance(cluster).await.unwrap();
        assert_eq!(instance["metadata"]["finalizers"], json!([FINALIZER]));
        work
    }

    /// What an agent reports of the Job.
    async fn report(&self, mut work: Value, name: &str) {
        let condition = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": "Reported", "message": "",
                "observedGeneration": work["metadata"]["generation"],
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let values = json!([{"name": name, "fieldValue": {"type": "String", "string": "True"}}]);
        let job = json!({"ordinal": 0, "group": "batch", "version": "v1", "kind": "Job",
            "name": "cleanup", "namespace": "default"});
        work["status"] = json!({
            "conditions": [condition("Applied"), condition("Available")],
            "resourceStatus": {"manifests": [
                {"resourceMeta": job, "statusFeedback": {"values": values}, "conditions": []},
            ]},
        });
        aviary_testing::put_status(&self.world.client, &work).await;
    }

    async fn until(&self, what: &str, is: impl AsyncFn() -> bool) {
        let wait = async {
            while !is().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(GIVE_UP, wait).await;
        assert!(waited.is_ok(), "not within {GIVE_UP:?}: {what}");
    }

    /// Waits until an Event says that hooks were given up.
    async fn until_given_up(&self, note: &str) {
        let events: Api<Event> = Api::all(self.world.client.clone());
        self.until(note, async || {
            let all = events.list(&ListParams::default()).await.unwrap();
            all.items.iter().any(|event| {
                event.reason.as_deref() == Some("HooksGivenUp")
                    && event.message.as_deref().is_some_and(|message| message.contains(note))
            })
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_run_on_deletion_before_anything_is_removed_and_again_if_they_are_evicted() {
    let fleet = Installed::with(json!({})).await;
    for cluster in ["c1", "c2"] {
        assert!(fleet.work(cluster, HOOKS).await.is_none(), "hooks run at install on {cluster}");
        let manifests = fleet.work(cluster, DEPLOY).await.unwrap()["spec"]["workload"]["manifests"].clone();
        assert!(manifests.as_array().unwrap().iter().all(|one| one["kind"] != "Job"), "{manifests:#}");
    }
    let before = fleet.instance("c1").await.unwrap()["metadata"]["uid"].clone();
    fleet.begin_to_remove("c1").await;
    let first = fleet.until_hook("c1", &Value::Null).await;
    let uid = first["metadata"]["uid"].clone();
    fleet.report(first, "aviary-hook-failed").await;
    let second = fleet.until_hook("c1", &uid).await;
    fleet.report(second, "JobComplete").await;
    // It goes with its works, and its placement still wants one.
    fleet
        .until("a new instance", async || {
            let now = fleet.instance("c1").await;
            now.is_some_and(|now| now["metadata"]["uid"] != before)
        })
        .await;
    fleet.until("no hooks left", async || fleet.work("c1", HOOKS).await.is_none()).await;
    let installed = "2/2 install completed with no errors.";
    fleet.world.until("helloworld", "again", |addon| message(addon, "prod") == installed).await;
    fleet.manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_are_given_up_at_their_deadline_and_when_their_cluster_is_gone() {
    let deadline = "addon.open-cluster-management.io/addon-pre-delete-deadline";
    let fleet = Installed::with(json!({deadline: "30s"})).await;
    fleet.world.select("prod", &["c2".to_owned()]).await;
    fleet.until_hook("c1", &Value::Null).await;
    fleet.until_given_up("c1: the pre-delete hooks did not complete before their deadline").await;
    fleet.until("the instance to go", async || fleet.instance("c1").await.is_none()).await;
    fleet.until("its works to go", async || fleet.work("c1", DEPLOY).await.is_none()).await;

    fleet.begin_to_delete(&managed_cluster("c2")).await;
    fleet.begin_to_remove("c2").await;
    fleet.until_given_up("c2: the cluster is gone, so its pre-delete hooks cannot run").await;
    fleet.until("the instance to go", async || fleet.instance("c2").await.is_none()).await;
    fleet.manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_on_that_is_deleted_runs_its_hooks_and_leaves_nothing_behind() {
    let fleet = Installed::with(json!({})).await;
    fleet.begin_to_delete(&addon(&[])).await;
    for cluster in ["c1", "c2"] {
        fleet.until_hook(cluster, &Value::Null).await;
    }
    fleet.agents.let_go();
    fleet.until("no instances", async || fleet.world.instances("helloworld").await.is_empty()).await;
    for cluster in ["c1", "c2"] {
        fleet.until("no works", async || fleet.work(cluster, DEPLOY).await.is_none()).await;
    }
    let revisions: Api<ControllerRevision> = Api::all(fleet.world.client.clone());
    fleet
        .until("no stored revisions", async || {
            revisions.list(&ListParams::default()).await.unwrap().items.is_empty()
        })
        .await;
    fleet.manager.stop().await;
}
