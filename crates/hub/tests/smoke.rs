//! The hub through a real client, in process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use aviary_hub::{Hub, Options};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

#[tokio::test]
async fn an_object_is_created_changed_watched_and_deleted() {
    let hub = Hub::ephemeral(Options::default()).await.unwrap();
    let client = hub.client();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let made: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"k": "1"}})).unwrap();
    let made = maps.create(&PostParams::default(), &made).await.unwrap();
    let version = made.metadata.resource_version.clone().unwrap();
    let patched =
        maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "2"}}))).await.unwrap();
    assert_ne!(patched.metadata.resource_version, made.metadata.resource_version);
    let stale = maps.replace("a", &PostParams::default(), &made).await.unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.code == 409));
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
    let events: Vec<_> = maps
        .watch(&WatchParams::default().timeout(1), &version)
        .await
        .unwrap()
        .take(2)
        .try_collect()
        .await
        .unwrap();
    assert!(matches!(&events[..], [WatchEvent::Modified(_), WatchEvent::Deleted(_)]), "{events:?}");
    let all: Api<Namespace> = Api::all(client);
    assert_eq!(all.list(&ListParams::default()).await.unwrap().items.len(), 2);
}
