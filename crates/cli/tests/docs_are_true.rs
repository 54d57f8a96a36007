//! The documentation is true where a test can tell: the tests, files, sections and links that it
//! names exist.

#![allow(clippy::unwrap_used, reason = "what cannot be read must fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Markdown file outside of the source tree, by its path from the root.
fn documents() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/decisions", "fuzz"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name();
            let path = Path::new(folder).join(name);
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(root().join(&path)).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// Every `file.rs::test_name` in a text.
fn named_tests(text: &str) -> BTreeSet<(&str, &str)> {
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

/// The text of all our Rust files by file name; files of the same name are joined.
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

/// The targets of all Markdown links in a text, without those to other sites.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://")).collect()
}

/// Words in a text that are paths of this repository.
fn paths(text: &str) -> BTreeSet<&str> {
    let of_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let words = text.split(|c: char| !of_path(c)).map(|word| word.trim_end_matches('.'));
    let folders = ["crates/", "deploy/", "docs/", "examples/", "fuzz/", "hack/", "tools/"];
    words.filter(|word| folders.iter().any(|folder| word.starts_with(folder))).collect()
}

/// The anchors of a text's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_scenario_that_a_document_names_exists() {
    let sources = sources();
    let mut count = 0;
    for (document, text) in documents() {
        let document = document.display();
        for (file, test) in named_tests(&text) {
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
fn every_hostile_input_has_its_bound_what_its_author_sees_and_a_test() {
    let text = fs::read_to_string(root().join("docs/reliability.md")).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with("Hostile input\n")).unwrap();
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter(|line| line.starts_with("| H"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let numbers: Vec<String> = (1..=13).map(|number| format!("H{number}")).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), numbers);
    for row in rows {
        assert!(row.len() == 5 && row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        // That the tests exist is checked for all documents.
        assert!(!named_tests(row[4]).is_empty(), "{} names no test", row[0]);
    }
}

#[test]
fn every_rule_names_a_scenario() {
    let text = fs::read_to_string(root().join("docs/rollout-semantics.md")).unwrap();
    let mut rules = 0;
    for rule in text.split("\n### ").skip(1) {
        let title = rule.lines().next().unwrap_or_default();
        let rule = rule.split("\n## ").next().unwrap_or_default();
        assert!(!named_tests(rule).is_empty(), "no scenario shows {title:?}");
        rules += 1;
    }
    assert!(rules > 30, "only {rules} rules are there");
}

#[test]
fn every_link_in_a_document_leads_to_a_file_and_a_section() {
    let mut broken = Vec::new();
    let mut count = 0;
    for (document, text) in documents() {
        for link in links(&text) {
            count += 1;
            let (file, section) = link.split_once('#').map_or((link, None), |(file, at)| (file, Some(at)));
            let target = match file {
                "" => root().join(&document),
                _ => root().join(document.parent().unwrap()).join(file),
            };
            let has_section = |section: &str| {
                fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(section))
            };
            if !target.exists() || !section.is_none_or(has_section) {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(count > 50, "only {count} links were found");
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn every_picture_is_shown_by_a_document_and_has_been_taken() {
    let documents = documents();
    let shown: BTreeSet<&str> = documents
        .iter()
        .flat_map(|(_, text)| text.split("images/").skip(1))
        .filter_map(|rest| rest.split([')', '"']).next())
        .collect();
    let there: BTreeSet<String> = fs::read_dir(root().join("docs/images"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let hidden: Vec<&String> = there.iter().filter(|name| !shown.contains(name.as_str())).collect();
    assert!(hidden.is_empty(), "no document shows {hidden:?}");
    let program = fs::read_to_string(root().join("crates/cli/examples/screenshots.rs")).unwrap();
    let taken: Vec<&str> = program.split('"').filter(|word| word.ends_with(".png")).collect();
    assert!(taken.len() >= 6, "only {taken:?} are taken");
    let lacking: Vec<&str> = taken.into_iter().filter(|name| !there.contains(*name)).collect();
    assert!(lacking.is_empty(), "hack/screenshots.sh takes them, and docs/images lacks them: {lacking:?}");
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut missing = Vec::new();
    let mut count = 0;
    for (document, text) in documents() {
        for path in paths(&text) {
            count += 1;
            if !root().join(path).exists() {
                missing.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(count > 20, "only {count} paths were found");
    assert!(missing.is_empty(), "paths that do not exist:\n{}", missing.join("\n"));
}
