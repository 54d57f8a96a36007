//! `aviary demo`: runs the whole product in one process, and takes one add-on through a series of
//! steps.
//!
//! Owns what is started and stopped. The manager decides what happens, the fleet decides how
//! clusters behave, and [`story`] judges the result by what the hub committed.

mod objects;
mod picture;
mod record;
mod story;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, anyhow, bail};
use aviary_api::ClusterManagementAddOn;
use aviary_controller::{Manager, Settings};
use aviary_engine::observed;
use aviary_engine::simulate::agents::{FailureKind, Profile};
use aviary_fleet::{Behaviour, FailureScope, LabelShare, Member, Races, SimulatedFailure, SimulatedFleet};
use aviary_hub::security::{Identity, Role};
use aviary_hub::{Endpoint, Hub};
use aviary_serve::write_private;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{Next, from_fn};
use jiff::Timestamp;
use kube::Client;
use kube::api::Api;
use serde::Serialize;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::dashboard::{self, ShownHub, Site};
use super::fleet::progress;
use super::rehearse::Latency;
use super::{Outcome, Session, hub, typed};
use crate::connect::Connection;
use crate::output::{Printout, Style, Table, counted};
use crate::process::{listen, stop_signal};
use objects::{ADDON, CANARY, FLEET};
use picture::seconds;
use story::{BAD, Cast, Curtain, DemoContext, Exposure, FIRST, Played};

/// The namespace where the manager keeps its state.
const NAMESPACE: &str = "open-cluster-management";

const DESCRIPTION: &str = "\
Try the whole product on this machine: an embedded hub, a manager and a simulated fleet in one process. The demo takes one add-on \
through a fresh install, a rolling upgrade, a canary upgrade, a bad version that the canary catches, and a rollback.

The demo prints the path of a kubeconfig and the address of the dashboard. Use the kubeconfig with kubectl and the other aviary commands \
in another terminal, and open the dashboard in a browser. The demo runs until you press Ctrl-C. With --once it exits after the last step. \
The result is judged by what the hub committed: which versions run where, and whether more clusters were ever in flight than the budget \
allows.";

const EXAMPLES: &str = "\
Examples:
  Watch a canary catch a bad version, and then try things yourself
    $ aviary demo

  Run all steps, check them, and exit
    $ aviary demo --once

  A larger fleet, kept on disk
    $ aviary demo --clusters 5000 --data-dir ./demo

Exit codes: 0 every step went as expected, 1 a step did not or the demo was interrupted, 2 wrong usage.";

