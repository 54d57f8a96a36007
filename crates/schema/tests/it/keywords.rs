//! Each keyword, accepted and refused.

use expect_test::expect;

use crate::check;

#[test]
fn types() {
    check(
        "{s: {type: string}, i: {type: integer}, n: {type: number}, b: {type: boolean}, l: {type: array, items: {type: string}}, o: {type: object}}",
        r#"
        {s: a, i: 1, n: 1.5, b: true, l: [a], o: {}}
        {i: 3.0, n: 1}
        {s: 1}
        {i: "1"}
        {i: 1.5}
        {n: x}
        {b: 1}
        {l: {}}
        {o: []}
        {l: [a, null, 2]}
        "#,
        expect![[r#"
            {s: a, i: 1, n: 1.5, b: true, l: [a], o: {}}
              ok
            {i: 3.0, n: 1}
              ok
            {s: 1}
              FieldValueTypeInvalid spec.s: Invalid value: "integer": spec.s in body must be of type string: "integer"
            {i: "1"}
              FieldValueTypeInvalid spec.i: Invalid value: "string": spec.i in body must be of type integer: "string"
            {i: 1.5}
              FieldValueTypeInvalid spec.i: Invalid value: "number": spec.i in body must be of type integer: "number"
            {n: x}
              FieldValueTypeInvalid spec.n: Invalid value: "string": spec.n in body must be of type number: "string"
            {b: 1}
              FieldValueTypeInvalid spec.b: Invalid value: "integer": spec.b in body must be of type boolean: "integer"
            {l: {}}
              FieldValueTypeInvalid spec.l: Invalid value: "object": spec.l in body must be of type array: "object"
            {o: []}
              FieldValueTypeInvalid spec.o: Invalid value: "array": spec.o in body must be of type object: "array"
            {l: [a, null, 2]}
              FieldValueTypeInvalid spec.l[1]: Invalid value: "null": spec.l[1] in body must be of type string: "null"
              FieldValueTypeInvalid spec.l[2]: Invalid value: "integer": spec.l[2] in body must be of type string: "integer"
        "#]],
    );
}

#[test]
fn int_or_string() {
    check(
        "{x: {x-kubernetes-int-or-string: true}, y: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], maximum: 5}}",
        r#"
        {x: 1, y: a}
        {x: 25%, y: 5}
        {x: true}
        {x: 1.5}
        {y: 6}
        "#,
        expect![[r#"
            {x: 1, y: a}
              ok
            {x: 25%, y: 5}
              ok
            {x: true}
              FieldValueTypeInvalid spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"
            {x: 1.5}
              FieldValueTypeInvalid spec.x: Invalid value: "number": spec.x in body must be of type integer,string: "number"
            {y: 6}
              FieldValueInvalid spec.y: Invalid value: 6: spec.y in body should be less than or equal to 5
        "#]],
    );
}

#[test]
fn strings() {
    check(
        "{p: {type: string, pattern: '^[a-z]+$'}, l: {type: string, minLength: 2, maxLength: 3}, e: {type: string, enum: [A, B]}}",
        r#"
        {p: abc, l: äöü, e: A}
        {p: X1}
        {l: a}
        {l: abcd}
        {e: C}
        {e: 1}
        "#,
        expect![[r#"
            {p: abc, l: äöü, e: A}
              ok
            {p: X1}
              FieldValueInvalid spec.p: Invalid value: "X1": spec.p in body should match '^[a-z]+$'
            {l: a}
              FieldValueInvalid spec.l: Invalid value: "a": spec.l in body should be at least 2 chars long
            {l: abcd}
              FieldValueTooLong spec.l: Too long: may not be more than 3 bytes
            {e: C}
              FieldValueNotSupported spec.e: Unsupported value: "C": supported values: "A", "B"
            {e: 1}
              FieldValueTypeInvalid spec.e: Invalid value: "integer": spec.e in body must be of type string: "integer"
              FieldValueNotSupported spec.e: Unsupported value: 1: supported values: "A", "B"
        "#]],
    );
}

#[test]
fn patterns_read_as_in_go() {
    check(
        r#"{d: {type: string, pattern: '^\d+$'}, c: {type: string, pattern: '^[[&&~]+$'}, w: {type: string, pattern: '^[\w.-]+$'}}"#,
        r#"
        {d: "12", c: "[&~", w: a_b-c.d}
        {d: "١٢"}
        {c: a}
        {w: é}
        "#,
        expect![[r#"
            {d: "12", c: "[&~", w: a_b-c.d}
              ok
            {d: "١٢"}
              FieldValueInvalid spec.d: Invalid value: "١٢": spec.d in body should match '^\d+$'
            {c: a}
              FieldValueInvalid spec.c: Invalid value: "a": spec.c in body should match '^[[&&~]+$'
            {w: é}
              FieldValueInvalid spec.w: Invalid value: "é": spec.w in body should match '^[\w.-]+$'
        "#]],
    );
}

#[test]
fn numbers() {
    check(
        "{a: {type: integer, minimum: 1, maximum: 3}, x: {type: integer, minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: true}, m: {type: integer, multipleOf: 5}, f: {type: number, minimum: 0.5, multipleOf: 0.1}, e: {type: integer, enum: [1, 2]}}",
        r#"
        {a: 1, x: 2, m: 10, f: 0.7, e: 2}
        {a: 0}
        {a: 4}
        {x: 1}
        {x: 3}
        {m: 7}
        {f: 0.4}
        {f: 0.75}
        {e: 3}
        "#,
        expect![[r#"
            {a: 1, x: 2, m: 10, f: 0.7, e: 2}
              ok
            {a: 0}
              FieldValueInvalid spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1
            {a: 4}
              FieldValueInvalid spec.a: Invalid value: 4: spec.a in body should be less than or equal to 3
            {x: 1}
              FieldValueInvalid spec.x: Invalid value: 1: spec.x in body should be greater than 1
            {x: 3}
              FieldValueInvalid spec.x: Invalid value: 3: spec.x in body should be less than 3
            {m: 7}
              FieldValueInvalid spec.m: Invalid value: 7: spec.m in body should be a multiple of 5
            {f: 0.4}
              FieldValueInvalid spec.f: Invalid value: 0.4: spec.f in body should be greater than or equal to 0.5
            {f: 0.75}
              FieldValueInvalid spec.f: Invalid value: 0.75: spec.f in body should be a multiple of 0.1
            {e: 3}
              FieldValueNotSupported spec.e: Unsupported value: 3: supported values: "1", "2"
        "#]],
    );
}

#[test]
fn sizes() {
    check(
        "{l: {type: array, minItems: 1, maxItems: 2, items: {type: integer}}, m: {type: object, minProperties: 1, maxProperties: 2, additionalProperties: {type: integer}}}",
        r#"
        {l: [1, 2], m: {a: 1}}
        {l: []}
        {l: [1, 2, 3]}
        {m: {}}
        {m: {a: 1, b: 2, c: 3}}
        {m: {a: x}}
        {l: [1, x]}
        "#,
        expect![[r#"
            {l: [1, 2], m: {a: 1}}
              ok
            {l: []}
              FieldValueInvalid spec.l: Invalid value: 0: spec.l in body should have at least 1 items
            {l: [1, 2, 3]}
              FieldValueTooMany spec.l: Too many: 3: must have at most 2 items
            {m: {}}
              FieldValueInvalid spec.m: Invalid value: 0: spec.m in body should have at least 1 properties
            {m: {a: 1, b: 2, c: 3}}
              FieldValueTooMany spec.m: Too many: 3: must have at most 2 items
            {m: {a: x}}
              FieldValueTypeInvalid spec.m.a: Invalid value: "string": spec.m.a in body must be of type integer: "string"
            {l: [1, x]}
              FieldValueTypeInvalid spec.l[1]: Invalid value: "string": spec.l[1] in body must be of type integer: "string"
        "#]],
    );
}

#[test]
fn required_fields_are_named_by_their_path() {
    check(
        "{placements: {type: array, items: {type: object, required: [name], properties: {name: {type: string}}}}, m: {type: object, additionalProperties: {type: object, required: [a], properties: {a: {type: string}}}}}",
        "
        {placements: [{name: a}], m: {k: {a: x}}}
        {placements: [{name: a}, {}]}
        {m: {k: {}}}
        ",
        expect![[r#"
            {placements: [{name: a}], m: {k: {a: x}}}
              ok
            {placements: [{name: a}, {}]}
              FieldValueRequired spec.placements[1].name: Required value
            {m: {k: {}}}
              FieldValueRequired spec.m.k.a: Required value
        "#]],
    );
}

#[test]
fn nullable() {
    check(
        "{n: {type: string, nullable: true}, e: {type: string, nullable: true, enum: [a, null]}, l: {type: array, items: {type: string, nullable: true}}}",
        "
        {n: null, e: null, l: [null, a]}
        {n: a, e: a}
        {e: b}
        ",
        expect![[r#"
            {n: null, e: null, l: [null, a]}
              ok
            {n: a, e: a}
              ok
            {e: b}
              FieldValueNotSupported spec.e: Unsupported value: "b": supported values: "a", "null"
        "#]],
    );
}

#[test]
fn junctions() {
    check(
        "{o: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}, \
          n: {type: string, not: {pattern: '^x'}}, \
          y: {type: integer, anyOf: [{maximum: 1}, {minimum: 10}]}, \
          z: {type: integer, allOf: [{minimum: 2}, {multipleOf: 2}]}}",
        "
        {o: {a: x}, n: a, y: 11, z: 4}
        {o: {}}
        {o: {a: x, b: x}}
        {n: xy}
        {y: 5}
        {z: 3}
        {z: 1}
        ",
        expect![[r#"
            {o: {a: x}, n: a, y: 11, z: 4}
              ok
            {o: {}}
              FieldValueInvalid spec.o: Invalid value: "": "spec.o" must validate one and only one schema (oneOf). Found none valid
              FieldValueRequired spec.o.a: Required value
            {o: {a: x, b: x}}
              FieldValueInvalid spec.o: Invalid value: "": "spec.o" must validate one and only one schema (oneOf). Found 2 valid alternatives
            {n: xy}
              FieldValueInvalid spec.n: Invalid value: "": "spec.n" must not validate the schema (not)
            {y: 5}
              FieldValueInvalid spec.y: Invalid value: "": "spec.y" must validate at least one schema (anyOf)
              FieldValueInvalid spec.y: Invalid value: 5: spec.y in body should be less than or equal to 1
            {z: 3}
              FieldValueInvalid spec.z: Invalid value: "": "spec.z" must validate all the schemas (allOf)
              FieldValueInvalid spec.z: Invalid value: 3: spec.z in body should be a multiple of 2
            {z: 1}
              FieldValueInvalid spec.z: Invalid value: "": "spec.z" must validate all the schemas (allOf). None validated
              FieldValueInvalid spec.z: Invalid value: 1: spec.z in body should be greater than or equal to 2
              FieldValueInvalid spec.z: Invalid value: 1: spec.z in body should be a multiple of 2
        "#]],
    );
}

#[test]
fn embedded_resources_have_a_version_and_a_kind() {
    check(
        "{t: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}",
        "
        {t: {apiVersion: v1, kind: ConfigMap, data: {a: b}}}
        {t: {kind: ''}}
        {t: {apiVersion: 1, kind: ConfigMap}}
        ",
        expect![[r#"
            {t: {apiVersion: v1, kind: ConfigMap, data: {a: b}}}
              ok
            {t: {kind: ''}}
              FieldValueRequired spec.t.apiVersion: Required value
              FieldValueInvalid spec.t.kind: Invalid value: "": must not be empty
            {t: {apiVersion: 1, kind: ConfigMap}}
              FieldValueInvalid spec.t.apiVersion: Invalid value: 1: must be a string
        "#]],
    );
}

#[test]
fn the_root_itself_is_checked() {
    let admission = crate::admission(&crate::resource("{a: {type: string}}"));
    let causes = aviary_schema::validate(admission.schema(), &serde_json::json!("x"), None);
    expect![[r#"
        FieldValueTypeInvalid <nil>: Invalid value: "string":  in body must be of type object: "string"
    "#]]
    .assert_eq(&crate::story(&causes));
}
