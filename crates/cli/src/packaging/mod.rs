//! Everything to install on a hub: the objects in `deploy/`, adapted to the kind of hub.
//!
//! The files of `deploy/kustomize` are the source. The overlays list them, `chart` generates the
//! chart in `deploy/helm` from them, and tests check that all three agree.

#[cfg(test)]
mod chart;
#[cfg(test)]
mod tests;

use anyhow::Context as _;
use aviary_api::crds;
use aviary_api::names::{CLUSTER_GROUP, WORK_GROUP};
use clap::ValueEnum;
use serde_json::{Value, json};

/// The namespace that the files use.
pub(crate) const NAMESPACE: &str = "open-cluster-management";
/// The image that the files use.
pub(crate) const IMAGE: &str = concat!("aviary:", env!("CARGO_PKG_VERSION"));

/// OCM's operator compares this annotation with its own version, and does not replace a CRD that is
/// newer.
const OPERATOR_VERSION: &str = "operator.open-cluster-management.io/version";
const NEWER_THAN_ANY: &str = "999.0.0";

/// A file of `deploy/kustomize`: its name and content.
type File = (&'static str, &'static str);

macro_rules! file {
    ($folder:literal, $name:literal) => {
        ($name, include_str!(concat!("../../../../deploy/kustomize/", $folder, "/", $name)))
    };
}

const NAMESPACE_FILE: File = file!("base", "namespace.yaml");

const BASE: [File; 9] = [
    file!("base", "service-account.yaml"),
    file!("base", "manager-roles.yaml"),
    file!("base", "config-kinds.yaml"),
    file!("base", "user-roles.yaml"),
    file!("base", "admission-policies.yaml"),
    file!("base", "network-policy.yaml"),
    file!("base", "disruption-budget.yaml"),
    file!("base", "service.yaml"),
    file!("base", "deployment.yaml"),
];

const PLACEMENT: [File; 1] = [file!("placement", "placement-roles.yaml")];

const MONITORING: [File; 3] = [
    file!("monitoring", "service-monitor.yaml"),
    file!("monitoring", "alerts.yaml"),
    file!("monitoring", "dashboard.yaml"),
];

const REGISTRATION: [File; 5] = [
    file!("registration", "registration-account.yaml"),
    file!("registration", "registration-roles.yaml"),
    file!("registration", "registration-policy.yaml"),
    file!("registration", "registration-network-policy.yaml"),
    file!("registration", "registration-deployment.yaml"),
];

#[cfg(test)]
const REGISTRATION_TOKENS: [File; 1] = [file!("registration-tokens", "registration-tokens.yaml")];

/// The kind of hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flavor {
    /// A hub without Open Cluster Management: installs every CRD, and the manager decides
    /// placements
    Standalone,
    /// An Open Cluster Management hub, which already has clusters, placements and works
    Ocm,
}

/// What to install.
#[derive(Clone, Debug)]
pub(crate) struct Package<'a> {
    pub(crate) flavor: Flavor,
    pub(crate) image: &'a str,
    pub(crate) namespace: &'a str,
    /// Objects for the Prometheus operator and Grafana.
    pub(crate) monitoring: bool,
    /// The registration of add-on agents.
    pub(crate) registration: bool,
}

impl Package<'_> {
    /// Every object, in an order in which they can be applied.
    pub(crate) fn objects(&self) -> anyhow::Result<Vec<Value>> {
        let mut objects = self.read(&NAMESPACE_FILE)?;
        objects.extend(self.definitions()?);
        let placement: &[File] = if self.flavor == Flavor::Standalone { &PLACEMENT } else { &[] };
        let monitoring: &[File] = if self.monitoring { &MONITORING } else { &[] };
        let registration: &[File] = if self.registration { &REGISTRATION } else { &[] };
        for file in BASE.iter().chain(placement).chain(registration).chain(monitoring) {
            objects.extend(self.read(file)?);
        }
        Ok(objects)
    }

    fn definitions(&self) -> anyhow::Result<Vec<Value>> {
        let mut definitions = Vec::new();
        for crd in crds::all() {
            let theirs = [CLUSTER_GROUP, WORK_GROUP].contains(&crd.spec.group.as_str());
            if self.flavor == Flavor::Ocm && theirs {
                continue;
            }
            let mut definition = serde_json::to_value(&crd)
                .with_context(|| format!("failed to write {} as JSON", crds::file_name(&crd)))?;
            if self.flavor == Flavor::Ocm
                && let Some(metadata) = definition.get_mut("metadata").and_then(Value::as_object_mut)
            {
                metadata.insert("annotations".to_owned(), json!({ OPERATOR_VERSION: NEWER_THAN_ANY }));
            }
            definitions.push(definition);
        }
        Ok(definitions)
    }

    /// Reads the objects of a file and adapts them.
    fn read(&self, (name, text): &File) -> anyhow::Result<Vec<Value>> {
        let mut objects: Vec<Value> =
            serde_saphyr::from_multiple(text).with_context(|| format!("failed to read {name}"))?;
        for object in &mut objects {
            self.fit(object);
        }
        Ok(objects)
    }

    fn fit(&self, object: &mut Value) {
        rename(object, self.namespace);
        if object.get("kind").and_then(Value::as_str) != Some("Deployment") {
            return;
        }
        let is_manager = object.pointer("/metadata/name").and_then(Value::as_str) == Some("aviary-manager");
        let Some(container) = object.pointer_mut("/spec/template/spec/containers/0") else { return };
        if let Some(image) = container.get_mut("image") {
            *image = self.image.into();
        }
        if self.flavor == Flavor::Standalone
            && is_manager
            && let Some(Value::Array(arguments)) = container.get_mut("args")
        {
            arguments.push("--placement".into());
        }
    }
}

/// Replaces the manager's namespace: in fields that contain only a namespace, and in the name of
/// its service account.
fn rename(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text == NAMESPACE => *text = namespace.to_owned(),
        Value::String(text) => {
            let account = |namespace: &str| format!("system:serviceaccount:{namespace}:");
            *text = text.replace(&account(NAMESPACE), &account(namespace));
        }
        Value::Array(list) => list.iter_mut().for_each(|one| rename(one, namespace)),
        Value::Object(map) => map.values_mut().for_each(|one| rename(one, namespace)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

pub(crate) fn to_yaml(objects: &[Value]) -> anyhow::Result<String> {
    let mut stream = String::new();
    for object in objects {
        let yaml = serde_saphyr::to_string(object).context("failed to write an object as YAML")?;
        stream.push_str("---\n");
        stream.push_str(yaml.trim_end());
        stream.push('\n');
    }
    Ok(stream)
}
