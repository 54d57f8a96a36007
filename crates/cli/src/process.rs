//! The process: stop signals and listening ports.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;

use anyhow::{Context as _, anyhow};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Completes when the process receives SIGINT or SIGTERM. Signals are caught from this call on.
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = ()> + Send> {
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Listens on an address. If the port is in use, the error says what to do.
pub(crate) async fn listen(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "failed to listen on {address}: the port is in use: choose another with {option}; port 0 picks a free port"
        ),
        _ => anyhow::Error::new(error).context(format!("failed to listen on {address}")),
    })
}
