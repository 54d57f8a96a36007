//! `aviary rehearse`: runs the real decisions on a simulated fleet in virtual time. Writes nothing.

mod page;
pub(crate) mod report;
pub(crate) mod text;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aviary_engine::observed::Observed;
use aviary_engine::simulate::agents::{FailureKind, Profile};
use aviary_engine::simulate::fleet;
use aviary_engine::{duration, simulate};
use jiff::Timestamp;

use super::source::SourceArgs;
use super::{Outcome, Session};
use crate::live::block_on;
use report::RehearsalReport;

const DESCRIPTION: &str = "\
Rehearse a rollout: the manager's decision code runs against a simulated fleet in virtual time. Shows how long the rollout \
takes, how many clusters are exposed at the worst moment, and where it would stop. Nothing is written, and the same seed \
always gives the same output.

The fleet comes from the hub or the files, as for aviary plan. With --clusters, placements without decisions get this many \
clusters in total, a tenth of them for canary placements. All of them run the previous revision at the start.

A simulated agent reports what a real one would: where the add-on has no probed object, only --failure refuses and silent \
differ from success, and the result says how many failures nobody saw.";

const EXAMPLES: &str = "\
Examples:
  How would this canary rollout go on 10,000 clusters?
    $ aviary rehearse -f addon.yaml -f configs.yaml --clusters 10000

  What if one cluster in fifty fails, and one in twenty is unreachable?
    $ aviary rehearse -f addon.yaml -f configs.yaml --clusters 10000 --fail 2% --offline 5%

  How long does it take, over twenty fleets?
    $ aviary rehearse -f addon.yaml -f configs.yaml --clusters 10000 --runs 20

  What would a change do to the fleet on the hub? Write the result as a web page
    $ aviary rehearse helloworld -f v2.yaml --fail 2% --report rehearsal.html

  The same without a hub, from a copy of its objects
    $ aviary rehearse -f fleet.yaml --change v2.yaml";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; later versions may add fields, but never change or remove one
  profile        {seed, runs, latencySeconds[2], fail, offline, flap}
  addOns[]
    name, clusters
    runs         {count, settled, p50Seconds, p90Seconds, worstSeconds}
    first        the run with the first seed:
      seconds    how long it took
      settled    every cluster is up to date
      ranOut     it was stopped while clusters were still moving
      passes, writes
      placements[] {placement, governed, settled, inFlight, failed, waiting, leaving, budget,
                 peakExposed, reason, message}; governed is the sum of the five counts
                 after it
      timeline[] {seconds, placements[]: {done, inFlight, failed}}; done: settled
                 on the desired revision of the placement
      starts[]   {seconds, cluster, placement, to}, in order
      unsettled[] {reason, message, count, clusters[]}
      unseen     clusters with failures or outages that no report shows, as nothing of
                 the add-on is probed there

Exit codes:
  0 every cluster of every run settled; 1 a file is invalid, the hub could not be read, or
  some cluster did not settle; 2 wrong usage";

/// Rehearse a rollout on a simulated fleet: duration, exposure, where it would stop
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,

    /// Give placements without decisions this many clusters in total
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clusters: Option<u32>,

    /// The share of clusters on which a new revision fails, such as 2% or 0.02
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    fail: Share,

    /// How it fails: its pods are never ready, exit at start, become ready and crash, or flap
    /// between the two; the cluster refuses it; or the agent stays silent
    #[arg(long, value_name = "KIND", value_enum, default_value_t)]
    failure: FailureArg,

    /// The share of clusters that are unreachable
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    offline: Share,

    /// The share of clusters that become unavailable once after an update, and recover
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    flap: Share,

    /// The shortest and the longest time that a cluster needs for an update
    #[arg(long, value_name = "FROM..TO", default_value = "10s..1m")]
    slow: Latency,

    /// Seed for the simulated fleet
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Rehearse this many fleets, with consecutive seeds starting at --seed
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// The start time, such as 2026-01-31T12:00:00Z [default: the latest time in the files, or now
    /// with a hub]
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,

    /// Write a report as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// How a revision fails.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum FailureArg {
    #[default]
    NeverReady,
    Exits,
    Crashes,
    Flaps,
    Refuses,
    Silent,
}

impl From<FailureArg> for FailureKind {
    fn from(arg: FailureArg) -> Self {
        match arg {
            FailureArg::NeverReady => Self::NeverReady,
            FailureArg::Exits => Self::Exits,
            FailureArg::Crashes => Self::Crashes,
            FailureArg::Flaps => Self::Flaps,
            FailureArg::Refuses => Self::Refuses,
            FailureArg::Silent => Self::Silent,
        }
    }
}

