//! Schemas and objects as YAML, causes as text. Every test uses `check`, `admitted` or
//! `refused_schema`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "helpers of tests: they fail by panicking, and take their expectation as it is written"
)]

mod defaulting;
mod depth;
mod formats;
mod keywords;
mod lists;
mod properties;
mod pruning;
mod rules;
mod shipped;
mod structure;
mod updates;

use aviary_schema::{Admission, Admitted, Cause, Schema, UnknownFields};
use expect_test::Expect;
use serde_json::{Value, json};

pub fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("test YAML")
}

/// The schema of a resource whose spec has these properties.
pub fn resource(properties: &str) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": yaml(properties)}}})
}

pub fn admission(schema: &Value) -> Admission {
    Admission::new(schema).unwrap_or_else(|causes| panic!("schema refused:\n{}", story(&causes)))
}

pub fn story(causes: &[Cause]) -> String {
    if causes.is_empty() {
        return "ok\n".to_owned();
    }
    causes.iter().map(|cause| format!("{} {cause}\n", cause.reason)).collect()
}

/// What is wrong with each of the specs (YAML documents in flow style, one per line).
pub fn check(properties: &str, specs: &str, expected: Expect) {
    let admission = admission(&resource(properties));
    let mut out = String::new();
    for spec in specs.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let verdict = match admission.admit(json!({"spec": yaml(spec)}), None, UnknownFields::Ignore) {
            Ok(_) => "ok\n".to_owned(),
            Err(causes) => story(&causes),
        };
        out.push_str(&format!("{spec}\n"));
        verdict.lines().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    expected.assert_eq(&out);
}

/// The stored spec, and the dropped fields.
pub fn admitted(properties: &str, spec: &str, expected: Expect) {
    let Admitted { object, pruned } = admission(&resource(properties))
        .admit(json!({"spec": yaml(spec)}), None, UnknownFields::Warn)
        .unwrap_or_else(|causes| panic!("refused:\n{}", story(&causes)));
    let mut out = format!("{}\n", object["spec"]);
    pruned.iter().for_each(|field| out.push_str(&format!("pruned {field}\n")));
    expected.assert_eq(&out);
}

/// Why a property's schema is rejected; paths start at the property.
pub fn refused_schema(property: &str, expected: Expect) {
    let schema = json!({"type": "object", "properties": {"x": yaml(property)}});
    let causes = Schema::parse(&schema).err().unwrap_or_default();
    expected.assert_eq(&story(&causes).replace("openAPIV3Schema.properties[x]", "x"));
}
