//! `aviary complete`, hidden: names of objects on the hub, for shell completion.
//!
//! Called by the scripts of `aviary completion` with the words that were typed so far. Prints one
//! name per line, and nothing if it cannot tell: a completion must never disturb the shell.

use std::time::Duration;

use aviary_api::{ClusterManagementAddOn, ManagedCluster};
use clap::{ArgAction, Command};
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::Value;

use super::{Outcome, Session};
use crate::connect::HubArgs;
use crate::live::block_on;

/// A shell that waits longer feels stuck.
const PATIENCE: Duration = Duration::from_secs(3);
/// More names than this are no help.
const MOST_NAMES: u32 = 1000;

/// Print the names on the hub that can follow the given words
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// The words of the command line, without the program, up to the one that is being typed
    #[arg(value_name = "WORD", num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CompletionTarget {
    AddOn,
    Cluster,
    /// A placement of this add-on.
    Placement(String),
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let Some((wanted, hub)) = Typed::of(&session.definition, &args.words).wanted() else {
        return Ok(Outcome::Done);
    };
    let names = block_on(async {
        let names = tokio::time::timeout(PATIENCE, names(&hub, &wanted)).await;
        Ok(names.ok().and_then(Result::ok).unwrap_or_default())
    })?;
    let begun = args.words.last().map_or("", String::as_str);
    for name in names.iter().filter(|name| name.starts_with(begun)) {
        session.output.line(name)?;
    }
    Ok(Outcome::Done)
}

/// The words, sorted by what they mean.
#[derive(Debug, Default)]
struct Typed {
    /// The name of the value that is being typed, such as ADDON.
    value: Option<String>,
    addon: Option<String>,
    hub: HubArgs,
}

impl Typed {
    fn of(definition: &Command, words: &[String]) -> Self {
        let mut typed = Self::default();
        let mut command = definition;
        let mut position = 0;
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let last = words.peek().is_none();
            if let Some(option) = word.strip_prefix('-').filter(|_| word.len() > 1) {
                let Some(name) = value_of_option(command, definition, option) else { continue };
                let (value, last) = match word.split_once('=').filter(|_| word.starts_with("--")) {
                    Some((_, value)) => (value.to_owned(), last),
                    None => match words.next() {
                        Some(value) => (value.clone(), words.peek().is_none()),
                        None => continue,
                    },
                };
                match name.as_str() {
                    _ if last => typed.value = Some(name),
                    "--kubeconfig" => typed.hub.kubeconfig = Some(value.into()),
                    "--context" => typed.hub.context = Some(value),
                    _ => {}
                }
                continue;
            }
            if let Some(below) = command.find_subcommand(word).filter(|_| !last) {
                (command, position) = (below, 0);
                continue;
            }
            let name = command.get_positionals().nth(position).and_then(value_name);
            position += 1;
            match last {
                true => typed.value = name,
                false if name.as_deref() == Some("ADDON") => typed.addon = Some(word.clone()),
                false => {}
            }
        }
        typed
    }

    fn wanted(self) -> Option<(CompletionTarget, HubArgs)> {
        let wanted = match self.value?.as_str() {
            "ADDON" => CompletionTarget::AddOn,
            "CLUSTER" => CompletionTarget::Cluster,
            "PLACEMENT" => CompletionTarget::Placement(self.addon?),
            _ => return None,
        };
        Some((wanted, self.hub))
    }
}

/// The name of the value that an option takes; of the options that select a hub, their own name.
fn value_of_option(command: &Command, root: &Command, option: &str) -> Option<String> {
    let long = option.strip_prefix('-').map(|long| long.split('=').next().unwrap_or(long));
    let is = |arg: &&clap::Arg| match long {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short() == option.chars().next() && option.chars().count() == 1,
    };
    let arg = command.get_arguments().chain(root.get_arguments()).find(is)?;
    if !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) {
        return None;
    }
    match arg.get_long() {
        Some(long @ ("kubeconfig" | "context")) => Some(format!("--{long}")),
        _ => value_name(arg),
    }
}

fn value_name(arg: &clap::Arg) -> Option<String> {
    arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string)
}

async fn names(hub: &HubArgs, wanted: &CompletionTarget) -> anyhow::Result<Vec<String>> {
    let client = hub.connect().await?.client;
    Ok(match wanted {
        CompletionTarget::AddOn => list::<ClusterManagementAddOn>(client).await?,
        CompletionTarget::Cluster => list::<ManagedCluster>(client).await?,
        CompletionTarget::Placement(addon) => {
            let api: Api<ClusterManagementAddOn> = Api::all(client);
            let object = serde_json::to_value(api.get(addon).await?)?;
            let placements = object.pointer("/spec/installStrategy/placements").and_then(Value::as_array);
            let text = |placement: &Value, key: &str| {
                placement.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let name = |one: &Value| format!("{}/{}", text(one, "namespace"), text(one, "name"));
            placements.into_iter().flatten().map(name).collect()
        }
    })
}

async fn list<K>(client: Client) -> anyhow::Result<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope> + Clone + std::fmt::Debug,
    K: serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::all(client);
    let listed = api.list_metadata(&ListParams::default().limit(MOST_NAMES)).await?;
    Ok(listed.items.iter().map(ResourceExt::name_any).collect())
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    fn wanted(line: &str) -> Option<CompletionTarget> {
        let explain = crate::commands::explain::Args::augment_args(Command::new("explain"));
        let rollout = crate::commands::rollout::Args::augment_args(Command::new("rollout"));
        let definition = Command::new("aviary").subcommands([explain, rollout]);
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Typed::of(&definition, &words).wanted().map(|(wanted, _)| wanted)
    }

    #[test]
    fn the_words_tell_what_is_being_typed() {
        assert_eq!(wanted("explain "), Some(CompletionTarget::AddOn));
        assert_eq!(wanted("explain --context x he"), Some(CompletionTarget::AddOn));
        assert_eq!(wanted("explain helloworld c"), Some(CompletionTarget::Cluster));
        assert_eq!(wanted("rollout pause "), Some(CompletionTarget::AddOn));
        let placement = Some(CompletionTarget::Placement("helloworld".to_owned()));
        assert_eq!(wanted("rollout pause helloworld -p "), placement);
        assert_eq!(wanted("rollout undo helloworld --placement=def"), placement);
        assert_eq!(wanted("rollout retry helloworld --cluster "), Some(CompletionTarget::Cluster));
        for nothing in
            ["", "rol", "explain --context ", "rollout undo helloworld --to-revision ", "explain --"]
        {
            assert_eq!(wanted(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_options_that_select_a_hub_are_used() {
        let explain = crate::commands::explain::Args::augment_args(Command::new("explain"));
        let definition = Command::new("aviary").subcommand(explain);
        let words = ["explain", "--kubeconfig", "hub.yaml", "--context=one", ""].map(str::to_owned);
        let typed = Typed::of(&definition, &words);
        assert_eq!(typed.hub.kubeconfig, Some("hub.yaml".into()));
        assert_eq!(typed.hub.context.as_deref(), Some("one"));
    }
}
