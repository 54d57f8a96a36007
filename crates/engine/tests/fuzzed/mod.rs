//! The fuzz targets of the engine, on their inputs and on mutations of those. `fuzz/README.md` says
//! how to search for longer.

#![allow(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "what is found must fail the test, and inputs are files"
)]

mod targets;

use aviary_testing::{Random, mutated};

/// The inputs that are kept for a target.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("a corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("an input")).collect()
}

fn short_run(target: &str, run: fn(&[u8]), mutations: usize) {
    let inputs = corpus(target);
    for input in &inputs {
        assert!(
            serde_json::from_slice::<serde_json::Value>(input).is_ok(),
            "an input of {target} is not JSON"
        );
        run(input);
    }
    let mut random = Random::new(7);
    for _ in 0..mutations {
        run(&mutated(&inputs, &mut random));
    }
}

#[test]
fn any_content_has_one_hash() {
    short_run("hash", targets::hash, 20_000);
}

#[test]
fn any_limit_is_refused_or_within_the_fleet() {
    short_run("limit", targets::limit, 20_000);
}

#[test]
fn any_object_is_refused_or_planned_for() {
    short_run("decode", targets::decode, 15_000);
}

#[test]
fn any_variable_leaves_the_shape_of_a_template() {
    short_run("render", targets::render, 15_000);
}
