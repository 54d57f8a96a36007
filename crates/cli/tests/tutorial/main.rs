//! Runs `docs/tutorial.md`: writes every file in it, runs every command in order, and compares the
//! output with the text.
//!
//! A block ```` ```yaml NAME ```` is a file. A block ```` ```console ```` contains commands (`$ …`)
//! and their output; `exit=N` is the exit code of its last command, all others must exit with 0.
//! With `keeps-running` the command runs until the end. `…` alone on a line stands for any lines,
//! within a line for any text.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod page;
mod play;

use play::Player;

#[test]
fn every_command_of_the_tutorial_prints_what_it_says() {
    Player::new("tutorial").follow();
}
