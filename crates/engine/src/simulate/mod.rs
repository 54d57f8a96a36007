//! Rehearsal: runs the real plan on a simulated fleet in virtual time.
//!
//! [`world`] is a simulated hub, [`agents`] defines how clusters behave, [`fleet`] creates a fleet
//! if there is none. This file runs the simulation. Equal inputs and seeds give equal results:
//! nothing here reads a clock or random numbers.
//!
//! A simulated agent reports once on a change, and what is so. A real one may report too early,
//! with the values of the older objects, but nothing is decided on such a report: the digest in it
//! is another one. So it would cost a plan and change nothing. Simulated clusters on a hub report
//! early.

pub mod agents;
pub mod fleet;
pub mod world;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::explain::Decision;
use crate::name::{ClusterName, PlacementName, Text};
use crate::observed::{Observed, Seen, Unreachable};
use crate::plan::{PlacementReport, Plan, Write, plan};
use crate::tally::ClusterTally;
use crate::verdict::is_at_rest;
use agents::{Agents, Answer, Profile};
use world::World;

/// What happened in one run.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// The counts of each placement whenever they changed.
    pub samples: Vec<Sample>,
    /// Every start, in the order in which they happened.
    pub starts: Vec<Started>,
    /// The state of each placement at the end.
    pub end: Vec<PlacementReport>,
    /// Clusters that had not settled at the end, and why.
    pub unsettled: Vec<(ClusterName, Decision)>,
    /// Clusters with failures or outages that nobody saw, because no object is probed.
    pub unseen: BTreeSet<ClusterName>,
    /// From the beginning to the last change.
    pub took: Duration,
    /// Time ran out before the fleet came to rest.
    pub ran_out: bool,
    pub passes: usize,
    pub writes: usize,
    /// The final state.
    pub world: World,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub at: Duration,
    /// In the order of the add-on's placements.
    pub placements: Vec<ClusterTally>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub at: Duration,
    pub cluster: ClusterName,
    pub placement: Option<PlacementName>,
    /// The version or revision that it was assigned.
    pub to: Text,
}

impl Rehearsal {
    /// The most clusters of a placement that were in flight or failed at one time.
    pub fn peak_exposure(&self, placement: usize) -> usize {
        let exposed = |tally: &ClusterTally| tally.in_flight + tally.failed;
        self.samples
            .iter()
            .filter_map(|sample| sample.placements.get(placement))
            .map(exposed)
            .max()
            .unwrap_or(0)
    }
}

/// Runs the fleet until nothing moves any more.
pub fn rehearse(observed: Observed, profile: &Profile, begin: Timestamp) -> Rehearsal {
    RehearsalRun::new(observed, profile, begin).finish()
}

struct RehearsalRun<'a> {
    world: World,
    agents: Agents<'a>,
    profile: &'a Profile,
    begin: Timestamp,
    now: Timestamp,
    /// When the add-on's status was written last.
    status_written: Option<Timestamp>,
    answers: BinaryHeap<Reverse<(Timestamp, ClusterName, Answer)>>,
    story: Rehearsal,
}

impl<'a> RehearsalRun<'a> {
    fn new(mut observed: Observed, profile: &'a Profile, begin: Timestamp) -> Self {
        let agents = Agents::new(profile);
        for mut cluster in observed.clusters.values_mut() {
            if agents.is_offline(&cluster.name) {
                cluster.unreachable = Some(Unreachable { since: Some(begin) });
            }
        }
        let story = Rehearsal {
            samples: Vec::new(),
            starts: Vec::new(),
            end: Vec::new(),
            unsettled: Vec::new(),
            unseen: BTreeSet::new(),
            took: Duration::ZERO,
            ran_out: false,
            passes: 0,
            writes: 0,
            world: World::default(),
        };
        let mut run = Self {
            world: World::new(observed),
            agents,
            profile,
            begin,
            now: begin,
            status_written: None,
            answers: BinaryHeap::new(),
            story,
        };
        // Existing works without a report are answered like new ones.
        let unanswered: Vec<ClusterName> = run
            .world
            .observed
            .works
            .iter()
            .filter(|(_, works)| works.iter().any(|work| work.applied == Seen::NotYet))
            .map(|(name, _)| name.clone())
            .collect();
        for cluster in unanswered {
            run.expect_answer(&cluster);
        }
        run
    }

