//! The work agents of a story's clusters, and the add-on's own manager where there is one.

use aviary_engine::health::Health;
use aviary_engine::name::ClusterName;
use aviary_engine::observed::Seen;

use super::{Mood, Story, cluster};

impl Story {
    /// The agent answers now as `mood` says, and goes on to answer so; without one it does its work
    /// again.
    pub(super) fn answer(&mut self, name: &str, mood: Option<Mood>) {
        let name = cluster(name);
        match mood {
            Some(mood) => self.moods.insert(name.clone(), mood),
            None => self.moods.remove(&name),
        };
        self.render_elsewhere();
        self.report(&name);
    }

    /// The status of its works is emptied, as by a restore, and its agent says nothing from then
    /// on.
    pub(super) fn empty_works(&mut self, name: &str) {
        let name = cluster(name);
        self.moods.insert(name.clone(), Mood::Silent);
        for work in self.world.observed.works.get_mut(&name).expect("works").iter_mut() {
            work.applied = Seen::NotYet;
            work.was_applied = false;
            work.available = Seen::NotYet;
            if let Some(health) = Mood::Unreported.health().filter(|_| work.probed) {
                work.health = health;
            }
        }
    }

    pub(super) fn report(&mut self, name: &ClusterName) {
        let no = |message: &str| Seen::No { message: message.into() };
        let works = self.world.observed.works.get(name);
        let version = works.and_then(|works| works.first()?.version.clone());
        let of_version = version.and_then(|version| self.bad.get(&*version));
        let mood = self.moods.get(name).or(of_version).copied();
        let (applied, available) = match mood {
            None | Some(Mood::Unready | Mood::Broken | Mood::Degraded | Mood::Unreported) => {
                (Seen::Yes, Seen::Yes)
            }
            Some(Mood::Fail) => (no("work reports Applied=False: boom"), Seen::NotYet),
            Some(Mood::Unavailable) => (Seen::Yes, no("work reports Available=False: crash loop")),
            Some(Mood::Silent) => return,
        };
        self.world.acknowledge(name, &applied, &available);
        if let Some(health) = mood.and_then(Mood::health)
            && let Some(mut works) = self.world.observed.works.get_mut(name)
        {
            for work in works.iter_mut().filter(|work| work.health != Health::NotProbed) {
                work.health = health.clone();
            }
        }
    }

    /// The add-on's own manager, where we do not render.
    pub(super) fn render_elsewhere(&mut self) {
        if !self.world.observed.renders_templates() {
            let all: Vec<ClusterName> = self.world.observed.instances.keys().cloned().collect();
            for name in all {
                self.world.render_elsewhere(&name);
            }
        }
    }

    /// Agents answer what they have not answered yet. Says whether there was anything.
    pub(crate) fn agents_work(&mut self) -> bool {
        self.render_elsewhere();
        let waiting: Vec<ClusterName> = self
            .world
            .observed
            .works
            .iter()
            .filter(|(name, works)| {
                let reachable = self
                    .world
                    .observed
                    .clusters
                    .get(name)
                    .is_some_and(|cluster| cluster.unreachable.is_none());
                let unseen = works.iter().any(|work| {
                    work.applied == Seen::NotYet
                        || (work.available == Seen::NotYet && !matches!(work.applied, Seen::No { .. }))
                });
                reachable && unseen && self.moods.get(*name) != Some(&Mood::Silent)
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in &waiting {
            self.report(name);
        }
        !waiting.is_empty()
    }
}
