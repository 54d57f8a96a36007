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
mod counting;
mod world;

mod cost;
mod placement;
mod rollout;
