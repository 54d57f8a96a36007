//! The routes. A handler only translates; all decisions are made elsewhere.

use std::sync::Arc;
use std::time::Duration;

use aviary_engine::name::{ClusterName, Text};
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde_json::{Value, json};

use crate::access::Caller;
use crate::action::Action;
use crate::cluster::ClusterDetail;
use crate::guard::{self, Guard};
use crate::refusal::ErrorResponse;
use crate::topic::ReaderPosition;
use crate::{ServerState, actor, cluster, labels, page, stream};

/// The maximum size of an action.
const MOST_BODY: usize = 16 << 10;
/// The time limit for every response that is not a stream.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time limit for receiving a body.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn router(shared: &Arc<ServerState>) -> Router {
    let guard = Guard { hosts: Arc::clone(&shared.settings.hosts), secure: shared.settings.secure };
    Router::new()
        .route("/api/info", get(info))
        .route("/api/stream", get(events))
        .route("/api/addons/{addon}/clusters", get(some_clusters))
        .route("/api/addons/{addon}/clusters/{cluster}", get(one_cluster))
        .route("/api/addons/{addon}/actions", post(act))
        .method_not_allowed_fallback(|| async { wrong_method() })
        .fallback(elsewhere)
        .layer(from_fn_with_state(Arc::clone(shared), admit))
        .layer(from_fn_with_state(guard, guard::pass))
        .layer(from_fn(guard::with_headers))
        .with_state(Arc::clone(shared))
}

fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// The page's files, which need no token. There is nothing else under /api.
async fn elsewhere(request: Request) -> Response {
    if is_api(request.uri().path()) {
        return ErrorResponse::not_found("not found").into_response();
    }
    page::file(request).await
}

fn wrong_method() -> Response {
    ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed").into_response()
}

/// Requires a token for the API, and limits the time of a request.
async fn admit(State(shared): State<Arc<ServerState>>, mut request: Request, next: Next) -> Response {
    if !is_api(request.uri().path()) {
        return next.run(request).await;
    }
    let answer = async {
        let caller = match shared.doorkeeper.admit(request.headers()).await {
            Ok(caller) => caller,
            Err(refusal) => return refusal.into_response(),
        };
        if !matches!(*request.method(), Method::GET | Method::POST) {
            let mut refused = wrong_method();
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
            return refused;
        }
        request.extensions_mut().insert(Arc::new(caller));
        next.run(request).await
    };
    // A stream also responds at once: only its body is endless.
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => answer,
        Err(_) => {
            ErrorResponse::new(StatusCode::GATEWAY_TIMEOUT, "the hub did not answer in time").into_response()
        }
    }
}

type Who = Extension<Arc<Caller>>;

async fn info(State(shared): State<Arc<ServerState>>, Extension(caller): Who) -> Json<Value> {
    let settings = &shared.settings;
    Json(json!({
        "version": settings.version,
        "writes": settings.operate.is_some(),
        "server": settings.server,
        "mode": shared.doorkeeper.mode(),
        "user": actor::name(&caller.client).await,
    }))
}

/// Streams the list, or one add-on, and its changes.
async fn events(
    State(shared): State<Arc<ServerState>>,
    Extension(caller): Who,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let addon = asked_for(request.uri().query().unwrap_or_default())?;
    let watcher = shared.doorkeeper.watch(&caller).await?;
    let seat = watcher.seat().ok_or_else(|| {
        ErrorResponse::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many streams are open: close one, or try again later",
        )
    })?;
    let place = last_seen(request.headers());
    shared.visited.send_replace(true);
    let closing = shared.closing.subscribe();
    Ok(match addon {
        None => {
            let list = watcher.list();
            stream::answer(watcher, list, seat, place, closing)
        }
        Some(addon) => {
            let detail = watcher.detail(addon).await.ok_or_else(lost)?;
            stream::answer(watcher, detail, seat, place, closing)
        }
    })
}

fn lost() -> ErrorResponse {
    ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "the hub cannot be watched right now: try again")
}

/// The add-on in the query, if there is one.
fn asked_for(query: &str) -> Result<Option<Text>, ErrorResponse> {
    let mut asked = None;
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        if key != "addon" || asked.is_some() {
            return Err(ErrorResponse::wrong("give at most one add-on, as ?addon=NAME"));
        }
        asked = Some(addon_name(&value)?);
    }
    Ok(asked)
}

