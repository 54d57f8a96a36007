//! The worked examples of the final design document, on a hub, with the statuses that it prints at
//! each step, and its corner cases. `crates/api/tests/fixtures/design-examples` has its objects.

use std::collections::BTreeMap;

use aviary_api::ManifestWork;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::audit::Auditor;
use crate::objects::{GROUP, addon, behind, instance, object, place, reference, rolling, update_all};
use crate::rollout::{hub_config, template};
use crate::world::{World, names};

const XXX: &str = "b6d559f5";
const YYY: &str = "09a6d9a2";

/// A fleet `aws001` to `aws400`, both versions, and a config for each.
async fn world() -> World {
    let world = World::new().await;
    world.clusters("aws-placement", &names("aws", 1..=400, 3)).await;
    configs(&world, &[("hub-config-xxx", "v0.10.0"), ("hub-config-yyy", "v0.11.0")]).await;
    world
}

async fn configs(world: &World, configs: &[(&str, &str)]) {
    for (config, version) in configs {
        world.put(template(version)).await;
        world.put(hub_config(config, version)).await;
    }
}

/// What an agent is asked to run.
fn version(work: &ManifestWork) -> String {
    work.labels()["open-cluster-management.io/addon-version"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_install_of_400_clusters_and_a_rolling_upgrade_a_quarter_at_a_time() {
    let world = world().await;
    let agents = Agents::held(&world.client);
    let manager = world.manager("only");
    world.put(addon(&[place("aws-placement", "hub-config-xxx", update_all())])).await;
    let told = world
        .until_told(
            "helloworld",
            "aws-placement  True Installing  400/400 installing...
                desired hub-config-xxx good - applied -",
        )
        .await;
    // As the document prints it.
    let mut progression = json!(told.status)["installProgression"].clone();
    // What is said of its health beside it is not the document's.
    progression[0]["conditions"].as_array_mut().unwrap().retain(|one| one["type"] == "Progressing");
    let [hash, template, since, generation] = [
        "/0/configReferences/0/desiredConfigSpecHash",
        "/0/configReferences/1",
        "/0/conditions/0/lastTransitionTime",
        "/0/conditions/0/observedGeneration",
    ]
    .map(|pointer| progression.pointer_mut(pointer).unwrap().take());
    assert_eq!(
        progression,
        json!([{
            "name": "aws-placement", "namespace": "default",
            "configReferences": [{
                "group": GROUP, "resource": "addonhubconfigs", "name": "hub-config-xxx",
                "desiredConfigSpecHash": null, "lastAppliedConfigSpecHash": "", "lastKnownGoodConfigSpecHash": "",
            }, null],
            "conditions": [{
                "type": "Progressing", "status": "True", "reason": "Installing", "message": "400/400 installing...",
                "lastTransitionTime": null, "observedGeneration": null,
            }],
        }])
    );
    assert_eq!(
        hash,
        aviary_engine::hash::spec_hash(&json!({"spec": {"desiredVersion": "v0.10.0"}})).as_str()
    );
    assert_eq!(template["resource"], "addontemplates", "the template is part of the revision");
    assert!(since.is_string() && generation == json!(1), "{since} {generation}");
    world
        .until_instance(
            "aws001",
            "helloworld",
            &format!(
                "
            addonhubconfigs desired hub-config-xxx@{XXX} applied -
            version desired v0.10.0 current unknown last -
            Progressing True Installing: installing...
            Configured True ConfigurationsConfigured: all configurations are resolved
            Available Unknown WorksNotReported: the agent has not reported on all works yet"
            ),
        )
        .await;
    agents.let_go();
    world
        .until_told(
            "helloworld",
            "aws-placement  False InstallSucceed  400/400 install completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx",
        )
        .await;
    world
        .until_instance(
            "aws001",
            "helloworld",
            &format!(
                "
            addonhubconfigs desired hub-config-xxx@{XXX} applied hub-config-xxx@{XXX}
            version desired v0.10.0 current v0.10.0 last -
            Progressing False InstallSucceed: install completed with no errors.
            Configured True ConfigurationsConfigured: all configurations are resolved
            Available True WorksAvailable: all works are available"
            ),
        )
        .await;
    let config = world.get(&hub_config("hub-config-xxx", "")).await.unwrap();
    assert_eq!(config["status"]["supportedVersions"], json!(["v0.11.0", "v0.10.0"]));

    agents.answer(|work| (version(work) == "v0.10.0").then_some(Ok(())));
    let audit = Auditor::start(&world.client, "helloworld").await;
    world.put(addon(&[place("aws-placement", "hub-config-yyy", rolling("25%"))])).await;
    world
        .until_told(
            "helloworld",
            "aws-placement  True Upgrading  100/400 upgrading...
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx",
        )
        .await;
    world
        .until_instance(
            "aws001",
            "helloworld",
            &format!(
                "
            addonhubconfigs desired hub-config-yyy@{YYY} applied hub-config-xxx@{XXX}
            version desired v0.11.0 current unknown last v0.10.0
            Progressing True Upgrading: upgrading...
            Configured True ConfigurationsConfigured: all configurations are resolved
            Available True WorksAvailable: all works are available"
            ),
        )
        .await;
    until_work(&world, "aws100", |work| version(work) == "v0.11.0").await;
    assert_work(&work(&world, "aws001").await, YYY, "v0.11.0");
    assert_work(&work(&world, "aws101").await, XXX, "v0.10.0");
    agents.let_go();
    world
        .until_told(
            "helloworld",
            "aws-placement  False UpgradeSucceed  400/400 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy",
        )
        .await;
    world
        .until_instance(
            "aws001",
            "helloworld",
            &format!(
                "
            addonhubconfigs desired hub-config-yyy@{YYY} applied hub-config-yyy@{YYY}
            version desired v0.11.0 current v0.11.0 last v0.10.0
            Progressing False UpgradeSucceed: upgrade completed with no errors.
            Configured True ConfigurationsConfigured: all configurations are resolved
            Available True WorksAvailable: all works are available"
            ),
        )
        .await;
    audit.end_within(100).await;
    manager.stop().await;
}

fn works(world: &World, cluster: &str) -> Api<ManifestWork> {
    Api::namespaced(world.client.clone(), cluster)
}

async fn work(world: &World, cluster: &str) -> ManifestWork {
    works(world, cluster).get("addon-helloworld-deploy-0").await.unwrap()
}

async fn until_work(world: &World, cluster: &str, is: impl Fn(&ManifestWork) -> bool) {
    let is = |work: Option<&ManifestWork>| work.is_some_and(&is);
    let wait = kube::runtime::wait::await_condition(works(world, cluster), "addon-helloworld-deploy-0", is);
    tokio::time::timeout(crate::world::GIVE_UP, wait).await.expect("the work").unwrap();
}

/// A work carries the hashes that it was rendered from, and what they stand for.
fn assert_work(work: &ManifestWork, hash: &str, version: &str) {
    let work = json!(work);
    let carried: BTreeMap<String, String> =
        serde_json::from_str(work["metadata"]["annotations"]["configsSpecHash"].as_str().unwrap()).unwrap();
    let (of, _) = carried.iter().find(|(_, carried)| carried.starts_with(hash)).unwrap();
    assert!(of.starts_with("addonhubconfigs.addon.open-cluster-management.io//hub-config-"), "{of}");
    let labels = &work["metadata"]["labels"];
    assert_eq!(labels["open-cluster-management.io/addon-name"], "helloworld");
    assert_eq!(labels["open-cluster-management.io/addon-version"], version);
    assert_eq!(work["spec"]["workload"]["manifests"][0]["data"]["version"], version);
}

fn with_canary(config: &str) -> Value {
    addon(&[
        place("aws-placement", config, behind("canary-placement", "25%")),
        place("canary-placement", config, rolling("25%")),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_upgrade_of_400_clusters_behind_100_and_the_way_back() {
    let world = world().await;
    world.clusters("canary-placement", &names("can", 1..=100, 3)).await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.put(with_canary("hub-config-xxx")).await;
    world
        .until_told(
            "helloworld",
            "aws-placement  False InstallSucceed  400/400 install completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx
            canary-placement  False InstallSucceed  100/100 install completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx",
        )
        .await;

    agents.answer(|_| None);
    let audit = Auditor::start(&world.client, "helloworld").await;
    world.put(with_canary("hub-config-yyy")).await;
    world
        .until_told(
            "helloworld",
            "aws-placement  True WaitingForCanary  waitingForCanary... canary default/canary-placement: 100 of 100 not passed, first can001
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx
            canary-placement  True Upgrading  25/100 upgrading...
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx",
        )
        .await;
    agents.let_go_of(|cluster| cluster <= "can025" && cluster.starts_with("can"));
    world
        .until_told(
            "helloworld",
            "aws-placement  True WaitingForCanary  waitingForCanary... canary default/canary-placement: 75 of 100 not passed, first can026
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx
            canary-placement  True Upgrading  50/100 upgrading...
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx",
        )
        .await;
    agents.let_go_of(|cluster| cluster.starts_with("can"));
    world
        .until_told(
            "helloworld",
            "aws-placement  True Upgrading  100/400 upgrading...
                desired hub-config-yyy good hub-config-yyy applied hub-config-xxx
            canary-placement  False UpgradeSucceed  100/100 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy",
        )
        .await;
    agents.let_go_of(|cluster| cluster.starts_with("can") || cluster <= "aws100");
    world
        .until_told(
            "helloworld",
            "aws-placement  True Upgrading  200/400 upgrading...
                desired hub-config-yyy good hub-config-yyy applied hub-config-xxx
            canary-placement  False UpgradeSucceed  100/100 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy",
        )
        .await;
    agents.let_go();
    world
        .until_told(
            "helloworld",
            "aws-placement  False UpgradeSucceed  400/400 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy
            canary-placement  False UpgradeSucceed  100/100 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy",
        )
        .await;
    let mut canary_done = false;
    audit
        .end(|fleet, _| {
            let moving =
                |prefix: &str| fleet.in_flight().iter().filter(|name| name.starts_with(prefix)).count();
            assert!(moving("can") <= 25 && moving("aws") <= 100, "{:?}", fleet.in_flight());
            if !canary_done {
                let is_canary = |cluster: &str| cluster.starts_with("can");
                let label = |work: &Value| {
                    work["metadata"]["labels"]["open-cluster-management.io/addon-version"].clone()
                };
                canary_done = moving("can") == 0
                    && fleet.works().all(|(cluster, work)| !is_canary(cluster) || label(work) == "v0.11.0");
                let is_told = |(cluster, one): (&str, &Value)| {
                    !is_canary(cluster) && one["status"]["desiredVersion"] == "v0.11.0"
                };
                assert!(canary_done || !fleet.instances().any(is_told), "told before the canary has passed");
            }
        })
        .await;
    assert!(canary_done);

    // Back: ungated, everywhere at once, within the budget.
    agents.answer(|_| None);
    world.put(with_canary("hub-config-xxx")).await;
    world
        .until_told(
            "helloworld",
            "aws-placement  True Upgrading  100/400 upgrading...
                desired hub-config-xxx good hub-config-xxx applied hub-config-yyy
            canary-placement  True Upgrading  25/100 upgrading...
                desired hub-config-xxx good hub-config-xxx applied hub-config-yyy",
        )
        .await;
    agents.let_go();
    world
        .until_told(
            "helloworld",
            "aws-placement  False UpgradeSucceed  400/400 upgrade completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx
            canary-placement  False UpgradeSucceed  100/100 upgrade completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx",
        )
        .await;
    world
        .until_instance(
            "aws001",
            "helloworld",
            &format!(
                "
            addonhubconfigs desired hub-config-xxx@{XXX} applied hub-config-xxx@{XXX}
            version desired v0.10.0 current v0.10.0 last v0.11.0
            Progressing False UpgradeSucceed: upgrade completed with no errors.
            Configured True ConfigurationsConfigured: all configurations are resolved
            Available True WorksAvailable: all works are available"
            ),
        )
        .await;
    manager.stop().await;
}

/// `a1` to `a3` behind the canary `c1`, one at a time, all on `aaa`.
async fn small(world: &World) {
    world.clusters("aws", &names("a", 1..=3, 1)).await;
    world.clusters("canary", &names("c", 1..=1, 1)).await;
    configs(world, &[("aaa", "v0.1.0"), ("bbb", "v0.2.0"), ("ccc", "v0.3.0")]).await;
    world.put(small_addon("aaa")).await;
}

fn small_addon(config: &str) -> Value {
    addon(&[place("aws", config, behind("canary", 1)), place("canary", config, rolling(1))])
}

async fn until_installed(world: &World) {
    world
        .until_told(
            "helloworld",
            "aws  False InstallSucceed  3/3 install completed with no errors.
                desired aaa good aaa applied aaa
            canary  False InstallSucceed  1/1 install completed with no errors.
                desired aaa good aaa applied aaa",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_version_stops_in_the_canary_and_the_way_back_touches_only_what_had_moved() {
    let world = World::new().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    small(&world).await;
    until_installed(&world).await;
    let audit = Auditor::start(&world.client, "helloworld").await;
    agents.answer(|work| Some(if version(work) == "v0.2.0" { Err("boom".into()) } else { Ok(()) }));
    world.put(small_addon("bbb")).await;
    world
        .until_told(
            "helloworld",
            "aws  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 1 not passed, first c1
                desired bbb good aaa applied aaa
            canary  False UpgradeFailed  1/1 upgrade failed: completed with failures, 1 failed: c1
                desired bbb good aaa applied aaa",
        )
        .await;
    world.put(small_addon("aaa")).await;
    world
        .until_told(
            "helloworld",
            "aws  False InstallSucceed  3/3 install completed with no errors.
                desired aaa good aaa applied aaa
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired aaa good aaa applied aaa",
        )
        .await;
    audit
        .end(|fleet, commit| {
            assert!(fleet.in_flight().iter().all(|name| name == "c1"), "{:?}", fleet.in_flight());
            assert!(commit.kind != "ManifestWork" || commit.cluster == "c1", "{}", commit.cluster);
        })
        .await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corner_case_1_new_clusters_install_what_is_known_good_and_one_with_an_instance_waits() {
    let world = World::new().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    small(&world).await;
    until_installed(&world).await;
    // a5 has an instance before any placement selects it: it follows the add-on's defaults.
    let defaults = [reference("addonhubconfigs", None, "aaa")];
    world
        .put(object("ClusterManagementAddOn", "helloworld", json!({"spec": {"defaultConfigs": defaults}})))
        .await;
    world.cluster("a5").await;
    world.put(instance("a5", "helloworld", json!({}))).await;
    until_version(&world, &[("a5", "v0.1.0")]).await;
    agents.answer(|_| None);
    world.put(small_addon("bbb")).await;
    until_version(&world, &[("c1", "unknown")]).await;

    // a4 is new in aws, a5 comes with its instance, c2 is new in the canary, b1 in both.
    for name in ["a4", "b1", "c2"] {
        world.cluster(name).await;
    }
    world.select("canary", &["b1", "c1", "c2"].map(str::to_owned)).await;
    world.select("aws", &["a1", "a2", "a3", "a4", "a5", "b1"].map(str::to_owned)).await;
    agents.answer(|work| (version(work) == "v0.1.0").then_some(Ok(())));
    until_version(
        &world,
        &[
            ("a1", "v0.1.0"),
            ("a4", "v0.1.0"),
            ("a5", "v0.1.0"),
            ("b1", "v0.1.0"),
            ("c1", "unknown"),
            ("c2", "v0.1.0"),
        ],
    )
    .await;
    world
        .until_told(
            "helloworld",
            "aws  True WaitingForCanary  waitingForCanary... canary default/canary: 3 of 3 not passed, first b1
                desired bbb good aaa applied aaa
            canary  True Upgrading  1/3 upgrading...
                desired bbb good aaa applied aaa",
        )
        .await;
    let audit = Auditor::start(&world.client, "helloworld").await;
    agents.let_go();
    world
        .until_told(
            "helloworld",
            "aws  False UpgradeSucceed  5/5 upgrade completed with no errors.
                desired bbb good bbb applied bbb
            canary  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired bbb good bbb applied bbb",
        )
        .await;
    audit.end_within(1).await;
    manager.stop().await;
}

/// Waits until clusters run these versions.
async fn until_version(world: &World, wanted: &[(&str, &str)]) {
    world
        .until_instances("helloworld", &format!("{wanted:?}"), |all| {
            wanted.iter().all(|(cluster, version)| {
                let one = all.iter().find(|one| one.namespace().as_deref() == Some(*cluster));
                one.is_some_and(|one| json!(one.status)["currentVersion"] == *version)
            })
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corner_case_2_a_change_of_the_canary_clusters_after_it_passed_changes_nothing() {
    let world = World::new().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    small(&world).await;
    until_installed(&world).await;
    agents.let_go_of(|cluster| cluster == "c1");
    world.put(small_addon("bbb")).await;
    world
        .until_told(
            "helloworld",
            "aws  True Upgrading  1/3 upgrading...
                desired bbb good bbb applied aaa
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired bbb good bbb applied bbb",
        )
        .await;
    // c2 joins the canary and does not get well.
    world.cluster("c2").await;
    world.select("canary", &["c1", "c2"].map(str::to_owned)).await;
    world
        .until_told(
            "helloworld",
            "aws  True Upgrading  1/3 upgrading...
                desired bbb good bbb applied aaa
            canary  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired bbb good bbb applied bbb",
        )
        .await;
    agents.let_go_of(|cluster| cluster != "c2");
    world
        .until_told(
            "helloworld",
            "aws  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired bbb good bbb applied bbb
            canary  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired bbb good bbb applied bbb",
        )
        .await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corner_case_3_a_config_that_changes_during_the_rollout_waits_for_its_end() {
    let world = World::new().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    small(&world).await;
    until_installed(&world).await;
    agents.let_go_of(|cluster| cluster == "c1");
    world.put(small_addon("bbb")).await;
    world
        .until_told(
            "helloworld",
            "aws  True Upgrading  1/3 upgrading...
                desired bbb good bbb applied aaa
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired bbb good bbb applied bbb",
        )
        .await;
    let audit = Auditor::start(&world.client, "helloworld").await;
    world.put(small_addon("ccc")).await;
    world
        .until_told(
            "helloworld",
            "aws  True Upgrading  1/3 upgrading...
                desired ccc good bbb applied aaa
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired ccc good ccc applied ccc",
        )
        .await;
    agents.let_go();
    world
        .until_told(
            "helloworld",
            "aws  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired ccc good ccc applied ccc
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired ccc good ccc applied ccc",
        )
        .await;
    // Everybody had bbb before anybody was told ccc.
    let mut all_had_it = false;
    audit
        .end(|fleet, _| {
            let is_aws = |cluster: &str| cluster.starts_with('a');
            let label =
                |work: &Value| work["metadata"]["labels"]["open-cluster-management.io/addon-version"].clone();
            all_had_it |= fleet.works().all(|(cluster, work)| !is_aws(cluster) || label(work) == "v0.2.0")
                && !fleet.in_flight().iter().any(|cluster| is_aws(cluster));
            let is_told = |(cluster, one): (&str, &Value)| {
                is_aws(cluster) && one["status"]["desiredVersion"] == "v0.3.0"
            };
            assert!(all_had_it || !fleet.instances().any(is_told));
        })
        .await;
    assert!(all_had_it);
    manager.stop().await;
}
