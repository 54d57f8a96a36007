//! Joins the hub, and keeps the cluster's lease and condition fresh, as OCM's registration agent
//! does.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use aviary_api::ManagedCluster;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::complain;
use crate::member::Member;
use crate::rules::{condition, list, set};

/// OCM's default is a minute.
const LEASE_SECONDS: u64 = 2;

/// Creates the ManagedCluster and its namespace, as accepted by the hub's administrator.
pub(crate) async fn join(hub: &Client, cluster: &str, labels: &[String]) -> Result<()> {
    let labels: BTreeMap<&str, &str> = labels.iter().filter_map(|label| label.split_once('=')).collect();
    let clusters: Api<ManagedCluster> = Api::all(hub.clone());
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": cluster, "labels": labels}, "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": LEASE_SECONDS},
    });
    taken(clusters.create(&PostParams::default(), &serde_json::from_value(object)?).await)?;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(hub.clone());
    let object = json!({"metadata": {"name": cluster}});
    taken(namespaces.create(&PostParams::default(), &serde_json::from_value(object)?).await)?;
    Ok(())
}

fn taken<T>(created: kube::Result<T>) -> kube::Result<()> {
    match created {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        other => other.map(drop),
    }
}

/// Runs for ever.
pub(crate) async fn heartbeat(hub: Client, member: Member, cluster: String) {
    let mut ticks = tokio::time::interval(Duration::from_secs(LEASE_SECONDS));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = beat(&hub, &member, &cluster).await {
            complain("heartbeat", &error);
        }
    }
}

async fn beat(hub: &Client, member: &Member, cluster: &str) -> Result<()> {
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> = Api::namespaced(hub.clone(), cluster);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "managed-cluster-lease"},
        "spec": {"leaseDurationSeconds": LEASE_SECONDS, "renewTime": format!("{:.6}", Timestamp::now())},
    });
    let manager = PatchParams::apply("work-agent").force();
    leases.patch("managed-cluster-lease", &manager, &Patch::Apply(&lease)).await?;

    let clusters: Api<ManagedCluster> = Api::all(hub.clone());
    let found = clusters.get(cluster).await?;
    let before = json!(found.status);
    let mut conditions = list(&before, "/conditions");
    set(
        &mut conditions,
        condition(
            "HubAcceptedManagedCluster",
            "True",
            "HubClusterAdminAccepted",
            "Accepted by hub cluster admin",
        ),
    );
    set(
        &mut conditions,
        condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "Managed cluster joined"),
    );
    set(
        &mut conditions,
        match member.is_ready().await {
            true => condition(
                "ManagedClusterConditionAvailable",
                "True",
                "ManagedClusterAvailable",
                "Managed cluster is available",
            ),
            false => condition(
                "ManagedClusterConditionAvailable",
                "False",
                "ManagedClusterKubeAPIServerUnavailable",
                "The kube-apiserver is not ok",
            ),
        },
    );
    if Value::from(conditions.clone()) != before["conditions"] {
        let patch = json!({"metadata": {"resourceVersion": found.metadata.resource_version}, "status": {"conditions": conditions}});
        clusters.patch_status(cluster, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(())
}
