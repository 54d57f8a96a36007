//! Checks that the shipped CRDs match the types.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use aviary_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")
}

const REMEDY: &str = "run `cargo run -p aviary-api --example write-crds`";

#[test]
fn every_file_is_what_the_types_generate() {
    for crd in crds::all() {
        let name = crds::file_name(&crd);
        let kept = fs::read_to_string(folder().join(&name)).unwrap_or_default();
        assert!(kept == crds::to_yaml(&crd).unwrap(), "{name} is out of date: {REMEDY}");
    }
    let listed = fs::read_to_string(folder().join("kustomization.yaml")).unwrap_or_default();
    assert!(listed == crds::kustomization(), "kustomization.yaml is out of date: {REMEDY}");
}

#[test]
fn there_is_no_other_file() {
    let mut expected: BTreeSet<String> = crds::all().iter().map(crds::file_name).collect();
    expected.insert("kustomization.yaml".to_owned());
    let found: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, expected, "{REMEDY}");
}

#[test]
fn the_yaml_says_what_the_crd_says() {
    for crd in crds::all() {
        let read: CustomResourceDefinition = serde_saphyr::from_str(&crds::to_yaml(&crd).unwrap()).unwrap();
        assert_eq!(read, crd);
    }
}

#[test]
fn no_two_kinds_share_a_name() {
    let mut names = BTreeSet::new();
    for crd in crds::all() {
        let all = crd.spec.names;
        for name in all.short_names.into_iter().flatten().chain([all.plural]).chain(all.singular) {
            assert!(names.insert(name.clone()), "{name} is taken twice");
        }
    }
}
