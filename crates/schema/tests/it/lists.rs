//! Lists of type set and map.

use expect_test::expect;

use crate::check;

#[test]
fn sets_and_maps_hold_each_key_once() {
    check(
        "{s: {type: array, x-kubernetes-list-type: set, items: {type: string}}, \
          t: {type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: integer}}}, \
          m: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, v: {type: integer}}}}, \
          p: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port, protocol], items: {type: object, required: [port], properties: {port: {type: integer}, protocol: {type: string, default: TCP}}}}, \
          a: {type: array, items: {type: string}}}",
        "
        {s: [a, b], m: [{name: a}, {name: b}], p: [{port: 1}, {port: 1, protocol: UDP}], a: [x, x]}
        {s: [a, b, a, a]}
        {t: [{x: 1, y: 2}, {y: 2, x: 1}]}
        {m: [{name: a, v: 1}, {name: b}, {name: a, v: 2}]}
        {p: [{port: 1}, {port: 1, protocol: TCP}]}
        {m: [{}, {}]}
        {m: [a]}
        ",
        expect![[r#"
            {s: [a, b], m: [{name: a}, {name: b}], p: [{port: 1}, {port: 1, protocol: UDP}], a: [x, x]}
              ok
            {s: [a, b, a, a]}
              FieldValueDuplicate spec.s[2]: Duplicate value: "a"
            {t: [{x: 1, y: 2}, {y: 2, x: 1}]}
              FieldValueDuplicate spec.t[1]: Duplicate value: {"x":1,"y":2}
            {m: [{name: a, v: 1}, {name: b}, {name: a, v: 2}]}
              FieldValueDuplicate spec.m[2]: Duplicate value: {"name":"a"}
            {p: [{port: 1}, {port: 1, protocol: TCP}]}
              FieldValueDuplicate spec.p[1]: Duplicate value: {"port":1,"protocol":"TCP"}
            {m: [{}, {}]}
              FieldValueRequired spec.m[0].name: Required value
              FieldValueRequired spec.m[1].name: Required value
              FieldValueDuplicate spec.m[1]: Duplicate value: {}
            {m: [a]}
              FieldValueTypeInvalid spec.m[0]: Invalid value: "string": spec.m[0] in body must be of type object: "string"
              FieldValueInvalid spec.m[0]: Invalid value: "a": must be an object for an array of list-type map
        "#]],
    );
}

#[test]
fn paths_through_maps_name_the_key() {
    check(
        "{m: {type: object, additionalProperties: {type: array, x-kubernetes-list-type: set, items: {type: integer}}}}",
        "{m: {k: [1, 1]}}",
        expect![[r#"
            {m: {k: [1, 1]}}
              FieldValueDuplicate spec.m[k][1]: Duplicate value: 1
        "#]],
    );
}
