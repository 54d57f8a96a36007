//! The dashboard for a real in-process hub: every route, every refusal, and that the pushed changes
//! add up.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here must fail the test"
)]

mod clusters;
mod contract;
mod door;
mod scale;
mod streams;
mod tokens;
mod viewer;
mod world;
