//! Whole-object updates: versions, identity, and writes that change nothing.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, lease, revision_of, rv_of, uid_of, unversioned, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        an_update_answers_200_with_a_higher_revision,
        an_update_replaces_the_whole_object,
        a_stale_resource_version_conflicts,
        of_racing_writers_with_one_version_one_wins,
        a_custom_resource_needs_a_version,
        a_configmap_needs_no_version,
        a_lease_needs_a_version,
        another_uid_conflicts,
        another_name_than_the_path_is_refused,
        another_namespace_than_the_path_is_refused,
        an_absent_object_is_not_found,
        an_absent_lease_is_created_by_an_update,
        a_resource_version_that_is_no_number_is_refused,
        an_update_that_changes_nothing_keeps_the_version_and_makes_no_event,
        a_patch_that_changes_nothing_keeps_the_version_and_makes_no_event,
        uid_and_creation_time_survive_an_update_without_them,
        another_creation_time_is_ignored,
    ]
}

async fn made(w: &World) -> Value {
    w.post(&w.configmaps(), &configmap("a", json!({"k": "v"}))).await.created()
}

async fn an_update_answers_200_with_a_higher_revision(w: World) {
    let old = made(&w).await;
    let new = w.put(&w.configmap("a"), &with(old.clone(), "/data/k", "w".into())).await.ok();
    assert!(revision_of(&old) < revision_of(&new));
    assert_eq!((&new["data"]["k"], uid_of(&new)), (&"w".into(), uid_of(&old)));
    assert_eq!(w.get(&w.configmap("a")).await.ok(), new);
}

async fn an_update_replaces_the_whole_object(w: World) {
    let old = with(made(&w).await, "/metadata/labels", json!({"l": "v"}));
    let labelled = w.put(&w.configmap("a"), &old).await.ok();
    let bare =
        with(configmap("a", json!({"other": "v"})), "/metadata/resourceVersion", rv_of(&labelled).into());
    let new = w.put(&w.configmap("a"), &bare).await.ok();
    assert_eq!((&new["data"], &new["metadata"]["labels"]), (&json!({"other": "v"}), &Value::Null));
}

async fn a_stale_resource_version_conflicts(w: World) {
    let old = made(&w).await;
    w.put(&w.configmap("a"), &with(old.clone(), "/data/k", "w".into())).await.ok();
    let refusal = w.put(&w.configmap("a"), &with(old, "/data/k", "x".into())).await.refused(409, "Conflict");
    refusal.says("the object has been modified; please apply your changes to the latest version").about(
        "",
        "configmaps",
        "a",
    );
}

async fn of_racing_writers_with_one_version_one_wins(w: World) {
    let (path, old) = (w.configmap("a"), made(&w).await);
    let bodies: Vec<_> = (0..8).map(|n| with(old.clone(), "/data/k", n.to_string().into())).collect();
    let answers = join_all(bodies.iter().map(|body| w.put(&path, body))).await;
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(200), count(409)), (1, 7));
}

async fn a_custom_resource_needs_a_version(w: World) {
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({}))).await.created();
    let refusal =
        w.put(&format!("{path}/a"), &w.widget("a", json!({"size": 2}))).await.refused(422, "Invalid");
    refusal.says("must be specified for an update").cause("FieldValueInvalid", "metadata.resourceVersion");
}

async fn a_configmap_needs_no_version(w: World) {
    made(&w).await;
    let new = w.put(&w.configmap("a"), &configmap("a", json!({"k": "w"}))).await.ok();
    assert_eq!(new["data"]["k"], "w");
}

async fn a_lease_needs_a_version(w: World) {
    let path = w.apis("coordination.k8s.io/v1", "leases");
    w.post(&path, &lease("a", json!({}))).await.created();
    let refusal = w
        .put(&format!("{path}/a"), &lease("a", json!({"holderIdentity": "me"})))
        .await
        .refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "metadata.resourceVersion");
}

