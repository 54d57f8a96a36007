//! Requests that no endpoint can serve, and their errors.

use serde_json::json;

use crate::check::{Check, checks};
use crate::objects::{configmap, with};
use crate::world::{JSON, World};

pub fn checks() -> Vec<Check> {
    checks![
        an_absent_object_is_a_status_with_details,
        a_body_that_is_no_json_is_refused,
        an_empty_body_is_refused,
        a_json_body_that_is_no_object_is_refused,
        a_field_of_a_wrong_type_is_refused,
        metadata_of_a_wrong_type_is_refused,
        an_unknown_content_type_is_refused,
        a_content_type_with_parameters_is_understood,
        yaml_is_understood,
        an_accept_header_that_cannot_be_served_is_refused,
        any_accept_header_with_a_wildcard_is_served,
        protobuf_falls_back_to_json_when_both_are_accepted,
        a_body_of_more_than_three_mebibytes_is_refused,
        an_object_larger_than_the_store_takes_is_refused,
        posting_to_an_object_is_not_allowed,
        putting_to_a_collection_is_not_allowed,
        deleting_all_namespaces_is_not_allowed,
        posting_across_namespaces_is_not_allowed,
        an_object_without_its_namespace_is_not_found,
        a_status_can_only_be_read_and_changed,
        an_unknown_resource_is_not_found,
        an_unknown_subresource_is_not_found,
        an_error_is_told_as_json,
    ]
}

async fn an_absent_object_is_a_status_with_details(w: World) {
    let refusal = w.get(&w.configmap("absent")).await.refused(404, "NotFound");
    let refusal = refusal.says("configmaps \"absent\" not found").about("", "configmaps", "absent");
    assert_eq!(refusal.0["metadata"], json!({}));
    let path = format!("{}/absent", w.widgets().await);
    let refusal = w.get(&path).await.refused(404, "NotFound").about(w.group(), "widgets", "absent");
    refusal.says(&format!("widgets.{} \"absent\" not found", w.group()));
}

async fn post(w: &World, path: &str, content_type: &str, body: &str) -> crate::answer::Answer {
    w.send("POST", path, &[("content-type", content_type)], body.as_bytes().to_vec()).await
}

async fn a_body_that_is_no_json_is_refused(w: World) {
    for path in [w.configmaps(), w.widgets().await] {
        let refusal = post(&w, &path, JSON, "{\"kind\":").await.refused(400, "BadRequest");
        refusal.says("couldn't get version/kind; json parse error: unexpected end of JSON input");
    }
}

async fn an_empty_body_is_refused(w: World) {
    for path in [w.configmaps(), w.widgets().await] {
        let refusal = post(&w, &path, JSON, "").await.refused(400, "BadRequest");
        refusal.says("couldn't get version/kind; json parse error: unexpected end of JSON input");
    }
}

async fn a_json_body_that_is_no_object_is_refused(w: World) {
    for body in ["[]", "1", "\"text\""] {
        post(&w, &w.configmaps(), JSON, body).await.refused(400, "BadRequest");
    }
}

async fn a_field_of_a_wrong_type_is_refused(w: World) {
    let body = configmap("a", json!({"k": 1}));
    w.post(&w.configmaps(), &body).await.refused(400, "BadRequest").says("ConfigMap.data");
}

async fn metadata_of_a_wrong_type_is_refused(w: World) {
    let body = with(w.widget("a", json!({})), "/metadata/labels", json!({"l": 1}));
    w.post(&w.widgets().await, &body).await.refused(400, "BadRequest").says("labels");
}

async fn an_unknown_content_type_is_refused(w: World) {
    let body = configmap("a", json!({})).to_string();
    let refusal = post(&w, &w.configmaps(), "text/plain", &body).await.refused(415, "UnsupportedMediaType");
    refusal.says("application/json");
}

async fn a_content_type_with_parameters_is_understood(w: World) {
    post(&w, &w.configmaps(), "application/json; charset=utf-8", &configmap("a", json!({})).to_string())
        .await
        .created();
}

async fn yaml_is_understood(w: World) {
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
    let made = post(&w, &w.configmaps(), "application/yaml", body).await.created();
    assert_eq!(made["data"]["k"], "v");
}

async fn an_accept_header_that_cannot_be_served_is_refused(w: World) {
    w.get_as(&w.configmaps(), "text/html").await.refused(406, "NotAcceptable").says("application/json");
}

async fn any_accept_header_with_a_wildcard_is_served(w: World) {
    for accept in ["*/*", "text/html, */*;q=0.1"] {
        let answer = w.get_as(&w.configmaps(), accept).await;
        assert_eq!(answer.header("content-type"), JSON, "{accept}");
        answer.ok();
    }
}

