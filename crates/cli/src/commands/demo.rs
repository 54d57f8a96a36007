//! `aviary demo`: the whole product in one process, and the story of one add-on told on it.
//!
//! Owns what is started and stopped. What happens is the manager's to decide, how the clusters behave is the fleet's, and whether it was right
//! is judged by [`story`] from what the hub committed.

mod objects;
mod picture;
mod record;
mod story;

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, anyhow, bail};
use aviary_api::ClusterManagementAddOn;
use aviary_controller::{Manager, Settings};
use aviary_engine::observed;
use aviary_engine::simulate::agents::Profile;
use aviary_fleet::{Behaviour, Failure, Fleet, LabelShare, Member, Scope};
use aviary_hub::security::{Identity, Role, write_private};
use aviary_hub::{Endpoint, Hub, Options};
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{Next, from_fn};
use jiff::Timestamp;
use kube::Client;
use kube::api::Api;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::dashboard::{self, Over, Site};
use super::fleet::progress;
use super::rehearse::Latency;
use super::{Outcome, Session, hub, typed};
use crate::connect::Connection;
use crate::output::{Style, Table, counted};
use crate::process::stop_signal;
use objects::{ADDON, CANARY, FLEET};
use picture::seconds;
use story::{BAD, Cast, Curtain, Exposure, FIRST, Played, Stage};

/// Where the manager keeps what it remembers.
const NAMESPACE: &str = "open-cluster-management";

const DESCRIPTION: &str = "\
Try the whole product on this machine: an embedded hub, a manager and a simulated fleet in one process, and the story of one add-on \
told on them: a fresh install, a rolling upgrade, a canary upgrade, a bad version that the canary catches, and the way back.

The hub is a real one for every client: kubectl and the other commands of aviary work on it from another terminal, with the kubeconfig \
that is named at the start, and the dashboard's address, to be opened in a browser, is printed with it. It goes on until Ctrl-C; with --once it ends with the story, which is judged by what was committed at the \
hub: which versions run where, and whether any commit had more clusters in flight than the budget allows.";

const EXAMPLES: &str = "\
Examples:
  Watch a canary catch a bad version, and play with it afterwards
    $ aviary demo

  Tell the story, judge it, and end
    $ aviary demo --once

  A larger fleet, kept on disk
    $ aviary demo --clusters 5000 --data-dir ./demo

Exit codes: 0 the story went as it should, 1 it did not or could not be told to its end, 2 wrong usage.";

/// Try everything in one process: a hub, a manager, a simulated fleet, and the story of an add-on
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How many clusters there are; one in five is a canary
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(5..=20_000))]
    clusters: u32,

    /// End when the story is over, with a summary
    #[arg(long)]
    once: bool,

    /// Keep the hub's data in this directory, which is made if it is not there. Without it nothing is left in the end
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Loopback address for the hub to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Loopback address for the dashboard; port 0 takes a free one [default: 127.0.0.1:0; with --once there is none]
    #[arg(long, value_name = "ADDR")]
    dashboard: Option<SocketAddr>,

    /// Keep the token of the dashboard's address in this file, so that the address is the same next time
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// The shortest and the longest time that a cluster takes
    #[arg(long, value_name = "FROM..TO", default_value = "200ms..800ms")]
    latency: Latency,

    /// Which of all possible fleets
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// The result of `--once`, as data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    version: u32,
    clusters: usize,
    as_told: bool,
    steps: &'a [Played],
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    if !args.listen.ip().is_loopback() {
        bail!("{} can be reached by other machines: a demo listens on a loopback address only", args.listen);
    }
    if let Some(address) = args.dashboard.filter(|address| !address.ip().is_loopback()) {
        bail!("{address} can be reached by other machines: a demo listens on a loopback address only");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(demo(args, session))
}

