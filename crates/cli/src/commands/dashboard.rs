//! `aviary dashboard`: the web page over a hub.
//!
//! Owns where it listens, by which names it is called, and whose rights it uses. On loopback those of the kubeconfig, for whoever has the token
//! that is printed; anywhere else, over TLS, those of each person's own token.

mod operate;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use aviary_dashboard::{Access, Connect, Dashboard, HostCheck, Operate, SessionToken, Settings, serve};
use aviary_hub::security::{AllowedHosts, host_allowed, write_private};
use aviary_hub::serve::Limits;
use jiff::Timestamp;
use kube::{Client, Config};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Outcome, Session};
use crate::connect::Connection;
use crate::live::{LiveArgs, told};
use crate::logs::{self, LogArgs};
use crate::process::stop_signal;
use crate::telemetry::tls_of;
use operate::Operator;

/// Connections that are served over TLS at once.
const MOST_CONNECTIONS: usize = 512;

const DESCRIPTION: &str = "\
Serve the dashboard: a web page that shows all add-ons, and of each one its placements, a square for every cluster with its reason, \
the rollout over time, its revisions and what happened, live.

It has no rights of its own. On a loopback address, which is the default, it looks at the hub with the rights of the kubeconfig, and \
lets in whoever has the token in the address that it prints. Other machines are served over TLS only, with --tls-cert and --tls-key: \
everybody then gives a token of their own that the hub knows, and every request to the hub is made with that token, so the hub \
decides what each of them sees and may do.

It only looks. With --enable-writes rollouts can be paused, resumed and undone and a braked deletion acknowledged, by the code of \
aviary rollout, each after a question that says how many clusters it concerns.

It answers to localhost, to the address that it listens on, and to the names in --allowed-host; whatever calls it by another name is \
refused, and so is every other web page.";

const EXAMPLES: &str = "\
Examples:
  Open the page over the hub of the current kubeconfig
    $ aviary dashboard

  With buttons to pause, resume and undo, on another port
    $ aviary dashboard --enable-writes --listen 127.0.0.1:8080

  The same address after a restart, for a tab that stays open
    $ aviary dashboard --token-file ./dashboard.token

  In a cluster, for people who bring their own tokens
    $ aviary dashboard --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key \\
        --allowed-host aviary.example.com

Exit codes: 0 it was stopped, 1 it could not be served or the hub not be read, 2 wrong usage.";

/// Serve the web page that shows rollouts live
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address to listen on; port 0 takes a free one. Other machines are served over TLS only
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:16480")]
    listen: SocketAddr,

    /// Let people pause, resume and undo rollouts and acknowledge a braked deletion
    #[arg(long)]
    enable_writes: bool,

    /// Certificate chain, PEM, for an address that other machines can reach
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// A name by which the page is called, without a port; may be given several times
    #[arg(long = "allowed-host", value_name = "HOST")]
    allowed_hosts: Vec<String>,

    /// Keep the token of the address in this file, so that the address is the same next time; made if it is not there
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
            "{} can be reached by other machines, which are served over TLS only: give --tls-cert and --tls-key, or listen on 127.0.0.1",
            args.listen
        );
    }
    if !open && args.tls_cert.is_some() {
        bail!("--tls-cert is for an address that other machines can reach; loopback is served in the clear");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(show(args, session))?;
    Ok(Outcome::Done)
}

async fn show(args: &Args, session: &mut Session) -> anyhow::Result<()> {
    // First, so that a signal during the start is not lost.
    let stopped = stop_signal()?;
    logs::start(&args.logs)?;
    let listener = listen(args.listen, "--listen").await?;
    let hosts = hosts(args.listen, &args.allowed_hosts)?;
    let site = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let tls = tls_of(certificate, key)?;
            Site::for_others(args, listener, hosts, tls).await?
        }
        _ => {
            let connection = args.live.hub.connect().await?;
            let token = session_token(args.token_file.as_deref())?;
            let over = Over { connection: &connection, namespace: &args.live.manager_namespace };
            Site::on_loopback(listener, over, hosts, token, args.enable_writes).await?
        }
    };
    let mut text = format!("  dashboard  {}\n  hub        {}\n", site.address, site.server);
    if args.tls_cert.is_some() {
        text.push_str("Everybody gives a token of their own that the hub knows. ");
    } else {
        text.push_str("Whoever has this address has the rights of the kubeconfig there. ");
    }
    let what = if args.enable_writes { "It can change rollouts." } else { "It only looks." };
    session.output.text(&format!("{text}{what}\nStop it with Ctrl-C.\n"))?;
    session.output.finish()?;
    stopped.await;
    site.close().await?;
    session.output.text("The dashboard has stopped.\n")
}

