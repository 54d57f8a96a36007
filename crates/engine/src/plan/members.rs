//! Decides by cohort what to write and why, and drafts the writes by cluster.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;

use super::{ClusterReport, Drafts, GuardWrite, StatusWrite, Step, Why, Write, works};
use crate::by_cluster::{ByCluster, Cursor};
use crate::explain::{Decision, Wait};
use crate::fleet::{ClusterFacts, Cohort, Fleet, InstanceFacts};
use crate::hooks;
use crate::install::{Install, adoption};
use crate::name::{ClusterName, Text};
use crate::observed::{Cluster, InstallRule, Instance, InstanceStatus, RefusedWrite, StatusFields, Work};
use crate::rollout::{Move, MoveRun, PlacementOutcome};
use crate::status;

pub(super) fn decide(
    fleet: &Fleet<'_>,
    install: &Install,
    outcomes: &[PlacementOutcome],
    free: &PlacementOutcome,
    now: Timestamp,
    drafts: &mut Drafts,
) -> Vec<ClusterReport> {
    let mut moves: Vec<&[MoveRun]> = vec![&[]; fleet.cohorts.len()];
    let governors = fleet.governors.iter().chain([&fleet.free]);
    for (governor, outcome) in governors.zip(outcomes.iter().chain([free])) {
        for (&at, runs) in governor.cohorts.iter().zip(&outcome.moves) {
            moves[at] = runs;
        }
    }
    let scribe = Scribe::new(fleet, now);
    let decided = fleet.cohorts.iter().zip(&install.decisions).zip(moves);
    let mut answers: Vec<CohortAnswers> =
        decided.map(|((cohort, installed), runs)| scribe.answers(cohort, installed.as_ref(), runs)).collect();
    let mut objects = ObjectCursors {
        clusters: &fleet.observed.clusters,
        instances: fleet.observed.instances.cursor(),
        works: fleet.observed.works.cursor(),
        owns_supported: fleet.owns_supported(),
    };
    let mut reports = Vec::with_capacity(fleet.lines.len());
    for line in &fleet.lines {
        let Some(answer) = answers.get_mut(line.cohort()).and_then(CohortAnswers::next) else { continue };
        if let Some(next) = &answer.next
            && (next.status.is_some() || next.writes_works || next.metadata.is_some())
            && let Some(facts) = fleet.cohorts.get(line.cohort()).and_then(|one| one.facts.instance.as_ref())
        {
            objects.write(line.name, facts, next, drafts);
        }
        reports.push(ClusterReport { cluster: line.name.clone(), why: Arc::clone(&answer.why) });
    }
    reports
}

/// The answers for the clusters of a cohort, in order of name.
struct CohortAnswers {
    /// Each answer with the number of clusters that still get it; the next one first.
    runs: Vec<(usize, ClusterAnswer)>,
    at: usize,
}

struct ClusterAnswer {
    /// `None` if there is no instance to write to: it does not exist, is being deleted, or has
    /// another owner.
    next: Option<Next>,
    why: Arc<Why>,
}

struct Next {
    /// The new status, if it differs from the current one.
    status: Option<InstanceStatus>,
    /// The new status assigns another revision.
    starts: bool,
    /// Its works have to be written. They are rendered from the current status of the instance,
    /// never from the new one.
    writes_works: bool,
    /// Its metadata has to be written. Its status is not, in this pass: each write is conditional
    /// on the instance being unchanged.
    metadata: Option<Metadata>,
    /// Also those of an earlier version of Aviary, which are otherwise left as they are.
    reprobes: bool,
}

#[derive(Clone, Copy)]
struct Metadata {
    /// Its finalizer is put on.
    guards: bool,
    /// The add-on becomes its owner.
    owns: bool,
    marker: Option<&'static str>,
    /// It gets the annotations of its cluster.
    annotates: bool,
}

impl Metadata {
    fn write(self, instance: &Instance, cluster: Option<&Cluster>) -> Write {
        let finalizers = self.guards.then(|| hooks::draft::guarded(instance));
        let plain = GuardWrite::new(instance, finalizers, None);
        let missing = cluster.filter(|_| self.annotates).map(|cluster| instance.missing_annotations(cluster));
        let annotations =
            missing.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        Write::Guard(GuardWrite { owns: self.owns, marker: self.marker, annotations, ..plain })
    }
}

impl CohortAnswers {
    fn next(&mut self) -> Option<&ClusterAnswer> {
        while self.runs.get(self.at)?.0 == 0 {
            self.at += 1;
        }
        let (left, answer) = self.runs.get_mut(self.at)?;
        *left -= 1;
        Some(answer)
    }
}

/// Computes the reason and the next status of each cohort.
struct Scribe<'f> {
    fleet: &'f Fleet<'f>,
    now: Timestamp,
    /// Some placement is unknown or still changing.
    unsure: bool,
}

impl<'f> Scribe<'f> {
    fn new(fleet: &'f Fleet<'f>, now: Timestamp) -> Self {
        let unsure = match &fleet.observed.addon.strategy {
            InstallRule::Placements(_) => fleet.uncertain(),
            InstallRule::Unusable(_) => true,
            InstallRule::Manual | InstallRule::Labels(_) => false,
        };
        Self { fleet, now, unsure }
    }

