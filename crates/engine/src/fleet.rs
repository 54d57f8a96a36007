//! The snapshot lined up cluster by cluster: who selects it, who governs it, what it was told, what its works prove.
//!
//! Built once per pass, in time linear in the clusters. Everything behind this module works on positions in
//! [`Fleet::lines`], which are in order of cluster name.

mod known;
mod lineup;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use crate::by_cluster::ByCluster;
use crate::configs::{Overrides, Resolver, Revision, Wanted};
use crate::evidence::Evidence;
use crate::limit::Limit;
use crate::name::{ClusterName, PlacementName, Text};
use crate::observed::{
    Cluster, GroupKey, Instance, Observed, Pace, PlacementSpec, Recorded, Rollout, Selection, StatusFields,
    Unreachable, Work,
};
use crate::problem::Problem;
use crate::render::Templates;
pub use known::Known;
use known::{Knowledge, own_works};
use lineup::{Claims, Lineup};

/// One add-on's clusters and placements at one moment.
#[derive(Debug)]
pub struct Fleet<'a> {
    pub observed: &'a Observed,
    pub resolver: Resolver<'a>,
    /// We render the works; otherwise somebody else does.
    pub renders: bool,
    /// In order of cluster name.
    pub lines: Vec<Line<'a>>,
    /// The different things that are known of them.
    pub known: Vec<Known<'a>>,
    /// What users chose for their clusters, by position and in order.
    pub overridden: Vec<(usize, Overrides)>,
    /// Positions of all but those that are selected, have their instance and keep it.
    pub in_question: Vec<usize>,
    /// In the order of the add-on's list.
    pub governors: Vec<Governor<'a>>,
    /// The instances that no placement governs, as if one did.
    pub free: Governor<'a>,
    pub problems: Vec<Problem>,
}

/// One cluster that is selected for the add-on, or has an instance of it, in short.
///
/// Small, and with what nearly every decision asks: the objects themselves lie scattered, and are only fetched where something is written.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub name: &'a ClusterName,
    pub instance: Option<&'a Arc<Instance>>,
    known: u32,
    governor: u32,
    stage: u32,
    flags: Flags,
}

#[derive(Clone, Copy, Debug)]
pub enum Flag {
    /// The install strategy selects it.
    Selected,
    /// The hub has such a cluster.
    Present,
    /// The cluster is being deleted.
    Leaving,
    /// The cluster is annotated to get no add-on by itself.
    OptedOut,
    /// The hub has word from the cluster.
    Reachable,
    /// Its instance is being deleted.
    Terminating,
    /// Its instance belongs to an earlier add-on of this name.
    OtherOwner,
    /// Its works are all there, rendered from what it is told and for this instance, and nobody has changed them since.
    WorksStand,
    /// Its user chose configs for it.
    HasOverrides,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flags(u16);

impl Flags {
    fn set(&mut self, flag: Flag, on: bool) {
        self.0 |= u16::from(on) << (flag as u16);
    }
}

impl Line<'_> {
    pub fn is(&self, flag: Flag) -> bool {
        self.flags.0 & (1 << (flag as u16)) != 0
    }

    /// The place in [`Fleet::known`] of what follows from its status and its works.
    pub fn known_at(&self) -> usize {
        self.known as usize
    }

    /// The placement whose configs and strategy hold for it: the last in the list that selects it.
    pub fn governor(&self) -> Option<usize> {
        (self.governor != u32::MAX).then_some(self.governor as usize)
    }

    /// Its place in the order in which that placement's stages go.
    pub fn stage(&self) -> usize {
        self.stage as usize
    }

    /// It is selected, has its instance and keeps it.
    fn plainly_stays(&self) -> bool {
        let is_there = self.instance.is_some() && self.is(Flag::Present);
        is_there && self.is(Flag::Selected) && !self.is(Flag::Terminating) && !self.is(Flag::Leaving)
    }
}

/// One cluster with all that is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Member<'f> {
    line: &'f Line<'f>,
    known: &'f Known<'f>,
    pub overrides: Option<&'f Overrides>,
    clusters: &'f ByCluster<Cluster>,
}

impl<'f> Deref for Member<'f> {
    type Target = Line<'f>;

    fn deref(&self) -> &Line<'f> {
        self.line
    }
}

impl<'f> Member<'f> {
    /// Of its works: where we render them, ours only.
    pub fn own_works(&self, works: &'f [Work]) -> impl Iterator<Item = &'f Work> + Clone {
        own_works(works, self.known.prepared.as_ref())
    }

    /// What follows from its status and its works.
    pub fn known(&self) -> &'f Known<'f> {
        self.known
    }

    pub fn evidence(&self) -> &'f Evidence {
        &self.known.evidence
    }

    /// The status of its instance.
    pub fn status(&self) -> Option<&'f StatusFields> {
        self.known.status
    }

    pub fn offline(&self) -> Option<Unreachable> {
        if self.is(Flag::Reachable) { None } else { self.clusters.get(self.name)?.unreachable }
    }
}

