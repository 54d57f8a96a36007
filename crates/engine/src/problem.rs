//! What is wrong with an input: which object, and how to fix it.
//!
//! A problem is part of the report and becomes a condition. It is never an `Err` that stops a pass:
//! an invalid object affects only itself.

use std::fmt;

use aviary_api::names::annotations::HOSTING_CLUSTER_NAME;

use crate::configs::{ConfigRef, GroupResource};
use crate::duration::DurationError;
use crate::hash::Hash;
use crate::health::NoEffect;
use crate::limit::LimitError;
use crate::name::{ClusterName, NameError, PlacementName, Text};
use crate::observed::{Refusal, RefusedWrite, Unkeepable};
use crate::reason::Reason;
use crate::render::{OPTIONS_LIMIT, TEMPLATE_LIMIT, WORK_LIMIT};
use crate::versions::MOST_VERSIONS;

#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Problem {
    // The add-on's own spec.
    #[error("install strategy type {given:?} is not known: use Manual, ClusterLabelSelector or Placements")]
    InstallTypeUnknown { given: Text },
    #[error("the label selector cannot be used: {why}")]
    LabelSelectorInvalid { why: String },
    #[error(
        "placement {placement}: rollout type {given:?} is not known: use UpdateAll, RollingUpdate or RollingUpdateWithCanary"
    )]
    RolloutTypeUnknown { placement: PlacementName, given: Text },
    #[error("placement {placement}: {field}: {error}")]
    LimitInvalid { placement: PlacementName, field: &'static str, error: LimitError },
    #[error("placement {placement}: {field}: {error}")]
    DurationInvalid { placement: PlacementName, field: &'static str, error: DurationError },
    #[error("placement {placement} is listed twice: the later entry is used")]
    PlacementListedTwice { placement: PlacementName },
    #[error("{} is configured twice in one list: {config} is used", .config.kind)]
    ConfigListedTwice { config: ConfigRef },
    #[error(
        "one list has more configs of {} than the limit of {most}: none of them is used until some are removed; the last one is {config}", .config.kind
    )]
    ConfigsOfOneKind { config: ConfigRef, most: usize },
    #[error("placement {placement}: RollingUpdateWithCanary needs rollingUpdateWithCanary.placement")]
    CanaryNotNamed { placement: PlacementName },
    #[error("placements wait for each other as canary: {}", joined(.path, " -> "))]
    CanaryCycle { path: Vec<PlacementName> },
    #[error(
        "placement {placement}: canary {canary} proves nothing: cluster {cluster} has none of the configs of {placement}, so the gate stays closed"
    )]
    CanaryComparesNothing { placement: PlacementName, canary: PlacementName, cluster: ClusterName },
    #[error("placement {placement}: canary {canary} does not cover this change of {}: its clusters reference other objects, so the change rolls out without it", joined(.kinds, ", "))]
    NotCoveredByCanary { placement: PlacementName, canary: PlacementName, kinds: Vec<GroupResource> },
    #[error(
        "desiredVersion {desired} and installVersion {install} are the same setting and differ: {desired} is used"
    )]
    VersionsDiffer { desired: Text, install: Text },
    #[error(
        "the annotation addon.open-cluster-management.io/manager-term is {term}, which is higher than that of any manager of this hub ({own}): it is ignored; remove it"
    )]
    TermUnreached { term: u64, own: u64 },
    #[error("{field} is deprecated and ignored: use {instead}")]
    FieldDeprecated { field: &'static str, instead: &'static str },
    // Placements and clusters.
    #[error("placement {placement} does not exist: its clusters are unknown, so nothing is deleted")]
    PlacementUnknown { placement: PlacementName },
    #[error(
        "no placement controller has decided yet which clusters placement {placement} selects: nothing is deleted until one has"
    )]
    PlacementUndecided { placement: PlacementName },
    #[error(
        "placement {placement} publishes {published} clusters but its decisions hold {decided}: deletions wait until they agree"
    )]
    PlacementInMotion { placement: PlacementName, published: usize, decided: usize },
    #[error("placement {placement} names the cluster {given:?}, which {error}: it is ignored")]
    ClusterNameInvalid { placement: PlacementName, given: Text, error: NameError },
    // Configs and versions.
    #[error("{config} not found")]
    ConfigMissing { config: ConfigRef },
    #[error("{config}: the hub does not serve {}: install its CustomResourceDefinition", .config.kind)]
    ConfigKindUnknown { config: ConfigRef },
    #[error("{config}: the hub does not let the manager read {}: allow it to list and watch them, with a ClusterRole", .config.kind)]
    ConfigForbidden { config: ConfigRef },
    #[error("{config}: {} are namespaced: the reference needs a namespace", .config.kind)]
    ConfigNeedsNamespace { config: ConfigRef },
    #[error("{config} cannot be stored as a revision: {why}")]
    ConfigUnkeepable { config: ConfigRef, why: Unkeepable },
    #[error("{config} is not applied: the add-on does not support configs of {}", .config.kind)]
    ConfigUnsupported { config: ConfigRef },
    #[error(
        "{config} is not applied: an override on cluster {cluster} may not use configs from that namespace"
    )]
    ConfigOutOfReach { config: ConfigRef, cluster: ClusterName },
    #[error("{config}: {} must be listed in supportedConfigs to be used as a config", .config.kind)]
    CoreConfigNotListed { config: ConfigRef },
    #[error(
        "template {template} is not applied: it is a template of add-on {owner:?}, and an instance may use only those of its own add-on"
    )]
    TemplateOfAnother { template: Text, owner: Text },
    #[error(
        "the instance asks to be hosted on cluster {cluster:?}, and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation {}",
        HOSTING_CLUSTER_NAME
    )]
    HostingRefused { cluster: Text },
    #[error(
        "{config}: a Secret cannot be a config, because its content would be copied into revisions that others may read: reference a config that names the Secret"
    )]
    SecretAsConfig { config: ConfigRef },
    #[error("invalid version {version}")]
    VersionUnsupported { version: Text, supported: Vec<Text> },
    #[error("version {version} is the version of two templates, {} and {}", .templates[0], .templates[1])]
    VersionAmbiguous { version: Text, templates: [Text; 2] },
    #[error("the content of {config} at {} is no longer stored", .hash.short())]
    RevisionLost { config: ConfigRef, hash: Hash },
    #[error("no AddOnTemplate of this add-on is left: clusters keep their revision")]
    TemplatesGone,
    // Limits of the API.
    #[error(
        "the name of the add-on has {length} characters, and a label takes at most 63: nothing can be installed; use a shorter name"
    )]
    AddOnNameTooLong { length: usize },
    #[error("the add-on has {count} versions: its status lists the newest {}", MOST_VERSIONS)]
    VersionsTooMany { count: usize },
    // Rendering.
    #[error("template {template} has no manifests")]
    TemplateEmpty { template: Text },
    #[error("template {template}: {why}")]
    TemplateMalformed { template: Text, why: String },
    #[error("template {template} has {manifest} twice")]
    ManifestDuplicate { template: Text, manifest: String },
    #[error("template {template}: {manifest} has more than {} KiB once it is rendered, more than a work can carry", WORK_LIMIT / 1024)]
    ManifestTooLarge { template: Text, manifest: String },
    #[error("template {template}: agentSpec has more than {} KiB beside its manifests", OPTIONS_LIMIT / 1024)]
    OptionsTooLarge { template: Text },
    #[error("AddOnTemplate {template}: {object} changes under its old name, and {why}")]
    CreatedOnce { template: Text, object: String, why: NoEffect },
    #[error("template {template}: its manifests have more than {} KiB in total once they are rendered", TEMPLATE_LIMIT / 1024)]
    TemplateTooLarge { template: Text },
    #[error("template {template} uses the variable {variable}, which is not defined")]
    VariableUnknown { template: Text, variable: String },
    #[error("{config} defines the variable {variable}, which is built in and cannot be replaced")]
    VariableReserved { config: ConfigRef, variable: String },
    #[error("{config} cannot be used: {why}")]
    DeploymentConfigInvalid { config: ConfigRef, why: String },
    // Policies.
    #[error("AddOnRolloutPolicy {policy} cannot be used, so it holds what it covers: {why}")]
    PolicyInvalid { policy: Text, why: String },
    #[error(
        "the hub does not let the manager read AddOnRolloutPolicies: allow it to list and watch them, with its ClusterRole"
    )]
    PoliciesUnreadable,
    // What the hub refuses.
    #[error("the hub refuses to {}: {why}", .what.doing())]
    WriteRefused { what: RefusedWrite, why: Text },
    // Install.
    #[error(
        "{count} of {of} instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions=\"{count}\""
    )]
    DeletionHeld { count: usize, of: usize },
}

