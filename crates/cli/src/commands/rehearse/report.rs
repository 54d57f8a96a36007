//! A rehearsal as data: the structure of `-o json`, and the source of the text.

use std::collections::BTreeMap;
use std::time::Duration;

use aviary_engine::reason::Reason;
use aviary_engine::rollout::State;
use aviary_engine::simulate::agents::Profile;
use aviary_engine::simulate::{Rehearsal, Sample};
use aviary_engine::tally::ClusterTally;
use serde::Serialize;

use crate::output::counted;

/// What a peak is, for a peak above the budget.
pub(crate) const PEAK_EXPLAINED: &str = "peak: the most clusters in flight or failed at once. It can exceed the budget: failed clusters within \
     maxFailures give their slot back, and first installs need no slot.";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RehearsalReport {
    version: u32,
    pub(crate) profile: ProfileReport,
    pub(crate) add_ons: Vec<AddOnRehearsal>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProfileReport {
    pub(crate) seed: u64,
    pub(crate) runs: u32,
    pub(crate) latency_seconds: [f64; 2],
    pub(crate) fail: f64,
    pub(crate) offline: f64,
    pub(crate) flap: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddOnRehearsal {
    pub(crate) name: String,
    pub(crate) clusters: usize,
    pub(crate) runs: RunsReport,
    pub(crate) first: RunReport,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunsReport {
    pub(crate) count: usize,
    /// Runs in which every cluster settled.
    pub(crate) settled: usize,
    pub(crate) p50_seconds: u64,
    pub(crate) p90_seconds: u64,
    pub(crate) worst_seconds: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunReport {
    pub(crate) seconds: u64,
    pub(crate) settled: bool,
    pub(crate) ran_out: bool,
    pub(crate) passes: usize,
    pub(crate) writes: usize,
    pub(crate) placements: Vec<PlacementEnd>,
    pub(crate) timeline: Vec<Moment>,
    pub(crate) starts: Vec<StartReport>,
    pub(crate) unsettled: Vec<UnsettledGroup>,
    /// Clusters with failures or outages that no report shows.
    pub(crate) unseen: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlacementEnd {
    pub(crate) placement: String,
    pub(crate) governed: usize,
    pub(crate) settled: usize,
    pub(crate) in_flight: usize,
    pub(crate) failed: usize,
    pub(crate) waiting: usize,
    pub(crate) leaving: usize,
    pub(crate) budget: usize,
    pub(crate) peak_exposed: usize,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    #[serde(skip)]
    pub(crate) well: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Moment {
    pub(crate) seconds: u64,
    pub(crate) placements: Vec<PlacementMoment>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlacementMoment {
    /// Settled; `done` is the older name of the same count.
    pub(crate) done: usize,
    pub(crate) in_flight: usize,
    pub(crate) failed: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartReport {
    seconds: u64,
    cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<String>,
    to: String,
}

/// Clusters with the same reason.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnsettledGroup {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    pub(crate) count: usize,
    pub(crate) clusters: Vec<String>,
}

impl RehearsalReport {
    pub(crate) fn new(profile: &Profile, runs: u32) -> Self {
        let (from, to) = profile.latency;
        let profile = ProfileReport {
            seed: profile.seed,
            runs,
            latency_seconds: [from.as_secs_f64(), to.as_secs_f64()],
            fail: profile.fail,
            offline: profile.offline,
            flap: profile.flap,
        };
        Self { version: 1, profile, add_ons: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: String, clusters: usize, runs: Vec<Rehearsal>) {
        let mut times: Vec<u64> = runs.iter().map(|run| run.took.as_secs()).collect();
        times.sort_unstable();
        let settled = runs.iter().filter(|run| has_settled(run)).count();
        let summary = RunsReport {
            count: runs.len(),
            settled,
            p50_seconds: percentile(&times, 50),
            p90_seconds: percentile(&times, 90),
            worst_seconds: percentile(&times, 100),
        };
        if let Some(first) = runs.into_iter().next() {
            self.add_ons.push(AddOnRehearsal { name, clusters, runs: summary, first: RunReport::of(&first) });
        }
    }

    pub(crate) fn all_settled(&self) -> bool {
        self.add_ons.iter().all(|addon| addon.runs.settled == addon.runs.count)
    }
}

impl AddOnRehearsal {
    pub(crate) fn peak_exceeds_budget(&self) -> bool {
        self.first.placements.iter().any(|end| end.peak_exposed > end.budget)
    }

    /// Why failures changed nothing, where they did not.
    pub(crate) fn unseen_explained(&self) -> Option<String> {
        let count = self.first.unseen;
        (count > 0).then(|| {
            format!(
                "Failures and outages on {} cannot be seen: nothing of this add-on is probed there, so agents report it as \
                 applied and available whatever its pods do. Only failures of the kinds refuses and silent are seen.",
                counted(count, "cluster")
            )
        })
    }
}

/// Whether every cluster is up to date: none waits, none failed, none was given up.
fn has_settled(run: &Rehearsal) -> bool {
    run.unsettled.is_empty() && !run.ran_out
}

/// The time within which this percentage of the runs was done.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

impl RunReport {
    fn of(run: &Rehearsal) -> Self {
        let placements = run.end.iter().enumerate().map(|(index, end)| {
            let ClusterTally { clusters: governed, settled, in_flight, failed, waiting, leaving } = end.tally;
            let budget = end.counts.budget;
            PlacementEnd {
                placement: end.name.to_string(),
                governed,
                settled,
                in_flight,
                failed,
                waiting,
                leaving,
                budget,
                peak_exposed: run.peak_exposure(index),
                reason: end.reason,
                message: end.without_counts().to_owned(),
                well: matches!(end.state, State::InstallSucceeded | State::UpgradeSucceeded | State::Empty),
            }
        });
        let starts = run.starts.iter().map(|start| StartReport {
            seconds: start.at.as_secs(),
            cluster: start.cluster.to_string(),
            placement: start.placement.as_ref().map(ToString::to_string),
            to: start.to.to_string(),
        });
        Self {
            seconds: run.took.as_secs(),
            settled: has_settled(run),
            ran_out: run.ran_out,
            passes: run.passes,
            writes: run.writes,
            placements: placements.collect(),
            timeline: run.samples.iter().map(moment).collect(),
            starts: starts.collect(),
            unsettled: groups(run),
            unseen: run.unseen.len(),
        }
    }
}

fn moment(sample: &Sample) -> Moment {
    let placements = sample.placements.iter().map(|tally| PlacementMoment {
        done: tally.settled,
        in_flight: tally.in_flight,
        failed: tally.failed,
    });
    Moment { seconds: sample.at.as_secs(), placements: placements.collect() }
}

/// The clusters that did not settle, grouped by reason, the largest group first.
fn groups(run: &Rehearsal) -> Vec<UnsettledGroup> {
    let mut by_reason: BTreeMap<(Reason, String), Vec<String>> = BTreeMap::new();
    for (cluster, decision) in &run.unsettled {
        by_reason.entry((decision.code(), decision.to_string())).or_default().push(cluster.to_string());
    }
    let mut groups: Vec<UnsettledGroup> = by_reason
        .into_iter()
        .map(|((reason, message), clusters)| UnsettledGroup {
            reason,
            message,
            count: clusters.len(),
            clusters,
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}

pub(crate) fn shown(seconds: u64) -> String {
    aviary_engine::duration::shown(Duration::from_secs(seconds))
}
