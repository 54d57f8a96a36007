//! Known defects of another manager that must be impossible here, end to end.

use aviary_api::ManifestWork;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::audit::Auditor;
use crate::objects::{addon, instance, named_addon, object, place, reference, rolling, update_all, within};
use crate::rollout::{hub_config, template};
use crate::world::{World, message, names};

const ADDONS: &str = "clustermanagementaddons.addon.open-cluster-management.io";

/// `one` is v1.0.0, `two` is v2.0.0, and the placement `prod` selects these clusters.
async fn world(clusters: &[String]) -> World {
    let world = World::new().await;
    for (config, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(config, version)).await;
    }
    world.clusters("prod", clusters).await;
    world
}

fn progressive(limit: impl Into<Value>) -> Value {
    json!({"type": "Progressive", "progressive": {"maxConcurrency": limit.into()}})
}

async fn until_installed(world: &World, count: usize) {
    let done = format!("{count}/{count} install completed with no errors.");
    world.until("helloworld", &done, |addon| message(addon, "prod") == done).await;
}

async fn until_upgraded(world: &World, count: usize) {
    let done = format!("{count}/{count} upgrade completed with no errors.");
    world.until("helloworld", &done, |addon| message(addon, "prod") == done).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_an_edit_of_a_config_in_place_reaches_one_cluster_after_the_other_under_a_limit_of_one() {
    const CLUSTERS: usize = 12;
    let world = world(&names("a", 1..=CLUSTERS, 2)).await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    let colour = |colour: &str| {
        let spec = json!({"customizedVariables": [{"name": "COLOUR", "value": colour}]});
        within("open-cluster-management", object("AddOnDeploymentConfig", "deploy", json!({"spec": spec})))
    };
    let mut painted = template("v1.0.0");
    painted["spec"]["agentSpec"]["workload"]["manifests"][0]["data"]["colour"] = json!("{{COLOUR}}");
    world.put(painted).await;
    world.put(colour("blue")).await;
    let mut prod = place("prod", "one", progressive(1));
    let deploy = reference("addondeploymentconfigs", Some("open-cluster-management"), "deploy");
    prod["configs"].as_array_mut().unwrap().push(deploy);
    world.put(addon(&[prod])).await;
    until_installed(&world, CLUSTERS).await;

    agents.answer(|_| None);
    let audit = Auditor::start(&world.client, "helloworld").await;
    world.put(colour("green")).await;
    let first = format!("1/{CLUSTERS} upgrading...");
    world.until("helloworld", "the first", |addon| message(addon, "prod") == first).await;
    agents.let_go();
    until_upgraded(&world, CLUSTERS).await;
    let colour_of = |work: &Value| work["spec"]["workload"]["manifests"][0]["data"]["colour"].clone();
    let fleet = audit
        .end(|fleet, commit| {
            assert!(fleet.in_flight().len() <= 1, "{:?} after {}", fleet.in_flight(), commit.cluster);
            // Nobody else has what is new, whatever its status says.
            for (cluster, work) in fleet.works().filter(|(_, work)| colour_of(work) == "green") {
                let (_, instance) = fleet.instances().find(|(name, _)| *name == cluster).unwrap();
                assert!(is_told(instance), "{cluster} has what it was not told: {work}");
            }
        })
        .await;
    assert!(fleet.works().all(|(_, work)| colour_of(work) == "green"));
    manager.stop().await;
}

/// Whether an instance is told, or has, the second content of its deployment config.
fn is_told(instance: &Value) -> bool {
    let references = instance["status"]["configReferences"].as_array().cloned().unwrap_or_default();
    let green = json!({"spec": {"customizedVariables": [{"name": "COLOUR", "value": "green"}]}});
    let green = aviary_engine::hash::spec_hash(&green);
    references.iter().any(|one| one["desiredConfigSpecHash"] == green.as_str())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_a_limit_that_makes_no_sense_is_refused_and_one_that_is_stored_moves_nobody() {
    let world = world(&names("a", 1..=3, 1)).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    until_installed(&world, 3).await;
    let audit = Auditor::start(&world.client, "helloworld").await;
    let limits = json!([
        0,
        -1,
        "0%",
        "200%",
        "-5%",
        "NaN%",
        "33.3%",
        2_147_483_648_u64,
        9_223_372_036_854_775_807_u64
    ]);
    let bad: Vec<(String, Value)> = limits
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|limit| {
            [
                ("maxConcurrentlyUpdating", rolling(limit.clone())),
                ("maxConcurrency", progressive(limit.clone())),
            ]
            .map(|(field, strategy)| {
                (format!("{field}: {limit} is not"), addon(&[place("prod", "two", strategy)]))
            })
        })
        .collect();
    for (named, bad) in &bad {
        let refused = world.try_put(bad.clone(), true).await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 422), "{named}: {refused}");
    }
    let schema = world.loosen(ADDONS).await;
    for (named, bad) in &bad {
        world.put_soon(bad).await;
        world.until("helloworld", named, |addon| message(addon, "prod").contains(named)).await;
    }
    world.tighten(ADDONS, schema).await;
    let fleet = audit
        .end(|fleet, _| {
            let told =
                |(_, one): (&str, &Value)| one["status"]["configReferences"].to_string().contains("\"two\"");
            assert!(!fleet.instances().any(told), "somebody is told what no limit allows");
        })
        .await;
    assert_eq!(fleet.in_flight().len(), 0);

    // A number as text is a number, and more than there are is all there are.
    let audit = Auditor::start(&world.client, "helloworld").await;
    world.put(addon(&[place("prod", "two", rolling("2"))])).await;
    until_upgraded(&world, 3).await;
    audit.end_within(2).await;
    world.put(addon(&[place("prod", "one", rolling(1000))])).await;
    world
        .until_instances("helloworld", "back", |all| all.iter().all(|one| runs(&json!(one), "v1.0.0")))
        .await;
    manager.stop().await;
}