async fn demo(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    // First, so that a signal during the start is not lost.
    let mut stopped = Box::pin(stop_signal()?);
    let house = House::open(args).await?;
    let client = house.hub.client();
    let told_before = is_told(&client).await?;
    if told_before && args.once {
        let directory = args.data_dir.as_deref().unwrap_or(Path::new(""));
        bail!(
            "the story was told in {} before: give another directory, or leave --once out to look at what is there",
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
    let fleet = Fleet::new(client.clone(), members(cast, args.seed)?, behaviour(args));
    let bar = progress(&session.output, cast.all(), "registering clusters");
    tokio::select! {
        registered = fleet.register(|| bar.inc(1)) => drop(registered.context("failed to register the clusters")?),
        () = &mut stopped => {
            bar.finish_and_clear();
            session.output.text("Stopped before the story began.\n")?;
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
    let mut stage = Stage::new(client, cast, news, writes);
    let curtain = match told_before {
        true => Curtain::Told,
        false => stage.play(&mut session.output, &mut stopped).await?,
    };
    if !told_before {
        tell_end(args, session, &stage, &curtain)?;
    }
    if !args.once && curtain != Curtain::Interrupted {
        session.output.text(&farewell(told_before, &session.program))?;
        session.output.finish()?;
        stopped.await;
    }
    watches.shutdown().await;
    house.close(vec![manager, agents], site).await?;
    if !args.once {
        session.output.text("The demo has stopped.\n")?;
    }
    // Who leaves in the middle of a story that was to be told to its end has not heard it.
    let well = curtain == Curtain::Told || (curtain == Curtain::Interrupted && !args.once);
    Ok(if well { Outcome::Done } else { Outcome::NotDone })
}

/// Whether the add-on is there from an earlier demo.
async fn is_told(client: &Client) -> anyhow::Result<bool> {
    let addons: Api<ClusterManagementAddOn> = Api::all(client.clone());
    Ok(addons.get_opt(ADDON).await.context("failed to look for the add-on")?.is_some())
}

/// Where the page is served, if it is. Who asks for data or for the end has nobody to look at it.
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
        profile: Profile { seed: args.seed, latency: (from, to), ..Profile::default() },
        failures: vec![Failure { scope: Scope::Version(BAD.into()), share: 1.0 }],
        lies: Vec::new(),
    }
}

fn manager(client: Client) -> Manager {
    let settings = Settings {
        namespace: NAMESPACE.into(),
        identity: "demo".into(),
        leader_elect: false,
        verify: true,
        placement: true,
        options: observed::Options::default(),
        clock: Arc::new(Timestamp::now),
    };
    Manager::new(client, settings)
}

/// A client in this process whose writes are counted.
fn counted_client(hub: &Hub, writes: &Arc<AtomicUsize>) -> Client {
    let writes = Arc::clone(writes);
    let count = from_fn(move |request: Request, next: Next| {
        if request.method() != Method::GET {
            writes.fetch_add(1, Ordering::Relaxed);
        }
        next.run(request)
    });
    let administrator = axum::Extension(Identity::new("system:admin", Role::Admin));
    Client::new(hub.router().layer(count).layer(administrator), "default")
}

/// Something that runs until it is told to stop.
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
        // It may have ended by itself.
        let _ = self.stop.send(());
        self.task.await.context("a part of the demo did not end well")
    }
}

/// The hub, its socket, and the file by which others find it.
struct House {
    hub: Hub,
    server: Running,
    address: SocketAddr,
    kubeconfig: PathBuf,
    data: String,
    /// Gone when this goes.
    _scratch: Option<Scratch>,
}

