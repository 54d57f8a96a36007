//! Every cluster that is selected or has an instance, in order of name.

use std::iter::Peekable;
use std::vec;

use super::cohorts::Cohorts;
use super::facts::Claim;
use super::{FleetLine, group_order};
use crate::by_cluster::{Cursor, RowEntry};
use crate::name::ClusterName;
use crate::observed::{Cluster, InstallPlacement, InstallRule, Instance, Observed, Selection, Work};

/// The claims of the placements on clusters; of two on one cluster that of the later placement
/// counts.
pub(super) struct Claims<'a> {
    observed: &'a Observed,
    /// By the place of the instance among the instances: nearly every cluster that is selected has
    /// one.
    by_instance: Vec<Option<Claim>>,
    /// On clusters without an instance.
    others: Vec<(&'a ClusterName, Claim)>,
}

impl<'a> Claims<'a> {
    pub(super) fn of_placements(observed: &'a Observed) -> Self {
        let by_instance = vec![None; observed.instances.len()];
        let mut claims = Self { observed, by_instance, others: Vec::new() };
        let placements = observed.addon.strategy.placements();
        for (index, spec) in placements.iter().enumerate() {
            if let Some(selection) = observed.placements.get(&spec.name) {
                claims.enter(small(index), spec, selection);
            }
        }
        // A stable sort: of two claims on one cluster the later placement's is the last.
        claims.others.sort_by_key(|(name, _)| *name);
        claims.others.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                *earlier = *later;
            }
            same
        });
        for (index, spec) in placements.iter().enumerate() {
            for selection in spec.rollout.canaries().filter_map(|canary| observed.placements.get(canary)) {
                claims.mark_canary(small(index), selection);
            }
        }
        claims
    }

    fn enter(&mut self, governor: u32, spec: &InstallPlacement, selection: &'a Selection) {
        for (stage, together) in group_order(spec, selection).iter().enumerate() {
            let claim = Claim { governor, stage: small(stage), in_canary: false };
            for group in together.groups.iter().filter_map(|&index| selection.groups.get(index)) {
                let mut instances = self.observed.instances.cursor();
                for cluster in &group.clusters {
                    let at = instances.pass_by(cluster).and_then(|at| self.by_instance.get_mut(at));
                    match at {
                        Some(place) => *place = Some(claim),
                        None => self.others.push((cluster, claim)),
                    }
                }
            }
        }
    }

    fn mark_canary(&mut self, governor: u32, canary: &Selection) {
        for group in &canary.groups {
            let mut instances = self.observed.instances.cursor();
            for cluster in &group.clusters {
                let claim = match instances.pass_by(cluster) {
                    Some(at) => self.by_instance.get_mut(at).and_then(Option::as_mut),
                    None => {
                        let at = self.others.binary_search_by(|(name, _)| (*name).cmp(cluster)).ok();
                        at.and_then(|at| self.others.get_mut(at)).map(|(_, claim)| claim)
                    }
                };
                if let Some(claim) = claim.filter(|claim| claim.governor == governor) {
                    claim.in_canary = true;
                }
            }
        }
    }
}

/// Converts a count of clusters; more do not fit into memory.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Lines the clusters up, and sorts them into cohorts.
pub(super) fn line_up<'a>(claims: Claims<'a>, cohorts: &mut Cohorts<'a, '_>) -> Vec<FleetLine<'a>> {
    let mut lines = Vec::with_capacity(claims.by_instance.len() + claims.others.len());
    for row in ClusterRows::new(claims) {
        let cohort = cohorts.add(&row, small(lines.len()));
        lines.push(FleetLine { name: row.name, cohort });
    }
    lines
}

/// What the snapshot has of one cluster.
pub(super) struct ClusterRow<'a> {
    pub(super) name: &'a ClusterName,
    pub(super) claim: Option<Claim>,
    pub(super) selected: bool,
    pub(super) cluster: Option<RowEntry<'a, Cluster>>,
    pub(super) instance: Option<RowEntry<'a, Instance>>,
    pub(super) works: Option<RowEntry<'a, Vec<Work>>>,
}

/// All inputs are sorted by name, so they are merged instead of looked up.
struct ClusterRows<'a> {
    /// One for each instance.
    claims: vec::IntoIter<Option<Claim>>,
    others: Peekable<vec::IntoIter<(&'a ClusterName, Claim)>>,
    labelled: Peekable<vec::IntoIter<&'a ClusterName>>,
    clusters: Cursor<'a, Cluster>,
    instances: Cursor<'a, Instance>,
    works: Cursor<'a, Vec<Work>>,
}

impl<'a> ClusterRows<'a> {
    fn new(claims: Claims<'a>) -> Self {
        let Claims { observed, by_instance, others } = claims;
        let labelled: Vec<&'a ClusterName> = match &observed.addon.strategy {
            InstallRule::Labels(selector) => {
                let chosen =
                    observed.clusters.iter().filter(|(_, cluster)| selector.matches(&cluster.labels));
                chosen.map(|(name, _)| name).collect()
            }
            _ => Vec::new(),
        };
        Self {
            claims: by_instance.into_iter(),
            others: others.into_iter().peekable(),
            labelled: labelled.into_iter().peekable(),
            clusters: observed.clusters.cursor(),
            instances: observed.instances.cursor(),
            works: observed.works.cursor(),
        }
    }
}

impl<'a> Iterator for ClusterRows<'a> {
    type Item = ClusterRow<'a>;

    fn next(&mut self) -> Option<ClusterRow<'a>> {
        // Nearly always there is nothing but instances.
        let others = [self.others.peek().map(|(name, _)| *name), self.labelled.peek().copied()];
        let other = others.into_iter().flatten().min();
        let (name, instance, claim) = match self.instances.next_up_to(other) {
            Some((name, instance)) => (name, Some(instance), self.claims.next().flatten()),
            None => (other?, None, None),
        };
        let claim = claim.or_else(|| Some(self.others.next_if(|(claimed, _)| *claimed == name)?.1));
        let selected = self.labelled.next_if(|chosen| *chosen == name).is_some() || claim.is_some();
        let (cluster, works) = (self.clusters.take(name), self.works.take(name));
        let claim = claim.filter(|_| governable(cluster, instance.is_some()));
        Some(ClusterRow { name, claim, selected, cluster, instance, works })
    }
}

/// A cluster that does not exist, is being deleted, or opted out before it had an instance is not
/// governed.
fn governable(cluster: Option<RowEntry<'_, Cluster>>, has_instance: bool) -> bool {
    cluster
        .map(|cluster| cluster.summary)
        .is_some_and(|cluster| !cluster.deleting && (has_instance || !cluster.opted_out))
}
