//! The manager on a hub, end to end: real objects, real watches, agents that answer.
//!
//! On the embedded hub, or on the server of the kubeconfig that `AVIARY_E2E_KUBECONFIG` names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod agents;
mod audit;
mod counting;
mod objects;
mod show;
mod world;

mod configuration;
mod cost;
mod defects;
mod deletion;
mod install;
mod leader;
mod lifecycle;
mod metrics;
mod placement;
mod rollout;
mod versions;
