//! Tests that try to break the hub: crashes, races, damage, rubbish, slow and lost clients.
//!
//! Nothing here waits for time to pass. Every wait ends by an event, and the deadline around it only turns a hang into a
//! failure. Everything random is drawn from a fixed seed.
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
#[path = "../../../../fuzz/src/mutate.rs"]
mod mutate;
mod paging;
mod random_requests;
mod support;
mod tls;
mod watchers;
