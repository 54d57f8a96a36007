//! Older states, for the later pages of a list and for exact revisions.
//!
//! Owns which states are kept: those that a list has started from, for some time. Others are
//! reconstructed from the log, as far as it reaches back.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::api::status::ApiError;
use crate::store::object::ResourceId;
use crate::store::{Objects, Published, StoreState};

/// A list that is not continued for this long is dropped.
const KEPT_FOR: SignedDuration = SignedDuration::from_mins(5);
const MOST_KEPT: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    kept: Mutex<VecDeque<KeptSnapshot>>,
}

#[derive(Debug)]
struct KeptSnapshot {
    state: StoreState,
    used: Timestamp,
}

impl Snapshots {
    /// Keeps a state for later pages.
    pub(crate) fn keep(&self, state: &StoreState, now: Timestamp) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|old| {
            old.state.revision() != state.revision() && now.duration_since(old.used) < KEPT_FOR
        });
        if kept.len() >= MOST_KEPT {
            kept.pop_front();
        }
        kept.push_back(KeptSnapshot { state: state.clone(), used: now });
    }

    fn find(&self, revision: u64, now: Timestamp) -> Option<StoreState> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter_mut().find(|kept| kept.state.revision() == revision)?;
        found.used = now;
        Some(found.state.clone())
    }

    /// The objects of a kind as they were at a revision.
    pub(crate) fn objects_at(
        &self,
        published: &Published,
        resource: &ResourceId,
        revision: u64,
        now: Timestamp,
    ) -> Result<Objects, ApiError> {
        let current = published.state();
        if revision > current.revision() {
            return Err(ApiError::revision_in_future(revision, current.revision()));
        }
        if revision == current.revision() {
            return Ok(current.objects(resource));
        }
        if let Some(state) = self.find(revision, now) {
            return Ok(state.objects(resource));
        }
        let since = published.log.kind_log(resource).after(revision, usize::MAX).map_err(|_| {
            ApiError::expired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.")
        })?;
        let mut objects = current.objects(resource);
        for event in since.iter().rev() {
            match &event.before {
                Some(before) => objects.insert(before.key.clone(), before.clone()),
                None => objects.remove(&event.object.key),
            };
        }
        Ok(objects)
    }
}
