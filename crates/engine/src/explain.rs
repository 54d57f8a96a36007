//! One typed decision with a reason for every cluster, used by conditions, commands, metrics and
//! tests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::configs::GroupResource;
use crate::duration;
use crate::name::{ClusterName, PlacementName, Text, Word};
use crate::problem::Problem;
use crate::reason::Reason;
use crate::wire::wire_enum;

/// What is decided for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The instance is created now.
    Create,
    /// The instance is deleted now.
    Delete(Removal),
    /// The instance is assigned its revision now.
    Start(Start),
    /// Assigned a revision and not settled on it.
    InFlight(Flight),
    /// It waits.
    Hold(Wait),
    /// The desired revision is applied and healthy.
    Settled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    Deselected,
    ClusterDeleting,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing was applied before.
    Install,
    Update,
    /// It was in flight to another revision and is redirected; it keeps its slot.
    Retarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flight {
    Installing,
    Updating,
    /// Healthy, but not for long enough.
    Soaking {
        until: Timestamp,
    },
    /// Applied, and not available since.
    Unavailable {
        why: Text,
    },
    /// Applied, and some object is not healthy yet.
    Progressing {
        why: Text,
    },
    /// Applied, and the agent has not reported whether it is healthy.
    HealthUnknown {
        why: Text,
    },
    /// Works exist, but do not prove the assigned revision.
    Unproven {
        why: Text,
    },
    /// The agent could not apply it, or it could not be rendered.
    Failed {
        why: Text,
    },
    TimedOut {
        after: Duration,
        /// What it still lacks, if the agent says so.
        why: Option<Text>,
    },
    /// It was started, and the hub refuses what must be written for it next.
    Refused(Arc<Problem>),
    Offline {
        since: Option<Timestamp>,
    },
}

/// Small, because every cluster of a fleet has one. Long parts are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Every slot is taken: by clusters in flight, by failed ones, or by clusters that are
    /// unhealthy on their current revision.
    BudgetFull {
        in_flight: usize,
        failed: usize,
        unhealthy: usize,
        budget: usize,
    },
    Canary(Arc<CanaryWait>),
    /// The rollout to the known good revision goes first.
    KnownGoodFirst {
        left: usize,
    },
    Stage {
        first: Text,
    },
    Halted {
        failed: usize,
        tolerated: usize,
    },
    Paused,
    /// Paused by a policy.
    PausedBy {
        policy: Text,
    },
    /// Not started yet, and started after all clusters that can be reached.
    Offline {
        since: Option<Timestamp>,
    },
    Problem(Arc<Problem>),
    /// A placement that may govern it is unknown or still changing.
    PlacementUncertain,
    /// It would be deleted, and the brake holds.
    DeletionHeld,
    /// Deselected while its placement's decisions do not match its count.
    DeletionWaits,
    /// The install strategy became Manual: existing instances are kept unchanged.
    Kept,
    /// Selected, but the hub has no such cluster.
    ClusterAbsent,
    /// Selected, but the hub has no namespace for it.
    NamespaceMissing,
    /// Selected, but annotated to get no add-on by itself.
    OptedOut,
    /// The cluster is being deleted, and has no instance any more.
    ClusterDeleting,
    /// The instance is being deleted.
    Terminating,
    /// It belongs to an earlier add-on of the same name and will be garbage-collected.
    OtherOwner,
    /// There is no known good revision to install yet.
    NothingKnownGood,
    /// It has no instance yet, and nothing is in the way. Only a recorded state, never a decision.
    NotCreated,
    /// It has not been assigned its revision yet, and nothing is in the way. Only a recorded state,
    /// never a decision.
    NotStarted,
}

/// What a canary gate waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CanaryWait {
    /// A policy requires this canary.
    Required {
        policy: Text,
        wait: Box<CanaryWait>,
    },
    NotFound {
        placement: PlacementName,
    },
    Empty {
        placement: PlacementName,
    },
    InMotion {
        placement: PlacementName,
        published: usize,
        decided: usize,
    },
    NotPassed {
        placement: PlacementName,
        missing: usize,
        of: usize,
        first: ClusterName,
        /// Kinds of config that the canary does not prove, because its clusters reference other
        /// objects.
        not_compared: Vec<GroupResource>,
    },
    ComparesNothing {
        placement: PlacementName,
        cluster: ClusterName,
    },
    /// None of its clusters that have not passed is asked for the desired revision.
    AskedForAnother {
        placement: PlacementName,
        wanted: Text,
        desired: Text,
    },
}

