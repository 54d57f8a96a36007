//! The snapshot lined up cluster by cluster, and sorted into cohorts of clusters with the same
//! facts.
//!
//! Built once per pass, in time linear in the clusters. Everything behind this module decides by
//! cohort; positions in [`Fleet::lines`] are in order of cluster name.

mod cohorts;
mod facts;
mod lineup;

use std::collections::{BTreeMap, VecDeque};
use std::sync::LazyLock;

use crate::configs::{ConfigRef, Overrides, Resolver, Revision, Wanted};
use crate::limit::Limit;
use crate::name::{ClusterName, PlacementName, Text};
use crate::observed::{GroupKey, InstallPlacement, Observed, Pace, Recorded, Rollout, Selection};
use crate::problem::Problem;
use crate::render::Templates;
use crate::versions::MOST_VERSIONS;
pub use cohorts::Cohort;
use cohorts::Cohorts;
pub(crate) use facts::quiet_until;
pub use facts::{BudgetShare, ClusterFacts, InstanceFacts, WorkFacts, WorkOwner};
use lineup::{Claims, small};

/// One add-on's clusters and placements at one moment.
#[derive(Debug)]
pub struct Fleet<'a> {
    pub observed: &'a Observed,
    pub resolver: Resolver<'a>,
    /// We render the works; otherwise somebody else does.
    pub renders: bool,
    /// In order of cluster name.
    pub lines: Vec<FleetLine<'a>>,
    /// In the order in which their first members appear.
    pub cohorts: Vec<Cohort<'a>>,
    /// In the order of the add-on's list.
    pub governors: Vec<Governor<'a>>,
    /// The instances that no placement governs, as if one did.
    pub free: Governor<'a>,
    pub problems: Vec<Problem>,
}

/// One cluster that is selected for the add-on, or has an instance of it.
#[derive(Clone, Copy, Debug)]
pub struct FleetLine<'a> {
    pub name: &'a ClusterName,
    cohort: u32,
}

impl FleetLine<'_> {
    /// The place of its cohort in [`Fleet::cohorts`].
    pub fn cohort(&self) -> usize {
        self.cohort as usize
    }
}

/// A placement of the add-on's list and the clusters it governs.
#[derive(Debug)]
pub struct Governor<'a> {
    pub spec: &'a InstallPlacement,
    pub recorded: Option<&'a Recorded>,
    /// Revisions that the placement completed, oldest first.
    pub completed: &'a [Revision],
    /// Revisions that it completed and then rolled back from.
    pub withdrawn: &'a [Revision],
    pub desired: Wanted,
    /// The desired configs that cannot be used; on an OCM hub, where they are listed.
    pub unresolved: Vec<ConfigRef>,
    /// Places in [`Fleet::cohorts`], in order.
    pub cohorts: Vec<usize>,
    /// The names of the stages, in order: decision groups that go one after another.
    pub stages: Vec<GroupStage>,
    /// All must pass.
    pub canaries: Vec<Canary<'a>>,
    /// It exists.
    pub known: bool,
    /// It exists, but nothing is decided yet, or its decisions do not match its count.
    pub in_motion: bool,
    /// A later placement in the list is unknown or still changing, so it may take clusters from
    /// this one.
    pub later_uncertain: bool,
    /// Its clusters per decision group, where it says so.
    pub group_size: Option<Limit>,
    pub fault: Option<Problem>,
}

impl Governor<'_> {
    /// What it completed and has not withdrawn, oldest first. Desiring one of them again withdraws
    /// all that came after it, at once.
    pub(crate) fn standing_history(&self) -> &[Revision] {
        let back_to = self.desired.as_ref().ok().and_then(|desired| self.place_in_history(desired));
        back_to.and_then(|at| self.completed.get(..=at)).unwrap_or(self.completed)
    }

    /// What the desired revision withdraws: all that was completed after it.
    pub(crate) fn newly_withdrawn(&self) -> &[Revision] {
        self.completed.get(self.standing_history().len()..).unwrap_or_default()
    }

    /// This revision or, if it has been withdrawn, the newest that was completed and stands.
    pub(crate) fn standing(&self, revision: Option<&Revision>) -> Option<Revision> {
        let revision = revision?;
        let is_withdrawn = self.withdrawn.contains(revision) || self.newly_withdrawn().contains(revision);
        let stands = if is_withdrawn { self.standing_history().last() } else { None };
        Some(stands.unwrap_or(revision).clone())
    }

    fn place_in_history(&self, revision: &Revision) -> Option<usize> {
        self.completed.iter().position(|completed| completed == revision)
    }

    /// Its known good revision has never been everywhere yet.
    pub(crate) fn is_rolling_to_known_good(&self) -> bool {
        self.recorded.is_some_and(|recorded| {
            recorded.known_good.as_ref().is_some_and(|known_good| {
                recorded.applied.as_ref() != Some(known_good) && !self.completed.contains(known_good)
            })
        })
    }
}

