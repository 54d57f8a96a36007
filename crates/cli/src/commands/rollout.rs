//! `aviary rollout`: operates a rollout. Every write is conditional on the state that was read, and
//! every verb that writes supports a dry run.

pub(super) mod acknowledge;
mod attempts;
mod authors;
mod history;
mod reprobe;
pub(super) mod retry;
mod spec;
pub(super) mod switch;
pub(super) mod undo;

use std::path::PathBuf;

use clap::Subcommand;

use super::{Outcome, Session, status, typed};
use crate::live::{LiveArgs, block_on};

const EXAMPLES: &str = "\
Examples:
  Start no new clusters; clusters in flight finish
    $ aviary rollout pause helloworld

  List the revisions you can roll back to
    $ aviary rollout history helloworld

  Roll back to the previous revision, and wait until it is done
    $ aviary rollout undo helloworld && aviary status helloworld -w

  Let failed clusters try again
    $ aviary rollout retry helloworld";

/// Operate a rollout: pause, resume, undo, history, retry, reprobe, status
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: RolloutCommand,
}

#[derive(Debug, Subcommand)]
enum RolloutCommand {
    Pause(switch::PauseArgs),
    Resume(switch::ResumeArgs),
    Undo(undo::Args),
    History(history::Args),
    Retry(retry::Args),
    Status(status::Args),
    Reprobe(reprobe::Args),
}

/// Selects a rollout.
#[derive(Debug, clap::Args)]
struct RolloutSelection {
    /// Name of the add-on
    #[arg(value_name = "ADDON")]
    addon: String,

    /// One of its placements, as namespace/name, or as name if that is unique [default: all]
    #[arg(short, long, value_name = "PLACEMENT")]
    placement: Option<String>,

    #[command(flatten)]
    live: LiveArgs,
}

impl RolloutSelection {
    /// The add-on and the options as the user would type them again: a hint must not widen what was
    /// asked for.
    fn typed(&self) -> String {
        format!("{}{}", self.addon, self.options())
    }

    /// The options alone, with a leading space.
    fn options(&self) -> String {
        let placement = self.placement.as_ref();
        let placement = placement.map(|name| format!(" {}", typed("--placement", &[PathBuf::from(name)])));
        format!("{}{}", placement.unwrap_or_default(), self.live.typed())
    }
}

/// How to write.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct WriteArgs {
    /// Show what would be written and let the hub validate it, without writing
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl WriteArgs {
    /// A suffix for messages about a dry run.
    fn mark(self) -> &'static str {
        if self.dry_run { " (dry run)" } else { "" }
    }
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    block_on(async {
        match &args.verb {
            RolloutCommand::Pause(args) => switch::pause(args, session).await,
            RolloutCommand::Resume(args) => switch::resume(args, session).await,
            RolloutCommand::Undo(args) => undo::run(args, session).await,
            RolloutCommand::History(args) => history::run(args, session).await,
            RolloutCommand::Retry(args) => retry::run(args, session).await,
            RolloutCommand::Status(args) => status::show(args, session).await,
            RolloutCommand::Reprobe(args) => reprobe::run(args, session).await,
        }
    })
}
