//! The status of an instance: `registrations`, `RegistrationApplied` and
//! `TokenInfrastructureReady`.
//!
//! The manager and the cluster's agent write other fields of the same status. So a write is a JSON
//! patch of single entries, with a test of the resource version: no writer overwrites another, and
//! it works whether or not the hub's schema declares the conditions as a map. (Server-side apply
//! would replace all conditions where it does not.)

use aviary_api::names::conditions::REGISTRATION_CONFIGURED;
use aviary_engine::hash;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::grants::WantedGrants;
use crate::instance::{AgentInstance, REGISTRATION_APPLIED, StatedCondition, TOKEN_READY};

/// The longest message of a condition.
const LONGEST_MESSAGE: usize = 2048;

/// The reason where the template requests no registration.
const NIL: &str = "NilRegistration";
/// The reason where the agent has its rights.
const PERMITTED: &str = "SetPermissionApplied";

/// A condition to state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct New {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// What became of the writes for an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Why some of it failed.
    pub failures: Vec<String>,
    /// The uid of the agent's ServiceAccount, if it has one.
    pub account: Option<String>,
}

/// The patch of an instance's status; `None` if it is up to date.
pub fn patch(
    instance: &AgentInstance,
    wanted: &WantedGrants,
    applied: &Applied,
    now: Timestamp,
) -> Option<Value> {
    let mut changes = Vec::new();
    let registrations = json!(wanted.registrations);
    if hash::digest(&registrations) != instance.registrations {
        changes.push(json!({"op": "add", "path": "/status/registrations", "value": registrations}));
    }
    let mut are_there = instance.conditions.are_there;
    let news = [
        (Some(registered(wanted, applied)), &instance.conditions.applied),
        (token(instance, wanted, applied), &instance.conditions.token),
    ];
    for (new, old) in news {
        let Some(new) = new else { continue };
        changes.extend(change(&new, old.as_ref(), instance.generation, are_there, now));
        are_there = true;
    }
    if changes.is_empty() {
        return None;
    }
    let mut patch = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": instance.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": instance.resource_version}),
    ];
    patch.append(&mut changes);
    Some(Value::Array(patch))
}

/// The condition of an instance whose template is unknown, so that nothing can be wanted.
pub fn patch_unknown(instance: &AgentInstance, now: Timestamp) -> Option<Value> {
    let new = New {
        kind: REGISTRATION_APPLIED,
        status: "False",
        reason: "TemplateUnknown",
        message: "The template that the instance is assigned is not stored on the hub".into(),
    };
    let conditions = &instance.conditions;
    let change = change(&new, conditions.applied.as_ref(), instance.generation, conditions.are_there, now)?;
    Some(json!([
        {"op": "test", "path": "/metadata/uid", "value": instance.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": instance.resource_version},
        change,
    ]))
}

fn registered(wanted: &WantedGrants, applied: &Applied) -> New {
    let (status, reason, message) = if !applied.failures.is_empty() {
        ("False", "SetPermissionFailed", applied.failures.join("; "))
    } else if !wanted.problems.is_empty() {
        ("False", "RegistrationInvalid", wanted.problems.join("; "))
    } else if wanted.is_nil {
        ("True", NIL, REGISTRATION_CONFIGURED.into())
    } else {
        ("True", PERMITTED, REGISTRATION_CONFIGURED.into())
    };
    let message = aviary_api::visible::visible(&message).at_most(LONGEST_MESSAGE).to_string();
    New { kind: REGISTRATION_APPLIED, status, reason, message }
}

fn token(instance: &AgentInstance, wanted: &WantedGrants, applied: &Applied) -> Option<New> {
    let kind = TOKEN_READY;
    let key = &instance.key;
    match &applied.account {
        // Agents read the UID from this text.
        Some(uid) if wanted.account && applied.failures.is_empty() => {
            let message = format!("ServiceAccount {}/{} (UID: {uid}) is ready", key.cluster, key.account());
            Some(New { kind, status: "True", reason: "TokenInfrastructureReady", message })
        }
        _ if wanted.account => {
            let message = "The agent's ServiceAccount is being created".into();
            Some(New { kind, status: "False", reason: "TokenInfrastructureApplyFailed", message })
        }
        _ => instance.conditions.token.as_ref().map(|_| New {
            kind,
            status: "False",
            reason: "TokenDriverOff",
            message: "The agent does not use tokens".into(),
        }),
    }
}

fn change(
    new: &New,
    old: Option<&StatedCondition>,
    generation: Option<i64>,
    are_there: bool,
    now: Timestamp,
) -> Option<Value> {
    let is_same = |old: &StatedCondition| {
        // OCM gives the other reason too where a template requests nothing. That stays.
        let is_reason = old.reason == new.reason || (new.reason == NIL && old.reason == PERMITTED);
        let said = (old.status.as_str(), &old.message);
        is_reason && said == (new.status, &hash::of_bytes(new.message.as_bytes()))
    };
    if old.is_some_and(is_same) {
        return None;
    }
    let kept = old.filter(|old| old.status == new.status).and_then(|old| old.since.clone());
    let mut condition = json!({
        "type": new.kind, "status": new.status, "reason": new.reason, "message": new.message,
        "lastTransitionTime": kept.unwrap_or_else(|| format!("{now:.0}")),
    });
    if let Some(generation) = generation {
        condition["observedGeneration"] = generation.into();
    }
    Some(match old {
        Some(old) => {
            json!({"op": "replace", "path": format!("/status/conditions/{}", old.index), "value": condition})
        }
        None if are_there => json!({"op": "add", "path": "/status/conditions/-", "value": condition}),
        None => json!({"op": "add", "path": "/status/conditions", "value": [condition]}),
    })
}