/// Takes the port, or says what to do.
pub(crate) async fn listen(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow!(
            "failed to listen on {address}: another process has that port: choose another with {option}; port 0 takes a free one"
        ),
        _ => anyhow::Error::new(error).context(format!("failed to listen on {address}")),
    })
}

/// By which names it is called.
pub(crate) fn hosts(listen: SocketAddr, allowed: &[String]) -> anyhow::Result<HostCheck> {
    let own = listen.ip().to_string();
    let hosts = AllowedHosts::new(allowed.iter().chain([&own])).context("--allowed-host names no host")?;
    Ok(Arc::new(move |host| host_allowed(host, &hosts)))
}

/// The token of this run: the one in the file, or a new one, which is kept there.
pub(crate) fn session_token(file: Option<&Path>) -> anyhow::Result<SessionToken> {
    let Some(file) = file else { return Ok(SessionToken::random()?) };
    match std::fs::read_to_string(file) {
        Ok(text) => SessionToken::known(text.trim()).ok_or_else(|| {
            anyhow!("{} holds no token of a dashboard: delete it, and a new one is made", file.display())
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
pub(crate) struct Over<'a> {
    pub(crate) connection: &'a Connection,
    /// Where its manager keeps revisions.
    pub(crate) namespace: &'a str,
}

/// A dashboard that is served.
pub(crate) struct Site {
    /// What people open.
    pub(crate) address: String,
    server: String,
    dashboard: Dashboard,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Site {
    /// For whoever has the token.
    pub(crate) async fn on_loopback(
        listener: TcpListener,
        over: Over<'_>,
        hosts: HostCheck,
        token: SessionToken,
        writes: bool,
    ) -> anyhow::Result<Self> {
        let Over { connection, namespace } = over;
        let address = listener.local_addr().context("failed to read the address")?;
        let shown = format!("http://{address}/#token={}", token.expose());
        let access = Access::Kubeconfig { client: connection.client.clone(), token };
        let settings = settings(&connection.server, namespace, access, hosts, false, writes);
        let dashboard = Dashboard::new(settings);
        dashboard.open().await.map_err(|error| told(&error, connection))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(listener, dashboard.router(), async { drop(stopped.await) }));
        Ok(Self { address: shown, server: connection.server.clone(), dashboard, stop, task })
    }

    /// For people with tokens of their own.
    async fn for_others(
        args: &Args,
        listener: TcpListener,
        hosts: HostCheck,
        tls: Arc<ServerConfig>,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("failed to read the address")?;
        let (config, server) = args.live.hub.without_rights().await?;
        let access = Access::Users(Arc::new(WithToken(config)));
        let settings =
            settings(&server, &args.live.manager_namespace, access, hosts, true, args.enable_writes);
        let dashboard = Dashboard::new(settings);
        let (stop, stopped) = oneshot::channel::<()>();
        let limits = Limits { connections: MOST_CONNECTIONS, ..Limits::default() };
        let served = aviary_hub::serve::serve(listener, tls, dashboard.router(), limits, async {
            drop(stopped.await);
        });
        let task = tokio::spawn(served);
        Ok(Self { address: format!("https://{address}/"), server, dashboard, stop, task })
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.dashboard.close();
        // It may have ended by itself.
        let _ = self.stop.send(());
        self.task.await.context("the dashboard did not end well")?.context("the dashboard failed")
    }
}

fn settings(
    server: &str,
    namespace: &str,
    access: Access,
    hosts: HostCheck,
    secure: bool,
    writes: bool,
) -> Settings {
    let operator = || Operator { server: server.to_owned(), namespace: namespace.to_owned() };
    Settings {
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

/// Reaches the hub with somebody's token and nothing else.
struct WithToken(Config);

impl Connect for WithToken {
    fn client(&self, token: &str) -> Result<Client, String> {
        let mut config = self.0.clone();
        config.auth_info.token = Some(token.to_owned().into());
        Client::try_from(config).map_err(|error| error.to_string())
    }
}
