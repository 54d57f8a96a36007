//! Everything about one cluster.

use std::collections::BTreeMap;

use anyhow::anyhow;
use aviary_controller::View;
use aviary_engine::configs::{Pin, Revision};
use aviary_engine::fleet::Fleet;
use aviary_engine::health::Health;
use aviary_engine::name::ClusterName;
use aviary_engine::observed::{Cluster, Observed, ObservedCondition, Seen, StatusFields, Work};
use aviary_engine::reason::Reason;
use aviary_engine::{plan, versions};
use jiff::Timestamp;
use serde::Serialize;

use super::advice::Advisor;
use crate::live::seconds;
use crate::nearest::did_you_mean;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterStory {
    version: u32,
    now: String,
    pub(super) add_on: String,
    pub(super) cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) placement: Option<String>,
    pub(super) decision: DecisionStory,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desired: Option<RevisionStory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) told: Option<RevisionStory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) applied: Option<RevisionStory>,
    pub(super) overridden: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) managed_cluster: Option<ManagedClusterStory>,
    pub(super) conditions: Vec<ConditionStory>,
    pub(super) works: Vec<WorkStory>,
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct DecisionStory {
    pub(super) kind: &'static str,
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) advice: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct RevisionStory {
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) configs: Vec<ConfigStory>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ConfigStory {
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) hash: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ManagedClusterStory {
    pub(super) reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unreachable_since: Option<String>,
    pub(super) deleting: bool,
    pub(super) opted_out: bool,
    pub(super) labels: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ConditionStory {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkStory {
    pub(super) name: String,
    pub(super) generation: i64,
    pub(super) applied: String,
    pub(super) available: String,
    /// What the agent reports about the health of its objects.
    pub(super) health: String,
    /// Whether it carries the hashes that are assigned to the instance.
    pub(super) as_told: bool,
    pub(super) deleting: bool,
}

impl ClusterStory {
    pub(super) fn of(
        view: &mut View,
        advisor: &Advisor<'_>,
        cluster: &str,
        notes: Vec<String>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let name = ClusterName::parse(cluster)
            .map_err(|error| anyhow!("{cluster:?} is not a valid cluster name: it {error}"))?;
        let told = view.observe(advisor.addon, |observed| story(observed, advisor, &name, notes, now));
        told.flatten().ok_or_else(|| {
            let known = view.observe(advisor.addon, |observed| observed.clusters.contains_key(&name));
            match known {
                Some(true) => anyhow!(
                    "add-on {} is not installed on cluster {name}: no placement selects it, and it has no instance",
                    advisor.addon
                ),
                _ => {
                    let meant = view.observe(advisor.addon, |observed| {
                        did_you_mean(cluster, observed.clusters.keys().map(ClusterName::as_str))
                    });
                    anyhow!(
                        "there is no cluster {name}, and add-on {} has no instance there{}",
                        advisor.addon,
                        meant.unwrap_or_default()
                    )
                }
            }
        })
    }
}

fn story(
    observed: &Observed,
    advisor: &Advisor<'_>,
    name: &ClusterName,
    notes: Vec<String>,
    now: Timestamp,
) -> Option<ClusterStory> {
    let plan = plan::plan(observed, now).recorded();
    let fleet = Fleet::line_up(observed);
    let facts = fleet.facts(fleet.lines.iter().position(|line| line.name == name)?)?;
    let status = facts.instance.as_ref().map(|instance| &**instance.status);
    let report = plan.report.clusters.iter().find(|report| report.cluster == *name);
    let governor = fleet.governor_of(facts);
    let spec = facts.governor().map(|_| governor.spec);
    let decision = match report {
        Some(report) => DecisionStory {
            kind: report.decision.state().as_str(),
            reason: report.decision.code(),
            message: report.decision.to_string(),
            advice: advisor.advice(report, spec, observed.refused_unnamed),
        },
        None => DecisionStory {
            kind: "left alone",
            reason: Reason::LeftAlone,
            message: plan.report.left_alone.unwrap_or_default().to_owned(),
            advice: "nothing: Aviary does not manage this add-on".to_owned(),
        },
    };
    let told = status.map(StatusFields::told_revision).filter(|revision| !revision.pins().is_empty());
    let applied: Vec<Pin> = status
        .into_iter()
        .flat_map(|status| &status.references)
        .filter_map(|reference| reference.applied.clone())
        .collect();
    let applied = Some(Revision::new(applied)).filter(|revision| !revision.pins().is_empty());
    let overrides = facts.overrides().into_iter().flat_map(|overrides| &overrides.kinds);
    Some(ClusterStory {
        version: 1,
        now: seconds(now).to_string(),
        add_on: observed.addon.name.to_string(),
        cluster: name.to_string(),
        placement: spec.map(|spec| spec.name.to_string()),
        decision,
        desired: governor.desired.as_ref().ok().map(|revision| revision_story(observed, revision)),
        told: told.map(|revision| revision_story(observed, &revision)),
        applied: applied.map(|revision| revision_story(observed, &revision)),
        overridden: overrides.map(ToString::to_string).collect(),
        managed_cluster: observed.clusters.get(name).map(|cluster| cluster_story(cluster)),
        conditions: status.into_iter().flat_map(|status| &status.conditions).map(condition_story).collect(),
        works: works(observed, name, status),
        notes,
    })
}

pub(crate) fn revision_story(observed: &Observed, revision: &Revision) -> RevisionStory {
    let config = |pin: &Pin| ConfigStory {
        kind: pin.config.kind.to_string(),
        namespace: pin.config.namespace.as_deref().map(str::to_owned),
        name: pin.config.name.to_string(),
        hash: pin.hash.to_string(),
    };
    RevisionStory {
        id: revision.id().to_string(),
        version: versions::of_revision(observed, revision).map(|version| version.to_string()),
        configs: revision.pins().iter().map(config).collect(),
    }
}

fn cluster_story(cluster: &Cluster) -> ManagedClusterStory {
    ManagedClusterStory {
        reachable: cluster.unreachable.is_none(),
        unreachable_since: cluster
            .unreachable
            .and_then(|unreachable| unreachable.since)
            .map(|at| at.to_string()),
        deleting: cluster.deleting,
        opted_out: cluster.opted_out,
        labels: cluster.labels.clone(),
    }
}

fn condition_story(condition: &ObservedCondition) -> ConditionStory {
    ConditionStory {
        kind: condition.kind.to_string(),
        status: condition.status.to_string(),
        reason: condition.reason.to_string(),
        message: condition.message.to_string(),
        since: condition.since.map(|since| since.to_string()),
    }
}

/// What is known about the health of a work's objects, in words.
fn health(work: &Work) -> String {
    match &work.health {
        // A work with nothing to probe is healthy once it is applied.
        Health::Healthy | Health::NotProbed if work.applied != Seen::Yes => "unknown: not applied".to_owned(),
        Health::Healthy => "healthy".to_owned(),
        Health::NotProbed => "not probed".to_owned(),
        Health::Progressing { why, .. } => format!("not healthy: {why}"),
        Health::Unknown { why } | Health::Kept { why } => format!("unknown: {why}"),
        Health::Failed { why } => format!("failed: {why}"),
    }
}

fn works(observed: &Observed, cluster: &ClusterName, status: Option<&StatusFields>) -> Vec<WorkStory> {
    let all = observed.works.get(cluster).map(|works| works.as_slice()).unwrap_or_default();
    let seen = |seen: &Seen| match seen {
        Seen::Yes => "yes".to_owned(),
        Seen::No { message } => format!("no: {message}"),
        Seen::NotYet => "not reported yet".to_owned(),
    };
    let as_told = |work: &Work| {
        status.is_some_and(|status| {
            let hashes = work.hashes.as_ref().map_or(&[][..], |hashes| hashes.as_slice());
            *hashes == **status.told_revision().hashes()
        })
    };
    let story = |work: &Work| WorkStory {
        name: match &work.hosted_on {
            Some(namespace) => format!("{namespace}/{}", work.name),
            None => work.name.to_string(),
        },
        generation: work.generation,
        applied: seen(&work.applied),
        available: seen(&work.available),
        health: health(work),
        as_told: as_told(work),
        deleting: work.deleting,
    };
    all.iter().map(story).collect()
}
