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

use std::fs;
use std::path::Path;

use page::{Block, Command, blocks};
use play::Player;

#[test]
fn every_command_of_the_tutorial_prints_what_it_says() {
    Player::new("tutorial").follow();
}

/// `make test-clusters` compares the output on that page with that of real clusters.
#[test]
fn the_readme_shows_the_crash_loop_as_the_tutorial_on_real_clusters_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = blocks(&fs::read_to_string(root.join("docs/tutorial-real.md")).unwrap());
    let commands: Vec<&Command> = page
        .iter()
        .filter_map(|block| match block {
            Block::Commands { commands, .. } => Some(commands),
            _ => None,
        })
        .flatten()
        .collect();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (_, crash_loop) = readme.split_once("```\n$ aviary explain greeter\n").expect("the crash loop");
    let (crash_loop, _) = crash_loop.split_once("```\n").expect("its end");
    let (explained, pods) = crash_loop.split_once("$ kubectl ").expect("another command after it");
    let (typed, pods) = pods.split_once('\n').expect("what it prints");
    for (typed, shown) in [("aviary explain greeter", explained), (&format!("kubectl {typed}"), pods)] {
        let command =
            commands.iter().find(|command| command.typed == typed).expect("the command in the tutorial");
        assert!(
            command.is_told_by(shown),
            "the tutorial says:\n{}\nREADME.md says:\n{shown}",
            command.prints
        );
    }
}
