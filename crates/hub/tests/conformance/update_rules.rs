//! What an update may change: immutable fields, and when the generation increases.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, generation_of, secret, unversioned, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        a_change_of_spec_raises_the_generation_by_one,
        a_change_of_metadata_keeps_the_generation,
        a_generation_in_the_body_is_ignored,
        a_field_beside_spec_raises_the_generation_too,
        the_data_of_an_immutable_configmap_cannot_change,
        the_metadata_of_an_immutable_configmap_can_change,
        immutable_cannot_be_unset,
        the_data_of_an_immutable_secret_cannot_change,
        the_type_of_a_secret_cannot_change,
        an_update_is_validated_like_a_create,
    ]
}

async fn widget(w: &World) -> (String, Value) {
    let path = w.widgets().await;
    let made = w.post(&path, &w.widget("a", json!({"size": 1}))).await.created();
    (format!("{path}/a"), made)
}

async fn a_change_of_spec_raises_the_generation_by_one(w: World) {
    let (path, old) = widget(&w).await;
    let new = w.put(&path, &with(old, "/spec/size", 2.into())).await.ok();
    assert_eq!(generation_of(&new), 2);
    assert_eq!(generation_of(&w.merge(&path, &json!({"spec": {"size": 3}})).await.ok()), 3);
}

async fn a_change_of_metadata_keeps_the_generation(w: World) {
    let (path, old) = widget(&w).await;
    let new = w.put(&path, &with(old, "/metadata/labels", json!({"l": "v"}))).await.ok();
    assert_eq!(generation_of(&new), 1);
    let change = json!({"metadata": {"annotations": {"a": "b"}, "finalizers": ["example.com/f"]}});
    assert_eq!(generation_of(&w.merge(&path, &change).await.ok()), 1);
    w.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn a_generation_in_the_body_is_ignored(w: World) {
    let (path, old) = widget(&w).await;
    let new = w.put(&path, &with(old, "/metadata/generation", 9.into())).await.ok();
    assert_eq!(generation_of(&new), 1);
}

async fn a_field_beside_spec_raises_the_generation_too(w: World) {
    let (path, _) = widget(&w).await;
    assert_eq!(generation_of(&w.merge(&path, &json!({"extra": "v"})).await.ok()), 2);
}

async fn frozen(w: &World) -> Value {
    let body = with(configmap("a", json!({"k": "v"})), "/immutable", true.into());
    unversioned(w.post(&w.configmaps(), &body).await.created())
}

async fn the_data_of_an_immutable_configmap_cannot_change(w: World) {
    let old = frozen(&w).await;
    let refusal = w.put(&w.configmap("a"), &with(old, "/data/k", "w".into())).await.refused(422, "Invalid");
    refusal.says("field is immutable when `immutable` is set").cause("FieldValueForbidden", "data");
    w.merge(&w.configmap("a"), &json!({"binaryData": {"b": "AA=="}})).await.refused(422, "Invalid");
}

async fn the_metadata_of_an_immutable_configmap_can_change(w: World) {
    let old = frozen(&w).await;
    w.put(&w.configmap("a"), &with(old, "/metadata/labels", json!({"l": "v"}))).await.ok();
}

async fn immutable_cannot_be_unset(w: World) {
    let old = frozen(&w).await;
    let refusal =
        w.put(&w.configmap("a"), &with(old, "/immutable", false.into())).await.refused(422, "Invalid");
    refusal.cause("FieldValueForbidden", "immutable");
}

async fn the_data_of_an_immutable_secret_cannot_change(w: World) {
    let body = with(secret("a", json!({"k": "dg=="})), "/immutable", true.into());
    w.post(&w.core("secrets"), &body).await.created();
    let path = format!("{}/a", w.core("secrets"));
    let refusal = w.merge(&path, &json!({"data": {"k": "dw=="}})).await.refused(422, "Invalid");
    refusal.cause("FieldValueForbidden", "data");
}

async fn the_type_of_a_secret_cannot_change(w: World) {
    let made = w.post(&w.core("secrets"), &secret("a", json!({}))).await.created();
    assert_eq!(made["type"], "Opaque");
    let path = format!("{}/a", w.core("secrets"));
    let refusal = w.merge(&path, &json!({"type": "example.com/other"})).await.refused(422, "Invalid");
    refusal.says("field is immutable").cause("FieldValueInvalid", "type");
}

async fn an_update_is_validated_like_a_create(w: World) {
    let (path, old) = widget(&w).await;
    let refusal =
        w.put(&path, &with(old, "/metadata/labels", json!({"a b": "v"}))).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "metadata.labels");
}
