//! A gateway between a manager and its hub that counts all requests, for any manager.
//!
//! Serves TLS on loopback to the owner of one token, as a hub would, so that a manager's CPU
//! includes the cost of TLS.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use aviary_hub::security::{Gate, Role, Tokens, guard, kubeconfig};
use aviary_serve::{AllowedHosts, Authority, Limits, ServerCertificate, serve_tls};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, HOST, TRANSFER_ENCODING};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use kube::Client;
use tokio::net::TcpListener;

/// Larger than any object that an API server accepts.
const LARGEST_BODY: usize = 8 << 20;

/// Request counters.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestCounts {
    /// Creates, updates and deletes, including rejected ones; without leases and Events.
    pub(super) writes: u64,
    /// Writes of instances and works.
    pub(super) cluster_writes: u64,
    pub(super) events: u64,
    /// Reads of single objects, without leases.
    pub(super) gets: u64,
    /// Reads of configs.
    pub(super) config_gets: u64,
    pub(super) lists: u64,
    pub(super) conflicts: u64,
    /// Error responses, without conflicts.
    pub(super) errors: u64,
    /// Watches that were opened, by resource.
    watches: BTreeMap<String, u64>,
    last_write: Option<Instant>,
    last_request: Option<Instant>,
}

impl RequestCounts {
    /// The difference from an earlier state.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            writes: self.writes - earlier.writes,
            cluster_writes: self.cluster_writes - earlier.cluster_writes,
            events: self.events - earlier.events,
            gets: self.gets - earlier.gets,
            config_gets: self.config_gets - earlier.config_gets,
            lists: self.lists - earlier.lists,
            conflicts: self.conflicts - earlier.conflicts,
            errors: self.errors - earlier.errors,
            watches: BTreeMap::new(),
            last_write: self.last_write,
            last_request: self.last_request,
        }
    }

    /// The time of the last write, counted from this moment.
    pub(super) fn last_write_after(&self, begun: Instant) -> Duration {
        self.last_write.map_or(Duration::ZERO, |at| at.saturating_duration_since(begun))
    }

    pub(super) fn is_quiet_for(&self, time: Duration) -> bool {
        self.last_request.is_none_or(|at| at.elapsed() >= time)
    }

    /// The resources for which a watch was opened since an earlier state.
    pub(super) fn watches_since(&self, earlier: &Self) -> BTreeSet<&str> {
        let opened = |resource: &str| earlier.watches.get(resource).copied().unwrap_or(0);
        let new = self.watches.iter().filter(|(resource, count)| **count > opened(resource));
        new.map(|(resource, _)| resource.as_str()).collect()
    }
}

/// The relevant parts of a request.
#[derive(Debug, PartialEq, Eq)]
struct MeasuredRequest {
    verb: RequestVerb,
    resource: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestVerb {
    Write,
    Get,
    List,
    Watch,
    /// Discovery and similar requests.
    Other,
}

impl MeasuredRequest {
    fn of(method: &Method, uri: &Uri) -> Self {
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        let skipped = match parts.next() {
            Some("api") => 1,
            Some("apis") => 2,
            _ => return Self { verb: RequestVerb::Other, resource: String::new() },
        };
        let mut rest: Vec<&str> = parts.skip(skipped).collect();
        // After the name of a namespace itself, only a subresource can follow.
        if let ["namespaces", _, resource, ..] = rest[..]
            && !matches!(resource, "status" | "finalize")
        {
            rest.drain(..2);
        }
        let Some((resource, name)) = rest.split_first() else {
            return Self { verb: RequestVerb::Other, resource: String::new() };
        };
        let watches = uri.query().is_some_and(|query| {
            query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"))
        });
        let verb = match *method {
            Method::GET if watches => RequestVerb::Watch,
            Method::GET if name.is_empty() => RequestVerb::List,
            Method::GET => RequestVerb::Get,
            // A question about rights stores nothing.
            Method::POST if resource.ends_with("reviews") => RequestVerb::Other,
            Method::POST | Method::PUT | Method::PATCH | Method::DELETE => RequestVerb::Write,
            _ => RequestVerb::Other,
        };
        Self { verb, resource: (*resource).to_owned() }
    }

