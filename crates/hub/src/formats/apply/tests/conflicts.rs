//! Who may change what: structured-merge-diff's `leaf_test.go`, and who shares what.

use expect_test::expect;

use super::check;

#[test]
fn what_is_applied_twice_may_change() {
    check(
        "one applies {number: 1, text: a}\n one applies {number: 2, text: a}",
        &expect![[r#"
        {"number":2,"text":"a"}
        one applied .number .text
    "#]],
    );
}

#[test]
fn an_updaters_other_fields_are_no_conflict() {
    check(
        "one applies {number: 1, text: a}
         ctl updates {number: 1, text: a, flag: true}
         one applies {number: 2, text: a}",
        &expect![[r#"
            {"flag":true,"number":2,"text":"a"}
            ctl set .flag
            one applied .number .text
        "#]],
    );
}

#[test]
fn an_updaters_field_is_a_conflict() {
    check(
        "one applies {number: 1, text: a}
         ctl updates {number: 1, text: b}
         one applies {number: 2, text: a}",
        &expect![[r#"
            one conflicts with "ctl" using v1: .text
            {"number":1,"text":"b"}
            ctl set .text
            one applied .number
        "#]],
    );
}

#[test]
fn a_forced_apply_takes_the_field() {
    check(
        "one applies {number: 1, text: a}
         ctl updates {number: 1, text: b}
         one forces {number: 2, text: c}",
        &expect![[r#"
            {"number":2,"text":"c"}
            one applied .number .text
        "#]],
    );
}

#[test]
fn what_is_not_applied_any_more_goes() {
    check(
        "one applies {number: 1, text: a}\n one applies {text: a}",
        &expect![[r#"
        {"text":"a"}
        one applied .text
    "#]],
    );
}

#[test]
fn what_an_updater_has_set_stays_when_an_applier_leaves_it_out() {
    check(
        "ctl updates {number: 1}\n one applies {number: 1}\n one applies {}",
        &expect![[r#"
        {"number":1}
        ctl set .number
    "#]],
    );
}

#[test]
fn who_has_no_fields_left_is_no_manager() {
    check(
        "ctl updates {text: a}\n one applies {number: 1}\n ctl updates {number: 1}",
        &expect![[r#"
        {"number":1}
        one applied .number
    "#]],
    );
    check(
        "one applies {text: a}\n one applies {}",
        &expect![[r#"
        {}
    "#]],
    );
}

#[test]
fn the_same_value_is_shared_and_stays_until_all_have_left_it() {
    let begin = "one applies {text: a, number: 1}\n two applies {text: a}\n";
    check(
        begin,
        &expect![[r#"
        {"number":1,"text":"a"}
        one applied .number .text
        two applied .text
    "#]],
    );
    check(
        &format!("{begin} one applies {{number: 1}}"),
        &expect![[r#"
        {"number":1,"text":"a"}
        one applied .number
        two applied .text
    "#]],
    );
    check(
        &format!("{begin} one applies {{number: 1}}\n two applies {{}}"),
        &expect![[r#"
        {"number":1}
        one applied .number
    "#]],
    );
}

#[test]
fn a_conflict_names_all_managers_and_fields() {
    check(
        "one applies {text: a, number: 1}
         two applies {text: a}
         ctl updates {text: a, number: 1, flag: true}
         three applies {text: b, number: 2, flag: false}",
        &expect![[r#"
            three conflicts with "ctl" using v1: .flag
            three conflicts with "one": .number .text
            three conflicts with "two": .text
            {"flag":true,"number":1,"text":"a"}
            ctl set .flag
            one applied .number .text
            two applied .text
        "#]],
    );
}

#[test]
fn a_forced_apply_takes_from_all() {
    check(
        "one applies {text: a, number: 1}
         two applies {text: a}
         three forces {text: b}
         one applies {number: 1}",
        &expect![[r#"
            {"number":1,"text":"b"}
            one applied .number
            three applied .text
        "#]],
    );
}

#[test]
fn what_was_there_before_the_first_apply_is_somebodys() {
    check(
        "ctl updates {text: a, number: 1}",
        &expect![[r#"
        {"number":1,"text":"a"}
        ctl set .number .text
    "#]],
    );
    let mut world = super::World::new(&[("v1", &super::SCHEMA)]);
    world.object = serde_json::json!({"text": "a", "number": 1, "map": {"k": "v"}});
    let conflict = world.apply("one", &serde_json::json!({"text": "b"}), false).unwrap_err();
    assert_eq!(conflict.0[0].0.to_string(), "\"before-first-apply\" using v1");
    world.apply("one", &serde_json::json!({"text": "a"}), false).unwrap();
    expect![[r#"
        {"map":{"k":"v"},"number":1,"text":"a"}
        before-first-apply set .map .number .text .map.k
        one applied .text
    "#]]
    .assert_eq(&world.show());
}

#[test]
fn an_apply_of_other_types_is_a_conflict_as_well() {
    check(
        "one applies {either: 1}\n two applies {either: a}",
        &expect![[r#"
        two conflicts with "one": .either
        {"either":1}
        one applied .either
    "#]],
    );
    check(
        "one applies {free: {a: 1}}\n two applies {free: {a: {b: 1}}}",
        &expect![[r#"
        two conflicts with "one": .free.a
        {"free":{"a":1}}
        one applied .free.a
    "#]],
    );
    check(
        "one applies {free: {a: {b: 1}}}\n two forces {free: {a: 1}}",
        &expect![[r#"
        {"free":{"a":1}}
        two applied .free.a
    "#]],
    );
}

#[test]
fn identity_and_what_the_server_says_are_nobodys() {
    check(
        "one applies {apiVersion: v1, kind: Thing, metadata: {name: a, namespace: b, uid: u, generation: 1, labels: {k: v}}, text: a}",
        &expect![[r#"
            {"apiVersion":"v1","kind":"Thing","metadata":{"generation":1,"labels":{"k":"v"},"name":"a","namespace":"b","uid":"u"},"text":"a"}
            one applied .text .metadata.labels.k
        "#]],
    );
}
