//! `aviary fleet`: simulates clusters on any Kubernetes API server.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aviary_controller::{Outage, Reach};
use aviary_engine::simulate::agents::Profile;
use aviary_fleet::{
    Behaviour, FailureScope, FleetTally, LabelShare, Lie, RegisterError, Registered, SimulatedFailure,
    SimulatedFleet,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use tokio::sync::watch;

use super::rehearse::{FailureArg, Latency, Share};
use super::{Outcome, Session};
use crate::connect::{Connection, HubArgs, refused};
use crate::live::seconds;
use crate::output::{Output, Printout, counted};
use crate::process::stop_signal;

const DESCRIPTION: &str = "\
Simulate clusters on a hub. The command registers them with their namespaces and labels, and acts as the work agent of all of them: \
it reports on every ManifestWork in their namespaces as an agent would, after some time and with the requested faults. \
Nothing really runs.

The behaviour of a cluster depends only on the seed, its name and the revision, so a fleet behaves as aviary rehearse predicts for the \
same seed and times. Agents report what real ones would: where nothing of a work is probed, only --failure refuses and silent \
differ from success. Clusters from an earlier run are taken over; clusters that are not simulated are never changed. \
The clusters stay when the command ends, but without an agent; --remove deletes them.";

const EXAMPLES: &str = "\
Examples:
  Add 500 clusters to an embedded hub, every fifth of them a canary
    $ aviary fleet --clusters 500 --label stage=canary:20% --kubeconfig ./hub/kubeconfig

  Updates take up to a minute, one cluster in fifty fails, one in twenty is unreachable
    $ aviary fleet --clusters 5000 --latency 5s..1m --fail 2% --offline 5%

  A version whose pods never become ready
    $ aviary fleet --clusters 500 --fail-version v0.12.0

  A version that no cluster can apply
    $ aviary fleet --clusters 500 --fail-version v0.12.0 --failure refuses

  Delete all simulated clusters of a hub
    $ aviary fleet --remove

Exit codes: 0 stopped, or all clusters removed; 1 a problem with the hub or the fleet; 2 wrong usage.";

/// Simulate clusters on a Kubernetes API server
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Number of clusters
    #[arg(
        long, value_name = "N", required_unless_present = "remove",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    clusters: Option<u32>,

    /// Prefix of the cluster names; a number follows
    #[arg(long, value_name = "NAME", default_value = "cluster")]
    prefix: String,

    /// A label, and the share of the clusters that have it; without a share, all have it. May be
    /// given several times
    #[arg(long, value_name = "KEY=VALUE[:SHARE]")]
    label: Vec<LabelArg>,

    /// The shortest and the longest time that a cluster needs for an update
    #[arg(long, value_name = "FROM..TO", default_value = "1s..5s")]
    latency: Latency,

    /// The share of clusters on which a new revision fails, such as 2% or 0.02
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    fail: Share,

    /// How it fails: its pods are never ready, exit at start, become ready and crash, or flap
    /// between the two; the cluster refuses it; or the agent stays silent
    #[arg(long, value_name = "KIND", value_enum, default_value_t)]
    failure: FailureArg,

    /// Make this version fail. SHARE is the fraction of clusters on which it fails (default: all).
    /// May be given several times
    #[arg(long, value_name = "VERSION[:SHARE]")]
    fail_version: Vec<ValueShare>,

    /// Make the clusters with this label fail. SHARE is the fraction that fails (default: all). May
    /// be given several times
    #[arg(long, value_name = "KEY=VALUE[:SHARE]")]
    fail_label: Vec<LabelArg>,

    /// The share of clusters that become unavailable once after an update, and recover
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    flap: Share,

    /// The share of clusters that are unreachable
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    offline: Share,

    /// A false report of agents, and the share of agents that make it: old-generation,
    /// future-generation, only-available or silence
    #[arg(long, value_name = "LIE[:SHARE]")]
    lie: Vec<LieArg>,

    /// Seed for the simulated fleet
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Delete all simulated clusters of the hub with everything that belongs to them, and exit
    #[arg(long, conflicts_with_all = ["clusters", "label", "fail_version", "fail_label", "lie"])]
    remove: bool,

    #[command(flatten)]
    hub: HubArgs,
}

/// A value, and the share of clusters that it applies to.
#[derive(Clone, Debug)]
struct ValueShare {
    what: String,
    share: f64,
}

