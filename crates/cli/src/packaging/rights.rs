//! What the installed roles let a manager do, so that a manager can find out what it lacks.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::Value;

use super::{File, MANAGER_ROLES, NAMESPACE, PLACEMENT};

/// Reviews of the tokens of others: only for metrics, where a refusal shows itself.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// Verbs on a resource, at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: Option<String>,
    /// The whole hub, if absent.
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) verbs: Vec<String>,
}

/// The rights of a manager whose own namespace is this one, each place once.
pub(crate) fn of_manager(namespace: &str, decides_placements: bool) -> anyhow::Result<Vec<Right>> {
    let placement: &[File] = if decides_placements { &PLACEMENT } else { &[] };
    let mut rights: BTreeMap<Right, Vec<String>> = BTreeMap::new();
    for (name, text) in MANAGER_ROLES.iter().chain(placement) {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(text).with_context(|| format!("failed to read {name}"))?;
        for role in &objects {
            let place = role.pointer("/metadata/namespace").and_then(Value::as_str);
            let place = place.map(|place| if place == NAMESPACE { namespace } else { place });
            for rule in role.get("rules").and_then(Value::as_array).into_iter().flatten() {
                for (right, verbs) in of_rule(rule, place) {
                    rights.entry(right).or_default().extend(verbs);
                }
            }
        }
    }
    Ok(rights.into_iter().map(|(right, verbs)| Right { verbs, ..right }).collect())
}

fn of_rule(rule: &Value, namespace: Option<&str>) -> Vec<(Right, Vec<String>)> {
    let texts = |field: &str| -> Vec<String> {
        let list = rule.get(field).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let names = texts("resourceNames");
    let names: Vec<Option<String>> =
        if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
    let mut rights = Vec::new();
    for group in texts("apiGroups").into_iter().filter(|group| !REVIEWS.contains(&group.as_str())) {
        for resource in texts("resources") {
            let (resource, subresource) = match resource.split_once('/') {
                Some((resource, part)) => (resource.to_owned(), Some(part.to_owned())),
                None => (resource, None),
            };
            for name in &names {
                let right = Right {
                    group: group.clone(),
                    resource: resource.clone(),
                    subresource: subresource.clone(),
                    namespace: namespace.map(str::to_owned),
                    name: name.clone(),
                    verbs: Vec::new(),
                };
                rights.push((right, texts("verbs")));
            }
        }
    }
    rights
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_manager_needs_what_its_roles_grant_in_its_own_namespace() {
        let told = |decides_placements| -> Vec<String> {
            let rights = of_manager("mine", decides_placements).unwrap();
            let place = |right: &Right| right.namespace.clone().unwrap_or_else(|| "*".into());
            rights
                .iter()
                .map(|right| {
                    let part = right.subresource.iter().map(|part| format!("/{part}")).collect::<String>();
                    let name = right.name.iter().map(|name| format!(" {name}")).collect::<String>();
                    format!("{} {}{part}{name}: {}", place(right), right.resource, right.verbs.join(","))
                })
                .collect()
        };
        let rights = told(false);
        for right in [
            "* managedclusteraddons: list,watch,create,patch,delete",
            "* managedclusteraddons/status: patch",
            "* addontemplates: list,watch",
            "mine leases aviary-manager: get,update",
            "mine controllerrevisions: get,list,watch,create,patch,delete",
            "default events: create",
        ] {
            assert!(rights.iter().any(|known| known == right), "{right} is not in {rights:#?}");
        }
        assert!(
            !rights.iter().any(|right| right.contains("reviews") || right.contains("managedclustersets"))
        );
        assert!(told(true).iter().any(|right| right == "* managedclustersets: list,watch"));
    }
}
