//! The examples of the design document on configuration, with kinds of config that nobody knew
//! before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aviary_api::ManifestWork;
use http::{Request, Response};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use crate::agents::Agents;
use crate::objects::{GROUP, instance, object, reference, within};
use crate::world::World;

/// What the configReferences of an instance say, as the document prints them.
fn references(instance: &Value) -> Value {
    let all = instance["status"]["configReferences"].as_array().cloned().unwrap_or_default();
    let shown = all.iter().filter(|one| one["resource"] != "addontemplates").map(|one| {
        let mut shown = json!({});
        for part in ["group", "resource", "namespace", "name", "lastObservedGeneration"] {
            if !one[part].is_null() {
                shown[part] = one[part].clone();
            }
        }
        shown
    });
    shown.collect()
}

/// Waits until the references of an instance are these, and resolved.
async fn until_references(world: &World, cluster: &str, addon: &str, expected: &Value) {
    world
        .until_instances(addon, &format!("{cluster}: {expected}"), |all| {
            all.iter().map(|one| json!(one)).any(|one| {
                one["metadata"]["namespace"] == cluster
                    && references(&one) == *expected
                    && condition(&one, "Configured")["status"] == "True"
            })
        })
        .await;
}

fn condition(instance: &Value, kind: &str) -> Value {
    let all = instance["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|one| one["type"] == kind).unwrap_or_default()
}

/// An add-on of type Manual that supports these configs.
fn addon(name: &str, supported: Value) -> Value {
    object("ClusterManagementAddOn", name, json!({"spec": {"supportedConfigs": supported}}))
}

fn crd(group: &str, kind: &str, plural: &str, scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }}}],
        },
    })
}

const PROXY_GROUP: &str = "proxy.open-cluster-management.io";

fn proxy_crd() -> Value {
    crd(PROXY_GROUP, "ManagedProxyConfiguration", "managedproxyconfigurations", "Cluster")
}

fn proxy_config(image: &str) -> Value {
    json!({
        "apiVersion": format!("{PROXY_GROUP}/v1alpha1"), "kind": "ManagedProxyConfiguration", "metadata": {"name": "cluster-proxy"},
        "spec": {
            "authentication": {"signer": {"type": "SelfSigned"}}, "proxyServer": {"image": image},
            "proxyAgent": {"image": "proxy-agent-image"},
        },
    })
}

async fn clusters(world: &World, names: &[&str], addon: &str) {
    for name in names {
        world.cluster(name).await;
        world
            .put(instance(name, addon, json!({"installNamespace": "open-cluster-management-agent-addon"})))
            .await;
    }
}

async fn work(world: &World, cluster: &str, name: &str) -> Value {
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), cluster);
    json!(works.get(name).await.unwrap())
}

