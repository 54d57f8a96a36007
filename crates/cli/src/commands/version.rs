//! `aviary version`.

use serde::Serialize;

use super::{Outcome, Session};

/// Print the version
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  $ aviary version
  $ aviary version -o json")]
pub(crate) struct Args {}

#[derive(Serialize)]
struct ProgramVersion {
    version: &'static str,
}

pub(crate) fn run(_: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let version = ProgramVersion { version: env!("CARGO_PKG_VERSION") };
    if !session.output.data(&version)? {
        session.output.line(format_args!("aviary {}", version.version))?;
    }
    Ok(Outcome::Done)
}
