//! Server-side apply: fields have managers, and managers have conflicts.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::check::{Check, Need, checks};
use crate::objects::{configmap, rv_of, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    let all = checks![
        an_apply_creates_what_is_absent,
        an_apply_needs_a_field_manager,
        an_apply_without_change_keeps_the_version,
        an_apply_removes_what_it_no_longer_names,
        another_managers_value_is_a_conflict,
        a_forced_apply_takes_the_field_over,
        two_managers_of_the_same_value_share_it,
        a_list_map_is_merged_by_its_keys,
        managed_fields_tell_who_manages_what,
        an_update_manages_what_it_changes,
        an_applied_status_is_managed_apart,
        managed_fields_in_an_apply_are_refused,
        a_dry_apply_stores_nothing,
    ];
    all.into_iter().map(|check| check.needing(Need::Apply)).collect()
}

async fn apply(w: &World, path: &str, manager: &str, body: &Value) -> Answer {
    w.patch(&format!("{path}?fieldManager={manager}"), "application/apply-patch+yaml", body).await
}

/// Applies this data to configmap `a`.
async fn data(w: &World, manager: &str, data: Value) -> Answer {
    apply(w, &w.configmap("a"), manager, &configmap("a", data)).await
}

async fn an_apply_creates_what_is_absent(w: World) {
    let made = data(&w, "one", json!({"k": "v"})).await.created();
    assert_eq!(made["data"], json!({"k": "v"}));
    assert_eq!(data(&w, "one", json!({"k": "w"})).await.ok()["data"], json!({"k": "w"}));
}

async fn an_apply_needs_a_field_manager(w: World) {
    let answer = w.patch(&w.configmap("a"), "application/apply-patch+yaml", &configmap("a", json!({}))).await;
    answer
        .refused(422, "Invalid")
        .about("meta.k8s.io", "PatchOptions", "")
        .cause("FieldValueRequired", "fieldManager");
}

async fn an_apply_without_change_keeps_the_version(w: World) {
    let made = data(&w, "one", json!({"k": "v"})).await.created();
    assert_eq!(rv_of(&data(&w, "one", json!({"k": "v"})).await.ok()), rv_of(&made));
}

async fn an_apply_removes_what_it_no_longer_names(w: World) {
    data(&w, "one", json!({"k": "v", "l": "w"})).await.created();
    w.merge(&w.configmap("a"), &json!({"data": {"other": "x"}})).await.ok();
    assert_eq!(data(&w, "one", json!({"k": "v"})).await.ok()["data"], json!({"k": "v", "other": "x"}));
}

async fn another_managers_value_is_a_conflict(w: World) {
    data(&w, "one", json!({"k": "v"})).await.created();
    let refusal = data(&w, "two", json!({"k": "w"})).await.refused(409, "Conflict");
    refusal.says("conflict with \"one\"").cause("FieldManagerConflict", ".data.k");
}

async fn a_forced_apply_takes_the_field_over(w: World) {
    data(&w, "one", json!({"k": "v"})).await.created();
    let path = format!("{}?fieldManager=two&force=true", w.configmap("a"));
    let new = w.patch(&path, "application/apply-patch+yaml", &configmap("a", json!({"k": "w"}))).await.ok();
    assert_eq!(new["data"]["k"], "w");
    // The former manager has lost the field, and can no longer remove it.
    assert_eq!(data(&w, "one", json!({})).await.ok()["data"]["k"], "w");
}

async fn two_managers_of_the_same_value_share_it(w: World) {
    data(&w, "one", json!({"k": "v"})).await.created();
    data(&w, "two", json!({"k": "v"})).await.ok();
    assert_eq!(data(&w, "one", json!({})).await.ok()["data"]["k"], "v");
    assert_eq!(data(&w, "two", json!({})).await.ok().get("data"), None);
}

async fn a_list_map_is_merged_by_its_keys(w: World) {
    let path = format!("{}/a", w.widgets().await);
    let ports = |ports: Value| w.widget("a", json!({"ports": ports}));
    apply(&w, &path, "one", &ports(json!([{"name": "a", "port": 1}]))).await.created();
    let new = apply(&w, &path, "two", &ports(json!([{"name": "b", "port": 2}]))).await.ok();
    assert_eq!(new["spec"]["ports"], json!([{"name": "a", "port": 1}, {"name": "b", "port": 2}]));
    let new = apply(&w, &path, "one", &ports(json!([]))).await.ok();
    assert_eq!(new["spec"]["ports"], json!([{"name": "b", "port": 2}]));
}

fn manager<'a>(object: &'a Value, name: &str) -> &'a Value {
    let all =
        object["metadata"]["managedFields"].as_array().unwrap_or_else(|| panic!("no managers in {object}"));
    all.iter().find(|entry| entry["manager"] == name).unwrap_or_else(|| panic!("no {name} in {object}"))
}

async fn managed_fields_tell_who_manages_what(w: World) {
    let made = data(&w, "one", json!({"k": "v"})).await.created();
    let entry = manager(&made, "one");
    assert_eq!(
        (&entry["operation"], &entry["apiVersion"], &entry["fieldsType"]),
        (&"Apply".into(), &"v1".into(), &"FieldsV1".into())
    );
    assert_eq!(entry["fieldsV1"]["f:data"], json!({"f:k": {}}));
}

async fn an_update_manages_what_it_changes(w: World) {
    data(&w, "one", json!({"k": "v"})).await.created();
    let path = format!("{}?fieldManager=two", w.configmap("a"));
    let new = w.merge(&path, &json!({"data": {"l": "w"}})).await.ok();
    let entry = manager(&new, "two");
    assert_eq!((&entry["operation"], &entry["fieldsV1"]["f:data"]), (&"Update".into(), &json!({"f:l": {}})));
}

async fn an_applied_status_is_managed_apart(w: World) {
    let path = format!("{}/a", w.widgets().await);
    apply(&w, &path, "one", &w.widget("a", json!({"size": 1}))).await.created();
    let body = json!({"apiVersion": format!("{}/v1", w.group()), "kind": "Widget", "metadata": {"name": "a"}, "status": {"phase": "Ready"}});
    let new = apply(&w, &format!("{path}/status"), "two", &body).await.ok();
    assert_eq!((&new["status"]["phase"], &new["spec"]["size"]), (&"Ready".into(), &1.into()));
    assert_eq!(manager(&new, "two")["subresource"], "status");
}

async fn managed_fields_in_an_apply_are_refused(w: World) {
    let body = with(
        configmap("a", json!({})),
        "/metadata/managedFields",
        json!([{"manager": "one", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]),
    );
    apply(&w, &w.configmap("a"), "one", &body)
        .await
        .refused(400, "BadRequest")
        .says("managedFields must be nil");
}

async fn a_dry_apply_stores_nothing(w: World) {
    let path = format!("{}?fieldManager=one&dryRun=All", w.configmap("a"));
    w.patch(&path, "application/apply-patch+yaml", &configmap("a", json!({}))).await.created();
    w.get(&w.configmap("a")).await.refused(404, "NotFound");
}
