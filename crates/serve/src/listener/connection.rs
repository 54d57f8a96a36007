//! One connection from its handshake to its end.
//!
//! Owns the choice of protocol, by ALPN alone: guessing from the first bytes, as hyper-util's
//! `auto` does, waits for them without a limit and cannot bound the size of HTTP/1.1 headers. Must
//! not outlive its limits: every wait here has a deadline or belongs to a request under way.

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::activity::Activity;
use super::stall::Stall;
use super::{Limits, Peer};

/// What all connections share.
pub(super) struct Server {
    /// `None` for unencrypted connections.
    acceptor: Option<TlsAcceptor>,
    app: Router,
    limits: Limits,
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Server {
    pub(super) fn new(tls: Option<Arc<rustls::ServerConfig>>, app: Router, limits: Limits) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_read)
            .max_header_size(limits.header_bytes as usize)
            .max_headers(limits.headers);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .max_header_list_size(limits.header_bytes)
            .keep_alive_interval(limits.ping_every)
            .keep_alive_timeout(limits.ping_timeout);
        Self { acceptor: tls.map(TlsAcceptor::from), app, limits, http1, http2 }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }
}

/// Serves one connection. Returns when it is closed, for whatever reason.
pub(super) async fn connection(server: &Server, stream: TcpStream, peer: Peer, closing: watch::Receiver<()>) {
    let limits = server.limits;
    // Without this, small watch events would be delayed. A failure is harmless.
    let _ = stream.set_nodelay(true);
    let stream = Stall::new(stream, limits.write_stall);
    let Some(acceptor) = &server.acceptor else {
        let (activity, io) = (Activity::default(), TokioIo::new(stream));
        let service = requests(server.app.clone(), peer, activity.clone());
        return drive(server.http1.serve_connection(io, service), peer, &activity, limits, closing).await;
    };
    let tls = tokio::select! {
        () = closed(closing.clone()) => return,
        shaken = timeout(limits.handshake, acceptor.accept(stream)) => match shaken {
            Ok(Ok(tls)) => tls,
            Ok(Err(error)) => return tracing::debug!(peer = %peer.0, %error, "TLS handshake failed"),
            Err(_) => return tracing::debug!(peer = %peer.0, "TLS handshake took too long"),
        },
    };
    let speaks_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    let activity = Activity::default();
    let service = requests(server.app.clone(), peer, activity.clone());
    let io = TokioIo::new(tls);
    if speaks_http2 {
        drive(server.http2.serve_connection(io, service), peer, &activity, limits, closing).await;
    } else {
        drive(server.http1.serve_connection(io, service), peer, &activity, limits, closing).await;
    }
}

/// The router as a hyper service: each request has its peer, and is in progress until its body is
/// sent.
fn requests(
    app: Router,
    peer: Peer,
    activity: Activity,
) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> {
    service_fn(move |mut request: Request<Incoming>| {
        let under_way = activity.begin();
        request.extensions_mut().insert(peer);
        let app = app.clone();
        async move {
            let response = app.oneshot(request).await?;
            Ok(response.map(|body| Body::new(under_way.until_sent(body))))
        }
    })
}

/// Runs a connection until it ends, or until it should end: then it finishes its requests in
/// progress.
async fn drive<C>(
    connection: C,
    peer: Peer,
    activity: &Activity,
    limits: Limits,
    closing: watch::Receiver<()>,
) where
    C: GracefulConnection<Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let mut connection = pin!(connection);
    let finish = async {
        tokio::select! {
            () = closed(closing) => {}
            () = activity.idle_for(limits.idle) => {}
        }
    };
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        // hyper waits for an HTTP/2 preface without a limit, so a silent client is dropped.
        () = activity.none_within(limits.header_read) => return,
        () = finish => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        let error: Box<dyn Error + Send + Sync> = error.into();
        tracing::debug!(peer = %peer.0, error = &*error as &(dyn Error + 'static), "connection failed");
    }
}

/// Completes when the server is shutting down and has dropped the other end.
async fn closed(mut closing: watch::Receiver<()>) {
    while closing.changed().await.is_ok() {}
}
