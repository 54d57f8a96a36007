//! The cluster: objects of any kind, and the records of what was applied.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use anyhow::{Result, anyhow};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::GroupVersionKind;
use kube::discovery::Scope;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

#[derive(Clone)]
pub(crate) struct Member {
    client: Client,
    kinds: Rc<RefCell<HashMap<GroupVersionKind, (ApiResource, bool)>>>,
}

const RECORD: &str = "AppliedManifestWork";

pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

impl Member {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, kinds: Rc::default() }
    }

    /// Installs the kind of the records, and the namespace in which add-ons run by default.
    pub(crate) async fn prepare(&self) -> Result<()> {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "appliedmanifestworks.work.open-cluster-management.io"},
            "spec": {
                "group": "work.open-cluster-management.io", "scope": "Cluster",
                "names": {"plural": "appliedmanifestworks", "singular": "appliedmanifestwork", "kind": RECORD, "listKind": "AppliedManifestWorkList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        });
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "open-cluster-management-agent-addon"}});
        for object in [definition, namespace] {
            let (api, _) = self.api_of(&object).await?;
            match api.create(&PostParams::default(), &serde_json::from_value(object)?).await {
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
                other => drop(other?),
            }
        }
        // The kind is served a moment later.
        let kind = GroupVersionKind::gvk("work.open-cluster-management.io", "v1", RECORD);
        for _ in 0..200 {
            if self.kind(&kind).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        Err(anyhow!("{RECORD} is not served"))
    }

    pub(crate) async fn is_ready(&self) -> bool {
        self.client.apiserver_version().await.is_ok()
    }

    /// The resource of a kind, and whether it is namespaced.
    async fn kind(&self, kind: &GroupVersionKind) -> Result<(ApiResource, bool)> {
        if let Some(found) = self.kinds.borrow().get(kind) {
            return Ok(found.clone());
        }
        let (resource, capabilities) =
            kube::discovery::pinned_kind(&self.client, kind).await.map_err(|_| {
                anyhow!("no matches for kind \"{}\" in version \"{}\"", kind.kind, kind.api_version())
            })?;
        let found = (resource, capabilities.scope == Scope::Namespaced);
        self.kinds.borrow_mut().insert(kind.clone(), found.clone());
        Ok(found)
    }

    pub(crate) async fn api_of(&self, object: &Value) -> Result<(Api<DynamicObject>, Place)> {
        let (group, version) = match text(object, "/apiVersion").split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", text(object, "/apiVersion")),
        };
        let kind = GroupVersionKind::gvk(group, version, text(object, "/kind"));
        let (resource, namespaced) = self.kind(&kind).await?;
        let place = Place {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.kind,
            resource: resource.plural.clone(),
            namespace: if namespaced {
                text(object, "/metadata/namespace").to_owned()
            } else {
                String::new()
            },
            name: text(object, "/metadata/name").to_owned(),
        };
        Ok((self.api(&place, &resource), place))
    }

    fn api(&self, place: &Place, resource: &ApiResource) -> Api<DynamicObject> {
        match place.namespace.as_str() {
            "" => Api::all_with(self.client.clone(), resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, resource),
        }
    }

    pub(crate) fn api_at(&self, place: &Place) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(&place.group, &place.version, &place.kind);
        self.api(place, &ApiResource::from_gvk_with_plural(&kind, &place.resource))
    }

    fn records(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("work.open-cluster-management.io", "v1", RECORD);
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    /// The record of a work: it owns the objects of the work.
    pub(crate) async fn record(&self, work: &str) -> Result<Record> {
        let api = self.records();
        let found = match api.get_opt(work).await? {
            Some(found) => found,
            None => {
                let new = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": RECORD, "metadata": {"name": work}, "spec": {"manifestWorkName": work}});
                api.create(&PostParams::default(), &serde_json::from_value(new)?).await?
            }
        };
        let resources = found.data.pointer("/status/appliedResources").and_then(Value::as_array).cloned();
        let applied = resources.unwrap_or_default().iter().map(place_of).collect();
        Ok(Record { name: work.to_owned(), uid: found.uid().unwrap_or_default(), applied })
    }

    pub(crate) async fn keep_record(&self, record: &Record) -> Result<()> {
        let resources: Vec<Value> = record.applied.iter().map(meta).collect();
        let patch = Patch::Merge(json!({"status": {"appliedResources": resources}}));
        self.records().patch_status(&record.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(crate) async fn drop_record(&self, record: &Record) -> Result<()> {
        match self.records().delete(&record.name, &DeleteParams::default()).await {
            Err(error) if !is_missing(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Deletes an object, unless another work owns it as well: then only gives up its ownership.
    /// Returns whether it is gone.
    pub(crate) async fn release(&self, place: &Place, record: &Record) -> Result<bool> {
        let api = self.api_at(place);
        let found = match api.get_opt(&place.name).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(true),
            // Its kind has gone, and it with it.
            Err(error) if is_missing(&error) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let owners = found.metadata.owner_references.clone().unwrap_or_default();
        if !owners.iter().any(|owner| owner.uid == record.uid) {
            return Ok(true);
        }
        if owners.iter().any(|owner| owner.kind == RECORD && owner.uid != record.uid) {
            let rest: Vec<_> = owners.into_iter().filter(|owner| owner.uid != record.uid).collect();
            let patch =
                json!({"metadata": {"ownerReferences": rest, "resourceVersion": found.resource_version()}});
            api.patch(&place.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            return Ok(true);
        }
        if found.metadata.deletion_timestamp.is_none() {
            let preconditions = Preconditions { uid: found.uid(), resource_version: None };
            let params = DeleteParams::background().preconditions(preconditions);
            match api.delete(&place.name, &params).await {
                Err(error) if !is_missing(&error) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(false)
    }
}

/// What was applied for a work.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) applied: Vec<Place>,
}

impl Record {
    pub(crate) fn owner(&self) -> Value {
        json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": RECORD, "name": self.name, "uid": self.uid})
    }
}

/// `resourceMeta` without the ordinal.
pub(crate) fn meta(place: &Place) -> Value {
    let Place { group, version, kind, resource, namespace, name } = place;
    json!({"group": group, "version": version, "kind": kind, "resource": resource, "namespace": namespace, "name": name})
}

pub(crate) fn place_of(meta: &Value) -> Place {
    let part = |name: &str| text(meta, &format!("/{name}")).to_owned();
    Place {
        group: part("group"),
        version: part("version"),
        kind: part("kind"),
        resource: part("resource"),
        namespace: part("namespace"),
        name: part("name"),
    }
}
