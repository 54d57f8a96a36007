//! Rules of the design documents that the first version broke, on a hub.

use aviary_api::{ManagedClusterAddOn, ManifestWork};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::found::{condition, work, world};
use crate::objects::{
    addon, behind, instance, named_addon, object, place, reference, rolling, update_all, within,
};
use crate::rollout::{hub_config, template};
use crate::world::{GIVE_UP, World, message, names};

/// The version that the work of a cluster is rendered from.
async fn version(world: &World, cluster: &str) -> String {
    work(world, cluster).await.labels()["open-cluster-management.io/addon-version"].clone()
}

/// Waits until the work of a cluster is rendered from this version.
async fn until_written(world: &World, cluster: &str, version: &'static str) {
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), cluster);
    let is = |work: Option<&ManifestWork>| {
        work.is_some_and(|work| {
            work.labels().get("open-cluster-management.io/addon-version").is_some_and(|of| of == version)
        })
    };
    let written = kube::runtime::wait::await_condition(works, "addon-helloworld-deploy-0", is);
    tokio::time::timeout(GIVE_UP, written).await.expect(version).unwrap();
}

/// Waits until the instance of a cluster is as it should be.
async fn until_one(world: &World, cluster: &str, what: &str, is: impl Fn(&Value) -> bool) {
    let says = |all: &[ManagedClusterAddOn]| {
        let one = all.iter().find(|one| one.namespace().as_deref() == Some(cluster));
        one.is_some_and(|one| is(&json!(one)["status"]))
    };
    world.until_instances("helloworld", what, says).await;
}

/// Waits until the manager has installed another add-on, and so has seen all that was written
/// before, works included.
async fn witness(world: &World, cluster: &str) {
    let mut other = template("v1.0.0");
    other["metadata"]["name"] = json!("witness-v1.0.0");
    other["spec"]["addonName"] = json!("witness");
    world.put(other).await;
    world.select("witnesses", &[cluster.to_owned()]).await;
    world.put(named_addon("witness", &[place("witnesses", "one", update_all())])).await;
    let done = |addon: &_| message(addon, "witnesses") == "1/1 install completed with no errors.";
    world.until("witness", "the witness is installed", done).await;
}

fn deployment_config(name: &str, value: &str) -> Value {
    let variables = json!([{"name": "X", "value": value}]);
    let config = object("AddOnDeploymentConfig", name, json!({"spec": {"customizedVariables": variables}}));
    within("default", config)
}

fn reason(status: &Value, kind: &str) -> String {
    condition(&status["conditions"], kind)["reason"].as_str().unwrap_or_default().to_owned()
}

