//! ManifestWork is what OCM ships: every field with its type, constraints and rules; and whatever a
//! newer OCM stores in one is read.

use std::collections::BTreeMap;

use aviary_api::{Condition, Guarded, ManifestWork};
use serde_json::{Value, json};

use crate::support::{schemas, walk};

/// Every field of OCM's definition: path, type, constraints.
const FACTS: &str = include_str!("fixtures/ocm/manifestworks.txt");

/// One line of the facts: path, type, constraints.
pub(crate) fn facts() -> impl Iterator<Item = (&'static str, &'static str, Vec<&'static str>)> {
    FACTS.lines().map(|line| {
        let mut parts = line.split("  ");
        let (path, type_) = (parts.next().unwrap(), parts.next().unwrap());
        (path, type_, parts.next().map_or(Vec::new(), |all| all.split("; ").collect()))
    })
}

fn schema_of(kind: &str) -> &'static Value {
    schemas().iter().find(|(name, _)| name == kind).map(|(_, schema)| schema).unwrap()
}

/// The constraints of a schema, as the facts write them.
fn constraints(schema: &Value, required: bool) -> Vec<String> {
    let joined = |list: &Value| {
        let all: Vec<&str> = list.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        all.join(",")
    };
    let mut found = Vec::new();
    if required {
        found.push("required".to_owned());
    }
    for key in ["default", "minLength", "maxLength"] {
        found.extend(schema.get(key).map(|value| format!("{key}={value}")));
    }
    found.extend(schema["minimum"].as_f64().map(|least| format!("minimum={least}")));
    for key in ["pattern", "format"] {
        found.extend(schema.get(key).and_then(Value::as_str).map(|value| format!("{key}={value}")));
    }
    found.extend(schema.get("enum").map(|values| format!("enum={}", joined(values))));
    if schema["x-kubernetes-list-type"] == "map" {
        found.push(format!("list=map({})", joined(&schema["x-kubernetes-list-map-keys"])));
    }
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        found.push(format!("rule: {}", rule["rule"].as_str().unwrap()));
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        found.push("preserve-unknown".to_owned());
    }
    if schema["x-kubernetes-embedded-resource"] == true {
        found.push("embedded".to_owned());
    }
    found.sort();
    found
}

/// Every field of a schema, with its type and its constraints.
fn fields(schema: &Value) -> BTreeMap<String, (String, Vec<String>)> {
    let mut all = BTreeMap::new();
    let mut required = Vec::new();
    walk("", schema, &mut |path, schema| {
        let dot = if path.is_empty() { "" } else { "." };
        for name in schema["required"].as_array().into_iter().flatten() {
            required.push(format!("{path}{dot}{}", name.as_str().unwrap()));
        }
        let type_ = schema["type"].as_str().unwrap_or_default().to_owned();
        all.insert(path.to_owned(), (type_, constraints(schema, required.contains(&path.to_owned()))));
    });
    all.remove("");
    all
}

