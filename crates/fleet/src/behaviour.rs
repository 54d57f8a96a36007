//! The behaviour of a fleet: the engine's [`Profile`], additional failures, and false reports.

use std::collections::BTreeMap;
use std::time::Duration;

use aviary_engine::name::ClusterName;
use aviary_engine::simulate::agents::{Agents, Answer, Profile};

/// The behaviour of a fleet. Equal values give equal behaviour, whatever the order of events.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    pub profile: Profile,
    /// Failures in addition to those of the profile.
    pub failures: Vec<SimulatedFailure>,
    /// The share of clusters that make each false report. A cluster makes at most one kind, and
    /// always the same.
    pub lies: Vec<(Lie, f64)>,
    /// What agents report on a changed work before its objects are what they should be.
    pub races: Races,
}

/// The share of changes after which an agent reports too early. Its status loop does not wait for
/// its apply loop, and neither waits for the controllers of the objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Races {
    /// First `Available` at the new generation, with the values of the older objects.
    pub stale: f64,
    /// Then `Applied` as well, still with the older values. A part of `stale`.
    pub stale_applied: f64,
    /// The objects are the new ones, but their `observedGeneration` is behind.
    pub unobserved: f64,
}

impl Races {
    /// As counted in 120 changes with OCM's agent.
    pub const MEASURED: Self =
        Self { stale: 112.0 / 120.0, stale_applied: 1.0 / 120.0, unobserved: 26.0 / 120.0 };
    /// One report per change, as few as an agent can make.
    pub const NONE: Self = Self { stale: 0.0, stale_applied: 0.0, unobserved: 0.0 };
}

impl Default for Races {
    fn default() -> Self {
        Self::MEASURED
    }
}

/// A report that is too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    Stale,
    StaleApplied,
    Unobserved,
}

/// The share of clusters that fail, among those in scope.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedFailure {
    pub scope: FailureScope,
    pub share: f64,
}

/// What a failure applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureScope {
    /// Works of this version.
    Version(String),
    /// Clusters with this label.
    Label { key: String, value: String },
}

/// A false report of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Reports success for the previous generation.
    OldGeneration,
    /// Reports success for a generation that does not exist yet.
    FutureGeneration,
    /// Reports `Available`, but never `Applied`.
    OnlyAvailable,
    /// Reports nothing, although the cluster is reachable.
    Silence,
}

