//! An instance as plain, bounded facts: what registration reads of a ManagedClusterAddOn.

use aviary_api::names::{ADDON_GROUP, ADDON_TEMPLATES, conditions};
use aviary_api::{Condition, ManagedClusterAddOn};
use aviary_engine::hash::{self, Hash};
use serde_json::json;

use crate::names::AgentKey;

/// Condition: the agent can register, and has its rights.
pub const REGISTRATION_APPLIED: &str = conditions::REGISTRATION_APPLIED;
/// Condition: the ServiceAccount whose tokens the agent uses exists. Agents parse its message.
pub const TOKEN_READY: &str = "TokenInfrastructureReady";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInstance {
    pub key: AgentKey,
    pub uid: String,
    pub resource_version: String,
    pub generation: Option<i64>,
    /// The hash of the template that the instance is assigned; `None` if it has no template.
    pub template: Option<Hash>,
    /// The agent asks for tokens instead of certificates.
    pub uses_tokens: bool,
    /// The digest of `status.registrations`.
    pub registrations: Hash,
    pub conditions: Conditions,
}

/// Where our conditions are in the list of all. The others are not kept: a patch of a single entry
/// leaves them alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub are_there: bool,
    pub applied: Option<StatedCondition>,
    pub token: Option<StatedCondition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedCondition {
    pub index: usize,
    pub status: String,
    pub reason: String,
    pub message: Hash,
    pub since: Option<String>,
    pub observed_generation: Option<i64>,
}

impl AgentInstance {
    /// `None` if it is incomplete.
    pub fn read(object: &ManagedClusterAddOn) -> Option<Self> {
        let metadata = &object.metadata;
        let empty = Default::default();
        let status = object.status.as_ref().unwrap_or(&empty);
        let is_template = |group: &str, resource: &str| group == ADDON_GROUP && resource == ADDON_TEMPLATES;
        let reference = status.config_references.iter().find(|one| is_template(&one.group, &one.resource));
        let template = reference.and_then(|one| {
            let desired = one.desired_config.as_ref().and_then(|desired| desired.spec_hash.as_deref());
            Hash::recorded(desired.or(one.desired_config_spec_hash.as_deref()).unwrap_or_default())
        });
        let stated = |kind: &str| {
            let index = status.conditions.iter().position(|one| one.type_ == kind)?;
            Some(stated(index, status.conditions.get(index)?))
        };
        Some(Self {
            key: AgentKey::new(metadata.namespace.as_deref()?, metadata.name.as_deref()?),
            uid: metadata.uid.clone()?,
            resource_version: metadata.resource_version.clone()?,
            generation: metadata.generation,
            template,
            uses_tokens: status.kube_client_driver.as_deref() == Some("token"),
            registrations: hash::digest(&json!(status.registrations)),
            conditions: Conditions {
                are_there: !status.conditions.is_empty(),
                applied: stated(REGISTRATION_APPLIED),
                token: stated(TOKEN_READY),
            },
        })
    }
}

fn stated(index: usize, condition: &Condition) -> StatedCondition {
    StatedCondition {
        index,
        status: condition.status.clone(),
        reason: condition.reason.clone().unwrap_or_default(),
        message: hash::of_bytes(condition.message.as_deref().unwrap_or_default().as_bytes()),
        since: condition.last_transition_time.clone().filter(|since| since.len() < 64),
        observed_generation: condition.observed_generation,
    }
}