/// The node selector of the Deployment in the work of a cluster.
async fn node_selector(world: &World, cluster: &str) -> Value {
    json!(work(world, cluster).await)["spec"]["workload"]["manifests"][1]["spec"]["template"]["spec"]["nodeSelector"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_1_settings_that_are_deleted_leave_their_node_selector_in_the_work() {
    let world = world().await;
    let mut with_deployment = template("v1.0.0");
    let manifests = &mut with_deployment["spec"]["agentSpec"]["workload"]["manifests"];
    manifests.as_array_mut().unwrap().push(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "agent"}]}}},
    }));
    world.put(with_deployment).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=2, 1)).await;
    let arm64 = json!({"kubernetes.io/arch": "arm64"});
    let own = || {
        let spec = json!({"spec": {"nodePlacement": {"nodeSelector": arm64}}});
        within("a1", object("AddOnDeploymentConfig", "own", spec))
    };
    world.put(own()).await;
    let configs = json!({"configs": [reference("addondeploymentconfigs", Some("a1"), "own")]});
    world.put(instance("a1", "helloworld", configs)).await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    let installed = |addon: &_| message(addon, "prod") == "2/2 install completed with no errors.";
    world.until("helloworld", "installed", installed).await;
    let before = work(&world, "a1").await;
    assert_eq!(node_selector(&world, "a1").await, arm64);

    world.delete(own()).await;
    until_one(&world, "a1", "it is missing", |status| reason(status, "Progressing") == "UpgradeFailed").await;
    witness(&world, "a1").await;
    assert_eq!(node_selector(&world, "a1").await, arm64);
    assert_eq!(work(&world, "a1").await.metadata.generation, before.metadata.generation);
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_1_a_fresh_instance_gets_nothing_before_its_override_is_there() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=2, 1)).await;
    let mine = json!({"configs": [reference("addonhubconfigs", None, "mine")]});
    world.put(instance("a1", "helloworld", mine)).await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    until_one(&world, "a1", "it is missing", |status| reason(status, "Progressing") == "InstallFailed").await;
    until_written(&world, "a2", "v1.0.0").await;
    witness(&world, "a1").await;
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), "a1");
    let all = works.list(&ListParams::default()).await.unwrap().items;
    assert!(all.iter().all(|work| work.name_any().starts_with("addon-witness-")), "{all:?}");

    world.put(hub_config("mine", "v2.0.0")).await;
    until_written(&world, "a1", "v2.0.0").await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_2_broken_overrides_stop_the_rollout_of_nobody_else() {
    let world = world().await;
    for version in ["v1.0.0", "v2.0.0"] {
        let mut template = template(version);
        template["spec"]["agentSpec"]["workload"]["manifests"][0]["data"]["x"] = json!("{{X}}");
        world.put(template).await;
    }
    world.put(deployment_config("all", "1")).await;
    let wants = |config: &str| {
        let mut placement = place("prod", config, rolling(2));
        let all = reference("addondeploymentconfigs", Some("default"), "all");
        placement["configs"].as_array_mut().unwrap().push(all);
        addon(&[placement])
    };
    let agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=8, 1)).await;
    let manager = world.manager("only");
    world.put(wants("one")).await;
    let installed = |addon: &_| message(addon, "prod") == "8/8 install completed with no errors.";
    world.until("helloworld", "installed", installed).await;
    // The placement is written before its instances.
    for cluster in ["a1", "a2"] {
        until_one(&world, cluster, "installed", |status| reason(status, "Progressing") == "InstallSucceed")
            .await;
    }

    // The override of a1 fails, and the agent of a2 is not heard of any more.
    agents.answer(|work| match work.namespace().unwrap_or_default().as_str() {
        "a1" => Some(Err("no".to_owned())),
        "a2" => None,
        _ => Some(Ok(())),
    });
    for cluster in ["a1", "a2"] {
        world.put(within(cluster, deployment_config("own", "broken"))).await;
        let own = json!({"configs": [reference("addondeploymentconfigs", Some(cluster), "own")]});
        world.put(instance(cluster, "helloworld", own)).await;
    }
    until_one(&world, "a1", "a1 fails", |status| reason(status, "Progressing") == "UpgradeFailed").await;
    until_one(&world, "a2", "a2 is on its way", |status| reason(status, "Progressing") == "Upgrading").await;

    world.put(wants("two")).await;
    world
        .until_instances("helloworld", "the others are upgraded", |all| {
            let done = all.iter().filter(|one| json!(one.status)["currentVersion"] == "v2.0.0");
            done.filter_map(ResourceExt::namespace).filter(|name| name.as_str() > "a2").count() == 6
        })
        .await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_3_a_failure_after_an_install_is_one_of_an_upgrade_also_without_a_placement() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.cluster("a1").await;
    let manager = world.manager("only");
    let defaults = [reference("addonhubconfigs", None, "one")];
    world
        .put(object("ClusterManagementAddOn", "helloworld", json!({"spec": {"defaultConfigs": defaults}})))
        .await;
    world.put(instance("a1", "helloworld", json!({}))).await;
    until_one(&world, "a1", "installed", |status| reason(status, "Progressing") == "InstallSucceed").await;

    let mut broken = template("v1.0.0");
    broken["spec"]["agentSpec"]["workload"]["manifests"][0]["data"]["more"] = json!("{{NOBODY}}");
    world.put(broken).await;
    until_one(&world, "a1", "it cannot be rendered", |status| {
        let progressing = condition(&status["conditions"], "Progressing");
        progressing["reason"] == "UpgradeFailed"
            && progressing["message"].as_str().is_some_and(|message| {
                message.starts_with("upgrade failed: ") && message.contains("the variable NOBODY")
            })
    })
    .await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_6_a_rollback_has_not_succeeded_before_the_agent_has_seen_it() {
    let world = world().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=1, 1)).await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    until_one(&world, "a1", "installed", |status| reason(status, "Progressing") == "InstallSucceed").await;

    // Up and back, while the agent says nothing.
    agents.answer(|work| (work.name_any() == "addon-witness-deploy-0").then_some(Ok(())));
    for (config, version) in [("two", "v2.0.0"), ("one", "v1.0.0")] {
        world.put(addon(&[place("prod", config, update_all())])).await;
        until_written(&world, "a1", version).await;
    }
    witness(&world, "a1").await;
    assert_eq!(version(&world, "a1").await, "v1.0.0");
    let status = world.get(&instance("a1", "helloworld", json!({}))).await.unwrap()["status"].clone();
    let progressing = condition(&status["conditions"], "Progressing");
    assert_eq!((&progressing["status"], &progressing["reason"]), (&json!("True"), &json!("Upgrading")));

    agents.let_go();
    until_one(&world, "a1", "it is back", |status| reason(status, "Progressing") == "UpgradeSucceed").await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_9_a_canary_with_a_config_of_its_own_opens_the_gate() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("canary", &names("c", 1..=1, 1)).await;
    world.clusters("prod", &names("p", 1..=3, 1)).await;
    for name in ["canary-config", "global-config"] {
        world.put(deployment_config(name, name)).await;
    }
    let wants = |version: &str| {
        let with = |name: &str, config: &str, strategy: Value| {
            let mut placement = place(name, version, strategy);
            let more = reference("addondeploymentconfigs", Some("default"), config);
            placement["configs"].as_array_mut().unwrap().push(more);
            placement
        };
        addon(&[
            with("prod", "global-config", behind("canary", 3)),
            with("canary", "canary-config", update_all()),
        ])
    };
    let manager = world.manager("only");
    world.put(wants("one")).await;
    let done = |words: &'static str| move |addon: &_| message(addon, "prod") == words;
    world.until("helloworld", "installed", done("3/3 install completed with no errors.")).await;
    world.put(wants("two")).await;
    world.until("helloworld", "upgraded", done("3/3 upgrade completed with no errors.")).await;
    assert_eq!(version(&world, "p3").await, "v2.0.0");
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_10_a_cluster_that_joins_with_a_newer_version_keeps_it_while_the_gate_is_closed() {
    let world = world().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("canary", &names("c", 1..=1, 1)).await;
    world.clusters("prod", &names("p", 1..=2, 1)).await;
    world.clusters("other", &names("o", 1..=1, 1)).await;
    let wants = |config: &str, other: &str| {
        addon(&[
            place("prod", config, behind("canary", 3)),
            place("canary", config, update_all()),
            place("other", other, update_all()),
        ])
    };
    let manager = world.manager("only");
    world.put(wants("one", "two")).await;
    let installed = |addon: &_| {
        message(addon, "prod") == "2/2 install completed with no errors."
            && message(addon, "other") == "1/1 install completed with no errors."
    };
    world.until("helloworld", "installed", installed).await;
    agents.answer(|work| {
        let is_canary = work.namespace().as_deref() == Some("c1");
        Some(if is_canary { Err("no".to_owned()) } else { Ok(()) })
    });
    world.put(wants("two", "two")).await;
    let failed = |addon: &_| message(addon, "canary").contains("1 failed: c1");
    world.until("helloworld", "the canary fails", failed).await;

    let before = work(&world, "o1").await.metadata.generation;
    world.select("prod", &["o1", "p1", "p2"].map(str::to_owned)).await;
    world.select("other", &[]).await;
    let left = |addon: &_| message(addon, "other") == "0/0 the placement selects no cluster";
    world.until("helloworld", "o1 has joined prod", left).await;
    witness(&world, "o1").await;
    assert_eq!(work(&world, "o1").await.metadata.generation, before);
    assert_eq!(version(&world, "o1").await, "v2.0.0");
    assert_eq!(version(&world, "p1").await, "v1.0.0");

    agents.let_go();
    let done = |addon: &_| message(addon, "prod") == "3/3 upgrade completed with no errors.";
    world.until("helloworld", "the gate opens", done).await;
    manager.stop().await;
}

