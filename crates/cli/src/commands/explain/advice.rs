//! The suggested action for every reason. Actions that need no command are the engine's
//! (`Wait::remedy`).

use std::borrow::Cow;

use aviary_engine::explain::{CanaryWait, Decision, Flight, NEXT, Wait};
use aviary_engine::observed::InstallPlacement;
use aviary_engine::plan::ClusterReport;
use aviary_engine::problem::Problem;

use crate::live::{Leader, LiveArgs};
use crate::output::first_few;

const REFUSED: &str = "make room in the object that the reason names, or change what refuses it; the manager tries again within a minute";
const BY_ITSELF: &str = "nothing: it continues by itself when the reason no longer applies";

/// The add-on and the command line for which actions are suggested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advisor<'a> {
    pub(super) program: &'a str,
    pub(super) addon: &'a str,
    pub(super) live: &'a LiveArgs,
    /// The options that select the hub, as the user typed them.
    pub(super) hub: &'a str,
    pub(super) leader: &'a Leader,
}

impl Advisor<'_> {
    /// `refused` is for how many clusters the hub refuses writes that nobody names.
    pub(super) fn advice(
        &self,
        report: &ClusterReport,
        placement: Option<&InstallPlacement>,
        refused: usize,
    ) -> String {
        let cluster = &report.cluster;
        if let Some(advice) = self.nobody_acts().filter(|_| is_next(&report.decision)) {
            return advice;
        }
        match &report.decision {
            Decision::Settled => "nothing: it is up to date".to_owned(),
            decision if is_next(decision) && refused > 0 => format!(
                "the leading manager does this next, unless the hub refuses it: it refuses writes for {refused} more clusters than the condition WritesRefused of the add-on names; the manager's log names them all"
            ),
            Decision::Create
            | Decision::Delete(_)
            | Decision::Start(_)
            | Decision::Hold(Wait::NotCreated | Wait::NotStarted) => NEXT.to_owned(),
            Decision::InFlight(flight) => self.flying(flight, cluster.as_str()),
            Decision::Hold(wait) => self.waiting(wait, placement),
        }
    }

    /// What to do where it is the manager's turn, and no manager will take it.
    fn nobody_acts(&self) -> Option<String> {
        match self.leader {
            Leader::Unknown | Leader::Leads { skips: None } => None,
            Leader::Nobody(_) => Some("start a manager: none leads, so this does not happen".to_owned()),
            Leader::Leads { skips: Some(why) } => {
                Some(format!("look at the leading manager: it skips this add-on: {why}"))
            }
        }
    }

    fn flying(&self, flight: &Flight, cluster: &str) -> String {
        let Self { program, addon, hub, .. } = self;
        match flight {
            Flight::Installing | Flight::Updating => format!(
                "its agent has not reported yet; {} -n {cluster} get manifestworks shows whether it has seen its work",
                self.live.hub.kubectl()
            ),
            Flight::Soaking { until } => format!("nothing: it settles at {until} if it stays healthy"),
            Flight::Unavailable { .. } => {
                "check the add-on's pods on the cluster: it settles as soon as they are available".to_owned()
            }
            Flight::Progressing { .. } => {
                "look at the object and its pods on the cluster: the cluster settles when the object is healthy"
                    .into()
            }
            Flight::HealthUnknown { .. } => {
                "check the work agent of the cluster: it has applied the work and reports no health for it".into()
            }
            Flight::Unproven { .. } => {
                "let the add-on's own manager annotate its works with the hashes of their configs".to_owned()
            }
            Flight::Failed { .. } => format!(
                "fix the cause: it settles when its agent succeeds; {program} rollout retry {addon}{hub} makes it try again; {program} rollout undo {addon}{hub} rolls back"
            ),
            Flight::TimedOut { .. } => {
                format!("{program} rollout retry {addon}{hub} restarts its progressDeadline")
            }
            Flight::Refused(_) => REFUSED.to_owned(),
            Flight::Offline { .. } => "bring the cluster back: until then it keeps its slot".to_owned(),
        }
    }

    fn waiting(&self, wait: &Wait, placement: Option<&InstallPlacement>) -> String {
        let Self { program, addon, hub, .. } = self;
        let of = placement.map(|spec| format!(" --placement {}", spec.name)).unwrap_or_default();
        match wait {
            Wait::Canary(wait) => self.canary(wait),
            Wait::Halted { .. } => format!(
                "more clusters failed than maxFailures allows: fix them and run {program} rollout retry {addon}{of}{hub}, or roll back with {program} rollout undo {addon}{of}{hub}"
            ),
            Wait::Paused => format!("{program} rollout resume {addon}{of}{hub}"),
            Wait::Problem(problem) => for_problem(problem),
            wait => wait.remedy().map_or_else(|| BY_ITSELF.to_owned(), Cow::into_owned),
        }
    }

    fn canary(&self, wait: &CanaryWait) -> String {
        let Self { program, addon, hub, .. } = self;
        match wait {
            CanaryWait::Required { wait, .. } => self.canary(wait),
            CanaryWait::NotFound { placement } => {
                format!("create the placement {placement}, or use another canary")
            }
            CanaryWait::Empty { placement } => {
                format!("let {placement} select at least one cluster: an empty canary never passes")
            }
            CanaryWait::InMotion { placement, .. } => {
                format!("nothing: the decisions of {placement} are still changing")
            }
            CanaryWait::ComparesNothing { placement, cluster } => format!(
                "give {cluster} a config that is rolled out here, or remove it from {placement}: without a common config it proves nothing"
            ),
            CanaryWait::AskedForAnother { placement, wanted, desired } => format!(
                "set the same revision in both placements: {desired} in {placement}, or {wanted} here"
            ),
            CanaryWait::NotPassed { first, .. } => {
                format!("{program} explain {addon} {first}{hub} shows why the canary has not passed")
            }
        }
    }
}

/// Whether it is the manager's turn, and nothing is in the way.
fn is_next(decision: &Decision) -> bool {
    match decision {
        Decision::Create | Decision::Delete(_) | Decision::Start(_) => true,
        Decision::Hold(wait) => matches!(wait, Wait::NotCreated | Wait::NotStarted),
        Decision::InFlight(_) | Decision::Settled => false,
    }
}

/// The suggested action for a problem. The message of the problem comes before it.
fn for_problem(problem: &Problem) -> String {
    if let Problem::WriteRefused { .. } = problem {
        return REFUSED.to_owned();
    }
    if problem.is_warning() {
        return "nothing: it is only a warning".to_owned();
    }
    if let Problem::VersionUnsupported { supported, .. } = problem {
        let offered: Vec<&str> = supported.iter().map(|version| &**version).collect();
        return format!("publish that version, or use one of these: {}", first_few(&offered));
    }
    "fix what the reason names: the rollout then continues by itself".to_owned()
}
