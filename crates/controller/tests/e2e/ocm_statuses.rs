//! Statuses on a hub with the kinds of Open Cluster Management: its fields, reasons and messages,
//! for an add-on with its own manager. One test for each behaviour that OCM's add-ons rely on.

use std::time::Duration;

use aviary_testing::objects::names;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::objects::{GROUP, instance, object, reference, within};
use crate::world::{GIVE_UP, World};

pub(crate) const ADDON: &str = "helloworld";
/// What OCM computes for the configs below.
pub(crate) const FIRST: &str = "ea4e6089e8b2f584c1cd8b86e16a15df3186b30744f433ede7436091c93a4cc7";
const SECOND: &str = "b746cc98936955dd2168640f0011a14f2a74be306c747bc8ba829328cc772690";

/// A config as a Go client sends it; the hub adds a default.
pub(crate) fn config(namespace: &str, name: &str, variable: &str) -> Value {
    let variables = [json!({"name": variable, "value": variable})];
    let spec = json!({"customizedVariables": variables, "proxyConfig": {}});
    within(namespace, object("AddOnDeploymentConfig", name, json!({"spec": spec})))
}

pub(crate) fn addon(default: Option<&str>, strategy: Value) -> Value {
    let mut supported = json!({"group": GROUP, "resource": "addondeploymentconfigs"});
    if let Some(name) = default {
        supported["defaultConfig"] = json!({"namespace": "default", "name": name});
    }
    let spec = json!({"supportedConfigs": [supported], "installStrategy": strategy});
    object("ClusterManagementAddOn", ADDON, json!({"spec": spec}))
}

pub(crate) fn manual() -> Value {
    json!({"type": "Manual"})
}

fn placed(config: &str, rollout: Value) -> Value {
    let configs = [reference("addondeploymentconfigs", Some("default"), config)];
    json!({"type": "Placements", "placements": [
        {"name": "fleet", "namespace": "default", "configs": configs, "rolloutStrategy": rollout},
    ]})
}

fn pin(namespace: &str, name: &str, hash: &str) -> Value {
    json!({"namespace": namespace, "name": name, "specHash": hash})
}

/// A config reference of an instance, with a generation unless the config cannot be used.
pub(crate) fn told(namespace: &str, name: &str, hash: &str, generation: u64) -> Value {
    let mut told = json!({
        "group": GROUP, "resource": "addondeploymentconfigs", "namespace": namespace, "name": name,
        "desiredConfig": pin(namespace, name, hash),
    });
    if generation > 0 {
        told["lastObservedGeneration"] = json!(generation);
    }
    told
}

pub(crate) async fn until_told(world: &World, cluster: &str, expected: Value) {
    let is = |status: &Value| status["configReferences"] == expected;
    until_status(world, cluster, &format!("{expected:#}"), is).await;
}

/// Waits until the status of an instance is as it should be.
async fn until_status(world: &World, cluster: &str, what: &str, is: impl Fn(&Value) -> bool) {
    let object = instance(cluster, ADDON, json!({}));
    let wait = async {
        while !world.get(&object).await.is_some_and(|one| is(&one["status"])) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(GIVE_UP, wait).await;
    assert!(waited.is_ok(), "not {what}: {:#}", json!(world.get(&object).await));
}

pub(crate) async fn until_condition(world: &World, cluster: &str, kind: &str, expected: [&str; 3]) {
    let is = |status: &Value| {
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        let condition = all.into_iter().find(|one| one["type"] == kind).unwrap_or_default();
        ["status", "reason", "message"].map(|part| condition[part].as_str().unwrap_or_default().to_owned())
            == expected
    };
    until_status(world, cluster, &format!("{kind} {expected:?}"), is).await;
}

async fn until_progression(world: &World, [status, reason, message]: [&str; 3]) {
    let what = format!("{status} {reason} {message}");
    world
        .until(ADDON, &what, |addon| {
            let conditions = json!(addon.status)["installProgressions"][0]["conditions"].clone();
            let all = conditions.as_array().cloned().unwrap_or_default();
            all.iter().any(|one| {
                one["type"] == "Progressing"
                    && [&one["status"], &one["reason"], &one["message"]] == [status, reason, message]
            })
        })
        .await;
}

async fn until_defaults(world: &World, expected: Value) {
    let what = format!("defaults {expected}");
    world.until(ADDON, &what, |addon| json!(addon.status)["defaultconfigReferences"] == expected).await;
}

fn default_reference(name: &str, hash: &str) -> Value {
    json!([{"group": GROUP, "resource": "addondeploymentconfigs", "desiredConfig": pin("default", name, hash)}])
}

/// What the add-on's own manager writes: the works, and its part of the statuses.
pub(crate) struct OwnManager<'w>(pub(crate) &'w World);