impl FromStr for ValueShare {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (what, share) = match text.rsplit_once(':') {
            Some((what, share)) => (what, Share::from_str(share)?.0),
            None => (text, 1.0),
        };
        if what.is_empty() {
            return Err(anyhow!("{text} has a share but no value"));
        }
        Ok(Self { what: what.to_owned(), share })
    }
}

/// A label, and the share of clusters that have it.
#[derive(Clone, Debug)]
struct LabelArg {
    key: String,
    value: String,
    share: f64,
}

impl FromStr for LabelArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let ValueShare { what, share } = text.parse()?;
        let (key, value) = what.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            anyhow!("{text} is not a label: use for example stage=canary or stage=canary:20%")
        })?;
        Ok(Self { key: key.to_owned(), value: value.to_owned(), share })
    }
}

/// A false report, and the share of clusters that make it.
#[derive(Clone, Debug)]
struct LieArg(Lie, f64);

impl FromStr for LieArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let ValueShare { what, share } = text.parse()?;
        let lie = match what.as_str() {
            "old-generation" => Lie::OldGeneration,
            "future-generation" => Lie::FutureGeneration,
            "only-available" => Lie::OnlyAvailable,
            "silence" => Lie::Silence,
            _ => {
                return Err(anyhow!(
                    "{what} is not a known false report: use old-generation, future-generation, only-available or silence"
                ));
            }
        };
        Ok(Self(lie, share))
    }
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    if args.remove {
        return runtime.block_on(remove(args, session));
    }
    runtime.block_on(simulate(args, session))
}

async fn simulate(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    // Registered first, so that no signal is lost during startup.
    let stopped = stop_signal()?;
    let mut stopped = std::pin::pin!(stopped);
    let labels: Vec<LabelShare> = args.label.iter().map(label_share).collect();
    let count = args.clusters.unwrap_or_default() as usize;
    let members = aviary_fleet::members(&args.prefix, count, &labels, args.seed)?;
    let connection = args.hub.connect().await?;
    let fleet = SimulatedFleet::new(connection.client.clone(), members, behaviour(args));
    let bar = progress(&session.output, count, "registering");
    let registered = tokio::select! {
        registered = fleet.register(|| bar.inc(1)) => registered.map_err(|error| told(&error, &connection))?,
        () = &mut stopped => {
            bar.finish_and_clear();
            session.output.line("Stopped while registering clusters; the same command continues from there.")?;
            return Ok(Outcome::NotDone);
        }
    };
    bar.finish_and_clear();
    let program = &session.program;
    let hub = args.hub.typed();
    let mut text = welcome(&registered, &connection);
    text.line(nature(args));
    text.gap();
    text.line(format_args!("List:    {} get managedclusters", args.hub.kubectl()));
    text.line(format_args!("Remove:  {program} fleet --remove{hub}"));
    text.line("Press Ctrl-C to stop.");
    session.output.text(&text)?;
    session.output.finish()?;
    let reach = Reach::default();
    let outages =
        report_outages(reach.subscribe(), &fleet, &args.hub, &mut session.output, &connection.server);
    tokio::select! {
        () = fleet.run(stopped) => {}
        () = async { tokio::join!(reach.keep_asking(connection.client.clone()), outages); } => {}
    }
    session.output.line(farewell(&fleet.tally()))?;
    Ok(Outcome::Done)
}

/// Prints when the hub is lost, and when it is back and agents have reconnected. Ends when nobody
/// asks the hub any more.
async fn report_outages(
    mut outage: watch::Receiver<Option<Outage>>,
    fleet: &SimulatedFleet,
    hub: &HubArgs,
    output: &mut Output,
    server: &str,
) {
    let mut lost = false;
    while outage.changed().await.is_ok() {
        let current = outage.borrow_and_update().clone();
        let now = seconds(Timestamp::now());
        let line = match current {
            Some(outage) if !lost => {
                format!("{now}  hub {server} unreachable: {}; trying again", outage.cause)
            }
            None if lost => {
                // Without its kubeconfig, the connections that there are go on.
                if let Ok(connection) = hub.connect().await {
                    fleet.reconnect(connection.client);
                }
                format!("{now}  hub {server} reachable again")
            }
            _ => continue,
        };
        lost = !lost;
        // A reader that has gone away is not an error.
        let _ = output.line(line).and_then(|()| output.finish());
    }
}

fn label_share(arg: &LabelArg) -> LabelShare {
    LabelShare { key: arg.key.clone(), value: arg.value.clone(), share: arg.share }
}

