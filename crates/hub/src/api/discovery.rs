//! Discovery: what the hub serves.
//!
//! Owns the documents under `/version`, `/api` and `/apis`, separately and aggregated.

pub(crate) mod aggregated;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::api::review::REVIEWS;
use crate::kinds::resource::{KindTable, KindVersion, Resource};

/// The built-in groups, in the order of Kubernetes. All others follow by name.
const BUILT_IN: [&str; 7] = [
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "rbac.authorization.k8s.io",
    "apiextensions.k8s.io",
    "coordination.k8s.io",
];
const REPORT: &[&str] = &["get", "patch", "update"];

/// Whether a group exists without any CRD.
pub(crate) fn is_built_in(group: &str) -> bool {
    group.is_empty() || BUILT_IN.contains(&group)
}

/// The version of Kubernetes that the hub imitates.
const LIKE: (&str, &str) = ("1", "35");

pub(crate) fn version() -> Value {
    let (major, minor) = LIKE;
    // The names that Go uses.
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

/// The served versions of every group except the core group: groups in order, the best version
/// first.
fn versions_by_group(table: &KindTable) -> Vec<(&str, Vec<&str>)> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (group, rows) in table.groups().filter(|(group, _)| !group.is_empty()) {
        let versions = groups.entry(group).or_default();
        let mut seen = BTreeSet::new();
        for version in rows.iter().flat_map(|row| row.versions.iter().filter(|version| version.served)) {
            if seen.insert(version.name.as_str()) {
                versions.push(&version.name);
            }
        }
        versions.sort_by(|a, b| crate::kinds::crd::by_priority(a, b));
    }
    for review in REVIEWS {
        groups.entry(review.group).or_insert_with(|| vec!["v1"]);
    }
    let mut groups: Vec<_> = groups.into_iter().filter(|(_, versions)| !versions.is_empty()).collect();
    let place = |group: &str| BUILT_IN.iter().position(|name| *name == group).unwrap_or(BUILT_IN.len());
    groups.sort_by_key(|(group, _)| place(group));
    groups
}

fn group_value(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

pub(crate) fn groups(table: &KindTable) -> Value {
    let groups: Vec<Value> =
        versions_by_group(table).into_iter().map(|(name, versions)| group_value(name, &versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

pub(crate) fn group(table: &KindTable, name: &str) -> Option<Value> {
    let (_, versions) = versions_by_group(table).into_iter().find(|(group, _)| *group == name)?;
    let mut group = group_value(name, &versions);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

/// The served group versions, starting with `("", "v1")`.
pub(crate) fn group_versions(table: &KindTable) -> Vec<(String, String)> {
    let others = versions_by_group(table).into_iter();
    let others = others.flat_map(|(group, versions)| {
        versions.into_iter().map(move |version| (group.to_owned(), version.to_owned()))
    });
    std::iter::once((String::new(), "v1".to_owned())).chain(others).collect()
}

/// The rows of a group version.
pub(crate) fn rows<'t>(
    table: &'t KindTable,
    group: &str,
    version: &str,
) -> Vec<(&'t Resource, &'t KindVersion)> {
    let rows = table.all().filter(|resource| resource.group == group);
    rows.filter_map(|resource| Some((&**resource, resource.served(version)?))).collect()
}

/// A kind of a group version, as it appears in every document.
#[derive(Debug)]
struct DiscoveryEntry<'t> {
    name: &'t str,
    singular: String,
    kind: &'t str,
    namespaced: bool,
    is_custom: bool,
    verbs: Vec<&'static str>,
    short: &'t [String],
    categories: &'t [String],
    parts: Vec<(&'static str, &'static [&'static str])>,
}

fn entries<'t>(table: &'t KindTable, group: &str, version: &str) -> Vec<DiscoveryEntry<'t>> {
    let stored = rows(table, group, version).into_iter().map(|(resource, version)| entry(resource, version));
    let reviews = REVIEWS.iter().filter(|review| review.group == group && version == "v1");
    let reviews = reviews.map(|review| DiscoveryEntry {
        name: review.plural,
        singular: review.kind.to_lowercase(),
        kind: review.kind,
        namespaced: false,
        is_custom: false,
        verbs: vec!["create"],
        short: &[],
        categories: &[],
        parts: Vec::new(),
    });
    stored.chain(reviews).collect()
}

fn entry<'t>(resource: &'t Resource, version: &KindVersion) -> DiscoveryEntry<'t> {
    let names = &resource.names;
    let is_namespace = &*resource.id == crate::kinds::builtin::NAMESPACES;
    let mut parts = Vec::new();
    if is_namespace {
        parts.push(("finalize", &["update"][..]));
    }
    if version.has_status {
        parts.push(("status", REPORT));
    }
    DiscoveryEntry {
        name: &names.plural,
        singular: names.singular.clone(),
        kind: &names.kind,
        namespaced: resource.namespaced,
        is_custom: resource.is_custom(),
        verbs: verbs(resource, is_namespace),
        short: &names.short,
        categories: &names.categories,
        parts,
    }
}

/// In the order of Kubernetes.
fn verbs(resource: &Resource, is_namespace: bool) -> Vec<&'static str> {
    if resource.is_custom() {
        let all = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
        let adds = |verb: &&str| matches!(*verb, "create" | "update" | "patch");
        return all.into_iter().filter(|verb| !(resource.terminating && adds(verb))).collect();
    }
    let all = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let serves = |verb: &&str| match *verb {
        // Namespaces cannot be deleted as a collection.
        "deletecollection" if is_namespace => false,
        "get" | "list" | "watch" => true,
        _ => !resource.traits.always_empty,
    };
    all.into_iter().filter(serves).collect()
}

pub(crate) fn resources(table: &KindTable, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<Value> = entries(table, group, version).iter().flat_map(resource_values).collect();
    if resources.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    // As in Kubernetes: the core group is older than this field.
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

fn resource_values(entry: &DiscoveryEntry<'_>) -> Vec<Value> {
    let value = |name: &str, singular: &str, verbs: &[&str]| {
        json!({
            "name": name, "singularName": singular, "namespaced": entry.namespaced, "kind": entry.kind, "verbs": verbs,
        })
    };
    let mut main = value(entry.name, &entry.singular, &entry.verbs);
    put_names(&mut main, entry);
    let parts = entry.parts.iter().map(|(part, verbs)| value(&format!("{}/{part}", entry.name), "", verbs));
    std::iter::once(main).chain(parts).collect()
}

fn put_names(value: &mut Value, entry: &DiscoveryEntry<'_>) {
    if !entry.short.is_empty() {
        value["shortNames"] = json!(entry.short);
    }
    if !entry.categories.is_empty() {
        value["categories"] = json!(entry.categories);
    }
}
