//! The order in which the agent reports and applies, and how it undoes what others change. One
//! embedded hub is both the hub and the cluster.

use aviary_api::Condition;
use aviary_hub::{Hub, HubOptions};
use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{WatchEvent, WatchParams};
use serde_json::{Value, json};

use super::*;

struct AgentWorld {
    _hub: Hub,
    client: Client,
    agent: Agent,
}

impl AgentWorld {
    async fn new() -> Self {
        let hub = Hub::ephemeral(HubOptions::default()).await.unwrap();
        let client = hub.client();
        aviary_testing::install_crds(&client).await;
        aviary_testing::put(&client, &aviary_testing::objects::namespace("c1")).await;
        let member = Member::new(client.clone());
        member.prepare().await.unwrap();
        let agent = Agent {
            works: Api::namespaced(client.clone(), "c1"),
            member,
            seen: HashMap::new(),
            poll: RESYNC,
            resync: Duration::ZERO,
        };
        Self { _hub: hub, client, agent }
    }

    /// Writes a work with a ConfigMap that says which version it is, and passes it to the agent.
    async fn assign(&mut self, version: &str) {
        let id = json!({"group": "", "resource": "configmaps", "namespace": "default", "name": "told"});
        let rules =
            json!([{"type": "JSONPaths", "jsonPaths": [{"name": "version", "path": ".data.version"}]}]);
        let work = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": "work", "namespace": "c1"},
            "spec": {
                "workload": {"manifests": [{
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told", "namespace": "default"}, "data": {"version": version},
                }]},
                "manifestConfigs": [{"resourceIdentifier": id, "feedbackRules": rules}],
            },
        });
        aviary_testing::put(&self.client, &work).await;
        let work = self.agent.works.get("work").await.unwrap();
        self.agent.changed(work).await;
    }

    async fn version(&self) -> String {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "default");
        maps.get("told").await.unwrap().data.unwrap()["version"].clone()
    }

    /// Every status of the work since a version of it: for which generation it was applied and
    /// available, and with what feedback.
    async fn reports_since(&self, version: &str) -> Vec<String> {
        let last = self.agent.works.get("work").await.unwrap().resource_version();
        let mut events = Box::pin(self.agent.works.watch(&WatchParams::default(), version).await.unwrap());
        let mut reports = Vec::new();
        while let Some(event) = events.try_next().await.unwrap() {
            let WatchEvent::Modified(work) = event else { continue };
            reports.push(summary(&work));
            if work.resource_version() == last {
                break;
            }
        }
        reports.dedup();
        reports
    }
}

fn summary(work: &ManifestWork) -> String {
    let status = work.status.clone().unwrap_or_default();
    let of = |type_: &str| {
        let found = Condition::find(&status.conditions, type_).filter(|one| one.status == "True");
        found.and_then(|one| one.observed_generation).unwrap_or_default()
    };
    let told = serde_json::to_value(&status).unwrap();
    let value = told.pointer("/resourceStatus/manifests/0/statusFeedback/values/0/fieldValue/string");
    let value = value.and_then(Value::as_str).unwrap_or("nothing");
    format!("applied at {}, available at {}: {value}", of("Applied"), of("Available"))
}

#[tokio::test]
async fn a_change_is_first_reported_with_the_values_of_the_older_object() {
    let mut world = AgentWorld::new().await;
    world.assign("v1").await;
    world.agent.report("work").await;
    let before = world.agent.works.get("work").await.unwrap();
    assert_eq!(summary(&before), "applied at 1, available at 1: v1");

    world.assign("v2").await;
    world.agent.report("work").await;
    assert_eq!(
        world.reports_since(&before.resource_version().unwrap()).await,
        [
            // The change itself.
            "applied at 1, available at 1: v1",
            "applied at 1, available at 2: v1",
            "applied at 2, available at 2: v1",
            "applied at 2, available at 2: v2",
        ]
    );
}

#[tokio::test]
async fn what_others_change_is_undone_when_the_work_is_applied_again() {
    let mut world = AgentWorld::new().await;
    world.assign("v1").await;
    let changed = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told", "namespace": "default"}, "data": {"version": "other"},
    });
    aviary_testing::put(&world.client, &changed).await;
    assert_eq!(world.version().await, "other");
    assert_eq!(world.agent.due(), ["work"]);
    world.agent.apply("work").await;
    assert_eq!(world.version().await, "v1");
}
