//! `aviary plan`: shows what would happen to every cluster, with the code that would decide it.
//! Writes nothing.

mod radius;
pub(crate) mod report;
mod text;
mod waves;

use std::path::PathBuf;
use std::slice;

use aviary_api::names::annotations;
use jiff::Timestamp;

use super::source::SourceArgs;
use super::{Outcome, Session, typed};
use crate::live::block_on;
use report::PlanReport;

const DESCRIPTION: &str = "\
Show what would happen: clusters added, removed and started, the waves, and what clusters wait for. Nothing is written.

With ADDON, the add-on is read from the hub, and the plan shows what its manager does next. Files are applied to the state of the hub as \
kubectl apply would do it, and their changes are shown field by field. The same happens without ADDON if --live, --kubeconfig or \
--context is given. Otherwise no hub is used, and the files are the whole fleet.

Without a hub, the fleet consists of all objects in the files: ClusterManagementAddOns, ManagedClusterAddOns, ManagedClusters, Placements, \
PlacementDecisions, ManifestWorks, AddOnTemplates, AddOnHubConfigs and AddOnDeploymentConfigs. An object of any other kind is \
a config. Objects of --change are applied to the others as kubectl apply would do it.

Without a hub, missing objects are assumed, and every assumption is printed: without ManagedClusters, every named cluster exists; \
without a Placement, its PlacementDecisions are used; without ManifestWorks, an instance runs what its status reports.

If the files change a Placement, or clusters by which it selects, its clusters are chosen again by the rules of Aviary's placement \
controller. The plan says so, and where these rules cannot tell what the hub's controller will choose, it warns that it uses the decisions \
from before the change.

The waves show the best case, in which every cluster succeeds immediately.";

const EXAMPLES: &str = "\
Examples:
  What would these files do on an empty hub?
    $ aviary plan -f addon.yaml -f decisions.yaml

  What is an add-on on the hub about to do?
    $ aviary plan helloworld

  What would a change do to the fleet on the hub?
    $ aviary plan helloworld -f v2.yaml

  The same without a hub, from a copy of its objects
    $ kubectl get -A -o yaml cma,mca,managedclusters,placements,placementdecisions,\\
        addontemplates,addonhubconfigs,addondeploymentconfigs,manifestworks > fleet.yaml
    $ aviary plan -f fleet.yaml --change v2.yaml

  How many clusters of each region are in the first wave?
    $ aviary plan -f fleet.yaml --label region -o json \\
        | jq '.addOns[0].waves.list[0].byLabel'";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; later versions may add fields, but never change or remove one
  now            the time of the plan
  notes[]        assumptions about the fleet, and what was ignored
  changes[]      with a hub, what the files change there: {kind, namespace, name, change,
                 fields[]}; change is Created or Changed; fields[]: {path, from, to}
  addOns[]
    name, file, document; with a hub, file is hub and document 0
    clusters     how many clusters are selected or have an instance
    leftAlone    why Aviary does not manage the add-on; absent otherwise
    atRest       nothing would be written
    removals[]   deleted instances: {reason, message, count, clusters[]}
    creates[]    created instances: {kind, placement, from, to, count, clusters[]}
    starts[]     clusters assigned another version or revision: as creates[]
    inFlight[]   clusters in flight: as removals[]
    failed[]     clusters that failed: as removals[]
    waiting[]    clusters that are not started, and why: as removals[]
    settled      how many clusters are up to date
    placements[] {placement, reason, message, desired, target, canary, paused, budget,
                 slotsUsed, governed, settled, inFlight, failed, waiting, leaving,
                 onTarget}; budget is absent if all clusters start at once; the counts
                 are what the hub records now, before the plan, as in aviary status
    contents[]   what the desired revisions change: {placements[], from, to, configs[]};
                 configs[]: {kind, from, to, fields[]}; fields[]: {path, from, to}
    undecided[]  placements for which no clusters have been chosen yet
    waves        {count, end, unsettled[], fleetByLabel, list[]}; end is Settled, Stands
                 (nothing moves any more by itself) or Long (list[] is cut, count is
                 estimated); unsettled[]: clusters not settled then, as removals[]
      list[]     {wave, afterSeconds, count, sharePercent, reachedPercent, moves[],
                 byLabel}; moves[] as creates[]; byLabel: label, value, count
    problems[]   {severity, reason, message}
    notes[]      assumptions about the add-on, and what others have made
    takeOver     {accepted, adopted, rewritten}: clusters whose works stay as another
                 manager rendered them, instances of OCM's manager that the install
                 strategy takes over, and works that the plan writes over; absent if
                 nothing is taken over
    byUsers      how many instances users have made: they are deleted with the add-on;
                 absent if there are none

