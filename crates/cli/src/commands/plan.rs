//! `aviary plan`: what would happen to every cluster, decided by the code that would do it; nothing is written.

mod radius;
pub(crate) mod report;
mod text;
mod waves;

use std::path::PathBuf;
use std::slice;

use aviary_api::names::annotations;
use jiff::Timestamp;

use super::source::Source;
use super::{Outcome, Session, typed};
use crate::live::block_on;
use report::PlanReport;

const DESCRIPTION: &str = "\
Show what would happen: clusters added, removed and started, in which waves, and who waits for what. Nothing is written.

With ADDON it is read on the hub, and what is shown is what its manager does next; files are laid over what is there as kubectl apply \
would put them, and what they change is shown field by field. So it is with files alone, if --live, --kubeconfig or --context is given. \
Otherwise no hub is asked, and the files are all there is.

Without a hub all objects of the files together are the fleet: ClusterManagementAddOns, ManagedClusterAddOns, ManagedClusters, Placements, \
PlacementDecisions, ManifestWorks, AddOnTemplates, AddOnHubConfigs and AddOnDeploymentConfigs; an object of any other kind is \
a config, of its group and of its kind's plural. Objects of --change go on top as kubectl apply would put them there.

Without a hub what the files leave out is assumed, and every assumption is said: without ManagedClusters each cluster that is named \
exists; without a Placement its PlacementDecisions count; without ManifestWorks an instance has what its status says.

Waves are those of the best case, in which every cluster takes what it is told at once.";

const EXAMPLES: &str = "\
Examples:
  What would these files do on an empty hub
    $ aviary plan -f addon.yaml -f decisions.yaml

  What is an add-on on the hub about to do
    $ aviary plan helloworld

  What would a change do to the fleet of the hub
    $ aviary plan helloworld -f v2.yaml

  The same without a hub, from a copy of its objects
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
  changes[]      with a hub, what the files change there: {kind, namespace, name, change,
                 fields[]}; change is Created or Changed; fields[]: {path, from, to}
  addOns[]
    name, file, document; with a hub file is hub and document 0
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
  0 the plan is made; 1 a file is wrong or the hub could not be read, and nothing was
  planned; 2 wrong usage";

/// Show what would happen: who is added, removed, started, in which waves, and who waits for what
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// Break the waves down by this cluster label; may be given several times. By default by the labels that divide the
    /// clusters into ten groups at most
    #[arg(long, value_name = "KEY")]
    label: Vec<String>,

    /// The time to plan for, as in 2026-01-31T12:00:00Z; by default now
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let fleets = match block_on(args.source.load(session))? {
        Ok(fleets) => fleets,
        Err(faults) => return Ok(session.output.refuse(&faults)),
    };
    let report = PlanReport::of(fleets, &args.label, args.now.unwrap_or(session.now));
    if session.output.data(&report)? {
        return Ok(Outcome::Done);
    }
    let mut text = text::render(&report, session.output.paint);
    text.push_str(&next(args, &report, &session.program));
    session.output.text(&text)?;
    Ok(Outcome::Done)
}

/// The command that is useful now.
fn next(args: &Args, report: &PlanReport, program: &str) -> String {
    let each = |files: &[PathBuf]| {
        files.iter().map(|file| typed("-f", slice::from_ref(file))).collect::<Vec<String>>().join(" ")
    };
    let held = report.add_ons.iter().find_map(|addon| Some((addon, addon.held_deletions?)));
    let source = &args.source;
    let changes: Vec<PathBuf> = match source.is_live() {
        true => source.files.iter().chain(&source.change).cloned().collect(),
        false => source.change.clone(),
    };
    let next = if let Some((addon, count)) = held {
        let name = &addon.name;
        format!(
            "kubectl annotate clustermanagementaddon {name} {}={count} # if they shall go",
            annotations::ALLOW_DELETIONS
        )
    } else if report.has_errors() && !(source.files.is_empty() && source.change.is_empty()) {
        let all: Vec<PathBuf> = source.files.iter().chain(&source.change).cloned().collect();
        format!("{program} lint {}", typed("-f", &all))
    } else if report.has_errors() {
        format!("{program} explain {}", source.typed())
    } else if !changes.is_empty() {
        format!("{program} rehearse {} # and then kubectl apply {}", source.typed(), each(&changes))
    } else if source.is_live() {
        format!("{program} rehearse {} # how long it takes, and where it would stop", source.typed())
    } else if report.add_ons.iter().any(|addon| addon.installed) {
        format!("{program} plan {} --change FILE # to see what a change would do", source.typed())
    } else {
        let mut files: Vec<PathBuf> = report.add_ons.iter().map(|addon| PathBuf::from(&addon.file)).collect();
        files.dedup();
        format!("kubectl apply {}", each(&files))
    };
    format!("Nothing was written. Next: {next}\n")
}
