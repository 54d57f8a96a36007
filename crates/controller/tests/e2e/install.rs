//! Install strategies: who gets an instance, who keeps it, and who loses it.

use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use aviary_controller::{Follower, Scope, View};
use aviary_engine::observed::Observed;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::audit::Auditor;
use crate::objects::{GROUP, addon, instance, object, place, reference, update_all};
use crate::rollout::{hub_config, template};
use crate::world::{World, managed_cluster, names};

async fn world() -> World {
    let world = World::new().await;
    for (config, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(config, version)).await;
    }
    world
}

/// The add-on with another install strategy; its default is `one`.
fn strategy(strategy: Value) -> Value {
    let defaults = [reference("addonhubconfigs", None, "one")];
    let mut all = json!({"labelSelector": null, "placements": null});
    all.as_object_mut().unwrap().extend(strategy.as_object().unwrap().clone());
    object(
        "ClusterManagementAddOn",
        "helloworld",
        json!({"spec": {"defaultConfigs": defaults, "installStrategy": all}}),
    )
}

fn by_label(environment: &str) -> Value {
    strategy(json!({"type": "ClusterLabelSelector", "labelSelector": {"matchLabels": {"env": environment}}}))
}

async fn label(world: &World, cluster: &str, environment: &str) {
    let mut object = managed_cluster(cluster);
    object["metadata"]["labels"] = json!({"env": environment});
    world.put(object).await;
}

/// Waits until every one of these runs the version.
async fn until_run(world: &World, clusters: &[&str], version: &str) {
    world
        .until_instances("helloworld", &format!("{clusters:?} on {version}"), |all| {
            clusters.iter().all(|cluster| {
                let one = all.iter().find(|one| one.namespace().as_deref() == Some(*cluster));
                one.is_some_and(|one| json!(one.status)["currentVersion"] == version)
            })
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manual_makes_nothing_and_a_label_selector_follows_the_labels_of_the_clusters() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    for (cluster, environment) in [("a1", "prod"), ("a2", "prod"), ("b1", "test"), ("b2", "test")] {
        world.cluster(cluster).await;
        label(&world, cluster, environment).await;
    }
    let audit = Auditor::start(&world.client, "helloworld").await;
    let manager = world.manager("only");
    world.put(strategy(json!({"type": "Manual"}))).await;
    // What a user makes is looked after all the same, and nobody else gets one.
    world.put(instance("b1", "helloworld", json!({}))).await;
    until_run(&world, &["b1"], "v1.0.0").await;
    world.until_on("helloworld", &["b1"]).await;

    world.put(by_label("prod")).await;
    until_run(&world, &["a1", "a2"], "v1.0.0").await;
    world.until_on("helloworld", &["a1", "a2", "b1"]).await;
    assert_made_by(&world, "a1", "ClusterLabelSelector", "open-cluster-management-agent-addon").await;

    // A cluster gets another label; the selector selects another label; what a user made stays
    // throughout.
    label(&world, "a1", "test").await;
    world.until_on("helloworld", &["a2", "b1"]).await;
    world.put(by_label("test")).await;
    world.until_on("helloworld", &["a1", "b1", "b2"]).await;
    world.put(by_label("none")).await;
    world.until_on("helloworld", &["b1"]).await;
    audit.end(|fleet, _| assert!(!fleet.deleted.contains(&"b1".to_owned()))).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_without_its_namespace_is_named_and_gets_its_instance_when_the_namespace_comes() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.cluster("a1").await;
    label(&world, "a1", "prod").await;
    // A name of its own: on a server that tests share, namespaces stay.
    label(&world, "homeless", "prod").await;
    let (manager, counts) = world.counted_manager("only");
    world.put(by_label("prod")).await;
    until_run(&world, &["a1"], "v1.0.0").await;
    let missing = |addon: &ClusterManagementAddOn, status: &str| {
        let conditions = &json!(addon.status)["conditions"];
        conditions.as_array().is_some_and(|all| {
            all.iter().any(|one| one["type"] == "NamespacesMissing" && one["status"] == status)
        })
    };
    let told = world
        .until("helloworld", "the cluster without a namespace is named", |one| missing(one, "True"))
        .await;
    let said = json!(told.status).to_string();
    assert!(said.contains("1 cluster is waiting for its namespace on the hub: homeless"), "{said}");
    let scope = Scope { namespace: "open-cluster-management".into(), addon: Some("helloworld".into()) };
    let mut follower = View::read(&world.client, scope).await.unwrap().follow();
    assert_eq!(without_namespace(&mut follower), ["homeless"]);

    world.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "homeless"}})).await;
    until_run(&world, &["a1", "homeless"], "v1.0.0").await;
    world.until("helloworld", "nothing is missing any more", |one| missing(one, "False")).await;
    while !without_namespace(&mut follower).is_empty() {
        follower.changed().await.unwrap();
    }
    let asked = counts.take();
    let in_vain = asked.get("POST managedclusteraddons 404").copied().unwrap_or_default();
    assert!((1..20).contains(&in_vain), "it is tried with pauses: {asked:?}");
    manager.stop().await;
}

