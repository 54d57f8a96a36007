//! Lists of all types: structured-merge-diff's `set_test.go`, `default_keys_test.go`,
//! `duplicates_test.go`, and `multiple_appliers_test.go` where it is about lists.

use expect_test::expect;

use super::check;

#[test]
fn a_set_is_owned_item_by_item() {
    check(
        "one applies {set: [a, c]}\n one applies {set: [a, b, c, d]}",
        &expect![[r#"
        {"set":["a","b","c","d"]}
        one applied .set[="a"] .set[="b"] .set[="c"] .set[="d"]
    "#]],
    );
    check(
        "one applies {set: [a, c]}\n ctl updates {set: [a, b, c, d]}\n one applies {set: [a, c, e]}",
        &expect![[r#"
            {"set":["a","b","c","d","e"]}
            ctl set .set[="b"] .set[="d"]
            one applied .set[="a"] .set[="c"] .set[="e"]
        "#]],
    );
    check(
        "one applies {set: [a, c]}\n ctl updates {set: [a, b, c, d]}\n one applies {set: [a, b, c]}",
        &expect![[r#"
            {"set":["a","b","c","d"]}
            ctl set .set[="b"] .set[="d"]
            one applied .set[="a"] .set[="b"] .set[="c"]
        "#]],
    );
    check(
        "one applies {set: [a, b, c]}\n one applies {set: [a]}",
        &expect![[r#"
        {"set":["a"]}
        one applied .set[="a"]
    "#]],
    );
}

#[test]
fn the_order_of_an_applied_list_counts_and_other_items_keep_their_places() {
    check(
        "one applies {set: [a, b, c, d]}\n one applies {set: [a, d, c, b]}",
        &expect![[r#"
        {"set":["a","d","c","b"]}
        one applied .set[="a"] .set[="b"] .set[="c"] .set[="d"]
    "#]],
    );
    check(
        "one applies {set: [a, b, c, d]}\n ctl updates {set: [a, d, c, b]}\n one applies {set: [a, b, c, d]}",
        &expect![[r#"
            {"set":["a","b","c","d"]}
            one applied .set[="a"] .set[="b"] .set[="c"] .set[="d"]
        "#]],
    );
    check(
        "one applies {set: [a, b, c, d]}\n two applies {set: [d, x, b]}\n one applies {set: [c, a]}",
        &expect![[r#"
            {"set":["c","d","x","b","a"]}
            one applied .set[="a"] .set[="c"]
            two applied .set[="b"] .set[="d"] .set[="x"]
        "#]],
    );
}

#[test]
fn a_list_map_is_owned_item_by_item() {
    check(
        "one applies {list: [{name: a}, {name: b}]}\n two applies {list: [{name: c}]}\n one applies {list: [{name: a}]}",
        &expect![[r#"
            {"list":[{"name":"a"},{"name":"c"}]}
            one applied .list[name="a"] .list[name="a"].name
            two applied .list[name="c"] .list[name="c"].name
        "#]],
    );
    check(
        "one applies {list: [{name: a, value: 0}]}\n two applies {list: [{name: a, value: 0}]}",
        &expect![[r#"
            {"list":[{"name":"a","value":0}]}
            one applied .list[name="a"] .list[name="a"].name .list[name="a"].value
            two applied .list[name="a"] .list[name="a"].name .list[name="a"].value
        "#]],
    );
    check(
        "one applies {list: [{name: a, value: 0}]}\n two applies {list: [{name: a, value: 1}]}",
        &expect![[r#"
            two conflicts with "one": .list[name="a"].value
            {"list":[{"name":"a","value":0}]}
            one applied .list[name="a"] .list[name="a"].name .list[name="a"].value
        "#]],
    );
    check(
        "one applies {list: [{name: a}, {name: b}, {name: c}]}
         two applies {list: [{name: c}, {name: d}]}
         one applies {list: [{name: a}]}",
        &expect![[r#"
            {"list":[{"name":"a"},{"name":"c"},{"name":"d"}]}
            one applied .list[name="a"] .list[name="a"].name
            two applied .list[name="c"] .list[name="d"] .list[name="c"].name .list[name="d"].name
        "#]],
    );
}

#[test]
fn an_item_stays_for_the_field_that_someone_else_has_in_it() {
    check(
        "one applies {list: [{name: a}, {name: b, value: 1}]}
         two applies {list: [{name: b, value: 1}]}
         one applies {list: [{name: a}]}",
        &expect![[r#"
            {"list":[{"name":"a"},{"name":"b","value":1}]}
            one applied .list[name="a"] .list[name="a"].name
            two applied .list[name="b"] .list[name="b"].name .list[name="b"].value
        "#]],
    );
    check(
        "one applies {list: [{name: a}, {name: b}]}
         ctl updates {list: [{name: a}, {name: b, value: 1}]}
         one applies {list: [{name: a}]}",
        &expect![[r#"
            {"list":[{"name":"a"}]}
            one applied .list[name="a"] .list[name="a"].name
        "#]],
    );
}

#[test]
fn a_list_that_has_lost_its_last_item_goes() {
    check(
        "one applies {list: [{name: a}], text: x}\n one applies {text: x}",
        &expect![[r#"
        {"text":"x"}
        one applied .text
    "#]],
    );
    check(
        "one applies {list: [{name: a}], text: x}\n one applies {list: [], text: x}",
        &expect![[r#"
        {"list":[],"text":"x"}
        one applied .text
    "#]],
    );
}

#[test]
fn a_key_that_is_left_out_is_its_default() {
    check(
        "one applies {pairs: [{a: x}]}\n two applies {pairs: [{a: x, b: 1, v: w}]}",
        &expect![[r#"
        {"pairs":[{"a":"x","b":1,"v":"w"}]}
        one applied .pairs[a="x",b=1] .pairs[a="x",b=1].a
        two applied .pairs[a="x",b=1] .pairs[a="x",b=1].a .pairs[a="x",b=1].b .pairs[a="x",b=1].v
    "#]],
    );
    check(
        "one applies {pairs: [{a: x, v: q}, {a: x, b: 2, v: r}]}\n two applies {pairs: [{a: x, b: 1, v: w}]}",
        &expect![[r#"
            two conflicts with "one": .pairs[a="x",b=1].v
            {"pairs":[{"a":"x","v":"q"},{"a":"x","b":2,"v":"r"}]}
            one applied .pairs[a="x",b=1] .pairs[a="x",b=2] .pairs[a="x",b=1].a .pairs[a="x",b=1].v .pairs[a="x",b=2].a .pairs[a="x",b=2].b .pairs[a="x",b=2].v
        "#]],
    );
    check(
        "one applies {pairs: [{a: x, b: 1}]}\n one applies {pairs: [{a: x, b: 1.0}]}",
        &expect![[r#"
        {"pairs":[{"a":"x","b":1}]}
        one applied .pairs[a="x",b=1.0] .pairs[a="x",b=1.0].a .pairs[a="x",b=1.0].b
    "#]],
    );
}

#[test]
fn a_plain_list_and_an_atomic_map_are_owned_as_a_whole() {
    check(
        "one applies {plain: [a, b]}\n two applies {plain: [a, b, c]}",
        &expect![[r#"
        two conflicts with "one": .plain
        {"plain":["a","b"]}
        one applied .plain
    "#]],
    );
    check(
        "one applies {plain: [a, b]}\n ctl updates {plain: [a, b, c]}\n one forces {plain: [d]}",
        &expect![[r#"
            {"plain":["d"]}
            one applied .plain
        "#]],
    );
    check(
        "one applies {atom: {x: 1}}\n two applies {atom: {y: 1}}",
        &expect![[r#"
        two conflicts with "one": .atom
        {"atom":{"x":1}}
        one applied .atom
    "#]],
    );
    check(
        "one applies {atom: {x: 1}}\n two forces {atom: {y: 1}}\n one applies {}",
        &expect![[r#"
        {"atom":{"y":1}}
        two applied .atom
    "#]],
    );
    check(
        "one applies {atom: {x: 1}}\n two applies {atom: {x: 1}}\n one applies {}\n two applies {}",
        &expect![[r#"
            {}
        "#]],
    );
}

#[test]
fn items_of_one_name_are_owned_together() {
    check(
        "ctl updates {list: [{name: a, value: 1}, {name: a, value: 2}]}",
        &expect![[r#"
        {"list":[{"name":"a","value":1},{"name":"a","value":2}]}
        ctl set .list .list[name="a"]
    "#]],
    );
    check(
        "ctl updates {list: [{name: a, value: 1}, {name: a, value: 2}, {name: b}]}
         one applies {list: [{name: c, value: 3}]}",
        &expect![[r#"
            {"list":[{"name":"a","value":1},{"name":"a","value":2},{"name":"b"},{"name":"c","value":3}]}
            ctl set .list .list[name="a"] .list[name="b"] .list[name="b"].name
            one applied .list[name="c"] .list[name="c"].name .list[name="c"].value
        "#]],
    );
    check(
        "ctl updates {list: [{name: a, value: 1}, {name: a, value: 2}, {name: b}]}
         one forces {list: [{name: a, value: 3}]}",
        &expect![[r#"
            {"list":[{"name":"a","value":3},{"name":"b"}]}
            ctl set .list .list[name="b"] .list[name="b"].name
            one applied .list[name="a"] .list[name="a"].name .list[name="a"].value
        "#]],
    );
    check(
        "ctl updates {set: [a, a, b]}\n two updates {set: [a, b]}",
        &expect![[r#"
        {"set":["a","b"]}
        ctl set .set .set[="b"]
        two set .set[="a"]
    "#]],
    );
    check(
        "ctl updates {set: [a, b]}\n two updates {set: [a, a, b]}",
        &expect![[r#"
        {"set":["a","a","b"]}
        ctl set .set .set[="b"]
        two set .set[="a"]
    "#]],
    );
}

#[test]
fn a_configuration_that_does_not_fit_is_told_why() {
    let wrong = |yaml: &str| {
        let config: serde_json::Value = serde_saphyr::from_str(yaml).unwrap();
        let wrong = super::super::check(super::ValueType::resource(&super::SCHEMA), &config).join("; ");
        if wrong.is_empty() { "fits".to_owned() } else { wrong }
    };
    let told: Vec<String> = [
        "{set: [a, a]}",
        "{set: [null]}",
        "{set: [{}]}",
        "{list: [{name: a}, {name: a}]}",
        "{list: [x]}",
        "{pairs: [{v: x}]}",
        "{pairs: [null]}",
        "{text: 1, number: a, flag: 1, map: {k: 1}, plain: x, struct: [], either: {}}",
        "{struct: {other: 1}}",
        "{metadata: {colour: red, labels: {a: 1}, finalizers: [a, a]}}",
        "{text: null, list: null, struct: null, free: {any: [{thing: null}]}}",
    ]
    .iter()
    .map(|yaml| format!("{yaml}\n    {}\n", wrong(yaml)))
    .collect();
    expect![[r#"
        {set: [a, a]}
            .set: duplicate entries for key [="a"]
        {set: [null]}
            .set: element 0: associative list without keys has an element that's an explicit null
        {set: [{}]}
            .set: element 0: associative list without keys has an element that's a map type
        {list: [{name: a}, {name: a}]}
            .list: duplicate entries for key [name="a"]
        {list: [x]}
            .list: element 0: associative list with keys may not have non-map elements
        {pairs: [{v: x}]}
            fits
        {pairs: [null]}
            .pairs: element 0: associative list with keys may not have a null element
        {text: 1, number: a, flag: 1, map: {k: 1}, plain: x, struct: [], either: {}}
            .flag: expected boolean, got 1; .map.k: expected string, got 1; .number: expected numeric (int or float), got "a"; .plain: expected list, got "x"; .struct: expected map, got []; .text: expected string, got 1
        {struct: {other: 1}}
            .struct.other: field not declared in schema
        {metadata: {colour: red, labels: {a: 1}, finalizers: [a, a]}}
            .metadata.colour: field not declared in schema; .metadata.finalizers: duplicate entries for key [="a"]; .metadata.labels.a: expected string, got 1
        {text: null, list: null, struct: null, free: {any: [{thing: null}]}}
            fits
    "#]].assert_eq(&told.concat());
}
