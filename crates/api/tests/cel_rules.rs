//! Every CEL rule lets the right objects in, and keeps the wrong ones out with its message.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kube_cel::{ErrorKind, Validator};
use serde_json::Value;
use support::{schemas, walk};

const ADD_ON: &str = "ClusterManagementAddOn";
const INSTANCE: &str = "ManagedClusterAddOn";
const DEPLOYMENT: &str = "AddOnDeploymentConfig";
const BINDING: &str = "ManagedClusterSetBinding";
const PLACEMENT: &str = "Placement";

const CONCURRENCY: &str = "must be a whole number of at least 1, or a whole percentage from 1% to 100%";
const FAILURES: &str = "must be a whole number of at least 0, or a whole percentage from 0% to 100%";
const VERSIONS: &str = "desiredVersion and installVersion mean the same: give one, or both alike";

/// What is wrong with an object: where, and the message.
type Faults = BTreeSet<(String, String)>;

/// The rules that fail for an object, list indices left out of their paths. A rule also fails if it cannot be evaluated
/// to its end, as with a number that is none; the API server then reports its message after the error.
fn faults(kind: &str, object: &str) -> Faults {
    let object = serde_saphyr::from_str(object).unwrap_or_else(|error| panic!("{object}: {error}"));
    faults_of(kind, &object)
}

fn faults_of(kind: &str, object: &Value) -> Faults {
    let (_, schema) = schemas().iter().find(|(name, _)| name == kind).expect("a kind that has a CRD");
    let Err(errors) = Validator::new().validate(schema, object, None) else { return Faults::new() };
    let mut faults = Faults::new();
    for error in errors.into_vec() {
        assert!(
            matches!(error.kind, ErrorKind::ValidationFailure | ErrorKind::EvaluationError),
            "{object}: {error:?}"
        );
        faults.insert((without_indices(&error.field_path), message_of(schema, &error.rule)));
    }
    faults
}

fn message_of(schema: &Value, rule: &str) -> String {
    let mut message = None;
    walk("", schema, &mut |_, schema| {
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        for found in rules.filter(|found| found["rule"] == rule) {
            message = found["message"].as_str().map(str::to_owned);
        }
    });
    message.expect("a rule of the schema")
}

fn without_indices(path: &str) -> String {
    let mut plain = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        plain.push_str("[]");
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    plain + rest
}

fn placements(list: &str) -> String {
    format!(
        "{{metadata: {{name: a}}, spec: {{installStrategy: {{type: Placements, placements: [{list}]}}}}}}"
    )
}

fn rollout(strategy: &str) -> String {
    placements(&format!("{{name: aws, namespace: default, rolloutStrategy: {{{strategy}}}}}"))
}

fn install(strategy: &str) -> String {
    format!("{{metadata: {{name: a}}, spec: {{installStrategy: {{{strategy}}}}}}}")
}

fn spec(spec: &str) -> String {
    format!("{{metadata: {{name: a}}, spec: {{{spec}}}}}")
}

fn canary(name: &str, max: &str) -> String {
    rollout(&format!(
        "type: RollingUpdateWithCanary, rollingUpdateWithCanary: {{placement: {{name: {name}, namespace: default}}{max}}}"
    ))
}

