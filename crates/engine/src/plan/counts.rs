//! When the status of an add-on is written: what counts as a change, and how often its counts of
//! clusters alone are worth a write.

use jiff::{SignedDuration, Timestamp};

use super::{Plan, Step};
use crate::configs::Revision;
use crate::observed::{AddOnStatus, Observed};

/// How often an add-on's status is written for its counts alone while clusters are in flight.
pub const COUNTS_AT_MOST_EVERY: SignedDuration = SignedDuration::from_secs(2);

impl Plan {
    /// Holds back a change of the add-on's counts alone while clusters are in flight, if the status
    /// was written less than [`COUNTS_AT_MOST_EVERY`] ago. Clusters settle one by one, and the
    /// add-on must not be written for each. Counts are written with any other change, at once when
    /// no cluster is in flight, and otherwise when the time is over.
    pub fn hold_counts(&mut self, observed: &Observed, written: Option<Timestamp>, now: Timestamp) {
        let before = &observed.addon.status;
        let is_due_at = written
            .filter(|written| *written <= now)
            .and_then(|written| written.checked_add(COUNTS_AT_MOST_EVERY).ok())
            .filter(|due| now < *due);
        let Some(due) = is_due_at else { return };
        let is_counts_alone = |status: &AddOnStatus| {
            let in_flight = status.rollout.as_ref().is_some_and(|rollout| rollout.tally.in_flight > 0);
            in_flight && same_but_for_counts(status, before)
        };
        if !self.addon().is_some_and(is_counts_alone) {
            return;
        }
        let starts = self.starts().next().is_some();
        for stage in self.stages.iter_mut().filter(|stage| stage.step == Step::Reserve) {
            stage.writes.clear();
        }
        self.stages.retain(|stage| stage.step != Step::Reserve || starts);
        self.recheck_at = Some(self.recheck_at.map_or(due, |at| at.min(due)));
    }
}

/// Whether two statuses of an add-on say the same.
pub fn same_status(a: &AddOnStatus, b: &AddOnStatus) -> bool {
    // A hub whose schema lacks a field drops it. The field must then not be written again in every
    // pass.
    (b.rollout.is_none() || a.rollout == b.rollout) && same_but_for_counts(a, b)
}

fn same_but_for_counts(a: &AddOnStatus, b: &AddOnStatus) -> bool {
    let AddOnStatus {
        observed_generation,
        placements,
        supported_versions,
        default_version,
        rollout: _,
        defaults,
        attempts,
        conditions,
    } = a;
    (b.observed_generation.is_none() || *observed_generation == b.observed_generation)
        && *supported_versions == b.supported_versions
        && *default_version == b.default_version
        && *defaults == b.defaults
        && *attempts == b.attempts
        && *conditions == b.conditions
        && placements.len() == b.placements.len()
        && placements.iter().zip(&b.placements).all(|((name, one), (other_name, other))| {
            let same = |x: &Option<Revision>, y: &Option<Revision>| match (x, y) {
                (Some(x), Some(y)) => x.same_names(y),
                (None, None) => true,
                _ => false,
            };
            name == other_name
                && same(&one.desired, &other.desired)
                && same(&one.known_good, &other.known_good)
                && same(&one.applied, &other.applied)
                && one.unresolved == other.unresolved
                && one.conditions == other.conditions
        })
}
