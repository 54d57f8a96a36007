//! How the clusters of a fleet behave: what the engine's [`Profile`] says, who fails more often, and who lies.

use std::collections::BTreeMap;
use std::time::Duration;

use aviary_engine::name::ClusterName;
use aviary_engine::simulate::agents::{Agents, Answer, Profile};

/// What a fleet is like. Equal values behave equally, whatever the order in which things happen.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    pub profile: Profile,
    /// Where more fail than the profile says.
    pub failures: Vec<Failure>,
    /// Which share of the clusters tells which lie. A cluster tells one at most, and always the same.
    pub lies: Vec<(Lie, f64)>,
}

/// A share of clusters that fail, of those that this is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub scope: Scope,
    pub share: f64,
}

/// What a failure is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Works of this version.
    Version(String),
    /// Clusters with this label.
    Label { key: String, value: String },
}

/// What an agent may say that is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// All is well, with the generation before the present one.
    OldGeneration,
    /// All is well, with a generation that nobody has written yet.
    FutureGeneration,
    /// It is available; not a word of having been applied.
    OnlyAvailable,
    /// Nothing, although the cluster can be reached.
    Silence,
}

impl Behaviour {
    pub(crate) fn agents(&self) -> Agents<'_> {
        Agents::new(&self.profile)
    }

    /// What the cluster's agent says to a work, and after which time. Nothing: it never answers.
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

    /// The largest share of all that apply.
    fn fail_share(&self, labels: &BTreeMap<String, String>, version: Option<&str>) -> f64 {
        let applies = |failure: &&Failure| match &failure.scope {
            Scope::Version(of) => version == Some(of),
            Scope::Label { key, value } => labels.get(key) == Some(value),
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
            matches!(answer, Some((_, Answer::Failed)))
        };
        (0..1000).filter(fails).count()
    }

    #[test]
    fn failures_go_by_share_by_version_and_by_label() {
        let canary = BTreeMap::from([("stage".to_owned(), "canary".to_owned())]);
        let behaviour = Behaviour {
            profile: Profile { fail: 0.1, ..Profile::default() },
            failures: vec![
                Failure { scope: Scope::Version("v2".into()), share: 1.0 },
                Failure { scope: Scope::Label { key: "stage".into(), value: "canary".into() }, share: 0.5 },
            ],
            lies: Vec::new(),
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
