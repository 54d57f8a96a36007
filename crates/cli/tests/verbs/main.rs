//! What an operator types against a hub: the real binary over TLS, beside a manager and agents that answer.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here must fail the test"
)]

mod dashboard;
mod errors;
mod explain;
mod help;
mod plan;
mod plugin;
mod rehearse;
mod rollout;
mod status;
#[path = "../transcript/mod.rs"]
mod transcript;
mod world;
