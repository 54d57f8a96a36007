//! Access: tokens, host names, paths, and the headers of every response.

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{HOST, World, answer};

/// A request as lines: method and target, then headers; TOKEN stands for a valid token.
async fn status(world: &World, lines: &str) -> u16 {
    let mut lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(target);
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.header(name, value.replace("TOKEN", &world.token));
    }
    world.send(request.body(Body::empty()).unwrap()).await.status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_has_the_token_sees_anything() {
    let world = World::quiet().await;
    for path in [
        "/api/info",
        "/api/stream",
        "/api/stream?addon=a",
        "/api/addons/a/clusters/b",
        "/api/nothing",
        "/api",
    ] {
        for (credential, expected) in [
            ("", 401),
            ("authorization: Bearer wrong", 401),
            ("authorization: Bearer ", 401),
            ("authorization: Basic TOKEN", 401),
            ("authorization: TOKEN", 401),
            ("authorization: Bearer TOKENx", 401),
            ("authorization: Bearer TOKEN\nauthorization: Bearer TOKEN", 401),
            ("cookie: token=TOKEN", 401),
        ] {
            let lines = format!("GET {path}\nhost: {HOST}\n{credential}");
            assert_eq!(status(&world, &lines).await, expected, "{lines}");
        }
        let query =
            format!("GET {path}{}token=TOKEN\nhost: {HOST}", if path.contains('?') { '&' } else { '?' });
        assert_eq!(
            status(&world, &query.replace("TOKEN", &world.token)).await,
            401,
            "a token in the address"
        );
    }
    assert_eq!(
        status(&world, &format!("GET /api/info\nhost: {HOST}\nauthorization: Bearer TOKEN")).await,
        200
    );
    assert_eq!(status(&world, &format!("POST /api/addons/a/actions\nhost: {HOST}")).await, 401);
    assert_eq!(status(&world, &format!("GET /\nhost: {HOST}")).await, 200, "the page itself holds no data");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_host_or_page_is_refused_even_with_the_token() {
    let world = World::quiet().await;
    let with = |target: &str, headers: &str| format!("{target}\nauthorization: Bearer TOKEN\n{headers}");
    for target in ["GET /", "GET /main.js", "GET /api/info", "GET /api/stream", "POST /api/addons/a/actions"]
    {
        for host in [
            "host: evil.example",
            "host: 127.0.0.1:16480.evil.example",
            "host: 169.254.1.1",
            "",
            "host: a\nhost: b",
        ] {
            assert_eq!(status(&world, &with(target, host)).await, 403, "{target} {host}");
        }
        for origin in
            ["https://evil.example", "http://127.0.0.1:9999", "https://127.0.0.1:16480", "null", "file://"]
        {
            let headers = format!("host: {HOST}\norigin: {origin}");
            assert_eq!(status(&world, &with(target, &headers)).await, 403, "{target} {origin}");
        }
    }
    for (site, expected) in [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)] {
        let headers = format!("host: {HOST}\nsec-fetch-site: {site}");
        assert_eq!(status(&world, &with("GET /api/info", &headers)).await, expected, "{site}");
    }
    let own = format!("host: {HOST}\norigin: http://{HOST}");
    assert_eq!(status(&world, &with("GET /api/info", &own)).await, 200);
    let full = format!("GET http://evil.example/api/info\nhost: {HOST}\nauthorization: Bearer TOKEN");
    assert_eq!(status(&world, &full).await, 403, "the target names another host");
}

