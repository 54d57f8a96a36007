//! CEL rules of schemas: when they are compiled and evaluated, and their messages.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::crds::{CRDS, crd, own_group, spec_schema};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        a_rule_refuses_with_its_message,
        a_rule_without_message_tells_itself,
        a_rule_can_compute_its_message,
        a_rule_can_name_its_field_and_reason,
        a_rule_of_a_list_is_evaluated_per_item,
        a_transition_rule_is_evaluated_on_updates_only,
        an_immutable_field_can_be_written_as_a_rule,
        an_optional_old_self_sees_creates_too,
        a_root_rule_sees_the_name,
        has_tells_whether_a_field_is_set,
        a_rule_is_not_evaluated_where_the_type_is_wrong,
        rules_see_defaults,
        a_rule_that_does_not_compile_is_refused_with_its_crd,
        a_rule_of_a_field_that_does_not_exist_is_refused_with_its_crd,
        a_rule_that_is_not_a_bool_is_refused_with_its_crd,
        a_status_rule_is_evaluated_on_status_writes,
    ]
}

/// Serves gizmos whose spec has these properties and rules.
struct Gizmos {
    path: String,
    version: String,
}

impl Gizmos {
    async fn serve(w: &World, properties: Value, rules: Value) -> Gizmos {
        let mut schema = spec_schema(properties);
        schema["properties"]["spec"]["x-kubernetes-validations"] = rules;
        Gizmos::with_schema(w, schema).await
    }

    async fn with_schema(w: &World, schema: Value) -> Gizmos {
        let group = own_group();
        let path = w.serve_crd(&crd(&group, schema)).await;
        Gizmos { path, version: format!("{group}/v1") }
    }

    fn gizmo(&self, name: &str, spec: Value) -> Value {
        json!({"apiVersion": self.version, "kind": "Gizmo", "metadata": {"name": name}, "spec": spec})
    }
}

fn number() -> Value {
    json!({"type": "integer"})
}

async fn a_rule_refuses_with_its_message(w: World) {
    let rules = json!([{"rule": "self.min <= self.max", "message": "min is above max"}]);
    let g = Gizmos::serve(&w, json!({"min": number(), "max": number()}), rules).await;
    w.post(&g.path, &g.gizmo("a", json!({"min": 1, "max": 2}))).await.created();
    let refusal = w.post(&g.path, &g.gizmo("b", json!({"min": 3, "max": 2}))).await.refused(422, "Invalid");
    refusal.says("min is above max").cause("FieldValueInvalid", "spec");
}

async fn a_rule_without_message_tells_itself(w: World) {
    let g = Gizmos::serve(&w, json!({"n": number()}), json!([{"rule": "self.n > 0"}])).await;
    let refusal = w.post(&g.path, &g.gizmo("a", json!({"n": 0}))).await.refused(422, "Invalid");
    refusal.says("failed rule: self.n > 0");
}

async fn a_rule_can_compute_its_message(w: World) {
    let rules =
        json!([{"rule": "self.n > 0", "messageExpression": "'n is ' + (self.n < 0 ? 'negative' : 'zero')"}]);
    let g = Gizmos::serve(&w, json!({"n": number()}), rules).await;
    w.post(&g.path, &g.gizmo("a", json!({"n": -5}))).await.refused(422, "Invalid").says("n is negative");
}

async fn a_rule_can_name_its_field_and_reason(w: World) {
    let rules = json!([{"rule": "self.n > 0", "fieldPath": ".n", "reason": "FieldValueForbidden"}]);
    let g = Gizmos::serve(&w, json!({"n": number()}), rules).await;
    let refusal = w.post(&g.path, &g.gizmo("a", json!({"n": 0}))).await.refused(422, "Invalid");
    refusal.cause("FieldValueForbidden", "spec.n");
}

async fn a_rule_of_a_list_is_evaluated_per_item(w: World) {
    let item = json!({"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self.startsWith('x-')", "message": "no prefix"}]});
    let g =
        Gizmos::serve(&w, json!({"all": {"type": "array", "maxItems": 10, "items": item}}), json!([])).await;
    let refusal = w.post(&g.path, &g.gizmo("a", json!({"all": ["x-a", "b"]}))).await.refused(422, "Invalid");
    refusal.says("no prefix").cause("FieldValueInvalid", "spec.all[1]");
}

async fn a_transition_rule_is_evaluated_on_updates_only(w: World) {
    let rules = json!([{"rule": "self.n >= oldSelf.n", "message": "n never falls"}]);
    let g = Gizmos::serve(&w, json!({"n": number()}), rules).await;
    w.post(&g.path, &g.gizmo("a", json!({"n": 5}))).await.created();
    let one = format!("{}/a", g.path);
    w.merge(&one, &json!({"spec": {"n": 6}})).await.ok();
    w.merge(&one, &json!({"spec": {"n": 4}})).await.refused(422, "Invalid").says("n never falls");
}