fn runs(instance: &Value, version: &str) -> bool {
    instance["status"]["currentVersion"] == version
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_a_new_cluster_that_sorts_first_does_not_exceed_the_limit() {
    let world = world(&names("a", 1..=3, 1)).await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.cluster("a0").await;
    world.put(instance("a0", "helloworld", json!({}))).await;
    let mut wanted = addon(&[place("prod", "one", rolling(1))]);
    wanted["spec"]["defaultConfigs"] = json!([reference("addonhubconfigs", None, "one")]);
    world.put(wanted).await;
    until_installed(&world, 3).await;
    world
        .until_instances("helloworld", "a0 too", |all| {
            all.len() == 4 && all.iter().all(|one| runs(&json!(one), "v1.0.0"))
        })
        .await;

    let audit = Auditor::start(&world.client, "helloworld").await;
    agents.answer(|_| None);
    world.put(addon(&[place("prod", "two", rolling(1))])).await;
    world.until("helloworld", "a1 moves", |addon| message(addon, "prod") == "1/3 upgrading...").await;
    world.select("prod", &names("a", 0..=3, 1)).await;
    world.until("helloworld", "a0 counts", |addon| message(addon, "prod") == "1/4 upgrading...").await;
    agents.let_go();
    until_upgraded(&world, 4).await;
    audit.end_within(1).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f4_one_stored_object_with_a_limit_beyond_32_bits_stops_no_other_add_on() {
    let world = world(&names("a", 1..=3, 1)).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world
        .put_unchecked(
            ADDONS,
            named_addon("hostile", &[place("prod", "one", progressive(2_147_483_648_u64))]),
        )
        .await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", rolling(1))])).await;
    until_installed(&world, 3).await;
    world.put(addon(&[place("prod", "two", rolling(1))])).await;
    until_upgraded(&world, 3).await;
    // It is named on the object at fault, which is installed where it is selected: what it limits
    // is upgrades.
    world
        .until_conditions(
            "hostile",
            "Valid  False LimitInvalid  placement default/prod: progressive.maxConcurrency: 2147483648 is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallFailed  default/prod: 0/3 install failed: placement default/prod: progressive.maxConcurrency: 2147483648 is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%",
        )
        .await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f5_deleting_a_placement_deletes_no_instance() {
    let clusters = names("a", 1..=20, 2);
    let world = world(&clusters).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    until_installed(&world, 20).await;
    let audit = Auditor::start(&world.client, "helloworld").await;
    let version = "cluster.open-cluster-management.io/v1beta1";
    for (kind, name) in [("Placement", "prod"), ("PlacementDecision", "prod-0")] {
        world.delete(json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}})).await;
    }
    world
        .until_conditions(
            "helloworld",
            "Valid  True Valid  the spec is valid
            PlacementsResolved  False PlacementUnknown  placement default/prod does not exist: its clusters are unknown, so nothing is deleted
            Progressing  False UpgradeFailed  default/prod: 0/0 upgrade failed: placement default/prod does not exist: its clusters are unknown, so nothing is deleted",
        )
        .await;
    // The same instances are there when it comes back.
    world.select("prod", &clusters).await;
    world
        .until("helloworld", "all again", |addon| {
            message(addon, "prod") == "20/20 install completed with no errors."
        })
        .await;
    let fleet = audit.end(|_, _| ()).await;
    assert_eq!(fleet.deleted, Vec::<String>::new());
    assert_eq!(fleet.instances().count(), 20);
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f6_a_value_of_a_variable_stays_a_value() {
    let world = world(&names("a", 1..=1, 1)).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    let hostile = "v5\",\"pwned\":\"yes\n{{CLUSTER_NAME}}";
    let spec = json!({"customizedVariables": [{"name": "TAG", "value": hostile}]});
    world
        .put(within(
            "open-cluster-management",
            object("AddOnDeploymentConfig", "deploy", json!({"spec": spec})),
        ))
        .await;
    let mut tagged = template("v1.0.0");
    tagged["spec"]["agentSpec"]["workload"]["manifests"][0]["data"] = json!({"tag": "image:{{TAG}}"});
    world.put(tagged).await;
    let mut prod = place("prod", "one", update_all());
    prod["configs"].as_array_mut().unwrap().push(reference(
        "addondeploymentconfigs",
        Some("open-cluster-management"),
        "deploy",
    ));
    world.put(addon(&[prod])).await;
    until_installed(&world, 1).await;
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), "a1");
    let all = works.list(&ListParams::default()).await.unwrap().items;
    let [work] = all.as_slice() else {
        panic!("{:?}", all.iter().map(ResourceExt::name_any).collect::<Vec<_>>())
    };
    assert_eq!(
        json!(work)["spec"]["workload"]["manifests"],
        json!([{
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "agent", "namespace": "open-cluster-management-agent-addon"},
            "data": {"tag": "image:v5\",\"pwned\":\"yes\na1"},
        }])
    );
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f7_one_tolerated_failure_is_an_end() {
    let world = world(&names("a", 1..=4, 1)).await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    until_installed(&world, 4).await;
    agents.answer(|work| {
        Some(if work.namespace().as_deref() == Some("a1") { Err("boom".into()) } else { Ok(()) })
    });
    let mut strategy = progressive(2);
    strategy["maxFailures"] = json!(1);
    world.put(addon(&[place("prod", "two", strategy)])).await;
    world
        .until_told(
            "helloworld",
            "prod  False UpgradeFailed  4/4 upgrade failed: completed with failures, 1 failed: a1
                desired two good one applied one",
        )
        .await;
    // And it heals when the cluster does.
    agents.let_go();
    until_upgraded(&world, 4).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_overlapping_placements_and_overrides_come_to_an_end() {
    let world = world(&names("a", 1..=3, 1)).await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.select("some", &names("a", 2..=3, 1)).await;
    world.put(hub_config("mine", "v2.0.0")).await;
    world
        .put(instance("a3", "helloworld", json!({"configs": [reference("addonhubconfigs", None, "mine")]})))
        .await;
    world.put(addon(&[place("prod", "one", update_all()), place("some", "two", rolling(1))])).await;
    world
        .until_told(
            "helloworld",
            "prod  False InstallSucceed  1/1 install completed with no errors.
                desired one good one applied one
            some  False InstallSucceed  2/2 install completed with no errors.
                desired two good two applied two",
        )
        .await;
    world.put(addon(&[place("prod", "two", update_all()), place("some", "one", rolling(1))])).await;
    world
        .until_told(
            "helloworld",
            "prod  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired two good two applied two
            some  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired one good one applied one",
        )
        .await;
    world
        .until_instances("helloworld", "the override stays", |all| {
            all.iter().all(|one| {
                runs(&json!(one), if one.namespace().as_deref() == Some("a2") { "v1.0.0" } else { "v2.0.0" })
            })
        })
        .await;
    manager.stop().await;
}
