//! Every cluster that is selected or has an instance, in order of name.

use std::iter::Peekable;
use std::vec;

use super::known::Knowledge;
use super::{Flag, Flags, Governor, Line, group_order};
use crate::by_cluster::{Cursor, Entry};
use crate::configs::{Overrides, Resolver};
use crate::name::{self, ClusterName, same};
use crate::observed::{Cluster, InstallStrategy, Instance, Observed, PlacementSpec, Selection, Work};

/// Who selects a cluster, and where it stands in that placement's order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    governor: u32,
    stage: u32,
}

impl Claim {
    const NONE: Self = Self { governor: u32::MAX, stage: 0 };

    fn there(self) -> Option<Self> {
        (self.governor != u32::MAX).then_some(self)
    }
}

/// The claims of the placements on clusters; of two on one cluster that of the later placement counts.
pub(super) struct Claims<'a> {
    observed: &'a Observed,
    /// By the place of the instance among the instances: nearly every cluster that is selected has one.
    by_instance: Vec<Claim>,
    others: Vec<(&'a ClusterName, Claim)>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(observed: &'a Observed) -> Self {
        let by_instance = vec![Claim::NONE; observed.instances.len()];
        Self { observed, by_instance, others: Vec::new() }
    }

    /// Enters the clusters of a placement, which comes later than those that were entered before.
    pub(super) fn enter(&mut self, governor: usize, spec: &PlacementSpec, selection: &'a Selection) {
        for (stage, together) in group_order(spec, selection).iter().enumerate() {
            let claim = Claim { governor: small(governor), stage: small(stage) };
            for group in together.groups.iter().filter_map(|&index| selection.groups.get(index)) {
                let mut instances = self.observed.instances.cursor();
                for cluster in &group.clusters {
                    let at = instances.pass_by(cluster).and_then(|at| self.by_instance.get_mut(at));
                    match at {
                        Some(known) => *known = claim,
                        None => self.others.push((cluster, claim)),
                    }
                }
            }
        }
    }
}

/// A number that counts clusters or less: there is not the memory for more of them.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What is found while the clusters are lined up.
#[derive(Default)]
pub(super) struct Lineup<'a> {
    pub(super) lines: Vec<Line<'a>>,
    pub(super) overridden: Vec<(usize, Overrides)>,
    pub(super) in_question: Vec<usize>,
}

/// Lines the clusters up, and tells the placements which are theirs.
pub(super) fn line_up<'a>(
    observed: &'a Observed,
    resolver: &Resolver<'a>,
    knowledge: &mut Knowledge<'a>,
    claims: Claims<'a>,
    governors: &mut [Governor<'a>],
    free: &mut Governor<'a>,
) -> Lineup<'a> {
    let mut found = Lineup::default();
    found.lines.reserve_exact(observed.instances.len() + claims.others.len());
    for row in Rows::new(observed, claims) {
        let position = found.lines.len();
        let overrides = overrides(observed, resolver, &row);
        let line = line(observed, knowledge, &row, overrides.as_ref());
        found.overridden.extend(overrides.map(|overrides| (position, overrides)));
        if !line.plainly_stays() {
            found.in_question.push(position);
        }
        match line.governor().and_then(|index| governors.get_mut(index)) {
            Some(governor) => governor.members.push(position),
            None if line.instance.is_some() => free.members.push(position),
            None => {}
        }
        found.lines.push(line);
    }
    found
}

/// What the snapshot has of one cluster.
struct Row<'a> {
    name: &'a ClusterName,
    claim: Option<Claim>,
    selected: bool,
    cluster: Option<Entry<'a, Cluster>>,
    instance: Option<Entry<'a, Instance>>,
    works: Option<Entry<'a, Vec<Work>>>,
}

/// All inputs are in order of name, so they are merged and not looked up.
struct Rows<'a> {
    /// One for each instance.
    claims: vec::IntoIter<Claim>,
    others: Peekable<vec::IntoIter<(&'a ClusterName, Claim)>>,
    labelled: Peekable<vec::IntoIter<&'a ClusterName>>,
    clusters: Cursor<'a, Cluster>,
    instances: Cursor<'a, Instance>,
    works: Cursor<'a, Vec<Work>>,
}