async fn protobuf_falls_back_to_json_when_both_are_accepted(w: World) {
    // Custom resources have no protobuf form on any server.
    let answer = w.get_as(&w.widgets().await, "application/vnd.kubernetes.protobuf,application/json").await;
    assert_eq!(answer.header("content-type"), JSON);
    assert_eq!(answer.ok()["kind"], "WidgetList");
    assert_eq!(w.get_as(&w.widgets().await, "application/vnd.kubernetes.protobuf").await.status, 406);
}

async fn a_body_of_more_than_three_mebibytes_is_refused(w: World) {
    let body = configmap("a", json!({"k": "x".repeat(3 * 1024 * 1024)}));
    w.post(&w.configmaps(), &body).await.refused(413, "RequestEntityTooLarge").says("limit is 3145728");
}

async fn an_object_larger_than_the_store_takes_is_refused(w: World) {
    // A configmap holds 1 MiB of data, whatever the store could hold.
    let body = configmap("a", json!({"k": "x".repeat(1024 * 1024 + 1)}));
    w.post(&w.configmaps(), &body).await.refused(422, "Invalid").cause("FieldValueTooLong", "[]");
}

async fn posting_to_an_object_is_not_allowed(w: World) {
    let made = w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    let refusal = w.post(&w.configmap("a"), &made).await.refused(405, "MethodNotAllowed");
    refusal.says("the server does not allow this method on the requested resource");
}

async fn putting_to_a_collection_is_not_allowed(w: World) {
    let refusal = w.put(&w.configmaps(), &configmap("a", json!({}))).await.refused(405, "MethodNotAllowed");
    refusal.without_details();
    // For a custom resource, the missing name is reported first.
    let (path, body) = (w.widgets().await, w.widget("a", json!({})));
    w.put(&path, &body).await.refused(400, "BadRequest").says("name must be provided");
    w.merge(&path, &body).await.refused(400, "BadRequest").says("name must be provided");
}

async fn a_status_can_only_be_read_and_changed(w: World) {
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({}))).await.created();
    let status = format!("{path}/a/status");
    for (verb, answer) in
        [("create", w.post(&status, &w.widget("a", json!({}))).await), ("delete", w.delete(&status).await)]
    {
        let refusal = answer.refused(405, "MethodNotAllowed").about(w.group(), "widgets", "");
        refusal.says(&format!("{verb} is not supported on resources of kind \"widgets.{}\"", w.group()));
    }
    w.delete("/api/v1/namespaces/default/status").await.refused(405, "MethodNotAllowed").without_details();
}

async fn deleting_all_namespaces_is_not_allowed(w: World) {
    w.delete("/api/v1/namespaces?labelSelector=no-such-label").await.refused(405, "MethodNotAllowed");
}

async fn posting_across_namespaces_is_not_allowed(w: World) {
    let body = with(configmap("a", json!({})), "/metadata/namespace", w.ns.clone().into());
    w.post("/api/v1/configmaps", &body).await.refused(405, "MethodNotAllowed").without_details();
    w.widgets().await;
    let body = with(w.widget("a", json!({})), "/metadata/namespace", w.ns.clone().into());
    w.post(&format!("/apis/{}/v1/widgets", w.group()), &body).await.no_page();
}

async fn an_object_without_its_namespace_is_not_found(w: World) {
    w.get("/api/v1/configmaps/a").await.refused(404, "NotFound").without_details();
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({}))).await.created();
    w.get(&format!("/apis/{}/v1/widgets/a", w.group())).await.no_page();
    w.get(&w.core("namespaces")).await.refused(404, "NotFound").without_details();
}

async fn an_unknown_resource_is_not_found(w: World) {
    w.get(&w.core("nosuchthings"))
        .await
        .refused(404, "NotFound")
        .without_details()
        .says("the server could not find the requested resource");
    w.widgets().await;
    w.get(&w.apis(&format!("{}/v1", w.group()), "nosuchthings")).await.no_page();
    w.get(&w.apis(&format!("{}/v9", w.group()), "widgets")).await.no_page();
}

async fn an_unknown_subresource_is_not_found(w: World) {
    w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    w.get(&format!("{}/nosuch", w.configmap("a"))).await.refused(404, "NotFound").without_details();
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({}))).await.created();
    w.get(&format!("{path}/a/nosuch")).await.refused(404, "NotFound").about(w.group(), "widgets", "a");
}

async fn an_error_is_told_as_json(w: World) {
    let answer = w.get(&w.configmap("absent")).await;
    assert_eq!(answer.header("content-type"), JSON);
}