/// Try everything in one process: a hub, a manager, a simulated fleet and an add-on
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Number of clusters; one in five is a canary
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(5..=20_000))]
    clusters: u32,

    /// Exit after the last step, with a summary
    #[arg(long)]
    once: bool,

    /// Begin only when the dashboard is opened or Enter is pressed; the default on a terminal
    #[arg(long, conflicts_with = "once")]
    wait: bool,

    /// Keep the hub's data in this directory, which is created if it does not exist. By default the
    /// data is in memory and discarded on exit
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Loopback address for the hub; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Loopback address for the dashboard; port 0 picks a free port [default: 127.0.0.1:0; none
    /// with --once]
    #[arg(long, value_name = "ADDR")]
    dashboard: Option<SocketAddr>,

    /// Keep the dashboard's token in this file, so that its address stays the same
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// The shortest and the longest time that a cluster needs for an update
    #[arg(long, value_name = "FROM..TO", default_value = "200ms..800ms")]
    latency: Latency,

    /// Seed for the simulated fleet
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// The result of `--once`, as data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DemoSummary<'a> {
    version: u32,
    clusters: usize,
    as_told: bool,
    steps: &'a [Played],
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    if !args.listen.ip().is_loopback() {
        bail!("other machines can reach {}: a demo listens only on a loopback address", args.listen);
    }
    if let Some(address) = args.dashboard.filter(|address| !address.ip().is_loopback()) {
        bail!("other machines can reach {address}: a demo listens only on a loopback address");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(demo(args, session))
}

async fn demo(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    // Registered first, so that no signal is lost during startup.
    let mut stopped = Box::pin(stop_signal()?);
    let house = House::open(args).await?;
    let client = house.hub.client();
    let told_before = is_told(&client).await?;
    if told_before && args.once {
        let directory = args.data_dir.as_deref().unwrap_or(Path::new(""));
        bail!(
            "the demo has already run in {}: give another directory, or omit --once to look at its data",
            directory.display()
        );
    }
    let cast = Cast::new(args.clusters as usize);
    let site = match page_address(args, session) {
        Some(address) => Some(house.show(address, args.token_file.as_deref()).await?),
        None => None,
    };
    if session.output.format().is_none() {
        let page = site.as_ref().map(|site| site.address.as_str());
        session.output.text(&house.welcome(cast, page, &session.program))?;
        session.output.finish()?;
    }
    for object in objects::beginning()?.iter().chain(&objects::release(FIRST)?) {
        objects::put(&client, object).await?;
    }
    let fleet = SimulatedFleet::new(client.clone(), members(cast, args.seed)?, behaviour(args));
    let bar = progress(&session.output, cast.all(), "registering clusters");
    tokio::select! {
        registered = fleet.register(|| bar.inc(1)) => drop(registered.context("failed to register the clusters")?),
        () = &mut stopped => {
            bar.finish_and_clear();
            session.output.line("Stopped before the first step.")?;
            house.close(Vec::new(), site).await?;
            return Ok(Outcome::NotDone);
        }
    }
    bar.finish_and_clear();
    let (news, mut watches) = record::follow(&client);
    let writes = Arc::new(AtomicUsize::new(0));
    let manager = Running::start(|stop| manager(counted_client(&house.hub, &writes)).run(stop));
    let agents = Running::start(|stop| {
        let fleet = fleet.clone();
        async move { fleet.run(stop).await }
    });
    let mut context = DemoContext::new(client, cast, news, writes);
    let audience = site.as_ref().filter(|_| !told_before && waits(args));
    let curtain = match (told_before, audience) {
        (true, _) => Curtain::Told,
        (false, Some(site)) if !is_opened(site, session, &mut stopped).await? => Curtain::Interrupted,
        (false, _) => context.play(&mut session.output, &mut stopped).await?,
    };
    if !told_before {
        tell_end(args, session, &context, &curtain)?;
    }
    if !args.once && curtain != Curtain::Interrupted {
        session.output.text(&farewell(told_before, &curtain, &session.program))?;
        session.output.finish()?;
        stopped.await;
    }
    watches.shutdown().await;
    house.close(vec![manager, agents], site).await?;
    if !args.once {
        session.output.line("Demo stopped.")?;
    }
    // With --once, an interrupted demo counts as failed.
    let well = curtain == Curtain::Told || (curtain == Curtain::Interrupted && !args.once);
    Ok(if well { Outcome::Done } else { Outcome::NotDone })
}

/// Whether the first step waits for somebody to look: a demo takes less time than opening a page.
fn waits(args: &Args) -> bool {
    args.wait || (!args.once && std::io::stdin().is_terminal() && std::io::stdout().is_terminal())
}

/// Waits until the page is opened or Enter is pressed. Returns `false` if the demo is stopped
/// instead.
async fn is_opened(
    site: &Site,
    session: &mut Session,
    stopped: &mut (impl Future<Output = ()> + Unpin),
) -> anyhow::Result<bool> {
    session.output.line("Open the dashboard, or press Enter: then the first step begins.")?;
    session.output.finish()?;
    let (enter, entered) = oneshot::channel();
    // Nothing can end this thread, and it ends with the process.
    std::thread::spawn(move || {
        let read = std::io::stdin().read_line(&mut String::new());
        // At its end, standard input says nothing.
        if read.is_ok_and(|bytes| bytes > 0) {
            let _ = enter.send(());
        }
    });
    let entered = async {
        if entered.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    Ok(tokio::select! {
        () = site.visited() => true,
        () = entered => true,
        () = stopped => false,
    })
}

/// Whether the add-on exists from an earlier demo.
async fn is_told(client: &Client) -> anyhow::Result<bool> {
    let addons: Api<ClusterManagementAddOn> = Api::all(client.clone());
    Ok(addons.get_opt(ADDON).await.context("failed to look for the add-on")?.is_some())
}

/// The address of the page, if it is served. With -o json or --once it is not served by default.
fn page_address(args: &Args, session: &Session) -> Option<SocketAddr> {
    let by_itself = !args.once && session.output.format().is_none();
    args.dashboard.or_else(|| by_itself.then(|| SocketAddr::from(([127, 0, 0, 1], 0))))
}

fn members(cast: Cast, seed: u64) -> anyhow::Result<Vec<Member>> {
    let all = |key: &str, value: &str| LabelShare { key: key.into(), value: value.into(), share: 1.0 };
    let mut members = aviary_fleet::members("aws", cast.fleet, &[all("cloud", "aws")], seed)?;
    let labels = [all("cloud", "aws"), all("stage", "canary")];
    members.extend(aviary_fleet::members("canary", cast.canary, &labels, seed)?);
    Ok(members)
}

fn behaviour(args: &Args) -> Behaviour {
    let Latency(from, to) = args.latency;
    Behaviour {
        profile: Profile {
            seed: args.seed,
            latency: (from, to),
            failure: FailureKind::Exits,
            ..Profile::default()
        },
        failures: vec![SimulatedFailure { scope: FailureScope::Version(BAD.into()), share: 1.0 }],
        // The record takes what is reported as applied for what runs, and would call it unhealthy.
        races: Races { stale_applied: 0.0, unobserved: 0.0, ..Races::MEASURED },
        ..Behaviour::default()
    }
}

fn manager(client: Client) -> Manager {
    let settings = Settings {
        namespace: NAMESPACE.into(),
        identity: format!("demo-{}", std::process::id()),
        // Without a lease, other commands would report that no manager runs here.
        leader_elect: true,
        verify: true,
        placement: true,
        options: observed::Options::default(),
        clock: Arc::new(Timestamp::now),
    };
    Manager::new(client, settings)
}

/// An in-process client that counts its writes, except renewals of its lease.
fn counted_client(hub: &Hub, writes: &Arc<AtomicUsize>) -> Client {
    let writes = Arc::clone(writes);
    let count = from_fn(move |request: Request, next: Next| {
        if request.method() != Method::GET && !request.uri().path().contains("/leases") {
            writes.fetch_add(1, Ordering::Relaxed);
        }
        next.run(request)
    });
    let administrator = axum::Extension(Identity::new("system:admin", Role::Admin));
    Client::new(hub.router().layer(count).layer(administrator), "default")
}

/// A task that runs until it is stopped.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start<F>(run: impl FnOnce(futures_util::future::BoxFuture<'static, ()>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(run(Box::pin(async { drop(stopped.await) })));
        Self { stop, task }
    }

    async fn stop(self) -> anyhow::Result<()> {
        // The task may have ended already.
        let _ = self.stop.send(());
        self.task.await.context("a part of the demo did not stop cleanly")
    }
}

