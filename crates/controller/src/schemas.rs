//! Reads the schemas of the add-on kinds, as the hub serves them: what they cannot hold is not
//! written.

use std::time::Duration;

use aviary_engine::served::Served;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::execute::said;
use crate::seen::WatchEvent;

const ADDONS: &str = "clustermanagementaddons.addon.open-cluster-management.io";
const INSTANCES: &str = "managedclusteraddons.addon.open-cluster-management.io";
/// The version that Aviary reads and writes.
const VERSION: &str = "v1alpha1";
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What the hub's schemas can hold. A hub that does not show them is taken to hold everything: what
/// it then prunes is found out from its answers.
pub(crate) async fn read(client: &Client) -> kube::Result<Served> {
    let (addon, instance) = (schema(client, ADDONS).await?, schema(client, INSTANCES).await?);
    Ok(Served::of(addon.as_ref(), instance.as_ref()))
}

/// A list, because the manager has no right to get single CRDs.
async fn schema(client: &Client, name: &str) -> kube::Result<Option<Value>> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = match api.list(&ListParams::default().fields(&format!("metadata.name={name}"))).await {
        Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403 | 404) => return Ok(None),
        found => found?,
    };
    let crd = found.items.into_iter().find(|crd| crd.metadata.name.as_deref() == Some(name));
    let versions = crd.map(|crd| crd.spec.versions).unwrap_or_default();
    let version = versions.into_iter().find(|version| version.name == VERSION);
    Ok(version.and_then(|version| version.schema?.open_api_v3_schema).map(|schema| json!(schema)))
}

/// Reads them until the hub answers.
pub(crate) async fn find(client: Client, events: mpsc::Sender<WatchEvent>) {
    let mut pause = Duration::from_millis(250);
    let served = loop {
        match read(&client).await {
            Ok(served) => break served,
            Err(error) => {
                tracing::warn!(
                    error = said(&error),
                    "cannot read the schemas of the add-on kinds; trying again"
                );
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    };
    // The receiver is gone only when the manager stops.
    let _ = events.send(WatchEvent::Served(served)).await;
}