impl OwnManager<'_> {
    pub(crate) fn work(cluster: &str) -> Value {
        Self::work_on(cluster, cluster)
    }

    /// The work of a cluster's instance in the namespace of a hosting cluster.
    pub(crate) fn work_on(hosting: &str, cluster: &str) -> Value {
        let mut labels = json!({"open-cluster-management.io/addon-name": ADDON});
        let mut name = format!("addon-{ADDON}-deploy-0");
        if hosting != cluster {
            labels["open-cluster-management.io/addon-namespace"] = json!(cluster);
            name = format!("addon-{ADDON}-deploy-hosting-{cluster}-0");
        }
        within(
            hosting,
            json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
                "metadata": {"name": name, "labels": labels}}),
        )
    }

    /// Renders what the instance was assigned: the manifests are always the same.
    pub(crate) async fn deliver(&self, cluster: &str) {
        self.deliver_on(cluster, cluster).await;
    }

    pub(crate) async fn deliver_on(&self, hosting: &str, cluster: &str) {
        let object = instance(cluster, ADDON, json!({}));
        let status = self.0.get(&object).await.unwrap()["status"].clone();
        let mut hashes = serde_json::Map::new();
        for one in status["configReferences"].as_array().into_iter().flatten() {
            let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            let name = format!("{}.{GROUP}/{}/{}", text("resource"), text("namespace"), text("name"));
            hashes.insert(name, one["desiredConfig"]["specHash"].clone());
        }
        let mut work = Self::work_on(hosting, cluster);
        work["metadata"]["annotations"] =
            json!({"open-cluster-management.io/config-spec-hash": json!(hashes).to_string()});
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "agent", "namespace": "default"}, "data": {}});
        work["spec"] = json!({"workload": {"manifests": [manifest]}});
        self.0.put(work).await;
        self.say(
            cluster,
            json!({"type": "ManifestApplied", "status": "True", "reason": "AddonManifestApplied",
            "message": "manifests of addon are applied successfully",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}),
        )
        .await;
    }

    /// What the work agent answers.
    pub(crate) async fn report(&self, cluster: &str, applied: &str, available: Option<&str>) {
        self.report_on(Self::work(cluster), applied, available).await;
    }

    pub(crate) async fn report_on(&self, mut work: Value, applied: &str, available: Option<&str>) {
        let there = self.0.get(&work).await.unwrap();
        let condition = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "Told", "message": "",
                "observedGeneration": there["metadata"]["generation"],
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let mut conditions = vec![condition("Applied", applied)];
        conditions.extend(available.map(|status| condition("Available", status)));
        work["status"] = json!({"conditions": conditions});
        aviary_testing::put_status(&self.0.client, &work).await;
    }

    /// States a condition on the instance, beside those of others.
    pub(crate) async fn say(&self, cluster: &str, condition: Value) {
        self.edit(cluster, |status| {
            let mut all = status["conditions"].as_array().cloned().unwrap_or_default();
            all.retain(|one| one["type"] != condition["type"]);
            all.push(condition.clone());
            json!({"conditions": all})
        })
        .await;
    }

    /// Changes the status of the instance as it is: another writer may come first.
    async fn edit(&self, cluster: &str, change: impl Fn(&Value) -> Value) {
        let object = instance(cluster, ADDON, json!({}));
        let api = self.0.dynamic(&object);
        let edit = async {
            loop {
                let there = self.0.get(&object).await.unwrap();
                let patch = json!({
                    "metadata": {"resourceVersion": there["metadata"]["resourceVersion"]},
                    "status": change(&there["status"]),
                });
                match api.patch_status(ADDON, &PatchParams::default(), &Patch::Merge(patch)).await {
                    Ok(_) => return,
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        tokio::time::timeout(GIVE_UP, edit).await.expect("a quiet moment");
    }
}

#[tokio::test]
async fn an_instance_uses_the_default_config_and_the_add_on_lists_it() {
    let world = World::on_ocm().await;
    world.cluster("c1").await;
    world.put(config("default", "shared", "test")).await;
    let manager = world.manager("first");
    world.put(addon(Some("shared"), manual())).await;
    world.put(instance("c1", ADDON, json!({}))).await;
    until_defaults(&world, default_reference("shared", FIRST)).await;
    until_told(&world, "c1", json!([told("default", "shared", FIRST, 1)])).await;
    let there = world.get(&addon(None, manual())).await.unwrap();
    assert_eq!(there["status"]["installProgressions"].as_array().map_or(0, Vec::len), 0, "{there:#}");
    manager.stop().await;
}

#[tokio::test]
async fn a_config_that_does_not_exist_is_listed_without_a_hash() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &["c1".to_owned()]).await;
    world.put(config("default", "shared", "test")).await;
    let manager = world.manager("first");
    world.put(addon(Some("shared"), placed("another", json!({"type": "All"})))).await;
    until_defaults(&world, default_reference("shared", FIRST)).await;
    until_told(&world, "c1", json!([told("default", "another", "", 0)])).await;
    let missing = json!([{"group": GROUP, "resource": "addondeploymentconfigs",
        "desiredConfig": pin("default", "another", "")}]);
    world
        .until(ADDON, "the missing config", |addon| {
            json!(addon.status)["installProgressions"][0]["configReferences"] == missing
        })
        .await;
    // The condition that names it.
    let text = format!("addondeploymentconfigs.{GROUP} default/another not found");
    until_condition(&world, "c1", "Configured", ["False", "ConfigurationMissing", &text]).await;
    // Once it is there, it is used.
    world.put(config("default", "another", "test1")).await;
    until_told(&world, "c1", json!([told("default", "another", SECOND, 1)])).await;
    manager.stop().await;
}

