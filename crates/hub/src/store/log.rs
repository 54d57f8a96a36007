//! Recent events, per kind. Watchers read them at their own pace and hold only a revision.
//!
//! Owns the events and how long they are kept. A watcher that falls too far behind gets [`TooOld`];
//! it never makes the log grow.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use bytes::Bytes;
use tokio::sync::watch;

use crate::store::object::{ResourceId, StoredObject};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
}

impl EventKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One committed change.
#[derive(Debug)]
pub(crate) struct CommittedEvent {
    pub(crate) resource: ResourceId,
    pub(crate) kind: EventKind,
    /// The object after the change. For a deletion, its last state with the revision of the
    /// deletion.
    pub(crate) object: Arc<StoredObject>,
    pub(crate) before: Option<Arc<StoredObject>>,
    line: OnceLock<Bytes>,
}

impl CommittedEvent {
    pub(crate) fn new(
        resource: ResourceId,
        kind: EventKind,
        object: Arc<StoredObject>,
        before: Option<Arc<StoredObject>>,
    ) -> Self {
        Self { resource, kind, object, before, line: OnceLock::new() }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.object.revision
    }

    /// The event as a watch sends it, encoded once for all watchers.
    pub(crate) fn line(&self) -> Bytes {
        self.line.get_or_init(|| line(self.kind.as_str(), &self.object.json)).clone()
    }

    /// The memory cost of keeping the event: a current object is shared with the state.
    fn weight(&self) -> usize {
        256 + self.object.json.len() * 2
    }
}

/// One line of a watch.
pub(crate) fn line(kind: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 32);
    line.extend_from_slice(br#"{"type":""#);
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(br#"","object":"#);
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}

/// The requested events are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest revision from which a watch can start.
    pub(crate) oldest: u64,
}

/// The limits over all kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogLimits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { events: 100_000, bytes: 128 << 20 }
    }
}

/// The events of one kind.
#[derive(Debug)]
pub(crate) struct KindLog {
    kept: RwLock<KeptEvents>,
    /// The revision of the newest event.
    newest: watch::Sender<u64>,
}

#[derive(Debug)]
struct KeptEvents {
    events: VecDeque<Arc<CommittedEvent>>,
    /// All events after this revision are here.
    floor: u64,
}

impl KindLog {
    fn new(floor: u64) -> Self {
        Self {
            kept: RwLock::new(KeptEvents { events: VecDeque::new(), floor }),
            newest: watch::Sender::new(floor),
        }
    }

    /// At most `most` events after a revision, oldest first.
    pub(crate) fn after(&self, revision: u64, most: usize) -> Result<Vec<Arc<CommittedEvent>>, TooOld> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if revision < kept.floor {
            return Err(TooOld { oldest: kept.floor });
        }
        let from = kept.events.partition_point(|event| event.revision() <= revision);
        Ok(kept.events.range(from..).take(most).cloned().collect())
    }

    /// Wakes when there is a new event.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

#[derive(Debug)]
pub(crate) struct Log {
    /// The revision at which this process started: earlier events are unknown.
    origin: u64,
    limits: LogLimits,
    kind_logs: RwLock<HashMap<ResourceId, Arc<KindLog>>>,
    order: Mutex<Order>,
}

/// The order in which events are dropped.
#[derive(Debug, Default)]
struct Order {
    oldest_first: VecDeque<(Arc<KindLog>, usize)>,
    bytes: usize,
}

impl Log {
    pub(super) fn new(origin: u64, limits: LogLimits) -> Self {
        Self { origin, limits, kind_logs: RwLock::default(), order: Mutex::default() }
    }

    pub(crate) fn kind_log(&self, resource: &ResourceId) -> Arc<KindLog> {
        let kind_logs = self.kind_logs.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind_log) = kind_logs.get(resource) {
            return Arc::clone(kind_log);
        }
        drop(kind_logs);
        let mut kind_logs = self.kind_logs.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kind_logs.entry(resource.clone()).or_insert_with(|| Arc::new(KindLog::new(self.origin))))
    }

    /// Adds committed events, and drops those beyond the limits.
    pub(super) fn append(&self, events: &[Arc<CommittedEvent>]) {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            let kind_log = self.kind_log(&event.resource);
            let weight = event.weight();
            kind_log.kept.write().unwrap_or_else(PoisonError::into_inner).events.push_back(Arc::clone(event));
            order.bytes += weight;
            order.oldest_first.push_back((kind_log, weight));
        }
        while order.oldest_first.len() > self.limits.events || order.bytes > self.limits.bytes {
            let Some((kind_log, weight)) = order.oldest_first.pop_front() else { break };
            order.bytes -= weight;
            let mut kept = kind_log.kept.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(event) = kept.events.pop_front() {
                kept.floor = event.revision();
            }
        }
    }

    /// Wakes the watchers. Separate from [`Log::append`], so that the events are already published.
    pub(super) fn tell(&self, events: &[Arc<CommittedEvent>]) {
        let mut newest: HashMap<&ResourceId, u64> = HashMap::new();
        for event in events {
            newest.insert(&event.resource, event.revision());
        }
        for (resource, revision) in newest {
            self.kind_log(resource).newest.send_replace(revision);
        }
    }
}