impl Behaviour {
    pub(crate) fn agents(&self) -> Agents<'_> {
        Agents::new(&self.profile)
    }

    /// Returns what the cluster's agent reports on a work, and after how long. `None`: it never
    /// reports.
    pub(crate) fn answer(
        &self,
        cluster: &ClusterName,
        labels: &BTreeMap<String, String>,
        version: Option<&str>,
        revision: &str,
    ) -> Option<(Duration, Answer)> {
        if self.lie(cluster) == Some(Lie::Silence) {
            return None;
        }
        self.agents().answer_if(cluster, revision, self.fail_share(labels, version))
    }

    pub(crate) fn lie(&self, cluster: &ClusterName) -> Option<Lie> {
        let drawn = self.agents().draw(cluster, "lie");
        let mut upto = 0.0;
        self.lies.iter().find_map(|(lie, share)| {
            upto += share;
            (drawn < upto).then_some(*lie)
        })
    }

    /// The reports that come before the one on the new objects, in their order.
    pub(crate) fn early(&self, cluster: &ClusterName, revision: &str) -> Vec<Early> {
        let Races { stale, stale_applied, unobserved } = self.races;
        let agents = self.agents();
        let status_first = agents.draw(cluster, &format!("status first {revision}"));
        let is_unobserved = agents.draw(cluster, &format!("unobserved {revision}")) < unobserved;
        let steps = [
            (status_first < stale, Early::Stale),
            (status_first < stale_applied, Early::StaleApplied),
            (is_unobserved, Early::Unobserved),
        ];
        steps.into_iter().filter_map(|(happens, early)| happens.then_some(early)).collect()
    }

    /// The largest share of all failures that apply.
    fn fail_share(&self, labels: &BTreeMap<String, String>, version: Option<&str>) -> f64 {
        let applies = |failure: &&SimulatedFailure| match &failure.scope {
            FailureScope::Version(of) => version == Some(of),
            FailureScope::Label { key, value } => labels.get(key) == Some(value),
        };
        self.failures.iter().filter(applies).map(|failure| failure.share).fold(self.profile.fail, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(number: usize) -> ClusterName {
        ClusterName::parse(&format!("c{number}")).unwrap()
    }

    fn failures(behaviour: &Behaviour, labels: &BTreeMap<String, String>, version: &str) -> usize {
        let fails = |number: &usize| {
            let answer = behaviour.answer(&cluster(*number), labels, Some(version), "r1");
            matches!(answer, Some((_, Answer::Unready(_))))
        };
        (0..1000).filter(fails).count()
    }

    #[test]
    fn failures_go_by_share_by_version_and_by_label() {
        let canary = BTreeMap::from([("stage".to_owned(), "canary".to_owned())]);
        let behaviour = Behaviour {
            profile: Profile { fail: 0.1, ..Profile::default() },
            failures: vec![
                SimulatedFailure { scope: FailureScope::Version("v2".into()), share: 1.0 },
                SimulatedFailure {
                    scope: FailureScope::Label { key: "stage".into(), value: "canary".into() },
                    share: 0.5,
                },
            ],
            ..Behaviour::default()
        };
        assert_eq!(failures(&behaviour, &BTreeMap::new(), "v2"), 1000);
        let few = failures(&behaviour, &BTreeMap::new(), "v1");
        assert!((60..140).contains(&few), "{few} of 1000, about 100 were asked for");
        let half = failures(&behaviour, &canary, "v1");
        assert!((430..570).contains(&half), "{half} of 1000, about 500 were asked for");
    }

    #[test]
    fn a_cluster_behaves_as_it_was_rehearsed() {
        let profile = Profile { fail: 0.3, flap: 0.3, offline: 0.2, ..Profile::default() };
        let behaviour = Behaviour { profile: profile.clone(), ..Behaviour::default() };
        for number in 0..200 {
            let rehearsed = Agents::new(&profile).answer(&cluster(number), "r1");
            assert_eq!(behaviour.answer(&cluster(number), &BTreeMap::new(), None, "r1"), rehearsed);
        }
    }

    #[test]
    fn agents_report_too_early_as_often_as_real_ones() {
        let behaviour = Behaviour::default();
        let count = |early: Early| {
            (0..1200).filter(|number| behaviour.early(&cluster(*number), "r1").contains(&early)).count()
        };
        assert!((1090..1150).contains(&count(Early::Stale)), "{} of 1200", count(Early::Stale));
        assert!((1..30).contains(&count(Early::StaleApplied)), "{} of 1200", count(Early::StaleApplied));
        assert!((210..310).contains(&count(Early::Unobserved)), "{} of 1200", count(Early::Unobserved));
        let once = Behaviour { races: Races::NONE, ..Behaviour::default() };
        assert!((0..1200).all(|number| once.early(&cluster(number), "r1").is_empty()));
    }

    #[test]
    fn lies_are_shared_out_and_stay_with_their_cluster() {
        let behaviour = Behaviour {
            lies: vec![(Lie::OldGeneration, 0.25), (Lie::Silence, 0.25)],
            ..Behaviour::default()
        };
        let told =
            |lie: Option<Lie>| (0..1000).filter(|number| behaviour.lie(&cluster(*number)) == lie).count();
        for lie in [Lie::OldGeneration, Lie::Silence] {
            assert!((190..310).contains(&told(Some(lie))), "{lie:?}: {} of 1000", told(Some(lie)));
        }
        assert_eq!(told(Some(Lie::OnlyAvailable)), 0);
    }
}
