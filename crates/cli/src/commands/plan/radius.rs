//! The blast radius of each wave: its share of the fleet, and of each group of clusters by label.

use std::collections::{BTreeMap, BTreeSet};

use aviary_engine::explain::Decision;
use aviary_engine::name::ClusterName;
use aviary_engine::observed::Observed;
use aviary_engine::plan::ClusterReport;
use serde::Serialize;

use super::report::{Group, Movement, groups, movements};
use super::waves::{End, Walk};

/// For each label, how many clusters have which value; clusters without the label count under the
/// empty value.
pub(super) type ByLabel = BTreeMap<String, BTreeMap<String, usize>>;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Waves {
    pub(super) count: usize,
    /// `Settled`, `Stands` (nothing moves any more, and some clusters have not settled) or `Long`
    /// (the list is cut, the count estimated).
    pub(super) end: &'static str,
    /// The clusters that have not settled at the end, by reason.
    pub(super) unsettled: Vec<Group>,
    /// All clusters of the add-on, for comparison.
    pub(super) fleet_by_label: ByLabel,
    pub(super) list: Vec<WaveReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaveReport {
    pub(super) wave: usize,
    pub(super) after_seconds: i64,
    pub(super) count: usize,
    /// Of all clusters of the add-on, in whole percent, rounded up.
    pub(super) share_percent: usize,
    /// Together with all earlier waves, and all clusters that were already updated.
    pub(super) reached_percent: usize,
    pub(super) moves: Vec<Movement>,
    pub(super) by_label: ByLabel,
}

impl Waves {
    pub(super) fn of(
        observed: &Observed,
        clusters: &[ClusterReport],
        walk: &Walk,
        labels: &[String],
    ) -> Self {
        let keys = label_keys(observed, clusters, labels);
        let fleet = clusters.len().max(1);
        let there = clusters
            .iter()
            .filter(|cluster| matches!(cluster.decision, Decision::Settled | Decision::InFlight(_)));
        let mut reached: BTreeSet<&ClusterName> = there.map(|cluster| &cluster.cluster).collect();
        let list: Vec<WaveReport> = walk
            .waves
            .iter()
            .enumerate()
            .map(|(index, wave)| {
                reached.extend(wave.starts.iter().map(|start| &start.cluster));
                WaveReport {
                    wave: index + 1,
                    after_seconds: wave.after_seconds,
                    count: wave.starts.len(),
                    share_percent: (wave.starts.len() * 100).div_ceil(fleet),
                    reached_percent: (reached.len() * 100).div_ceil(fleet),
                    moves: movements(observed, &wave.starts),
                    by_label: by_label(observed, &keys, wave.starts.iter().map(|start| &start.cluster)),
                }
            })
            .collect();
        let (end, unsettled, more) = match &walk.end {
            End::Settled => ("Settled", Vec::new(), 0),
            End::Stands { left } => ("Stands", groups(left.iter()), 0),
            End::Long { left, more } => ("Long", groups(left.iter()), *more),
        };
        let fleet_by_label = by_label(observed, &keys, clusters.iter().map(|cluster| &cluster.cluster));
        Self { count: list.len() + more, end, unsettled, fleet_by_label, list }
    }
}

/// Returns the labels to count by: the requested ones, otherwise those that divide the fleet into a
/// few groups.
fn label_keys(observed: &Observed, clusters: &[ClusterReport], asked: &[String]) -> Vec<String> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    const MOST_VALUES: usize = 10;
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cluster in clusters.iter().filter_map(|cluster| observed.clusters.get(&cluster.cluster)) {
        for (key, value) in &cluster.labels {
            values.entry(key).or_default().insert(value);
        }
    }
    let telling = |key: &str, values: &BTreeSet<&str>| {
        !key.starts_with("feature.open-cluster-management.io/") && (2..=MOST_VALUES).contains(&values.len())
    };
    values.iter().filter(|(key, values)| telling(key, values)).map(|(key, _)| (*key).to_owned()).collect()
}

/// Counts these clusters by the value of each label; clusters without the label count under the
/// empty value.
fn by_label<'c>(
    observed: &Observed,
    keys: &[String],
    clusters: impl Iterator<Item = &'c ClusterName>,
) -> ByLabel {
    let mut counts = ByLabel::new();
    for cluster in clusters {
        let labels = observed.clusters.get(cluster).map(|cluster| &cluster.labels);
        for key in keys {
            let value = labels.and_then(|labels| labels.get(key)).cloned().unwrap_or_default();
            *counts.entry(key.clone()).or_default().entry(value).or_insert(0) += 1;
        }
    }
    counts
}
