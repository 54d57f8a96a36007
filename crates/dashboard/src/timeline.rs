//! The number of clusters in each state over time.
//!
//! The time before the dashboard started is reconstructed from the times in statuses. Later changes
//! are recorded, at most once a second. The length is limited: when the timeline is full, every
//! second point is removed.

use aviary_api::names::conditions::PROGRESSING;
use aviary_engine::observed::Observed;
use aviary_engine::plan::{ClusterReport, Plan};
use aviary_engine::tally::ClusterState;
use jiff::{SignedDuration, Timestamp};

/// Seconds since 1970; settled, in flight, failed, waiting.
pub(crate) type TimelinePoint = [i64; 5];

const MOST_POINTS: usize = 600;
/// The maximum number of points for the past.
const MOST_SEEDED: usize = 120;

#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    points: Vec<TimelinePoint>,
    /// Counts that are not recorded yet, because the second is not over.
    waiting: Option<[i64; 4]>,
}

/// The effect of a record on the timeline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    Nothing,
    Point(TimelinePoint),
    /// The timeline was thinned out.
    Whole,
}

impl Timeline {
    /// Reconstructs the past from the statuses.
    pub(crate) fn seeded(observed: &Observed, plan: &Plan) -> Self {
        let mut moments: Vec<(i64, usize)> = plan
            .report
            .clusters
            .iter()
            .filter_map(|cluster| {
                let kind = match cluster.decision.state() {
                    ClusterState::Settled => 0,
                    ClusterState::InFlight => 1,
                    ClusterState::Failed => 2,
                    ClusterState::Waiting | ClusterState::Leaving => return None,
                };
                let status = &observed.instances.get(&cluster.cluster)?.status;
                Some((status.condition(PROGRESSING)?.since?.as_second(), kind))
            })
            .collect();
        moments.sort_unstable();
        let stays = |one: &&ClusterReport| one.decision.state() != ClusterState::Leaving;
        let all = plan.report.clusters.iter().filter(stays).count();
        let all = i64::try_from(all).unwrap_or(i64::MAX);
        let mut counts = [0_i64; 3];
        let mut points: Vec<TimelinePoint> = Vec::new();
        for (at, kind) in moments {
            if let Some(count) = counts.get_mut(kind) {
                *count += 1;
            }
            let [settled, in_flight, failed] = counts;
            let point = [at, settled, in_flight, failed, all - settled - in_flight - failed];
            match points.last_mut().filter(|last| last[0] == at) {
                Some(last) => *last = point,
                None => points.push(point),
            }
        }
        Self { points: thinned(&points, MOST_SEEDED), waiting: None }
    }

    pub(crate) fn points(&self) -> &[TimelinePoint] {
        &self.points
    }

    /// Records the current counts. Within one second, the last counts win.
    pub(crate) fn note(&mut self, counts: [usize; 4], now: Timestamp) -> Noted {
        let counts = counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let last = self.points.last();
        if last.is_some_and(|[_, last @ ..]| *last == counts) {
            self.waiting = None;
            return Noted::Nothing;
        }
        if last.is_some_and(|last| last[0] >= now.as_second()) {
            self.waiting = Some(counts);
            return Noted::Nothing;
        }
        self.waiting = None;
        let [settled, in_flight, failed, waiting] = counts;
        let point = [now.as_second(), settled, in_flight, failed, waiting];
        self.points.push(point);
        if self.points.len() <= MOST_POINTS {
            return Noted::Point(point);
        }
        self.points = thinned(&self.points, MOST_POINTS / 2);
        Noted::Whole
    }

    /// When pending counts are due, and the counts.
    pub(crate) fn due(&self) -> Option<(Timestamp, [usize; 4])> {
        let counts = self.waiting?.map(|count| usize::try_from(count).unwrap_or(0));
        let last = Timestamp::from_second(self.points.last()?[0]).ok()?;
        Some((last.checked_add(SignedDuration::from_secs(1)).ok()?, counts))
    }
}

/// At most this many points: the first, the last, and others evenly between them.
fn thinned(points: &[TimelinePoint], most: usize) -> Vec<TimelinePoint> {
    if points.len() <= most || most < 2 {
        return points.to_vec();
    }
    (0..most).filter_map(|index| points.get(index * (points.len() - 1) / (most - 1)).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_second_has_one_point_and_its_last_word_is_not_lost() {
        let mut line = Timeline::default();
        assert_eq!(line.note([0, 1, 0, 0], at(10)), Noted::Point([10, 0, 1, 0, 0]));
        assert_eq!(line.note([1, 0, 0, 0], at(10)), Noted::Nothing);
        assert_eq!(line.due(), Some((at(11), [1, 0, 0, 0])));
        assert_eq!(line.note([1, 0, 0, 0], at(11)), Noted::Point([11, 1, 0, 0, 0]));
        assert_eq!((line.due(), line.note([1, 0, 0, 0], at(20))), (None, Noted::Nothing));
    }

    #[test]
    fn it_never_gets_longer_than_it_may_and_keeps_both_ends() {
        let mut line = Timeline::default();
        let mut whole = 0;
        for second in 0..5000 {
            let noted = line.note([usize::try_from(second).unwrap(), 0, 0, 0], at(second));
            whole += usize::from(noted == Noted::Whole);
            assert!(line.points().len() <= MOST_POINTS);
        }
        assert!((10..20).contains(&whole), "{whole}");
        assert_eq!((line.points().first().unwrap()[0], line.points().last().unwrap()[0]), (0, 4999));
        assert!(line.points().is_sorted());
    }
}
