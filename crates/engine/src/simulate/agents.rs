//! How simulated clusters behave: how long they take, which fail, which are offline, which flap.
//!
//! A cluster's behaviour depends on the seed, its name and the revision only, never on the order in
//! which it is asked. So two rehearsals of one fleet differ only in the decisions, and simulated
//! clusters on a real hub behave as in the rehearsal.

use std::time::Duration;

use crate::name::ClusterName;
use crate::observed::Seen;

/// The behaviour of a simulated fleet.
#[derive(Clone, Debug)]
pub struct Profile {
    pub seed: u64,
    /// The shortest and the longest time from a work to its answer.
    pub latency: (Duration, Duration),
    /// The share of clusters on which a revision fails.
    pub fail: f64,
    /// The share of clusters that the hub cannot reach.
    pub offline: f64,
    /// The share of clusters that become unavailable once after each update, and recover.
    pub flap: f64,
    /// How often the manager plans.
    pub tick: Duration,
    /// When to give up.
    pub horizon: Duration,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            seed: 1,
            latency: (Duration::from_secs(10), Duration::from_secs(60)),
            fail: 0.0,
            offline: 0.0,
            flap: 0.0,
            tick: Duration::from_secs(1),
            horizon: Duration::from_secs(7 * 86_400),
        }
    }
}

/// The report of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    Available { flaps: bool },
    Unavailable,
    Failed,
}

impl Answer {
    /// `Applied` and `Available` of the works.
    pub(super) fn seen(&self) -> (Seen, Seen) {
        let no = |message: &str| Seen::No { message: message.into() };
        match self {
            Self::Available { .. } => (Seen::Yes, Seen::Yes),
            Self::Unavailable => (Seen::Yes, no("work reports Available=False: rehearsed outage")),
            Self::Failed => (no("work reports Applied=False: rehearsed failure"), Seen::NotYet),
        }
    }
}

/// The agents of all clusters of a fleet.
#[derive(Debug)]
pub struct Agents<'a> {
    profile: &'a Profile,
}

impl<'a> Agents<'a> {
    pub fn new(profile: &'a Profile) -> Self {
        Self { profile }
    }

    pub fn is_offline(&self, cluster: &ClusterName) -> bool {
        self.draw(cluster, "offline") < self.profile.offline
    }

    /// The agent's report on a revision, and how long it takes; `None` while it is offline.
    pub fn answer(&self, cluster: &ClusterName, revision: &str) -> Option<(Duration, Answer)> {
        self.answer_if(cluster, revision, self.profile.fail)
    }

    /// The same, with another probability of failure for this cluster or revision.
    pub fn answer_if(&self, cluster: &ClusterName, revision: &str, fail: f64) -> Option<(Duration, Answer)> {
        if self.is_offline(cluster) {
            return None;
        }
        let fails = self.draw(cluster, &format!("fail {revision}")) < fail;
        let flaps = self.draw(cluster, &format!("flap {revision}")) < self.profile.flap;
        let answer = if fails { Answer::Failed } else { Answer::Available { flaps } };
        Some((self.latency(cluster, revision), answer))
    }

    /// The agent's next report without a new work.
    pub fn after(&self, cluster: &ClusterName, answer: &Answer) -> Option<(Duration, Answer)> {
        match answer {
            Answer::Available { flaps: true } => Some((self.latency(cluster, "outage"), Answer::Unavailable)),
            Answer::Unavailable => {
                Some((self.latency(cluster, "recovery"), Answer::Available { flaps: false }))
            }
            Answer::Available { flaps: false } | Answer::Failed => None,
        }
    }

    fn latency(&self, cluster: &ClusterName, what: &str) -> Duration {
        let (shortest, longest) = self.profile.latency;
        let share = self.draw(cluster, &format!("latency {what}"));
        shortest + longest.saturating_sub(shortest).mul_f64(share)
    }

    /// A pseudo-random number in 0..1, always the same for the same arguments.
    pub fn draw(&self, cluster: &ClusterName, what: &str) -> f64 {
        let mut state = self.profile.seed;
        for byte in cluster.as_str().bytes().chain([0]).chain(what.bytes()) {
            state = mix(state ^ u64::from(byte));
        }
        // The upper 53 bits fill the precision of a float.
        (mix(state) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// One step of SplitMix64.
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
