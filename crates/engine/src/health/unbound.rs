//! Evidence of works that Aviary did not render with probes: what their own manager asks the agent
//! to report.
//!
//! It is not bound to the revision: the values may be those of an earlier object. So it never
//! proves health, it can only speak against it.

use aviary_api::names::conditions;
use aviary_api::work::{FieldValue, ManifestCondition};
use aviary_api::{Condition, ManifestWork};

use serde_json::Value;

use super::Health;
use super::instruct::ObjectId;
use super::probes::{MAX_UNAVAILABLE, Rounding, Values};
use super::read::subject;
use crate::observed::StatusFields;
use crate::reason::Reason;

/// Said of every such report, so that nobody takes it for more than it is.
pub const NOT_BOUND: &str = "not bound to the revision";

/// The longest part of an agent's message that is repeated.
const LONGEST: usize = 256;

/// What a work reports of its own accord. [`Health::NotProbed`] where nothing speaks against it.
pub(crate) fn health(object: &ManifestWork) -> Health {
    let generation = object.metadata.generation.unwrap_or(0);
    let Some(status) = &object.status else { return Health::NotProbed };
    let current = |condition: &&Condition| condition.observed_generation == Some(generation);
    let of_work = status.conditions.iter().filter(current).filter_map(|one| ill(one, "the work"));
    let reported = status.resource_status.as_ref().map_or(&[][..], |status| status.manifests.as_slice());
    let of_objects = reported.iter().flat_map(|report| {
        let label = label(report);
        let said: Vec<Health> = report.conditions.iter().filter_map(|one| ill(one, &label)).collect();
        said.into_iter().chain(feedback(report, &label, object.spec.manifests()))
    });
    of_work.chain(of_objects).fold(Health::NotProbed, Health::worst)
}

/// `Available` says nothing about an agent that never had a lease, as many have none, nor while the
/// cluster itself is silent.
const SAYS_NOTHING: [&str; 2] = ["ManagedClusterAddOnLeaseNotFound", "ManagedClusterLeaseUpdateStopped"];

/// The instance's `Available` as the add-on's own manager sets it, from a lease or otherwise.
pub(crate) fn of_instance(status: &StatusFields) -> Health {
    let Some(said) = status.condition(conditions::AVAILABLE) else { return Health::NotProbed };
    let is_ours = said.reason.is(|reason| OWN_REASONS.contains(&reason));
    if is_ours || SAYS_NOTHING.contains(&said.reason.as_str()) {
        return Health::NotProbed;
    }
    let message: String = said.message.chars().take(LONGEST).collect();
    let why = || format!("the instance: Available is {}: {message} ({NOT_BOUND})", said.status).into();
    match &*said.status {
        "False" => Health::Progressing { why: why(), tolerable: false },
        "Unknown" => Health::Unknown { why: why() },
        _ => Health::NotProbed,
    }
}

/// The reasons of an `Available` that we wrote while we rendered the add-on.
const OWN_REASONS: [Reason; 5] = [
    Reason::WorksAvailable,
    Reason::WorksNotReported,
    Reason::WorkNotAvailable,
    Reason::WorkloadUnhealthy,
    Reason::HealthUnknown,
];

/// Results of condition rules, of one object or added up for the work.
fn ill(condition: &Condition, of: &str) -> Option<Health> {
    let said = match condition.type_.as_str() {
        "Degraded" if condition.is_true() => "it is degraded",
        "Progressing" if condition.is_true() => "it is progressing",
        _ => return None,
    };
    let message = condition.message.as_deref().unwrap_or_default();
    let message: String = message.chars().take(LONGEST).collect();
    let detail = if message.is_empty() { said.to_owned() } else { format!("{said}: {message}") };
    Some(speaks_against(of, &detail, false))
}

