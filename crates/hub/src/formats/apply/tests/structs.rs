//! Maps and structs: structured-merge-diff's `nested_test.go`, `deduced_test.go`,
//! `preserve_unknown_test.go`, and `multiple_appliers_test.go` where it is about fields.

use expect_test::expect;

use super::check;

#[test]
fn keys_of_a_map_are_fields() {
    check(
        "one applies {map: {a: x}}\n two applies {map: {b: q}}\n one applies {map: {c: z}}",
        &expect![[r#"
        {"map":{"b":"q","c":"z"}}
        one applied .map.c
        two applied .map.b
    "#]],
    );
    check(
        "one applies {maps: {a: {b: x}}}\n one applies {maps: {a: {c: x}}}",
        &expect![[r#"
        {"maps":{"a":{"c":"x"}}}
        one applied .maps.a .maps.a.c
    "#]],
    );
    check(
        "one applies {maps: {a: {b: x}}}\n two applies {maps: {a: {c: q}}}\n one applies {maps: {}}",
        &expect![[r#"
            {"maps":{"a":{"c":"q"}}}
            one applied .maps
            two applied .maps.a .maps.a.c
        "#]],
    );
    check(
        "one applies {maps: {a: {b: x}}}\n one applies {maps: {z: {b: x}}}",
        &expect![[r#"
        {"maps":{"z":{"b":"x"}}}
        one applied .maps.z .maps.z.b
    "#]],
    );
}

#[test]
fn a_struct_goes_with_its_last_field() {
    check(
        "one applies {struct: {name: a, value: 1}}\n one applies {}",
        &expect![[r#"
        {}
    "#]],
    );
    check(
        "one applies {struct: {inner: {name: a}}, text: x}\n one applies {text: x}",
        &expect![[r#"
        {"text":"x"}
        one applied .text
    "#]],
    );
}

#[test]
fn a_struct_stays_for_what_others_have_in_it() {
    check(
        "one applies {struct: {name: a}}\n ctl updates {struct: {name: a, value: 1}}\n one applies {}",
        &expect![[r#"
            {"struct":{"value":1}}
            ctl set .struct.value
        "#]],
    );
    check(
        "one applies {struct: {inner: {name: a}}}\n two applies {struct: {inner: {value: 1}}}\n one applies {}",
        &expect![[r#"
            {"struct":{"inner":{"value":1}}}
            two applied .struct.inner.value
        "#]],
    );
    check(
        "one applies {map: {a: x}}\n ctl updates {map: {a: x, b: q}}\n one applies {}",
        &expect![[r#"
        {"map":{"b":"q"}}
        ctl set .map.b
    "#]],
    );
    check(
        "one applies {struct: {name: a}}\n ctl updates {struct: {name: b}}\n one applies {}",
        &expect![[r#"
            {"struct":{"name":"b"}}
            ctl set .struct.name
        "#]],
    );
}

#[test]
fn an_empty_map_is_something() {
    check(
        "one applies {map: {}}",
        &expect![[r#"
        {"map":{}}
        one applied .map
    "#]],
    );
    check(
        "one applies {map: {a: x}}\n one applies {map: {}}",
        &expect![[r#"
        {"map":{}}
        one applied .map
    "#]],
    );
    check(
        "one applies {struct: {}}\n two applies {struct: {name: a}}\n two applies {}",
        &expect![[r#"
        {"struct":{}}
        one applied .struct
    "#]],
    );
}

#[test]
fn without_a_schema_maps_go_by_field_and_lists_as_a_whole() {
    check(
        "one applies {free: {a: 1, b: 2}}\n two applies {free: {c: 3}}\n one applies {free: {a: 1}}",
        &expect![[r#"
            {"free":{"a":1,"c":3}}
            one applied .free.a
            two applied .free.c
        "#]],
    );
    check(
        "one applies {free: {l: [1, 2]}}\n two applies {free: {l: [1]}}",
        &expect![[r#"
        two conflicts with "one": .free.l
        {"free":{"l":[1,2]}}
        one applied .free.l
    "#]],
    );
    check(
        "one applies {free: {m: {n: 1}}}\n two applies {free: {m: {o: 1}}}\n one applies {}",
        &expect![[r#"
            {"free":{"m":{"o":1}}}
            two applied .free.m .free.m.o
        "#]],
    );
    check(
        "one applies {free: {m: {n: 1}}}\n one applies {free: {m: {}}}\n one applies {free: {m: {}}}",
        &expect![[r#"
            {"free":{"m":{}}}
            one applied .free.m
        "#]],
    );
}

#[test]
fn finalizers_and_owners_merge() {
    check(
        "one applies {metadata: {finalizers: [a/a], ownerReferences: [{uid: u, name: o}]}}
         two applies {metadata: {finalizers: [b/b], labels: {k: v}}}
         one applies {metadata: {ownerReferences: [{uid: u, name: o}]}}",
        &expect![[r#"
            {"metadata":{"finalizers":["b/b"],"labels":{"k":"v"},"ownerReferences":[{"name":"o","uid":"u"}]}}
            one applied .metadata.ownerReferences[uid="u"]
            two applied .metadata.finalizers[="b/b"] .metadata.labels.k
        "#]],
    );
}

#[test]
fn a_null_is_a_value() {
    check(
        "one applies {text: null}",
        &expect![[r#"
        {"text":null}
        one applied .text
    "#]],
    );
    check(
        "one applies {text: a}\n two applies {text: null}",
        &expect![[r#"
        two conflicts with "one": .text
        {"text":"a"}
        one applied .text
    "#]],
    );
    check(
        "ctl updates {map: {a: x}}\n one applies {map: null}",
        &expect![[r#"
        {"map":{"a":"x"}}
        ctl set .map .map.a
        one applied .map
    "#]],
    );
}
