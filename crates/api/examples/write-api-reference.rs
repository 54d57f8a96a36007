//! Writes `docs/api-reference.md`: every kind and every field, from the CRDs.

use std::path::{Path, PathBuf};
use std::{error, fs};

use aviary_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

fn main() -> Result<(), Box<dyn error::Error>> {
    fs::write(path(), reference()?)?;
    Ok(())
}

/// The path of the reference.
pub(crate) fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api-reference.md")
}

const HEAD: &str = "\
# API reference

Generated from the CRDs in `deploy/crds` by `make crds`: do not edit.

Every kind has the usual `metadata`. The name of a field is followed by its type, whether it is required, its default and its
allowed values; then its meaning, and the rules that the API server checks. `[]` is a list, `{}` a map from names.
";

/// The whole reference.
pub(crate) fn reference() -> Result<String, serde_json::Error> {
    let all = crds::all();
    let mut text = HEAD.to_owned();
    text.push('\n');
    for crd in &all {
        let kind = &crd.spec.names.kind;
        text.push_str(&format!("- [{kind}](#{})\n", kind.to_lowercase()));
    }
    for crd in &all {
        text.push_str(&of_kind(crd)?);
    }
    Ok(text)
}

fn of_kind(crd: &CustomResourceDefinition) -> Result<String, serde_json::Error> {
    let spec = &crd.spec;
    let mut text = format!("\n## {}\n", spec.names.kind);
    for version in &spec.versions {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let schema = serde_json::to_value(schema)?;
        let scope = if spec.scope == "Namespaced" { "namespaced" } else { "cluster-scoped" };
        let mut names = vec![format!("`{}`", spec.names.plural)];
        names.extend(spec.names.short_names.iter().flatten().map(|name| format!("`{name}`")));
        text.push_str(&format!("\n{}\n\n", said(&schema)));
        text.push_str(&format!(
            "`{}/{}`, {scope}; for kubectl: {}.\n\n",
            spec.group,
            version.name,
            names.join(", ")
        ));
        for rule in rules(&schema) {
            text.push_str(&format!("Rule: {rule}.\n\n"));
        }
        fields(&schema, 0, &mut text);
    }
    Ok(text)
}

/// Writes one line for each field of an object, followed by its subfields.
fn fields(schema: &Value, depth: usize, text: &mut String) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if depth == 0 && name == "metadata" {
            continue;
        }
        let (inner, type_) = unwrapped(field);
        let indent = "  ".repeat(depth);
        let mut about = vec![type_];
        if required.contains(&name.as_str()) {
            about.push("required".to_owned());
        }
        about.extend(field.get("default").map(|default| format!("default `{default}`")));
        about.extend(values(inner));
        text.push_str(&format!("{indent}- **{name}** ({})", about.join("; ")));
        let meaning = said(field);
        if !meaning.is_empty() {
            text.push_str(&format!(": {meaning}"));
        }
        text.push('\n');
        let of_elements = if std::ptr::eq(field, inner) { Vec::new() } else { rules(inner) };
        for rule in rules(field).into_iter().chain(of_elements) {
            text.push_str(&format!("{indent}  Rule: {rule}.\n"));
        }
        fields(inner, depth + 1, text);
    }
}

/// The element schema of a list or map, and the type as text.
fn unwrapped(schema: &Value) -> (&Value, String) {
    let mut inner = schema;
    let mut suffix = String::new();
    loop {
        if inner.get("items").is_some() {
            inner = &inner["items"];
            suffix.push_str("[]");
        } else if inner["additionalProperties"].is_object() {
            inner = &inner["additionalProperties"];
            suffix.push_str("{}");
        } else {
            break;
        }
    }
    let name = match inner["type"].as_str() {
        _ if inner["x-kubernetes-int-or-string"] == true => "integer or string",
        _ if inner["x-kubernetes-embedded-resource"] == true => "any object",
        Some("string") if inner["format"] == "date-time" => "time",
        Some(name) => name,
        None => "any value",
    };
    (inner, format!("{name}{suffix}"))
}

/// The allowed values of a field, if they are limited.
fn values(schema: &Value) -> Option<String> {
    let values: Vec<String> = schema["enum"].as_array()?.iter().map(|value| format!("`{value}`")).collect();
    Some(format!("one of {}", values.join(", ")))
}

/// The description on one line.
fn said(schema: &Value) -> String {
    let description = schema["description"].as_str().unwrap_or_default();
    description.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The messages of the CEL rules.
fn rules(schema: &Value) -> Vec<String> {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    rules
        .filter_map(|rule| rule["message"].as_str())
        .map(|message| message.trim_end_matches('.').replace("__", r"\_\_"))
        .collect()
}
