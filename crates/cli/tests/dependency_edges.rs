//! Rules that the compiler does not check: dependencies between crates, the length of files, the
//! names of types, and forbidden texts.

#![allow(clippy::unwrap_used, reason = "what cannot be read must fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Crates that would let a decision wait, do I/O, or depend on random numbers.
const IMPURE: [&str; 19] = [
    "anyhow",
    "async-std",
    "axum",
    "getrandom",
    "hyper",
    "hyper-util",
    "kube-client",
    "kube-runtime",
    "mio",
    "notify",
    "rand",
    "rand_core",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tokio",
    "tower",
    "tracing",
];

const MOST_LINES: usize = 800;

/// What a reader can see at once. Holds for the crates that decide and that execute.
const MOST_LINES_OF_A_FUNCTION: usize = 60;

/// Type names that may occur in more than one module, and why.
const SHARED_NAMES: [(&str, &str); 3] = [
    ("Args", "the arguments of a command, one file per command"),
    ("Clock", "the same function type, in crates that share no dependency which could define it"),
    ("RegistrationConfig", "OCM's name in both served versions of the API, with different fields"),
];

/// Ways to get at single clusters, instances or works of a snapshot.
const READS: [&str; 6] = ["get", "cursor", "iter", "entries", "keys", "values"];

/// The files of the engine that read single objects of a snapshot, and why.
const READERS: [(&str, &str); 6] = [
    ("configs.rs", "whether any instance was ever assigned a template, which concerns the whole add-on"),
    ("fleet/lineup.rs", "sorts the clusters"),
    ("hooks/draft.rs", "drafts the writes of hooks"),
    ("install.rs", "drafts the instances that are created and deleted"),
    ("plan.rs", "hands the instances of an add-on that is gone to install"),
    ("plan/members.rs", "drafts the writes of rollouts"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The names of all dependencies of a crate.
fn tree(package: &str) -> BTreeSet<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let output = command.args(["--package", package]).current_dir(root()).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "failed to list what {package} is built from: {complaint}");
    let listed = String::from_utf8(output.stdout).unwrap();
    listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[track_caller]
fn assert_without(package: &str, forbidden: &[&str]) {
    let tree = tree(package);
    assert!(tree.contains(package), "{package} is not in its own tree");
    let found: Vec<&&str> = forbidden.iter().filter(|name| tree.contains(**name)).collect();
    assert!(found.is_empty(), "{package} must not depend on {found:?}");
}

#[test]
fn the_engine_can_reach_no_runtime_no_client_and_no_chance() {
    assert_without("aviary-engine", &IMPURE);
    assert_without("aviary-engine", &["aviary-schema", "aviary-hub", "aviary-controller"]);
}

#[test]
fn the_kinds_need_no_runtime_and_none_of_our_other_crates() {
    assert_without("aviary-api", &IMPURE);
    assert_without("aviary-api", &["aviary-engine", "aviary-schema"]);
}

#[test]
fn admission_and_the_hub_know_schemas_and_no_kind() {
    assert_without("aviary-schema", &["aviary-api", "aviary-engine"]);
    if root().join("crates/hub").is_dir() {
        assert_without("aviary-hub", &["aviary-api"]);
    }
}

#[test]
fn the_dashboard_reads_through_the_manager_and_nobody_but_the_command_line_knows_it() {
    assert_without("aviary-dashboard", &["aviary-fleet", "aviary-hub", "aviary-schema"]);
    for package in ["aviary-controller", "aviary-engine", "aviary-fleet", "aviary-hub"] {
        assert_without(package, &["aviary-dashboard"]);
    }
}

#[test]
fn the_manager_does_not_know_the_registration_which_has_other_rights() {
    for package in ["aviary-controller", "aviary-engine", "aviary-api", "aviary-hub"] {
        assert_without(package, &["aviary-registration"]);
    }
    assert_without(
        "aviary-registration",
        &["aviary-hub", "aviary-fleet", "aviary-dashboard", "aviary-schema"],
    );
}

#[test]
fn serving_knows_none_of_our_other_crates_and_nothing_shipped_needs_those_of_tests() {
    let ours = ["api", "controller", "dashboard", "engine", "fleet", "hub", "registration", "schema"];
    assert_without("aviary-serve", &ours.map(|name| format!("aviary-{name}")).each_ref().map(String::as_str));
    assert_without("aviary", &["aviary-testing"]);
}

/// All files below the root with one of these extensions, except build output.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if name != "target" && name != ".git" {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn no_source_file_is_too_long_to_be_read() {
    for path in files(&[".rs"]) {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= MOST_LINES, "{} has {lines} lines, at most {MOST_LINES}", path.display());
    }
}

/// The functions of a formatted source file, with the number of lines of each.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter_map(|(at, line)| Some((at, defined_function(line)?)));
    let ends = starts.filter_map(|(at, name)| {
        let indent = lines[at].len() - lines[at].trim_start().len();
        let closes = |line: &&str| {
            line.len() - line.trim_start().len() == indent && (line.ends_with('}') || line.ends_with(';'))
        };
        Some((name, lines[at..].iter().position(closes)? + 1))
    });
    ends.collect()
}

