//! Deletes: at once, or in two steps if the object has a finalizer.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, generation_of, labelled, names_in, revision_of, rv_of, uid_of, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        a_delete_answers_success_with_details,
        a_deleted_custom_resource_is_told_with_its_group,
        an_absent_object_is_not_found,
        a_delete_is_seen_with_a_new_revision,
        a_finalizer_holds_the_object,
        the_deletion_raises_the_generation,
        a_second_delete_changes_nothing,
        no_finalizer_can_be_added_to_a_dying_object,
        the_last_finalizer_lets_the_object_go,
        a_dying_object_can_still_change,
        a_deletion_timestamp_cannot_be_written_or_taken_away,
        a_collection_is_deleted_by_label,
        a_collection_is_deleted_by_field,
        a_deleted_collection_keeps_what_finalizers_hold,
        the_deleted_object_of_a_custom_resource_can_be_made_again,
    ]
}

const HELD: &str = "example.com/held";

async fn held(w: &World) -> (String, Value) {
    let path = w.widgets().await;
    let body = with(w.widget("a", json!({"size": 1})), "/metadata/finalizers", json!([HELD]));
    (format!("{path}/a"), w.post(&path, &body).await.created())
}

async fn let_go(w: &World, path: &str) {
    w.merge(path, &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn a_delete_answers_success_with_details(w: World) {
    let made = w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    let answer = w.delete(&w.configmap("a")).await.ok();
    assert_eq!(
        (&answer["kind"], &answer["apiVersion"], &answer["status"]),
        (&"Status".into(), &"v1".into(), &"Success".into())
    );
    assert_eq!(answer["details"], json!({"name": "a", "kind": "configmaps", "uid": uid_of(&made)}));
    w.get(&w.configmap("a")).await.refused(404, "NotFound").about("", "configmaps", "a");
}

async fn a_deleted_custom_resource_is_told_with_its_group(w: World) {
    let path = w.widgets().await;
    let made = w.post(&path, &w.widget("a", json!({}))).await.created();
    let answer = w.delete(&format!("{path}/a")).await.ok();
    assert_eq!(
        answer["details"],
        json!({"name": "a", "group": w.group(), "kind": "widgets", "uid": uid_of(&made)})
    );
}

async fn an_absent_object_is_not_found(w: World) {
    w.delete(&w.configmap("a")).await.refused(404, "NotFound").about("", "configmaps", "a");
    w.delete(&format!("{}/a", w.widgets().await)).await.refused(404, "NotFound").about(
        w.group(),
        "widgets",
        "a",
    );
}

async fn a_delete_is_seen_with_a_new_revision(w: World) {
    let made = w.post(&w.configmaps(), &configmap("a", json!({"k": "v"}))).await.created();
    let mut watch = w.watch_from_now(&w.configmaps()).await;
    w.delete(&w.configmap("a")).await.ok();
    let last = watch.sees("DELETED", "a").await;
    assert!(revision_of(&made) < revision_of(&last));
    assert_eq!(last["data"], made["data"]);
}

async fn a_finalizer_holds_the_object(w: World) {
    let (path, made) = held(&w).await;
    let mut watch = w.watch_from_now(&w.widgets().await).await;
    // The response is the object, not a Status, because it still exists.
    let answer = w.delete(&path).await.ok();
    assert_eq!((&answer["kind"], uid_of(&answer)), (&"Widget".into(), uid_of(&made)));
    assert!(answer["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(w.get(&path).await.ok(), answer);
    assert_eq!(watch.sees("MODIFIED", "a").await, answer);
    let_go(&w, &path).await;
}

async fn the_deletion_raises_the_generation(w: World) {
    let (path, _) = held(&w).await;
    assert_eq!(generation_of(&w.delete(&path).await.ok()), 2);
    let_go(&w, &path).await;
}

async fn a_second_delete_changes_nothing(w: World) {
    let (path, _) = held(&w).await;
    let first = w.delete(&path).await.ok();
    let second = w.delete(&path).await.ok();
    assert_eq!(second["metadata"]["deletionTimestamp"], first["metadata"]["deletionTimestamp"]);
    assert_eq!((rv_of(&second), generation_of(&second)), (rv_of(&first), generation_of(&first)));
    let_go(&w, &path).await;
}

async fn no_finalizer_can_be_added_to_a_dying_object(w: World) {
    let (path, _) = held(&w).await;
    w.delete(&path).await.ok();
    let more = json!({"metadata": {"finalizers": [HELD, "example.com/late"]}});
    let refusal = w.merge(&path, &more).await.refused(422, "Invalid");
    refusal
        .says("no new finalizers can be added if the object is being deleted")
        .cause("FieldValueForbidden", "metadata.finalizers");
    let_go(&w, &path).await;
}

async fn the_last_finalizer_lets_the_object_go(w: World) {
    let path = w.widgets().await;
    let body = with(w.widget("a", json!({})), "/metadata/finalizers", json!([HELD, "example.com/also"]));
    w.post(&path, &body).await.created();
    let one = format!("{path}/a");
    w.delete(&one).await.ok();
    let mut watch = w.watch_from_now(&path).await;
    w.merge(&one, &json!({"metadata": {"finalizers": ["example.com/also"]}})).await.ok();
    watch.sees("MODIFIED", "a").await;
    let last = w.merge(&one, &json!({"metadata": {"finalizers": []}})).await.ok();
    assert_eq!(last["metadata"]["finalizers"], Value::Null);
    watch.sees("DELETED", "a").await;
    w.get(&one).await.refused(404, "NotFound");
}

async fn a_dying_object_can_still_change(w: World) {
    let (path, _) = held(&w).await;
    w.delete(&path).await.ok();
    let new = w.merge(&path, &json!({"spec": {"size": 2}})).await.ok();
    assert_eq!((&new["spec"]["size"], generation_of(&new)), (&2.into(), 3));
    let_go(&w, &path).await;
}

async fn a_deletion_timestamp_cannot_be_written_or_taken_away(w: World) {
    let (path, made) = held(&w).await;
    let body = with(made, "/metadata/deletionTimestamp", "2001-01-01T00:00:00Z".into());
    let answer = w.put(&path, &body).await;
    assert_ne!(
        w.get(&path).await.ok()["metadata"]["deletionTimestamp"],
        "2001-01-01T00:00:00Z",
        "{}",
        answer.text
    );
    let dying = w.delete(&path).await.ok();
    let back = w.merge(&path, &json!({"metadata": {"deletionTimestamp": null}})).await.ok();
    assert_eq!(back["metadata"]["deletionTimestamp"], dying["metadata"]["deletionTimestamp"]);
    let_go(&w, &path).await;
}

async fn a_collection_is_deleted_by_label(w: World) {
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        w.post(&w.configmaps(), &labelled(name, json!({"color": color}))).await.created();
    }
    let answer = w.delete(&format!("{}?labelSelector=color%3Dred", w.configmaps())).await.ok();
    // The answer is the list of what was deleted.
    assert_eq!((&answer["kind"], names_in(&answer)), (&"ConfigMapList".into(), vec!["a", "c"]));
    assert_eq!(names_in(&w.get(&w.configmaps()).await.ok()), ["b"]);
}

async fn a_collection_is_deleted_by_field(w: World) {
    let path = w.widgets().await;
    for name in ["a", "b"] {
        w.post(&path, &w.widget(name, json!({}))).await.created();
    }
    let answer = w.delete(&format!("{path}?fieldSelector=metadata.name%3Da")).await.ok();
    assert_eq!(answer["kind"], "WidgetList");
    assert_eq!(names_in(&w.get(&path).await.ok()), ["b"]);
}

async fn a_deleted_collection_keeps_what_finalizers_hold(w: World) {
    let (one, _) = held(&w).await;
    let path = w.widgets().await;
    w.post(&path, &w.widget("b", json!({}))).await.created();
    w.delete(&path).await.ok();
    let left = w.get(&path).await.ok();
    assert_eq!(names_in(&left), ["a"]);
    assert!(left["items"][0]["metadata"]["deletionTimestamp"].is_string());
    let_go(&w, &one).await;
}

async fn the_deleted_object_of_a_custom_resource_can_be_made_again(w: World) {
    let (path, first) = held(&w).await;
    w.delete(&path).await.ok();
    // Until the finalizer is removed, the name is taken.
    let body = w.widget("a", json!({}));
    w.post(&w.widgets().await, &body).await.refused(409, "AlreadyExists").says("object is being deleted");
    let_go(&w, &path).await;
    let second = w.post(&w.widgets().await, &body).await.created();
    assert_ne!(uid_of(&first), uid_of(&second));
    assert_eq!(generation_of(&second), 1);
}
