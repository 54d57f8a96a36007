//! `aviary plan`: what would happen to every cluster, decided by the code that would do it; nothing is written.

mod radius;
mod report;
mod text;
mod waves;

use std::path::PathBuf;
use std::slice;

use anyhow::anyhow;
use aviary_api::names::annotations;
use jiff::Timestamp;

use super::{Files, Outcome, Session, typed};
use crate::change::{self, Changed};
use crate::checks::{self, Checked};
use crate::documents::{self, Document};
use crate::findings::Finding;
use crate::kinds::Kinds;
use crate::snapshot::{self, Snapshot};
use report::PlanReport;

const DESCRIPTION: &str = "\
Show what would happen: clusters added, removed and started, in which waves, and who waits for what. Nothing is written.

All objects of the files together are the fleet: ClusterManagementAddOns, ManagedClusterAddOns, ManagedClusters, Placements, \
PlacementDecisions, ManifestWorks, AddOnTemplates, AddOnHubConfigs and AddOnDeploymentConfigs; an object of any other kind is \
a config, of its group and of its kind's plural. Objects of --change go on top as kubectl apply would put them there.

What the files leave out is assumed, and every assumption is said: without ManagedClusters each cluster that is named \
exists; without a Placement its PlacementDecisions count; without ManifestWorks an instance has what its status says.

Waves are those of the best case, in which every cluster takes what it is told at once.";

const EXAMPLES: &str = "\
Examples:
  What would these files do on an empty hub
    $ aviary plan -f addon.yaml -f decisions.yaml

  What would a change do to the fleet as it is now
    $ kubectl get -A -o yaml cma,mca,managedclusters,placements,placementdecisions,\\
        addontemplates,addonhubconfigs,addondeploymentconfigs,manifestworks > fleet.yaml
    $ aviary plan -f fleet.yaml --change v2.yaml

  How many clusters of each region are in the first wave
    $ aviary plan -f fleet.yaml --label region -o json \\
        | jq '.addOns[0].waves.list[0].byLabel'";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; a later version may add fields, and changes or removes none
  now            the time that the plan is made for
  notes[]        what was assumed about the fleet, and what was left out
  addOns[]
    name, file, document
    clusters     how many are selected for it, or have an instance of it
    leftAlone    why nothing is done about it; absent otherwise
    atRest       nothing at all would be written
    removals[]   instances deleted: {reason, message, count, clusters[]}
    creates[]    instances made now: {kind, placement, from, to, count, clusters[]}
    starts[]     told another version or revision now: as creates[]
    inFlight[]   told before, and not settled: as removals[]
    waiting[]    why each of the others is not started: as removals[]
    settled      how many have what they should have
    placements[] {placement, reason, message, desired, target, canary, paused, budget,
                 governed, onTarget, settled, inFlight, failed, waiting};
                 budget is absent where all go at once
    waves        {count, end, unsettled[], fleetByLabel, list[]}; end is Settled, Stands
                 (nothing moves any more by itself) or Long (list[] is cut, count is
                 estimated); unsettled[] is who has not settled then, as removals[]
      list[]     {wave, afterSeconds, count, sharePercent, reachedPercent, moves[],
                 byLabel}; moves[] as creates[]; byLabel: label, value, count
    problems[]   {severity, reason, message}
    notes[]      what was assumed about the add-on

Exit codes:
  0 the plan is made; 1 a file is wrong and nothing was planned; 2 wrong usage";