/// Compares fields with the facts about them. Where OCM sets no limit, ours is allowed: the API
/// server estimates the cost of rules from limits.
fn assert_as_shipped(
    mut ours: BTreeMap<String, (String, Vec<String>)>,
    facts: impl Iterator<Item = (String, &'static str, Vec<&'static str>)>,
) {
    let mut faults = Vec::new();
    for (path, type_, mut expected) in facts {
        let Some((our_type, mut found)) = ours.remove(&path) else {
            faults.push(format!("{path} is missing"));
            continue;
        };
        if !expected.iter().any(|one| one.starts_with("maxLength=")) {
            found.retain(|one| !one.starts_with("maxLength="));
        }
        expected.sort_unstable();
        if our_type != type_ || found != expected {
            faults.push(format!("{path}: {our_type} {found:?}, and OCM has {type_} {expected:?}"));
        }
    }
    faults.extend(ours.keys().map(|path| format!("{path} is not in OCM's definition")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_field_of_a_work_is_as_ocm_ships_it() {
    let mut ours = fields(schema_of("ManifestWork"));
    ours.retain(|path, _| !["apiVersion", "kind", "metadata"].contains(&path.as_str()));
    assert_as_shipped(ours, facts().map(|(path, type_, rest)| (path.to_owned(), type_, rest)));
}

/// A template's manifests contain variables, so no API server can read them as objects yet.
#[test]
fn a_template_s_work_is_as_ocm_ships_it_but_for_the_variables_in_its_manifests() {
    const MANIFEST: &str = "workload.manifests[]";
    let strip = |path: &str| path.strip_prefix("spec.agentSpec.").map(str::to_owned);
    let ours = fields(schema_of("AddOnTemplate")).into_iter();
    let ours = ours.filter_map(|(path, field)| Some((strip(&path)?, field)));
    let ours = ours.filter(|(path, _)| !path.starts_with(MANIFEST)).collect();
    let spec = facts().filter_map(|(path, type_, rest)| Some((path.strip_prefix("spec.")?, type_, rest)));
    let spec = spec.filter(|(path, ..)| !path.starts_with(MANIFEST));
    assert_as_shipped(ours, spec.map(|(path, type_, rest)| (path.to_owned(), type_, rest)));
}

fn condition(type_: &str) -> Value {
    json!({
        "type": type_, "status": "True", "reason": "AppliedManifestWorkComplete", "message": "done",
        "lastTransitionTime": "2026-08-01T00:00:00Z", "observedGeneration": 7,
    })
}

/// A work that has every field.
pub(crate) fn whole() -> Value {
    let identifier = json!({"group": "apps", "resource": "deployments", "name": "agent", "namespace": "ns"});
    let value = |name: &str, value: Value| json!({"name": name, "fieldValue": value});
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "addon-a-deploy-0", "namespace": "c1", "generation": 7},
        "spec": {
            "workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]},
            "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan", "ttlSecondsAfterFinished": 60,
                "selectivelyOrphans": {"orphaningRules": [identifier]},
            },
            "executor": {"subject": {"type": "ServiceAccount", "serviceAccount": {"name": "sa", "namespace": "ns"}}},
            "manifestConfigs": [{
                "resourceIdentifier": identifier,
                "feedbackRules": [
                    {"type": "WellKnownStatus"},
                    {"type": "JSONPaths", "jsonPaths": [{"name": "a", "version": "v1", "path": ".status.a"}]},
                ],
                "feedbackScrapeType": "Watch",
                "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {
                    "force": true, "fieldManager": "work-agent-a",
                    "ignoreFields": [{
                        "condition": "OnSpokeChange", "jqPathExpressions": [".spec"], "jsonPaths": [".spec"],
                        "jsonPointers": ["/spec"],
                    }],
                }},
                "conditionRules": [{
                    "type": "CEL", "condition": "Complete", "celExpressions": ["object.status.done", "true"],
                    "message": "done", "messageExpression": "'done'",
                }],
            }],
        },
        "status": {
            "conditions": [condition("Applied"), condition("Available")],
            "resourceStatus": {"manifests": [{
                "resourceMeta": {
                    "ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments",
                    "name": "agent", "namespace": "ns",
                },
                "statusFeedback": {"values": [
                    value("i", json!({"type": "Integer", "integer": 3})),
                    value("s", json!({"type": "String", "string": "s"})),
                    value("b", json!({"type": "Boolean", "boolean": true})),
                    value("j", json!({"type": "JsonRaw", "jsonRaw": "{}"})),
                ]},
                "conditions": [condition("Applied")],
            }]},
        },
    })
}

fn read(work: &Value) -> ManifestWork {
    let guarded: Guarded<ManifestWork> = serde_json::from_str(&work.to_string()).unwrap();
    guarded.0.unwrap_or_else(|error| panic!("{error}: {work}"))
}