    fn answers(&self, cohort: &Cohort<'_>, installed: Option<&Decision>, runs: &[MoveRun]) -> CohortAnswers {
        let all = cohort.members.len();
        let answer = |decided: &Move| self.answer(&cohort.facts, decided);
        let runs = match (installed, runs) {
            // Whether the instance should exist comes before which revision it should have.
            (Some(decision), _) => vec![(all, answer(&Move::stay(decision.clone())))],
            (None, []) => vec![(all, answer(&Move::stay(Decision::Hold(Wait::ClusterAbsent))))],
            (None, runs) => runs.iter().map(|run| (run.count, answer(&run.decided))).collect(),
        };
        CohortAnswers { runs, at: 0 }
    }

    fn answer(&self, facts: &ClusterFacts<'_>, decided: &Move) -> ClusterAnswer {
        // While a placement is unknown or still changing, an instance that no placement governs may
        // belong to it, so it must not fall back to the add-on's defaults.
        let decided = match self.unsure && facts.governor().is_none() && decided.starts {
            true => Cow::Owned(Move::stay(Decision::Hold(Wait::PlacementUncertain))),
            false => Cow::Borrowed(decided),
        };
        let next = facts.instance.as_ref().and_then(|instance| self.next(facts, instance, &decided));
        let told = match &decided.told {
            Some(told) if facts.overrides().is_none() => {
                Some(told.version.clone().unwrap_or_else(|| told.id.clone()))
            }
            _ => {
                let status = next.as_ref().and_then(|next| next.status.as_deref());
                let recorded = || facts.instance.as_ref().map(|instance| &**instance.status);
                status.or_else(recorded).and_then(label)
            }
        };
        let was_told = facts.instance.as_ref().and_then(|instance| label(instance.status));
        let decision = decided.into_owned().decision;
        let object = facts.instance.as_ref().and_then(|instance| instance.ailing_object(&decision));
        let object = object.map(Text::from);
        let why = Why { placement: facts.governor(), decision, told, was_told, object };
        ClusterAnswer { next, why: Arc::new(why) }
    }

    fn next(&self, facts: &ClusterFacts<'_>, instance: &InstanceFacts<'_>, decided: &Move) -> Option<Next> {
        if matches!(
            decided.decision,
            Decision::Delete(_) | Decision::Hold(Wait::Terminating | Wait::OtherOwner)
        ) {
            return None;
        }
        let status = match facts.is_refused(RefusedWrite::Status) {
            true => None,
            false => status::instance::next(self.fleet, facts, instance, decided, self.now),
        };
        let is_told = |next: &InstanceStatus| {
            next.told().map(|pin| &pin.hash).eq(instance.status.told().map(|pin| &pin.hash))
        };
        let starts = decided.starts || status.as_ref().is_some_and(|next| !is_told(next));
        let renders = !starts
            && instance.refused_hosting.is_none()
            && !facts.is_refused(RefusedWrite::Work)
            && matches!(instance.rendering, Some(Ok(_)));
        let has_hooks = matches!(&instance.rendering, Some(Ok(prepared)) if prepared.has_hooks());
        // An add-on that is read from a file is nobody's owner yet.
        let owns = instance.lacks_owner && !self.fleet.observed.addon.uid.is_empty();
        let marker = adoption(self.fleet, instance);
        let may_write = !facts.is_refused(RefusedWrite::Status);
        let required = Metadata { guards: false, owns, marker, annotates: false };
        if !starts && has_hooks && !instance.guarded && may_write {
            let (status, writes_works, reprobes) = (None, false, false);
            let metadata = Some(Metadata { guards: true, ..required });
            return Some(Next { status, starts: false, writes_works, metadata, reprobes });
        }
        let reprobes = decided.reprobes && renders;
        let writes_works = renders && (!instance.works_stand || reprobes);
        // None of these changes anything on the cluster: they wait until its status is as it should
        // be. The hub may refuse annotations, so they have a write of their own.
        let metadata = match status.is_none() && may_write {
            true if owns || marker.is_some() => Some(required),
            true if instance.lacks_annotations => Some(Metadata { annotates: true, ..required }),
            _ => None,
        };
        Some(Next { status, starts, writes_works, metadata, reprobes })
    }
}

/// The display name of the assigned revision: a version, otherwise an id.
fn label(status: &StatusFields) -> Option<Text> {
    let id = || status.told().next().map(|_| status.told_revision().id());
    status.desired_version.clone().or_else(id)
}

/// Cursors over the objects of the snapshot.
struct ObjectCursors<'f> {
    clusters: &'f ByCluster<Cluster>,
    instances: Cursor<'f, Instance>,
    works: Cursor<'f, Vec<Work>>,
    owns_supported: bool,
}

impl ObjectCursors<'_> {
    fn write(&mut self, name: &ClusterName, facts: &InstanceFacts<'_>, next: &Next, drafts: &mut Drafts) {
        let Some(instance) = self.instances.hold(name) else { return };
        if let Some(metadata) = next.metadata {
            let cluster = self.clusters.get(name).map(|cluster| &**cluster);
            drafts.push(Step::Guard, metadata.write(&instance, cluster));
        }
        if next.writes_works {
            let works = self.works.take(name).map_or(&[][..], |works| works.value.as_slice());
            works::write(facts, &instance, works, next.reprobes, drafts);
        }
        if let Some(status) = next.status.clone() {
            let step = if next.starts { Step::Start } else { Step::Settle };
            let owns_supported = self.owns_supported;
            drafts.push(step, Write::Instance(StatusWrite { instance, status, owns_supported }));
        }
    }
}
