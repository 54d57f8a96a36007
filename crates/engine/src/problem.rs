//! What is wrong with an input, named so that the person who can mend it knows which object and what to do.
//!
//! A problem is a value that travels in the report and ends in a condition. It is never an `Err` that stops a pass: one
//! bad object is one object's problem.

use std::fmt;

use crate::configs::ConfigRef;
use crate::duration::DurationError;
use crate::hash::Hash;
use crate::limit::LimitError;
use crate::name::{ClusterName, NameError, PlacementName, Text};
use crate::observed::Unkeepable;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    // The add-on's own spec.
    InstallTypeUnknown { given: Text },
    LabelSelectorInvalid { why: String },
    RolloutTypeUnknown { placement: PlacementName, given: Text },
    LimitInvalid { placement: PlacementName, field: &'static str, error: LimitError },
    DurationInvalid { placement: PlacementName, field: &'static str, error: DurationError },
    PlacementListedTwice { placement: PlacementName },
    ConfigListedTwice { config: ConfigRef },
    CanaryNotNamed { placement: PlacementName },
    CanaryCycle { path: Vec<PlacementName> },
    VersionsDiffer { desired: Text, install: Text },
    FieldDeprecated { field: &'static str, instead: &'static str },
    // Placements and clusters.
    PlacementUnknown { placement: PlacementName },
    PlacementInMotion { placement: PlacementName, published: usize, decided: usize },
    ClusterNameInvalid { placement: PlacementName, given: Text, error: NameError },
    // Configs and versions.
    ConfigMissing { config: ConfigRef },
    ConfigKindUnknown { config: ConfigRef },
    ConfigForbidden { config: ConfigRef },
    ConfigNeedsNamespace { config: ConfigRef },
    ConfigUnkeepable { config: ConfigRef, why: Unkeepable },
    ConfigUnsupported { config: ConfigRef },
    ConfigOutOfReach { config: ConfigRef, cluster: ClusterName },
    CoreConfigNotListed { config: ConfigRef },
    VersionUnsupported { version: Text, supported: Vec<Text> },
    VersionAmbiguous { version: Text, templates: [Text; 2] },
    RevisionLost { config: ConfigRef, hash: Hash },
    TemplatesGone,
    // Rendering.
    TemplateEmpty { template: Text },
    TemplateMalformed { template: Text, why: String },
    ManifestDuplicate { template: Text, manifest: String },
    ManifestTooLarge { template: Text, manifest: String, kib: usize },
    VariableUnknown { template: Text, variable: String },
    VariableReserved { config: ConfigRef, variable: String },
    // Install.
    DeletionHeld { count: usize, of: usize },
}

impl Problem {
    /// The reason under which conditions and `-o json` name it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InstallTypeUnknown { .. } => "InstallTypeUnknown",
            Self::LabelSelectorInvalid { .. } => "LabelSelectorInvalid",
            Self::RolloutTypeUnknown { .. } => "RolloutTypeUnknown",
            Self::LimitInvalid { .. } => "LimitInvalid",
            Self::DurationInvalid { .. } => "DurationInvalid",
            Self::PlacementListedTwice { .. } => "PlacementListedTwice",
            Self::ConfigListedTwice { .. } => "ConfigListedTwice",
            Self::CanaryNotNamed { .. } => "CanaryNotNamed",
            Self::CanaryCycle { .. } => "CanaryCycle",
            Self::VersionsDiffer { .. } => "VersionsDiffer",
            Self::FieldDeprecated { .. } => "FieldDeprecated",
            Self::PlacementUnknown { .. } => "PlacementUnknown",
            Self::PlacementInMotion { .. } => "PlacementInMotion",
            Self::ClusterNameInvalid { .. } => "ClusterNameInvalid",
            Self::ConfigMissing { .. } => "ConfigurationMissing",
            Self::ConfigKindUnknown { .. } => "ConfigurationKindUnknown",
            Self::ConfigForbidden { .. } => "ConfigurationForbidden",
            Self::ConfigNeedsNamespace { .. } => "ConfigurationNeedsNamespace",
            Self::ConfigUnkeepable { why: Unkeepable::TooLarge { .. }, .. } => "ConfigurationTooLarge",
            Self::ConfigUnkeepable { why: Unkeepable::TooDeep, .. } => "ConfigurationTooDeep",
            Self::ConfigUnsupported { .. } => "ConfigurationUnsupported",
            Self::ConfigOutOfReach { .. } => "ConfigurationOutOfReach",
            Self::CoreConfigNotListed { .. } => "ConfigurationNotListed",
            Self::VersionUnsupported { .. } => "VersionUnsupported",
            Self::VersionAmbiguous { .. } => "VersionAmbiguous",
            Self::RevisionLost { .. } => "RevisionLost",
            Self::TemplatesGone => "TemplatesGone",
            Self::TemplateEmpty { .. } => "TemplateEmpty",
            Self::TemplateMalformed { .. } => "TemplateMalformed",
            Self::ManifestDuplicate { .. } => "ManifestDuplicate",
            Self::ManifestTooLarge { .. } => "ManifestTooLarge",
            Self::VariableUnknown { .. } => "VariableUnknown",
            Self::VariableReserved { .. } => "VariableReserved",
            Self::DeletionHeld { .. } => "DeletionHeld",
        }
    }

    /// Whether it only wants to be known, and holds nothing up.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::FieldDeprecated { .. } | Self::ConfigListedTwice { .. } | Self::PlacementListedTwice { .. }
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InstallTypeUnknown { given } => write!(
                f,
                "install strategy type {given:?} is not known: use Manual, ClusterLabelSelector or Placements"
            ),
            Self::LabelSelectorInvalid { why } => write!(f, "the label selector cannot be used: {why}"),
            Self::RolloutTypeUnknown { placement, given } => write!(
                f,
                "placement {placement}: rollout type {given:?} is not known: use UpdateAll, RollingUpdate or RollingUpdateWithCanary"
            ),
            Self::LimitInvalid { placement, field, error } => {
                write!(f, "placement {placement}: {field}: {error}")
            }
            Self::DurationInvalid { placement, field, error } => {
                write!(f, "placement {placement}: {field}: {error}")
            }
            Self::PlacementListedTwice { placement } => {
                write!(f, "placement {placement} is listed twice: the later entry is used")
            }
            Self::ConfigListedTwice { config } => {
                write!(f, "{} is configured twice in one list: {config} is used", config.kind)
            }
            Self::CanaryNotNamed { placement } => {
                write!(
                    f,
                    "placement {placement}: RollingUpdateWithCanary needs rollingUpdateWithCanary.placement"
                )
            }
            Self::CanaryCycle { path } => {
                f.write_str("placements wait for each other as canary: ")?;
                for (i, placement) in path.iter().enumerate() {
                    write!(f, "{}{placement}", if i == 0 { "" } else { " -> " })?;
                }
                Ok(())
            }
            Self::VersionsDiffer { desired, install } => write!(
                f,
                "desiredVersion {desired} and installVersion {install} are the same setting and differ: {desired} is used"
            ),
            Self::FieldDeprecated { field, instead } => {
                write!(f, "{field} is deprecated and ignored: use {instead}")
            }
            Self::PlacementUnknown { placement } => {
                write!(
                    f,
                    "placement {placement} does not exist: its clusters are unknown, so nothing is deleted"
                )
            }
            Self::PlacementInMotion { placement, published, decided } => write!(
                f,
                "placement {placement} publishes {published} clusters but its decisions hold {decided}: deletions wait until they agree"
            ),
            Self::ClusterNameInvalid { placement, given, error } => {
                write!(f, "placement {placement} names the cluster {given:?}, which {error}: it is left out")
            }
            Self::ConfigMissing { config } => write!(f, "{config} not found"),
            Self::ConfigKindUnknown { config } => {
                write!(
                    f,
                    "{config}: the hub does not serve {}: install its CustomResourceDefinition",
                    config.kind
                )
            }
            Self::ConfigForbidden { config } => write!(
                f,
                "{config}: the hub does not let the manager read {}: allow it to list and watch them, with a ClusterRole",
                config.kind
            ),
            Self::ConfigNeedsNamespace { config } => {
                write!(f, "{config}: {} are namespaced: the reference needs a namespace", config.kind)
            }
            Self::ConfigUnkeepable { config, why: Unkeepable::TooLarge { kib } } => write!(
                f,
                "{config} cannot be kept: it has {kib} KiB of content, more than {}",
                Unkeepable::MOST_KIB
            ),
            Self::ConfigUnkeepable { config, why: Unkeepable::TooDeep } => write!(
                f,
                "{config} cannot be kept: its content nests deeper than {} levels",
                Unkeepable::MOST_LEVELS
            ),
            Self::ConfigUnsupported { config } => {
                write!(f, "{config} is not applied: the add-on does not support configs of {}", config.kind)
            }
            Self::ConfigOutOfReach { config, cluster } => write!(
                f,
                "{config} is not applied: an override on cluster {cluster} may not use configs from that namespace"
            ),
            Self::CoreConfigNotListed { config } => {
                write!(
                    f,
                    "{config}: {} must be listed in supportedConfigs to be used as a config",
                    config.kind
                )
            }
            Self::VersionUnsupported { version, .. } => write!(f, "invalid version {version}"),
            Self::VersionAmbiguous { version, templates: [one, other] } => {
                write!(f, "version {version} is offered by two templates, {one} and {other}")
            }
            Self::RevisionLost { config, hash } => {
                write!(f, "the content of {config} at {} is no longer kept", hash.short())
            }
            Self::TemplatesGone => {
                f.write_str("no AddOnTemplate of this add-on is left: clusters stay on what they have")
            }
            Self::TemplateEmpty { template } => write!(f, "template {template} has no manifests"),
            Self::TemplateMalformed { template, why } => write!(f, "template {template}: {why}"),
            Self::ManifestDuplicate { template, manifest } => {
                write!(f, "template {template} has {manifest} twice")
            }
            Self::ManifestTooLarge { template, manifest, kib } => {
                write!(f, "template {template}: {manifest} is {kib} KiB, more than a work can carry")
            }
            Self::VariableUnknown { template, variable } => {
                write!(f, "template {template} uses the variable {variable}, which is not defined")
            }
            Self::VariableReserved { config, variable } => {
                write!(
                    f,
                    "{config} defines the variable {variable}, which is built in and cannot be replaced"
                )
            }
            Self::DeletionHeld { count, of } => write!(
                f,
                "{count} of {of} instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions=\"{count}\""
            ),
        }
    }
}
