//! What people type: the real kubectl against the real hub, and the hub's own words.
//!
//! Any kubectl from 1.20 on will do: the one that `AVIARY_KUBECTL` names, or the first on the path.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here must fail the test")]

mod api;
mod apply;
mod change;
mod delete;
mod errors;
mod harness;
mod look;
mod mask;
mod process;
#[path = "../transcript/mod.rs"]
mod transcript;
mod wait;
