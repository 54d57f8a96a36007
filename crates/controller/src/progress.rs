//! Decides which of two observations of an object is newer: a watch event, or the response to one
//! of our writes.
//!
//! Compares UIDs and resource versions. A response may arrive before the watch event of the write
//! (which is why responses are used), or long after watch events of later changes. Keeps two
//! numbers per kind and nothing per object, so creating and deleting objects does not make it grow.

use std::collections::BTreeSet;

use crate::seen::{Change, Key, ObjectVersion, Version};

/// How far the watch of one kind has got.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The highest resource version that it has reported. Everything up to it is known from the
    /// watch.
    reported: u64,
    /// When its last list began, in the caller's count.
    listed_at: u64,
}

impl Progress {
    /// A list begins: what it does not contain is gone.
    pub(crate) fn list(&mut self, now: u64) {
        self.listed_at = now;
    }

    /// Records a watch event. Returns whether it counts: not if the response to a later write is
    /// already known.
    pub(crate) fn report(&mut self, object: &ObjectVersion, known: Option<&Version>) -> bool {
        let number = object.version.number;
        let is_behind = known.is_some_and(|known| known.number > number && known.number > self.reported);
        self.reported = self.reported.max(number);
        !is_behind
    }

    /// Records a deletion that the watch reports. It does not affect a newer object of the same
    /// name.
    pub(crate) fn report_gone(&mut self, object: &ObjectVersion, known: Option<&Version>) -> bool {
        self.reported = self.reported.max(object.version.number);
        known.is_none_or(|known| known.is_of(&object.version))
    }

    /// Whether the answer to a write that was sent at `sent` or later counts.
    ///
    /// It does not if the watch has already reported this state or a later one. If the object is
    /// not known, a list that began after the write was sent may lack it because it is gone again.
    /// Then the watch decides: if the object exists, it will report it.
    pub(crate) fn accepts(&self, answer: &ObjectVersion, known: Option<&Version>, sent: u64) -> bool {
        let number = answer.version.number;
        // The server's resource versions are not numbers and cannot be compared.
        if number == 0 {
            return true;
        }
        number > self.reported
            && match known {
                Some(known) => number > known.number,
                None => self.listed_at <= sent,
            }
    }
}

/// What to do about a change.
pub(crate) enum Booked<T> {
    Nothing,
    Put(Key, T),
    Gone(Vec<Key>),
}

/// Orders the changes of one kind: which of them count, and what lists contain.
#[derive(Debug, Default)]
pub(crate) struct Booking {
    progress: Progress,
    /// What the current list has returned so far.
    relisting: Option<BTreeSet<Key>>,
    /// It has been listed once.
    pub(crate) is_listed: bool,
}

impl Booking {
    /// `moment` is when a list begins or a write was sent; `known` is the known version of an
    /// object, and `all` are the known objects.
    pub(crate) fn book<T>(
        &mut self,
        change: Change<T>,
        moment: u64,
        known: impl Fn(&Key) -> Option<Version>,
        all: impl Fn() -> Vec<Key>,
    ) -> Booked<T> {
        let put_if = |counts, object: ObjectVersion, value| match counts {
            true => Booked::Put(object.key, value),
            false => Booked::Nothing,
        };
        let gone_if = |counts, object: ObjectVersion| match counts {
            true => Booked::Gone(vec![object.key]),
            false => Booked::Nothing,
        };
        match change {
            Change::Begin => {
                self.progress.list(moment);
                self.relisting = Some(BTreeSet::new());
                Booked::Nothing
            }
            Change::Put(object, value) => {
                self.note_listed(&object);
                put_if(self.progress.report(&object, known(&object.key).as_ref()), object, value)
            }
            Change::Unreadable(object) => {
                self.note_listed(&object);
                self.progress.report(&object, None);
                Booked::Nothing
            }
            Change::Gone(object) => {
                gone_if(self.progress.report_gone(&object, known(&object.key).as_ref()), object)
            }
            Change::End => {
                self.is_listed = true;
                let listed = self.relisting.take().unwrap_or_default();
                Booked::Gone(all().into_iter().filter(|key| !listed.contains(key)).collect())
            }
            Change::Written(object, value) => {
                put_if(self.progress.accepts(&object, known(&object.key).as_ref(), moment), object, value)
            }
            Change::Deleted(object) => {
                gone_if(known(&object.key).is_some_and(|known| known.is_of(&object.version)), object)
            }
        }
    }

    fn note_listed(&mut self, object: &ObjectVersion) {
        if let Some(listed) = &mut self.relisting {
            listed.insert(object.key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(uid: &str, number: u64) -> ObjectVersion {
        let key = Key { namespace: "c1".into(), name: "helloworld".into() };
        ObjectVersion { key, version: version(uid, number) }
    }

    fn version(uid: &str, number: u64) -> Version {
        Version { uid: uid.into(), number }
    }

    #[test]
    fn an_answer_counts_until_the_watch_has_caught_up() {
        let mut progress = Progress::default();
        assert!(progress.report(&state("a", 5), None));
        assert!(progress.accepts(&state("a", 8), Some(&version("a", 5)), 0));
        assert!(!progress.report(&state("a", 6), Some(&version("a", 8))), "the watch is behind");
        assert!(progress.report(&state("a", 8), Some(&version("a", 8))));
        assert!(progress.report(&state("a", 9), Some(&version("a", 8))));
    }

    #[test]
    fn a_late_answer_brings_nothing_back_that_the_watch_has_reported_deleted() {
        let mut progress = Progress::default();
        assert!(progress.report(&state("a", 5), None));
        assert!(progress.report_gone(&state("a", 7), Some(&version("a", 5))));
        assert!(!progress.accepts(&state("a", 5), None, 0), "the answer to its creation");
        assert!(!progress.accepts(&state("a", 6), None, 0), "the answer to a write after that");
    }

    #[test]
    fn a_late_answer_replaces_no_newer_object_of_the_same_name() {
        let mut progress = Progress::default();
        assert!(progress.report_gone(&state("a", 7), Some(&version("a", 5))));
        assert!(progress.report(&state("b", 8), None));
        assert!(!progress.accepts(&state("a", 6), Some(&version("b", 8)), 0));
    }

    #[test]
    fn a_deletion_of_an_earlier_object_takes_nothing_from_the_one_that_was_made_since() {
        let mut progress = Progress::default();
        assert!(progress.accepts(&state("b", 9), Some(&version("a", 5)), 0));
        assert!(!progress.report_gone(&state("a", 7), Some(&version("b", 9))));
        assert!(!progress.report(&state("a", 6), Some(&version("b", 9))));
    }

    #[test]
    fn what_a_list_may_have_left_out_is_for_the_watch_to_report() {
        let mut progress = Progress::default();
        progress.list(1);
        assert!(progress.accepts(&state("a", 5), None, 2), "it was sent after the list");
        progress.list(3);
        assert!(!progress.accepts(&state("a", 5), None, 2), "it was sent before the list");
        assert!(progress.accepts(&state("a", 6), Some(&version("a", 5)), 2), "the list has it");
    }
}