/// Objects that nothing is wrong with.
fn accepted() -> Vec<(&'static str, String)> {
    let mut accepted = vec![
        (ADD_ON, "{metadata: {name: a}, spec: {}}".to_owned()),
        (ADD_ON, "{metadata: {name: a}}".to_owned()),
        (ADD_ON, install("")),
        (ADD_ON, install("type: Manual")),
        (ADD_ON, install("type: Manual, placements: [{name: aws, namespace: default}]")),
        (ADD_ON, install("type: Manual, labelSelector: {matchLabels: {a: b}}")),
        (ADD_ON, install("type: ClusterLabelSelector, labelSelector: {}")),
        (ADD_ON, placements("{name: aws, namespace: default}, {name: aws, namespace: other}")),
        (ADD_ON, rollout("")),
        (
            ADD_ON,
            rollout(
                "type: UpdateAll, maxFailures: 0, progressDeadline: 30m, minSuccessTime: 10s, paused: true",
            ),
        ),
        (ADD_ON, rollout("type: RollingUpdate")),
        (ADD_ON, rollout("type: All, all: {maxFailures: 0, progressDeadline: None}")),
        (ADD_ON, rollout("type: Progressive, progressive: {maxConcurrency: 3, maxFailures: 5%}")),
        (ADD_ON, rollout("type: Progressive")),
        (ADD_ON, rollout("type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 2}")),
        (ADD_ON, canary("canary", "")),
        (ADD_ON, canary("canary", ", maxConcurrentlyUpdating: 1")),
        (
            ADD_ON,
            placements("{name: a, namespace: b, addonTemplate: {desiredVersion: v1, installVersion: v1}}"),
        ),
        (ADD_ON, placements("{name: a, namespace: b, addonTemplate: {installVersion: v1}}")),
        (INSTANCE, spec("desiredVersion: v1")),
        (INSTANCE, spec("desiredVersion: v1, installVersion: v1")),
        (
            DEPLOYMENT,
            spec("nodePlacement: {nodeSelector: {a: b}}, customizedVariables: [{name: _A1, value: x}]"),
        ),
        (DEPLOYMENT, spec("nodeSelector: {a: b}, tolerations: []")),
        (BINDING, spec("clusterSet: a")),
        (PLACEMENT, spec("decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 10%}}")),
    ];
    for limit in ["1", "25", "2147483647", "'5'", "'1'", "1%", "9%", "10%", "99%", "100%"] {
        let update = format!("type: RollingUpdate, rollingUpdate: {{maxConcurrentlyUpdating: {limit}}}");
        accepted.push((ADD_ON, rollout(&update)));
    }
    for limit in ["0", "7", "'0'", "0%", "50%", "100%"] {
        accepted.push((ADD_ON, rollout(&format!("maxFailures: {limit}"))));
    }
    accepted
}

/// Objects that one thing is wrong with: the object, where, and the message.
fn rejected() -> Vec<(&'static str, String, &'static str, &'static str)> {
    const INSTALL: &str = "spec.installStrategy";
    const PLACEMENTS: &str = "spec.installStrategy.placements";
    const PLACE: &str = "spec.installStrategy.placements[]";
    const ROLLOUT: &str = "spec.installStrategy.placements[].rolloutStrategy";
    const ROLLING: &str =
        "spec.installStrategy.placements[].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating";
    const CANARY: &str =
        "spec.installStrategy.placements[].rolloutStrategy.rollingUpdateWithCanary.maxConcurrentlyUpdating";
    const NEEDS_CANARY: &str =
        "rollingUpdateWithCanary must be given with type RollingUpdateWithCanary, and with no other";
    const NAME: &str =
        "a variable's name is made of letters, digits and underscores and does not start with a digit";
    const NODES: &str = "give nodeSelector and tolerations either under nodePlacement or beside it, not both";

    let mut rejected = vec![
        (ADD_ON, install("type: Placements"), INSTALL, "type Placements needs at least one placement"),
        (
            ADD_ON,
            install("type: Placements, placements: []"),
            INSTALL,
            "type Placements needs at least one placement",
        ),
        (
            ADD_ON,
            install("type: ClusterLabelSelector"),
            INSTALL,
            "type ClusterLabelSelector needs a labelSelector",
        ),
        (
            ADD_ON,
            install("type: Placements, placements: [{name: a, namespace: b}], labelSelector: {}"),
            INSTALL,
            "labelSelector does not go with type Placements",
        ),
        (
            ADD_ON,
            install("type: ClusterLabelSelector, placements: [{name: a, namespace: b}], labelSelector: {}"),
            INSTALL,
            "placements do not go with type ClusterLabelSelector",
        ),
        (
            ADD_ON,
            placements("{name: a, namespace: b}, {name: c, namespace: b}, {name: a, namespace: b}"),
            PLACEMENTS,
            "a placement may be listed only once",
        ),
        (ADD_ON, canary("aws", ""), PLACE, "a placement cannot be its own canary"),
        (ADD_ON, rollout("type: RollingUpdateWithCanary"), ROLLOUT, NEEDS_CANARY),
        (
            ADD_ON,
            rollout("rollingUpdateWithCanary: {placement: {name: canary, namespace: default}}"),
            ROLLOUT,
            NEEDS_CANARY,
        ),
        (ADD_ON, rollout("rollingUpdate: {}"), ROLLOUT, "rollingUpdate goes only with type RollingUpdate"),
        (ADD_ON, rollout("type: Progressive, all: {}"), ROLLOUT, "all goes only with type All"),
        (
            ADD_ON,
            rollout("type: All, progressive: {}"),
            ROLLOUT,
            "progressive goes only with type Progressive",
        ),
        (
            ADD_ON,
            rollout("type: Progressive, progressivePerGroup: {}"),
            ROLLOUT,
            "progressivePerGroup goes only with type ProgressivePerGroup",
        ),
        (ADD_ON, canary("canary", ", maxConcurrentlyUpdating: 0"), CANARY, CONCURRENCY),
        (
            ADD_ON,
            rollout("type: Progressive, progressive: {maxConcurrency: 0%}"),
            "spec.installStrategy.placements[].rolloutStrategy.progressive.maxConcurrency",
            CONCURRENCY,
        ),
        (
            ADD_ON,
            rollout("type: Progressive, progressive: {maxFailures: -1}"),
            "spec.installStrategy.placements[].rolloutStrategy.progressive.maxFailures",
            FAILURES,
        ),
        (
            ADD_ON,
            rollout("type: All, all: {maxFailures: 101%}"),
            "spec.installStrategy.placements[].rolloutStrategy.all.maxFailures",
            FAILURES,
        ),
        (
            ADD_ON,
            rollout("type: ProgressivePerGroup, progressivePerGroup: {maxFailures: -5%}"),
            "spec.installStrategy.placements[].rolloutStrategy.progressivePerGroup.maxFailures",
            FAILURES,
        ),
        (
            ADD_ON,
            placements("{name: a, namespace: b, addonTemplate: {desiredVersion: v1, installVersion: v2}}"),
            "spec.installStrategy.placements[].addonTemplate",
            VERSIONS,
        ),
        (INSTANCE, spec("desiredVersion: v1, installVersion: v2"), "spec", VERSIONS),
        (DEPLOYMENT, spec("nodePlacement: {}, tolerations: []"), "spec", NODES),
        (DEPLOYMENT, spec("nodePlacement: {}, nodeSelector: {a: b}"), "spec", NODES),
        (
            DEPLOYMENT,
            spec("customizedVariables: [{name: 1a, value: x}]"),
            "spec.customizedVariables[].name",
            NAME,
        ),
        (BINDING, spec("clusterSet: b"), "", "a binding must bear the name of its clusterSet"),
        (
            PLACEMENT,
            spec("decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 0}}"),
            "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup",
            CONCURRENCY,
        ),
    ];
    let bad = [
        "0",
        "-1",
        "2147483648",
        "'0'",
        "'-5'",
        "0%",
        "-5%",
        "101%",
        "200%",
        "NaN%",
        "33.3%",
        "05%",
        "'%'",
        "five",
        "''",
    ];
    for limit in bad {
        let update = format!("type: RollingUpdate, rollingUpdate: {{maxConcurrentlyUpdating: {limit}}}");
        rejected.push((ADD_ON, rollout(&update), ROLLING, CONCURRENCY));
    }
    for limit in ["-1", "'-1'", "-1%", "101%", "NaN%", "1.5%", "2147483648"] {
        let at = "spec.installStrategy.placements[].rolloutStrategy.maxFailures";
        rejected.push((ADD_ON, rollout(&format!("maxFailures: {limit}")), at, FAILURES));
    }
    rejected
}

