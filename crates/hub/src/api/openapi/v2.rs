//! Version 2 of the published schemas. kubectl before 1.27 uses it for explain, field validation,
//! diff and dry runs.
//!
//! Owns the document and its protobuf form, as far as clients use it. What version 2 cannot express
//! is left open: a client must never reject what the hub would accept.

use serde_json::{Map, Value, json};

use super::{OBJECT_META, object_meta, resource_paths, schema, schema_name};
use crate::api::discovery::{group_versions, rows};
use crate::kinds::resource::KindTable;

/// The extension with the kind of a schema or an operation.
const KIND: &str = "x-kubernetes-group-version-kind";

pub(super) fn document(table: &KindTable) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    definitions.insert(OBJECT_META.into(), expressible(&object_meta()));
    for (group, version) in group_versions(table) {
        for (resource, version) in rows(table, &group, &version) {
            let kind = json!({"group": group, "version": version.name, "kind": resource.names.kind});
            let mut definition = expressible(&schema(version, &kind));
            definition[KIND] = json!([kind]);
            if let Some(metadata) = definition.pointer_mut("/properties/metadata") {
                *metadata = json!({"$ref": format!("#/definitions/{OBJECT_META}")});
            }
            definitions.insert(schema_name(&group, &version.name, &resource.names.kind), definition);
            for (path, operations) in resource_paths(resource, version, &kind) {
                if let Some(patch) = operations.get("patch") {
                    paths.insert(path, json!({"patch": patch_operation(patch)}));
                }
            }
        }
    }
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.35.0"}, "paths": paths, "definitions": definitions,
    })
}

/// In version 2, parameters contain their type directly.
fn patch_operation(patch: &Value) -> Value {
    let mut patch = patch.clone();
    for parameter in patch["parameters"].as_array_mut().into_iter().flatten() {
        *parameter = json!({"name": parameter["name"], "in": "query", "type": "string"});
    }
    patch
}

/// The part of a schema that version 2 can express.
fn expressible(schema: &Value) -> Value {
    let mut found = Map::new();
    let copy = |found: &mut Map<String, Value>, names: &[&str]| {
        let given = names.iter().filter_map(|name| Some(((*name).to_owned(), schema.get(name)?.clone())));
        found.extend(given);
    };
    copy(&mut found, &["description"]);
    let said = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    // Nothing more can be expressed about a value of several types or with unknown fields.
    let is_open = said("nullable")
        || said("x-kubernetes-int-or-string")
        || said("x-kubernetes-preserve-unknown-fields")
        || said("x-kubernetes-embedded-resource");
    if is_open {
        return Value::Object(found);
    }
    let type_ = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let items = schema.get("items").filter(|items| items.is_object());
    match (type_, items) {
        ("string" | "number" | "integer" | "boolean", _) => copy(&mut found, &["type", "format"]),
        ("array", Some(items)) => {
            copy(&mut found, &["type"]);
            found.insert("items".into(), expressible(items));
        }
        ("object", _) => {
            copy(&mut found, &["type"]);
            let required = required(schema);
            if !required.is_empty() {
                found.insert("required".into(), json!(required));
            }
            if let Some(Value::Object(properties)) = schema.get("properties") {
                let properties = properties.iter().map(|(name, schema)| (name.clone(), expressible(schema)));
                found.insert("properties".into(), Value::Object(properties.collect()));
            }
            if let Some(values @ Value::Object(_)) = schema.get("additionalProperties") {
                found.insert("additionalProperties".into(), expressible(values));
            }
        }
        _ => {}
    }
    Value::Object(found)
}

/// The fields that a client must set. The hub fills in defaults, so a field with a default may be
/// omitted.
fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let has_default = |name: &str| schema["properties"][name].get("default").is_some();
    names.filter_map(Value::as_str).filter(|name| !has_default(name)).collect()
}

/// The document as the messages of `openapi.v2` in github.com/google/gnostic, which defines the
/// field numbers.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let info = &document["info"];
    let info = MessageBuilder::default().text(1, text(info, "title")).text(2, text(info, "version"));
    let paths = entries(document, "paths").map(|(path, operations)| named(path, &path_item(operations)));
    let definitions =
        entries(document, "definitions").map(|(name, definition)| named(name, &schema_message(definition)));
    let document = MessageBuilder::default().text(1, text(document, "swagger")).message(2, &info);
    document.message(8, &repeated(2, paths)).message(9, &repeated(1, definitions)).0
}

