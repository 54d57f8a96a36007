//! A second, independent statement of the rollout rules: small, slow and plain.
//!
//! Written from the rules (chapter 5, and 2.6 for overrides), not from the engine, so that two
//! readings of the same rules can be compared. Clusters are names, revisions are letters, and
//! everything is recomputed from scratch. It knows no clocks, no decision groups and no broken
//! configs: those have scenarios of their own.

#![allow(unreachable_pub, reason = "its parts are modules of their own")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

pub mod generate;
pub mod promises;
pub mod scene;
mod world;

use std::collections::BTreeMap;

pub use world::{Answer, Doubt, Instance, Kind, Names, Outcome, Placement, Rev, Share, World};

impl Instance {
    /// It has what it was told, applied and available.
    pub fn arrived(&self) -> bool {
        self.told.is_some() && self.carries == self.told && self.answer == Answer::Healthy
    }

    /// Arrived at `revision` as far as its placement is concerned: what its user overrides does not
    /// count.
    pub fn settled_on(&self, revision: Rev) -> bool {
        match self.own {
            Some(_) => !self.fresh() && self.answer == Answer::Healthy,
            None => self.told == Some(revision) && self.arrived(),
        }
    }

    pub fn settled(&self) -> bool {
        self.told.is_some_and(|told| self.settled_on(told))
    }

    /// The agent refused what it was told.
    pub fn failed(&self) -> bool {
        self.answer == Answer::Refused && (self.own.is_some() || self.carries == self.told)
    }

    /// No work was ever applied on it.
    pub fn fresh(&self) -> bool {
        !(self.installed || self.never_well || self.told.is_some() && self.was_applied)
    }

    /// Its own override, which covers all that there is, may be what it suffers from, and not what
    /// its placement wants.
    pub fn doubt(&self, goal: Rev) -> Option<Doubt> {
        let own = self.own.filter(|_| self.told.is_some())?;
        let retold = self.told != Some(own);
        match (self.fresh(), self.arrived_once) {
            (true, _) if retold => Some(Doubt::Before),
            (true, _) => self.doubt,
            (false, true) if retold || self.clock != Some(goal) => Some(Doubt::ByUser),
            (false, false) if retold => Some(self.doubt.unwrap_or(Doubt::Before)),
            (false, _) => self.doubt,
        }
    }

    /// In doubt, it holds a slot only until its agent has said something.
    pub fn holds_none(&self, goal: Rev) -> bool {
        match self.doubt(goal) {
            None => false,
            Some(Doubt::Before) => self.fresh() || self.answer != Answer::None,
            Some(Doubt::ByUser) => true,
        }
    }

    /// It arrived, and is unwell since; or it has something that was never well.
    pub fn broken(&self) -> bool {
        let never_well = !self.installed && !self.fresh() && self.answer != Answer::Healthy;
        !self.settled() && (self.arrived_once || never_well)
    }
}

impl Placement {
    /// The revision or, if it has been rolled back from, the newest of the history: that ends with
    /// what is desired, if that is in it.
    fn standing(&self, revision: Rev) -> Rev {
        let back_to = self.history.iter().position(|known| *known == self.desired);
        let (stands, after) = self.history.split_at(back_to.map_or(self.history.len(), |at| at + 1));
        let gone = self.withdrawn.contains(&revision) || after.contains(&revision);
        stands.last().copied().filter(|_| gone).unwrap_or(revision)
    }
}

impl World {
    /// The last placement in the list that selects the cluster.
    pub fn governor(&self, cluster: &str) -> Option<&Placement> {
        self.placements.iter().rev().find(|placement| self.selections[&placement.name].contains(cluster))
    }

    pub fn governed(&self, placement: &Placement) -> Names {
        let ours =
            |name: &&String| self.governor(name).is_some_and(|governor| governor.name == placement.name);
        self.clusters.keys().filter(ours).cloned().collect()
    }

    pub fn canary(&self, placement: &Placement) -> Names {
        match &placement.kind {
            Kind::WithCanary(canary) => self.selections.get(canary).cloned().unwrap_or_default(),
            Kind::UpdateAll | Kind::RollingUpdate => Names::new(),
        }
    }

    /// Following the canaries from a placement leads back to it.
    pub fn in_cycle(&self, placement: &Placement) -> bool {
        let mut at = placement;
        for _ in 0..self.placements.len() {
            let Kind::WithCanary(canary) = &at.kind else { return false };
            let Some(next) = self.placements.iter().find(|one| one.name == *canary) else { return false };
            if next.name == placement.name {
                return true;
            }
            at = next;
        }
        false
    }

