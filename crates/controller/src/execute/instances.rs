//! Writing instances, and waiting for the namespaces in which they are created.

use std::time::Duration;

use aviary_api::managers::AVIARY_MANAGER;
use aviary_api::names::{annotations, labels};
use aviary_api::{Guarded, ManagedClusterAddOn};
use aviary_engine::install::{Create, Delete};
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::plan::{GuardWrite, StatusWrite, Write};
use aviary_engine::reason::EventReason;
use aviary_engine::status::publish;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::outcome::{self, WriteResult, unguarded};
use super::{Executor, Target, echo};
use crate::revisions::Owner;
use crate::seen::{Change, Echoed, NamespaceMissing, WatchEvent};

/// The longest pause between two looks for something that is missing.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Executor {
    fn instances(&self, cluster: &ClusterName) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.client.clone(), cluster.as_str())
    }

    /// For writes, whose answers need little of the object.
    fn written_instances(&self, cluster: &ClusterName) -> Api<Guarded<ManagedClusterAddOn>> {
        Api::namespaced(self.client.clone(), cluster.as_str())
    }

    pub(super) async fn create_instance(&self, owner: Owner<'_>, create: &Create) -> WriteResult {
        let body = new_instance(owner, create).to_string().into_bytes();
        let url = self.instances(&create.cluster).resource_url().to_owned();
        let answer = match Request::new(url).create(&PostParams::default(), body) {
            Ok(request) => unguarded::<ManagedClusterAddOn>(self.client.request(request).await),
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        if let Err(error) = &answer
            && lacks_namespace(error)
        {
            tracing::warn!(addon = %owner.addon, cluster = %create.cluster, "the cluster has no namespace; its instance waits for it");
            let missing = NamespaceMissing {
                addon: owner.addon.into(),
                cluster: create.cluster.clone(),
                looked_for: false,
                pause: Duration::from_secs(1),
            };
            self.send([WatchEvent::NamespaceMissing(missing)]).await;
        }
        WriteResult::of_put(answer)
    }

    pub(super) async fn delete_instance(&self, addon: &str, delete: &Delete) -> WriteResult {
        let Delete { cluster, uid, .. } = delete;
        outcome::delete(self.instances(cluster), cluster.as_str(), addon, uid).await
    }

    pub(super) async fn write_status(
        &self,
        target: &Target,
        whole: &Write,
        write: &StatusWrite,
    ) -> WriteResult {
        let (addon, served) = (&*target.name, &target.served);
        let instances = self.instances(&write.cluster);
        let status = match write.status.has_more_conditions {
            false => publish::instance(write, served),
            // A list, because the manager has no right to get single instances.
            true => {
                match instances.list(&ListParams::default().fields(&format!("metadata.name={addon}"))).await {
                    Ok(there) => {
                        let is_it = |one: &ManagedClusterAddOn| {
                            one.resource_version().as_deref() == Some(&*write.resource_version)
                        };
                        let Some(there) = there.items.into_iter().find(is_it) else {
                            return WriteResult::Conflict;
                        };
                        publish::instance_among(write, served, &there.status.unwrap_or_default().conditions)
                    }
                    Err(error) => return WriteResult::of_error(error),
                }
            }
        };
        let patch = Patch::Merge(json!({
            "metadata": {"uid": write.uid, "resourceVersion": write.resource_version},
            "status": status,
        }));
        let written = self.written_instances(&write.cluster);
        let object = match unguarded(written.patch_status(addon, &PatchParams::default(), &patch).await) {
            Ok(object) => object,
            Err(error) => return WriteResult::of_error(error),
        };
        let version: Text = object.resource_version().unwrap_or_default().into();
        let mut events: Vec<WatchEvent> = outcome::written(object).into_iter().collect();
        if let [WatchEvent::Instance(Change::Written(_, seen))] = events.as_slice()
            && seen.instance.status != write.status
        {
            let (of, how) = (Echoed::Instance(write.cluster.clone()), (target.placements.as_slice(), served));
            events.extend(echo(&target.name, of, version, whole, how));
        }
        WriteResult::Written(events)
    }

    /// Writes the metadata of an instance. If it goes although its hooks have not completed, an
    /// Event says so.
    pub(super) async fn write_guard(
        &self,
        target: &Target,
        whole: &Write,
        write: &GuardWrite,
    ) -> WriteResult {
        let mut metadata = json!({"uid": write.uid, "resourceVersion": write.resource_version});
        if let Some(finalizers) = &write.finalizers {
            metadata["finalizers"] = json!(finalizers);
        }
        if write.owns {
            match self.owners(target, write).await {
                Ok(owners) => metadata["ownerReferences"] = owners,
                Err(outcome) => return outcome,
            }
        }
        if let Some(marker) = write.marker {
            metadata["labels"] = json!({labels::INSTALLED_BY_STRATEGY: marker});
        }
        if !write.annotations.is_empty() {
            metadata["annotations"] = json!(write.annotations);
        }
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let instances = self.written_instances(&write.cluster);
        let written = unguarded(instances.patch(&target.name, &by_aviary(), &patch).await);
        if let Some(why) =
            write.ending.and_then(|ending| ending.warning(&target.name)).filter(|_| written.is_ok())
        {
            tracing::warn!(addon = %target.name, cluster = %write.cluster, "{why}");
            let note = format!("{}: {why}", write.cluster);
            self.events.publish_one(target, EventReason::HooksGivenUp, &note).await;
        }
        match written {
            // That was its last finalizer. The watch may say so late, and nothing may be written
            // for it any more.
            Ok(object) if object.metadata.deletion_timestamp.is_some() && object.finalizers().is_empty() => {
                let gone =
                    outcome::deleted::<ManagedClusterAddOn>(write.cluster.as_str(), &target.name, &write.uid);
                WriteResult::Written(vec![gone])
            }
            Ok(object) => {
                let how = (target.placements.as_slice(), &target.served);
                let version: Text = object.resource_version().unwrap_or_default().into();
                let of = Echoed::Metadata(write.cluster.clone());
                let heard = (!is_as_sent(&object, target, write))
                    .then(|| echo(&target.name, of, version, whole, how));
                WriteResult::Written(heard.flatten().into_iter().chain(outcome::written(object)).collect())
            }
            Err(error) => WriteResult::of_error(error),
        }
    }

    /// All owners that an instance should have. A merge patch replaces the list, so those of others
    /// are read first; few instances have any.
    async fn owners(&self, target: &Target, write: &GuardWrite) -> Result<Value, WriteResult> {
        let mut owner = owner_reference(&target.name, &target.uid);
        if !write.has_other_owners {
            return Ok(json!([owner]));
        }
        let named = ListParams::default().fields(&format!("metadata.name={}", target.name));
        let found = self.instances(&write.cluster).list(&named).await.map_err(WriteResult::of_error)?;
        let is_it =
            |one: &ManagedClusterAddOn| one.resource_version().as_deref() == Some(&*write.resource_version);
        let there = found.items.into_iter().find(is_it).ok_or(WriteResult::Conflict)?;
        let others = there.metadata.owner_references.unwrap_or_default();
        // An object has at most one owner that controls it.
        if others.iter().any(|other| other.controller == Some(true)) {
            owner["controller"] = json!(false);
        }
        Ok(others.iter().map(|other| json!(other)).chain([owner]).collect())
    }

    /// Gives an instance another resource version. The annotation contains the add-on's resource
    /// version: if an earlier leader reserves a wave meanwhile and all of this is repeated, the
    /// annotation must differ, or nothing would change.
    pub(super) async fn touch(&self, target: &Target, (cluster, uid): &(ClusterName, Text)) -> WriteResult {
        let term = format!("{}.{}", self.term.number, target.resource_version);
        let patch = Patch::Merge(json!({"metadata": {"uid": uid, "annotations": {
            annotations::MANAGER_TERM: term, annotations::MANAGER_IDENTITY: self.identity,
        }}}));
        match unguarded(self.written_instances(cluster).patch(&target.name, &by_aviary(), &patch).await) {
            // It was deleted or replaced, so no pending write can apply to it.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                WriteResult::Written(Vec::new())
            }
            answer => WriteResult::of_put(answer),
        }
    }
}

