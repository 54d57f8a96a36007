//! Statuses as the API spells them: every dialect that somebody may read, from the one internal
//! value.

use aviary_api::addon::{
    ConfigGroupResource, ConfigReference, ConfigSpecHash, DefaultConfigReference, InstallConfigReference,
    InstallProgression, OcmInstallConfigReference, OcmInstallProgression, RolloutAttempt, RolloutCounts,
};
use serde_json::{Value, json};

use super::OURS;
use crate::attempts::Attempt;
use crate::configs::{ConfigRef, GroupResource, Pin, side_by_side};
use crate::hash::Hash;
use crate::name::{PlacementName, Text};
use crate::observed::{
    AddOnStatus, InstanceStatus, ObservedCondition, Recorded, Reference, RolloutSummary, StatusFields,
};
use crate::plan::{GuardWrite, RecordWrite, StatusWrite, Write};
use crate::served::Served;
use crate::tally::ClusterTally;

/// The fields of an instance's status that are ours, as a merge patch of that status.
pub fn instance(write: &StatusWrite, served: &Served) -> Value {
    let mut patch = all_of_instance(&write.status, served);
    if let Some(fields) = patch.as_object_mut() {
        if !served.instance_versions {
            fields.retain(|field, _| !field.ends_with("Version"));
        }
        // The field of an add-on with its own manager is that manager's.
        if !write.owns_supported {
            fields.remove("supportedConfigs");
        }
        if !write.owns_supported || !served.is_ocm() {
            fields.remove("namespace");
            fields.remove("healthCheck");
        }
    }
    patch
}

fn all_of_instance(status: &InstanceStatus, served: &Served) -> Value {
    let StatusFields {
        supported,
        references,
        unresolved,
        namespace,
        health_check,
        desired_version,
        current_version,
        last_version,
        conditions,
        has_more_conditions: _,
    } = &**status;
    let supported: Vec<ConfigGroupResource> = supported
        .iter()
        .map(|kind| ConfigGroupResource {
            group: kind.group.to_string(),
            resource: kind.resource.to_string(),
        })
        .collect();
    let mut references: Vec<ConfigReference> = references.iter().map(reference).collect();
    if served.is_ocm() {
        for reference in &mut references {
            reference.desired_config_spec_hash = None;
            reference.last_applied_config_spec_hash = None;
        }
        references.extend(unresolved.iter().map(unresolved_reference));
        references.sort_by(|a, b| (&a.group, &a.resource).cmp(&(&b.group, &b.resource)));
    }
    json!({
        "supportedConfigs": supported,
        "configReferences": references,
        "namespace": namespace,
        "healthCheck": health_check.as_ref().map(|mode| json!({"mode": mode})),
        "desiredVersion": desired_version,
        "currentVersion": current_version,
        "lastVersion": last_version,
        "conditions": conditions.iter().map(condition).collect::<Vec<_>>(),
    })
}

/// The same for an object that has more conditions of others than are kept: those that are `there`
/// stay as they are, because a merge patch replaces the whole list.
pub fn instance_among(write: &StatusWrite, served: &Served, there: &[aviary_api::Condition]) -> Value {
    let status = &write.status;
    let is_ours = |kind: &str| OURS.contains(&kind);
    let mut ours: Vec<aviary_api::Condition> =
        status.conditions.iter().filter(|one| is_ours(&one.kind)).map(condition).collect();
    let mut all = Vec::with_capacity(there.len() + ours.len());
    for one in there {
        match ours.iter().position(|our| our.type_ == one.type_) {
            Some(at) => all.push(ours.remove(at)),
            None if is_ours(&one.type_) => {}
            None => all.push(one.clone()),
        }
    }
    all.append(&mut ours);
    let mut patch = instance(write, served);
    if let Some(fields) = patch.as_object_mut() {
        fields.insert("conditions".into(), json!(all));
    }
    patch
}

fn reference(reference: &Reference) -> ConfigReference {
    let Reference { kind, desired, applied, observed_generation } = reference;
    let named = desired.as_ref().or(applied.as_ref());
    ConfigReference {
        group: kind.group.to_string(),
        resource: kind.resource.to_string(),
        namespace: named.and_then(|pin| owned(&pin.config.namespace)),
        name: named.map(|pin| pin.config.name.to_string()).unwrap_or_default(),
        desired_config_spec_hash: Some(hash(desired.as_ref())),
        last_applied_config_spec_hash: Some(hash(applied.as_ref())),
        last_observed_generation: *observed_generation,
        desired_config: desired.as_ref().map(spec_hash),
        last_applied_config: applied.as_ref().map(spec_hash),
    }
}