    /// The revision that all governed instances have settled on, of those that the placement wanted
    /// or wants them to have.
    pub fn settled_on(&self, placement: &Placement) -> Option<Rev> {
        let mut governed = self.governed(placement);
        governed.retain(|name| !self.waits_as_joined(placement, name));
        let told =
            |name: &String| self.instances.get(name).filter(|one| one.own.is_none()).and_then(|one| one.told);
        let revision = governed.iter().find_map(told)?;
        let settled = |name: &String| self.instances.get(name).is_some_and(|one| one.settled_on(revision));
        let wanted = [placement.recorded, placement.known_good].contains(&Some(revision));
        let wants = governed.iter().all(|name| self.goal(placement, name) == revision);
        ((wanted || wants) && governed.iter().all(settled)).then_some(revision)
    }

    /// Where the rollout wants a cluster: behind a canary at what is known good, in it or without
    /// one at what is desired.
    fn goal(&self, placement: &Placement, cluster: &str) -> Rev {
        let known_good = self.promoted(placement).filter(|_| self.gated(placement, cluster));
        known_good.unwrap_or(placement.desired)
    }

    fn gated(&self, placement: &Placement, cluster: &str) -> bool {
        matches!(placement.kind, Kind::WithCanary(_)) && !self.canary(placement).contains(cluster)
    }

    /// It came with an instance from elsewhere while the gate is closed: it stays as it is, and
    /// counts nowhere.
    pub fn waits_as_joined(&self, placement: &Placement, cluster: &str) -> bool {
        let closed = self.promoted(placement) != Some(placement.desired) && !self.in_cycle(placement);
        closed && self.joined(placement, cluster, self.goal(placement, cluster))
    }

    /// Somebody else told it what it has, which is not what this placement wants it to have.
    fn joined(&self, placement: &Placement, cluster: &str, goal: Rev) -> bool {
        // While it rolls to its known good revision, whoever it governs goes there, unless another
        // listed placement told it what it has.
        let rolling = placement.known_good.is_some_and(|known_good| {
            placement.applied != Some(known_good) && !placement.history.contains(&known_good)
        });
        let listed = |name: &str| self.placements.iter().any(|other| other.name == name);
        self.gated(placement, cluster)
            && self.instances.get(cluster).is_some_and(|one| {
                let elsewhere = one.own.is_none() && one.told != Some(goal) && !one.fresh();
                let moved_by = one.moved_by.as_deref();
                elsewhere && moved_by != Some(&placement.name) && (!rolling || moved_by.is_some_and(listed))
            })
    }

    /// Every canary cluster, and there is one, has the revision applied and healthy.
    pub fn canary_passed(&self, placement: &Placement, revision: Rev) -> bool {
        let canary = self.canary(placement);
        let has = |name: &String| {
            self.instances.get(name).is_some_and(|one| one.told == Some(revision) && one.arrived())
        };
        !canary.is_empty() && canary.iter().all(has)
    }

    /// Every gated cluster has settled on the known good revision, or failed to. First installs are
    /// no part of a rollout.
    pub fn rolled_out(&self, placement: &Placement, known_good: Rev) -> bool {
        let failed = |one: &Instance| one.failed() && (one.own.is_some() || one.told == Some(known_good));
        // Once all had settled on it, who becomes unwell there is not on the way again.
        let there = |one: &Instance| {
            let back_there = one.told == Some(known_good) && one.arrived_once;
            placement.applied == Some(known_good) && (one.own.is_some() || back_there)
        };
        let done = |one: &Instance| {
            !one.installed
                || one.settled_on(known_good)
                || failed(one)
                || there(one)
                || one.doubt(known_good).is_some()
        };
        let canary = self.canary(placement);
        self.governed(placement)
            .difference(&canary)
            .filter(|name| !self.joined(placement, name, known_good))
            .all(|name| self.instances.get(name).is_none_or(done))
    }

    /// With a canary, known good becomes what passed it, or what was completed before.
    fn promoted(&self, placement: &Placement) -> Option<Rev> {
        let (desired, known_good) = (placement.desired, placement.known_good);
        let free = known_good.is_none_or(|revision| self.rolled_out(placement, revision));
        let passed = self.canary_passed(placement, desired) && free && !self.in_cycle(placement);
        let completed = placement.history.contains(&desired) && !self.in_cycle(placement);
        if passed || completed { Some(desired) } else { known_good }
    }

    /// First installs are not gated, so the first revision that everybody has is good: if the gate
    /// keeps nobody back, and one of those that it could keep back has it from the placement.
    fn first_good(&self, placement: &Placement) -> Option<Rev> {
        let revision = self.settled_on(placement)?;
        let governed = self.governed(placement);
        let kept_back = governed.iter().any(|name| self.waits_as_joined(placement, name));
        let chosen = |name: &String| self.instances.get(name).is_some_and(|one| one.own.is_none());
        let installed = governed.iter().any(|name| self.gated(placement, name) && chosen(name));
        (!kept_back && installed).then_some(revision)
    }

