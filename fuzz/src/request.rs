//! The request path of the hub, fed with anything.
//!
//! Owns what counts as a sound answer, for the fuzzer and for the tests of the hub, which include
//! this file.

use std::sync::OnceLock;
use std::time::Duration;

use aviary_hub::security::{Identity, Role};
use aviary_hub::{Hub, HubOptions};
use axum::Router;
use axum::body::Body;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

const LONGEST_ANSWER: Duration = Duration::from_secs(30);

/// A request as one would type it: method, target, headers, an empty line, the body. None if HTTP
/// does not allow it.
pub fn read(data: &[u8]) -> Option<Request<Body>> {
    let mut rest = data;
    let mut line = || -> Option<&[u8]> {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, after) = rest.split_at(end);
        rest = after.get(1..)?;
        Some(line)
    };
    let method = Method::from_bytes(line()?).ok()?;
    let target = Uri::try_from(line()?).ok()?;
    let mut request = Request::builder().method(method).uri(target);
    loop {
        let header = line()?;
        if header.is_empty() {
            break;
        }
        let colon = header.iter().position(|byte| *byte == b':')?;
        let (name, value) = header.split_at(colon);
        let value = value.get(1..)?.trim_ascii();
        request = request.header(HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value).ok()?);
    }
    request.body(Body::from(rest.to_vec())).ok()
}

/// Sends a request, and panics unless the answer is one that the hub may give.
pub async fn check(router: &Router, mut request: Request<Body>) -> Response<()> {
    let what = format!("{} {}", request.method(), request.uri());
    request.extensions_mut().insert(Identity::new("fuzzer", Role::Admin));
    let answer = async {
        let (parts, body) = router.clone().oneshot(request).await.expect("infallible").into_parts();
        // Only a watch has no end, and that it began is enough.
        let endless = parts.status == 200 && what.contains("watch");
        let bytes =
            if endless { Vec::new() } else { body.collect().await.expect("a body").to_bytes().into() };
        (parts, bytes)
    };
    let (parts, bytes) =
        tokio::time::timeout(LONGEST_ANSWER, answer).await.unwrap_or_else(|_| panic!("{what}: no answer"));
    let code = parts.status.as_u16();
    let text = String::from_utf8_lossy(&bytes);
    // For these mistakes Kubernetes answers 500 without a reason, and where no API is responsible
    // plain text.
    let mistakes =
        ["failed to create typed patch object", "strconv.ParseUint", "resourceVersion should not be set"];
    let as_kubernetes = code == 500 && mistakes.iter().any(|mistake| text.contains(mistake))
        || code == 404 && text == "404 page not found\n";
    assert!(code < 500 || code == 504 || as_kubernetes, "{what}: {code} {text}");
    if code >= 400 && !what.starts_with("HEAD ") && !as_kubernetes {
        let status: Value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|error| panic!("{what}: {code} and no Status: {error}"));
        assert_eq!((&status["kind"], &status["apiVersion"]), (&json!("Status"), &json!("v1")), "{what}");
        assert_eq!((&status["status"], &status["code"]), (&json!("Failure"), &json!(code)), "{what}");
        let filled = |field: &str| status[field].as_str().is_some_and(|text| !text.is_empty());
        assert!(filled("message") && filled("reason"), "{what}: {status}");
    }
    Response::from_parts(parts, ())
}

/// Panics unless the hub still does what it is there for.
pub async fn still_works(router: &Router, count: u64) {
    let namespace = format!("probe-{count}");
    let ask = |method: &str, path: String, body: Value| {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        Request::builder().method(method).uri(path).body(body).expect("a request")
    };
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    for (request, code) in [
        (ask("POST", "/api/v1/namespaces".into(), json!({"metadata": {"name": namespace}})), 201),
        (ask("POST", maps.clone(), json!({"metadata": {"name": "a"}, "data": {"k": "v"}})), 201),
        (ask("GET", format!("{maps}/a"), Value::Null), 200),
        (ask("DELETE", format!("{maps}/a"), Value::Null), 200),
        (ask("GET", format!("{maps}/a"), Value::Null), 404),
        (ask("DELETE", format!("/api/v1/namespaces/{namespace}"), Value::Null), 200),
    ] {
        let what = format!("{request:?}");
        assert_eq!(check(router, request).await.status(), code, "{what}");
    }
}

struct World {
    runtime: tokio::runtime::Runtime,
    hub: Hub,
}

/// One input of the fuzzer. All inputs go to the same hub, so what one leaves behind meets the
/// next.
pub fn run(data: &[u8]) {
    static WORLD: OnceLock<World> = OnceLock::new();
    let world = WORLD.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let hub = runtime.block_on(Hub::ephemeral(HubOptions::default())).expect("a hub");
        World { runtime, hub }
    });
    let Some(request) = read(data) else { return };
    let router = world.hub.router();
    world.runtime.block_on(async {
        check(&router, request).await;
        let version = Request::builder().uri("/version").body(Body::empty()).expect("a request");
        assert_eq!(check(&router, version).await.status(), 200);
    });
}
