//! Tests the store with a disk that the test controls.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot::error::TryRecvError;

use super::disk::DiskError;
use super::*;

/// Turns a hang into a failure.
const DEADLINE: Duration = Duration::from_secs(20);

/// A disk that reports what it is asked to write, and waits for the outcome.
#[derive(Debug)]
pub(crate) struct Script {
    begun: Sender<Vec<u64>>,
    answers: Receiver<bool>,
}

impl Script {
    pub(super) fn write(
        &mut self,
        events: &[Arc<CommittedEvent>],
        _: &StoreState,
        _: &StoreState,
    ) -> Result<(), DiskError> {
        let _ = self.begun.send(events.iter().map(|event| event.revision()).collect());
        let good = match self.answers.recv_timeout(DEADLINE) {
            Ok(answer) => answer,
            // The test is over.
            Err(RecvTimeoutError::Disconnected) => true,
            Err(RecvTimeoutError::Timeout) => false,
        };
        if good { Ok(()) } else { Err(DiskError::Broken) }
    }
}

/// A store, and the controls of its disk.
struct World {
    begun: Receiver<Vec<u64>>,
    answer: Sender<bool>,
    observed: Arc<Mutex<Vec<u64>>>,
    /// The last field: dropping it waits for its disk, whose channels must be closed first.
    store: Arc<Store>,
}

impl World {
    fn new() -> Self {
        Self::with(LogLimits::default(), |_| {})
    }

    fn with(limits: LogLimits, watch: impl Fn(&StoreState) + Send + 'static) -> Self {
        let (begun_to, begun) = channel();
        let (answer, answers) = channel();
        let observed = Arc::new(Mutex::new(Vec::new()));
        let observer = {
            let observed = Arc::clone(&observed);
            Box::new(move |state: &StoreState, events: &[Arc<CommittedEvent>]| {
                watch(state);
                assert!(events.iter().all(|event| event.revision() <= state.revision()));
                observed.lock().unwrap().extend(events.iter().map(|event| event.revision()));
            })
        };
        let disk = Disk::Scripted(Script { begun: begun_to, answers });
        let opened = Opened { disk, state: StoreState::restored(FIRST_REVISION, []) };
        Self { store: Arc::new(opened.start(limits, observer).unwrap()), begun, answer, observed }
    }

    /// Writes an object that has this revision, or does not exist.
    fn put(
        &self,
        name: &str,
        expect: Option<u64>,
    ) -> Result<oneshot::Receiver<ChangeOutcome>, RefusedChange> {
        let draft = Draft::of(&json!({"metadata": {"name": name}})).unwrap();
        self.submit(name, expect, ChangeAction::Put(draft, ObjectFacts::default()))
    }

    fn submit(
        &self,
        name: &str,
        expect: Option<u64>,
        action: ChangeAction,
    ) -> Result<oneshot::Receiver<ChangeOutcome>, RefusedChange> {
        let change = StoreChange { resource: "things".into(), key: name.into(), expect, action };
        self.store.submit(change, |_| Ok(()))
    }

    fn published(&self, name: &str) -> Option<u64> {
        self.store.published().state().get("things", name).map(|stored| stored.revision)
    }

    fn told(&self) -> Vec<u64> {
        let kind_log = self.store.published().log.kind_log(&"things".into());
        kind_log.after(FIRST_REVISION, 100).unwrap().iter().map(|event| event.revision()).collect()
    }

