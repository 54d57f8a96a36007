//! Reads the placements of an add-on as stored, and writes them back if they are unchanged.

use anyhow::{anyhow, bail};
use aviary_api::ClusterManagementAddOn;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::WriteArgs;
use crate::connect::{Connection, refused};
use crate::live::{check_name, unknown};
use crate::nearest::did_you_mean;

/// The manager writes the status of the same object during a rollout, so a conflict is retried as
/// long as the spec is unchanged.
const ATTEMPTS: usize = 20;

/// The field manager.
pub(super) const WRITER: &str = "aviary-cli";

/// An add-on as it was read.
#[derive(Debug)]
pub(super) struct StoredAddOn<'a> {
    connection: &'a Connection,
    name: String,
    pub(super) object: Value,
}

#[derive(Clone, Debug)]
pub(super) struct PlacementEntry {
    pub(super) index: usize,
    /// Namespace and name.
    pub(super) name: String,
}

fn api(connection: &Connection) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<ClusterManagementAddOn>(&());
    Api::all_with(connection.client.clone(), &resource)
}

impl<'a> StoredAddOn<'a> {
    pub(super) async fn read(connection: &'a Connection, name: &str) -> anyhow::Result<Self> {
        let doing = format!("read clustermanagementaddons.addon.open-cluster-management.io {name}");
        check_name(name)?;
        let object = api(connection).get_opt(name).await;
        let object = object.map_err(|error| refused(&doing, &error, &connection.server))?;
        let Some(object) = object else { return Err(unknown(name, connection).await) };
        Ok(Self { connection, name: name.to_owned(), object: serde_json::to_value(object)? })
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.object.pointer("/metadata/annotations")?.get(key)?.as_str()
    }

    pub(super) fn placements(&self) -> Vec<Value> {
        let listed = self.object.pointer("/spec/installStrategy/placements").and_then(Value::as_array);
        listed.cloned().unwrap_or_default()
    }

    /// Returns the requested placements.
    pub(super) fn chosen(&self, asked: Option<&str>) -> anyhow::Result<Vec<PlacementEntry>> {
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let all: Vec<(PlacementEntry, String)> = self
            .placements()
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let (namespace, name) = (text(value, "namespace"), text(value, "name"));
                (PlacementEntry { index, name: format!("{namespace}/{name}") }, name)
            })
            .collect();
        if all.is_empty() {
            bail!("add-on {} has no placements, so there is no rollout", self.name);
        }
        let Some(asked) = asked else { return Ok(all.into_iter().map(|(entry, _)| entry).collect()) };
        let names = all.iter().map(|(entry, _)| entry.name.as_str()).collect::<Vec<_>>().join(", ");
        let found: Vec<PlacementEntry> = all
            .iter()
            .filter(|(entry, name)| entry.name == asked || name == asked)
            .map(|(entry, _)| entry.clone())
            .collect();
        match found.len() {
            0 => {
                let known = all.iter().flat_map(|(entry, name)| [entry.name.as_str(), name]);
                let meant = did_you_mean(asked, known);
                Err(anyhow!("add-on {} has no placement {asked}: it has {names}{meant}", self.name))
            }
            1 => Ok(found),
            _ => Err(anyhow!("add-on {} has several placements {asked}: choose one of {names}", self.name)),
        }
    }

    /// Writes the placements, if the spec is unchanged.
    pub(super) async fn write(&self, placements: Vec<Value>, writing: WriteArgs) -> anyhow::Result<()> {
        self.merge(&json!({"spec": {"installStrategy": {"placements": placements}}}), writing).await
    }

    /// Adds annotations, and removes those that are null, if the spec is unchanged.
    pub(super) async fn annotate(&self, annotations: Value, writing: WriteArgs) -> anyhow::Result<()> {
        self.merge(&json!({"metadata": {"annotations": annotations}}), writing).await
    }

    async fn merge(&self, change: &Value, writing: WriteArgs) -> anyhow::Result<()> {
        let doing = format!("change clustermanagementaddons.addon.open-cluster-management.io {}", self.name);
        let params = PatchParams {
            dry_run: writing.dry_run,
            field_manager: Some(WRITER.to_owned()),
            ..PatchParams::default()
        };
        let mut metadata = self.object.get("metadata").cloned().unwrap_or_default();
        for _ in 0..ATTEMPTS {
            let mut patch = change.clone();
            for key in ["uid", "resourceVersion"] {
                patch["metadata"][key] = metadata.get(key).cloned().unwrap_or_default();
            }
            match api(self.connection).patch(&self.name, &params, &Patch::Merge(&patch)).await {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(refused(&doing, &error, &self.connection.server)),
            }
            let again = Self::read(self.connection, &self.name).await?;
            let same = |pointer: &str| again.object.pointer(pointer) == self.object.pointer(pointer);
            if !same("/spec") || !same("/metadata/uid") {
                bail!("failed to {doing}: it was changed at the same time: check it and try again");
            }
            metadata = again.object.get("metadata").cloned().unwrap_or_default();
        }
        bail!("failed to {doing}: it keeps changing: try again")
    }
}
