//! The objects of the benchmark: an add-on with one template per version, in the spelling of OCM's
//! releases, which other managers read too.

use anyhow::Context as _;
use aviary_api::names::{ADDON_GROUP, CLUSTER_GROUP, WORK_GROUP, annotations};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Client, Error};
use serde_json::{Value, json};

pub(super) const ADDON: &str = "aviary-bench";
/// The namespace of the placement, and of our manager's lease and revisions.
pub(super) const NAMESPACE: &str = "aviary-bench";
const PLACEMENT: &str = "all";
const FIELD_MANAGER: &str = "aviary-bench";
/// As many as OCM puts into one object.
const DECISIONS_IN_ONE: usize = 100;
/// The number of concurrent writes, for the bare client and for the setup.
pub(super) const AT_ONCE: usize = 64;

/// How fast clusters change to another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpgradePace {
    All,
    /// This many percent at a time.
    Percent(u32),
}

/// Whether the Deployment is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkloadProbe {
    Asked,
    Ignored,
}

pub(super) fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

pub(super) fn instances() -> ApiResource {
    kind(ADDON_GROUP, "v1alpha1", "ManagedClusterAddOn")
}

pub(super) fn works() -> ApiResource {
    kind(WORK_GROUP, "v1", "ManifestWork")
}

fn template(version: &str, health: WorkloadProbe) -> Value {
    let name = format!("{ADDON}-{version}");
    let labels = json!({"app": ADDON});
    let annotations = match health {
        WorkloadProbe::Asked => json!({}),
        WorkloadProbe::Ignored => json!({annotations::HEALTH: annotations::HEALTH_IGNORE}),
    };
    json!({
        "apiVersion": format!("{ADDON_GROUP}/v1alpha1"), "kind": "AddOnTemplate", "metadata": {"name": name},
        "spec": {"addonName": ADDON, "agentSpec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ADDON, "namespace": "default"}, "data": {"version": version}},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": ADDON, "namespace": "default", "labels": labels, "annotations": annotations},
             "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [
                {"name": "agent", "image": format!("example.com/agent:{version}"), "args": ["--cluster={{CLUSTER_NAME}}"]}]}}}},
        ]}}},
    })
}

fn addon(version: &str, pace: UpgradePace) -> Value {
    let name = format!("{ADDON}-{version}");
    let rollout = match pace {
        UpgradePace::All => json!({"type": "All"}),
        UpgradePace::Percent(share) => {
            json!({"type": "Progressive", "progressive": {"maxConcurrency": format!("{share}%")}})
        }
    };
    let config = json!({"group": ADDON_GROUP, "resource": "addontemplates", "name": name});
    json!({
        "apiVersion": format!("{ADDON_GROUP}/v1alpha1"), "kind": "ClusterManagementAddOn",
        "metadata": {"name": ADDON, "annotations": {"addon.open-cluster-management.io/lifecycle": "addon-manager"}},
        "spec": {
            "supportedConfigs": [{"group": ADDON_GROUP, "resource": "addontemplates"}],
            "installStrategy": {"type": "Placements", "placements": [
                {"name": PLACEMENT, "namespace": NAMESPACE, "configs": [config], "rolloutStrategy": rollout},
            ]},
        },
    })
}

/// Sets the version of every cluster.
pub(super) async fn want(
    hub: &Client,
    version: &str,
    pace: UpgradePace,
    health: WorkloadProbe,
) -> anyhow::Result<()> {
    put(hub, &template(version, health)).await?;
    put(hub, &addon(version, pace)).await
}

