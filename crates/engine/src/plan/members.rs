//! Cluster by cluster: what is written for it, and why.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::{ClusterReport, Plan, StatusWrite, SurplusWork, Why, WorkWrite};
use crate::by_cluster::Cursor;
use crate::configs::Revision;
use crate::evidence::{is_as_written_for, is_rendered_as_told};
use crate::explain::{Decision, Wait};
use crate::fleet::{Flag, Fleet, Line, Member};
use crate::install::Install;
use crate::name::Text;
use crate::observed::{InstallStrategy, Instance, InstanceStatus, StatusFields, Work};
use crate::rollout::{Move, Outcome};
use crate::status;

pub(super) fn decide(
    fleet: &Fleet<'_>,
    install: &Install,
    outcomes: &[Outcome],
    free: &Outcome,
    now: Timestamp,
    plan: &mut Plan,
) {
    let mut answers = Answers::new(fleet, outcomes, free, now);
    plan.report.clusters.reserve_exact(fleet.lines.len());
    // Decisions are in order of position, as the clusters are.
    let mut placements: Vec<_> =
        outcomes.iter().map(|outcome| outcome.decisions.of.iter().copied()).collect();
    let mut free = free.decisions.of.iter().copied();
    let mut shelves =
        Shelves { instances: fleet.observed.instances.cursor(), works: fleet.observed.works.cursor() };
    let mut installs = install.decisions.iter().peekable();
    for (position, line) in fleet.lines.iter().enumerate() {
        let rolled = match line.governor() {
            Some(index) => placements.get_mut(index).and_then(Iterator::next),
            None if line.instance.is_some() => free.next(),
            None => None,
        };
        let installed = installs.next_if(|(at, _)| **at == position).map(|(_, decision)| decision);
        let Some(answer) = answers.to(position, line, installed, rolled) else { continue };
        if let Some(next) = &answer.next
            && (next.status.is_some() || (next.renders && !line.is(Flag::WorksStand)))
            && let Some(member) = fleet.member(position)
        {
            shelves.write(&member, next, plan);
        }
        plan.report.clusters.push(ClusterReport { cluster: line.name.clone(), why: Arc::clone(&answer.why) });
    }
}

/// What instances are told after this pass, where that is not simply their placement's revision.
#[derive(Default)]
struct Labels {
    /// Neighbours mostly have the same: its id is worked out once.
    last: Option<(Revision, Text)>,
}

impl Labels {
    fn told(&mut self, status: &StatusFields) -> Option<Text> {
        if status.desired_version.is_some() {
            return status.desired_version.clone();
        }
        status.told().next()?;
        if let Some((revision, id)) = &self.last
            && revision.pins().iter().map(|pin| &pin.hash).eq(status.told().map(|pin| &pin.hash))
        {
            return Some(id.clone());
        }
        let revision = status.told_revision();
        let id = revision.id();
        self.last = Some((revision, id.clone()));
        Some(id)
    }
}

/// What there is to say and to write, worked out once for clusters that are alike and are decided alike. So they share one status.
struct Answers<'f> {
    fleet: &'f Fleet<'f>,
    outcomes: &'f [Outcome],
    free: &'f Outcome,
    now: Timestamp,
    /// It is not certain which clusters the placements select.
    unsure: bool,
    labels: Labels,
    given: Vec<Answer>,
    before: HashMap<Asked, usize>,
    /// By the place of what is known: neighbours mostly ask the same.
    last: Vec<Option<(Asked, usize)>>,
    /// To a cluster that is like no other.
    alone: Option<Answer>,
}

/// All that an answer follows from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Asked {
    known: usize,
    governor: Option<usize>,
    /// Its place among what the clusters of that placement are to do.
    decided: u32,
}

struct Answer {
    /// `None`: what is not there, is going, or is not ours, is not written to.
    next: Option<Next>,
    why: Arc<Why>,
}

struct Next {
    /// Where it is another than the instance has.
    status: Option<InstanceStatus>,
    /// It tells the instance another revision than the one that it has.
    starts: bool,
    /// Its works are ours, and follow what the instance's status says: never what it is about to say.
    renders: bool,
}

impl<'f> Answers<'f> {
    fn new(fleet: &'f Fleet<'f>, outcomes: &'f [Outcome], free: &'f Outcome, now: Timestamp) -> Self {
        let unsure = match &fleet.observed.addon.strategy {
            InstallStrategy::Placements(_) => fleet.uncertain(),
            InstallStrategy::Unusable(_) => true,
            InstallStrategy::Manual | InstallStrategy::Labels(_) => false,
        };
        Self {
            fleet,
            outcomes,
            free,
            now,
            unsure,
            labels: Labels::default(),
            given: Vec::new(),
            before: HashMap::new(),
            last: vec![None; fleet.known.len()],
            alone: None,
        }
    }

    fn to(
        &mut self,
        position: usize,
        line: &Line<'_>,
        installed: Option<&Decision>,
        rolled: Option<u32>,
    ) -> Option<&Answer> {
        let asked = match (installed, rolled) {
            (None, Some(decided)) if !line.is(Flag::HasOverrides) => {
                Asked { known: line.known_at(), governor: line.governor(), decided }
            }
            _ => {
                let answer = self.answer(position, installed, rolled)?;
                return Some(self.alone.insert(answer));
            }
        };
        if let Some(Some((last, given))) = self.last.get(asked.known)
            && *last == asked
        {
            return self.given.get(*given);
        }
        let given = match self.before.get(&asked) {
            Some(given) => *given,
            None => {
                let answer = self.answer(position, installed, rolled)?;
                self.given.push(answer);
                self.before.insert(asked, self.given.len() - 1);
                self.given.len() - 1
            }
        };
        if let Some(last) = self.last.get_mut(asked.known) {
            *last = Some((asked, given));
        }
        self.given.get(given)
    }

