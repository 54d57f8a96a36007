//! The life of a namespace: active, terminating, deleted.

use serde_json::{Value, json};

use crate::check::{Check, Need, checks};
use crate::objects::{configmap, uid_of, with};
use crate::world::{World, fresh};

pub fn checks() -> Vec<Check> {
    let mut all = checks![
        a_deleted_namespace_answers_as_terminating,
        nothing_can_be_created_in_a_terminating_namespace,
        a_terminating_namespace_can_still_be_written_to,
        another_uid_as_precondition_keeps_the_namespace,
        the_first_namespaces_stay,
    ];
    let collected = checks![
        an_empty_namespace_goes,
        a_namespace_takes_its_contents_with_it,
        a_held_object_holds_its_namespace
    ];
    all.extend(collected.into_iter().map(|check| check.needing(Need::GarbageCollection)));
    all
}

fn place(name: &str) -> String {
    format!("/api/v1/namespaces/{name}")
}

/// A namespace that stays Terminating, because of a finalizer on its configmap.
async fn terminating(w: &World) -> (String, Value) {
    let name = fresh("dying");
    w.make_namespace(&name).await;
    let body = with(configmap("held", json!({})), "/metadata/finalizers", json!(["example.com/held"]));
    w.post(&format!("{}/configmaps", place(&name)), &body).await.created();
    let answer = w.delete(&place(&name)).await.ok();
    (name, answer)
}

async fn let_go(w: &World, name: &str) {
    w.merge(&format!("{}/configmaps/held", place(name)), &json!({"metadata": {"finalizers": null}}))
        .await
        .ok();
}

async fn a_deleted_namespace_answers_as_terminating(w: World) {
    let (name, answer) = terminating(&w).await;
    assert_eq!((&answer["kind"], &answer["status"]["phase"]), (&"Namespace".into(), &"Terminating".into()));
    assert!(answer["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(w.get(&place(&name)).await.ok()["status"]["phase"], "Terminating");
    let_go(&w, &name).await;
}

async fn nothing_can_be_created_in_a_terminating_namespace(w: World) {
    let (name, _) = terminating(&w).await;
    let path = format!("{}/configmaps", place(&name));
    let refusal = w.post(&path, &configmap("late", json!({}))).await.refused(403, "Forbidden");
    let refusal = refusal.about("", "configmaps", "late").cause("NamespaceTerminating", "metadata.namespace");
    refusal.says(&format!("unable to create new content in namespace {name} because it is being terminated"));
    let_go(&w, &name).await;
}

async fn a_terminating_namespace_can_still_be_written_to(w: World) {
    let (name, _) = terminating(&w).await;
    w.merge(&format!("{}/configmaps/held", place(&name)), &json!({"data": {"k": "v"}})).await.ok();
    let_go(&w, &name).await;
}

async fn another_uid_as_precondition_keeps_the_namespace(w: World) {
    let options = json!({"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}});
    w.delete_with(&place(&w.ns), options).await.refused(409, "Conflict").about("", "namespaces", &w.ns);
    assert_eq!(w.get(&place(&w.ns)).await.ok()["status"]["phase"], "Active");
}

async fn the_first_namespaces_stay(w: World) {
    for name in ["default", "kube-system"] {
        let refusal = w.delete(&place(name)).await.refused(403, "Forbidden").about("", "namespaces", name);
        refusal.says("this namespace may not be deleted");
        assert_eq!(w.get(&place(name)).await.ok()["status"]["phase"], "Active");
    }
}

async fn an_empty_namespace_goes(w: World) {
    let name = fresh("empty");
    let made = w.make_namespace(&name).await;
    w.delete(&place(&name)).await.ok();
    w.gone(&place(&name)).await;
    assert_ne!(uid_of(&w.make_namespace(&name).await), uid_of(&made));
}

async fn a_namespace_takes_its_contents_with_it(w: World) {
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({}))).await.created();
    w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    w.delete(&place(&w.ns)).await.ok();
    w.gone(&place(&w.ns)).await;
    w.get(&w.configmap("a")).await.refused(404, "NotFound");
    w.get(&format!("{path}/a")).await.refused(404, "NotFound");
    w.make_namespace(&w.ns).await;
    assert_eq!(w.get(&w.configmaps()).await.ok()["items"], json!([]));
}

async fn a_held_object_holds_its_namespace(w: World) {
    let (name, _) = terminating(&w).await;
    let path = format!("{}/configmaps", place(&name));
    let list = w.get(&path).await.ok();
    if list["items"][0]["metadata"]["deletionTimestamp"].is_null() {
        let rv = crate::objects::rv_of(&list);
        let marked = w.watch(&format!("{path}?resourceVersion={rv}")).await.until("MODIFIED").await;
        assert!(marked["metadata"]["deletionTimestamp"].is_string());
    }
    w.get(&place(&name)).await.ok();
    let_go(&w, &name).await;
    w.gone(&place(&name)).await;
}
