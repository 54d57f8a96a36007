//! A hub, a manager and a simulated fleet in this process, a dashboard for them, and a reader of
//! its streams. Every wait is for a change, with a time limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aviary_controller::{Manager, Settings as ManagerSettings};
use aviary_dashboard::{
    Action, ActionResult, Dashboard, DashboardSettings, ErrorResponse, HostCheck, Operate, RightsMode,
    SessionToken,
};
use aviary_engine::observed::Options;
use aviary_engine::simulate::agents::{FailureKind, Profile};
use aviary_fleet::{Behaviour, FailureScope, LabelShare, SimulatedFailure, SimulatedFleet};
use aviary_hub::Hub;
use aviary_hub::security::{Identity, Role};
use aviary_testing::api_of as api;
use aviary_testing::objects;
pub(crate) use aviary_testing::objects::template;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Builder;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tower::ServiceExt;

/// Longer than anything here takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
pub(crate) const ADDONS: &str = "addon.open-cluster-management.io";
pub(crate) const HOST: &str = "127.0.0.1:16480";

/// Returns what it was asked to do, and does nothing.
#[derive(Debug)]
pub(crate) struct Parrot;

impl Operate for Parrot {
    fn operate(
        &self,
        _: Client,
        addon: String,
        action: Action,
    ) -> BoxFuture<'_, Result<ActionResult, ErrorResponse>> {
        let done = !action.dry_run;
        async move { Ok(ActionResult { blast: format!("{addon}: {action:?}"), lines: Vec::new(), done }) }
            .boxed()
    }
}

pub(crate) struct World {
    /// The administrator's client, whose requests are not counted.
    pub(crate) client: Client,
    pub(crate) dashboard: Dashboard,
    pub(crate) router: Router,
    pub(crate) token: String,
    /// Requests of the dashboard.
    pub(crate) requests: Arc<AtomicUsize>,
}

pub(crate) fn hosts() -> HostCheck {
    Arc::new(|host| host == HOST)
}

/// A hub with our kinds and nothing else.
pub(crate) async fn hub() -> Hub {
    let hub = Hub::ephemeral(Default::default()).await.unwrap();
    let client = hub.client();
    aviary_testing::prepare_hub(&client).await;
    hub
}

impl World {
    /// A hub without a manager.
    pub(crate) async fn quiet() -> Self {
        Self::over(hub().await, true).await
    }

    pub(crate) async fn over(hub: Hub, writes: bool) -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let count = from_fn(move |request: Request, next: Next| {
            // Asked from time to time, whatever happens: whether the hub answers.
            if request.uri().path() != "/version" {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            next.run(request)
        });
        let administrator = axum::Extension(Identity::new("system:admin", Role::Admin));
        let client = Client::new(hub.router().layer(count).layer(administrator), "default");
        let token = SessionToken::random().unwrap();
        let secret = token.expose().to_owned();
        let settings = DashboardSettings {
            version: "1.2.3".into(),
            server: "https://hub.example:6443".into(),
            namespace: "open-cluster-management".into(),
            access: RightsMode::Kubeconfig { client, token },
            hosts: hosts(),
            secure: false,
            operate: writes.then(|| -> Arc<dyn Operate> { Arc::new(Parrot) }),
            clock: Arc::new(Timestamp::now),
        };
        let dashboard = Dashboard::new(settings);
        dashboard.open().await.unwrap();
        let router = dashboard.router();
        Self { client: hub.client(), dashboard, router, token: secret, requests }
    }

    /// A running manager and fleet, with this many clusters behind this many canaries. v3.0.0 fails
    /// on every cluster.
    pub(crate) async fn at_work(fleet: usize, canary: usize) -> Self {
        let world = Self::quiet().await;
        for placement in ["fleet", "canary"] {
            world.put(placement_object(placement)).await;
        }
        for version in ["v1.0.0", "v2.0.0", "v3.0.0"] {
            world.put(template(version)).await;
            world.put(hub_config(version)).await;
        }
        let mut members = Vec::new();
        for (stage, count) in [("fleet", fleet), ("canary", canary)] {
            let label = LabelShare { key: "stage".into(), value: stage.into(), share: 1.0 };
            members.extend(aviary_fleet::members(stage, count, &[label], 1).unwrap());
        }
        let latency = (Duration::from_millis(5), Duration::from_millis(60));
        let behaviour = Behaviour {
            profile: Profile { seed: 7, latency, failure: FailureKind::Refuses, ..Profile::default() },
            failures: vec![SimulatedFailure { scope: FailureScope::Version("v3.0.0".into()), share: 1.0 }],
            ..Behaviour::default()
        };
        let fleet = SimulatedFleet::new(world.client.clone(), members, behaviour);
        fleet.register(|| ()).await.unwrap();
        let manager = ManagerSettings {
            namespace: "open-cluster-management".into(),
            identity: "manager".into(),
            leader_elect: false,
            verify: true,
            placement: true,
            options: Options::default(),
            clock: Arc::new(Timestamp::now),
        };
        tokio::spawn(Manager::new(world.client.clone(), manager).run(std::future::pending()));
        tokio::spawn(async move { fleet.run(std::future::pending()).await });
        world
    }

