//! `aviary manager`: runs the controllers against any Kubernetes API server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use aviary_controller::{Clock, Manager, Metrics, OCM_NAMESPACE, Settings};
use aviary_engine::observed::{Brake, Options};
use clap::ArgAction;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::ObjectMeta;

use super::preflight::{self, HubFlavor, Scrutiny};
use super::{Outcome, Session};
use crate::connect::{Connection, HubArgs, refused};
use crate::conversion::{self, ConversionArgs, Surroundings};

use crate::logs::{self, LogArgs};
use crate::output::Printout;
use crate::process::stop_signal;
use crate::telemetry::{Telemetry, TelemetryArgs};

const DESCRIPTION: &str = "\
Run the manager: it installs add-ons on the selected clusters, applies their configuration, and rolls out changes.

You can run several managers: one leads, the others stand by. Every write of the leader carries its term, so a leader that lost its \
connection and comes back cannot exceed a budget. On Ctrl-C or SIGTERM the manager finishes its writes and hands over.";

/// Run the manager against a Kubernetes API server
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  Run the manager on the hub of the current kubeconfig
    $ aviary manager

  Run it on an embedded hub
    $ aviary hub --data-dir ./hub
    $ aviary manager --kubeconfig ./hub/kubeconfig --placement

  In a pod: health checks, metrics over TLS, logs as JSON
    $ aviary manager --health 0.0.0.0:8081 --metrics 0.0.0.0:8443 --log-format json")]
pub(crate) struct Args {
    #[command(flatten)]
    hub: HubArgs,

    /// Namespace for the lease and the stored revisions
    #[arg(long, value_name = "NAMESPACE", default_value = "open-cluster-management")]
    namespace: String,

    #[command(flatten)]
    telemetry: TelemetryArgs,

    #[command(flatten)]
    conversion: ConversionArgs,

    #[command(flatten)]
    logs: LogArgs,

    /// Also decide placements, on a hub without a placement controller
    #[arg(long)]
    placement: bool,

    /// Leader election; disable it only if no other manager runs on this hub
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    leader_elect: bool,

    /// Lease duration in seconds: how long a silent leader keeps the lease
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    lease_duration: u16,

    /// Namespace of Open Cluster Management's controllers. While its add-on manager holds its Lease
    /// there, this manager does not lead [default: open-cluster-management-hub on a hub with its
    /// kinds]
    #[arg(long, value_name = "NAMESPACE")]
    ocm_namespace: Option<String>,

    /// Require approval before a change deletes more than NUMBER and more than PERCENT of an
    /// add-on's instances at once
    #[arg(long, value_name = "NUMBER,PERCENT%", default_value = "10,25%", value_parser = brake)]
    deletion_brake: Brake,

    /// Namespaces whose configs any instance may use
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', default_value = "open-cluster-management")]
    config_namespaces: Vec<String>,

    /// How many completed revisions of each placement to keep for rollbacks
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    history_limit: u16,

