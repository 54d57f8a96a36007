//! How simulated clusters behave: how long they take, which fail, which are offline, which flap.
//!
//! A cluster's behaviour depends on the seed, its name and the revision only, never on the order in
//! which it is asked. So two rehearsals of one fleet differ only in the decisions, and simulated
//! clusters on a real hub behave as in the rehearsal.

use std::time::Duration;

use crate::health::Health;
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
    /// How it fails there.
    pub failure: FailureKind,
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
            failure: FailureKind::default(),
            offline: 0.0,
            flap: 0.0,
            tick: Duration::from_secs(1),
            horizon: Duration::from_secs(7 * 86_400),
        }
    }
}

/// How a bad revision shows on a cluster. A standard agent reports a work as applied and available
/// as soon as its objects exist, so all but a refusal is visible only in the health of the objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureKind {
    /// Its pods never become ready.
    #[default]
    NeverReady,
    /// Its pods exit at start, again and again.
    Exits,
    /// Its pods become ready, and crash a while later.
    Crashes,
    /// Its pods become ready and crash by turns.
    Flaps,
    /// The cluster does not accept its objects.
    Refuses,
    /// The agent never reports on it.
    Silent,
}

/// The report of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// Applied and healthy.
    Available { then: Then },
    /// Applied, and its pods have stopped for a moment.
    Unavailable,
    /// Applied, and its pods are not ready.
    Unready(Pods),
    /// The same, for longer than the workload's own deadline.
    Exceeded(Pods),
    /// Applied, and its pods were ready and crash now. They become ready this many times more.
    Crashed { returns: u8 },
    /// Not applied.
    Refused,
}

/// Why the pods of a version are not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pods {
    /// They run. No pod of the version before has made way for them.
    NeverReady,
    /// They are in a crash loop. Each counts as available while it starts, and so has replaced a
    /// pod of the version before.
    Exit,
}

/// What happens later to a healthy cluster to which nothing new is assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Then {
    Stays,
    /// It goes down once.
    Flaps,
    /// It crashes, and becomes ready this many times more.
    Crashes {
        returns: u8,
    },
}

/// How often a version that flaps becomes ready again: a rehearsal has to end.
const RETURNS: u8 = 20;

/// After this long a Deployment that makes no progress reports it.
const PROGRESS_DEADLINE: Duration = Duration::from_secs(600);

impl Answer {
    /// `Applied` and `Available` of a work, and the health of its object. Available means that the
    /// objects exist. So where no object is probed, only a refusal looks different from success.
    pub(super) fn seen(&self, object: Option<&str>) -> (Seen, Seen, Health) {
        if *self == Self::Refused {
            let message = "work reports Applied=False: rehearsed failure".into();
            return (Seen::No { message }, Seen::NotYet, Health::Healthy);
        }
        let health = object.map_or(Health::Healthy, |object| self.health(object));
        (Seen::Yes, Seen::Yes, health)
    }

    fn health(&self, object: &str) -> Health {
        let why = |detail: &str| format!("{object}: {detail}").into();
        match self {
            Self::Available { .. } | Self::Refused => Health::Healthy,
            Self::Unready(pods) => Health::Progressing { why: why(pods.detail()), tolerable: false },
            Self::Exceeded(pods) => {
                let why = why(&format!("{}; its progress deadline has passed", pods.detail()));
                Health::Failed { why, tolerable: false }
            }
            Self::Unavailable | Self::Crashed { .. } => {
                Health::Progressing { why: why(Pods::Exit.detail()), tolerable: false }
            }
        }
    }

    /// Whether only a probed object tells it from success.
    pub(super) fn needs_probe(&self) -> bool {
        !matches!(self, Self::Available { .. } | Self::Refused)
    }
}

impl Pods {
    /// The counts of a Deployment with one replica, as the probe words them.
    fn detail(self) -> &'static str {
        match self {
            Self::NeverReady => "0 of 1 replicas updated, 1 available",
            Self::Exit => "0 of 1 updated replicas available",
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
        let answer = match self.profile.failure {
            FailureKind::NeverReady if fails => Answer::Unready(Pods::NeverReady),
            FailureKind::Exits if fails => Answer::Unready(Pods::Exit),
            FailureKind::Crashes if fails => Answer::Available { then: Then::Crashes { returns: 0 } },
            FailureKind::Flaps if fails => Answer::Available { then: Then::Crashes { returns: RETURNS } },
            FailureKind::Refuses if fails => Answer::Refused,
            FailureKind::Silent if fails => return None,
            _ if flaps => Answer::Available { then: Then::Flaps },
            _ => Answer::Available { then: Then::Stays },
        };
        Some((self.latency(cluster, revision), answer))
    }

    /// The agent's next report without a new work.
    pub fn after(&self, cluster: &ClusterName, answer: &Answer) -> Option<(Duration, Answer)> {
        Some(match answer {
            Answer::Available { then: Then::Flaps } => (self.latency(cluster, "outage"), Answer::Unavailable),
            Answer::Available { then: Then::Crashes { returns } } => {
                (self.latency(cluster, "crash"), Answer::Crashed { returns: *returns })
            }
            Answer::Crashed { returns } => {
                let then = Then::Crashes { returns: returns.checked_sub(1)? };
                (self.latency(cluster, "recovery"), Answer::Available { then })
            }
            Answer::Unavailable => {
                (self.latency(cluster, "recovery"), Answer::Available { then: Then::Stays })
            }
            Answer::Unready(pods) => (PROGRESS_DEADLINE, Answer::Exceeded(*pods)),
            Answer::Available { then: Then::Stays } | Answer::Exceeded(_) | Answer::Refused => return None,
        })
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
