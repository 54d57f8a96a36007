//! Sorts clusters into cohorts: equivalence classes of clusters with the same facts.
//!
//! A cluster is sorted by a key, which is its facts with interned ids in place of objects. Facts
//! are made once per cohort, from the key and from what all clusters of the add-on share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use jiff::Timestamp;

use super::facts::{Claim, ClusterFacts, ClusterFactsOf, InstanceFacts, Unprobed, WorkFacts, WorkOwner};
use super::lineup::ClusterRow;
use crate::by_cluster::RowEntry;
use crate::clock::RevisionClock;
use crate::configs::{Overrides, Resolver, Revision};
use crate::evidence::{Evidence, carries_told, is_rendered_as_told, name_taken, told_same};
use crate::health::Leniency;
use crate::hooks::{self, HookWork};
use crate::name::TextId;
use crate::observed::{
    Instance, InstanceStatus, Maker, Observed, Refusal, RefusedWrite, Revisions, SoakMark, Work, WorkHashes,
    WorkState, WorkSummary, WorksSummary,
};
use crate::render::{Prepared, Rendering, Templates};
use crate::rollout::REPORTING_LAG;
use crate::shared::{ById, SharedId};
use crate::versions;

/// Clusters with the same facts. Rules decide for all of them at once; only the budget looks at
/// them one by one.
#[derive(Debug)]
pub struct Cohort<'a> {
    pub facts: ClusterFacts<'a>,
    /// Positions in [`super::Fleet::lines`], in order. Never empty.
    pub members: Vec<u32>,
}