Exit codes:
  0 success; 1 the plan has errors (problems[] with severity Error), or a file is
  invalid or the hub could not be read, and nothing was planned; 2 wrong usage";

/// Show what would happen: clusters added, removed and started, the waves, and what clusters wait
/// for
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,

    /// Break the waves down by this cluster label; may be given several times. By default, by
    /// labels that divide the clusters into at most ten groups
    #[arg(long, value_name = "KEY")]
    label: Vec<String>,

    /// The time to plan for, such as 2026-01-31T12:00:00Z [default: now]
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let fleets = match block_on(args.source.load(session))? {
        Ok(fleets) => fleets,
        Err(faults) => return Ok(session.output.refuse(&faults)),
    };
    let report = PlanReport::of(fleets, &args.label, args.now.unwrap_or(session.now));
    let outcome = if report.has_errors() { Outcome::NotDone } else { Outcome::Done };
    if session.output.data(&report)? {
        return Ok(outcome);
    }
    let mut text = text::render(&report, session.output.is_narrow(), session.output.paint);
    text.line(next(args, &report, &session.program));
    session.output.text(&text)?;
    Ok(outcome)
}

/// Suggests how to find and fix the errors of the plan.
fn mend(args: &Args, report: &PlanReport, program: &str) -> String {
    let source = &args.source;
    let names: Vec<&str> =
        report.add_ons.iter().filter(|addon| addon.has_errors()).map(|addon| addon.name.as_str()).collect();
    let again = format!("{program} plan {}", source.typed());
    match (&source.addon, source.files.is_empty() && source.change.is_empty()) {
        // What is wrong is on the hub, and explain tells what to do about it.
        (Some(addon), true) => {
            format!("Next: {program} explain {addon}{} # what is wrong, and what to do", source.hub.typed())
        }
        _ => format!("Fix the problems of {} above, and then run: {again}", names.join(", ")),
    }
}

/// Suggests the next command.
fn next(args: &Args, report: &PlanReport, program: &str) -> String {
    let each = |files: &[PathBuf]| {
        files.iter().map(|file| typed("-f", slice::from_ref(file))).collect::<Vec<String>>().join(" ")
    };
    let held = report.add_ons.iter().find_map(|addon| Some((addon, addon.held_deletions?)));
    let source = &args.source;
    let kubectl = source.hub.hub.kubectl();
    let changes: Vec<PathBuf> = match source.is_live() {
        true => source.files.iter().chain(&source.change).cloned().collect(),
        false => source.change.clone(),
    };
    let next = if let Some((addon, count)) = held {
        let name = &addon.name;
        format!(
            "{kubectl} annotate clustermanagementaddon {name} {}={count} # to approve the deletion",
            annotations::ALLOW_DELETIONS
        )
    } else if report.has_errors() {
        return format!("Nothing was written. {}", mend(args, report, program));
    } else if !changes.is_empty() {
        format!("{program} rehearse {} # and then {kubectl} apply {}", source.typed(), each(&changes))
    } else if source.is_live() {
        format!("{program} rehearse {} # how long it takes, and where it would stop", source.typed())
    } else if report.add_ons.iter().any(|addon| addon.installed) {
        format!("{program} plan {} --change FILE # to see what a change would do", source.typed())
    } else {
        let mut files: Vec<PathBuf> = report.add_ons.iter().map(|addon| PathBuf::from(&addon.file)).collect();
        files.dedup();
        format!("{kubectl} apply {}", each(&files))
    };
    format!("Nothing was written. Next: {next}")
}
