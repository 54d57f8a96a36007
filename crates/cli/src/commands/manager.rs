//! `aviary manager`: the controllers against any Kubernetes API server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use aviary_controller::{Health, Manager, Settings};
use aviary_engine::observed::Options;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use clap::ArgAction;
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{Outcome, Session};
use crate::process::stop_signal;

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
    $ aviary manager --kubeconfig ./hub/kubeconfig --placement")]
pub(crate) struct Args {
    /// Kubeconfig of the hub [default: KUBECONFIG, the one in the home directory, or that of the pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Namespace for the lease and for kept revisions
    #[arg(long, value_name = "NAMESPACE", default_value = "open-cluster-management")]
    namespace: String,

    /// Loopback address for /livez and /readyz; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    health: Option<SocketAddr>,

    /// Decide placements too, on a hub that has no placement controller
    #[arg(long)]
    placement: bool,

    /// Whether other managers may run beside this one
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    leader_elect: bool,

    /// Check every plan against the promises before it is carried out; an add-on whose plan breaks one is left as it is, with an Event
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    if let Some(address) = args.health.filter(|address| !address.ip().is_loopback()) {
        bail!(
            "{address} can be reached by other machines, and what is told there is not protected: use a loopback address"
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(manage(args, session))?;
    Ok(Outcome::Done)
}

async fn manage(args: &Args, session: &mut Session) -> anyhow::Result<()> {
    let stopped = stop_signal()?;
    let client = connect(args).await?;
    let version = client.apiserver_version().await.context("failed to reach the hub")?;
    let identity = format!("{}_{}", hostname(), std::process::id());
    let settings = Settings {
        namespace: args.namespace.clone(),
        identity: identity.clone(),
        leader_elect: args.leader_elect,
        verify: args.verify,
        placement: args.placement,
        options: Options::default(),
        clock: Arc::new(Timestamp::now),
    };
    let manager = Manager::new(client, settings);
    let mut told = format!("Manager {identity} works on a hub of version {}\n", version.git_version);
    if let Some(address) = args.health {
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("failed to listen on {address}"))?;
        told.push_str(&format!(
            "  health  http://{}/readyz\n",
            listener.local_addr().context("failed to read the address")?
        ));
        tokio::spawn(tell_health(listener, manager.health()));
    }
    told.push_str("Stop it with Ctrl-C.\n");
    session.output.text(&told)?;
    session.output.finish()?;
    manager.run(stopped).await;
    session.output.text("The manager has stopped.\n")?;
    Ok(())
}

async fn connect(args: &Args) -> anyhow::Result<Client> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let config = match &args.kubeconfig {
        Some(file) => {
            let read =
                Kubeconfig::read_from(file).with_context(|| format!("failed to read {}", file.display()))?;
            Config::from_custom_kubeconfig(read, &options)
                .await
                .with_context(|| format!("failed to use {}", file.display()))?
        }
        None if args.context.is_some() => {
            Config::from_kubeconfig(&options).await.context("failed to read the kubeconfig")?
        }
        None => Config::infer().await.context("failed to find a kubeconfig")?,
    };
    Client::try_from(config).context("failed to make a client")
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "manager".to_owned() } else { name.trim().to_owned() }
}

async fn tell_health(listener: TcpListener, health: watch::Receiver<Health>) {
    let ready = move || {
        let health = *health.borrow();
        async move {
            if health.is_ready() {
                (StatusCode::OK, "ok")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "not ready")
            }
        }
    };
    let routes = Router::new().route("/livez", get(|| async { "ok" })).route("/readyz", get(ready));
    // It is there for as long as the process is.
    let _ = axum::serve(listener, routes).await;
}
