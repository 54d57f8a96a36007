//! ManagedClusters, and what placements decide about them.

use std::collections::{BTreeMap, BTreeSet};

use aviary_api::names::{annotations, conditions, labels};
use aviary_api::{Condition, ManagedCluster, Placement, PlacementDecision};

use crate::limit::Limit;
use crate::name::{ClusterName, NameError, PlacementName, Text};
use crate::observed::{Cluster, DecisionGroup, Selection, Unreachable};
use crate::problem::Problem;

/// Reads a cluster.
pub fn cluster(object: &ManagedCluster) -> Result<Cluster, NameError> {
    let metadata = &object.metadata;
    let annotations = metadata.annotations.as_ref();
    let conditions = object.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
    // Absent: the cluster has never reported, which is what a fresh one looks like; nothing is known against it.
    let unreachable = Condition::find(conditions, conditions::CLUSTER_AVAILABLE)
        .filter(|condition| !condition.is_true())
        .map(|condition| Unreachable { since: condition.last_transition() });
    Ok(Cluster {
        name: ClusterName::parse(metadata.name.as_deref().unwrap_or_default())?,
        labels: metadata.labels.clone().unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        opted_out: annotations
            .and_then(|annotations| annotations.get(annotations::DISABLE_AUTOMATIC_INSTALLATION))
            .is_some_and(|value| value == "true"),
        unreachable,
    })
}

/// Reads what a placement decided, from all of its decisions in whatever order they come.
pub fn selection<'a>(
    placement: &Placement,
    decisions: impl IntoIterator<Item = &'a PlacementDecision>,
) -> (Selection, Vec<Problem>) {
    let name = PlacementName::new(
        placement.metadata.namespace.as_deref().unwrap_or_default(),
        placement.metadata.name.as_deref().unwrap_or_default(),
    );
    let mut problems = Vec::new();
    let mut refused = BTreeSet::new();
    let mut groups: BTreeMap<(usize, Text), BTreeSet<ClusterName>> = BTreeMap::new();
    for decision in decisions {
        let label = |key: &str| {
            decision.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str)
        };
        let index = label(labels::DECISION_GROUP_INDEX).and_then(|index| index.parse().ok()).unwrap_or(0);
        let group =
            groups.entry((index, label(labels::DECISION_GROUP_NAME).unwrap_or_default().into())).or_default();
        for decided in decision.status.iter().flat_map(|status| &status.decisions) {
            match ClusterName::parse(&decided.cluster_name) {
                Ok(cluster) => {
                    group.insert(cluster);
                }
                Err(error) => {
                    if refused.insert(decided.cluster_name.as_str()) {
                        let given = decided.cluster_name.as_str().into();
                        problems.push(Problem::ClusterNameInvalid { placement: name.clone(), given, error });
                    }
                }
            }
        }
    }
    let published = placement.status.as_ref().and_then(|status| status.number_of_selected_clusters);
    let said = placement.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
    let counted = Condition::find(said, conditions::PLACEMENT_SATISFIED).is_some();
    let strategy =
        placement.spec.decision_strategy.as_ref().and_then(|strategy| strategy.group_strategy.as_ref());
    let mut seen = BTreeSet::new();
    let selection = Selection {
        published: published.and_then(|count| usize::try_from(count).ok()),
        counted,
        group_size: strategy
            .and_then(|strategy| strategy.clusters_per_decision_group.as_ref())
            .and_then(|size| Limit::budget(size).ok()),
        groups: groups
            .into_iter()
            .map(|((_, name), clusters)| {
                // A cluster that moves between groups may stand in both for a moment.
                let clusters = clusters.into_iter().filter(|cluster| seen.insert(cluster.clone())).collect();
                DecisionGroup { name, clusters }
            })
            .collect(),
        refused: refused.len(),
    };
    (selection, problems)
}
