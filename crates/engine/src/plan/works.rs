//! The works of one cluster: which to write now, and which to delete.

use std::collections::{HashMap, HashSet};

use super::{Drafts, Step, SurplusWork, WorkPart, WorkWrite, Write};
use crate::clock::RevisionClock;
use crate::evidence::{carries_told, is_rendered_as_told};
use crate::fleet::{InstanceFacts, WorkFacts};
use crate::health::ObjectMark;
use crate::observed::{Instance, Seen, Work};
use crate::render::{Prepared, Rendering, WorkSite};

/// Works that an earlier version of Aviary or another manager rendered from the assigned revision
/// stay as they are, unless `reprobes`.
pub(super) fn write(
    facts: &InstanceFacts<'_>,
    instance: &Instance,
    works: &[Work],
    reprobes: bool,
    drafts: &mut Drafts,
) {
    let Some(Ok(prepared)) = &facts.rendering else { return };
    let works = works.iter().filter(|work| work.is_of(None, true));
    let present = WorksPresent {
        instance,
        prepared,
        rendering: facts.rendering.as_ref(),
        works: works.map(|work| (work, WorkFacts::of(work, instance))).collect(),
        reprobes,
        may_lack_probes: facts.clock.as_ref().is_none_or(RevisionClock::may_lack_probes),
    };
    if present.all_stay() {
        return;
    }
    let mut due = present.due();
    if prepared.works() > 1 || !due.surplus.is_empty() {
        due.keep_what_moves(prepared, instance);
    }
    drafts.extend(
        Step::Render,
        due.writes.into_iter().map(|(index, there)| {
            let replaces = there.map(|work| (work.uid.clone(), work.resource_version.clone()));
            let write = WorkWrite::new(instance, prepared, WorkPart::Deploy(index), replaces);
            Write::Work(Box::new(write))
        }),
    );
    let surplus = due.surplus.into_iter().map(|work| SurplusWork {
        cluster: instance.cluster.clone(),
        name: work.name.clone(),
        uid: work.uid.clone(),
    });
    drafts.extend(Step::RemoveWorks, surplus.map(Write::DeleteWork));
}

/// The works in a cluster's namespace, next to what its instance is assigned.
struct WorksPresent<'a> {
    instance: &'a Instance,
    prepared: &'a Prepared,
    rendering: Option<&'a Rendering>,
    works: Vec<(&'a Work, WorkFacts<'a>)>,
    reprobes: bool,
    may_lack_probes: bool,
}

impl<'a> WorksPresent<'a> {
    fn own(&self) -> impl Iterator<Item = &(&'a Work, WorkFacts<'a>)> + Clone {
        self.works.iter().filter(|(_, known)| known.belongs_to(self.rendering))
    }

    /// Whether somebody else's work has the name of the work at `index`.
    fn is_taken(&self, index: usize) -> bool {
        let name = self.prepared.work_name(index);
        self.works.iter().any(|(work, known)| *work.name == *name && known.is_foreign())
    }

    fn is_as_told(&self, work: &WorkFacts<'_>) -> bool {
        let Instance { status, install_namespace, .. } = self.instance;
        is_rendered_as_told(work, self.prepared, status, install_namespace) && work.is_as_written()
    }

