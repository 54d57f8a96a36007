//! Writes objects to a hub.

use futures_util::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::{GIVE_UP, objects};

/// The API for objects of this kind and namespace.
pub fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &kind),
        namespace => Api::namespaced_with(client.clone(), namespace, &kind),
    }
}

pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

/// Creates an object, or merges it into the existing one, if the hub accepts it.
pub async fn try_put(client: &Client, object: &Value, dry_run: bool) -> Result<(), kube::Error> {
    let api = api_of(client, object);
    let params = PostParams { dry_run, ..PostParams::default() };
    match api.create(&params, &serde_json::from_value(object.clone()).unwrap()).await {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
            let params = PatchParams { dry_run, ..PatchParams::default() };
            api.patch(name_of(object), &params, &Patch::Merge(object)).await.map(drop)
        }
        other => other.map(drop),
    }
}

/// Creates an object, or merges it into the existing one. Its status is ignored.
pub async fn put(client: &Client, object: &Value) {
    if let Err(error) = try_put(client, object, false).await {
        panic!("{}: {error}", name_of(object));
    }
}

/// Merges the status of an object into the existing one.
pub async fn put_status(client: &Client, object: &Value) {
    let patch = Patch::Merge(json!({"status": object["status"]}));
    let params = PatchParams::default();
    if let Err(error) = api_of(client, object).patch_status(name_of(object), &params, &patch).await {
        panic!("status of {}: {error}", name_of(object));
    }
}

/// Writes an object, and its status if it has one.
pub async fn put_whole(client: &Client, object: &Value) {
    put(client, object).await;
    if !object["status"].is_null() {
        put_status(client, object).await;
    }
}

/// Installs the CRDs, and waits until the hub serves them.
pub async fn install_crds(client: &Client) {
    let served: Api<CustomResourceDefinition> = Api::all(client.clone());
    join_all(aviary_api::crds::all().into_iter().map(|crd| {
        let served = served.clone();
        async move {
            put(client, &serde_json::to_value(&crd).unwrap()).await;
            let name = crd.name_any();
            let established = await_condition(served, &name, conditions::is_crd_established());
            let waited = tokio::time::timeout(GIVE_UP, established).await;
            waited.unwrap_or_else(|_| panic!("{name} is not established")).unwrap();
        }
    }))
    .await;
}

/// Installs the CRDs and the manager's namespace.
pub async fn prepare_hub(client: &Client) {
    install_crds(client).await;
    put(client, &objects::namespace(objects::MANAGER_NAMESPACE)).await;
}