#[tokio::test(flavor = "multi_thread")]
async fn path_tricks_lead_nowhere() {
    let world = World::quiet().await;
    let long = format!("/{}", "a".repeat(4000));
    for path in [
        "/../Cargo.toml",
        "/..",
        "/.",
        "/%2e%2e/Cargo.toml",
        "/%2E%2E%2FCargo.toml",
        "//main.js",
        "/main.js/",
        "/api//info",
        "/api/",
        "/./main.js",
        "/api/info/",
        "/api%2finfo",
        "/api/info%00",
        "/main.js%00.css",
        "/api/addons/a%2fb/actions",
        "/api/addons/%2e%2e/clusters/c",
        "/api/addons/../info",
        "/api/addons/./clusters/c",
        "/main.js;x",
        "/main.js%20",
        "/%61pi/info",
        &long,
    ] {
        let lines = format!("GET {path}\nhost: {HOST}\nauthorization: Bearer TOKEN");
        assert_eq!(status(&world, &lines).await, 400, "{path}");
    }
    for path in
        ["/API/info", "/Main.js", "/index.html", "/page/main.js", "/Cargo.toml", "/src/lib.rs", "/.git"]
    {
        let lines = format!("GET {path}\nhost: {HOST}\nauthorization: Bearer TOKEN");
        assert_eq!(status(&world, &lines).await, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_methods_and_bodies_are_refused() {
    let world = World::quiet().await;
    let own = format!("host: {HOST}\nauthorization: Bearer TOKEN");
    for target in [
        "POST /",
        "PUT /main.js",
        "DELETE /",
        "OPTIONS /",
        "TRACE /",
        "POST /api/info",
        "DELETE /api/stream",
        "HEAD /api/info",
        "HEAD /api/stream",
        "OPTIONS /api/info",
        "PUT /api/addons/a/actions",
        "GET /api/addons/a/actions",
        "POST /api/addons/a/clusters/b",
        "BREW /api/info",
    ] {
        assert_eq!(status(&world, &format!("{target}\n{own}")).await, 405, "{target}");
    }
    assert_eq!(status(&world, &format!("HEAD /\n{own}")).await, 200);
    let post = |kind: &str, body: Body| {
        let request = world.request("POST", "/api/addons/a/actions").header("content-type", kind);
        let request = request.body(body).unwrap();
        async { answer(world.send(request).await).await.0 }
    };
    let action = json!({"action": "pause", "dryRun": true}).to_string();
    assert_eq!(post("application/json", Body::from(action.clone())).await, 200);
    assert_eq!(post("application/json; charset=utf-8", Body::from(action.clone())).await, 200);
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"]
    {
        assert_eq!(post(kind, Body::from(action.clone())).await, 415, "{kind}");
    }
    let long = format!("{action}{}", " ".repeat(64 << 10));
    assert_eq!(post("application/json", Body::from(long)).await, 413);
    let deep = "[".repeat(10_000);
    assert_eq!(post("application/json", Body::from(deep)).await, 400);
    assert_eq!(post("application/json", Body::from(vec![0xff, 0xfe])).await, 400);
}

fn check_headers(headers: &HeaderMap, what: &str) {
    let value =
        |name: &str| headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default().to_owned();
    let policy = value("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.split("; ").any(|found| found == part), "{what}: {part} in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    for (name, expected) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
    ] {
        assert_eq!(value(name), expected, "{what}: {name}");
    }
    assert!(!headers.contains_key("set-cookie"), "{what}");
    assert!(!headers.keys().any(|name| name.as_str().starts_with("access-control-")), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_carries_its_headers() {
    let world = World::quiet().await;
    for (method, path, cache) in [
        ("GET", "/", "no-cache"),
        ("GET", "/main.js", "no-cache"),
        ("GET", "/api/info", "no-store"),
        ("GET", "/api/stream", "no-store"),
        ("GET", "/api/nothing", "no-store"),
        ("GET", "/api/addons/a/clusters/b", "no-store"),
        ("PUT", "/api/info", "no-store"),
        ("GET", "/api//x", "no-store"),
    ] {
        let response = world.send(world.request(method, path).body(Body::empty()).unwrap()).await;
        check_headers(response.headers(), path);
        assert_eq!(response.headers()["cache-control"], cache, "{path}");
    }
    let refused = world.send(Request::builder().uri("/api/info").body(Body::empty()).unwrap()).await;
    check_headers(refused.headers(), "a foreign host");
    let without = Request::builder().uri("/api/info").header("host", HOST).body(Body::empty()).unwrap();
    let refused = world.send(without).await;
    check_headers(refused.headers(), "no token");
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    let page =
        tower::ServiceExt::oneshot(aviary_dashboard::page(), Request::get("/").body(Body::empty()).unwrap());
    let page = page.await.unwrap();
    check_headers(page.headers(), "the page alone");
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    let module = world.send(world.request("GET", "/main.js").body(Body::empty()).unwrap()).await;
    assert_eq!(module.headers()["content-type"], "text/javascript; charset=utf-8");
}

/// These tests use a real socket: an in-process router never sees such requests.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_serves_it_and_ends_in_order() {
    let world = World::quiet().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served =
        tokio::spawn(aviary_dashboard::serve(listener, world.router.clone(), async { drop(stopped.await) }));
    let said = |text: String| async move {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let end = "connection: close\r\n\r\n";
    let fine = said(format!(
        "GET /api/info HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer {}\r\n{end}",
        world.token
    ))
    .await;
    assert!(fine.starts_with("HTTP/1.1 200 ") && fine.contains("\"mode\":\"kubeconfig\""), "{fine}");
    let raw = said(format!("GET /../../etc/passwd HTTP/1.1\r\nhost: {HOST}\r\n{end}")).await;
    assert!(raw.starts_with("HTTP/1.1 400 "), "{raw}");
    let nul = said(format!("GET /main.js\0 HTTP/1.1\r\nhost: {HOST}\r\n{end}")).await;
    assert!(nul.starts_with("HTTP/1.1 400 "), "{nul}");
    let nobody = said(format!("GET / HTTP/1.1\r\n{end}")).await;
    assert!(nobody.starts_with("HTTP/1.1 403 "), "{nobody}");
    let huge = said(format!("GET / HTTP/1.1\r\nhost: {HOST}\r\nx: {}\r\n{end}", "a".repeat(200 << 10))).await;
    assert!(huge.starts_with("HTTP/1.1 431 "), "{}", huge.lines().next().unwrap_or_default());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let open =
        format!("GET /api/stream HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer {}\r\n\r\n", world.token);
    stream.write_all(open.as_bytes()).await.unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    world.dashboard.close();
    stop.send(()).unwrap();
    tokio::time::timeout(crate::world::LIMIT, served).await.unwrap().unwrap().unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    let open = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = aviary_dashboard::serve(open, world.router.clone(), std::future::ready(())).await;
    assert!(refused.is_err(), "other machines are not served unencrypted");
}