wire_enum! {
    /// The classification of decisions. The names are those of metrics and JSON.
    pub enum Phase {
        Creating = "create",
        Deleting = "delete",
        Starting = "start",
        InFlight = "in flight",
        Failed = "failed",
        /// It is being deleted by somebody else.
        Leaving = "hold",
        Waiting = "hold",
        Settled = "settled",
    }
}

impl Phase {
    /// The order in which phases are shown.
    pub fn rank(self) -> u8 {
        match self {
            Self::Failed => 0,
            Self::Deleting => 1,
            Self::InFlight => 2,
            Self::Starting | Self::Creating => 3,
            Self::Leaving | Self::Waiting => 4,
            Self::Settled => 5,
        }
    }
}

impl Decision {
    /// Where the cluster is.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Create => Phase::Creating,
            Self::Delete(_) => Phase::Deleting,
            Self::Start(_) => Phase::Starting,
            Self::InFlight(flight) if flight.is_failure() => Phase::Failed,
            Self::InFlight(_) => Phase::InFlight,
            Self::Hold(Wait::Terminating | Wait::ClusterDeleting) => Phase::Leaving,
            Self::Hold(_) => Phase::Waiting,
            Self::Settled => Phase::Settled,
        }
    }

    /// The machine-readable reason.
    pub fn code(&self) -> Reason {
        match self {
            Self::Create => Reason::Create,
            Self::Delete(Removal::Deselected) => Reason::Deselected,
            Self::Delete(Removal::ClusterDeleting) => Reason::ClusterDeleting,
            Self::Start(Start::Install) => Reason::Install,
            Self::Start(Start::Update) => Reason::Update,
            Self::Start(Start::Retarget) => Reason::Retarget,
            Self::InFlight(flight) => flight.code(),
            Self::Hold(wait) => wait.code(),
            Self::Settled => Reason::Settled,
        }
    }
}

impl Flight {
    pub fn code(&self) -> Reason {
        match self {
            Self::Installing => Reason::Installing,
            Self::Updating => Reason::Updating,
            Self::Soaking { .. } => Reason::Soaking,
            Self::Unavailable { .. } => Reason::Unavailable,
            Self::Progressing { .. } => Reason::WorkloadProgressing,
            Self::HealthUnknown { .. } => Reason::HealthUnknown,
            Self::Unproven { .. } => Reason::Unproven,
            Self::Failed { .. } => Reason::Failed,
            Self::TimedOut { .. } => Reason::TimedOut,
            Self::Refused(problem) => problem.code(),
            Self::Offline { .. } => Reason::OfflineInFlight,
        }
    }

    /// What an agent reported that keeps it from settling.
    pub(crate) fn reported(&self) -> Option<&Text> {
        match self {
            Self::Unavailable { why }
            | Self::Progressing { why }
            | Self::HealthUnknown { why }
            | Self::Failed { why } => Some(why),
            Self::TimedOut { why, .. } => why.as_ref(),
            Self::Installing
            | Self::Updating
            | Self::Soaking { .. }
            | Self::Unproven { .. }
            | Self::Refused(_)
            | Self::Offline { .. } => None,
        }
    }

    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::TimedOut { .. } | Self::Refused(_))
    }
}

/// The remedy where the manager is about to act. A leader may skip an add-on for reasons that only
/// it knows.
pub const NEXT: &str = "nothing: the leading manager does this next, unless it skips the add-on (see its /readyz and the metric aviary_addon_skipped)";

impl Wait {
    /// Whether the cluster waits for its desired revision, and for nothing else.
    pub(crate) fn is_for_revision(&self) -> bool {
        match self {
            Self::BudgetFull { .. }
            | Self::Canary(_)
            | Self::KnownGoodFirst { .. }
            | Self::Stage { .. }
            | Self::Halted { .. }
            | Self::Paused
            | Self::PausedBy { .. }
            | Self::Offline { .. }
            | Self::NothingKnownGood
            | Self::NotStarted => true,
            Self::Problem(_)
            | Self::PlacementUncertain
            | Self::DeletionHeld
            | Self::DeletionWaits
            | Self::Kept
            | Self::ClusterAbsent
            | Self::NamespaceMissing
            | Self::OptedOut
            | Self::ClusterDeleting
            | Self::Terminating
            | Self::OtherOwner
            | Self::NotCreated => false,
        }
    }

