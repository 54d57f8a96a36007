//! The version examples of the two earlier drafts of the design, on instances and in
//! `addonTemplate`, with their conditions and messages.

use aviary_api::ManifestWork;
use kube::api::Api;
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::objects::{addon, instance, object};
use crate::rollout::template;
use crate::world::{World, names};

const V1: &str = "b433cd0d";
const V2: &str = "cdf58b3d";

/// A placement whose `addonTemplate` wants a version, by the word of one draft or the other.
fn wants(placement: &str, word: &str, version: &str) -> Value {
    json!({"name": placement, "namespace": "default", "addonTemplate": {word: version}})
}

async fn world() -> World {
    let world = World::new().await;
    world.put(template("v1")).await;
    world.clusters("global-placement", &names("cluster", 1..=2, 1)).await;
    world
}

/// The lines of an instance: what it is told and has, its versions, `Progressing`, `Configured` and
/// `Available`.
fn lines(configs: &str, versions: &str, progressing: &str) -> String {
    let available = if configs.ends_with("applied -") || configs.is_empty() {
        "Available Unknown WorksNotReported: the agent has not reported on all works yet"
    } else {
        "Available True WorksAvailable: all works are available"
    };
    let configured = match progressing.split_once("invalid version ") {
        Some((_, version)) => format!("Configured False VersionUnsupported: invalid version {version}"),
        None => "Configured True ConfigurationsConfigured: all configurations are resolved".into(),
    };
    format!("{configs}\nversion {versions}\nProgressing {progressing}\n{configured}\n{available}")
}

fn pins(desired: &str, applied: &str) -> String {
    let pin = |version: &str| match version {
        "v1" => format!("v1@{V1}"),
        "v2" => format!("v2@{V2}"),
        other => other.to_owned(),
    };
    format!("addonhubconfigs desired {} applied {}", pin(desired), pin(applied))
}

async fn until_versions(world: &World, versions: Value, default: &str) {
    world
        .until("helloworld", &format!("{versions} {default}"), |addon| {
            let status = json!(addon.status);
            status["supportedVersions"] == versions && status["defaultVersion"] == default
        })
        .await;
}

async fn version_of_work(world: &World, cluster: &str) -> Value {
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), cluster);
    let work = works.get("addon-helloworld-deploy-0").await.unwrap();
    json!(work)["metadata"]["labels"]["open-cluster-management.io/addon-version"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_version_is_installed_and_a_newer_one_upgrades_by_itself() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.put(addon(&[json!({"name": "global-placement", "namespace": "default"})])).await;
    let at = |version: &str, last: &str, reason: &str, message: &str| {
        lines(
            "",
            &format!("desired {version} current {version} last {last}"),
            &format!("False {reason}: {message}"),
        )
        .replace(
            "Unknown WorksNotReported: the agent has not reported on all works yet",
            "True WorksAvailable: all works are available",
        )
    };
    until_versions(&world, json!(["v1"]), "v1").await;
    world
        .until_instance(
            "cluster1",
            "helloworld",
            &at("v1", "-", "InstallSucceed", "install completed with no errors."),
        )
        .await;
    assert_eq!(version_of_work(&world, "cluster1").await, "v1");
    world.put(template("v2")).await;
    until_versions(&world, json!(["v2", "v1"]), "v2").await;
    world
        .until_instance(
            "cluster1",
            "helloworld",
            &at("v2", "v1", "UpgradeSucceed", "upgrade completed with no errors."),
        )
        .await;
    assert_eq!(version_of_work(&world, "cluster1").await, "v2");
    manager.stop().await;
}

