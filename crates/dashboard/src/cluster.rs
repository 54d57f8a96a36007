//! One cluster of an add-on: where it stands, why, and what its agent reports.

use std::collections::BTreeMap;

use aviary_api::ManifestWork;
use aviary_api::names::labels;
use aviary_engine::name::ClusterName;
use aviary_engine::observed::{Condition, Observed};
use aviary_engine::plan::Plan;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::columns::kind;
use crate::summary::seconds;

/// More works than an add-on has on one cluster.
const MOST_WORKS: u32 = 100;

/// What is known of a cluster without asking the hub.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    cluster: String,
    placement: Option<String>,
    kind: u8,
    code: &'static str,
    message: String,
    revision: Option<String>,
    labels: BTreeMap<String, String>,
    available: Option<String>,
    conditions: Vec<Value>,
}

impl Found {
    pub(crate) fn of(observed: &Observed, plan: &Plan, name: &ClusterName) -> Option<Self> {
        let clusters = &plan.report.clusters;
        // In order of name.
        let at = clusters.binary_search_by(|report| report.cluster.cmp(name)).ok()?;
        let report = clusters.get(at)?;
        let placement = report.placement.and_then(|index| observed.addon.strategy.placements().get(index));
        let cluster = observed.clusters.get(name);
        let available = cluster.map(|cluster| match cluster.unreachable {
            None => "reachable".to_owned(),
            Some(unreachable) => match unreachable.since {
                Some(since) => format!("cannot be reached since {}", seconds(since)),
                None => "cannot be reached".to_owned(),
            },
        });
        let conditions = observed.instances.get(name).map(|instance| &instance.status.conditions);
        Some(Self {
            cluster: name.to_string(),
            placement: placement.map(|spec| spec.name.to_string()),
            kind: kind(&report.decision),
            code: report.decision.code(),
            message: report.decision.to_string(),
            revision: report.told.as_deref().map(str::to_owned),
            labels: cluster.map(|cluster| cluster.labels.clone()).unwrap_or_default(),
            available,
            conditions: conditions.into_iter().flatten().map(of_instance).collect(),
        })
    }
}

fn of_instance(condition: &Condition) -> Value {
    json!({
        "type": condition.kind,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.since.map(seconds),
    })
}

fn of_work(condition: &aviary_api::Condition) -> Value {
    json!({
        "type": condition.type_,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.last_transition_time,
    })
}

/// The works of an add-on on a cluster, as its agent reports on them.
pub(crate) async fn works(
    client: &Client,
    addon: &str,
    cluster: &ClusterName,
) -> Result<Vec<Value>, kube::Error> {
    let api: Api<ManifestWork> = Api::namespaced(client.clone(), cluster.as_str());
    let params = ListParams::default().labels(&format!("{}={addon}", labels::ADDON_NAME)).limit(MOST_WORKS);
    let works = api.list(&params).await?;
    Ok(works.items.iter().map(work).collect())
}

fn work(work: &ManifestWork) -> Value {
    let status = work.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let reported = status.and_then(|status| status.resource_status.as_ref());
    let reported = reported.map(|reported| reported.manifests.as_slice()).unwrap_or_default();
    let mut manifests: Vec<Value> = reported
        .iter()
        .map(|manifest| {
            let meta = &manifest.resource_meta;
            json!({
                "kind": meta.kind, "namespace": meta.namespace, "name": meta.name,
                "conditions": manifest.conditions.iter().map(of_work).collect::<Vec<_>>(),
            })
        })
        .collect();
    if manifests.is_empty() {
        // The agent has not said anything yet: what it was given.
        let given = |manifest: &Value| {
            let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            json!({
                "kind": text("/kind"), "namespace": text("/metadata/namespace"), "name": text("/metadata/name"),
                "conditions": [],
            })
        };
        manifests = work.spec.manifests().iter().map(given).collect();
    }
    json!({
        "name": work.name_any(),
        "conditions": conditions.iter().map(of_work).collect::<Vec<_>>(),
        "manifests": manifests,
    })
}
