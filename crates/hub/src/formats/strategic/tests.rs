use expect_test::{Expect, expect};
use proptest::prelude::{Strategy as Generator, prop, prop_oneof, proptest};
use serde_json::json;

use super::*;

const fn field(name: &'static str, strategy: PatchStrategy, fields: &'static [FieldRule]) -> FieldRule {
    FieldRule { name, strategy, fields }
}

/// The type that apimachinery tests with.
static MERGE_ITEM: [FieldRule; 7] = [
    field("mergingList", PatchStrategy::ByKey("name"), &MERGE_ITEM),
    field("mergingIntList", PatchStrategy::Set, &[]),
    field("mergeItemPtr", PatchStrategy::ByKey("name"), &MERGE_ITEM),
    field("nonMergingList", PatchStrategy::Merge, &MERGE_ITEM),
    field("replacingItem", PatchStrategy::Replace, &[]),
    field("retainKeysMap", PatchStrategy::Merge, &RETAIN_KEYS_MAP),
    field("retainKeysMergingList", PatchStrategy::ByKey("name"), &MERGE_ITEM),
];

static RETAIN_KEYS_MAP: [FieldRule; 2] = [
    field("mergingIntList", PatchStrategy::Set, &[]),
    field("mergingList", PatchStrategy::ByKey("name"), &MERGE_ITEM),
];

/// Every original and patch of apimachinery's patch_test.go (v0.35), with what its code made of
/// them.
#[test]
fn the_cases_of_apimachinery_come_out_as_in_go() {
    for line in include_str!("fixtures/apimachinery.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let result = apply_with(&MERGE_ITEM, &case["original"], &case["patch"]);
        assert_eq!(result.as_ref().ok(), case.get("result"), "{line}\n{result:?}");
    }
}

fn check(kind: &str, original: &Value, patch: &Value, expected: &Expect) {
    match apply(kind, original, patch) {
        Ok(result) => expected.assert_eq(&result.to_string()),
        Err(error) => expected.assert_eq(&format!("error: {error}")),
    }
}

