//! The pre-delete hooks of a template: Jobs and Pods that run when an instance is deleted, before
//! anything is removed. They are never part of what is installed, and have a work of their own.

use std::time::Duration;

use aviary_api::names::{annotations, labels};
use aviary_api::work::check_spec;
use serde_json::{Map, Value, json};

use super::check::identity;
use super::{Prepared, WORK_LIMIT, WorkSite, variables};
use crate::hash;
use crate::health::instruct::ObjectId;
use crate::hooks::{DEADLINE, read, work_name};
use crate::problem::Problem;
use crate::{duration, name::ClusterName};

/// Whether a manifest is a pre-delete hook. As in OCM, only Jobs and Pods can be one, and the
/// annotation or the label counts whatever its value is.
pub(crate) fn is_hook(manifest: &Value) -> bool {
    let kind = manifest.get("kind").and_then(Value::as_str);
    let has = |map: &str, key: &str| {
        manifest.get("metadata").and_then(|metadata| metadata.get(map)?.get(key)).is_some()
    };
    matches!(kind, Some("Job" | "Pod"))
        && (has("annotations", annotations::PRE_DELETE_HOOK) || has("labels", labels::PRE_DELETE_HOOK))
}

impl Prepared {
    /// Whether anything runs before an instance goes.
    pub fn has_hooks(&self) -> bool {
        !self.hooks.is_empty()
    }

    pub(crate) fn hook_work_name(&self) -> String {
        work_name(&self.addon)
    }

    /// How long the hooks may take together: the longest that one of them asks for.
    pub(crate) fn hook_deadline(&self) -> Duration {
        self.hook_deadline
    }

    /// Finds the hooks and all that can be wrong with them.
    pub(super) fn check_hooks(&mut self) -> Result<(), Problem> {
        let manifests = self.raw_manifests().iter().enumerate();
        let hooks: Vec<usize> =
            manifests.filter(|(_, manifest)| is_hook(manifest)).map(|(at, _)| at).collect();
        let mut deadline = None;
        let mut size = 0;
        for manifest in hooks.iter().filter_map(|&at| self.raw_manifests().get(at)) {
            let malformed = |why: String| Problem::TemplateMalformed {
                template: self.template.clone(),
                why: format!("{} {why}", identity(manifest).unwrap_or_default()),
            };
            let given = manifest
                .pointer("/metadata/annotations")
                .and_then(|all| all.get(annotations::PRE_DELETE_DEADLINE)?.as_str());
            let own = duration::parse(given.unwrap_or_default())
                .map_err(|error| malformed(format!("has an unusable deadline: {error}")))?;
            deadline = deadline.max(own);
            size += hash::canonical(manifest).len();
            if size > WORK_LIMIT {
                return Err(malformed(
                    "and the other pre-delete hooks have more than 400 KiB together".into(),
                ));
            }
        }
        self.hook_deadline = deadline.unwrap_or(DEADLINE);
        self.hooks = hooks;
        Ok(())
    }

    /// Checks the work of the hooks as OCM would.
    pub(super) fn check_hook_work(
        &self,
        cluster: &ClusterName,
        install_namespace: &str,
    ) -> Result<(), Problem> {
        if !self.has_hooks() {
            return Ok(());
        }
        let spec = Value::Object(self.hook_spec(cluster, install_namespace));
        let malformed = |why: String| Problem::TemplateMalformed { template: self.template.clone(), why };
        if hash::canonical(&spec).len() > WORK_LIMIT {
            return Err(malformed("its pre-delete hooks have more than 400 KiB together".into()));
        }
        match check_spec(&spec).err().unwrap_or_default().first() {
            None => Ok(()),
            Some(fault) => Err(malformed(format!("{}: {}", fault.field, fault.message))),
        }
    }

    /// The work of the hooks for one cluster, as it is written.
    pub fn hook_work(&self, site: &WorkSite<'_>) -> Value {
        json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {
                "name": work_name(&self.addon),
                "namespace": site.cluster.as_str(),
                "labels": { labels::ADDON_NAME: self.addon },
                "ownerReferences": [{
                    "apiVersion": "addon.open-cluster-management.io/v1alpha1",
                    "kind": "ManagedClusterAddOn",
                    "name": self.addon,
                    "uid": site.instance_uid,
                }],
            },
            "spec": self.hook_spec(site.cluster, site.install_namespace),
        })
    }

    fn hook_spec(&self, cluster: &ClusterName, install_namespace: &str) -> Map<String, Value> {
        let install_namespace = self.install_namespace(install_namespace);
        let raw = self.hooks.iter().filter_map(|&at| self.raw_manifests().get(at));
        let manifests: Vec<Value> = raw
            .filter_map(|manifest| self.fill(manifest).ok())
            .map(|mut manifest| {
                variables::name_cluster(&mut manifest, cluster, install_namespace);
                manifest
            })
            .collect();
        let configs: Vec<Value> = manifests.iter().filter_map(instruction).collect();
        let mut spec = Map::new();
        // The hooks run with the same identity as the rest.
        if let Some(executor) = self.agent().and_then(|agent| agent.get("executor")) {
            spec.insert("executor".to_owned(), executor.clone());
        }
        spec.insert("workload".to_owned(), json!({ "manifests": manifests }));
        spec.insert("manifestConfigs".to_owned(), Value::Array(configs));
        spec
    }
}

/// What the agent is to report about a hook. It never updates one: Jobs and Pods cannot be changed
/// in place.
fn instruction(manifest: &Value) -> Option<Value> {
    let id = ObjectId::of(manifest)?;
    let resource = if id.kind == "Job" { "jobs" } else { "pods" };
    let mut identifier = json!({"group": id.group, "resource": resource, "name": id.name});
    if !id.namespace.is_empty() {
        identifier["namespace"] = id.namespace.into();
    }
    let mut rules = vec![json!({"type": "WellKnownStatus"})];
    if resource == "jobs" {
        let path = r#".status.conditions[?(@.type=="Failed")].status"#;
        rules.push(json!({"type": "JSONPaths", "jsonPaths": [{"name": read::FAILED, "path": path}]}));
    }
    Some(json!({
        "resourceIdentifier": identifier,
        "feedbackRules": rules,
        "feedbackScrapeType": "Watch",
        "updateStrategy": {"type": "CreateOnly"},
    }))
}