/// The hub, its listener, and its kubeconfig.
struct House {
    hub: Hub,
    server: Running,
    address: SocketAddr,
    kubeconfig: PathBuf,
    data: String,
    /// Deleted on drop.
    _scratch: Option<TempDir>,
}

impl House {
    async fn open(args: &Args) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(args.listen).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => anyhow!(
                "failed to listen on {}: the port is in use: choose another with --listen, or omit it to use a free port",
                args.listen
            ),
            _ => anyhow::Error::new(error).context(format!("failed to listen on {}", args.listen)),
        })?;
        let address = listener.local_addr().context("failed to read the address")?;
        let (hub, endpoint, directory, scratch) = match &args.data_dir {
            Some(directory) => {
                let hub = Hub::open(directory, hub::options()).await.context("failed to open the hub")?;
                let endpoint = Endpoint::open(&hub, directory, &[])?;
                (hub, endpoint, directory.clone(), None)
            }
            None => {
                let scratch = scratch()?;
                let hub = Hub::ephemeral(hub::options()).await.context("failed to start the hub")?;
                let endpoint = Endpoint::ephemeral(&hub, &[])?;
                (hub, endpoint, scratch.path().to_owned(), Some(scratch))
            }
        };
        hub::install_kinds(&hub, false).await?;
        let kubeconfig = directory.join("kubeconfig");
        let token = hub::known_token(&kubeconfig, &endpoint)?;
        write_private(&kubeconfig, endpoint.kubeconfig(address, &token).as_bytes())
            .with_context(|| format!("failed to write {}", kubeconfig.display()))?;
        let served = hub.clone();
        let server = Running::start(|stop| async move {
            if let Err(error) = served.serve(listener, &endpoint, stop).await {
                tracing::error!(error = &error as &dyn std::error::Error, "the hub can no longer be reached");
            }
        });
        let data = match &args.data_dir {
            Some(directory) => directory.display().to_string(),
            None => "in memory; discarded on exit".to_owned(),
        };
        Ok(Self { hub, server, address, kubeconfig, data, _scratch: scratch })
    }

    /// Serves the page for this hub, with writes enabled: this is not a production hub.
    async fn show(&self, address: SocketAddr, token_file: Option<&Path>) -> anyhow::Result<Site> {
        let listener = listen(address, "--dashboard").await?;
        let connection =
            Connection { client: self.hub.client(), server: format!("https://{}", self.address) };
        let over = ShownHub { connection: &connection, namespace: NAMESPACE };
        let token = dashboard::session_token(token_file)?;
        Site::on_loopback(listener, over, dashboard::hosts(address, &[])?, token, true).await
    }

    fn welcome(&self, cast: Cast, page: Option<&str>, program: &str) -> Printout {
        let Cast { fleet, canary } = cast;
        let export =
            typed("export KUBECONFIG=", std::slice::from_ref(&self.kubeconfig)).replacen("= ", "=", 1);
        let clusters = counted(cast.all(), "simulated cluster");
        let mut text = Printout::of(format_args!("A hub, a manager and {clusters} in this process"));
        text.line(format_args!("  hub         https://{}", self.address));
        text.line(format_args!("  data        {}", self.data));
        text.line(format_args!("  kubeconfig  {}", self.kubeconfig.display()));
        text.line(format_args!("  clusters    {fleet} in {FLEET}, {canary} in {CANARY}"));
        if let Some(page) = page {
            text.line(format_args!("  dashboard   {page}"));
        }
        text.gap();
        text.line("From another terminal:");
        text.line(format_args!("  {export}"));
        text.line(format_args!("  kubectl get clustermanagementaddon {ADDON} -o yaml"));
        text.line("  kubectl get managedclusteraddons -A");
        text.line(format_args!("  {program} status {ADDON} -w"));
        text.line(format_args!("  {program} explain {ADDON}"));
        text.gap();
        text
    }

    /// Stops everything that uses the hub, then the hub.
    async fn close(self, workers: Vec<Running>, site: Option<Site>) -> anyhow::Result<()> {
        if let Some(site) = site {
            site.close().await?;
        }
        for worker in workers {
            worker.stop().await?;
        }
        self.server.stop().await
    }
}

