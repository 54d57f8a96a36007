//! Whether a connection has requests under way: hyper has no idle timeout for HTTP/2.
//!
//! Owns the count. A request counts from its headers until the last byte of its response, so that a
//! silent watch does not count as idle. Must not end anything itself.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::timeout;

/// The requests in progress on one connection.
#[derive(Clone, Default)]
pub(super) struct Activity(Arc<watch::Sender<usize>>);

/// One request in progress, until dropped.
pub(super) struct UnderWay(Activity);

impl Activity {
    pub(super) fn begin(&self) -> UnderWay {
        self.0.send_modify(|count| *count += 1);
        UnderWay(self.clone())
    }

    /// Completes if no request starts within `limit`; otherwise never.
    pub(super) async fn none_within(&self, limit: Duration) {
        let mut count = self.0.subscribe();
        if *count.borrow_and_update() == 0 && timeout(limit, count.changed()).await.is_err() {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Completes when there has been no request for the whole `limit`.
    pub(super) async fn idle_for(&self, limit: Duration) {
        let mut count = self.0.subscribe();
        loop {
            let wait = count.borrow_and_update().eq(&0).then_some(limit);
            // Any change restarts the wait, even one that came and went in between. An error is
            // impossible: we hold the sender.
            match wait {
                Some(limit) if timeout(limit, count.changed()).await.is_err() => return,
                Some(_) => {}
                None => drop(count.changed().await),
            }
        }
    }
}

impl UnderWay {
    /// Wraps `body`, so that its request stays in progress until it is sent or dropped.
    pub(super) fn until_sent(self, body: Body) -> impl HttpBody<Data = Bytes, Error = axum::Error> + Send {
        Held { body, _under_way: self }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

struct Held {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    // Both are passed on; otherwise every response would be chunked instead of having a length.
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
