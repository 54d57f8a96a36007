//! Writes the decisions of one placement, one write after the other, each conditional on the object
//! being unchanged since the decision.
//!
//! Owns the requests. The first failure ends the rewrite: the order protects readers from a
//! partially written set, and the next pass continues from there.

use aviary_api::names::{CLUSTER_GROUP, labels};
use aviary_api::{Placement, PlacementDecision};
use aviary_engine::name::ClusterName;
use aviary_engine::placement::pages::DecisionPage;
use aviary_engine::placement::{DecisionWrite, ExistingDecision, Rewrite};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::store::{PlacementEvent, PlacementPass};
use crate::seen::{Change, Key, ObjectVersion, Version, Watched};
use crate::write_limit::WriteLimit;

#[derive(Debug, thiserror::Error)]
#[error("failed to {what} {namespace}/{name}")]
pub(crate) struct WriteError {
    what: &'static str,
    namespace: String,
    name: String,
    #[source]
    source: kube::Error,
}

impl WriteError {
    /// Whether the object had changed or was deleted. The next pass sees its current state.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(&self.source, kube::Error::Api(status) if matches!(status.code, 404 | 409))
    }
}

/// What was written, and the error that stopped the rest.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) events: Vec<PlacementEvent>,
    pub(crate) failure: Option<WriteError>,
}

pub(crate) struct Writer {
    client: Client,
    limit: WriteLimit,
    placement: Key,
    uid: String,
    resource_version: String,
    events: Vec<PlacementEvent>,
}

pub(crate) async fn write(client: Client, limit: WriteLimit, placement: Key, pass: PlacementPass) -> Written {
    let PlacementPass { uid, resource_version, rewrite, recheck_at: _ } = pass;
    let mut writer = Writer { client, limit, placement, uid, resource_version, events: Vec::new() };
    let failure = writer.rewrite(rewrite).await.err();
    Written { events: writer.events, failure }
}

impl Writer {
    async fn rewrite(&mut self, rewrite: Rewrite) -> Result<(), WriteError> {
        let Rewrite { announce, steps, status } = rewrite;
        if let Some(count) = announce {
            self.write_status("announce a rewrite of", json!({"numberOfSelectedClusters": count})).await?;
        }
        for step in steps {
            match step {
                DecisionWrite::Create(page) => self.create(page).await?,
                DecisionWrite::Fill { seen, clusters } => self.fill(&seen, &clusters).await?,
                DecisionWrite::Delete(seen) => self.delete(&seen).await?,
            }
        }
        match status {
            Some(status) => self.write_status("write the status of placement", json!(status)).await,
            None => Ok(()),
        }
    }

    fn decisions(&self) -> Api<PlacementDecision> {
        Api::namespaced(self.client.clone(), &self.placement.namespace)
    }

    async fn write_status(&mut self, what: &'static str, status: Value) -> Result<(), WriteError> {
        let api: Api<Placement> = Api::namespaced(self.client.clone(), &self.placement.namespace);
        let patch = json!({
            "metadata": {"uid": self.uid, "resourceVersion": self.resource_version}, "status": status,
        });
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let name = self.placement.name.clone();
        let written = self.limited(what, &name, api.patch_status(&name, &params, &patch)).await?;
        self.resource_version = written.metadata.resource_version.clone().unwrap_or_default();
        self.put(written);
        Ok(())
    }

    async fn create(&mut self, page: DecisionPage) -> Result<(), WriteError> {
        let what = "create decision";
        let object: PlacementDecision = serde_json::from_value(self.object(&page))
            .map_err(|error| self.error(what, &page.name, kube::Error::SerdeError(error)))?;
        let (api, params) = (self.decisions(), PostParams::default());
        let made = self.limited(what, &page.name, api.create(&params, &object)).await?;
        let seen = ExistingDecision {
            name: page.name,
            uid: made.metadata.uid.clone().unwrap_or_default(),
            resource_version: made.metadata.resource_version.clone().unwrap_or_default(),
        };
        self.put(made);
        if page.clusters.is_empty() { Ok(()) } else { self.fill(&seen, &page.clusters).await }
    }

