//! The part of the hub's registration that sees a cluster's lease expire. On a hub of OCM's a
//! controller does this.

use std::path::PathBuf;
use std::time::Duration;

use aviary_api::{Condition, ManagedCluster};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::lane::client;

const AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// Five times the duration of a lease, as on a hub of OCM's.
const GRACE: i64 = 10;

/// Runs until the program ends.
pub(crate) fn start(kubeconfig: PathBuf) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let hub = client(&kubeconfig).await;
            let mut ticks = tokio::time::interval(Duration::from_secs(1));
            loop {
                ticks.tick().await;
                // The hub may be away; the next round sees it again.
                let _ = judge(&hub).await;
            }
        });
    });
}

async fn judge(hub: &Client) -> kube::Result<()> {
    let clusters: Api<ManagedCluster> = Api::all(hub.clone());
    for cluster in clusters.list(&ListParams::default()).await? {
        let name = cluster.name_any();
        let leases: Api<Lease> = Api::namespaced(hub.clone(), &name);
        let lease = leases.get_opt("managed-cluster-lease").await?;
        let renewed = lease.and_then(|lease| lease.spec?.renew_time);
        let fresh = renewed.is_some_and(|time| Timestamp::now().as_second() - time.0.as_second() < GRACE);
        let conditions = cluster.status.map(|status| status.conditions).unwrap_or_default();
        let unknown = Condition::find(&conditions, AVAILABLE).is_none_or(|one| one.status == "Unknown");
        if fresh || unknown {
            continue;
        }
        let mut all: Vec<_> =
            conditions.iter().filter(|one| one.type_ != AVAILABLE).map(|one| json!(one)).collect();
        let second = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
        all.push(json!({
            "type": AVAILABLE, "status": "Unknown", "reason": "ManagedClusterLeaseUpdateStopped",
            "message": "Registration agent stopped updating its lease.", "lastTransitionTime": second.to_string(),
        }));
        let patch = json!({"metadata": {"resourceVersion": cluster.metadata.resource_version}, "status": {"conditions": all}});
        clusters.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(())
}
