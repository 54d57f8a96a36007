//! Stories on real clusters: a hub with the shipped manifests and a manager under its own account,
//! and members on which real kubelets run real pods. Every story checks the end on the members
//! themselves.
//!
//! `make test-clusters` starts the clusters (`hack/clusters.sh`) and runs this program among them:
//! `AVIARY_CLUSTERS` is their folder, `AVIARY_WORK_AGENT` the agent of the test suite. Stories run
//! side by side, each with an add-on of its own; one that disturbs a cluster runs alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../transcript/mod.rs"]
mod transcript;

mod embedded;
mod lane;
mod member;
mod registration;
mod story;
mod workloads;

mod bad_versions;
mod installs;
mod kinds;
mod lacks;
mod leftovers;
mod outages;
mod tutorial;
mod upgrades;
