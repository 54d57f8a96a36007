//! Works without our probes: what their own manager asks for can only speak against them.

use expect_test::expect;
use serde_json::{Value, json};

use super::{read, told};

/// A work of another manager at generation 2, with these conditions and these reports.
fn work(conditions: Value, manifests: Value) -> String {
    let work = json!({
        "metadata": {"name": "own", "generation": 2},
        "spec": {"workload": {"manifests": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "ns"}}]}},
        "status": {"conditions": conditions, "resourceStatus": {"manifests": manifests}},
    });
    told(&read(&work).health) + "\n"
}

fn said(kind: &str, status: &str, generation: i64) -> Value {
    json!([{"type": kind, "status": status, "observedGeneration": generation, "message": "two of three"}])
}

fn report(kind: &str, values: &[(&str, Value)]) -> Value {
    let values: Vec<Value> = values
        .iter()
        .map(|(name, value)| {
            let field = match value {
                Value::String(text) => json!({"type": "String", "string": text}),
                other => json!({"type": "Integer", "integer": other}),
            };
            json!({"name": name, "fieldValue": field})
        })
        .collect();
    json!([{"resourceMeta": {"kind": kind, "name": "a", "namespace": "ns"}, "statusFeedback": {"values": values}}])
}

#[test]
fn results_of_condition_rules() {
    let cases = [
        work(said("Available", "True", 2), json!([])),
        work(said("Degraded", "True", 2), json!([])),
        work(said("Degraded", "False", 2), json!([])),
        work(said("Degraded", "True", 1), json!([])),
        work(said("Progressing", "True", 2), json!([])),
        work(
            json!([]),
            json!([{"resourceMeta": {"kind": "Widget", "name": "a"}, "conditions": said("Degraded", "True", 0)}]),
        ),
    ];
    expect![[r#"
        NotProbed
        Progressing  the work: it is degraded: two of three (not bound to the revision)
        NotProbed
        NotProbed
        Progressing  the work: it is progressing: two of three (not bound to the revision)
        Progressing  Widget a: it is degraded: two of three (not bound to the revision)
    "#]]
    .assert_eq(&cases.concat());
}

#[test]
fn well_known_feedback() {
    let of = |kind: &str, values: &[(&str, Value)]| work(json!([]), report(kind, values));
    let cases = [
        of("Deployment", &[("Replicas", json!(3)), ("AvailableReplicas", json!(3))]),
        of("Deployment", &[("Replicas", json!(3)), ("AvailableReplicas", json!(1))]),
        of("Deployment", &[("Replicas", json!(3))]),
        of("Deployment", &[("Replicas", json!("3"))]),
        of("Deployment", &[("Other", json!(3))]),
        of("DaemonSet", &[("DesiredNumberScheduled", json!(5)), ("NumberReady", json!(4))]),
        of("Job", &[("JobComplete", json!("True"))]),
        of("Job", &[("JobComplete", json!("False"))]),
        of("Pod", &[("PodPhase", json!("Running")), ("PodReady", json!("False"))]),
        of("Pod", &[("PodPhase", json!("Succeeded"))]),
        of("ConfigMap", &[("Replicas", json!(3))]),
    ];
    expect![[r#"
        NotProbed
        Progressing  Deployment ns/a: 1 of 3 replicas available (not bound to the revision)
        Progressing  Deployment ns/a: 0 of 3 replicas available (not bound to the revision)
        NotProbed
        NotProbed
        Progressing  DaemonSet ns/a: ready on 4 of 5 nodes (not bound to the revision)
        NotProbed
        Progressing  Job ns/a: it has not completed yet (not bound to the revision)
        Progressing  Pod ns/a: it is not ready (not bound to the revision)
        NotProbed
        NotProbed
    "#]]
    .assert_eq(&cases.concat());
}

/// What a workload in use may lack is in its manifest, as its own manager rendered it.
#[test]
fn well_known_feedback_of_a_workload_whose_manifest_tells_what_it_tolerates() {
    let of = |kind: &str, strategy: Value, values: &[(&str, i64)]| {
        let spec = match kind {
            "Deployment" => json!({"strategy": strategy}),
            _ => json!({"updateStrategy": strategy}),
        };
        let meta = json!({"name": "a", "namespace": "ns"});
        let manifest = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec});
        let values: Vec<(&str, Value)> = values.iter().map(|(name, value)| (*name, json!(value))).collect();
        let mut reported = report(kind, &values);
        reported[0]["resourceMeta"]["group"] = json!("apps");
        let work = json!({
            "metadata": {"name": "own", "generation": 2},
            "spec": {"workload": {"manifests": [manifest]}},
            "status": {"resourceStatus": {"manifests": reported}},
        });
        told(&read(&work).health) + "\n"
    };
    let deployment = |strategy: Value, available: i64| {
        of("Deployment", strategy, &[("Replicas", 4), ("AvailableReplicas", available)])
    };
    let daemon_set = |strategy: Value, ready: i64| {
        of("DaemonSet", strategy, &[("DesiredNumberScheduled", 10), ("NumberReady", ready)])
    };
    let cases = [
        deployment(json!({}), 3),
        deployment(json!({}), 2),
        deployment(json!({"type": "Recreate"}), 3),
        deployment(json!({"rollingUpdate": {"maxUnavailable": 2}}), 2),
        deployment(json!({"rollingUpdate": {"maxUnavailable": "100%"}}), 0),
        deployment(json!({"rollingUpdate": {"maxUnavailable": "many"}}), 3),
        daemon_set(json!({}), 9),
        daemon_set(json!({}), 8),
        daemon_set(json!({"rollingUpdate": {"maxUnavailable": "15%"}}), 8),
        of("StatefulSet", json!({}), &[("Replicas", 4), ("AvailableReplicas", 3)]),
    ];
    expect![[r#"
        Progressing, tolerable  Deployment ns/a: 3 of 4 replicas available (not bound to the revision)
        Progressing  Deployment ns/a: 2 of 4 replicas available (not bound to the revision)
        Progressing  Deployment ns/a: 3 of 4 replicas available (not bound to the revision)
        Progressing, tolerable  Deployment ns/a: 2 of 4 replicas available (not bound to the revision)
        Progressing  Deployment ns/a: 0 of 4 replicas available (not bound to the revision)
        Progressing  Deployment ns/a: 3 of 4 replicas available (not bound to the revision)
        Progressing, tolerable  DaemonSet ns/a: ready on 9 of 10 nodes (not bound to the revision)
        Progressing  DaemonSet ns/a: ready on 8 of 10 nodes (not bound to the revision)
        Progressing, tolerable  DaemonSet ns/a: ready on 8 of 10 nodes (not bound to the revision)
        Progressing  StatefulSet ns/a: 3 of 4 replicas available (not bound to the revision)
    "#]]
    .assert_eq(&cases.concat());
}
