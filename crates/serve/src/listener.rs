//! Listeners: connections in, HTTP/1.1 and HTTP/2 requests to the router, graceful shutdown.
//!
//! Owns every limit that holds before a request has a handler: connections, handshakes, headers,
//! stalled and dead peers. Must not know the API. A fault of one connection, or of accepting one,
//! ends that connection and never the server.

mod activity;
mod connection;
mod stall;

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use connection::{Server, connection};

/// Limits for one client, or for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections; further ones wait in the kernel's queue.
    pub connections: usize,
    /// Concurrent HTTP/2 requests on one connection; client-go uses one connection for all its
    /// watches.
    pub streams: u32,
    /// Bytes of a request's line and headers.
    pub header_bytes: u32,
    /// Header lines of an HTTP/1.1 request. HTTP/2 charges 32 bytes per header to `header_bytes`.
    pub headers: usize,
    /// The time limit for the TLS handshake.
    pub handshake: Duration,
    /// The time limit for the first request, and for the headers of each HTTP/1.1 request,
    /// including the pause before it.
    pub header_read: Duration,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// How long a peer may read nothing of what is being sent.
    pub write_stall: Duration,
    /// The interval of HTTP/2 pings, and the time limit for their answer.
    pub ping_every: Duration,
    pub ping_timeout: Duration,
    /// The time between the shutdown signal and the closing of the remaining connections.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            streams: 1000,
            header_bytes: 64 << 10,
            headers: 128,
            handshake: Duration::from_secs(10),
            // The value of kube-apiserver; a round 30 would race with clients that poll every half
            // minute.
            header_read: Duration::from_secs(32),
            // Longer than the 90 s after which Go and hyper clients drop an idle connection
            // themselves.
            idle: Duration::from_secs(180),
            write_stall: Duration::from_secs(60),
            ping_every: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(20),
            grace: Duration::from_secs(10),
        }
    }
}

/// The address of the peer, as a request extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Serves `app` over TLS on `listener` until `shutdown` completes, then ends within `limits.grace`.
///
/// Shutdown closes the listener, lets requests in progress finish and refuses new ones. A watch
/// does not end by itself: the app must end its streams on its own shutdown signal, or they are cut
/// after the grace period. Fails at once if `limits` allow no connection.
pub async fn serve_tls(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    app: Router,
    limits: Limits,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    serve(listener, Server::new(Some(tls), app, limits), shutdown).await
}

/// As [`serve_tls`], but HTTP/1.1 without encryption: for health checks, and for clients on the
/// same machine.
pub async fn serve_unencrypted(
    listener: TcpListener,
    app: Router,
    limits: Limits,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    serve(listener, Server::new(None, app, limits), shutdown).await
}

async fn serve(
    listener: TcpListener,
    server: Server,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let limits = server.limits();
    if limits.connections == 0 {
        return Err(io::Error::new(ErrorKind::InvalidInput, "a limit of 0 connections serves nobody"));
    }
    let slots = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let (running, closing) = watch::channel(());
    let server = Arc::new(server);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        // Waits for a slot first: a connection that has to wait is not accepted yet and costs
        // nothing.
        let arrival = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, accepted(|| listener.accept()).await)
        };
        let (slot, (stream, peer)) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            arrival = arrival => arrival,
        };
        while connections.try_join_next().is_some() {}
        let (server, closing) = (Arc::clone(&server), closing.clone());
        connections.spawn(async move {
            let _slot = slot;
            connection(&server, stream, Peer(peer), closing).await;
        });
    }
    drop(listener);
    // Every connection watches for this sender to be dropped.
    drop(running);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.grace, drained).await.is_err() {
        tracing::warn!(connections = connections.len(), "cut connections that did not end in time");
        connections.shutdown().await;
    }
    Ok(())
}

/// Accepts the next connection, however often accepting fails. The usual failure is running out of
/// file descriptors (EMFILE): the listener stays ready, so without a pause this would spin until
/// one is free.
async fn accepted<T, F: Future<Output = io::Result<T>>>(mut accept: impl FnMut() -> F) -> T {
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    let mut pause = Duration::from_millis(5);
    loop {
        match accept().await {
            Ok(connection) => return connection,
            // The peer disconnected while it was queued: not an error.
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "failed to accept a connection");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests;
