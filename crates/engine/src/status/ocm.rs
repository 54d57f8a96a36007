//! The vocabulary of Open Cluster Management: reasons and messages as its newest add-on manager
//! writes them. Only what the words are; [`super::instance`] and [`super::addon`] decide when.

use crate::explain::{Decision, Flight};
use crate::fleet::{Fleet, Governor};
use crate::name::Word;
use crate::observed::Selection;
use crate::problem::Problem;
use crate::reason::Reason;
use crate::rollout::{PlacementOutcome, State};

use super::addon::ProgressCounts;
use super::instance::{InstanceProgress, Words};

pub(super) const COMPLETED: &str = "completed with no errors.";
pub(super) const CONFIGURED: &str = "Configurations configured";
pub(super) const NOT_CONFIGURED: &str = "Configurations updated and not configured yet";
pub(super) const WAITING: &str = "Waiting for ManagedClusterAddOn ManifestApplied condition";
pub(super) const NO_WORKS: &str = "progressing... no addon works";
pub(super) const MISMATCH: &str = "progressing... mca and work configs mismatch";
pub(super) const NOT_READY: &str = "progressing... work is not ready";
pub(super) const APPLIED: &str = "manifests of addon are applied successfully";
pub(super) const NOT_APPLIED: &str = "failed to apply the manifests of addon";

/// What an instance on its way waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The condition `ManifestApplied`.
    Applied,
    Works,
    /// Works of the assigned revision.
    Revision,
    Ready,
}

/// `Progressing` of an instance. Whether it is installed or upgraded makes no difference.
pub(super) fn progressing(progress: &InstanceProgress, awaited: Awaited) -> Option<Words> {
    Some(match progress {
        InstanceProgress::Untold => return None,
        InstanceProgress::Moving { .. } => match awaited {
            Awaited::Applied => ("False", Reason::WaitingForManifestApplied, WAITING.into()),
            Awaited::Works => ("True", Reason::Progressing, NO_WORKS.into()),
            Awaited::Revision => ("True", Reason::Progressing, MISMATCH.into()),
            Awaited::Ready => ("True", Reason::Progressing, NOT_READY.into()),
        },
        InstanceProgress::Done { .. } => ("False", Reason::Completed, COMPLETED.into()),
        InstanceProgress::Failed { why, .. } => ("False", Reason::Failed, why.to_string().into()),
        InstanceProgress::Stuck { problem: Problem::ConfigUnsupported { config }, .. } => {
            let (group, resource) = (&config.kind.group, &config.kind.resource);
            let message =
                format!("Configuration with gvr {group}/{resource} is not supported for this addon");
            ("False", Reason::ConfigurationUnsupported, message.into())
        }
        InstanceProgress::Stuck { problem, .. } => ("False", Reason::Failed, problem.to_string().into()),
    })
}

/// `Configured` of an instance without a problem: whether it was assigned its desired configs.
pub(super) fn configured(decision: &Decision) -> Words {
    let is_waiting = matches!(decision, Decision::Hold(wait) if wait.is_for_revision());
    match is_waiting {
        true => ("False", Reason::ConfigurationsNotConfigured, NOT_CONFIGURED.into()),
        false => ("True", Reason::ConfigurationsConfigured, CONFIGURED.into()),
    }
}

/// `ManifestApplied` of an instance.
pub(super) fn manifests(are_applied: bool) -> Words {
    match are_applied {
        true => ("True", Reason::AddonManifestApplied, APPLIED.into()),
        false => ("False", Reason::AddonManifestAppliedFailed, NOT_APPLIED.into()),
    }
}

/// `Available` of an instance, from our own words for it.
pub(super) fn available((status, reason, message): Words, addon: &str) -> Words {
    match reason {
        Reason::WorksAvailable => {
            (status, Reason::ProbeAvailable, format!("{addon} add-on is available.").into())
        }
        Reason::WorksNotReported => {
            (status, Reason::WorkNotApplied, "Addon manifestWork is not applied yet".into())
        }
        Reason::WorkNotAvailable => (status, Reason::WorkNotApplied, message),
        Reason::HealthUnknown => {
            (status, Reason::NoProbeResult, format!("Probe results are not returned: {message}").into())
        }
        Reason::WorkloadUnhealthy => {
            (status, Reason::ProbeUnavailable, format!("Probe addon unavailable with err {message}").into())
        }
        _ => (status, reason, message),
    }
}

/// `Progressing` of a placement.
pub(super) fn placement(fleet: &Fleet<'_>, governor: &Governor<'_>, outcome: &PlacementOutcome) -> Words {
    let PlacementOutcome { counts, state, aim, .. } = outcome;
    let selected = fleet.observed.placements.get(&governor.spec.name).map_or(0, Selection::len);
    let total = counts.governed - counts.left_out;
    let (failed, timed_out) = failures(outcome);
    let has_succeeded = matches!(state, State::InstallSucceeded | State::UpgradeSucceeded);
    let (done, on_target) = match aim.problem() {
        Some(_) => (0, 0),
        // A rollout stays completed when a cluster falls ill later. One that joins is not done.
        None if has_succeeded => (total.saturating_sub(counts.fresh), 0),
        None => (counts.done, counts.on_target.saturating_sub(failed + timed_out)),
    };
    let ending = format!("{failed} failed {timed_out} timeout.");
    if has_succeeded && done == total && total > 0 {
        let progress = ProgressCounts { done, governed: total };
        let message = format!(
            "selected clusters {selected}. configured addons {progress} completed with no errors, {ending}"
        );
        return ("False", Reason::Completed, message.into());
    }
    let progress = ProgressCounts { done: done.max(on_target), governed: total };
    let message: Word =
        format!("selected clusters {selected}. configured addons {progress} progressing..., {ending}").into();
    ("True", Reason::Progressing, message)
}

/// How many clusters of a placement failed, and how many of the others passed their deadline.
fn failures(outcome: &PlacementOutcome) -> (usize, usize) {
    let (mut failed, mut timed_out) = (0, 0);
    for run in outcome.moves.iter().flatten() {
        match &run.decided.decision {
            Decision::InFlight(Flight::TimedOut { .. }) => timed_out += run.count,
            Decision::InFlight(flight) if flight.is_failure() => failed += run.count,
            _ => {}
        }
    }
    (failed, timed_out)
}
