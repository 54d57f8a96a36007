//! The events of a running watch.

use serde_json::json;

use crate::check::{Check, checks};
use crate::objects::{configmap, labelled, name_of, revision_of, rv_of, with};
use crate::world::{World, fresh};

pub fn checks() -> Vec<Check> {
    checks![
        a_life_is_told_as_added_modified_deleted,
        revisions_rise_along_a_watch,
        entering_a_selector_is_added_and_leaving_it_is_deleted,
        a_change_inside_a_selector_is_modified,
        a_change_outside_a_selector_is_not_told,
        one_object_can_be_watched_by_its_name,
        all_namespaces_can_be_watched_at_once,
        another_namespace_is_not_told,
        two_watches_tell_the_same_story,
        a_finalized_deletion_is_modified_then_deleted,
        a_dry_run_is_not_told,
        an_unknown_field_is_refused,
        a_malformed_label_selector_is_refused,
        a_watch_is_json_lines,
        namespaces_can_be_watched,
        many_writes_are_all_told_once,
    ]
}

async fn a_life_is_told_as_added_modified_deleted(w: World) {
    let path = w.widgets().await;
    let mut watch = w.watch_from_now(&path).await;
    let made = w.post(&path, &w.widget("a", json!({"size": 1}))).await.created();
    let new = w.merge(&format!("{path}/a"), &json!({"spec": {"size": 2}})).await.ok();
    w.delete(&format!("{path}/a")).await.ok();
    assert_eq!(watch.sees("ADDED", "a").await, made);
    assert_eq!(watch.sees("MODIFIED", "a").await, new);
    // The last state, but at the revision of the delete.
    let last = watch.sees("DELETED", "a").await;
    assert_eq!(with(last.clone(), "/metadata/resourceVersion", rv_of(&new).into()), new);
    assert!(revision_of(&last) > revision_of(&new));
}

async fn revisions_rise_along_a_watch(w: World) {
    let mut watch = w.watch_from_now(&w.configmaps()).await;
    for name in ["a", "b", "c"] {
        w.post(&w.configmaps(), &configmap(name, json!({}))).await.created();
        w.delete(&w.configmap(name)).await.ok();
    }
    let mut last = 0;
    for _ in 0..6 {
        let (_, object) = watch.next().await.unwrap();
        assert!(revision_of(&object) > last);
        last = revision_of(&object);
    }
}

async fn entering_a_selector_is_added_and_leaving_it_is_deleted(w: World) {
    w.post(&w.configmaps(), &labelled("a", json!({"color": "blue"}))).await.created();
    let mut watch = w.watch_from_now(&format!("{}?labelSelector=color%3Dred", w.configmaps())).await;
    let red = w.merge(&w.configmap("a"), &json!({"metadata": {"labels": {"color": "red"}}})).await.ok();
    assert_eq!(watch.sees("ADDED", "a").await, red);
    let blue = w.merge(&w.configmap("a"), &json!({"metadata": {"labels": {"color": "blue"}}})).await.ok();
    let left = watch.sees("DELETED", "a").await;
    // The event has the last state that matched the selector, and the revision at which it stopped
    // matching.
    assert_eq!((&left["metadata"]["labels"]["color"], rv_of(&left)), (&"red".into(), rv_of(&blue)));
}

async fn a_change_inside_a_selector_is_modified(w: World) {
    w.post(&w.configmaps(), &labelled("a", json!({"color": "red"}))).await.created();
    let mut watch = w.watch_from_now(&format!("{}?labelSelector=color%3Dred", w.configmaps())).await;
    w.merge(&w.configmap("a"), &json!({"data": {"k": "v"}})).await.ok();
    watch.sees("MODIFIED", "a").await;
    w.delete(&w.configmap("a")).await.ok();
    watch.sees("DELETED", "a").await;
}

async fn a_change_outside_a_selector_is_not_told(w: World) {
    w.post(&w.configmaps(), &labelled("a", json!({"color": "blue"}))).await.created();
    let mut watch = w.watch_from_now(&format!("{}?labelSelector=color%3Dred", w.configmaps())).await;
    w.merge(&w.configmap("a"), &json!({"data": {"k": "v"}})).await.ok();
    w.delete(&w.configmap("a")).await.ok();
    w.post(&w.configmaps(), &labelled("b", json!({"color": "red"}))).await.created();
    watch.sees("ADDED", "b").await;
}

async fn one_object_can_be_watched_by_its_name(w: World) {
    let mut watch = w.watch_from_now(&format!("{}?fieldSelector=metadata.name%3Db", w.configmaps())).await;
    for name in ["a", "b"] {
        w.post(&w.configmaps(), &configmap(name, json!({}))).await.created();
    }
    watch.sees("ADDED", "b").await;
}