    fn object(&self, page: &DecisionPage) -> Value {
        let version = format!("{CLUSTER_GROUP}/v1beta1");
        json!({
            "apiVersion": version,
            "kind": "PlacementDecision",
            "metadata": {
                "name": page.name,
                "namespace": self.placement.namespace,
                "labels": {
                    labels::PLACEMENT: self.placement.name,
                    labels::DECISION_GROUP_INDEX: page.group.to_string(),
                    labels::DECISION_GROUP_NAME: page.group_name,
                },
                "ownerReferences": [{
                    "apiVersion": version, "kind": "Placement", "name": self.placement.name, "uid": self.uid,
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
        })
    }

    async fn fill(&mut self, seen: &ExistingDecision, clusters: &[ClusterName]) -> Result<(), WriteError> {
        let decided: Vec<Value> =
            clusters.iter().map(|cluster| json!({"clusterName": cluster.as_str(), "reason": ""})).collect();
        let patch = json!({
            "metadata": {"uid": seen.uid, "resourceVersion": seen.resource_version},
            "status": {"decisions": decided},
        });
        let (api, params, patch) = (self.decisions(), PatchParams::default(), Patch::Merge(patch));
        let write = api.patch_status(&seen.name, &params, &patch);
        let written = self.limited("fill decision", &seen.name, write).await?;
        self.put(written);
        Ok(())
    }

    async fn delete(&mut self, seen: &ExistingDecision) -> Result<(), WriteError> {
        let preconditions = Preconditions {
            uid: Some(seen.uid.clone()),
            resource_version: Some(seen.resource_version.clone()),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let api = self.decisions();
        let deleted = self.limited("delete decision", &seen.name, api.delete(&seen.name, &params)).await;
        match deleted {
            Ok(answer) => match answer.left() {
                // Finalizers hold it.
                Some(object) => self.put(object),
                None => self.gone(seen),
            },
            Err(WriteError { source: kube::Error::Api(status), .. }) if status.code == 404 => self.gone(seen),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn gone(&mut self, seen: &ExistingDecision) {
        let key = Key { namespace: self.placement.namespace.clone(), name: seen.name.as_str().into() };
        let version = Version::new(seen.uid.as_str().into(), &seen.resource_version);
        self.events.push(PlacementEvent::Decision(Change::Deleted(ObjectVersion { key, version })));
    }

    fn put<K: Watched<PlacementEvent>>(&mut self, written: K) {
        let version = ObjectVersion::of(written.meta());
        self.events.extend(written.read().map(|seen| (K::EVENT)(Change::Written(version, seen))));
    }

    /// Makes a request when the limit allows it.
    async fn limited<T>(
        &self,
        what: &'static str,
        name: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, WriteError> {
        let slot = self.limit.slot().await;
        let started = Instant::now();
        let answer = request.await;
        if let Some(slot) = slot {
            let overloaded = matches!(
                &answer,
                Err(kube::Error::Api(status)) if matches!(status.code, 429 | 500..=599)
            );
            self.limit.give_back(slot, started.elapsed(), overloaded);
        }
        answer.map_err(|source| self.error(what, name, source))
    }

    fn error(&self, what: &'static str, name: &str, source: kube::Error) -> WriteError {
        WriteError { what, namespace: self.placement.namespace.to_string(), name: name.into(), source }
    }
}

/// Removes the fields of a placement that are not needed.
pub(crate) fn placement(mut object: Placement) -> Placement {
    object.metadata.managed_fields = None;
    object
}

/// Removes the fields of a decision that are not needed.
pub(crate) fn decision(mut object: PlacementDecision) -> PlacementDecision {
    object.metadata.managed_fields = None;
    object
}
