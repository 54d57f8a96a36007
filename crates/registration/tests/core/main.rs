//! The pure core: a table of good and hostile requests, and what is wanted for an instance.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod csr;
mod flood;
mod grants;
mod requests;
mod signing;
