//! Spec hashes are the ones that Go computes (chapter 2.2 of the rules).
//!
//! `fixtures/go-json.jsonl` was printed by a Go program that decodes as Kubernetes does (int64
//! where it fits, else float64) and encodes with `encoding/json`.

use aviary_engine::hash::{canonical, content, digest, spec_hash};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn values_are_encoded_as_go_encodes_them() {
    for line in include_str!("fixtures/go-json.jsonl").lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let input: Value = serde_json::from_str(vector["input"].as_str().unwrap()).unwrap();
        assert_eq!(canonical(&input), vector["output"].as_str().unwrap());
        assert_eq!(digest(&input).as_str(), vector["sha256"].as_str().unwrap());
    }
}

#[test]
fn the_hashes_that_go_computes() {
    let hashes = [
        (json!({}), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
        (json!({ "spec": { "test": 1 } }), "af144391"),
        (json!({ "data": { "test": 1 } }), "766dd25b"),
    ];
    for (object, hash) in hashes {
        assert!(spec_hash(&object).as_str().starts_with(hash), "{object}");
    }
    assert!(spec_hash(&json!({ "spec": { "test": 1 } })).as_str().ends_with("8fba4"));
    assert!(spec_hash(&json!({ "data": { "test": 1 } })).as_str().ends_with("bbfa1"));
}

#[test]
fn identity_and_status_are_not_content() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x", "labels": {} }, "status": { "ok": true },
        "data": { "metadata": "kept further down" },
    });
    assert_eq!(content(&object), json!({ "data": { "metadata": "kept further down" } }));
    assert_eq!(spec_hash(&object), digest(&content(&object)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// S19: neither the order of keys nor white space matters, and every text survives.
    #[test]
    fn the_encoding_reads_back_as_the_same_value(text in ".*", number in any::<f64>().prop_filter("finite", |n| n.is_finite()), int in any::<i64>()) {
        // Another key than the other two, whatever the text.
        let value = json!({ "z": text, "a": [number, int], format!("key {text}"): null });
        let read: Value = serde_json::from_str(&canonical(&value)).unwrap();
        prop_assert_eq!(canonical(&read), canonical(&value));
        prop_assert_eq!(&read["z"], &json!(text));
    }
}
