//! Limits concurrent writes: more while the hub keeps up, fewer when it is overloaded.
//!
//! There is no fixed rate, so a fast hub is used fully and a slow one is not overloaded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const FEWEST: usize = 2;
const FIRST: usize = 16;
const MOST: usize = 64;
/// Large works at once: of each there are several copies of up to a megabyte, as request and
/// answer.
const HEAVY: usize = 2;
/// An answer that takes longer means that the hub is overloaded.
const SLOW: Duration = Duration::from_secs(2);

/// The limit of one manager, over all its add-ons.
#[derive(Clone, Debug)]
pub(crate) struct WriteLimit {
    slots: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    limit: Arc<AtomicUsize>,
    /// How many slots to remove when they are returned.
    owed: Arc<Mutex<usize>>,
}

impl Default for WriteLimit {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(FIRST)),
            heavy: Arc::new(Semaphore::new(HEAVY)),
            limit: Arc::new(AtomicUsize::new(FIRST)),
            owed: Arc::default(),
        }
    }
}

impl WriteLimit {
    /// Waits for a slot.
    pub(crate) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }

    /// Waits until another large work may be written.
    pub(crate) async fn heavy(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.heavy).acquire_owned().await.ok()
    }

    /// Returns a slot, and adapts the limit to the hub's response.
    pub(crate) fn give_back(&self, slot: OwnedSemaphorePermit, took: Duration, overloaded: bool) {
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = self.limit.load(Ordering::Relaxed);
        if overloaded || took > SLOW {
            let lower = (limit / 2).max(FEWEST);
            *owed += limit - lower;
            self.limit.store(lower, Ordering::Relaxed);
        } else if *owed == 0 && limit < MOST && self.slots.available_permits() == 0 {
            self.slots.add_permits(1);
            self.limit.store(limit + 1, Ordering::Relaxed);
        }
        if *owed > 0 {
            *owed -= 1;
            slot.forget();
        }
    }

    #[cfg(test)]
    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_grows_while_all_slots_are_used_and_halves_on_overload() {
        let limit = WriteLimit::default();
        let mut held = Vec::new();
        for _ in 0..FIRST {
            held.extend(limit.slot().await);
        }
        if let Some(slot) = held.pop() {
            limit.give_back(slot, Duration::ZERO, false);
        }
        assert_eq!(limit.limit(), FIRST + 1);
        if let Some(slot) = held.pop() {
            limit.give_back(slot, Duration::ZERO, true);
        }
        assert_eq!(limit.limit(), FIRST.div_ceil(2));
        for slot in held {
            limit.give_back(slot, Duration::ZERO, false);
        }
        assert_eq!(limit.slots.available_permits(), limit.limit(), "what was owed is paid");
    }
}
