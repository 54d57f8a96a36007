//! Checks that a parsed tree is structural: the rules between a node and its neighbours.
//!
//! Owns the invariants of embedded resources, metadata, list types, junctions and defaults. Must
//! not read JSON keywords.

use serde_json::{Value, json};

use super::{Additional, JsonType, ListType, Schema};
use crate::cause::{Cause, Path};
use crate::{cel, default, prune, unique, validate};

pub(super) fn check(root: &Schema, path: &Path<'_>, causes: &mut Vec<Cause>) {
    metadata_is_implicit(root, path, causes);
    if root.default.is_some() {
        causes.push(Cause::forbidden(&path.field("default"), "must not be set at the root"));
    }
    node(root, true, path, causes);
}

fn node(schema: &Schema, is_root: bool, path: &Path<'_>, causes: &mut Vec<Cause>) {
    int_or_string(schema, path, causes);
    embedded_resource(schema, is_root, path, causes);
    list_type(schema, path, causes);
    if schema.atomic_map && schema.kind != Some(JsonType::Object) {
        causes.push(wrong_type(schema, path, "must be object if x-kubernetes-map-type is specified"));
    }
    if schema.kind == Some(JsonType::Array) && schema.items.is_none() {
        causes.push(Cause::required(&path.field("items"), "must be specified"));
    }
    junctions_are_complete(schema, path, causes);
    default_is_valid(schema, path, causes);

    let properties = path.field("properties");
    for (name, child) in &schema.properties {
        node(child, false, &properties.key(name), causes);
    }
    if let Some(Additional::Schema(child)) = &schema.additional {
        node(child, false, &path.field("additionalProperties"), causes);
    }
    if let Some(child) = &schema.items {
        node(child, false, &path.field("items"), causes);
    }
}

fn wrong_type(schema: &Schema, path: &Path<'_>, detail: &str) -> Cause {
    let path = path.field("type");
    match schema.kind {
        None => Cause::required(&path, detail),
        Some(kind) => Cause::invalid(&path, &json!(kind.as_str()), detail),
    }
}

fn int_or_string(schema: &Schema, path: &Path<'_>, causes: &mut Vec<Cause>) {
    if !schema.int_or_string {
        return;
    }
    let detail = "must be false if x-kubernetes-int-or-string is true";
    if schema.preserve_unknown {
        causes.push(Cause::invalid(
            &path.field("x-kubernetes-preserve-unknown-fields"),
            &json!(true),
            detail,
        ));
    }
    if schema.embedded_resource {
        causes.push(Cause::invalid(&path.field("x-kubernetes-embedded-resource"), &json!(true), detail));
    }
    if schema.kind.is_some() {
        causes.push(Cause::forbidden(
            &path.field("type"),
            "must be empty if x-kubernetes-int-or-string is true",
        ));
    }
}

fn embedded_resource(schema: &Schema, is_root: bool, path: &Path<'_>, causes: &mut Vec<Cause>) {
    if schema.embedded_resource {
        if schema.kind != Some(JsonType::Object) {
            causes.push(wrong_type(schema, path, "must be object if x-kubernetes-embedded-resource is true"));
        }
        if schema.additional.is_some() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            causes.push(Cause::forbidden(&path.field("additionalProperties"), detail));
        }
        if !schema.preserve_unknown && schema.properties.is_empty() {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                          x-kubernetes-preserve-unknown-fields";
            causes.push(Cause::required(&path.field("properties"), detail));
        }
    }
    if !(is_root || schema.embedded_resource) {
        return;
    }
    let properties = path.field("properties");
    for (name, kind) in
        [("apiVersion", JsonType::String), ("kind", JsonType::String), ("metadata", JsonType::Object)]
    {
        if let Some(field) = schema.properties.get(name).filter(|field| field.kind != Some(kind)) {
            causes.push(wrong_type(field, &properties.key(name), &format!("must be {}", kind.as_str())));
        }
    }
}

/// The root's metadata may only restrict the name.
fn metadata_is_implicit(root: &Schema, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let Some(metadata) = root.properties.get("metadata") else { return };
    let names_only = metadata.properties.keys().all(|name| name == "name" || name == "generateName");
    let plain = names_only
        && metadata.additional.is_none()
        && metadata.rules.is_empty()
        && metadata.default.is_none()
        && !metadata.nullable
        && !metadata.preserve_unknown
        && !metadata.embedded_resource;
    if !plain {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        causes.push(Cause::forbidden(&path.field("properties").key("metadata"), detail));
    }
}