/// The drafts' canary upgrade, the way back, and versions that do not exist, by one draft's word.
async fn drafts(word: &'static str) {
    let world = world().await;
    let agents = Agents::held(&world.client);
    let manager = world.manager("only");
    world.put(addon(&[wants("global-placement", word, "v1")])).await;
    let installing = "True Installing: Installing addon to version v1.";
    let fresh = lines(&pins("v1", "-"), "desired v1 current unknown last -", installing);
    world.until_instance("cluster1", "helloworld", &fresh).await;
    agents.let_go();
    let done = "False Succeed: install completed with no errors.";
    let on_v1 = lines(&pins("v1", "v1"), "desired v1 current v1 last -", done);
    world.until_instance("cluster1", "helloworld", &on_v1).await;
    world.until_instance("cluster2", "helloworld", &on_v1).await;

    // Two versions are there now; the canary placement takes the newer one.
    agents.answer(|_| None);
    world.put(template("v2")).await;
    world.select("canary-placement", &names("cluster", 1..=1, 1)).await;
    world.put(addon(&[wants("global-placement", word, "v1"), wants("canary-placement", word, "v2")])).await;
    let upgrading = "True Upgrading: Upgrading addon to version v2.";
    let moving = lines(&pins("v2", "v1"), "desired v2 current unknown last v1", upgrading);
    world.until_instance("cluster1", "helloworld", &moving).await;
    agents.let_go();
    let on_v2 = lines(&pins("v2", "v2"), "desired v2 current v2 last v1", done);
    world.until_instance("cluster1", "helloworld", &on_v2).await;
    world.until_instance("cluster2", "helloworld", &on_v1).await;
    until_versions(&world, json!(["v2", "v1"]), "v2").await;
    assert_eq!(version_of_work(&world, "cluster1").await, "v2");
    assert_eq!(version_of_work(&world, "cluster2").await, "v1");

    // An invalid upgrade: nothing moves.
    world.put(addon(&[wants("global-placement", word, "v3"), wants("canary-placement", word, "v2")])).await;
    let invalid = "False Failed: could not upgrade to invalid version v3";
    world
        .until_instance(
            "cluster2",
            "helloworld",
            &lines(&pins("v1", "v1"), "desired v3 current unknown last v1", invalid),
        )
        .await;
    assert_eq!(version_of_work(&world, "cluster2").await, "v1");

    // Back, where it was valid; and to a version that never was.
    agents.answer(|_| None);
    world.put(addon(&[wants("global-placement", word, "v1"), wants("canary-placement", word, "v1")])).await;
    let back = "True Rollingback: Rollingback addon to version v1.";
    let rolling_back = lines(&pins("v1", "v2"), "desired v1 current unknown last v2", back);
    world.until_instance("cluster1", "helloworld", &rolling_back).await;
    agents.let_go();
    world
        .until_instance(
            "cluster1",
            "helloworld",
            &lines(&pins("v1", "v1"), "desired v1 current v1 last v2", done),
        )
        .await;
    world.put(addon(&[wants("global-placement", word, "v1"), wants("canary-placement", word, "v0")])).await;
    let invalid = "False Failed: could not rollback to invalid version v0";
    world
        .until_instance(
            "cluster1",
            "helloworld",
            &lines(&pins("v1", "v1"), "desired v0 current unknown last v1", invalid),
        )
        .await;
    assert_eq!(version_of_work(&world, "cluster1").await, "v1");
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drafts_canary_upgrade_and_rollback_by_desired_version() {
    drafts("desiredVersion").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drafts_canary_upgrade_and_rollback_by_install_version() {
    drafts("installVersion").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_on_an_instance_is_a_users_and_an_invalid_one_installs_nothing() {
    let world = world().await;
    let agents = Agents::held(&world.client);
    let manager = world.manager("only");
    world.put(template("v2")).await;
    world.put(object("ClusterManagementAddOn", "helloworld", json!({"spec": {}}))).await;
    world.put(instance("cluster1", "helloworld", json!({"desiredVersion": "v1"}))).await;
    world.put(instance("cluster2", "helloworld", json!({"installVersion": "v3"}))).await;
    let installing = "True Installing: Installing addon to version v1.";
    let fresh = lines(&pins("v1", "-"), "desired v1 current unknown last -", installing);
    world.until_instance("cluster1", "helloworld", &fresh).await;
    let invalid =
        lines("", "desired v3 current unknown last -", "False Failed: could not install invalid version v3");
    world.until_instance("cluster2", "helloworld", &invalid).await;
    agents.let_go();
    let done = "False Succeed: install completed with no errors.";
    world
        .until_instance(
            "cluster1",
            "helloworld",
            &lines(&pins("v1", "v1"), "desired v1 current v1 last -", done),
        )
        .await;

    // Each user goes on: up, by the word of the other draft, and to one that exists.
    agents.answer(|_| None);
    world
        .put(instance("cluster1", "helloworld", json!({"desiredVersion": null, "installVersion": "v2"})))
        .await;
    world.put(instance("cluster2", "helloworld", json!({"installVersion": "v2"}))).await;
    let upgrading = "True Upgrading: Upgrading addon to version v2.";
    let moving = lines(&pins("v2", "v1"), "desired v2 current unknown last v1", upgrading);
    world.until_instance("cluster1", "helloworld", &moving).await;
    agents.let_go();
    world
        .until_instance(
            "cluster1",
            "helloworld",
            &lines(&pins("v2", "v2"), "desired v2 current v2 last v1", done),
        )
        .await;
    let healed = lines(&pins("v2", "v2"), "desired v2 current v2 last unknown", done);
    world.until_instance("cluster2", "helloworld", &healed).await;
    let spec = world.get(&instance("cluster2", "helloworld", json!({}))).await.unwrap()["spec"].clone();
    assert_eq!(spec["installVersion"], "v2", "an instance's spec is never written");
    manager.stop().await;
}