    /// Check every plan against the invariants before executing it; a plan that violates one
    /// freezes its add-on and causes an Event
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    args.telemetry.check()?;
    logs::start(&args.logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(manage(args, session))?;
    Ok(Outcome::Done)
}

async fn manage(args: &Args, session: &mut Session) -> anyhow::Result<()> {
    if args.ocm_namespace.is_some() && !args.leader_elect {
        bail!("--ocm-namespace needs leader election: omit --leader-elect=false");
    }
    let stopped = stop_signal()?;
    let metrics = Metrics::default();
    let connection = args.hub.connect_counted(&metrics).await?;
    let Connection { client, server } = connection.clone();
    let version = client
        .apiserver_version()
        .await
        .map_err(|error| refused("ask the hub for its version", &error, &server))?;
    let created = have_namespace(&client, &args.namespace, &server).await?;
    // A restarted container has the same host name and process ID as its predecessor.
    let identity = format!("{}_{}_{:x}", hostname(), std::process::id(), session.now.as_nanosecond());
    let clock: Clock = Arc::new(Timestamp::now);
    let settings = Settings {
        namespace: args.namespace.clone(),
        identity: identity.clone(),
        leader_elect: args.leader_elect,
        verify: args.verify,
        placement: args.placement,
        options: Options {
            config_namespaces: args.config_namespaces.iter().map(|name| name.as_str().into()).collect(),
            brake: args.deletion_brake,
            history_limit: usize::from(args.history_limit),
        },
        clock: Arc::clone(&clock),
    };
    let manager = Manager::new(client.clone(), settings)
        .with_metrics(metrics.clone())
        .with_lease(Duration::from_secs(args.lease_duration.into()));
    let around = Surroundings {
        client: client.clone(),
        namespace: args.namespace.clone(),
        clock: Arc::clone(&clock),
        health: manager.health(),
    };
    let telemetry = Telemetry { health: manager.health(), metrics, clock, client };
    let mut told =
        Printout::of(format_args!("Manager {identity} running on {server}, version {}", version.git_version));
    if created {
        told.line(format_args!("  created  namespace {}", args.namespace));
    }
    told.add(&args.telemetry.start(&telemetry).await?);
    if let Some(address) = args.conversion.start(around).await? {
        told.line(format_args!("  convert  https://{address}{}", conversion::PATH));
    }
    told.line("Press Ctrl-C to stop.");
    session.output.text(&told)?;
    session.output.finish()?;
    let mut stopped = Box::pin(stopped);
    let ocm_namespace = tokio::select! {
        biased;
        () = &mut stopped => None,
        // Before it leads, so that it never writes beside OCM's manager.
        namespace = look_at_hub(&connection, args, session.now) => Some(namespace),
    };
    if let Some(namespace) = ocm_namespace {
        manager.beside_ocm(namespace).run(stopped).await;
    }
    session.output.line("Manager stopped.")?;
    Ok(())
}

/// Logs which kind of hub this is, and what is wrong with it: each problem once. The manager runs
/// all the same: it waits for what is missing. Returns where the Lease of OCM's add-on manager is,
/// if it may be on this hub.
async fn look_at_hub(connection: &Connection, args: &Args, now: Timestamp) -> Option<String> {
    match preflight::denied_to_manager(connection, &args.namespace, args.placement).await {
        Ok(denied) => log_problems(&denied),
        Err(error) => tracing::warn!(error = format!("{error:#}"), "the rights could not be checked"),
    }
    // A candidate for leadership looks at OCM's Lease itself, all the time.
    let watched_once = (!args.leader_elect).then_some(OCM_NAMESPACE);
    let scrutiny = Scrutiny { ocm_namespace: watched_once, reads: false };
    let flavor = match preflight::inspect(connection, scrutiny, now).await {
        Ok(report) => {
            let (flavor, not_kept) = (report.flavor, report.not_kept.len());
            tracing::info!(?flavor, not_kept, "looked at the hub");
            log_problems(&report.in_the_way);
            Some(flavor)
        }
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "the hub could not be checked");
            None
        }
    };
    let is_of_ocm = flavor == Some(HubFlavor::Ocm) && args.leader_elect;
    args.ocm_namespace.clone().or_else(|| is_of_ocm.then(|| OCM_NAMESPACE.to_owned()))
}

fn log_problems(problems: &[String]) {
    for problem in problems {
        tracing::warn!(problem, "the hub is not as a manager needs it");
    }
}

/// Makes sure that the manager's namespace exists. Returns whether it was created.
async fn have_namespace(client: &Client, name: &str, server: &str) -> anyhow::Result<bool> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let doing = format!("look for the namespace {name}");
    if namespaces.get_opt(name).await.map_err(|error| refused(&doing, &error, server))?.is_some() {
        return Ok(false);
    }
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    match namespaces.create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(true),
        Err(error) => {
            let doing = format!(
                "create the namespace {name} for the lease and the stored revisions (--namespace selects another)"
            );
            Err(refused(&doing, &error, server))
        }
    }
}

fn brake(text: &str) -> Result<Brake, String> {
    let parts = text.split_once(',').and_then(|(number, percent)| {
        let percent = percent.trim().strip_suffix('%')?.parse().ok().filter(|percent| *percent <= 100)?;
        Some(Brake { more_than: number.trim().parse().ok()?, more_than_percent: percent })
    });
    parts.ok_or_else(|| "must be a number and a percentage, such as 10,25%".into())
}

pub(super) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "manager".to_owned() } else { name.trim().to_owned() }
}
