//! The CRDs the product ships are structural, and all their rules compile.

use std::fs;
use std::path::Path;

use aviary_schema::Schema;

use crate::{story, yaml};

#[test]
fn every_shipped_crd_is_structural() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let mut refused = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let crd = yaml(&fs::read_to_string(&path).unwrap());
        // The list of the other files.
        if crd["kind"] == "Kustomization" {
            continue;
        }
        for version in crd["spec"]["versions"].as_array().unwrap() {
            if let Err(causes) = Schema::parse(&version["schema"]["openAPIV3Schema"]) {
                refused.push_str(&format!(
                    "{} {}\n{}",
                    crd["metadata"]["name"],
                    version["name"],
                    story(&causes)
                ));
            }
        }
    }
    assert!(refused.is_empty(), "{refused}");
}
