//! Sets and `managedFields` as they are written.

use serde_json::json;

use super::super::managers::{Claimed, Managers};
use super::super::set::Set;

#[test]
fn fields_v1_is_read_and_written_alike() {
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:finalizers": {"v:\"x\"": {}, "v:1": {}, "v:true": {}}},
        "f:spec": {"f:ports": {"k:{\"name\":\"a\",\"port\":80}": {".": {}, "f:name": {}}}, "f:plain": {"i:0": {}}},
    });
    let set = Set::from_fields(&fields).unwrap();
    assert_eq!(set.to_fields(), fields);
    let paths = [
        ".metadata.finalizers[=1]",
        ".metadata.finalizers[=\"x\"]",
        ".metadata.finalizers[=true]",
        ".metadata.labels",
        ".metadata.labels.a",
        ".spec.plain[0]",
        ".spec.ports[name=\"a\",port=80]",
        ".spec.ports[name=\"a\",port=80].name",
    ];
    let mut found = set.paths();
    found.sort();
    let mut paths = paths.map(str::to_owned).to_vec();
    paths.sort();
    assert_eq!(found, paths);
}

#[test]
fn what_cannot_be_read_is_an_error_and_what_is_of_the_future_is_left_out() {
    for fields in
        [json!({"spec": {}}), json!({"k:x": {}}), json!({"i:x": {}}), json!({"v:": {}}), json!({"ab:c": {}})]
    {
        assert!(Set::from_fields(&fields).is_err(), "{fields}");
    }
    let set = Set::from_fields(&json!({"f:a": {}, "z:b": {"f:c": {}}})).unwrap();
    assert_eq!(set.to_fields(), json!({"f:a": {}}));
}

#[test]
fn keys_are_the_same_in_any_order_and_numbers_by_value() {
    let one = Set::from_fields(&json!({"k:{\"a\":1,\"b\":2}": {}})).unwrap();
    let other = Set::from_fields(&json!({"k:{\"b\":2.0,\"a\":1}": {}})).unwrap();
    assert_eq!(one, other);
}

#[test]
fn the_algebra_of_sets_is_by_field() {
    let set = |fields: serde_json::Value| Set::from_fields(&fields).unwrap();
    let one = set(json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}, "f:d": {}}));
    let other = set(json!({"f:a": {"f:b": {}, "f:x": {}}, "f:d": {"f:e": {}}}));
    let told = |set: Set| set.paths().join(" ");
    assert_eq!(told(one.union(&other)), ".a .d .a.b .a.c .a.x .d.e");
    assert_eq!(told(one.intersection(&other)), ".a.b");
    assert_eq!(told(one.difference(&other)), ".a .d .a.c");
    assert_eq!(told(other.difference(&one)), ".a.x .d.e");
}

#[test]
fn managers_are_written_in_order_and_read_back() {
    let entry = |manager: &str, operation: &str, time: &str| {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:a": {}}})
    };
    let given = json!({"metadata": {"managedFields": [
        entry("b", "Update", "2026-01-01T00:00:00Z"),
        entry("z", "Apply", "2026-01-01T00:00:02Z"),
        entry("a", "Apply", "2026-01-01T01:00:03+01:00"),
    ]}});
    let written = Managers::of(&given).to_value().unwrap();
    let order: Vec<&str> =
        written.as_array().unwrap().iter().map(|entry| entry["manager"].as_str().unwrap()).collect();
    assert_eq!(order, ["z", "a", "b"]);
    assert_eq!(written[1]["time"], "2026-01-01T00:00:03Z");
    let again = Managers::of(&json!({"metadata": {"managedFields": written}}));
    assert!(again.same(&Managers::of(&given)));
}

#[test]
fn an_empty_list_or_entry_resets_and_rubbish_says_nothing() {
    let claimed = |value: serde_json::Value| Claimed::read(Some(&value));
    assert!(matches!(Claimed::read(None), Claimed::Nothing));
    assert!(matches!(claimed(json!(null)), Claimed::Nothing));
    assert!(matches!(claimed(json!([])), Claimed::Reset));
    assert!(matches!(claimed(json!([{}])), Claimed::Reset));
    let sound = json!({"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}});
    assert!(matches!(claimed(json!([sound])), Claimed::Managers(_)));
    for (field, value) in [
        ("operation", json!("Delete")),
        ("apiVersion", json!("")),
        ("fieldsType", json!("FieldsV2")),
        ("time", json!("noon")),
        ("fieldsV1", json!({"a": {}})),
        ("manager", json!("x".repeat(129))),
    ] {
        let mut entry = sound.clone();
        entry[field] = value;
        assert!(matches!(claimed(json!([entry])), Claimed::Nothing), "{field}");
    }
}
