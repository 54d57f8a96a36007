//! `aviary hub`: runs the embedded hub, with Aviary's kinds installed.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use aviary_api::crds;
use aviary_hub::security::Role;
use aviary_hub::{Endpoint, Hub, HubOptions};
use aviary_serve::write_private;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use serde::Deserialize;

use super::{Outcome, Session, typed};
use crate::conversion;
use crate::output::Printout;
use crate::packaging::NAMESPACE;
use crate::process::{listen, stop_signal};

const DESCRIPTION: &str = "\
Run the embedded hub: a Kubernetes-compatible API server in this process, with Aviary's kinds installed.

It is for trials, tests and rehearsals; for production, use a real Kubernetes API server. It serves TLS with a certificate \
from its own certificate authority, and requires a token. Every acknowledged write is on disk. It stops on Ctrl-C or SIGTERM.";

/// Run the embedded hub: a Kubernetes-compatible API server with Aviary's kinds installed
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  Run a hub that keeps its data, and look at it from another terminal
    $ aviary hub --data-dir ./hub
    $ kubectl --kubeconfig ./hub/kubeconfig get clustermanagementaddons

  Run a hub in memory; its data is discarded on exit
    $ aviary hub --ephemeral --kubeconfig-out ./hub.kubeconfig")]
pub(crate) struct Args {
    /// Directory for the data, certificates and tokens; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "aviary-hub", conflicts_with = "ephemeral")]
    data_dir: PathBuf,

    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:16443")]
    listen: SocketAddr,

    /// File for the administrator's kubeconfig [default: kubeconfig in the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,

    /// Keep everything in memory; discarded on exit
    #[arg(long, requires = "kubeconfig_out")]
    ephemeral: bool,

    /// Also serve v1beta1 of the add-on kinds. kubectl then shows v1beta1 unless told otherwise
    #[arg(long)]
    v1beta1: bool,

    /// Allow an address that other machines can reach
    #[arg(long)]
    allow_remote: bool,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    if !args.listen.ip().is_loopback() {
        if !args.allow_remote {
            bail!("other machines can reach {}: add --allow-remote to allow that", args.listen);
        }
        session.output.complaint("warning: other machines can reach this hub; it is not for production");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(serve(args, session))?;
    Ok(Outcome::Done)
}

async fn serve(args: &Args, session: &mut Session) -> anyhow::Result<()> {
    // Registered first, so that no signal is lost during startup.
    let stopped = stop_signal()?;
    // Before anything is created in the data directory.
    let listener = listen(args.listen, "--listen").await?;
    let (hub, endpoint) = open(args).await?;
    let installed = install_kinds(&hub, args.v1beta1).await?;
    let address = listener.local_addr().context("failed to read the address")?;
    let file = args.kubeconfig_out.clone().unwrap_or_else(|| args.data_dir.join("kubeconfig"));
    let token = known_token(&file, &endpoint)?;
    write_private(&file, endpoint.kubeconfig(reachable(address), &token).as_bytes())
        .with_context(|| format!("failed to write {}", file.display()))?;
    let data = if args.ephemeral {
        "in memory; discarded on exit".to_owned()
    } else {
        args.data_dir.display().to_string()
    };
    let mut text = Printout::of(format_args!("Hub listening on https://{address}"));
    text.line(format_args!("  data        {data}"));
    text.line(format_args!("  kubeconfig  {}", file.display()));
    text.line(format_args!("  kinds       {installed}"));
    text.gap();
    let reached = typed("--kubeconfig", std::slice::from_ref(&file));
    text.line(format_args!("Try it:  kubectl {reached} get clustermanagementaddons"));
    text.line("Press Ctrl-C to stop.");
    session.output.text(&text)?;
    session.output.finish()?;
    hub.serve(listener, &endpoint, stopped).await.context("the hub failed")?;
    session.output.line("Hub stopped.")?;
    Ok(())
}

async fn open(args: &Args) -> anyhow::Result<(Hub, Endpoint)> {
    let hosts: Vec<String> = if args.listen.ip().is_loopback() || args.listen.ip().is_unspecified() {
        Vec::new()
    } else {
        vec![args.listen.ip().to_string()]
    };
    if args.ephemeral {
        let hub = Hub::ephemeral(options()).await.context("failed to start the hub")?;
        let endpoint = Endpoint::ephemeral(&hub, &hosts)?;
        return Ok((hub, endpoint));
    }
    let hub = Hub::open(&args.data_dir, options()).await.context("failed to open the hub")?;
    let endpoint = Endpoint::open(&hub, &args.data_dir, &hosts)?;
    Ok((hub, endpoint))
}

/// A hub that can convert the add-on kinds, whichever versions of them are installed.
pub(super) fn options() -> HubOptions {
    HubOptions { converters: conversion::converters(), ..HubOptions::default() }
}

/// Creates or updates the CRDs. Returns a line with their number.
pub(super) async fn install_kinds(hub: &Hub, v1beta1: bool) -> anyhow::Result<String> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.client());
    let all = if v1beta1 { crds::with_beta(&conversion::service(NAMESPACE)) } else { crds::all() };
    for crd in &all {
        let name = crd.metadata.name.clone().unwrap_or_default();
        let failed = || format!("failed to install the CRD {name}");
        match api.get_opt(&name).await.with_context(failed)? {
            None => drop(api.create(&PostParams::default(), crd).await.with_context(failed)?),
            Some(there) => {
                let mut wanted = crd.clone();
                wanted.metadata.resource_version = there.metadata.resource_version;
                wanted.metadata.finalizers = there.metadata.finalizers;
                drop(api.replace(&name, &PostParams::default(), &wanted).await.with_context(failed)?);
            }
        }
    }
    Ok(format!("{} custom resource definitions installed", all.len()))
}

/// Returns the token in an existing kubeconfig if it is still valid, so that copies of that file
/// keep working. Otherwise issues a new one.
pub(super) fn known_token(file: &Path, endpoint: &Endpoint) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Config {
        users: Vec<UserEntry>,
    }
    #[derive(Deserialize)]
    struct UserEntry {
        user: User,
    }
    #[derive(Deserialize)]
    struct User {
        token: String,
    }
    let earlier =
        std::fs::read_to_string(file).ok().and_then(|text| serde_saphyr::from_str::<Config>(&text).ok());
    let tokens = earlier.into_iter().flat_map(|config| config.users).map(|entry| entry.user.token);
    for token in tokens {
        if endpoint.identify(&token).is_some_and(|identity| identity.role == Role::Admin) {
            return Ok(token);
        }
    }
    let token = endpoint.issue_token("admin", Role::Admin).context("failed to create a token")?;
    Ok(token.expose().to_owned())
}

/// The address a client on this machine uses.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::from(([127, 0, 0, 1], address.port())),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], address.port())),
        _ => address,
    }
}
