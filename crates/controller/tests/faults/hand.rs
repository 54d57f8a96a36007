//! Plain requests to a hub, without a client in between: what users, agents and auditors do.

use aviary_hub::Hub;
use aviary_hub::security::{Identity, Role};
use axum::Router;
use axum::body::{Body, to_bytes};
use futures_util::{Stream, StreamExt};
use http::{Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt;

const ADDON: &str = "addon.open-cluster-management.io";
const CLUSTER: &str = "cluster.open-cluster-management.io";
const WORK: &str = "work.open-cluster-management.io";

/// A kind: its group, version, name, plural, and whether it is in namespaces.
pub(crate) struct Kind(
    pub(crate) &'static str,
    &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
    bool,
);

pub(crate) const KINDS: [Kind; 11] = [
    Kind(ADDON, "v1alpha1", "ClusterManagementAddOn", "clustermanagementaddons", false),
    Kind(ADDON, "v1alpha1", "ManagedClusterAddOn", "managedclusteraddons", true),
    Kind(WORK, "v1", "ManifestWork", "manifestworks", true),
    Kind(CLUSTER, "v1", "ManagedCluster", "managedclusters", false),
    Kind(CLUSTER, "v1beta1", "Placement", "placements", true),
    Kind(CLUSTER, "v1beta1", "PlacementDecision", "placementdecisions", true),
    Kind("apps", "v1", "ControllerRevision", "controllerrevisions", true),
    Kind(ADDON, "v1alpha1", "AddOnHubConfig", "addonhubconfigs", false),
    Kind(ADDON, "v1alpha1", "AddOnDeploymentConfig", "addondeploymentconfigs", true),
    Kind(ADDON, "v1alpha1", "AddOnTemplate", "addontemplates", false),
    Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false),
];

/// Kinds of the hub itself that are put or taken away here.
const CORE: [(&str, &str, &str); 2] =
    [("ConfigMap", "api/v1", "configmaps"), ("Lease", "apis/coordination.k8s.io/v1", "leases")];

impl Kind {
    /// Where all objects of the kind are.
    pub(crate) fn path(&self) -> String {
        format!("/apis/{}/{}/{}", self.0, self.1, self.3)
    }
}

#[derive(Clone)]
pub(crate) struct Hand {
    router: Router,
}

/// The API of a hub, for one who may do everything.
pub(crate) fn router(hub: &Hub) -> Router {
    hub.router().layer(axum::Extension(Identity::new("system:admin", Role::Admin)))
}

/// Where an object's siblings are, and its name.
fn place(object: &Value) -> (String, &str) {
    let name = object["metadata"]["name"].as_str().unwrap();
    if object["kind"] == "Namespace" {
        return ("/api/v1/namespaces".into(), name);
    }
    for (kind, version, plural) in CORE {
        if object["kind"] == kind {
            let namespace = object["metadata"]["namespace"].as_str().unwrap();
            return (format!("/{version}/namespaces/{namespace}/{plural}"), name);
        }
    }
    let Kind(group, version, _, plural, namespaced) =
        KINDS.iter().find(|kind| object["kind"] == kind.2).unwrap_or_else(|| panic!("{object}"));
    let within = match (namespaced, object["metadata"]["namespace"].as_str()) {
        (true, Some(namespace)) => format!("namespaces/{namespace}/"),
        _ => String::new(),
    };
    (format!("/apis/{group}/{version}/{within}{plural}"), name)
}

impl Hand {
    pub(crate) fn new(router: Router) -> Self {
        Self { router }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Body) {
        let format =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", format);
        let request =
            request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        (answer.status().as_u16(), answer.into_body())
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let (code, body) = self.send(method, path, body).await;
        let body = to_bytes(body, usize::MAX).await.unwrap();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let (code, object) = self.call(Method::GET, path, None).await;
        (code == 200).then_some(object)
    }

    pub(crate) async fn patch(&self, path: &str, patch: &Value) {
        let (code, answer) = self.call(Method::PATCH, path, Some(patch)).await;
        assert!(code < 300 || code == 404, "{path}: {answer}");
    }

    /// Creates an object, or merges it over the one that is there; then its status, where it has
    /// one.
    pub(crate) async fn put(&self, object: &Value) {
        let (siblings, name) = place(object);
        let path = format!("{siblings}/{name}");
        let (code, answer) = match self.get(&path).await {
            Some(_) => self.call(Method::PATCH, &path, Some(object)).await,
            None => self.call(Method::POST, &siblings, Some(object)).await,
        };
        assert!(code < 300, "{name}: {answer}");
        if object["status"].is_object() {
            self.patch(&format!("{path}/status"), &json!({"status": object["status"]})).await;
        }
    }

    /// Takes an object away, if it is there.
    pub(crate) async fn delete(&self, object: &Value) {
        let (siblings, name) = place(object);
        let (code, answer) = self.call(Method::DELETE, &format!("{siblings}/{name}"), None).await;
        assert!(code < 300 || code == 404, "{name}: {answer}");
    }

    pub(crate) async fn find(&self, object: &Value) -> Option<Value> {
        let (siblings, name) = place(object);
        self.get(&format!("{siblings}/{name}")).await
    }

    pub(crate) async fn list(&self, kind: &Kind) -> Vec<Value> {
        let list = self.get(&kind.path()).await.unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// What happens to the objects of a kind after a revision, for so many seconds.
    pub(crate) async fn watch(
        &self,
        kind: &Kind,
        after: u64,
        seconds: u64,
    ) -> impl Stream<Item = Value> + Send + use<> {
        let query = format!("watch=1&resourceVersion={after}&timeoutSeconds={seconds}");
        let (_, body) = self.send(Method::GET, &format!("{}?{query}", kind.path()), None).await;
        body.into_data_stream().map(|frame| serde_json::from_slice(&frame.unwrap()).unwrap())
    }
}
