//! Parses the JSON of an `openAPIV3Schema` to the tree, keyword by keyword.
//!
//! Owns the errors of a single node. `rules` checks a node together with its neighbours.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::node::NodeReader;
use super::values::{Types, is_int_or_string_pattern};
use super::{Additional, JsonType, ListType, Schema};
use crate::cause::{Cause, Path};
use crate::cel;

/// The position of a node.
#[derive(Clone, Copy)]
struct NodePosition<'p> {
    level: Level,
    /// The nearest list or map above whose elements cannot be correlated.
    uncorrelatable: Option<&'p str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

pub(super) fn parse(value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) -> Schema {
    structural(value, NodePosition { level: Level::Root, uncorrelatable: None }, path, causes)
}

fn structural(value: &Value, place: NodePosition<'_>, path: &Path<'_>, causes: &mut Vec<Cause>) -> Schema {
    let Some(mut node) = NodeReader::of(value, path, causes) else { return Schema::default() };
    node.refuse_unsupported();
    let kind = node.kind(place.level);
    let here = path.to_string();

    let atomic_map = node.choice("x-kubernetes-map-type", &["atomic", "granular"]) == Some("atomic");
    let list = node.list_type();
    let below_map = NodePosition {
        level: Level::Field,
        uncorrelatable: place.uncorrelatable.or(atomic_map.then_some(&here)),
    };
    let correlated_list = matches!(list, ListType::Map(_));
    let below_list = NodePosition {
        level: Level::Item,
        uncorrelatable: place.uncorrelatable.or((!correlated_list).then_some(&here)),
    };

    let mut schema = Schema {
        kind,
        nullable: node.flag("nullable"),
        default: node.get("default").cloned(),
        preserve_unknown: node.flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: node.flag("x-kubernetes-embedded-resource"),
        int_or_string: node.flag("x-kubernetes-int-or-string"),
        list,
        atomic_map,
        ..Schema::default()
    };
    schema.properties = node.properties(|value, path, causes| structural(value, below_map, path, causes));
    schema.additional =
        node.additional(place.level, |value, path, causes| structural(value, below_map, path, causes));
    schema.items = node.items(|value, path, causes| structural(value, below_list, path, causes));
    schema.values = node.values(Types::InJunctions);
    let int_or_string_twice = schema.int_or_string && is_int_or_string_pattern(value.get("anyOf"));
    if int_or_string_twice {
        schema.values.any_of.clear();
    }

    let rules = node.list("x-kubernetes-validations");
    let rules_path = path.field("x-kubernetes-validations");
    let scope =
        cel::RulePosition { is_root: place.level == Level::Root, uncorrelatable: place.uncorrelatable };
    schema.rules = cel::compile(rules, &schema, scope, &rules_path, node.causes);
    schema.summarise();
    schema
}

impl NodeReader<'_> {
    fn kind(&mut self, level: Level) -> Option<JsonType> {
        let untyped =
            self.flag("x-kubernetes-int-or-string") || self.flag("x-kubernetes-preserve-unknown-fields");
        let name = self.text("type").filter(|name| !name.is_empty());
        let path = self.path.field("type");
        match name {
            None if untyped && level != Level::Root => {}
            None => self.causes.push(Cause::required(
                &path,
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            )),
            Some("null") => {
                self.causes.push(Cause::forbidden(
                    &path,
                    "type cannot be set to null, use nullable as an alternative",
                ));
            }
            Some(_) => {
                let name =
                    self.choice("type", &["array", "boolean", "integer", "number", "object", "string"])?;
                if level == Level::Root && name != "object" {
                    self.causes.push(Cause::invalid(&path, &json!(name), "must be object at the root"));
                }
                return JsonType::parse(name);
            }
        }
        None
    }

    fn list_type(&mut self) -> ListType {
        let keys = self.names("x-kubernetes-list-map-keys");
        let name = self.choice("x-kubernetes-list-type", &["atomic", "map", "set"]);
        let keys_path = self.path.field("x-kubernetes-list-map-keys");
        match name {
            Some("map") if keys.is_empty() => {
                let detail = "must not be empty if x-kubernetes-list-type is map";
                self.causes.push(Cause::required(&keys_path, detail));
            }
            Some("map") => return ListType::Map(keys),
            _ if !keys.is_empty() => {
                let path = self.path.field("x-kubernetes-list-type");
                let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
                self.causes.push(match name {
                    None => Cause::required(&path, detail),
                    Some(name) => Cause::invalid(&path, &json!(name), detail),
                });
            }
            Some("set") => return ListType::Set,
            _ => {}
        }
        ListType::Atomic
    }

    pub(super) fn properties(
        &mut self,
        child: impl Fn(&Value, &Path<'_>, &mut Vec<Cause>) -> Schema,
    ) -> BTreeMap<String, Schema> {
        let Some(fields) = self.read("properties", "an object", Value::as_object) else {
            return BTreeMap::new();
        };
        let path = self.path.field("properties");
        fields
            .iter()
            .map(|(name, value)| (name.clone(), child(value, &path.key(name), self.causes)))
            .collect()
    }

    fn additional(
        &mut self,
        level: Level,
        child: impl Fn(&Value, &Path<'_>, &mut Vec<Cause>) -> Schema,
    ) -> Option<Additional> {
        let value = self.get("additionalProperties")?;
        if level == Level::Root {
            self.forbid("additionalProperties", "must not be used at the root");
        }
        if self
            .get("properties")
            .is_some_and(|properties| properties.as_object().is_some_and(|map| !map.is_empty()))
        {
            self.forbid("additionalProperties", "additionalProperties and properties are mutual exclusive");
        }
        match value {
            Value::Bool(true) => Some(Additional::Any),
            Value::Bool(false) => {
                self.forbid("additionalProperties", "additionalProperties cannot be set to false");
                None
            }
            schema => {
                let path = self.path.field("additionalProperties");
                Some(Additional::Schema(Box::new(child(schema, &path, self.causes))))
            }
        }
    }

    pub(super) fn items(
        &mut self,
        child: impl Fn(&Value, &Path<'_>, &mut Vec<Cause>) -> Schema,
    ) -> Option<Box<Schema>> {
        let value = self.get("items")?;
        if value.is_array() {
            self.forbid("items", "items must be a schema object and not an array");
            return None;
        }
        Some(Box::new(child(value, &self.path.field("items"), self.causes)))
    }
}