#[tokio::test]
async fn an_instances_own_config_wins_and_its_edits_are_followed() {
    let world = World::on_ocm().await;
    world.cluster("c1").await;
    world.put(config("default", "shared", "test")).await;
    world.put(config("c1", "own", "test1")).await;
    let manager = world.manager("first");
    world.put(addon(Some("shared"), manual())).await;
    let own = [reference("addondeploymentconfigs", Some("c1"), "own")];
    world.put(instance("c1", ADDON, json!({"configs": own}))).await;
    until_told(&world, "c1", json!([told("c1", "own", SECOND, 1)])).await;
    world.put(config("c1", "own", "test")).await;
    until_told(&world, "c1", json!([told("c1", "own", FIRST, 2)])).await;
    manager.stop().await;
}

#[tokio::test]
async fn a_config_that_the_add_on_does_not_support_is_listed_without_a_hash_and_named() {
    let world = World::on_ocm().await;
    world.cluster("c1").await;
    world.put(config("default", "shared", "test")).await;
    let manager = world.manager("first");
    world.put(addon(Some("shared"), manual())).await;
    let other = json!({"group": "other.example.com", "resource": "others", "namespace": "c1", "name": "odd"});
    world.put(instance("c1", ADDON, json!({"configs": [other]}))).await;
    let listed = json!({"group": "other.example.com", "resource": "others", "namespace": "c1", "name": "odd",
        "desiredConfig": pin("c1", "odd", "")});
    until_told(&world, "c1", json!([told("default", "shared", FIRST, 1), listed])).await;
    let message = "Configuration with gvr other.example.com/others is not supported for this addon";
    until_condition(&world, "c1", "Progressing", ["False", "ConfigurationUnsupported", message]).await;
    manager.stop().await;
}

