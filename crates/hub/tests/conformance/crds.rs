//! The life of a CustomResourceDefinition; and the definitions that the other checks use.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{name_of, rv_of, with};
use crate::world::{World, fresh};

pub fn checks() -> Vec<Check> {
    checks![
        a_new_crd_is_accepted_and_established,
        a_crd_tells_its_stored_versions_and_accepted_names,
        list_kind_and_singular_are_defaulted,
        a_crd_must_be_named_after_its_plural_and_group,
        a_crd_without_schema_is_refused,
        a_schema_that_is_not_structural_is_refused,
        a_schema_that_forbids_additional_properties_beside_properties_is_refused,
        a_default_that_does_not_fit_its_schema_is_refused,
        two_storage_versions_are_refused,
        a_scope_cannot_change,
        taken_names_are_not_accepted,
        a_cluster_scoped_resource_is_served_without_namespace,
        deleting_a_crd_deletes_its_objects_and_its_endpoint,
        a_crd_that_holds_finalized_objects_waits,
        a_reserved_group_needs_an_approval,
        crds_print_when_they_were_created,
    ]
}

pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// `gizmos` of this group, with one version whose schema this is.
pub fn crd(group: &str, schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gizmos.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// A schema whose `spec` has these properties.
pub fn spec_schema(properties: Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

pub fn simple_schema() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"type": "object", "properties": {"spec": any, "status": any}})
}

/// The resource that all checks share: see `World::widgets`.
pub fn widget_crd(group: &str) -> Value {
    let port = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}}});
    let spec = json!({
        "size": {"type": "integer", "minimum": 0, "maximum": 100},
        "color": {"type": "string", "enum": ["red", "green", "blue"]},
        "note": {"type": "string", "maxLength": 10, "pattern": "^[a-z]*$"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3, "x-kubernetes-list-type": "set"},
        "ports": {"type": "array", "items": port, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "mode": {"type": "string", "default": "auto"},
        "nested": {"type": "object", "required": ["must"], "properties": {"must": {"type": "string"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "objects": {"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}},
        "maybe": {"type": "string", "nullable": true},
        "either": {"x-kubernetes-int-or-string": true},
    });
    let mut schema = spec_schema(spec);
    schema["properties"]["extra"] = json!({"type": "string"});
    schema["properties"]["status"] = json!({"type": "object", "properties": {"phase": {"type": "string"}}});
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": ".spec.color"}],
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    });
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wg"], "categories": ["gadgets"]});
    let spec = json!({"group": group, "scope": "Namespaced", "names": names, "versions": [version]});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")}, "spec": spec,
    })
}

pub fn own_group() -> String {
    format!("{}.conformance.test", fresh("own"))
}

pub fn place(crd: &Value) -> String {
    format!("{CRDS}/{}", name_of(crd))
}

fn condition<'a>(crd: &'a Value, name: &str) -> &'a Value {
    let all = crd["status"]["conditions"].as_array().unwrap_or_else(|| panic!("no conditions in {crd}"));
    all.iter().find(|condition| condition["type"] == name).unwrap_or_else(|| panic!("no {name} in {crd}"))
}

