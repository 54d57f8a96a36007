//! Corner cases of defaults.

use expect_test::expect;

use crate::admitted;

#[test]
fn absent_and_null_fields_take_the_default() {
    admitted(
        "{a: {type: integer, default: 1}, b: {type: integer, default: 2}}",
        "{b: null}",
        expect![[r#"
        {"a":1,"b":2}
    "#]],
    );
}

#[test]
fn a_nullable_null_stays() {
    admitted(
        "{a: {type: integer, nullable: true, default: 1}, b: {type: string, nullable: true}}",
        "{a: null, b: null}",
        expect![[r#"
            {"a":null,"b":null}
        "#]],
    );
}

#[test]
fn a_null_without_default_is_dropped() {
    admitted(
        "{a: {type: integer}, m: {type: object, additionalProperties: {type: string}}}",
        "{a: null, m: {k: null, l: x}}",
        expect![[r#"
            {"m":{"l":"x"}}
        "#]],
    );
}

#[test]
fn defaults_reach_into_defaults() {
    admitted(
        "{o: {type: object, default: {}, properties: {a: {type: integer, default: 1}, p: {type: object, default: {b: 7}, properties: {b: {type: integer, default: 2}, c: {type: integer, default: 3}}}}}}",
        "{}",
        expect![[r#"
            {"o":{"a":1,"p":{"b":7,"c":3}}}
        "#]],
    );
}

#[test]
fn a_default_does_not_create_its_parent() {
    admitted(
        "{o: {type: object, properties: {a: {type: integer, default: 1}}}}",
        "{}",
        expect![[r#"
        {}
    "#]],
    );
}

#[test]
fn items_and_map_entries_are_filled() {
    admitted(
        "{l: {type: array, items: {type: object, properties: {a: {type: integer, default: 1}}}}, m: {type: object, additionalProperties: {type: object, properties: {a: {type: integer, default: 2}}}}, n: {type: array, items: {type: integer, default: 9}}}",
        "{l: [{}, {a: 5}], m: {k: {}}, n: [1, null]}",
        expect![[r#"
            {"l":[{"a":1},{"a":5}],"m":{"k":{"a":2}},"n":[1,9]}
        "#]],
    );
}

#[test]
fn zero_values_are_values() {
    admitted(
        "{a: {type: integer, default: 1}, b: {type: boolean, default: true}, s: {type: string, default: x}}",
        "{a: 0, b: false, s: ''}",
        expect![[r#"
            {"a":0,"b":false,"s":""}
        "#]],
    );
}

#[test]
fn defaults_come_before_required() {
    crate::check(
        "{o: {type: object, required: [a, b], properties: {a: {type: integer, default: 1}, b: {type: integer}}}}",
        "{o: {}}",
        expect![[r#"
            {o: {}}
              FieldValueRequired spec.o.b: Required value
        "#]],
    );
}