/// A placement of the add-on's list and the clusters it governs.
#[derive(Debug)]
pub struct Governor<'a> {
    pub spec: &'a PlacementSpec,
    pub recorded: Option<&'a Recorded>,
    /// Revisions that the placement completed, oldest first.
    pub completed: &'a [Revision],
    pub desired: Wanted,
    /// Positions in [`Fleet::lines`], in order.
    pub members: Vec<usize>,
    /// The names of the stages, in order: decision groups that go one after another.
    pub stages: Vec<Stage>,
    pub canary: Option<Canary<'a>>,
    /// It exists; its clusters are known.
    pub known: bool,
    /// It exists, and which clusters it has is not certain.
    pub in_motion: bool,
    /// Some later placement in the list does not say for certain which clusters it takes from this one.
    pub later_uncertain: bool,
    /// Its clusters per decision group, where it says so.
    pub group_size: Option<Limit>,
    pub fault: Option<Problem>,
}

impl Governor<'_> {
    /// Whether the cluster at this position is one of the placement's canary clusters.
    pub fn in_canary(&self, position: usize) -> bool {
        self.canary.as_ref().is_some_and(|canary| canary.includes.get(position) == Some(&true))
    }
}

/// Clusters that must all have settled before those of the next stage start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    pub name: Text,
    /// Of a mandatory decision group: no failure is tolerated in it.
    pub mandatory: bool,
}

/// The clusters that go first.
#[derive(Debug)]
pub struct Canary<'a> {
    pub name: &'a PlacementName,
    /// `None`: no such placement.
    pub clusters: Option<Vec<&'a ClusterName>>,
    /// Its decisions do not add up to the count that it publishes.
    pub in_motion: Option<(usize, usize)>,
    /// By position in [`Fleet::lines`]: whether that cluster is one of them.
    pub includes: Vec<bool>,
    /// Positions of the canary clusters that are members; the others have no instance and cannot have.
    pub members: Vec<usize>,
}

impl<'a> Fleet<'a> {
    pub fn line_up(observed: &'a Observed) -> Self {
        let resolver = Resolver::new(observed);
        let mut templates = Templates::new(observed);
        let mut problems = observed.problems.clone();
        let mut governors: Vec<Governor<'a>> = Vec::new();
        let mut claims = Claims::new(observed);
        for (index, spec) in observed.addon.strategy.placements().iter().enumerate() {
            let selection = observed.placements.get(&spec.name);
            problems.extend(doubt(spec, selection));
            let desired = renderable(&mut templates, resolver.wanted_by(Some(spec)));
            governors.push(Governor::new(observed, spec, selection, desired));
            if let Some(selection) = selection {
                claims.enter(index, spec, selection);
            }
        }
        let mut later_uncertain = false;
        for governor in governors.iter_mut().rev() {
            governor.later_uncertain = later_uncertain;
            later_uncertain |= doubt(governor.spec, observed.placements.get(&governor.spec.name)).is_some();
        }
        for (governor, cycle) in governors.iter_mut().zip(canary_cycles(observed.addon.strategy.placements()))
        {
            if let Some(cycle) = cycle {
                problems.push(cycle.clone());
                governor.fault.get_or_insert(cycle);
            }
        }
        let renders = observed.renders_templates();
        let defaults = renderable(&mut templates, resolver.wanted_by(None));
        let mut knowledge = Knowledge::new(templates);
        let mut free = Governor::new(observed, &FREE, None, defaults);
        let Lineup { lines, overridden, in_question } =
            lineup::line_up(observed, &resolver, &mut knowledge, claims, &mut governors, &mut free);
        for governor in &mut governors {
            governor.canary = canary(observed, governor.spec, &lines);
        }
        let known = knowledge.into_all();
        Self { observed, resolver, renders, lines, known, overridden, in_question, governors, free, problems }
    }

    /// The cluster at this position.
    pub fn member(&self, position: usize) -> Option<Member<'_>> {
        let line = self.lines.get(position)?;
        let known = self.known.get(line.known_at())?;
        let own = line
            .is(Flag::HasOverrides)
            .then(|| self.overridden.binary_search_by_key(&position, |(at, _)| *at));
        let overrides =
            own.and_then(|found| self.overridden.get(found.ok()?)).map(|(_, overrides)| overrides);
        Some(Member { line, known, overrides, clusters: &self.observed.clusters })
    }

    /// Some listed placement does not say for certain which clusters it selects.
    pub fn uncertain(&self) -> bool {
        self.problems.iter().any(|problem| {
            matches!(problem, Problem::PlacementUnknown { .. } | Problem::PlacementInMotion { .. })
        })
    }
}

/// What is not certain about a placement's clusters.
fn doubt(spec: &PlacementSpec, selection: Option<&Selection>) -> Option<Problem> {
    let placement = spec.name.clone();
    let Some(selection) = selection else { return Some(Problem::PlacementUnknown { placement }) };
    let (published, decided) = selection.in_motion()?;
    Some(Problem::PlacementInMotion { placement, published, decided })
}

/// The strategy of instances that no placement governs: they follow the add-on's defaults at once.
static FREE: LazyLock<PlacementSpec> = LazyLock::new(|| PlacementSpec {
    name: PlacementName::new("", ""),
    configs: Vec::new(),
    version: None,
    install_namespace: None,
    rollout: Rollout::default(),
    fault: None,
});