impl Problem {
    /// The reason in conditions and in `-o json`.
    pub fn code(&self) -> Reason {
        match self {
            Self::InstallTypeUnknown { .. } => Reason::InstallTypeUnknown,
            Self::LabelSelectorInvalid { .. } => Reason::LabelSelectorInvalid,
            Self::RolloutTypeUnknown { .. } => Reason::RolloutTypeUnknown,
            Self::LimitInvalid { .. } => Reason::LimitInvalid,
            Self::DurationInvalid { .. } => Reason::DurationInvalid,
            Self::PlacementListedTwice { .. } => Reason::PlacementListedTwice,
            Self::ConfigListedTwice { .. } => Reason::ConfigListedTwice,
            Self::ConfigsOfOneKind { .. } => Reason::ConfigurationNotSingle,
            Self::CanaryNotNamed { .. } => Reason::CanaryNotNamed,
            Self::CanaryCycle { .. } => Reason::CanaryCycle,
            Self::CanaryComparesNothing { .. } => Reason::CanaryComparesNothing,
            Self::NotCoveredByCanary { .. } => Reason::NotCoveredByCanary,
            Self::VersionsDiffer { .. } => Reason::VersionsDiffer,
            Self::TermUnreached { .. } => Reason::ManagerTermUnreached,
            Self::FieldDeprecated { .. } => Reason::FieldDeprecated,
            Self::PlacementUnknown { .. } => Reason::PlacementUnknown,
            Self::PlacementUndecided { .. } => Reason::PlacementUndecided,
            Self::PlacementInMotion { .. } => Reason::PlacementInMotion,
            Self::ClusterNameInvalid { .. } => Reason::ClusterNameInvalid,
            Self::ConfigMissing { .. } => Reason::ConfigurationMissing,
            Self::ConfigKindUnknown { .. } => Reason::ConfigurationKindUnknown,
            Self::ConfigForbidden { .. } => Reason::ConfigurationForbidden,
            Self::ConfigNeedsNamespace { .. } => Reason::ConfigurationNeedsNamespace,
            Self::ConfigUnkeepable { why: Unkeepable::TooLarge { .. }, .. } => Reason::ConfigurationTooLarge,
            Self::ConfigUnkeepable { why: Unkeepable::TooDeep, .. } => Reason::ConfigurationTooDeep,
            Self::ConfigUnkeepable { why: Unkeepable::TooDense, .. } => Reason::ConfigurationTooDense,
            Self::ConfigUnsupported { .. } => Reason::ConfigurationUnsupported,
            Self::ConfigOutOfReach { .. } => Reason::ConfigurationOutOfReach,
            Self::CoreConfigNotListed { .. } => Reason::ConfigurationNotListed,
            Self::TemplateOfAnother { .. } => Reason::TemplateOfAnother,
            Self::HostingRefused { .. } => Reason::HostingClusterInvalid,
            Self::SecretAsConfig { .. } => Reason::ConfigurationIsSecret,
            Self::VersionUnsupported { .. } => Reason::VersionUnsupported,
            Self::VersionAmbiguous { .. } => Reason::VersionAmbiguous,
            Self::RevisionLost { .. } => Reason::RevisionLost,
            Self::TemplatesGone => Reason::TemplatesGone,
            Self::AddOnNameTooLong { .. } => Reason::AddOnNameTooLong,
            Self::VersionsTooMany { .. } => Reason::VersionsTooMany,
            Self::TemplateEmpty { .. } => Reason::TemplateEmpty,
            Self::TemplateMalformed { .. } => Reason::TemplateMalformed,
            Self::ManifestDuplicate { .. } => Reason::ManifestDuplicate,
            Self::ManifestTooLarge { .. } => Reason::ManifestTooLarge,
            Self::CreatedOnce { .. } => Reason::CreatedOnce,
            Self::TemplateTooLarge { .. } | Self::OptionsTooLarge { .. } => Reason::TemplateTooLarge,
            Self::VariableUnknown { .. } => Reason::VariableUnknown,
            Self::VariableReserved { .. } => Reason::VariableReserved,
            Self::DeploymentConfigInvalid { .. } => Reason::DeploymentConfigInvalid,
            Self::PolicyInvalid { .. } => Reason::PolicyInvalid,
            Self::PoliciesUnreadable => Reason::PoliciesUnreadable,
            Self::WriteRefused { .. } => Reason::WriteRefused,
            Self::DeletionHeld { .. } => Reason::DeletionHeld,
        }
    }

    pub(crate) fn refused(refusal: &Refusal) -> Self {
        Self::WriteRefused { what: refusal.what, why: refusal.why.clone() }
    }

    /// Informational only; blocks nothing.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::FieldDeprecated { .. }
                // Its controller is still writing its decisions, or about to.
                | Self::PlacementInMotion { .. }
                | Self::PlacementUndecided { .. }
                | Self::ConfigListedTwice { .. }
                | Self::PlacementListedTwice { .. }
                | Self::NotCoveredByCanary { .. }
                | Self::TermUnreached { .. }
                | Self::VersionsTooMany { .. }
        )
    }
}

fn joined<T: fmt::Display>(all: &[T], by: &str) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(by)
}
