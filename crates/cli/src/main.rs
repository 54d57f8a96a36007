//! The command line: arguments in, exit code out.
//!
//! This is the only place that uses the process itself: its arguments, environment, clock, standard
//! streams and exit code. Everything else gets what it needs in a [`Session`]. Exit codes: 0
//! success; 1 failure, or a problem with the input; 2 wrong usage; 3 a rollout is in progress; 4 a
//! rollout has failed.

mod change;
mod checks;
mod commands;
mod connect;
mod conversion;
mod difference;
mod documents;
mod findings;
mod kinds;
mod live;
mod logs;
mod nearest;
mod objects;
mod output;
mod packaging;
mod process;
mod redecide;
mod snapshot;
mod telemetry;

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};
use jiff::Timestamp;

use commands::{Command, Session};
use output::{Output, OutputFormat, Paint};

const ABOUT: &str =
    "Upgrades add-ons across a fleet of Kubernetes clusters, and explains why each cluster is waiting.";

const EXAMPLES: &str = "\
Examples:
  Check files before you apply them
    $ aviary lint -f addon.yaml

  See what they would do to the fleet on the hub, without doing it
    $ aviary plan helloworld -f addon.yaml

  See how far rollouts are, and why one is stuck
    $ aviary status
    $ aviary explain helloworld

  Install on a hub
    $ aviary manifests | kubectl apply --server-side -f -

Exit codes: 0 success, 1 failure or a problem with the input, 2 wrong usage.";

/// Fleet add-on lifecycle manager for Kubernetes.
#[derive(Debug, Parser)]
#[command(version, about = ABOUT, after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true, propagate_version = false)]
struct Cli {
    /// Output format: json and yaml have a stable structure; wide is untruncated text
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT")]
    output: Option<OutputFormat>,

    /// Disable colours; also disabled by the variable NO_COLOR and when the output is not a
    /// terminal
    #[arg(long, global = true, action = ArgAction::SetTrue)]
    no_color: bool,

    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    logs::escape_panics();
    let arguments: Vec<OsString> = env::args_os().collect();
    let program = display_name(arguments.first());
    let mut definition = named(Cli::command(), &program);
    let cli = match definition
        .try_get_matches_from_mut(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches))
    {
        Ok(cli) => cli,
        Err(error) => {
            // If the stream is closed, there is nothing left to do.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let colours = !cli.no_color && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let mut session = Session {
        definition: named(Cli::command(), &program),
        program,
        now: Timestamp::now(),
        stdin: Box::new(io::stdin().lock()),
        output: Output::new(
            Paint { on: colours && terminal },
            cli.output,
            // Not locked permanently: other threads log to standard error.
            Box::new(stdout),
            Box::new(io::stderr()),
        )
        .on_terminal(terminal)
        .of_width(env::var_os("COLUMNS").is_some_and(|columns| !columns.is_empty())),
    };
    let outcome = commands::run(&cli.command, &mut session).and_then(|outcome| {
        session.output.finish()?;
        Ok(outcome)
    });
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(error) => {
            session.output.complaint(&format!("{}: {error:#}", session.program));
            ExitCode::FAILURE
        }
    }
}

/// The name of the program. Installed as `kubectl-aviary` it is a plugin, and users type `kubectl
/// aviary`.
fn display_name(argument: Option<&OsString>) -> String {
    let stem =
        argument.map(Path::new).and_then(Path::file_stem).and_then(|stem| stem.to_str()).unwrap_or_default();
    match stem.strip_prefix("kubectl-") {
        Some(plugin) if !plugin.is_empty() => format!("kubectl {}", plugin.replace('_', "-")),
        _ => "aviary".to_owned(),
    }
}

/// Renames the command to the name that users type, in its examples as well.
fn named(definition: clap::Command, program: &str) -> clap::Command {
    let definition = definition.name("aviary").bin_name(program);
    if program == "aviary" {
        return definition;
    }
    fn renamed(mut command: clap::Command, program: &str) -> clap::Command {
        let said =
            |help: &clap::builder::StyledStr| help.to_string().replace("$ aviary ", &format!("$ {program} "));
        if let Some(help) = command.get_after_help().map(said) {
            command = command.after_help(help);
        }
        if let Some(help) = command.get_after_long_help().map(said) {
            command = command.after_long_help(help);
        }
        command.mut_subcommands(|command| renamed(command, program))
    }
    renamed(definition, program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_plugin_of_kubectl_goes_by_the_name_that_people_type() {
        let name = |argument: &str| display_name(Some(&OsString::from(argument)));
        assert_eq!(name("/usr/bin/aviary"), "aviary");
        assert_eq!(name("/usr/bin/kubectl-aviary"), "kubectl aviary");
        assert_eq!(display_name(None), "aviary");
    }
}