    fn answer(
        &mut self,
        position: usize,
        installed: Option<&Decision>,
        rolled: Option<u32>,
    ) -> Option<Answer> {
        let member = self.fleet.member(position)?;
        let outcome = match member.governor() {
            Some(index) => self.outcomes.get(index),
            None => Some(self.free),
        };
        let rolled = rolled.and_then(|decided| outcome?.decisions.moves.get(decided as usize));
        let decided = match (installed, rolled) {
            // What the install strategy says about being there comes before what it should have.
            (Some(decision), _) => Cow::Owned(Move::stay(decision.clone())),
            (None, Some(decided)) if self.keeps_still(&member, decided) => {
                Cow::Owned(Move::stay(Decision::Hold(Wait::PlacementUncertain)))
            }
            (None, Some(decided)) => Cow::Borrowed(decided),
            (None, None) => Cow::Owned(Move::stay(Decision::Hold(Wait::ClusterAbsent))),
        };
        let next = member.instance.and_then(|instance| self.next(&member, instance, &decided));
        let told = match &decided.told {
            Some(told) if member.overrides.is_none() => {
                Some(told.version.clone().unwrap_or_else(|| told.id.clone()))
            }
            _ => {
                let status = next.as_ref().and_then(|next| next.status.as_deref()).or(member.status());
                status.and_then(|status| self.labels.told(status))
            }
        };
        let decision = decided.into_owned().decision;
        let why = Why { placement: member.governor(), decision, told };
        let last = self.alone.as_ref().filter(|last| *last.why == why);
        Some(Answer { next, why: last.map_or_else(|| Arc::new(why), |last| Arc::clone(&last.why)) })
    }

    /// While it is not certain which clusters the placements select, an instance that none of them governs may be one of theirs: it is not
    /// to fall back to the add-on's defaults because of that.
    fn keeps_still(&self, member: &Member<'_>, decided: &Move) -> bool {
        self.unsure && member.governor().is_none() && decided.starts
    }

    fn next(&self, member: &Member<'_>, instance: &Instance, decided: &Move) -> Option<Next> {
        if matches!(
            decided.decision,
            Decision::Delete(_) | Decision::Hold(Wait::Terminating | Wait::OtherOwner)
        ) {
            return None;
        }
        let status = status::instance::next(self.fleet, member, instance, decided, self.now);
        let retold = status.as_ref().is_some_and(|next| {
            let hashes =
                |status: &StatusFields| status.told().map(|pin| pin.hash.clone()).collect::<Vec<_>>();
            hashes(next) != hashes(&instance.status)
        });
        let starts = decided.starts || retold;
        let renders = !starts && matches!(member.known().prepared, Some(Ok(_)));
        Some(Next { status, starts, renders })
    }
}

/// Where the objects are, gone through in order.
struct Shelves<'f> {
    instances: Cursor<'f, Instance>,
    works: Cursor<'f, Vec<Work>>,
}

impl<'f> Shelves<'f> {
    fn write(&mut self, member: &Member<'f>, next: &Next, plan: &mut Plan) {
        if let Some(status) = &next.status
            && let Some(instance) = self.instances.hold(member.name)
        {
            let write = StatusWrite { instance, status: status.clone() };
            if next.starts { plan.starts.push(write) } else { plan.statuses.push(write) }
        }
        if next.renders
            && !member.is(Flag::WorksStand)
            && let Some(instance) = member.instance
        {
            let works = self.works.take(member.name).map_or(&[][..], |works| works.value.as_slice());
            write_works(member, instance, works, plan);
        }
    }
}

fn write_works<'f>(member: &Member<'f>, instance: &Instance, works: &'f [Work], plan: &mut Plan) {
    let Some(Ok(prepared)) = &member.known().prepared else { return };
    for index in 0..prepared.works() {
        let there = member.own_works(works).find(|work| prepared.work_index(&work.name) == Some(index));
        let stands = there.is_some_and(|work| {
            work.deleting
                || (is_rendered_as_told(work, prepared, &instance.status, &instance.install_namespace)
                    && is_as_written_for(work, instance))
        });
        if stands {
            continue;
        }
        plan.works.push(WorkWrite {
            cluster: member.name.clone(),
            name: prepared.work_name(index),
            replaces: there.map(|work| (work.uid.clone(), work.resource_version.clone())),
            prepared: Arc::clone(prepared),
            index,
            install_namespace: instance.install_namespace.clone(),
            instance_uid: instance.uid.clone(),
            told: instance.status.told_revision(),
        });
    }
    let is_surplus = |name: &str| prepared.work_index(name).is_some_and(|index| index >= prepared.works());
    let surplus = member.own_works(works).filter(|work| !work.deleting && is_surplus(&work.name));
    plan.surplus_works.extend(surplus.map(|work| SurplusWork {
        cluster: member.name.clone(),
        name: work.name.clone(),
        uid: work.uid.clone(),
    }));
}
