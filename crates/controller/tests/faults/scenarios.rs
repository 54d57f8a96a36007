//! The scenarios: small fleets, and what happens to them.

mod fleets;
mod hooks;
mod rollouts;
mod users;

use aviary_testing::objects as common;
use serde_json::{Value, json};

use crate::objects::{addon, behind, place, rolling};
use crate::scenario::{Scenario, Step};
use Step::{Join, Put, Rest, Select};

pub(crate) fn all() -> Vec<Scenario> {
    [rollouts::all(), fleets::all(), hooks::all(), users::all()].concat()
}

fn scenario(name: &'static str, given: Vec<Step>, when: Vec<Step>) -> Scenario {
    Scenario { name, given, when, pairs: false, slow: false, cold: false, hasty: false }
}

/// A scenario that is small enough for all pairs of crashes.
fn small(name: &'static str, given: Vec<Step>, when: Vec<Step>) -> Scenario {
    Scenario { name, given, when, pairs: true, slow: false, cold: false, hasty: false }
}

const NONE: &[&str] = &[];
const TWO: &[&str] = &["c1", "c2"];
const THREE: &[&str] = &["c1", "c2", "c3"];
const FOUR: &[&str] = &["c1", "c2", "c3", "c4"];

fn template_of(addon: &str, version: &str) -> Step {
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "agent", "image": version}]}}},
    });
    Put(common::template_of(addon, version, &json!([common::manifest(version), workload])))
}

fn template(version: &str) -> Step {
    template_of("helloworld", version)
}

fn hub_config(name: &str, version: &str) -> Step {
    Put(common::hub_config(name, version))
}

/// Two versions, and a config for each: `one` and `two`.
fn versions() -> Vec<Step> {
    vec![template("v1.0.0"), template("v2.0.0"), hub_config("one", "v1.0.0"), hub_config("two", "v2.0.0")]
}

fn joined(names: &[&'static str]) -> Vec<Step> {
    names.iter().map(|name| Join(name)).collect()
}

fn fleet(names: &[&'static str]) -> Step {
    Select("fleet", names.to_vec())
}

/// A fleet with `one` everywhere, placed by `fleet` with this strategy.
fn installed(names: &[&'static str], strategy: Value) -> Vec<Step> {
    [versions(), joined(names), vec![fleet(names), want("one", strategy), Rest]].concat()
}

fn want(config: &str, strategy: Value) -> Step {
    Put(addon(&[place("fleet", config, strategy)]))
}

/// A fleet with `one` everywhere, of which `fleet` waits for `canary`, which is `c1`.
fn with_canary(names: &[&'static str]) -> Vec<Step> {
    let placed = vec![fleet(names), Select("canary", vec!["c1"]), want_behind("one"), Rest];
    [versions(), joined(names), placed].concat()
}

fn want_behind(config: &str) -> Step {
    Put(addon(&[place("fleet", config, behind("canary", 1)), place("canary", config, rolling(1))]))
}

/// A strategy with more to it.
fn also(mut strategy: Value, more: Value) -> Value {
    strategy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    strategy
}

fn cluster(name: &str, rest: Value) -> Value {
    let mut cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
        "spec": {"hubAcceptsClient": true},
    });
    for (part, value) in rest.as_object().unwrap() {
        if part == "metadata" {
            cluster["metadata"].as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        } else {
            cluster[part] = value.clone();
        }
    }
    cluster
}

fn placement(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name, "namespace": "default"}, "spec": {},
    })
}

fn decision(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {"name": name, "namespace": "default"},
    })
}
