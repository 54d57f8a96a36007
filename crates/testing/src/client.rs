//! Writes objects to a hub.

use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use crate::{GIVE_UP, objects, ocm};

/// How often the hub is asked for what it does not announce.
const POLL: Duration = Duration::from_millis(50);

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
        panic!("{}: {error:?}", name_of(object));
    }
}

/// Merges the status of an object into the existing one.
pub async fn put_status(client: &Client, object: &Value) {
    let patch = Patch::Merge(json!({"status": object["status"]}));
    let params = PatchParams::default();
    if let Err(error) = api_of(client, object).patch_status(name_of(object), &params, &patch).await {
        panic!("status of {}: {error:?}", name_of(object));
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
    install(client, as_values(&aviary_api::crds::all())).await;
    until_durations_default_to(client, &Value::Null).await;
}

/// Installs CRDs in the shape of OCM's, and those that Aviary adds to an OCM hub. Waits until the
/// hub serves them. See [`ocm::crds`] for `conversion`.
pub async fn install_ocm_crds(client: &Client, conversion: Option<&Value>) {
    let added = as_values(&aviary_api::crds::added_to_ocm());
    install(client, ocm::crds(conversion).into_iter().chain(added).collect()).await;
    until_durations_default_to(client, &json!("0")).await;
}

/// Waits until the hub applies the schema of add-ons that has just been installed: on a hub that
/// had another one, it does so some time after it has accepted the CRD. OCM's schema sets
/// `minSuccessTime`; ours does not.
async fn until_durations_default_to(client: &Client, expected: &Value) {
    let probe = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "aviary-testing-probe"},
        "spec": {"installStrategy": {"type": "Placements", "placements": [
            {"name": "any", "namespace": "default", "rolloutStrategy": {"type": "Progressive", "progressive": {}}},
        ]}},
    });
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let field = "/spec/installStrategy/placements/0/rolloutStrategy/progressive/minSuccessTime";
    let applied = async {
        loop {
            let made =
                api_of(client, &probe).create(&params, &serde_json::from_value(probe.clone()).unwrap()).await;
            if made.is_ok_and(|made| made.data.pointer(field).unwrap_or(&Value::Null) == expected) {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(GIVE_UP, applied).await.expect("the hub to apply the schema of add-ons");
}

fn as_values(crds: &[CustomResourceDefinition]) -> Vec<Value> {
    crds.iter().map(|crd| serde_json::to_value(crd).unwrap()).collect()
}

async fn install(client: &Client, crds: Vec<Value>) {
    let served: Api<CustomResourceDefinition> = Api::all(client.clone());
    join_all(crds.into_iter().map(|crd| {
        let served = served.clone();
        async move {
            put(client, &crd).await;
            let name = name_of(&crd);
            let established = await_condition(served, name, conditions::is_crd_established());
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

/// Installs what an OCM hub with Aviary has: OCM's CRDs, ours, and the manager's namespace.
pub async fn prepare_ocm_hub(client: &Client, conversion: Option<&Value>) {
    install_ocm_crds(client, conversion).await;
    put(client, &objects::namespace(objects::MANAGER_NAMESPACE)).await;
}
