//! `aviary completion`: shell completion scripts, generated from the definition of the command
//! line.

use clap_complete::Shell;

use super::{Outcome, Session};

/// Print a shell completion script; names of add-ons, clusters and placements come from the hub
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
    /// Shell to generate the script for
    #[arg(value_enum)]
    shell: Shell,
}

/// Adds the names of add-ons, clusters and placements on the hub to what the script completes.
fn names_of_hub(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => {
            r#"
_aviary_names() {
    _aviary "$@"
    local names
    names=$("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return 0
    # Where a name is expected, a file or an option that happens to fit would only be in the way.
    names=$(compgen -W "$names" -- "${COMP_WORDS[COMP_CWORD]}") && COMPREPLY=($names)
    return 0
}
complete -F _aviary_names -o bashdefault -o default aviary
"#
        }
        Shell::Zsh => {
            r#"
_aviary_names() {
    local -a names
    names=(${(f)"$(${words[1]} complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    (( $#names )) && compadd -a names
    _aviary "$@"
}
compdef _aviary_names aviary
"#
        }
        Shell::Fish => {
            r#"
function __aviary_names
    aviary complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete -c aviary -f -a '(__aviary_names)'
# The values of options: fish completes those only by the option itself.
complete -c aviary -n '__fish_seen_subcommand_from rollout' -s p -l placement -x -a '(__aviary_names)'
complete -c aviary -n '__fish_seen_subcommand_from retry' -l cluster -x -a '(__aviary_names)'
"#
        }
        _ => "",
    }
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    // Writes to memory first: the generator panics if the stream is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut session.definition, "aviary", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    script.push_str(names_of_hub(args.shell));
    session.output.file(&script)?;
    Ok(Outcome::Done)
}
