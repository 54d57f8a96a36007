//! ManagedClusters, and what placements decide about them.

use std::collections::{BTreeMap, BTreeSet};

use aviary_api::names::{annotations, conditions, labels};
use aviary_api::{Condition, ManagedCluster, Placement, PlacementDecision};

use crate::limit::Limit;
use crate::name::{ClusterName, NameError, PlacementName, Text};
use crate::observed::{Cluster, ClusterGroup, Selection, Unreachable};
use crate::problem::Problem;

/// Reads a cluster.
pub fn cluster(object: &ManagedCluster) -> Result<Cluster, NameError> {
    let metadata = &object.metadata;
    let annotations = metadata.annotations.as_ref();
    let conditions = object.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
    // Without this condition the cluster has never reported, like any new cluster. It is not
    // treated as unreachable.
    let contact = Condition::find(conditions, conditions::CLUSTER_AVAILABLE);
    let unreachable = contact
        .filter(|condition| !condition.is_true())
        .map(|condition| Unreachable { since: condition.last_transition() });
    let reachable_since =
        contact.filter(|condition| condition.is_true()).and_then(Condition::last_transition);
    Ok(Cluster {
        name: ClusterName::parse(metadata.name.as_deref().unwrap_or_default())?,
        labels: metadata.labels.clone().unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        opted_out: annotations
            .and_then(|annotations| annotations.get(annotations::DISABLE_AUTOMATIC_INSTALLATION))
            .is_some_and(|value| value == "true"),
        unreachable,
        reachable_since,
        addon_annotations: annotations.map(for_instances).unwrap_or_default(),
    })
}

/// How many annotations an instance gets from its cluster, and the longest value of one.
const MOST_ANNOTATIONS: usize = 32;
const LONGEST_ANNOTATION: usize = 4096;

/// The annotations that instances get from their cluster. Not the one that moves their works to
/// another cluster, because a cluster's agent may edit it; nor those by which managers know each
/// other's writes.
fn for_instances(annotations: &BTreeMap<String, String>) -> BTreeMap<Text, Text> {
    followed(annotations).take(MOST_ANNOTATIONS).collect()
}

/// Those annotations of a cluster or an instance that an instance may have from its cluster.
pub(super) fn followed(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = (Text, Text)> {
    const KEPT: [&str; 3] =
        [annotations::HOSTING_CLUSTER_NAME, annotations::MANAGER_TERM, annotations::MANAGER_IDENTITY];
    let prefixed = annotations.iter().filter(|(key, value)| {
        key.starts_with(annotations::ADDON_PREFIX)
            && !KEPT.contains(&key.as_str())
            && value.len() <= LONGEST_ANNOTATION
    });
    prefixed.map(|(key, value)| (key.as_str().into(), value.as_str().into()))
}

/// What a Placement itself publishes about its selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementPart {
    pub name: PlacementName,
    published: Option<usize>,
    counted: bool,
    outdated: bool,
    group_size: Option<Limit>,
}

/// One PlacementDecision: some clusters of one decision group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionPart {
    index: usize,
    group: Text,
    clusters: BTreeSet<ClusterName>,
    refused: Vec<(Text, NameError)>,
}

pub fn placement(object: &Placement) -> PlacementPart {
    let published = object.status.as_ref().and_then(|status| status.number_of_selected_clusters);
    let said = object.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
    let satisfied = Condition::find(said, conditions::PLACEMENT_SATISFIED);
    let strategy =
        object.spec.decision_strategy.as_ref().and_then(|strategy| strategy.group_strategy.as_ref());
    PlacementPart {
        name: PlacementName::new(
            object.metadata.namespace.as_deref().unwrap_or_default(),
            object.metadata.name.as_deref().unwrap_or_default(),
        ),
        published: published.and_then(|count| usize::try_from(count).ok()),
        counted: satisfied.is_some(),
        outdated: !is_left_alone(object)
            && satisfied
                .and_then(|satisfied| satisfied.observed_generation)
                .zip(object.metadata.generation)
                .is_some_and(|(decided, current)| decided < current),
        group_size: strategy
            .and_then(|strategy| strategy.clusters_per_decision_group.as_ref())
            .and_then(|size| Limit::budget(size).ok()),
    }
}

