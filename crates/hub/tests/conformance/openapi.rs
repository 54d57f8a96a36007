//! The published schemas that kubectl reads.

use serde_json::Value;

use crate::check::{Check, checks};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        openapi_v2_is_served_to_the_protobuf_accept_type,
        the_index_of_openapi_v3_points_to_each_group_version,
        a_group_document_has_schemas_and_paths,
        a_patch_operation_tells_its_parameters_and_its_kind,
        a_custom_resource_is_published_with_its_schema,
        an_unknown_group_document_is_404,
    ]
}

async fn openapi_v2_is_served_to_the_protobuf_accept_type(w: World) {
    // kubectl apply and create fail on every version when this is 404 or 406.
    let answer = w.get_as("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf").await;
    assert_eq!(answer.status, 200);
}

async fn document(w: &World, key: &str) -> Value {
    let index = w.get("/openapi/v3").await.ok();
    let url =
        index["paths"][key]["serverRelativeURL"].as_str().unwrap_or_else(|| panic!("no {key} in {index}"));
    assert!(url.starts_with(&format!("/openapi/v3/{key}")), "{url}");
    w.get(url).await.ok()
}

async fn the_index_of_openapi_v3_points_to_each_group_version(w: World) {
    let index = w.get("/openapi/v3").await.ok();
    for key in ["api/v1", "apis/apps/v1", "apis/coordination.k8s.io/v1", "apis/apiextensions.k8s.io/v1"] {
        assert!(index["paths"][key]["serverRelativeURL"].is_string(), "{key}");
    }
}

async fn a_group_document_has_schemas_and_paths(w: World) {
    let document = document(&w, "api/v1").await;
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.0")));
    let schema = &document["components"]["schemas"]["io.k8s.api.core.v1.ConfigMap"];
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "ConfigMap");
    assert!(document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["get"].is_object());
}

async fn a_patch_operation_tells_its_parameters_and_its_kind(w: World) {
    // These parameters tell kubectl that the server supports dry runs and field validation.
    let document = document(&w, "api/v1").await;
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
    let names: Vec<_> =
        patch["parameters"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    for name in ["dryRun", "fieldManager", "fieldValidation", "force"] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    let kind = &patch["x-kubernetes-group-version-kind"];
    assert_eq!(
        (&kind["group"], &kind["version"], &kind["kind"]),
        (&"".into(), &"v1".into(), &"ConfigMap".into())
    );
}

async fn a_custom_resource_is_published_with_its_schema(w: World) {
    w.widgets().await;
    let key = format!("apis/{}/v1", w.group());
    w.eventually("the schema is published", || async { w.get("/openapi/v3").await.text.contains(&key) })
        .await;
    let path = format!("/{key}/namespaces/{{namespace}}/widgets/{{name}}");
    w.eventually("the path is published", || async { !document(&w, &key).await["paths"][&path].is_null() })
        .await;
    let document = document(&w, &key).await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let widget = schemas
        .values()
        .find(|schema| schema["x-kubernetes-group-version-kind"][0]["kind"] == "Widget")
        .unwrap();
    assert_eq!(widget["properties"]["spec"]["properties"]["size"]["maximum"].as_f64(), Some(100.0));
    assert_eq!(document["paths"][&path]["patch"]["x-kubernetes-group-version-kind"]["kind"], "Widget");
}

async fn an_unknown_group_document_is_404(w: World) {
    assert_eq!(w.get("/openapi/v3/apis/no.such.group/v1").await.status, 404);
}
