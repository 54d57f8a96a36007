//! What an instance says of its progress, in the words of the final design document and of the
//! drafts before it. Those of OCM are in `ocm.rs`.

use aviary_api::names::UNKNOWN_VERSION;

use super::instance::{InstanceProgress, Words};
use crate::health::{Health, without_digits};
use crate::observed::{ObservedCondition, StatusFields};
use crate::problem::Problem;
use crate::reason::Reason;

/// The vocabulary of the final design document.
pub(super) fn final_words(progress: &InstanceProgress, goes_back: bool) -> Option<Words> {
    Some(match progress {
        InstanceProgress::Untold => return None,
        InstanceProgress::Moving { first: true } => ("True", Reason::Installing, "installing...".into()),
        InstanceProgress::Moving { first: false } => ("True", Reason::Upgrading, "upgrading...".into()),
        InstanceProgress::Done { first: true } => {
            ("False", Reason::InstallSucceed, "install completed with no errors.".into())
        }
        InstanceProgress::Done { first: false } => {
            ("False", Reason::UpgradeSucceed, "upgrade completed with no errors.".into())
        }
        InstanceProgress::Failed { first: true, why } => {
            ("False", Reason::InstallFailed, format!("install failed: {why}").into())
        }
        InstanceProgress::Failed { first: false, why } => {
            ("False", Reason::UpgradeFailed, format!("upgrade failed: {why}").into())
        }
        InstanceProgress::Stuck { problem: problem @ Problem::ConfigUnsupported { .. }, .. } => {
            ("False", Reason::ConfigurationUnsupported, problem.to_string().into())
        }
        InstanceProgress::Stuck { first, problem, .. } => {
            let reason = if *first { Reason::InstallFailed } else { Reason::UpgradeFailed };
            ("False", reason, stuck(*first, problem, goes_back).into())
        }
    })
}

/// The vocabulary of the earlier drafts.
pub(super) fn drafts(progress: &InstanceProgress, status: &StatusFields, goes_back: bool) -> Option<Words> {
    let version = status.desired_version.as_deref().unwrap_or(UNKNOWN_VERSION);
    let last = status.last_version.as_deref();
    Some(match progress {
        InstanceProgress::Untold => return None,
        InstanceProgress::Moving { first } if *first || last.is_none_or(|last| last == UNKNOWN_VERSION) => {
            ("True", Reason::Installing, format!("Installing addon to version {version}.").into())
        }
        InstanceProgress::Moving { .. } if goes_back => {
            ("True", Reason::Rollingback, format!("Rollingback addon to version {version}.").into())
        }
        InstanceProgress::Moving { .. } => {
            ("True", Reason::Upgrading, format!("Upgrading addon to version {version}.").into())
        }
        InstanceProgress::Done { .. } => {
            ("False", Reason::Succeed, "install completed with no errors.".into())
        }
        InstanceProgress::Failed { first, why } => (
            "False",
            Reason::Failed,
            format!("{} failed: {why}", if *first { "install" } else { "upgrade" }).into(),
        ),
        InstanceProgress::Stuck { problem: problem @ Problem::ConfigUnsupported { .. }, .. } => {
            ("False", Reason::ConfigurationUnsupported, problem.to_string().into())
        }
        InstanceProgress::Stuck { first, problem, .. } => {
            ("False", Reason::Failed, stuck(*first, problem, goes_back).into())
        }
    })
}

fn stuck(first: bool, problem: &Problem, goes_back: bool) -> String {
    match problem {
        Problem::VersionUnsupported { version, .. } => match (first, goes_back) {
            (true, _) => format!("could not install invalid version {version}"),
            (false, true) => format!("could not rollback to invalid version {version}"),
            (false, false) => format!("could not upgrade to invalid version {version}"),
        },
        problem if first => format!("install failed: {problem}"),
        problem => format!("upgrade failed: {problem}"),
    }
}

/// The reasons of `Available` that tell of bad health, in our words and in OCM's.
pub(super) const ILL: [Reason; 4] =
    [Reason::HealthUnknown, Reason::WorkloadUnhealthy, Reason::NoProbeResult, Reason::ProbeUnavailable];

/// The message that was given stays if only its numbers change: each would be a write per cluster.
/// Another object is more than another number, also if only a digit of its name is another.
pub(super) fn with_numbers_of(
    said: Option<&ObservedCondition>,
    (status, reason, message): Words,
    health: &Health,
) -> Words {
    let named = health.object().and_then(|object| {
        let (head, detail) = message.split_once(object)?;
        Some((message.get(..head.len() + object.len())?, detail))
    });
    let (named, detail) = named.unwrap_or(("", &message));
    let same = said.filter(|said| {
        let before = said.message.strip_prefix(named);
        said.status == status
            && said.reason == reason
            && before.is_some_and(|before| {
                // The name of the other object may go on with a digit.
                (named.is_empty() || before.starts_with(':') == detail.starts_with(':'))
                    && without_digits(before) == without_digits(detail)
            })
    });
    (status, reason, same.map_or_else(|| message.clone(), |said| said.message.clone()))
}