/// No placement controller decides it any more.
fn is_left_alone(placement: &Placement) -> bool {
    let annotations = placement.metadata.annotations.as_ref();
    let disabled = annotations.and_then(|annotations| annotations.get(annotations::SCHEDULING_DISABLED));
    placement.metadata.deletion_timestamp.is_some() || disabled.is_some_and(|value| value == "true")
}

pub fn decision(object: &PlacementDecision) -> DecisionPart {
    let label =
        |key: &str| object.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let mut part = DecisionPart {
        index: label(labels::DECISION_GROUP_INDEX).and_then(|index| index.parse().ok()).unwrap_or(0),
        group: label(labels::DECISION_GROUP_NAME).unwrap_or_default().into(),
        ..DecisionPart::default()
    };
    for decided in object.status.iter().flat_map(|status| &status.decisions) {
        match ClusterName::parse(&decided.cluster_name) {
            Ok(cluster) => {
                part.clusters.insert(cluster);
            }
            Err(error) => part.refused.push((decided.cluster_name.as_str().into(), error)),
        }
    }
    part
}

/// Combines all decisions of a placement, in any order.
pub fn selection<'a>(
    object: &Placement,
    decisions: impl IntoIterator<Item = &'a PlacementDecision>,
) -> (Selection, Vec<Problem>) {
    let decisions: Vec<DecisionPart> = decisions.into_iter().map(decision).collect();
    selection_of(&placement(object), &decisions)
}

/// The same, from parts that are already parsed.
pub fn selection_of<'a>(
    placement: &PlacementPart,
    decisions: impl IntoIterator<Item = &'a DecisionPart>,
) -> (Selection, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut refused = BTreeSet::new();
    let mut groups: BTreeMap<(usize, &Text), BTreeSet<&ClusterName>> = BTreeMap::new();
    for part in decisions {
        groups.entry((part.index, &part.group)).or_default().extend(&part.clusters);
        for (given, error) in part.refused.iter().filter(|(given, _)| refused.insert(given)) {
            let (placement, given, error) = (placement.name.clone(), given.clone(), error.clone());
            problems.push(Problem::ClusterNameInvalid { placement, given, error });
        }
    }
    let mut seen = BTreeSet::new();
    let groups = groups.into_iter().map(|((_, name), clusters)| {
        // A cluster that moves between groups may be in both for a moment.
        let clusters = clusters.into_iter().filter(|cluster| seen.insert(*cluster)).cloned().collect();
        ClusterGroup { name: name.clone(), clusters }
    });
    let groups = groups.collect();
    let PlacementPart { published, counted, outdated, group_size, .. } = placement;
    let selection = Selection {
        published: *published,
        counted: *counted,
        outdated: *outdated,
        group_size: *group_size,
        groups,
        refused: refused.len(),
    };
    (selection, problems)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_says_since_when_there_is_contact_or_none() {
        let of = |status: &str| {
            let condition = json!({"type": "ManagedClusterConditionAvailable", "status": status,
                "lastTransitionTime": "2026-01-01T00:00:00Z"});
            let object = json!({"metadata": {"name": "c1"}, "status": {"conditions": [condition]}});
            let read = cluster(&serde_json::from_value(object).unwrap()).unwrap();
            let since = |time: Option<jiff::Timestamp>| time.map(|time| time.to_string());
            (since(read.reachable_since), read.unreachable.map(|one| since(one.since)))
        };
        let then = || Some("2026-01-01T00:00:00Z".to_owned());
        assert_eq!(of("True"), (then(), None));
        assert_eq!(of("False"), (None, Some(then())));
        assert_eq!(of("Unknown"), (None, Some(then())));
    }

    #[test]
    fn decisions_are_outdated_only_if_their_controller_records_an_older_generation() {
        let outdated = |generation: i64, decided: Option<i64>, annotations: serde_json::Value| {
            let condition =
                json!({"type": "PlacementSatisfied", "status": "True", "observedGeneration": decided});
            let object = json!({
                "metadata": {"name": "p", "namespace": "n", "generation": generation, "annotations": annotations},
                "status": {"conditions": [condition]},
            });
            selection(&serde_json::from_value(object).unwrap(), []).0.outdated
        };
        let disabled = json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"});
        assert!(outdated(2, Some(1), json!({})));
        assert!(!outdated(2, Some(2), json!({})));
        assert!(!outdated(2, None, json!({})));
        assert!(!outdated(2, Some(1), disabled));
    }
}
