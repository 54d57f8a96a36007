//! What people type: the real kubectl against the real hub, and the hub's own words.
//!
//! Any kubectl from 1.20 on will do: the one that `AVIARY_KUBECTL` names, or the first on the path.

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
