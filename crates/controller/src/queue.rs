//! A work queue of keys: when each is due, which are in progress, and backoff after failures.
//!
//! Owns timing and retries, for both add-ons and placements. Does not know what is done for a key.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// Watch events about one key are gathered for this long, so that a burst leads to one pass.
pub(crate) const QUIET: Duration = Duration::from_millis(50);
/// The longest sleep of an idle loop.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub struct WorkQueue<K> {
    due: BTreeMap<K, Instant>,
    busy: BTreeSet<K>,
    failures: BTreeMap<K, u32>,
    /// Keys whose pass panicked: watch events do not make them due earlier.
    not_before: BTreeMap<K, Instant>,
}

impl<K> Default for WorkQueue<K> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            busy: BTreeSet::new(),
            failures: BTreeMap::new(),
            not_before: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// Makes a key due after `wait`, or earlier if it already was.
    pub fn soon(&mut self, key: K, wait: Duration) {
        let at = Instant::now() + wait;
        let due = self.due.entry(key).or_insert(at);
        *due = (*due).min(at);
    }

    /// Makes a key due after `wait`, unless something changes before.
    pub fn later(&mut self, key: &K, wait: Duration) {
        self.due.insert(key.clone(), Instant::now() + wait);
    }

    /// Retries a key that failed. Each further failure doubles the wait.
    pub fn put_off(&mut self, key: &K) {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        *failures += 1;
        let wait = backoff(*failures);
        self.later(key, wait);
    }

    /// The same, and changes do not make the key due earlier.
    pub fn suspend(&mut self, key: &K) {
        self.put_off(key);
        if let Some(at) = self.due.get(key) {
            self.not_before.insert(key.clone(), *at);
        }
    }

    pub fn end_suspension(&mut self, key: &K) {
        self.not_before.remove(key);
    }

    /// The last attempt for the key succeeded.
    pub fn succeeded(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Marks the key as in progress. It is not taken again until `end`.
    pub fn begin(&mut self, key: K) {
        self.busy.insert(key);
    }

    pub fn end(&mut self, key: &K) {
        self.busy.remove(key);
    }

    /// When the next key that `can` be taken is due.
    pub fn next(&self, can: impl Fn(&K) -> bool) -> Option<Instant> {
        let ready = self.due.iter().filter(|(key, _)| !self.busy.contains(key) && can(key));
        ready.map(|(key, at)| self.earliest(key, *at)).min()
    }

    /// Takes the keys that are due now and `can` be taken.
    pub fn take_ready(&mut self, can: impl Fn(&K) -> bool) -> Vec<K> {
        let now = Instant::now();
        let is_ready = |(key, at): &(&K, &Instant)| {
            self.earliest(key, **at) <= now && !self.busy.contains(key) && can(key)
        };
        let ready: Vec<K> = self.due.iter().filter(is_ready).map(|(key, _)| key.clone()).collect();
        for key in &ready {
            self.due.remove(key);
        }
        ready
    }

    fn earliest(&self, key: &K, due: Instant) -> Instant {
        self.not_before.get(key).map_or(due, |at| due.max(*at))
    }

    /// Drops all due keys. Keys in progress stay.
    pub fn clear(&mut self) {
        self.due.clear();
    }

    pub fn end_suspensions(&mut self) {
        self.not_before.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.due.len() + self.busy.len()
    }
}

/// How long to wait after this many failures in a row.
fn backoff(failures: u32) -> Duration {
    Duration::from_millis(200).saturating_mul(1 << failures.min(8)).min(Duration::from_secs(30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_due_is_taken_once_and_not_while_it_is_written_for() {
        let mut queue = WorkQueue::default();
        queue.soon("a", QUIET);
        queue.soon("a", LONG);
        assert!(queue.take_ready(|_| true).is_empty(), "it is gathered first");
        tokio::time::advance(QUIET).await;
        assert_eq!(queue.take_ready(|_| true), ["a"]);
        assert!(queue.take_ready(|_| true).is_empty());
        queue.begin("a");
        queue.soon("a", Duration::ZERO);
        assert!(queue.take_ready(|_| true).is_empty() && queue.next(|_| true).is_none());
        queue.end(&"a");
        assert_eq!(queue.take_ready(|_| true), ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_and_longer_until_one_attempt_succeeds() {
        let mut queue = WorkQueue::default();
        let wait = |queue: &WorkQueue<&str>| queue.next(|_| true).map(|at| at - Instant::now());
        for expected in [400, 800, 1600] {
            queue.put_off(&"a");
            assert_eq!(wait(&queue), Some(Duration::from_millis(expected)));
        }
        for _ in 0..20 {
            queue.put_off(&"a");
        }
        assert_eq!(wait(&queue), Some(Duration::from_secs(30)));
        queue.succeeded(&"a");
        queue.put_off(&"a");
        assert_eq!(wait(&queue), Some(Duration::from_millis(400)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_key_is_not_taken_any_sooner_whatever_happens() {
        let mut queue = WorkQueue::default();
        queue.suspend(&"a");
        queue.soon("a", Duration::ZERO);
        assert!(queue.take_ready(|_| true).is_empty());
        tokio::time::advance(backoff(1)).await;
        assert_eq!(queue.take_ready(|_| true), ["a"]);
    }
}
