//! Reads only the fields of a work that an agent needs.
//!
//! Thousands of works arrive per second, each at least twice: when it changes, and when its own
//! report is written. Most of a work (managed fields, the status of each object) does not concern
//! an agent and is skipped.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aviary_api::work::{ManifestWorkSpec, ManifestWorkStatus};
use aviary_api::{Condition, ManifestWork};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;
use kube::{Resource, core::NamespaceResourceScope};
use serde::Deserialize;

/// The part of a work that an agent reads.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Raw")]
pub(crate) struct AgentWork(pub(crate) ManifestWork);

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    metadata: WorkMetadata,
    #[serde(default)]
    spec: ManifestWorkSpec,
    status: Option<ReportedConditions>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WorkMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    deletion_timestamp: Option<Time>,
}

#[derive(Deserialize)]
struct ReportedConditions {
    #[serde(default)]
    conditions: Vec<Condition>,
}

impl From<Raw> for AgentWork {
    fn from(Raw { metadata, spec, status }: Raw) -> Self {
        let WorkMetadata {
            name,
            namespace,
            uid,
            resource_version,
            generation,
            labels,
            annotations,
            finalizers,
            deletion_timestamp,
        } = metadata;
        let metadata = ObjectMeta {
            name,
            namespace,
            uid,
            resource_version,
            generation,
            labels,
            annotations,
            finalizers,
            deletion_timestamp,
            ..ObjectMeta::default()
        };
        let status = status.map(|ReportedConditions { conditions }| ManifestWorkStatus {
            conditions,
            resource_status: None,
        });
        Self(ManifestWork { metadata, spec, status })
    }
}

/// The response to a report; its content is ignored.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ReportResponse {
    #[serde(skip)]
    metadata: ObjectMeta,
}

macro_rules! is_a_work {
    ($type:ty, $($metadata:tt)+) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = NamespaceResourceScope;

            fn kind((): &()) -> Cow<'_, str> {
                ManifestWork::kind(&())
            }

            fn group((): &()) -> Cow<'_, str> {
                ManifestWork::group(&())
            }

            fn version((): &()) -> Cow<'_, str> {
                ManifestWork::version(&())
            }

            fn plural((): &()) -> Cow<'_, str> {
                ManifestWork::plural(&())
            }

            fn meta(&self) -> &ObjectMeta {
                &self.$($metadata)+
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.$($metadata)+
            }
        }
    };
}

is_a_work!(AgentWork, 0.metadata);
is_a_work!(ReportResponse, metadata);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_agent_needs_is_read_and_the_rest_passed_over() {
        let object = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {
                "name": "w", "namespace": "c1", "uid": "u1", "resourceVersion": "7", "generation": 2,
                "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f"],
                "deletionTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "somebody"}],
            },
            "spec": {"workload": {"manifests": [{"kind": "ConfigMap"}]}},
            "status": {
                "conditions": [{"type": "Applied", "status": "True", "observedGeneration": 2}],
                "resourceStatus": {"manifests": [{"resourceMeta": {"name": "one"}}]},
            },
        });
        let whole: ManifestWork = serde_json::from_value(object.clone()).unwrap();
        let AgentWork(seen) = serde_json::from_value(object).unwrap();
        let mut expected = whole;
        expected.metadata.managed_fields = None;
        expected.status.as_mut().unwrap().resource_status = None;
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_bare_object_can_be_read() {
        let AgentWork(seen) = serde_json::from_value(json!({"metadata": {"name": "w"}})).unwrap();
        assert_eq!((seen.metadata.name.as_deref(), seen.status), (Some("w"), None));
        assert!(
            serde_json::from_value::<ReportResponse>(json!({"metadata": {"name": "w"}, "spec": 1})).is_ok()
        );
    }
}