/// The name that a line of source defines as a function.
fn defined_function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let keywords = ["async", "const", "pub", "pub(crate)", "pub(super)", "unsafe"];
    let is_item = before.split_whitespace().all(|word| keywords.contains(&word));
    is_item.then_some(rest.split(['(', '<']).next()?)
}

#[test]
fn no_function_that_decides_or_executes_is_too_long_to_be_seen_at_once() {
    let source = "impl A {\n    pub(crate) fn one(\n        a: A,\n    ) -> B {\n\n        c;\n    }\n}\nfn two() {}\n";
    assert_eq!(functions(source), [("one", 6), ("two", 1)]);
    let mut found = 0;
    for folder in ["crates/engine/src", "crates/controller/src"] {
        for path in files(&[".rs"]).into_iter().filter(|path| path.starts_with(root().join(folder))) {
            let text = fs::read_to_string(&path).unwrap();
            for (name, lines) in functions(&text) {
                found += 1;
                assert!(
                    lines <= MOST_LINES_OF_A_FUNCTION,
                    "{name} in {} has {lines} lines, at most {MOST_LINES_OF_A_FUNCTION}",
                    path.display()
                );
            }
        }
    }
    assert!(found > 1500, "only {found} functions were found");
}

/// The name that a line of source defines as a type. Associated types have no name of their own.
fn defined_type(line: &str) -> Option<&str> {
    let unindented = line.trim_start();
    let item = match unindented.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => unindented,
    };
    let (keyword, rest) = item.split_once(' ')?;
    let is_type = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => unindented.len() == line.len(),
        _ => false,
    };
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (is_type && name.starts_with(char::is_uppercase)).then_some(name)
}

/// The text without the module of unit tests at its end.
fn shipped(text: &str) -> &str {
    let is_inline_module = |at: usize| {
        let mut items = text.get(at..).unwrap_or_default().lines().filter(|line| !line.starts_with("#["));
        items.next().is_some_and(|item| item.starts_with("mod ") && item.ends_with('{'))
    };
    let tests = text
        .match_indices(
            "#[cfg(test)]
",
        )
        .find(|(at, _)| is_inline_module(*at));
    tests.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// The source files of our crates, without tests.
fn sources() -> Vec<PathBuf> {
    let crates = root().join("crates");
    let is_source = |path: &PathBuf| {
        let mut parts = path.strip_prefix(&crates).into_iter().flat_map(Path::iter).skip(1);
        parts.next().is_some_and(|folder| folder == "src")
            && !parts.any(|part| part == "tests" || part == "tests.rs")
    };
    files(&[".rs"]).into_iter().filter(is_source).collect()
}

#[test]
fn rules_read_no_objects() {
    let folder = root().join("crates/engine/src");
    let reads = |text: &str| {
        let text: String = shipped(text).split_whitespace().collect();
        ["clusters", "instances", "works"].iter().any(|rows| {
            let accesses = READS.iter().map(|access| format!("observed.{rows}.{access}("));
            let borrowed = [format!("&observed.{rows}"), format!("&fleet.observed.{rows}")];
            accesses.chain(borrowed).any(|access| text.contains(&access))
        })
    };
    assert!(reads("fleet.observed\n    .works\n    .get(name)") && !reads("observed.instances.len()"));
    let found: BTreeSet<String> = sources()
        .into_iter()
        .filter_map(|path| {
            let name = path.strip_prefix(&folder).ok()?.display().to_string();
            let decides = !["invariants", "simulate"].iter().any(|own| name.starts_with(own));
            (decides && reads(&fs::read_to_string(&path).unwrap())).then_some(name)
        })
        .collect();
    let allowed: BTreeSet<String> = READERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, allowed, "rules are functions of ClusterFacts: see docs/decisions/0006-cohorts.md");
}

#[test]
fn a_type_name_has_one_meaning_in_all_crates() {
    let mut places: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        for name in shipped(&text).lines().filter_map(defined_type) {
            places.entry(name.to_owned()).or_default().insert(path.clone());
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    places.retain(|_, places| places.len() > 1);
    let allowed: BTreeSet<&str> = SHARED_NAMES.iter().map(|(name, _)| *name).collect();
    for (name, places) in &places {
        assert!(
            allowed.contains(name.as_str()),
            "{name} is the name of several types: give all but one a more specific name: {places:#?}"
        );
    }
    for name in allowed {
        assert!(places.contains_key(name), "{name} now has one meaning: remove it from SHARED_NAMES");
    }
}

#[test]
fn no_text_names_a_folder_of_the_machine_it_was_written_on() {
    let folders = ["work", "root", "home"].map(|name| format!("/{name}/"));
    for path in files(&[".md", ".rs", ".toml", ".yaml"]) {
        let text = fs::read_to_string(&path).unwrap();
        for folder in &folders {
            for (at, _) in text.match_indices(folder.as_str()) {
                // Inside a longer path it is a folder of this repository.
                let before = text.get(..at).and_then(|text| text.chars().next_back());
                let within = before.is_some_and(|c| c.is_alphanumeric() || "._-~>)}".contains(c));
                let line = text.get(..at).unwrap_or_default().lines().count().max(1);
                assert!(within, "{}:{line} names {folder}", path.display());
            }
        }
    }
}
