//! The commands of an operator on a hub: the real binary over TLS, with a manager and simulated
//! agents.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here must fail the test"
)]

mod completion;
mod dashboard;
mod endless;
mod errors;
mod explain;
mod gitops;
mod help;
mod hints;
mod hostile;
mod ocm;
mod plan;
mod plugin;
mod registration;
mod rehearse;
mod rollout;
mod status;
#[path = "../transcript/mod.rs"]
mod transcript;
mod truth;
mod world;