#[tokio::test]
async fn supported_configs_of_an_add_on_with_its_own_manager_are_that_managers() {
    let world = World::on_ocm().await;
    world.cluster("c1").await;
    world.put(config("default", "shared", "test")).await;
    let (manager, counts) = world.counted_manager("first");
    world.put(addon(Some("shared"), manual())).await;
    world.put(instance("c1", ADDON, json!({}))).await;
    until_told(&world, "c1", json!([told("default", "shared", FIRST, 1)])).await;
    let own = OwnManager(&world);
    let supported = json!([
        {"group": "other.example.com", "resource": "others"},
        {"group": GROUP, "resource": "addondeploymentconfigs"},
    ]);
    own.edit("c1", |_| json!({"supportedConfigs": supported})).await;
    crate::ocm_rollout::at_rest(&counts, Duration::from_secs(2)).await;
    until_status(&world, "c1", "as its manager wrote it", |status| status["supportedConfigs"] == supported)
        .await;
    manager.stop().await;
}

#[tokio::test]
async fn an_instance_tells_how_far_its_works_are_in_ocms_words() {
    let world = World::on_ocm().await;
    world.cluster("c1").await;
    world.put(config("default", "shared", "test")).await;
    let manager = world.manager("first");
    world.put(addon(Some("shared"), manual())).await;
    world.put(instance("c1", ADDON, json!({}))).await;
    let waiting = "Waiting for ManagedClusterAddOn ManifestApplied condition";
    until_condition(&world, "c1", "Progressing", ["False", "WaitingForManifestApplied", waiting]).await;
    let own = OwnManager(&world);
    own.deliver("c1").await;
    own.report("c1", "True", None).await;
    let not_ready = ["True", "Progressing", "progressing... work is not ready"];
    until_condition(&world, "c1", "Progressing", not_ready).await;
    own.report("c1", "True", Some("True")).await;
    let completed = ["False", "Completed", "completed with no errors."];
    until_condition(&world, "c1", "Progressing", completed).await;
    until_condition(
        &world,
        "c1",
        "Configured",
        ["True", "ConfigurationsConfigured", "Configurations configured"],
    )
    .await;
    // Another content, and its manager has not rendered it yet.
    world.put(config("default", "shared", "test1")).await;
    let mismatch = ["True", "Progressing", "progressing... mca and work configs mismatch"];
    until_condition(&world, "c1", "Progressing", mismatch).await;
    own.deliver("c1").await;
    until_condition(&world, "c1", "Progressing", completed).await;
    manager.stop().await;
}

#[tokio::test]
async fn works_stay_while_their_cluster_is_being_deleted() {
    let world = World::on_ocm().await;
    world.cluster("c1").await;
    world.put(config("default", "shared", "test")).await;
    let (manager, counts) = world.counted_manager("first");
    world.put(addon(Some("shared"), manual())).await;
    world.put(instance("c1", ADDON, json!({}))).await;
    until_told(&world, "c1", json!([told("default", "shared", FIRST, 1)])).await;
    let own = OwnManager(&world);
    own.deliver("c1").await;
    own.report("c1", "True", Some("True")).await;
    until_condition(&world, "c1", "Progressing", ["False", "Completed", "completed with no errors."]).await;
    let mut cluster = crate::world::managed_cluster("c1");
    cluster["metadata"]["finalizers"] = json!(["cluster.open-cluster-management.io/api-resource-cleanup"]);
    world.put(cluster.clone()).await;
    world.dynamic(&cluster).delete("c1", &Default::default()).await.unwrap();
    crate::ocm_rollout::at_rest(&counts, Duration::from_secs(2)).await;
    assert!(world.get(&OwnManager::work("c1")).await.is_some());
    assert!(world.get(&instance("c1", ADDON, json!({}))).await.is_some());
    cluster["metadata"]["finalizers"] = json!([]);
    world.put(cluster).await;
    manager.stop().await;
}

