//! Rejected creates, and their reasons.

use serde_json::json;

use crate::check::{Check, checks};
use crate::objects::{configmap, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        a_body_with_a_resource_version_is_refused,
        a_body_without_any_name_is_refused,
        another_api_version_is_refused,
        another_kind_is_refused,
        a_kind_that_is_no_text_is_refused,
        another_kind_of_a_custom_resource_is_refused,
        a_custom_resource_without_kind_is_refused,
        another_namespace_than_the_path_is_refused,
        an_absent_namespace_is_not_found,
        a_taken_name_already_exists,
        a_taken_name_of_a_custom_resource_tells_its_group,
        a_bad_name_is_told_as_a_cause,
        a_bad_name_of_a_custom_resource_is_told_as_a_cause,
        a_namespace_is_named_by_one_dns_label,
        a_bad_label_is_told_as_a_cause,
        a_bad_annotation_key_is_told_as_a_cause,
        annotations_have_a_total_size_limit,
        an_owner_without_uid_is_told_as_a_cause,
        two_controllers_are_refused,
        a_bad_finalizer_name_is_told_as_a_cause,
        a_bad_data_key_is_told_as_a_cause,
        all_causes_are_told_at_once,
    ]
}

async fn a_body_with_a_resource_version_is_refused(w: World) {
    let body = with(configmap("a", json!({})), "/metadata/resourceVersion", "1".into());
    let why = "resourceVersion should not be set on objects to be created";
    w.post(&w.configmaps(), &body).await.failed(500, why);
    w.get(&w.configmap("a")).await.refused(404, "NotFound");
}

async fn a_body_without_any_name_is_refused(w: World) {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let refusal = w.post(&w.configmaps(), &body).await.refused(422, "Invalid");
    refusal.says("name or generateName is required").cause("FieldValueRequired", "metadata.name");
}

async fn another_api_version_is_refused(w: World) {
    let body = with(configmap("a", json!({})), "/apiVersion", "v2".into());
    w.post(&w.configmaps(), &body).await.refused(400, "BadRequest").says("v2");
    let body = with(w.widget("a", json!({})), "/apiVersion", "other.group/v1".into());
    w.post(&w.widgets().await, &body).await.refused(400, "BadRequest").says("(other.group/v1)");
}

async fn another_kind_is_refused(w: World) {
    let body = with(configmap("a", json!({})), "/kind", "Secret".into());
    w.post(&w.configmaps(), &body).await.refused(400, "BadRequest").says("Secret");
}

async fn a_kind_that_is_no_text_is_refused(w: World) {
    for (path, body) in
        [(w.configmaps(), configmap("a", json!({}))), (w.widgets().await, w.widget("a", json!({})))]
    {
        for field in ["/kind", "/apiVersion"] {
            let refusal =
                w.post(&path, &with(body.clone(), field, json!(3))).await.refused(400, "BadRequest");
            refusal.says("couldn't get version/kind; json parse error");
        }
    }
}

async fn another_kind_of_a_custom_resource_is_refused(w: World) {
    let body = with(w.widget("a", json!({})), "/kind", "Gadget".into());
    w.post(&w.widgets().await, &body).await.refused(422, "Invalid").cause("FieldValueInvalid", "kind");
}

async fn a_custom_resource_without_kind_is_refused(w: World) {
    let body = json!({"metadata": {"name": "a"}});
    w.post(&w.widgets().await, &body).await.refused(400, "BadRequest").says("Object 'Kind' is missing");
}

async fn another_namespace_than_the_path_is_refused(w: World) {
    let body = with(configmap("a", json!({})), "/metadata/namespace", "elsewhere".into());
    let refusal = w.post(&w.configmaps(), &body).await.refused(400, "BadRequest");
    refusal.says("namespace of the provided object does not match the namespace sent on the request");
}

async fn an_absent_namespace_is_not_found(w: World) {
    let path = "/api/v1/namespaces/no-such-namespace/configmaps";
    let refusal = w.post(path, &configmap("a", json!({}))).await.refused(404, "NotFound");
    refusal.says("namespaces \"no-such-namespace\" not found").about("", "namespaces", "no-such-namespace");
}

