//! The schemas of everything that is served, for `kubectl explain`, `diff` and client-side
//! validation.
//!
//! Owns `/openapi`.

mod v2;

use axum::response::Response;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use crate::api::discovery::{group_versions, rows};
use crate::api::status::json_response;
use crate::kinds::resource::{KindTable, KindVersion, Resource};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_OPTIONS: [&str; 9] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
    "watch",
];
/// These parameters tell clients that the server supports dry runs and field validation.
const WRITE_OPTIONS: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const TYPE_FIELDS: [(&str, &str); 2] = [
    ("apiVersion", "APIVersion defines the versioned schema of this representation of an object."),
    ("kind", "Kind is a string value representing the REST resource this object represents."),
];

/// The whole of version 2, in the requested format.
pub(crate) fn v2(table: &KindTable, headers: &HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let document = v2::document(table);
    if accept.contains("proto-openapi") || accept.contains("protobuf") {
        let mut response = json_response(StatusCode::OK, v2::encode(&document));
        let kind = HeaderValue::from_static("application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        return response;
    }
    json_response(StatusCode::OK, document.to_string())
}

pub(crate) fn index(table: &KindTable) -> Value {
    let path = |(group, version): (String, String)| {
        if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
    };
    let paths: Map<String, Value> = group_versions(table)
        .into_iter()
        .map(path)
        .map(|path| {
            let url = format!("/openapi/v3/{path}");
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

/// The document of a group version: a schema for each kind, and the paths with the parameters that
/// clients look for.
pub(crate) fn document(table: &KindTable, group: &str, version: &str) -> Option<Value> {
    let rows = rows(table, group, version);
    if rows.is_empty() {
        return None;
    }
    let mut schemas = Map::new();
    let mut paths = Map::new();
    schemas.insert(OBJECT_META.into(), object_meta());
    for (resource, version) in rows {
        let kind = json!({"group": group, "version": version.name, "kind": resource.names.kind});
        schemas.insert(schema_name(group, &version.name, &resource.names.kind), schema(version, &kind));
        paths.extend(resource_paths(resource, version, &kind));
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.35.0"}, "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// The name of a schema: Kubernetes' name for built-in kinds, the reversed domain for custom ones.
fn schema_name(group: &str, version: &str, kind: &str) -> String {
    match group {
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        "apiextensions.k8s.io" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        "apps" => format!("io.k8s.api.apps.{version}.{kind}"),
        "coordination.k8s.io" | "events.k8s.io" | "rbac.authorization.k8s.io" => {
            let short = group.split('.').next().unwrap_or_default();
            format!("io.k8s.api.{short}.{version}.{kind}")
        }
        custom => {
            let reversed: Vec<&str> = custom.split('.').rev().collect();
            format!("{}.{version}.{kind}", reversed.join("."))
        }
    }
}

fn schema(version: &KindVersion, kind: &Value) -> Value {
    let mut schema = version.schema.clone();
    schema["x-kubernetes-group-version-kind"] = json!([kind]);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let reference = format!("#/components/schemas/{OBJECT_META}");
        properties.insert(
            "metadata".into(),
            json!({"description": "Standard object's metadata.", "allOf": [{"$ref": reference}]}),
        );
        for (name, description) in TYPE_FIELDS {
            properties.insert(name.into(), json!({"type": "string", "description": description}));
        }
    }
    schema
}

fn object_meta() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let texts = |description: &str| json!({"type": "object", "additionalProperties": {"type": "string"}, "description": description});
    json!({
        "type": "object",
        "description": "ObjectMeta is metadata that all persisted resources must have.",
        "properties": {
            "name": text("Name must be unique within a namespace."),
            "generateName": text("A prefix from which a unique name is made when none is given."),
            "namespace": text("The space within which the name must be unique."),
            "uid": text("The value that is unique to this object in time and space."),
            "resourceVersion": text("The version of the object, to be handed back unchanged."),
            "generation": {"type": "integer", "format": "int64", "description": "Counts the changes of the desired state."},
            "creationTimestamp": {"type": "string", "format": "date-time", "description": "When the object was created."},
            "deletionTimestamp": {"type": "string", "format": "date-time", "description": "When its deletion was asked for."},
            "deletionGracePeriodSeconds": {"type": "integer", "format": "int64", "description": "Seconds it may take to end."},
            "labels": texts("Keys and values by which objects are selected."),
            "annotations": texts("Keys and values for any other use."),
            "selfLink": text("No longer used."),
            "finalizers": {"type": "array", "items": {"type": "string"}, "description": "What must be done before the object is removed."},
            "managedFields": {"type": "array", "description": "Who manages which fields, once someone has applied the object.",
                "items": {"type": "object", "properties": {"manager": {"type": "string"}, "operation": {"type": "string"},
                    "apiVersion": {"type": "string"}, "time": {"type": "string", "format": "date-time"},
                    "fieldsType": {"type": "string"}, "fieldsV1": {"type": "object"}, "subresource": {"type": "string"}}}},
            "ownerReferences": {"type": "array", "description": "The objects this one depends on.", "items": {"type": "object",
                "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"},
                    "uid": {"type": "string"}, "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}}},
        },
    })
}

fn resource_paths(resource: &Resource, version: &KindVersion, kind: &Value) -> Vec<(String, Value)> {
    let root = match resource.group.as_str() {
        "" => format!("/api/{}", version.name),
        group => format!("/apis/{group}/{}", version.name),
    };
    let plural = &resource.names.plural;
    let all = format!("{root}/{plural}");
    let place =
        if resource.namespaced { format!("{root}/namespaces/{{namespace}}/{plural}") } else { all.clone() };
    let list = operation("list", kind, &LIST_OPTIONS);
    let mut paths = vec![
        (
            place.clone(),
            json!({
                "get": list, "post": operation("post", kind, &WRITE_OPTIONS), "delete": operation("deletecollection", kind, &LIST_OPTIONS),
            }),
        ),
        (format!("{place}/{{name}}"), one(kind, true)),
    ];
    if resource.namespaced {
        paths.push((all, json!({"get": list})));
    }
    if version.has_status {
        paths.push((format!("{place}/{{name}}/status"), one(kind, false)));
    }
    paths
}

/// The operations on one object.
fn one(kind: &Value, with_delete: bool) -> Value {
    let patch: Vec<&str> = WRITE_OPTIONS.into_iter().chain(["force"]).collect();
    let mut operations = json!({
        "get": operation("get", kind, &[]), "put": operation("put", kind, &WRITE_OPTIONS), "patch": operation("patch", kind, &patch),
    });
    if with_delete {
        operations["delete"] =
            operation("delete", kind, &["dryRun", "gracePeriodSeconds", "propagationPolicy"]);
    }
    operations
}

fn operation(action: &str, kind: &Value, options: &[&str]) -> Value {
    let parameters: Vec<Value> = options
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
    json!({
        "parameters": parameters, "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind,
    })
}
