//! `aviary completion`: shell completion scripts, generated from the definition of the command
//! line.

use clap_complete::Shell;

use super::{Outcome, Session};

/// Print a shell completion script
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  For this session
    $ source <(aviary completion bash)

  Permanently
    $ aviary completion bash > /etc/bash_completion.d/aviary
    $ aviary completion zsh > \"${fpath[1]}/_aviary\"
    $ aviary completion fish > ~/.config/fish/completions/aviary.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    // Writes to memory first: the generator panics if the stream is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut session.definition, "aviary", &mut script);
    session.output.file(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
