//! The built-in kinds, where they differ from other objects.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, lease, secret, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        string_data_of_a_secret_is_stored_as_data,
        string_data_wins_over_data,
        secret_data_must_be_base64,
        a_secret_of_a_typed_kind_must_hold_its_keys,
        binary_data_of_a_configmap_comes_back,
        a_key_cannot_be_in_data_and_binary_data,
        lease_times_are_kept_to_the_microsecond,
        a_lease_duration_must_be_positive,
        a_lease_can_be_taken_over_by_version,
        a_controller_revision_keeps_its_data,
        the_data_of_a_controller_revision_cannot_change,
        a_controller_revision_needs_a_revision,
        the_default_namespace_exists,
    ]
}

async fn string_data_of_a_secret_is_stored_as_data(w: World) {
    let body = with(secret("a", json!({"k": "dg=="})), "/stringData", json!({"l": "w"}));
    let made = w.post(&w.core("secrets"), &body).await.created();
    assert_eq!((&made["data"], made.get("stringData")), (&json!({"k": "dg==", "l": "dw=="}), None));
}

async fn string_data_wins_over_data(w: World) {
    let body = with(secret("a", json!({"k": "dg=="})), "/stringData", json!({"k": "w"}));
    assert_eq!(w.post(&w.core("secrets"), &body).await.created()["data"]["k"], "dw==");
}

async fn secret_data_must_be_base64(w: World) {
    w.post(&w.core("secrets"), &secret("a", json!({"k": "not base64!"})))
        .await
        .refused(400, "BadRequest")
        .says("base64");
}

async fn a_secret_of_a_typed_kind_must_hold_its_keys(w: World) {
    let body = with(secret("a", json!({})), "/type", "kubernetes.io/tls".into());
    let refusal = w.post(&w.core("secrets"), &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueRequired", "data[tls.crt]").cause("FieldValueRequired", "data[tls.key]");
}

async fn binary_data_of_a_configmap_comes_back(w: World) {
    let body = with(configmap("a", json!({"k": "v"})), "/binaryData", json!({"b": "AP8="}));
    let made = w.post(&w.configmaps(), &body).await.created();
    assert_eq!((&made["data"], &made["binaryData"]), (&body["data"], &body["binaryData"]));
}

async fn a_key_cannot_be_in_data_and_binary_data(w: World) {
    let body = with(configmap("a", json!({"k": "v"})), "/binaryData", json!({"k": "AP8="}));
    let refusal = w.post(&w.configmaps(), &body).await.refused(422, "Invalid");
    refusal.says("duplicate of key present in");
}

fn leases(w: &World) -> String {
    w.apis("coordination.k8s.io/v1", "leases")
}

async fn lease_times_are_kept_to_the_microsecond(w: World) {
    let spec = json!({
        "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2024-05-06T07:08:09.123456Z", "renewTime": "2024-05-06T07:08:10.000000Z",
    });
    let made = w.post(&leases(&w), &lease("a", spec.clone())).await.created();
    assert_eq!(made["spec"]["acquireTime"], spec["acquireTime"]);
    // Always six digits, in both directions.
    assert_eq!(made["spec"]["renewTime"], "2024-05-06T07:08:10.000000Z");
}

async fn a_lease_duration_must_be_positive(w: World) {
    let refusal =
        w.post(&leases(&w), &lease("a", json!({"leaseDurationSeconds": 0}))).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "spec.leaseDurationSeconds");
}

async fn a_lease_can_be_taken_over_by_version(w: World) {
    let made = w.post(&leases(&w), &lease("a", json!({"holderIdentity": "me"}))).await.created();
    let path = format!("{}/a", leases(&w));
    w.put(&path, &with(made.clone(), "/spec/holderIdentity", "you".into())).await.ok();
    let late = w.put(&path, &with(made, "/spec/holderIdentity", "third".into())).await;
    late.refused(409, "Conflict").about("coordination.k8s.io", "leases", "a");
}

fn revision(name: &str, data: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name}, "revision": 1, "data": data})
}

async fn a_controller_revision_keeps_its_data(w: World) {
    let path = w.apis("apps/v1", "controllerrevisions");
    let data = json!({"any": {"thing": [1, "two", null]}, "apiVersion": "v1", "kind": "Odd"});
    let made = w.post(&path, &revision("a", data.clone())).await.created();
    assert_eq!((&made["data"], &made["revision"]), (&data, &1.into()));
}

async fn the_data_of_a_controller_revision_cannot_change(w: World) {
    let path = w.apis("apps/v1", "controllerrevisions");
    w.post(&path, &revision("a", json!({"k": 1}))).await.created();
    let refusal = w.merge(&format!("{path}/a"), &json!({"data": {"k": 2}})).await.refused(422, "Invalid");
    refusal.says("field is immutable").cause("FieldValueInvalid", "data");
    assert_eq!(w.merge(&format!("{path}/a"), &json!({"revision": 2})).await.ok()["revision"], 2);
}

async fn a_controller_revision_needs_a_revision(w: World) {
    let path = w.apis("apps/v1", "controllerrevisions");
    let refusal = w
        .post(&path, &with(revision("a", json!({})), "/revision", (-1).into()))
        .await
        .refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "revision");
}

async fn the_default_namespace_exists(w: World) {
    assert_eq!(w.get("/api/v1/namespaces/default").await.ok()["status"]["phase"], "Active");
}