/// Calls `change` on each value that a path of the facts names. How many there are.
pub(crate) fn at(value: &mut Value, path: &str, change: &mut impl FnMut(&mut Value)) -> usize {
    let Some((first, rest)) = (!path.is_empty()).then(|| path.split_once('.').unwrap_or((path, ""))) else {
        change(value);
        return 1;
    };
    let (name, is_item) = first.strip_suffix("[]").map_or((first, false), |name| (name, true));
    match value.get_mut(name) {
        Some(Value::Array(items)) if is_item => items.iter_mut().map(|item| at(item, rest, change)).sum(),
        Some(found) => at(found, rest, change),
        None => 0,
    }
}

#[test]
fn every_field_survives_reading_and_writing() {
    let work = whole();
    for (path, ..) in facts() {
        assert_ne!(at(&mut work.clone(), path, &mut |_| ()), 0, "the example has no {path}");
    }
    assert_eq!(serde_json::to_value(read(&work)).unwrap(), work);
    let parsed: ManifestWork = serde_json::from_value(work.clone()).unwrap();
    assert_eq!(serde_json::to_value(parsed).unwrap(), work);
}

/// What is required is written even if it is empty.
#[test]
fn an_entry_of_a_status_always_has_its_conditions() {
    let entry = aviary_api::work::ManifestCondition::default();
    assert_eq!(serde_json::to_value(entry).unwrap()["conditions"], json!([]));
}

fn reports(work: &ManifestWork, type_: &str) -> bool {
    let conditions = work.status.as_ref().map_or(&[][..], |status| &status.conditions);
    Condition::find(conditions, type_)
        .is_some_and(|found| found.is_true() && found.observed_generation == Some(7))
}

#[test]
fn a_work_with_a_field_that_nobody_knows_is_read() {
    let objects = facts().filter(|(_, type_, _)| *type_ == "object").map(|(path, ..)| path);
    for path in objects.chain([""]) {
        let mut work = whole();
        let found = at(&mut work, path, &mut |object| {
            object["surprise"] = json!({"deep": [1, {"a": null}]});
        });
        assert_ne!(found, 0);
        let work = read(&work);
        assert!(reports(&work, "Applied") && reports(&work, "Available"), "{path}");
    }
}

#[test]
fn a_field_with_a_value_that_nobody_knows_hides_no_other() {
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(18_446_744_073_709_551_615_u64),
        json!("Surprise"),
        json!([]),
        json!([null, 1, "a", ["b"], {"c": 1}]),
        json!({}),
        json!({"new": {"a": [1]}}),
    ];
    for (path, ..) in facts() {
        for value in &odd {
            let mut changed = whole();
            at(&mut changed, path, &mut |old| *old = value.clone());
            let work = read(&changed);
            let parsed: ManifestWork = serde_json::from_value(changed).unwrap();
            assert_eq!(work, parsed, "{path}: {value}");
            if path != "status" && !path.starts_with("status.conditions") {
                assert!(reports(&work, "Applied") && reports(&work, "Available"), "{path}: {value}");
            }
            if !path.starts_with("spec") || path.starts_with("spec.manifestConfigs") {
                assert_eq!(work.spec.manifests().len(), 1, "{path}: {value}");
            }
        }
    }
}

#[test]
fn one_odd_condition_hides_no_other() {
    for odd in [json!(null), json!(1), json!("a"), json!([1]), json!({"type": 1, "status": {}})] {
        let mut work = whole();
        work["status"]["conditions"] = json!([odd, condition("Applied"), odd, condition("Available")]);
        let work = read(&work);
        assert!(reports(&work, "Applied") && reports(&work, "Available"), "{odd}");
    }
}

#[test]
fn an_unknown_value_of_an_enum_is_kept() {
    let mut work = whole();
    work["spec"]["manifestConfigs"][0]["conditionRules"][0]["type"] = json!("Telepathy");
    work["status"]["resourceStatus"]["manifests"][0]["statusFeedback"]["values"][0]["fieldValue"]["type"] =
        json!("Float");
    assert_eq!(serde_json::to_value(read(&work)).unwrap(), work);
}