impl<'a> Governor<'a> {
    fn new(
        observed: &'a Observed,
        spec: &'a PlacementSpec,
        selection: Option<&Selection>,
        desired: Wanted,
    ) -> Self {
        Self {
            spec,
            recorded: observed.addon.status.placements.get(&spec.name),
            completed: observed.revisions.completed.get(&spec.name).map_or(&[], Vec::as_slice),
            desired,
            members: Vec::with_capacity(selection.map_or(0, Selection::len)),
            stages: selection.map(|selection| stages(spec, selection)).unwrap_or_default(),
            canary: None,
            known: selection.is_some(),
            in_motion: selection.is_some_and(|selection| selection.in_motion().is_some()),
            later_uncertain: false,
            group_size: selection.and_then(|selection| selection.group_size),
            fault: spec.fault.clone(),
        }
    }
}

/// A revision that cannot be rendered is not one that anybody should be told.
fn renderable(templates: &mut Templates<'_>, wanted: Wanted) -> Wanted {
    let revision = wanted?;
    match templates.prepare(revision.pins().iter()) {
        Some(Err(problem)) => Err((*problem).clone()),
        Some(Ok(_)) | None => Ok(revision),
    }
}

/// Decision groups that go together, and whether they are mandatory.
struct Together {
    groups: Vec<usize>,
    mandatory: bool,
}

/// The order in which decision groups go: mandatory ones as listed, then the others, together or one by one.
fn group_order(spec: &PlacementSpec, selection: &Selection) -> Vec<Together> {
    let mut left: Vec<usize> = (0..selection.groups.len()).collect();
    let mut order = Vec::new();
    for key in &spec.rollout.mandatory {
        let (groups, others): (Vec<usize>, Vec<usize>) = left.into_iter().partition(|&index| match key {
            GroupKey::Index(wanted) => index == *wanted,
            GroupKey::Name(wanted) => selection.groups.get(index).is_some_and(|group| group.name == *wanted),
        });
        left = others;
        if !groups.is_empty() {
            order.push(Together { groups, mandatory: true });
        }
    }
    match spec.rollout.pace {
        Pace::PerGroup => {
            order.extend(left.into_iter().map(|index| Together { groups: vec![index], mandatory: false }));
        }
        Pace::AllAtOnce | Pace::Rolling(_) | Pace::RollingByGroupSize => {
            if !left.is_empty() {
                order.push(Together { groups: left, mandatory: false });
            }
        }
    }
    order
}

fn stages(spec: &PlacementSpec, selection: &Selection) -> Vec<Stage> {
    let name = |groups: &[usize]| match groups {
        [one] => match selection.groups.get(*one) {
            Some(group) if !group.name.is_empty() => format!("group {}", group.name),
            _ => format!("group {one}"),
        },
        _ => "the rest".to_owned(),
    };
    let order = group_order(spec, selection);
    order
        .iter()
        .map(|together| Stage { name: name(&together.groups).into(), mandatory: together.mandatory })
        .collect()
}

fn canary<'a>(observed: &'a Observed, spec: &'a PlacementSpec, lines: &[Line<'a>]) -> Option<Canary<'a>> {
    let name = spec.rollout.canary.as_ref()?;
    let selection = observed.placements.get(name);
    let clusters: Option<Vec<&ClusterName>> = selection.map(|selection| selection.clusters().collect());
    let in_motion = selection.and_then(Selection::in_motion);
    let mut includes = vec![false; lines.len()];
    let mut found: Vec<usize> = Vec::new();
    for &cluster in clusters.iter().flatten() {
        // Neighbours in the canary mostly are neighbours in the fleet.
        let next = found.last().map_or(0, |last| last + 1);
        let position = match lines.get(next) {
            Some(line) if line.name == cluster => Ok(next),
            _ => lines.binary_search_by(|line| line.name.cmp(cluster)),
        };
        if let Ok(position) = position
            && let Some(included) = includes.get_mut(position)
        {
            *included = true;
            found.push(position);
        }
    }
    found.sort_unstable();
    Some(Canary { name, clusters, in_motion, includes, members: found })
}

/// For each placement, the cycle of canary references that it is part of, if any.
fn canary_cycles(placements: &[PlacementSpec]) -> Vec<Option<Problem>> {
    let next: BTreeMap<&PlacementName, &PlacementName> = placements
        .iter()
        .filter_map(|spec| spec.rollout.canary.as_ref().map(|canary| (&spec.name, canary)))
        .collect();
    placements
        .iter()
        .map(|spec| {
            // Each placement has at most one canary, so following them either ends or comes back within the list's length.
            let mut path = vec![spec.name.clone()];
            let mut at = &spec.name;
            while let Some(&canary) = next.get(at) {
                path.push(canary.clone());
                if *canary == spec.name {
                    return Some(Problem::CanaryCycle { path });
                }
                if path.len() > placements.len() + 1 {
                    return None;
                }
                at = canary;
            }
            None
        })
        .collect()
}
