//! Health checks and metrics of a manager.
//!
//! Owns the listeners. Metrics are served unencrypted on loopback only. On any other address they
//! are served over TLS, to clients whose token the hub authenticates and authorizes for `/metrics`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use aviary_controller::{Clock, ManagerHealth, Metrics};
use aviary_serve::{
    AllowedHosts, Authority, Credential, Limits, ServerCertificate, keep_renewed, serve_tls,
    serve_unencrypted, tls_from_files,
};
use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::output::Printout;
use crate::process::listen;

/// The content type that Prometheus requests.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The addresses to serve on.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TelemetryArgs {
    /// Address for /livez and /readyz, without authentication; /readyz names skipped add-ons; port
    /// 0 picks a free port
    #[arg(long, value_name = "ADDR")]
    health: Option<SocketAddr>,

    /// Address for /metrics. Except on loopback, it requires TLS, and clients need a bearer token
    /// that the hub authorizes to get /metrics
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,

    /// Certificate chain for /metrics, PEM [default: self-signed]
    #[arg(long, value_name = "FILE", requires = "metrics_key")]
    metrics_cert: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "metrics_cert")]
    metrics_key: Option<PathBuf>,
}

/// What is served.
#[derive(Clone)]
pub(crate) struct Telemetry {
    pub(crate) health: watch::Receiver<ManagerHealth>,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Clock,
    /// The client that authenticates and authorizes callers.
    pub(crate) client: Client,
}

impl TelemetryArgs {
    /// Only health checks.
    pub(crate) fn of_health(health: Option<SocketAddr>) -> Self {
        Self { health, metrics: None, metrics_cert: None, metrics_key: None }
    }

    /// Starts serving, and returns the lines that show the addresses. Serves until the process
    /// ends.
    pub(crate) async fn start(&self, telemetry: &Telemetry) -> anyhow::Result<Printout> {
        let mut told = Printout::default();
        if let Some(address) = self.health {
            let (listener, address) = bind(address, "--health").await?;
            tokio::spawn(in_the_clear(listener, probes(telemetry)));
            told.line(format_args!("  health   http://{address}/readyz"));
        }
        if let Some(address) = self.metrics {
            let routes = probes(telemetry).merge(metrics(telemetry));
            let open = !address.ip().is_loopback();
            let (listener, address) = bind(address, "--metrics").await?;
            if open {
                let guarded = routes.layer(from_fn_with_state(telemetry.client.clone(), admit));
                self.over_tls(listener, address, guarded, telemetry).await?;
                told.line(format_args!("  metrics  https://{address}/metrics"));
            } else {
                tokio::spawn(in_the_clear(listener, routes));
                told.line(format_args!("  metrics  http://{address}/metrics"));
            }
        }
        Ok(told)
    }

    async fn over_tls(
        &self,
        listener: TcpListener,
        address: SocketAddr,
        routes: Router,
        telemetry: &Telemetry,
    ) -> anyhow::Result<()> {
        let limits = limits();
        let forever = std::future::pending();
        if let (Some(certificate), Some(key)) = (&self.metrics_cert, &self.metrics_key) {
            let tls = tls_from_files(certificate, key)?;
            tokio::spawn(serve_tls(listener, tls, routes, limits, forever));
            return Ok(());
        }
        let hosts = match address.ip() {
            any if any.is_unspecified() => Vec::new(),
            IpAddr::V4(ip) => vec![ip.to_string()],
            IpAddr::V6(ip) => vec![ip.to_string()],
        };
        let now = (telemetry.clock)();
        let authority = Arc::new(Authority::ephemeral(now).context("failed to create a certificate")?);
        let hosts = AllowedHosts::new(&hosts).context("failed to create a certificate")?;
        let certificate =
            ServerCertificate::issue(authority, &hosts, now).context("failed to create a certificate")?;
        let tls = certificate.tls().context("failed to use the certificate")?;
        let clock = Arc::clone(&telemetry.clock);
        tokio::spawn(async move {
            tokio::select! {
                _ = serve_tls(listener, tls, routes, limits, forever) => {}
                () = keep_renewed(certificate, move || clock()) => {}
            }
        });
        Ok(())
    }

    /// Rejects contradictory options.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let in_the_clear = self.metrics.is_some_and(|address| address.ip().is_loopback());
        if self.metrics_cert.is_some() && in_the_clear {
            bail!(
                "--metrics-cert is only for an address that other machines can reach; loopback is unencrypted"
            );
        }
        if self.metrics_cert.is_some() && self.metrics.is_none() {
            bail!("--metrics-cert needs --metrics");
        }
        Ok(())
    }
}

