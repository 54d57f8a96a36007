//! Every fault at every point: the manager on a hub, on one thread and in virtual time, while
//! something goes wrong.
//!
//! A run of a scenario is the same to the byte whenever it is repeated. So every write and every
//! event of its undisturbed run can be named by its number, and each fault tried at each of them.
//! The promises are checked at every write that the hub commits; at every rest the state must be
//! that of the undisturbed run; and every object must be made and taken away as often as there.
//!
//! A plan that fails prints a line that replays it. `AVIARY_FAULTS` says how much is tried: `some`
//! (the default) is every so many-th plan, `all` is every one, `ci` every crash and each other
//! fault at some points of every scenario, `soak` several faults at once by chance until it is
//! stopped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells what it did"
)]
#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]

mod agents;
mod fault;
mod hand;
mod history;
mod leadership;
mod line;
mod loss;
mod oracles;
mod plans;
mod planted;
mod promises;
mod run;
mod scenario;
mod scenarios;
mod trouble;
mod world;

#[path = "../e2e/objects.rs"]
#[allow(dead_code, reason = "shared with the other tests, which need more of it")]
mod objects;

// How the manager reads the hub, so that what is there can be put before the promises.
#[path = "../../src/progress.rs"]
#[allow(dead_code, unreachable_pub, reason = "only reading is needed here")]
mod progress;
#[path = "../../src/revisions.rs"]
#[allow(dead_code, unreachable_pub, reason = "only reading is needed here")]
mod revisions;
#[path = "../../src/seen.rs"]
#[allow(dead_code, unreachable_pub, reason = "only reading is needed here")]
mod seen;
#[path = "../../src/stores/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "only reading is needed here")]
mod stores;

use std::process::ExitCode;

fn main() -> ExitCode {
    plans::main()
}
