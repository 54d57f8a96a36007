//! PartialObjectMetadata, for clients that need only metadata.

use serde_json::json;

use crate::check::{Check, checks};
use crate::objects::{configmap, name_of, names_in, rv_of};
use crate::world::{MERGE, World};

pub fn checks() -> Vec<Check> {
    checks![
        a_get_can_give_metadata_alone,
        a_list_can_give_metadata_alone,
        a_watch_can_give_metadata_alone,
        a_patch_can_answer_metadata_alone,
        a_create_can_answer_metadata_alone,
        the_metadata_of_custom_resources_can_be_had_too,
        the_client_of_go_is_served_metadata_by_its_own_accept_header,
    ]
}

const ONE: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const MANY: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

async fn made(w: &World) -> serde_json::Value {
    w.post(&w.configmaps(), &configmap("a", json!({"k": "v"}))).await.created()
}

async fn a_get_can_give_metadata_alone(w: World) {
    let made = made(&w).await;
    let answer = w.get_as(&w.configmap("a"), ONE).await.ok();
    let whole = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]});
    assert_eq!(answer, whole);
}

async fn a_list_can_give_metadata_alone(w: World) {
    made(&w).await;
    let list = w.get_as(&w.configmaps(), MANY).await.ok();
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&"PartialObjectMetadataList".into(), &"meta.k8s.io/v1".into())
    );
    assert_eq!((names_in(&list), list["items"][0].get("data")), (vec!["a"], None));
    rv_of(&list);
}

async fn a_watch_can_give_metadata_alone(w: World) {
    let made = made(&w).await;
    let mut watch = w.watch_as(&w.configmaps(), ONE).await;
    let event = watch.sees("ADDED", "a").await;
    assert_eq!(
        (&event["kind"], event.get("data"), rv_of(&event)),
        (&"PartialObjectMetadata".into(), None, rv_of(&made))
    );
}

async fn a_patch_can_answer_metadata_alone(w: World) {
    made(&w).await;
    let body = json!({"data": {"k": "w"}}).to_string().into_bytes();
    let answer =
        w.send("PATCH", &w.configmap("a"), &[("content-type", MERGE), ("accept", ONE)], body).await.ok();
    assert_eq!(
        (&answer["kind"], name_of(&answer), answer.get("data")),
        (&"PartialObjectMetadata".into(), "a", None)
    );
}

async fn a_create_can_answer_metadata_alone(w: World) {
    let body = configmap("a", json!({})).to_string().into_bytes();
    let headers = [("content-type", crate::world::JSON), ("accept", ONE)];
    let answer = w.send("POST", &w.configmaps(), &headers, body).await.created();
    assert_eq!((&answer["kind"], name_of(&answer)), (&"PartialObjectMetadata".into(), "a"));
}

async fn the_metadata_of_custom_resources_can_be_had_too(w: World) {
    let path = w.widgets().await;
    let made = w.post(&path, &w.widget("a", json!({"size": 1}))).await.created();
    let one = w.get_as(&format!("{path}/a"), ONE).await.ok();
    assert_eq!((&one["metadata"], one.get("spec")), (&made["metadata"], None));
    assert_eq!(names_in(&w.get_as(&path, MANY).await.ok()), ["a"]);
}

async fn the_client_of_go_is_served_metadata_by_its_own_accept_header(w: World) {
    made(&w).await;
    let accept = format!(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,{ONE},application/json"
    );
    let answer = w.get_as(&w.configmap("a"), &accept).await;
    assert_eq!(answer.status, 200);
    // Protobuf if the server supports it, otherwise the next in the list.
    if answer.header("content-type").starts_with("application/json") {
        assert_eq!(answer.json()["kind"], "PartialObjectMetadata");
    }
}
