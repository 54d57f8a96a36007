//! Users with their own tokens: the hub decides what each of them sees.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aviary_dashboard::{Connect, Dashboard, DashboardSettings, RightsMode};
use aviary_hub::Hub;
use aviary_hub::security::{Gate, Role, Tokens, guard};
use aviary_serve::AllowedHosts;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::{Next, from_fn};
use axum::{Extension, Router};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::world::{HOST, World, addon, answer, hosts, hub, put};

/// The hub behind its own access control, and a record of requests by user.
struct Door {
    hub: Router,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Connect for Door {
    fn client(&self, token: &str) -> Result<Client, String> {
        let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| error.to_string())?;
        let (asked, token) = (Arc::clone(&self.asked), token.to_owned());
        let with = from_fn(move |mut request: Request, next: Next| {
            *asked.lock().unwrap().entry(token.clone()).or_default() += 1;
            request.headers_mut().insert("authorization", bearer.clone());
            request.headers_mut().insert("host", HeaderValue::from_static("localhost"));
            next.run(request)
        });
        Ok(Client::new(self.hub.clone().layer(with), "default"))
    }
}

struct People {
    router: Router,
    dashboard: Dashboard,
    hub: Hub,
    tokens: Arc<Tokens>,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

async fn people() -> People {
    let hub = hub().await;
    let tokens = Arc::new(Tokens::ephemeral());
    let behind = hub.router().layer(Extension(Arc::clone(&tokens)));
    let behind = guard(behind, Gate::new(AllowedHosts::loopback(), Arc::clone(&tokens)));
    let asked: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let settings = DashboardSettings {
        version: "1.2.3".into(),
        server: "https://hub.example:6443".into(),
        namespace: "open-cluster-management".into(),
        access: RightsMode::Users(Arc::new(Door { hub: behind, asked: Arc::clone(&asked) })),
        hosts: hosts(),
        secure: true,
        operate: None,
        clock: Arc::new(Timestamp::now),
    };
    let dashboard = Dashboard::new(settings);
    dashboard.open().await.unwrap();
    People { router: dashboard.router(), dashboard, hub, tokens, asked }
}

impl People {
    fn issue(&self, name: &str, role: Role) -> String {
        self.tokens.issue(name, role).unwrap().expose().to_owned()
    }

    async fn get(&self, token: &str, path: &str) -> (u16, Value) {
        let request =
            Request::get(path).header("host", HOST).header("authorization", format!("Bearer {token}"));
        answer(self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()).await
    }

    /// The world as this user sees it.
    async fn world(&self, token: &str) -> World {
        World {
            client: self.hub.client(),
            dashboard: self.dashboard.clone(),
            router: self.router.clone(),
            token: token.to_owned(),
            requests: Arc::default(),
        }
    }

    fn asked(&self, token: &str) -> usize {
        self.asked.lock().unwrap().get(token).copied().unwrap_or(0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_token_is_used_for_its_own_requests_and_the_hub_decides() {
    let people = people().await;
    put(&people.hub.client(), addon("v1.0.0")).await;
    let (reader, agent) = (
        people.issue("reader", Role::ReadOnly),
        people.issue("agent", Role::Agent { namespace: "c1".into() }),
    );
    assert_eq!(people.asked.lock().unwrap().len(), 0, "before anybody asks, nothing is asked of the hub");
    assert_eq!(people.get(&reader, "/api/info").await.1["mode"], "token");

    let world = people.world(&reader).await;
    let state = world.until("the add-on to be seen", |state| !state.is_null()).await;
    assert_eq!(state["displayName"], "Hello");
    let (readers, agents) = (people.asked(&reader), people.asked(&agent));
    assert!(readers > 8 && agents == 0, "{readers} {agents}");

    let (status, body) = people.get(&agent, "/api/stream").await;
    assert_eq!(status, 403, "{body}");
    let said = body["error"].as_str().unwrap();
    assert!(said.contains("agent") && said.contains("cannot list"), "the hub's own words: {said}");
    assert_eq!(people.get(&agent, "/api/info").await.0, 200, "known, if with few rights");
    assert_eq!(
        people.get(&agent, "/api/addons/helloworld/clusters/c1").await.0,
        403,
        "not by the look of another"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_token_and_one_that_is_taken_back_are_refused() {
    let people = people().await;
    for path in ["/api/info", "/api/stream", "/api/addons/a/clusters/b"] {
        assert_eq!(people.get("nobodys", path).await.0, 401, "{path}");
    }
    let reader = people.issue("reader", Role::ReadOnly);
    let world = people.world(&reader).await;
    let mut stream = world.stream("/api/stream").await;
    assert_eq!(stream.next().await.name, "addons");
    people.tokens.revoke("reader").unwrap();
    // The watcher still exists for a moment, but not for a token that the hub no longer accepts.
    assert_eq!(people.get(&reader, "/api/stream").await.0, 401);
    assert_eq!(people.get(&reader, "/api/info").await.0, 401);
    // When the hub ends the watches, as it does now and then, new ones are refused, and the stream
    // ends.
    people.hub.stop().await;
    let ended =
        tokio::time::timeout(crate::world::LIMIT, async { while stream.read().await.is_some() {} }).await;
    assert!(ended.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_look_serves_all_streams_of_a_token_and_two_tokens_have_two() {
    let people = people().await;
    put(&people.hub.client(), addon("v1.0.0")).await;
    let (one, other) = (people.issue("one", Role::ReadOnly), people.issue("other", Role::ReadOnly));
    let world = people.world(&one).await;
    let mut first = world.stream("/api/stream").await;
    first.next().await;
    // Waits until all watches are open: later requests come only from streams.
    world.until("the add-on to be seen", |state| !state.is_null()).await;
    let mut renamed = addon("v1.0.0");
    renamed["spec"]["addOnMeta"]["displayName"] = json!("Seen by watch");
    put(&people.hub.client(), renamed).await;
    world.until("the watch to tell", |state| state["displayName"] == "Seen by watch").await;
    let before = people.asked(&one);
    let mut second = world.stream("/api/stream?addon=helloworld").await;
    assert_eq!(second.next().await.data["displayName"], "Seen by watch");
    assert!(
        people.asked(&one) <= before + 2,
        "one question who they are, and no second look: {before} then {}",
        people.asked(&one)
    );
    let another = people.world(&other).await;
    another.stream("/api/stream").await.next().await;
    assert!(people.asked(&other) > 8, "another token looks for itself");
}
