//! A ManifestWork whose spec and status are text until somebody reads them.

use std::borrow::Cow;

use kube::Resource;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ManifestWork, ManifestWorkSpec, ManifestWorkStatus};

/// A ManifestWork of which only the metadata is parsed. A page of works then takes little more
/// memory than its text.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkText {
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: Option<Box<RawValue>>,
    #[serde(default)]
    pub status: Option<Box<RawValue>>,
}

impl WorkText {
    pub fn parse(self) -> serde_json::Result<ManifestWork> {
        let Self { metadata, spec, status } = self;
        let spec: Option<ManifestWorkSpec> = spec.map(|text| serde_json::from_str(text.get())).transpose()?;
        let status: Option<ManifestWorkStatus> =
            status.map(|text| serde_json::from_str(text.get())).transpose()?;
        Ok(ManifestWork { metadata, spec: spec.unwrap_or_default(), status })
    }
}

impl Resource for WorkText {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        ManifestWork::kind(&())
    }

    fn group(_: &()) -> Cow<'_, str> {
        ManifestWork::group(&())
    }

    fn version(_: &()) -> Cow<'_, str> {
        ManifestWork::version(&())
    }

    fn plural(_: &()) -> Cow<'_, str> {
        ManifestWork::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Guarded;

    #[test]
    fn a_work_is_the_same_whether_it_is_parsed_at_once_or_later() {
        let spec = json!({"workload": {"manifests": [{"kind": "ConfigMap", "data": {"a": "b"}}]}});
        let status = json!({"conditions": [{"type": "Applied", "status": "True"}]});
        let metadata = json!({"name": "w", "namespace": "c1", "managedFields": [{"manager": "x"}]});
        for object in [
            json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
                "metadata": metadata, "spec": spec, "status": status}),
            json!({"metadata": metadata, "spec": spec}),
            json!({"metadata": metadata, "spec": spec, "status": null}),
            json!({"metadata": metadata}),
            json!({"metadata": metadata, "spec": 1, "status": "odd"}),
        ] {
            let text = object.to_string();
            let at_once: Guarded<ManifestWork> = serde_json::from_str(&text).unwrap();
            let later: Guarded<WorkText> = serde_json::from_str(&text).unwrap();
            assert_eq!(later.0.unwrap().parse().unwrap(), at_once.0.unwrap(), "{text}");
            let buffered: WorkText = serde_json::from_value(object.clone()).unwrap();
            assert_eq!(buffered.parse().unwrap(), serde_json::from_value(object).unwrap(), "{text}");
        }
    }
}
