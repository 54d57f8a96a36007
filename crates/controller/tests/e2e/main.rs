//! The manager on a hub, end to end: real objects, real watches, agents that answer.
//!
//! On the embedded hub, or on the server of the kubeconfig that `AVIARY_E2E_KUBECONFIG` names. That
//! server is for these tests alone: they take turns on it, and each begins and ends by taking away
//! every object of our kinds. Something must collect garbage there
//! (`hack/real-apiserver.sh start DIR --controllers` does). Managers use the kubeconfig that
//! `AVIARY_E2E_MANAGER_KUBECONFIG` names, where it does: with the rights of the ServiceAccount that
//! is shipped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]

mod agents;
mod audit;
mod bad_input;
mod counting;
mod objects;
mod ocm;
mod ocm_rollout;
mod ocm_statuses;
mod shared;
mod show;
mod takeover;
mod world;

mod configuration;
mod cost;
mod defects;
mod deletion;
mod echoes;
mod failover;
mod found;
mod hooks;
mod hosted;
mod install;
mod leader;
mod lifecycle;
mod metrics;
mod placement;
mod refusals;
mod rollout;
mod rules;
mod versions;
