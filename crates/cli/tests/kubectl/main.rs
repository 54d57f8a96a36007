//! The real kubectl against the real hub.
//!
//! Any kubectl from 1.20 on works: the one in `AVIARY_KUBECTL`, or the first on the path.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here must fail the test")]

#[allow(dead_code, reason = "shared with the tests of the manager")]
#[path = "../../../controller/tests/e2e/agents.rs"]
mod agents;
mod api;
mod apply;
mod change;
mod delete;
mod errors;
mod harness;
mod kustomize;
mod look;
mod mask;
mod process;
#[allow(dead_code, clippy::indexing_slicing, reason = "shared with the tests of the manager")]
#[path = "../../../controller/tests/e2e/show.rs"]
mod show;
#[path = "../transcript/mod.rs"]
mod transcript;
mod wait;