/// A temporary directory for a demo that keeps nothing.
fn scratch() -> anyhow::Result<TempDir> {
    tempfile::Builder::new().prefix("aviary-demo-").tempdir().with_context(|| {
        let parent = std::env::temp_dir();
        format!("failed to create a directory in {}: give a writable one with --data-dir", parent.display())
    })
}

fn tell_end(
    args: &Args,
    session: &mut Session,
    context: &DemoContext,
    curtain: &Curtain,
) -> anyhow::Result<()> {
    let steps = &context.played;
    let clusters = context.cast.all();
    if session.output.data(&DemoSummary {
        version: 1,
        clusters,
        as_told: *curtain == Curtain::Told,
        steps,
    })? {
        return Ok(());
    }
    let mut text = Printout::default();
    text.gap();
    text.add(&table(steps).render(session.output.paint));
    text.gap();
    match curtain {
        Curtain::Told => text.line("Every step went as expected."),
        Curtain::Wrong => {
            let why = steps.last().map_or("", |step| &step.outcome);
            let step = steps.last().map_or("", |step| step.step);
            session.output.complaint(&format!("{step}: {why}"));
            text.line("A step did not go as expected.");
        }
        Curtain::Interrupted => text.line("Stopped before the last step was done."),
    }
    if args.once && *curtain == Curtain::Told {
        let program = &session.program;
        text.line(format_args!(
            "Next: {program} demo # to try things yourself, or {program} lint -f FILE # to check your own files"
        ));
    }
    session.output.text(&text)
}

fn table(steps: &[Played]) -> Table {
    let mut table = Table::default();
    table.head(&[
        "step",
        "version",
        "clusters touched",
        "took",
        "writes",
        "peak in flight of budget",
        "outcome",
    ]);
    let of = |exposure: Exposure| match exposure.budget {
        Some(budget) => format!("{} of {budget}", exposure.peak_in_flight),
        None => format!("{} of all", exposure.peak_in_flight),
    };
    for step in steps {
        let style = if step.as_told { Style::Plain } else { Style::Red };
        let peak = format!("fleet {}, canary {}", of(step.fleet), of(step.canary));
        let took = seconds(std::time::Duration::from_secs_f64(step.seconds));
        let cells = [
            step.step.to_owned(),
            step.version.to_owned(),
            step.clusters_touched.to_string(),
            took,
            step.writes.to_string(),
            peak,
            step.outcome.clone(),
        ];
        table.row(cells.into_iter().map(|cell| (style, cell)));
    }
    table
}

fn farewell(told_before: bool, curtain: &Curtain, program: &str) -> Printout {
    let mut text = Printout::default();
    if told_before {
        text.line("The demo has already run here; everything is as you left it.");
    }
    text.line("The hub, the manager and the fleet keep running: change what you like.");
    // Before that, there is no such version, and nothing that it could stop in.
    if *curtain == Curtain::Told {
        text.line(format_args!("To see {BAD} stop in the canary again:"));
        text.line(format_args!(
            "  kubectl get clustermanagementaddon {ADDON} -o yaml | sed s/{ADDON}-v0.11.0/{ADDON}-{BAD}/ | kubectl replace -f -"
        ));
    }
    text.line(format_args!("  {program} explain {ADDON}"));
    text.line("Press Ctrl-C to stop.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_that_did_not_get_there_does_not_speak_of_a_canary_that_stopped_something() {
        let said = |curtain: Curtain| format!("{:?}", farewell(false, &curtain, "aviary"));
        assert!(said(Curtain::Told).contains("stop in the canary again"));
        assert!(!said(Curtain::Wrong).contains("canary"));
    }
}
