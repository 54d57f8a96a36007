//! What is left when an add-on goes, what is told while it is there, and what a broken object does
//! to others: nothing, once, nothing.

use aviary_api::{ManagedClusterAddOn, ManifestWork};
use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Resource};
use kube::runtime::watcher::{self, watcher};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::objects::{addon, behind, instance, named_addon, object, place, rolling, update_all, within};
use crate::rollout::{hub_config, template};
use crate::world::{GIVE_UP, World, message, names};

async fn world() -> World {
    let world = World::new().await;
    for (config, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(config, version)).await;
    }
    world
}

/// Waits until there is none of this kind that belongs to the add-on.
async fn until_none<K>(world: &World, addon: &str)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let api: Api<K> = Api::all(world.client.clone());
    let ours = ListParams::default().labels(&format!("open-cluster-management.io/addon-name={addon}"));
    let mut news = std::pin::pin!(watcher(api.clone(), watcher::Config::default()));
    let wait = async {
        while !api.list(&ours).await.unwrap().items.is_empty() {
            news.next().await.unwrap().unwrap();
        }
    };
    if tokio::time::timeout(GIVE_UP, wait).await.is_err() {
        let left: Vec<String> =
            api.list(&ours).await.unwrap().items.iter().map(ResourceExt::name_any).collect();
        panic!("left of {}: {left:?}", K::plural(&()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_on_that_is_deleted_leaves_nothing_behind_and_can_come_again() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=5, 1)).await;
    // Of another add-on, which stays.
    let mut others = template("v1.0.0");
    others["metadata"]["name"] = json!("other-v1.0.0");
    others["spec"]["addonName"] = json!("other");
    world.put(others).await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    world.put(named_addon("other", &[place("prod", "one", update_all())])).await;
    for addon in ["helloworld", "other"] {
        world
            .until(addon, "installed", |addon| {
                message(addon, "prod") == "5/5 install completed with no errors."
            })
            .await;
    }
    world.put(addon(&[place("prod", "two", rolling(2))])).await;
    world
        .until("helloworld", "upgraded", |addon| {
            message(addon, "prod") == "5/5 upgrade completed with no errors."
        })
        .await;
    let revisions: Api<ControllerRevision> = Api::all(world.client.clone());
    assert!(revisions.list(&ListParams::default()).await.unwrap().items.len() > 3);

    world.delete(addon(&[])).await;
    until_none::<ManagedClusterAddOn>(&world, "helloworld").await;
    until_none::<ManifestWork>(&world, "helloworld").await;
    until_none::<ControllerRevision>(&world, "helloworld").await;
    assert_eq!(world.instances("other").await.len(), 5);

    // One of the same name begins anew.
    world.put(addon(&[place("prod", "two", rolling(2))])).await;
    world
        .until("helloworld", "again", |addon| {
            message(addon, "prod") == "5/5 install completed with no errors."
        })
        .await;
    world
        .until_told(
            "other",
            "prod  False InstallSucceed  5/5 install completed with no errors.
        desired one good one applied one",
        )
        .await;
    manager.stop().await;
}

