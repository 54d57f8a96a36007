//! The scripts that pack a release, on binaries of a few bytes: every digest is right, and equal
//! input gives equal bytes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::transcript::{Desk, desk};
use serde_json::{Value, json};

fn run(name: &str, argument: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack").join(name);
    Command::new(script).arg(argument).output().unwrap()
}

fn script(name: &str, folder: &Path) -> String {
    let output = run(name, folder);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn digest(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(' ').next().unwrap().to_owned()
}

/// What cargo-cyclonedx writes, in short.
fn bill() -> Value {
    let component =
        |kind: &str, name: &str, version: &str| json!({"type": kind, "name": name, "version": version});
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.3", "version": 1,
        "metadata": {"component": component("application", "aviary", version)},
        "components": [component("library", "aviary-engine", version), component("library", "kube", "3.0.0")],
    })
}

/// A folder with two binaries.
fn release(name: &str) -> (Desk, PathBuf) {
    let desk = desk(name)
        .file("dist/aviary-linux-amd64", "for one machine")
        .file("dist/aviary-linux-arm64", "for the other")
        .file("dist/aviary-linux-arm64.cdx.json", bill().to_string());
    let folder = desk.path("dist");
    (desk, folder)
}

/// The blob that a descriptor names, checked by digest and size.
fn blob(image: &Path, descriptor: &Value) -> PathBuf {
    let named = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let path = image.join("blobs/sha256").join(named);
    assert_eq!(digest(&path), named);
    assert_eq!(fs::metadata(&path).unwrap().len(), descriptor["size"].as_u64().unwrap(), "{descriptor}");
    path
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn an_image_has_a_binary_for_each_architecture_and_nothing_else() {
    let (desk, folder) = release("release-image");
    script("image.sh", &folder);
    let archive = folder.join("aviary-image.tar");
    let first = digest(&archive);
    script("image.sh", &folder);
    assert_eq!(digest(&archive), first, "equal binaries give equal bytes");

    let image = desk.path("image");
    fs::create_dir(&image).unwrap();
    assert!(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&image).status().unwrap().success());
    assert_eq!(json(&image.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let top = json(&image.join("index.json"));
    assert_eq!(
        top["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"],
        env!("CARGO_PKG_VERSION")
    );
    let index = json(&blob(&image, &top["manifests"][0]));
    let mut seen = Vec::new();
    for entry in index["manifests"].as_array().unwrap() {
        let manifest = json(&blob(&image, entry));
        let config = json(&blob(&image, &manifest["config"]));
        assert_eq!(config["architecture"], entry["platform"]["architecture"]);
        assert_eq!(
            (&config["config"]["User"], &config["config"]["Entrypoint"][0]),
            (&"65532:65532".into(), &"/aviary".into())
        );
        let layer = blob(&image, &manifest["layers"][0]);
        let listed = Command::new("tar").arg("-tvzf").arg(&layer).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.starts_with("-rwxr-xr-x 0/0 ") && listed.trim_end().ends_with(" aviary"), "{listed}");
        assert_eq!(listed.lines().count(), 1);
        let content = Command::new("tar").arg("-xOzf").arg(&layer).output().unwrap();
        seen.push((
            config["architecture"].as_str().unwrap().to_owned(),
            String::from_utf8(content.stdout).unwrap(),
        ));
    }
    let expected = [("amd64", "for one machine"), ("arm64", "for the other")];
    assert_eq!(seen, expected.map(|(architecture, content)| (architecture.to_owned(), content.to_owned())));
}

#[test]
fn the_provenance_names_every_file_with_its_digest_and_the_commit() {
    let (_desk, folder) = release("release-provenance");
    script("image.sh", &folder);
    script("provenance.sh", &folder);
    let statement = json(&folder.join("aviary.intoto.json"));
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let subjects = statement["subject"].as_array().unwrap();
    let names: Vec<&str> = subjects.iter().map(|subject| subject["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["aviary-image.tar", "aviary-linux-amd64", "aviary-linux-arm64", "aviary-linux-arm64.cdx.json"]
    );
    for subject in subjects {
        assert_eq!(subject["digest"]["sha256"], digest(&folder.join(subject["name"].as_str().unwrap())));
    }
    let source = &statement["predicate"]["buildDefinition"]["resolvedDependencies"][0];
    assert_eq!(source["digest"]["gitCommit"].as_str().unwrap().len(), 40);
}

/// hack/release.sh runs this check on every bill that it ships.
#[test]
fn a_bill_of_materials_is_cyclonedx_and_about_the_binary() {
    let desk = desk("release-bill");
    let check = |bill: &Value| {
        let path = desk.path("bill.json");
        fs::write(&path, bill.to_string()).unwrap();
        run("check-bill.sh", &path)
    };
    let output = check(&bill());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wrong = [
        ("/bomFormat", json!("SPDX")),
        ("/metadata/component/name", json!("aviary-engine")),
        ("/metadata/component/type", json!("library")),
        ("/metadata/component/version", json!("0.0.0")),
        ("/components", json!([])),
    ];
    for (pointer, value) in wrong {
        let mut bill = bill();
        *bill.pointer_mut(pointer).unwrap() = value;
        let output = check(&bill);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("is not the CycloneDX bill"), "{pointer}: {said}");
    }
    assert!(!check(&json!({})).status.success());
    let release = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/release.sh");
    assert!(fs::read_to_string(release).unwrap().contains("hack/check-bill.sh"));
}
