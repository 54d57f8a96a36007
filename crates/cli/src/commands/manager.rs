//! `aviary manager`: the controllers against any Kubernetes API server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use aviary_controller::{Clock, Manager, Metrics, Settings};
use aviary_engine::observed::{Brake, Options};
use clap::ArgAction;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::ObjectMeta;

use super::{Outcome, Session};
use crate::connect::{Connection, HubArgs, refused};
use crate::logs::{self, LogArgs};
use crate::process::stop_signal;
use crate::telemetry::{Telemetry, TelemetryArgs};

const DESCRIPTION: &str = "\
Run the manager: it installs add-ons where placements say, keeps their configuration, and rolls changes out.

Several managers may run: one leads, the others wait. What the leader writes carries its term, so one that was cut off and comes back \
can exceed no budget. It stops on Ctrl-C or SIGTERM, finishes what is under way and hands over.";

/// Run the manager against a Kubernetes API server
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  Run it against the hub of the current kubeconfig
    $ aviary manager

  Run it against an embedded hub
    $ aviary hub --data-dir ./hub
    $ aviary manager --kubeconfig ./hub/kubeconfig --placement

  In a pod: probes for the kubelet, metrics for Prometheus over TLS, logs as JSON
    $ aviary manager --health 0.0.0.0:8081 --metrics 0.0.0.0:8443 --log-format json")]
pub(crate) struct Args {
    #[command(flatten)]
    hub: HubArgs,

    /// Namespace for the lease and for kept revisions
    #[arg(long, value_name = "NAMESPACE", default_value = "open-cluster-management")]
    namespace: String,

    #[command(flatten)]
    telemetry: TelemetryArgs,

    #[command(flatten)]
    logs: LogArgs,

    /// Decide placements too, on a hub that has no placement controller
    #[arg(long)]
    placement: bool,

    /// Whether other managers may run beside this one
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    leader_elect: bool,

    /// How long a leader may be silent before another takes over, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    lease_duration: u16,

    /// Hold a change that would delete more instances of an add-on at once than both of these: NUMBER,PERCENT%
    #[arg(long, value_name = "NUMBER,PERCENT%", default_value = "10,25%", value_parser = brake)]
    deletion_brake: Brake,

    /// Namespaces from which any instance may take its configs
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', default_value = "open-cluster-management")]
    config_namespaces: Vec<String>,

    /// How many completed revisions of a placement are kept to roll back to
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    history_limit: u16,

    /// Check every plan against the promises before it is carried out; an add-on whose plan breaks one is left as it is, with an Event
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
    let stopped = stop_signal()?;
    let metrics = Metrics::default();
    let Connection { client, server } = args.hub.connect_counted(&metrics).await?;
    let version = client
        .apiserver_version()
        .await
        .map_err(|error| refused("ask the hub for its version", &error, &server))?;
    let created = have_namespace(&client, &args.namespace, &server).await?;
    // A container that is started again has the name and the process number of the one before.
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
        .told_to(metrics.clone())
        .with_lease(Duration::from_secs(args.lease_duration.into()));
    let telemetry = Telemetry { health: manager.health(), metrics, clock, client };
    let mut told = format!("Manager {identity} works on {server}, version {}\n", version.git_version);
    if created {
        told.push_str(&format!("  created  namespace {}\n", args.namespace));
    }
    told.push_str(&args.telemetry.start(&telemetry).await?);
    told.push_str("Stop it with Ctrl-C.\n");
    session.output.text(&told)?;
    session.output.finish()?;
    manager.run(stopped).await;
    session.output.text("The manager has stopped.\n")?;
    Ok(())
}

/// Sees to it that the manager's namespace is there. Says whether it had to be created.
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
                "create the namespace {name}, which the lease and kept revisions need (--namespace names another)"
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

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "manager".to_owned() } else { name.trim().to_owned() }
}
