//! Every row of the table of probes.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{health_of, object};

/// A list of cases of one kind: what each looks like live, and what is said of it.
fn check(manifest: &Value, cases: &[(&str, Value)], expected: &Expect) {
    let lines =
        cases.iter().map(|(name, live)| format!("{name}: {}\n", health_of(manifest, json!([]), live)));
    expected.assert_eq(&lines.collect::<String>());
}

fn conditions(all: &[(&str, &str, &str)]) -> Value {
    all.iter()
        .map(|(kind, status, reason)| json!({"type": kind, "status": status, "reason": reason}))
        .collect()
}

/// A workload of 3 replicas at generation 2, with counters that are left out where they are 0.
fn replicas(counters: [i64; 3], said: &[(&str, &str, &str)]) -> Value {
    let mut status = json!({"observedGeneration": 2, "conditions": conditions(said)});
    for (name, count) in ["updatedReplicas", "replicas", "availableReplicas"].into_iter().zip(counters) {
        if count > 0 {
            status[name] = json!(count);
        }
    }
    json!({
        "metadata": {"generation": 2},
        "spec": {"replicas": 3, "strategy": {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}},
        "status": status,
    })
}

fn with(mut live: Value, pointer: &str, field: &str, value: Value) -> Value {
    live.pointer_mut(pointer).unwrap()[field] = value;
    live
}

const NEW: (&str, &str, &str) = ("Progressing", "True", "NewReplicaSetAvailable");
const UPDATING: (&str, &str, &str) = ("Progressing", "True", "ReplicaSetUpdated");
const EXCEEDED: (&str, &str, &str) = ("Progressing", "False", "ProgressDeadlineExceeded");
const AVAILABLE: (&str, &str, &str) = ("Available", "True", "MinimumReplicasAvailable");
const UNAVAILABLE: (&str, &str, &str) = ("Available", "False", "MinimumReplicasUnavailable");

