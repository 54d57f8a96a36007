//! What the hub serves, as clients discover it.
//!
//! Owns the documents under `/version`, `/api` and `/apis`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::resource::{Resource, Table, Version};
use crate::review::REVIEWS;

/// The Kubernetes whose behaviour the hub has.
const LIKE: (&str, &str) = ("1", "35");

pub(crate) fn version() -> Value {
    let (major, minor) = LIKE;
    // As Go calls them.
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "major": major, "minor": minor, "gitVersion": format!("v{major}.{minor}.0+aviary-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture),
    })
}

pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// The served versions of every group but the core one, best first.
fn versions_by_group(table: &Table) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (group, rows) in table.groups().filter(|(group, _)| !group.is_empty()) {
        let versions = groups.entry(group).or_default();
        let mut seen = BTreeSet::new();
        for version in rows.iter().flat_map(|row| row.versions.iter().filter(|version| version.served)) {
            if seen.insert(version.name.as_str()) {
                versions.push(&version.name);
            }
        }
        versions.sort_by(|a, b| crate::crd::by_priority(a, b));
    }
    for review in REVIEWS {
        groups.entry(review.group).or_insert_with(|| vec!["v1"]);
    }
    groups.retain(|_, versions| !versions.is_empty());
    groups
}

fn group_value(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

pub(crate) fn groups(table: &Table) -> Value {
    let groups: Vec<Value> =
        versions_by_group(table).into_iter().map(|(name, versions)| group_value(name, &versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

pub(crate) fn group(table: &Table, name: &str) -> Option<Value> {
    let versions = versions_by_group(table).remove(name)?;
    let mut group = group_value(name, &versions);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

/// The group versions that are served: `("", "v1")` first.
pub(crate) fn group_versions(table: &Table) -> Vec<(String, String)> {
    let others = versions_by_group(table).into_iter();
    let others = others.flat_map(|(group, versions)| {
        versions.into_iter().map(move |version| (group.to_owned(), version.to_owned()))
    });
    std::iter::once((String::new(), "v1".to_owned())).chain(others).collect()
}

/// The rows of a group version.
pub(crate) fn rows<'t>(table: &'t Table, group: &str, version: &str) -> Vec<(&'t Resource, &'t Version)> {
    let rows = table.all().filter(|resource| resource.group == group);
    rows.filter_map(|resource| Some((&**resource, resource.served(version)?))).collect()
}

pub(crate) fn resources(table: &Table, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for (resource, version) in rows(table, group, version) {
        resources.extend(resource_values(resource, version));
    }
    if version == "v1" {
        let reviews = REVIEWS.iter().filter(|review| review.group == group);
        resources.extend(reviews.map(|review| {
            json!({"name": review.plural, "singularName": review.kind.to_lowercase(), "namespaced": false, "kind": review.kind, "verbs": ["create"]})
        }));
    }
    if resources.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}),
    )
}

fn resource_values(resource: &Resource, version: &Version) -> Vec<Value> {
    let names = &resource.names;
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let is_namespace = &*resource.id == crate::builtin::NAMESPACES;
    let serves = |verb: &&str| match *verb {
        // A namespace is never deleted in passing.
        "deletecollection" if is_namespace => false,
        "get" | "list" | "watch" => true,
        _ => !resource.traits.always_empty,
    };
    let verbs: Vec<&str> = verbs.into_iter().filter(serves).collect();
    let mut main = json!({
        "name": names.plural, "singularName": names.singular, "namespaced": resource.namespaced, "kind": names.kind, "verbs": verbs,
    });
    if !names.short.is_empty() {
        main["shortNames"] = json!(names.short);
    }
    if !names.categories.is_empty() {
        main["categories"] = json!(names.categories);
    }
    let part = |name: &str, verbs: &[&str]| {
        json!({
            "name": format!("{}/{name}", names.plural), "singularName": "", "namespaced": resource.namespaced, "kind": names.kind,
            "verbs": verbs,
        })
    };
    let mut values = vec![main];
    if is_namespace {
        values.push(part("finalize", &["update"]));
    }
    if version.has_status {
        values.push(part("status", &["get", "patch", "update"]));
    }
    values
}
