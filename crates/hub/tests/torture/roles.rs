//! An agent that exceeds its role: it may report on its works, and change none of them.

use aviary_hub::security::{Identity, Role};
use aviary_hub::{Hub, HubOptions};
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::ephemeral;

const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks";
const WORK: &str = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks/one";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

struct World {
    hub: Hub,
}

impl World {
    /// A hub with a kind that agents work on, and one object of it.
    async fn new() -> Self {
        let world = Self { hub: ephemeral(HubOptions::default()).await };
        world.define("work.open-cluster-management.io", "v1", "ManifestWork", "manifestworks").await;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}});
        world.admin("POST", "/api/v1/namespaces", "application/json", &namespace).await;
        let metadata =
            json!({"name": "one", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x.io/y"]});
        let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": metadata, "spec": {"image": "good"}});
        world.admin("POST", WORKS, "application/json", &work).await;
        world
    }

    async fn define(&self, group: &str, version: &str, kind: &str, plural: &str) {
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({"name": version, "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": anything}});
        let names = json!({"kind": kind, "plural": plural});
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
        });
        self.admin("POST", crds, "application/json", &crd).await;
    }

    async fn send(&self, role: Role, method: &str, path: &str, media: &str, body: &Value) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let request = request.extension(Identity::new("someone", role));
        let request = request.body(Body::from(body.to_string())).unwrap();
        let response = self.hub.router().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap())
    }

    async fn admin(&self, method: &str, path: &str, media: &str, body: &Value) -> Value {
        let (code, answer) = self.send(Role::Admin, method, path, media, body).await;
        assert!(code < 300, "{method} {path}: {answer}");
        answer
    }

    async fn agent(&self, method: &str, path: &str, media: &str, body: &Value) -> (u16, Value) {
        self.send(Role::Agent { namespace: "c1".into() }, method, path, media, body).await
    }

    async fn work(&self) -> Value {
        self.admin("GET", WORK, "application/json", &json!({})).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_changes_the_finalizers_of_a_work_and_nothing_else_of_it() {
    let world = World::new().await;
    let before = world.work().await;
    let patches = [
        json!({"spec": {"image": "bad"}}),
        json!({"metadata": {"labels": {"a": "bad"}}}),
        json!({"metadata": {"labels": null}}),
        json!({"metadata": {"annotations": {"new": "bad"}}}),
        json!({"metadata": {"finalizers": [], "annotations": {"new": "bad"}}}),
        json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "c1", "uid": "u"}]}}),
        json!({"extra": 1}),
    ];
    for patch in patches {
        let (code, told) = world.agent("PATCH", WORK, MERGE, &patch).await;
        assert_eq!((code, &told["reason"]), (403, &"Forbidden".into()), "{patch}: {told}");
        let why = "manifestworks.work.open-cluster-management.io \"one\" is forbidden: \
                   User \"someone\" may change only metadata.finalizers of it";
        assert_eq!(told["message"], why);
    }
    let mut replaced = before.clone();
    replaced["spec"]["image"] = "bad".into();
    assert_eq!(world.agent("PUT", WORK, "application/json", &replaced).await.0, 403);
    let applied = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "one"}, "spec": {"image": "bad"}});
    let forced = format!("{WORK}?fieldManager=agent&force=true");
    assert_eq!(world.agent("PATCH", &forced, APPLY, &applied).await.0, 403);
    let operations = json!([{"op": "replace", "path": "/spec/image", "value": "bad"}]);
    assert_eq!(world.agent("PATCH", WORK, "application/json-patch+json", &operations).await.0, 403);
    let dry = format!("{WORK}?dryRun=All");
    assert_eq!(world.agent("PATCH", &dry, MERGE, &json!({"spec": null})).await.0, 403);
    assert_eq!(world.work().await, before, "nothing was written");

    let finalizers = json!({"metadata": {"finalizers": ["x.io/y", "x.io/agent"]}});
    let (code, told) = world.agent("PATCH", WORK, MERGE, &finalizers).await;
    assert_eq!((code, &told["metadata"]["finalizers"][1]), (200, &"x.io/agent".into()), "{told}");
    let mut replaced = told;
    replaced["metadata"]["finalizers"] = json!(["x.io/agent"]);
    replaced["status"] = json!({"ignored": "it has an endpoint of its own"});
    assert_eq!(world.agent("PUT", WORK, "application/json", &replaced).await.0, 200);
    let work = world.work().await;
    assert_eq!((&work["metadata"]["finalizers"], &work["status"]), (&json!(["x.io/agent"]), &Value::Null));
    assert_eq!((&work["spec"], &work["metadata"]["generation"]), (&before["spec"], &json!(1)));
}

