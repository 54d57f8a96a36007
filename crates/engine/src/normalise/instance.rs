//! A ManagedClusterAddOn in all its dialects.

use aviary_api::ManagedClusterAddOn;
use aviary_api::addon::ManagedClusterAddOnStatus;
use aviary_api::managers::are_only_by_ocm;
use aviary_api::names::{self, annotations, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::cluster::followed;
use super::{conditions, config_refs, pin, text, unresolved_config, version};
use crate::configs::{ConfigRef, GroupResource};
use crate::name::{ClusterName, NameError, Text};
use crate::observed::{Instance, InstanceStatus, Reference, StatusFields};
use crate::problem::Problem;

/// Parses an instance; its unusable parts are returned as problems.
pub fn instance(object: &ManagedClusterAddOn) -> Result<(Instance, Vec<Problem>), NameError> {
    let mut problems = Vec::new();
    let metadata = &object.metadata;
    let spec = &object.spec;
    let labels = metadata.labels.as_ref();
    let marker = labels.and_then(|labels| labels.get(labels::INSTALLED_BY_STRATEGY));
    let mut instance = Instance {
        cluster: ClusterName::parse(metadata.namespace.as_deref().unwrap_or_default())?,
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        resource_version: metadata.resource_version.as_deref().unwrap_or_default().into(),
        generation: metadata.generation.unwrap_or(0),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers.iter().flatten().map(|one| one.as_str().into()).collect(),
        marker: text(marker),
        owner: owner(metadata, ADDON_KIND),
        has_other_owners: owners(metadata).iter().any(|owner| owner.kind != ADDON_KIND),
        made_by_ocm: marker.is_none() && are_only_by_ocm(metadata.managed_fields.as_ref()),
        install_namespace: text(spec.install_namespace.as_ref())
            .unwrap_or_else(|| names::DEFAULT_INSTALL_NAMESPACE.into()),
        hosting: hosting(metadata),
        addon_annotations: metadata.annotations.iter().flat_map(followed).collect(),
        overrides: config_refs(&spec.configs, &mut problems),
        version: version(spec.desired_version.as_ref(), spec.install_version.as_ref(), &mut problems),
        status: object.status.as_ref().map(status).unwrap_or_default(),
    };
    let says_nothing = !instance.has_own()
        && *instance.install_namespace == *names::DEFAULT_INSTALL_NAMESPACE
        && problems.is_empty();
    instance.made_by_ocm &= says_nothing;
    Ok((instance, problems))
}

/// The hosting cluster that it names, if that is another than its own. The name may be anything,
/// and goes into messages.
fn hosting(metadata: &ObjectMeta) -> Option<Text> {
    const LONGEST_NAME: usize = 253;
    let named = metadata.annotations.as_ref()?.get(annotations::HOSTING_CLUSTER_NAME)?;
    let other =
        Some(named).filter(|named| !named.is_empty() && metadata.namespace.as_ref() != Some(*named))?;
    Some(other.chars().take(LONGEST_NAME).collect::<String>().into())
}

const ADDON_KIND: &str = "ClusterManagementAddOn";

fn owners(metadata: &ObjectMeta) -> &[OwnerReference] {
    metadata.owner_references.as_deref().unwrap_or_default()
}

/// The uid of the owner of this kind.
pub(super) fn owner(metadata: &ObjectMeta, kind: &str) -> Option<Text> {
    owners(metadata).iter().find(|owner| owner.kind == kind).map(|owner| owner.uid.as_str().into())
}

fn status(status: &ManagedClusterAddOnStatus) -> InstanceStatus {
    let mut references = Vec::new();
    let mut unresolved = Vec::new();
    for reference in &status.config_references {
        let kind = GroupResource::new(&reference.group, &reference.resource);
        let named = ConfigRef {
            kind: kind.clone(),
            namespace: text(reference.namespace.as_ref()),
            name: reference.name.as_str().into(),
        };
        let desired = pin(
            &kind,
            &named,
            reference.desired_config.as_ref(),
            reference.desired_config_spec_hash.as_ref(),
        );
        let applied = pin(
            &kind,
            &named,
            reference.last_applied_config.as_ref(),
            reference.last_applied_config_spec_hash.as_ref(),
        );
        if desired.is_none() && applied.is_none() {
            let config = unresolved_config(&kind, reference.desired_config.as_ref());
            if let Some(config) = config {
                unresolved.push(config);
                continue;
            }
        }
        let observed_generation = reference.last_observed_generation;
        references.push(Reference { kind, desired, applied, observed_generation });
    }
    // Stable, so the order within a kind stays.
    references.sort_by(|a, b| a.kind.cmp(&b.kind));
    let (conditions, has_more_conditions) = conditions(&status.conditions);
    InstanceStatus::new(StatusFields {
        supported: status
            .supported_configs
            .iter()
            .map(|kind| GroupResource::new(&kind.group, &kind.resource))
            .collect(),
        references,
        unresolved,
        namespace: text(status.namespace.as_ref()),
        health_check: status.health_check.as_ref().and_then(|check| text(check.mode.as_ref())),
        desired_version: text(status.desired_version.as_ref()),
        current_version: text(status.current_version.as_ref()),
        last_version: text(status.last_version.as_ref()),
        conditions,
        has_more_conditions,
    })
}
