//! The connection of a slow, greedy, silent or dead client is closed.

use super::*;

#[tokio::test]
async fn a_client_that_never_finishes_its_handshake_or_its_headers_is_cut() {
    let limits = Limits { handshake: SECOND, header_read: SHORT, ..Limits::default() };
    let world = world(hello(), limits).await;
    let mut silent = world.tcp().await;
    assert_eq!(until_closed(&mut silent).await, "");
    let mut slow = world.tls("http/1.1").await;
    // The connection may be cut before the write, which is fine.
    let _ = slow.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").await;
    let answer = until_closed(&mut slow).await;
    assert!(!answer.contains("200"), "{answer}");
    let mut mute = world.tls("h2").await;
    until_closed(&mut mute).await;
    world.ends().await;
}

#[tokio::test]
async fn slow_headers_of_a_later_request_are_cut_too() {
    let world = world(hello(), Limits { header_read: SECOND, ..Limits::default() }).await;
    let mut slow = world.tls("http/1.1").await;
    assert!(ask1(&mut slow).await.starts_with("HTTP/1.1 200"));
    slow.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").await.unwrap();
    let answer = until_closed(&mut slow).await;
    assert!(!answer.contains("200"), "{answer}");
    world.ends().await;
}

#[tokio::test]
async fn oversized_headers_are_refused() {
    let world = world(hello(), Limits::default()).await;
    let large = "x".repeat(70_000);
    let many = "a: b\r\n".repeat(200);
    for headers in [format!("X-Large: {large}\r\n"), many] {
        let mut stream = world.tls("http/1.1").await;
        let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        let _ = stream.write_all(request.as_bytes()).await;
        let answer = until_closed(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let (mut sender, _) = world.http2().await;
    let request = Request::builder().uri("https://localhost/").header("x-large", large);
    let answer = within(sender.send_request(request.body(Empty::new()).unwrap())).await;
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status() == 431));
    drop(sender);
    world.ends().await;
}

#[tokio::test]
async fn a_connection_beyond_the_limit_waits_for_a_free_slot() {
    let world = world(hello(), Limits { connections: 1, ..Limits::default() }).await;
    let mut first = world.tls("http/1.1").await;
    ask1(&mut first).await;
    let tcp = world.tcp().await;
    let authority = Arc::clone(&world.authority);
    let second = tokio::spawn(async move { connect(tcp, &authority, "127.0.0.1", "http/1.1").await });
    // If a second connection had been accepted, it would be done long before the first has made
    // this many requests.
    for _ in 0..100 {
        ask1(&mut first).await;
    }
    assert!(!second.is_finished());
    drop(first);
    let mut second = within(second).await.unwrap().unwrap();
    assert!(ask1(&mut second).await.starts_with("HTTP/1.1 200"));
    world.ends().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_quiet_watch_is_not() {
    let dropped = Arc::new(Notify::new());
    let given_up = Arc::clone(&dropped);
    let watch = get(move || async move { endless(None, given_up) });
    let limits = Limits { idle: SECOND, ..Limits::default() };
    let world = world(Router::new().route("/", watch), limits).await;
    let (mut sender, watching) = world.http2().await;
    let answer = ask2(&mut sender).await.unwrap();
    let (_idle, closed) = world.http2().await;
    within(closed).await.unwrap();
    // Older than the idle one, and still open.
    assert!(!watching.is_finished());
    drop(answer);
    within(dropped.notified()).await;
    within(watching).await.unwrap();
    world.ends().await;
}

#[tokio::test]
async fn a_peer_that_stops_reading_is_cut() {
    let dropped = Arc::new(Notify::new());
    let given_up = Arc::clone(&dropped);
    let flood = get(move || async move { endless(Some(Bytes::from_static(&[b'x'; 65_536])), given_up) });
    let limits = Limits { write_stall: SHORT, ..Limits::default() };
    let world = world(Router::new().route("/", flood), limits).await;
    let mut stream = world.tls("http/1.1").await;
    stream.write_all(GET.as_bytes()).await.unwrap();
    within(dropped.notified()).await;
    world.ends().await;
}

/// A client whose machine is gone: it has started a watch and does not respond any more.
#[tokio::test]
async fn a_peer_that_answers_no_ping_is_cut() {
    let dropped = Arc::new(Notify::new());
    let given_up = Arc::clone(&dropped);
    let watch = get(move || async move { endless(None, given_up) });
    let limits = Limits { ping_every: SHORT, ping_timeout: SHORT, ..Limits::default() };
    let world = world(Router::new().route("/", watch), limits).await;
    let mut stream = world.tls("h2").await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    // GET https://localhost/ on stream 1, complete: three indexed headers and a literal :authority.
    let headers = b"\x00\x00\x0e\x01\x05\x00\x00\x00\x01\x82\x87\x84\x41\x09localhost";
    stream.write_all(&[&preface[..], &settings, headers].concat()).await.unwrap();
    within(dropped.notified()).await;
    until_closed(&mut stream).await;
    world.ends().await;
}
