//! Every reason that Aviary gives, with its name on the wire: in conditions, Events, metrics,
//! reports and JSON.
//!
//! Owns the names. They are part of the API: a name is added, never changed. This is also the only
//! place that reads a reason back from a text; everything else asks the typed value.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::name::Text;
use crate::wire::wire_enum;

wire_enum! {
    /// The reason of a decision, a problem or a condition.
    pub enum Reason {
        // Progress of an instance or a placement, as the final design document spells it.
        Installing = "Installing",
        InstallSucceed = "InstallSucceed",
        InstallFailed = "InstallFailed",
        Upgrading = "Upgrading",
        UpgradeSucceed = "UpgradeSucceed",
        UpgradeFailed = "UpgradeFailed",
        // The same, as the earlier drafts spell it. `Failed` is also the reason of a cluster that
        // failed.
        Rollingback = "Rollingback",
        Succeed = "Succeed",
        Failed = "Failed",
        // The same, as OCM spells it since 2024.
        Progressing = "Progressing",
        Completed = "Completed",
        WaitingForManifestApplied = "WaitingForManifestApplied",
        ConfigurationsNotConfigured = "ConfigurationsNotConfigured",
        AddonManifestApplied = "AddonManifestApplied",
        AddonManifestAppliedFailed = "AddonManifestAppliedFailed",
        NilRegistration = "NilRegistration",
        WorkNotApplied = "WorkNotApplied",
        NoProbeResult = "NoProbeResult",
        ProbeAvailable = "ProbeAvailable",
        ProbeUnavailable = "ProbeUnavailable",
        // Other conditions of an instance.
        ConfigurationsConfigured = "ConfigurationsConfigured",
        WorksAvailable = "WorksAvailable",
        WorksNotReported = "WorksNotReported",
        WorkNotAvailable = "WorkNotAvailable",
        WorkloadUnhealthy = "WorkloadUnhealthy",
        /// OCM's name.
        HookManifestIsNotCompleted = "HookManifestIsNotCompleted",
        // The clock of a revision. `Healthy` is also the reason of a placement without unhealthy
        // clusters.
        Healthy = "Healthy",
        NotYetHealthy = "NotYetHealthy",
        NoLongerHealthy = "NoLongerHealthy",
        /// Another revision was applied before this one started, and none has ever been healthy:
        /// this is no first install.
        NeverHealthy = "NeverHealthy",
        // Conditions of an add-on.
        ClustersUnhealthy = "ClustersUnhealthy",
        DeletionAcknowledged = "DeletionAcknowledged",
        InstancesKept = "InstancesKept",
        NothingHeld = "NothingHeld",
        NothingKept = "NothingKept",
        NothingMissing = "NothingMissing",
        NothingRefused = "NothingRefused",
        NotStalled = "NotStalled",
        Resolved = "Resolved",
        Stalled = "Stalled",
        Valid = "Valid",
        // Decisions for a cluster.
        BudgetFull = "BudgetFull",
        ClusterAbsent = "ClusterAbsent",
        ClusterDeleting = "ClusterDeleting",
        ClusterNamespaceMissing = "ClusterNamespaceMissing",
        Create = "Create",
        DeletionHeld = "DeletionHeld",
        DeletionWaits = "DeletionWaits",
        Deselected = "Deselected",
        Halted = "Halted",
        HealthUnknown = "HealthUnknown",
        Install = "Install",
        Kept = "Kept",
        KnownGoodFirst = "KnownGoodFirst",
        NotCreated = "NotCreated",
        NotStarted = "NotStarted",
        NothingKnownGood = "NothingKnownGood",
        Offline = "Offline",
        OfflineInFlight = "OfflineInFlight",
        OptedOut = "OptedOut",
        OtherOwner = "OtherOwner",
        Paused = "Paused",
        PlacementUncertain = "PlacementUncertain",
        Retarget = "Retarget",
        Settled = "Settled",
        Soaking = "Soaking",
        Terminating = "Terminating",
        TimedOut = "TimedOut",
        Unavailable = "Unavailable",
        Unproven = "Unproven",
        Update = "Update",
        Updating = "Updating",
        WaitingForCanary = "WaitingForCanary",
        WorkloadProgressing = "WorkloadProgressing",
        WaitingForGroup = "WaitingForGroup",
        // Clusters of an add-on that nothing is decided for.
        AddOnDeleting = "AddOnDeleting",
        LeftAlone = "LeftAlone",
        // Problems.
        AddOnNameTooLong = "AddOnNameTooLong",
        CanaryComparesNothing = "CanaryComparesNothing",
        CanaryCycle = "CanaryCycle",
        CanaryNotNamed = "CanaryNotNamed",
        ClusterNameInvalid = "ClusterNameInvalid",
        ConfigListedTwice = "ConfigListedTwice",
        ConfigurationForbidden = "ConfigurationForbidden",
        ConfigurationIsSecret = "ConfigurationIsSecret",
        ConfigurationKindUnknown = "ConfigurationKindUnknown",
        ConfigurationMissing = "ConfigurationMissing",
        ConfigurationNeedsNamespace = "ConfigurationNeedsNamespace",
        ConfigurationNotSingle = "ConfigurationNotSingle",
        ConfigurationNotListed = "ConfigurationNotListed",
        ConfigurationOutOfReach = "ConfigurationOutOfReach",
        ConfigurationTooDeep = "ConfigurationTooDeep",
        ConfigurationTooDense = "ConfigurationTooDense",
        ConfigurationTooLarge = "ConfigurationTooLarge",
        ConfigurationUnsupported = "ConfigurationUnsupported",
        CreatedOnce = "CreatedOnce",
        DeploymentConfigInvalid = "DeploymentConfigInvalid",
        DurationInvalid = "DurationInvalid",
        FieldDeprecated = "FieldDeprecated",
        FirstInstallsNotThrottled = "FirstInstallsNotThrottled",
        /// OCM's name.
        HostingClusterInvalid = "HostingClusterInvalid",
        InstallTypeUnknown = "InstallTypeUnknown",
        LabelSelectorInvalid = "LabelSelectorInvalid",
        LimitInvalid = "LimitInvalid",
        ManagerTermUnreached = "ManagerTermUnreached",
        ManifestDuplicate = "ManifestDuplicate",
        ManifestTooLarge = "ManifestTooLarge",
        NotCoveredByCanary = "NotCoveredByCanary",
        PlacementInMotion = "PlacementInMotion",
        PlacementListedTwice = "PlacementListedTwice",
        PlacementUndecided = "PlacementUndecided",
        PlacementUnknown = "PlacementUnknown",
        RevisionLost = "RevisionLost",
        RolloutTypeUnknown = "RolloutTypeUnknown",
        TemplateEmpty = "TemplateEmpty",
        TemplateMalformed = "TemplateMalformed",
        TemplateOfAnother = "TemplateOfAnother",
        TemplateTooLarge = "TemplateTooLarge",
        TemplatesGone = "TemplatesGone",
        VariableReserved = "VariableReserved",
        VariableUnknown = "VariableUnknown",
        VersionAmbiguous = "VersionAmbiguous",
        PolicyInvalid = "PolicyInvalid",
        PoliciesUnreadable = "PoliciesUnreadable",
        VersionUnsupported = "VersionUnsupported",
        VersionsDiffer = "VersionsDiffer",
        VersionsTooMany = "VersionsTooMany",
        WriteRefused = "WriteRefused",
    }
}

