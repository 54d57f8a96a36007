//! The product as processes: a hub, a manager and a fleet, connected only by the API.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "the browser's suite uses the rest of the harness")]
mod run;
#[path = "../transcript/mod.rs"]
mod transcript;

mod bench;
mod hostile;
mod load;
mod scale;
mod survival;
mod telemetry;