/// A refusal is a place among the different ones.
type CohortKey = ClusterFactsOf<InstanceKey, u32>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct InstanceKey {
    status: SharedId,
    generation: i64,
    install_namespace: TextId,
    hosting: Option<TextId>,
    works: WorksKey,
    /// Since when its workloads are available, where a soak depends on it and it is news.
    available_since: Option<Timestamp>,
    /// Since when the hub has contact with its cluster again, if that was lost within a soak.
    returned: Option<Timestamp>,
    /// A place among the different overrides.
    overrides: Option<u32>,
    terminating: bool,
    guarded: bool,
    other_owner: bool,
    lacks_owner: bool,
    lacks_annotations: bool,
    made_by: Maker,
    made_by_ocm: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WorksKey {
    None,
    One(WorkKey),
    /// A place among the different lists of works.
    Several(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct WorkKey {
    state: SharedId,
    hashes: Option<SharedId>,
    owner: WorkOwner,
    untouched: bool,
}

impl WorkKey {
    fn of(work: WorkSummary, instance: TextId) -> Self {
        let WorkSummary { state, hashes, owner, untouched, available_since: _ } = work;
        let owner = match owner {
            None => WorkOwner::Nobody,
            Some(owner) if owner == instance => WorkOwner::Instance,
            Some(_) => WorkOwner::Other,
        };
        Self { state, hashes, owner, untouched }
    }
}

pub(super) struct Cohorts<'a, 'r> {
    resolver: &'r Resolver<'a>,
    addon: TextId,
    objects: ObjectsById<'a>,
    own: Interned<Arc<Overrides>>,
    works: Interned<Vec<WorkKey>>,
    refusals: Interned<Arc<Refusal>>,
    found: Vec<Cohort<'a>>,
    by_key: HashMap<CohortKey, u32, ById>,
    /// Neighbours are mostly in one cohort.
    last: Option<(CohortKey, u32)>,
}

impl<'a, 'r> Cohorts<'a, 'r> {
    pub(super) fn new(resolver: &'r Resolver<'a>, templates: Templates<'a>) -> Self {
        Self {
            resolver,
            addon: TextId::of(&templates.observed().addon.uid),
            objects: ObjectsById::new(templates),
            own: Interned::default(),
            works: Interned::default(),
            refusals: Interned::default(),
            found: Vec::new(),
            by_key: HashMap::default(),
            last: None,
        }
    }

    pub(super) fn into_found(self) -> Vec<Cohort<'a>> {
        self.found
    }

    /// Adds the cluster at the next position, and returns the place of its cohort.
    pub(super) fn add(&mut self, row: &ClusterRow<'a>, position: u32) -> u32 {
        let key = self.key(row);
        let at = match &self.last {
            Some((last, at)) if *last == key => *at,
            _ => {
                let known = self.by_key.get(&key).copied();
                let at = known.unwrap_or_else(|| self.found_cohort(key, row));
                self.last = Some((key, at));
                at
            }
        };
        if let Some(cohort) = self.found.get_mut(at as usize) {
            cohort.members.push(position);
        }
        at
    }

    fn found_cohort(&mut self, key: CohortKey, row: &ClusterRow<'a>) -> u32 {
        self.objects.enter(row);
        let instance = key.instance.and_then(|instance| {
            let own = instance.overrides.and_then(|at| self.own.get(at)).cloned();
            let works = match &instance.works {
                WorksKey::None => &[],
                WorksKey::One(work) => std::slice::from_ref(work),
                WorksKey::Several(at) => self.works.get(*at).map_or(&[][..], Vec::as_slice),
            };
            self.objects.facts(&instance, works, own, key.claim)
        });
        let ClusterFactsOf { selected, lacks_namespace, refusal, claim, cluster, offline, instance: _ } = key;
        let refusal = refusal.and_then(|at| self.refusals.get(at)).cloned();
        let facts = ClusterFactsOf { selected, lacks_namespace, refusal, claim, cluster, offline, instance };
        let at = super::lineup::small(self.found.len());
        self.found.push(Cohort { facts, members: Vec::new() });
        self.by_key.insert(key, at);
        at
    }

    fn key(&mut self, row: &ClusterRow<'a>) -> CohortKey {
        let instance = row.instance.map(|instance| {
            let summary = instance.summary;
            InstanceKey {
                status: summary.status,
                generation: summary.generation,
                install_namespace: summary.install_namespace,
                hosting: summary.hosting,
                works: self.works_key(row.works, summary.uid),
                available_since: self.available_since(row, summary.soak),
                returned: self.returned(row, summary.soak),
                overrides: if summary.has_own { self.overrides(row, instance.value) } else { None },
                terminating: summary.deleting,
                guarded: summary.guarded,
                other_owner: summary.owner.is_some_and(|owner| owner != self.addon),
                lacks_owner: summary.owner.is_none(),
                lacks_annotations: self.lacks_annotations(row, instance.value),
                made_by: summary.made_by,
                made_by_ocm: summary.made_by_ocm,
            }
        });
        let Observed { refused, without_namespace, .. } = self.observed();
        // Mostly nothing is refused.
        let refusal = if refused.is_empty() { None } else { self.refusal(row, instance.is_some()) };
        ClusterFactsOf {
            selected: row.selected,
            lacks_namespace: instance.is_none() && without_namespace.contains(row.name),
            refusal,
            claim: row.claim,
            cluster: row.cluster.map(|cluster| cluster.summary),
            offline: row.cluster.filter(|one| !one.summary.reachable).and_then(|one| one.value.unreachable),
            instance,
        }
    }

    /// What the hub refuses, as far as it still applies: an instance that is there need not be
    /// created, and one that is wanted again need not be deleted.
    fn refusal(&mut self, row: &ClusterRow<'a>, has_instance: bool) -> Option<u32> {
        let refusal = self.observed().refused.get(row.name)?;
        let is_leaving = !row.selected || row.cluster.is_some_and(|cluster| cluster.summary.deleting);
        let applies = match refusal.what {
            RefusedWrite::Create => !has_instance,
            RefusedWrite::Status | RefusedWrite::Work => has_instance,
            RefusedWrite::Delete => has_instance && is_leaving,
        };
        applies.then(|| self.refusals.intern(Arc::new(refusal.clone())))
    }

    fn lacks_annotations(&self, row: &ClusterRow<'a>, instance: &Instance) -> bool {
        let observed = self.observed();
        let cluster = row.cluster.filter(|cluster| cluster.summary.annotates && observed.served.is_ocm());
        cluster.is_some_and(|cluster| {
            instance.missing_annotations(cluster.value).next().is_some()
                && !observed.refused_annotations.contains(row.name)
        })
    }

    /// Left out where no soak depends on it, as below.
    fn returned(&self, row: &ClusterRow<'a>, recorded: SoakMark) -> Option<Timestamp> {
        let placements = self.observed().addon.strategy.placements();
        let spec = row.claim.and_then(|claim| placements.get(claim.governor as usize))?;
        let soak = spec.rollout.min_success_time;
        let cluster = row.cluster.filter(|cluster| !soak.is_zero() && cluster.summary.reachable)?;
        recorded.returned(cluster.value.reachable_since, soak.saturating_add(REPORTING_LAG))
    }

    /// Left out where no soak depends on it: it differs from cluster to cluster.
    fn available_since(&self, row: &ClusterRow<'a>, recorded: SoakMark) -> Option<Timestamp> {
        let placements = self.observed().addon.strategy.placements();
        let spec = row.claim.and_then(|claim| placements.get(claim.governor as usize))?;
        let works = row.works.filter(|_| !spec.rollout.min_success_time.is_zero())?;
        let since = match works.summary {
            WorksSummary::None => None,
            WorksSummary::One(work) if work.available_since.is_none() => None,
            WorksSummary::One(_) | WorksSummary::Several => {
                let hosting = row.instance.and_then(|instance| instance.value.hosting.as_deref());
                let renders = self.observed().renders_templates();
                let counted = works.value.iter().filter(|work| work.is_of(hosting, renders));
                counted.filter_map(|work| work.available_since).max()
            }
        };
        recorded.news(since)
    }

    fn works_key(&mut self, works: Option<RowEntry<'a, Vec<Work>>>, instance: TextId) -> WorksKey {
        let Some(works) = works else { return WorksKey::None };
        match works.summary {
            WorksSummary::None => WorksKey::None,
            WorksSummary::One(work) => WorksKey::One(WorkKey::of(work, instance)),
            WorksSummary::Several => {
                let keys = works.value.iter().map(|work| WorkKey::of(work.summary(), instance)).collect();
                WorksKey::Several(self.works.intern(keys))
            }
        }
    }

    fn overrides(&mut self, row: &ClusterRow<'a>, instance: &Instance) -> Option<u32> {
        let placements = self.observed().addon.strategy.placements();
        let spec = row.claim.and_then(|claim| placements.get(claim.governor as usize));
        let overrides = self.resolver.overrides(spec, instance)?;
        Some(self.own.intern(Arc::new(overrides)))
    }

    fn observed(&self) -> &'a Observed {
        self.objects.templates.observed()
    }
}

/// Different values, each with a number.
struct Interned<T> {
    values: Vec<T>,
    places: HashMap<T, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { values: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Interned<T> {
    fn intern(&mut self, value: T) -> u32 {
        let Self { values, places } = self;
        *places.entry(value).or_insert_with_key(|value| {
            values.push(value.clone());
            super::lineup::small(values.len() - 1)
        })
    }

    fn get(&self, at: u32) -> Option<&T> {
        self.values.get(at as usize)
    }
}

/// The objects behind the ids in keys, from which facts are made.
struct ObjectsById<'a> {
    templates: Templates<'a>,
    statuses: HashMap<SharedId, &'a InstanceStatus, ById>,
    states: HashMap<SharedId, &'a WorkState, ById>,
    hashes: HashMap<SharedId, &'a WorkHashes, ById>,
    namespaces: HashMap<TextId, &'a str, ById>,
    hosting: HashMap<TextId, &'a str, ById>,
    /// Aviary renders the works of the add-on.
    renders: bool,
}

impl<'a> ObjectsById<'a> {
    fn new(templates: Templates<'a>) -> Self {
        Self {
            renders: templates.observed().renders_templates(),
            templates,
            statuses: HashMap::default(),
            states: HashMap::default(),
            hashes: HashMap::default(),
            namespaces: HashMap::default(),
            hosting: HashMap::default(),
        }
    }

    fn enter(&mut self, row: &ClusterRow<'a>) {
        if let Some(RowEntry { summary, value }) = row.instance {
            self.statuses.insert(summary.status, &value.status);
            self.namespaces.insert(summary.install_namespace, &value.install_namespace);
            self.hosting.extend(summary.hosting.zip(value.hosting.as_deref()));
        }
        for work in row.works.iter().flat_map(|works| works.value.iter()) {
            self.states.insert(work.state.id(), &work.state);
            self.hashes.extend(work.hashes.as_ref().map(|hashes| (hashes.id(), hashes)));
        }
    }

    /// What follows from a key. `None`: its objects were never entered.
    fn facts(
        &mut self,
        key: &InstanceKey,
        works: &[WorkKey],
        overrides: Option<Arc<Overrides>>,
        claim: Option<Claim>,
    ) -> Option<InstanceFacts<'a>> {
        let status = *self.statuses.get(&key.status)?;
        let install_namespace = *self.namespaces.get(&key.install_namespace)?;
        let hosting = key.hosting.and_then(|hosting| self.hosting.get(&hosting)).copied();
        let works = self.works(works, hosting);
        let rendering = self.templates.prepare(status.told());
        let of_another = is_accepted(&works, rendering.as_ref(), status);
        let clock = current_clock(status, of_another && overrides.is_none());
        let has_arrived = clock.as_ref().is_some_and(|clock| clock.has_arrived);
        let leniency = self.leniency(status, overrides.as_deref(), claim, has_arrived);
        let may_lack_probes = clock.as_ref().is_none_or(RevisionClock::may_lack_probes);
        let mut evidence = self.evidence(
            status,
            &works,
            overrides.as_deref(),
            rendering.as_ref(),
            (leniency, may_lack_probes),
        );
        let accepted = may_lack_probes && of_another;
        if !accepted && let Some(taken) = first_taken(&works, rendering.as_ref()) {
            evidence.failure = Some(name_taken(&taken.name));
        }
        let works_stand = accepted
            || sole_work(&works, rendering.as_ref()).is_some_and(|(one, prepared)| {
                is_rendered_as_told(one, prepared, status, install_namespace)
                    && one.is_as_written()
                    && (may_lack_probes || !one.is_without_probes())
            });
        let &InstanceKey { generation, terminating, guarded, other_owner, available_since, .. } = key;
        let &InstanceKey { returned, lacks_owner, lacks_annotations, made_by, made_by_ocm, .. } = key;
        Some(InstanceFacts {
            status,
            generation,
            install_namespace,
            refused_hosting: hosting.filter(|_| self.renders),
            terminating,
            guarded,
            hook_work: HookWork::of(&self.templates.observed().addon.name, &works),
            other_owner,
            lacks_owner,
            lacks_annotations,
            made_by,
            made_by_ocm,
            overrides,
            clock,
            unprobed: unprobed(&works, rendering.as_ref()),
            rendering,
            evidence,
            works_stand,
            accepted,
            available_since,
            returned,
        })
    }

    /// The works that count for an instance that names this hosting cluster.
    fn works(&self, keys: &[WorkKey], hosting: Option<&str>) -> Vec<WorkFacts<'a>> {
        let works = keys.iter().filter_map(|work| self.work(work));
        works.filter(|work| work.state.is_of(hosting, self.renders)).collect()
    }

    fn work(&self, key: &WorkKey) -> Option<WorkFacts<'a>> {
        let state = self.states.get(&key.state)?;
        let hashes = key.hashes.and_then(|hashes| self.hashes.get(&hashes)).copied();
        Some(WorkFacts { state, hashes, owner: key.owner, untouched: key.untouched })
    }

    fn evidence(
        &self,
        status: &InstanceStatus,
        works: &[WorkFacts<'a>],
        overrides: Option<&Overrides>,
        rendering: Option<&Rendering>,
        (leniency, may_lack_probes): (Leniency, bool),
    ) -> Evidence {
        // A report on a work of a deleted instance proves nothing about this one.
        // Nor does one on the hooks that end it.
        let hooks = hooks::work_name(&self.templates.observed().addon.name);
        let is_own = |work: &&WorkFacts<'a>| {
            work.owner != WorkOwner::Other && *work.name != *hooks && work.belongs_to(rendering)
        };
        let own: Vec<WorkFacts<'a>> = works.iter().filter(is_own).copied().collect();
        // Only works without hashes are proved by their version.
        let version = own
            .iter()
            .any(|work| work.hashes.is_none() && work.version.is_some())
            .then(|| versions::of_revision(self.templates.observed(), &status.told_revision()))
            .flatten();
        Evidence::of(status, &own, overrides, rendering, version.as_ref(), leniency, may_lack_probes)
    }

    fn leniency(
        &self,
        status: &InstanceStatus,
        overrides: Option<&Overrides>,
        claim: Option<Claim>,
        has_arrived: bool,
    ) -> Leniency {
        let observed = self.templates.observed();
        let spec = claim.and_then(|claim| observed.addon.strategy.placements().get(claim.governor as usize));
        let is_told = |revision: &Revision| told_same(status, revision.pins(), overrides);
        // Until its placement has completed the revision, nothing may be missing.
        let has_completed = || {
            spec.is_none_or(|spec| {
                let recorded = observed.addon.status.placements.get(&spec.name);
                recorded.and_then(|recorded| recorded.applied.as_ref()).is_some_and(is_told)
            })
        };
        let Revisions { completed, withdrawn, .. } = &observed.revisions;
        let has_returned = spec.is_some_and(|spec| {
            withdrawn.get(&spec.name).is_some_and(|history| !history.is_empty())
                && completed.get(&spec.name).is_some_and(|history| history.iter().any(is_told))
        });
        Leniency { has_settled: has_arrived && has_completed(), has_returned }
    }
}

