//! The terms on add-ons, and what they mean for other leaders (decision 8).
//!
//! Owns when a leader continues, when it waits, and when it must fence off an earlier one.

use aviary_engine::name::Text;
use aviary_engine::problem::Problem;
use aviary_engine::reason::EventReason;
use tokio::time::Instant;

use super::Loop;
use crate::execute::{Executor, SharedExecutor, Target, UNFENCED};
use crate::seen::WrittenBy;
use crate::skipped::SkipReason;

/// Terms up to this one count as those of earlier leaders, and the next term is above them. With a
/// new leader every second it is reached after thirty years.
const HIGHEST_TERM: u64 = 1 << 30;

/// Another manager's term on an add-on, which is at least as high as ours.
#[derive(Debug)]
pub(super) struct Sighting {
    by: WrittenBy,
    at: Instant,
    /// An Event was published that no leader can have written it.
    is_reported: bool,
}

/// A leader's term must be above all that earlier leaders wrote on add-ons. After a lost Lease it
/// is not at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TermCheck {
    ToDo,
    /// A higher one was requested. That happens once: writing terms on add-ons must not keep a
    /// leader from starting.
    Raised,
    Done,
}

impl Loop {
    /// Whether this leader may begin: its term is above those on add-ons, or it has tried to raise
    /// it.
    pub(super) fn has_its_term(&mut self, executor: &Executor) -> bool {
        if self.term == TermCheck::ToDo {
            let highest =
                self.stores.highest_term(&self.settings.identity, executor.term.number, HIGHEST_TERM);
            if highest < executor.term.number {
                self.term = TermCheck::Done;
            } else {
                tracing::warn!(
                    term = executor.term.number,
                    highest,
                    "the Lease's term is lower than terms on add-ons; raising it above them"
                );
                self.term = TermCheck::Raised;
                self.tenure.raise_above(highest);
            }
        }
        self.term == TermCheck::Done
    }

    /// Another manager may lead if its term is on the add-on and the hub has not confirmed our
    /// lease since we saw it. Once the hub has, only this manager leads: the term is a copy, or
    /// older than a lost Lease, and is ignored.
    pub(super) fn may_be_led_by_another(&mut self, addon: &Text, executor: &Executor) -> Option<SkipReason> {
        let by = self.stores.entry(addon)?.written_by.clone();
        let own = executor.term.number;
        if executor.term == UNFENCED || by.term < own || *by.leader == *self.settings.identity {
            self.sighted.remove(addon);
            self.stores.note_term(addon, None);
            return None;
        }
        let term = by.term;
        let new = || Sighting { by: by.clone(), at: Instant::now(), is_reported: false };
        let seen = self.sighted.entry(addon.clone()).or_insert_with(new);
        if seen.by != by {
            *seen = new();
        }
        if self.tenure.confirmed_since(seen.at) {
            let odd = (term > own).then_some(Problem::TermUnreached { term, own });
            self.stores.note_term(addon, odd);
            return None;
        }
        Some(SkipReason::OtherTerm { term, own })
    }

    /// Publishes an Event, because the status may say it only for a moment.
    pub(super) fn report_odd_term(&mut self, executor: &SharedExecutor, target: &Target) {
        let Some(odd) = self.stores.entry(&target.name).and_then(|entry| entry.odd_term.as_ref()) else {
            return;
        };
        let Some(sighting) = self.sighted.get_mut(&target.name).filter(|sighting| !sighting.is_reported)
        else {
            return;
        };
        sighting.is_reported = true;
        let (events, target, note) = (executor.events.clone(), target.clone(), odd.to_string());
        self.watches.spawn(async move {
            events.publish_one(&target, EventReason::ManagerTermUnreached, &note).await;
        });
    }
}

/// Whether the leader that last wrote its term on the add-on may still start instances of it.
pub(super) fn must_fence(last: &WrittenBy, executor: &Executor) -> bool {
    let now = &executor.term;
    let nobody_was_before = last.term == 0;
    let it_is_us = last.term == now.number && *last.leader == *executor.identity;
    let said_it_is_done = last.term.checked_add(1) == Some(now.number)
        && now.handed_over_by.as_ref().is_some_and(|by| *by == last.leader);
    *now != UNFENCED && !nobody_was_before && !it_is_us && !said_it_is_done
}