impl<'a> Rows<'a> {
    fn new(observed: &'a Observed, claims: Claims<'a>) -> Self {
        let Claims { by_instance, mut others, .. } = claims;
        // A stable sort: of two claims on one cluster the later placement's stays last.
        others.sort_by_key(|(name, _)| *name);
        let labelled: Vec<&'a ClusterName> = match &observed.addon.strategy {
            InstallStrategy::Labels(selector) => {
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

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        // Nearly always there is nothing but instances.
        let others = [self.others.peek().map(|(name, _)| *name), self.labelled.peek().copied()];
        let other = others.into_iter().flatten().min();
        let (name, instance, mut claim) = match self.instances.next_up_to(other) {
            Some((name, instance)) => (name, Some(instance), self.claims.next().and_then(Claim::there)),
            None => (other?, None, None),
        };
        while let Some((_, next)) = self.others.next_if(|(claimed, _)| *claimed == name) {
            claim = Some(next);
        }
        let selected = self.labelled.next_if(|chosen| *chosen == name).is_some() || claim.is_some();
        let (cluster, works) = (self.clusters.take(name), self.works.take(name));
        Some(Row { name, claim, selected, cluster, instance, works })
    }
}

fn governor<'a>(row: &Row<'a>) -> Option<Claim> {
    row.claim.filter(|_| governable(row.cluster, row.instance))
}

fn overrides<'a>(observed: &'a Observed, resolver: &Resolver<'a>, row: &Row<'a>) -> Option<Overrides> {
    let instance = row.instance.filter(|instance| instance.glance.has_own)?;
    let placements = observed.addon.strategy.placements();
    let spec = governor(row).and_then(|claim| placements.get(claim.governor as usize));
    resolver.overrides(spec, instance.value)
}

fn line<'a>(
    observed: &Observed,
    knowledge: &mut Knowledge<'a>,
    row: &Row<'a>,
    overrides: Option<&Overrides>,
) -> Line<'a> {
    let &Row { name, selected, cluster, instance, works, .. } = row;
    let claim = governor(row).unwrap_or(Claim::NONE);
    let known = knowledge.of(instance, works, overrides);
    let rendered_as_told = knowledge.get(known).is_some_and(|known| known.rendered_as_told);
    let mut flags = Flags::default();
    flags.set(Flag::Selected, selected);
    if let Some(Entry { glance, .. }) = cluster {
        flags.set(Flag::Present, true);
        flags.set(Flag::Leaving, glance.deleting);
        flags.set(Flag::OptedOut, glance.opted_out);
        flags.set(Flag::Reachable, glance.reachable);
    }
    if let Some(instance) = instance {
        flags.set(Flag::Terminating, instance.glance.deleting);
        flags.set(Flag::OtherOwner, has_other_owner(instance, observed));
        flags.set(Flag::WorksStand, rendered_as_told && is_as_written(instance, works));
        flags.set(Flag::HasOverrides, overrides.is_some());
    }
    Line {
        name,
        instance: instance.map(|instance| instance.value),
        known: small(known),
        governor: claim.governor,
        stage: claim.stage,
        flags,
    }
}

/// A cluster that is not there, is going, or was opted out before it had an instance counts nowhere.
fn governable(cluster: Option<Entry<'_, Cluster>>, instance: Option<Entry<'_, Instance>>) -> bool {
    cluster
        .map(|cluster| cluster.glance)
        .is_some_and(|cluster| !cluster.deleting && (instance.is_some() || !cluster.opted_out))
}

fn has_other_owner(instance: Entry<'_, Instance>, observed: &Observed) -> bool {
    let owner = instance.glance.owner;
    owner != 0
        && owner != name::address(&observed.addon.uid)
        && instance.value.owner.as_ref().is_some_and(|owner| !same(owner, &observed.addon.uid))
}

/// Its only work was written for this instance, and nobody has changed it since.
fn is_as_written(instance: Entry<'_, Instance>, works: Option<Entry<'_, Vec<Work>>>) -> bool {
    let Some(works) = works else { return false };
    let is_owner = || {
        let owner = works.value.first().and_then(|work| work.owner.as_ref());
        owner.is_some_and(|owner| same(owner, &instance.value.uid))
    };
    works.glance.untouched && (works.glance.owner == instance.glance.uid || is_owner())
}