    pub fn code(&self) -> Reason {
        match self {
            Self::BudgetFull { .. } => Reason::BudgetFull,
            Self::Canary(_) => Reason::WaitingForCanary,
            Self::KnownGoodFirst { .. } => Reason::KnownGoodFirst,
            Self::Stage { .. } => Reason::WaitingForGroup,
            Self::Halted { .. } => Reason::Halted,
            Self::Paused | Self::PausedBy { .. } => Reason::Paused,
            Self::Offline { .. } => Reason::Offline,
            Self::Problem(problem) => problem.code(),
            Self::PlacementUncertain => Reason::PlacementUncertain,
            Self::DeletionHeld => Reason::DeletionHeld,
            Self::DeletionWaits => Reason::DeletionWaits,
            Self::Kept => Reason::Kept,
            Self::ClusterAbsent => Reason::ClusterAbsent,
            Self::NamespaceMissing => Reason::ClusterNamespaceMissing,
            Self::OptedOut => Reason::OptedOut,
            Self::ClusterDeleting => Reason::ClusterDeleting,
            Self::Terminating => Reason::Terminating,
            Self::OtherOwner => Reason::OtherOwner,
            Self::NothingKnownGood => Reason::NothingKnownGood,
            Self::NotCreated => Reason::NotCreated,
            Self::NotStarted => Reason::NotStarted,
        }
    }
}

impl Wait {
    /// What a user can do about it. `None` if that depends on the caller's commands or on the
    /// details of a problem.
    pub fn remedy(&self) -> Option<Word> {
        let text = match self {
            Self::Canary(_) | Self::Halted { .. } | Self::Paused | Self::Problem(_) => return None,
            Self::PausedBy { policy } => {
                return Some(format!("change or delete the AddOnRolloutPolicy {policy}").into());
            }
            Self::BudgetFull { .. } => {
                "starts when a slot frees up; maxConcurrentlyUpdating sets the number of slots"
            }
            Self::KnownGoodFirst { .. } => "starts when the previous rollout is complete",
            Self::Stage { .. } => "starts when the previous decision group has settled",
            Self::Offline { .. } => "bring the cluster back; otherwise it starts after all others",
            Self::PlacementUncertain => {
                "a placement of the add-on is missing or still changing: see the problems"
            }
            Self::DeletionHeld => {
                "to approve the deletion, annotate the add-on as the problem says; otherwise correct the placement"
            }
            Self::DeletionWaits => {
                "a placement of the add-on is missing or still changing: nothing is deleted until it is complete"
            }
            Self::Kept => "nothing; to remove the add-on, delete the instance",
            Self::ClusterAbsent => {
                "a placement selects it, but there is no such ManagedCluster: nothing happens until it exists"
            }
            Self::NamespaceMissing => {
                "create its namespace on the hub, with the name of the cluster, or register the cluster again: the manager then continues by itself"
            }
            Self::OptedOut => {
                "remove the cluster's annotation disable-automatic-installation to install the add-on"
            }
            Self::ClusterDeleting | Self::Terminating => "nothing: it is being deleted",
            Self::OtherOwner => {
                "nothing: it is garbage-collected with its former add-on, and then created again"
            }
            Self::NotCreated | Self::NotStarted => NEXT,
            Self::NothingKnownGood => {
                "nothing can be installed before a revision is known good: resume the rollout or fix its strategy"
            }
        };
        Some(text.into())
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create => f.write_str("selected, instance is created"),
            Self::Delete(Removal::Deselected) => f.write_str("no longer selected"),
            Self::Delete(Removal::ClusterDeleting) => f.write_str("the cluster is being deleted"),
            Self::Start(Start::Install) => f.write_str("installs"),
            Self::Start(Start::Update) => f.write_str("updates"),
            Self::Start(Start::Retarget) => f.write_str("redirected to the newer revision"),
            Self::InFlight(flight) => flight.fmt(f),
            Self::Hold(wait) => wait.fmt(f),
            Self::Settled => f.write_str("settled"),
        }
    }
}

