//! Shutdown of the server: graceful if the app cooperates, and forced otherwise.

use super::*;

#[tokio::test]
async fn shutdown_lets_a_request_finish_and_accepts_no_other() {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (enter, go) = (Arc::clone(&entered), Arc::clone(&release));
    let slow = get(move || async move {
        enter.notify_one();
        go.notified().await;
        "finished"
    });
    let world = world(Router::new().route("/", slow), Limits { grace: DEADLINE, ..Limits::default() }).await;
    let mut idle = world.tls("http/1.1").await;
    let (mut sender, _connection) = world.http2().await;
    let answer = tokio::spawn(async move { ask2(&mut sender).await });
    within(entered.notified()).await;
    let World { address, stop, server, .. } = world;
    drop(stop);
    // The idle connection is closed as soon as the server knows; by then the listener is closed as
    // well.
    assert_eq!(until_closed(&mut idle).await, "");
    TcpStream::connect(address).await.unwrap_err();
    release.notify_one();
    let body = within(answer).await.unwrap().unwrap().collect().await.unwrap().to_bytes();
    assert_eq!(body, "finished");
    within(server).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stream_that_does_not_end_is_cut_after_the_grace() {
    for alpn in ["h2", "http/1.1"] {
        let dropped = Arc::new(Notify::new());
        let given_up = Arc::clone(&dropped);
        let watch = get(move || async move { endless(None, given_up) });
        let world =
            world(Router::new().route("/", watch), Limits { grace: SHORT, ..Limits::default() }).await;
        let mut stream = world.tls("http/1.1").await;
        let mut watching = None;
        if alpn == "h2" {
            let (mut sender, connection) = world.http2().await;
            watching = Some((ask2(&mut sender).await.unwrap(), connection));
        } else {
            assert!(ask1(&mut stream).await.starts_with("HTTP/1.1 200"));
        }
        world.ends().await;
        within(dropped.notified()).await;
        drop(watching);
    }
}