/// A fraction of the fleet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share(pub(crate) f64);

impl FromStr for Share {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
            None => text.parse::<f64>(),
        };
        share
            .ok()
            .filter(|share| (0.0..=1.0).contains(share))
            .map(Self)
            .ok_or_else(|| anyhow!("{text} is not a share: use 0% to 100%, or 0 to 1"))
    }
}

/// The shortest and the longest time of an update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency(pub(crate) Duration, pub(crate) Duration);

impl FromStr for Latency {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let parse = |text: &str| duration::parse(text).map(Option::unwrap_or_default);
        let (from, to) = (parse(from)?, parse(to)?);
        if from > to {
            return Err(anyhow!("{text} is reversed: give the shorter time first"));
        }
        Ok(Self(from, to))
    }
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let fleets = match block_on(args.source.load(session))? {
        Ok(fleets) => fleets,
        Err(faults) => return Ok(session.output.refuse(&faults)),
    };
    let live = args.source.is_live();
    let mut report = RehearsalReport::new(&profile(args, args.seed, 0), args.runs);
    for addon in fleets.addons {
        let (name, mut observed) = (addon.name, addon.observed);
        // On a hub, clocks run until now. In files, they stopped when the files were written.
        let known = if live { Some(session.now) } else { latest(&observed) };
        let begin = args.now.or(known).unwrap_or(Timestamp::UNIX_EPOCH);
        if let Some(clusters) = args.clusters {
            fleet::populate(&mut observed, clusters as usize, begin);
        }
        let selected = observed.placements.values().any(|selection| !selection.is_empty());
        if !selected && observed.instances.is_empty() {
            return Err(anyhow!(
                "add-on {name} selects no cluster {}: give --clusters N to rehearse with some",
                if live { "on the hub" } else { "in the files" }
            ));
        }
        let seeds = (0..u64::from(args.runs)).map(|run| args.seed.wrapping_add(run));
        let runs = seeds
            .map(|seed| {
                simulate::rehearse(observed.clone(), &profile(args, seed, observed.clusters.len()), begin)
            })
            .collect();
        report.add(name, observed.clusters.len(), runs);
    }
    if let Some(file) = &args.report {
        let page = page::render(&report, &session.program);
        std::fs::write(file, page)
            .with_context(|| format!("failed to write the report {}", file.display()))?;
    }
    let outcome = if report.all_settled() { Outcome::Done } else { Outcome::NotDone };
    if !session.output.data(&report)? {
        let mut text = text::render(&report, session.output.is_narrow(), session.output.paint);
        text.line(next(args, session, outcome));
        session.output.text(&text)?;
    }
    Ok(outcome)
}

fn profile(args: &Args, seed: u64, clusters: usize) -> Profile {
    // On a large fleet the manager plans less often than every second: this loses little time and
    // takes far fewer passes.
    const CLUSTERS_PER_SECOND: u64 = 2500;
    let Latency(from, to) = args.slow;
    Profile {
        seed,
        latency: (from, to),
        fail: args.fail.0,
        failure: args.failure.into(),
        offline: args.offline.0,
        flap: args.flap.0,
        tick: Duration::from_secs((clusters as u64 / CLUSTERS_PER_SECOND).max(1)),
        ..Profile::default()
    }
}

/// The latest time in any status, so that clocks continue from there.
fn latest(observed: &Observed) -> Option<Timestamp> {
    let instances = observed.instances.values().flat_map(|instance| &instance.status.conditions);
    let placements = observed.addon.status.placements.values().flat_map(|recorded| &recorded.conditions);
    instances.chain(placements).filter_map(|condition| condition.since).max()
}

/// Suggests the next command.
fn next(args: &Args, session: &Session, outcome: Outcome) -> String {
    let files = args.source.typed();
    let nothing = match &args.report {
        Some(file) => format!("The report is in {}; nothing else was written.", file.display()),
        None => "Nothing was written.".to_owned(),
    };
    let program = &session.program;
    match outcome {
        Outcome::Done if args.fail.0 == 0.0 => {
            format!(
                "{nothing} Next: {program} rehearse {files} … --fail 5% # to see where a bad revision stops"
            )
        }
        _ => format!("{nothing} Next: {program} plan {files} # to see what would happen first"),
    }
}
