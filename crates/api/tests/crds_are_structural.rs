//! Checks what the API server requires of a CRD's schema, and what keeps the estimated cost of CEL
//! rules low.

use crate::support::{beta_schemas, schemas, walk};
use serde_json::{Value, json};

/// Fails if `fault` returns something for any schema of any kind.
fn check(fault: impl Fn(&str, &Value) -> Option<String>) {
    check_kinds(|_, path, schema| fault(path, schema));
}

/// As [`check`], for a fault that depends on the kind.
fn check_kinds(fault: impl Fn(&str, &str, &Value) -> Option<String>) {
    let mut faults = Vec::new();
    for (kind, schema) in schemas().iter().chain(beta_schemas()) {
        walk("", schema, &mut |path, schema| {
            faults.extend(fault(kind, path, schema).map(|fault| format!("{kind} {path}: {fault}")));
        });
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn when(holds: bool, fault: &str) -> Option<String> {
    holds.then(|| fault.to_owned())
}

fn is(schema: &Value, name: &str) -> bool {
    schema["type"] == name
}

fn has(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some()
}

fn is_int_or_string(schema: &Value) -> bool {
    schema["x-kubernetes-int-or-string"] == true
}

#[test]
fn every_schema_has_one_type() {
    check(|_, schema| when(!schema["type"].is_string() && !is_int_or_string(schema), "has no type"));
}

#[test]
fn every_string_is_bounded() {
    check(|_, schema| {
        let bounded = ["maxLength", "enum", "format"].iter().any(|key| has(schema, key));
        when(is(schema, "string") && !bounded, "has no maxLength")
    });
}

#[test]
fn every_list_is_bounded_and_says_of_what() {
    check(|_, schema| {
        when(
            is(schema, "array") && !(has(schema, "maxItems") && has(schema, "items")),
            "lacks maxItems or items",
        )
    });
}

#[test]
fn every_map_is_bounded() {
    check(|_, schema| {
        when(has(schema, "additionalProperties") && !has(schema, "maxProperties"), "has no maxProperties")
    });
}

#[test]
fn every_object_says_what_it_holds() {
    check_kinds(|kind, path, schema| {
        let says = ["properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"];
        // Every kind is declared with a spec. A record is only a status, so nobody sets anything in
        // it.
        let may_be_empty = path.is_empty() || (kind, path) == ("AddOnRolloutRecord", "spec");
        when(
            !may_be_empty && is(schema, "object") && !says.iter().any(|key| has(schema, key)),
            "holds nothing",
        )
    });
}

#[test]
fn nothing_is_there_that_a_structural_schema_may_not_have() {
    check(|_, schema| {
        let banned =
            ["$ref", "$schema", "definitions", "oneOf", "allOf", "not", "uniqueItems", "patternProperties"];
        banned.iter().find(|key| has(schema, key)).map(|key| format!("has {key}"))
    });
    check(|_, schema| when(has(schema, "anyOf") && !is_int_or_string(schema), "has anyOf"));
    check(|_, schema| {
        let written = json!([{ "type": "integer" }, { "type": "string" }]);
        when(is_int_or_string(schema) && schema["anyOf"] != written, "is not written as Kubernetes writes it")
    });
    check(|_, schema| {
        let known = ["int32", "int64", "double", "byte", "date-time", "date", "duration"];
        let format = schema.get("format")?.as_str()?;
        when(!known.contains(&format), "has a format that Kubernetes does not know")
    });
}

#[test]
fn only_a_taint_s_time_may_be_null() {
    check(|path, schema| when(has(schema, "nullable") && path != "spec.taints[].timeAdded", "is nullable"));
}

#[test]
fn every_property_is_described() {
    check(|path, schema| {
        let is_property = !path.ends_with("[]") && !path.ends_with("{}");
        let described = schema["description"].as_str().is_some_and(|text| !text.trim().is_empty());
        when(is_property && !described, "has no description")
    });
}

#[test]
fn what_is_required_and_what_tells_elements_apart_exists() {
    check(|_, schema| {
        let required = schema["required"].as_array()?;
        let missing =
            required.iter().find(|name| schema["properties"].get(name.as_str().unwrap()).is_none())?;
        Some(format!("requires {missing}, which it does not have"))
    });
    check(|_, list| {
        let keys = list["x-kubernetes-list-map-keys"].as_array()?;
        let items = &list["items"];
        let required = items["required"].as_array().cloned().unwrap_or_default();
        let loose = keys.iter().find(|key| {
            let property = &items["properties"][key.as_str().unwrap()];
            property.is_null() || !(required.contains(key) || has(property, "default"))
        })?;
        Some(format!("key {loose} is neither required nor defaulted"))
    });
}

#[test]
fn every_rule_compiles_and_has_a_message() {
    check(|_, schema| {
        let rules = schema.get("x-kubernetes-validations")?.as_array()?;
        rules
            .iter()
            .find(|rule| rule["message"].as_str().is_none_or(str::is_empty))
            .map(|rule| format!("rule {} has no message", rule["rule"]))
    });
    check(|_, schema| {
        let alone = json!({ "x-kubernetes-validations": schema.get("x-kubernetes-validations")? });
        let compiled = kube_cel::compile_schema(&alone);
        compiled.has_errors().then(|| format!("{:?}", compiled.compilation_errors()))
    });
}

#[test]
fn no_rule_costs_too_much() {
    check(|_, schema| {
        let compiled = kube_cel::compile_schema(schema);
        let rules = schema.get("x-kubernetes-validations")?.as_array()?;
        let warnings: Vec<String> = rules
            .iter()
            .flat_map(|rule| kube_cel::estimate_rule_cost(rule["rule"].as_str().unwrap(), &compiled))
            .map(|warning| warning.message)
            .collect();
        when(!warnings.is_empty(), &warnings.join("; "))
    });
}

/// The API server estimates the cost of an int-or-string from the longest possible request, and
/// rejects a traversal of one within a list.
#[test]
fn no_rule_traverses_an_int_or_string() {
    check(|_, schema| {
        if !is_int_or_string(schema) {
            return None;
        }
        let rules = schema.get("x-kubernetes-validations")?.to_string();
        let traversals =
            [".matches(", ".find", ".replace(", ".split(", ".substring(", ".contains(", ".indexOf("];
        traversals.iter().find(|call| rules.contains(*call)).map(|call| format!("calls {call}"))
    });
}
