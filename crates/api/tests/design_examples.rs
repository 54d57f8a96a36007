//! Reads every example of the design documents and writes it back without loss.
//!
//! `fixtures/design-examples/README.md` says what they are.

use std::fs;
use std::path::{Path, PathBuf};

use aviary_api::{
    AddOnDeploymentConfig, AddOnHubConfig, ClusterManagementAddOn, Condition, ManagedClusterAddOn,
    ManifestWork,
};
use kube::core::DynamicObject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The documents, and how many YAML blocks each has.
const DOCUMENTS: [(&str, usize); 5] = [
    ("000-lifecycle", 26),
    ("001-lifecycle-install-version", 20),
    ("002-lifecycle-desired-version", 23),
    ("003-install-strategy", 3),
    ("004-configuration", 13),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/design-examples")
}

fn files(document: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder().join(document)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn no_example_is_forgotten() {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<String> = entries
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    found.sort();
    assert_eq!(found, DOCUMENTS.map(|(document, _)| document));

    for (document, blocks) in DOCUMENTS {
        let numbers: Vec<String> = files(document)
            .iter()
            .map(|file| file.file_name().unwrap().to_str().unwrap()[..2].to_owned())
            .collect();
        let expected: Vec<String> = (1..=blocks).map(|number| format!("{number:02}")).collect();
        assert_eq!(numbers, expected, "{document}");
    }
}

#[test]
fn every_example_is_written_back_as_it_was_read() {
    for (document, _) in DOCUMENTS {
        for file in files(document) {
            let text = fs::read_to_string(&file).unwrap();
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(!documents.is_empty(), "{} is empty", file.display());
            for document in documents {
                let back = through_its_type(document.clone())
                    .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                assert_eq!(back, document, "{}", file.display());
            }
        }
    }
}

fn through_its_type(document: Value) -> serde_json::Result<Value> {
    if document.is_array() {
        return through::<Vec<Condition>>(document);
    }
    let api_version = document["apiVersion"].as_str().unwrap_or_default().to_owned();
    let kind = document["kind"].as_str().unwrap_or_default().to_owned();
    match (api_version.as_str(), kind.as_str()) {
        ("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn") => {
            through::<ClusterManagementAddOn>(document)
        }
        ("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn") => {
            through::<ManagedClusterAddOn>(document)
        }
        ("addon.open-cluster-management.io/v1alpha1", "AddOnHubConfig") => {
            through::<AddOnHubConfig>(document)
        }
        ("addon.open-cluster-management.io/v1alpha1", "AddOnDeploymentConfig") => {
            through::<AddOnDeploymentConfig>(document)
        }
        ("work.open-cluster-management.io/v1", "ManifestWork") => through::<ManifestWork>(document),
        // Config kinds of other add-ons.
        (
            "addon.open-cluster-management.io/v1alpha1" | "proxy.open-cluster-management.io/v1alpha1",
            "AddonVersionConfigs" | "SubmarinerConfig" | "ManagedProxyConfiguration",
        ) => through::<DynamicObject>(document),
        (api_version, kind) => panic!("{kind} of {api_version} is no kind of any example"),
    }
}

fn through<T: DeserializeOwned + Serialize>(document: Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(document)?)
}