    /// Resolves to whether all of a head is on disk.
    fn settled(&self, head: &StoreState, revision: u64) -> JoinHandle<bool> {
        let (store, head) = (Arc::clone(&self.store), head.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        std::thread::spawn(move || runtime.block_on(store.settled(&head, revision)).is_ok())
    }
}

fn revision(written: oneshot::Receiver<ChangeOutcome>) -> u64 {
    written.blocking_recv().unwrap().unwrap().revision
}

#[test]
fn changes_are_numbered_in_the_order_in_which_they_are_accepted() {
    let world = World::new();
    let first = world.put("a", None).unwrap();
    assert_eq!(world.begun.recv().unwrap(), [3]);
    // While the first batch is being written, other changes queue up.
    let second = world.put("b", None).unwrap();
    let third = world.put("a", Some(3)).unwrap();
    let fourth = world.submit("b", Some(4), ChangeAction::Remove).unwrap();
    assert!(matches!(world.put("a", Some(3)), Err(RefusedChange::Raced)));
    assert!(matches!(world.put("b", Some(4)), Err(RefusedChange::Raced)));
    world.answer.send(true).unwrap();
    assert_eq!(world.begun.recv().unwrap(), [4, 5, 6]);
    world.answer.send(true).unwrap();
    assert_eq!([first, second, third, fourth].map(revision), [3, 4, 5, 6]);
    assert_eq!((world.published("a"), world.published("b")), (Some(5), None));
    assert_eq!(world.told(), [3, 4, 5, 6]);
}

#[test]
fn what_is_not_on_disk_is_seen_by_nobody_and_what_is_was_published_first() {
    let world = World::new();
    let mut news = world.store.published().log.kind_log(&"things".into()).news();
    let mut written = world.put("a", None).unwrap();
    world.begun.recv().unwrap();
    assert_eq!(world.store.head().revision(), 3);
    assert_eq!((world.published("a"), world.told(), news.has_changed().unwrap()), (None, vec![], false));
    assert!(world.observed.lock().unwrap().is_empty());
    assert!(matches!(written.try_recv(), Err(TryRecvError::Empty)));
    world.answer.send(true).unwrap();
    assert_eq!(revision(written), 3);
    assert_eq!((world.published("a"), world.told()), (Some(3), vec![3]));
    assert_eq!(*world.observed.lock().unwrap(), [3]);
    assert_eq!(*news.borrow_and_update(), 3);
}

#[test]
fn a_batch_that_fails_takes_along_all_that_was_built_upon_it() {
    let world = World::new();
    let kept = world.put("kept", None).unwrap();
    world.begun.recv().unwrap();
    world.answer.send(true).unwrap();
    assert_eq!(revision(kept), 3);
    let failing = world.put("a", None).unwrap();
    world.begun.recv().unwrap();
    let update_of_it = world.put("a", Some(4)).unwrap();
    let removal = world.submit("kept", Some(3), ChangeAction::Remove).unwrap();
    world.answer.send(false).unwrap();
    for lost in [failing, update_of_it, removal] {
        assert!(lost.blocking_recv().unwrap().is_err());
    }
    let head = world.store.head();
    assert!(head.get("things", "a").is_none() && head.get("things", "kept").is_some());
    assert_eq!((world.told(), world.published("kept")), (vec![3], Some(3)));
    // Their revisions are not reused.
    let next = world.put("a", None).unwrap();
    assert_eq!(world.begun.recv().unwrap(), [7]);
    world.answer.send(true).unwrap();
    assert_eq!(revision(next), 7);
    assert_eq!(world.told(), [3, 7]);
}

#[test]
fn whoever_found_nothing_to_change_waits_for_the_disk_like_the_one_who_changed_it() {
    let world = World::new();
    let written = world.put("a", None).unwrap();
    world.begun.recv().unwrap();
    let waiting = world.settled(&world.store.head(), 3);
    assert!(world.begun.try_recv().is_err());
    world.answer.send(true).unwrap();
    assert_eq!(revision(written), 3);
    assert!(waiting.join().unwrap());
    // What is on disk needs no waiting, even while another change is being written.
    let _other = world.put("b", None).unwrap();
    world.begun.recv().unwrap();
    assert!(world.settled(&world.store.head(), 3).join().unwrap());
}

#[test]
fn what_was_lost_does_not_become_true_when_something_later_is_written() {
    let world = World::new();
    let lost = world.put("a", None).unwrap();
    world.begun.recv().unwrap();
    let head = world.store.head();
    let waiting = world.settled(&head, 3);
    world.answer.send(false).unwrap();
    assert!(lost.blocking_recv().unwrap().is_err());
    let later = world.put("b", None).unwrap();
    world.begun.recv().unwrap();
    world.answer.send(true).unwrap();
    assert_eq!(revision(later), 4);
    assert!(!waiting.join().unwrap());
    assert!(!world.settled(&head, 3).join().unwrap());
    assert!(world.settled(&world.store.head(), 4).join().unwrap());
}

#[test]
fn closing_writes_what_was_accepted_and_refuses_what_comes_later() {
    let world = World::new();
    let first = world.put("a", None).unwrap();
    world.begun.recv().unwrap();
    let second = world.put("b", None).unwrap();
    let closing = {
        let store = Arc::clone(&world.store);
        std::thread::spawn(move || store.close())
    };
    // The disk is slow; accepted changes are written whether or not closing has started.
    world.answer.send(true).unwrap();
    world.answer.send(true).unwrap();
    closing.join().unwrap();
    assert_eq!([first, second].map(revision), [3, 4]);
    assert!(matches!(world.put("c", None), Err(RefusedChange::Closed)));
    assert!(world.settled(&world.store.head(), 4).join().unwrap());
}

#[test]
fn when_the_writer_dies_nobody_waits_for_ever() {
    let world = World::with(LogLimits::default(), |_| panic!("an observer that fails"));
    let written = world.put("a", None).unwrap();
    world.answer.send(true).unwrap();
    assert!(written.blocking_recv().is_err());
    // The writer may end slightly later than its first failure.
    let refused = (0..1_000_000).find_map(|_| match world.put("b", None) {
        Err(refused) => Some(refused),
        Ok(written) => written.blocking_recv().err().and(None),
    });
    assert!(matches!(refused, Some(RefusedChange::Closed | RefusedChange::Raced)), "{refused:?}");
    world.store.close();
}

fn event(resource: &str, revision: u64, size: usize) -> Arc<CommittedEvent> {
    let json = json!({"metadata": {"name": "a", "filler": "x".repeat(size)}});
    let json = Draft::of(&json).unwrap().seal(revision);
    let stored = Arc::new(StoredObject::new("a".into(), revision, json, ObjectFacts::default()));
    Arc::new(CommittedEvent::new(resource.into(), EventKind::Modified, stored, None))
}

/// The revisions after a revision, or the oldest from which a watch can start.
fn after(log: &Log, resource: &str, revision: u64) -> Result<Vec<u64>, u64> {
    let found = log.kind_log(&resource.into()).after(revision, 100).map_err(|gone| gone.oldest)?;
    Ok(found.iter().map(|event| event.revision()).collect())
}

#[test]
fn the_log_forgets_the_oldest_first_and_says_from_where_it_knows_all() {
    let log = Log::new(10, LogLimits { events: 4, bytes: usize::MAX });
    assert_eq!(after(&log, "a", 10), Ok(vec![]));
    assert_eq!(after(&log, "a", 9), Err(10), "what was before this process is not known");
    log.append(&[event("a", 11, 0), event("b", 12, 0), event("a", 13, 0), event("a", 14, 0)]);
    assert_eq!(after(&log, "a", 10), Ok(vec![11, 13, 14]));
    assert_eq!(after(&log, "a", 13), Ok(vec![14]));
    log.append(&[event("a", 15, 0)]);
    assert_eq!(after(&log, "a", 10), Err(11));
    assert_eq!(after(&log, "a", 11), Ok(vec![13, 14, 15]));
    assert_eq!(after(&log, "b", 10), Ok(vec![12]), "another kind has lost nothing");
    log.append(&[event("a", 16, 0)]);
    assert_eq!(after(&log, "b", 11), Err(12));
    assert_eq!(after(&log, "b", 12), Ok(vec![]));
    assert_eq!(after(&log, "a", 11), Ok(vec![13, 14, 15, 16]));
    assert_eq!(after(&log, "new", 9), Err(10));
}

#[test]
fn the_log_is_bounded_in_bytes_too_and_lets_go_of_what_it_forgets() {
    let log = Log::new(0, LogLimits { events: 1_000, bytes: 100_000 });
    let forgotten: Vec<_> = (1..=100)
        .map(|revision| {
            let event = event("a", revision, 10_000);
            log.append(std::slice::from_ref(&event));
            Arc::downgrade(&event)
        })
        .collect();
    let kept = forgotten.iter().filter(|event| event.strong_count() > 0).count();
    assert!((1..=5).contains(&kept), "{kept}");
    assert_eq!(after(&log, "a", 100 - kept as u64).unwrap().len(), kept);
    // An event larger than the whole limit is not kept, and the log continues.
    log.append(&[event("a", 101, 200_000)]);
    assert_eq!(after(&log, "a", 100), Err(101));
    log.append(&[event("a", 102, 10)]);
    assert_eq!(after(&log, "a", 101), Ok(vec![102]));
}