    pub fn pass(&self) -> Outcome {
        let mut outcome = Outcome::default();
        for placement in &self.placements {
            let applied = self.settled_on(placement).or(placement.applied);
            let good = match placement.kind {
                Kind::WithCanary(_) => self.promoted(placement).or_else(|| self.first_good(placement)),
                Kind::UpdateAll | Kind::RollingUpdate => {
                    let anew = |revision: &Rev| {
                        *revision == placement.desired || placement.applied != Some(*revision)
                    };
                    let settled = self.settled_on(placement).filter(anew);
                    settled.or(placement.applied.map(|applied| placement.standing(applied)))
                }
            };
            outcome.progress.insert(placement.name.clone(), (good, applied));
            self.roll(placement, &mut outcome.starts);
        }
        for (name, instance) in &self.instances {
            match (instance.own, self.governor(name)) {
                (Some(own), _) => outcome.starts.insert(name.clone(), own),
                (None, None) => outcome.starts.insert(name.clone(), self.defaults),
                (None, Some(_)) => None,
            };
            if instance.made_by_strategy && self.governor(name).is_none() {
                outcome.starts.remove(name);
            }
        }
        outcome.starts.retain(|name, revision| self.instances[name].told != Some(*revision));
        outcome
    }

    fn roll(&self, placement: &Placement, starts: &mut BTreeMap<String, Rev>) {
        let governed = self.governed(placement);
        let still = placement.paused || self.in_cycle(placement);
        let good = self.promoted(placement);
        let standing = placement.known_good.map(|known_good| placement.standing(known_good));
        let first = match placement.kind {
            Kind::WithCanary(_) if still => placement.known_good,
            _ if still => standing,
            Kind::UpdateAll => Some(placement.desired),
            Kind::RollingUpdate => standing.or(Some(placement.desired)),
            Kind::WithCanary(_) => good.or(Some(placement.desired)),
        };
        let counts = |name: &String| governed.contains(name) && !self.waits_as_joined(placement, name);
        let ours: Vec<(&String, &Instance)> =
            self.instances.iter().filter(|(name, _)| counts(name)).collect();
        let goal = |name: &str| Some(self.goal(placement, name));
        // What is known good does not install there; perhaps what comes next does.
        let lost = |name: &str, one: &Instance| {
            one.own.is_none() && one.fresh() && one.failed() && one.told == first && goal(name) != first
        };
        let aim = |name: &str, one: &Instance| {
            if one.fresh() && !lost(name, one) && one.told != goal(name) { first } else { goal(name) }
        };
        let failed_at =
            |one: &Instance, at: Option<Rev>| one.failed() && (one.own.is_some() || one.told == at);
        let doubted = |name: &str, one: &Instance| goal(name).is_some_and(|goal| one.doubt(goal).is_some());
        let failures =
            ours.iter().filter(|(name, one)| failed_at(one, goal(name)) && !doubted(name, one)).count();
        let tolerated = placement.max_failures.map(|share| share.of(governed.len()));
        let halted = tolerated.is_some_and(|tolerated| failures > tolerated);
        let forgiven =
            |name: &str, one: &Instance| tolerated.is_some() && !halted && failed_at(one, aim(name, one));
        // Without anything known good a canary keeps what it gates where it is.
        let free = |name: &str| !(still || halted || (good.is_none() && self.gated(placement, name)));

        let mut moving = 0;
        let mut broken = Vec::new();
        let mut waiting = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        for (name, one) in ours {
            let excused = goal(name).is_some_and(|goal| one.holds_none(goal));
            let (here, slot) = (self.clusters[name], !forgiven(name, one) && !excused);
            let there = one.own.is_some() || one.told == aim(name, one);
            let elsewhere =
                aim(name, one).filter(|_| !there && ((one.fresh() && !lost(name, one)) || free(name)));
            if one.fresh() && !lost(name, one) {
                // A first install of another revision than the goal is no part of the rollout,
                // unless its user decides what it gets.
                let part = one.own.is_some() || one.told == goal(name) || first == goal(name);
                moving += usize::from(slot && here && part);
                starts.extend(elsewhere.map(|goal| (name.clone(), goal)));
            } else if there || (!one.settled() && !one.broken() && !lost(name, one)) {
                moving += usize::from(slot && !one.settled());
                starts.extend(elsewhere.map(|goal| (name.clone(), goal)));
            } else {
                let unwell = one.broken() || lost(name, one);
                broken.extend((unwell && here).then_some(name));
                waiting[2 * usize::from(!here) + usize::from(!unwell)]
                    .extend(elsewhere.map(|goal| (name, goal)));
            }
        }
        let budget =
            if placement.kind == Kind::UpdateAll { usize::MAX } else { placement.budget.of(governed.len()) };
        for (turn, clusters) in waiting.into_iter().enumerate() {
            for (name, goal) in clusters {
                // One that is broken has nothing to lose, and holds a slot until it is well.
                let in_the_way = if turn == 0 { moving } else { moving + broken.len() };
                if in_the_way < budget {
                    starts.insert(name.clone(), goal);
                    broken.retain(|one| *one != name);
                    moving += 1;
                }
            }
        }
    }
}
