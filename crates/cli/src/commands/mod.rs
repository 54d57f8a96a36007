//! One file per command. A command gets its arguments and a [`Session`], writes to the session's
//! output, and returns its outcome.

mod cleanup;
mod clusters;
mod complete;
mod completion;
mod crds;
mod dashboard;
mod demo;
mod explain;
mod fleet;
mod hash;
mod hub;
mod lint;
mod manager;
mod manifests;
mod plan;
mod preflight;
mod registration;
mod rehearse;
mod rollout;
mod source;
mod status;
mod version;

use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use clap::Subcommand;
use jiff::Timestamp;

use crate::output::Output;

/// What a command may use of its process.
pub(crate) struct Session {
    /// The name by which users call the program.
    pub(crate) program: String,
    /// The definition of the whole command line, for what is generated from it.
    pub(crate) definition: clap::Command,
    pub(crate) now: Timestamp,
    pub(crate) stdin: Box<dyn Read>,
    pub(crate) output: Output,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("program", &self.program)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// How a command ended. An error means that it could not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// The command has already printed why.
    NotDone,
    /// The rollout is in progress.
    Progressing,
    /// The rollout has stopped, and somebody must act.
    Failed,
}

impl Outcome {
    /// The exit code. 2 means wrong usage.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::NotDone => 1,
            Self::Progressing => 3,
            Self::Failed => 4,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Args),
    Hub(hub::Args),
    Manager(manager::Args),
    Registration(registration::Args),
    Fleet(fleet::Args),
    Clusters(clusters::Args),
    Status(status::Args),
    Explain(explain::Args),
    Plan(plan::Args),
    Rehearse(rehearse::Args),
    Rollout(rollout::Args),
    Dashboard(dashboard::Args),
    Lint(lint::Args),
    Hash(hash::Args),
    Crds(crds::Args),
    Manifests(manifests::Args),
    Preflight(preflight::Args),
    Cleanup(cleanup::Args),
    Completion(completion::Args),
    Complete(complete::Args),
    Version(version::Args),
}

pub(crate) fn run(command: &Command, session: &mut Session) -> anyhow::Result<Outcome> {
    match command {
        Command::Demo(args) => demo::run(args, session),
        Command::Hub(args) => hub::run(args, session),
        Command::Manager(args) => manager::run(args, session),
        Command::Registration(args) => registration::run(args, session),
        Command::Fleet(args) => fleet::run(args, session),
        Command::Clusters(args) => clusters::run(args, session),
        Command::Status(args) => status::run(args, session),
        Command::Explain(args) => explain::run(args, session),
        Command::Plan(args) => plan::run(args, session),
        Command::Rehearse(args) => rehearse::run(args, session),
        Command::Rollout(args) => rollout::run(args, session),
        Command::Dashboard(args) => dashboard::run(args, session),
        Command::Lint(args) => lint::run(args, session),
        Command::Hash(args) => hash::run(args, session),
        Command::Crds(args) => crds::run(args, session),
        Command::Manifests(args) => manifests::run(args, session),
        Command::Preflight(args) => preflight::run(args, session),
        Command::Cleanup(args) => cleanup::run(args, session),
        Command::Completion(args) => completion::run(args, session),
        Command::Complete(args) => complete::run(args, session),
        Command::Version(args) => version::run(args, session),
    }
}

/// The files that a command reads.
#[derive(Debug, clap::Args)]
pub(crate) struct Files {
    /// YAML or JSON file with any number of documents, a directory (its .yaml, .yml and .json
    /// files), or - for standard input. May be given several times, and with several files
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1.., required_unless_present = "paths")]
    files: Vec<PathBuf>,

    /// The same, without -f
    #[arg(value_name = "FILE")]
    paths: Vec<PathBuf>,

    /// Read directories with all directories below them
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
}

impl Files {
    /// All files, those without -f first.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        self.paths.iter().chain(&self.files).cloned().collect()
    }

    /// The files as the user would type them again.
    pub(crate) fn typed(&self) -> String {
        typed("-f", &self.all()) + if self.recursive { " -R" } else { "" }
    }
}

/// An option with its files, quoted for a shell.
pub(crate) fn typed(option: &str, files: &[PathBuf]) -> String {
    let plain = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '.' | '/' | '-' | '_' | '+' | ',' | '@'))
    };
    let mut text = option.to_owned();
    for file in files {
        let file = file.to_string_lossy();
        text.push(' ');
        if plain(&file) {
            text.push_str(&file);
        } else {
            text.push_str(&format!("'{}'", file.replace('\'', r"'\''")));
        }
    }
    text
}
