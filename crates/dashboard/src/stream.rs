//! Server-sent events: the stream of a topic for one reader.

use std::sync::Arc;
use std::time::Duration;

use aviary_controller::Outage;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::access::LINGER;
use crate::summary::seconds;
use crate::topic::{ReaderPosition, Topic, TopicState, data};
use crate::watcher::Watcher;

/// A keep-alive is sent this often, so that proxies do not close the stream.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
const STILL_HERE: Bytes = Bytes::from_static(b": still here\n\n");

/// One reader of a topic.
struct TopicReader<S> {
    topic: Arc<Topic<S>>,
    news: watch::Receiver<u64>,
    place: Option<ReaderPosition>,
    outage: watch::Receiver<Option<Outage>>,
    /// The outage that was sent.
    told: Option<Outage>,
    closing: watch::Receiver<bool>,
    last: Instant,
    _seat: OwnedSemaphorePermit,
    _guard: WatcherGuard,
}

/// Keeps a watcher alive slightly longer than its reader.
struct WatcherGuard(Option<Arc<Watcher>>);

impl Drop for WatcherGuard {
    fn drop(&mut self) {
        let (Some(watcher), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            tokio::time::sleep(LINGER).await;
            drop(watcher);
        });
    }
}

/// A response that does not end by itself.
pub(crate) fn answer<S: TopicState + Send + 'static>(
    watcher: Arc<Watcher>,
    topic: Arc<Topic<S>>,
    seat: OwnedSemaphorePermit,
    place: Option<ReaderPosition>,
    closing: watch::Receiver<bool>,
) -> Response {
    let reader = TopicReader {
        news: topic.listen(),
        topic,
        place,
        outage: watcher.reach().subscribe(),
        told: None,
        closing,
        last: Instant::now(),
        _seat: seat,
        _guard: WatcherGuard(Some(watcher)),
    };
    let frames = stream::unfold(reader, |mut reader| async {
        let frame = reader.next().await?;
        Some((Ok::<_, std::convert::Infallible>(frame), reader))
    });
    let mut response = Response::new(Body::from_stream(frames));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    // A proxy that buffers responses would delay the events.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl<S: TopicState> TopicReader<S> {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if *self.closing.borrow_and_update() {
                return None;
            }
            self.news.mark_unchanged();
            let frames = self.topic.since(&mut self.place)?;
            if !frames.is_empty() {
                self.last = Instant::now();
                return Some(frames);
            }
            let outage = self.outage.borrow_and_update().clone();
            if outage != self.told {
                self.last = Instant::now();
                let frame = hub_frame(outage.as_ref());
                self.told = outage;
                return Some(frame);
            }
            tokio::select! {
                changed = self.news.changed() => changed.ok()?,
                changed = self.outage.changed() => changed.ok()?,
                closing = self.closing.changed() => closing.ok()?,
                () = tokio::time::sleep_until(self.last + SIGN_OF_LIFE) => {
                    self.last = Instant::now();
                    return Some(STILL_HERE);
                }
            }
        }
    }
}

/// The event `hub`: whether the hub answers. It has no id, because it is no part of the state.
fn hub_frame(outage: Option<&Outage>) -> Bytes {
    let unreachable = outage.map(|outage| HubOutage { since: seconds(outage.since), cause: &outage.cause });
    format!("event: hub\ndata: {}\n\n", data(&HubMessage { unreachable })).into()
}

#[derive(Serialize)]
struct HubMessage<'a> {
    unreachable: Option<HubOutage<'a>>,
}

#[derive(Serialize)]
struct HubOutage<'a> {
    since: String,
    cause: &'a str,
}

#[cfg(test)]
mod tests {
    use aviary_controller::Reach;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::list::AddOnList;

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_gives_a_sign_of_life_and_nothing_else() {
        let topic = Arc::new(Topic::new(Some(AddOnList::new("2026-01-01T00:00:00Z"))));
        let (close, closing) = watch::channel(false);
        let reach = Reach::default();
        let mut reader = TopicReader {
            news: topic.listen(),
            topic,
            place: None,
            outage: reach.subscribe(),
            told: None,
            closing,
            last: Instant::now(),
            _seat: Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap(),
            _guard: WatcherGuard(None),
        };
        assert!(reader.next().await.unwrap().starts_with(b"id: "));
        for _ in 0..3 {
            let before = Instant::now();
            assert_eq!(reader.next().await.unwrap(), STILL_HERE);
            assert_eq!(before.elapsed(), SIGN_OF_LIFE);
        }
        close.send_replace(true);
        assert_eq!(reader.next().await, None);
    }
}