impl Reason {
    /// Of a `Progressing` condition: the install or the upgrade failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::InstallFailed | Self::UpgradeFailed | Self::Failed)
    }

    /// Of a `Progressing` condition: the install or the upgrade completed.
    pub fn is_success(self) -> bool {
        matches!(self, Self::InstallSucceed | Self::UpgradeSucceed | Self::Succeed | Self::Completed)
    }

    /// Of a `Progressing` condition: this is a first install.
    pub fn is_install(self) -> bool {
        matches!(self, Self::Installing | Self::InstallSucceed | Self::InstallFailed)
    }

    /// Of a `Progressing` condition: something was installed before.
    pub fn is_upgrade(self) -> bool {
        matches!(self, Self::Upgrading | Self::UpgradeSucceed | Self::UpgradeFailed | Self::Rollingback)
    }
}

wire_enum! {
    /// The reason of a Kubernetes Event on an add-on.
    pub enum EventReason {
        CanaryPassed = "CanaryPassed",
        DeletionsApproved = "DeletionsApproved",
        HooksGivenUp = "HooksGivenUp",
        InvariantBroken = "InvariantBroken",
        ManagerTermUnreached = "ManagerTermUnreached",
        Paused = "Paused",
        Resumed = "Resumed",
        Retried = "Retried",
        RolledBack = "RolledBack",
        RolloutCompleted = "RolloutCompleted",
        RolloutFailed = "RolloutFailed",
        RolloutHalted = "RolloutHalted",
        RolloutStarted = "RolloutStarted",
        Undone = "Undone",
    }
}

