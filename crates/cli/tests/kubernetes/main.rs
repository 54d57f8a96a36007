//! The shipped manifests on a real API server: installed as users install them, and run with the
//! shipped roles.
//!
//! `AVIARY_KUBERNETES` is the folder of a server that `hack/real-apiserver.sh start DIR
//! --controllers` has started; `make test-kubernetes` does all of it. Only these tests use the
//! server, one at a time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../../../registration/tests/core/csr.rs"]
#[allow(dead_code, reason = "the table of the pure core uses more")]
mod csr;
#[path = "../processes/run.rs"]
#[allow(dead_code, reason = "every test program uses its own part of the harness")]
mod run;
#[path = "../transcript/mod.rs"]
mod transcript;

mod server;

mod conversion;
mod dashboard;
mod helm;
mod install;
mod ocm;
mod policies;
mod registration;
mod rights;
mod rules;
mod story;
