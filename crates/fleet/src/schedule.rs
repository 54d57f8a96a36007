//! The agents of all clusters: what they have seen, what they will report, and when.
//!
//! Owns the state of every agent and one queue of times for all of them. Reads no clock and writes
//! nothing: times are arguments, and reports are returned. Only one report per work is in progress
//! at a time, so an older one can never overtake a newer one. On a changed work an agent may report
//! too early first, and then again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use aviary_api::ManifestWork;
use aviary_api::names::labels::ADDON_VERSION;
use aviary_engine::configs::Revision;
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::normalise;
use aviary_engine::shared::{Pool, Shared};
use aviary_engine::simulate::agents::Answer;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::behaviour::{Behaviour, Early, Lie};
use crate::member::Member;
use crate::outline::WorkOutline;
use crate::report::{Before, WorkReport};

/// How long to wait before a failed report is retried.
const PAUSE: Duration = Duration::from_millis(500);
/// The number of names of works that are shared; further names are stored once per work.
const NAMES: usize = 1024;

pub(crate) type Labels = BTreeMap<String, String>;

#[derive(Debug)]
pub(crate) struct ReportSchedule {
    behaviour: Behaviour,
    members: HashMap<ClusterName, Shared<Labels>>,
    works: HashMap<ScheduleKey, WorkProgress>,
    due: BinaryHeap<Reverse<Due>>,
    turns: u64,
    /// The number of the current or last listing of all works.
    round: u32,
    outlines: Pool<WorkOutline>,
    labels: Pool<Labels>,
    names: HashSet<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ScheduleKey {
    cluster: ClusterName,
    work: Text,
}

/// When a work is reported on.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    turn: u64,
    key: ScheduleKey,
}

/// What an agent knows about one work.
#[derive(Debug)]
struct WorkProgress {
    /// Distinguishes a work from an earlier one of the same name.
    uid: u64,
    generation: i64,
    /// The number of its newest report.
    turn: u64,
    round: u32,
    writing: bool,
    /// Its report became due while an earlier one was in progress.
    overdue: bool,
    waiting: Option<Box<Waiting>>,
}

/// What will be reported.
#[derive(Debug)]
struct Waiting {
    uid: Text,
    answer: Answer,
    lie: Option<Lie>,
    outline: Shared<WorkOutline>,
    before: Before,
    early: Vec<Early>,
    last_at: Instant,
}

impl Waiting {
    /// When the next report is due: an early one comes halfway to the last.
    fn due(&self, now: Instant) -> Instant {
        let left = self.last_at.saturating_duration_since(now);
        if self.early.is_empty() { self.last_at.max(now) } else { now + left / 2 }
    }
}

impl ReportSchedule {
    pub(crate) fn new(behaviour: Behaviour, members: &[Member]) -> Self {
        let mut labels = Pool::default();
        let members =
            members.iter().map(|one| (one.name.clone(), labels.share(Shared::new(one.labels.clone()))));
        Self {
            behaviour,
            members: members.collect(),
            works: HashMap::new(),
            due: BinaryHeap::new(),
            turns: 0,
            round: 0,
            outlines: Pool::default(),
            labels,
            names: HashSet::new(),
        }
    }

    pub(crate) fn has(&self, cluster: &str) -> Option<&ClusterName> {
        let cluster = ClusterName::parse(cluster).ok()?;
        self.members.get_key_value(&cluster).map(|(name, _)| name)
    }

    pub(crate) fn behaviour(&self) -> &Behaviour {
        &self.behaviour
    }

    /// Updates the labels of a cluster.
    pub(crate) fn relabel(&mut self, cluster: &ClusterName, labels: &Labels) {
        if let Some(known) = self.members.get_mut(cluster)
            && **known != *labels
        {
            *known = self.labels.share(Shared::new(labels.clone()));
        }
    }

    /// Removes a deleted cluster and its agent.
    pub(crate) fn leave(&mut self, cluster: &ClusterName) {
        if self.members.remove(cluster).is_some() {
            self.works.retain(|key, _| key.cluster != *cluster);
        }
    }

    /// Starts a listing of all works. Works that are not in it are deleted.
    pub(crate) fn begin_listing(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    pub(crate) fn end_listing(&mut self) {
        let round = self.round;
        self.works.retain(|_, known| known.round == round);
    }

    /// An agent sees a work. Returns whether the work is new or has changed.
    pub(crate) fn see(&mut self, work: &ManifestWork, now: Instant) -> bool {
        let Some(key) = self.key(work) else { return false };
        let generation = work.metadata.generation.unwrap_or(0);
        let given_uid = work.metadata.uid.as_deref().unwrap_or_default();
        let uid = digest(given_uid);
        if let Some(known) = self.works.get_mut(&key) {
            known.round = self.round;
            if known.uid == uid && known.generation == generation {
                return false;
            }
        }
        let before = Before::of(work);
        let fresh = !self.works.contains_key(&key);
        let mut known = WorkProgress {
            uid,
            generation,
            turn: 0,
            round: self.round,
            writing: false,
            overdue: false,
            waiting: None,
        };
        // After a restart, an agent finds its own earlier report.
        if fresh && before.is_answered(generation) {
            self.works.insert(key, known);
            return false;
        }
        let writing = self.works.get(&key).is_some_and(|known| known.writing);
        known.writing = writing;
        known.turn = self.next_turn();
        if let Some((after, answer)) = self.answer(&key.cluster, work) {
            let outline = self.outlines.share(Shared::new(WorkOutline::of(work)));
            let lie = self.behaviour.lie(&key.cluster);
            let uid = given_uid.into();
            let early = match lie.is_none() && before.is_of_older(generation) {
                true => self.early(&key.cluster, work, &answer, &outline),
                false => Vec::new(),
            };
            let last_at = now + after;
            let waiting = Waiting { uid, answer, lie, outline, before, early, last_at };
            self.due.push(Reverse(Due { at: waiting.due(now), turn: known.turn, key: key.clone() }));
            known.waiting = Some(Box::new(waiting));
        }
        self.works.insert(key, known);
        true
    }

    /// Removes a deleted work.
    pub(crate) fn lose(&mut self, work: &ManifestWork) {
        if let Some(key) = self.key(work) {
            self.works.remove(&key);
        }
    }

    pub(crate) fn next_due(&mut self) -> Option<Instant> {
        while let Some(Reverse(due)) = self.due.peek() {
            if self.works.get(&due.key).is_some_and(|known| known.turn == due.turn) {
                return Some(due.at);
            }
            self.due.pop();
        }
        None
    }

    /// Takes the next due report. The caller must report its outcome.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<WorkReport> {
        while self.next_due().is_some_and(|at| at <= now)
            && let Some(Reverse(Due { turn, key, .. })) = self.due.pop()
        {
            let Some(known) = self.works.get_mut(&key) else { continue };
            if known.writing {
                known.overdue = true;
                continue;
            }
            let Some(waiting) = known.waiting.take() else { continue };
            known.writing = true;
            let Waiting { uid, answer, lie, outline, before, early, last_at } = *waiting;
            let (ScheduleKey { cluster, work }, generation) = (key, known.generation);
            return Some(WorkReport {
                cluster,
                work,
                uid,
                turn,
                generation,
                answer,
                lie,
                outline,
                before,
                early,
                last_at,
            });
        }
        None
    }