async fn a_taken_name_already_exists(w: World) {
    let body = configmap("a", json!({}));
    w.post(&w.configmaps(), &body).await.created();
    let refusal = w.post(&w.configmaps(), &body).await.refused(409, "AlreadyExists");
    refusal.says("configmaps \"a\" already exists").about("", "configmaps", "a");
}

async fn a_taken_name_of_a_custom_resource_tells_its_group(w: World) {
    let (path, body) = (w.widgets().await, w.widget("a", json!({})));
    w.post(&path, &body).await.created();
    w.post(&path, &body).await.refused(409, "AlreadyExists").about(w.group(), "widgets", "a");
}

async fn a_bad_name_is_told_as_a_cause(w: World) {
    let refusal = w.post(&w.configmaps(), &configmap("Bad_Name", json!({}))).await.refused(422, "Invalid");
    // The kind of an Invalid is the object's kind, not the resource's name.
    refusal.about("", "ConfigMap", "Bad_Name").cause("FieldValueInvalid", "metadata.name").says("RFC 1123");
}

async fn a_bad_name_of_a_custom_resource_is_told_as_a_cause(w: World) {
    let refusal = w.post(&w.widgets().await, &w.widget("Bad_Name", json!({}))).await.refused(422, "Invalid");
    refusal.about(w.group(), "Widget", "Bad_Name").cause("FieldValueInvalid", "metadata.name");
}

async fn a_namespace_is_named_by_one_dns_label(w: World) {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "two.labels"}});
    let refusal = w.post("/api/v1/namespaces", &body).await.refused(422, "Invalid");
    refusal.about("", "Namespace", "two.labels").cause("FieldValueInvalid", "metadata.name");
}

async fn a_bad_label_is_told_as_a_cause(w: World) {
    let long = "x".repeat(64);
    for labels in
        [json!({"a b": "v"}), json!({"a": "no spaces"}), json!({"a": long}), json!({long.as_str(): "v"})]
    {
        let body = with(configmap("a", json!({})), "/metadata/labels", labels);
        w.post(&w.configmaps(), &body)
            .await
            .refused(422, "Invalid")
            .cause("FieldValueInvalid", "metadata.labels");
    }
}

async fn a_bad_annotation_key_is_told_as_a_cause(w: World) {
    let body = with(configmap("a", json!({})), "/metadata/annotations", json!({"not a key": "any value"}));
    let refusal = w.post(&w.configmaps(), &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "metadata.annotations");
}

async fn annotations_have_a_total_size_limit(w: World) {
    let body =
        with(configmap("a", json!({})), "/metadata/annotations", json!({"big": "x".repeat(256 * 1024)}));
    let refusal = w.post(&w.configmaps(), &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueTooLong", "metadata.annotations");
}

async fn an_owner_without_uid_is_told_as_a_cause(w: World) {
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}]);
    let body = with(configmap("a", json!({})), "/metadata/ownerReferences", owner);
    let refusal = w.post(&w.configmaps(), &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "metadata.ownerReferences.uid");
}

async fn two_controllers_are_refused(w: World) {
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid, "controller": true});
    let body = with(configmap("a", json!({})), "/metadata/ownerReferences", json!([owner("a"), owner("b")]));
    let refusal = w.post(&w.configmaps(), &body).await.refused(422, "Invalid");
    refusal
        .says("Only one reference can have Controller set to true")
        .cause("FieldValueInvalid", "metadata.ownerReferences");
}

async fn a_bad_finalizer_name_is_told_as_a_cause(w: World) {
    let body = with(configmap("a", json!({})), "/metadata/finalizers", json!(["not a name"]));
    w.post(&w.configmaps(), &body)
        .await
        .refused(422, "Invalid")
        .cause("FieldValueInvalid", "metadata.finalizers");
}

async fn a_bad_data_key_is_told_as_a_cause(w: World) {
    let refusal = w.post(&w.configmaps(), &configmap("a", json!({"a/b": "v"}))).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "data[a/b]");
}

async fn all_causes_are_told_at_once(w: World) {
    let body = with(configmap("Bad_Name", json!({"a/b": "v"})), "/metadata/labels", json!({"a b": "v"}));
    let refusal = w.post(&w.configmaps(), &body).await.refused(422, "Invalid");
    let refusal =
        refusal.cause("FieldValueInvalid", "metadata.name").cause("FieldValueInvalid", "metadata.labels");
    refusal.cause("FieldValueInvalid", "data[a/b]");
}
