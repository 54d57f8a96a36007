//! `--help` of the verbs, and colours.

use std::process::{Command, Stdio};

use crate::transcript::desk;
use crate::world::World;

#[test]
fn help_has_examples_and_exit_codes_for_every_verb() {
    let desk = desk("verbs-help");
    for verb in [
        "status",
        "explain",
        "plan",
        "rehearse",
        "rollout pause",
        "rollout resume",
        "rollout undo",
        "rollout history",
        "rollout retry",
        "rollout reprobe",
    ] {
        let help = String::from_utf8(desk.output(&format!("{verb} --help")).stdout).unwrap();
        let short = String::from_utf8(desk.output(&format!("{verb} -h")).stdout).unwrap();
        for (help, parts) in [
            (
                &help,
                vec![
                    "Usage: aviary ",
                    "Examples:\n",
                    "$ aviary ",
                    "Exit codes:\n",
                    "Output with -o json",
                    "--kubeconfig",
                    "--context",
                ],
            ),
            (&short, vec!["Usage: aviary ", "Examples:\n", "$ aviary "]),
        ] {
            for part in parts {
                assert!(help.contains(part), "{verb}: no {part:?} in {help}");
            }
            assert!(help.lines().all(|line| line.chars().count() <= 100), "{verb} is too wide: {help}");
        }
    }
}

/// Runs a command on a new terminal, and returns everything that is written to it.
fn on_a_terminal(world: &World, line: &str, variable: Option<(&str, &str)>) -> String {
    let program = env!("CARGO_BIN_EXE_aviary");
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{program} {line} --kubeconfig hub.kubeconfig"), "/dev/null"]);
    command.current_dir(world.desk.path("")).env_remove("NO_COLOR").stdin(Stdio::null()).envs(variable);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn colours_are_for_terminals_and_say_nothing_alone() {
    let world = World::refused("colours");
    let coloured = on_a_terminal(&world, "status helloworld", None);
    assert!(coloured.contains("\u{1b}[31mFailed\u{1b}[0m"), "{coloured:?}");
    let plain =
        |text: &str| regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap().replace_all(text, "").replace('\r', "");
    for (line, variable) in
        [("status helloworld --no-color", None), ("status helloworld", Some(("NO_COLOR", "1")))]
    {
        let without = on_a_terminal(&world, line, variable);
        assert!(!without.contains('\u{1b}'), "{without:?}");
        assert_eq!(
            without.replace('\r', ""),
            plain(&coloured),
            "all that a colour says is said in words as well"
        );
    }
    // A watch redraws the terminal.
    let watched = on_a_terminal(&world, "status helloworld -w", None);
    assert!(watched.contains("\u{1b}[H") && watched.contains("\u{1b}[J"), "{watched:?}");
    assert!(watched.contains("canary-00"), "{watched:?}");
}
