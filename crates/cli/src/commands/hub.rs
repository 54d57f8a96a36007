//! `aviary hub`: the embedded hub on its own, with our kinds installed.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use aviary_api::crds;
use aviary_hub::security::{Role, write_private};
use aviary_hub::{Endpoint, Hub, Options};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use serde::Deserialize;
use tokio::net::TcpListener;

use super::{Outcome, Session, typed};
use crate::process::stop_signal;

const DESCRIPTION: &str = "\
Run the embedded hub: a Kubernetes-compatible API server in this process, with Aviary's kinds installed.

It is for trying out, for tests and for rehearsals; production is a real Kubernetes API server. It serves TLS with a certificate \
of its own authority, and lets in only holders of a token. What it has acknowledged is on disk. It stops on Ctrl-C or SIGTERM.";

/// Run the embedded hub, a Kubernetes-compatible API server, with the kinds installed
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  Run a hub that keeps its data, and look at it from another terminal
    $ aviary hub --data-dir ./hub
    $ kubectl --kubeconfig ./hub/kubeconfig get clustermanagementaddons

  Run one that forgets everything when it stops
    $ aviary hub --ephemeral --kubeconfig-out ./hub.kubeconfig")]
pub(crate) struct Args {
    /// Directory for the data, the certificates and the tokens; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "aviary-hub", conflicts_with = "ephemeral")]
    data_dir: PathBuf,

    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:16443")]
    listen: SocketAddr,

    /// Where to write the kubeconfig of the administrator [default: kubeconfig in the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,

    /// Keep everything in memory: nothing is left when the hub stops
    #[arg(long, requires = "kubeconfig_out")]
    ephemeral: bool,

    /// Allow an address that other machines can reach
    #[arg(long)]
    allow_remote: bool,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    if !args.listen.ip().is_loopback() {
        if !args.allow_remote {
            bail!("{} can be reached by other machines: add --allow-remote if that is meant", args.listen);
        }
        session
            .output
            .complaint("warning: this hub can be reached by other machines; it is not made for production");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(serve(args, session))?;
    Ok(Outcome::Done)
}

async fn serve(args: &Args, session: &mut Session) -> anyhow::Result<()> {
    // First, so that a signal during the start is not lost.
    let stopped = stop_signal()?;
    let (hub, endpoint) = open(args).await?;
    let installed = install_kinds(&hub).await?;
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("failed to listen on {}", args.listen))?;
    let address = listener.local_addr().context("failed to read the address")?;
    let file = args.kubeconfig_out.clone().unwrap_or_else(|| args.data_dir.join("kubeconfig"));
    let token = known_token(&file, &endpoint)?;
    write_private(&file, endpoint.kubeconfig(reachable(address), &token).as_bytes())
        .with_context(|| format!("failed to write {}", file.display()))?;
    let data = if args.ephemeral {
        "in memory, gone when it stops".to_owned()
    } else {
        args.data_dir.display().to_string()
    };
    session.output.text(&format!(
        "The hub listens on https://{address}\n  data        {data}\n  kubeconfig  {}\n  kinds       {installed}\n\n\
         Try it:  kubectl {} get clustermanagementaddons\nStop it with Ctrl-C.\n",
        file.display(),
        typed("--kubeconfig", std::slice::from_ref(&file)),
    ))?;
    session.output.finish()?;
    hub.serve(listener, &endpoint, stopped).await.context("the hub failed")?;
    session.output.text("The hub has stopped.\n")?;
    Ok(())
}

async fn open(args: &Args) -> anyhow::Result<(Hub, Endpoint)> {
    let hosts: Vec<String> = if args.listen.ip().is_loopback() || args.listen.ip().is_unspecified() {
        Vec::new()
    } else {
        vec![args.listen.ip().to_string()]
    };
    if args.ephemeral {
        let hub = Hub::ephemeral(Options::default()).await.context("failed to start the hub")?;
        let endpoint = Endpoint::ephemeral(&hub, &hosts)?;
        return Ok((hub, endpoint));
    }
    let hub = Hub::open(&args.data_dir, Options::default()).await.context("failed to open the hub")?;
    let endpoint = Endpoint::open(&hub, &args.data_dir, &hosts)?;
    Ok((hub, endpoint))
}

/// Creates or updates the CRDs. Says how many there are.
pub(super) async fn install_kinds(hub: &Hub) -> anyhow::Result<String> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.client());
    let all = crds::all();
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

/// The token in an earlier kubeconfig, if it is still good: copies of that file go on working. Otherwise a new one.
pub(super) fn known_token(file: &Path, endpoint: &Endpoint) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Config {
        users: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
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
    let token = endpoint.issue_token("admin", Role::Admin).context("failed to make a token")?;
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
