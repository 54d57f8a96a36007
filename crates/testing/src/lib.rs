//! What the tests of several crates share: objects, ways to put them on a hub, processes, and a
//! random source.
//!
//! A dev-dependency only. Must not depend on a crate that is tested with it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says why on standard error"
)]

use std::time::Duration;

#[cfg(feature = "client")]
mod client;
mod feedback;
mod manifest;
mod mutate;
#[cfg(feature = "client")]
pub mod objects;
#[cfg(feature = "client")]
pub mod ocm;
mod process;
mod random;

#[cfg(feature = "client")]
pub use client::{
    api_of, install_crds, install_ocm_crds, name_of, prepare_hub, prepare_ocm_hub, put, put_status,
    put_whole, try_put,
};
pub use feedback::resource_status;
pub use manifest::as_authored;
pub use mutate::mutated;
pub use process::Process;
pub use random::Random;

/// Longer than anything takes on a busy machine.
pub const GIVE_UP: Duration = Duration::from_secs(300);