/// Works, in every way to write them, are in the test above.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h8_an_agent_writes_neither_its_instance_nor_a_work_nor_any_secret() {
    const INSTANCES: &str =
        "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/c1/managedclusteraddons";
    const SECRETS: &str = "/api/v1/namespaces/c1/secrets";
    let world = World::new().await;
    world
        .define("addon.open-cluster-management.io", "v1alpha1", "ManagedClusterAddOn", "managedclusteraddons")
        .await;
    let instance = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "one"}, "spec": {"installNamespace": "good"}});
    world.admin("POST", INSTANCES, "application/json", &instance).await;
    let one = format!("{INSTANCES}/one");
    let before = world.admin("GET", &one, "application/json", &json!({})).await;
    let (mut replaced, bad) = (before.clone(), json!({"spec": {"installNamespace": "bad"}}));
    replaced["spec"] = bad["spec"].clone();
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "stringData": {"a": "b"}});
    let nothing = json!({});
    for (method, path, media, body) in [
        ("PATCH", one.as_str(), MERGE, &bad),
        ("PUT", &one, "application/json", &replaced),
        ("POST", INSTANCES, "application/json", &instance),
        ("DELETE", &one, "application/json", &nothing),
        ("PATCH", WORK, MERGE, &bad),
        ("POST", SECRETS, "application/json", &secret),
        ("PATCH", &format!("{SECRETS}/one"), MERGE, &secret),
        ("PUT", &format!("{SECRETS}/one"), "application/json", &secret),
        ("DELETE", &format!("{SECRETS}/one"), "application/json", &nothing),
        ("GET", &format!("{SECRETS}/one"), "application/json", &nothing),
        ("GET", SECRETS, "application/json", &nothing),
    ] {
        let (code, told) = world.agent(method, path, media, body).await;
        assert_eq!((code, &told["reason"]), (403, &"Forbidden".into()), "{method} {path}: {told}");
    }
    assert_eq!(world.admin("GET", &one, "application/json", &nothing).await, before, "nothing was written");

    // What it may: report, without taking the spec with it.
    let report = json!({"status": {"reported": true}, "spec": {"installNamespace": "bad"}});
    let (code, told) = world.agent("PATCH", &format!("{one}/status"), MERGE, &report).await;
    assert_eq!((code, &told["status"], &told["spec"]), (200, &report["status"], &before["spec"]), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_ends_the_deletion_of_a_work_and_cannot_begin_it() {
    let world = World::new().await;
    assert_eq!(world.agent("DELETE", WORK, "application/json", &json!({})).await.0, 403);
    assert_eq!(world.agent("DELETE", WORKS, "application/json", &json!({})).await.0, 403);
    world.admin("DELETE", WORK, "application/json", &json!({})).await;
    let released = json!({"metadata": {"finalizers": null}});
    assert_eq!(world.agent("PATCH", WORK, MERGE, &released).await.0, 200);
    assert_eq!(world.agent("GET", WORK, "application/json", &json!({})).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_reports_the_status_of_a_work_and_cannot_smuggle_more_in() {
    let world = World::new().await;
    let (status, labels) = (json!({"applied": true}), json!({"a": "bad"}));
    let patch = json!({"status": status, "spec": {"image": "bad"}, "metadata": {"labels": labels}});
    let (code, told) = world.agent("PATCH", &format!("{WORK}/status"), MERGE, &patch).await;
    assert_eq!(code, 200, "{told}");
    let work = world.work().await;
    assert_eq!((&work["status"], &work["spec"]["image"]), (&status, &"good".into()));
    assert_eq!(work["metadata"]["labels"], json!({"a": "b"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_cannot_claim_to_manage_the_fields_of_others() {
    let world = World::new().await;
    let manager = format!("{WORK}?fieldManager=hub");
    let config = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "one"}, "spec": {"size": 3}});
    world.admin("PATCH", &manager, APPLY, &config).await;
    let before = world.work().await["metadata"]["managedFields"].clone();
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let (code, told) = world.agent("PATCH", WORK, MERGE, &reset).await;
    assert_eq!((code, &told["metadata"]["managedFields"]), (200, &before), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_told_its_own_rules() {
    let world = World::new().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let ask = |namespace: &str| json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}});
    let rules = |told: Value| told["status"]["resourceRules"].as_array().unwrap().clone();
    let own = rules(world.agent("POST", path, "application/json", &ask("c1")).await.1);
    let works = json!({"verbs": ["update", "patch"], "apiGroups": ["work.open-cluster-management.io"],
        "resources": ["manifestworks/status"]});
    assert!(own.contains(&works), "{own:?}");
    let cluster = json!({"verbs": ["get", "list", "watch"], "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["managedclusters"], "resourceNames": ["c1"]});
    let elsewhere = rules(world.agent("POST", path, "application/json", &ask("c2")).await.1);
    assert!(own.contains(&cluster) && elsewhere.contains(&cluster), "{elsewhere:?}");
    assert!(!elsewhere.contains(&works), "{elsewhere:?}");
}