/// OCM lists a config that cannot be used with an empty hash.
fn unresolved_reference(config: &ConfigRef) -> ConfigReference {
    ConfigReference {
        group: config.kind.group.to_string(),
        resource: config.kind.resource.to_string(),
        namespace: owned(&config.namespace),
        name: config.name.to_string(),
        desired_config: Some(without_hash(config)),
        ..ConfigReference::default()
    }
}

fn without_hash(config: &ConfigRef) -> ConfigSpecHash {
    ConfigSpecHash {
        namespace: owned(&config.namespace),
        name: config.name.to_string(),
        spec_hash: Some(String::new()),
    }
}

fn default_reference((config, hash): &(ConfigRef, Option<Hash>)) -> DefaultConfigReference {
    let mut desired = without_hash(config);
    desired.spec_hash = Some(hash.as_ref().map(ToString::to_string).unwrap_or_default());
    DefaultConfigReference {
        group: config.kind.group.to_string(),
        resource: config.kind.resource.to_string(),
        desired_config: Some(desired),
    }
}

/// The fields of an add-on's status that are ours, as a merge patch of that status. `order` is the
/// order of its placements. What the hub would prune is left out.
pub fn addon(status: &AddOnStatus, order: &[PlacementName], served: &Served) -> Value {
    let mut patch = all_of_addon(status, order);
    let kept = |field: &str| match field {
        "observedGeneration" => served.observed_generation,
        "installProgression" => served.progression,
        "defaultconfigReferences" => served.default_references,
        "supportedVersions" | "defaultVersion" => served.addon_versions,
        "conditions" | "rollout" | "attempts" => served.addon_conditions,
        _ => true,
    };
    if let Some(fields) = patch.as_object_mut() {
        fields.retain(|field, _| kept(field));
    }
    patch
}

fn all_of_addon(status: &AddOnStatus, order: &[PlacementName]) -> Value {
    let AddOnStatus {
        observed_generation,
        placements,
        supported_versions,
        default_version,
        rollout,
        defaults,
        attempts,
        conditions,
    } = status;
    let listed: Vec<(&PlacementName, &Recorded)> =
        order.iter().filter_map(|name| Some((name, placements.get(name)?))).collect();
    json!({
        "observedGeneration": observed_generation,
        "installProgression": listed.iter().map(|(name, recorded)| progression(name, recorded)).collect::<Vec<_>>(),
        "installProgressions": listed.iter().map(|(name, recorded)| ocm_progression(name, recorded)).collect::<Vec<_>>(),
        "defaultconfigReferences": defaults.iter().map(default_reference).collect::<Vec<_>>(),
        "supportedVersions": supported_versions,
        "defaultVersion": default_version,
        "rollout": rollout.as_ref().map(counts),
        "attempts": attempts.iter().map(attempt).collect::<Vec<_>>(),
        "conditions": conditions.iter().map(condition).collect::<Vec<_>>(),
    })
}

/// The status of a record, as a merge patch of it. `generation` is that of the record itself.
pub fn record(write: &RecordWrite, generation: i64) -> Value {
    json!({
        "observedGeneration": generation,
        "addOnGeneration": write.addon_generation,
        "acknowledgedDeletions": write.acknowledged,
        "attempts": write.attempts.iter().map(attempt).collect::<Vec<_>>(),
        "conditions": write.conditions.iter().map(condition).collect::<Vec<_>>(),
    })
}

/// What is written, without times: two equal ones say the same. `None` if it must be written
/// whatever the hub made of it before, as finalizers must.
pub fn timeless(write: &Write, order: &[PlacementName], served: &Served) -> Option<Value> {
    let mut status = match write {
        Write::AddOn(status) => addon(status, order, served),
        Write::Instance(write) => instance(write, served),
        // Its generation is not ours, and is no reason to write.
        Write::Record(write) => record(write, 0),
        Write::Guard(write) if write.finalizers.is_none() => metadata(write),
        _ => return None,
    };
    drop_times(&mut status);
    Some(status)
}

fn metadata(write: &GuardWrite) -> Value {
    json!({"owns": write.owns, "marker": write.marker, "annotations": write.annotations})
}

fn drop_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("lastTransitionTime");
            fields.remove("endedAt");
            fields.values_mut().for_each(drop_times);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_times),
        _ => {}
    }
}