#[test]
fn finalizers_are_a_set() {
    let original = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    check(
        "ConfigMap",
        &original,
        &json!({"metadata": {"finalizers": ["c", "d"]}}),
        &expect![[r#"{"metadata":{"finalizers":["a","b","c","d"]}}"#]],
    );
    check(
        "ConfigMap",
        &original,
        &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"]}}),
        &expect![[r#"{"metadata":{"finalizers":["a","c"]}}"#]],
    );
    check(
        "ConfigMap",
        &original,
        &json!({"metadata": {"$setElementOrder/finalizers": ["d", "a"], "finalizers": ["d"]}}),
        &expect![[r#"{"metadata":{"finalizers":["d","a","b","c"]}}"#]],
    );
    check(
        "ConfigMap",
        &original,
        &json!({"metadata": {"finalizers": null}}),
        &expect![[r#"{"metadata":{}}"#]],
    );
}

#[test]
fn owner_references_merge_by_uid() {
    let original =
        json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}]}});
    let references = |references: Value| json!({"metadata": {"ownerReferences": references}});
    check(
        "Secret",
        &original,
        &references(json!([{"uid": "2", "controller": true}, {"uid": "3", "name": "c", "x": null}])),
        &expect![[
            r#"{"metadata":{"ownerReferences":[{"name":"a","uid":"1"},{"controller":true,"name":"b","uid":"2"},{"name":"c","uid":"3"}]}}"#
        ]],
    );
    check(
        "Secret",
        &original,
        &references(json!([{"uid": "1", "$patch": "delete"}])),
        &expect![[r#"{"metadata":{"ownerReferences":[{"name":"b","uid":"2"}]}}"#]],
    );
    check(
        "Secret",
        &original,
        &references(json!([{"$patch": "replace"}, {"uid": "9"}])),
        &expect![[r#"{"metadata":{"ownerReferences":[{"uid":"9"}]}}"#]],
    );
    check(
        "Secret",
        &original,
        &references(json!([{"name": "no uid"}])),
        &expect![[r#"error: map: {"name":"no uid"} does not contain declared merge key: uid"#]],
    );
    check(
        "Secret",
        &original,
        &references(json!([{"uid": "1", "$patch": "merge"}])),
        &expect!["error: merging lists cannot yet be specified in the patch"],
    );
    check(
        "Secret",
        &original,
        &references(json!([{"uid": "1", "$patch": "x"}])),
        &expect![[r#"error: unknown patch type: x in map: {"$patch":"x","uid":"1"}"#]],
    );
    check(
        "Secret",
        &original,
        &references(json!(["1"])),
        &expect!["error: list element types are not identical"],
    );
}

#[test]
fn each_kind_has_its_own_lists() {
    let secrets = json!({"secrets": [{"name": "a"}], "imagePullSecrets": [{"name": "a"}]});
    let patch = json!({"secrets": [{"name": "b"}], "imagePullSecrets": [{"name": "b"}]});
    check(
        "ServiceAccount",
        &secrets,
        &patch,
        &expect![[r#"{"imagePullSecrets":[{"name":"b"}],"secrets":[{"name":"b"},{"name":"a"}]}"#]],
    );
    let conditions = json!({"status": {"conditions": [{"type": "A", "status": "True"}]}});
    let patch = json!({"status": {"conditions": [{"type": "B"}]}});
    check(
        "Namespace",
        &conditions,
        &patch,
        &expect![[r#"{"status":{"conditions":[{"type":"B"},{"status":"True","type":"A"}]}}"#]],
    );
    check(
        "CustomResourceDefinition",
        &conditions,
        &patch,
        &expect![[r#"{"status":{"conditions":[{"type":"B"}]}}"#]],
    );
    check(
        "Role",
        &json!({"rules": [{"verbs": ["get"]}]}),
        &json!({"rules": [{"verbs": ["list"]}]}),
        &expect![[r#"{"rules":[{"verbs":["list"]}]}"#]],
    );
}

#[test]
fn objects_merge_unless_told_otherwise() {
    let original = json!({"data": {"a": "1", "b": "2"}, "immutable": false});
    check(
        "ConfigMap",
        &original,
        &json!({"data": {"a": null, "c": "3"}}),
        &expect![[r#"{"data":{"b":"2","c":"3"},"immutable":false}"#]],
    );
    check(
        "ConfigMap",
        &original,
        &json!({"data": {"c": "3", "d": null, "$patch": "replace"}}),
        &expect![[r#"{"data":{"c":"3"},"immutable":false}"#]],
    );
    check(
        "ConfigMap",
        &original,
        &json!({"data": {"$patch": "delete"}}),
        &expect![[r#"{"data":{},"immutable":false}"#]],
    );
    check(
        "ConfigMap",
        &original,
        &json!({"data": {"$retainKeys": ["a", "c"], "c": "3"}}),
        &expect![[r#"{"data":{"a":"1","c":"3"},"immutable":false}"#]],
    );
    check(
        "ConfigMap",
        &original,
        &json!({"data": {"$retainKeys": ["a"], "c": "3"}}),
        &expect!["error: invalid patch format of retainKeys"],
    );
    check(
        "ConfigMap",
        &original,
        &json!({"data": {"$patch": "merge", "c": "3"}}),
        &expect![[r#"error: unknown patch type: merge in map: {"$patch":"merge","c":"3"}"#]],
    );
    check(
        "ConfigMap",
        &original,
        &json!({"data": "text"}),
        &expect![[r#"{"data":"text","immutable":false}"#]],
    );
}

#[test]
fn directives_never_reach_the_result() {
    let patch = json!({"metadata": {"$setElementOrder/finalizers": ["a"], "finalizers": ["a"], "labels": {"$patch": "replace"}}});
    check("ConfigMap", &json!({}), &patch, &expect![[r#"{"metadata":{"finalizers":["a"]}}"#]]);
    let patch = json!({"metadata": {"labels": {"$retainKeys": ["a"], "a": "b"}}});
    check("ConfigMap", &json!({}), &patch, &expect![[r#"{"metadata":{"labels":{"a":"b"}}}"#]]);
}

#[test]
fn what_is_malformed_is_refused() {
    check(
        "Pod",
        &json!({}),
        &json!({}),
        &expect!["error: strategic merge patch is not supported for kind Pod"],
    );
    check("ConfigMap", &json!({}), &json!([]), &expect!["error: expected an object, but received a list"]);
    check(
        "ConfigMap",
        &json!({"metadata": {"finalizers": ["a"]}}),
        &json!({"metadata": {"finalizers": [1]}}),
        &expect!["error: list element types are not identical"],
    );
    check(
        "ConfigMap",
        &json!({"metadata": {"finalizers": ["a"]}}),
        &json!({"metadata": {"finalizers": [["a"]]}}),
        &expect!["error: list element types are not identical"],
    );
    check(
        "ConfigMap",
        &json!({}),
        &json!({"metadata": {"$setElementOrder/": []}}),
        &expect![[r#"{"metadata":{}}"#]],
    );
    check(
        "ConfigMap",
        &json!({"metadata": {}}),
        &json!({"metadata": {"$deleteFromPrimitiveList": []}}),
        &expect!["error: invalid patch format of primitive list"],
    );
    let order = json!({"metadata": {"$setElementOrder/finalizers": ["a"], "finalizers": ["b"]}});
    check(
        "ConfigMap",
        &json!({"metadata": {"finalizers": ["a"]}}),
        &order,
        &expect![[
            r#"error: the order in the patch list ["b"] doesn't match the $setElementOrder list ["a"]"#
        ]],
    );
    let deep = (0..200).fold(json!({}), |inner, _| json!({"a": inner}));
    check("ConfigMap", &json!({}), &deep, &expect!["error: the patch is nested more than 128 levels deep"]);
}

#[test]
fn long_lists_merge_in_time() {
    let items =
        |from: usize| (from..from + 100_000).map(|n| json!({"uid": n.to_string()})).collect::<Value>();
    let names = |from: usize| (from..from + 100_000).map(|n| json!(n.to_string())).collect::<Value>();
    let original = json!({"metadata": {"ownerReferences": items(0), "finalizers": names(0)}});
    let patch = json!({"metadata": {"ownerReferences": items(50_000), "finalizers": names(50_000)}});
    let result = apply("ConfigMap", &original, &patch).unwrap();
    assert_eq!(result["metadata"]["ownerReferences"].as_array().unwrap().len(), 150_000);
    assert_eq!(result["metadata"]["finalizers"].as_array().unwrap().len(), 150_000);
}

/// Objects full of the words that mean something.
fn object() -> impl Generator<Value = Value> {
    let key = prop::sample::select(vec![
        "name",
        "value",
        "mergingList",
        "mergingIntList",
        "mergeItemPtr",
        "nonMergingList",
        "retainKeysMap",
        "$patch",
        "$retainKeys",
        "$setElementOrder/mergingList",
        "$setElementOrder/mergingIntList",
        "$setElementOrder/x",
        "$deleteFromPrimitiveList/mergingIntList",
        "$deleteFromPrimitiveList/",
        "simpleMap",
    ]);
    let leaf = prop::sample::select(vec![
        json!(null),
        json!(1),
        json!(2),
        json!("a"),
        json!("delete"),
        json!("replace"),
        json!("merge"),
        json!(["name"]),
        json!([1, 2]),
        json!([2, 3, 3]),
        json!([[1]]),
        json!([{"name": 1}, {"name": 2}]),
        json!([{"name": 2, "value": 3}]),
        json!([{"name": 1, "$patch": "delete"}]),
        json!([{"$patch": "replace"}]),
    ]);
    let object = leaf.prop_recursive(4, 64, 6, move |inner| {
        let fields = prop::collection::vec((key.clone(), inner.clone()), 0..6);
        prop_oneof![
            4 => fields.prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::Array),
        ]
    });
    object.prop_filter("an object", Value::is_object)
}

proptest! {
    #[test]
    fn any_patch_is_applied_or_refused(original in object(), patch in object()) {
        let _ = apply_with(&MERGE_ITEM, &original, &patch);
    }
}
