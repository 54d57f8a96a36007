use aviary_api::work::JsonPath;

use super::*;

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent"}, "spec": {"replicas": 2}})
}

fn ask(object: &Value, type_: &str, paths: &[(&str, &str)]) -> Feedback {
    let text = |key: &str| object[key].as_str().unwrap();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let json_paths = paths.iter().map(|(name, path)| JsonPath {
        name: (*name).into(),
        path: (*path).into(),
        version: None,
    });
    let rule = FeedbackRule { type_: type_.into(), json_paths: json_paths.collect() };
    collect(&GroupVersionKind::gvk(group, version, text("kind")), object, &[rule], ObjectState::Healthy)
}

#[test]
fn the_well_known_status_of_a_deployment_is_that_of_a_healthy_one() {
    let value = |name: &str| json!({"name": name, "fieldValue": {"type": "Integer", "integer": 2}});
    let expected = vec![value("ReadyReplicas"), value("Replicas"), value("AvailableReplicas")];
    assert_eq!(ask(&deployment(), "WellKnownStatus", &[]), Feedback::Found(expected));
}

#[test]
fn paths_are_followed_into_lists_and_to_values_of_every_kind() {
    let paths = [
        ("available", r#".status.conditions[?(@.type=="Available")].status"#),
        ("first", ".status.conditions[0].type"),
        ("name", ".metadata.name"),
        ("absent", ".status.nothing.here"),
    ];
    let string =
        |name: &str, text: &str| json!({"name": name, "fieldValue": {"type": "String", "string": text}});
    let expected = vec![string("available", "True"), string("first", "Available"), string("name", "agent")];
    assert_eq!(ask(&deployment(), "JSONPaths", &paths), Feedback::Found(expected));
}

#[test]
fn what_cannot_be_told_is_said() {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
    let Feedback::Incomplete(values, why) = ask(&config, "WellKnownStatus", &[]) else { panic!("no fault") };
    assert_eq!((values.len(), why.as_str()), (0, "there is no well-known status of v1 ConfigMap"));
    let Feedback::Incomplete(values, why) =
        ask(&deployment(), "JSONPaths", &[("ok", ".kind"), ("odd", "spec")])
    else {
        panic!("no fault")
    };
    assert_eq!((values.len(), why.as_str()), (1, "the path spec cannot be read"));
}

#[test]
fn what_an_agent_does_not_report_is_no_value() {
    for path in [".metadata", "{.metadata.name}", ".status.conditions"] {
        let Feedback::Incomplete(values, _) = ask(&deployment(), "JSONPaths", &[("odd", path)]) else {
            panic!("{path} is told")
        };
        assert_eq!(values.len(), 0, "{path}");
    }
}

/// The counters of an object in each state, as `updated/total/available`, and whether it has
/// conditions. They are those of a cluster of Kubernetes 1.35 after an image whose pods never get
/// ready (`make test-clusters`).
#[test]
fn workloads_have_the_numbers_of_a_real_cluster() {
    use ObjectState::{Down, Exceeded, Healthy, Looping, LoopingOn, Unready};
    let told = |kind: &str, state: ObjectState| {
        let group = if kind == "ReplicationController" { "" } else { "apps" };
        let object = json!({"kind": kind, "metadata": {"name": "a"}, "spec": {"replicas": 3}});
        let status = status(&GroupVersionKind::gvk(group, "v1", kind), &object, state);
        let count = |field: &str| status[field].as_i64().unwrap_or(0);
        let counts = ["updatedReplicas", "replicas", "availableReplicas"].map(count);
        (counts, status.get("conditions").is_some())
    };
    assert_eq!(told("Deployment", Unready), ([1, 4, 3], true));
    assert_eq!(told("Deployment", Down), ([3, 3, 0], true));
    assert_eq!(told("Deployment", Looping), ([1, 3, 2], true));
    assert_eq!(told("StatefulSet", Healthy), ([3, 3, 3], false));
    assert_eq!(told("StatefulSet", Unready), ([1, 3, 2], false));
    assert_eq!(told("ReplicaSet", Unready), ([0, 3, 3], false));
    assert_eq!(told("ReplicationController", Unready), ([0, 3, 3], false));
    assert_eq!(told("ReplicationController", Down), ([0, 3, 0], false));
    let said = |state: ObjectState| {
        let object = json!({"spec": {"replicas": 3}});
        let status = status(&GroupVersionKind::gvk("apps", "v1", "Deployment"), &object, state);
        let text = |pointer: &str| status.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        ["/conditions/0/status", "/conditions/1/status", "/conditions/1/reason"].map(text).join(" ")
    };
    assert_eq!(said(Healthy), "True True NewReplicaSetAvailable");
    assert_eq!(said(Exceeded), "True False ProgressDeadlineExceeded");
    assert_eq!(said(Looping), "True True ReplicaSetUpdated");
    assert_eq!(said(LoopingOn), "True False ProgressDeadlineExceeded");
    assert_eq!(said(Down), "False True NewReplicaSetAvailable");
}

/// An API server fills in the replicas, without which a probe takes the report for incomplete.
#[test]
fn a_replication_controller_has_the_replicas_that_nobody_wrote() {
    let object =
        json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"}, "spec": {}});
    let paths = [("replicas", ".spec.replicas"), ("available", ".status.availableReplicas")];
    let value = |name: &str| json!({"name": name, "fieldValue": {"type": "Integer", "integer": 1}});
    let expected = vec![value("replicas"), value("available")];
    assert_eq!(ask(&object, "JSONPaths", &paths), Feedback::Found(expected));
}

/// Deployments and Pods report since when they are available.
#[test]
fn conditions_have_the_time_of_their_last_change() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}});
    for (object, condition) in [(deployment(), "Available"), (pod, "Ready")] {
        let path = format!(r#".status.conditions[?(@.type=="{condition}")].lastTransitionTime"#);
        let value = json!({"name": "since", "fieldValue": {"type": "String", "string": SINCE}});
        assert_eq!(ask(&object, "JSONPaths", &[("since", &path)]), Feedback::Found(vec![value]));
    }
}

#[test]
fn nothing_asked_is_nothing_told() {
    let kind = GroupVersionKind::gvk("apps", "v1", "Deployment");
    assert_eq!(collect(&kind, &deployment(), &[], ObjectState::Healthy), Feedback::NotAsked);
}
