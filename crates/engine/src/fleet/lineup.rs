//! Every cluster that is selected or has an instance, in order of name.

use std::iter::Peekable;
use std::sync::Arc;
use std::{collections::btree_map, vec};

use super::known::Knowledge;
use super::{Claim, Member};
use crate::configs::Resolver;
use crate::evidence::is_as_written_for;
use crate::name::{ClusterName, same};
use crate::observed::{Cluster, InstallStrategy, Instance, Observed, Work};
use crate::shared::Shared;

/// How many clusters are fetched together.
const TOGETHER: usize = 64;

/// The members, each with the claim of the last placement that selects it.
///
/// The objects of a large fleet lie scattered over more memory than a cache holds. What is needed of them is read for many clusters in one
/// go, so that the memory works on many of them at a time; only then are they looked at one by one.
pub(super) fn members<'a>(
    observed: &'a Observed,
    resolver: &Resolver<'a>,
    knowledge: &mut Knowledge<'a>,
    claims: Vec<(&'a ClusterName, Claim)>,
) -> Vec<Member<'a>> {
    let mut rows = Rows::new(observed, claims);
    let mut members = Vec::with_capacity(observed.instances.len().max(rows.claims.len()));
    let mut together: Vec<Row<'a>> = Vec::with_capacity(TOGETHER);
    let mut glances: Vec<Glance<'a>> = Vec::with_capacity(TOGETHER);
    loop {
        together.extend(rows.by_ref().take(TOGETHER));
        if together.is_empty() {
            return members;
        }
        glances.extend(together.iter().map(Glance::at));
        for (row, glance) in together.drain(..).zip(glances.drain(..)) {
            members.push(member(observed, resolver, knowledge, &row, &glance));
        }
    }
}

/// What the snapshot has of one cluster.
struct Row<'a> {
    name: &'a ClusterName,
    claim: Option<Claim>,
    selected: bool,
    cluster: Option<&'a Cluster>,
    instance: Option<&'a Instance>,
    works: Option<&'a Vec<Work>>,
}

/// All inputs are in order of name, so they are merged and not looked up.
struct Rows<'a> {
    claims: Peekable<vec::IntoIter<(&'a ClusterName, Claim)>>,
    labelled: Peekable<vec::IntoIter<&'a ClusterName>>,
    clusters: Peekable<btree_map::Iter<'a, ClusterName, Arc<Cluster>>>,
    instances: Peekable<btree_map::Iter<'a, ClusterName, Arc<Instance>>>,
    works: Peekable<btree_map::Iter<'a, ClusterName, Arc<Vec<Work>>>>,
}

impl<'a> Rows<'a> {
    fn new(observed: &'a Observed, mut claims: Vec<(&'a ClusterName, Claim)>) -> Self {
        // A stable sort: of two claims on one cluster the later placement's stays last.
        claims.sort_by_key(|(name, _)| *name);
        let labelled: Vec<&'a ClusterName> = match &observed.addon.strategy {
            InstallStrategy::Labels(selector) => {
                let chosen = observed.clusters.values().filter(|cluster| selector.matches(&cluster.labels));
                chosen.map(|cluster| &cluster.name).collect()
            }
            _ => Vec::new(),
        };
        Self {
            claims: claims.into_iter().peekable(),
            labelled: labelled.into_iter().peekable(),
            clusters: observed.clusters.iter().peekable(),
            instances: observed.instances.iter().peekable(),
            works: observed.works.iter().peekable(),
        }
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        let heads = [
            self.claims.peek().map(|(name, _)| *name),
            self.labelled.peek().copied(),
            self.instances.peek().map(|(name, _)| *name),
        ];
        let name = heads.into_iter().flatten().min()?;
        let mut claim = None;
        while let Some((_, next)) = self.claims.next_if(|(claimed, _)| *claimed == name) {
            claim = Some(next);
        }
        let selected = self.labelled.next_if(|chosen| *chosen == name).is_some() || claim.is_some();
        let instance = self.instances.next_if(|(at, _)| *at == name).map(|(_, instance)| &**instance);
        while self.clusters.next_if(|(at, _)| *at < name).is_some() {}
        let cluster = self.clusters.next_if(|(at, _)| *at == name).map(|(_, cluster)| &**cluster);
        while self.works.next_if(|(at, _)| *at < name).is_some() {}
        let works = self.works.next_if(|(at, _)| *at == name).map(|(_, works)| &**works);
        Some(Row { name, claim, selected, cluster, instance, works })
    }
}

/// What is read of a cluster's objects at the first look: little, and of each of them something.
struct Glance<'a> {
    works: &'a [Work],
    /// The addresses of the state and of the hashes of the first of its works.
    work: [usize; 2],
    generation: i64,
    terminating: bool,
    has_own: bool,
    leaving: bool,
    reachable: bool,
}

impl<'a> Glance<'a> {
    fn at(row: &Row<'a>) -> Self {
        let works = row.works.map_or(&[][..], Vec::as_slice);
        Self {
            works,
            work: works.first().map_or([0; 2], |work| {
                [work.state.address(), work.hashes.as_ref().map_or(0, Shared::address)]
            }),
            generation: row.instance.map_or(0, |instance| instance.generation),
            terminating: row.instance.is_some_and(|instance| instance.deleting),
            has_own: row.instance.is_some_and(Instance::has_own),
            leaving: row.cluster.is_some_and(|cluster| cluster.deleting),
            reachable: row.cluster.is_some_and(|cluster| cluster.unreachable.is_none()),
        }
    }
}

fn member<'a>(
    observed: &Observed,
    resolver: &Resolver<'a>,
    knowledge: &mut Knowledge<'a>,
    row: &Row<'a>,
    glance: &Glance<'a>,
) -> Member<'a> {
    let &Row { name, claim, selected, cluster, instance, .. } = row;
    let &Glance { works, work, generation, terminating, has_own, leaving, reachable } = glance;
    let claim = claim.filter(|_| governable(cluster, instance));
    let governor = claim.map(|claim| claim.governor);
    let overrides = instance.filter(|_| has_own).and_then(|instance| {
        let spec = governor.and_then(|index| observed.addon.strategy.placements().get(index));
        resolver.overrides(spec, instance).map(Box::new)
    });
    let known = knowledge.of(instance, works, work, overrides.as_deref());
    let works_stand = known.rendered_as_told
        && instance.is_some_and(|instance| works.iter().all(|work| is_as_written_for(work, instance)));
    let owner = instance.and_then(|instance| instance.owner.as_ref());
    Member {
        name,
        cluster,
        instance,
        works,
        known,
        generation,
        selected,
        leaving,
        reachable,
        terminating,
        other_owner: owner.is_some_and(|owner| !same(owner, &observed.addon.uid)),
        works_stand,
        governor,
        stage: claim.map_or(0, |claim| claim.stage),
        overrides,
    }
}

/// A cluster that is not there, is going, or was opted out before it had an instance counts nowhere.
fn governable(cluster: Option<&Cluster>, instance: Option<&Instance>) -> bool {
    cluster.is_some_and(|cluster| !cluster.deleting && (instance.is_some() || !cluster.opted_out))
}