/// Clusters of which somebody who looks on knows that they cannot have an instance.
fn without_namespace(follower: &mut Follower) -> Vec<String> {
    let look = |observed: &Observed| observed.without_namespace.iter().map(ToString::to_string).collect();
    follower.view().observe("helloworld", look).unwrap()
}

async fn assert_made_by(world: &World, cluster: &str, strategy: &str, namespace: &str) {
    let api: Api<ManagedClusterAddOn> = Api::namespaced(world.client.clone(), cluster);
    let made = api.get("helloworld").await.unwrap();
    assert_eq!(made.labels()["addon.open-cluster-management.io/installed-by-strategy"], strategy);
    let owner = &made.owner_references()[0];
    let addon = world.get(&addon(&[])).await.unwrap();
    assert_eq!(
        (owner.kind.as_str(), json!(owner.uid)),
        ("ClusterManagementAddOn", addon["metadata"]["uid"].clone())
    );
    // Configs and versions roll out; they are not copied.
    assert_eq!(json!(made.spec), json!({"installNamespace": namespace}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn placements_to_manual_keeps_all_and_manual_to_placements_leaves_alone_what_users_made() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.clusters("aws-placement", &names("a", 1..=3, 1)).await;
    world.clusters("gcp-placement", &names("g", 1..=2, 1)).await;
    let placements = |config: &str| {
        let placed = |name: &str, namespace: &str| {
            let mut placed = place(name, config, update_all());
            placed["addonTemplate"] = json!({"installNamespace": namespace});
            placed
        };
        let placed = [placed("aws-placement", "aws-addon-ns"), placed("gcp-placement", "gcp-addon-ns")];
        strategy(json!({"type": "Placements", "placements": placed}))
    };
    let manager = world.manager("only");
    world.put(placements("one")).await;
    until_run(&world, &["a1", "a2", "a3", "g1", "g2"], "v1.0.0").await;
    assert_made_by(&world, "a1", "Placements", "aws-addon-ns").await;
    assert_made_by(&world, "g1", "Placements", "gcp-addon-ns").await;

    // A cluster leaves, another joins.
    world.cluster("a4").await;
    world.select("aws-placement", &["a1", "a2", "a4"].map(str::to_owned)).await;
    until_run(&world, &["a4"], "v1.0.0").await;
    world.until_on("helloworld", &["a1", "a2", "a4", "g1", "g2"]).await;

    // Everything is kept as it is, on `two` too; who is deleted by hand stays away.
    world.put(placements("two")).await;
    until_run(&world, &["a1", "a2", "a4", "g1", "g2"], "v2.0.0").await;
    let audit = Auditor::start(&world.client, "helloworld").await;
    world.put(strategy(json!({"type": "Manual"}))).await;
    world.until("helloworld", "no placements", |addon| show_none(&json!(addon))).await;
    world.delete(instance("g1", "helloworld", json!({}))).await;
    world.select("aws-placement", &names("a", 1..=1, 1)).await;
    // A user makes one of their own: it is served, so all that was before it has been seen.
    let mine = json!({"installNamespace": "mine", "configs": [reference("addonhubconfigs", None, "two")]});
    world.put(instance("a3", "helloworld", mine.clone())).await;
    until_run(&world, &["a1", "a2", "a3", "a4", "g2"], "v2.0.0").await;
    let fleet = audit.end(|_, _| ()).await;
    assert_eq!(fleet.deleted, ["g1"]);

    // Placements again: the user's instance is theirs, although it is selected.
    world.select("aws-placement", &names("a", 1..=4, 1)).await;
    world.put(placements("one")).await;
    until_run(&world, &["a1", "a2", "a4", "g1", "g2"], "v1.0.0").await;
    until_run(&world, &["a3"], "v2.0.0").await;
    let kept = world.get(&instance("a3", "helloworld", json!({}))).await.unwrap();
    assert_eq!(kept["spec"], mine);
    // Its metadata names the add-on as owner, and says nothing of the strategy.
    let owners = &kept["metadata"]["ownerReferences"];
    assert!(kept["metadata"]["labels"].is_null() && owners[0]["kind"] == "ClusterManagementAddOn", "{kept}");
    // And it stays when its cluster leaves.
    world.select("aws-placement", &names("a", 1..=2, 1)).await;
    world.until_on("helloworld", &["a1", "a2", "a3", "g1", "g2"]).await;
    manager.stop().await;
}

fn show_none(addon: &Value) -> bool {
    addon["status"]["installProgression"].as_array().is_none_or(Vec::is_empty)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_that_opt_out_are_deleting_or_absent_get_nothing_and_deleting_ones_lose_all() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    for cluster in ["a1", "a2", "a3", "a4", "a5"] {
        world.cluster(cluster).await;
    }
    let opt_out = |value: &str| {
        let mut cluster = managed_cluster("a2");
        cluster["metadata"]["annotations"] =
            json!({format!("{GROUP}/disable-automatic-installation"): value});
        cluster
    };
    world.put(opt_out("true")).await;
    let finalizers = |cluster: &str, finalizers: Value| {
        let mut object = managed_cluster(cluster);
        object["metadata"]["finalizers"] = finalizers;
        object
    };
    for cluster in ["a3", "a4", "a5"] {
        world.put(finalizers(cluster, json!(["example.com/not-yet"]))).await;
    }
    let clusters: Api<aviary_api::ManagedCluster> = Api::all(world.client.clone());
    clusters.delete("a3", &DeleteParams::default()).await.unwrap();
    world.put(instance("a5", "helloworld", json!({}))).await;
    // ghost is in a decision, and there is no such cluster.
    world.select("prod", &["a1", "a2", "a3", "a4", "ghost"].map(str::to_owned)).await;
    let audit = Auditor::start(&world.client, "helloworld").await;
    let manager = world.manager("only");
    let mut wanted = addon(&[place("prod", "one", update_all())]);
    wanted["spec"]["defaultConfigs"] = json!([reference("addonhubconfigs", None, "one")]);
    world.put(wanted).await;
    until_run(&world, &["a1", "a4", "a5"], "v1.0.0").await;
    world.until_on("helloworld", &["a1", "a4", "a5"]).await;

    // Clusters that are deleted lose every instance, also a user's.
    for cluster in ["a4", "a5"] {
        clusters.delete(cluster, &DeleteParams::default()).await.unwrap();
    }
    world.until_on("helloworld", &["a1"]).await;
    // The others go on, and the one that opts in again follows.
    world.put(opt_out("false")).await;
    until_run(&world, &["a1", "a2"], "v1.0.0").await;
    let mut made = Vec::new();
    audit
        .end(|fleet, commit| {
            if fleet.instances().any(|(cluster, _)| cluster == commit.cluster)
                && !made.contains(&commit.cluster)
            {
                made.push(commit.cluster.clone());
            }
        })
        .await;
    made.sort();
    assert_eq!(made, ["a1", "a2", "a4", "a5"]);
    for cluster in ["a3", "a4", "a5"] {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        clusters.patch(cluster, &PatchParams::default(), &patch).await.unwrap();
    }
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_brake_holds_a_mass_deletion_until_its_number_is_acknowledged() {
    let world = world().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let all = names("a", 1..=40, 2);
    world.clusters("prod", &all).await;
    let manager = world.manager("only");
    world.put(addon(&[place("prod", "one", update_all())])).await;
    world
        .until_told(
            "helloworld",
            "prod  False InstallSucceed  40/40 install completed with no errors.
        desired one good one applied one",
        )
        .await;
    let audit = Auditor::start(&world.client, "helloworld").await;
    let held = |number: usize, of: usize, left: usize| {
        format!(
            "Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: {left}/{left} install completed with no errors.
            DeletionsHeld  True DeletionHeld  {number} of {of} instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions=\"{number}\""
        )
    };
    world.select("prod", &all[..25]).await;
    world.until_conditions("helloworld", &held(15, 40, 25)).await;
    // Another number acknowledges nothing.
    let allow = |number: &str| {
        let mut allow = object("ClusterManagementAddOn", "helloworld", json!({}));
        allow["metadata"]["annotations"] = json!({format!("{GROUP}/allow-deletions"): number});
        allow
    };
    world.put(allow("14")).await;
    world.cluster("a99").await;
    let more: Vec<String> = all[..25].iter().cloned().chain(["a99".to_owned()]).collect();
    world.select("prod", &more).await;
    world.until_conditions("helloworld", &held(15, 41, 26)).await;
    audit.end(|fleet, _| assert_eq!(fleet.deleted, Vec::<String>::new())).await;

    world.put(allow("15")).await;
    let left: Vec<&str> = more.iter().map(String::as_str).collect();
    world.until_on("helloworld", &left).await;
    world
        .until_conditions(
            "helloworld",
            "Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 26/26 install completed with no errors.
            DeletionsHeld  False NothingHeld  no deletion is held back",
        )
        .await;
    manager.stop().await;
}
