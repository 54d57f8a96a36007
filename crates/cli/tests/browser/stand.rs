//! A simulated server: the real page, with fixed responses and streams.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub(crate) const TOKEN: &str = "made-by-hand";

/// The responses, and the recorded requests.
pub(crate) struct Stand {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    writes: bool,
    list: Value,
    detail: Value,
    cluster: Value,
    /// Every event after the first, oldest first; the first event is number 0.
    said: watch::Sender<Vec<String>>,
    /// The same for the list.
    listed: watch::Sender<Vec<String>>,
    /// Increases when every stream has to end.
    cuts: watch::Sender<usize>,
    /// The `Last-Event-ID` of every stream that was opened.
    opened: Mutex<Vec<String>>,
    posted: Mutex<Vec<Value>>,
}

impl Stand {
    pub(crate) async fn serve(detail: Value, cluster: Value, writes: bool) -> Self {
        let list = json!({"now": "2026-01-01T00:10:00Z", "addons": [summary(&detail)]});
        let shared = Arc::new(Shared {
            writes,
            list,
            detail,
            cluster,
            said: watch::channel(Vec::new()).0,
            listed: watch::channel(Vec::new()).0,
            cuts: watch::channel(0).0,
            opened: Mutex::new(Vec::new()),
            posted: Mutex::new(Vec::new()),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let api = Router::new().route("/api/{*rest}", any(answer)).with_state(Arc::clone(&shared));
        let served = api.fallback_service(aviary_dashboard::page());
        tokio::spawn(async move { axum::serve(listener, served).await });
        Self { address, shared }
    }

    pub(crate) fn url(&self, hash: &str) -> String {
        format!("http://{}/#token={TOKEN}{hash}", self.address)
    }

    /// Sends an event on every stream of an add-on.
    pub(crate) fn say(&self, event: &str, data: &Value) {
        say(&self.shared.said, event, data);
    }

    /// Sends an event on every stream of the list.
    pub(crate) fn say_list(&self, event: &str, data: &Value) {
        say(&self.shared.listed, event, data);
    }

    pub(crate) fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// The `Last-Event-ID` of every stream that was opened.
    pub(crate) fn opened(&self) -> Vec<String> {
        self.shared.opened.lock().unwrap().clone()
    }

    pub(crate) fn posted(&self) -> Vec<Value> {
        self.shared.posted.lock().unwrap().clone()
    }
}

fn say(to: &watch::Sender<Vec<String>>, event: &str, data: &Value) {
    to.send_modify(|said| {
        let id = said.len() + 1;
        said.push(format!("id: made-{id}\nevent: {event}\ndata: {data}\n\n"));
    });
}

fn header(request: &Request, name: &str) -> String {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    if header(&request, "authorization") != format!("Bearer {TOKEN}") {
        return plain(StatusCode::UNAUTHORIZED, &json!({"error": "this token is not known here"}));
    }
    let last = header(&request, "last-event-id");
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    match path.as_str() {
        "/api/info" => plain(
            StatusCode::OK,
            &json!({"version": "1.2.3", "writes": shared.writes, "server": "hub.example:6443", "mode": "kubeconfig", "user": "alice"}),
        ),
        "/api/stream" if query.is_empty() => {
            let first = format!("id: made-0\nevent: addons\ndata: {}\n\n", shared.list);
            stream(&shared, &shared.listed, &first, 0)
        }
        "/api/stream" => {
            shared.opened.lock().unwrap().push(last.clone());
            match last.strip_prefix("made-").and_then(|number| number.parse().ok()) {
                Some(seen) => stream(&shared, &shared.said, "", seen),
                None => {
                    let first = format!("id: made-0\nevent: addon\ndata: {}\n\n", shared.detail);
                    stream(&shared, &shared.said, &first, 0)
                }
            }
        }
        // Every second cluster has the labels that are asked for.
        _ if path.ends_with("/clusters") && query == "labels=cloud%3Daws" => {
            let names = shared.detail["clusters"]["name"].as_array().unwrap().iter().step_by(2);
            plain(StatusCode::OK, &json!({"clusters": names.collect::<Vec<_>>()}))
        }
        _ if path.ends_with("/clusters") => {
            plain(StatusCode::BAD_REQUEST, &json!({"error": "no such labels"}))
        }
        _ if path.contains("/clusters/") => plain(StatusCode::OK, &shared.cluster),
        _ if path.ends_with("/actions") => {
            let body = axum::body::to_bytes(request.into_body(), 1 << 16).await.unwrap();
            let action: Value = serde_json::from_slice(&body).unwrap();
            shared.posted.lock().unwrap().push(action.clone());
            let blast =
                "3 clusters of default/fleet stay where they are; 1 in flight finishes. <b>Nothing</b> else.";
            let lines = ["default/fleet: 3 held", "default/canary: nothing moves"];
            plain(
                StatusCode::OK,
                &json!({"blast": blast, "lines": lines, "done": action["dryRun"] == json!(false)}),
            )
        }
        _ => plain(StatusCode::NOT_FOUND, &json!({"error": "there is no such thing"})),
    }
}

fn plain(status: StatusCode, body: &Value) -> Response {
    (status, [("Content-Type", "application/json")], body.to_string()).into_response()
}

/// The first event, and then everything that was sent after `seen`, until the streams are cut.
fn stream(shared: &Shared, from: &watch::Sender<Vec<String>>, first: &str, seen: usize) -> Response {
    let said = from.subscribe();
    let mut cuts = shared.cuts.subscribe();
    let first = first.to_owned();
    let pieces = futures_util::stream::once(async move { first }).chain(futures_util::stream::unfold(
        (said, seen),
        |(mut said, seen)| async move {
            let all = said.wait_for(|said| said.len() > seen).await.ok()?;
            let (text, len) = (all[seen..].concat(), all.len());
            drop(all);
            Some((text, (said, len)))
        },
    ));
    let pieces = pieces.filter(|piece| std::future::ready(!piece.is_empty()));
    let pieces = pieces.take_until(async move { cuts.changed().await.is_ok() });
    let body = Body::from_stream(pieces.map(|piece| Ok::<_, std::convert::Infallible>(Bytes::from(piece))));
    ([("Content-Type", "text/event-stream")], body).into_response()
}

/// The entry of an add-on in the list.
pub(crate) fn summary(detail: &Value) -> Value {
    let mut summary = json!({"clusters": detail["clusters"]["name"].as_array().unwrap().len(), "placements": detail["placements"].as_array().unwrap().len()});
    for key in [
        "name",
        "displayName",
        "state",
        "message",
        "settled",
        "inFlight",
        "failed",
        "waiting",
        "leaving",
        "version",
        "oldestWaitSince",
        "paused",
    ] {
        summary[key] = detail[key].clone();
    }
    summary
}

/// Clusters of one placement, by kind.
pub(crate) struct Share {
    pub(crate) placement: &'static str,
    pub(crate) prefix: &'static str,
    /// Settled, in flight, failed, waiting, leaving.
    pub(crate) kinds: [usize; 5],
}

/// The message of each kind, in the dictionary.
pub(crate) const REASONS: [&str; 5] = [
    "it has what it should have",
    "told, and not reported yet",
    "its work cannot be applied",
    "budget full: 2 of 2 in flight",
    "going",
];

/// Where the names of the kinds begin in the dictionary.
const FIRST_KIND: usize = REASONS.len() + 1;

/// An add-on whose clusters are these.
pub(crate) fn detail(shares: &[Share]) -> Value {
    let [mut names, mut placement, mut kind, mut message, mut revision, mut order] =
        [const { Vec::<Value>::new() }; 6];
    let mut placements = Vec::new();
    let mut all = [0; 5];
    for (index, share) in shares.iter().enumerate() {
        for (what, count) in share.kinds.into_iter().enumerate() {
            all[what] += count;
            for _ in 0..count {
                let name = format!("{}-{:05}", share.prefix, names.len());
                names.push(json!(name));
                placement.push(json!(index));
                kind.push(json!(FIRST_KIND + what));
                message.push(json!(what));
                revision.push(json!(5));
                order.push(json!(0));
            }
        }
        let [done, in_flight, failed, waiting, leaving] = share.kinds;
        placements.push(json!({
            "name": share.placement, "position": index, "state": "Upgrading", "message": format!("{}/{} upgrading...", done + in_flight + failed, done + in_flight + failed + waiting),
            "strategy": "RollingUpdate 25%", "budget": 2, "slotsUsed": in_flight + failed, "inFlight": in_flight, "governed": done + in_flight + failed + waiting,
            "done": done, "failed": failed, "waiting": waiting, "leaving": leaving, "gate": null, "paused": false, "wants": "rev-b", "target": "rev-b", "knownGood": "rev-a",
        }));
    }
    let [settled, in_flight, failed, waiting, leaving] = all;
    let mut dictionary: Vec<&str> = REASONS.to_vec();
    dictionary.push("rev-b");
    dictionary.extend(["settled", "inFlight", "failed", "waiting", "leaving"]);
    json!({
        "now": "2026-01-01T00:10:00Z", "name": "hello", "displayName": "Hello", "description": "Says hello", "state": "Progressing",
        "message": "It rolls out.", "version": "v2", "oldestWaitSince": "2026-01-01T00:00:00Z", "paused": false,
        "settled": settled, "inFlight": in_flight, "failed": failed, "waiting": waiting, "leaving": leaving,
        "placements": placements, "problems": [], "brake": null, "reasons": [], "revisions": [], "events": [],
        "timeline": [[1767225600, 0, 0, 0, 4], [1767226200, settled, in_flight, failed, waiting]],
        "dictionary": dictionary,
        "clusters": {"name": names, "placement": placement, "kind": kind, "message": message, "revision": revision, "order": order},
    })
}

/// The details of a cluster.
pub(crate) fn cluster(name: &str) -> Value {
    json!({
        "cluster": name, "placement": "default/fleet", "kind": "failed", "code": "Failed", "message": "its work cannot be applied", "desired": "rev-c", "revision": "rev-b", "applied": "rev-a",
        "labels": {"cloud": "aws"}, "available": "False",
        "conditions": [{"type": "Available", "status": "False", "reason": "NotApplied", "message": "no pod runs", "lastTransitionTime": "2026-01-01T00:05:00Z"}],
        "works": [{"name": "addon-hello-deploy-0",
            "conditions": [{"type": "Applied", "status": "False", "reason": "Failed", "message": "refused", "lastTransitionTime": "2026-01-01T00:05:00Z"}],
            "manifests": [{"kind": "Deployment", "namespace": "default", "name": "agent",
                "conditions": [{"type": "Applied", "status": "False", "reason": "Forbidden", "message": "not allowed", "lastTransitionTime": null}],
                "feedback": [["ReadyReplicas", "0"]], "content": "{\"kind\": \"Deployment\", \"note\": \"<b>text</b>\"}"}]}],
        "next": format!("aviary explain hello {name}"),
    })
}
