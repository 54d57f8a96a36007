//! Selects clusters: from a Placement, the hub's clusters and the previous selection to the new
//! selection, in groups.
//!
//! Pure and total: no client, no clock, and a standing for every cluster. A selected cluster stays
//! selected for as long as the rules allow: a new cluster never replaces it.

use std::collections::{BTreeMap, BTreeSet};

use aviary_api::names::conditions;
use aviary_api::{ManagedCluster, Placement};
use jiff::Timestamp;

use super::rules::{Misconfigured, Rules};
use super::scope::{NoScope, PlacementScope, Sets};
use super::taints::{ClusterTaint, Regard, regard};
use crate::name::{ClusterName, NameError, Text};

/// The most names in a message.
const NAMED: usize = 10;

/// The properties of a cluster that affect the selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateCluster {
    pub name: ClusterName,
    pub labels: BTreeMap<String, String>,
    pub claims: BTreeMap<String, String>,
    pub taints: Vec<ClusterTaint>,
    pub deleting: bool,
}

impl CandidateCluster {
    pub fn read(object: &ManagedCluster) -> Result<Self, NameError> {
        let claims = object.status.iter().flat_map(|status| &status.cluster_claims);
        Ok(Self {
            name: ClusterName::parse(object.metadata.name.as_deref().unwrap_or_default())?,
            labels: object.metadata.labels.clone().unwrap_or_default(),
            claims: claims.map(|claim| (claim.name.clone(), claim.value.clone())).collect(),
            taints: object.spec.taints.iter().map(ClusterTaint::read).collect(),
            deleting: object.metadata.deletion_timestamp.is_some(),
        })
    }
}

/// Selected clusters, in order of name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedGroup {
    /// Empty if the group has no name.
    pub name: Text,
    pub clusters: Vec<ClusterName>,
}

/// A condition without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectionCondition {
    pub type_: &'static str,
    pub holds: bool,
    pub reason: &'static str,
    pub message: String,
}

/// Clusters by standing. They add up to the hub's clusters; the selected ones are also eligible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectionCounts {
    pub deleting: usize,
    pub out_of_scope: usize,
    pub unmatched: usize,
    pub kept_away: usize,
    pub eligible: usize,
    pub selected: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// `None` if the Placement is misconfigured: the previous decisions are kept.
    pub groups: Option<Vec<SelectedGroup>>,
    pub verdicts: [SelectionCondition; 2],
    pub counts: SelectionCounts,
    /// When the selection may change by time alone.
    pub recheck_at: Option<Timestamp>,
}

enum Eligibility {
    Deleting,
    OutOfScope,
    Unmatched,
    KeptAway,
    Eligible { until: Option<Timestamp>, last: bool },
}

/// Selects from `clusters`; `before` is the current selection.
pub fn choose<'a>(
    placement: &Placement,
    clusters: impl IntoIterator<Item = &'a CandidateCluster>,
    sets: Sets<'_>,
    before: &BTreeSet<ClusterName>,
    now: Timestamp,
) -> Chosen {
    let rules = match Rules::parse(placement) {
        Ok(rules) => rules,
        Err(why) => return Chosen::stays(&why),
    };
    let scope = match PlacementScope::of(&rules, sets) {
        Err(NoScope::Misconfigured(why)) => return Chosen::stays(&why),
        scope => scope,
    };
    let mut counts = SelectionCounts::default();
    let mut eligible = Vec::new();
    for cluster in clusters {
        let chosen = before.contains(&cluster.name);
        match standing(cluster, &rules, scope.as_ref().ok(), chosen, now) {
            Eligibility::Deleting => counts.deleting += 1,
            Eligibility::OutOfScope => counts.out_of_scope += 1,
            Eligibility::Unmatched => counts.unmatched += 1,
            Eligibility::KeptAway => counts.kept_away += 1,
            Eligibility::Eligible { until, last } => eligible.push((!chosen, last, cluster, until)),
        }
    }
    counts.eligible = eligible.len();
    eligible.sort_by_key(|(new, last, cluster, _)| (*new, *last, &cluster.name));
    eligible.truncate(rules.number.unwrap_or(usize::MAX));
    counts.selected = eligible.len();
    let recheck_at = eligible.iter().filter_map(|(.., until)| *until).min();
    let mut selected: Vec<&CandidateCluster> =
        eligible.into_iter().map(|(_, _, cluster, _)| cluster).collect();
    selected.sort_by_key(|cluster| &cluster.name);
    Chosen {
        groups: Some(groups(&rules, selected)),
        verdicts: [satisfied(&rules, &scope, counts), well_configured(&rules)],
        counts,
        recheck_at,
    }
}