fn new_instance(owner: Owner<'_>, create: &Create) -> Value {
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1",
        "kind": "ManagedClusterAddOn",
        "metadata": {
            "name": owner.addon,
            "namespace": create.cluster.as_str(),
            "labels": {labels::INSTALLED_BY_STRATEGY: create.marker, labels::ADDON_NAME: owner.addon},
            "annotations": create.annotations,
            "ownerReferences": [owner_reference(owner.addon, owner.uid)],
        },
        "spec": {"installNamespace": create.install_namespace},
    })
}

/// Whether the hub has stored the owner, marker and annotations that were sent.
fn is_as_sent(object: &ManagedClusterAddOn, target: &Target, write: &GuardWrite) -> bool {
    let is_owned = || object.owner_references().iter().any(|owner| *owner.uid == *target.uid);
    let marker = object.labels().get(labels::INSTALLED_BY_STRATEGY).map(String::as_str);
    let mut annotations = write.annotations.iter();
    (!write.owns || is_owned())
        && (write.marker.is_none() || marker == write.marker)
        && annotations
            .all(|(key, value)| object.annotations().get(&**key).is_some_and(|has| **has == **value))
}

fn owner_reference(addon: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "name": addon, "uid": uid, "controller": true, "blockOwnerDeletion": true,
    })
}

/// Metadata of instances is written under our name, so that an instance of OCM's manager is still
/// known as one.
fn by_aviary() -> PatchParams {
    PatchParams { field_manager: Some(AVIARY_MANAGER.to_owned()), ..PatchParams::default() }
}

fn lacks_namespace(error: &kube::Error) -> bool {
    let is_namespace = |status: &kube::core::Status| {
        let details = status.details.as_ref();
        details.is_some_and(|details| details.kind == "namespaces" && details.group.is_empty())
    };
    matches!(error, kube::Error::Api(status) if status.code == 404 && is_namespace(status))
}

/// Looks, after a pause, whether a cluster has its namespace. Uses a dry-run create, because the
/// manager has no right to read the namespaces of clusters.
pub(crate) async fn look_for_namespace(
    client: Client,
    missing: NamespaceMissing,
    stores: mpsc::Sender<WatchEvent>,
) {
    tokio::time::sleep(missing.pause).await;
    let instances: Api<ManagedClusterAddOn> = Api::namespaced(client, missing.cluster.as_str());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let instance = ManagedClusterAddOn::new(&missing.addon, Default::default());
    let found = match instances.create(&dry_run, &instance).await {
        Err(error) if lacks_namespace(&error) => {
            let pause = (missing.pause * 2).min(LONGEST_PAUSE);
            WatchEvent::NamespaceMissing(NamespaceMissing { looked_for: true, pause, ..missing })
        }
        // Whatever else is wrong, the next create finds out.
        _ => WatchEvent::NamespaceFound(missing.cluster),
    };
    // The receiver is gone only when the manager stops.
    let _ = stores.send(found).await;
}
