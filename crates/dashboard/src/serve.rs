//! A listener on loopback: plain HTTP/1.1, for a browser on the same machine. Other machines are served over TLS, and not from here.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

/// Further connections wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 256;
/// For the headers of a request, the pause before it included.
const HEADER_PATIENCE: Duration = Duration::from_secs(32);
const MOST_HEADER_BYTES: usize = 64 << 10;
/// From the end until connections are cut.
const GRACE: Duration = Duration::from_secs(5);

/// Serves `app` until `shutdown` completes. Streams must be ended by the app, or are cut a little later.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    if !listener.local_addr()?.ip().is_loopback() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "only loopback is served in the clear"));
    }
    let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let (running, closing) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let arrival = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            arrival = arrival => arrival,
        };
        while connections.try_join_next().is_some() {}
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: the listener stays ready, and without a pause this would spin.
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // News are small and must not wait for more of them; a failure only costs time.
        let _ = stream.set_nodelay(true);
        let (app, mut closing) = (app.clone(), closing.clone());
        connections.spawn(async move {
            let _slot = slot;
            let service = service_fn(move |request: http::Request<Incoming>| app.clone().oneshot(request));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEADER_PATIENCE)
                .max_header_size(MOST_HEADER_BYTES);
            let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                _ = closing.changed() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection failed");
            }
        });
    }
    drop(listener);
    // Every connection waits for this to go.
    drop(running);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, drained).await.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}
