//! Turns a selection into objects: which PlacementDecisions to create, update and delete, and the
//! Placement's status.
//!
//! Pure: compares the desired with the existing objects, and returns only differences.

use std::collections::{BTreeMap, BTreeSet};

use aviary_api::cluster::{DecisionGroupStatus, PlacementStatus};
use aviary_api::{Condition, Placement, PlacementDecision};
use jiff::Timestamp;

use super::choose::{Chosen, SelectionCondition};
use super::pages::{DecisionPage, Existing, lay_out};
use super::sequence::{Turn, announce, order};
use crate::name::ClusterName;

/// How long a message may be, in bytes.
const MESSAGE: usize = 1024;

/// One write of a PlacementDecision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionWrite {
    Create(DecisionPage),
    Fill { seen: ExistingDecision, clusters: Vec<ClusterName> },
    Delete(ExistingDecision),
}

/// The UID and version of the object to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingDecision {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
}

/// What to write for one placement, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewrite {
    /// A count to publish first, which shows readers that the decisions are being rewritten.
    pub announce: Option<i64>,
    pub steps: Vec<DecisionWrite>,
    pub status: Option<PlacementStatus>,
}

impl Rewrite {
    pub fn is_empty(&self) -> bool {
        self.announce.is_none() && self.steps.is_empty() && self.status.is_none()
    }
}

/// `decisions` are the objects with the placement's label, `taken` the numbers of all objects with
/// its name prefix.
pub fn rewrite<'a>(
    placement: &Placement,
    decisions: impl IntoIterator<Item = &'a PlacementDecision>,
    taken: &BTreeSet<u64>,
    chosen: &Chosen,
    now: Timestamp,
) -> Rewrite {
    let current = placement.status.clone().unwrap_or_default();
    let mut status =
        PlacementStatus { conditions: conditions(placement, &chosen.verdicts, now), ..current.clone() };
    let Some(groups) = &chosen.groups else {
        return Rewrite { status: (status != current).then_some(status), ..Rewrite::default() };
    };
    let existing: Vec<Existing<'_>> =
        decisions.into_iter().map(|decision| Existing::read(placement, decision)).collect();
    let name = placement.metadata.name.as_deref().unwrap_or_default();
    let pages = lay_out(name, groups, &existing, taken);
    status.number_of_selected_clusters = Some(whole(chosen.counts.selected));
    status.decision_groups = group_statuses(&pages);

    let (steps, turns): (Vec<DecisionWrite>, Vec<Turn<'_>>) =
        differences(&pages, &existing).into_iter().unzip();
    let order = order(&turns);
    let published = current.number_of_selected_clusters.and_then(|count| usize::try_from(count).ok());
    let standing = existing.iter().flat_map(|page| page.clusters.iter().copied().collect::<BTreeSet<_>>());
    let in_order = order.iter().filter_map(|index| turns.get(*index).cloned());
    let announced = announce(published.unwrap_or(0), standing, in_order, chosen.counts.selected);
    let mut steps: Vec<Option<DecisionWrite>> = steps.into_iter().map(Some).collect();
    Rewrite {
        announce: announced.map(whole),
        steps: order.iter().filter_map(|index| steps.get_mut(*index)?.take()).collect(),
        status: (announced.is_some() || status != current).then_some(status),
    }
}

/// The necessary writes: new pages, then changed pages, then unneeded ones.
fn differences<'a>(
    pages: &'a [DecisionPage],
    existing: &'a [Existing<'a>],
) -> Vec<(DecisionWrite, Turn<'a>)> {
    let mut there: BTreeMap<&str, &Existing<'_>> = existing.iter().map(|page| (page.name, page)).collect();
    let (mut creates, mut fills) = (Vec::new(), Vec::new());
    for page in pages {
        let wanted = || page.clusters.iter().map(ClusterName::as_str);
        let turn =
            |before: &[&'a str]| Turn { before: before.iter().copied().collect(), after: wanted().collect() };
        match there.remove(page.name.as_str()) {
            None => creates.push((DecisionWrite::Create(page.clone()), turn(&[]))),
            Some(old) if wanted().eq(old.clusters.iter().copied()) => {}
            Some(old) => {
                let clusters = page.clusters.clone();
                fills.push((
                    DecisionWrite::Fill { seen: ExistingDecision::of(old), clusters },
                    turn(&old.clusters),
                ));
            }
        }
    }
    // A page that is being deleted needs no write.
    let surplus = there.into_values().filter(|page| !page.deleting).map(|page| {
        let before = page.clusters.iter().copied().collect();
        (DecisionWrite::Delete(ExistingDecision::of(page)), Turn { before, after: BTreeSet::new() })
    });
    creates.into_iter().chain(fills).chain(surplus).collect()
}

impl ExistingDecision {
    fn of(page: &Existing<'_>) -> Self {
        Self { name: page.name.into(), uid: page.uid.into(), resource_version: page.resource_version.into() }
    }
}

fn group_statuses(pages: &[DecisionPage]) -> Vec<DecisionGroupStatus> {
    let of_one_group = pages.chunk_by(|one, other| one.group == other.group);
    let status = |pages: &[DecisionPage]| {
        let first = pages.first()?;
        Some(DecisionGroupStatus {
            decision_group_index: Some(whole(first.group)),
            decision_group_name: Some(first.group_name.to_string()),
            decisions: pages.iter().map(|page| page.name.clone()).collect(),
            clusters_count: Some(whole(pages.iter().map(|page| page.clusters.len()).sum())),
        })
    };
    of_one_group.filter_map(status).collect()
}

/// The placement's conditions, including ours. The time of a condition changes only with its
/// status.
fn conditions(placement: &Placement, verdicts: &[SelectionCondition], now: Timestamp) -> Vec<Condition> {
    let mut conditions = placement.status.as_ref().map_or_else(Vec::new, |status| status.conditions.clone());
    for verdict in verdicts {
        let mut message = verdict.message.clone();
        message.truncate(message.floor_char_boundary(MESSAGE));
        let status = if verdict.holds { "True" } else { "False" };
        let since = Condition::find(&conditions, verdict.type_)
            .filter(|old| old.status == status)
            .and_then(|old| old.last_transition_time.clone());
        let condition = Condition {
            type_: verdict.type_.into(),
            status: status.into(),
            reason: Some(verdict.reason.into()),
            message: Some(message),
            last_transition_time: Some(since.unwrap_or_else(|| format!("{now:.0}"))),
            observed_generation: placement.metadata.generation,
        };
        match conditions.iter_mut().find(|old| old.type_ == verdict.type_) {
            Some(old) => *old = condition,
            None => conditions.push(condition),
        }
    }
    conditions
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
