//! What would move a cluster: one piece of advice for every reason that there is. The compiler finds the forgotten one.

use aviary_engine::explain::{CanaryWait, Decision, Flight, Wait};
use aviary_engine::observed::PlacementSpec;
use aviary_engine::plan::ClusterReport;
use aviary_engine::problem::Problem;

/// Who gives advice, about which add-on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advisor<'a> {
    pub(super) program: &'a str,
    pub(super) addon: &'a str,
    /// The options that name the hub, as they are typed.
    pub(super) hub: &'a str,
}

impl Advisor<'_> {
    pub(super) fn advice(&self, report: &ClusterReport, placement: Option<&PlacementSpec>) -> String {
        let cluster = &report.cluster;
        match &report.decision {
            Decision::Settled => "nothing: it has what it should have".to_owned(),
            Decision::Create | Decision::Delete(_) | Decision::Start(_) => {
                "nothing: the manager does this next, if one is at work".to_owned()
            }
            Decision::InFlight(flight) => self.flying(flight, cluster.as_str()),
            Decision::Hold(wait) => self.waiting(wait, placement),
        }
    }

    fn flying(&self, flight: &Flight, cluster: &str) -> String {
        let Self { program, addon, hub } = self;
        match flight {
            Flight::Installing | Flight::Updating => format!(
                "its agent has yet to report; kubectl -n {cluster} get manifestworks shows whether it has seen its work"
            ),
            Flight::Soaking { until } => format!("nothing: it settles at {until} if it stays healthy"),
            Flight::Unavailable { .. } => {
                "look at the add-on's pods on the cluster: it settles as soon as they are available"
                    .to_owned()
            }
            Flight::Failed { .. } => format!(
                "mend the cause: it settles when its agent succeeds, and {program} rollout retry {addon}{hub} makes it try again; {program} rollout undo {addon}{hub} goes back"
            ),
            Flight::TimedOut { .. } => format!(
                "{program} rollout retry {addon}{hub} gives it the same time again; progressDeadline says how long that is"
            ),
            Flight::Offline { .. } => {
                "bring the cluster back: until then it keeps its place among those that move".to_owned()
            }
        }
    }

    fn waiting(&self, wait: &Wait, placement: Option<&PlacementSpec>) -> String {
        let Self { program, addon, hub } = self;
        let of = placement.map(|spec| format!(" --placement {}", spec.name)).unwrap_or_default();
        match wait {
            Wait::BudgetFull { .. } => {
                "its turn comes when one of those in flight settles; maxConcurrentlyUpdating says how many may be".to_owned()
            }
            Wait::Canary(wait) => self.canary(wait),
            Wait::KnownGoodFirst { .. } => {
                "its turn comes when the rollout before this one is through".to_owned()
            }
            Wait::Stage { .. } => "its turn comes when the decision group before it has settled".to_owned(),
            Wait::Halted { .. } => format!(
                "more have failed than maxFailures allows: mend them, {program} rollout retry {addon}{of}{hub}, or go back with {program} rollout undo {addon}{of}{hub}"
            ),
            Wait::Paused => format!("{program} rollout resume {addon}{of}{hub}"),
            Wait::Offline { .. } => "bring the cluster back; otherwise it comes after all others".to_owned(),
            Wait::Problem(problem) => mend(problem),
            Wait::PlacementUncertain => {
                "a placement of the add-on is missing or being rewritten: see the problems".to_owned()
            }
            Wait::DeletionHeld => {
                "if it shall go, annotate the add-on as the problem says; if not, mend the placement".to_owned()
            }
            Wait::DeletionWaits => {
                "a placement of the add-on is missing or being rewritten: nothing is deleted until it is whole".to_owned()
            }
            Wait::Kept => "nothing: delete the instance if it shall go".to_owned(),
            Wait::ClusterAbsent => {
                "a placement selects it, and there is no such ManagedCluster: nothing happens until there is".to_owned()
            }
            Wait::OptedOut => {
                "the cluster's annotation disable-automatic-installation keeps the add-on away".to_owned()
            }
            Wait::ClusterDeleting | Wait::Terminating => "nothing: it is going".to_owned(),
            Wait::OtherOwner => {
                "nothing: it is garbage-collected with the add-on that it belonged to, and made anew".to_owned()
            }
            Wait::NothingKnownGood => {
                "nothing may be installed until a revision is known good: resume the rollout or mend its strategy".to_owned()
            }
        }
    }

    fn canary(&self, wait: &CanaryWait) -> String {
        let Self { program, addon, hub } = self;
        match wait {
            CanaryWait::NotFound { placement } => {
                format!("create the placement {placement}, or name another canary")
            }
            CanaryWait::Empty { placement } => {
                format!("let {placement} select at least one cluster: an empty canary never passes")
            }
            CanaryWait::InMotion { placement, .. } => {
                format!("nothing: the decisions of {placement} are being rewritten")
            }
            CanaryWait::NotPassed { first, .. } => {
                format!("{program} explain {addon} {first}{hub} says why the canary has not passed")
            }
        }
    }
}

/// Whom to turn to about a problem; what it is stands before it.
fn mend(problem: &Problem) -> String {
    if problem.is_warning() {
        return "nothing: it is only a warning".to_owned();
    }
    "mend what the reason names: it goes on by itself".to_owned()
}