async fn all_namespaces_can_be_watched_at_once(w: World) {
    let mark = fresh("mark");
    let other = fresh("other");
    w.make_namespace(&other).await;
    let mut watch = w.watch_from_now(&format!("/api/v1/configmaps?labelSelector=mark%3D{mark}")).await;
    for path in [w.configmaps(), format!("/api/v1/namespaces/{other}/configmaps")] {
        w.post(&path, &labelled("a", json!({"mark": mark}))).await.created();
    }
    assert_eq!(watch.sees("ADDED", "a").await["metadata"]["namespace"], w.ns);
    assert_eq!(watch.sees("ADDED", "a").await["metadata"]["namespace"], other);
}

async fn another_namespace_is_not_told(w: World) {
    // One name is a prefix of the other: a store with ordered keys must not mix them.
    let other = format!("{}-more", w.ns);
    w.make_namespace(&other).await;
    let mut watch = w.watch_from_now(&w.configmaps()).await;
    w.post(&format!("/api/v1/namespaces/{other}/configmaps"), &configmap("a", json!({}))).await.created();
    w.post(&w.configmaps(), &configmap("b", json!({}))).await.created();
    watch.sees("ADDED", "b").await;
}

async fn two_watches_tell_the_same_story(w: World) {
    let mut one = w.watch_from_now(&w.configmaps()).await;
    let mut two = w.watch_from_now(&w.configmaps()).await;
    for name in ["a", "b", "c"] {
        w.post(&w.configmaps(), &configmap(name, json!({}))).await.created();
    }
    w.delete(&w.configmap("b")).await.ok();
    for _ in 0..4 {
        assert_eq!(one.next().await, two.next().await);
    }
}

async fn a_finalized_deletion_is_modified_then_deleted(w: World) {
    let body = with(configmap("a", json!({})), "/metadata/finalizers", json!(["example.com/held"]));
    w.post(&w.configmaps(), &body).await.created();
    let mut watch = w.watch_from_now(&w.configmaps()).await;
    w.delete(&w.configmap("a")).await.ok();
    assert!(watch.sees("MODIFIED", "a").await["metadata"]["deletionTimestamp"].is_string());
    w.merge(&w.configmap("a"), &json!({"metadata": {"finalizers": null}})).await.ok();
    assert!(watch.sees("DELETED", "a").await["metadata"]["deletionTimestamp"].is_string());
}

async fn a_dry_run_is_not_told(w: World) {
    let mut watch = w.watch_from_now(&w.configmaps()).await;
    w.post(&format!("{}?dryRun=All", w.configmaps()), &configmap("a", json!({}))).await.created();
    w.post(&w.configmaps(), &configmap("b", json!({}))).await.created();
    watch.sees("ADDED", "b").await;
}

async fn an_unknown_field_is_refused(w: World) {
    w.get(&format!("{}?watch=true&fieldSelector=data.k%3Dv", w.configmaps()))
        .await
        .refused(400, "BadRequest");
}

async fn a_malformed_label_selector_is_refused(w: World) {
    w.get(&format!("{}?watch=true&labelSelector=a%20b", w.configmaps())).await.refused(400, "BadRequest");
}

async fn a_watch_is_json_lines(w: World) {
    w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    let answer = w.get(&format!("{}?watch=1&timeoutSeconds=1", w.configmaps())).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    assert_eq!(answer.header("content-encoding"), "");
    assert!(
        answer.text.starts_with("{\"type\":\"ADDED\",\"object\":{") && answer.text.ends_with("}\n"),
        "{}",
        answer.text
    );
}

async fn namespaces_can_be_watched(w: World) {
    let name = fresh("seen");
    let mut watch =
        w.watch_from_now(&format!("/api/v1/namespaces?fieldSelector=metadata.name%3D{name}")).await;
    w.make_namespace(&name).await;
    assert_eq!(watch.sees("ADDED", &name).await["status"]["phase"], "Active");
}

async fn many_writes_are_all_told_once(w: World) {
    let path = w.configmaps();
    let mut watch = w.watch_from_now(&path).await;
    let bodies: Vec<_> =
        (0..100).map(|n| configmap(&format!("n{n:03}"), json!({"pad": "x".repeat(2000)}))).collect();
    for answer in futures_util::future::join_all(bodies.iter().map(|body| w.post(&path, body))).await {
        answer.created();
    }
    let mut names = Vec::new();
    for _ in 0..100 {
        names.push(name_of(&watch.sees_any("ADDED").await).to_owned());
    }
    names.sort_unstable();
    assert_eq!(names, bodies.iter().map(|body| name_of(body).to_owned()).collect::<Vec<_>>());
}