impl EventReason {
    pub fn is_warning(self) -> bool {
        match self {
            Self::HooksGivenUp
            | Self::InvariantBroken
            | Self::ManagerTermUnreached
            | Self::RolloutFailed
            | Self::RolloutHalted => true,
            Self::CanaryPassed
            | Self::DeletionsApproved
            | Self::Paused
            | Self::Resumed
            | Self::Retried
            | Self::RolledBack
            | Self::RolloutCompleted
            | Self::RolloutStarted
            | Self::Undone => false,
        }
    }
}

wire_enum! {
    /// How a rollout of a placement ended, or that it has not.
    pub enum RolloutOutcome {
        Completed = "Completed",
        Failed = "Failed",
        InProgress = "InProgress",
        Replaced = "Replaced",
        RolledBack = "RolledBack",
    }
}

wire_enum! {
    /// What a revision is to its placement, in the history.
    pub enum RevisionMark {
        Wanted = "Wanted",
        KnownGood = "KnownGood",
        Applied = "Applied",
        Withdrawn = "Withdrawn",
    }
}

wire_enum! {
    /// Why a leader skips an add-on, in metrics.
    pub enum SkipCode {
        InvariantBroken = "InvariantBroken",
        OtherTerm = "OtherTerm",
        Panicked = "Panicked",
        WriteRefused = "WriteRefused",
    }
}

/// The reason of a condition as it was read: one of ours, or a text that somebody else wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConditionReason {
    Known(Reason),
    Other(Text),
}

impl ConditionReason {
    /// Reads a reason. The only place that turns a text into one.
    pub fn read(text: &str) -> Self {
        match Reason::ALL.iter().find(|reason| reason.as_str() == text) {
            Some(reason) => Self::Known(*reason),
            None => Self::Other(text.into()),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(reason) => reason.as_str(),
            Self::Other(text) => text,
        }
    }

    /// Whether it is one of ours that answers `question` with yes.
    pub fn is(&self, question: impl FnOnce(Reason) -> bool) -> bool {
        matches!(self, Self::Known(reason) if question(*reason))
    }
}

impl From<Reason> for ConditionReason {
    fn from(reason: Reason) -> Self {
        Self::Known(reason)
    }
}

impl PartialEq<Reason> for ConditionReason {
    fn eq(&self, other: &Reason) -> bool {
        matches!(self, Self::Known(reason) if reason == other)
    }
}

impl fmt::Display for ConditionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for ConditionReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_read_back_from_its_name_and_no_two_share_one() {
        for reason in Reason::ALL {
            assert_eq!(ConditionReason::read(reason.as_str()), ConditionReason::Known(*reason));
        }
        assert_eq!(ConditionReason::read("Theirs"), ConditionReason::Other("Theirs".into()));
    }
}
