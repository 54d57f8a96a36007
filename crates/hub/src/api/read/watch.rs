//! Watches: a position in the log, and nothing else that grows.
//!
//! Owns what a watcher receives and when it ends. A watcher that is too slow finds that its
//! position is no longer in the log, and gets an error in the stream, as clients expect.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

use super::{Filter, ResponseFormat};
use crate::api::negotiate::{Params, RequestedRevision, Shape};
use crate::api::status::ApiError;
use crate::formats::table;
use crate::hub::HubState;
use crate::kinds::resource::Form;
use crate::store::object::StoredObject;
use crate::store::{CommittedEvent, EventKind, KindLog, TooOld};

const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(3600);
/// How many events are examined per read of the log.
const STRIDE: usize = 32;

/// A bookmark is sent every minute, and shortly before the end.
fn next_bookmark(now: Instant, deadline: Instant) -> Instant {
    let regular = now + BOOKMARK_EVERY;
    match deadline.checked_sub(BOOKMARK_BEFORE_END) {
        Some(last) if last > now => regular.min(last),
        _ => regular,
    }
}

/// A running watch.
#[derive(Debug)]
pub(crate) struct RunningWatch {
    hub: Arc<HubState>,
    view: ResponseFormat,
    filter: Filter,
    kind_log: Arc<KindLog>,
    news: watch::Receiver<u64>,
    kinds: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// All events up to this revision have been sent, or do not concern this watcher.
    cursor: u64,
    ahead: std::vec::IntoIter<Arc<CommittedEvent>>,
    initial: std::vec::IntoIter<Arc<StoredObject>>,
    /// The end of the initial events has to be sent.
    announce_end: bool,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    columns_sent: bool,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl RunningWatch {
    pub(crate) fn start(
        hub: &Arc<HubState>,
        view: ResponseFormat,
        filter: Filter,
        params: &Params,
    ) -> Result<Self, ApiError> {
        let permit = Arc::clone(&hub.watches).try_acquire_owned();
        let permit =
            permit.map_err(|_| ApiError::too_many_requests("too many watches, please try again later"))?;
        let resource = &view.scope.resource.id;
        let kind_log = hub.store.published().log.kind_log(resource);
        let news = kind_log.news();
        // Read after subscribing, so that no event is missed.
        let state = hub.store.published().state();
        let from_state = match params.send_initial_events {
            Some(wanted) => wanted,
            None => !matches!(params.revision, RequestedRevision::At(_)),
        };
        let cursor = match params.revision {
            RequestedRevision::At(revision) if !from_state => revision,
            _ => state.revision(),
        };
        let initial: Vec<Arc<StoredObject>> = if from_state {
            let objects = state.objects(resource);
            objects.values().filter(|stored| filter.matches(&view.scope, stored)).cloned().collect()
        } else {
            Vec::new()
        };
        let limit = params.timeout_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let now = Instant::now();
        let deadline = now + limit.unwrap_or(LONGEST).min(LONGEST * 24);
        Ok(Self {
            news,
            kinds: hub.kinds_changed(),
            stopping: hub.stopping(),
            cursor,
            ahead: Vec::new().into_iter(),
            initial: initial.into_iter(),
            announce_end: params.send_initial_events == Some(true),
            bookmarks: params.bookmarks,
            next_bookmark: next_bookmark(now, deadline),
            deadline,
            columns_sent: false,
            ended: false,
            _permit: permit,
            hub: Arc::clone(hub),
            view,
            filter,
            kind_log,
        })
    }

    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut watch| async move {
            let line = watch.next().await?;
            Some((Ok::<_, std::convert::Infallible>(line), watch))
        }))
    }

    /// The next line; `None` when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(stored) = self.initial.next() {
            return Some(self.line(EventKind::Added, &stored));
        }
        if self.announce_end && !self.ended {
            self.announce_end = false;
            return Some(self.bookmark(true));
        }
        while !self.ended {
            while let Some(event) = self.ahead.next() {
                self.cursor = event.revision();
                if let Some(line) = self.tell(&event) {
                    return Some(line);
                }
            }
            // Everything older than this is in the log by now.
            let reached = self.hub.store.published().state().revision();
            match self.kind_log.after(self.cursor, STRIDE) {
                Ok(events) if events.is_empty() => {
                    self.cursor = self.cursor.max(reached);
                    if let Some(line) = self.wait().await {
                        return Some(line);
                    }
                }
                Ok(events) => self.ahead = events.into_iter(),
                Err(gone) => return Some(self.expire(gone)),
            }
        }
        None
    }

    /// Waits for events. Returns a bookmark if one is due.
    async fn wait(&mut self) -> Option<Bytes> {
        let bookmark_due = tokio::select! {
            biased;
            _ = self.stopping.wait_for(|stopping| *stopping) => {
                self.ended = true;
                false
            }
            // The sender lives as long as the hub, which this watch holds.
            _ = self.news.changed() => false,
            _ = self.kinds.changed() => {
                self.ended = !self.hub.serves(&self.view.scope.resource);
                false
            }
            () = sleep_until(self.deadline) => {
                self.ended = true;
                false
            }
            () = sleep_until(self.next_bookmark) => {
                self.next_bookmark = next_bookmark(self.next_bookmark, self.deadline);
                true
            }
        };
        (bookmark_due && self.bookmarks).then(|| self.bookmark(false))
    }

    /// Converts an event for this watcher: an object that starts or stops matching is added or
    /// deleted.
    fn tell(&mut self, event: &CommittedEvent) -> Option<Bytes> {
        let scope = &self.view.scope;
        let matched = event.before.as_ref().is_some_and(|before| self.filter.matches(scope, before));
        let matches = event.kind != EventKind::Deleted && self.filter.matches(scope, &event.object);
        let kind = match (matched, matches) {
            (false, true) => EventKind::Added,
            (true, true) => EventKind::Modified,
            (true, false) => EventKind::Deleted,
            (false, false) => return None,
        };
        if kind == event.kind && self.sends_stored_bytes(&event.object) {
            return Some(event.line());
        }
        if kind == EventKind::Deleted && event.kind != kind {
            // The object no longer matches: the watcher gets its last matching state.
            let last = event.before.as_ref().map(|before| before.bury(event.revision()))?;
            return Some(self.line(kind, &last));
        }
        Some(self.line(kind, &event.object))
    }

    fn sends_stored_bytes(&self, object: &StoredObject) -> bool {
        let resource = &self.view.scope.resource;
        self.view.shape == Shape::Object
            && self.view.scope.version().is_some_and(|version| resource.serves_bytes_of(version, object))
            && resource.traits.form == Form::AsStored
    }

    fn line(&mut self, kind: EventKind, stored: &StoredObject) -> Bytes {
        if self.view.shape == Shape::Object {
            return crate::store::line(kind.as_str(), &self.view.object(stored));
        }
        self.view.now = self.hub.now();
        let value = self.shaped(self.view.value(stored.value()));
        crate::store::line(kind.as_str(), value.to_string().as_bytes())
    }

    /// Column definitions are sent once.
    fn shaped(&mut self, mut value: Value) -> Value {
        if self.view.shape == Shape::Table {
            if self.columns_sent {
                value["columnDefinitions"] = Value::Null;
            }
            self.columns_sent = true;
        }
        value
    }

    fn bookmark(&mut self, ends_initial: bool) -> Bytes {
        let scope = &self.view.scope;
        let mut metadata = json!({"resourceVersion": self.cursor.to_string(), "creationTimestamp": null});
        if ends_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let api_version = scope.version().map(|version| version.api_version.as_str()).unwrap_or_default();
        let object =
            json!({"kind": scope.resource.names.kind, "apiVersion": api_version, "metadata": metadata});
        let object = match self.view.shape {
            Shape::Object => object,
            Shape::Partial => table::partial_metadata(&object),
            Shape::Table => {
                let row = json!({"cells": [], "object": table::partial_metadata(&object)});
                let columns = scope.version().map(|version| version.columns.definitions());
                self.shaped(table::table(
                    json!({"resourceVersion": self.cursor.to_string()}),
                    vec![row],
                    columns,
                ))
            }
        };
        crate::store::line("BOOKMARK", object.to_string().as_bytes())
    }

    /// The events are no longer kept. This is an error in the stream: a client that got 410 instead
    /// of 200 would repeat the same request.
    fn expire(&mut self, gone: TooOld) -> Bytes {
        self.ended = true;
        let failure =
            ApiError::expired(format!("too old resource version: {} ({})", self.cursor, gone.oldest));
        crate::store::line("ERROR", failure.to_value().to_string().as_bytes())
    }
}
