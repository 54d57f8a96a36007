//! Take-over from OCM's add-on manager: what it leaves on a hub, and what a manager that starts
//! there makes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use aviary_api::{ManagedClusterAddOn, ManifestWork};
use aviary_engine::normalise;
use aviary_testing::objects::{names, template_of};
use futures_util::{StreamExt, stream};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::counting::Counts;
use crate::ocm_rollout::{addon, at_rest, place, until_applied};
use crate::world::World;

/// The name of OCM's add-on manager among the managers of fields: that of its program.
pub(crate) const OCM: &str = "addon";
/// How many clusters the fleet has.
const FLEET: usize = 200;
const ADDONS: &str = "addon.open-cluster-management.io";
const AGENT_NAMESPACE: &str = "open-cluster-management-agent-addon";
const MARKER: &str = "addon.open-cluster-management.io/installed-by-strategy";
const LONG_AGO: &str = "2025-06-01T00:00:00Z";

/// A template with a Deployment. Its namespace is a plain one: an API server checks the metadata of
/// manifests.
fn deployment_template(version: &str) -> Value {
    let container =
        json!({"name": "agent", "image": format!("example/agent:{version}"), "args": ["{{CLUSTER_NAME}}"]});
    let manifest = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": AGENT_NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [container]}}},
    });
    template_of("helloworld", version, &json!([manifest]))
}

/// The Deployment as OCM's manager renders it: read into a Go type and written from it, with the
/// built-in values as environment.
fn rendered_by_ocm(version: &str, cluster: &str) -> Value {
    let container = json!({
        "name": "agent", "image": format!("example/agent:{version}"), "args": [cluster], "resources": {},
        "env": [{"name": "CLUSTER_NAME", "value": cluster}],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "agent", "namespace": AGENT_NAMESPACE, "creationTimestamp": null},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "agent"}}, "strategy": {},
            "template": {"metadata": {"labels": {"app": "agent"}, "creationTimestamp": null}, "spec": {"containers": [container]}}},
        "status": {},
    })
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": LONG_AGO})
}

/// What OCM's manager has made of an add-on at one template.
pub(crate) struct Left {
    addon_uid: String,
    template: String,
    hash: String,
    version: &'static str,
    /// Deployment configs, in order.
    configs: Vec<Value>,
}

impl Left {
    fn config(&self) -> Value {
        json!({"name": self.template, "specHash": self.hash})
    }

    /// What OCM lists of each config.
    fn references(&self) -> Vec<Value> {
        let reference = |resource: &str, config: &Value| json!({"group": ADDONS, "resource": resource, "desiredConfig": config, "lastAppliedConfig": config});
        let configs = self.configs.iter().map(|config| reference("addondeploymentconfigs", config));
        configs.chain([reference("addontemplates", &self.config())]).collect()
    }

    pub(crate) fn instance(&self, cluster: &str) -> Value {
        let references = self.references().into_iter().map(|mut reference| {
            reference["name"] = reference["desiredConfig"]["name"].clone();
            reference["namespace"] = reference["desiredConfig"]["namespace"].clone();
            reference["lastObservedGeneration"] = json!(1);
            if reference["namespace"].is_null() {
                reference.as_object_mut().unwrap().remove("namespace");
            }
            reference
        });
        json!({
            "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ManagedClusterAddOn",
            "metadata": {"name": "helloworld", "namespace": cluster, "ownerReferences": [{
                "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ClusterManagementAddOn", "name": "helloworld",
                "uid": self.addon_uid, "controller": true, "blockOwnerDeletion": true,
            }]},
            "spec": {},
            "status": {
                "namespace": AGENT_NAMESPACE, "healthCheck": {"mode": "Customized"},
                "supportedConfigs": [
                    {"group": ADDONS, "resource": "addondeploymentconfigs"}, {"group": ADDONS, "resource": "addontemplates"},
                ],
                "configReferences": references.collect::<Vec<_>>(),
                "conditions": [
                    condition("Configured", "True", "ConfigurationsConfigured", "Configurations configured"),
                    condition("RegistrationApplied", "True", "SetPermissionApplied", "Registration of the addon agent is configured"),
                    condition("ManifestApplied", "True", "AddonManifestApplied", "manifests of addon are applied successfully"),
                    condition("Available", "True", "ProbeAvailable", "helloworld add-on is available."),
                    condition("Progressing", "False", "Completed", "completed with no errors."),
                ],
            },
        })
    }

