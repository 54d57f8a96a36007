//! v1beta1 of the add-on kinds on the embedded hub: both versions are the same objects.

#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use aviary_api::crds::{self, ConversionService};
use aviary_hub::{Converter, Hub, HubOptions};
use futures_util::StreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};

const ALPHA: &str = "addon.open-cluster-management.io/v1alpha1";
const BETA: &str = "addon.open-cluster-management.io/v1beta1";
const INSTALL_NAMESPACE: &str = "addon.open-cluster-management.io/v1alpha1-install-namespace";

async fn hub() -> (Hub, Client) {
    let converter = Converter::new(|object, to| {
        aviary_api::convert::convert(object, to).map_err(|error| error.to_string())
    });
    let converters: BTreeMap<String, Converter> =
        crds::CONVERTED.iter().map(|name| ((*name).to_owned(), converter.clone())).collect();
    let hub = Hub::ephemeral(HubOptions { converters, ..HubOptions::default() }).await.unwrap();
    let client = hub.client();
    let service =
        ConversionService { namespace: "a", name: "b", port: 443, path: "/convert", ca_bundle: None };
    for crd in crds::with_beta(&service) {
        aviary_testing::put(&client, &serde_json::to_value(&crd).unwrap()).await;
    }
    aviary_testing::put(&client, &aviary_testing::objects::namespace("c1")).await;
    (hub, client)
}

fn addon(api_version: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": "ClusterManagementAddOn", "metadata": {"name": "a"}, "spec": spec})
}

fn instance(api_version: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": "ManagedClusterAddOn",
        "metadata": {"name": "a", "namespace": "c1", "annotations": annotations}, "spec": {},
    })
}

async fn read(client: &Client, object: &Value) -> Value {
    let found = aviary_testing::api_of(client, object).get(aviary_testing::name_of(object)).await.unwrap();
    serde_json::to_value(found).unwrap()
}

async fn create(client: &Client, object: &Value) -> Result<DynamicObject, kube::Error> {
    let api = aviary_testing::api_of(client, object);
    api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap()).await
}

#[tokio::test]
async fn an_add_on_of_one_version_is_read_listed_and_watched_in_the_other() {
    let (_hub, client) = hub().await;
    let alpha = addon(ALPHA, json!({}));
    let beta = addon(
        BETA,
        json!({"defaultConfigs": [{"group": "x.io", "resource": "as", "name": "__reserved_no_default__"},
            {"group": "x.io", "resource": "bs", "name": "b"}]}),
    );
    let watched: Api<DynamicObject> = aviary_testing::api_of(&client, &alpha);
    let mut events = watched.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    create(&client, &beta).await.unwrap();

    let expected = json!([{"group": "x.io", "resource": "as"},
        {"group": "x.io", "resource": "bs", "defaultConfig": {"name": "b"}}]);
    let stored = read(&client, &alpha).await;
    assert_eq!(stored["spec"]["supportedConfigs"], expected);
    assert_eq!(stored["spec"].get("defaultConfigs"), None);
    assert_eq!(stored["metadata"].get("annotations"), None);
    let Some(Ok(WatchEvent::Added(seen))) = events.next().await else { panic!("no event") };
    assert_eq!(
        (&seen.data["spec"]["supportedConfigs"], seen.types.unwrap().api_version),
        (&expected, ALPHA.to_owned())
    );
    let listed = aviary_testing::api_of(&client, &beta).list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items[0].data["spec"]["defaultConfigs"], beta["spec"]["defaultConfigs"]);
    assert_eq!(read(&client, &beta).await["spec"]["defaultConfigs"], beta["spec"]["defaultConfigs"]);
}

#[tokio::test]
async fn a_patch_in_v1beta1_keeps_what_only_v1alpha1_has() {
    let (_hub, client) = hub().await;
    let spec = json!({"addOnConfiguration": {"crName": "old"}, "defaultConfigs": [{"resource": "as", "name": "a"}],
        "installStrategy": {"type": "ClusterLabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}}});
    let alpha = addon(ALPHA, spec);
    create(&client, &alpha).await.unwrap();
    let before = read(&client, &alpha).await;
    let beta = aviary_testing::api_of(&client, &addon(BETA, json!({})));
    let label = Patch::Merge(json!({"metadata": {"labels": {"l": "v"}}}));
    beta.patch("a", &PatchParams::default(), &label).await.unwrap();
    let after = read(&client, &alpha).await;
    assert_eq!(after["metadata"]["labels"], json!({"l": "v"}));
    assert_eq!(
        (&after["spec"], &after["metadata"]["generation"]),
        (&before["spec"], &before["metadata"]["generation"])
    );
    let mut names: Vec<&String> = after["metadata"].as_object().unwrap().keys().collect();
    names.retain(|name| *name == "annotations");
    assert!(names.is_empty(), "{after}");
}

#[tokio::test]
async fn a_status_of_v1beta1_is_stored_and_a_patch_that_changes_nothing_writes_nothing() {
    let (_hub, client) = hub().await;
    let beta = instance(BETA, json!({INSTALL_NAMESPACE: "agents"}));
    create(&client, &beta).await.unwrap();
    let status = json!({"registrations": [{"type": "kubeClient", "kubeClient": {"driver": "csr", "subject": {"user": "u"}}}]});
    let api = aviary_testing::api_of(&client, &beta);
    let patch = Patch::Merge(json!({"status": status}));
    let once = api.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(once.data["status"], status);
    let stored = read(&client, &instance(ALPHA, json!({}))).await;
    assert_eq!(stored["spec"], json!({"installNamespace": "agents"}));
    assert_eq!(
        stored["status"],
        json!({"kubeClientDriver": "csr",
            "registrations": [{"signerName": "kubernetes.io/kube-apiserver-client", "subject": {"user": "u"}}]})
    );
    let again = api.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(again.metadata.resource_version, once.metadata.resource_version);
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_with_the_reason() {
    let (_hub, client) = hub().await;
    let refused = create(&client, &instance(BETA, json!({INSTALL_NAMESPACE: "No Such"}))).await.unwrap_err();
    assert!(refused.to_string().contains("\"No Such\" is not the name of a namespace"), "{refused}");
    let reserved = json!({"defaultConfigs": [{"resource": "as", "name": "__reserved_no_default__"}]});
    let refused = create(&client, &addon(ALPHA, reserved.clone())).await.unwrap_err();
    assert!(refused.to_string().contains("__reserved_no_default__ is not the name of a config"), "{refused}");
    create(&client, &addon(BETA, reserved)).await.unwrap();
    let unknown = instance(BETA, json!({}));
    let placed = json!({"installStrategy": {"type": "Placements", "placements": [{"name": "p", "namespace": "n",
        "configs": [{"resource": "as", "name": "__reserved_no_default__"}]}]}});
    let refused = create(&client, &addon(BETA, placed)).await.unwrap_err();
    assert!(refused.to_string().contains("__reserved_no_default__ is not the name of a config"), "{refused}");
    create(&client, &unknown).await.unwrap();
}

/// A hub without the function must not pretend that the versions are equal.
#[tokio::test]
async fn a_hub_without_the_conversion_refuses_the_definitions() {
    let hub = Hub::ephemeral(HubOptions::default()).await.unwrap();
    let service =
        ConversionService { namespace: "a", name: "b", port: 443, path: "/convert", ca_bundle: None };
    let crd = serde_json::to_value(&crds::with_beta(&service)[0]).unwrap();
    let refused = aviary_testing::try_put(&hub.client(), &crd, false).await.unwrap_err();
    assert!(refused.to_string().contains("this hub calls no webhooks"), "{refused}");
}
