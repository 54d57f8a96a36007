//! `aviary rehearse`: the real decisions on a simulated fleet in virtual time; nothing is written.

mod page;
pub(crate) mod report;
pub(crate) mod text;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aviary_engine::observed::Observed;
use aviary_engine::simulate::agents::Profile;
use aviary_engine::simulate::fleet;
use aviary_engine::{duration, simulate};
use jiff::Timestamp;

use super::source::Source;
use super::{Outcome, Session};
use crate::live::block_on;
use report::RehearsalReport;

const DESCRIPTION: &str = "\
Rehearse a rollout: the code that would decide on the hub decides on a simulated fleet, in virtual time. Says how long it \
takes, how many clusters are exposed at the worst moment, and where it would stop. Nothing is written, and the same seed \
gives the same answer to the byte.

The fleet is the one on the hub or in the files, as for aviary plan. With --clusters the placements that have no decisions get so many \
clusters, a tenth of them for placements that are somebody's canary, as if all of them ran the revision before.";

const EXAMPLES: &str = "\
Examples:
  How would this canary rollout go on 10,000 clusters
    $ aviary rehearse -f addon.yaml -f configs.yaml --clusters 10000

  And if one cluster in fifty fails, and one in twenty cannot be reached
    $ aviary rehearse -f addon.yaml -f configs.yaml --clusters 10000 --fail 2% --offline 5%

  How long does it take, over twenty fleets
    $ aviary rehearse -f addon.yaml -f configs.yaml --clusters 10000 --runs 20

  What would a change do to the fleet of the hub, as a page to show around
    $ aviary rehearse helloworld -f v2.yaml --fail 2% --report rehearsal.html

  The same without a hub, from a copy of its objects
    $ aviary rehearse -f fleet.yaml --change v2.yaml";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; a later version may add fields, and changes or removes none
  profile        {seed, runs, latencySeconds[2], fail, offline, flap}
  addOns[]
    name, clusters
    runs         {count, settled, p50Seconds, p90Seconds, worstSeconds}
    first        the run with the first seed:
      seconds    how long it took
      settled    every cluster has what it should have
      ranOut     it was given up while something still moved
      passes, writes
      placements[] {placement, governed, settled, failed, waiting, budget, peakExposed,
                 reason, message}
      timeline[] {seconds, placements[]: {done, inFlight, failed}}; done: has settled
                 on what its placement wants
      starts[]   {seconds, cluster, placement, to}, in order
      unsettled[] {reason, message, count, clusters[]}

Exit codes:
  0 every cluster of every run settled; 1 a file is wrong or the hub could not be read, or
  some cluster did not settle; 2 wrong usage";

/// Rehearse a rollout on a simulated fleet: how long, how exposed, where it would stop
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// Give placements without decisions so many clusters in all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clusters: Option<u32>,

    /// The share of clusters on which a new revision fails, as in 2% or 0.02
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    fail: Share,

    /// The share of clusters that cannot be reached
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    offline: Share,

    /// The share of clusters that become unavailable once after an update, and recover
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    flap: Share,

    /// The shortest and the longest time that a cluster takes
    #[arg(long, value_name = "FROM..TO", default_value = "10s..1m")]
    slow: Latency,

    /// Which of all possible fleets
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Rehearse so many fleets, with seeds from --seed on
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// The time at which it begins, as in 2026-01-31T12:00:00Z; by default the latest time that the files tell of, or with a
    /// hub now
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,

    /// Write the rehearsal as one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// A part of the whole.
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
            .ok_or_else(|| anyhow!("{text} is not a share: give one from 0% to 100%, or from 0 to 1"))
    }
}

/// From the fastest cluster to the slowest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency(pub(crate) Duration, pub(crate) Duration);

impl FromStr for Latency {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let parse = |text: &str| duration::parse(text).map(Option::unwrap_or_default);
        let (from, to) = (parse(from)?, parse(to)?);
        if from > to {
            return Err(anyhow!("{text} goes backwards: give the shorter time first"));
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
        // On a hub clocks run on to this day; in files they stand where the files were written.
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
        let mut text = text::render(&report, session.output.paint);
        text.push_str(&next(args, session, outcome));
        session.output.text(&text)?;
    }
    Ok(outcome)
}

fn profile(args: &Args, seed: u64, clusters: usize) -> Profile {
    // A manager that looks less often than every second loses little time on a large fleet, and takes far fewer passes.
    const CLUSTERS_PER_SECOND: u64 = 2500;
    let Latency(from, to) = args.slow;
    Profile {
        seed,
        latency: (from, to),
        fail: args.fail.0,
        offline: args.offline.0,
        flap: args.flap.0,
        tick: Duration::from_secs((clusters as u64 / CLUSTERS_PER_SECOND).max(1)),
        ..Profile::default()
    }
}

/// The latest time that any status tells of, so that clocks in it run on from there.
fn latest(observed: &Observed) -> Option<Timestamp> {
    let instances = observed.instances.values().flat_map(|instance| &instance.status.conditions);
    let placements = observed.addon.status.placements.values().flat_map(|recorded| &recorded.conditions);
    instances.chain(placements).filter_map(|condition| condition.since).max()
}

/// The command that is useful now.
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
                "{nothing} Next: {program} rehearse {files} … --fail 5% # to see where a bad revision stops\n"
            )
        }
        _ => format!("{nothing} Next: {program} plan {files} # to see what would happen first\n"),
    }
}
