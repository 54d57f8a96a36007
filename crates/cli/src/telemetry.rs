//! What a manager tells those who look after it: whether it lives, whether it is ready, and its metrics.
//!
//! Owns the listener. Metrics go out in the clear on loopback only; anywhere else they are served over TLS, to callers whom the hub knows by
//! their token and whom it lets get `/metrics`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use aviary_controller::{Clock, Health, Metrics};
use aviary_hub::security::{AllowedHosts, Authority, ServerCertificate, keep_renewed};
use aviary_hub::serve::{Limits, serve};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// As Prometheus asks for it.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where to tell.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TelemetryArgs {
    /// Address for /livez and /readyz, which say nothing else and ask for nothing; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    health: Option<SocketAddr>,

    /// Address for /metrics. Other machines get it over TLS only, with a token that the hub knows and that may get /metrics there
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,

    /// Certificate chain for /metrics, PEM [default: one that nobody has signed]
    #[arg(long, value_name = "FILE", requires = "metrics_key")]
    metrics_cert: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "metrics_cert")]
    metrics_key: Option<PathBuf>,
}

/// What there is to tell.
#[derive(Clone)]
pub(crate) struct Telemetry {
    pub(crate) health: watch::Receiver<Health>,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Clock,
    /// Who is asked whether a caller may know.
    pub(crate) client: Client,
}

impl TelemetryArgs {
    /// Starts to tell; gives back the lines that say where. It is told for as long as the process is there.
    pub(crate) async fn start(&self, telemetry: &Telemetry) -> anyhow::Result<String> {
        let mut told = String::new();
        if let Some(address) = self.health {
            let (listener, address) = listen(address).await?;
            tokio::spawn(in_the_clear(listener, probes(telemetry)));
            told.push_str(&format!("  health   http://{address}/readyz\n"));
        }
        if let Some(address) = self.metrics {
            let routes = probes(telemetry).merge(metrics(telemetry));
            let open = !address.ip().is_loopback();
            let (listener, address) = listen(address).await?;
            if open {
                let guarded = routes.layer(from_fn_with_state(telemetry.client.clone(), admit));
                self.over_tls(listener, address, guarded, telemetry).await?;
                told.push_str(&format!("  metrics  https://{address}/metrics\n"));
            } else {
                tokio::spawn(in_the_clear(listener, routes));
                told.push_str(&format!("  metrics  http://{address}/metrics\n"));
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
        let limits = Limits { connections: 64, ..Limits::default() };
        let forever = std::future::pending();
        if let (Some(certificate), Some(key)) = (&self.metrics_cert, &self.metrics_key) {
            let tls = tls_of(certificate, key)?;
            tokio::spawn(serve(listener, tls, routes, limits, forever));
            return Ok(());
        }
        let hosts = match address.ip() {
            any if any.is_unspecified() => Vec::new(),
            IpAddr::V4(ip) => vec![ip.to_string()],
            IpAddr::V6(ip) => vec![ip.to_string()],
        };
        let now = (telemetry.clock)();
        let authority = Arc::new(Authority::ephemeral(now).context("failed to make a certificate")?);
        let hosts = AllowedHosts::new(&hosts).context("failed to make a certificate")?;
        let certificate =
            ServerCertificate::issue(authority, &hosts, now).context("failed to make a certificate")?;
        let tls = certificate.tls().context("failed to use the certificate")?;
        let clock = Arc::clone(&telemetry.clock);
        tokio::spawn(async move {
            tokio::select! {
                _ = serve(listener, tls, routes, limits, forever) => {}
                () = keep_renewed(certificate, move || clock()) => {}
            }
        });
        Ok(())
    }

    /// What cannot be meant.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let in_the_clear = self.metrics.is_some_and(|address| address.ip().is_loopback());
        if self.metrics_cert.is_some() && in_the_clear {
            bail!(
                "--metrics-cert is for an address that other machines can reach; loopback is served in the clear"
            );
        }
        if self.metrics_cert.is_some() && self.metrics.is_none() {
            bail!("--metrics-cert needs --metrics");
        }
        Ok(())
    }
}

/// TLS as it is served with a certificate in a file.
pub(crate) fn tls_of(certificate: &Path, key: &Path) -> anyhow::Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("failed to read a certificate from {}", certificate.display()))?;
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("failed to read a key from {}", key.display()))?;
    let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("failed to set TLS up")?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .with_context(|| format!("failed to use the certificate {}", certificate.display()))?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

async fn listen(address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("failed to listen on {address}"))?;
    let address = listener.local_addr().context("failed to read the address")?;
    Ok((listener, address))
}

async fn in_the_clear(listener: TcpListener, routes: Router) {
    if let Err(error) = axum::serve(listener, routes).await {
        tracing::error!(%error, "health or metrics are not served any more");
    }
}

fn probes(telemetry: &Telemetry) -> Router {
    let health = telemetry.health.clone();
    let ready = move || {
        let health = *health.borrow();
        async move {
            match health.is_ready() {
                true => (StatusCode::OK, "ok"),
                false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
            }
        }
    };
    Router::new().route("/livez", get(|| async { "ok" })).route("/readyz", get(ready))
}

fn metrics(telemetry: &Telemetry) -> Router {
    let (metrics, clock) = (telemetry.metrics.clone(), Arc::clone(&telemetry.clock));
    let tell = move || {
        let text = metrics.tell(clock());
        async move { ([(CONTENT_TYPE, OPEN_METRICS)], text) }
    };
    Router::new().route("/metrics", get(tell))
}

/// Lets callers in whom the hub knows and lets get this path. Probes are for everybody.
async fn admit(State(client): State<Client>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if matches!(path, "/livez" | "/readyz") {
        return next.run(request).await;
    }
    let Some(token) = bearer(request.headers()) else {
        return (StatusCode::UNAUTHORIZED, "a bearer token is needed\n").into_response();
    };
    match may_get(&client, token, path).await {
        Ok(Answer::May) => next.run(request).await,
        Ok(Answer::Unknown) => {
            (StatusCode::UNAUTHORIZED, "the hub does not know this token\n").into_response()
        }
        Ok(Answer::MayNot) => (StatusCode::FORBIDDEN, "the hub does not let you get this\n").into_response(),
        Err(error) => {
            tracing::warn!(%error, "the hub could not be asked who may see metrics");
            (StatusCode::SERVICE_UNAVAILABLE, "the hub cannot be asked who you are\n").into_response()
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()).then_some(token.trim())
}

enum Answer {
    May,
    MayNot,
    Unknown,
}

async fn may_get(client: &Client, token: &str, path: &str) -> Result<Answer, kube::Error> {
    let spec = TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() };
    let review = TokenReview { spec, ..TokenReview::default() };
    let reviews: Api<TokenReview> = Api::all(client.clone());
    let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
    if status.authenticated != Some(true) {
        return Ok(Answer::Unknown);
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
    Ok(if status.allowed { Answer::May } else { Answer::MayNot })
}
