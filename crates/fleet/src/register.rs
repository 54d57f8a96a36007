//! Registers simulated clusters on a hub, maintains their conditions, and removes them.
//!
//! Only clusters with our label are ever taken over or deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use aviary_api::names::conditions::{CLUSTER_AVAILABLE, CLUSTER_HUB_ACCEPTED, CLUSTER_JOINED};
use aviary_api::{Condition, ManagedCluster};
use aviary_engine::name::ClusterName;
use futures_util::{StreamExt, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::member::Member;
use crate::report::seconds;
use crate::requests::{each, has_code, patiently};

/// The label of simulated clusters and their namespaces.
pub const SIMULATED_BY: &str = "cluster.open-cluster-management.io/simulated-by";
/// The value of [`SIMULATED_BY`].
pub const SIMULATOR: &str = "aviary-fleet";

/// The resource names in messages.
const CLUSTERS: &str = "managedclusters.cluster.open-cluster-management.io";
const PAGE: u32 = 500;
/// How long a removal waits for namespaces to be deleted.
const LEAVING: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    #[error("cluster {name} exists and is not simulated: nothing was registered; use another prefix")]
    Foreign { name: String },
    #[error("failed to list {what}")]
    List { what: &'static str, source: kube::Error },
    #[error("failed to {verb} {what} {name}")]
    Write { verb: &'static str, what: &'static str, name: String, source: kube::Error },
}

/// The result of a registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    pub created: usize,
    /// Clusters that existed from an earlier run.
    pub taken_over: usize,
    /// Clusters that the hub sees as unreachable.
    pub offline: usize,
    /// Simulated clusters from an earlier run that are not part of this fleet.
    pub others: usize,
}

/// The result of a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub clusters: usize,
    pub namespaces: usize,
    /// Namespaces that were not empty when the time was up.
    pub leaving: usize,
}

fn failed(verb: &'static str, what: &'static str, name: &str) -> impl FnOnce(kube::Error) -> RegisterError {
    let name = name.to_owned();
    move |source| RegisterError::Write { verb, what, name, source }
}

fn clusters(client: &Client) -> Api<ManagedCluster> {
    Api::all(client.clone())
}

fn namespaces(client: &Client) -> Api<Namespace> {
    Api::all(client.clone())
}

pub(crate) fn selector() -> String {
    format!("{SIMULATED_BY}={SIMULATOR}")
}

/// What to do for an existing cluster.
struct Present {
    marked: bool,
    labels: BTreeMap<String, String>,
    conditions: Vec<Condition>,
}

/// Registers the clusters, a few at a time. `offline` determines which ones the hub sees as
/// unreachable. Calls `done` after each.
pub(crate) async fn register(
    client: &Client,
    members: &[Member],
    offline: impl Fn(&ClusterName) -> bool,
    now: Timestamp,
    done: impl FnMut(),
) -> Result<Registered, RegisterError> {
    let mut present = present(client).await?;
    let foreign =
        members.iter().find(|one| present.get(one.name.as_str()).is_some_and(|found| !found.marked));
    if let Some(member) = foreign {
        return Err(RegisterError::Foreign { name: member.name.to_string() });
    }
    let mut told = Registered::default();
    let mut tasks = Vec::with_capacity(members.len());
    for member in members {
        let is_offline = offline(&member.name);
        let found = present.remove(member.name.as_str());
        told.offline += usize::from(is_offline);
        told.created += usize::from(found.is_none());
        told.taken_over += usize::from(found.is_some());
        tasks.push((member.clone(), is_offline, found));
    }
    told.others = present.values().filter(|found| found.marked).count();
    let admit = |(member, is_offline, found): (Member, bool, Option<Present>)| {
        let client = client.clone();
        async move { admit(&client, &member, is_offline, found, now).await }
    };
    each(tasks, admit, done).await?;
    Ok(told)
}

async fn present(client: &Client) -> Result<HashMap<String, Present>, RegisterError> {
    let api = clusters(client);
    let mut found = HashMap::new();
    let mut next = ListParams::default().limit(PAGE);
    loop {
        let page = patiently(|| api.list(&next)).await;
        let page = page.map_err(|source| RegisterError::List { what: CLUSTERS, source })?;
        for cluster in page.items {
            let (name, labels) = (cluster.name_any(), cluster.metadata.labels.unwrap_or_default());
            let conditions = cluster.status.map(|status| status.conditions).unwrap_or_default();
            let marked = labels.get(SIMULATED_BY).is_some_and(|by| by == SIMULATOR);
            found.insert(name, Present { marked, labels, conditions });
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => next = ListParams::default().limit(PAGE).continue_token(&token),
            None => return Ok(found),
        }
    }
}

async fn admit(
    client: &Client,
    member: &Member,
    offline: bool,
    found: Option<Present>,
    now: Timestamp,
) -> Result<(), RegisterError> {
    let name = member.name.as_str();
    let mut labels = member.labels.clone();
    labels.insert(SIMULATED_BY.into(), SIMULATOR.into());
    match &found {
        None => {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {SIMULATED_BY: SIMULATOR}},
            });
            create(&namespaces(client), "namespace", name, namespace).await?;
            let cluster = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": true},
            });
            create(&clusters(client), "cluster", name, cluster).await?;
        }
        Some(found) if labels.iter().any(|(key, value)| found.labels.get(key) != Some(value)) => {
            let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
            let api = clusters(client);
            let params = PatchParams::default();
            patiently(|| api.patch_metadata(name, &params, &patch))
                .await
                .map_err(failed("label", "cluster", name))?;
        }
        Some(_) => {}
    }
    let conditions = found.map(|found| found.conditions).unwrap_or_default();
    if !are_kept(&conditions, offline) {
        tell(client, name, &conditions, offline, now).await.map_err(failed(
            "write the status of",
            "cluster",
            name,
        ))?;
    }
    Ok(())
}

