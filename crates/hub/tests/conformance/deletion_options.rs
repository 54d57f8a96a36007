//! The options of a delete: preconditions, grace, propagation and their validation.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, rv_of, uid_of, with};
use crate::world::{JSON, World};

pub fn checks() -> Vec<Check> {
    checks![
        another_uid_as_precondition_conflicts,
        another_version_as_precondition_conflicts,
        matching_preconditions_let_the_delete_pass,
        a_precondition_holds_for_a_dying_object_too,
        a_grace_period_does_not_delay_what_has_no_process,
        a_grace_period_may_be_told_in_the_query,
        an_unknown_propagation_policy_is_refused,
        both_ways_to_orphan_are_refused,
        a_foreground_delete_answers_the_object_that_waits,
        an_orphaning_delete_answers_the_object_that_waits,
        the_propagation_may_be_told_in_the_query,
        delete_options_may_leave_out_their_kind,
        a_delete_body_that_is_no_json_is_refused,
    ]
}

async fn made(w: &World) -> Value {
    w.post(&w.configmaps(), &configmap("a", json!({}))).await.created()
}

async fn another_uid_as_precondition_conflicts(w: World) {
    made(&w).await;
    let options = json!({"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}});
    let refusal = w.delete_with(&w.configmap("a"), options).await.refused(409, "Conflict");
    refusal.says("the UID in the precondition");
    w.get(&w.configmap("a")).await.ok();
}

async fn another_version_as_precondition_conflicts(w: World) {
    let old = made(&w).await;
    w.merge(&w.configmap("a"), &json!({"data": {"k": "v"}})).await.ok();
    let options = json!({"preconditions": {"resourceVersion": rv_of(&old)}});
    let refusal = w.delete_with(&w.configmap("a"), options).await.refused(409, "Conflict");
    refusal.says("the ResourceVersion in the precondition");
}

async fn matching_preconditions_let_the_delete_pass(w: World) {
    let made = made(&w).await;
    let options = json!({"preconditions": {"uid": uid_of(&made), "resourceVersion": rv_of(&made)}});
    assert_eq!(w.delete_with(&w.configmap("a"), options).await.ok()["status"], "Success");
}

async fn a_precondition_holds_for_a_dying_object_too(w: World) {
    let body = with(configmap("a", json!({})), "/metadata/finalizers", json!(["example.com/held"]));
    w.post(&w.configmaps(), &body).await.created();
    w.delete(&w.configmap("a")).await.ok();
    let options = json!({"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}});
    w.delete_with(&w.configmap("a"), options).await.refused(409, "Conflict");
    w.merge(&w.configmap("a"), &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn a_grace_period_does_not_delay_what_has_no_process(w: World) {
    made(&w).await;
    w.delete_with(&w.configmap("a"), json!({"gracePeriodSeconds": 30})).await.ok();
    w.get(&w.configmap("a")).await.refused(404, "NotFound");
}

async fn a_grace_period_may_be_told_in_the_query(w: World) {
    made(&w).await;
    w.delete(&format!("{}?gracePeriodSeconds=0", w.configmap("a"))).await.ok();
    w.get(&w.configmap("a")).await.refused(404, "NotFound");
}

async fn an_unknown_propagation_policy_is_refused(w: World) {
    made(&w).await;
    let refusal = w
        .delete_with(&w.configmap("a"), json!({"propagationPolicy": "Sideways"}))
        .await
        .refused(422, "Invalid");
    refusal.about("meta.k8s.io", "DeleteOptions", "").cause("FieldValueNotSupported", "propagationPolicy");
}

async fn both_ways_to_orphan_are_refused(w: World) {
    made(&w).await;
    let options = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    let refusal = w.delete_with(&w.configmap("a"), options).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "propagationPolicy");
}

async fn a_foreground_delete_answers_the_object_that_waits(w: World) {
    made(&w).await;
    let answer = w.delete_with(&w.configmap("a"), json!({"propagationPolicy": "Foreground"})).await.ok();
    assert_eq!(answer["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(answer["metadata"]["deletionTimestamp"].is_string());
}

async fn an_orphaning_delete_answers_the_object_that_waits(w: World) {
    made(&w).await;
    let answer = w.delete_with(&w.configmap("a"), json!({"propagationPolicy": "Orphan"})).await.ok();
    assert_eq!(answer["metadata"]["finalizers"], json!(["orphan"]));
}

async fn the_propagation_may_be_told_in_the_query(w: World) {
    made(&w).await;
    let answer = w.delete(&format!("{}?propagationPolicy=Foreground", w.configmap("a"))).await.ok();
    assert_eq!(answer["metadata"]["finalizers"], json!(["foregroundDeletion"]));
}

async fn delete_options_may_leave_out_their_kind(w: World) {
    let made = made(&w).await;
    let body = json!({"preconditions": {"uid": uid_of(&made)}}).to_string().into_bytes();
    w.send("DELETE", &w.configmap("a"), &[("content-type", JSON)], body).await.ok();
}

async fn a_delete_body_that_is_no_json_is_refused(w: World) {
    made(&w).await;
    w.send("DELETE", &w.configmap("a"), &[("content-type", JSON)], b"{".to_vec())
        .await
        .refused(400, "BadRequest");
    w.get(&w.configmap("a")).await.ok();
}
