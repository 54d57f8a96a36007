//! Events in both groups, and reviews about the client itself and about others.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{name_of, names_in, uid_of, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        a_core_event_is_stored_as_sent,
        events_are_selected_by_what_they_are_about,
        events_are_selected_by_reason_and_type,
        events_are_watched_by_what_they_are_about,
        an_unknown_event_field_is_refused,
        a_core_event_is_seen_in_the_events_group,
        an_event_of_the_events_group_is_seen_in_core,
        an_event_must_be_about_an_object_of_its_namespace,
        an_event_of_the_events_group_is_validated,
        an_event_can_be_counted_up_by_a_patch,
        an_access_review_of_an_admin_is_allowed,
        an_access_review_without_attributes_is_refused,
        a_self_review_tells_who_asks,
        a_token_that_nobody_has_is_not_authenticated,
        an_access_review_of_a_stranger_is_not_allowed,
    ]
}

fn event(w: &World, name: &str, about: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.ns, "name": about, "uid": format!("uid-{about}")},
        "reason": "Tested", "message": "a text", "type": "Normal", "source": {"component": "conformance"},
        "firstTimestamp": "2024-05-06T07:08:09Z", "lastTimestamp": "2024-05-06T07:08:09Z", "count": 1,
    })
}

async fn two(w: &World) -> String {
    let path = w.core("events");
    w.post(&path, &event(w, "one", "a")).await.created();
    let other = with(with(event(w, "two", "b"), "/reason", "Failed".into()), "/type", "Warning".into());
    w.post(&path, &other).await.created();
    path
}

async fn a_core_event_is_stored_as_sent(w: World) {
    let body = event(&w, "one", "a");
    let made = w.post(&w.core("events"), &body).await.created();
    for key in ["involvedObject", "reason", "message", "type", "source", "firstTimestamp", "count"] {
        assert_eq!(made[key], body[key], "{key}");
    }
}

async fn events_are_selected_by_what_they_are_about(w: World) {
    let path = two(&w).await;
    let by = |field: &str| format!("{path}?fieldSelector={field}");
    for (field, names) in [
        ("involvedObject.name%3Da", vec!["one"]),
        ("involvedObject.uid%3Duid-b", vec!["two"]),
        ("involvedObject.kind%3DConfigMap", vec!["one", "two"]),
        ("involvedObject.apiVersion%3Dv1,involvedObject.name%3Db", vec!["two"]),
        ("involvedObject.kind%3DSecret", vec![]),
    ] {
        assert_eq!(names_in(&w.get(&by(field)).await.ok()), names, "{field}");
    }
    let here = by(&format!("involvedObject.namespace%3D{}", w.ns));
    assert_eq!(names_in(&w.get(&here).await.ok()).len(), 2);
}

async fn events_are_selected_by_reason_and_type(w: World) {
    let path = two(&w).await;
    for (field, name) in [
        ("reason%3DFailed", "two"),
        ("type%3DNormal", "one"),
        ("type!%3DNormal", "two"),
        ("source%3Dconformance,reason%3DTested", "one"),
    ] {
        assert_eq!(names_in(&w.get(&format!("{path}?fieldSelector={field}")).await.ok()), [name], "{field}");
    }
}

async fn events_are_watched_by_what_they_are_about(w: World) {
    let path = w.core("events");
    let mut watch = w.watch_from_now(&format!("{path}?fieldSelector=involvedObject.name%3Db")).await;
    two(&w).await;
    watch.sees("ADDED", "two").await;
}

async fn an_unknown_event_field_is_refused(w: World) {
    w.get(&format!("{}?fieldSelector=message%3Da", w.core("events"))).await.refused(400, "BadRequest");
}

async fn a_core_event_is_seen_in_the_events_group(w: World) {
    let made = w.post(&w.core("events"), &event(&w, "one", "a")).await.created();
    let seen = w.get(&format!("{}/one", w.apis("events.k8s.io/v1", "events"))).await.ok();
    assert_eq!((uid_of(&seen), &seen["apiVersion"]), (uid_of(&made), &"events.k8s.io/v1".into()));
    assert_eq!((&seen["regarding"], &seen["note"]), (&made["involvedObject"], &made["message"]));
    assert_eq!((&seen["deprecatedSource"], &seen["deprecatedCount"]), (&made["source"], &made["count"]));
    assert_eq!(seen["deprecatedFirstTimestamp"], made["firstTimestamp"]);
}

