//! Patches of any type: preconditions, identity, and what stays unchanged.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, revision_of, rv_of, uid_of};
use crate::world::{JSON_PATCH, World};

pub fn checks() -> Vec<Check> {
    checks![
        a_patch_answers_200_with_a_higher_revision,
        a_version_in_a_patch_is_a_precondition,
        a_matching_version_in_a_patch_passes,
        racing_patches_without_a_version_all_win,
        an_absent_object_is_not_found,
        a_patch_cannot_change_the_name,
        a_patch_cannot_change_the_namespace,
        another_uid_in_a_patch_is_invalid,
        a_patch_cannot_change_the_kind,
        a_patched_object_is_validated,
        a_patch_with_an_unknown_content_type_is_refused,
        a_patch_with_plain_json_is_refused,
        a_patch_that_is_no_json_is_refused,
        a_patch_of_a_collection_is_not_allowed,
        a_patch_can_remove_a_finalizer_by_position,
    ]
}

async fn made(w: &World) -> Value {
    w.post(&w.configmaps(), &configmap("a", json!({"k": "v"}))).await.created()
}

async fn a_patch_answers_200_with_a_higher_revision(w: World) {
    let old = made(&w).await;
    let new = w.merge(&w.configmap("a"), &json!({"data": {"l": "w"}})).await.ok();
    assert_eq!(new["data"], json!({"k": "v", "l": "w"}));
    assert!(revision_of(&old) < revision_of(&new));
}

async fn a_version_in_a_patch_is_a_precondition(w: World) {
    let old = made(&w).await;
    w.merge(&w.configmap("a"), &json!({"data": {"k": "w"}})).await.ok();
    let change = json!({"metadata": {"resourceVersion": rv_of(&old)}, "data": {"k": "x"}});
    let refusal = w.merge(&w.configmap("a"), &change).await.refused(409, "Conflict");
    refusal.says("the object has been modified").about("", "configmaps", "a");
}

async fn a_matching_version_in_a_patch_passes(w: World) {
    let old = made(&w).await;
    let change = json!({"metadata": {"resourceVersion": rv_of(&old)}, "data": {"k": "x"}});
    assert_eq!(w.merge(&w.configmap("a"), &change).await.ok()["data"]["k"], "x");
}

async fn racing_patches_without_a_version_all_win(w: World) {
    made(&w).await;
    let path = w.configmap("a");
    // kube-apiserver tries five times: with more writers, some may get a conflict there.
    let changes: Vec<_> = (0..4).map(|n| json!({"data": {format!("n{n}"): "v"}})).collect();
    for answer in join_all(changes.iter().map(|change| w.merge(&path, change))).await {
        answer.ok();
    }
    let data = w.get(&path).await.ok()["data"].clone();
    assert_eq!(data, json!({"k": "v", "n0": "v", "n1": "v", "n2": "v", "n3": "v"}));
}

async fn an_absent_object_is_not_found(w: World) {
    w.merge(&w.configmap("a"), &json!({})).await.refused(404, "NotFound").about("", "configmaps", "a");
    let path = format!("{}/a", w.widgets().await);
    w.merge(&path, &json!({})).await.refused(404, "NotFound").about(w.group(), "widgets", "a");
}

async fn a_patch_cannot_change_the_name(w: World) {
    made(&w).await;
    let refusal =
        w.merge(&w.configmap("a"), &json!({"metadata": {"name": "b"}})).await.refused(400, "BadRequest");
    refusal.says("the name of the object (b) does not match the name on the URL (a)");
}

async fn a_patch_cannot_change_the_namespace(w: World) {
    made(&w).await;
    let change = json!({"metadata": {"namespace": "elsewhere"}});
    w.merge(&w.configmap("a"), &change).await.refused(400, "BadRequest").says("namespace");
}

async fn another_uid_in_a_patch_is_invalid(w: World) {
    let old = made(&w).await;
    let change = json!({"metadata": {"uid": "11111111-1111-1111-1111-111111111111"}});
    // Not a conflict, as it is for an update.
    w.merge(&w.configmap("a"), &change)
        .await
        .refused(422, "Invalid")
        .cause("FieldValueInvalid", "metadata.uid");
    w.merge(&w.configmap("a"), &json!({"metadata": {"uid": uid_of(&old)}, "data": {"k": "w"}})).await.ok();
}

async fn a_patch_cannot_change_the_kind(w: World) {
    made(&w).await;
    for change in [json!({"kind": "Secret"}), json!({"apiVersion": "v2"})] {
        let refusal = w.merge(&w.configmap("a"), &change).await.refused(422, "Invalid");
        refusal.about("", "", "").cause("FieldValueInvalid", "patch");
    }
    assert_eq!(w.get(&w.configmap("a")).await.ok()["data"]["k"], "v");
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({}))).await.created();
    let refusal = w.merge(&format!("{path}/a"), &json!({"kind": "Gadget"})).await.refused(422, "Invalid");
    refusal.about(w.group(), "Gadget", "a").cause("FieldValueInvalid", "kind");
    let version = json!({"apiVersion": format!("{}/v2", w.group())});
    let refusal = w.merge(&format!("{path}/a"), &version).await.refused(422, "Invalid");
    refusal.about(w.group(), "Widget", "a").cause("FieldValueInvalid", "apiVersion");
}

async fn a_patched_object_is_validated(w: World) {
    made(&w).await;
    let refusal = w.merge(&w.configmap("a"), &json!({"data": {"a/b": "v"}})).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "data[a/b]");
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({}))).await.created();
    let refusal = w.merge(&format!("{path}/a"), &json!({"spec": {"size": -1}})).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "spec.size");
}

async fn a_patch_with_an_unknown_content_type_is_refused(w: World) {
    made(&w).await;
    w.patch(&w.configmap("a"), "text/plain", &json!({})).await.refused(415, "UnsupportedMediaType");
}

async fn a_patch_with_plain_json_is_refused(w: World) {
    made(&w).await;
    w.patch(&w.configmap("a"), "application/json", &json!({})).await.refused(415, "UnsupportedMediaType");
}

async fn a_patch_that_is_no_json_is_refused(w: World) {
    made(&w).await;
    for content_type in [crate::world::MERGE, JSON_PATCH, crate::world::STRATEGIC] {
        let answer =
            w.send("PATCH", &w.configmap("a"), &[("content-type", content_type)], b"{]".to_vec()).await;
        answer.refused(400, "BadRequest");
    }
}

async fn a_patch_of_a_collection_is_not_allowed(w: World) {
    w.merge(&w.configmaps(), &json!({})).await.refused(405, "MethodNotAllowed");
}

async fn a_patch_can_remove_a_finalizer_by_position(w: World) {
    let path = w.widgets().await;
    let mut body = w.widget("a", json!({}));
    body["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    w.post(&path, &body).await.created();
    let change = json!([
        {"op": "test", "path": "/metadata/finalizers/1", "value": "example.com/two"},
        {"op": "remove", "path": "/metadata/finalizers/1"},
    ]);
    let new = w.patch(&format!("{path}/a"), JSON_PATCH, &change).await.ok();
    assert_eq!(new["metadata"]["finalizers"], json!(["example.com/one"]));
    w.merge(&format!("{path}/a"), &json!({"metadata": {"finalizers": null}})).await.ok();
}
