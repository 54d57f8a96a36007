//! The status subresource: two writers of one object that cannot overwrite each other.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::crds::{crd, simple_schema};
use crate::objects::{configmap, generation_of, revision_of, with};
use crate::world::{JSON_PATCH, World, fresh};

pub fn checks() -> Vec<Check> {
    checks![
        a_create_drops_the_status,
        an_update_of_the_object_ignores_the_status,
        an_update_of_the_status_ignores_spec_and_labels,
        a_status_write_keeps_the_generation_and_raises_the_revision,
        a_status_write_with_a_stale_version_conflicts,
        a_status_write_needs_a_version,
        a_status_can_be_merge_patched,
        a_status_can_be_json_patched,
        a_merge_patch_of_the_object_cannot_change_the_status,
        a_status_write_is_seen_by_a_watch,
        the_status_endpoint_gives_the_whole_object,
        the_status_is_validated_by_the_schema,
        kinds_without_status_answer_404,
        without_the_subresource_status_is_a_field_like_others,
        the_status_of_an_absent_object_is_not_found,
        the_status_cannot_be_posted_or_deleted,
    ]
}

async fn widget(w: &World) -> (String, Value) {
    let path = w.widgets().await;
    let made = w.post(&path, &w.widget("a", json!({"size": 1}))).await.created();
    (format!("{path}/a"), made)
}

async fn a_create_drops_the_status(w: World) {
    let body = with(w.widget("a", json!({})), "/status", json!({"phase": "Ready"}));
    let made = w.post(&w.widgets().await, &body).await.created();
    assert_eq!(made.get("status"), None);
}

async fn an_update_of_the_object_ignores_the_status(w: World) {
    let (path, old) = widget(&w).await;
    let body = with(with(old, "/status/phase", "Ready".into()), "/spec/size", 2.into());
    let new = w.put(&path, &body).await.ok();
    assert_eq!((&new["spec"]["size"], new.get("status")), (&2.into(), None));
}

async fn an_update_of_the_status_ignores_spec_and_labels(w: World) {
    let (path, old) = widget(&w).await;
    let mut body = with(with(old, "/status/phase", "Ready".into()), "/spec/size", 2.into());
    body["metadata"]["labels"] = json!({"l": "v"});
    body["metadata"]["finalizers"] = json!(["example.com/f"]);
    let new = w.put(&format!("{path}/status"), &body).await.ok();
    assert_eq!((&new["spec"]["size"], &new["status"]["phase"]), (&1.into(), &"Ready".into()));
    assert_eq!((&new["metadata"]["labels"], &new["metadata"]["finalizers"]), (&Value::Null, &Value::Null));
}

async fn a_status_write_keeps_the_generation_and_raises_the_revision(w: World) {
    let (path, old) = widget(&w).await;
    let new =
        w.put(&format!("{path}/status"), &with(old.clone(), "/status/phase", "Ready".into())).await.ok();
    assert_eq!(generation_of(&new), 1);
    assert!(revision_of(&old) < revision_of(&new));
}

async fn a_status_write_with_a_stale_version_conflicts(w: World) {
    let (path, old) = widget(&w).await;
    w.put(&path, &with(old.clone(), "/spec/size", 2.into())).await.ok();
    let body = with(old, "/status/phase", "Ready".into());
    let refusal = w.put(&format!("{path}/status"), &body).await.refused(409, "Conflict");
    refusal.about(w.group(), "widgets", "a").says("the object has been modified");
}

async fn a_status_write_needs_a_version(w: World) {
    let (path, _) = widget(&w).await;
    let body = with(w.widget("a", json!({})), "/status/phase", "Ready".into());
    let refusal = w.put(&format!("{path}/status"), &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "metadata.resourceVersion");
}

async fn a_status_can_be_merge_patched(w: World) {
    let (path, _) = widget(&w).await;
    let change =
        json!({"status": {"phase": "Ready"}, "spec": {"size": 2}, "metadata": {"labels": {"l": "v"}}});
    let new = w.merge(&format!("{path}/status"), &change).await.ok();
    assert_eq!((&new["status"]["phase"], &new["spec"]["size"]), (&"Ready".into(), &1.into()));
    assert_eq!(new["metadata"]["labels"], Value::Null);
}

