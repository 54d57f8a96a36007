//! Serves the page to a browser on the same machine. Other machines need TLS, which is served
//! elsewhere.

use std::future::Future;
use std::io;
use std::time::Duration;

use aviary_serve::{Limits, serve_unencrypted};
use axum::Router;
use tokio::net::TcpListener;

/// Serves `app` on loopback until `shutdown` completes. The app must end its streams; otherwise
/// they are cut a little later.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    if !listener.local_addr()?.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "unencrypted connections are only served on loopback",
        ));
    }
    let limits = Limits { connections: 256, grace: Duration::from_secs(5), ..Limits::default() };
    serve_unencrypted(listener, app, limits, shutdown).await
}