async fn another_uid_conflicts(w: World) {
    let old = unversioned(made(&w).await);
    let body = with(old, "/metadata/uid", "11111111-1111-1111-1111-111111111111".into());
    let refusal = w.put(&w.configmap("a"), &body).await.refused(409, "Conflict");
    refusal.says("Precondition failed: UID in precondition").about("", "configmaps", "a");
}

async fn another_name_than_the_path_is_refused(w: World) {
    made(&w).await;
    let refusal = w.put(&w.configmap("a"), &configmap("b", json!({}))).await.refused(400, "BadRequest");
    refusal.says("the name of the object (b) does not match the name on the URL (a)");
}

async fn another_namespace_than_the_path_is_refused(w: World) {
    let body = with(made(&w).await, "/metadata/namespace", "elsewhere".into());
    w.put(&w.configmap("a"), &body).await.refused(400, "BadRequest").says("namespace");
}

async fn an_absent_object_is_not_found(w: World) {
    let refusal = w.put(&w.configmap("a"), &configmap("a", json!({}))).await.refused(404, "NotFound");
    refusal.says("configmaps \"a\" not found").about("", "configmaps", "a");
    let path = format!("{}/a", w.widgets().await);
    w.put(&path, &w.widget("a", json!({}))).await.refused(404, "NotFound").about(w.group(), "widgets", "a");
}

async fn an_absent_lease_is_created_by_an_update(w: World) {
    let path = format!("{}/a", w.apis("coordination.k8s.io/v1", "leases"));
    let created = w.put(&path, &lease("a", json!({"holderIdentity": "me"}))).await.created();
    assert_eq!(created["spec"]["holderIdentity"], "me");
}

async fn a_resource_version_that_is_no_number_is_refused(w: World) {
    let old = made(&w).await;
    let body = with(with(old.clone(), "/metadata/resourceVersion", "abc".into()), "/data/k", "w".into());
    let why = "strconv.ParseUint: parsing \"abc\": invalid syntax";
    w.put(&w.configmap("a"), &body).await.failed(500, why);
    w.merge(&w.configmap("a"), &json!({"metadata": {"resourceVersion": "abc"}})).await.failed(500, why);
    assert_eq!(w.get(&w.configmap("a")).await.ok(), old);
}

async fn an_update_that_changes_nothing_keeps_the_version_and_makes_no_event(w: World) {
    let old = made(&w).await;
    let mut watch = w.watch_from_now(&w.configmaps()).await;
    assert_eq!(rv_of(&w.put(&w.configmap("a"), &old).await.ok()), rv_of(&old));
    assert_eq!(rv_of(&w.put(&w.configmap("a"), &unversioned(old.clone())).await.ok()), rv_of(&old));
    w.put(&w.configmap("a"), &with(old.clone(), "/data/k", "w".into())).await.ok();
    assert_eq!(watch.sees("MODIFIED", "a").await["data"]["k"], "w");
}

async fn a_patch_that_changes_nothing_keeps_the_version_and_makes_no_event(w: World) {
    let path = w.widgets().await;
    let old = w.post(&path, &w.widget("a", json!({"size": 1}))).await.created();
    let mut watch = w.watch_from_now(&path).await;
    let new = w.merge(&format!("{path}/a"), &json!({"spec": {"size": 1}})).await.ok();
    assert_eq!(rv_of(&new), rv_of(&old));
    w.merge(&format!("{path}/a"), &json!({"spec": {"size": 2}})).await.ok();
    assert_eq!(watch.sees("MODIFIED", "a").await["spec"]["size"], 2);
}

async fn uid_and_creation_time_survive_an_update_without_them(w: World) {
    let old = made(&w).await;
    let new = w.put(&w.configmap("a"), &configmap("a", json!({"k": "w"}))).await.ok();
    assert_eq!(uid_of(&new), uid_of(&old));
    assert_eq!(new["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"]);
}

async fn another_creation_time_is_ignored(w: World) {
    let old = made(&w).await;
    let body = with(old.clone(), "/metadata/creationTimestamp", "2001-01-01T00:00:00Z".into());
    let new = w.put(&w.configmap("a"), &body).await.ok();
    assert_eq!(new["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"]);
}
