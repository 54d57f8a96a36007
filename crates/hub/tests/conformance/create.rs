//! Successful creates, and what the server adds to the object.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, generation_of, name_of, revision_of, uid_of, with};
use crate::world::{World, fresh};

pub fn checks() -> Vec<Check> {
    checks![
        a_create_answers_201_with_the_stored_object,
        the_creation_timestamp_is_utc_in_whole_seconds,
        a_custom_resource_starts_at_generation_1,
        a_configmap_has_no_generation,
        what_only_the_server_may_set_is_not_taken_from_the_body,
        the_namespace_of_the_path_is_filled_in,
        a_generated_name_is_the_prefix_and_five_characters,
        a_name_wins_over_a_generated_one,
        revisions_rise_over_all_kinds,
        a_kind_may_be_left_out_of_a_built_in_object,
        a_body_without_content_type_is_json,
        a_name_can_be_taken_again_after_a_delete,
        labels_annotations_and_unicode_come_back_as_sent,
        a_namespace_starts_active_with_its_name_as_a_label,
    ]
}

async fn a_create_answers_201_with_the_stored_object(w: World) {
    let created = w.post(&w.configmaps(), &configmap("a", json!({"k": "v"}))).await.created();
    assert_eq!((&created["kind"], &created["apiVersion"]), (&"ConfigMap".into(), &"v1".into()));
    assert_eq!(created["data"], json!({"k": "v"}));
    assert_eq!(uid_of(&created).len(), 36);
    assert_eq!(w.get(&w.configmap("a")).await.ok(), created);
}

async fn the_creation_timestamp_is_utc_in_whole_seconds(w: World) {
    let created = w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    let time = created["metadata"]["creationTimestamp"].as_str().unwrap();
    assert_eq!((time.len(), &time[10..11], &time[19..]), (20, "T", "Z"), "{time}");
}

async fn a_custom_resource_starts_at_generation_1(w: World) {
    let created = w.post(&w.widgets().await, &w.widget("a", json!({}))).await.created();
    assert_eq!(generation_of(&created), 1);
}

async fn a_configmap_has_no_generation(w: World) {
    let created = w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    assert_eq!(created["metadata"]["generation"], Value::Null);
}

async fn what_only_the_server_may_set_is_not_taken_from_the_body(w: World) {
    let mut body = w.widget("a", json!({}));
    body["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111".into();
    body["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    body["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
    body["metadata"]["generation"] = 7.into();
    let created = w.post(&w.widgets().await, &body).await.created();
    assert_ne!(uid_of(&created), uid_of(&body));
    assert_ne!(created["metadata"]["creationTimestamp"], body["metadata"]["creationTimestamp"]);
    assert_eq!(created["metadata"]["deletionTimestamp"], Value::Null);
    assert_eq!(generation_of(&created), 1);
}

async fn the_namespace_of_the_path_is_filled_in(w: World) {
    let created = w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    assert_eq!(created["metadata"]["namespace"], w.ns);
}

async fn a_generated_name_is_the_prefix_and_five_characters(w: World) {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}});
    let one = w.post(&w.configmaps(), &body).await.created();
    let two = w.post(&w.configmaps(), &body).await.created();
    assert_eq!((&name_of(&one)[..5], name_of(&one).len()), ("made-", 10));
    assert_eq!(one["metadata"]["generateName"], "made-");
    assert_ne!(name_of(&one), name_of(&two));
}

async fn a_name_wins_over_a_generated_one(w: World) {
    let body = with(configmap("a", json!({})), "/metadata/generateName", "made-".into());
    assert_eq!(name_of(&w.post(&w.configmaps(), &body).await.created()), "a");
}

async fn revisions_rise_over_all_kinds(w: World) {
    let first = w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    let second = w.post(&w.widgets().await, &w.widget("a", json!({}))).await.created();
    let third = w.post(&w.core("secrets"), &crate::objects::secret("a", json!({}))).await.created();
    assert!(revision_of(&first) < revision_of(&second));
    assert!(revision_of(&second) < revision_of(&third));
}

async fn a_kind_may_be_left_out_of_a_built_in_object(w: World) {
    // The endpoint determines the type; for custom resources see create_validation.
    let created = w.post(&w.configmaps(), &json!({"metadata": {"name": "a"}})).await.created();
    assert_eq!((&created["kind"], &created["apiVersion"]), (&"ConfigMap".into(), &"v1".into()));
}

async fn a_body_without_content_type_is_json(w: World) {
    let body = configmap("a", json!({})).to_string().into_bytes();
    w.send("POST", &w.configmaps(), &[], body).await.created();
}

async fn a_name_can_be_taken_again_after_a_delete(w: World) {
    let body = configmap("a", json!({}));
    let first = w.post(&w.configmaps(), &body).await.created();
    w.delete(&w.configmap("a")).await.ok();
    let second = w.post(&w.configmaps(), &body).await.created();
    assert_ne!(uid_of(&first), uid_of(&second));
    assert!(revision_of(&first) < revision_of(&second));
}

async fn labels_annotations_and_unicode_come_back_as_sent(w: World) {
    let mut body = configmap("a", json!({"text": "ζ \u{1F426} <&>\n"}));
    body["metadata"]["labels"] = json!({"example.com/l": "v", "empty": ""});
    body["metadata"]["annotations"] = json!({"example.com/a": "any {text}"});
    let created = w.post(&w.configmaps(), &body).await.created();
    assert_eq!(created["data"], body["data"]);
    assert_eq!(created["metadata"]["labels"], body["metadata"]["labels"]);
    assert_eq!(created["metadata"]["annotations"], body["metadata"]["annotations"]);
}

async fn a_namespace_starts_active_with_its_name_as_a_label(w: World) {
    let name = fresh("born");
    let created = w.make_namespace(&name).await;
    assert_eq!(created["status"]["phase"], "Active");
    assert_eq!(created["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], name);
}