    fn count(&self, code: StatusCode, tally: &mut RequestCounts) {
        let resource = self.resource.as_str();
        if resource == "leases" {
            return;
        }
        let now = Instant::now();
        tally.last_request = Some(now);
        match self.verb {
            RequestVerb::Write if resource == "events" => tally.events += 1,
            RequestVerb::Write => {
                tally.writes += 1;
                tally.cluster_writes +=
                    u64::from(matches!(resource, "managedclusteraddons" | "manifestworks"));
                tally.last_write = Some(now);
            }
            RequestVerb::Get => {
                tally.gets += 1;
                let config =
                    matches!(resource, "addontemplates" | "addondeploymentconfigs" | "addonhubconfigs");
                tally.config_gets += u64::from(config);
            }
            RequestVerb::List => tally.lists += 1,
            RequestVerb::Watch => *tally.watches.entry(resource.to_owned()).or_default() += 1,
            RequestVerb::Other => {}
        }
        if code == StatusCode::CONFLICT {
            tally.conflicts += 1;
        } else if code.is_client_error() || code.is_server_error() {
            tally.errors += u64::from(code != StatusCode::NOT_FOUND);
        }
    }
}

/// A gateway to a hub. It stops on drop.
pub(super) struct Gateway {
    tally: Arc<Mutex<RequestCounts>>,
    pub(super) kubeconfig: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Way {
    hub: Client,
    tally: Arc<Mutex<RequestCounts>>,
}

impl Gateway {
    pub(super) async fn open(hub: Client) -> anyhow::Result<Self> {
        let now = Timestamp::now();
        let authority = Arc::new(Authority::ephemeral(now).context("failed to create a certificate")?);
        let hosts = AllowedHosts::loopback();
        let certificate = ServerCertificate::issue(Arc::clone(&authority), &hosts, now)
            .context("failed to create a certificate")?;
        let tls = certificate.tls().context("failed to use the certificate")?;
        let tokens = Arc::new(Tokens::ephemeral());
        let token = tokens.issue("measured", Role::Admin).context("failed to create a token")?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("failed to listen")?;
        let address = listener.local_addr().context("failed to read the address")?;
        let kubeconfig =
            kubeconfig(&format!("https://{address}"), authority.pem(), token.expose(), "measured");
        let tally = Arc::default();
        let way = Way { hub, tally: Arc::clone(&tally) };
        let app = guard(Router::new().fallback(pass).with_state(way), Gate::new(hosts, tokens));
        let task = tokio::spawn(async move {
            if let Err(error) = serve_tls(listener, tls, app, Limits::default(), std::future::pending()).await
            {
                tracing::error!(%error, "the gateway to the hub has failed");
            }
        });
        Ok(Self { tally, kubeconfig, task })
    }

    pub(super) fn tally(&self) -> RequestCounts {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn pass(State(way): State<Way>, request: Request) -> Response {
    let asked = MeasuredRequest::of(request.method(), request.uri());
    let answer = forward(&way.hub, request).await.unwrap_or_else(|error| {
        (StatusCode::BAD_GATEWAY, format!("the hub did not answer: {error:#}\n")).into_response()
    });
    asked.count(answer.status(), &mut way.tally.lock().unwrap_or_else(PoisonError::into_inner));
    answer
}

async fn forward(hub: &Client, request: Request) -> anyhow::Result<Response> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, LARGEST_BODY).await.context("failed to read the request")?;
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut onward = axum::http::Request::builder().method(head.method).uri(path);
    for (name, value) in &head.headers {
        // Headers of this connection are not forwarded.
        if ![HOST, AUTHORIZATION, CONNECTION, TRANSFER_ENCODING].contains(name) {
            onward = onward.header(name, value);
        }
    }
    let answer = hub.send(onward.body(kube::client::Body::from(body))?).await?;
    let (mut head, body) = answer.into_parts();
    head.headers.remove(CONNECTION);
    head.headers.remove(TRANSFER_ENCODING);
    Ok(Response::from_parts(head, Body::new(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart() {
        let asked = |method: Method, uri: &'static str| {
            let asked = MeasuredRequest::of(&method, &Uri::from_static(uri));
            format!("{:?} {}", asked.verb, asked.resource)
        };
        let works = "/apis/work.open-cluster-management.io/v1/manifestworks";
        assert_eq!(asked(Method::GET, works), "List manifestworks");
        assert_eq!(
            asked(Method::GET, "/apis/work.open-cluster-management.io/v1/manifestworks?limit=5&watch=true"),
            "Watch manifestworks"
        );
        assert_eq!(
            asked(
                Method::PATCH,
                "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks/a/status"
            ),
            "Write manifestworks"
        );
        assert_eq!(asked(Method::GET, "/api/v1/namespaces/c1"), "Get namespaces");
        assert_eq!(asked(Method::PUT, "/api/v1/namespaces/c1/finalize"), "Write namespaces");
        assert_eq!(asked(Method::POST, "/api/v1/namespaces/c1/events"), "Write events");
        assert_eq!(
            asked(Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
            "Other selfsubjectaccessreviews"
        );
        assert_eq!(asked(Method::GET, "/apis/apps/v1"), "Other ");
        assert_eq!(asked(Method::GET, "/version"), "Other ");
    }

    #[test]
    fn leases_are_nobodys_work_and_conflicts_count_as_writes() {
        let mut tally = RequestCounts::default();
        for uri in [
            "/apis/coordination.k8s.io/v1/namespaces/n/leases/l",
            "/apis/addon.open-cluster-management.io/v1alpha1/addontemplates/t",
        ] {
            MeasuredRequest::of(&Method::GET, &Uri::from_static(uri)).count(StatusCode::OK, &mut tally);
            MeasuredRequest::of(&Method::PUT, &Uri::from_static(uri)).count(StatusCode::CONFLICT, &mut tally);
        }
        let RequestCounts { writes, gets, config_gets, conflicts, errors, .. } = tally;
        assert_eq!((writes, gets, config_gets, conflicts, errors), (1, 1, 1, 1, 0));
    }
}