/// All at once, then two at a time: who waits says so, and the placement counts as OCM does.
#[tokio::test]
async fn a_rollout_is_told_in_ocms_words() {
    let world = World::on_ocm().await;
    let clusters = names("c", 4);
    world.clusters("fleet", &clusters).await;
    world.put(config("default", "one", "test")).await;
    world.put(config("default", "two", "test1")).await;
    let manager = world.manager("first");
    world.put(addon(None, placed("one", json!({"type": "All"})))).await;
    let own = OwnManager(&world);
    for cluster in &clusters {
        until_told(&world, cluster, json!([told("default", "one", FIRST, 1)])).await;
        own.deliver(cluster).await;
        own.report(cluster, "True", Some("True")).await;
    }
    let completed =
        "selected clusters 4. configured addons 4/4 completed with no errors, 0 failed 0 timeout.";
    until_progression(&world, ["False", "Completed", completed]).await;
    let two = |deadline: &str| {
        let progressive = json!({"maxConcurrency": 2, "progressDeadline": deadline, "maxFailures": 1});
        addon(None, placed("two", json!({"type": "Progressive", "progressive": progressive})))
    };
    world.put(two("5s")).await;
    let half = "selected clusters 4. configured addons 2/4 progressing..., 0 failed 0 timeout.";
    until_progression(&world, ["True", "Progressing", half]).await;
    let configured = ["True", "ConfigurationsConfigured", "Configurations configured"];
    let waiting = ["False", "ConfigurationsNotConfigured", "Configurations updated and not configured yet"];
    for (at, cluster) in clusters.iter().enumerate() {
        until_condition(&world, cluster, "Configured", if at < 2 { configured } else { waiting }).await;
    }
    until_condition(&world, &clusters[2], "Progressing", ["False", "Completed", "completed with no errors."])
        .await;
    // Nobody renders it, and the deadline passes: more failed than tolerated.
    let timeout = "selected clusters 4. configured addons 0/4 progressing..., 0 failed 2 timeout.";
    until_progression(&world, ["True", "Progressing", timeout]).await;
    world
        .until(ADDON, "why it stands still", |addon| {
            let status = json!(addon.status);
            let conditions = status["installProgressions"][0]["conditions"].as_array().cloned();
            conditions.unwrap_or_default().iter().any(|one| {
                one["type"] == "Stalled"
                    && one["status"] == "True"
                    && one["message"]
                        .as_str()
                        .is_some_and(|text| text.contains("halted, 2 failed and 1 tolerated"))
            })
        })
        .await;
    // Late, but there: the others follow.
    world.put(two("10m")).await;
    for cluster in &clusters[..2] {
        own.deliver(cluster).await;
    }
    let all = "selected clusters 4. configured addons 4/4 progressing..., 0 failed 0 timeout.";
    until_progression(&world, ["True", "Progressing", all]).await;
    for cluster in &clusters[2..] {
        // The placement is written before its instances.
        until_condition(&world, cluster, "Configured", configured).await;
        own.deliver(cluster).await;
    }
    until_progression(&world, ["False", "Completed", completed]).await;
    manager.stop().await;
}