/// Clusters that must all have settled before those of the next stage start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStage {
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
    /// Positions in [`Fleet::lines`] of those that are there, in order; the others have no instance
    /// and cannot have.
    pub members: Vec<u32>,
}

/// The longest value of a label.
const LONGEST_LABEL: usize = 63;

/// What of the add-on is more than the API, or its status, can hold.
fn limits(observed: &Observed, resolver: &Resolver<'_>) -> Vec<Problem> {
    let length = observed.addon.name.len();
    let name = (length > LONGEST_LABEL).then_some(Problem::AddOnNameTooLong { length });
    let count = resolver.offered.len();
    let many = observed.renders_templates() && count > MOST_VERSIONS;
    name.into_iter().chain(many.then_some(Problem::VersionsTooMany { count })).collect()
}

impl<'a> Fleet<'a> {
    /// The add-on's name does not fit into a label, so nothing can be written for it but its
    /// status.
    pub(crate) fn is_unnameable(&self) -> bool {
        self.observed.addon.name.len() > LONGEST_LABEL
    }

    pub fn line_up(observed: &'a Observed) -> Self {
        let resolver = Resolver::new(observed);
        let mut templates = Templates::new(observed);
        let mut problems = observed.problems.clone();
        if observed.served.is_ocm() {
            // All of them are used there.
            problems.retain(|problem| !matches!(problem, Problem::ConfigListedTwice { .. }));
        }
        problems.extend(limits(observed, &resolver));
        let mut governors = governors(observed, &resolver, &mut templates, &mut problems);
        let defaults = renderable(&mut templates, resolver.wanted_by(None));
        let mut free = Governor::new(observed, &FREE, None, defaults);
        if observed.served.is_ocm() {
            free.unresolved = resolver.unresolved(None);
        }
        let mut cohorts = Cohorts::new(&resolver, templates);
        let lines = lineup::line_up(Claims::of_placements(observed), &mut cohorts);
        let cohorts = cohorts.into_found();
        for (at, Cohort { facts, .. }) in cohorts.iter().enumerate() {
            match facts.governor().and_then(|index| governors.get_mut(index)) {
                Some(governor) => governor.cohorts.push(at),
                None if facts.instance.is_some() => free.cohorts.push(at),
                None => {}
            }
        }
        for governor in &mut governors {
            let names = governor.spec.rollout.canaries();
            governor.canaries = names.map(|name| canary(observed, name, &lines)).collect();
        }
        let renders = observed.renders_templates();
        Self { observed, resolver, renders, lines, cohorts, governors, free, problems }
    }

    /// The facts of the cluster at this position.
    /// Whether `status.supportedConfigs` of instances is ours to write: on an OCM hub, that of an
    /// add-on with its own manager belongs to that manager.
    pub(crate) fn owns_supported(&self) -> bool {
        self.renders || !self.observed.served.is_ocm()
    }

