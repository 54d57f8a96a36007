//! A small world as text, and what a placement makes of it as text.
//!
//! ```text
//! cluster a env=prod claim:region=eu taint:gpu=old/NoSelect@30 deleting      the taint is 30
//! seconds old set prod                     by its own label set eu region=eu             by these
//! labels; `*` is every cluster bind prod                    to the placement's namespace, or to
//! another one: bind prod elsewhere before a b                   is chosen already
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use aviary_api::{ManagedCluster, ManagedClusterSet, Placement};
use expect_test::Expect;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::name::{ClusterName, Text};
use crate::placement::choose::{CandidateCluster, Chosen, choose};
use crate::placement::key::Key;
use crate::placement::scope::{ClusterSet, Sets};

pub(super) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

pub(super) fn placement(spec: Value) -> Placement {
    let metadata =
        json!({"name": "p", "namespace": "here", "uid": "uid-of-p", "resourceVersion": "1", "generation": 3});
    serde_json::from_value(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "metadata": metadata, "spec": spec,
    }))
    .unwrap()
}

#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) clusters: Vec<CandidateCluster>,
    sets: BTreeMap<Key, ClusterSet>,
    bindings: BTreeMap<Key, Text>,
    pub(super) before: BTreeSet<ClusterName>,
}

fn key(namespace: &str, name: &str) -> Key {
    Key { namespace: namespace.into(), name: name.into() }
}

fn labels<'a>(words: impl Iterator<Item = &'a str>) -> Value {
    words.filter_map(|word| word.split_once('=')).map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

fn cluster(name: &str, words: &[&str]) -> CandidateCluster {
    let taint = |word: &&str| {
        let (taint, age) =
            word.strip_prefix("taint:")?.split_once('@').unwrap_or((&word["taint:".len()..], ""));
        let (taint, effect) = taint.split_once('/').unwrap();
        let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
        let added = (!age.is_empty()).then(|| now() - SignedDuration::from_secs(age.parse().unwrap()));
        Some(json!({"key": key, "value": value, "effect": effect, "timeAdded": added}))
    };
    let claims = words.iter().filter_map(|word| word.strip_prefix("claim:")?.split_once('='));
    let deleted = words.contains(&"deleting").then(now);
    let object: ManagedCluster = serde_json::from_value(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {
            "name": name, "deletionTimestamp": deleted,
            "labels": labels(words.iter().copied().filter(|word| !word.contains(':'))),
        },
        "spec": {"hubAcceptsClient": true, "taints": words.iter().filter_map(taint).collect::<Vec<_>>()},
        "status": {"clusterClaims": claims.map(|(name, value)| json!({"name": name, "value": value})).collect::<Vec<_>>()},
    }))
    .unwrap();
    CandidateCluster::read(&object).unwrap()
}

fn set(words: &[&str]) -> ClusterSet {
    let selector = match words {
        [] => json!({"selectorType": "ExclusiveClusterSetLabel"}),
        ["nonsense"] => json!({"selectorType": "ByMood"}),
        ["*"] => json!({"selectorType": "LabelSelector", "labelSelector": {}}),
        words => {
            let labels = labels(words.iter().copied());
            json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": labels}})
        }
    };
    let object: ManagedClusterSet = serde_json::from_value(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet", "metadata": {"name": "any"},
        "spec": {"clusterSelector": selector},
    }))
    .unwrap();
    ClusterSet::read(&object)
}

impl World {
    pub(super) fn parse(text: &str) -> Self {
        let mut world = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                ["cluster", name, rest @ ..] => world.clusters.push(cluster(name, rest)),
                ["set", name, rest @ ..] => {
                    world.sets.insert(key("", name), set(rest));
                }
                ["bind", set, rest @ ..] => {
                    let namespace = rest.first().unwrap_or(&"here");
                    world.bindings.insert(key(namespace, set), (*set).into());
                }
                ["before", names @ ..] => {
                    world.before.extend(names.iter().map(|name| ClusterName::parse(name).unwrap()));
                }
                other => panic!("{other:?} says nothing"),
            }
        }
        world
    }

    pub(super) fn choose(&self, spec: Value) -> Chosen {
        let sets = Sets { sets: &self.sets, bindings: &self.bindings };
        choose(&placement(spec), &self.clusters, sets, &self.before, now())
    }
}

fn told(chosen: &Chosen) -> String {
    let mut story = String::new();
    match &chosen.groups {
        None => story.push_str("stays as it is\n"),
        Some(groups) => {
            for group in groups {
                let names: Vec<&str> = group.clusters.iter().map(ClusterName::as_str).collect();
                let name = if group.name.is_empty() { "-" } else { &group.name };
                let names = if names.is_empty() { "nobody".into() } else { names.join(" ") };
                writeln!(story, "{name}: {names}").unwrap();
            }
        }
    }
    for verdict in &chosen.verdicts {
        if verdict.reason != "Succeedconfigured" || verdict.message != "Placement configurations check pass" {
            writeln!(story, "{} {}: {}", verdict.type_, verdict.reason, verdict.message).unwrap();
        }
        let good = ["AllDecisionsScheduled", "Misconfigured"].contains(&verdict.reason);
        assert_eq!(verdict.holds, good, "{verdict:?}");
    }
    if let Some(at) = chosen.recheck_at {
        writeln!(story, "look again in {:#}", at.duration_since(now())).unwrap();
    }
    story
}

#[track_caller]
pub(super) fn check(world: &str, spec: Value, expected: Expect) {
    expected.assert_eq(&told(&World::parse(world).choose(spec)));
}
