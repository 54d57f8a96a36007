//! Golden tests of the probes. Each renders a work with the real renderer, lets an agent answer its
//! feedback rules from a live object as OCM's agent does, and reads the work back.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::type_complexity,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and its tables are read more easily with plain types"
)]

mod evidence;
mod instructions;
mod kinds;
mod unbound;

use std::sync::Arc;

use aviary_api::{Guarded, ManifestWork};
use serde_json::{Value, json};

use super::Health;
use super::read::{WorkHealth, of_work};
use crate::configs::{ConfigRef, GroupResource, Pin};
use crate::name::ClusterName;
use crate::normalise;
use crate::observed::{Lookup, Observed};
use crate::problem::Problem;
use crate::render::{Templates, WorkSite};

const ADDON: &str = "helloworld";

/// A template, to be rendered for one cluster.
struct Template {
    manifests: Vec<Value>,
    configs: Value,
    variables: Value,
    namespace: &'static str,
}

impl Template {
    fn of(manifests: &[Value]) -> Self {
        Self { manifests: manifests.to_vec(), configs: json!([]), variables: json!([]), namespace: "agents" }
    }

    fn configs(mut self, configs: Value) -> Self {
        self.configs = configs;
        self
    }

    fn variables(mut self, variables: Value) -> Self {
        self.variables = variables;
        self
    }

    fn namespace(mut self, namespace: &'static str) -> Self {
        self.namespace = namespace;
        self
    }

    fn render(&self) -> Result<Value, Problem> {
        let mut observed = Observed::default();
        observed.addon.name = ADDON.into();
        let mut agent = json!({"workload": {"manifests": self.manifests}});
        if !self.configs.is_null() {
            agent["manifestConfigs"] = self.configs.clone();
        }
        let template = json!({
            "metadata": {"name": "tpl"},
            "spec": {
                "addonName": ADDON,
                "version": "v1.0.0",
                "agentSpec": agent,
            },
        });
        let deployment = json!({"spec": {"customizedVariables": self.variables}});
        let kinds = [GroupResource::templates(), GroupResource::deployment_configs()];
        let pins: Vec<Pin> = kinds
            .into_iter()
            .zip([template, deployment])
            .map(|(kind, object)| {
                let config = ConfigRef { kind: kind.clone(), namespace: None, name: "tpl".into() };
                let live = normalise::config(&object);
                let pin = Pin { config: Arc::new(config.clone()), hash: live.hash.clone() };
                observed.configs.insert(config, Lookup::Found(live));
                pin
            })
            .collect();
        let prepared = Templates::new(&observed).prepare(pins.iter()).unwrap();
        let prepared = prepared.map_err(|problem| (*problem).clone())?;
        assert_eq!(prepared.works(), 1);
        let cluster = ClusterName::parse("c1").unwrap();
        let site = WorkSite { cluster: &cluster, install_namespace: self.namespace, instance_uid: "uid" };
        Ok(prepared.work(0, &site, &pins.iter().collect::<Vec<_>>()))
    }

    fn work(&self) -> Value {
        self.render().unwrap_or_else(|problem| panic!("{problem}"))
    }
}

fn read(work: &Value) -> WorkHealth {
    let guarded: Guarded<ManifestWork> = serde_json::from_str(&work.to_string()).unwrap();
    of_work(&guarded.0.unwrap(), ADDON)
}

/// In one line.
fn told(health: &Health) -> String {
    match health {
        Health::NotProbed => "NotProbed".to_owned(),
        Health::Healthy => "Healthy".to_owned(),
        Health::Kept { why } => format!("Kept  {why}"),
        Health::Progressing { why, tolerable: true } => format!("Progressing, tolerable  {why}"),
        Health::Progressing { why, .. } => format!("Progressing  {why}"),
        Health::Unknown { why } => format!("Unknown  {why}"),
        Health::Failed { why, tolerable: true } => format!("Failed, tolerable  {why}"),
        Health::Failed { why, .. } => format!("Failed  {why}"),
    }
}