async fn a_new_crd_is_accepted_and_established(w: World) {
    let crd = crd(&own_group(), simple_schema());
    w.forget_later(&place(&crd));
    let made = w.post(CRDS, &crd).await.created();
    let mut now = made;
    let query =
        format!("{CRDS}?fieldSelector=metadata.name%3D{}&resourceVersion={}", name_of(&crd), rv_of(&now));
    let mut watch = w.watch(&query).await;
    let settled = |crd: &Value| {
        crd["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["type"] == "Established" && one["status"] == "True"))
    };
    while !settled(&now) {
        now = watch.sees("MODIFIED", name_of(&crd)).await;
    }
    assert_eq!(condition(&now, "NamesAccepted")["status"], "True");
    for key in ["lastTransitionTime", "reason", "message"] {
        assert!(condition(&now, "Established")[key].is_string(), "{key}");
    }
}

async fn a_crd_tells_its_stored_versions_and_accepted_names(w: World) {
    let crd = crd(&own_group(), simple_schema());
    w.serve_crd(&crd).await;
    let status = w.get(&place(&crd)).await.ok()["status"].clone();
    assert_eq!(status["storedVersions"], json!(["v1"]));
    assert_eq!(status["acceptedNames"], crd["spec"]["names"]);
}

async fn list_kind_and_singular_are_defaulted(w: World) {
    let body =
        with(crd(&own_group(), simple_schema()), "/spec/names", json!({"plural": "gizmos", "kind": "Gizmo"}));
    w.serve_crd(&body).await;
    let made = w.get(&place(&body)).await.ok();
    let names = &made["spec"]["names"];
    assert_eq!((&names["singular"], &names["listKind"]), (&"gizmo".into(), &"GizmoList".into()));
    assert_eq!(made["spec"]["conversion"], json!({"strategy": "None"}));
}

async fn a_crd_must_be_named_after_its_plural_and_group(w: World) {
    let body = with(crd(&own_group(), simple_schema()), "/metadata/name", "other.example.com".into());
    let refusal = w.post(CRDS, &body).await.refused(422, "Invalid");
    refusal
        .about("apiextensions.k8s.io", "CustomResourceDefinition", "other.example.com")
        .cause("FieldValueInvalid", "metadata.name");
}

async fn a_crd_without_schema_is_refused(w: World) {
    let mut body = crd(&own_group(), simple_schema());
    body["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    let refusal = w.post(CRDS, &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueRequired", "spec.versions[0].schema.openAPIV3Schema");
}

const ROOT: &str = "spec.validation.openAPIV3Schema";

async fn a_schema_that_is_not_structural_is_refused(w: World) {
    let body = crd(&own_group(), spec_schema(json!({"untyped": {"description": "of no type"}})));
    let refusal = w.post(CRDS, &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueRequired", &format!("{ROOT}.properties[spec].properties[untyped].type"));
    let body = crd(&own_group(), json!({"type": "object", "properties": {"spec": {"type": "array"}}}));
    let refusal = w.post(CRDS, &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueRequired", &format!("{ROOT}.properties[spec].items"));
}

async fn a_schema_that_forbids_additional_properties_beside_properties_is_refused(w: World) {
    let mut schema = spec_schema(json!({"a": {"type": "string"}}));
    schema["properties"]["spec"]["additionalProperties"] = json!({"type": "string"});
    let refusal = w.post(CRDS, &crd(&own_group(), schema)).await.refused(422, "Invalid");
    refusal.says("mutual exclusive");
}

async fn a_default_that_does_not_fit_its_schema_is_refused(w: World) {
    let body = crd(&own_group(), spec_schema(json!({"a": {"type": "string", "default": 1}})));
    let refusal = w.post(CRDS, &body).await.refused(422, "Invalid");
    refusal.says("default");
}

async fn two_storage_versions_are_refused(w: World) {
    let mut body = crd(&own_group(), simple_schema());
    let second = with(body["spec"]["versions"][0].clone(), "/name", "v2".into());
    body["spec"]["versions"].as_array_mut().unwrap().push(second);
    let refusal = w.post(CRDS, &body).await.refused(422, "Invalid");
    refusal.says("must have exactly one version marked as storage version");
}

async fn a_scope_cannot_change(w: World) {
    let crd = crd(&own_group(), simple_schema());
    w.serve_crd(&crd).await;
    let refusal = w.merge(&place(&crd), &json!({"spec": {"scope": "Cluster"}})).await.refused(422, "Invalid");
    refusal.says("field is immutable").cause("FieldValueInvalid", "spec.scope");
}

async fn taken_names_are_not_accepted(w: World) {
    let group = own_group();
    w.serve_crd(&crd(&group, simple_schema())).await;
    let mut second = crd(&group, simple_schema());
    second["metadata"]["name"] = format!("doohickeys.{group}").into();
    second["spec"]["names"] = json!({"plural": "doohickeys", "kind": "Gizmo", "listKind": "DoohickeyList"});
    w.forget_later(&place(&second));
    // It is created, but its status shows that it is not served.
    w.post(CRDS, &second).await.created();
    let path = place(&second);
    w.eventually("the conflict is told", || async { w.get(&path).await.text.contains("NamesAccepted") })
        .await;
    let now = w.get(&path).await.ok();
    let told = condition(&now, "NamesAccepted");
    assert_eq!((&told["status"], &told["reason"]), (&"False".into(), &"KindConflict".into()));
    assert_eq!(condition(&now, "Established")["status"], "False");
    assert_eq!(w.get(&w.apis(&format!("{group}/v1"), "doohickeys")).await.status, 404);
}

async fn a_cluster_scoped_resource_is_served_without_namespace(w: World) {
    let group = own_group();
    let body = with(crd(&group, simple_schema()), "/spec/scope", "Cluster".into());
    w.forget_later(&place(&body));
    w.post(CRDS, &body).await.created();
    let path = format!("/apis/{group}/v1/gizmos");
    w.eventually("the resource is served", || async { w.get(&path).await.status == 200 }).await;
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Gizmo", "metadata": {"name": "a"}});
    let made = w.post(&path, &object).await.created();
    assert_eq!(made["metadata"].get("namespace"), None);
    assert_eq!(w.get(&w.apis(&format!("{group}/v1"), "gizmos")).await.status, 404);
}

async fn deleting_a_crd_deletes_its_objects_and_its_endpoint(w: World) {
    let group = own_group();
    let body = crd(&group, simple_schema());
    let path = w.serve_crd(&body).await;
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Gizmo", "metadata": {"name": "a"}});
    w.post(&path, &object).await.created();
    w.delete(&place(&body)).await.ok();
    w.gone(&place(&body)).await;
    w.eventually("the endpoint is gone", || async { w.get(&path).await.status == 404 }).await;
    // A second definition of the same name starts without objects.
    w.serve_crd(&body).await;
    assert_eq!(w.get(&path).await.ok()["items"], json!([]));
}

async fn a_crd_that_holds_finalized_objects_waits(w: World) {
    let group = own_group();
    let body = crd(&group, simple_schema());
    let path = w.serve_crd(&body).await;
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Gizmo", "metadata": {"name": "a", "finalizers": ["example.com/held"]}});
    let made = w.post(&path, &object).await.created();
    let mut watch = w.watch(&format!("{path}?resourceVersion={}", rv_of(&made))).await;
    w.delete(&place(&body)).await.ok();
    assert!(watch.sees("MODIFIED", "a").await["metadata"]["deletionTimestamp"].is_string());
    let waiting = w.get(&place(&body)).await.ok();
    assert_eq!(condition(&waiting, "Terminating")["status"], "True");
    assert_eq!(waiting["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    w.merge(&format!("{path}/a"), &json!({"metadata": {"finalizers": null}})).await.ok();
    w.gone(&place(&body)).await;
}

async fn a_reserved_group_needs_an_approval(w: World) {
    let refusal = w
        .post(CRDS, &crd(&format!("{}.k8s.io", fresh("own")), simple_schema()))
        .await
        .refused(422, "Invalid");
    refusal.cause("FieldValueRequired", "metadata.annotations[api-approved.kubernetes.io]");
}

async fn crds_print_when_they_were_created(w: World) {
    let body = crd(&own_group(), simple_schema());
    w.serve_crd(&body).await;
    let table = w.get_as(&place(&body), crate::tables::TABLE).await.ok();
    assert_eq!(table["columnDefinitions"][1]["name"], "Created At");
    assert_eq!(table["rows"][0]["cells"][0], name_of(&body));
}
