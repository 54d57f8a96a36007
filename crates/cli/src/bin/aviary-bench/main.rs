//! `aviary bench`: what a manager costs, on the embedded hub or any other, ours and somebody else's.

mod gateway;
mod objects;
mod report;
mod subject;
mod watch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use aviary_engine::simulate::agents::Profile;
use aviary_fleet::{Behaviour, Fleet};
use aviary_hub::{Hub, Options};
use kube::{Client, Config};
use tokio::sync::oneshot;

use self::gateway::{Gateway, Tally};
use self::objects::Pace;
use self::report::{Phase, Report, Run};
use self::subject::{Manager, Subject};
use self::watch::Works;
use super::{Outcome, Session};
use crate::connect::HubArgs;
use crate::output::counted;
use crate::process::stop_signal;

/// A manager that asks for nothing for so long has nothing left to do.
const QUIET: Duration = Duration::from_millis(1500);
/// Versions of the add-on: installed, upgraded to, and rolled out in waves.
const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];
/// Three waves.
const WAVE: Pace = Pace::Percent(34);
/// How often it is looked whether something has happened.
const LOOK: Duration = Duration::from_millis(20);

const DESCRIPTION: &str = "\
Measure a manager: what it writes, reads and spends to install an add-on on a fleet, to upgrade it, to roll it out in three waves, to be \
restarted, and to do nothing.

The manager is a process of its own. Everything that it asks of the hub goes through a counting gateway on loopback, over TLS; its CPU and \
memory are the kernel's figures. Clusters are simulated and answer at once. Times are given as a multiple of what a client takes in the \
same run that does nothing but write what must be written. With --peer-cmd another manager is measured in turns with ours.

Without --kubeconfig an embedded hub is used, with its data on disk. With it the hub should be one that nobody else uses: every manager \
there would take part.";

/// Measure what a manager costs
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Output with -o json:
  version        1; a later version may add fields, and changes or removes none
  server         the hub; cores: of this machine
  runs[]         {manager, clusters, run, bareSeconds, install, upgrade, staged, idle, restart,
                 peakMemoryBytes}; each phase: {seconds, cpuSeconds, writes, clusterWrites, events,
                 gets, configGets, lists, conflicts, errors}; writes leave out leases and
                 Events; clusterWrites: of instances and works
  summaries[]    {what, manager, measured, atMost, unit}: medians over the runs

Exit codes:
  0 it was measured, and every target is met; 1 something kept it from being measured;
  2 wrong usage; 4 it was measured, and a target is not met

Examples:
  On the embedded hub
    $ aviary bench --clusters 500

  How cost grows, as data
    $ aviary bench --clusters 500,2000,5000,20000 -o json > figures.json

  On a real API server, beside another manager
    $ aviary bench --kubeconfig kind.kubeconfig --runs 3 \\
        --peer-cmd 'addon-manager --kubeconfig {kubeconfig}'")]
pub(crate) struct Args {
    /// How many clusters; several sizes are measured one after the other
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "500", value_parser = clap::value_parser!(u32).range(3..=50_000))]
    clusters: Vec<u32>,

    /// How often each size is measured; medians are shown
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// Measure this command line too; {kubeconfig} in it stands for the file, and KUBECONFIG names it
    #[arg(long, value_name = "COMMAND")]
    peer_cmd: Option<String>,

    /// How long a manager at rest is watched, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    idle: u64,

    /// Give up on a phase after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,

    /// Kubeconfig of a hub to measure on [default: an embedded one]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of that kubeconfig
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(async {
        let stopped = stop_signal()?;
        tokio::select! {
            outcome = measure(args, session) => outcome,
            () = stopped => bail!("interrupted; simulated clusters may be left on the hub: aviary fleet --remove"),
        }
    })
}

