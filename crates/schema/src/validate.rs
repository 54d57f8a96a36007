//! The value checks of a schema, with the causes of an API server.
//!
//! Owns types, bounds, patterns, formats, enums, required fields and junctions; `unique` checks
//! uniqueness, `cel` rules. Must not change the object.

use serde_json::{Map, Value, json};

use crate::cause::{Cause, CauseReason, Path};
use crate::depth::{MAX_DEPTH, guard};
use crate::format::integer;
use crate::former::Former;
use crate::number;
use crate::structural::{JsonType, Schema};
use crate::{cel, unique};

/// Everything wrong with `new` under `schema`: values, then uniqueness, then rules.
///
/// With `old`, transition rules see the former object, and an unchanged value is not reported, even
/// if the schema has become stricter. Rules do not run if the structure of the object is already
/// wrong: a last cause says so.
pub fn validate(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let root = Path::root();
    let too_deep = [Some(new), old].into_iter().flatten().find_map(|value| guard(value, MAX_DEPTH, &root));
    if let Some(cause) = too_deep {
        return vec![cause];
    }
    let mut causes = Vec::new();
    check(schema, new, old, &root, &mut causes);
    unique::check(schema, new, &root, &mut causes);
    if !schema.has_rules {
        return causes;
    }
    if causes.iter().any(|cause| blocks_rules(cause.reason)) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                      errors to complete validation";
        causes.push(Cause::invalid(&root, &Value::Null, detail));
    } else {
        cel::evaluate(schema, new, old, &root, &mut causes);
    }
    causes
}

/// Rules rely on types, required fields and sizes; other failures do not prevent their evaluation.
fn blocks_rules(reason: CauseReason) -> bool {
    match reason {
        CauseReason::Required
        | CauseReason::TypeInvalid
        | CauseReason::NotSupported
        | CauseReason::TooLong
        | CauseReason::TooMany => true,
        CauseReason::Invalid
        | CauseReason::Duplicate
        | CauseReason::Forbidden
        | CauseReason::UnknownField => false,
    }
}

pub(crate) fn check(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let before = causes.len();
    type_matches(schema, value, path, causes);
    if !value.is_null() {
        junctions(schema, value, path, causes);
    }
    match value {
        Value::String(text) => string(schema, text, path, causes),
        Value::Number(number) => number::check(schema, number, path, causes),
        Value::Array(items) => array(schema, items, old, path, causes),
        Value::Object(fields) => object(schema, fields, old, path, causes),
        Value::Null | Value::Bool(_) => {}
    }
    let listed = &schema.values.one_of_values;
    if !listed.is_empty() && !listed.iter().any(|one| number::same(one, value)) {
        causes.push(Cause::not_supported(path, value, listed.iter()));
    }
    // Compared only if something is wrong: a valid object costs one walk.
    if causes.len() > before && old == Some(value) {
        causes.truncate(before);
    }
}

fn type_matches(schema: &Schema, value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let Some(wanted) = schema.type_name() else { return };
    let whole = |value: &Value| value.as_number().is_some_and(|number| integer(number).is_some());
    let matches = match (schema.kind, value) {
        (_, Value::Null) => schema.nullable,
        (None, value) => value.is_string() || whole(value),
        (Some(JsonType::Object), value) => value.is_object(),
        (Some(JsonType::Array), value) => value.is_array(),
        (Some(JsonType::String), value) => value.is_string(),
        (Some(JsonType::Number), value) => value.is_number(),
        (Some(JsonType::Integer), value) => whole(value),
        (Some(JsonType::Boolean), value) => value.is_boolean(),
    };
    if !matches {
        causes.push(Cause::type_invalid(path, wanted, json_type(value)));
    }
}

pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
    }
}

fn string(schema: &Schema, text: &str, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let values = &schema.values;
    let length = || text.chars().count() as u64;
    if let Some(max) = values.max_length.filter(|max| length() > *max) {
        causes.push(Cause::too_long(path, max));
    }
    if let Some(min) = values.min_length.filter(|min| length() < *min) {
        let detail = format!("{} in body should be at least {min} chars long", path.in_body());
        causes.push(Cause::invalid(path, &json!(text), &detail));
    }
    if let Some(pattern) = values.pattern.as_ref().filter(|pattern| !pattern.regex.is_match(text)) {
        let detail = format!("{} in body should match '{}'", path.in_body(), pattern.source);
        causes.push(Cause::invalid(path, &json!(text), &detail));
    }
    if let Some(format) = values.format.filter(|format| !format.accepts_text(text)) {
        causes.push(Cause::type_invalid(path, format.as_str(), text));
    }
}