fn list_type(schema: &Schema, path: &Path<'_>, causes: &mut Vec<Cause>) {
    if schema.list == ListType::Atomic {
        return;
    }
    if schema.kind != Some(JsonType::Array) {
        causes.push(wrong_type(schema, path, "must be array if x-kubernetes-list-type is specified"));
    }
    let Some(items) = schema.items.as_deref() else { return };
    let items_path = path.field("items");
    match &schema.list {
        ListType::Atomic => {}
        ListType::Set => {
            if items.nullable {
                let detail = "cannot be nullable when x-kubernetes-list-type is set";
                causes.push(Cause::forbidden(&items_path.field("nullable"), detail));
            }
            if items.kind == Some(JsonType::Object) && !items.atomic_map {
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                causes.push(Cause::required(&items_path.field("x-kubernetes-map-type"), detail));
            }
            if items.kind == Some(JsonType::Array) && items.list != ListType::Atomic {
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                causes.push(Cause::required(&items_path.field("x-kubernetes-list-type"), detail));
            }
        }
        ListType::Map(keys) => {
            if items.nullable {
                let detail = "cannot be nullable when x-kubernetes-list-type is map";
                causes.push(Cause::forbidden(&items_path.field("nullable"), detail));
            }
            if items.kind != Some(JsonType::Object) {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                causes.push(wrong_type(items, &items_path, detail));
            }
            list_map_keys(keys, items, path, causes);
        }
    }
}

fn list_map_keys(keys: &[String], items: &Schema, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let keys_path = path.field("x-kubernetes-list-map-keys");
    let items_path = path.field("items");
    let properties = items_path.field("properties");
    for (index, key) in keys.iter().enumerate() {
        if keys[..index].contains(key) {
            causes.push(Cause::invalid(
                &keys_path.index(index),
                &json!(key),
                "must not contain duplicate entries",
            ));
            continue;
        }
        let Some(field) = items.properties.get(key) else {
            let detail = "entries must all be names of item properties";
            causes.push(Cause::invalid(&keys_path.index(index), &json!(key), detail));
            continue;
        };
        let at = properties.key(key);
        if !field.kind.is_some_and(JsonType::is_scalar) {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            causes.push(wrong_type(field, &at, detail));
        }
        let because = "this property is in x-kubernetes-list-map-keys, so it";
        if field.nullable {
            causes.push(Cause::forbidden(&at.field("nullable"), &format!("{because} cannot be nullable")));
        }
        if field.default.is_none() && !items.values.required.contains(key) {
            let detail = format!("{because} must have a default or be a required property");
            causes.push(Cause::required(&at.field("default"), &detail));
        }
    }
}

/// Every field in a junction must also be defined outside of it.
fn junctions_are_complete(schema: &Schema, path: &Path<'_>, causes: &mut Vec<Cause>) {
    for (keyword, branches) in
        [("anyOf", &schema.values.any_of), ("oneOf", &schema.values.one_of), ("allOf", &schema.values.all_of)]
    {
        let junction = path.field(keyword);
        for (index, branch) in branches.iter().enumerate() {
            branch_is_complete(branch, &junction.index(index), Some(schema), path, causes);
        }
    }
    if let Some(branch) = &schema.values.not {
        branch_is_complete(branch, &path.field("not"), Some(schema), path, causes);
    }
}

fn branch_is_complete(
    branch: &Schema,
    at: &Path<'_>,
    outside: Option<&Schema>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let Some(outside) = outside else {
        causes.push(Cause::required(path, &format!("because it is defined in {at}")));
        return;
    };
    let (at_properties, properties) = (at.field("properties"), path.field("properties"));
    for (name, field) in &branch.properties {
        branch_is_complete(
            field,
            &at_properties.key(name),
            outside.properties.get(name),
            &properties.key(name),
            causes,
        );
    }
    if let Some(items) = &branch.items {
        branch_is_complete(items, &at.field("items"), outside.items.as_deref(), &path.field("items"), causes);
    }
    for (keyword, inner) in
        [("anyOf", &branch.values.any_of), ("oneOf", &branch.values.one_of), ("allOf", &branch.values.all_of)]
    {
        let junction = at.field(keyword);
        for (index, inner) in inner.iter().enumerate() {
            branch_is_complete(inner, &junction.index(index), Some(outside), path, causes);
        }
    }
    if let Some(inner) = &branch.values.not {
        branch_is_complete(inner, &at.field("not"), Some(outside), path, causes);
    }
}

/// A default is validated like any object: complete, without unknown fields, valid.
fn default_is_valid(schema: &Schema, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let Some(value) = &schema.default else { return };
    let path = path.field("default");
    let mut candidate: Value = value.clone();
    let unknown = prune::prune_below(schema, &mut candidate, &path);
    if let Some(field) = unknown.first() {
        causes.push(Cause::invalid(&path, value, &format!("must not contain the unknown field {field:?}")));
        return;
    }
    default::apply(schema, &mut candidate);
    let before = causes.len();
    validate::check(schema, &candidate, None, &path, causes);
    unique::check(schema, &candidate, &path, causes);
    if causes.len() == before {
        cel::evaluate(schema, &candidate, None, &path, causes);
    }
}