    fn work(&self, cluster: &str, instance: &str) -> Value {
        let feedback = json!({
            "resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "agent", "namespace": AGENT_NAMESPACE},
            "feedbackRules": [{"type": "WellKnownStatus"}],
        });
        let mut hashes = json!({format!("addontemplates.{ADDONS}//{}", self.template): self.hash});
        for config in &self.configs {
            let (namespace, name) = (config["namespace"].as_str().unwrap(), config["name"].as_str().unwrap());
            hashes[format!("addondeploymentconfigs.{ADDONS}/{namespace}/{name}")] =
                config["specHash"].clone();
        }
        let hashes = hashes.to_string();
        json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {
                "name": "addon-helloworld-deploy-0", "namespace": cluster,
                "labels": {"open-cluster-management.io/addon-name": "helloworld"},
                "annotations": {"open-cluster-management.io/config-spec-hash": hashes},
                "ownerReferences": [{
                    "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ManagedClusterAddOn", "name": "helloworld",
                    "uid": instance, "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"workload": {"manifests": [rendered_by_ocm(self.version, cluster)]}, "manifestConfigs": [feedback]},
        })
    }

    /// Makes the instance and the work of a cluster, as their writers do: each with its own name.
    async fn on(&self, world: &World, cluster: &str) {
        let wanted = self.instance(cluster);
        let mut main = wanted.clone();
        main.as_object_mut().unwrap().remove("status");
        let instances = world.dynamic(&wanted);
        let by_ocm = PatchParams::apply(OCM);
        let made = instances.patch("helloworld", &by_ocm, &Patch::Apply(&main)).await.unwrap();
        let status = Patch::Merge(json!({"status": wanted["status"]}));
        let by_ocm = PatchParams { field_manager: Some(OCM.into()), ..PatchParams::default() };
        instances.patch_status("helloworld", &by_ocm, &status).await.unwrap();
        self.work_on(world, cluster, &made.uid().unwrap()).await;
    }

    async fn work_on(&self, world: &World, cluster: &str, instance: &str) {
        let mut work = self.work(cluster, instance);
        world.put(work.clone()).await;
        let applied = |kind: &str| {
            let mut one = condition(kind, "True", "Applied", "");
            one["observedGeneration"] = json!(1);
            one
        };
        let value = |name: &str| json!({"name": name, "fieldValue": {"type": "Integer", "integer": 1}});
        work["status"] = json!({
            "conditions": [applied("Applied"), applied("Available")],
            "resourceStatus": {"manifests": [{
                "resourceMeta": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments",
                    "name": "agent", "namespace": AGENT_NAMESPACE},
                "conditions": [applied("Applied"), applied("Available")],
                "statusFeedback": {"values": [value("ReadyReplicas"), value("Replicas"), value("AvailableReplicas")]},
            }]},
        });
        aviary_testing::put_status(&world.client, &work).await;
    }

    /// The add-on's status once all of so many clusters have it.
    fn progressions(&self, clusters: usize) -> Value {
        let message = format!(
            "selected clusters {clusters}. configured addons {clusters}/{clusters} completed with no errors, 0 failed 0 timeout."
        );
        let references = self.references().into_iter().map(|mut reference| {
            reference["lastKnownGoodConfig"] = reference["desiredConfig"].clone();
            reference
        });
        json!({"installProgressions": [{
            "name": "fleet", "namespace": "default",
            "conditions": [condition("Progressing", "False", "Completed", &message)],
            "configReferences": references.collect::<Vec<_>>(),
        }]})
    }
}

fn at(version: &str) -> Value {
    let mut wanted = addon(&[place("fleet", &format!("helloworld-{version}"), json!(10))]);
    let supported =
        ["addontemplates", "addondeploymentconfigs"].map(|kind| json!({"group": ADDONS, "resource": kind}));
    wanted["spec"]["supportedConfigs"] = json!(supported);
    wanted
}

/// The same with these deployment configs.
fn at_with(version: &str, configs: &[Value]) -> Value {
    let mut wanted = at(version);
    let listed = wanted["spec"]["installStrategy"]["placements"][0]["configs"].as_array_mut().unwrap();
    listed.extend(configs.iter().map(|config| {
        json!({"group": ADDONS, "resource": "addondeploymentconfigs", "namespace": config["namespace"], "name": config["name"]})
    }));
    wanted
}

/// Makes a deployment config; returns how OCM refers to it.
async fn deployment_config(world: &World, name: &str) -> Value {
    let wanted = json!({
        "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "AddOnDeploymentConfig",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"customizedVariables": [{"name": "OF", "value": name}]},
    });
    world.put(wanted.clone()).await;
    let hash = normalise::config(&world.get(&wanted).await.unwrap()).hash;
    json!({"namespace": "default", "name": name, "specHash": hash.as_str()})
}

