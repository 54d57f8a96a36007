//! `aviary registration`: approves the certificates of add-on agents and grants their rights.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use aviary_controller::{Clock, ManagerHealth, Metrics};
use aviary_registration::decide::ApprovalPolicy;
use aviary_registration::process::{self, RegistrationSettings};
use aviary_registration::template::SecretRef;
use clap::ArgAction;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use super::manager::hostname;
use super::{Outcome, Session};
use crate::connect::{Connection, HubArgs, refused};
use crate::logs::{self, LogArgs};
use crate::output::Printout;
use crate::process::stop_signal;
use crate::telemetry::{Telemetry, TelemetryArgs};

const DESCRIPTION: &str = "\
Run the registration of add-on agents, for templates with spec.registration: approve the certificate requests of agents, \
sign those of listed signers, bind the roles that the administrator allows, and write status.registrations.

It is a process of its own, with its own service account, because it needs rights that the manager must not have. A request is approved \
only if its subject, organizations, signer, usages and requester are exactly those of the cluster's agent; others are left alone, and an \
Event says why. You can run several: one leads, the others stand by.";

/// Run the registration of add-on agents (opt-in)
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  Run it on the hub of the current kubeconfig
    $ aviary registration

  Also sign for a signer, with the CA in a Secret
    $ aviary registration --signer example.com/agent=open-cluster-management/agent-ca")]
pub(crate) struct Args {
    #[command(flatten)]
    hub: HubArgs,

    /// Namespace of this process: for the lease, the manager's stored revisions, and Secrets that a
    /// template names without a namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "open-cluster-management")]
    namespace: String,

    /// Sign for a signer with the CA in a Secret (tls.crt, tls.key). May be given several times.
    /// The template must name the same Secret
    #[arg(long = "signer", value_name = "SIGNER=NAMESPACE/SECRET", value_parser = signer)]
    signers: Vec<(String, SecretRef)>,

    /// Service account of the hub's gRPC server: only its requests may name another requester in an
    /// annotation
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = account)]
    grpc_server_account: Option<String>,

    /// Ignore requests that have been pending for longer than this, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(1..))]
    request_lifetime: u32,

    /// Let agents use tokens of service accounts, where their instance asks for them. First install
    /// the admission policy that stops this process from requesting tokens itself
    #[arg(long)]
    tokens: bool,

    /// Leader election; disable it only if no other such process runs on this hub
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    leader_elect: bool,

    /// Lease duration in seconds: how long a silent leader keeps the lease
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    lease_duration: u16,

    /// Address for /livez and /readyz, without authentication; port 0 picks a free port
    #[arg(long, value_name = "ADDR")]
    health: Option<SocketAddr>,

    #[command(flatten)]
    logs: LogArgs,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    logs::start(&args.logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(register(args, session))?;
    Ok(Outcome::Done)
}

async fn register(args: &Args, session: &mut Session) -> anyhow::Result<()> {
    let stopped = stop_signal()?;
    let metrics = Metrics::default();
    let Connection { client, server } = args.hub.connect_counted(&metrics).await?;
    let version = client
        .apiserver_version()
        .await
        .map_err(|error| refused("ask the hub for its version", &error, &server))?;
    // A restarted container has the same host name and process ID as its predecessor.
    let identity = format!("{}_{}_{:x}", hostname(), std::process::id(), session.now.as_nanosecond());
    let clock: Clock = Arc::new(Timestamp::now);
    let settings = RegistrationSettings {
        policy: ApprovalPolicy {
            namespace: args.namespace.clone(),
            signers: args.signers.clone(),
            grpc_server: args.grpc_server_account.clone(),
            request_lifetime: SignedDuration::from_secs(args.request_lifetime.into()),
            tokens: args.tokens,
        },
        identity: identity.clone(),
        lease: args.leader_elect.then(|| Duration::from_secs(args.lease_duration.into())),
        clock: Arc::clone(&clock),
    };
    let (health, told_health) = watch::channel(ManagerHealth::default());
    let telemetry = Telemetry { health: told_health, metrics, clock, client: client.clone() };
    let mut told = Printout::of(format_args!(
        "Registration {identity} running on {server}, version {}",
        version.git_version
    ));
    told.add(&TelemetryArgs::of_health(args.health).start(&telemetry).await?);
    told.line("Press Ctrl-C to stop.");
    session.output.text(&told)?;
    session.output.finish()?;
    let (ready, mut is_ready) = watch::channel(false);
    let tell = async {
        while is_ready.changed().await.is_ok() {
            let listed = *is_ready.borrow_and_update();
            health.send_replace(ManagerHealth { listed, synced: listed, ..ManagerHealth::default() });
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = process::run(client, settings, ready, stopped) => {}
        () = tell => {}
    }
    session.output.line("Registration stopped.")?;
    Ok(())
}

fn signer(text: &str) -> Result<(String, SecretRef), String> {
    let parts = text.split_once('=').and_then(|(signer, secret)| {
        let (namespace, name) = secret.split_once('/')?;
        let is_signer =
            signer.split_once('/').is_some_and(|(domain, path)| domain.contains('.') && !path.is_empty());
        let fits = is_signer && !namespace.is_empty() && !name.is_empty() && !name.contains('/');
        fits.then(|| {
            (signer.to_owned(), SecretRef { namespace: namespace.to_owned(), name: name.to_owned() })
        })
    });
    match parts {
        Some((signer, _)) if signer.starts_with("kubernetes.io/") => {
            Err("must not be a signer of Kubernetes: Kubernetes signs for those".into())
        }
        Some(parts) => Ok(parts),
        None => {
            Err("must be a signer and a Secret, such as example.com/agent=open-cluster-management/agent-ca"
                .into())
        }
    }
}

fn account(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(format!("system:serviceaccount:{namespace}:{name}"))
        }
        _ => Err("must be a namespace and a name, such as open-cluster-management-hub/grpc-server-sa".into()),
    }
}