/// The values of the feedback rules that OCM calls well-known.
fn feedback(report: &ManifestCondition, label: &str, manifests: &[Value]) -> Option<Health> {
    let values = &report.status_feedback.as_ref()?.values;
    let value = |name: &str| values.iter().find(|value| value.name == name).map(|value| &value.field_value);
    // A counter of 0 is left out of a report that has others.
    let number = |name: &str| value(name).map_or(Some(0), number);
    let replicas = |wanted: i64, available: i64, detail: String| {
        let is_tolerable = || {
            let manifest = manifests.iter().find(|one| ObjectId::of(one) == Some(subject(report)));
            available > 0
                && wanted - available <= manifest.and_then(|one| tolerated(one, wanted)).unwrap_or(0)
        };
        (available < wanted).then(|| (detail, is_tolerable()))
    };
    let other = |is_ill: bool, detail: &str| is_ill.then(|| (detail.to_owned(), false));
    let ill = match report.resource_meta.kind.as_deref()? {
        "Deployment" | "StatefulSet" | "ReplicaSet" if value("Replicas").is_some() => {
            let (wanted, available) = (number("Replicas")?, number("AvailableReplicas")?);
            replicas(wanted, available, format!("{available} of {wanted} replicas available"))
        }
        "DaemonSet" if value("DesiredNumberScheduled").is_some() => {
            let (wanted, ready) = (number("DesiredNumberScheduled")?, number("NumberReady")?);
            replicas(wanted, ready, format!("ready on {ready} of {wanted} nodes"))
        }
        "Job" if value("JobComplete").is_some() => {
            other(text(value("JobComplete")?)? != "True", "it has not completed yet")
        }
        "Pod" if value("PodPhase").is_some() => {
            let is_ready = value("PodReady").and_then(text) == Some("True");
            let phase = text(value("PodPhase")?)?;
            other(!is_ready && phase != "Succeeded", "it is not ready")
        }
        _ => None,
    };
    ill.map(|(detail, tolerable)| speaks_against(label, &detail, tolerable))
}

/// How many replicas a workload in use may lack, where its manifest tells.
fn tolerated(manifest: &Value, wanted: i64) -> Option<i64> {
    let (strategy, default, rounding) = match manifest.get("kind")?.as_str()? {
        "Deployment" => ("strategy", wanted / 4, Rounding::Down),
        "DaemonSet" => ("updateStrategy", 1, Rounding::Up),
        _ => return None,
    };
    let strategy = manifest.get("spec")?.get(strategy);
    let field = |name: &str| strategy.and_then(|strategy| strategy.get(name));
    if field("type").is_some_and(|type_| type_ == "Recreate") {
        return None;
    }
    let stated = field("rollingUpdate").and_then(|rolling| rolling.get("maxUnavailable"));
    let stated = stated.map(|stated| FieldValue {
        type_: if stated.is_string() { "String" } else { "Integer" }.to_owned(),
        string: stated.as_str().map(str::to_owned),
        integer: stated.as_i64(),
        ..FieldValue::default()
    });
    let all = stated.iter().map(|stated| (MAX_UNAVAILABLE, stated)).collect();
    Values { object: "", all }.max_unavailable(wanted, default, rounding).ok()
}

fn speaks_against(of: &str, detail: &str, tolerable: bool) -> Health {
    Health::Progressing { why: format!("{of}: {detail} ({NOT_BOUND})").into(), tolerable }
}

fn number(value: &FieldValue) -> Option<i64> {
    value.integer.filter(|number| value.type_ == "Integer" && *number >= 0)
}

fn text(value: &FieldValue) -> Option<&str> {
    value.string.as_deref().filter(|_| value.type_ == "String")
}

fn label(report: &ManifestCondition) -> String {
    let meta = &report.resource_meta;
    let kind = meta.kind.as_deref().unwrap_or("object");
    let name = meta.name.as_deref().unwrap_or_default();
    let label = match meta.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    };
    label.chars().take(LONGEST).collect()
}