async fn create<K>(api: &Api<K>, what: &'static str, name: &str, object: Value) -> Result<(), RegisterError>
where
    K: kube::Resource + serde::Serialize + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    let refused = |source| failed("create", what, name)(source);
    let object: K = serde_json::from_value(object).map_err(kube::Error::SerdeError).map_err(refused)?;
    let params = PostParams::default();
    match patiently(|| api.create(&params, &object)).await {
        Ok(_) => Ok(()),
        // It exists already: from an earlier run, or from our own request whose response was lost.
        Err(error) if has_code(&error, 409) => Ok(()),
        Err(error) => Err(refused(error)),
    }
}

/// The conditions that the hub and the agent of a cluster maintain, by type: status, reason,
/// message.
fn kept(offline: bool) -> [(&'static str, &'static str, &'static str, &'static str); 3] {
    let available = match offline {
        false => (CLUSTER_AVAILABLE, "True", "ManagedClusterAvailable", "Managed cluster is available"),
        true => (
            CLUSTER_AVAILABLE,
            "Unknown",
            "ManagedClusterLeaseUpdateStopped",
            "Registration agent stopped updating its lease.",
        ),
    };
    [
        (CLUSTER_HUB_ACCEPTED, "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
        (CLUSTER_JOINED, "True", "ManagedClusterJoined", "Managed cluster joined"),
        available,
    ]
}

/// Whether the conditions are as they should be.
pub(crate) fn are_kept(conditions: &[Condition], offline: bool) -> bool {
    kept(offline).iter().all(|(type_, status, ..)| {
        Condition::find(conditions, type_).is_some_and(|condition| condition.status == *status)
    })
}

/// Writes the conditions. Conditions of other types are kept.
pub(crate) async fn tell(
    client: &Client,
    name: &str,
    before: &[Condition],
    offline: bool,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let kept = kept(offline);
    let foreign = before.iter().filter(|condition| kept.iter().all(|(type_, ..)| condition.type_ != *type_));
    let mut conditions: Vec<Value> = foreign.map(|condition| json!(condition)).collect();
    for (type_, status, reason, message) in kept {
        let earlier = Condition::find(before, type_).filter(|condition| condition.status == status);
        let since = earlier.and_then(|condition| condition.last_transition_time.clone());
        conditions.push(json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since.unwrap_or_else(|| seconds(now)),
        }));
    }
    let patch =
        Patch::Merge(json!({"status": {"conditions": conditions, "version": {"kubernetes": "v1.33.0"}}}));
    let (api, params) = (clusters(client), PatchParams::default());
    patiently(|| api.patch_status(name, &params, &patch)).await.map(drop)
}

/// Deletes every simulated cluster and its namespace, and waits until they are gone. Calls `done`
/// after each.
pub async fn remove(client: &Client, mut done: impl FnMut()) -> Result<Removed, RegisterError> {
    let ours = || ListParams::default().labels(&selector());
    let listed = |what: &'static str| move |source| RegisterError::List { what, source };
    let marked = patiently(|| async { clusters(client).list_metadata(&ours()).await }).await;
    let names: BTreeSet<String> =
        marked.map_err(listed(CLUSTERS))?.items.iter().map(ResourceExt::name_any).collect();
    let marked = patiently(|| async { namespaces(client).list_metadata(&ours()).await }).await;
    let homes: BTreeSet<String> =
        marked.map_err(listed("namespaces"))?.items.iter().map(ResourceExt::name_any).collect();
    let mut told = Removed { clusters: names.len(), namespaces: homes.len(), leaving: 0 };
    // The cluster goes first, so that controllers stop managing it before its objects are deleted.
    let of_cluster = |name: String| delete(clusters(client), "cluster", name);
    each(names, of_cluster, &mut done).await?;
    each(homes.clone(), |name| delete(namespaces(client), "namespace", name), || {}).await?;
    if !homes.is_empty() {
        told.leaving = until_gone(client).await;
    }
    Ok(told)
}

async fn delete<K>(api: Api<K>, what: &'static str, name: String) -> Result<(), RegisterError>
where
    K: kube::Resource + serde::de::DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    match patiently(|| async { api.delete(&name, &DeleteParams::background()).await }).await {
        Ok(_) => Ok(()),
        Err(error) if has_code(&error, 404) => Ok(()),
        Err(error) => Err(failed("delete", what, &name)(error)),
    }
}

/// Waits until no labelled namespace is left. Returns how many remain when the time is up.
async fn until_gone(client: &Client) -> usize {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
    let events = watcher(api, watcher::Config::default().labels(&selector())).default_backoff();
    pin_mut!(events);
    let mut there: BTreeSet<String> = BTreeSet::new();
    let mut listed = false;
    let wait = async {
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => {
                    there.clear();
                    listed = false;
                }
                Ok(Event::InitDone) => listed = true,
                Ok(Event::InitApply(object) | Event::Apply(object)) => {
                    there.insert(object.name_any());
                }
                Ok(Event::Delete(object)) => {
                    there.remove(&object.name_any());
                }
                Err(error) => tracing::debug!(%error, "a watch was interrupted and resumes"),
            }
            if listed && there.is_empty() {
                return;
            }
        }
    };
    let ended = tokio::time::timeout(LEAVING, wait).await;
    if ended.is_ok() { 0 } else { there.len() }
}