    pub(crate) async fn put(&self, object: Value) {
        put(&self.client, object).await;
    }

    pub(crate) async fn delete(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        api(&self.client, object).delete(name, &Default::default()).await.unwrap();
    }

    /// A request like one of our own page.
    pub(crate) fn request(&self, method: &str, path: &str) -> Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", HOST)
            .header("authorization", format!("Bearer {}", self.token))
    }

    pub(crate) async fn send(&self, request: Request) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.send(self.request("GET", path).body(Body::empty()).unwrap()).await).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let request = self.request("POST", path).header("content-type", "application/json");
        answer(self.send(request.body(Body::from(body.to_string())).unwrap()).await).await
    }

    pub(crate) async fn stream(&self, path: &str) -> Stream {
        self.stream_from(path, None).await
    }

    pub(crate) async fn stream_from(&self, path: &str, last: Option<&str>) -> Stream {
        let mut request = self.request("GET", path);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = self.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        Stream { body: response.into_body(), pending: String::new() }
    }

    /// Waits until the add-on, as the dashboard shows it, satisfies a condition.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut stream = self.stream("/api/stream?addon=helloworld").await;
        let mut state = Value::Null;
        let wait = async {
            loop {
                let event = stream.next().await;
                if apply(&mut state, &event) && is(&state) {
                    return state.clone();
                }
            }
        };
        let waited = tokio::time::timeout(LIMIT, wait).await;
        match waited {
            Ok(state) => state,
            Err(_) => panic!("{what}: not within {LIMIT:?}: {}", shortened(&state)),
        }
    }

    /// Installs v1.0.0 everywhere.
    pub(crate) async fn installed(fleet: usize, canary: usize) -> Self {
        let world = Self::at_work(fleet, canary).await;
        world.put(addon("v1.0.0")).await;
        let all = fleet + canary;
        world
            .until("the install", |state| {
                state["state"] == "Done"
                    && state["settled"] == all
                    && is_complete(state, "v1.0.0")
                    && has_told_time(state, all)
            })
            .await;
        world
    }
}

/// Whether every placement has completed a version, and the dashboard shows it.
pub(crate) fn is_complete(state: &Value, version: &str) -> bool {
    let lines = state["revisions"].as_array().unwrap();
    let done = lines
        .iter()
        .filter(|line| line["label"] == version && line["number"].is_i64() && line["current"] == true);
    let told = state["events"].as_array().unwrap().iter();
    let told = told.filter(|event| {
        event["reason"] == "RolloutCompleted" && event["message"].to_string().contains(version)
    });
    done.count() == state["placements"].as_array().unwrap().len() && told.count() == 2
}

/// Whether the last point of the timeline has arrived: it is sent when its second is over.
fn has_told_time(state: &Value, settled: usize) -> bool {
    let last = state["timeline"].as_array().unwrap().last();
    last.is_some_and(|last| last.as_array().unwrap()[1..] == [json!(settled), json!(0), json!(0), json!(0)])
}

fn shortened(state: &Value) -> String {
    let mut state = state.clone();
    state["clusters"] = Value::Null;
    state["revisions"] = Value::Null;
    state.to_string()
}

pub(crate) async fn answer(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body))))
}

/// One event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: Value,
    /// The size as sent.
    pub(crate) size: usize,
}

/// A stream as a page reads it.
pub(crate) struct Stream {
    body: Body,
    pending: String,
}

impl Stream {
    /// The next event; keep-alives are skipped.
    pub(crate) async fn next(&mut self) -> Event {
        match tokio::time::timeout(LIMIT, self.read()).await {
            Ok(Some(event)) => event,
            Ok(None) => panic!("the stream has ended"),
            Err(_) => panic!("nothing came within {LIMIT:?}"),
        }
    }

