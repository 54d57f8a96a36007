//! Everything to install on a hub: the objects in `deploy/`, adapted to the kind of hub.
//!
//! The files of `deploy/kustomize` are the source. The overlays list them, `chart` generates the
//! chart in `deploy/helm` from them, and tests check that all three agree.

#[cfg(test)]
mod chart;
mod rights;
#[cfg(test)]
mod tests;

use anyhow::Context as _;
use aviary_api::crds;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::conversion;

pub(crate) use rights::{Right, of_manager};

/// The namespace that the files use.
pub(crate) const NAMESPACE: &str = "open-cluster-management";
/// The image that the files use.
pub(crate) const IMAGE: &str = concat!("aviary:", env!("CARGO_PKG_VERSION"));

/// The host of the dashboard, and the place of the operations page, that the files use.
const HOST: &str = "aviary.example.com";
pub(crate) const RUNBOOK: &str = "docs/operations.md";

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

/// The roles that every manager needs.
const MANAGER_ROLES: [File; 2] = [file!("base", "manager-roles.yaml"), file!("base", "config-kinds.yaml")];

const PLACEMENT: [File; 1] = [file!("placement", "placement-roles.yaml")];

const DASHBOARD: [File; 1] = [file!("dashboard", "web-dashboard.yaml")];

const OCM: [File; 1] = [file!("ocm", "ocm-roles.yaml")];

/// The namespace of OCM's controllers, in which its add-on manager has its Lease.
const OCM_ARGUMENT: &str = "--ocm-namespace=open-cluster-management-hub";

const CONVERSION: [File; 3] = [
    file!("conversion", "conversion-secret.yaml"),
    file!("conversion", "conversion-roles.yaml"),
    file!("conversion", "conversion-service.yaml"),
];

/// The argument and the port of a manager that converts.
const CONVERSION_ARGUMENT: &str = "--conversion=0.0.0.0:9443";
const CONVERSION_PORT: u16 = 9443;

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
    /// An Open Cluster Management hub: keeps its namespace and its kinds as they are, and adds only
    /// the kinds that it lacks
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
    /// Also serve v1beta1 of the add-on kinds, converted by the managers.
    pub(crate) v1beta1: bool,
}

impl Package<'_> {
    /// Every object, in an order in which they can be applied.
    pub(crate) fn objects(&self) -> anyhow::Result<Vec<Value>> {
        // On an OCM hub the namespace is that of OCM's operator.
        let mut objects = match self.flavor {
            Flavor::Standalone => self.read(&NAMESPACE_FILE)?,
            Flavor::Ocm => Vec::new(),
        };
        objects.extend(self.definitions()?);
        let of_flavor: &[File] = match self.flavor {
            Flavor::Standalone => &PLACEMENT,
            Flavor::Ocm => &OCM,
        };
        let monitoring: &[File] = if self.monitoring { &MONITORING } else { &[] };
        let registration: &[File] = if self.registration { &REGISTRATION } else { &[] };
        let dashboard: &[File] = if self.dashboard.is_some() { &DASHBOARD } else { &[] };
        let conversion: &[File] = if self.v1beta1 { &CONVERSION } else { &[] };
        let parts = [&BASE[..], of_flavor, conversion, registration, dashboard, monitoring];
        for file in parts.into_iter().flatten() {
            objects.extend(self.read(file)?);
        }
        Ok(objects)
    }

    fn definitions(&self) -> anyhow::Result<Vec<Value>> {
        let crds = match self.flavor {
            Flavor::Standalone if self.v1beta1 => crds::with_beta(&conversion::service(self.namespace)),
            Flavor::Standalone => crds::all(),
            Flavor::Ocm => crds::added_to_ocm(),
        };
        let to_json = |crd| {
            serde_json::to_value(crd)
                .with_context(|| format!("failed to write {} as JSON", crds::file_name(crd)))
        };
        crds.iter().map(to_json).collect()
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
        if !is_deployment(object, "aviary-manager") {
            return;
        }
        let Some(container) = object.pointer_mut("/spec/template/spec/containers/0") else { return };
        if let Some(Value::Array(arguments)) = container.get_mut("args") {
            arguments.push(match self.flavor {
                Flavor::Standalone => "--placement".into(),
                Flavor::Ocm => OCM_ARGUMENT.into(),
            });
            if self.v1beta1 {
                arguments.push(CONVERSION_ARGUMENT.into());
            }
        }
        if self.v1beta1
            && let Some(Value::Array(ports)) = container.get_mut("ports")
        {
            ports.push(json!({"name": "conversion", "containerPort": CONVERSION_PORT, "protocol": "TCP"}));
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
