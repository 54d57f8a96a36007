//! Unknown and duplicate fields.

use serde_json::json;

use crate::answer::Answer;
use crate::check::{Check, checks};
use crate::objects::{configmap, with};
use crate::world::{JSON, World};

pub fn checks() -> Vec<Check> {
    checks![
        warnings_are_told_once_and_only_so_many,
        strictly_an_unknown_field_is_refused,
        strictly_an_unknown_field_of_a_custom_resource_is_refused,
        strictly_unknown_metadata_is_refused,
        strictly_all_unknown_fields_are_told,
        strictly_a_duplicate_field_is_refused,
        strictly_a_patch_with_an_unknown_field_is_refused,
        strictly_an_update_with_an_unknown_field_is_refused,
        strictly_a_good_object_passes,
        with_warnings_an_unknown_field_is_dropped_and_told,
        with_warnings_a_duplicate_field_is_told,
        unless_asked_the_server_warns,
        ignored_unknown_fields_are_dropped_in_silence,
        a_preserved_field_is_never_unknown,
        an_unknown_validation_level_is_refused,
    ]
}

fn at(path: &str, level: &str) -> String {
    format!("{path}?fieldValidation={level}")
}

async fn raw(w: &World, path: &str, body: &str) -> Answer {
    w.send("POST", path, &[("content-type", JSON)], body.as_bytes().to_vec()).await
}

async fn strictly_an_unknown_field_is_refused(w: World) {
    let body = with(configmap("a", json!({})), "/odd", 1.into());
    let refusal = w.post(&at(&w.configmaps(), "Strict"), &body).await.refused(400, "BadRequest");
    refusal.says("strict decoding error: unknown field \"odd\"");
    w.get(&w.configmap("a")).await.refused(404, "NotFound");
}

async fn strictly_an_unknown_field_of_a_custom_resource_is_refused(w: World) {
    let body = w.widget("a", json!({"odd": 1}));
    let refusal = w.post(&at(&w.widgets().await, "Strict"), &body).await.refused(400, "BadRequest");
    refusal.says("strict decoding error: unknown field \"spec.odd\"");
}

async fn strictly_unknown_metadata_is_refused(w: World) {
    let body = with(configmap("a", json!({})), "/metadata/odd", 1.into());
    let refusal = w.post(&at(&w.configmaps(), "Strict"), &body).await.refused(400, "BadRequest");
    refusal.says("unknown field \"metadata.odd\"");
    let body = with(w.widget("a", json!({})), "/metadata/odd", 1.into());
    let refusal = w.post(&at(&w.widgets().await, "Strict"), &body).await.refused(400, "BadRequest");
    refusal.says("unknown field \"metadata.odd\"");
}

async fn strictly_all_unknown_fields_are_told(w: World) {
    let body = w.widget("a", json!({"odd": 1, "ports": [{"name": "a", "strange": 2}]}));
    let refusal = w.post(&at(&w.widgets().await, "Strict"), &body).await.refused(400, "BadRequest");
    refusal.says("unknown field \"spec.odd\"").says("unknown field \"spec.ports[0].strange\"");
}

async fn strictly_a_duplicate_field_is_refused(w: World) {
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v","k":"w"}}"#;
    let refusal = raw(&w, &at(&w.configmaps(), "Strict"), body).await.refused(400, "BadRequest");
    refusal.says("duplicate field \"data.k\"");
}

async fn strictly_a_patch_with_an_unknown_field_is_refused(w: World) {
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({}))).await.created();
    let refusal = w.merge(&at(&format!("{path}/a"), "Strict"), &json!({"spec": {"odd": 1}})).await;
    refusal.refused(422, "Invalid").says("unknown field \"spec.odd\"");
}

async fn strictly_an_update_with_an_unknown_field_is_refused(w: World) {
    let path = w.widgets().await;
    let old = w.post(&path, &w.widget("a", json!({}))).await.created();
    let answer = w.put(&at(&format!("{path}/a"), "Strict"), &with(old, "/spec/odd", 1.into())).await;
    answer.refused(400, "BadRequest").says("unknown field \"spec.odd\"");
}

async fn strictly_a_good_object_passes(w: World) {
    let answer = w.post(&at(&w.configmaps(), "Strict"), &configmap("a", json!({"k": "v"}))).await;
    assert!(answer.warnings().is_empty());
    answer.created();
    w.post(&at(&w.widgets().await, "Strict"), &w.widget("a", json!({"size": 1}))).await.created();
}

async fn with_warnings_an_unknown_field_is_dropped_and_told(w: World) {
    let answer = w.post(&at(&w.widgets().await, "Warn"), &w.widget("a", json!({"odd": 1}))).await;
    assert_eq!(answer.warnings(), ["299 - \"unknown field \\\"spec.odd\\\"\""]);
    assert_eq!(answer.created()["spec"].get("odd"), None);
}

async fn with_warnings_a_duplicate_field_is_told(w: World) {
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v","k":"w"}}"#;
    let answer = raw(&w, &at(&w.configmaps(), "Warn"), body).await;
    assert_eq!(answer.warnings(), ["299 - \"duplicate field \\\"data.k\\\"\""]);
    // The last one wins.
    assert_eq!(answer.created()["data"]["k"], "w");
}

async fn unless_asked_the_server_warns(w: World) {
    let answer = w.post(&w.configmaps(), &with(configmap("a", json!({})), "/odd", 1.into())).await;
    assert_eq!(answer.warnings(), ["299 - \"unknown field \\\"odd\\\"\""]);
    assert_eq!(answer.created().get("odd"), None);
}

async fn ignored_unknown_fields_are_dropped_in_silence(w: World) {
    let answer = w.post(&at(&w.widgets().await, "Ignore"), &w.widget("a", json!({"odd": 1}))).await;
    assert!(answer.warnings().is_empty());
    assert_eq!(answer.created()["spec"].get("odd"), None);
}

async fn a_preserved_field_is_never_unknown(w: World) {
    let body = w.widget("a", json!({"free": {"any": {"thing": [1, "two", null]}}}));
    let made = w.post(&at(&w.widgets().await, "Strict"), &body).await.created();
    assert_eq!(made["spec"]["free"], body["spec"]["free"]);
}

async fn an_unknown_validation_level_is_refused(w: World) {
    let refusal =
        w.post(&at(&w.configmaps(), "Loud"), &configmap("a", json!({}))).await.refused(422, "Invalid");
    refusal.about("meta.k8s.io", "CreateOptions", "").cause("FieldValueNotSupported", "fieldValidation");
}

async fn warnings_are_told_once_and_only_so_many(w: World) {
    let mut body = configmap("a", json!({}));
    for number in 0..2_000 {
        body[format!("{}{number:04}", "x".repeat(96))] = 1.into();
    }
    let warnings = w.post(&w.configmaps(), &body).await.warnings();
    // 116 characters each: the first that exceeds 4096 is the last.
    assert_eq!(warnings.len(), 36, "{warnings:?}");
    let last = format!("299 - \"unknown field \\\"{}0035\\\"\"", "x".repeat(96));
    assert_eq!(warnings.last(), Some(&last));
    let twice = format!(r#"{{"metadata":{{"name":"b"}},"data":{{{}"z":""}}}}"#, r#""k":"","#.repeat(3_000));
    let answer = w.send("POST", &w.configmaps(), &[("content-type", "application/json")], twice.into()).await;
    assert_eq!(answer.warnings(), ["299 - \"duplicate field \\\"data.k\\\"\""]);
}
