//! AddOnRolloutPolicies and AddOnRolloutRecords.

use aviary_api::Condition as ApiCondition;
use aviary_api::names::conditions;
use aviary_api::{AddOnRolloutPolicy, AddOnRolloutRecord};

use super::addon::attempts;
use super::condition;
use super::instance::owner;
use crate::duration;
use crate::limit::Limit;
use crate::name::PlacementName;
use crate::observed::Record;
use crate::policy::{Policy, PolicySummary, PolicyTargets};
use crate::selector::Selector;

/// Parses a policy. If a part of it is invalid, the policy holds what it covers.
pub fn policy(object: &AddOnRolloutPolicy) -> Policy {
    let (metadata, spec) = (&object.metadata, &object.spec);
    let mut faults: Vec<String> = Vec::new();
    let addons = match &spec.add_ons {
        None => PolicyTargets::All,
        Some(chosen) => match &chosen.label_selector {
            None => PolicyTargets::Named(chosen.names.iter().map(|name| name.as_str().into()).collect()),
            Some(selector) => Selector::parse(selector).map_or_else(
                |why| {
                    faults.push(format!("spec.addOns.labelSelector: {why}"));
                    PolicyTargets::All
                },
                PolicyTargets::Labelled,
            ),
        },
    };
    let name_of = |given: &aviary_api::addon::PlacementRef| PlacementName::new(&given.namespace, &given.name);
    let canary = spec.canary.as_ref().map(|canary| canary.placement.as_ref().map(name_of));
    if canary.as_ref().is_some_and(|canary| canary.as_ref().is_none_or(|name| name.name.is_empty())) {
        faults.push("spec.canary needs a placement".to_owned());
    }
    let max_failures = spec.max_failures.as_ref().and_then(|given| {
        Limit::tolerance(given).map_err(|error| faults.push(format!("spec.maxFailures: {error}"))).ok()
    });
    let mut time = |field: &str, given: Option<&String>| {
        let parsed = duration::parse(given?).map_err(|error| faults.push(format!("spec.{field}: {error}")));
        parsed.ok().flatten()
    };
    let min_success_time = time("minSuccessTime", spec.min_success_time.as_ref());
    let progress_deadline = time("progressDeadline", spec.progress_deadline.as_ref());
    let placements = spec.placements.iter().map(name_of).collect();
    Policy {
        name: metadata.name.as_deref().unwrap_or_default().into(),
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        resource_version: metadata.resource_version.as_deref().unwrap_or_default().into(),
        generation: metadata.generation.unwrap_or(0),
        addons,
        placements: (!spec.placements.is_empty()).then_some(placements),
        canary: canary.flatten(),
        paused: spec.paused.unwrap_or(false),
        max_failures,
        min_success_time,
        progress_deadline,
        fault: (!faults.is_empty()).then(|| faults.join("; ")),
        summary: summary(object),
        verdict: valid(object).map(condition),
        is_unreadable: false,
    }
}

fn valid(object: &AddOnRolloutPolicy) -> Option<&ApiCondition> {
    ApiCondition::find(&object.status.as_ref()?.conditions, conditions::VALID)
}

fn summary(object: &AddOnRolloutPolicy) -> Option<PolicySummary> {
    let status = object.status.as_ref()?;
    let count = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
    let valid = valid(object)?;
    Some(PolicySummary {
        generation: status.observed_generation?,
        addons: count(status.add_ons)?,
        placements: count(status.placements)?,
        fault: (!valid.is_true()).then(|| valid.message.clone().unwrap_or_default()),
    })
}

/// Reads a record.
pub fn record(object: &AddOnRolloutRecord) -> Record {
    let metadata = &object.metadata;
    let status = object.status.as_ref();
    Record {
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        resource_version: metadata.resource_version.as_deref().unwrap_or_default().into(),
        generation: metadata.generation.unwrap_or(0),
        owner: owner(metadata, "ClusterManagementAddOn"),
        conditions: status.map_or_else(Vec::new, |status| status.conditions.iter().map(condition).collect()),
        attempts: status.map_or_else(Vec::new, |status| attempts(&status.attempts)),
    }
}
