//! Transition rules, and what an update may leave unchanged.

use aviary_schema::{UnknownFields, validate};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::{admission, resource, story, yaml};

fn update(properties: &str, old: &str, new: &str, expected: Expect) {
    let admission = admission(&resource(properties));
    let (old, new) = (json!({"spec": yaml(old)}), json!({"spec": yaml(new)}));
    let verdict = admission
        .admit(new, Some(&old), UnknownFields::Strict)
        .map_or_else(|causes| story(&causes), |_| story(&[]));
    expected.assert_eq(&verdict);
}

const IMMUTABLE: &str =
    "{a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]}}";

#[test]
fn a_transition_rule_compares_with_the_old_value() {
    update(IMMUTABLE, "{a: x}", "{a: x}", expect!["ok\n"]);
    update(
        IMMUTABLE,
        "{a: x}",
        "{a: z}",
        expect![[r#"
            FieldValueInvalid spec.a: Invalid value: "string": immutable
        "#]],
    );
    update(
        IMMUTABLE,
        "{}",
        "{a: z}",
        expect![[r#"
            ok
        "#]],
    );
    update(IMMUTABLE, "{a: x}", "{}", expect!["ok\n"]);
}

#[test]
fn an_optional_old_self_is_asked_on_create_too() {
    let schema = "{a: {type: integer, x-kubernetes-validations: [{rule: 'oldSelf.hasValue() ? self >= oldSelf.value() : self == 1', optionalOldSelf: true, message: grow}]}}";
    update(schema, "{}", "{a: 1}", expect!["ok\n"]);
    update(
        schema,
        "{}",
        "{a: 2}",
        expect![[r#"
        FieldValueInvalid spec.a: Invalid value: "integer": grow
    "#]],
    );
    update(schema, "{a: 2}", "{a: 3}", expect!["ok\n"]);
    update(
        schema,
        "{a: 2}",
        "{a: 1}",
        expect![[r#"
        FieldValueInvalid spec.a: Invalid value: "integer": grow
    "#]],
    );
}

#[test]
fn items_of_a_list_map_meet_their_former_selves() {
    let schema = "{l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, v: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf}]}}}}}";
    update(
        schema,
        "{l: [{id: a, v: 1}, {id: b, v: 5}]}",
        "{l: [{id: b, v: 5}, {id: a, v: 1}, {id: c, v: 0}]}",
        expect!["ok\n"],
    );
    update(
        schema,
        "{l: [{id: a, v: 1}, {id: b, v: 5}]}",
        "{l: [{id: b, v: 4}, {id: a, v: 2}]}",
        expect![[r#"
        FieldValueInvalid spec.l[0].v: Invalid value: "integer": failed rule: self >= oldSelf
    "#]],
    );
}

#[test]
fn what_has_not_changed_is_not_held_against_the_writer() {
    let schema = "{a: {type: string, maxLength: 2}, b: {type: integer, x-kubernetes-validations: [{rule: 'self < 5'}]}, c: {type: integer}}";
    update(schema, "{a: long, b: 9}", "{a: long, b: 9, c: 1}", expect!["ok\n"]);
    update(
        schema,
        "{a: long, b: 9}",
        "{a: longer, b: 9}",
        expect![[r#"
        FieldValueTooLong spec.a: Too long: may not be more than 2 bytes
        FieldValueInvalid <nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    "#]],
    );
    update(
        schema,
        "{a: long, b: 9}",
        "{a: x, b: 8}",
        expect![[r#"
        FieldValueInvalid spec.b: Invalid value: "integer": failed rule: self < 5
    "#]],
    );
}

#[test]
fn validate_alone_neither_prunes_nor_defaults() {
    let admission = admission(&resource("{a: {type: integer, default: 1}}"));
    expect!["ok\n"].assert_eq(&story(&validate(admission.schema(), &json!({"spec": {"b": 1}}), None)));
}
