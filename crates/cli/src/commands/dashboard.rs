//! `aviary dashboard`: serves the web page for a hub.
//!
//! Owns the listen address, the allowed host names, and whose rights are used. On loopback these
//! are the rights of the kubeconfig, for anyone who has the printed token. On any other address,
//! over TLS, they are those of each user's own token.

mod operate;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use aviary_dashboard::{
    Connect, Dashboard, DashboardSettings, HostCheck, Operate, RightsMode, SessionToken, serve,
};
use aviary_serve::{AllowedHosts, Limits, host_allowed, serve_tls, tls_from_files, write_private};
use jiff::Timestamp;
use kube::{Client, Config};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Outcome, Session};
use crate::connect::{Connection, client_of};
use crate::live::{LiveArgs, told};
use crate::logs::{self, LogArgs};
use crate::output::Printout;
use crate::process::{listen, stop_signal};
use operate::Operator;

/// The maximum number of concurrent TLS connections.
const MOST_CONNECTIONS: usize = 512;

const DESCRIPTION: &str = "\
Serve the dashboard: a live web page that shows all add-ons, and for each add-on its placements, one square per cluster with its reason, \
the rollout over time, its revisions and its events.

The dashboard has no rights of its own. On a loopback address, which is the default, it uses the rights of the kubeconfig, and \
admits anyone who has the token in the printed address. Other machines need TLS, with --tls-cert and --tls-key: \
then each user signs in with their own token, and every request to the hub uses that token, so the hub \
decides what each user may see and do.

The dashboard is read-only by default. With --enable-writes, users can pause, resume and undo rollouts and approve deletions that the \
brake holds. Each action uses the code of aviary rollout, and first shows how many clusters it affects.

The dashboard accepts requests to localhost, to its listen address, and to the names in --allowed-host. Requests with any other host \
name, and cross-origin requests, are refused.";

const EXAMPLES: &str = "\
Examples:
  Serve the page for the hub of the current kubeconfig
    $ aviary dashboard

  With buttons to pause, resume and undo, on another port
    $ aviary dashboard --enable-writes --listen 127.0.0.1:8080

  Keep the same address after a restart, for a tab that stays open
    $ aviary dashboard --token-file ./dashboard.token

  In a cluster, for users with their own tokens
    $ aviary dashboard --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key \\
        --allowed-host aviary.example.com

Exit codes: 0 stopped, 1 the dashboard could not be served or the hub not be read, 2 wrong usage.";

/// Serve the web page that shows rollouts live
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address to listen on; port 0 picks a free port. Other machines need TLS
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:16480")]
    listen: SocketAddr,

    /// Allow users to pause, resume and undo rollouts, and to approve deletions that the brake
    /// holds
    #[arg(long)]
    enable_writes: bool,

    /// Certificate chain, PEM; required for an address that other machines can reach
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Accept requests to this host name (without a port); may be given several times
    #[arg(long = "allowed-host", value_name = "HOST")]
    allowed_hosts: Vec<String>,

    /// Keep the token in this file, so that the address stays the same; created if it does not
    /// exist
    #[arg(long, value_name = "FILE", conflicts_with = "tls_cert")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    live: LiveArgs,

    #[command(flatten)]
    logs: LogArgs,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let open = !args.listen.ip().is_loopback();
    if open && args.tls_cert.is_none() {
        bail!(
            "other machines can reach {}, which requires TLS: give --tls-cert and --tls-key, or listen on 127.0.0.1",
            args.listen
        );
    }
    if !open && args.tls_cert.is_some() {
        bail!("--tls-cert is only for an address that other machines can reach; loopback is unencrypted");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(show(args, session))?;
    Ok(Outcome::Done)
}

async fn show(args: &Args, session: &mut Session) -> anyhow::Result<()> {
    // Registered first, so that no signal is lost during startup.
    let stopped = stop_signal()?;
    logs::start(&args.logs)?;
    let listener = listen(args.listen, "--listen").await?;
    let hosts = hosts(args.listen, &args.allowed_hosts)?;
    let site = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let tls = tls_from_files(certificate, key)?;
            Site::for_others(args, listener, hosts, tls).await?
        }
        _ => {
            let connection = args.live.hub.connect().await?;
            let token = session_token(args.token_file.as_deref())?;
            let over = ShownHub { connection: &connection, namespace: &args.live.manager_namespace };
            Site::on_loopback(listener, over, hosts, token, args.enable_writes).await?
        }
    };
    let mut text = Printout::of(format_args!("  dashboard  {}", site.address));
    text.line(format_args!("  hub        {}", site.server));
    let who = match args.tls_cert {
        Some(_) => "Each user signs in with their own token.",
        None => "Anyone who has this address can use the rights of your kubeconfig.",
    };
    let what = if args.enable_writes { "Rollouts can be changed." } else { "Read-only." };
    text.line(format_args!("{who} {what}"));
    text.line("Press Ctrl-C to stop.");
    session.output.text(&text)?;
    session.output.finish()?;
    stopped.await;
    site.close().await?;
    session.output.line("Dashboard stopped.")
}