    /// A report was written. The agent may have another report later.
    pub(crate) fn written(&mut self, mut report: WorkReport, time: Timestamp, now: Instant) {
        report.before = report.after(time);
        if !report.early.is_empty() {
            report.early.remove(0);
            return self.say_later(report, now);
        }
        match self.behaviour.agents().after(&report.cluster, &report.answer) {
            Some((after, answer)) => {
                (report.answer, report.last_at) = (answer, now + after);
                self.say_later(report, now);
            }
            None => drop(self.done(&report, now)),
        }
    }

    /// A report was not written, for a temporary reason.
    pub(crate) fn failed(&mut self, report: WorkReport, now: Instant) {
        self.say_at(report, |_| now + PAUSE, now);
    }

    /// The work of a report does not exist any more.
    pub(crate) fn dropped(&mut self, report: &WorkReport, now: Instant) {
        self.done(report, now);
    }

    fn say_later(&mut self, report: WorkReport, now: Instant) {
        self.say_at(report, |waiting| waiting.due(now), now);
    }

    fn say_at(&mut self, report: WorkReport, at: impl Fn(&Waiting) -> Instant, now: Instant) {
        let turn = self.turns + 1;
        let Some(known) = self.done(&report, now) else { return };
        let WorkReport { cluster, work, uid, answer, lie, outline, before, early, last_at, .. } = report;
        let waiting = Waiting { uid, answer, lie, outline, before, early, last_at };
        let at = at(&waiting);
        known.waiting = Some(Box::new(waiting));
        known.turn = turn;
        self.turns = turn;
        self.due.push(Reverse(Due { at, turn, key: ScheduleKey { cluster, work } }));
    }

    /// Ends the report in progress. Returns the state of the work if the report was about its
    /// current generation.
    fn done(&mut self, report: &WorkReport, now: Instant) -> Option<&mut WorkProgress> {
        let key = ScheduleKey { cluster: report.cluster.clone(), work: report.work.clone() };
        let known = self.works.get_mut(&key)?;
        known.writing = false;
        if std::mem::take(&mut known.overdue) {
            self.due.push(Reverse(Due { at: now, turn: known.turn, key }));
        }
        (known.turn == report.turn).then_some(known)
    }

    fn answer(&self, cluster: &ClusterName, work: &ManifestWork) -> Option<(Duration, Answer)> {
        let labels = self.members.get(cluster)?;
        let version = work.metadata.labels.as_ref().and_then(|labels| labels.get(ADDON_VERSION));
        self.behaviour.answer(cluster, labels, version.map(String::as_str), &revision(work))
    }

    /// The early reports on a changed work. What is refused is never applied, and only the
    /// controllers of some kinds can be behind.
    fn early(
        &self,
        cluster: &ClusterName,
        work: &ManifestWork,
        answer: &Answer,
        outline: &WorkOutline,
    ) -> Vec<Early> {
        let refused = *answer == Answer::Refused;
        let mut early = self.behaviour.early(cluster, &revision(work));
        early.retain(|early| match early {
            Early::Stale => true,
            Early::StaleApplied => !refused,
            Early::Unobserved => !refused && outline.has_observers(),
        });
        early
    }

    fn key(&mut self, work: &ManifestWork) -> Option<ScheduleKey> {
        let cluster = self.has(work.metadata.namespace.as_deref()?)?.clone();
        let name = work.metadata.name.as_deref()?;
        let work = match self.names.get(name) {
            Some(known) => known.clone(),
            None => {
                let name: Text = name.into();
                if self.names.len() < NAMES {
                    self.names.insert(name.clone());
                }
                name
            }
        };
        Some(ScheduleKey { cluster, work })
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }
}

/// The revision in the work's annotation, as a rehearsal identifies it. Without the annotation, the
/// generation is used.
fn revision(work: &ManifestWork) -> Text {
    match normalise::work_hashes(&work.metadata) {
        Some(hashes) => Revision::id_of(hashes.iter().map(|(kind, hash)| (kind, hash))),
        None => format!("generation {}", work.metadata.generation.unwrap_or(0)).into(),
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