#[tokio::test]
async fn instances_follow_their_placement_and_are_made_again() {
    let world = World::on_ocm().await;
    for cluster in ["c1", "c2", "c3"] {
        world.cluster(cluster).await;
    }
    world.select("fleet", &["c1".to_owned(), "c2".to_owned()]).await;
    let manager = world.manager("first");
    let strategy = json!({"type": "Placements", "placements": [
        {"name": "fleet", "namespace": "default", "rolloutStrategy": {"type": "All"}}]});
    let object = object("ClusterManagementAddOn", ADDON, json!({"spec": {"installStrategy": strategy}}));
    world.put(object).await;
    world.until_on(ADDON, &["c1", "c2"]).await;
    world.select("fleet", &["c2".to_owned(), "c3".to_owned()]).await;
    world.until_on(ADDON, &["c2", "c3"]).await;
    world.delete(instance("c2", ADDON, json!({}))).await;
    world.until_on(ADDON, &["c2", "c3"]).await;
    manager.stop().await;
}

/// A template as OCM's schema has it: without a version, and with a plain namespace.
fn template(name: &str, version: Option<&str>) -> Value {
    let mut manifest = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "agent", "namespace": "default"}, "data": {"made-of": name}});
    if let Some(version) = version {
        manifest["metadata"]["annotations"] =
            json!({"addon.open-cluster-management.io/template-version": version});
    }
    let spec = json!({"addonName": ADDON, "agentSpec": {"workload": {"manifests": [manifest]}}});
    object("AddOnTemplate", name, json!({"spec": spec}))
}

#[tokio::test]
async fn an_instance_of_a_template_has_all_that_ocms_agents_read() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &["c1".to_owned()]).await;
    world.put(template("one", None)).await;
    let mut placement = config("default", "where", "test");
    placement["spec"]["agentInstallNamespace"] = json!("agents");
    world.put(placement).await;
    let agents = crate::agents::Agents::held(&world.client);
    let (manager, counts) = world.counted_manager("first");
    let configs = [
        reference("addontemplates", None, "one"),
        reference("addondeploymentconfigs", Some("default"), "where"),
    ];
    let supported = ["addontemplates", "addondeploymentconfigs"]
        .map(|resource| json!({"group": GROUP, "resource": resource}));
    let strategy = json!({"type": "Placements", "placements": [
        {"name": "fleet", "namespace": "default", "configs": configs, "rolloutStrategy": {"type": "All"}}]});
    let spec = json!({"supportedConfigs": supported, "installStrategy": strategy});
    world.put(object("ClusterManagementAddOn", ADDON, json!({"spec": spec}))).await;
    let waiting = "Waiting for ManagedClusterAddOn ManifestApplied condition";
    until_condition(&world, "c1", "Progressing", ["False", "WaitingForManifestApplied", waiting]).await;
    let registered = ["True", "NilRegistration", "Registration of the addon agent is configured"];
    until_condition(&world, "c1", "RegistrationApplied", registered).await;
    until_status(&world, "c1", "namespace and health check", |status| {
        status["namespace"] == "agents" && status["healthCheck"] == json!({"mode": "Customized"})
    })
    .await;
    agents.let_go();
    until_condition(&world, "c1", "Progressing", ["False", "Completed", "completed with no errors."]).await;
    let applied = ["True", "AddonManifestApplied", "manifests of addon are applied successfully"];
    until_condition(&world, "c1", "ManifestApplied", applied).await;
    let available = ["True", "ProbeAvailable", "helloworld add-on is available."];
    until_condition(&world, "c1", "Available", available).await;
    until_status(&world, "c1", "supported configs", |status| {
        let listed = status["supportedConfigs"].as_array().cloned().unwrap_or_default();
        listed.len() == 2 && supported.iter().all(|kind| listed.contains(kind))
    })
    .await;
    crate::ocm_rollout::at_rest(&counts, Duration::from_secs(2)).await;
    manager.stop().await;
}