    pub fn facts(&self, position: usize) -> Option<&ClusterFacts<'a>> {
        self.cohort_at(position).map(|cohort| &cohort.facts)
    }

    pub(crate) fn cohort_at(&self, position: usize) -> Option<&Cohort<'a>> {
        self.cohorts.get(self.lines.get(position)?.cohort())
    }

    pub(crate) fn cohorts_of(&self, governor: &Governor<'a>) -> impl Iterator<Item = &Cohort<'a>> + Clone {
        governor.cohorts.iter().filter_map(|&at| self.cohorts.get(at))
    }

    /// The placement that governs clusters with these facts, or what stands in for one.
    pub fn governor_of(&self, facts: &ClusterFacts<'_>) -> &Governor<'a> {
        facts.governor().and_then(|index| self.governors.get(index)).unwrap_or(&self.free)
    }

    /// What users chose for their clusters: the different ones, in order of the first cluster that
    /// has them.
    pub fn overrides(&self) -> impl Iterator<Item = &Overrides> {
        self.cohorts.iter().filter_map(|cohort| cohort.facts.overrides())
    }

    /// The first few clusters of these cohorts, in order of name.
    pub(crate) fn first_names<'f>(
        &'f self,
        cohorts: impl Iterator<Item = &'f Cohort<'a>>,
        most: usize,
    ) -> Vec<&'a ClusterName> {
        let mut positions: Vec<u32> = cohorts.flat_map(|cohort| &cohort.members).copied().collect();
        if most < positions.len() {
            positions.select_nth_unstable(most);
            positions.truncate(most);
        }
        positions.sort_unstable();
        positions.into_iter().filter_map(|at| self.lines.get(at as usize)).map(|line| line.name).collect()
    }

    /// The first cluster of these cohorts, in order of name, and its cohort.
    pub(crate) fn first_of<'f>(
        &'f self,
        cohorts: impl Iterator<Item = &'f Cohort<'a>>,
    ) -> Option<(&'a ClusterName, &'f Cohort<'a>)> {
        let firsts = cohorts.filter_map(|cohort| Some((*cohort.members.iter().min()?, cohort)));
        let (at, cohort) = firsts.min_by_key(|(at, _)| *at)?;
        Some((self.lines.get(at as usize)?.name, cohort))
    }

    /// Whether a listed placement is unknown, undecided or still changing.
    pub(crate) fn uncertain(&self) -> bool {
        self.problems.iter().any(|problem| {
            matches!(
                problem,
                Problem::PlacementUnknown { .. }
                    | Problem::PlacementUndecided { .. }
                    | Problem::PlacementInMotion { .. }
            )
        })
    }
}

/// The listed placements without their clusters, which are not lined up yet.
fn governors<'a>(
    observed: &'a Observed,
    resolver: &Resolver<'a>,
    templates: &mut Templates<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Governor<'a>> {
    let placements = observed.addon.strategy.placements();
    let mut governors = Vec::with_capacity(placements.len());
    for spec in placements {
        let selection = observed.placements.get(&spec.name);
        problems.extend(doubt(spec, selection));
        let desired = renderable(templates, resolver.wanted_by(Some(spec)));
        let mut governor = Governor::new(observed, spec, selection, desired);
        if observed.served.is_ocm() {
            governor.unresolved = resolver.unresolved(Some(spec));
        }
        if let Some(problem) = governor.ignored_change(templates) {
            governor.desired = Err(problem);
        }
        governors.push(governor);
    }
    let mut later_uncertain = false;
    for governor in governors.iter_mut().rev() {
        governor.later_uncertain = later_uncertain;
        later_uncertain |= doubt(governor.spec, observed.placements.get(&governor.spec.name)).is_some();
    }
    for (governor, cycle) in governors.iter_mut().zip(canary_cycles(placements)) {
        if let Some(cycle) = cycle {
            problems.push(cycle.clone());
            governor.fault.get_or_insert(cycle);
        }
    }
    governors
}

/// Why a placement's clusters are uncertain, if they are.
fn doubt(spec: &InstallPlacement, selection: Option<&Selection>) -> Option<Problem> {
    let placement = spec.name.clone();
    let Some(selection) = selection else { return Some(Problem::PlacementUnknown { placement }) };
    if selection.is_undecided() {
        return Some(Problem::PlacementUndecided { placement });
    }
    let (published, decided) = selection.in_motion()?;
    Some(Problem::PlacementInMotion { placement, published, decided })
}

/// The strategy of instances that no placement governs: they follow the add-on's defaults at once.
static FREE: LazyLock<InstallPlacement> = LazyLock::new(|| InstallPlacement {
    name: PlacementName::new("", ""),
    configs: Vec::new(),
    version: None,
    install_namespace: None,
    rollout: Rollout::default(),
    fault: None,
    stated: None,
});

