//! `aviary-bench`: measures what a manager costs, Aviary's or another, on the embedded hub or any
//! other.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

mod gateway;
mod objects;
mod report;
mod subject;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use aviary_engine::simulate::agents::Profile;
use aviary_fleet::{Behaviour, Races, SimulatedFleet};
use aviary_hub::{Hub, HubOptions};
use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use self::gateway::{Gateway, RequestCounts};
use self::objects::{UpgradePace, WorkloadProbe};
use self::report::{BenchReport, MeasuredPhase, Run};
use self::subject::{MeasuredManager, RunningManager};
use self::watch::Works;

/// A manager that sends no request for this long has nothing left to do.
const QUIET: Duration = Duration::from_millis(1500);
/// Versions of the add-on: installed, upgraded to, and rolled out in waves.
const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];
/// Three waves.
const WAVE: UpgradePace = UpgradePace::Percent(34);
/// How often progress is polled.
const LOOK: Duration = Duration::from_millis(20);

const DESCRIPTION: &str = "\
Measure a manager: its writes, its reads and its cost to install an add-on on a fleet, to upgrade it, to roll it out in three waves, to \
restart, and to be idle.

The manager runs as a separate process. All its requests go through a counting gateway on loopback, over TLS; its CPU and \
memory are the kernel's figures. The clusters are simulated and answer at once. Times are shown as a multiple of the time that a bare \
client needs in the same run for only the necessary writes. With --peer-cmd another manager is measured alternately.

Without --kubeconfig an embedded hub is used, with its data on disk. With it, no other manager may run on \
the hub: its requests would change the results.";

/// Measure what a manager costs
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, long_about = DESCRIPTION, after_help = "\
Output with -o json:
  version        1; later versions may add fields, but never change or remove one
  server, cores  the hub; the cores of this machine
  runs[]         {manager, clusters, run, bareSeconds, install, upgrade, staged, idle, restart,
                 peakMemoryBytes, peakAnonymousBytes}; each phase: {seconds, cpuSeconds, writes,
                 clusterWrites, events, gets, configGets, lists, conflicts, errors}; writes do
                 not include leases and Events; clusterWrites: writes of instances and works;
                 peakAnonymousBytes: the largest sample
  summaries[]    {what, manager, measured, atMost, unit}: medians over the runs

Exit codes:
  0 measured, and every target is met; 1 the measurement failed;
  2 wrong usage; 4 measured, and a target is not met

Examples:
  On the embedded hub
    $ aviary-bench --clusters 500

  How the cost grows, as JSON
    $ aviary-bench --clusters 500,2000,5000,20000 -o json > figures.json

  On a real API server, together with another manager
    $ aviary-bench --kubeconfig kind.kubeconfig --runs 3 \\
        --peer-cmd 'addon-manager --kubeconfig {kubeconfig}'")]
struct Args {
    /// Number of clusters; several sizes are measured one after the other
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "500", value_parser = clap::value_parser!(u32).range(3..=100_000))]
    clusters: Vec<u32>,

    /// Number of runs of each size; medians are shown
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// Also measure this command line; {kubeconfig} is replaced by the file, and KUBECONFIG is set
    #[arg(long, value_name = "COMMAND")]
    peer_cmd: Option<String>,

    /// Do not ask for the health of the workload, to see what probes cost
    #[arg(long)]
    without_probes: bool,

    /// How long to watch an idle manager, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    idle: u64,

    /// Give up on a phase after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,

    /// Kubeconfig of the hub [default: an embedded hub]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context in the kubeconfig
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,

    /// The aviary program to measure [default: the one next to this program]
    #[arg(long, value_name = "FILE")]
    aviary: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    output: ReportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReportFormat {
    Text,
    Json,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(4),
        Err(error) => {
            eprintln!("aviary-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every target is met.
fn run(args: &Args) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
        let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
        let stopped = "interrupted; simulated clusters may be left on the hub: aviary fleet --remove";
        tokio::select! {
            met = measure(args) => met,
            _ = interrupt.recv() => bail!(stopped),
            _ = terminate.recv() => bail!(stopped),
        }
    })
}