/// What a cluster makes of the `at`-th object of a work: the manifest with `live` merged into it.
fn applied(work: &Value, at: usize, live: &Value) -> Value {
    let mut object = work["spec"]["workload"]["manifests"][at].clone();
    merge(&mut object, live);
    object
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// The agent reports on the live objects, in the order of the manifests.
fn report(work: &mut Value, live: &[Value]) {
    let manifests: Vec<Value> = live.iter().enumerate().map(|(at, live)| entry(work, at, live)).collect();
    work["status"] = json!({"resourceStatus": {"manifests": manifests}});
}

/// What OCM's agent writes about one object: the rules of the first entry that names it, each value
/// that its path finds.
fn entry(work: &Value, at: usize, live: &Value) -> Value {
    let (group, version) = live["apiVersion"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap_or(("", live["apiVersion"].as_str().unwrap()));
    let meta = &live["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let configs = work["spec"]["manifestConfigs"].as_array().cloned().unwrap_or_default();
    let rules = configs.iter().find(|entry| {
        let known = &entry["resourceIdentifier"];
        text(&known["group"]) == group
            && text(&known["name"]) == text(&meta["name"])
            && text(&known["namespace"]) == text(&meta["namespace"])
            && is_plural_of(&text(&known["resource"]), &text(&live["kind"]))
    });
    let paths = rules.and_then(|entry| entry["feedbackRules"].as_array()).into_iter().flatten();
    let paths = paths.flat_map(|rule| rule["jsonPaths"].as_array().cloned().unwrap_or_default());
    let values: Vec<Value> = paths
        .filter_map(|path| {
            let value = match at_path(live, path["path"].as_str().unwrap())? {
                Value::Number(number) => json!({"type": "Integer", "integer": number}),
                Value::String(text) => json!({"type": "String", "string": text}),
                Value::Bool(flag) => json!({"type": "Boolean", "boolean": flag}),
                other => panic!("{path} ends in {other}"),
            };
            Some(json!({"name": path["name"], "fieldValue": value}))
        })
        .collect();
    json!({
        "resourceMeta": {
            "ordinal": at, "group": group, "version": version, "kind": live["kind"],
            "name": meta["name"], "namespace": meta["namespace"],
        },
        "statusFeedback": {"values": values},
        "conditions": [
            {"type": "Applied", "status": "True"},
            {"type": "Available", "status": "True"},
            {"type": "StatusFeedbackSynced", "status": "True"},
        ],
    })
}

fn is_plural_of(resource: &str, kind: &str) -> bool {
    let kind = kind.to_lowercase();
    let stem = kind.strip_suffix('y').map(|stem| format!("{stem}ies"));
    [Some(format!("{kind}s")), Some(format!("{kind}es")), stem]
        .iter()
        .any(|one| one.as_deref() == Some(resource))
}

/// The value at a path in the dialect of OCM's agent: `.a.b`, `\.` for a dot in a key, and
/// `[?(@.type=="X")]` for an element of a list.
fn at_path(object: &Value, path: &str) -> Option<Value> {
    let mut found = object;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(filter) = rest.strip_prefix(r#"[?(@.type==""#) {
            let (wanted, after) = filter.split_once(r#"")]"#).unwrap();
            found = found.as_array()?.iter().find(|element| element["type"] == wanted)?;
            rest = after;
            continue;
        }
        let step = rest.strip_prefix('.').unwrap_or_else(|| panic!("the agent cannot read {path}"));
        let masked = step.replace(r"\.", "\0\0");
        let end = masked.find(['.', '[']).unwrap_or(masked.len());
        found = found.get(step[..end].replace(r"\.", "."))?;
        rest = &step[end..];
    }
    Some(found.clone())
}

fn object(api: &str, kind: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": "greeter", "namespace": "greeter"}, "spec": {}})
}

/// The health of one object of which the cluster shows `live`.
fn health_of(manifest: &Value, configs: Value, live: &Value) -> String {
    let mut work = Template::of(std::slice::from_ref(manifest)).configs(configs).work();
    let live = applied(&work, 0, live);
    report(&mut work, &[live]);
    let found = read(&work);
    assert!(found.intact, "nobody has touched it");
    told(&found.health)
}
