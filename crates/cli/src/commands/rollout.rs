//! `aviary rollout`: to operate a rollout. Every write is conditional on what was seen, and every verb that writes has a dry run.

pub(super) mod acknowledge;
mod history;
mod retry;
mod spec;
pub(super) mod switch;
pub(super) mod undo;

use clap::Subcommand;

use super::{Outcome, Session};
use crate::live::{LiveArgs, block_on};

const EXAMPLES: &str = "\
Examples:
  Nothing new starts; what has started finishes
    $ aviary rollout pause helloworld

  Which revisions can be gone back to
    $ aviary rollout history helloworld

  Go back to the revision before, and wait until it is there
    $ aviary rollout undo helloworld && aviary status helloworld -w

  Let the clusters that failed try again
    $ aviary rollout retry helloworld";

/// Operate a rollout: pause, resume, undo, history, retry
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Pause(switch::PauseArgs),
    Resume(switch::ResumeArgs),
    Undo(undo::Args),
    History(history::Args),
    Retry(retry::Args),
}

/// Which rollout.
#[derive(Debug, clap::Args)]
struct Which {
    /// Name of the add-on
    #[arg(value_name = "ADDON")]
    addon: String,

    /// One of its placements, as namespace/name or, where there is only one of that name, as name; all of them by default
    #[arg(short, long, value_name = "PLACEMENT")]
    placement: Option<String>,

    #[command(flatten)]
    live: LiveArgs,
}

/// How to write.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Writing {
    /// Say what would be written, let the hub check it, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl Writing {
    /// A word before what was done.
    fn mark(self) -> &'static str {
        if self.dry_run { " (dry run)" } else { "" }
    }
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    block_on(async {
        match &args.verb {
            Verb::Pause(args) => switch::pause(args, session).await,
            Verb::Resume(args) => switch::resume(args, session).await,
            Verb::Undo(args) => undo::run(args, session).await,
            Verb::History(args) => history::run(args, session).await,
            Verb::Retry(args) => retry::run(args, session).await,
        }
    })
}