impl fmt::Display for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Installing => f.write_str("installing"),
            Self::Updating => f.write_str("updating"),
            Self::Soaking { until } => write!(f, "healthy, soaking until {until}"),
            Self::Unavailable { why } => write!(f, "applied but not available: {why}"),
            Self::Progressing { why } => write!(f, "not healthy yet: {why}"),
            Self::HealthUnknown { why } => write!(f, "health unknown: {why}"),
            Self::Unproven { why } => write!(f, "not proven: {why}"),
            Self::Failed { why } => write!(f, "failed: {why}"),
            Self::TimedOut { after, why } => {
                write!(f, "failed: not settled within {}", duration::shown(*after))?;
                why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
            }
            Self::Refused(problem) => write!(f, "failed: {problem}"),
            Self::Offline { since } => write_offline(f, *since, "in flight"),
        }
    }
}

fn write_offline(f: &mut fmt::Formatter<'_>, since: Option<Timestamp>, what: &str) -> fmt::Result {
    match since {
        Some(since) => write!(f, "offline since {since}, {what}"),
        None => write!(f, "offline, {what}"),
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BudgetFull { in_flight, failed: 0, unhealthy: 0, budget } => {
                write!(f, "budget full: {in_flight} of {budget} in flight")
            }
            Self::BudgetFull { in_flight, failed, unhealthy, budget } => {
                let slots = in_flight + failed + unhealthy;
                write!(f, "budget full: {slots} of {budget} slots taken")?;
                let parts = [(in_flight, "in flight"), (failed, "failed"), (unhealthy, "unhealthy")];
                let parts = parts.into_iter().filter(|(count, _)| **count > 0);
                for (at, (count, what)) in parts.enumerate() {
                    write!(f, "{} {count} {what}", if at == 0 { ":" } else { "," })?;
                }
                Ok(())
            }
            Self::Canary(wait) => wait.fmt(f),
            Self::KnownGoodFirst { left } => {
                write!(f, "the rollout to the known good revision goes first: {left} clusters left")
            }
            Self::Stage { first } => write!(f, "{first} goes first"),
            Self::Halted { failed, tolerated } => write!(f, "halted: {failed} failed, {tolerated} tolerated"),
            Self::Paused => f.write_str("paused"),
            Self::PausedBy { policy } => write!(f, "paused by AddOnRolloutPolicy {policy}"),
            Self::Offline { since } => write_offline(f, *since, "starts after all others"),
            Self::Problem(problem) => problem.fmt(f),
            Self::PlacementUncertain => f.write_str("unclear which placement governs it: kept unchanged"),
            Self::DeletionHeld => f.write_str("no longer selected, but the deletion brake holds"),
            Self::DeletionWaits => {
                f.write_str("no longer selected, but its placement is unknown or still changing")
            }
            Self::Kept => f.write_str("kept unchanged: no placement governs it any more"),
            Self::ClusterAbsent => f.write_str("selected, but there is no such cluster"),
            Self::NamespaceMissing => {
                f.write_str("selected, but its namespace on the hub, which has its name, does not exist")
            }
            Self::OptedOut => f.write_str("selected, but the cluster opts out of automatic installation"),
            Self::ClusterDeleting => f.write_str("the cluster is being deleted"),
            Self::Terminating => f.write_str("the instance is being deleted"),
            Self::OtherOwner => f.write_str("the instance belongs to an earlier add-on of this name"),
            Self::NothingKnownGood => f.write_str("no known good revision to install yet"),
            Self::NotCreated => f.write_str("selected; its instance has not been created yet"),
            Self::NotStarted => f.write_str("not started yet"),
        }
    }
}

impl fmt::Display for CanaryWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required { policy, wait } => write!(f, "{wait}; AddOnRolloutPolicy {policy} requires it"),
            Self::NotFound { placement } => write!(f, "canary {placement} does not exist"),
            Self::Empty { placement } => write!(f, "canary {placement} selects no cluster"),
            Self::InMotion { placement, published, decided } => {
                write!(
                    f,
                    "canary {placement} publishes {published} clusters but its decisions hold {decided}"
                )
            }
            Self::NotPassed { placement, missing, of, first, not_compared } => {
                write!(f, "canary {placement}: {missing} of {of} not passed, first {first}")?;
                for (at, kind) in not_compared.iter().enumerate() {
                    let before = if at == 0 { "; it references other objects of kind" } else { "," };
                    write!(f, "{before} {kind}")?;
                }
                Ok(())
            }
            Self::ComparesNothing { placement, cluster } => {
                write!(f, "canary {placement}: {cluster} has none of the configs that would be rolled out")
            }
            Self::AskedForAnother { placement, wanted, desired } => {
                write!(f, "canary {placement} wants {wanted}, not {desired}: nothing tries {desired} there")
            }
        }
    }
}
