//! The shipped role for users, `aviary-dashboard-viewer`, against what the dashboard asks of a hub.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};

use aviary_dashboard::{Connect, Dashboard, DashboardSettings, RightsMode};
use aviary_hub::Hub;
use aviary_hub::security::{Identity, Role};
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use crate::world::{World, addon, hosts, hub, put};

const MANIFEST: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kustomize/dashboard/web-dashboard.yaml");

/// What the schemas of the kinds are read from. Without the right to, the dashboard takes every
/// field to be served.
const DISPENSABLE: &str = "list apiextensions.k8s.io customresourcedefinitions";

/// A hub that refuses what the role does not allow, and what it has refused.
struct Viewer {
    hub: Hub,
    rules: Arc<BTreeSet<String>>,
    refused: Arc<Mutex<BTreeSet<String>>>,
}

impl Connect for Viewer {
    fn client(&self, _: &str) -> Result<Client, String> {
        let (rules, refused) = (Arc::clone(&self.rules), Arc::clone(&self.refused));
        let check = from_fn(move |request: Request, next: Next| {
            let right = right(&request).filter(|right| !rules.contains(right));
            refused.lock().unwrap().extend(right.clone());
            async move {
                match right {
                    Some(right) => forbidden(&right),
                    None => next.run(request).await,
                }
            }
        });
        let administrator = Extension(Identity::new("viewer", Role::Admin));
        Ok(Client::new(self.hub.router().layer(check).layer(administrator), "default"))
    }
}

/// The rules of the role, as verb, group and resource.
fn rules() -> BTreeSet<String> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(MANIFEST).unwrap()).unwrap();
    let role = objects.iter().find(|object| object["metadata"]["name"] == "aviary-dashboard-viewer").unwrap();
    let texts = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    let mut rules = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let verbs = texts(&rule["verbs"]);
                rules.extend(verbs.iter().map(|verb| format!("{verb} {group} {resource}")));
            }
        }
    }
    rules
}

/// The right that a request needs; `None` if every user has it: discovery, and questions about
/// oneself.
fn right(request: &Request) -> Option<String> {
    let path: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let (group, rest) = match path.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let (resource, name) = match rest {
        ["namespaces", _, resource, rest @ ..] | [resource, rest @ ..] => (*resource, rest.first()),
        [] => return None,
    };
    if resource.starts_with("selfsubject") {
        return None;
    }
    let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let verb = match (request.method().as_str(), name) {
        ("GET", _) if watches => "watch",
        ("GET", None) => "list",
        ("GET", Some(_)) => "get",
        (method, _) => method,
    };
    Some(format!("{verb} {group} {resource}"))
}

fn forbidden(right: &str) -> Response {
    let message = format!("viewer may not {right}");
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": message, "reason": "Forbidden", "code": 403,
    });
    (StatusCode::FORBIDDEN, Json(status)).into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_shipped_role_sees_everything() {
    let hub = hub().await;
    let client = hub.client();
    put(&client, addon("v1.0.0")).await;
    let refused: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let viewer = Viewer { hub, rules: Arc::new(rules()), refused: Arc::clone(&refused) };
    let dashboard = Dashboard::new(DashboardSettings {
        version: "1.2.3".into(),
        server: "https://hub.example:6443".into(),
        namespace: "open-cluster-management".into(),
        access: RightsMode::Users(Arc::new(viewer)),
        hosts: hosts(),
        secure: true,
        operate: None,
        clock: Arc::new(Timestamp::now),
    });
    let router = dashboard.router();
    let world = World { client, dashboard, router, token: "viewer".into(), requests: Arc::default() };

    let response = world.send(world.request("GET", "/api/stream").body(Body::empty()).unwrap()).await;
    let refusals = || refused.lock().unwrap().clone();
    assert_eq!(response.status(), 200, "{:?}", refusals());
    world.until("the add-on to be seen", |state| !state.is_null()).await;
    // What is read once is watched, too: a change arrives.
    let mut renamed = addon("v1.0.0");
    renamed["spec"]["addOnMeta"]["displayName"] = json!("Seen by watch");
    world.put(renamed).await;
    world.until("the watch to tell", |state| state["displayName"] == "Seen by watch").await;
    let mut lacking = refusals();
    lacking.remove(DISPENSABLE);
    assert!(lacking.is_empty(), "the role lacks {lacking:?}");
}
