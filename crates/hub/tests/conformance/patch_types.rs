//! The effect of each type of patch: JSON merge patch, JSON patch, strategic merge patch.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, secret};
use crate::world::{JSON_PATCH, STRATEGIC, World};

pub fn checks() -> Vec<Check> {
    checks![
        a_merge_patch_sets_adds_and_removes_by_null,
        a_merge_patch_replaces_a_list,
        a_merge_patch_makes_the_objects_on_its_way,
        a_json_patch_adds_replaces_removes_moves_and_copies,
        a_json_patch_reaches_escaped_keys,
        a_failed_test_of_a_json_patch_is_invalid,
        a_passed_test_of_a_json_patch_lets_the_rest_happen,
        a_json_patch_of_an_absent_path_is_invalid,
        a_json_patch_that_is_no_list_is_refused,
        a_json_patch_with_an_unknown_operation_is_refused,
        a_json_patch_is_all_or_nothing,
        a_strategic_patch_merges_a_configmap,
        a_strategic_patch_merges_finalizers_and_owners,
        a_strategic_patch_can_replace_and_delete_by_directive,
        a_custom_resource_refuses_a_strategic_patch,
        a_merge_patch_of_secret_string_data_is_stored_as_data,
    ]
}

async fn made(w: &World) -> String {
    w.post(&w.configmaps(), &configmap("a", json!({"k": "v", "l": "w"}))).await.created();
    w.configmap("a")
}

async fn widget(w: &World, spec: Value) -> String {
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", spec)).await.created();
    format!("{path}/a")
}

async fn a_merge_patch_sets_adds_and_removes_by_null(w: World) {
    let path = made(&w).await;
    let new = w.merge(&path, &json!({"data": {"k": "x", "l": null, "m": "y", "absent": null}})).await.ok();
    assert_eq!(new["data"], json!({"k": "x", "m": "y"}));
    assert_eq!(w.merge(&path, &json!({"data": null})).await.ok().get("data"), None);
}

async fn a_merge_patch_replaces_a_list(w: World) {
    let path = widget(&w, json!({"tags": ["a", "b"]})).await;
    assert_eq!(w.merge(&path, &json!({"spec": {"tags": ["c"]}})).await.ok()["spec"]["tags"], json!(["c"]));
}

async fn a_merge_patch_makes_the_objects_on_its_way(w: World) {
    let path = made(&w).await;
    let new = w.merge(&path, &json!({"metadata": {"annotations": {"a": "b", "gone": null}}})).await.ok();
    assert_eq!(new["metadata"]["annotations"], json!({"a": "b"}));
}

async fn a_json_patch_adds_replaces_removes_moves_and_copies(w: World) {
    let path = made(&w).await;
    let change = json!([
        {"op": "add", "path": "/data/m", "value": "x"},
        {"op": "replace", "path": "/data/k", "value": "y"},
        {"op": "copy", "from": "/data/k", "path": "/data/n"},
        {"op": "move", "from": "/data/l", "path": "/data/o"},
        {"op": "remove", "path": "/data/m"},
    ]);
    let new = w.patch(&path, JSON_PATCH, &change).await.ok();
    assert_eq!(new["data"], json!({"k": "y", "n": "y", "o": "w"}));
}

async fn a_json_patch_reaches_escaped_keys(w: World) {
    let path = made(&w).await;
    let change = json!([
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/example.com~1a", "value": "v"},
    ]);
    let new = w.patch(&path, JSON_PATCH, &change).await.ok();
    assert_eq!(new["metadata"]["annotations"], json!({"example.com/a": "v"}));
}

async fn a_failed_test_of_a_json_patch_is_invalid(w: World) {
    let path = made(&w).await;
    let change =
        json!([{"op": "test", "path": "/data/k", "value": "other"}, {"op": "remove", "path": "/data/k"}]);
    w.patch(&path, JSON_PATCH, &change).await.refused(422, "Invalid");
    assert_eq!(w.get(&path).await.ok()["data"]["k"], "v");
}

async fn a_passed_test_of_a_json_patch_lets_the_rest_happen(w: World) {
    let path = made(&w).await;
    let change =
        json!([{"op": "test", "path": "/data/k", "value": "v"}, {"op": "remove", "path": "/data/k"}]);
    assert_eq!(w.patch(&path, JSON_PATCH, &change).await.ok()["data"], json!({"l": "w"}));
}