/// The first work of somebody else that has the name of one of ours.
fn first_taken<'w, 'a>(
    works: &'w [WorkFacts<'a>],
    rendering: Option<&Rendering>,
) -> Option<&'w WorkFacts<'a>> {
    let Some(Ok(prepared)) = rendering else { return None };
    works.iter().find(|work| work.is_foreign() && prepared.makes(&work.name))
}

/// Who rendered one of the instance's own works so that its health is not asked for.
fn unprobed(works: &[WorkFacts<'_>], rendering: Option<&Rendering>) -> Option<Unprobed> {
    let rendering = rendering?;
    let of_instance =
        |work: &&WorkFacts<'_>| work.owner == WorkOwner::Instance && work.belongs_to(Some(rendering));
    let makers = works.iter().filter(of_instance).filter_map(|work| match work {
        work if work.is_of_first() => Some(Unprobed::ByEarlierVersion),
        work if work.is_of_another() => Some(Unprobed::ByAnotherManager),
        _ => None,
    });
    makers.min_by_key(|maker| *maker == Unprobed::ByAnotherManager)
}

/// The only work, if the assigned revision renders to one and this is it.
fn sole_work<'w, 'a>(
    works: &'w [WorkFacts<'a>],
    rendering: Option<&'w Rendering>,
) -> Option<(&'w WorkFacts<'a>, &'w Prepared)> {
    let (Some(Ok(prepared)), [one]) = (rendering, works) else { return None };
    let is_it = prepared.works() == 1 && prepared.work_index(&one.name) == Some(0);
    is_it.then_some((one, prepared))
}

/// The clock of the assigned revision. One of another revision may be left from an earlier time,
/// when the works are another manager's.
fn current_clock(status: &InstanceStatus, may_be_stale: bool) -> Option<RevisionClock> {
    let is_current = |clock: &RevisionClock| *clock.revision == *status.told_revision().id();
    RevisionClock::carried_by(status).filter(|clock| !may_be_stale || is_current(clock))
}

/// Whether another manager rendered all works from the assigned revision.
fn is_accepted(works: &[WorkFacts<'_>], rendering: Option<&Rendering>, status: &InstanceStatus) -> bool {
    let Some(Ok(prepared)) = rendering else { return false };
    // Most works are ours.
    if !works.iter().any(WorkFacts::is_of_another) {
        return false;
    }
    let own: Vec<WorkFacts<'_>> = works.iter().filter(|work| work.belongs_to(rendering)).copied().collect();
    prepared.accepts_of_another(&own) && own.iter().all(|work| !work.deleting && carries_told(work, status))
}