async fn a_status_can_be_json_patched(w: World) {
    let (path, _) = widget(&w).await;
    let change = json!([{"op": "add", "path": "/status", "value": {"phase": "Ready"}}]);
    let new = w.patch(&format!("{path}/status"), JSON_PATCH, &change).await.ok();
    assert_eq!(new["status"]["phase"], "Ready");
}

async fn a_merge_patch_of_the_object_cannot_change_the_status(w: World) {
    let (path, _) = widget(&w).await;
    w.merge(&format!("{path}/status"), &json!({"status": {"phase": "Ready"}})).await.ok();
    let new = w.merge(&path, &json!({"status": {"phase": "Lost"}, "spec": {"size": 2}})).await.ok();
    assert_eq!((&new["status"]["phase"], &new["spec"]["size"]), (&"Ready".into(), &2.into()));
    let new = w.merge(&path, &json!({"status": null})).await.ok();
    assert_eq!(new["status"]["phase"], "Ready");
}

async fn a_status_write_is_seen_by_a_watch(w: World) {
    let (path, _) = widget(&w).await;
    let mut watch = w.watch_from_now(&w.widgets().await).await;
    w.merge(&format!("{path}/status"), &json!({"status": {"phase": "Ready"}})).await.ok();
    assert_eq!(watch.sees("MODIFIED", "a").await["status"]["phase"], "Ready");
}

async fn the_status_endpoint_gives_the_whole_object(w: World) {
    let (path, made) = widget(&w).await;
    assert_eq!(w.get(&format!("{path}/status")).await.ok(), made);
}

async fn the_status_is_validated_by_the_schema(w: World) {
    let (path, _) = widget(&w).await;
    let refusal =
        w.merge(&format!("{path}/status"), &json!({"status": {"phase": 1}})).await.refused(422, "Invalid");
    refusal.cause("FieldValueTypeInvalid", "status.phase");
}

async fn kinds_without_status_answer_404(w: World) {
    w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    assert_eq!(w.get(&format!("{}/status", w.configmap("a"))).await.status, 404);
    let crd = crd(&format!("{}.conformance.test", fresh("bare")), simple_schema());
    let path = w.serve_crd(&crd).await;
    let body = json!({"apiVersion": format!("{}/v1", crd["spec"]["group"].as_str().unwrap()), "kind": "Gizmo", "metadata": {"name": "a"}});
    w.post(&path, &body).await.created();
    w.get(&format!("{path}/a/status")).await.refused(404, "NotFound");
}

async fn without_the_subresource_status_is_a_field_like_others(w: World) {
    let crd = crd(&format!("{}.conformance.test", fresh("plain")), simple_schema());
    let path = w.serve_crd(&crd).await;
    let version = format!("{}/v1", crd["spec"]["group"].as_str().unwrap());
    let body = json!({"apiVersion": version, "kind": "Gizmo", "metadata": {"name": "a"}, "status": {"phase": "Born"}});
    let made = w.post(&path, &body).await.created();
    assert_eq!(made["status"]["phase"], "Born");
    let new = w.merge(&format!("{path}/a"), &json!({"status": {"phase": "Grown"}})).await.ok();
    assert_eq!((&new["status"]["phase"], generation_of(&new)), (&"Grown".into(), 2));
}

async fn the_status_of_an_absent_object_is_not_found(w: World) {
    let path = format!("{}/absent/status", w.widgets().await);
    w.get(&path).await.refused(404, "NotFound").about(w.group(), "widgets", "absent");
    let body = with(w.widget("absent", json!({})), "/metadata/resourceVersion", "1".into());
    w.put(&path, &body).await.refused(404, "NotFound").about(w.group(), "widgets", "absent");
}

async fn the_status_cannot_be_posted_or_deleted(w: World) {
    let (path, made) = widget(&w).await;
    w.post(&format!("{path}/status"), &made).await.refused(405, "MethodNotAllowed");
    w.delete(&format!("{path}/status")).await.refused(405, "MethodNotAllowed");
}