#[test]
fn what_is_right_is_accepted() {
    for (kind, object) in accepted() {
        assert_eq!(faults(kind, &object), Faults::new(), "{object}");
    }
}

#[test]
fn every_example_of_the_design_documents_is_accepted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/seeds");
    for seed in fs::read_dir(folder).unwrap() {
        for file in fs::read_dir(seed.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let documents: Vec<Value> =
                serde_saphyr::from_multiple(&fs::read_to_string(&path).unwrap()).unwrap();
            for document in &documents {
                let kind = document["kind"].as_str().unwrap_or_default();
                if schemas().iter().any(|(name, _)| name == kind) {
                    assert_eq!(faults_of(kind, document), Faults::new(), "{}", path.display());
                }
            }
        }
    }
}

#[test]
fn what_is_wrong_is_rejected_with_a_message() {
    for (kind, object, path, message) in rejected() {
        assert_eq!(faults(kind, &object), Faults::from([(path.to_owned(), message.to_owned())]), "{object}");
    }
}

#[test]
fn every_rule_rejects_something() {
    let mut untested = BTreeSet::new();
    for (kind, schema) in schemas() {
        walk("", schema, &mut |path, schema| {
            for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
                untested.insert((
                    kind.clone(),
                    path.to_owned(),
                    rule["message"].as_str().unwrap().to_owned(),
                ));
            }
        });
    }
    for (kind, object, ..) in rejected() {
        for (path, message) in faults(kind, &object) {
            untested.remove(&(kind.to_owned(), path, message));
        }
    }
    assert_eq!(untested, BTreeSet::new());
}
