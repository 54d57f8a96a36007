//! Schemas that are not structural.

use aviary_schema::Schema;
use expect_test::expect;
use serde_json::json;

use crate::{refused_schema, story};

#[test]
fn types_are_required() {
    refused_schema(
        "{}",
        expect![[r#"
        FieldValueRequired x.type: Required value: must not be empty for specified object fields
    "#]],
    );
    refused_schema(
        "{type: array, items: {}}",
        expect![[r#"
        FieldValueRequired x.items.type: Required value: must not be empty for specified array items
    "#]],
    );
    refused_schema(
        "{type: array}",
        expect![[r#"
        FieldValueRequired x.items: Required value: must be specified
    "#]],
    );
    refused_schema(
        "{type: strnig}",
        expect![[r#"
        FieldValueNotSupported x.type: Unsupported value: "strnig": supported values: "array", "boolean", "integer", "number", "object", "string"
    "#]],
    );
    refused_schema(
        "{type: 'null'}",
        expect![[r#"
        FieldValueForbidden x.type: Forbidden: type cannot be set to null, use nullable as an alternative
    "#]],
    );
    refused_schema(
        "{type: [string, integer]}",
        expect![[r#"
        FieldValueInvalid x.type: Invalid value: ["string","integer"]: must be a string
        FieldValueRequired x.type: Required value: must not be empty for specified object fields
    "#]],
    );
    refused_schema("{x-kubernetes-preserve-unknown-fields: true}", expect!["ok\n"]);
    refused_schema(
        "{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {pattern: a}]}",
        expect!["ok\n"],
    );
}

#[test]
fn unsupported_keywords() {
    refused_schema(
        "{$ref: '#/a', type: string}",
        expect![[r#"
        FieldValueForbidden x.$ref: Forbidden: $ref is not supported
    "#]],
    );
    refused_schema(
        "{type: object, patternProperties: {}, definitions: {}, dependencies: {}}",
        expect![[r#"
        FieldValueForbidden x.definitions: Forbidden: definitions is not supported
        FieldValueForbidden x.patternProperties: Forbidden: patternProperties is not supported
        FieldValueForbidden x.dependencies: Forbidden: dependencies is not supported
    "#]],
    );
    refused_schema(
        "{type: array, uniqueItems: true, items: {type: string}}",
        expect![[r#"
        FieldValueForbidden x.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic
    "#]],
    );
    refused_schema(
        "{type: array, items: [{type: string}]}",
        expect![[r#"
        FieldValueForbidden x.items: Forbidden: items must be a schema object and not an array
        FieldValueRequired x.items: Required value: must be specified
    "#]],
    );
    refused_schema(
        "{type: object, additionalProperties: false}",
        expect![[r#"
        FieldValueForbidden x.additionalProperties: Forbidden: additionalProperties cannot be set to false
    "#]],
    );
    refused_schema(
        "{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}",
        expect![[r#"
            FieldValueForbidden x.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive
        "#]],
    );
    refused_schema(
        "{type: string, pattern: '('}",
        expect![[r#"
        FieldValueInvalid x.pattern: Invalid value: "(": must be a valid regular expression, but isn't: regex parse error:
            (
            ^
        error: unclosed group
    "#]],
    );
    refused_schema(
        "{type: string, maxLength: long, minLength: -1}",
        expect![[r#"
        FieldValueInvalid x.minLength: Invalid value: -1: must be a whole number, not negative
        FieldValueInvalid x.maxLength: Invalid value: "long": must be a whole number, not negative
    "#]],
    );
    refused_schema(
        "{type: integer, multipleOf: 0}",
        expect![[r#"
        FieldValueInvalid x.multipleOf: Invalid value: 0: must be greater than 0
    "#]],
    );
}

#[test]
fn junctions_hold_value_validation_only() {
    refused_schema(
        "{type: object, anyOf: [{type: object}], allOf: [{default: {}, description: a, nullable: true}], \
          not: {additionalProperties: {type: string}}, oneOf: [{x-kubernetes-validations: [{rule: 'true'}]}]}",
        expect![[r#"
            FieldValueForbidden x.anyOf[0].type: Forbidden: must be empty to be structural
            FieldValueForbidden x.oneOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural
            FieldValueForbidden x.allOf[0].default: Forbidden: must be undefined to be structural
            FieldValueForbidden x.allOf[0].description: Forbidden: must be empty to be structural
            FieldValueForbidden x.allOf[0].nullable: Forbidden: must be false to be structural
            FieldValueForbidden x.not.additionalProperties: Forbidden: must be undefined to be structural
        "#]],
    );
    refused_schema(
        "{type: object, properties: {a: {type: object}}, anyOf: [{properties: {a: {properties: {b: {minimum: 1}}}}}]}",
        expect![[r#"
            FieldValueRequired x.properties[a].properties[b]: Required value: because it is defined in x.anyOf[0].properties[a].properties[b]
        "#]],
    );
    refused_schema(
        "{type: object, anyOf: [{properties: {metadata: {minProperties: 1}}}]}",
        expect![[r#"
        FieldValueForbidden x.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context
        FieldValueRequired x.properties[metadata]: Required value: because it is defined in x.anyOf[0].properties[metadata]
    "#]],
    );
}

#[test]
fn list_types() {
    refused_schema(
        "{type: string, x-kubernetes-list-type: set}",
        expect![[r#"
        FieldValueInvalid x.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified
    "#]],
    );
    refused_schema(
        "{type: array, x-kubernetes-list-type: bag, items: {type: string}}",
        expect![[r#"
        FieldValueNotSupported x.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "map", "set"
    "#]],
    );
    refused_schema(
        "{type: array, x-kubernetes-list-type: map, items: {type: object}}",
        expect![[r#"
        FieldValueRequired x.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map
    "#]],
    );
    refused_schema(
        "{type: array, x-kubernetes-list-map-keys: [a], items: {type: object}}",
        expect![[r#"
        FieldValueRequired x.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty
    "#]],
    );
    refused_schema(
        "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: string}}",
        expect![[r#"
            FieldValueInvalid x.items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map
            FieldValueInvalid x.x-kubernetes-list-map-keys[0]: Invalid value: "a": entries must all be names of item properties
        "#]],
    );
    refused_schema(
        "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b, c, a], items: {type: object, required: [b], properties: {a: {type: string}, b: {type: object}, c: {type: string, nullable: true, default: x}}}}",
        expect![[r#"
            FieldValueRequired x.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
            FieldValueInvalid x.items.properties[b].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map
            FieldValueForbidden x.items.properties[c].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable
            FieldValueInvalid x.x-kubernetes-list-map-keys[3]: Invalid value: "a": must not contain duplicate entries
        "#]],
    );
    refused_schema(
        "{type: array, x-kubernetes-list-type: set, items: {type: object, nullable: true}}",
        expect![[r#"
            FieldValueForbidden x.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set
            FieldValueRequired x.items.x-kubernetes-map-type: Required value: must be atomic as item of a list with x-kubernetes-list-type=set
        "#]],
    );
    refused_schema(
        "{type: string, x-kubernetes-map-type: atomic}",
        expect![[r#"
        FieldValueInvalid x.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified
    "#]],
    );
}

#[test]
fn extensions() {
    refused_schema(
        "{x-kubernetes-int-or-string: true, type: string, x-kubernetes-preserve-unknown-fields: true}",
        expect![[r#"
            FieldValueInvalid x.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true
            FieldValueForbidden x.type: Forbidden: must be empty if x-kubernetes-int-or-string is true
        "#]],
    );
    refused_schema(
        "{type: object, x-kubernetes-embedded-resource: true}",
        expect![[r#"
        FieldValueRequired x.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields
    "#]],
    );
    refused_schema(
        "{type: string, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}",
        expect![[r#"
            FieldValueInvalid x.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true
        "#]],
    );
}

#[test]
fn defaults_are_valid() {
    refused_schema(
        "{type: integer, default: a}",
        expect![[r#"
        FieldValueTypeInvalid x.default: Invalid value: "string": x.default in body must be of type integer: "string"
    "#]],
    );
    refused_schema(
        "{type: object, properties: {a: {type: string}}, default: {b: 1}}",
        expect![[r#"
        FieldValueInvalid x.default: Invalid value: {"b":1}: must not contain the unknown field "x.default.b"
    "#]],
    );
    refused_schema(
        "{type: object, required: [a], properties: {a: {type: string, default: x}}, default: {}}",
        expect!["ok\n"],
    );
    refused_schema(
        "{type: integer, default: 1, x-kubernetes-validations: [{rule: 'self > 1'}]}",
        expect![[r#"
            FieldValueInvalid x.default: Invalid value: "integer": failed rule: self > 1
        "#]],
    );
}

#[test]
fn the_root_is_a_plain_object() {
    for (schema, expected) in [
        (
            json!({}),
            expect![[r#"
            FieldValueRequired openAPIV3Schema.type: Required value: must not be empty at the root
        "#]],
        ),
        (
            json!([]),
            expect![[r#"
            FieldValueInvalid openAPIV3Schema: Invalid value: []: must be a schema object
        "#]],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            expect![[r#"
            FieldValueInvalid openAPIV3Schema.type: Invalid value: "array": must be object at the root
        "#]],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            expect![[r#"
            FieldValueForbidden openAPIV3Schema.additionalProperties: Forbidden: must not be used at the root
        "#]],
        ),
        (
            json!({"type": "object", "default": {}}),
            expect![[r#"
            FieldValueForbidden openAPIV3Schema.default: Forbidden: must not be set at the root
        "#]],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            expect![[r#"
                FieldValueForbidden openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified
            "#]],
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "integer"}, "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}}),
            expect![[r#"
                FieldValueInvalid openAPIV3Schema.properties[kind].type: Invalid value: "integer": must be string
            "#]],
        ),
    ] {
        expected.assert_eq(&story(&Schema::parse(&schema).err().unwrap_or_default()));
    }
}
