//! A watch as a client sees it: a sequence of events, until the server closes it.

use std::panic::Location;
use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use crate::objects::name_of;

/// How long an expected event may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Watch {
    body: Body,
    unread: Vec<u8>,
}

impl Watch {
    pub fn new(body: Body) -> Watch {
        Watch { body, unread: Vec::new() }
    }

    /// The next event, its type and its object; `None` once the server has closed the watch.
    #[track_caller]
    pub fn next(&mut self) -> impl Future<Output = Option<(String, Value)>> {
        let at = Location::caller();
        async move {
            let line = tokio::time::timeout(PATIENCE, self.line()).await;
            let line = line.unwrap_or_else(|_| panic!("{at}: no event in {} s", PATIENCE.as_secs()))?;
            let event: Value =
                serde_json::from_slice(&line).unwrap_or_else(|_| panic!("{at}: not JSON: {line:?}"));
            Some((event["type"].as_str().unwrap_or_default().to_owned(), event["object"].clone()))
        }
    }

    /// Asserts the next event; returns its object.
    #[track_caller]
    pub fn sees(&mut self, kind: &str, name: &str) -> impl Future<Output = Value> {
        let at = Location::caller();
        let next = self.next();
        async move {
            let (told, object) = next.await.unwrap_or_else(|| panic!("{at}: closed before {kind} {name}"));
            assert_eq!((told.as_str(), name_of(&object)), (kind, name), "{at}: {object}");
            object
        }
    }

    /// Asserts the type of the next event, whatever its object.
    #[track_caller]
    pub fn sees_any(&mut self, kind: &str) -> impl Future<Output = Value> {
        let at = Location::caller();
        let next = self.next();
        async move {
            let (told, object) = next.await.unwrap_or_else(|| panic!("{at}: closed before {kind}"));
            assert_eq!(told, kind, "{at}: {object}");
            object
        }
    }

    /// Skips events until one has this type.
    #[track_caller]
    pub fn until(&mut self, kind: &str) -> impl Future<Output = Value> {
        let at = Location::caller();
        async move {
            loop {
                let (told, object) =
                    self.next().await.unwrap_or_else(|| panic!("{at}: closed before {kind}"));
                if told == kind {
                    return object;
                }
            }
        }
    }

    /// Asserts that the server closes the watch, with only bookmarks before.
    #[track_caller]
    pub fn closes(&mut self) -> impl Future<Output = ()> {
        let at = Location::caller();
        async move {
            while let Some((kind, object)) = self.next().await {
                assert_eq!(kind, "BOOKMARK", "{at}: {object}");
            }
        }
    }

    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                return Some(self.unread.drain(..=end).collect());
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.unread.extend(frame.into_data().unwrap_or_default()),
                // A last event needs no line end.
                Some(Err(_)) | None if self.unread.is_empty() => return None,
                Some(Err(_)) | None => return Some(std::mem::take(&mut self.unread)),
            }
        }
    }
}