async fn bind(address: SocketAddr, option: &str) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = listen(address, option).await?;
    let address = listener.local_addr().context("failed to read the address")?;
    Ok((listener, address))
}

fn limits() -> Limits {
    Limits { connections: 64, ..Limits::default() }
}

async fn in_the_clear(listener: TcpListener, routes: Router) {
    let forever = std::future::pending();
    if let Err(error) = serve_unencrypted(listener, routes, limits(), forever).await {
        tracing::error!(%error, "health checks or metrics are no longer served");
    }
}

fn probes(telemetry: &Telemetry) -> Router {
    let health = telemetry.health.clone();
    let ready = move |RawQuery(query): RawQuery| {
        let answer = readiness(&health.borrow(), query.as_deref());
        async move { answer }
    };
    Router::new().route("/livez", get(|| async { "ok" })).route("/readyz", get(ready))
}

/// What is wrong with one add-on is no reason to take the manager away: probes leave it out.
fn readiness(health: &ManagerHealth, query: Option<&str>) -> (StatusCode, String) {
    let is_probe = query.is_some_and(|query| query.split('&').any(|one| one == "exclude=addons"));
    match health.is_ready() || (is_probe && health.is_serving()) {
        true => (StatusCode::OK, "ok".to_owned()),
        false if health.skipped.is_empty() => (StatusCode::SERVICE_UNAVAILABLE, "not ready".to_owned()),
        false => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready\n{}", health.skipped)),
    }
}

fn metrics(telemetry: &Telemetry) -> Router {
    let (metrics, clock) = (telemetry.metrics.clone(), Arc::clone(&telemetry.clock));
    let tell = move || {
        let text = metrics.tell(clock());
        async move { ([(CONTENT_TYPE, OPEN_METRICS)], text) }
    };
    Router::new().route("/metrics", get(tell))
}

/// Admits callers that the hub authenticates and authorizes to get this path. Health checks need no
/// token.
async fn admit(State(client): State<Client>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if matches!(path, "/livez" | "/readyz") {
        return next.run(request).await;
    }
    let Some(token) = Credential::of(request.headers()).token() else {
        return (StatusCode::UNAUTHORIZED, "a bearer token is required\n").into_response();
    };
    match may_get(&client, token, path).await {
        Ok(AccessAnswer::May) => next.run(request).await,
        Ok(AccessAnswer::Unknown) => {
            (StatusCode::UNAUTHORIZED, "the hub does not know this token\n").into_response()
        }
        Ok(AccessAnswer::MayNot) => {
            (StatusCode::FORBIDDEN, "the hub does not allow you to get this\n").into_response()
        }
        Err(error) => {
            tracing::warn!(%error, "failed to ask the hub who may read metrics");
            (StatusCode::SERVICE_UNAVAILABLE, "the hub cannot be asked to authenticate you\n").into_response()
        }
    }
}

enum AccessAnswer {
    May,
    MayNot,
    Unknown,
}

async fn may_get(client: &Client, token: &str, path: &str) -> Result<AccessAnswer, kube::Error> {
    let spec = TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() };
    let review = TokenReview { spec, ..TokenReview::default() };
    let reviews: Api<TokenReview> = Api::all(client.clone());
    let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
    if status.authenticated != Some(true) {
        return Ok(AccessAnswer::Unknown);
    }
    let UserInfo { username, uid, groups, extra } = status.user.unwrap_or_default();
    let asked = NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".into()) };
    let spec = SubjectAccessReviewSpec {
        user: username,
        uid,
        groups,
        extra,
        non_resource_attributes: Some(asked),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
    Ok(if status.allowed { AccessAnswer::May } else { AccessAnswer::MayNot })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_leaves_add_ons_out_is_not_failed_by_one_of_them() {
        let code = |health: &ManagerHealth, query| readiness(health, query).0.as_u16();
        let empty = ManagerHealth::default();
        let waiting = ManagerHealth { listed: true, leading: true, ..ManagerHealth::default() };
        let ready = ManagerHealth { synced: true, first_pass_done: true, ..waiting.clone() };
        for (health, plain, probe) in [(&empty, 503, 503), (&waiting, 503, 200), (&ready, 200, 200)] {
            assert_eq!(code(health, None), plain, "{health:?}");
            assert_eq!(code(health, Some("exclude=addons")), probe, "{health:?}");
            assert_eq!(code(health, Some("verbose&exclude=addons")), probe, "{health:?}");
            assert_eq!(code(health, Some("exclude=other")), plain, "{health:?}");
        }
    }
}