impl House {
    async fn open(args: &Args) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(args.listen).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => anyhow!(
                "failed to listen on {}: another process has that port: choose another with --listen, or leave it out for a free one",
                args.listen
            ),
            _ => anyhow::Error::new(error).context(format!("failed to listen on {}", args.listen)),
        })?;
        let address = listener.local_addr().context("failed to read the address")?;
        let (hub, endpoint, directory, scratch) = match &args.data_dir {
            Some(directory) => {
                let hub = Hub::open(directory, Options::default()).await.context("failed to open the hub")?;
                let endpoint = Endpoint::open(&hub, directory, &[])?;
                (hub, endpoint, directory.clone(), None)
            }
            None => {
                let scratch = Scratch::new()?;
                let hub = Hub::ephemeral(Options::default()).await.context("failed to start the hub")?;
                let endpoint = Endpoint::ephemeral(&hub, &[])?;
                (hub, endpoint, scratch.0.clone(), Some(scratch))
            }
        };
        hub::install_kinds(&hub).await?;
        let kubeconfig = directory.join("kubeconfig");
        let token = hub::known_token(&kubeconfig, &endpoint)?;
        write_private(&kubeconfig, endpoint.kubeconfig(address, &token).as_bytes())
            .with_context(|| format!("failed to write {}", kubeconfig.display()))?;
        let served = hub.clone();
        let server = Running::start(|stop| async move {
            if let Err(error) = served.serve(listener, &endpoint, stop).await {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the hub cannot be reached any more"
                );
            }
        });
        let data = match &args.data_dir {
            Some(directory) => directory.display().to_string(),
            None => "in memory, gone in the end".to_owned(),
        };
        Ok(Self { hub, server, address, kubeconfig, data, _scratch: scratch })
    }

    /// The page, over this hub. It can change rollouts: this is nobody's production.
    async fn show(&self, address: SocketAddr, token_file: Option<&Path>) -> anyhow::Result<Site> {
        let listener = dashboard::listen(address, "--dashboard").await?;
        let connection =
            Connection { client: self.hub.client(), server: format!("https://{}", self.address) };
        let over = Over { connection: &connection, namespace: NAMESPACE };
        let token = dashboard::session_token(token_file)?;
        Site::on_loopback(listener, over, dashboard::hosts(address, &[])?, token, true).await
    }

    fn welcome(&self, cast: Cast, page: Option<&str>, program: &str) -> String {
        let Cast { fleet, canary } = cast;
        let export =
            typed("export KUBECONFIG=", std::slice::from_ref(&self.kubeconfig)).replacen("= ", "=", 1);
        format!(
            "\
A hub, a manager and {} in this process
  hub         https://{}
  data        {}
  kubeconfig  {}
  clusters    {fleet} in {FLEET}, {canary} in {CANARY}
{}
From another terminal:
  {export}
  kubectl get clustermanagementaddon {ADDON} -o yaml
  kubectl get managedclusteraddons -A
  {program} status {ADDON} -w
  {program} explain {ADDON}

",
            counted(cast.all(), "simulated cluster"),
            self.address,
            self.data,
            self.kubeconfig.display(),
            page.map(|page| format!("  dashboard   {page}\n")).unwrap_or_default(),
        )
    }

    /// Ends what works on the hub, then the hub.
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

/// A directory for the time of the demo that only this user can read.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let directory = std::env::temp_dir().join(format!("aviary-demo-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&directory);
        made.with_context(|| {
            format!(
                "failed to make {}: give a directory that can be written to with --data-dir",
                directory.display()
            )
        })?;
        Ok(Self(directory))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is in the directory for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tell_end(args: &Args, session: &mut Session, stage: &Stage, curtain: &Curtain) -> anyhow::Result<()> {
    let steps = &stage.played;
    let clusters = stage.cast.all();
    if session.output.data(&Summary { version: 1, clusters, as_told: *curtain == Curtain::Told, steps })? {
        return Ok(());
    }
    let mut text = format!("\n{}\n", table(steps).render(session.output.paint));
    match curtain {
        Curtain::Told => text.push_str("The story went as it should.\n"),
        Curtain::Wrong => {
            let why = steps.last().map_or("", |step| &step.outcome);
            let step = steps.last().map_or("", |step| step.step);
            session.output.complaint(&format!("{step}: {why}"));
            text.push_str("The story did not go as it should.\n");
        }
        Curtain::Interrupted => text.push_str("Stopped before the story was over.\n"),
    }
    if args.once && *curtain == Curtain::Told {
        let program = &session.program;
        text.push_str(&format!(
            "Next: {program} demo # and play with it, or {program} lint -f FILE # with files of your own\n"
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

fn farewell(told_before: bool, program: &str) -> String {
    let begin = match told_before {
        true => "The story was told here before; everything is as it was left.\n",
        false => "",
    };
    format!(
        "\
{begin}The hub, the manager and the fleet go on: change what you like. To see {BAD} stop in the canary again:
  kubectl get clustermanagementaddon {ADDON} -o yaml | sed s/{ADDON}-v0.11.0/{ADDON}-{BAD}/ | kubectl replace -f -
  {program} explain {ADDON}
Stop it with Ctrl-C.
"
    )
}