/// The Events about the add-on, in the order of their making.
async fn events(world: &World, addon: &str) -> Vec<String> {
    let api: Api<Event> = Api::all(world.client.clone());
    let mut all = api.list(&ListParams::default()).await.unwrap().items;
    all.retain(|event| event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(addon));
    all.sort_by_key(|event| event.resource_version().unwrap().parse::<u64>().unwrap());
    let told = |event: &Event| {
        let times =
            event.series.as_ref().map_or(String::new(), |series| format!(" ({} times)", series.count));
        format!(
            "{}: {}{times}",
            event.reason.clone().unwrap_or_default(),
            event.note.clone().unwrap_or_default()
        )
    };
    all.iter().map(told).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_tell_each_transition_once_whoever_leads() {
    let world = world().await;
    let agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=3, 1)).await;
    world.clusters("canary", &names("c", 1..=1, 1)).await;
    let wants = |config: &str| {
        addon(&[place("prod", config, behind("canary", 1)), place("canary", config, rolling(1))])
    };
    let manager = world.manager("first");
    world.put(wants("one")).await;
    world
        .until("helloworld", "installed", |addon| {
            message(addon, "prod") == "3/3 install completed with no errors."
        })
        .await;
    // The first cluster fails; the manager is replaced; it is mended.
    agents.answer(|work| {
        let is_bad = work.labels()["open-cluster-management.io/addon-version"] == "v2.0.0";
        Some(if is_bad && work.namespace().as_deref() == Some("a1") { Err("boom".into()) } else { Ok(()) })
    });
    world.put(wants("two")).await;
    world
        .until("helloworld", "halted", |addon| {
            message(addon, "prod") == "1/3 upgrade failed: stopped, 1 failed, 1 of 1 slots taken: a1"
        })
        .await;
    manager.stop().await;
    let manager = world.manager("second");
    manager.first_pass().await;
    agents.let_go();
    world
        .until("helloworld", "upgraded", |addon| {
            message(addon, "prod") == "3/3 upgrade completed with no errors."
        })
        .await;
    world.put(wants("one")).await;
    world
        .until_instances("helloworld", "back", |all| {
            all.len() == 4 && all.iter().all(|one| json!(one.status)["currentVersion"] == "v1.0.0")
        })
        .await;
    world
        .until("helloworld", "the end", |addon| {
            let status = json!(addon.status);
            [0, 1].iter().all(|at| {
                status["installProgressions"][at]["configReferences"][0]["lastAppliedConfig"]["name"] == "one"
            })
        })
        .await;
    manager.stop().await;
    let told = events(&world, "helloworld").await;
    let of = |placement: &str| -> Vec<&str> {
        let about = format!(": default/{placement}: ");
        told.iter().filter(|told| told.contains(&about)).map(String::as_str).collect()
    };
    assert_eq!(
        of("prod"),
        [
            "RolloutStarted: default/prod: rolling out v1.0.0 to 3 clusters",
            "CanaryPassed: default/prod: v1.0.0 passed the canary",
            "RolloutCompleted: default/prod: all 3 clusters have v1.0.0",
            "CanaryPassed: default/prod: v2.0.0 passed the canary",
            "RolloutStarted: default/prod: rolling out v2.0.0 to 3 clusters",
            "RolloutHalted: default/prod: stopped, 1 failed, 1 of 1 slots taken; a1 failed: work reports Applied=False: boom",
            "RolloutCompleted: default/prod: all 3 clusters have v2.0.0",
            "RolledBack: default/prod: rolling back to v1.0.0 on 3 clusters",
            "RolloutCompleted: default/prod: all 3 clusters have v1.0.0",
        ]
    );
    assert_eq!(
        of("canary"),
        [
            "RolloutStarted: default/canary: rolling out v1.0.0 to 1 cluster",
            "RolloutCompleted: default/canary: its cluster has v1.0.0",
            "RolloutStarted: default/canary: rolling out v2.0.0 to 1 cluster",
            "RolloutCompleted: default/canary: its cluster has v2.0.0",
            "RolledBack: default/canary: rolling back to v1.0.0 on 1 cluster",
            "RolloutCompleted: default/canary: its cluster has v1.0.0",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_objects_that_cannot_be_read_stop_nobody() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("prod", &names("a", 1..=3, 1)).await;
    world.cluster("b1").await;
    let broken = |version: &str, kind: &str, name: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let (cluster, places, work) = (
        "cluster.open-cluster-management.io/v1",
        "cluster.open-cluster-management.io/v1beta1",
        "work.open-cluster-management.io/v1",
    );
    let addon_kinds = "addon.open-cluster-management.io";
    for (crd, object) in [
        (
            format!("clustermanagementaddons.{addon_kinds}"),
            object("ClusterManagementAddOn", "broken", json!({"spec": {"installStrategy": "everywhere"}})),
        ),
        (
            format!("managedclusteraddons.{addon_kinds}"),
            within("b1", object("ManagedClusterAddOn", "helloworld", json!({"spec": {"configs": 7}}))),
        ),
        (
            format!("addontemplates.{addon_kinds}"),
            object(
                "AddOnTemplate",
                "broken",
                json!({"spec": {"addonName": "helloworld", "version": ["v9"], "agentSpec": 1}}),
            ),
        ),
        (format!("addonhubconfigs.{addon_kinds}"), object("AddOnHubConfig", "broken", json!({"spec": "v9"}))),
        (
            "managedclusters.cluster.open-cluster-management.io".to_owned(),
            broken(
                cluster,
                "ManagedCluster",
                "broken",
                json!({"taints": "none", "hubAcceptsClient": "maybe"}),
            ),
        ),
        (
            "placements.cluster.open-cluster-management.io".to_owned(),
            within("default", broken(places, "Placement", "broken", json!({"predicates": 3}))),
        ),
        (
            "placementdecisions.cluster.open-cluster-management.io".to_owned(),
            within("default", {
                let mut decision = broken(places, "PlacementDecision", "broken", json!({}));
                decision["metadata"]["labels"] =
                    json!({"cluster.open-cluster-management.io/placement": "broken"});
                decision["status"] = json!({"decisions": "all"});
                decision
            }),
        ),
        (
            "manifestworks.work.open-cluster-management.io".to_owned(),
            within("a1", {
                let mut work = broken(work, "ManifestWork", "broken", json!({"workload": "nothing"}));
                work["metadata"]["labels"] = json!({"open-cluster-management.io/addon-name": "helloworld"});
                work
            }),
        ),
    ] {
        world.put_unchecked(&crd, object).await;
    }
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    world
        .until("helloworld", "installed", |addon| {
            message(addon, "prod") == "3/3 install completed with no errors."
        })
        .await;
    world.put(addon(&[place("prod", "two", rolling(1))])).await;
    world
        .until("helloworld", "upgraded", |addon| {
            message(addon, "prod") == "3/3 upgrade completed with no errors."
        })
        .await;

    // One that is mended is looked after.
    world.put(instance("b1", "helloworld", json!({"configs": []}))).await;
    world
        .until_instances("helloworld", "b1 too", |all| {
            let is_b1 = |one: &&ManagedClusterAddOn| one.namespace().as_deref() == Some("b1");
            all.iter().find(is_b1).is_some_and(|one| json!(one.status)["currentVersion"] == "v2.0.0")
        })
        .await;
    manager.stop().await;
}
