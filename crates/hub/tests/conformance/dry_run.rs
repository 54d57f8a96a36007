//! Dry runs: the whole pipeline, and nothing stored.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, generation_of, names_in, rv_of, uid_of, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        a_dry_create_answers_201_and_stores_nothing,
        a_dry_create_defaults_validates_and_names,
        a_dry_create_of_a_taken_name_already_exists,
        a_dry_update_answers_the_new_object_and_stores_nothing,
        a_dry_update_with_a_stale_version_conflicts,
        a_dry_patch_answers_the_new_object_and_stores_nothing,
        a_dry_delete_answers_success_and_deletes_nothing,
        a_dry_delete_may_be_told_in_its_options,
        a_dry_delete_of_a_collection_deletes_nothing,
        a_dry_status_write_stores_nothing,
        an_unknown_dry_run_value_is_refused,
    ]
}

async fn made(w: &World) -> Value {
    w.post(&w.configmaps(), &configmap("a", json!({"k": "v"}))).await.created()
}

fn dry(path: &str) -> String {
    format!("{path}?dryRun=All")
}

async fn a_dry_create_answers_201_and_stores_nothing(w: World) {
    let answer = w.post(&dry(&w.configmaps()), &configmap("a", json!({}))).await.created();
    assert_eq!(uid_of(&answer).len(), 36);
    assert!(answer["metadata"]["creationTimestamp"].is_string());
    // An object that was not stored has no revision.
    assert_eq!(answer["metadata"].get("resourceVersion"), None);
    w.get(&w.configmap("a")).await.refused(404, "NotFound");
}

async fn a_dry_create_defaults_validates_and_names(w: World) {
    let path = dry(&w.widgets().await);
    assert_eq!(w.post(&path, &w.widget("a", json!({}))).await.created()["spec"]["mode"], "auto");
    w.post(&path, &w.widget("a", json!({"size": -1}))).await.refused(422, "Invalid");
    let mut body = w.widget("a", json!({}));
    body["metadata"] = json!({"generateName": "made-"});
    assert_eq!(crate::objects::name_of(&w.post(&path, &body).await.created()).len(), 10);
}

async fn a_dry_create_of_a_taken_name_already_exists(w: World) {
    made(&w).await;
    w.post(&dry(&w.configmaps()), &configmap("a", json!({}))).await.refused(409, "AlreadyExists");
}

async fn a_dry_update_answers_the_new_object_and_stores_nothing(w: World) {
    let path = w.widgets().await;
    let old = w.post(&path, &w.widget("a", json!({"size": 1}))).await.created();
    let answer = w.put(&dry(&format!("{path}/a")), &with(old.clone(), "/spec/size", 2.into())).await.ok();
    assert_eq!((&answer["spec"]["size"], generation_of(&answer)), (&2.into(), 2));
    assert_eq!(rv_of(&answer), rv_of(&old));
    assert_eq!(w.get(&format!("{path}/a")).await.ok(), old);
}

async fn a_dry_update_with_a_stale_version_conflicts(w: World) {
    let old = made(&w).await;
    w.merge(&w.configmap("a"), &json!({"data": {"k": "w"}})).await.ok();
    w.put(&dry(&w.configmap("a")), &old).await.refused(409, "Conflict");
}

async fn a_dry_patch_answers_the_new_object_and_stores_nothing(w: World) {
    let old = made(&w).await;
    let answer = w.merge(&dry(&w.configmap("a")), &json!({"data": {"k": "w"}})).await.ok();
    assert_eq!(answer["data"]["k"], "w");
    assert_eq!(w.get(&w.configmap("a")).await.ok(), old);
}

async fn a_dry_delete_answers_success_and_deletes_nothing(w: World) {
    let old = made(&w).await;
    let answer = w.delete(&dry(&w.configmap("a"))).await.ok();
    assert_eq!((&answer["status"], &answer["details"]["name"]), (&"Success".into(), &"a".into()));
    assert_eq!(w.get(&w.configmap("a")).await.ok(), old);
}

async fn a_dry_delete_may_be_told_in_its_options(w: World) {
    let old = made(&w).await;
    w.delete_with(&w.configmap("a"), json!({"dryRun": ["All"]})).await.ok();
    assert_eq!(w.get(&w.configmap("a")).await.ok(), old);
}

async fn a_dry_delete_of_a_collection_deletes_nothing(w: World) {
    made(&w).await;
    w.delete(&dry(&w.configmaps())).await.ok();
    assert_eq!(names_in(&w.get(&w.configmaps()).await.ok()), ["a"]);
}

async fn a_dry_status_write_stores_nothing(w: World) {
    let path = w.widgets().await;
    let old = w.post(&path, &w.widget("a", json!({}))).await.created();
    let answer =
        w.merge(&dry(&format!("{path}/a/status")), &json!({"status": {"phase": "Ready"}})).await.ok();
    assert_eq!(answer["status"]["phase"], "Ready");
    assert_eq!(w.get(&format!("{path}/a")).await.ok(), old);
}

async fn an_unknown_dry_run_value_is_refused(w: World) {
    let old = made(&w).await;
    let some = |path: String| format!("{path}?dryRun=Some");
    let refusal = w.post(&some(w.configmaps()), &configmap("b", json!({}))).await.refused(422, "Invalid");
    refusal.about("meta.k8s.io", "CreateOptions", "").cause("FieldValueNotSupported", "dryRun");
    w.put(&some(w.configmap("a")), &old)
        .await
        .refused(422, "Invalid")
        .cause("FieldValueNotSupported", "dryRun");
    w.merge(&some(w.configmap("a")), &json!({}))
        .await
        .refused(422, "Invalid")
        .cause("FieldValueNotSupported", "dryRun");
    w.delete(&some(w.configmap("a"))).await.refused(422, "Invalid").cause("FieldValueNotSupported", "dryRun");
}