/// The standing of a cluster. The order of the checks is the policy.
fn standing(
    cluster: &CandidateCluster,
    rules: &Rules,
    scope: Option<&PlacementScope<'_>>,
    chosen: bool,
    now: Timestamp,
) -> Eligibility {
    if cluster.deleting {
        return Eligibility::Deleting;
    }
    if !scope.is_some_and(|scope| scope.holds(&cluster.labels)) {
        return Eligibility::OutOfScope;
    }
    if !rules.matches(&cluster.labels, &cluster.claims) {
        return Eligibility::Unmatched;
    }
    match regard(&cluster.taints, &rules.tolerations, chosen, now) {
        Regard::KeptAway => Eligibility::KeptAway,
        Regard::Welcome { until, last } => Eligibility::Eligible { until, last },
    }
}

/// Named groups take the clusters that they select, in their order; the rest goes into groups
/// without a name. No group is larger than the configured size. If nothing is selected, there is
/// one empty group.
fn groups(rules: &Rules, selected: Vec<&CandidateCluster>) -> Vec<SelectedGroup> {
    let size = rules.group_size.of(selected.len()).max(1);
    let mut groups = Vec::new();
    let mut divide = |name: &Text, clusters: &[&CandidateCluster]| {
        let names = |part: &[&CandidateCluster]| part.iter().map(|cluster| cluster.name.clone()).collect();
        groups.extend(
            clusters.chunks(size).map(|part| SelectedGroup { name: name.clone(), clusters: names(part) }),
        );
    };
    let mut rest = selected;
    for (name, wanted) in &rules.groups {
        let (taken, left): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|cluster| wanted.matches(&cluster.labels, &cluster.claims));
        divide(name, &taken);
        rest = left;
    }
    divide(&"".into(), &rest);
    if groups.is_empty() {
        groups.push(SelectedGroup { name: "".into(), clusters: Vec::new() });
    }
    groups
}

fn satisfied(
    rules: &Rules,
    scope: &Result<PlacementScope<'_>, NoScope>,
    counts: SelectionCounts,
) -> SelectionCondition {
    let missing = rules.number.map_or(0, |number| number - counts.selected);
    let available = counts.unmatched + counts.kept_away + counts.eligible;
    let (holds, reason, message) = match scope {
        Err(NoScope::NotBound) => {
            let sets = some_of(rules.sets.iter().map(|name| &**name));
            let message = format!("None of ManagedClusterSets [{sets}] is bound to placement namespace");
            (false, "NoIntersection", message)
        }
        Err(NoScope::NoBinding | NoScope::Misconfigured(_)) => {
            let message = "No valid ManagedClusterSetBindings found in placement namespace".to_owned();
            (false, "NoManagedClusterSetBindings", message)
        }
        Ok(PlacementScope::EveryCluster) if available == 0 => {
            (false, "AllManagedClusterSetsEmpty", "The hub has no ManagedCluster".to_owned())
        }
        Ok(scope) if available == 0 => {
            let sets = some_of(scope.names());
            let message = format!("All ManagedClusterSets [{sets}] have no member ManagedCluster");
            (false, "AllManagedClusterSetsEmpty", message)
        }
        Ok(_) if counts.eligible == 0 => {
            let message = match counts.kept_away {
                0 => "No ManagedCluster matches any of the cluster predicate".to_owned(),
                away => format!("All ManagedClusters that match have taints that are not tolerated: {away}"),
            };
            (false, "NoManagedClusterMatched", message)
        }
        Ok(_) if missing == 0 => {
            (true, "AllDecisionsScheduled", "All cluster decisions scheduled".to_owned())
        }
        Ok(_) => (false, "NotAllDecisionsScheduled", format!("{missing} cluster decisions unscheduled")),
    };
    SelectionCondition { type_: conditions::PLACEMENT_SATISFIED, holds, reason, message }
}

fn well_configured(rules: &Rules) -> SelectionCondition {
    let mut message = "Placement configurations check pass".to_owned();
    if !rules.ignored.is_empty() {
        message.push_str("; not supported and ignored: ");
        message.push_str(&rules.ignored.join(", "));
    }
    let type_ = conditions::PLACEMENT_MISCONFIGURED;
    SelectionCondition { type_, holds: false, reason: "Succeedconfigured", message }
}

impl Chosen {
    fn stays(why: &Misconfigured) -> Self {
        let verdict = |type_, holds, reason, message| SelectionCondition { type_, holds, reason, message };
        let stays = "The placement is misconfigured; its decisions are kept".to_owned();
        Self {
            groups: None,
            verdicts: [
                verdict(conditions::PLACEMENT_SATISFIED, false, "NotAllDecisionsScheduled", stays),
                verdict(conditions::PLACEMENT_MISCONFIGURED, true, "Misconfigured", why.to_string()),
            ],
            counts: SelectionCounts::default(),
            recheck_at: None,
        }
    }
}

/// A list of bounded length.
fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let (shown, more) = names.split_at(names.len().min(NAMED));
    match more.len() {
        0 => shown.join(","),
        more => format!("{} and {more} more", shown.join(",")),
    }
}
