//! The kinds that Aviary installs on a hub: their schemas, and the names of their resources.

use std::cell::OnceCell;

use anyhow::anyhow;
use aviary_api::crds;
use aviary_schema::{Admission, Cause};
use serde_json::Value;

use crate::documents::Document;

#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    schema: Value,
    admission: OnceCell<Result<Admission, Vec<Cause>>>,
}

impl Kind {
    /// The schema and rules that the API server applies to an object of this kind.
    pub(crate) fn admission(&self) -> anyhow::Result<&Admission> {
        let admission = self.admission.get_or_init(|| Admission::new(&self.schema));
        admission.as_ref().map_err(|causes| {
            let causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
            anyhow!("failed to read the definition of {}: {}", self.kind, causes.join("; "))
        })
    }
}

#[derive(Debug)]
pub(crate) struct Kinds(Vec<Kind>);

impl Kinds {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut kinds = Vec::new();
        for crd in crds::all() {
            for version in &crd.spec.versions {
                let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
                kinds.push(Kind {
                    group: crd.spec.group.clone(),
                    version: version.name.clone(),
                    kind: crd.spec.names.kind.clone(),
                    plural: crd.spec.names.plural.clone(),
                    namespaced: crd.spec.scope == "Namespaced",
                    schema: serde_json::to_value(schema)?,
                    admission: OnceCell::new(),
                });
            }
        }
        Ok(Self(kinds))
    }

    /// Returns the kind of a document if it is one of ours, in a served version.
    pub(crate) fn of(&self, document: &Document) -> Option<&Kind> {
        self.0.iter().find(|kind| {
            kind.kind == document.kind()
                && kind.group == document.group()
                && kind.version == document.version()
        })
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.0.iter().any(|kind| kind.group == group)
    }

    /// Returns the kinds with this name, in any group and version.
    pub(crate) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Kind> {
        self.0.iter().filter(move |kind| kind.kind == name)
    }

    pub(crate) fn by_resource(&self, group: &str, plural: &str) -> Option<&Kind> {
        self.0.iter().find(|kind| kind.group == group && kind.plural == plural)
    }

    /// Returns the resource name of a document. For other kinds, guesses it from the kind's name.
    pub(crate) fn resource_of(&self, document: &Document) -> String {
        self.of(document).map_or_else(|| plural(document.kind()), |kind| kind.plural.clone())
    }
}

/// The plural of a kind, as Kubernetes guesses it.
pub(crate) fn plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    match singular.strip_suffix('y') {
        Some(stem) if !stem.is_empty() => format!("{stem}ies"),
        _ if singular.ends_with('s') => format!("{singular}es"),
        _ => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_of_an_unknown_kind_is_guessed_as_kubernetes_does() {
        assert_eq!(plural("HelloConfig"), "helloconfigs");
        assert_eq!(plural("Policy"), "policies");
        assert_eq!(plural("Ingress"), "ingresses");
    }
}
