//! Many requests to the hub, a limited number at once, with retries while it is busy.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;

/// The number of concurrent requests. A durable hub commits concurrent writes together, so one
/// request at a time would be slow.
pub(crate) const AT_ONCE: usize = 64;

const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Runs a request for each item, a limited number at once. After the first error no new requests
/// start.
pub(crate) async fn each<T, E, F>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> F,
    mut done: impl FnMut(),
) -> Result<(), E>
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Send + 'static,
{
    let mut items = items.into_iter();
    let mut running = JoinSet::new();
    let mut failed = None;
    loop {
        while running.len() < AT_ONCE
            && failed.is_none()
            && let Some(item) = items.next()
        {
            running.spawn(work(item));
        }
        match running.join_next().await {
            None => break,
            Some(Ok(Ok(()))) => done(),
            Some(Ok(Err(error))) => failed = failed.or(Some(error)),
            Some(Err(error)) => tracing::error!(%error, "a request ended without a result"),
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Retries until the request succeeds, fails permanently, or has been tried often enough.
pub(crate) async fn patiently<T, F>(request: impl Fn() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match request().await {
            Err(error) if passes(&error) => tokio::time::sleep(pause).await,
            other => return other,
        }
        pause *= 2;
    }
    request().await
}

/// Whether an error may be temporary.
pub(crate) fn passes(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 429 | 500..=599),
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}

pub(crate) fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
