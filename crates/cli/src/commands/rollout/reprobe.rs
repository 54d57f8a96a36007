//! `reprobe`: asks for the health of workloads on clusters whose works an earlier version of
//! Aviary rendered.
//!
//! The request is an annotation on the add-on. The manager decides from the works as they are, so
//! the annotation may stay: once all works have probes it has no effect.

use aviary_api::names::annotations::REPROBE;
use aviary_engine::plan::plan;
use serde::Serialize;
use serde_json::{Value, json};

use super::spec::StoredAddOn;
use super::{Outcome, Session, WriteArgs};
use crate::live::{LiveArgs, seconds};
use crate::output::{Printout, counted};

const DESCRIPTION: &str = "\
Add health probes to works that an earlier version of Aviary rendered.

Such works stay as they are when Aviary is upgraded, and are judged by the conditions Applied and Available. They get probes with \
the next revision. Reprobe adds them earlier: it sets the annotation addon.open-cluster-management.io/reprobe on the add-on, and \
the manager renders the works anew, for at most 25 % of a placement's clusters at once, whatever its rollout strategy, and never \
more than that strategy allows. No pod is restarted. A cluster is unsettled until its agent reports healthy objects, so unhealthy \
clusters stop the rest.";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; later versions may add fields, but never change or remove one
  addOn, dryRun
  notProbed      the number of clusters that have works without probes
  requested      whether the add-on asks for probes now

Exit codes:
  0 success; 1 it could not be written; 2 wrong usage";

const EXAMPLES: &str = "\
Examples:
  $ aviary rollout reprobe helloworld
  $ aviary rollout reprobe helloworld --stop";

/// Add health probes to works that an earlier version of Aviary rendered
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(super) struct Args {
    /// Name of the add-on
    #[arg(value_name = "ADDON")]
    addon: String,

    /// Take the request back; clusters that have probes keep them
    #[arg(long)]
    stop: bool,

    #[command(flatten)]
    writing: WriteArgs,

    #[command(flatten)]
    live: LiveArgs,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReprobeReport {
    version: u32,
    add_on: String,
    dry_run: bool,
    not_probed: usize,
    requested: bool,
}

pub(super) async fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let mut live = args.live.read(Some(&args.addon)).await?;
    let stored = StoredAddOn::read(&live.connection, &args.addon).await?;
    let not_probed = live.view.observe(&args.addon, |observed| plan(observed, session.now).report.not_probed);
    let not_probed = not_probed.unwrap_or_default();
    let is_set = stored.annotation(REPROBE).is_some();
    let wanted = !args.stop && (not_probed > 0 || is_set);
    if wanted != is_set {
        let value = if wanted { json!(seconds(session.now).to_string()) } else { Value::Null };
        stored.annotate(json!({REPROBE: value}), args.writing).await?;
    }
    let told = ReprobeReport {
        version: 1,
        add_on: args.addon.clone(),
        dry_run: args.writing.dry_run,
        not_probed,
        requested: if args.writing.dry_run { is_set } else { wanted },
    };
    if !session.output.data(&told)? {
        session.output.text(&render(&told, args, is_set, &session.program))?;
    }
    Ok(Outcome::Done)
}

fn render(told: &ReprobeReport, args: &Args, was_set: bool, program: &str) -> Printout {
    let mut text = Printout::default();
    let (addon, mark, hub) = (&told.add_on, args.writing.mark(), args.live.typed());
    let clusters = counted(told.not_probed, "cluster");
    text.line(match (args.stop, told.not_probed) {
        (true, _) if !was_set => format!("Nobody has asked for probes in the works of {addon}"),
        (true, 0) => format!("The request is taken back{mark}: all works of {addon} have probes"),
        (true, _) => format!("The request is taken back{mark}: {clusters} keep works without probes"),
        (false, 0) => format!("All works of {addon} have probes: there is nothing to do"),
        (false, _) if was_set => format!("The works of {clusters} are getting probes already"),
        (false, _) => {
            format!(
                "The works of {clusters} get probes{mark}, at most 25 % of a placement's clusters at once"
            )
        }
    });
    text.line(match told.dry_run {
        true => {
            let stop = if args.stop { " --stop" } else { "" };
            format!("Nothing was written. Next: {program} rollout reprobe {addon}{stop}{hub}")
        }
        false => format!("Next: {program} status {addon} -w{hub}"),
    });
    text
}
