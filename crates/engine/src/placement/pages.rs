//! Which PlacementDecision contains which clusters: pages of at most a hundred.
//!
//! Owns the layout. A page belongs to one group for as long as it exists, and a cluster stays on
//! its page while it stays in its group. So a cluster that joins or leaves costs one page write,
//! whatever the size of the fleet.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use aviary_api::names::labels;
use aviary_api::{Placement, PlacementDecision};

use super::choose::SelectedGroup;
use crate::name::{ClusterName, Text};

/// How many clusters a page holds at most.
pub(crate) const PAGE: usize = 100;

/// An existing PlacementDecision with the placement's label.
#[derive(Clone, Debug)]
pub(crate) struct Existing<'a> {
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
    pub(crate) deleting: bool,
    pub(crate) clusters: Vec<&'a str>,
    /// Its number and its group; `None` if it cannot be reused.
    place: Option<(u64, (usize, &'a str))>,
}

impl<'a> Existing<'a> {
    pub(crate) fn read(placement: &Placement, decision: &'a PlacementDecision) -> Self {
        let metadata = &decision.metadata;
        let label = |key: &str| metadata.labels.as_ref()?.get(key).map(String::as_str);
        let owned = || {
            let owners = metadata.owner_references.iter().flatten();
            owners.into_iter().any(|owner| Some(&owner.uid) == placement.metadata.uid.as_ref())
        };
        let name = metadata.name.as_deref().unwrap_or_default();
        let deleting = metadata.deletion_timestamp.is_some();
        let place = || {
            let number = number(placement.metadata.name.as_deref().unwrap_or_default(), name)?;
            let index = label(labels::DECISION_GROUP_INDEX)?;
            let group = index.parse::<usize>().ok().filter(|group| group.to_string() == index)?;
            (owned() && !deleting).then_some((number, (group, label(labels::DECISION_GROUP_NAME)?)))
        };
        Self {
            name,
            uid: metadata.uid.as_deref().unwrap_or_default(),
            resource_version: metadata.resource_version.as_deref().unwrap_or_default(),
            deleting,
            clusters: clusters(decision).collect(),
            place: place(),
        }
    }
}

/// The cluster names in a decision, unchecked.
pub fn clusters(decision: &PlacementDecision) -> impl Iterator<Item = &str> {
    let decided = decision.status.iter().flat_map(|status| &status.decisions);
    decided.map(|decided| decided.cluster_name.as_str())
}

/// The name prefix of a placement's decisions.
pub fn prefix(placement: &str) -> String {
    format!("{placement}-decision-")
}

/// The number of a decision of the placement.
pub fn number(placement: &str, decision: &str) -> Option<u64> {
    let digits = decision.strip_prefix(&prefix(placement))?;
    digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
}

/// A desired page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionPage {
    pub name: String,
    pub group: usize,
    pub group_name: Text,
    pub clusters: Vec<ClusterName>,
}

/// Distributes the groups over pages. New pages cannot use the numbers in `taken`.
pub(crate) fn lay_out(
    placement: &str,
    groups: &[SelectedGroup],
    existing: &[Existing<'_>],
    taken: &BTreeSet<u64>,
) -> Vec<DecisionPage> {
    let mut of_group: BTreeMap<(usize, &str), BTreeMap<u64, &Existing<'_>>> = BTreeMap::new();
    for page in existing {
        if let Some((number, group)) = page.place {
            of_group.entry(group).or_default().insert(number, page);
        }
    }
    let mut free = (1..).filter(|number| !taken.contains(number));
    let mut pages = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let old = of_group.remove(&(index, &*group.name)).unwrap_or_default();
        let needed = group.clusters.len().div_ceil(PAGE).max(1);
        let (mut kept, mut homeless) = settle(group, &old, needed);
        let new = needed - kept.len();
        kept.extend(free.by_ref().take(new).map(|number| (number, Vec::new())));
        pages.extend(kept.into_iter().map(|(number, mut clusters)| {
            let room = PAGE - clusters.len();
            clusters.extend(homeless.by_ref().take(room));
            clusters.sort();
            let name = format!("{}{number}", prefix(placement));
            DecisionPage { name, group: index, group_name: group.name.clone(), clusters }
        }));
    }
    pages
}

/// The pages of a group that are kept, with their clusters that are still in the group; and the
/// clusters without a page.
fn settle(
    group: &SelectedGroup,
    old: &BTreeMap<u64, &Existing<'_>>,
    needed: usize,
) -> (BTreeMap<u64, Vec<ClusterName>>, impl Iterator<Item = ClusterName>) {
    let mut home: HashMap<&str, u64> = HashMap::new();
    for (number, page) in old.iter().rev() {
        home.extend(page.clusters.iter().map(|cluster| (*cluster, *number)));
    }
    let mut stays: BTreeMap<u64, usize> = old.keys().map(|number| (*number, 0)).collect();
    for number in group.clusters.iter().filter_map(|cluster| home.get(cluster.as_str())) {
        *stays.entry(*number).or_default() += 1;
    }
    // If there are more pages than needed, the fullest are kept.
    let mut best: Vec<(u64, usize)> = stays.into_iter().collect();
    best.sort_by_key(|(number, stays)| (Reverse(*stays), *number));
    let mut kept: BTreeMap<u64, Vec<ClusterName>> =
        best.into_iter().take(needed).map(|(number, _)| (number, Vec::new())).collect();
    let mut homeless = Vec::new();
    for cluster in &group.clusters {
        let page = home.get(cluster.as_str()).and_then(|number| kept.get_mut(number));
        match page.filter(|page| page.len() < PAGE) {
            Some(page) => page.push(cluster.clone()),
            None => homeless.push(cluster.clone()),
        }
    }
    (kept, homeless.into_iter())
}
