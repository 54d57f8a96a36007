//! The effect of a schema on each write of a custom resource: pruning, defaulting, validation.

use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::check::{Check, checks};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        fields_outside_the_schema_are_pruned,
        fields_below_a_preserving_one_are_kept,
        defaults_are_filled_in,
        defaults_are_filled_in_inside_lists,
        a_default_replaces_null_unless_null_is_allowed,
        a_wrong_type_is_told_as_a_cause,
        a_missing_required_field_is_told_as_a_cause,
        a_value_outside_an_enum_is_told_as_a_cause,
        a_value_outside_a_pattern_is_told_as_a_cause,
        a_value_below_or_above_a_bound_is_told_as_a_cause,
        a_text_that_is_too_long_is_told_as_a_cause,
        a_list_that_is_too_long_is_told_as_a_cause,
        a_set_with_a_duplicate_is_told_as_a_cause,
        a_list_map_with_a_duplicate_key_is_told_as_a_cause,
        an_int_or_string_takes_both,
        an_integer_may_be_written_as_a_whole_float,
        all_problems_of_an_object_are_told_together,
        an_update_is_validated_too,
        an_old_fault_is_tolerated_while_it_does_not_change,
        an_embedded_object_needs_a_version_and_a_kind_but_no_name,
        the_metadata_of_an_embedded_object_is_validated,
    ]
}

async fn refused(w: &World, spec: Value) -> Refusal {
    let refusal = w.post(&w.widgets().await, &w.widget("a", spec)).await.refused(422, "Invalid");
    refusal.about(w.group(), "Widget", "a")
}

async fn made(w: &World, spec: Value) -> Value {
    w.post(&w.widgets().await, &w.widget("a", spec)).await.created()
}

async fn fields_outside_the_schema_are_pruned(w: World) {
    let made = made(&w, json!({"size": 1, "odd": 1, "nested": {"must": "be", "odd": 1}})).await;
    assert_eq!((made["spec"].get("odd"), &made["spec"]["nested"]), (None, &json!({"must": "be"})));
    let new = w.merge(&format!("{}/a", w.widgets().await), &json!({"odd": 1, "spec": {"odd": 1}})).await.ok();
    assert_eq!((new.get("odd"), new["spec"].get("odd")), (None, None));
}

async fn fields_below_a_preserving_one_are_kept(w: World) {
    let free = json!({"any": {"thing": [1, "two", {"three": null}]}});
    assert_eq!(made(&w, json!({"free": free})).await["spec"]["free"], free);
}

async fn defaults_are_filled_in(w: World) {
    assert_eq!(made(&w, json!({})).await["spec"], json!({"mode": "auto"}));
    // Only inside an object that exists.
    let body =
        json!({"apiVersion": format!("{}/v1", w.group()), "kind": "Widget", "metadata": {"name": "b"}});
    assert_eq!(w.post(&w.widgets().await, &body).await.created().get("spec"), None);
}

async fn defaults_are_filled_in_inside_lists(w: World) {
    let made = made(&w, json!({"ports": [{"name": "a"}, {"name": "b", "port": 1}]})).await;
    assert_eq!(made["spec"]["ports"], json!([{"name": "a", "port": 80}, {"name": "b", "port": 1}]));
}

async fn a_default_replaces_null_unless_null_is_allowed(w: World) {
    let made = made(&w, json!({"mode": null, "maybe": null})).await;
    assert_eq!((&made["spec"]["mode"], made["spec"].get("maybe")), (&"auto".into(), Some(&Value::Null)));
}

async fn a_wrong_type_is_told_as_a_cause(w: World) {
    refused(&w, json!({"size": "big"}))
        .await
        .cause("FieldValueTypeInvalid", "spec.size")
        .says("must be of type integer");
    refused(&w, json!({"nested": []})).await.cause("FieldValueTypeInvalid", "spec.nested");
    refused(&w, json!({"tags": [1]})).await.cause("FieldValueTypeInvalid", "spec.tags[0]");
}

async fn a_missing_required_field_is_told_as_a_cause(w: World) {
    refused(&w, json!({"nested": {}}))
        .await
        .cause("FieldValueRequired", "spec.nested.must")
        .says("Required value");
    refused(&w, json!({"ports": [{"port": 1}]})).await.cause("FieldValueRequired", "spec.ports[0].name");
}

async fn a_value_outside_an_enum_is_told_as_a_cause(w: World) {
    let refusal = refused(&w, json!({"color": "pink"})).await.cause("FieldValueNotSupported", "spec.color");
    refusal.says("supported values: \"red\", \"green\", \"blue\"");
}

async fn a_value_outside_a_pattern_is_told_as_a_cause(w: World) {
    refused(&w, json!({"note": "UP"}))
        .await
        .cause("FieldValueInvalid", "spec.note")
        .says("should match '^[a-z]*$'");
}

async fn a_value_below_or_above_a_bound_is_told_as_a_cause(w: World) {
    let low = refused(&w, json!({"size": -1})).await.cause("FieldValueInvalid", "spec.size");
    low.says("should be greater than or equal to 0");
    let high = refused(&w, json!({"size": 101})).await.cause("FieldValueInvalid", "spec.size");
    high.says("should be less than or equal to 100");
}

async fn a_text_that_is_too_long_is_told_as_a_cause(w: World) {
    refused(&w, json!({"note": "abcdefghijk"}))
        .await
        .cause("FieldValueTooLong", "spec.note")
        .says("may not be more than 10");
}