fn new_event(w: &World, name: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name},
        "eventTime": "2024-05-06T07:08:09.123456Z", "reportingController": "example.com/conformance", "reportingInstance": "one",
        "action": "Test", "reason": "Tested", "type": "Normal", "note": "a text",
        "regarding": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.ns, "name": "a"},
    })
}

async fn an_event_of_the_events_group_is_seen_in_core(w: World) {
    let made = w.post(&w.apis("events.k8s.io/v1", "events"), &new_event(&w, "one")).await.created();
    let seen = w.get(&format!("{}/one", w.core("events"))).await.ok();
    assert_eq!(
        (uid_of(&seen), &seen["involvedObject"], &seen["message"]),
        (uid_of(&made), &made["regarding"], &made["note"])
    );
    assert_eq!(
        (&seen["eventTime"], &seen["reportingComponent"]),
        (&made["eventTime"], &made["reportingController"])
    );
}

async fn an_event_must_be_about_an_object_of_its_namespace(w: World) {
    let body = with(event(&w, "one", "a"), "/involvedObject/namespace", "elsewhere".into());
    let refusal = w.post(&w.core("events"), &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "involvedObject.namespace");
}

async fn an_event_of_the_events_group_is_validated(w: World) {
    let mut body = new_event(&w, "one");
    body["type"] = "Loud".into();
    body.as_object_mut().unwrap().remove("action");
    let refusal = w.post(&w.apis("events.k8s.io/v1", "events"), &body).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "type").cause("FieldValueRequired", "action");
}

async fn an_event_can_be_counted_up_by_a_patch(w: World) {
    w.post(&w.core("events"), &event(&w, "one", "a")).await.created();
    // As the recorders of Go and of kube-rs do.
    let change = json!({"count": 2, "lastTimestamp": "2024-05-06T07:09:00Z"});
    let new = w.patch(&format!("{}/one", w.core("events")), crate::world::STRATEGIC, &change).await.ok();
    assert_eq!(
        (&new["count"], name_of(&new), &new["lastTimestamp"]),
        (&2.into(), "one", &change["lastTimestamp"])
    );
}

async fn an_access_review_of_an_admin_is_allowed(w: World) {
    let attributes = json!({"verb": "create", "resource": "configmaps", "namespace": w.ns});
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}});
    let answer = w.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &body).await.created();
    assert_eq!(
        (&answer["kind"], &answer["status"]["allowed"]),
        (&"SelfSubjectAccessReview".into(), &true.into())
    );
    assert_eq!(answer["spec"]["resourceAttributes"], attributes);
}

async fn an_access_review_without_attributes_is_refused(w: World) {
    let body =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}});
    w.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &body).await.refused(422, "Invalid");
}

async fn a_self_review_tells_who_asks(w: World) {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = w.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &body).await.created();
    assert!(
        answer["status"]["userInfo"]["username"].as_str().is_some_and(|name| !name.is_empty()),
        "{answer}"
    );
    let groups = answer["status"]["userInfo"]["groups"].as_array().unwrap();
    assert!(groups.contains(&"system:authenticated".into()), "{answer}");
}

async fn a_token_that_nobody_has_is_not_authenticated(w: World) {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "nobody-has-this"}});
    let answer = w.post("/apis/authentication.k8s.io/v1/tokenreviews", &body).await.created();
    assert_ne!(answer["status"]["authenticated"], true, "{answer}");
    assert!(answer["status"]["user"]["username"].is_null(), "{answer}");
}

async fn an_access_review_of_a_stranger_is_not_allowed(w: World) {
    let attributes = json!({"verb": "get", "path": "/metrics"});
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "a-stranger", "nonResourceAttributes": attributes},
    });
    let answer = w.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &body).await.created();
    assert_eq!(answer["status"]["allowed"], false, "{answer}");
}
