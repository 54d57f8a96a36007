//! An add-on in one line of the list: its state, its counts, its version.

use aviary_engine::name::Text;
use aviary_engine::observed::Observed;
use aviary_engine::plan::Plan;
use aviary_engine::problem::Problem;
use aviary_engine::tally::ClusterTally;
use aviary_engine::verdict::{self, Verdict};
use jiff::Timestamp;
use serde::Serialize;

/// The display name and description of an add-on.
#[derive(Debug)]
pub(crate) struct AddOnTitle {
    pub(crate) display_name: Option<Text>,
    pub(crate) description: Option<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) name: Text,
    pub(crate) display_name: Text,
    pub(crate) state: Verdict,
    pub(crate) message: String,
    pub(crate) clusters: usize,
    pub(crate) settled: usize,
    pub(crate) in_flight: usize,
    pub(crate) failed: usize,
    pub(crate) waiting: usize,
    pub(crate) leaving: usize,
    pub(crate) placements: usize,
    pub(crate) version: Option<Text>,
    pub(crate) oldest_wait_since: Option<String>,
    pub(crate) paused: bool,
}

impl Summary {
    pub(crate) fn of(observed: &Observed, plan: &Plan, problems: &[Problem], title: &AddOnTitle) -> Self {
        let tally = ClusterTally::of(&plan.report.clusters);
        let (state, message) = verdict::judge(observed, plan, &tally, problems);
        let name = observed.addon.name.clone();
        let placements = observed.addon.strategy.placements();
        Self {
            display_name: title.display_name.clone().unwrap_or_else(|| name.clone()),
            name,
            state,
            message,
            clusters: tally.clusters,
            settled: tally.settled,
            in_flight: tally.in_flight,
            failed: tally.failed,
            waiting: tally.waiting,
            leaving: tally.leaving,
            placements: placements.len(),
            version: wanted(plan),
            oldest_wait_since: oldest_wait(observed, plan).map(seconds),
            paused: placements.iter().any(|placement| placement.rollout.paused),
        }
    }

    /// Settled, in flight, failed, waiting.
    pub(crate) fn counts(&self) -> [usize; 4] {
        [self.settled, self.in_flight, self.failed, self.waiting]
    }
}

/// A time in whole seconds, as in Kubernetes.
pub(crate) fn seconds(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// The version that all placements want, or the first of several. Absent without placements.
fn wanted(plan: &Plan) -> Option<Text> {
    let wanted = plan.report.placements.iter().find_map(|placement| placement.desired.clone());
    wanted.or_else(|| plan.report.clusters.iter().find_map(|cluster| cluster.told.clone()))
}

/// Since when clusters have been waiting for a rollout that is in progress or has stopped.
fn oldest_wait(observed: &Observed, plan: &Plan) -> Option<Timestamp> {
    plan.report.placements.iter().filter_map(|placement| verdict::waits_since(observed, placement)).min()
}
