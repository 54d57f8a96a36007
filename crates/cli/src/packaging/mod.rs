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

/// The host of the dashboard, and the place of the operations page, that the files use.
const HOST: &str = "aviary.example.com";
pub(crate) const RUNBOOK: &str = "docs/operations.md";

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

const DASHBOARD: [File; 1] = [file!("dashboard", "web-dashboard.yaml")];

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
    /// The host of the web dashboard, if it is installed.
    pub(crate) dashboard: Option<&'a str>,
    /// Where docs/operations.md is served, for the links in alerts.
    pub(crate) runbook: &'a str,
}

impl Package<'_> {
    /// Every object, in an order in which they can be applied.
    pub(crate) fn objects(&self) -> anyhow::Result<Vec<Value>> {
        let mut objects = self.read(&NAMESPACE_FILE)?;
        objects.extend(self.definitions()?);
        let placement: &[File] = if self.flavor == Flavor::Standalone { &PLACEMENT } else { &[] };
        let monitoring: &[File] = if self.monitoring { &MONITORING } else { &[] };
        let registration: &[File] = if self.registration { &REGISTRATION } else { &[] };
        let dashboard: &[File] = if self.dashboard.is_some() { &DASHBOARD } else { &[] };
        let parts = [&BASE[..], placement, registration, dashboard, monitoring];
        for file in parts.into_iter().flatten() {
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
        let account = |namespace: &str| format!("system:serviceaccount:{namespace}:");
        let (ours, theirs) = (account(NAMESPACE), account(self.namespace));
        each_text(object, &|text| match text.as_str() {
            NAMESPACE => self.namespace.clone_into(text),
            IMAGE => self.image.clone_into(text),
            _ => {
                *text = text.replace(&ours, &theirs);
                if let Some(host) = self.dashboard {
                    *text = text.replace(HOST, host);
                }
                if let Some(section) = text.strip_prefix(RUNBOOK).filter(|rest| rest.starts_with('#')) {
                    *text = format!("{}{section}", self.runbook);
                }
            }
        });
        if self.flavor == Flavor::Standalone
            && is_deployment(object, "aviary-manager")
            && let Some(Value::Array(arguments)) = object.pointer_mut("/spec/template/spec/containers/0/args")
        {
            arguments.push("--placement".into());
        }
    }
}

fn is_deployment(object: &Value, name: &str) -> bool {
    let text = |path| object.pointer(path).and_then(Value::as_str);
    text("/kind") == Some("Deployment") && text("/metadata/name") == Some(name)
}

/// Changes every text in a value.
fn each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(list) => list.iter_mut().for_each(|one| each_text(one, change)),
        Value::Object(map) => map.values_mut().for_each(|one| each_text(one, change)),
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