fn until_works(instance: &Value) -> bool {
    condition(instance, "Progressing")["status"] == "False"
        && condition(instance, "Available")["status"] == "True"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_1_a_deployment_config_for_all_and_one_of_its_own_for_a_cluster() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": "{{INSTALL_NAMESPACE}}"},
        "spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "agent"}]}}},
    });
    let template = json!({"spec": {"addonName": "myaddon", "version": "v1", "agentSpec": {"workload": {"manifests": [deployment]}}}});
    world.put(object("AddOnTemplate", "myaddon-v1", template)).await;
    // As the document spells it, without nodePlacement around it.
    let tolerations =
        json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoSchedule"}]);
    let config = |namespace: &str, name: &str, arch: &str| {
        let spec = json!({"nodeSelector": {"kubernetes.io/arch": arch}, "tolerations": tolerations});
        within(namespace, object("AddOnDeploymentConfig", name, json!({"spec": spec})))
    };
    world.put(config("open-cluster-management", "addon-default-placement", "amd64")).await;
    let default = json!({"name": "addon-default-placement", "namespace": "open-cluster-management"});
    let supported = json!([{"group": GROUP, "resource": "addondeploymentconfigs", "defaultConfig": default}]);
    world.put(addon("myaddon", supported)).await;
    clusters(&world, &["cluster1", "cluster2", "cluster3"], "myaddon").await;
    let shared = json!([{
        "group": GROUP, "resource": "addondeploymentconfigs", "name": "addon-default-placement",
        "namespace": "open-cluster-management", "lastObservedGeneration": 1,
    }]);
    for cluster in ["cluster1", "cluster2", "cluster3"] {
        until_references(&world, cluster, "myaddon", &shared).await;
    }
    world.put(config("cluster3", "addon-arm-placement", "arm64")).await;
    let own = reference("addondeploymentconfigs", Some("cluster3"), "addon-arm-placement");
    world.put(instance("cluster3", "myaddon", json!({"configs": [own]}))).await;
    let own = json!([{
        "group": GROUP, "resource": "addondeploymentconfigs", "name": "addon-arm-placement", "namespace": "cluster3",
        "lastObservedGeneration": 1,
    }]);
    until_references(&world, "cluster3", "myaddon", &own).await;
    world.until_instances("myaddon", "all there", |all| all.iter().all(|one| until_works(&json!(one)))).await;
    for (cluster, arch) in [("cluster1", "amd64"), ("cluster2", "amd64"), ("cluster3", "arm64")] {
        let work = work(&world, cluster, "addon-myaddon-deploy-0").await;
        let pod = &work["spec"]["workload"]["manifests"][0]["spec"]["template"]["spec"];
        assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/arch": arch}), "{cluster}");
        assert_eq!(pod["tolerations"], tolerations, "{cluster}");
    }

    // A change of the default reaches the two that have it, and its generation is told.
    world.put(config("open-cluster-management", "addon-default-placement", "s390x")).await;
    let mut changed = shared;
    changed[0]["lastObservedGeneration"] = json!(2);
    for cluster in ["cluster1", "cluster2"] {
        until_references(&world, cluster, "myaddon", &changed).await;
    }
    until_references(&world, "cluster3", "myaddon", &own).await;
    manager.stop().await;
}

/// What the add-on's own manager does: a work that carries the hashes that its instance was told,
/// once it was told any.
async fn render(world: &World, cluster: &str, addon: &str, is_wanted: impl Fn(&Value) -> bool) {
    world
        .until_instances(addon, &format!("{cluster} is told"), |all| {
            all.iter()
                .map(|one| json!(one))
                .any(|one| one["metadata"]["namespace"] == cluster && is_wanted(&one))
        })
        .await;
    let told = world.get(&instance(cluster, addon, json!({}))).await.unwrap();
    let hashes: serde_json::Map<String, Value> = told["status"]["configReferences"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["desiredConfigSpecHash"] != "")
        .map(|one| {
            let [resource, group, namespace, name] =
                ["resource", "group", "namespace", "name"].map(|part| one[part].as_str().unwrap_or_default());
            (format!("{resource}.{group}/{namespace}/{name}"), one["desiredConfigSpecHash"].clone())
        })
        .collect();
    let metadata = json!({
        "name": format!("addon-{addon}-deploy"), "namespace": cluster, "labels": {"open-cluster-management.io/addon-name": addon},
        "annotations": {"configSpecHash": json!(hashes).to_string()},
    });
    world
        .put(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": metadata,
            "spec": {"workload": {"manifests": []}},
        }))
        .await;
}

