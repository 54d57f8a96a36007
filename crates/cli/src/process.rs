//! The process among others: being asked to stop.

use std::future::Future;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

/// Completes when the process is asked to stop. Listens from the call on.
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
