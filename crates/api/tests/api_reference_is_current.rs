//! Checks that the API reference matches the CRDs.

use std::fs;

#[allow(dead_code, reason = "the example's own main is not run here")]
#[path = "../examples/write-api-reference.rs"]
mod write_api_reference;

use self::write_api_reference::{path, reference};

#[test]
fn the_reference_is_what_the_crds_generate() {
    let kept = fs::read_to_string(path()).unwrap_or_default();
    assert!(kept == reference().unwrap(), "docs/api-reference.md is out of date: run `make crds`");
}

#[test]
fn every_kind_and_every_field_of_its_spec_is_there() {
    let reference = reference().unwrap();
    for crd in aviary_api::crds::all() {
        assert!(reference.contains(&format!("\n## {}\n", crd.spec.names.kind)));
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            let schema = serde_json::to_value(schema).unwrap();
            for name in schema["properties"]["spec"]["properties"].as_object().into_iter().flatten() {
                assert!(reference.contains(&format!("\n  - **{}** (", name.0)), "{} is missing", name.0);
            }
        }
    }
}