/// An add-on that OCM's manager has brought to v1.0.0 on all clusters.
pub(crate) async fn left_by_ocm(world: &World, clusters: &[String]) -> Left {
    left_with(world, clusters, Vec::new()).await
}

async fn left_with(world: &World, clusters: &[String], configs: Vec<Value>) -> Left {
    world.clusters("fleet", clusters).await;
    for version in ["v1.0.0", "v2.0.0"] {
        world.put(deployment_template(version)).await;
    }
    world.put(at_with("v1.0.0", &configs)).await;
    let addon = world.get(&at("v1.0.0")).await.unwrap();
    let template = world.get(&deployment_template("v1.0.0")).await.unwrap();
    let left = Left {
        addon_uid: addon["metadata"]["uid"].as_str().unwrap().to_owned(),
        template: "helloworld-v1.0.0".into(),
        hash: normalise::config(&template).hash.as_str().to_owned(),
        version: "v1.0.0",
        configs,
    };
    stream::iter(clusters).for_each_concurrent(16, |cluster| left.on(world, cluster)).await;
    let mut addon = at_with("v1.0.0", &left.configs);
    addon["status"] = left.progressions(clusters.len());
    aviary_testing::put_status(&world.client, &addon).await;
    left
}

/// The resource versions of all works, and the statuses of all instances.
async fn state(world: &World) -> (BTreeMap<String, String>, BTreeMap<String, Value>) {
    let works: Api<ManifestWork> = Api::all(world.client.clone());
    let works = works.list(&Default::default()).await.unwrap();
    let instances: Api<ManagedClusterAddOn> = Api::all(world.client.clone());
    let instances = instances.list(&Default::default()).await.unwrap();
    (
        works.iter().map(|one| (one.namespace().unwrap(), one.resource_version().unwrap())).collect(),
        instances.iter().map(|one| (one.namespace().unwrap(), json!(one.status))).collect(),
    )
}