/// The host names of the dashboard.
pub(crate) fn hosts(listen: SocketAddr, allowed: &[String]) -> anyhow::Result<HostCheck> {
    let own = listen.ip().to_string();
    let hosts =
        AllowedHosts::new(allowed.iter().chain([&own])).context("--allowed-host is not a valid host name")?;
    Ok(Arc::new(move |host| host_allowed(host, &hosts)))
}

/// Returns the token of this run: the one in the file, or a new one, which is stored there.
pub(crate) fn session_token(file: Option<&Path>) -> anyhow::Result<SessionToken> {
    let Some(file) = file else { return Ok(SessionToken::random()?) };
    match std::fs::read_to_string(file) {
        Ok(text) => SessionToken::known(text.trim()).ok_or_else(|| {
            anyhow!(
                "{} does not contain a dashboard token: delete it, and a new one is created",
                file.display()
            )
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let token = SessionToken::random()?;
            write_private(file, format!("{}\n", token.expose()).as_bytes())
                .with_context(|| format!("failed to write {}", file.display()))?;
            Ok(token)
        }
        Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
    }
}

/// The hub that is shown.
#[derive(Clone, Copy)]
pub(crate) struct ShownHub<'a> {
    pub(crate) connection: &'a Connection,
    /// The namespace where its manager keeps revisions.
    pub(crate) namespace: &'a str,
}

/// A running dashboard.
pub(crate) struct Site {
    /// The address to open in a browser.
    pub(crate) address: String,
    server: String,
    dashboard: Dashboard,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Site {
    /// Serves anyone who has the token.
    pub(crate) async fn on_loopback(
        listener: TcpListener,
        over: ShownHub<'_>,
        hosts: HostCheck,
        token: SessionToken,
        writes: bool,
    ) -> anyhow::Result<Self> {
        let ShownHub { connection, namespace } = over;
        let address = listener.local_addr().context("failed to read the address")?;
        let shown = format!("http://{address}/#token={}", token.expose());
        let access = RightsMode::Kubeconfig { client: connection.client.clone(), token };
        let settings = settings(&connection.server, namespace, access, hosts, false, writes);
        let dashboard = Dashboard::new(settings);
        dashboard.open().await.map_err(|error| told(&error, connection))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(listener, dashboard.router(), async { drop(stopped.await) }));
        Ok(Self { address: shown, server: connection.server.clone(), dashboard, stop, task })
    }

    /// Serves users who have their own tokens.
    async fn for_others(
        args: &Args,
        listener: TcpListener,
        hosts: HostCheck,
        tls: Arc<ServerConfig>,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("failed to read the address")?;
        let (config, server) = args.live.hub.without_rights().await?;
        let access = RightsMode::Users(Arc::new(WithToken(config)));
        let settings =
            settings(&server, &args.live.manager_namespace, access, hosts, true, args.enable_writes);
        let dashboard = Dashboard::new(settings);
        let (stop, stopped) = oneshot::channel::<()>();
        let limits = Limits { connections: MOST_CONNECTIONS, ..Limits::default() };
        let served = serve_tls(listener, tls, dashboard.router(), limits, async {
            drop(stopped.await);
        });
        let task = tokio::spawn(served);
        Ok(Self { address: format!("https://{address}/"), server, dashboard, stop, task })
    }

    /// Waits until somebody has opened the page.
    pub(crate) async fn visited(&self) {
        self.dashboard.visited().await;
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.dashboard.close();
        // The server may have ended already.
        let _ = self.stop.send(());
        self.task.await.context("the dashboard did not stop cleanly")?.context("the dashboard failed")
    }
}

fn settings(
    server: &str,
    namespace: &str,
    access: RightsMode,
    hosts: HostCheck,
    secure: bool,
    writes: bool,
) -> DashboardSettings {
    let operator = || Operator { server: server.to_owned(), namespace: namespace.to_owned() };
    DashboardSettings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        server: server.to_owned(),
        namespace: namespace.to_owned(),
        access,
        hosts,
        secure,
        operate: writes.then(|| -> Arc<dyn Operate> { Arc::new(operator()) }),
        clock: Arc::new(Timestamp::now),
    }
}

/// Connects to the hub with a user's token only.
struct WithToken(Config);

impl Connect for WithToken {
    fn client(&self, token: &str) -> Result<Client, String> {
        let mut config = self.0.clone();
        config.auth_info.token = Some(token.to_owned().into());
        client_of(config, None).map_err(|error| error.to_string())
    }
}
