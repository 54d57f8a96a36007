//! The documentation names the scenario that shows each rule, and that scenario is there.

#![allow(clippy::unwrap_used, reason = "what cannot be read must fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

/// Every `file.rs::test_name` in a text.
fn named(text: &str) -> BTreeSet<(&str, &str)> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    for (at, mark) in text.match_indices(".rs::") {
        let (before, after) = (&text[..at], &text[at + mark.len()..]);
        let start = before.rfind(|c| !of_name(c)).map_or(0, |last| last + 1);
        let end = after.find(|c| !of_name(c)).unwrap_or(after.len());
        found.insert((&before[start..], &after[..end]));
    }
    found
}

/// The text of all our Rust files by name; those of one name together.
fn sources() -> BTreeMap<String, String> {
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                sources.entry(name).or_default().push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }
    sources
}

#[test]
fn every_scenario_that_a_document_names_is_there() {
    let sources = sources();
    let mut count = 0;
    for (document, text) in documents() {
        for (file, test) in named(&text) {
            let source =
                sources.get(file).unwrap_or_else(|| panic!("{document} names {file}.rs: no such file"));
            assert!(
                source.contains(&format!("fn {test}(")),
                "{document} names {file}.rs::{test}: no such test"
            );
            count += 1;
        }
    }
    assert!(count > 50, "only {count} scenarios are named: the rules have lost theirs");
}

#[test]
fn every_rule_names_a_scenario() {
    let text = fs::read_to_string(root().join("docs/rollout-semantics.md")).unwrap();
    let mut rules = 0;
    for rule in text.split("\n### ").skip(1) {
        let title = rule.lines().next().unwrap_or_default();
        let rule = rule.split("\n## ").next().unwrap_or_default();
        assert!(!named(rule).is_empty(), "no scenario shows {title:?}");
        rules += 1;
    }
    assert!(rules > 30, "only {rules} rules are there");
}
