//! One cluster of an add-on: its state, its reason, and what its agent reports.

use std::collections::BTreeMap;

use aviary_api::ManifestWork;
use aviary_api::names::labels;
use aviary_engine::name::ClusterName;
use aviary_engine::observed::{Condition, Observed};
use aviary_engine::plan::Plan;
use aviary_engine::reason::Reason;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::Value;

use crate::messages::ClusterKind;
use crate::summary::seconds;

/// More works than an add-on has on one cluster.
const MOST_WORKS: u32 = 100;

/// What is known about a cluster without a request to the hub.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    cluster: String,
    placement: Option<String>,
    kind: ClusterKind,
    code: Reason,
    message: String,
    revision: Option<String>,
    labels: BTreeMap<String, String>,
    available: Option<String>,
    conditions: Vec<ConditionLine>,
}

impl Found {
    pub(crate) fn of(observed: &Observed, plan: &Plan, name: &ClusterName) -> Option<Self> {
        let clusters = &plan.report.clusters;
        // Sorted by name.
        let at = clusters.binary_search_by(|report| report.cluster.cmp(name)).ok()?;
        let report = clusters.get(at)?;
        let placement = report.placement.and_then(|index| observed.addon.strategy.placements().get(index));
        let cluster = observed.clusters.get(name);
        let available = cluster.map(|cluster| match cluster.unreachable {
            None => "reachable".to_owned(),
            Some(unreachable) => match unreachable.since {
                Some(since) => format!("unreachable since {}", seconds(since)),
                None => "unreachable".to_owned(),
            },
        });
        let conditions = observed.instances.get(name).map(|instance| &instance.status.conditions);
        Some(Self {
            cluster: name.to_string(),
            placement: placement.map(|spec| spec.name.to_string()),
            kind: ClusterKind::of(&report.decision),
            code: report.decision.code(),
            message: report.decision.to_string(),
            revision: report.told.as_deref().map(str::to_owned),
            labels: cluster.map(|cluster| cluster.labels.clone()).unwrap_or_default(),
            available,
            conditions: conditions.into_iter().flatten().map(of_instance).collect(),
        })
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionLine {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: Option<String>,
    message: Option<String>,
    last_transition_time: Option<String>,
}

/// A work, as its agent reports on it.
#[derive(Debug, Serialize)]
pub(crate) struct WorkLine {
    name: String,
    conditions: Vec<ConditionLine>,
    manifests: Vec<ManifestLine>,
}

#[derive(Debug, Serialize)]
struct ManifestLine {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    conditions: Vec<ConditionLine>,
}

/// Everything about one cluster.
#[derive(Debug, Serialize)]
pub(crate) struct ClusterAnswer {
    #[serde(flatten)]
    pub(crate) found: Found,
    pub(crate) works: Vec<WorkLine>,
    /// A command that says more.
    pub(crate) next: String,
}

fn of_instance(condition: &Condition) -> ConditionLine {
    ConditionLine {
        type_: condition.kind.to_string(),
        status: condition.status.to_string(),
        reason: Some(condition.reason.to_string()),
        message: Some(condition.message.to_string()),
        last_transition_time: condition.since.map(seconds),
    }
}

fn of_work(condition: &aviary_api::Condition) -> ConditionLine {
    ConditionLine {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_transition_time: condition.last_transition_time.clone(),
    }
}

/// The works of an add-on on a cluster.
pub(crate) async fn works(
    client: &Client,
    addon: &str,
    cluster: &ClusterName,
) -> Result<Vec<WorkLine>, kube::Error> {
    let api: Api<ManifestWork> = Api::namespaced(client.clone(), cluster.as_str());
    let params = ListParams::default().labels(&format!("{}={addon}", labels::ADDON_NAME)).limit(MOST_WORKS);
    let works = api.list(&params).await?;
    Ok(works.items.iter().map(work).collect())
}

fn work(work: &ManifestWork) -> WorkLine {
    let status = work.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let reported = status.and_then(|status| status.resource_status.as_ref());
    let reported = reported.map(|reported| reported.manifests.as_slice()).unwrap_or_default();
    let manifests = match reported {
        // The agent has not reported yet: lists the manifests of the work.
        [] => work.spec.manifests().iter().map(given).collect(),
        reported => reported
            .iter()
            .map(|manifest| ManifestLine {
                kind: manifest.resource_meta.kind.clone(),
                namespace: manifest.resource_meta.namespace.clone(),
                name: manifest.resource_meta.name.clone(),
                conditions: manifest.conditions.iter().map(of_work).collect(),
            })
            .collect(),
    };
    WorkLine { name: work.name_any(), conditions: conditions.iter().map(of_work).collect(), manifests }
}

fn given(manifest: &Value) -> ManifestLine {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    ManifestLine {
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
        conditions: Vec::new(),
    }
}