fn behaviour(args: &Args) -> Behaviour {
    let Latency(from, to) = args.latency;
    let by_version = args
        .fail_version
        .iter()
        .map(|arg| SimulatedFailure { scope: FailureScope::Version(arg.what.clone()), share: arg.share });
    let by_label = args.fail_label.iter().map(|arg| SimulatedFailure {
        scope: FailureScope::Label { key: arg.key.clone(), value: arg.value.clone() },
        share: arg.share,
    });
    Behaviour {
        profile: Profile {
            seed: args.seed,
            latency: (from, to),
            fail: args.fail.0,
            failure: args.failure.into(),
            offline: args.offline.0,
            flap: args.flap.0,
            ..Profile::default()
        },
        failures: by_version.chain(by_label).collect(),
        lies: args.lie.iter().map(|LieArg(lie, share)| (*lie, *share)).collect(),
        ..Behaviour::default()
    }
}

fn welcome(registered: &Registered, connection: &Connection) -> Printout {
    let Registered { created, taken_over, offline, others } = registered;
    let clusters = counted(created + taken_over, "simulated cluster");
    let mut text = Printout::of(format_args!("{clusters} at {}", connection.server));
    text.line(format_args!("  registered  {created} new, {taken_over} existing"));
    if *offline > 0 {
        text.line(format_args!("  offline     {offline}"));
    }
    if *others > 0 {
        let others = counted(*others, "cluster");
        text.line(format_args!("  others      {others} from an earlier run, without an agent"));
    }
    text
}

fn nature(args: &Args) -> String {
    let Latency(from, to) = args.latency;
    let percent = |share: f64| Percent(share);
    format!(
        "  updates take {} to {}, {} fail, {} flap; seed {}",
        shown(from),
        shown(to),
        percent(args.fail.0),
        percent(args.flap.0),
        args.seed
    )
}

fn farewell(tally: &FleetTally) -> String {
    let FleetTally { seen, reported, refused, retried } = tally;
    let mut text =
        format!("Stopped. The agents saw {seen} new or changed works and wrote {reported} reports");
    if *refused > 0 {
        text.push_str(&format!(", {refused} of them about failures"));
    }
    if *retried > 0 {
        text.push_str(&format!("; {retried} were retried"));
    }
    text.push('.');
    text
}

async fn remove(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let connection = args.hub.connect().await?;
    let bar = progress(&session.output, 0, "removing");
    let removed = aviary_fleet::remove(&connection.client, || bar.inc(1)).await;
    bar.finish_and_clear();
    let removed = removed.map_err(|error| told(&error, &connection))?;
    let what = match removed.clusters {
        0 if removed.namespaces == 0 => "There are no simulated clusters".to_owned(),
        clusters => format!("Removed {}", counted(clusters, "simulated cluster")),
    };
    let mut text = Printout::of(format_args!("{what} at {}.", connection.server));
    if removed.leaving > 0 {
        text.line(format_args!(
            "{} not empty yet: objects in them have finalizers.",
            match removed.leaving {
                1 => "1 namespace is".to_owned(),
                many => format!("{many} namespaces are"),
            }
        ));
    }
    session.output.text(&text)?;
    Ok(if removed.leaving > 0 { Outcome::NotDone } else { Outcome::Done })
}

/// Describes why a fleet could not be registered, and what to do.
fn told(error: &RegisterError, connection: &Connection) -> anyhow::Error {
    match error {
        RegisterError::Foreign { .. } => anyhow!("{error}, with --prefix"),
        RegisterError::List { what, source } => refused(&format!("list {what}"), source, &connection.server),
        RegisterError::Write { verb, what, name, source } => {
            refused(&format!("{verb} {what} {name}"), source, &connection.server)
        }
    }
}

/// A progress bar on a terminal; draws nothing otherwise. Draws only when it moves, because no
/// other thread may write to the streams.
pub(crate) fn progress(output: &Output, count: usize, doing: &'static str) -> ProgressBar {
    let target =
        if output.is_terminal() { ProgressDrawTarget::stdout() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target((count > 0).then_some(count as u64), target);
    let style = if count > 0 { "{msg} {wide_bar} {pos}/{len}" } else { "{msg} {pos}" };
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style.progress_chars("#>."));
    }
    bar.with_message(doing)
}

struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", (self.0 * 1000.0).round() / 10.0)
    }
}

fn shown(time: Duration) -> String {
    match time.as_millis() {
        0 => "0s".to_owned(),
        millis if millis < 1000 => format!("{millis}ms"),
        _ => aviary_engine::duration::shown(time),
    }
}