impl<'a> Governor<'a> {
    fn new(
        observed: &'a Observed,
        spec: &'a InstallPlacement,
        selection: Option<&Selection>,
        desired: Wanted,
    ) -> Self {
        Self {
            spec,
            recorded: observed.addon.status.placements.get(&spec.name),
            completed: observed.revisions.completed.get(&spec.name).map_or(&[], Vec::as_slice),
            withdrawn: observed.revisions.withdrawn.get(&spec.name).map_or(&[], Vec::as_slice),
            desired,
            unresolved: Vec::new(),
            cohorts: Vec::new(),
            stages: selection.map(|selection| stages(spec, selection)).unwrap_or_default(),
            canaries: Vec::new(),
            known: selection.is_some(),
            in_motion: selection.is_some_and(Selection::is_unsure),
            later_uncertain: false,
            group_size: selection.and_then(|selection| selection.group_size),
            fault: spec.fault.clone(),
        }
    }
}

impl Governor<'_> {
    /// What the desired revision changes and agents ignore, such as a Job under its old name. A
    /// revision that was everywhere before is never held up: rolling back must always work.
    fn ignored_change(&self, templates: &mut Templates<'_>) -> Option<Problem> {
        let desired = self.desired.as_ref().ok().filter(|desired| !self.completed.contains(desired))?;
        let recorded = self.recorded?;
        let bases = [&recorded.known_good, &recorded.applied].into_iter().flatten();
        let prepared = templates.prepare(desired.pins().iter())?.ok()?;
        bases.filter(|base| *base != desired).find_map(|base| {
            let before = templates.prepare(base.pins().iter())?.ok()?;
            let (object, why) = prepared.ignored_change(&before)?;
            let (template, object) = (prepared.template.clone(), object.to_owned());
            Some(Problem::CreatedOnce { template, object, why })
        })
    }
}

/// A revision that cannot be rendered must not be assigned.
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

/// The order in which decision groups go: mandatory ones as listed, then the others, together or
/// one by one.
fn group_order(spec: &InstallPlacement, selection: &Selection) -> Vec<Together> {
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

fn stages(spec: &InstallPlacement, selection: &Selection) -> Vec<GroupStage> {
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
        .map(|together| GroupStage { name: name(&together.groups).into(), mandatory: together.mandatory })
        .collect()
}

fn canary<'a>(observed: &'a Observed, name: &'a PlacementName, lines: &[FleetLine<'a>]) -> Canary<'a> {
    let selection = observed.placements.get(name);
    let clusters: Option<Vec<&ClusterName>> = selection.map(|selection| selection.clusters().collect());
    let in_motion = selection.and_then(Selection::in_motion);
    let mut members: Vec<u32> = Vec::new();
    for &cluster in clusters.iter().flatten() {
        // Neighbours in the canary mostly are neighbours in the fleet.
        let next = members.last().map_or(0, |last| *last as usize + 1);
        let position = match lines.get(next) {
            Some(line) if line.name == cluster => Ok(next),
            _ => lines.binary_search_by(|line| line.name.cmp(cluster)),
        };
        members.extend(position.ok().map(small));
    }
    members.sort_unstable();
    Canary { name, clusters, in_motion, members }
}

/// For each placement, a cycle of canary references that it is part of, if any: the shortest.
fn canary_cycles(placements: &[InstallPlacement]) -> Vec<Option<Problem>> {
    let next: BTreeMap<&PlacementName, Vec<&PlacementName>> =
        placements.iter().map(|spec| (&spec.name, spec.rollout.canaries().collect())).collect();
    placements.iter().map(|spec| cycle_of(&spec.name, &next)).collect()
}

fn cycle_of(start: &PlacementName, next: &BTreeMap<&PlacementName, Vec<&PlacementName>>) -> Option<Problem> {
    // By which placement each one was reached first.
    let mut from: BTreeMap<&PlacementName, &PlacementName> = BTreeMap::new();
    let mut pending: VecDeque<&PlacementName> = VecDeque::from([start]);
    while let Some(at) = pending.pop_front() {
        for &canary in next.get(at).into_iter().flatten() {
            if canary == start {
                let mut path = vec![start.clone(), at.clone()];
                let mut back = at;
                while let Some(&before) = from.get(back) {
                    path.push(before.clone());
                    back = before;
                }
                path.reverse();
                return Some(Problem::CanaryCycle { path });
            }
            if !from.contains_key(canary) {
                from.insert(canary, at);
                pending.push_back(canary);
            }
        }
    }
    None
}