async fn a_json_patch_of_an_absent_path_is_invalid(w: World) {
    let path = made(&w).await;
    // kube-apiserver lets `replace` add an absent key, unlike RFC 6902.
    let change = json!([{"op": "remove", "path": "/data/absent"}]);
    w.patch(&path, JSON_PATCH, &change).await.refused(422, "Invalid");
    let change = json!([{"op": "add", "path": "/absent/deep/key", "value": "v"}]);
    w.patch(&path, JSON_PATCH, &change).await.refused(422, "Invalid");
}

async fn a_json_patch_that_is_no_list_is_refused(w: World) {
    let path = made(&w).await;
    w.patch(&path, JSON_PATCH, &json!({"op": "remove"})).await.refused(400, "BadRequest");
}

async fn a_json_patch_with_an_unknown_operation_is_refused(w: World) {
    let path = made(&w).await;
    let answer = w.patch(&path, JSON_PATCH, &json!([{"op": "shuffle", "path": "/data"}])).await;
    answer.refused(422, "Invalid");
}

async fn a_json_patch_is_all_or_nothing(w: World) {
    let path = made(&w).await;
    let change = json!([{"op": "remove", "path": "/data/k"}, {"op": "remove", "path": "/data/absent"}]);
    w.patch(&path, JSON_PATCH, &change).await.refused(422, "Invalid");
    assert_eq!(w.get(&path).await.ok()["data"], json!({"k": "v", "l": "w"}));
}

async fn a_strategic_patch_merges_a_configmap(w: World) {
    let path = made(&w).await;
    let new = w.patch(&path, STRATEGIC, &json!({"data": {"k": "x", "l": null, "m": "y"}})).await.ok();
    assert_eq!(new["data"], json!({"k": "x", "m": "y"}));
}

async fn a_strategic_patch_merges_finalizers_and_owners(w: World) {
    let path = made(&w).await;
    // Finalizers merge by value and owners by UID; a merge patch would replace the lists.
    for name in ["example.com/one", "example.com/two"] {
        w.patch(&path, STRATEGIC, &json!({"metadata": {"finalizers": [name]}})).await.ok();
    }
    let owner = |uid: &str, name: &str| json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": name, "uid": uid}]}});
    // The namespace is an existing owner, so nothing is garbage-collected meanwhile.
    let ns = w.get(&format!("/api/v1/namespaces/{}", w.ns)).await.ok();
    let uid = crate::objects::uid_of(&ns);
    w.patch(&path, STRATEGIC, &owner(&uid, &w.ns)).await.ok();
    let new = w.patch(&path, STRATEGIC, &owner(&uid, &w.ns)).await.ok();
    let mut finalizers = new["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.sort_by_key(ToString::to_string);
    assert_eq!(finalizers, ["example.com/one", "example.com/two"]);
    assert_eq!(new["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    w.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn a_strategic_patch_can_replace_and_delete_by_directive(w: World) {
    let path = made(&w).await;
    let new = w.patch(&path, STRATEGIC, &json!({"data": {"$patch": "replace", "only": "this"}})).await.ok();
    assert_eq!(new["data"], json!({"only": "this"}));
    let new = w.patch(&path, STRATEGIC, &json!({"data": {"$patch": "delete"}})).await.ok();
    assert_eq!(new.get("data"), None);
}

async fn a_custom_resource_refuses_a_strategic_patch(w: World) {
    let path = widget(&w, json!({})).await;
    let refusal =
        w.patch(&path, STRATEGIC, &json!({"spec": {"size": 1}})).await.refused(415, "UnsupportedMediaType");
    refusal.says("application/merge-patch+json");
}

async fn a_merge_patch_of_secret_string_data_is_stored_as_data(w: World) {
    w.post(&w.core("secrets"), &secret("a", json!({"k": "dg=="}))).await.created();
    let new = w.merge(&format!("{}/a", w.core("secrets")), &json!({"stringData": {"l": "w"}})).await.ok();
    assert_eq!((&new["data"], new.get("stringData")), (&json!({"k": "dg==", "l": "dw=="}), None));
}
