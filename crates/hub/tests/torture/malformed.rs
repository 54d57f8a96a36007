//! Invalid requests: each gets its code and a `Status`, in process and over both protocols, and the
//! hub continues.

use aviary_hub::HubOptions;
use aviary_testing::Random;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

use crate::fuzz;
use crate::support::{ephemeral, within};
use crate::tls::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A request, and the codes it may get.
struct Case {
    method: &'static str,
    target: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    codes: Vec<u16>,
}

fn case(method: &'static str, target: impl Into<String>, codes: &[u16]) -> Case {
    Case { method, target: target.into(), headers: Vec::new(), body: Vec::new(), codes: codes.to_vec() }
}

impl Case {
    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.with("content-type", content_type)
    }

    fn shown(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(80)]);
        let target: String = self.target.chars().take(120).collect();
        format!("{} {target} {:?} {body}", self.method, self.headers.first())
    }
}

fn post(body: impl Into<Vec<u8>>, codes: &[u16]) -> Case {
    case("POST", MAPS, codes).body(JSON, body)
}

fn bodies() -> Vec<Case> {
    let mut cases = Vec::new();
    for rubbish in [
        "{",
        "",
        "nul",
        "[]",
        "3",
        "\"x\"",
        "null",
        "{}{}",
        "{\"metadata\":{\"name\":\"q\"}",
        "\u{feff}{}",
        "'a'",
    ] {
        cases.push(post(rubbish, &[400]));
        cases.push(case("PUT", format!("{MAPS}/a"), &[400]).body(JSON, rubbish));
        cases.push(case("PATCH", format!("{MAPS}/a"), &[400]).body(MERGE, rubbish));
        cases.push(case("PATCH", format!("{MAPS}/a"), &[400]).body(STRATEGIC, rubbish));
        if rubbish != "[]" {
            cases.push(case("PATCH", format!("{MAPS}/a"), &[400]).body(JSON_PATCH, rubbish));
        }
        if !rubbish.is_empty() {
            cases.push(case("DELETE", format!("{MAPS}/a"), &[400]).body(JSON, rubbish));
        }
    }
    cases.push(post(vec![0xff, 0xfe, 0x00], &[400]));
    let deep_lists = [b"[".repeat(10_000), b"]".repeat(10_000)].concat();
    let deep_maps = [b"{\"a\":".repeat(10_000), b"1".to_vec(), b"}".repeat(10_000)].concat();
    for deep in [deep_lists, deep_maps, b"[".repeat(10_000)] {
        let inside = [br#"{"metadata":{"name":"q"},"data":"#, &deep[..], b"}"].concat();
        for body in [deep, inside] {
            cases.push(post(body.clone(), &[400]));
            cases.push(case("POST", MAPS, &[400]).body(YAML, body.clone()));
            for patch in [MERGE, JSON_PATCH, STRATEGIC] {
                cases.push(case("PATCH", format!("{MAPS}/a"), &[400]).body(patch, body.clone()));
            }
            cases.push(case("POST", CRDS, &[400]).body(JSON, body));
        }
    }
    let laughs: String = (1..30).fold("a0: &a0 [x, x]\n".into(), |text, level| {
        format!("{text}a{level}: &a{level} [*a{0}, *a{0}, *a{0}, *a{0}]\n", level - 1)
    });
    cases.push(case("POST", MAPS, &[400]).body(YAML, laughs));
    for yaml in ["a: [", "\t\t: x", "%YAML 9", "--- a\n--- b\n", "!!binary x", "*nobody", "? ? ?"] {
        cases.push(case("POST", MAPS, &[400]).body(YAML, yaml));
    }
    cases
}

/// Every field of metadata, and some others, with every wrong type of value.
fn wrong_types() -> Vec<Case> {
    let wrong =
        [json!(3), json!(true), json!([]), json!({}), json!([3]), json!({"a": 3}), json!("x"), json!([[]])];
    let fields: [(&str, &[usize]); 13] = [
        ("/metadata", &[3, 5]),
        ("/metadata/name", &[6]),
        ("/metadata/namespace", &[]),
        ("/metadata/labels", &[3]),
        ("/metadata/annotations", &[3]),
        ("/metadata/finalizers", &[2]),
        ("/metadata/ownerReferences", &[2]),
        ("/metadata/creationTimestamp", &[6]),
        ("/metadata/managedFields", &[2, 4, 7]),
        ("/data", &[3]),
        ("/binaryData", &[3]),
        ("/immutable", &[1]),
        ("/kind", &[]),
    ];
    let mut cases = Vec::new();
    for (field, right) in fields {
        for (_, value) in wrong.iter().enumerate().filter(|(number, _)| !right.contains(number)) {
            let mut object = json!({"metadata": {"name": "q"}});
            let (parent, name) = field.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[name] = value.clone();
            cases.push(post(object.to_string(), &[400]));
        }
    }
    for name in ["A", "..", "a/b", "", "-a", "a\u{0}b", "é", "a b", &"a".repeat(254), "a..b", "%2e"] {
        cases.push(post(json!({"metadata": {"name": name}}).to_string(), &[422]));
    }
    for metadata in [
        json!({"name": "q", "labels": {"a b": "c"}}),
        json!({"name": "q", "labels": {"a": "b c"}}),
        json!({"name": "q", "labels": {"a": "x".repeat(64)}}),
        json!({"name": "q", "annotations": {"a": "x".repeat(257 << 10)}}),
        json!({"name": "q", "finalizers": ["nothing qualified"]}),
        json!({"name": "q", "ownerReferences": [{}]}),
        json!({"name": "q", "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
        json!({"generateName": "A-"}),
        json!({}),
    ] {
        cases.push(post(json!({"metadata": metadata}).to_string(), &[422]));
    }
    cases.push(post(r#"{"metadata":{"name":"q","namespace":"other"}}"#, &[400]));
    cases.push(post(r#"{"metadata":{"name":"q","resourceVersion":"7"}}"#, &[500]));
    let unreadable = [
        json!({"metadata": {"name": "x"}, "spec": 3}),
        json!({"metadata": {"name": "x.y"}, "spec": {"group": "y", "scope": "No", "names": [], "versions": {}}}),
    ];
    for crd in unreadable {
        cases.push(case("POST", CRDS, &[400]).body(JSON, crd.to_string()));
    }
    for crd in [
        json!({}),
        json!({"metadata": {"name": "x.y.z"}, "spec": {"group": "y.z", "scope": "Cluster",
            "names": {"plural": "x", "kind": "X"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}}}]}}),
        json!({"metadata": {"name": "x.y.z"}, "spec": {"group": "y.z", "scope": "Cluster",
            "names": {"plural": "x", "kind": "X"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-validations": [{"rule": "self."}]}}}]}}),
    ] {
        cases.push(case("POST", CRDS, &[422]).body(JSON, crd.to_string()));
    }
    let renamed = json!([{"op": "replace", "path": "/metadata/name", "value": "b"}]);
    for patch in [json!({}), json!([3]), renamed] {
        cases.push(case("PATCH", format!("{MAPS}/a"), &[400]).body(JSON_PATCH, patch.to_string()));
    }
    for patch in [
        json!([{}]),
        json!([{"op": "fly", "path": "/a"}]),
        json!([{"op": "add", "path": "a"}]),
        json!([{"op": "remove", "path": "/nothing/there"}]),
        json!([{"op": "test", "path": "/kind", "value": 1}]),
        json!([{"op": "move", "from": "/metadata", "path": "/metadata/a"}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "replace", "path": "/metadata", "value": 3}]),
        json!([{"op": "add", "path": "/data/-1/~3", "value": 1}]),
        json!([{"op": "replace", "path": "", "value": []}]),
    ] {
        cases.push(case("PATCH", format!("{MAPS}/a"), &[422]).body(JSON_PATCH, patch.to_string()));
    }
    cases
}

fn paths() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        "/",
        "//",
        "/api//v1",
        "/api/v1//configmaps",
        "/api/v1/namespaces/../configmaps",
        "/../../etc/passwd",
        "/api/v1/namespaces/%2e%2e/configmaps",
        "/api/v1/namespaces/default/configmaps/%2e%2e",
        "/api/v1/x%2fy",
        "/api/v1/namespaces/default/configmaps/a%00b",
        "/api/v1/namespaces/default/configmaps/%ff",
        "/%00",
        "/api/v1/namespaces/default/configmaps/a/b/c/d",
        "/api/v1/namespaces//configmaps",
        "/api/v1/%5c..%5c",
        "/api/v1/namespaces/default/configmaps/a%2Fb",
        "/apis/no.such.group",
        "/apis/a/b/c/d/e/f/g/h/i",
        "/API/V1",
        "/api/v2/namespaces",
        "/api/v1/configmaps/a",
        "/openapi/v3/apis/x/y",
        "/;/",
        "/api/v1/configmaps;a=b",
        "/api/v1/namespaces/default/configmaps/a%",
        "/api/v1/namespaces/default/configmaps/%zz",
    ]
    .into_iter()
    .map(|path| case("GET", path, &[404]))
    .collect();
    cases.push(case("GET", format!("/api/v1/{}", "a".repeat(30_000)), &[404]));
    cases.push(case("GET", format!("/api/v1{}", "/a".repeat(15_000)), &[404]));
    cases.push(case("GET", format!("{MAPS}/{}", "a".repeat(5_000)), &[404]));
    for (method, target) in [
        ("PUT", MAPS),
        ("PATCH", MAPS),
        ("BREW", MAPS),
        ("TRACE", MAPS),
        ("OPTIONS", MAPS),
        ("POST", "/version"),
        ("DELETE", "/apis"),
        ("POST", "/api/v1/configmaps"),
        ("POST", "/api/v1/namespaces/default"),
        ("DELETE", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/namespaces/default/status"),
    ] {
        cases.push(case(method, target, &[405]).body(JSON, "{}"));
    }
    for (query, codes) in [
        ("limit=x", &[400_u16][..]),
        ("limit=9999999999999999999", &[400]),
        ("resourceVersion=abc", &[400]),
        ("resourceVersion=-1", &[400]),
        ("labelSelector=((", &[400]),
        ("labelSelector=a%20b%20c", &[400]),
        ("fieldSelector=spec.x%3Dy", &[400]),
        ("fieldSelector=%3D%3D%3D", &[400]),
        ("continue=x", &[400]),
        ("resourceVersionMatch=Perhaps&resourceVersion=1", &[422]),
        ("resourceVersionMatch=Exact", &[422]),
        ("watch=1&sendInitialEvents=1", &[422]),
        ("watch=1&timeoutSeconds=-3", &[400]),
        ("watch=1&timeoutSeconds=x", &[400]),
        ("resourceVersion=99999999", &[504]),
        ("resourceVersion=2&resourceVersionMatch=Exact&continue=x", &[422]),
        ("includeObject=Perhaps", &[400]),
        ("sendInitialEvents=true", &[422]),
    ] {
        cases.push(case("GET", format!("{MAPS}?{query}"), codes));
    }
    for query in ["dryRun=Some", "fieldValidation=Loose"] {
        cases
            .push(case("POST", format!("{MAPS}?{query}"), &[422]).body(JSON, r#"{"metadata":{"name":"q"}}"#));
    }
    let policy = case("DELETE", format!("{MAPS}/a?propagationPolicy=Sideways"), &[422]);
    cases.push(policy);
    cases
}

fn types() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in
        ["text/html", "application/cbor", "multipart/form-data; boundary=x", "application/json+x", "x", "*/*"]
    {
        cases.push(case("POST", MAPS, &[415]).body(kind, r#"{"metadata":{"name":"q"}}"#));
        cases.push(case("PATCH", format!("{MAPS}/a"), &[415]).body(kind, "{}"));
    }
    cases.push(case("PATCH", format!("{MAPS}/a"), &[415]).body(JSON, "{}"));
    cases.push(case("PATCH", format!("{CRDS}/a"), &[404]).body(STRATEGIC, "{}"));
    for accept in ["text/html", PROTOBUF, "application/json;as=Tree;g=x;v=v1", "image/png, text/*"] {
        cases.push(case("GET", MAPS, &[406]).with("accept", accept));
    }
    let mut random = Random::new(11);
    cases.push(case("POST", MAPS, &[400]).body(PROTOBUF, "not protobuf"));
    for length in [0, 1, 3, 10, 100, 1_000, 10_000] {
        let body = [b"k8s\0", &random.bytes(length)[..]].concat();
        cases.push(case("POST", MAPS, &[400]).body(PROTOBUF, body.clone()));
        cases.push(case("DELETE", format!("{MAPS}/a"), &[400]).body(PROTOBUF, body));
    }
    // A length that is far larger than the body.
    let lying = b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f".to_vec();
    cases.push(case("POST", MAPS, &[400]).body(PROTOBUF, lying));
    cases
}

fn large() -> Vec<Case> {
    let object =
        |size: usize| json!({"metadata": {"name": "q"}, "data": {"k": "x".repeat(size)}}).to_string();
    vec![
        post(object(3 << 20), &[413]),
        case("PATCH", format!("{MAPS}/a"), &[413]).body(MERGE, object(4 << 20)),
        case("DELETE", format!("{MAPS}/a"), &[413]).body(JSON, object(4 << 20)),
        post(object((3 << 20) - 100), &[422]),
        post(object((1 << 20) + 1), &[422]),
        post(
            format!(
                "{{\"metadata\":{{\"name\":\"q\"}},\"data\":{{{}\"z\":\"\"}}}}",
                "\"a\":\"\",".repeat(300_000)
            ),
            &[201, 409],
        ),
        post(vec![b' '; (3 << 20) + 1], &[413]),
    ]
}

fn all() -> Vec<Case> {
    [bodies(), wrong_types(), paths(), types(), large()].into_iter().flatten().collect()
}

/// The object that some of the requests are about.
async fn make_a(hub: &aviary_hub::Hub) {
    let body = Body::from(r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#);
    let made = fuzz::check(&hub.router(), Request::post(MAPS).body(body).unwrap()).await;
    assert_eq!(made.status(), 201);
}

fn check_status(what: &str, code: u16, body: &[u8]) {
    if code < 400 {
        return;
    }
    if code == 404 && body == b"404 page not found\n" {
        return;
    }
    let status: Value =
        serde_json::from_slice(body).unwrap_or_else(|error| panic!("{what}: {code}: {error}"));
    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told_in_process() {
    let hub = ephemeral(HubOptions::default()).await;
    make_a(&hub).await;
    let router = hub.router();
    let mut wrong = Vec::new();
    for case in all() {
        let mut request = Request::builder().method(case.method).uri(&case.target);
        for (name, value) in &case.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::from(case.body.clone())).unwrap();
        let code = fuzz::check(&router, request).await.status().as_u16();
        if !case.codes.contains(&code) {
            wrong.push(format!("{code} instead of {:?}: {}", case.codes, case.shown()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    fuzz::still_works(&router, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told_over_http2() {
    let hub = ephemeral(HubOptions::default()).await;
    make_a(&hub).await;
    let server = Server::start(&hub, None, 0).await;
    let io = TokioIo::new(server.connect("h2").await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    for case in all() {
        let mut request = Request::builder()
            .method(case.method)
            .uri(format!("https://{}{}", server.address, case.target))
            .header("authorization", format!("Bearer {}", server.token));
        for (name, value) in &case.headers {
            request = request.header(*name, value);
        }
        let what = case.shown();
        let request = request.body(Full::from(case.body)).unwrap();
        within(&what, sender.ready()).await.unwrap();
        let answer = within(&what, sender.send_request(request)).await;
        let answer = answer.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        let code = answer.status().as_u16();
        assert!(case.codes.contains(&code), "{code} instead of {:?}: {what}", case.codes);
        let body = within(&what, answer.into_body().collect()).await.unwrap().to_bytes();
        check_status(&what, code, &body);
    }
    // Too many headers: this request is refused, but not the connection and the others.
    let mut flood = Request::builder().uri(format!("https://{}/version", server.address));
    for number in 0..3_000 {
        flood = flood.header(format!("x-flood-{number}"), "y".repeat(20));
    }
    let flooded = within("a flood", sender.send_request(flood.body(Full::default()).unwrap())).await;
    assert!(
        flooded.is_err()
            || flooded.is_ok_and(|answer| answer.status() == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
    );
    drop(sender);
    let _ = within("the connection ends", connection).await;
    fuzz::still_works(&hub.router(), 0).await;
    server.stop().await;
}

/// The code and the body of a response; `None` if the server closed without one.
fn parsed(answer: &str) -> Option<(u16, &str)> {
    let code = answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((code, answer.split_once("\r\n\r\n")?.1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told_over_http1() {
    let hub = ephemeral(HubOptions::default()).await;
    make_a(&hub).await;
    let server = Server::start(&hub, None, 0).await;
    for case in all() {
        let what = case.shown();
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", case.method, case.target, server.address);
        head += &format!("Authorization: Bearer {}\r\nConnection: close\r\n", server.token);
        for (name, value) in &case.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", case.body.len());
        let answer = server.say(&[head.as_bytes(), &case.body].concat()).await;
        let Some((code, body)) = parsed(&answer) else {
            // A body that is not read completely ends the connection, and the response can be lost
            // with it.
            assert!(case.codes.contains(&413), "{what}: {answer:?}");
            continue;
        };
        assert!(case.codes.contains(&code), "{code} instead of {:?}: {what}", case.codes);
        if !answer.contains("transfer-encoding") {
            check_status(&what, code, body.as_bytes());
        }
    }
    fuzz::still_works(&hub.router(), 0).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_even_http_is_refused_and_harms_nobody() {
    let hub = ephemeral(HubOptions::default()).await;
    let server = Server::start(&hub, None, 0).await;
    let host = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", server.address, server.token);
    let flood: String = (0..500).map(|number| format!("x-{number}: y\r\n")).collect();
    let mut random = Random::new(13);
    let many = [
        b"\r\n\r\n\r\n\r\nrubbish\r\n\r\n".to_vec(),
        [&random.bytes(2_000)[..], b"\r\n\r\n"].concat(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        format!("GET /{} HTTP/1.1\r\n{host}\r\n", "a".repeat(100_000)).into(),
        format!("GET /version HTTP/1.1\r\n{host}{flood}\r\n").into(),
        format!("GET /version HTTP/1.1\r\n{host}x: {}\r\n\r\n", "y".repeat(100_000)).into(),
        format!("GET /ver sion HTTP/1.1\r\n{host}\r\n").into(),
        format!("GET /version HTTP/1.1\r\n{host}bad header\r\n\r\n").into(),
        format!("GET /version HTTP/1.1\r\n{host}x\u{0}y: z\r\n\r\n").into(),
        format!("POST {MAPS} HTTP/1.1\r\n{host}Content-Length: x\r\n\r\n{{}}").into(),
        format!("POST {MAPS} HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{{}}").into(),
        format!(
            "POST {MAPS} HTTP/1.1\r\n{host}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        )
        .into(),
        format!("POST {MAPS} HTTP/1.1\r\n{host}Transfer-Encoding: gzip\r\n\r\n{{}}").into(),
    ];
    for (number, bytes) in many.into_iter().enumerate() {
        let answer = server.say(&bytes).await;
        let refused =
            answer.is_empty() || answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.0 4");
        assert!(refused, "number {number}: {answer}");
    }
    // An unauthenticated client gets a Status too.
    for (authorization, code) in [
        ("", 401),
        ("Authorization: Bearer x\r\n", 401),
        ("Authorization: Bearer\r\n", 401),
        ("Authorization: Bearer \u{1}\r\n", 400),
        ("Authorization: Basic YTpi\r\n", 401),
        ("Authorization: Bearer é\r\n", 401),
        ("Authorization: \r\n", 401),
        (&format!("Authorization: Bearer {}\r\n", "A".repeat(50_000)), 401),
        (&format!("Authorization: Bearer {0}\r\nAuthorization: Bearer {0}\r\n", server.token), 401),
        (&format!("Authorization: Bearer {}x\r\n", server.token), 401),
        (&format!("Authorization: Bearer {}\r\n", server.token.to_uppercase()), 401),
        (&format!("Cookie: token={}\r\n", server.token), 401),
    ] {
        let ask = format!("GET /api HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{authorization}\r\n");
        let answer = server.say(ask.as_bytes()).await;
        let (got, body) = parsed(&answer).unwrap_or_else(|| panic!("{authorization}: {answer:?}"));
        assert_eq!(got, code, "{authorization}");
        if code == 401 {
            check_status(authorization, code, body.as_bytes());
        }
    }
    let ask = format!(
        "GET /api HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        server.token
    );
    let answer = server.say(ask.as_bytes()).await;
    assert_eq!(parsed(&answer).unwrap().0, 421, "{answer}");
    fuzz::still_works(&hub.router(), 0).await;
    server.stop().await;
}