/// An agent reports on its work as it is now; `None` takes the report back.
async fn report(world: &World, cluster: &str, report: Option<(&str, &str)>) {
    let generation = work(world, cluster).await.metadata.generation;
    let conditions = report.map(|(applied, available)| {
        [("Applied", applied), ("Available", available)].map(|(kind, status)| {
            json!({"type": kind, "status": status, "reason": "Reported", "message": "", "observedGeneration": generation,
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        })
    });
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), cluster);
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    works.patch_status("addon-helloworld-deploy-0", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_10_a_first_install_that_was_never_healthy_stays_gated_whatever_its_agent_takes_back() {
    let world = world().await;
    let agents = Agents::held(&world.client);
    agents.answer(|work| (work.name_any() == "addon-witness-deploy-0").then_some(Ok(())));
    world.clusters("canary", &names("c", 1..=1, 1)).await;
    world.clusters("prod", &names("p", 1..=1, 1)).await;
    let wants = |config: &str| {
        addon(&[place("prod", config, behind("canary", 1)), place("canary", config, update_all())])
    };
    let manager = world.manager("only");
    world.put(wants("one")).await;
    // Nobody is ever healthy, so nothing is known to be good.
    for cluster in ["c1", "p1"] {
        until_one(&world, cluster, "it has its work", |status| {
            reason(status, "Available") == "WorksNotReported" && status["desiredVersion"] == "v1.0.0"
        })
        .await;
        until_written(&world, cluster, "v1.0.0").await;
        report(&world, cluster, Some(("True", "False"))).await;
        until_one(&world, cluster, "it is not healthy", |status| {
            condition(&status["conditions"], "Available")["status"] == "False"
        })
        .await;
    }

    world.put(wants("two")).await;
    until_written(&world, "c1", "v2.0.0").await;
    witness(&world, "p1").await;
    assert_eq!(version(&world, "p1").await, "v1.0.0", "applied once, it is not fresh");

    report(&world, "p1", None).await;
    world.delete(named_addon("witness", &[])).await;
    witness(&world, "p1").await;
    assert_eq!(version(&world, "p1").await, "v1.0.0", "nor is it fresh again");
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_11_a_work_that_carries_only_the_drafts_label_proves_its_version() {
    // Without templates: somebody else writes the works.
    let world = World::new().await;
    world.put(hub_config("one", "v1.0.0")).await;
    world.clusters("prod", &names("a", 1..=1, 1)).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    world.until_on("helloworld", &["a1"]).await;
    let theirs = |version: &str| {
        json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": "theirs", "namespace": "a1",
                "labels": {"open-cluster-management.io/addon-name": "helloworld", "addon-version": version}},
            "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "agent", "namespace": "default"}}]}},
        })
    };
    world.put(theirs("v0.9.0")).await;
    witness(&world, "a1").await;
    let applied = |status: &Value| status["configReferences"][0]["lastAppliedConfig"]["name"] == "one";
    let status = world.get(&instance("a1", "helloworld", json!({}))).await.unwrap()["status"].clone();
    assert!(!applied(&status), "another version proves nothing: {status}");
    world.put(theirs("v1.0.0")).await;
    let done = |addon: &_| message(addon, "prod") == "1/1 install completed with no errors.";
    world.until("helloworld", "the label proves it", done).await;
    until_one(&world, "a1", "applied", applied).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_12_an_unsupported_override_makes_progressing_false() {
    let world = world().await;
    let _agents = Agents::held(&world.client);
    world.clusters("prod", &names("a", 1..=1, 1)).await;
    let unknown = json!({"configs": [{"group": "example.com", "resource": "widgets", "name": "w"}]});
    world.put(instance("a1", "helloworld", unknown)).await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    until_one(&world, "a1", "the override is named", |status| {
        let progressing = condition(&status["conditions"], "Progressing");
        progressing["status"] == "False"
            && progressing["reason"] == "ConfigurationUnsupported"
            && progressing["message"]
                .as_str()
                .is_some_and(|said| said.starts_with("widgets.example.com w is not applied: "))
    })
    .await;
    // The other configs go on.
    until_written(&world, "a1", "v1.0.0").await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h9_an_instance_cannot_use_the_template_of_another_add_on() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=1, 1)).await;
    let mut stranger = template("v9.0.0");
    stranger["metadata"]["name"] = json!("stranger");
    stranger["spec"]["addonName"] = json!("stranger");
    stranger["spec"]["agentSpec"]["workload"]["manifests"][0]["metadata"]["name"] = json!("not-yours");
    world.put(stranger).await;
    let theirs = json!({"configs": [reference("addontemplates", None, "stranger")]});
    world.put(instance("a1", "helloworld", theirs)).await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    until_one(&world, "a1", "it is refused", |status| reason(status, "Configured") == "TemplateOfAnother")
        .await;
    witness(&world, "a1").await;
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), "a1");
    let all = works.list(&ListParams::default()).await.unwrap().items;
    assert!(!all.iter().any(|work| json!(work).to_string().contains("not-yours")));
    manager.stop().await;
}
