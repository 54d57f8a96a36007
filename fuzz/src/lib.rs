//! The functions that the fuzz targets run. The tests of the crates they are about include the same
//! files.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what is found must stop the fuzzer")]

pub mod request;
#[path = "../../crates/engine/tests/story/mod.rs"]
mod story;
#[path = "../../crates/engine/tests/fuzzed/targets.rs"]
mod targets;

pub fn hash(data: &[u8]) {
    targets::hash(data);
}

pub fn limit(data: &[u8]) {
    targets::limit(data);
}

pub fn decode(data: &[u8]) {
    targets::decode(data);
}

pub fn render(data: &[u8]) {
    targets::render(data);
}
