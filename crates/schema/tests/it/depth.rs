//! Values that are too deep are rejected before they are walked.

use aviary_schema::{Admission, MAX_DEPTH, Schema, UnknownFields, validate};
use expect_test::expect;
use serde_json::{Value, json};

use crate::{admission, resource, story};

/// Built by moving: `json!` would copy recursively at each level.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| match level % 2 {
        0 => Value::Array(vec![inner]),
        _ => Value::Object([("a".to_owned(), inner)].into_iter().collect()),
    })
}

fn anything() -> Admission {
    admission(&resource("{any: {x-kubernetes-preserve-unknown-fields: true}}"))
}

#[test]
fn ten_thousand_levels_are_refused() {
    let object = json!({"spec": {"any": null}});
    let mut deep = object.clone();
    deep["spec"]["any"] = nested(10_000);
    let causes = anything().admit(deep, None, UnknownFields::Strict).unwrap_err();
    expect![[r#"
        FieldValueForbidden <nil>: Forbidden: must not nest deeper than 100 levels
    "#]]
    .assert_eq(&story(&causes));
}

#[test]
fn an_old_object_may_not_be_deep_either() {
    let mut old = json!({"spec": {"any": null}});
    old["spec"]["any"] = nested(500);
    assert_eq!(validate(anything().schema(), &json!({"spec": {}}), Some(&old)).len(), 1);
}

#[test]
fn the_limit_itself_is_allowed() {
    // The root and its spec are two of the levels.
    let at = |levels| {
        let object = json!({"spec": {"any": nested(levels - 2)}});
        anything().admit(object, None, UnknownFields::Strict).is_ok()
    };
    assert!(at(MAX_DEPTH));
    assert!(!at(MAX_DEPTH + 1));
}

#[test]
fn a_deep_schema_is_refused() {
    let schema =
        (0..300).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    expect![[r#"
        FieldValueForbidden openAPIV3Schema: Forbidden: must not nest deeper than 200 levels
    "#]]
    .assert_eq(&story(&Schema::parse(&schema).unwrap_err()));
}
