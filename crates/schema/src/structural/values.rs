//! Value validation, which may appear both outside and inside `anyOf`, `oneOf`, `allOf` and `not`.
//!
//! Owns junctions and what is forbidden below them.

use serde_json::{Value, json};

use super::node::NodeReader;
use super::{JsonType, NumberBound, Schema, ValueValidations};
use crate::cause::{Cause, Path};
use crate::format::Format;
use crate::pattern;

/// Where a type may appear below a junction: only to spell out int-or-string, as `anyOf` or as the
/// first of `allOf`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Types {
    Nowhere,
    Here,
    InAnyOf,
    InJunctions,
}

/// A schema under `anyOf`, `oneOf`, `allOf` or `not`: value validation only.
fn nested(value: &Value, types: Types, path: &Path<'_>, causes: &mut Vec<Cause>) -> Schema {
    const FORBIDDEN: [(&str, &str); 11] = [
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("externalDocs", "must be undefined to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
    ];
    let Some(mut node) = NodeReader::of(value, path, causes) else { return Schema::default() };
    node.refuse_unsupported();
    for (keyword, detail) in FORBIDDEN {
        if node.get(keyword).is_some_and(is_meaningful) {
            node.forbid(keyword, detail);
        }
    }
    for keyword in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if node.get(keyword).is_some_and(is_meaningful) {
            node.forbid(keyword, "must be empty to be structural");
        }
    }
    let mut schema = Schema::default();
    if types == Types::Here {
        schema.kind = node.text("type").and_then(JsonType::parse);
    } else if node.get("type").is_some_and(is_meaningful) {
        node.forbid("type", "must be empty to be structural");
    }
    schema.properties = node.properties(|value, path, causes| nested(value, Types::Nowhere, path, causes));
    if schema.properties.contains_key("metadata") {
        let properties = path.field("properties");
        node.causes
            .push(Cause::forbidden(&properties.key("metadata"), "must not be specified in a nested context"));
    }
    schema.items = node.items(|value, path, causes| nested(value, Types::Nowhere, path, causes));
    schema.values = node.values(types);
    schema
}

fn is_meaningful(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// Whether it spells out int-or-string.
pub(super) fn is_int_or_string_pattern(any_of: Option<&Value>) -> bool {
    any_of == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

impl NodeReader<'_> {
    pub(super) fn values(&mut self, types: Types) -> ValueValidations {
        let mut values = ValueValidations {
            required: self.names("required"),
            one_of_values: self.list("enum").to_vec(),
            format: self.text("format").and_then(Format::parse),
            min_length: self.count("minLength"),
            max_length: self.count("maxLength"),
            min_items: self.count("minItems"),
            max_items: self.count("maxItems"),
            min_properties: self.count("minProperties"),
            max_properties: self.count("maxProperties"),
            minimum: self.bound("minimum", "exclusiveMinimum"),
            maximum: self.bound("maximum", "exclusiveMaximum"),
            multiple_of: self.number("multipleOf"),
            ..ValueValidations::default()
        };
        if let Some(factor) =
            values.multiple_of.take_if(|factor| factor.as_f64().is_none_or(|factor| factor <= 0.0))
        {
            let path = self.path.field("multipleOf");
            self.causes.push(Cause::invalid(&path, &Value::Number(factor), "must be greater than 0"));
        }
        if let Some(source) = self.text("pattern").filter(|source| !source.is_empty()) {
            match pattern::compile(source) {
                Ok(regex) => values.pattern = Some(regex),
                Err(error) => {
                    let detail = format!("must be a valid regular expression, but isn't: {error}");
                    self.causes.push(Cause::invalid(&self.path.field("pattern"), &json!(source), &detail));
                }
            }
        }
        let typed_any_of = matches!(types, Types::InAnyOf | Types::InJunctions)
            && is_int_or_string_pattern(self.get("anyOf"));
        values.any_of = self.junction("anyOf", |_| if typed_any_of { Types::Here } else { Types::Nowhere });
        values.one_of = self.junction("oneOf", |_| Types::Nowhere);
        values.all_of = self.junction("allOf", |index| {
            if types == Types::InJunctions && index == 0 { Types::InAnyOf } else { Types::Nowhere }
        });
        values.not = self
            .get("not")
            .map(|value| Box::new(nested(value, Types::Nowhere, &self.path.field("not"), self.causes)));
        values
    }

    fn bound(&mut self, limit: &str, exclusive: &str) -> Option<NumberBound> {
        let exclusive = self.flag(exclusive);
        self.number(limit).map(|limit| NumberBound { limit, exclusive })
    }

    fn junction(&mut self, keyword: &str, types: impl Fn(usize) -> Types) -> Vec<Schema> {
        let branches = self.list(keyword);
        let path = self.path.field(keyword);
        let branch = |(index, value)| nested(value, types(index), &path.index(index), self.causes);
        branches.iter().enumerate().map(branch).collect()
    }
}
