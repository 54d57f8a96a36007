//! All of Aviary's decisions, as pure functions.
//!
//! A snapshot and a time go in, a [`plan::Plan`] with a reason for every cluster comes out. Nothing
//! in this crate can reach a network, a clock, a disk, the environment or a source of randomness:
//! `clippy.toml` forbids the calls, a test forbids the dependencies. What is decided here is the
//! same on the embedded hub, on a real API server, in a rehearsal and in the tests.
//!
//! Read in the order of the data flow: [`normalise`] turns every dialect of the API into the model
//! of [`observed`]; [`fleet`] sorts the clusters into cohorts; [`install`], [`rollout`] and
//! [`render`] decide; [`status`] and [`explain`] report what was decided; [`plan`] combines all of
//! it. [`invariants`] checks any write against the invariants, [`simulate`] runs the real plan on a
//! simulated fleet in virtual time.

pub mod attempts;
pub mod by_cluster;
pub mod clock;
pub mod configs;
pub mod content;
pub mod difference;
pub mod duration;
mod evidence;
pub mod explain;
pub mod fleet;
pub mod hash;
pub mod health;
pub mod hooks;
pub mod install;
pub mod invariants;
pub mod limit;
pub mod name;
pub mod normalise;
pub mod observed;
pub mod placement;
pub mod plan;
pub mod policy;
pub mod problem;
pub mod reason;
pub mod render;
pub mod rollout;
mod selection;
pub mod selector;
pub mod served;
pub mod shared;
pub mod simulate;
pub mod status;
pub mod tally;
pub mod verdict;
pub mod versions;
mod wire;
