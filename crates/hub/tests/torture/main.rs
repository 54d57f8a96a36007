//! Tests that try to break the hub: crashes, races, damage, invalid input, slow and lost clients,
//! greedy agents.
//!
//! Nothing here waits for time to pass. Every wait ends by an event, and its deadline only turns a
//! hang into a failure. All random values come from a fixed seed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod child;
mod clients;
mod collecting;
mod contention;
mod crash;
mod damage;
mod full_disk;
#[path = "../../../../fuzz/src/request.rs"]
#[allow(unreachable_pub, reason = "a crate of its own elsewhere")]
mod fuzz;
mod malformed;
mod paging;
mod random_requests;
mod roles;
mod support;
mod tls;
mod watchers;
