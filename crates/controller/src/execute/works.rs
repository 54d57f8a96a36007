//! Writes works, and waits for names that works of other owners have.

use std::time::Duration;

use aviary_api::Guarded;
use aviary_api::names::{annotations, labels};
use aviary_api::work::WorkText;
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::plan::{SurplusWork, WorkWrite};
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::outcome::{self, WriteResult, unguarded, written};
use super::{Executor, said};
use crate::seen::{NameTaken, WatchEvent};

impl Executor {
    fn works(&self, cluster: &ClusterName) -> Api<WorkText> {
        Api::namespaced(self.client.clone(), cluster.as_str())
    }

    pub(super) async fn write_work(&self, addon: &Text, write: &WorkWrite) -> WriteResult {
        let _heavy = if write.is_heavy() { self.limit.heavy().await } else { None };
        let body = match body(write) {
            Ok(body) => body,
            Err(error) => return WriteResult::of_error(kube::Error::SerdeError(error)),
        };
        let works: Api<Guarded<WorkText>> = Api::namespaced(self.client.clone(), write.cluster.as_str());
        if write.replaces.is_some() {
            // A patch, so that fields of other writers are kept.
            let patch = Patch::Merge(body);
            let answer = works.patch(&write.name, &PatchParams::default(), &patch).await;
            return WriteResult::of_put(unguarded(answer));
        }
        let request = Request::new(works.resource_url())
            .create(&PostParams::default(), Box::<str>::from(body).into_string().into_bytes());
        let answer = match request {
            Ok(request) => unguarded::<WorkText>(self.client.request(request).await),
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        match answer {
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                self.already_exists(addon, write).await
            }
            answer => WriteResult::of_put(answer),
        }
    }

    /// A work of that name exists that was not observed: ours, or another owner's, which is not
    /// watched.
    async fn already_exists(&self, addon: &Text, write: &WorkWrite) -> WriteResult {
        let taken = NameTaken {
            addon: addon.clone(),
            cluster: write.cluster.clone(),
            name: write.name.as_str().into(),
            assigned: write.told().clone(),
        };
        let event = match work_named(&self.client, &taken).await {
            Ok(Some(work)) if belongs(&work, addon) => written(work),
            Ok(Some(_)) => {
                tracing::warn!(%addon, cluster = %taken.cluster, work = %taken.name, "a work of that name has another owner; it is not changed");
                Some(WatchEvent::NameTaken(taken))
            }
            Ok(None) => None,
            Err(error) => return WriteResult::of_error(error),
        };
        self.send(event).await;
        WriteResult::Conflict
    }

    pub(super) async fn delete_work(&self, surplus: &SurplusWork) -> WriteResult {
        let SurplusWork { cluster, name, uid } = surplus;
        outcome::delete(self.works(cluster), cluster.as_str(), name, uid).await
    }
}

/// The request that creates or changes a work, as text: rendered, a work may take a hundred times
/// the memory, and many are written at once.
fn body(write: &WorkWrite) -> serde_json::Result<Box<RawValue>> {
    let mut object = write.object();
    let Some((uid, version)) = &write.replaces else {
        return to_raw_value(&object);
    };
    object["metadata"]["uid"] = json!(uid);
    object["metadata"]["resourceVersion"] = json!(version);
    remove_what_is_gone(&mut object);
    to_raw_value(&object)
}

/// A merge patch keeps what it does not mention. So what a revision no longer has is removed by
/// name: options, a version, and hashes under a name that we read and do not write.
fn remove_what_is_gone(object: &mut Value) {
    const OPTIONS: [(&str, &[&str]); 3] = [
        ("deleteOption", &["propagationPolicy", "selectivelyOrphans", "ttlSecondsAfterFinished"]),
        ("executor", &["subject"]),
        ("manifestConfigs", &[]),
    ];
    let mut remove = |path: &str, keys: &[&str]| {
        if let Some(map) = object.pointer_mut(path).and_then(Value::as_object_mut) {
            for key in keys {
                map.entry(*key).or_insert(Value::Null);
            }
        }
    };
    for (option, parts) in OPTIONS {
        remove("/spec", &[option]);
        remove(&format!("/spec/{option}"), parts);
    }
    remove("/metadata/labels", &[labels::ADDON_VERSION, labels::DRAFT_ADDON_VERSION]);
    remove("/metadata/annotations", &[annotations::CONFIG_SPEC_HASH]);
}

async fn work_named(client: &Client, taken: &NameTaken) -> kube::Result<Option<WorkText>> {
    let works: Api<WorkText> = Api::namespaced(client.clone(), taken.cluster.as_str());
    let named = ListParams::default().fields(&format!("metadata.name={}", taken.name));
    Ok(works.list(&named).await?.items.into_iter().next())
}

/// Not if it belongs to an instance elsewhere.
fn belongs(work: &WorkText, addon: &str) -> bool {
    let label = |key| work.metadata.labels.as_ref().and_then(|all| all.get(key));
    label(labels::ADDON_NAME).is_some_and(|of| of == addon)
        && label(labels::ADDON_NAMESPACE).is_none_or(|of| work.metadata.namespace.as_ref() == Some(of))
}

/// Waits until the other owner's work is deleted, or ours.
pub(crate) async fn until_free(client: Client, taken: NameTaken, stores: mpsc::Sender<WatchEvent>) {
    let mut pause = Duration::from_secs(1);
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
        match work_named(&client, &taken).await {
            Ok(Some(work)) if !belongs(&work, &taken.addon) => {}
            Ok(_) => {
                // The receiver is gone only when the manager stops.
                let _ = stores.send(WatchEvent::NameFreed(taken)).await;
                return;
            }
            Err(error) => {
                tracing::debug!(error = said(&error), "failed to read another owner's work; retrying");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_removes_what_a_revision_no_longer_has() {
        let mut object = json!({
            "metadata": {"labels": {"a": "b"}, "annotations": {}},
            "spec": {"deleteOption": {"propagationPolicy": "Foreground"}, "workload": {"manifests": []}},
        });
        remove_what_is_gone(&mut object);
        let expected = json!({
            "metadata": {
                "labels": {"a": "b", labels::ADDON_VERSION: null, labels::DRAFT_ADDON_VERSION: null},
                "annotations": {annotations::CONFIG_SPEC_HASH: null},
            },
            "spec": {
                "deleteOption": {
                    "propagationPolicy": "Foreground", "selectivelyOrphans": null, "ttlSecondsAfterFinished": null,
                },
                "executor": null, "manifestConfigs": null, "workload": {"manifests": []},
            },
        });
        assert_eq!(object, expected);
    }
}
