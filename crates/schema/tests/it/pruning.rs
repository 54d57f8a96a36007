//! Corner cases of pruning.

use aviary_schema::{Admission, UnknownFields};
use expect_test::expect;
use serde_json::json;

use crate::{admission, admitted, resource, story};

#[test]
fn unknown_fields_go_at_every_level() {
    admitted(
        "{a: {type: string}, l: {type: array, items: {type: object, properties: {a: {type: string}}}}, m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}, o: {type: object}}",
        "{a: x, b: y, l: [{a: x, c: y}, {d: z}], m: {k: {a: x, e: y}}, o: {anything: 1}}",
        expect![[r#"
            {"a":"x","l":[{"a":"x"},{}],"m":{"k":{"a":"x"}},"o":{}}
            pruned spec.b
            pruned spec.l[0].c
            pruned spec.l[1].d
            pruned spec.m.k.e
            pruned spec.o.anything
        "#]],
    );
}

#[test]
fn preserved_fields_stay_but_declared_ones_are_pruned_below() {
    admitted(
        "{p: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: object, properties: {a: {type: string}}}}}, any: {x-kubernetes-preserve-unknown-fields: true}}",
        "{p: {free: {x: [1, {y: 2}]}, known: {a: x, b: y}}, any: [{z: 1}]}",
        expect![[r#"
            {"any":[{"z":1}],"p":{"free":{"x":[1,{"y":2}]},"known":{"a":"x"}}}
            pruned spec.p.known.b
        "#]],
    );
}

#[test]
fn additional_properties_true_keeps_keys_only() {
    admitted(
        "{m: {type: object, additionalProperties: true}}",
        "{m: {a: 1, b: {c: 2}, d: [[{e: 3}]]}}",
        expect![[r#"
            {"m":{"a":1,"b":{},"d":[[{}]]}}
            pruned spec.m.b.c
            pruned spec.m.d[0][0].e
        "#]],
    );
}

#[test]
fn embedded_resources_keep_their_meta_fields() {
    admitted(
        "{t: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}}",
        "{t: {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {b: c}}, spec: {x: 1}, status: {}}}",
        expect![[r#"
            {"t":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"b":"c"},"name":"a"},"spec":{}}}
            pruned spec.t.spec.x
            pruned spec.t.status
        "#]],
    );
}

#[test]
fn the_root_keeps_its_meta_fields() {
    let admission = admission(&resource("{}"));
    let object =
        json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": {}}, "status": {}});
    let admitted = admission.admit(object, None, UnknownFields::Ignore).unwrap();
    expect![[r#"{"apiVersion":"v1","kind":"A","metadata":{"labels":{},"name":"a"}} ["status"]"#]]
        .assert_eq(&format!("{} {:?}", admitted.object, admitted.pruned));
}

#[test]
fn strict_names_every_unknown_field_and_nothing_else() {
    let admission: Admission =
        admission(&resource("{l: {type: array, items: {type: object}}, n: {type: integer}}"));
    let object = json!({"spec": {"x": 1, "l": [{"y": 1}], "n": "wrong"}, "other": 1});
    let causes = admission.admit(object, None, UnknownFields::Strict).unwrap_err();
    expect![[r#"
        UnknownField other: unknown field "other"
        UnknownField spec.l[0].y: unknown field "spec.l[0].y"
        UnknownField spec.x: unknown field "spec.x"
    "#]]
    .assert_eq(&story(&causes));
}