/// Waits until the manager has looked at the add-on: it keeps the contents of what is assigned.
async fn until_taken_over(world: &World, counts: &Counts) {
    let record = json!({
        "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "AddOnRolloutRecord", "metadata": {"name": "helloworld"},
    });
    let wait = async {
        loop {
            let conditions = world.get(&record).await.unwrap_or_default()["status"]["conditions"].clone();
            let all = conditions.as_array().cloned().unwrap_or_default();
            if all.iter().any(|one| one["type"] == "Succeeded" && one["status"] == "True") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::world::GIVE_UP, wait).await.expect("a take-over");
    at_rest(counts, Duration::from_secs(3)).await;
}

async fn assigned(world: &World, template: &str) -> usize {
    let all = world.instances("helloworld").await;
    let on = all
        .iter()
        .filter(|one| json!(one.status)["configReferences"][0]["desiredConfig"]["name"] == template);
    on.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settled_fleet_of_ocm_is_taken_over_without_a_change_and_rolls_by_budget_later() {
    let world = World::on_ocm().await;
    let clusters = names("fleet", FLEET);
    let left = left_by_ocm(&world, &clusters).await;
    let before = state(&world).await;
    let (manager, counts) = world.counted_manager("first");
    manager.first_pass().await;
    until_taken_over(&world, &counts).await;
    let after = state(&world).await;
    assert_eq!(before.0.len(), FLEET);
    assert_eq!(before.0, after.0, "works were written");
    for (cluster, status) in &before.1 {
        assert_eq!(after.1[cluster], *status, "{cluster}");
    }
    let addon = world.get(&at("v1.0.0")).await.unwrap();
    let said = &addon["status"]["installProgressions"][0]["conditions"][0];
    let of_ocm = left.progressions(FLEET)["installProgressions"][0]["conditions"][0].clone();
    for part in ["type", "status", "reason", "message", "lastTransitionTime"] {
        assert_eq!(said[part], of_ocm[part], "{addon:#}");
    }
    // OCM's manager has made the instances for the strategy, which owns them from now on.
    let instances = world.instances("helloworld").await;
    assert!(instances.iter().all(|one| one.labels().get(MARKER).is_some_and(|value| value == "Placements")));
    // A later upgrade is one like any other.
    let agents = Agents::held(&world.client);
    world.put(at("v2.0.0")).await;
    let started = async {
        while assigned(&world, "helloworld-v2.0.0").await < 10 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::world::GIVE_UP, started).await.expect("a start");
    at_rest(&counts, Duration::from_secs(2)).await;
    assert_eq!(assigned(&world, "helloworld-v2.0.0").await, 10);
    agents.let_go();
    until_applied(&world, "helloworld-v2.0.0").await;
    manager.stop().await;
}

/// OCM lists several configs of one kind in order. Nothing of that is lost, neither at the
/// take-over nor by the writes of a later rollout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_configs_of_one_kind_are_taken_over_and_kept() {
    let world = World::on_ocm().await;
    let clusters = names("fleet", 3);
    let configs = vec![deployment_config(&world, "zeta").await, deployment_config(&world, "alpha").await];
    let left = left_with(&world, &clusters, configs).await;
    let before = state(&world).await;
    let (manager, counts) = world.counted_manager("first");
    manager.first_pass().await;
    until_taken_over(&world, &counts).await;
    assert_eq!(before, state(&world).await);
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.put(at_with("v2.0.0", &left.configs)).await;
    let has_all = |one: &ManagedClusterAddOn| {
        let references = json!(one.status)["configReferences"].as_array().cloned().unwrap_or_default();
        let names = |field: &str| -> Vec<Value> {
            references.iter().map(|reference| reference[field]["name"].clone()).collect()
        };
        let wanted = [json!("zeta"), json!("alpha"), json!("helloworld-v2.0.0")];
        names("desiredConfig") == wanted && names("lastAppliedConfig") == wanted
    };
    world.until_instances("helloworld", "upgraded", |all| all.len() == 3 && all.iter().all(has_all)).await;
    let works: Api<ManifestWork> = Api::all(world.client.clone());
    for work in works.list(&Default::default()).await.unwrap() {
        let hashes = &work.annotations()["open-cluster-management.io/config-spec-hash"];
        for name in ["default/zeta", "default/alpha", "/helloworld-v2.0.0"] {
            assert!(hashes.contains(name), "{hashes}");
        }
    }
    manager.stop().await;
}

/// OCM's manager also writes to instances of users: that alone proves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_instances_that_nobody_but_ocm_has_written_become_the_strategys() {
    let world = World::on_ocm().await;
    let clusters = names("fleet", 5);
    let left = left_by_ocm(&world, &clusters).await;
    let instance = |cluster: &str| left.instance(cluster);
    let write = |cluster: &'static str, manager: &'static str, change: Value| {
        let api = world.dynamic(&instance(cluster));
        async move {
            let params = PatchParams { field_manager: Some(manager.into()), ..PatchParams::default() };
            api.patch("helloworld", &params, &Patch::Merge(change)).await.unwrap();
        }
    };
    write("fleet-01", "kubectl-label", json!({"metadata": {"labels": {"team": "blue"}}})).await;
    let own = json!([{"group": ADDONS, "resource": "addontemplates", "name": "helloworld-v1.0.0"}]);
    write("fleet-02", OCM, json!({"spec": {"configs": own}})).await;
    write("fleet-03", "registration", json!({"metadata": {"finalizers": ["example.com/stays"]}})).await;
    // A user's own, which OCM's manager has not touched yet.
    world.delete(instance("fleet-04")).await;
    let mut users = instance("fleet-04");
    users["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    users.as_object_mut().unwrap().remove("status");
    world.put(users).await;
    let (manager, counts) = world.counted_manager("first");
    manager.first_pass().await;
    let record = json!({
        "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "AddOnRolloutRecord", "metadata": {"name": "helloworld"},
    });
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let told = async {
        loop {
            let record = world.get(&record).await.unwrap_or_default();
            let all = record["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let kept = all.iter().find(|one| one["type"] == "InstancesAdopted");
            let message = kept.and_then(|kept| kept["message"].as_str()).unwrap_or_default().to_owned();
            if message.starts_with("4 of 5 instances stay when their cluster is deselected") {
                assert!(message.contains(": fleet-01, fleet-02, fleet-03, fleet-04; "), "{message}");
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::world::GIVE_UP, told).await.expect("a condition that names them");
    world
        .until_instances("helloworld", "owned", |all| {
            let is_owned = |one: &ManagedClusterAddOn| {
                let mut owners = one.owner_references().iter();
                owners.any(|owner| owner.uid == left.addon_uid && owner.controller == Some(true))
            };
            all.len() == 5 && all.iter().all(is_owned)
        })
        .await;
    let marked = |all: &[ManagedClusterAddOn]| -> Vec<String> {
        all.iter()
            .filter(|one| one.labels().contains_key(MARKER))
            .filter_map(ResourceExt::namespace)
            .collect()
    };
    assert_eq!(marked(&world.instances("helloworld").await), ["fleet-00"]);
    at_rest(&counts, Duration::from_secs(2)).await;
    // Only that one goes when its cluster is deselected.
    world.select("fleet", &[]).await;
    world.until_on("helloworld", &["fleet-01", "fleet-02", "fleet-03", "fleet-04"]).await;
    write("fleet-03", "registration", json!({"metadata": {"finalizers": null}})).await;
    manager.stop().await;
}