fn array(schema: &Schema, items: &[Value], old: Option<&Value>, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let values = &schema.values;
    if let Some(min) = values.min_items.filter(|min| (items.len() as u64) < *min) {
        let detail = format!("{} in body should have at least {min} items", path.in_body());
        causes.push(Cause::invalid(path, &json!(items.len()), &detail));
    }
    if let Some(max) = values.max_items.filter(|max| items.len() as u64 > *max) {
        causes.push(Cause::too_many(path, items.len(), max));
    }
    let Some(child) = schema.items.as_deref() else { return };
    let former = Former::of(schema, old);
    for (index, item) in items.iter().enumerate() {
        check(child, item, former.item(item), &path.index(index), causes);
    }
}

fn object(
    schema: &Schema,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let values = &schema.values;
    if let Some(min) = values.min_properties.filter(|min| (fields.len() as u64) < *min) {
        let detail = format!("{} in body should have at least {min} properties", path.in_body());
        causes.push(Cause::invalid(path, &json!(fields.len()), &detail));
        return;
    }
    if let Some(max) = values.max_properties.filter(|max| fields.len() as u64 > *max) {
        causes.push(Cause::too_many(path, fields.len(), max));
        return;
    }
    if schema.embedded_resource {
        for name in ["apiVersion", "kind"] {
            match fields.get(name) {
                None => causes.push(Cause::required(&path.field(name), "")),
                Some(Value::String(text)) if !text.is_empty() => {}
                Some(Value::String(_)) => {
                    causes.push(Cause::invalid(&path.field(name), &json!(""), "must not be empty"));
                }
                Some(other) => causes.push(Cause::invalid(&path.field(name), other, "must be a string")),
            }
        }
    }
    let former = Former::of(schema, old);
    for (name, value) in fields {
        if let Some(child) = schema.child(name) {
            check(child, value, former.field(name), &path.field(name), causes);
        }
    }
    for name in values.required.iter().filter(|name| !fields.contains_key(*name)) {
        causes.push(Cause::required(&path.field(name), ""));
    }
}

/// `anyOf`, `oneOf`, `allOf`, `not`: the junction's own cause first, then the causes of the closest
/// alternative.
fn junctions(schema: &Schema, value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let values = &schema.values;
    let failures = |branch: &Schema| {
        let mut causes = Vec::new();
        check(branch, value, None, path, &mut causes);
        causes
    };
    let broken = |detail: String| Cause::invalid(path, &json!(""), &format!("{:?} {detail}", path.in_body()));

    if !values.any_of.is_empty() {
        let mut best: Option<Vec<Cause>> = None;
        for branch in &values.any_of {
            let found = failures(branch);
            let done = found.is_empty();
            if best.as_ref().is_none_or(|best| found.len() < best.len()) {
                best = Some(found);
            }
            if done {
                break;
            }
        }
        if let Some(best) = best.filter(|best| !best.is_empty()) {
            causes.push(broken("must validate at least one schema (anyOf)".to_owned()));
            causes.extend(best);
        }
    }
    if !values.one_of.is_empty() {
        let found: Vec<Vec<Cause>> = values.one_of.iter().map(failures).collect();
        match found.iter().filter(|causes| causes.is_empty()).count() {
            1 => {}
            0 => {
                causes.push(broken(
                    "must validate one and only one schema (oneOf). Found none valid".to_owned(),
                ));
                causes.extend(found.into_iter().min_by_key(Vec::len).unwrap_or_default());
            }
            several => causes.push(broken(format!(
                "must validate one and only one schema (oneOf). Found {several} valid alternatives"
            ))),
        }
    }
    let failed: Vec<Vec<Cause>> =
        values.all_of.iter().map(failures).filter(|causes| !causes.is_empty()).collect();
    if !failed.is_empty() {
        let none = if failed.len() == values.all_of.len() { ". None validated" } else { "" };
        causes.push(broken(format!("must validate all the schemas (allOf){none}")));
        causes.extend(failed.into_iter().flatten());
    }
    if values.not.as_ref().is_some_and(|branch| failures(branch).is_empty()) {
        causes.push(broken("must not validate the schema (not)".to_owned()));
    }
}