/// A placement that has selected all these clusters.
pub(super) async fn place(hub: &Client, clusters: &[String]) -> anyhow::Result<()> {
    put(hub, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await?;
    let version = format!("{CLUSTER_GROUP}/v1beta1");
    let placement = json!({
        "apiVersion": version, "kind": "Placement", "metadata": {"name": PLACEMENT, "namespace": NAMESPACE}, "spec": {},
    });
    put(hub, &placement).await?;
    for (index, some) in clusters.chunks(DECISIONS_IN_ONE).enumerate() {
        let name = format!("{PLACEMENT}-decision-{}", index + 1);
        let label = |what: &str| format!("{CLUSTER_GROUP}/{what}");
        put(hub, &json!({
            "apiVersion": version, "kind": "PlacementDecision",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {
                label("placement"): PLACEMENT, label("decision-group-index"): "0", label("decision-group-name"): "",
            }},
        }))
        .await?;
        let decisions: Vec<Value> =
            some.iter().map(|cluster| json!({"clusterName": cluster, "reason": ""})).collect();
        let status = json!({"status": {"decisions": decisions}});
        put_status(hub, &kind(CLUSTER_GROUP, "v1beta1", "PlacementDecision"), &name, &status).await?;
    }
    let status = json!({"status": {
        "numberOfSelectedClusters": clusters.len(),
        "decisionGroups": [{"decisionGroupIndex": 0, "decisionGroupName": "", "clusterCount": clusters.len(), "decisions": []}],
        "conditions": [{
            "type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }});
    put_status(hub, &kind(CLUSTER_GROUP, "v1beta1", "Placement"), PLACEMENT, &status).await
}

async fn put_status(hub: &Client, kind: &ApiResource, name: &str, status: &Value) -> anyhow::Result<()> {
    let api: Api<DynamicObject> = Api::namespaced_with(hub.clone(), NAMESPACE, kind);
    let patched = api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await;
    patched.map(drop).with_context(|| format!("failed to write the status of {} {name}", kind.kind))
}

async fn put(hub: &Client, object: &Value) -> anyhow::Result<()> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
    let kind = kind(group, version, text("/kind"));
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        "" => Api::all_with(hub.clone(), &kind),
        namespace => Api::namespaced_with(hub.clone(), namespace, &kind),
    };
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(text("/metadata/name"), &params, &Patch::Apply(object)).await;
    applied.map(drop).with_context(|| format!("failed to apply {} {}", text("/kind"), text("/metadata/name")))
}

/// Deletes the add-on. Its instances and works are deleted with it.
pub(super) async fn unwant(hub: &Client) -> anyhow::Result<()> {
    delete(hub, &kind(ADDON_GROUP, "v1alpha1", "ClusterManagementAddOn"), None, ADDON).await
}

/// Deletes what [`want`] and [`place`] created.
pub(super) async fn clear(hub: &Client, versions: &[&str]) -> anyhow::Result<()> {
    unwant(hub).await?;
    for version in versions {
        let template = kind(ADDON_GROUP, "v1alpha1", "AddOnTemplate");
        delete(hub, &template, None, &format!("{ADDON}-{version}")).await?;
    }
    delete(hub, &kind("", "v1", "Namespace"), None, NAMESPACE).await
}

async fn delete(hub: &Client, kind: &ApiResource, namespace: Option<&str>, name: &str) -> anyhow::Result<()> {
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(hub.clone(), namespace, kind),
        None => Api::all_with(hub.clone(), kind),
    };
    match api.delete(name, &DeleteParams::background()).await {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("failed to delete {} {name}", kind.kind)),
    }
}

/// Makes only the writes that an install needs: the instance, its assigned revision, its work, and
/// its confirmed revision. Reads nothing, decides nothing, and waits for nothing.
pub(super) async fn bare_install(client: &Client, clusters: &[String]) -> anyhow::Result<()> {
    stream::iter(clusters).map(Ok).try_for_each_concurrent(AT_ONCE, |cluster| bare_one(client, cluster)).await
}

async fn bare_one(client: &Client, cluster: &str) -> anyhow::Result<()> {
    let name = format!("{ADDON}-bare");
    let failed = || format!("failed to write bare objects for {cluster}");
    let instances: Api<DynamicObject> = Api::namespaced_with(client.clone(), cluster, &instances());
    let works: Api<DynamicObject> = Api::namespaced_with(client.clone(), cluster, &works());
    let made =
        |object: Value| serde_json::from_value::<DynamicObject>(object).context("failed to write JSON");
    let instance = json!({
        "apiVersion": format!("{ADDON_GROUP}/v1alpha1"), "kind": "ManagedClusterAddOn",
        "metadata": {"name": name, "namespace": cluster}, "spec": {"installNamespace": "default"},
    });
    instances.create(&PostParams::default(), &made(instance)?).await.with_context(failed)?;
    let status = |state: &str, applied: bool| {
        let hash = "0".repeat(64);
        let config = json!({"name": format!("{ADDON}-v1"), "specHash": hash});
        let mut reference = json!({
            "group": ADDON_GROUP, "resource": "addontemplates", "name": format!("{ADDON}-v1"), "desiredConfig": config,
        });
        if applied {
            reference["lastAppliedConfig"] = config;
        }
        json!({"status": {"configReferences": [reference], "conditions": [{
            "type": "Progressing", "status": if applied { "False" } else { "True" }, "reason": state, "message": state,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}})
    };
    let params = PatchParams::default();
    let told = status("Installing", false);
    instances.patch_status(&name, &params, &Patch::Merge(told)).await.with_context(failed)?;
    let manifests = template("v1", WorkloadProbe::Asked)["spec"]["agentSpec"]["workload"].clone();
    let work = json!({
        "apiVersion": format!("{WORK_GROUP}/v1"), "kind": "ManifestWork",
        "metadata": {"name": format!("{name}-deploy-0"), "namespace": cluster}, "spec": {"workload": manifests},
    });
    works.create(&PostParams::default(), &made(work)?).await.with_context(failed)?;
    let has = status("Completed", true);
    instances.patch_status(&name, &params, &Patch::Merge(has)).await.with_context(failed)?;
    Ok(())
}

/// Deletes what [`bare_install`] created.
pub(super) async fn clear_bare(hub: &Client, clusters: &[String]) -> anyhow::Result<()> {
    let one = |cluster: &String| {
        let (hub, cluster) = (hub.clone(), cluster.clone());
        async move {
            let name = format!("{ADDON}-bare");
            delete(&hub, &works(), Some(&cluster), &format!("{name}-deploy-0")).await?;
            delete(&hub, &instances(), Some(&cluster), &name).await
        }
    };
    stream::iter(clusters).map(Ok).try_for_each_concurrent(AT_ONCE, one).await
}