async fn measure(args: &Args) -> anyhow::Result<bool> {
    let scratch = tempfile::tempdir().context("failed to create a temporary directory")?;
    let ours = match &args.aviary {
        Some(program) => program.clone(),
        None => std::env::current_exe().context("failed to find this program")?.with_file_name("aviary"),
    };
    let managers: Vec<MeasuredManager> =
        [Some(MeasuredManager::Ours(ours)), args.peer_cmd.clone().map(MeasuredManager::Peer)]
            .into_iter()
            .flatten()
            .collect();
    let mut runs = Vec::new();
    let mut server = "embedded hub".to_owned();
    for &clusters in &args.clusters {
        for run in 1..=args.runs as usize {
            let ground = Ground::prepare(args, scratch.path(), clusters as usize).await?;
            ground.server.clone_into(&mut server);
            let bare = ground.bare().await?;
            for manager in &managers {
                let label = format!("{}, {clusters} clusters", manager.name());
                eprintln!("{label}, run {run} of {}", args.runs);
                let measured = ground.measure(args, manager, scratch.path(), run, bare).await;
                runs.push(measured.with_context(|| format!("failed to measure {label}"))?);
            }
            ground.clear().await?;
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let report = BenchReport { version: 1, server, cores, summaries: report::summaries(&runs), runs };
    match args.output {
        ReportFormat::Json => {
            println!("{}", serde_json::to_string_pretty(&report).context("failed to write JSON")?);
        }
        ReportFormat::Text => println!(
            "Measured on {}, cores: {cores}; medians of runs: {}.\n\n{}\nNext: docs/performance.md explains the figures",
            report.server,
            args.runs,
            report::table(&report)
        ),
    }
    Ok(report.summaries.iter().filter(|line| line.manager == "aviary").all(report::BenchSummary::is_met))
}

async fn connect(file: &Path, context: Option<String>) -> anyhow::Result<(Client, String)> {
    let read = Kubeconfig::read_from(file)
        .with_context(|| format!("failed to read the kubeconfig {}", file.display()))?;
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(read, &options)
        .await
        .with_context(|| format!("failed to use the kubeconfig {}", file.display()))?;
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let client =
        Client::try_from(config).with_context(|| format!("failed to create a client for {server}"))?;
    Ok((client, server))
}

/// A hub with a fleet whose agents answer at once, without a manager.
struct Ground {
    hub: Client,
    embedded: Option<(Hub, PathBuf)>,
    server: String,
    clusters: Vec<String>,
    agents: tokio::task::JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Ground {
    async fn prepare(args: &Args, scratch: &Path, clusters: usize) -> anyhow::Result<Self> {
        let (hub, embedded, server) = match &args.kubeconfig {
            Some(file) => {
                let (client, server) = connect(file, args.context.clone()).await?;
                (client, None, server)
            }
            None => {
                let directory = scratch.join("hub");
                let hub =
                    Hub::open(&directory, HubOptions::default()).await.context("failed to open a hub")?;
                (hub.client(), Some((hub, directory)), "the embedded hub".to_owned())
            }
        };
        watch::install_kinds(&hub).await?;
        let instant = Profile { latency: (Duration::ZERO, Duration::ZERO), ..Profile::default() };
        let members = aviary_fleet::members("bench", clusters, &[], 1)?;
        let clusters: Vec<String> = members.iter().map(|member| member.name.to_string()).collect();
        // The figures are of what a manager costs, and agents on the same machine take its CPU.
        let behaviour = Behaviour { profile: instant, races: Races::NONE, ..Behaviour::default() };
        let fleet = SimulatedFleet::new(hub.clone(), members, behaviour);
        fleet.register(|| {}).await.context("failed to register clusters")?;
        let (stop, stopped) = oneshot::channel();
        let agents = tokio::spawn(async move {
            fleet.run(async { drop(stopped.await) }).await;
        });
        objects::place(&hub, &clusters).await?;
        Ok(Self { hub, embedded, server, clusters, agents, stop })
    }

    /// The time for only the necessary writes, through the same gateway.
    async fn bare(&self) -> anyhow::Result<Duration> {
        let gateway = Gateway::open(self.hub.clone()).await?;
        let read = Kubeconfig::from_yaml(&gateway.kubeconfig).context("failed to read our own kubeconfig")?;
        let config = Config::from_custom_kubeconfig(read, &Default::default())
            .await
            .context("failed to use our own kubeconfig")?;
        let client = Client::try_from(config).context("failed to create a client")?;
        let begun = Instant::now();
        objects::bare_install(&client, &self.clusters).await?;
        let took = begun.elapsed();
        objects::clear_bare(&self.hub, &self.clusters).await?;
        Ok(took)
    }

    async fn measure(
        &self,
        args: &Args,
        manager: &MeasuredManager,
        scratch: &Path,
        run: usize,
        bare: Duration,
    ) -> anyhow::Result<Run> {
        let gateway = Gateway::open(self.hub.clone()).await?;
        let works = Works::watch(&self.hub);
        let patience = Duration::from_secs(args.patience);
        let look = DoneCheck { gateway: &gateway, works: &works, patience, clusters: self.clusters.len() };

        let subject = manager.start(scratch, &gateway.kubeconfig)?;
        look.ready(&subject, &RequestCounts::default()).await?;
        let health = if args.without_probes { WorkloadProbe::Ignored } else { WorkloadProbe::Asked };
        let want = |version, pace| objects::want(&self.hub, version, pace, health);
        let install = look.phase(&subject, VERSIONS[0], want(VERSIONS[0], UpgradePace::All)).await?;
        let upgrade = look.phase(&subject, VERSIONS[1], want(VERSIONS[1], UpgradePace::All)).await?;
        let staged = look.phase(&subject, VERSIONS[2], want(VERSIONS[2], WAVE)).await?;
        let idle = look.idle(&subject, Duration::from_secs(args.idle)).await?;
        let peak = subject.peak_memory()?;
        subject.stop().await?;

        let begun = (Instant::now(), gateway.tally());
        let subject = manager.start(scratch, &gateway.kubeconfig)?;
        let ready = look.ready(&subject, &begun.1).await?;
        let restart = phase(
            ready.saturating_duration_since(begun.0),
            Duration::ZERO,
            subject.cpu()?,
            &gateway,
            &begun.1,
        );
        let peak = peak.max(subject.peak_memory()?);

        objects::unwant(&self.hub).await?;
        look.gone(&subject).await?;
        subject.stop().await?;
        Ok(Run {
            manager: manager.name(),
            clusters: self.clusters.len(),
            run,
            bare_seconds: bare.as_secs_f64(),
            install,
            upgrade,
            staged,
            idle,
            restart,
            peak_memory_bytes: peak.resident,
            peak_anonymous_bytes: peak.anonymous,
        })
    }

    async fn clear(self) -> anyhow::Result<()> {
        drop(self.stop);
        self.agents.await.context("the agents failed")?;
        if let Some((hub, directory)) = self.embedded {
            hub.stop().await;
            drop(hub);
            return std::fs::remove_dir_all(&directory)
                .with_context(|| format!("failed to remove {}", directory.display()));
        }
        objects::clear(&self.hub, &VERSIONS).await?;
        aviary_fleet::remove(&self.hub, || {}).await.context("failed to remove the clusters")?;
        Ok(())
    }
}

fn phase(
    time: Duration,
    cpu_before: Duration,
    cpu: Duration,
    gateway: &Gateway,
    before: &RequestCounts,
) -> MeasuredPhase {
    let RequestCounts { writes, cluster_writes, events, gets, config_gets, lists, conflicts, errors, .. } =
        gateway.tally().since(before);
    MeasuredPhase {
        seconds: time.as_secs_f64(),
        cpu_seconds: cpu.saturating_sub(cpu_before).as_secs_f64(),
        writes,
        cluster_writes,
        events,
        gets,
        config_gets,
        lists,
        conflicts,
        errors,
    }
}

/// How to find out that a manager is done.
struct DoneCheck<'a> {
    gateway: &'a Gateway,
    works: &'a Works,
    patience: Duration,
    clusters: usize,
}

impl DoneCheck<'_> {
    async fn until(
        &self,
        what: &str,
        subject: &RunningManager,
        is: impl Fn(&RequestCounts) -> bool,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !is(&self.gateway.tally()) {
            ensure!(
                begun.elapsed() < self.patience,
                "{what}: not reached after {} s: {}; {}",
                self.patience.as_secs(),
                self.works.told(),
                subject.last_words()
            );
            // Fails if the process has exited, so that waiting is useless.
            subject.cpu()?;
            subject.peak_memory()?;
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Waits until it has opened its watches and sends no more requests. Returns when that was.
    async fn ready(&self, subject: &RunningManager, before: &RequestCounts) -> anyhow::Result<Instant> {
        let watched = ["clustermanagementaddons", "managedclusteraddons", "manifestworks"];
        let is = |tally: &RequestCounts| {
            let opened = tally.watches_since(before);
            watched.iter().all(|resource| opened.contains(resource)) && tally.is_quiet_for(QUIET)
        };
        self.until("the manager watches and is idle", subject, is).await?;
        let now = Instant::now();
        Ok(now.checked_sub(QUIET).unwrap_or(now))
    }

    /// Makes a change, and measures until the last write that it causes.
    async fn phase(
        &self,
        subject: &RunningManager,
        version: &str,
        change: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<MeasuredPhase> {
        let before = self.gateway.tally();
        let (begun, cpu) = (Instant::now(), subject.cpu()?);
        change.await?;
        let is =
            |tally: &RequestCounts| self.works.have(version) == self.clusters && tally.is_quiet_for(QUIET);
        self.until(&format!("every cluster has {version}"), subject, is).await?;
        let took = self.gateway.tally().last_write_after(begun);
        Ok(phase(took, cpu, subject.cpu()?, self.gateway, &before))
    }

    async fn idle(&self, subject: &RunningManager, time: Duration) -> anyhow::Result<MeasuredPhase> {
        let before = self.gateway.tally();
        let cpu = subject.cpu()?;
        tokio::time::sleep(time).await;
        Ok(phase(time, cpu, subject.cpu()?, self.gateway, &before))
    }

    async fn gone(&self, subject: &RunningManager) -> anyhow::Result<()> {
        let is = |tally: &RequestCounts| self.works.count() == 0 && tally.is_quiet_for(QUIET);
        self.until("every work is deleted", subject, is).await
    }
}