/// Show what would happen: who is added, removed, started, in which waves, and who waits for what
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,

    /// File with objects to put on top of the others, as kubectl apply would; status and identity stay
    #[arg(short, long, value_name = "FILE", num_args = 1..)]
    change: Vec<PathBuf>,

    /// Plan only this add-on
    #[arg(long, value_name = "NAME")]
    add_on: Option<String>,

    /// Break the waves down by this cluster label; may be given several times. By default by the labels that divide the
    /// clusters into ten groups at most
    #[arg(long, value_name = "KEY")]
    label: Vec<String>,

    /// The time to plan for, as in 2026-01-31T12:00:00Z; by default now
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let kinds = Kinds::new()?;
    let loaded = load(&args.files.files, &args.change, session, &kinds)?;
    let Changed { documents, former } = match loaded {
        Ok(changed) => changed,
        Err(faults) => return Ok(session.output.refuse(&faults)),
    };
    let mut snapshot = snapshot::build(&documents, &former, &kinds);
    choose(&mut snapshot, args.add_on.as_deref())?;
    let report = PlanReport::of(&snapshot, &args.label, args.now.unwrap_or(session.now));
    if session.output.data(&report)? {
        return Ok(Outcome::Done);
    }
    let mut text = text::render(&report, session.output.paint);
    text.push_str(&next(args, &report, &session.program));
    session.output.text(&text)?;
    Ok(Outcome::Done)
}

/// Reads and checks all files, or says what is wrong with them.
pub(crate) fn load(
    files: &[PathBuf],
    change: &[PathBuf],
    session: &mut Session,
    kinds: &Kinds,
) -> anyhow::Result<Result<Changed, Vec<Finding>>> {
    let mut faults = Vec::new();
    let mut accepted = |files: &[PathBuf]| -> anyhow::Result<Vec<Document>> {
        let read = documents::read(files, &mut session.stdin);
        faults.extend(read.faults);
        let checked: Checked = checks::check(read.documents, kinds)?;
        faults.extend(checked.errors());
        Ok(checked.documents)
    };
    let there = accepted(files)?;
    let new = accepted(change)?;
    Ok(if faults.is_empty() { Ok(change::apply(there, new)) } else { Err(faults) })
}

/// Keeps the add-on that was asked for.
pub(crate) fn choose(snapshot: &mut Snapshot<'_>, asked: Option<&str>) -> anyhow::Result<()> {
    let names: Vec<String> = snapshot.addons.iter().map(|addon| addon.document.name().to_owned()).collect();
    if names.is_empty() {
        return Err(anyhow!("there is nothing to plan: no ClusterManagementAddOn is in the files"));
    }
    let Some(asked) = asked else { return Ok(()) };
    snapshot.addons.retain(|addon| addon.document.name() == asked);
    if snapshot.addons.is_empty() {
        return Err(anyhow!("add-on {asked} is not in the files: they have {}", names.join(", ")));
    }
    Ok(())
}

/// The command that is useful now.
fn next(args: &Args, report: &PlanReport, program: &str) -> String {
    let each = |files: &[PathBuf]| {
        files.iter().map(|file| typed("-f", slice::from_ref(file))).collect::<Vec<String>>().join(" ")
    };
    let held = report.add_ons.iter().find_map(|addon| Some((addon, addon.held_deletions?)));
    let next = if let Some((addon, count)) = held {
        let name = &addon.name;
        format!(
            "kubectl annotate clustermanagementaddon {name} {}={count} # if they shall go",
            annotations::ALLOW_DELETIONS
        )
    } else if report.has_errors() {
        let all: Vec<PathBuf> = args.files.files.iter().chain(&args.change).cloned().collect();
        format!("{program} lint {}", typed("-f", &all))
    } else if !args.change.is_empty() {
        format!(
            "{program} rehearse {} {} # and then kubectl apply {}",
            args.files.typed(),
            typed("--change", &args.change),
            each(&args.change)
        )
    } else if report.add_ons.iter().any(|addon| addon.installed) {
        format!("{program} plan {} --change FILE # to see what a change would do", args.files.typed())
    } else {
        let mut files: Vec<PathBuf> = report.add_ons.iter().map(|addon| PathBuf::from(&addon.file)).collect();
        files.dedup();
        format!("kubectl apply {}", each(&files))
    };
    format!("Nothing was written. Next: {next}\n")
}