async fn an_immutable_field_can_be_written_as_a_rule(w: World) {
    let fixed = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}]});
    let g = Gizmos::serve(&w, json!({"fixed": fixed, "n": number()}), json!([])).await;
    w.post(&g.path, &g.gizmo("a", json!({"fixed": "x"}))).await.created();
    let one = format!("{}/a", g.path);
    w.merge(&one, &json!({"spec": {"n": 1}})).await.ok();
    let refusal = w.merge(&one, &json!({"spec": {"fixed": "y"}})).await.refused(422, "Invalid");
    refusal.says("fixed is immutable").cause("FieldValueInvalid", "spec.fixed");
}

async fn an_optional_old_self_sees_creates_too(w: World) {
    let rules = json!([{"rule": "oldSelf.hasValue() || self.n == 0", "optionalOldSelf": true, "message": "starts at 0"}]);
    let g = Gizmos::serve(&w, json!({"n": number()}), rules).await;
    w.post(&g.path, &g.gizmo("a", json!({"n": 1}))).await.refused(422, "Invalid").says("starts at 0");
    w.post(&g.path, &g.gizmo("a", json!({"n": 0}))).await.created();
    w.merge(&format!("{}/a", g.path), &json!({"spec": {"n": 1}})).await.ok();
}

async fn a_root_rule_sees_the_name(w: World) {
    let mut schema = spec_schema(json!({"n": number()}));
    schema["x-kubernetes-validations"] =
        json!([{"rule": "self.metadata.name.startsWith('g-')", "message": "bad prefix"}]);
    let g = Gizmos::with_schema(&w, schema).await;
    w.post(&g.path, &g.gizmo("g-a", json!({}))).await.created();
    w.post(&g.path, &g.gizmo("a", json!({}))).await.refused(422, "Invalid").says("bad prefix");
}

async fn has_tells_whether_a_field_is_set(w: World) {
    let rules = json!([{"rule": "has(self.n) != has(self.m)", "message": "exactly one"}]);
    let g = Gizmos::serve(&w, json!({"n": number(), "m": number()}), rules).await;
    w.post(&g.path, &g.gizmo("a", json!({"n": 0}))).await.created();
    for spec in [json!({}), json!({"n": 1, "m": 1})] {
        w.post(&g.path, &g.gizmo("b", spec)).await.refused(422, "Invalid").says("exactly one");
    }
}

async fn a_rule_is_not_evaluated_where_the_type_is_wrong(w: World) {
    let g = Gizmos::serve(&w, json!({"n": number()}), json!([{"rule": "self.n > 0", "message": "positive"}]))
        .await;
    let refusal = w.post(&g.path, &g.gizmo("a", json!({"n": "text"}))).await.refused(422, "Invalid");
    let refusal = refusal.cause("FieldValueTypeInvalid", "spec.n");
    assert!(!refusal.0["message"].as_str().unwrap().contains("positive"));
}

async fn rules_see_defaults(w: World) {
    let properties = json!({"n": {"type": "integer", "default": 7}});
    let g = Gizmos::serve(&w, properties, json!([{"rule": "self.n == 7", "message": "not seven"}])).await;
    w.post(&g.path, &g.gizmo("a", json!({}))).await.created();
    w.post(&g.path, &g.gizmo("b", json!({"n": 8}))).await.refused(422, "Invalid").says("not seven");
}

async fn refused_rule(w: &World, rule: &str) {
    let mut schema = spec_schema(json!({"n": number()}));
    schema["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": rule}]);
    let refusal = w.post(CRDS, &crd(&own_group(), schema)).await.refused(422, "Invalid");
    let at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    refusal.cause("FieldValueInvalid", at);
}

async fn a_rule_that_does_not_compile_is_refused_with_its_crd(w: World) {
    refused_rule(&w, "self.n >").await;
}

async fn a_rule_of_a_field_that_does_not_exist_is_refused_with_its_crd(w: World) {
    refused_rule(&w, "self.absent > 0").await;
}

async fn a_rule_that_is_not_a_bool_is_refused_with_its_crd(w: World) {
    refused_rule(&w, "self.n + 1").await;
}

async fn a_status_rule_is_evaluated_on_status_writes(w: World) {
    let group = own_group();
    let mut schema = spec_schema(json!({"n": number()}));
    schema["properties"]["status"] = json!({
        "type": "object", "properties": {"seen": number()},
        "x-kubernetes-validations": [{"rule": "self.seen >= 0", "message": "seen is negative"}],
    });
    let mut body = crd(&group, schema);
    body["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let path = w.serve_crd(&body).await;
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Gizmo", "metadata": {"name": "a"}});
    w.post(&path, &object).await.created();
    let refusal =
        w.merge(&format!("{path}/a/status"), &json!({"status": {"seen": -1}})).await.refused(422, "Invalid");
    refusal.says("seen is negative").cause("FieldValueInvalid", "status");
}