fn names_a_config(instance: &Value) -> bool {
    instance["status"]["configReferences"][0]["desiredConfigSpecHash"]
        .as_str()
        .is_some_and(|hash| !hash.is_empty())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_2_an_add_on_with_a_kind_of_config_of_its_own_whose_crd_comes_late() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    let default = json!({"name": "cluster-proxy"});
    world
        .put(addon(
            "cluster-proxy",
            json!([{"group": PROXY_GROUP, "resource": "managedproxyconfigurations", "defaultConfig": default}]),
        ))
        .await;
    clusters(&world, &["cluster1"], "cluster-proxy").await;
    world
        .until_instance("cluster1", "cluster-proxy", "
            Progressing False InstallFailed: install failed: managedproxyconfigurations.proxy.open-cluster-management.io cluster-proxy: the hub does not serve managedproxyconfigurations.proxy.open-cluster-management.io: install its CustomResourceDefinition
            Configured False ConfigurationKindUnknown: managedproxyconfigurations.proxy.open-cluster-management.io cluster-proxy: the hub does not serve managedproxyconfigurations.proxy.open-cluster-management.io: install its CustomResourceDefinition")
        .await;
    world.put(proxy_crd()).await;
    world
        .until_instance("cluster1", "cluster-proxy", "
            Progressing False InstallFailed: install failed: managedproxyconfigurations.proxy.open-cluster-management.io cluster-proxy not found
            Configured False ConfigurationMissing: managedproxyconfigurations.proxy.open-cluster-management.io cluster-proxy not found")
        .await;
    put_when_served(&world, proxy_config("proxy-server-image")).await;
    let resolved = json!([{
        "group": PROXY_GROUP, "resource": "managedproxyconfigurations", "name": "cluster-proxy", "lastObservedGeneration": 1,
    }]);
    until_references(&world, "cluster1", "cluster-proxy", &resolved).await;
    // Its own manager writes the work; it is rolled out and reported all the same.
    render(&world, "cluster1", "cluster-proxy", names_a_config).await;
    let hash = aviary_engine::hash::spec_hash(&proxy_config("proxy-server-image"));
    world
        .until_instance(
            "cluster1",
            "cluster-proxy",
            &format!(
                "
            managedproxyconfigurations desired cluster-proxy@{0:.8} applied cluster-proxy@{0:.8}
            Progressing False InstallSucceed: install completed with no errors.
            Configured True ConfigurationsConfigured: all configurations are resolved",
                hash.as_str()
            ),
        )
        .await;

    // The kind goes in the middle of things, and comes back: what is applied stays applied.
    world.delete(proxy_crd()).await;
    world
        .until_instances("cluster-proxy", "named again", |all| {
            all.iter().any(|one| condition(&json!(one), "Configured")["reason"] == "ConfigurationKindUnknown")
        })
        .await;
    world.put(proxy_crd()).await;
    put_when_served(&world, proxy_config("another-image")).await;
    let hash = aviary_engine::hash::spec_hash(&proxy_config("another-image"));
    render(&world, "cluster1", "cluster-proxy", |one| {
        one["status"]["configReferences"][0]["desiredConfigSpecHash"] == hash.as_str()
    })
    .await;
    world
        .until_instance(
            "cluster1",
            "cluster-proxy",
            &format!(
                "
            managedproxyconfigurations desired cluster-proxy@{0:.8} applied cluster-proxy@{0:.8}
            Progressing False UpgradeSucceed: upgrade completed with no errors.
            Configured True ConfigurationsConfigured: all configurations are resolved",
                hash.as_str()
            ),
        )
        .await;
    world.delete(proxy_crd()).await;
    manager.stop().await;
}

/// Puts an object of a kind whose CRD has just come: a server may serve it a moment later than it
/// has answered for the CRD.
async fn put_when_served(world: &World, object: Value) {
    let crd = object["kind"].as_str().unwrap().to_lowercase()
        + "s."
        + object["apiVersion"].as_str().unwrap().split('/').next().unwrap();
    let crds: Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = Api::all(world.client.clone());
    let established = kube::runtime::wait::conditions::is_crd_established();
    let wait = kube::runtime::wait::await_condition(crds, &crd, established);
    tokio::time::timeout(crate::world::GIVE_UP, wait).await.expect("established").unwrap();
    world.put(object).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_2_each_instance_has_a_config_of_its_own() {
    const SUBMARINER: &str = "submarineraddon.open-cluster-management.io";
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    let kind = || crd(SUBMARINER, "SubmarinerConfig", "submarinerconfigs", "Namespaced");
    world.put(kind()).await;
    world.put(addon("submariner", json!([{"group": SUBMARINER, "resource": "submarinerconfigs"}]))).await;
    for (cluster, port) in [("cluster1", 500), ("cluster2", 501)] {
        world.cluster(cluster).await;
        put_when_served(&world, json!({
            "apiVersion": format!("{SUBMARINER}/v1alpha1"), "kind": "SubmarinerConfig",
            "metadata": {"name": "submariner", "namespace": cluster}, "spec": {"IPSecIKEPort": port, "IPSecNATTPort": port + 4000},
        }))
        .await;
        let own = json!({"group": SUBMARINER, "resource": "submarinerconfigs", "name": "submariner", "namespace": cluster});
        world.put(instance(cluster, "submariner", json!({"configs": [own]}))).await;
    }
    let mut hashes = Vec::new();
    for cluster in ["cluster1", "cluster2"] {
        let own = json!([{
            "group": SUBMARINER, "resource": "submarinerconfigs", "name": "submariner", "namespace": cluster, "lastObservedGeneration": 1,
        }]);
        until_references(&world, cluster, "submariner", &own).await;
        let told = world.get(&instance(cluster, "submariner", json!({}))).await.unwrap();
        hashes.push(told["status"]["configReferences"][0]["desiredConfigSpecHash"].clone());
    }
    assert_ne!(hashes[0], hashes[1]);
    // A namespace that is not its own is out of reach, and named; nothing else is touched.
    let foreign = json!({"group": SUBMARINER, "resource": "submarinerconfigs", "name": "submariner", "namespace": "cluster2"});
    world.put(instance("cluster1", "submariner", json!({"configs": [foreign]}))).await;
    world
        .until_instances("submariner", "out of reach", |all| {
            all.iter().any(|one| condition(&json!(one), "Configured")["reason"] == "ConfigurationOutOfReach")
        })
        .await;
    world.delete(kind()).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_3_an_add_on_with_two_kinds_of_config_one_overridden() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("only");
    world.put(proxy_crd()).await;
    put_when_served(&world, proxy_config("proxy-server-image")).await;
    let default = json!({"name": "cluster-proxy"});
    world
        .put(addon(
            "cluster-proxy",
            json!([
                {"group": PROXY_GROUP, "resource": "managedproxyconfigurations", "defaultConfig": default},
                {"group": GROUP, "resource": "addondeploymentconfigs"},
            ]),
        ))
        .await;
    world.cluster("cluster1").await;
    world
        .put(within("cluster1", object("AddOnDeploymentConfig", "deploy-config", json!({"spec": {}}))))
        .await;
    let own = reference("addondeploymentconfigs", Some("cluster1"), "deploy-config");
    world.put(instance("cluster1", "cluster-proxy", json!({"configs": [own]}))).await;
    let both = json!([
        {"group": GROUP, "resource": "addondeploymentconfigs", "namespace": "cluster1", "name": "deploy-config", "lastObservedGeneration": 1},
        {"group": PROXY_GROUP, "resource": "managedproxyconfigurations", "name": "cluster-proxy", "lastObservedGeneration": 1},
    ]);
    until_references(&world, "cluster1", "cluster-proxy", &both).await;
    render(&world, "cluster1", "cluster-proxy", names_a_config).await;

    // An override of a kind that is not supported is named; the others go on.
    let widget = json!({"group": "example.com", "resource": "widgets", "name": "w"});
    let own = reference("addondeploymentconfigs", Some("cluster1"), "deploy-config");
    world.put(instance("cluster1", "cluster-proxy", json!({"configs": [own, widget]}))).await;
    world
        .until_instances("cluster-proxy", "unsupported", |all| {
            all.iter().map(|one| json!(one)).any(|one| {
                condition(&one, "Progressing")["reason"] == "ConfigurationUnsupported"
                    && references(&one) == both
            })
        })
        .await;
    // Taken back, the default of the add-on counts again.
    let instances: Api<aviary_api::ManagedClusterAddOn> = Api::namespaced(world.client.clone(), "cluster1");
    let patch = Patch::Merge(json!({"spec": {"configs": null}}));
    instances.patch("cluster-proxy", &PatchParams::default(), &patch).await.unwrap();
    let one = json!([both[1].clone()]);
    render(&world, "cluster1", "cluster-proxy", |one| {
        one["status"]["configReferences"][0]["desiredConfigSpecHash"].as_str().is_none_or(str::is_empty)
    })
    .await;
    until_references(&world, "cluster1", "cluster-proxy", &one).await;
    world.delete(proxy_crd()).await;
    manager.stop().await;
}

/// A client that the hub does not let read proxy configurations, until `allowed`.
fn without_right(inner: &Client, allowed: &Arc<AtomicBool>) -> Client {
    let (inner, allowed) = (inner.clone(), Arc::clone(allowed));
    let service = service_fn(move |request: Request<Body>| {
        let asks = request.uri().path().ends_with("/managedproxyconfigurations");
        let (inner, refused) = (inner.clone(), asks && !allowed.load(Ordering::SeqCst));
        async move {
            if !refused {
                return inner.send(request).await;
            }
            let status = json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
                "message": "managedproxyconfigurations is forbidden",
            });
            Ok(Response::builder().status(403).body(Body::from(status.to_string().into_bytes())).unwrap())
        }
    });
    Client::new(service, "default")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_the_manager_may_not_read_is_one_add_ons_problem_and_heals() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    world.put(proxy_crd()).await;
    put_when_served(&world, proxy_config("image")).await;
    let allowed = Arc::new(AtomicBool::new(false));
    let manager = world.manager_through(without_right(&world.managers, &allowed), "only");
    let default = json!({"name": "cluster-proxy"});
    let kind =
        json!([{"group": PROXY_GROUP, "resource": "managedproxyconfigurations", "defaultConfig": default}]);
    world.put(addon("cluster-proxy", kind)).await;
    clusters(&world, &["cluster1"], "cluster-proxy").await;
    world
        .until_instance("cluster1", "cluster-proxy", "
            Progressing False InstallFailed: install failed: managedproxyconfigurations.proxy.open-cluster-management.io cluster-proxy: the hub does not let the manager read managedproxyconfigurations.proxy.open-cluster-management.io: allow it to list and watch them, with a ClusterRole
            Configured False ConfigurationForbidden: managedproxyconfigurations.proxy.open-cluster-management.io cluster-proxy: the hub does not let the manager read managedproxyconfigurations.proxy.open-cluster-management.io: allow it to list and watch them, with a ClusterRole")
        .await;
    // Another add-on goes its way meanwhile.
    world.put(within("cluster1", object("AddOnDeploymentConfig", "mine", json!({"spec": {}})))).await;
    world.put(addon("beside", json!([{"group": GROUP, "resource": "addondeploymentconfigs"}]))).await;
    let own = json!({"group": GROUP, "resource": "addondeploymentconfigs", "name": "mine", "namespace": "cluster1"});
    world.put(instance("cluster1", "beside", json!({"configs": [own]}))).await;
    let resolved = json!([{
        "group": GROUP, "resource": "addondeploymentconfigs", "namespace": "cluster1", "name": "mine", "lastObservedGeneration": 1,
    }]);
    until_references(&world, "cluster1", "beside", &resolved).await;

    allowed.store(true, Ordering::SeqCst);
    let resolved = json!([{
        "group": PROXY_GROUP, "resource": "managedproxyconfigurations", "name": "cluster-proxy", "lastObservedGeneration": 1,
    }]);
    until_references(&world, "cluster1", "cluster-proxy", &resolved).await;
    world.delete(proxy_crd()).await;
    manager.stop().await;
}

/// Whoever may write an instance, or an add-on, must not make the manager read what they may not
/// (S14).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_that_somebody_names_are_not_even_listed() {
    let world = World::new().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let (manager, counts) = world.counted_manager("only");
    let secret = json!({"group": "", "resource": "secrets", "namespace": "cluster1", "name": "token"});
    let default = json!({"namespace": "cluster1", "name": "token"});
    world.put(object("ClusterManagementAddOn", "nosy", json!({"spec": {"defaultConfigs": [secret]}}))).await;
    world.put(addon("strict", json!([{"group": GROUP, "resource": "addondeploymentconfigs"}]))).await;
    clusters(&world, &["cluster1"], "nosy").await;
    world.put(instance("cluster1", "strict", json!({"configs": [secret]}))).await;
    for name in ["nosy", "strict"] {
        world
            .until_instances(name, "it is told that it may not", |all| {
                all.iter().map(|one| json!(one)).any(|one| condition(&one, "Configured")["status"] == "False")
            })
            .await;
    }
    let asked = counts.take();
    assert!(!asked.keys().any(|what| what.contains("secrets")), "{asked:?}");
    // Where the author lists them, other core kinds are configs, and Secrets still are not: their
    // content would be kept in a revision.
    for resource in ["secrets", "configmaps"] {
        let listed = json!([{"group": "", "resource": resource, "defaultConfig": default}]);
        world.put(addon(resource, listed)).await;
        world.put(instance("cluster1", resource, json!({}))).await;
        world
            .until_instances(resource, "it is told what is wrong", |all| {
                all.iter().map(|one| json!(one)).any(|one| condition(&one, "Configured")["status"] == "False")
            })
            .await;
    }
    let asked = counts.take();
    assert!(asked.keys().any(|what| what.contains("configmaps")), "the count sees them: {asked:?}");
    assert!(!asked.keys().any(|what| what.contains("secrets")), "{asked:?}");
    manager.stop().await;
}