async fn a_list_that_is_too_long_is_told_as_a_cause(w: World) {
    let refusal = refused(&w, json!({"tags": ["a", "b", "c", "d"]})).await;
    refusal.cause("FieldValueTooMany", "spec.tags").says("must have at most 3 items");
}

async fn a_set_with_a_duplicate_is_told_as_a_cause(w: World) {
    refused(&w, json!({"tags": ["a", "b", "a"]})).await.cause("FieldValueDuplicate", "spec.tags[2]");
}

async fn a_list_map_with_a_duplicate_key_is_told_as_a_cause(w: World) {
    let refusal = refused(&w, json!({"ports": [{"name": "a"}, {"name": "a", "port": 1}]})).await;
    refusal.cause("FieldValueDuplicate", "spec.ports[1]").says("Duplicate value");
}

async fn an_int_or_string_takes_both(w: World) {
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({"either": 1}))).await.created();
    w.post(&path, &w.widget("b", json!({"either": "25%"}))).await.created();
    let refusal = w.post(&path, &w.widget("c", json!({"either": 1.5}))).await.refused(422, "Invalid");
    refusal.cause("FieldValueTypeInvalid", "spec.either");
}

async fn an_integer_may_be_written_as_a_whole_float(w: World) {
    let body = w.widget("a", json!({"size": "SIZE"})).to_string().replace("\"SIZE\"", "2.0");
    let headers = [("content-type", crate::world::JSON)];
    let made = w.send("POST", &w.widgets().await, &headers, body.into_bytes()).await.created();
    assert_eq!(made["spec"]["size"].as_f64(), Some(2.0));
}

async fn all_problems_of_an_object_are_told_together(w: World) {
    let refusal = refused(&w, json!({"size": -1, "color": "pink", "tags": ["a", "a"]})).await;
    let refusal =
        refusal.cause("FieldValueInvalid", "spec.size").cause("FieldValueNotSupported", "spec.color");
    refusal.cause("FieldValueDuplicate", "spec.tags[1]");
}

async fn an_update_is_validated_too(w: World) {
    made(&w, json!({"size": 1})).await;
    let path = format!("{}/a", w.widgets().await);
    let refusal = w.merge(&path, &json!({"spec": {"size": 101}})).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "spec.size");
    assert_eq!(w.get(&path).await.ok()["spec"]["size"], 1);
}

async fn an_old_fault_is_tolerated_while_it_does_not_change(w: World) {
    // Ratcheting: a stricter schema must not block existing objects.
    let group = crate::crds::own_group();
    let body = crate::crds::crd(
        &group,
        crate::crds::spec_schema(json!({"a": {"type": "string"}, "b": {"type": "string"}})),
    );
    let path = w.serve_crd(&body).await;
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Gizmo", "metadata": {"name": "a"}, "spec": {"a": "long"}});
    w.post(&path, &object).await.created();
    let stricter = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/maxLength", "value": 2}]);
    w.patch(&crate::crds::place(&body), crate::world::JSON_PATCH, &stricter).await.ok();
    let probe = json!({"apiVersion": format!("{group}/v1"), "kind": "Gizmo", "metadata": {"name": "probe"}, "spec": {"a": "long"}});
    let dry = format!("{path}?dryRun=All");
    w.eventually("the new schema holds", || async { w.post(&dry, &probe).await.status == 422 }).await;
    w.merge(&format!("{path}/a"), &json!({"spec": {"b": "new"}})).await.ok();
    w.merge(&format!("{path}/a"), &json!({"spec": {"a": "other"}})).await.refused(422, "Invalid");
}

fn embedded(metadata: Value) -> Value {
    json!({"objects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}]})
}

async fn an_embedded_object_needs_a_version_and_a_kind_but_no_name(w: World) {
    let refusal = refused(&w, json!({"objects": [{"metadata": {"name": "a"}}]})).await;
    refusal.cause("FieldValueRequired", "spec.objects[0].apiVersion").says("Required value");
    let refusal = refused(&w, json!({"objects": [{"apiVersion": "v1"}]})).await;
    refusal.cause("FieldValueRequired", "spec.objects[0].kind").says("Required value");
    made(&w, json!({"objects": [{"apiVersion": "v1", "kind": "ConfigMap"}]})).await;
}

async fn the_metadata_of_an_embedded_object_is_validated(w: World) {
    refused(&w, embedded(json!({"name": "a/b"})))
        .await
        .cause("FieldValueInvalid", "spec.objects[0].metadata.name")
        .says("may not contain '/'");
    refused(&w, embedded(json!({"name": "a", "namespace": "{{VARIABLE}}"})))
        .await
        .cause("FieldValueInvalid", "spec.objects[0].metadata.namespace")
        .says("a lowercase RFC 1123 label must consist of");
    refused(&w, embedded(json!({"name": "a", "labels": {"a": "{{VARIABLE}}"}})))
        .await
        .cause("FieldValueInvalid", "spec.objects[0].metadata.labels");
    refused(&w, embedded(json!({"name": "a", "annotations": {"a b": ""}})))
        .await
        .cause("FieldValueInvalid", "spec.objects[0].metadata.annotations");
    let named = embedded(json!({"name": "{{VARIABLE}}", "annotations": {"a": "{{VARIABLE}}"}}));
    assert_eq!(made(&w, named.clone()).await["spec"]["objects"], named["objects"]);
}