async fn measure(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let scratch = Scratch::new()?;
    let managers: Vec<Manager> =
        [Some(Manager::Ours), args.peer_cmd.clone().map(Manager::Peer)].into_iter().flatten().collect();
    let mut runs = Vec::new();
    let mut server = "embedded hub".to_owned();
    for &clusters in &args.clusters {
        for run in 1..=args.runs as usize {
            let ground = Ground::prepare(args, &scratch.0, clusters as usize).await?;
            ground.server.clone_into(&mut server);
            let bare = ground.bare().await?;
            for manager in &managers {
                let label = format!("{}, {}", manager.name(), counted(clusters as usize, "cluster"));
                session.output.complaint(&format!("{label}, run {run} of {}", args.runs));
                let measured = ground.measure(args, manager, &scratch.0, run, bare).await;
                runs.push(measured.with_context(|| format!("failed to measure {label}"))?);
            }
            ground.clear().await?;
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let report = Report { version: 1, server, cores, summaries: report::summaries(&runs), runs };
    if !session.output.data(&report)? {
        let table = report::table(&report, session.output.paint);
        let about = format!(
            "Measured on {}, {}; medians of {}.\n\n",
            report.server,
            counted(cores, "core"),
            counted(args.runs as usize, "run")
        );
        session
            .output
            .text(&format!("{about}{table}\nNext: docs/performance.md says what the figures mean\n"))?;
    }
    let met = report.summaries.iter().filter(|line| line.manager == "aviary").all(report::Summary::is_met);
    Ok(if met { Outcome::Done } else { Outcome::Failed })
}

/// A directory that goes when we do.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let directory = std::env::temp_dir().join(format!("aviary-bench-{}", std::process::id()));
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("failed to make {}", directory.display()))?;
        Ok(Self(directory))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A hub with a fleet that answers at once, and nobody who manages it.
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
                let hub = HubArgs { kubeconfig: Some(file.clone()), context: args.context.clone() };
                let connection = hub.connect().await?;
                (connection.client, None, connection.server)
            }
            None => {
                let directory = scratch.join("hub");
                let hub = Hub::open(&directory, Options::default()).await.context("failed to open a hub")?;
                (hub.client(), Some((hub, directory)), "the embedded hub".to_owned())
            }
        };
        watch::install_kinds(&hub).await?;
        let instant = Profile { latency: (Duration::ZERO, Duration::ZERO), ..Profile::default() };
        let members = aviary_fleet::members("bench", clusters, &[], 1)?;
        let clusters: Vec<String> = members.iter().map(|member| member.name.to_string()).collect();
        let fleet = Fleet::new(hub.clone(), members, Behaviour { profile: instant, ..Behaviour::default() });
        fleet.register(|| {}).await.context("failed to register clusters")?;
        let (stop, stopped) = oneshot::channel();
        let agents = tokio::spawn(async move {
            fleet.run(async { drop(stopped.await) }).await;
        });
        objects::place(&hub, &clusters).await?;
        Ok(Self { hub, embedded, server, clusters, agents, stop })
    }

    /// How long it takes to write only what must be written, on the way that managers take.
    async fn bare(&self) -> anyhow::Result<Duration> {
        let gateway = Gateway::open(self.hub.clone()).await?;
        let read = kube::config::Kubeconfig::from_yaml(&gateway.kubeconfig)
            .context("failed to read our own kubeconfig")?;
        let config = Config::from_custom_kubeconfig(read, &Default::default())
            .await
            .context("failed to use our own kubeconfig")?;
        let client = Client::try_from(config).context("failed to make a client")?;
        let begun = Instant::now();
        objects::bare_install(&client, &self.clusters).await?;
        let took = begun.elapsed();
        objects::clear_bare(&self.hub, &self.clusters).await?;
        Ok(took)
    }

    async fn measure(
        &self,
        args: &Args,
        manager: &Manager,
        scratch: &Path,
        run: usize,
        bare: Duration,
    ) -> anyhow::Result<Run> {
        let gateway = Gateway::open(self.hub.clone()).await?;
        let works = Works::watch(&self.hub);
        let patience = Duration::from_secs(args.patience);
        let look = Look { gateway: &gateway, works: &works, patience, clusters: self.clusters.len() };

        let subject = manager.start(scratch, &gateway.kubeconfig)?;
        look.ready(&subject, &Tally::default()).await?;
        let install =
            look.phase(&subject, VERSIONS[0], objects::want(&self.hub, VERSIONS[0], Pace::All)).await?;
        let upgrade =
            look.phase(&subject, VERSIONS[1], objects::want(&self.hub, VERSIONS[1], Pace::All)).await?;
        let staged = look.phase(&subject, VERSIONS[2], objects::want(&self.hub, VERSIONS[2], WAVE)).await?;
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
            peak_memory_bytes: peak,
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

fn phase(time: Duration, cpu_before: Duration, cpu: Duration, gateway: &Gateway, before: &Tally) -> Phase {
    let Tally { writes, cluster_writes, events, gets, config_gets, lists, conflicts, errors, .. } =
        gateway.tally().since(before);
    Phase {
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

/// What tells that a manager is done.
struct Look<'a> {
    gateway: &'a Gateway,
    works: &'a Works,
    patience: Duration,
    clusters: usize,
}

impl Look<'_> {
    async fn until(&self, what: &str, subject: &Subject, is: impl Fn(&Tally) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !is(&self.gateway.tally()) {
            ensure!(
                begun.elapsed() < self.patience,
                "{what}: not so after {} s: {}; {}",
                self.patience.as_secs(),
                self.works.told(),
                subject.last_words()
            );
            // It is gone, and will never be.
            subject.cpu()?;
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Until it watches what it must, and asks for nothing more. Tells when that was.
    async fn ready(&self, subject: &Subject, before: &Tally) -> anyhow::Result<Instant> {
        let watched = ["clustermanagementaddons", "managedclusteraddons", "manifestworks"];
        let is = |tally: &Tally| {
            let opened = tally.watches_since(before);
            watched.iter().all(|resource| opened.contains(resource)) && tally.is_quiet_for(QUIET)
        };
        self.until("the manager watches and is quiet", subject, is).await?;
        let now = Instant::now();
        Ok(now.checked_sub(QUIET).unwrap_or(now))
    }

    /// Makes a change, and measures until the last write that it caused.
    async fn phase(
        &self,
        subject: &Subject,
        version: &str,
        change: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<Phase> {
        let before = self.gateway.tally();
        let (begun, cpu) = (Instant::now(), subject.cpu()?);
        change.await?;
        let is = |tally: &Tally| self.works.have(version) == self.clusters && tally.is_quiet_for(QUIET);
        self.until(&format!("every cluster has {version}"), subject, is).await?;
        let took = self.gateway.tally().last_write_after(begun);
        Ok(phase(took, cpu, subject.cpu()?, self.gateway, &before))
    }

    async fn idle(&self, subject: &Subject, time: Duration) -> anyhow::Result<Phase> {
        let before = self.gateway.tally();
        let cpu = subject.cpu()?;
        tokio::time::sleep(time).await;
        Ok(phase(time, cpu, subject.cpu()?, self.gateway, &before))
    }

    async fn gone(&self, subject: &Subject) -> anyhow::Result<()> {
        let is = |tally: &Tally| self.works.count() == 0 && tally.is_quiet_for(QUIET);
        self.until("every work is gone", subject, is).await
    }
}
