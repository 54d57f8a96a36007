//! Checks that every CEL rule accepts valid objects, and rejects invalid ones with its message.

mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use self::table::{accepted, rejected};
use crate::support::{schemas, walk};
use kube_cel::{ErrorKind, Validator};
use serde_json::Value;

/// The violations of an object: path and message.
type Faults = BTreeSet<(String, String)>;

/// The rules that fail for an object, with list indices removed from their paths. An evaluation
/// error also counts as a failure; the API server then reports the message after the error.
fn faults(kind: &str, object: &str) -> Faults {
    let object = serde_saphyr::from_str(object).unwrap_or_else(|error| panic!("{object}: {error}"));
    faults_of(kind, &object)
}

fn faults_of(kind: &str, object: &Value) -> Faults {
    let (_, schema) = schemas().iter().find(|(name, _)| name == kind).expect("a kind that has a CRD");
    let Err(errors) = Validator::new().validate(schema, object, None) else { return Faults::new() };
    let mut faults = Faults::new();
    for error in errors.into_vec() {
        assert!(
            matches!(error.kind, ErrorKind::ValidationFailure | ErrorKind::EvaluationError),
            "{object}: {error:?}"
        );
        faults.insert((without_indices(&error.field_path), message_of(schema, &error.rule)));
    }
    faults
}

fn message_of(schema: &Value, rule: &str) -> String {
    let mut message = None;
    walk("", schema, &mut |_, schema| {
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        for found in rules.filter(|found| found["rule"] == rule) {
            message = found["message"].as_str().map(str::to_owned);
        }
    });
    message.expect("a rule of the schema")
}

fn without_indices(path: &str) -> String {
    let mut plain = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        plain.push_str("[]");
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[test]
fn what_is_right_is_accepted() {
    for (kind, object) in accepted() {
        assert_eq!(faults(kind, &object), Faults::new(), "{object}");
    }
}

#[test]
fn every_example_of_the_design_documents_is_accepted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/design-examples");
    let documents = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for document in documents.filter(|path| path.is_dir()) {
        for file in fs::read_dir(document).unwrap() {
            let path = file.unwrap().path();
            let documents: Vec<Value> =
                serde_saphyr::from_multiple(&fs::read_to_string(&path).unwrap()).unwrap();
            for document in &documents {
                let kind = document["kind"].as_str().unwrap_or_default();
                if schemas().iter().any(|(name, _)| name == kind) {
                    assert_eq!(faults_of(kind, document), Faults::new(), "{}", path.display());
                }
            }
        }
    }
}

#[test]
fn what_is_wrong_is_rejected_with_a_message() {
    for (kind, object, path, message) in rejected() {
        assert_eq!(faults(kind, &object), Faults::from([(path.to_owned(), message.to_owned())]), "{object}");
    }
}

#[test]
fn every_rule_rejects_something() {
    let mut untested = BTreeSet::new();
    for (kind, schema) in schemas() {
        walk("", schema, &mut |path, schema| {
            for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
                untested.insert((
                    kind.clone(),
                    path.to_owned(),
                    rule["message"].as_str().unwrap().to_owned(),
                ));
            }
        });
    }
    for (kind, object, ..) in rejected() {
        for (path, message) in faults(kind, &object) {
            untested.remove(&(kind.to_owned(), path, message));
        }
    }
    assert_eq!(untested, BTreeSet::new());
}