#[tokio::test]
async fn a_templates_version_is_in_its_content() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &["c1".to_owned()]).await;
    world.put(template("old", Some("v1.0.0"))).await;
    world.put(template("new", Some("v1.1.0"))).await;
    let _agents = crate::agents::Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("first");
    world.put(object("AddOnHubConfig", "pinned", json!({"spec": {"desiredVersion": "v1.0.0"}}))).await;
    let configs = [reference("addonhubconfigs", None, "pinned")];
    let strategy = json!({"type": "Placements", "placements": [
        {"name": "fleet", "namespace": "default", "configs": configs, "rolloutStrategy": {"type": "All"}}]});
    world.put(object("ClusterManagementAddOn", ADDON, json!({"spec": {"installStrategy": strategy}}))).await;
    until_condition(&world, "c1", "Progressing", ["False", "Completed", "completed with no errors."]).await;
    let work = world.get(&OwnManager::work("c1")).await.unwrap();
    assert_eq!(work["spec"]["workload"]["manifests"][0]["data"]["made-of"], "old", "{work:#}");
    assert_eq!(work["metadata"]["labels"]["open-cluster-management.io/addon-version"], "v1.0.0", "{work:#}");
    manager.stop().await;
}

#[tokio::test]
async fn an_instance_gets_its_clusters_annotations_but_is_not_moved_to_another_cluster() {
    let world = World::on_ocm().await;
    world.clusters("fleet", &names("c", 2)).await;
    let mut cluster = crate::world::managed_cluster("c-00");
    cluster["metadata"]["annotations"] = json!({
        "addon.open-cluster-management.io/values": "{}",
        "addon.open-cluster-management.io/hosting-cluster-name": "c-01",
        "example.com/other": "1",
    });
    world.put(cluster).await;
    let (manager, counts) = world.counted_manager("first");
    let strategy = json!({"type": "Placements", "placements": [
        {"name": "fleet", "namespace": "default", "rolloutStrategy": {"type": "All"}}]});
    world.put(object("ClusterManagementAddOn", ADDON, json!({"spec": {"installStrategy": strategy}}))).await;
    world.until_on(ADDON, &["c-00", "c-01"]).await;
    let of = async |cluster: &str| {
        let annotations = world.get(&instance(cluster, ADDON, json!({}))).await.unwrap();
        let annotations = annotations["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        let manager = "addon.open-cluster-management.io/manager-";
        annotations.into_iter().filter(|(key, _)| !key.starts_with(manager)).collect::<Vec<_>>()
    };
    assert_eq!(of("c-00").await, [("addon.open-cluster-management.io/values".to_owned(), json!("{}"))]);
    assert_eq!(of("c-01").await, []);

    // Its user adds one, and its cluster changes: what is not the cluster's stays.
    let user = "addon.open-cluster-management.io/user";
    let mut own = instance("c-00", ADDON, json!({}));
    own["metadata"]["annotations"] = json!({user: "1"});
    world.put(own).await;
    let mut cluster = crate::world::managed_cluster("c-00");
    cluster["metadata"]["annotations"] = json!({
        "addon.open-cluster-management.io/values": "{\"a\": 1}",
        "addon.open-cluster-management.io/more": "2",
        "addon.open-cluster-management.io/hosting-cluster-name": "c-02",
    });
    world.put(cluster.clone()).await;
    let expected = [
        ("addon.open-cluster-management.io/more".to_owned(), json!("2")),
        (user.to_owned(), json!("1")),
        ("addon.open-cluster-management.io/values".to_owned(), json!("{\"a\": 1}")),
    ];
    let followed = async {
        while of("c-00").await != expected {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let followed = tokio::time::timeout(GIVE_UP, followed).await;
    assert!(followed.is_ok(), "{:?}", of("c-00").await);
    crate::ocm_rollout::at_rest(&counts, Duration::from_secs(2)).await;
    world.remove_annotation(&cluster, "addon.open-cluster-management.io/more").await;
    crate::ocm_rollout::at_rest(&counts, Duration::from_secs(2)).await;
    assert_eq!(of("c-00").await, expected);
    assert_eq!(of("c-01").await, []);
    manager.stop().await;
}