    fn finish(mut self) -> Rehearsal {
        loop {
            let mut decided = plan(&self.world.observed, self.now);
            decided.hold_counts(&self.world.observed, self.status_written, self.now);
            if decided.addon().is_some() {
                self.status_written = Some(self.now);
            }
            let at_rest = decided.is_at_rest();
            let recheck_at = decided.recheck_at;
            self.tell(&decided);
            self.commit(decided);
            let next_answer = self.answers.peek().map(|Reverse((at, _, _))| *at);
            let next = match (at_rest, next_answer.into_iter().chain(recheck_at).min()) {
                (false, _) => later(self.now, self.profile.tick),
                (true, Some(next)) => next.max(later(self.now, self.profile.tick)),
                (true, None) => break,
            };
            if self.elapsed() > self.profile.horizon {
                self.story.ran_out = true;
                break;
            }
            self.now = next;
            self.take_answers();
        }
        self.conclude();
        self.story.took = self.story.samples.last().map_or(Duration::ZERO, |sample| sample.at);
        self.story.world = self.world;
        self.story
    }

    fn elapsed(&self) -> Duration {
        Duration::try_from(self.now.duration_since(self.begin)).unwrap_or_default()
    }

    /// Records the plan.
    fn tell(&mut self, decided: &Plan) {
        self.story.passes += 1;
        let at = self.elapsed();
        let report = &decided.report;
        // The plan is executed at once, so its starts are in flight from now on.
        let (placements, _) =
            ClusterTally::by_placement(report.placements.len(), &report.clusters, Decision::next_state);
        if self.story.samples.last().is_none_or(|sample| sample.placements != placements) {
            self.story.samples.push(Sample { at, placements });
        }
        let names: BTreeMap<usize, &PlacementName> =
            decided.report.placements.iter().map(|placement| &placement.name).enumerate().collect();
        for cluster in &decided.report.clusters {
            if let Decision::Start(_) = cluster.decision {
                self.story.starts.push(Started {
                    at,
                    cluster: cluster.cluster.clone(),
                    placement: cluster
                        .placement
                        .and_then(|index| names.get(&index).map(|&name| name.clone())),
                    to: cluster.told.clone().unwrap_or_default(),
                });
            }
        }
    }

    /// Records the final state.
    fn conclude(&mut self) {
        let last = plan(&self.world.observed, self.now);
        let unsettled = last.report.clusters.iter().filter(|cluster| !is_at_rest(&cluster.decision));
        self.story.unsettled =
            unsettled.map(|cluster| (cluster.cluster.clone(), cluster.decision.clone())).collect();
        self.story.end = last.report.placements;
    }

    fn commit(&mut self, decided: Plan) {
        for write in decided.writes() {
            self.story.writes += 1;
            self.world.commit(&write);
            match &write {
                Write::Work(work) => self.expect_answer(&work.cluster),
                Write::Instance(status) if self.world.render_elsewhere(&status.cluster) => {
                    self.expect_answer(&status.cluster);
                }
                _ => {}
            }
        }
    }

    /// Schedules the answer of the cluster's agent to new works.
    fn expect_answer(&mut self, cluster: &ClusterName) {
        let told =
            self.world.observed.instances.get(cluster).map(|instance| instance.status.told_revision().id());
        if let Some((after, answer)) = self.agents.answer(cluster, &told.unwrap_or_default()) {
            self.answers.push(Reverse((later(self.now, after), cluster.clone(), answer)));
        }
    }

    fn take_answers(&mut self) {
        while let Some(Reverse((at, _, _))) = self.answers.peek()
            && *at <= self.now
            && let Some(Reverse((_, cluster, answer))) = self.answers.pop()
        {
            if !self.world.answer(&cluster, &answer) {
                self.story.unseen.insert(cluster.clone());
            }
            if let Some((after, next)) = self.agents.after(&cluster, &answer) {
                self.answers.push(Reverse((later(self.now, after), cluster, next)));
            }
        }
    }
}

/// Adds without overflowing; an unrepresentable time is treated as "never".
fn later(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}
