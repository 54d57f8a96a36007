//! Real sockets and real TLS. Nothing here waits for time to pass: each wait ends by an event, and
//! the deadline around it only turns a hang into a failure.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::routing::get;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::testing::connect;
use crate::{AllowedHosts, Authority, ServerCertificate};

mod limits;
mod shutdown;

const DEADLINE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);
/// For limits that must not affect an honest client on a busy machine.
const SECOND: Duration = Duration::from_secs(1);

/// A running server, and how to connect to it and stop it.
struct World {
    address: SocketAddr,
    authority: Arc<Authority>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<io::Result<()>>,
}

async fn world(app: Router, limits: Limits) -> World {
    let authority = Arc::new(Authority::ephemeral(Timestamp::now()).unwrap());
    let certificate =
        ServerCertificate::issue(Arc::clone(&authority), &AllowedHosts::loopback(), Timestamp::now())
            .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async { drop(stopped.await) };
    let server = tokio::spawn(serve_tls(listener, certificate.tls().unwrap(), app, limits, shutdown));
    World { address, authority, stop, server }
}

impl World {
    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn tls(&self, alpn: &str) -> TlsStream<TcpStream> {
        connect(self.tcp().await, &self.authority, "127.0.0.1", alpn).await.unwrap()
    }

    /// An HTTP/2 client, and the task that ends with its connection.
    async fn http2(&self) -> (SendRequest<Empty<Bytes>>, JoinHandle<()>) {
        let io = TokioIo::new(self.tls("h2").await);
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        (sender, tokio::spawn(async { drop(connection.await) }))
    }

    async fn ends(self) {
        drop(self.stop);
        within(self.server).await.unwrap().unwrap();
    }
}

async fn within<T>(event: impl Future<Output = T>) -> T {
    timeout(DEADLINE, event).await.expect("it should have happened by now")
}

fn hello() -> Router {
    let peer = |Extension(Peer(peer)): Extension<Peer>| async move { format!("hello {}", peer.ip()) };
    Router::new().route("/", get(peer))
}

/// A body that sends `chunk` repeatedly, or is silent forever, and notifies when it is dropped.
fn endless(chunk: Option<Bytes>, dropped: Arc<Notify>) -> Body {
    struct Endless(Option<Bytes>, Arc<Notify>);
    impl Drop for Endless {
        fn drop(&mut self) {
            self.1.notify_one();
        }
    }
    impl axum::body::HttpBody for Endless {
        type Data = Bytes;
        type Error = std::convert::Infallible;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
            match &self.0 {
                Some(chunk) => std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(chunk.clone())))),
                None => std::task::Poll::Pending,
            }
        }
    }
    Body::new(Endless(chunk, dropped))
}

const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

async fn ask1(stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(GET.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let length = within(stream.read(&mut answer)).await.unwrap();
    String::from_utf8(answer[..length].to_vec()).unwrap()
}

/// Reads until the server closes; a reset counts as closing.
async fn until_closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    let _ = within(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn ask2(sender: &mut SendRequest<Empty<Bytes>>) -> hyper::Result<Response<Incoming>> {
    let request = Request::builder().uri("https://localhost/").body(Empty::new()).unwrap();
    within(sender.send_request(request)).await
}

#[tokio::test]
async fn both_protocols_are_answered_and_know_their_peer() {
    let world = world(hello(), Limits::default()).await;
    let answer = ask1(&mut world.tls("http/1.1").await).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello 127.0.0.1"), "{answer}");
    assert!(answer.contains("content-length: 15"), "{answer}");
    let (mut sender, _) = world.http2().await;
    let answer = ask2(&mut sender).await.unwrap();
    assert_eq!((answer.status(), answer.version()), (StatusCode::OK, http::Version::HTTP_2));
    assert_eq!(answer.collect().await.unwrap().to_bytes(), "hello 127.0.0.1");
    drop(sender);
    world.ends().await;
}

#[tokio::test]
async fn plain_http_gets_no_answer() {
    let world = world(hello(), Limits::default()).await;
    let mut stream = world.tcp().await;
    stream.write_all(GET.as_bytes()).await.unwrap();
    let answer = until_closed(&mut stream).await;
    assert!(!answer.contains("HTTP"), "{answer:?}");
    world.ends().await;
}

#[tokio::test]
async fn accepting_goes_on_after_any_number_of_errors() {
    let attempts = AtomicUsize::new(0);
    let accept = || async {
        match attempts.fetch_add(1, Ordering::Relaxed) {
            0..3 => Err(io::Error::from_raw_os_error(24)), // EMFILE
            3 => Err(ErrorKind::ConnectionAborted.into()),
            _ => Ok("connection"),
        }
    };
    let began = std::time::Instant::now();
    assert_eq!(within(accepted(accept)).await, "connection");
    assert_eq!(attempts.load(Ordering::Relaxed), 5);
    assert!(began.elapsed() >= Duration::from_millis(5 + 10 + 20), "it must not spin");
}

#[tokio::test]
async fn a_limit_of_no_connections_is_an_error() {
    let world = world(hello(), Limits { connections: 0, ..Limits::default() }).await;
    let error = within(world.server).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn without_encryption_the_limits_and_the_shutdown_are_the_same() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let limits = Limits { header_read: SECOND, ..Limits::default() };
    let server = tokio::spawn(serve_unencrypted(listener, hello(), limits, async { drop(stopped.await) }));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(GET.as_bytes()).await.unwrap();
    // The pause before a second request counts as slow headers, so the server closes by itself.
    let answer = until_closed(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("hello 127.0.0.1"), "{answer}");
    let mut silent = TcpStream::connect(address).await.unwrap();
    assert_eq!(until_closed(&mut silent).await, "");
    drop(stop);
    within(server).await.unwrap().unwrap();
    TcpStream::connect(address).await.unwrap_err();
}