fn path_item(operations: &Value) -> MessageBuilder {
    let patch = &operations["patch"];
    let mut operation = MessageBuilder::default();
    for parameter in patch["parameters"].as_array().into_iter().flatten() {
        let query = MessageBuilder::default()
            .text(2, text(parameter, "in"))
            .text(4, text(parameter, "name"))
            .text(6, text(parameter, "type"));
        // The nesting of messages for a query parameter.
        let parameter = [3, 2, 1]
            .into_iter()
            .fold(query, |inner, field| MessageBuilder::default().message(field, &inner));
        operation = operation.message(8, &parameter);
    }
    let operation = operation.message(9, &MessageBuilder::default()).message(13, &extension(patch));
    MessageBuilder::default().message(8, &operation)
}

fn schema_message(schema: &Value) -> MessageBuilder {
    let mut message = MessageBuilder::default()
        .text(1, text(schema, "$ref"))
        .text(2, text(schema, "format"))
        .text(4, text(schema, "description"));
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        message = message.text(19, name);
    }
    if let Some(values) = schema.get("additionalProperties") {
        message = message.message(21, &MessageBuilder::default().message(1, &schema_message(values)));
    }
    if let Some(type_) = schema.get("type").and_then(Value::as_str) {
        message = message.message(22, &MessageBuilder::default().text(1, type_));
    }
    if let Some(items) = schema.get("items") {
        message = message.message(23, &MessageBuilder::default().message(1, &schema_message(items)));
    }
    if schema.get("properties").is_some() {
        let properties =
            entries(schema, "properties").map(|(name, schema)| named(name, &schema_message(schema)));
        message = message.message(25, &repeated(1, properties));
    }
    if schema.get(KIND).is_some() {
        message = message.message(31, &extension(schema));
    }
    message
}

/// Extensions are YAML text, and JSON is YAML.
fn extension(of: &Value) -> MessageBuilder {
    named(KIND, &MessageBuilder::default().text(2, &of[KIND].to_string()))
}

fn named(name: &str, value: &MessageBuilder) -> MessageBuilder {
    MessageBuilder::default().text(1, name).message(2, value)
}

fn repeated(field: u32, messages: impl Iterator<Item = MessageBuilder>) -> MessageBuilder {
    messages.fold(MessageBuilder::default(), |all, one| all.message(field, &one))
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn entries<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = (&'v str, &'v Value)> {
    let fields = value.get(field).and_then(Value::as_object).into_iter().flatten();
    fields.map(|(name, value)| (name.as_str(), value))
}

/// A protobuf message under construction; only texts and messages are needed.
#[derive(Default)]
struct MessageBuilder(Vec<u8>);

impl MessageBuilder {
    /// Adds a text; an empty one is omitted.
    fn text(self, field: u32, text: &str) -> Self {
        if text.is_empty() { self } else { self.delimited(field, text.as_bytes()) }
    }

    fn message(self, field: u32, message: &Self) -> Self {
        self.delimited(field, &message.0)
    }

    fn delimited(mut self, field: u32, bytes: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_version_2_cannot_say_is_left_open() {
        let schema = json!({"type": "object", "required": ["a", "filled"], "properties": {
            "a": {"type": "string", "maxLength": 3},
            "filled": {"type": "integer", "default": 1},
            "count": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "maybe": {"type": "array", "items": {"type": "string"}, "nullable": true, "description": "may be null"},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"x": {"type": "string"}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        let expected = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string"}, "filled": {"type": "integer"}, "count": {}, "maybe": {"description": "may be null"}, "raw": {},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        assert_eq!(expressible(&schema), expected);
    }

    #[test]
    fn a_schema_is_encoded_field_by_field() {
        let schema = json!({"type": "object", "description": "d", "properties": {"a": {"type": "string"}}});
        let expected = [
            &[4 << 3 | 2, 1, b'd'][..],
            // 22: the type.
            &[0xb2, 1, 8, 1 << 3 | 2, 6],
            b"object",
            // 25: the properties, of which one, by its name, with its type.
            &[0xca, 1, 18, 1 << 3 | 2, 16, 1 << 3 | 2, 1, b'a', 2 << 3 | 2, 11, 0xb2, 1, 8, 1 << 3 | 2, 6],
            b"string",
        ];
        assert_eq!(schema_message(&schema).0, expected.concat());
    }
}