fn counts(summary: &RolloutSummary) -> RolloutCounts {
    let RolloutSummary { version, tally } = summary;
    let ClusterTally { clusters, settled, in_flight, failed, waiting, leaving } = *tally;
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    RolloutCounts {
        version: version.to_string(),
        progress: format!("{settled}/{clusters}"),
        clusters: count(clusters),
        settled: count(settled),
        in_flight: count(in_flight),
        failed: count(failed),
        waiting: count(waiting),
        leaving: count(leaving),
    }
}

fn attempt(attempt: &Attempt) -> RolloutAttempt {
    let Attempt { placement, version, outcome, message, started, ended } = attempt;
    RolloutAttempt {
        namespace: placement.namespace.to_string(),
        name: placement.name.to_string(),
        version: version.to_string(),
        outcome: outcome.as_str().to_owned(),
        message: message.to_string(),
        started_at: started.to_string(),
        ended_at: ended.to_string(),
    }
}

/// 000's form: one name, three hashes.
fn progression(name: &PlacementName, recorded: &Recorded) -> InstallProgression {
    InstallProgression {
        name: name.name.to_string(),
        namespace: name.namespace.to_string(),
        config_references: rows(recorded)
            .into_iter()
            .map(|(kind, [desired, known_good, applied])| {
                let named = desired.or(known_good).or(applied);
                InstallConfigReference {
                    group: kind.group.to_string(),
                    resource: kind.resource.to_string(),
                    namespace: named.and_then(|pin| owned(&pin.config.namespace)),
                    name: named.map(|pin| pin.config.name.to_string()).unwrap_or_default(),
                    desired_config_spec_hash: Some(hash(desired)),
                    last_known_good_config_spec_hash: Some(hash(known_good)),
                    last_applied_config_spec_hash: Some(hash(applied)),
                }
            })
            .collect(),
        conditions: recorded.conditions.iter().map(condition).collect(),
    }
}

/// OCM's later form: three objects with a name each.
fn ocm_progression(name: &PlacementName, recorded: &Recorded) -> OcmInstallProgression {
    let reference = |(kind, row): (&GroupResource, [Option<&Pin>; 3])| {
        let [desired, known_good, applied] = row.map(|pin| pin.map(spec_hash));
        OcmInstallConfigReference {
            group: kind.group.to_string(),
            resource: kind.resource.to_string(),
            desired_config: desired,
            last_known_good_config: known_good,
            last_applied_config: applied,
        }
    };
    let mut references: Vec<OcmInstallConfigReference> = rows(recorded).into_iter().map(reference).collect();
    for config in &recorded.unresolved {
        let is_free = |one: &&mut OcmInstallConfigReference| {
            one.desired_config.is_none()
                && *one.group == *config.kind.group
                && *one.resource == *config.kind.resource
        };
        let desired = Some(without_hash(config));
        match references.iter_mut().find(is_free) {
            Some(free) => free.desired_config = desired,
            None => references.push(OcmInstallConfigReference {
                desired_config: desired,
                ..reference((&config.kind, [None; 3]))
            }),
        }
    }
    references.sort_by(|a, b| (&a.group, &a.resource).cmp(&(&b.group, &b.resource)));
    OcmInstallProgression {
        name: name.name.to_string(),
        namespace: name.namespace.to_string(),
        config_references: references,
        conditions: recorded.conditions.iter().map(condition).collect(),
    }
}

fn rows(recorded: &Recorded) -> Vec<(&GroupResource, [Option<&Pin>; 3])> {
    side_by_side([&recorded.desired, &recorded.known_good, &recorded.applied].map(Option::as_ref))
}

fn owned(text: &Option<Text>) -> Option<String> {
    text.as_ref().map(ToString::to_string)
}

fn hash(pin: Option<&Pin>) -> String {
    pin.map(|pin| pin.hash.to_string()).unwrap_or_default()
}

fn spec_hash(pin: &Pin) -> ConfigSpecHash {
    ConfigSpecHash {
        namespace: owned(&pin.config.namespace),
        name: pin.config.name.to_string(),
        spec_hash: Some(pin.hash.to_string()),
    }
}

fn condition(condition: &ObservedCondition) -> aviary_api::Condition {
    aviary_api::Condition {
        type_: condition.kind.to_string(),
        status: condition.status.to_string(),
        reason: Some(condition.reason.to_string()).filter(|reason| !reason.is_empty()),
        message: Some(condition.message.to_string()),
        last_transition_time: condition.since.map(|since| since.to_string()),
        observed_generation: condition.observed_generation,
    }
}
