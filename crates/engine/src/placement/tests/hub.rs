//! A placement and its decisions on a hub that does what it is told, one write at a time, and shows
//! readers every state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use aviary_api::{Placement, PlacementDecision};
use serde_json::{Value, json};

use super::story::{now, placement};
use crate::name::{ClusterName, Text};
use crate::normalise;
use crate::observed::Selection;
use crate::placement::choose::{Chosen, SelectedGroup, SelectionCondition, SelectionCounts};
use crate::placement::decisions::{DecisionWrite, Rewrite, rewrite};
use crate::placement::pages::number;

/// A group as a reader sees it.
pub(super) type Grouped = Vec<(Text, Vec<ClusterName>)>;

#[derive(Clone, Debug)]
pub(super) struct Hub {
    pub(super) placement: Placement,
    pub(super) decisions: BTreeMap<String, PlacementDecision>,
    versions: u64,
}

/// A choice of these groups.
pub(super) fn chosen(groups: &[(&str, Vec<String>)]) -> Chosen {
    let verdict = |type_| SelectionCondition { type_, holds: true, reason: "Because", message: "so".into() };
    let group = |(name, clusters): &(&str, Vec<String>)| SelectedGroup {
        name: (*name).into(),
        clusters: clusters.iter().map(|cluster| ClusterName::parse(cluster).unwrap()).collect(),
    };
    let selected = groups.iter().map(|(_, clusters)| clusters.len()).sum();
    Chosen {
        groups: Some(groups.iter().map(group).collect()),
        verdicts: [verdict("PlacementSatisfied"), verdict("PlacementMisconfigured")],
        counts: SelectionCounts { eligible: selected, selected, ..SelectionCounts::default() },
        recheck_at: None,
    }
}

impl Hub {
    pub(super) fn new() -> Self {
        Self { placement: placement(json!({})), decisions: BTreeMap::new(), versions: 1 }
    }

    pub(super) fn rewrite(&self, chosen: &Chosen) -> Rewrite {
        let taken: BTreeSet<u64> = self.decisions.keys().filter_map(|name| number("p", name)).collect();
        rewrite(&self.placement, self.decisions.values(), &taken, chosen, now())
    }

    /// Makes the first so many writes, and shows every state to a reader.
    pub(super) fn make(&mut self, rewrite: &Rewrite, most: usize, mut look: impl FnMut(&Self)) {
        let mut left = most;
        let mut write = |hub: &mut Self, write: &dyn Fn(&mut Self)| {
            if left > 0 {
                left -= 1;
                write(hub);
                look(hub);
            }
        };
        if let Some(count) = rewrite.announce {
            write(self, &|hub| {
                hub.placement.status.get_or_insert_default().number_of_selected_clusters = Some(count);
            });
        }
        for step in &rewrite.steps {
            match step {
                DecisionWrite::Create(page) => {
                    write(self, &|hub| {
                        let labels = json!({
                            "cluster.open-cluster-management.io/placement": "p",
                            "cluster.open-cluster-management.io/decision-group-index": page.group.to_string(),
                            "cluster.open-cluster-management.io/decision-group-name": page.group_name,
                        });
                        hub.put(&page.name, &labels, "uid-of-p", &[]);
                    });
                    write(self, &|hub| hub.fill(&page.name, &page.clusters));
                }
                DecisionWrite::Fill { seen, clusters } => write(self, &|hub| {
                    let stored = hub.decisions[&seen.name].metadata.resource_version.clone();
                    assert_eq!(
                        stored.as_ref(),
                        Some(&seen.resource_version),
                        "on the condition that it is as seen"
                    );
                    hub.fill(&seen.name, clusters);
                }),
                DecisionWrite::Delete(seen) => write(self, &|hub| {
                    hub.decisions.remove(&seen.name).unwrap();
                }),
            }
        }
        if let Some(status) = &rewrite.status {
            write(self, &|hub| hub.placement.status = Some(status.clone()));
        }
    }

    pub(super) fn put(&mut self, name: &str, labels: &Value, owner: &str, clusters: &[&str]) {
        assert!(!self.decisions.contains_key(name), "{name} is there already");
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
            "metadata": {"name": name, "namespace": "here", "uid": format!("uid-of-{name}"), "labels": labels,
                "ownerReferences": [{"apiVersion": "v1", "kind": "Placement", "name": "p", "uid": owner}]},
        });
        self.decisions.insert(name.into(), serde_json::from_value(object).unwrap());
        let clusters: Vec<ClusterName> =
            clusters.iter().map(|cluster| ClusterName::parse(cluster).unwrap()).collect();
        self.fill(name, &clusters);
    }

    fn fill(&mut self, name: &str, clusters: &[ClusterName]) {
        self.versions += 1;
        let decided: Vec<Value> =
            clusters.iter().map(|cluster| json!({"clusterName": cluster.as_str(), "reason": ""})).collect();
        let decision = self.decisions.get_mut(name).unwrap();
        decision.metadata.resource_version = Some(self.versions.to_string());
        decision.status = serde_json::from_value(json!({"decisions": decided})).unwrap();
    }

    /// What the engine makes of it.
    pub(super) fn selection(&self) -> Selection {
        normalise::selection(&self.placement, self.decisions.values()).0
    }

    pub(super) fn grouped(&self) -> Grouped {
        let groups = self.selection().groups.into_iter();
        groups.filter(|group| !group.clusters.is_empty()).map(|group| (group.name, group.clusters)).collect()
    }

    /// Decides and writes until there is nothing left to do, and tells what was written.
    pub(super) fn settle(&mut self, chosen: &Chosen) -> String {
        let rewrite = self.rewrite(chosen);
        self.make(&rewrite, usize::MAX, |_| {});
        assert!(self.rewrite(chosen).is_empty(), "at rest nothing is written");
        told(&rewrite)
    }
}

fn told(rewrite: &Rewrite) -> String {
    let mut story = String::new();
    let shown = |clusters: &[ClusterName]| match clusters {
        [] => "nobody".into(),
        [first, _, _, _, .., last] => format!("{first} … {last}, {}", clusters.len()),
        few => few.iter().map(ClusterName::as_str).collect::<Vec<_>>().join(" "),
    };
    if let Some(count) = rewrite.announce {
        writeln!(story, "announce {count}").unwrap();
    }
    for step in &rewrite.steps {
        match step {
            DecisionWrite::Create(page) => {
                let (group, name) = (page.group, &page.group_name);
                writeln!(story, "create {} of group {group} {name:?}: {}", page.name, shown(&page.clusters))
            }
            DecisionWrite::Fill { seen, clusters } => {
                writeln!(story, "fill {}: {}", seen.name, shown(clusters))
            }
            DecisionWrite::Delete(seen) => writeln!(story, "delete {}", seen.name),
        }
        .unwrap();
    }
    if let Some(status) = &rewrite.status {
        writeln!(story, "status {}", status.number_of_selected_clusters.unwrap_or(-1)).unwrap();
        for group in &status.decision_groups {
            let (index, count) = (group.decision_group_index.unwrap(), group.clusters_count.unwrap());
            let name = group.decision_group_name.as_deref().unwrap();
            writeln!(story, "  group {index} {name:?}: {count} in {}", group.decisions.join(" ")).unwrap();
        }
    }
    story
}