/// What a Deployment reported on real clusters after a change of its image.
#[test]
fn a_deployment_in_the_four_measured_states() {
    check(
        &object("apps/v1", "Deployment"),
        &[
            ("good", replicas([3, 3, 3], &[AVAILABLE, NEW])),
            ("never ready, at first", replicas([1, 4, 3], &[AVAILABLE, UPDATING])),
            ("never ready", replicas([1, 4, 3], &[AVAILABLE, EXCEEDED])),
            ("exits 1 at start, at first", replicas([1, 3, 2], &[AVAILABLE, UPDATING])),
            ("exits 1 at start", replicas([1, 3, 2], &[AVAILABLE, EXCEEDED])),
            ("crashes after it was ready", replicas([3, 3, 0], &[UNAVAILABLE, NEW])),
        ],
        &expect![[r#"
            good: Healthy
            never ready, at first: Progressing, tolerable  Deployment greeter/greeter: 1 of 3 replicas updated, 3 available
            never ready: Failed, tolerable  Deployment greeter/greeter: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            exits 1 at start, at first: Progressing  Deployment greeter/greeter: 1 of 3 replicas updated, 2 available
            exits 1 at start: Failed  Deployment greeter/greeter: 1 of 3 replicas updated, 2 available; its progress deadline has passed
            crashes after it was ready: Progressing  Deployment greeter/greeter: 0 of 3 updated replicas available
        "#]],
    );
}

#[test]
fn a_deployment_in_every_other_state() {
    let refused = ("ReplicaFailure", "True", "FailedCreate");
    let at = |live, replicas: i64| with(live, "/spec", "replicas", json!(replicas));
    check(
        &object("apps/v1", "Deployment"),
        &[
            ("an old replica runs on", replicas([3, 4, 4], &[AVAILABLE, UPDATING])),
            ("pods cannot be created", replicas([1, 2, 2], &[AVAILABLE, UPDATING, refused])),
            ("one of eleven cannot be created", at(replicas([10, 10, 10], &[AVAILABLE, NEW, refused]), 11)),
            ("healthy beats an old deadline", replicas([3, 3, 3], &[AVAILABLE, EXCEEDED])),
            ("healthy beats an old refusal", replicas([3, 3, 3], &[AVAILABLE, NEW, refused])),
            (
                "paused half-way",
                with(
                    replicas([1, 3, 3], &[("Progressing", "Unknown", "DeploymentPaused")]),
                    "/spec",
                    "paused",
                    json!(true),
                ),
            ),
            ("paused, and done", with(replicas([3, 3, 3], &[AVAILABLE]), "/spec", "paused", json!(true))),
            ("no replicas wanted", at(replicas([0, 0, 0], &[AVAILABLE, NEW]), 0)),
            ("no replicas wanted, two left", at(replicas([0, 2, 2], &[AVAILABLE, NEW]), 0)),
            ("scaled to 7 by an autoscaler", at(replicas([7, 7, 7], &[AVAILABLE, NEW]), 7)),
            (
                "its controller is behind",
                with(replicas([3, 3, 3], &[AVAILABLE, NEW]), "/status", "observedGeneration", json!(1)),
            ),
            (
                "its controller is behind, and failed before",
                with(replicas([1, 4, 3], &[EXCEEDED]), "/status", "observedGeneration", json!(1)),
            ),
            ("no counters yet", replicas([0, 0, 0], &[])),
            ("no status yet", with(replicas([0, 0, 0], &[]), "", "status", json!({}))),
        ],
        &expect![[r#"
            an old replica runs on: Progressing, tolerable  Deployment greeter/greeter: old replicas still running: 1
            pods cannot be created: Failed  Deployment greeter/greeter: 1 of 3 replicas updated, 2 available; its pods cannot be created
            one of eleven cannot be created: Failed, tolerable  Deployment greeter/greeter: 10 of 11 replicas updated, 10 available; its pods cannot be created
            healthy beats an old deadline: Healthy
            healthy beats an old refusal: Healthy
            paused half-way: Progressing  Deployment greeter/greeter: 1 of 3 replicas updated, 3 available; it is paused
            paused, and done: Healthy
            no replicas wanted: Healthy
            no replicas wanted, two left: Progressing, tolerable  Deployment greeter/greeter: old replicas still running: 2
            scaled to 7 by an autoscaler: Healthy
            its controller is behind: Progressing, tolerable  Deployment greeter/greeter: its controller has not processed the latest change yet
            its controller is behind, and failed before: Progressing, tolerable  Deployment greeter/greeter: its controller has not processed the latest change yet
            no counters yet: Progressing  Deployment greeter/greeter: 0 of 3 replicas updated, 0 available
            no status yet: Progressing  Deployment greeter/greeter: its controller has not processed the latest change yet
        "#]],
    );
}

#[test]
fn a_deployment_tolerates_as_many_unavailable_replicas_as_its_strategy() {
    let half = json!({"rollingUpdate": {"maxUnavailable": "50%"}});
    let all = json!({"rollingUpdate": {"maxUnavailable": "100%"}});
    let four = |live| with(live, "/spec", "replicas", json!(4));
    check(
        &object("apps/v1", "Deployment"),
        &[
            (
                "no more unavailable than it tolerates",
                four(with(replicas([4, 4, 2], &[AVAILABLE, NEW]), "/spec", "strategy", half.clone())),
            ),
            (
                "more unavailable than it tolerates",
                four(with(replicas([4, 4, 1], &[AVAILABLE, NEW]), "/spec", "strategy", half)),
            ),
            (
                "all may be unavailable",
                with(replicas([3, 3, 0], &[AVAILABLE, NEW]), "/spec", "strategy", all),
            ),
            (
                "recreated",
                with(
                    replicas([3, 3, 2], &[AVAILABLE, NEW]),
                    "/spec",
                    "strategy",
                    json!({"type": "Recreate"}),
                ),
            ),
        ],
        &expect![[r#"
            no more unavailable than it tolerates: Progressing, tolerable  Deployment greeter/greeter: 2 of 4 updated replicas available
            more unavailable than it tolerates: Progressing  Deployment greeter/greeter: 1 of 4 updated replicas available
            all may be unavailable: Progressing  Deployment greeter/greeter: 0 of 3 updated replicas available
            recreated: Progressing  Deployment greeter/greeter: 2 of 3 updated replicas available
        "#]],
    );
}

/// An autoscaler owns the number of replicas: the manifest's does not count.
#[test]
fn the_live_number_of_replicas_counts_and_not_the_manifest_s() {
    let mut manifest = object("apps/v1", "Deployment");
    manifest["spec"]["replicas"] = json!(2);
    check(
        &manifest,
        &[
            ("7 of 7", with(replicas([7, 7, 7], &[NEW]), "/spec", "replicas", json!(7))),
            ("2 of 7", with(replicas([7, 7, 2], &[NEW]), "/spec", "replicas", json!(7))),
        ],
        &expect![[r#"
            7 of 7: Healthy
            2 of 7: Progressing  Deployment greeter/greeter: 2 of 7 updated replicas available
        "#]],
    );
}

#[test]
fn a_replica_set() {
    let refused = ("ReplicaFailure", "True", "FailedCreate");
    check(
        &object("apps/v1", "ReplicaSet"),
        &[
            ("good", replicas([0, 3, 3], &[])),
            ("starting", replicas([0, 3, 1], &[])),
            ("pods cannot be created", replicas([0, 1, 1], &[refused])),
            ("healthy beats failed", replicas([0, 3, 3], &[refused])),
            (
                "its controller is behind",
                with(replicas([0, 3, 3], &[]), "/status", "observedGeneration", json!(1)),
            ),
            ("no replicas wanted", with(replicas([0, 0, 0], &[]), "/spec", "replicas", json!(0))),
        ],
        &expect![[r#"
            good: Healthy
            starting: Progressing  ReplicaSet greeter/greeter: 1 of 3 replicas available
            pods cannot be created: Failed  ReplicaSet greeter/greeter: 1 of 3 replicas available; its pods cannot be created
            healthy beats failed: Healthy
            its controller is behind: Progressing  ReplicaSet greeter/greeter: its controller has not processed the latest change yet
            no replicas wanted: Healthy
        "#]],
    );
}

#[test]
fn a_replication_controller() {
    check(
        &object("v1", "ReplicationController"),
        &[
            ("good", replicas([0, 3, 3], &[])),
            ("starting", replicas([0, 3, 1], &[])),
            ("pods cannot be created", replicas([0, 1, 1], &[("ReplicaFailure", "True", "FailedCreate")])),
            (
                "its controller is behind",
                with(replicas([0, 3, 3], &[]), "/status", "observedGeneration", json!(1)),
            ),
        ],
        &expect![[r#"
            good: Healthy
            starting: Progressing  ReplicationController greeter/greeter: 1 of 3 replicas available
            pods cannot be created: Failed  ReplicationController greeter/greeter: 1 of 3 replicas available; its pods cannot be created
            its controller is behind: Progressing  ReplicationController greeter/greeter: its controller has not processed the latest change yet
        "#]],
    );
}

/// Some controllers write the observed generation as a text, or something else altogether.
#[test]
fn an_observed_generation_that_is_a_text() {
    let entry = json!([{"resourceIdentifier": {"group": "example.com", "resource": "widgets", "name": "greeter", "namespace": "greeter"}}]);
    let cases = [json!("2"), json!("1"), json!("latest"), json!(2)].map(|observed| {
        let live = json!({"metadata": {"generation": 2}, "status": {
            "observedGeneration": observed, "conditions": [{"type": "Ready", "status": "True"}]}});
        format!("{observed}: {}\n", health_of(&object("example.com/v1", "Widget"), entry.clone(), &live))
    });
    expect![[r#"
        "2": Healthy
        "1": Progressing  Widget greeter/greeter: its controller has not processed the latest change yet
        "latest": Healthy
        2: Healthy
    "#]]
    .assert_eq(&cases.concat());
}

/// A custom resource, although its group looks like one of Kubernetes itself.
#[test]
fn a_custom_resource_in_a_group_of_k8s_io() {
    let entry = json!([{"resourceIdentifier": {"group": "gateway.networking.k8s.io", "resource": "gateways", "name": "greeter", "namespace": "greeter"}}]);
    let cases = ["True", "False"].map(|ready| {
        let live = json!({"metadata": {"generation": 2}, "status": {
            "observedGeneration": 2, "conditions": [{"type": "Ready", "status": ready}]}});
        let gateway = object("gateway.networking.k8s.io/v1", "Gateway");
        format!("{ready}: {}\n", health_of(&gateway, entry.clone(), &live))
    });
    expect![[r#"
        True: Healthy
        False: Progressing  Gateway greeter/greeter: it is not ready
    "#]]
    .assert_eq(&cases.concat());
}

#[test]
fn a_stateful_set() {
    let strategy = |live, strategy: Value| with(live, "/spec", "updateStrategy", strategy);
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    check(
        &object("apps/v1", "StatefulSet"),
        &[
            ("good", replicas([3, 3, 3], &[])),
            ("updating", replicas([1, 3, 2], &[])),
            ("updated, one not ready", replicas([3, 3, 2], &[])),
            ("updated, two not ready", replicas([3, 3, 1], &[])),
            ("partition of 2, one updated", strategy(replicas([1, 3, 3], &[]), partition.clone())),
            ("partition of 2, none updated", strategy(replicas([0, 3, 3], &[]), partition)),
            (
                "partition beyond its replicas",
                strategy(replicas([0, 3, 3], &[]), json!({"rollingUpdate": {"partition": 9}})),
            ),
            ("OnDelete, none updated", strategy(replicas([0, 3, 3], &[]), json!({"type": "OnDelete"}))),
            ("OnDelete, two not ready", strategy(replicas([0, 3, 1], &[]), json!({"type": "OnDelete"}))),
            (
                "40% of 3 is 2",
                strategy(replicas([3, 3, 1], &[]), json!({"rollingUpdate": {"maxUnavailable": "40%"}})),
            ),
            (
                "its controller is behind",
                with(replicas([3, 3, 3], &[]), "/status", "observedGeneration", json!(1)),
            ),
            ("no replicas wanted", with(replicas([0, 0, 0], &[]), "/spec", "replicas", json!(0))),
        ],
        &expect![[r#"
            good: Healthy
            updating: Progressing, tolerable  StatefulSet greeter/greeter: 1 of 3 replicas updated, 2 available
            updated, one not ready: Progressing, tolerable  StatefulSet greeter/greeter: 2 of 3 replicas available
            updated, two not ready: Progressing  StatefulSet greeter/greeter: 1 of 3 replicas available
            partition of 2, one updated: Healthy
            partition of 2, none updated: Progressing, tolerable  StatefulSet greeter/greeter: 0 of 1 replicas updated, 3 available
            partition beyond its replicas: Healthy
            OnDelete, none updated: Healthy
            OnDelete, two not ready: Progressing  StatefulSet greeter/greeter: 1 of 3 replicas available; with OnDelete it may still run the earlier version
            40% of 3 is 2: Progressing, tolerable  StatefulSet greeter/greeter: 1 of 3 replicas available
            its controller is behind: Progressing, tolerable  StatefulSet greeter/greeter: its controller has not processed the latest change yet
            no replicas wanted: Healthy
        "#]],
    );
}

/// Counters, revisions and pods as the controller of StatefulSets reports them: pods are replaced
/// from the highest ordinal down, and one that is not ready is waited for.
#[test]
fn a_stateful_set_that_waits_for_a_pod() {
    let revisions = |live: Value, now: i64, revisions: [&str; 2]| {
        let live = with(live, "/status", "currentReplicas", json!(now));
        let live = with(live, "/status", "currentRevision", json!(revisions[0]));
        with(live, "/status", "updateRevision", json!(revisions[1]))
    };
    let on_the_way = || revisions(replicas([1, 3, 2], &[]), 2, ["v1", "v2"]);
    let back = || revisions(replicas([1, 3, 1], &[]), 1, ["v1", "v1"]);
    check(
        &object("apps/v1", "StatefulSet"),
        &[
            ("the first of three is not ready", on_the_way()),
            ("the second is not ready", revisions(replicas([2, 3, 2], &[]), 1, ["v1", "v2"])),
            ("back to the first version", back()),
            ("back, and none was left", revisions(replicas([0, 3, 0], &[]), 0, ["v1", "v1"])),
            ("on to a third version", revisions(replicas([0, 3, 2], &[]), 2, ["v1", "v3"])),
            ("back, the pod was deleted", revisions(replicas([2, 2, 2], &[]), 2, ["v1", "v1"])),
            ("back, with ordinals from 5", with(back(), "/spec", "ordinals", json!({"start": 5}))),
            ("back, in parallel", with(back(), "/spec", "podManagementPolicy", json!("Parallel"))),
            ("installed, the first is not ready", revisions(replicas([1, 1, 0], &[]), 1, ["v1", "v1"])),
            ("no pod yet", revisions(replicas([0, 0, 0], &[]), 0, ["v1", "v1"])),
            ("all are available", revisions(replicas([1, 3, 3], &[]), 2, ["v1", "v2"])),
        ],
        &expect![[r#"
            the first of three is not ready: Progressing, tolerable  StatefulSet greeter/greeter: 1 of 3 replicas updated, 2 available; waiting for pod greeter-2
            the second is not ready: Progressing, tolerable  StatefulSet greeter/greeter: 2 of 3 replicas updated, 2 available; waiting for pod greeter-1
            back to the first version: Progressing  StatefulSet greeter/greeter: 1 of 3 replicas updated, 1 available; it does not replace pod greeter-1 of an earlier version: delete that pod if it is not ready
            back, and none was left: Progressing  StatefulSet greeter/greeter: 0 of 3 replicas updated, 0 available; it does not replace pod greeter-0 of an earlier version: delete that pod if it is not ready
            on to a third version: Progressing, tolerable  StatefulSet greeter/greeter: 0 of 3 replicas updated, 2 available; it does not replace pod greeter-2 of an earlier version: delete that pod if it is not ready
            back, the pod was deleted: Progressing, tolerable  StatefulSet greeter/greeter: 2 of 3 replicas updated, 2 available; waiting for pod greeter-1
            back, with ordinals from 5: Progressing  StatefulSet greeter/greeter: 1 of 3 replicas updated, 1 available; it does not replace pod greeter-6 of an earlier version: delete that pod if it is not ready
            back, in parallel: Progressing  StatefulSet greeter/greeter: 1 of 3 replicas updated, 1 available
            installed, the first is not ready: Progressing  StatefulSet greeter/greeter: 1 of 3 replicas updated, 0 available; waiting for pod greeter-0
            no pod yet: Progressing  StatefulSet greeter/greeter: 0 of 3 replicas updated, 0 available
            all are available: Progressing, tolerable  StatefulSet greeter/greeter: 1 of 3 replicas updated, 3 available
        "#]],
    );
}

/// A DaemonSet on so many nodes.
fn nodes([desired, updated, available]: [i64; 3], strategy: Value) -> Value {
    let mut status = json!({"observedGeneration": 2, "desiredNumberScheduled": desired});
    for (name, count) in [("updatedNumberScheduled", updated), ("numberAvailable", available)] {
        if count > 0 {
            status[name] = json!(count);
        }
    }
    json!({"metadata": {"generation": 2}, "spec": {"updateStrategy": strategy}, "status": status})
}

#[test]
fn a_daemon_set() {
    let one = || json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    let tenth = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}});
    let stale = with(nodes([5, 5, 5], one()), "/status", "observedGeneration", json!(1));
    check(
        &object("apps/v1", "DaemonSet"),
        &[
            ("good", nodes([5, 5, 5], one())),
            ("no nodes", nodes([0, 0, 0], one())),
            ("updating", nodes([5, 2, 4], one())),
            ("one node unavailable", nodes([5, 5, 4], one())),
            ("two nodes unavailable", nodes([5, 5, 3], one())),
            ("10% of 15 is 2", nodes([15, 15, 13], tenth.clone())),
            ("10% of 15 is not 3", nodes([15, 15, 12], tenth)),
            ("OnDelete, none updated", nodes([5, 0, 5], json!({"type": "OnDelete"}))),
            ("OnDelete, three unavailable", nodes([5, 0, 2], json!({"type": "OnDelete"}))),
            ("its controller is behind", stale),
        ],
        &expect![[r#"
            good: Healthy
            no nodes: Healthy
            updating: Progressing, tolerable  DaemonSet greeter/greeter: updated on 2 of 5 nodes, available on 4
            one node unavailable: Progressing, tolerable  DaemonSet greeter/greeter: available on 4 of 5 nodes
            two nodes unavailable: Progressing  DaemonSet greeter/greeter: available on 3 of 5 nodes
            10% of 15 is 2: Progressing, tolerable  DaemonSet greeter/greeter: available on 13 of 15 nodes
            10% of 15 is not 3: Progressing  DaemonSet greeter/greeter: available on 12 of 15 nodes
            OnDelete, none updated: Healthy
            OnDelete, three unavailable: Progressing  DaemonSet greeter/greeter: available on 2 of 5 nodes; with OnDelete it may still run the earlier version
            its controller is behind: Progressing, tolerable  DaemonSet greeter/greeter: its controller has not processed the latest change yet
        "#]],
    );
}

#[test]
fn a_job() {
    let said = |all: &[(&str, &str, &str)]| json!({"status": {"conditions": conditions(all)}});
    check(
        &object("batch/v1", "Job"),
        &[
            ("complete", said(&[("SuccessCriteriaMet", "True", ""), ("Complete", "True", "")])),
            ("failed", said(&[("FailureTarget", "True", ""), ("Failed", "True", "BackoffLimitExceeded")])),
            (
                "suspended",
                json!({"spec": {"suspend": true}, "status": {"conditions": conditions(&[("Suspended", "True", "")])}}),
            ),
            ("running", json!({"spec": {"suspend": false}, "status": {"active": 1}})),
            ("just created", json!({})),
        ],
        &expect![[r#"
            complete: Healthy
            failed: Failed  Job greeter/greeter: it has failed
            suspended: Healthy
            running: Progressing  Job greeter/greeter: it has not completed yet
            just created: Progressing  Job greeter/greeter: it has not completed yet
        "#]],
    );
}

#[test]
fn a_pod() {
    let pod = |phase: &str, ready: &str| json!({"status": {"phase": phase, "conditions": conditions(&[("Ready", ready, "")])}});
    check(
        &object("v1", "Pod"),
        &[
            ("ready", pod("Running", "True")),
            ("crashing", pod("Running", "False")),
            ("pending", pod("Pending", "False")),
            ("succeeded", pod("Succeeded", "False")),
            ("failed", pod("Failed", "False")),
            ("just created", json!({})),
        ],
        &expect![[r#"
            ready: Healthy
            crashing: Progressing  Pod greeter/greeter: it is not ready
            pending: Progressing  Pod greeter/greeter: it is not ready
            succeeded: Healthy
            failed: Failed  Pod greeter/greeter: it has failed
            just created: Progressing  Pod greeter/greeter: it is not ready
        "#]],
    );
}

#[test]
fn a_persistent_volume_claim() {
    let phase = |phase: &str| json!({"status": {"phase": phase}});
    check(
        &object("v1", "PersistentVolumeClaim"),
        &[
            ("bound", phase("Bound")),
            ("waits for its first consumer", phase("Pending")),
            ("lost", phase("Lost")),
            ("just created", json!({})),
        ],
        &expect![[r#"
            bound: Healthy
            waits for its first consumer: Healthy
            lost: Failed  PersistentVolumeClaim greeter/greeter: its volume is lost
            just created: Progressing  PersistentVolumeClaim greeter/greeter: it is not bound yet
        "#]],
    );
}

#[test]
fn a_custom_resource_definition() {
    let mut manifest = object("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    manifest["metadata"] = json!({"name": "widgets.example.com"});
    let said = |established: &str, accepted: &str| {
        let all = [("NamesAccepted", accepted, ""), ("Established", established, "")];
        json!({"status": {"conditions": conditions(&all)}})
    };
    check(
        &manifest,
        &[
            ("established", said("True", "True")),
            ("not established", said("False", "True")),
            ("names in conflict", said("False", "False")),
            ("established, new names in conflict", said("True", "False")),
            ("just created", json!({})),
        ],
        &expect![[r#"
            established: Healthy
            not established: Progressing  CustomResourceDefinition widgets.example.com: it is not established yet
            names in conflict: Failed  CustomResourceDefinition widgets.example.com: its names are in conflict with another kind
            established, new names in conflict: Failed  CustomResourceDefinition widgets.example.com: its names are in conflict with another kind
            just created: Progressing  CustomResourceDefinition widgets.example.com: it is not established yet
        "#]],
    );
}

#[test]
fn an_api_service() {
    let mut manifest = object("apiregistration.k8s.io/v1", "APIService");
    manifest["metadata"] = json!({"name": "v1.metrics.example.com"});
    let said =
        |available: &str| json!({"status": {"conditions": conditions(&[("Available", available, "")])}});
    check(
        &manifest,
        &[("available", said("True")), ("not available", said("False")), ("just created", json!({}))],
        &expect![[r#"
            available: Healthy
            not available: Progressing  APIService v1.metrics.example.com: it is not available
            just created: Progressing  APIService v1.metrics.example.com: it is not available
        "#]],
    );
}

#[test]
fn a_custom_resource_by_the_conventions_of_kstatus() {
    let entry = json!([{"resourceIdentifier": {"group": "example.com", "resource": "widgets", "name": "greeter", "namespace": "greeter"}}]);
    let live = |observed: i64, all: &[(&str, &str, &str)]| {
        let mut live = json!({"metadata": {"generation": 2}, "status": {"conditions": conditions(all)}});
        if observed > 0 {
            live["status"]["observedGeneration"] = json!(observed);
        }
        live
    };
    let cases = [
        ("ready", live(2, &[("Ready", "True", "")])),
        ("not ready", live(2, &[("Ready", "False", "")])),
        ("nobody knows whether it is ready", live(2, &[("Ready", "Unknown", "")])),
        ("reconciling", live(2, &[("Ready", "True", ""), ("Reconciling", "True", "")])),
        ("reconciled", live(2, &[("Ready", "True", ""), ("Reconciling", "False", "")])),
        ("stalled", live(2, &[("Ready", "False", ""), ("Stalled", "True", "")])),
        ("ready, and an older generation", live(1, &[("Ready", "True", "")])),
        (
            "stalled, and says itself that it is ready",
            live(2, &[("Ready", "True", ""), ("Stalled", "True", "")]),
        ),
        ("stalled, and nothing else", live(2, &[("Stalled", "True", "")])),
        ("stalled, and an older generation", live(1, &[("Stalled", "True", "")])),
        ("ready, and no observedGeneration", live(0, &[("Ready", "True", "")])),
        ("other conditions only", live(2, &[("Synced", "False", "")])),
        ("no status at all", json!({"metadata": {"generation": 1}})),
    ];
    let lines = cases.iter().map(|(name, live)| {
        format!("{name}: {}\n", health_of(&object("example.com/v1", "Widget"), entry.clone(), live))
    });
    expect![[r#"
        ready: Healthy
        not ready: Progressing  Widget greeter/greeter: it is not ready
        nobody knows whether it is ready: Progressing  Widget greeter/greeter: it is not ready
        reconciling: Progressing  Widget greeter/greeter: it is not ready
        reconciled: Healthy
        stalled: Failed  Widget greeter/greeter: it is stalled
        ready, and an older generation: Progressing  Widget greeter/greeter: its controller has not processed the latest change yet
        stalled, and says itself that it is ready: Healthy
        stalled, and nothing else: Failed  Widget greeter/greeter: it is stalled
        stalled, and an older generation: Progressing  Widget greeter/greeter: its controller has not processed the latest change yet
        ready, and no observedGeneration: Healthy
        other conditions only: Healthy
        no status at all: Healthy
    "#]].assert_eq(&lines.collect::<String>());
}

/// Kinds of which nothing can be asked but that they exist carry no digest and no probe.
#[test]
fn kinds_that_only_exist_are_not_probed() {
    let kinds = [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "Service"),
        ("v1", "Namespace"),
        ("v1", "ServiceAccount"),
        ("batch/v1", "CronJob"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("policy/v1", "PodDisruptionBudget"),
    ];
    for (api, kind) in kinds {
        let work = super::Template::of(&[object(api, kind)]).work();
        assert!(work["spec"].get("manifestConfigs").is_none(), "{kind}");
        assert_eq!(work["spec"]["workload"]["manifests"][0], object(api, kind));
        assert_eq!(super::told(&super::read(&work).health), "Healthy", "{kind}");
    }
}
