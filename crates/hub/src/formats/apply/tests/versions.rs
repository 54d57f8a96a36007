//! Managers of several versions, schemas that change, and many managers: structured-merge-diff's
//! `obsolete_versions_test.go` and `schema_change_test.go`.

use expect_test::expect;
use serde_json::json;

use super::{SCHEMA, World, check_with, schema};

#[test]
fn an_applier_is_the_same_in_every_version_and_an_updater_is_not() {
    let both = [("v1", &*SCHEMA), ("v2", &*SCHEMA)];
    check_with(
        &both,
        "one applies {text: a, number: 1}\n one@v2 applies {text: a}",
        &expect![[r#"
        {"text":"a"}
        one@v2 applied .text
    "#]],
    );
    check_with(
        &both,
        "one applies {text: a}\n ctl updates {text: b}\n ctl@v2 updates {text: b, number: 1}",
        &expect![[r#"
            {"number":1,"text":"b"}
            ctl set .text
            ctl@v2 set .number
        "#]],
    );
    check_with(
        &both,
        "one applies {text: a}\n two@v2 applies {text: b}",
        &expect![[r#"
        two conflicts with "one": .text
        {"text":"a"}
        one applied .text
    "#]],
    );
    check_with(
        &both,
        "one applies {list: [{name: a}, {name: b}]}\n two@v2 applies {list: [{name: c}]}\n one@v2 applies {list: [{name: a}]}",
        &expect![[r#"
            {"list":[{"name":"a"},{"name":"c"}]}
            one@v2 applied .list[name="a"] .list[name="a"].name
            two@v2 applied .list[name="c"] .list[name="c"].name
        "#]],
    );
}

#[test]
fn managers_of_a_version_that_is_no_more_are_forgotten() {
    let mut world = World::new(&[("v2", &SCHEMA), ("v1", &SCHEMA)]);
    world.apply("two", &json!({"text": "a"}), false).unwrap();
    world.versions.current = "v1";
    world.apply("one", &json!({"number": 1}), false).unwrap();
    world.versions.types.remove("v2");
    world.apply("one", &json!({"number": 1, "text": "b"}), false).unwrap();
    expect![[r#"
        {"number":1,"text":"b"}
        one applied .number .text
    "#]]
    .assert_eq(&world.show());
}

#[test]
fn what_became_atomic_is_owned_as_a_whole() {
    let map = |extra: &str| {
        let mut map =
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        if !extra.is_empty() {
            map["x-kubernetes-map-type"] = json!(extra);
        }
        schema(&json!({"thing": map}))
    };
    let (granular, atomic) = (map(""), map("atomic"));
    let mut world = World::new(&[("v1", &granular)]);
    world.apply("one", &json!({"thing": {"a": "x"}}), false).unwrap();
    world.apply("two", &json!({"thing": {"b": "y"}}), false).unwrap();
    let World { object, managers, .. } = world;
    let mut world = World { object, managers, ..World::new(&[("v1", &atomic)]) };
    let conflict = world.apply("one", &json!({"thing": {"a": "z"}}), false).unwrap_err();
    assert_eq!(conflict.0[0].1.paths(), [".thing"]);
    world.apply("one", &json!({"thing": {"a": "z"}}), true).unwrap();
    expect![[r#"
        {"thing":{"a":"z"}}
        one applied .thing
    "#]]
    .assert_eq(&world.show());
}

#[test]
fn the_oldest_of_too_many_updaters_become_one() {
    let mut world = World::new(&[("v1", &SCHEMA)]);
    world.apply("one", &json!({"text": "a"}), false).unwrap();
    let mut object = world.object.clone();
    for count in 0..12 {
        object["map"][format!("k{count}")] = json!("v");
        world.update(&format!("u{count:02}"), object.clone());
    }
    expect![[r#"
        {"map":{"k0":"v","k1":"v","k10":"v","k11":"v","k2":"v","k3":"v","k4":"v","k5":"v","k6":"v","k7":"v","k8":"v","k9":"v"},"text":"a"}
        ancient-changes set .map .map.k0 .map.k1 .map.k2
        one applied .text
        u03 set .map.k3
        u04 set .map.k4
        u05 set .map.k5
        u06 set .map.k6
        u07 set .map.k7
        u08 set .map.k8
        u09 set .map.k9
        u10 set .map.k10
        u11 set .map.k11
    "#]].assert_eq(&world.show());
}
