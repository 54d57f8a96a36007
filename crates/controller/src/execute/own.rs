//! Writing the record of an add-on, and the status of policies.

use std::sync::Arc;

use aviary_api::names::conditions;
use aviary_api::{AddOnRolloutPolicy, AddOnRolloutRecord};
use aviary_engine::configs::GroupResource;
use aviary_engine::normalise;
use aviary_engine::plan::{RecordWrite, Write};
use aviary_engine::policy::{Policy, PolicySummary};
use aviary_engine::reason::Reason;
use aviary_engine::status::publish;
use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::outcome::WriteResult;
use super::{Executor, Target, echo};
use crate::seen::{
    self, Change, Echoed, HeardSummary, ObjectVersion, SeenConfig, SummarisedPolicy, WatchEvent,
};

impl Executor {
    /// Writes the record over the state that the plan has seen.
    pub(super) async fn write_record(
        &self,
        target: &Target,
        whole: &Write,
        write: &RecordWrite,
    ) -> WriteResult {
        let api: Api<AddOnRolloutRecord> = Api::all(self.client.clone());
        let (mut uid, mut version) = (write.uid.clone(), write.resource_version.clone());
        let mut generation = write.generation;
        if version.is_empty() {
            let object = match serde_json::from_value(new_record(target)) {
                Ok(object) => object,
                Err(error) => return WriteResult::of_error(kube::Error::SerdeError(error)),
            };
            match api.create(&PostParams::default(), &object).await {
                Ok(made) => {
                    uid = made.uid().unwrap_or_default().into();
                    version = made.resource_version().unwrap_or_default().into();
                    generation = made.metadata.generation.unwrap_or(0);
                }
                // One of an earlier add-on of this name is being garbage-collected, or this one is
                // newer than what the plan has seen.
                Err(error) => return WriteResult::of_error(error),
            }
        }
        let patch = json!({
            "metadata": {"uid": uid, "resourceVersion": version},
            "status": publish::record(write, generation),
        });
        match api.patch_status(&target.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(object) => {
                let stored = normalise::record(&object);
                let is_as_sent = stored.conditions == write.conditions && stored.attempts == write.attempts;
                let how = (target.placements.as_slice(), &target.served);
                let heard = (!is_as_sent)
                    .then(|| echo(&target.name, Echoed::Record, stored.resource_version, whole, how));
                let version = ObjectVersion::of(&object.metadata);
                let seen = seen::own(GroupResource::records(), &json!(object));
                let written = seen.map(|seen| event(version, seen));
                WriteResult::Written(heard.flatten().into_iter().chain(written).collect())
            }
            Err(error) => WriteResult::of_error(error),
        }
    }
}

fn event(version: ObjectVersion, seen: SeenConfig) -> WatchEvent {
    WatchEvent::Config(GroupResource::records().clone(), Change::Written(version, seen))
}

fn new_record(target: &Target) -> Value {
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1",
        "kind": "AddOnRolloutRecord",
        "metadata": {
            "name": target.name,
            "ownerReferences": [{
                "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
                "name": target.name, "uid": target.uid, "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {},
    })
}

/// Writes what a policy applies to into its status, and reports what has become of it.
pub(crate) async fn summarise(
    client: Client,
    stores: mpsc::Sender<WatchEvent>,
    seen: Arc<Policy>,
    summary: PolicySummary,
    now: Timestamp,
) {
    let api: Api<AddOnRolloutPolicy> = Api::all(client);
    let patch = summary_patch(&seen, &summary, now);
    let heard = match api.patch_status(&seen.name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(object) => {
            let shown = if seen.is_unreadable { None } else { normalise::policy(&object).summary };
            let version = ObjectVersion::of(&object.metadata);
            let written = seen::own(GroupResource::policies(), &json!(object));
            if let Some(written) = written.filter(|_| !seen.is_unreadable) {
                let change = Change::Written(version, written);
                // The receiver is gone only when the manager stops.
                let _ = stores.send(WatchEvent::Config(GroupResource::policies().clone(), change)).await;
            }
            Some(HeardSummary { uid: seen.uid.clone(), sent: summary, shown })
        }
        Err(error) => {
            tracing::debug!(policy = %seen.name, %error, "the summary of a policy could not be written");
            None
        }
    };
    let _ = stores
        .send(WatchEvent::SummarisedPolicy(SummarisedPolicy { policy: seen.name.clone(), heard }))
        .await;
}

fn summary_patch(seen: &Policy, summary: &PolicySummary, now: Timestamp) -> Value {
    let PolicySummary { generation, addons, placements, fault } = summary;
    let (truth, reason, message) = match fault {
        None => ("True", Reason::Valid, "the policy is valid"),
        Some(why) => ("False", Reason::PolicyInvalid, why.as_str()),
    };
    let kept =
        seen.verdict.as_ref().filter(|verdict| verdict.status == truth).and_then(|verdict| verdict.since);
    json!({
        "metadata": {"uid": seen.uid, "resourceVersion": seen.resource_version},
        "status": {
            "observedGeneration": generation, "addOns": addons, "placements": placements,
            "conditions": [{
                "type": conditions::VALID, "status": truth, "reason": reason, "message": message,
                "observedGeneration": generation, "lastTransitionTime": kept.unwrap_or(now).to_string(),
            }],
        },
    })
}