    /// `None` if the stream has ended.
    pub(crate) async fn read(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.pending.find("\n\n") {
                let rest = self.pending.split_off(end + 2);
                let frame = std::mem::replace(&mut self.pending, rest);
                if let Some(event) = event(&frame) {
                    return Some(event);
                }
            }
            let data = self.body.frame().await?.unwrap().into_data().unwrap();
            self.pending.push_str(std::str::from_utf8(&data).unwrap());
        }
    }
}

fn event(frame: &str) -> Option<Event> {
    if frame.starts_with(':') {
        return None;
    }
    let lines: Vec<&str> = frame.trim_end().lines().collect();
    let [id, name, data] = lines[..] else { panic!("no event: {frame}") };
    Some(Event {
        id: id.strip_prefix("id: ").unwrap().to_owned(),
        name: name.strip_prefix("event: ").unwrap().to_owned(),
        data: serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap(),
        size: frame.len(),
    })
}

/// Applies an event of an add-on as the page does. Returns whether there is an add-on.
pub(crate) fn apply(state: &mut Value, event: &Event) -> bool {
    match event.name.as_str() {
        "addon" => *state = event.data.clone(),
        "gone" => *state = Value::Null,
        "addon-delta" => add(state, &event.data),
        other => panic!("unknown event {other}"),
    }
    !state.is_null()
}

fn add(state: &mut Value, delta: &Value) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for (name, value) in delta.as_object().unwrap() {
        match name.as_str() {
            "dictionaryAppend" => state["dictionary"].as_array_mut().unwrap().extend(list(value)),
            "timelineAppend" => state["timeline"].as_array_mut().unwrap().extend(list(value)),
            "revisionClusters" => {
                for (line, count) in state["revisions"].as_array_mut().unwrap().iter_mut().zip(list(value)) {
                    line["clusters"] = count;
                }
            }
            "dictionarySet" | "rows" | "append" => {}
            _ => {
                assert!(
                    !state[name].is_null() || state.get(name).is_some(),
                    "a field that was not there: {name}"
                );
                state[name] = value.clone();
            }
        }
    }
    for set in list(&delta["dictionarySet"]) {
        state["dictionary"][place(&set[0])] = set[1].clone();
    }
    for row in list(&delta["rows"]) {
        let at = place(&row[0]);
        for (index, column) in ["kind", "message", "revision"].iter().enumerate() {
            state["clusters"][*column][at] = row[index + 1].clone();
        }
    }
    for (name, values) in delta["append"].as_object().into_iter().flatten() {
        state["clusters"][name].as_array_mut().unwrap().extend(list(values));
    }
}

fn place(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// The content of every row: name, placement, kind, message, revision. Ignores the order of rows
/// and texts.
pub(crate) fn rows(state: &Value) -> Vec<String> {
    let columns = &state["clusters"];
    let text = |index: &Value| match index.as_i64().unwrap() {
        -1 => "-".to_owned(),
        index => state["dictionary"][usize::try_from(index).unwrap()].as_str().unwrap().to_owned(),
    };
    let count = columns["name"].as_array().unwrap().len();
    for column in ["placement", "kind", "message", "revision", "order"] {
        assert_eq!(columns[column].as_array().unwrap().len(), count, "{column}");
    }
    let mut rows: Vec<String> = (0..count)
        .map(|row| {
            let at = |column: &str| &columns[column][row];
            let placement = match at("placement").as_i64().unwrap() {
                -1 => Value::Null,
                index => state["placements"][usize::try_from(index).unwrap()]["name"].clone(),
            };
            let name = at("name").as_str().unwrap();
            format!(
                "{name} {placement} {} {} {} {}",
                text(at("kind")),
                at("order"),
                text(at("revision")),
                text(at("message"))
            )
        })
        .collect();
    rows.sort();
    rows
}

/// The whole content of a state, in a normal form.
pub(crate) fn told(state: &Value) -> Value {
    let mut told = state.clone();
    told["clusters"] = json!(rows(state));
    let fields = told.as_object_mut().unwrap();
    fields.remove("dictionary");
    fields.remove("now");
    told
}

/// Creates an object, or merges it into the existing one, including its status.
pub(crate) async fn put(client: &Client, object: Value) {
    aviary_testing::put_whole(client, &object).await;
}

pub(crate) fn hub_config(version: &str) -> Value {
    objects::hub_config(version, version)
}

pub(crate) fn placement_object(name: &str) -> Value {
    objects::placement_by_labels(name, &json!({"stage": name}))
}

/// The add-on at a version, on the fleet behind the canary.
pub(crate) fn addon(version: &str) -> Value {
    let mut addon = objects::addon(version);
    addon["spec"]["addOnMeta"] = json!({"displayName": "Hello", "description": "Says hello"});
    addon
}
