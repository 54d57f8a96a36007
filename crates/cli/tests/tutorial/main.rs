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

use std::path::Path;

use page::{Block, blocks};
use play::Player;

#[test]
fn every_command_of_the_tutorial_prints_what_it_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let text = std::fs::read_to_string(file).unwrap();
    let mut player = Player::new();
    for block in blocks(&text) {
        match block {
            Block::File { name, text } => player.write(&name, &text),
            Block::Commands { commands, exit } => {
                let last = commands.len() - 1;
                for (index, command) in commands.iter().enumerate() {
                    player.run(command, if index == last { exit } else { 0 });
                }
            }
            Block::KeepsRunning(command) => player.start(&command),
        }
    }
    player.stop();
}