/// Rejects a name that no object can have.
fn addon_name(name: &str) -> Result<Text, ErrorResponse> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    let fine = !name.is_empty() && name.len() <= 253 && name.bytes().all(plain);
    fine.then(|| name.into()).ok_or_else(|| ErrorResponse::wrong("invalid name of an add-on"))
}

fn last_seen(headers: &HeaderMap) -> Option<ReaderPosition> {
    ReaderPosition::parse(headers.get("last-event-id")?.to_str().ok()?)
}

async fn one_cluster(
    State(shared): State<Arc<ServerState>>,
    Extension(caller): Who,
    Path((addon, cluster)): Path<(String, String)>,
) -> Result<Json<ClusterDetail>, ErrorResponse> {
    let addon = addon_name(&addon)?;
    let name = ClusterName::parse(&cluster)
        .map_err(|error| ErrorResponse::wrong(format!("the cluster name {error}")))?;
    let watcher = shared.doorkeeper.watch(&caller).await?;
    let unknown = || ErrorResponse::not_found(format!("add-on {addon} has no cluster {name}"));
    let found = watcher.cluster(addon.clone(), name.clone()).await.ok_or_else(lost)?.ok_or_else(unknown)?;
    let works = cluster::works(&caller.client, &addon, &name).await;
    let works = works.map_err(|error| {
        let doing = format!("list the manifestworks of {name}");
        ErrorResponse::of_hub(&doing, &error, caller.own)
    })?;
    let next = format!("aviary explain {addon} {name}");
    Ok(Json(ClusterDetail { found, works, next }))
}

/// The clusters with these labels.
async fn some_clusters(
    State(shared): State<Arc<ServerState>>,
    Extension(caller): Who,
    Path(addon): Path<String>,
    request: Request,
) -> Result<Json<Value>, ErrorResponse> {
    let addon = addon_name(&addon)?;
    let query = request.uri().query().unwrap_or_default();
    let mut asked = form_urlencoded::parse(query.as_bytes());
    let (Some((key, text)), None) = (asked.next(), asked.next()) else {
        return Err(ErrorResponse::wrong("give the labels as ?labels=SELECTOR"));
    };
    if key != "labels" {
        return Err(ErrorResponse::wrong("give the labels as ?labels=SELECTOR"));
    }
    let selector = labels::parse(&text).map_err(ErrorResponse::wrong)?;
    let watcher = shared.doorkeeper.watch(&caller).await?;
    let found = watcher.select(addon.clone(), selector).await.ok_or_else(lost)?;
    let found = found.ok_or_else(|| ErrorResponse::not_found(format!("there is no add-on {addon}")))?;
    let names: Vec<&str> = found.iter().map(ClusterName::as_str).collect();
    Ok(Json(json!({ "clusters": names })))
}

async fn act(
    State(shared): State<Arc<ServerState>>,
    Extension(caller): Who,
    Path(addon): Path<String>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let Some(operate) = &shared.settings.operate else {
        let message = "this dashboard is read-only: it was started without --enable-writes";
        return Err(ErrorResponse::new(StatusCode::FORBIDDEN, message));
    };
    let addon = addon_name(&addon)?;
    let action = asked(request).await?;
    action.check()?;
    let answer = operate.operate(caller.client.clone(), addon.to_string(), action.clone()).await;
    if answer.as_ref().is_ok_and(|answer| answer.done) {
        actor::record(&caller.client, &addon, &action, (shared.settings.clock)()).await;
    }
    answer.map(|answer| Json(answer).into_response()).map_err(|refusal| match refusal.status {
        // The hub rejected the credentials of the kubeconfig, not the user's token.
        StatusCode::UNAUTHORIZED if !caller.own => {
            ErrorResponse { status: StatusCode::BAD_GATEWAY, ..refusal }
        }
        _ => refusal,
    })
}

/// Reads the action in a body.
async fn asked(request: Request<Body>) -> Result<Action, ErrorResponse> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    // Rejects everything that a form on another page could send.
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(ErrorResponse::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "an action must be application/json",
        ));
    }
    let body = tokio::time::timeout(BODY_PATIENCE, to_bytes(request.into_body(), MOST_BODY)).await;
    let body = body
        .map_err(|_| ErrorResponse::new(StatusCode::REQUEST_TIMEOUT, "the action did not arrive in time"))?
        .map_err(|_| ErrorResponse::new(StatusCode::PAYLOAD_TOO_LARGE, "the action is too long"))?;
    serde_json::from_slice(&body).map_err(|error| ErrorResponse::wrong(format!("invalid action: {error}")))
}
