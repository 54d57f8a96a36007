//! `aviary completion`: completion scripts, generated from the command line's own definition.

use clap_complete::Shell;

use super::{Outcome, Session};

/// Print the script that completes commands and options in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  For this session
    $ source <(aviary completion bash)

  For good
    $ aviary completion bash > /etc/bash_completion.d/aviary
    $ aviary completion zsh > \"${fpath[1]}/_aviary\"
    $ aviary completion fish > ~/.config/fish/completions/aviary.fish")]
pub(crate) struct Args {
    /// The shell that is to read it
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    // Into memory first: the generator takes a closed stream for a reason to panic.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut session.definition, "aviary", &mut script);
    session.output.text(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