    /// Whether nothing is to be written: all works were rendered from the assigned revision,
    /// whoever rendered them.
    fn all_stay(&self) -> bool {
        let known: Vec<WorkFacts<'_>> = self.own().map(|(_, known)| *known).collect();
        let stays = |work: &WorkFacts<'_>| {
            let by_another = work.is_of_another() && carries_told(work, &self.instance.status);
            !work.deleting && (self.is_as_told(work) || by_another)
        };
        !self.reprobes
            && self.may_lack_probes
            && self.prepared.accepts(&known)
            && known.iter().all(stays)
            && !(0..self.prepared.works()).any(|index| self.is_taken(index))
    }

    fn due(&self) -> WorksDue<'a> {
        let Self { prepared, reprobes, may_lack_probes, .. } = *self;
        let mut due = WorksDue::default();
        for index in (0..prepared.works()).filter(|&index| !self.is_taken(index)) {
            let there = self.own().find(|(work, _)| prepared.work_index(&work.name) == Some(index));
            let stands = there.is_some_and(|(_, work)| {
                let is_outdated =
                    work.is_without_probes() && (reprobes || !may_lack_probes || prepared.splits_anew());
                work.deleting || (self.is_as_told(work) && !is_outdated)
            });
            match there.map(|(work, _)| *work) {
                Some(work) if !stands => due.writes.push((index, Some(work))),
                None => due.writes.push((index, None)),
                Some(work) if work.applied == Seen::Yes && !work.deleting => {}
                Some(_) => due.awaited.push(index),
            }
        }
        let surplus = self.own().filter(|(work, _)| !work.deleting && !prepared.makes(&work.name));
        due.copies =
            surplus.clone().filter(|(_, work)| self.is_as_told(work)).map(|(work, _)| *work).collect();
        due.surplus = surplus.map(|(work, _)| *work).collect();
        due
    }
}

/// What of a cluster's works is not as it should be.
#[derive(Default)]
struct WorksDue<'a> {
    /// The index of each, and the work that is there.
    writes: Vec<(usize, Option<&'a Work>)>,
    /// Written, and not applied yet.
    awaited: Vec<usize>,
    surplus: Vec<&'a Work>,
    /// Of the surplus, copies of works of the assigned revision.
    copies: Vec<&'a Work>,
}

impl WorksDue<'_> {
    /// Puts off what would take an object from a work before the work that it moves to is applied:
    /// an agent deletes what has left a work, unless another work has it already.
    fn keep_what_moves(&mut self, prepared: &Prepared, instance: &Instance) {
        if self.surplus.is_empty() && self.writes.iter().all(|(_, there)| there.is_none()) {
            return;
        }
        let site = WorkSite {
            cluster: &instance.cluster,
            install_namespace: &instance.install_namespace,
            instance_uid: &instance.uid,
        };
        let not_applied = self.writes.iter().map(|(index, _)| *index).chain(self.awaited.iter().copied());
        let homes: HashMap<ObjectMark, usize> = not_applied
            .flat_map(|index| prepared.objects(index, &site).into_iter().map(move |object| (object, index)))
            .collect();
        let applied = self.copies.iter().filter(|copy| copy.applied == Seen::Yes);
        let copied: HashSet<ObjectMark> = applied.flat_map(|copy| copy.objects.iter().copied()).collect();
        let loses = |work: &Work, index: Option<usize>| {
            let is_lost = |object: &ObjectMark| {
                homes.get(object).is_some_and(|home| Some(*home) != index)
                    && (index.is_none() || !copied.contains(object))
            };
            work.objects.iter().any(is_lost)
        };
        let (now, later): (Vec<_>, Vec<_>) = self
            .writes
            .iter()
            .copied()
            .partition(|(index, there)| there.is_none_or(|there| !loses(there, Some(*index))));
        let in_circle = now.is_empty() && self.awaited.is_empty() && !later.is_empty();
        self.writes = if in_circle { self.detour(prepared, later) } else { now };
        self.surplus.retain(|work| !loses(work, None));
    }

    /// Works that take objects from each other: none can be the first. A copy of one of them holds
    /// its objects meanwhile, and goes when that work is applied.
    fn detour<'w>(
        &self,
        prepared: &Prepared,
        circle: Vec<(usize, Option<&'w Work>)>,
    ) -> Vec<(usize, Option<&'w Work>)> {
        let copy_of = |index: usize| prepared.works() + index;
        let is_taken = |index: usize| {
            self.surplus.iter().any(|work| prepared.work_index(&work.name) == Some(copy_of(index)))
        };
        if self.copies.iter().any(|copy| copy.applied != Seen::Yes) {
            return Vec::new();
        }
        let free = circle.iter().find(|(index, _)| !is_taken(*index));
        match free {
            Some((index, _)) => vec![(copy_of(*index), None)],
            // No name is free, which only somebody else's works can cause: then it goes without.
            None => circle,
        }
    }
}
