//! The dashboard over a real hub in this process: every route, every refusal, and that what is pushed adds up.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here must fail the test"
)]

mod clusters;
mod door;
mod scale;
mod streams;
mod tokens;
mod world;
