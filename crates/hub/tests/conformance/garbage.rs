//! Garbage collection: dependents are deleted with their owners, by the propagation policy.

use serde_json::{Value, json};

use crate::check::{Check, Need, checks};
use crate::objects::{configmap, owned_by, revision_of, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    let all = checks![
        dependents_follow_their_owner,
        dependents_of_dependents_follow_too,
        an_object_with_an_unknown_owner_goes,
        an_owner_of_the_same_name_but_another_uid_is_no_owner,
        a_dependent_of_two_owners_outlives_one,
        an_orphaned_dependent_stays_without_its_owner,
        a_foreground_owner_waits_for_its_dependents,
        a_foreground_owner_does_not_wait_for_a_dependent_that_does_not_block,
        two_that_own_each_other_go_in_the_foreground,
        a_ring_of_three_owners_goes_in_the_foreground,
        a_dependent_held_by_a_finalizer_is_marked,
        a_dependent_held_by_a_finalizer_keeps_its_own_dependents,
        a_custom_resource_owns_a_configmap,
    ];
    all.into_iter().map(|check| check.needing(Need::GarbageCollection)).collect()
}

async fn make(w: &World, body: Value) -> Value {
    w.post(&w.configmaps(), &body).await.created()
}

async fn dependents_follow_their_owner(w: World) {
    let owner = make(&w, configmap("owner", json!({}))).await;
    make(&w, owned_by(configmap("child", json!({})), &owner)).await;
    make(&w, configmap("bystander", json!({}))).await;
    w.delete_with(&w.configmap("owner"), json!({"propagationPolicy": "Background"})).await.ok();
    w.gone(&w.configmap("child")).await;
    w.get(&w.configmap("bystander")).await.ok();
}

async fn dependents_of_dependents_follow_too(w: World) {
    let owner = make(&w, configmap("owner", json!({}))).await;
    let child = make(&w, owned_by(configmap("child", json!({})), &owner)).await;
    make(&w, owned_by(configmap("grandchild", json!({})), &child)).await;
    w.delete(&w.configmap("owner")).await.ok();
    w.gone(&w.configmap("grandchild")).await;
}

async fn an_object_with_an_unknown_owner_goes(w: World) {
    let ghost = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "11111111-1111-1111-1111-111111111111"}});
    make(&w, owned_by(configmap("child", json!({})), &ghost)).await;
    w.gone(&w.configmap("child")).await;
}

async fn an_owner_of_the_same_name_but_another_uid_is_no_owner(w: World) {
    let owner = make(&w, configmap("owner", json!({}))).await;
    let other = with(owner, "/metadata/uid", "11111111-1111-1111-1111-111111111111".into());
    make(&w, owned_by(configmap("child", json!({})), &other)).await;
    w.gone(&w.configmap("child")).await;
    w.get(&w.configmap("owner")).await.ok();
}

async fn a_dependent_of_two_owners_outlives_one(w: World) {
    let one = make(&w, configmap("one", json!({}))).await;
    let two = make(&w, configmap("two", json!({}))).await;
    let both = json!([
        owned_by(json!({}), &one)["metadata"]["ownerReferences"][0],
        owned_by(json!({}), &two)["metadata"]["ownerReferences"][0],
    ]);
    let child = make(&w, with(configmap("child", json!({})), "/metadata/ownerReferences", both)).await;
    w.delete(&w.configmap("one")).await.ok();
    // The collector removes the missing owner from the list.
    let from = format!(
        "{}?fieldSelector=metadata.name=child&resourceVersion={}",
        w.configmaps(),
        revision_of(&child)
    );
    let left = w.watch(&from).await.sees("MODIFIED", "child").await;
    assert_eq!(left["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    w.delete(&w.configmap("two")).await.ok();
    w.gone(&w.configmap("child")).await;
}

async fn an_orphaned_dependent_stays_without_its_owner(w: World) {
    let owner = make(&w, configmap("owner", json!({}))).await;
    make(&w, owned_by(configmap("child", json!({})), &owner)).await;
    w.delete_with(&w.configmap("owner"), json!({"propagationPolicy": "Orphan"})).await.ok();
    w.gone(&w.configmap("owner")).await;
    let child = w.get(&w.configmap("child")).await.ok();
    assert_eq!(child["metadata"]["ownerReferences"], Value::Null);
}

async fn a_foreground_owner_waits_for_its_dependents(w: World) {
    let owner = make(&w, configmap("owner", json!({}))).await;
    let mut child = owned_by(configmap("child", json!({})), &owner);
    child["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = true.into();
    child["metadata"]["finalizers"] = json!(["example.com/held"]);
    let made = make(&w, child).await;
    w.delete_with(&w.configmap("owner"), json!({"propagationPolicy": "Foreground"})).await.ok();
    let from = format!(
        "{}?fieldSelector=metadata.name=child&resourceVersion={}",
        w.configmaps(),
        revision_of(&made)
    );
    assert!(
        w.watch(&from).await.sees("MODIFIED", "child").await["metadata"]["deletionTimestamp"].is_string()
    );
    w.get(&w.configmap("owner")).await.ok();
    w.merge(&w.configmap("child"), &json!({"metadata": {"finalizers": null}})).await.ok();
    w.gone(&w.configmap("owner")).await;
}

async fn a_foreground_owner_does_not_wait_for_a_dependent_that_does_not_block(w: World) {
    let owner = make(&w, configmap("owner", json!({}))).await;
    let child = owned_by(configmap("child", json!({})), &owner);
    make(&w, with(child, "/metadata/finalizers", json!(["example.com/held"]))).await;
    w.delete_with(&w.configmap("owner"), json!({"propagationPolicy": "Foreground"})).await.ok();
    w.gone(&w.configmap("owner")).await;
    w.merge(&w.configmap("child"), &json!({"metadata": {"finalizers": null}})).await.ok();
    w.gone(&w.configmap("child")).await;
}

/// Makes each of these config maps the owner of the next, and the last one of the first; each
/// blocks the deletion of its owner.
async fn make_ring(w: &World, names: &[&str]) {
    let mut made = Vec::new();
    for name in names {
        made.push(make(w, configmap(name, json!({}))).await);
    }
    let owners = made.iter().cycle().skip(made.len() - 1);
    for (name, owner) in names.iter().zip(owners) {
        let mut owners = owned_by(json!({}), owner)["metadata"]["ownerReferences"].clone();
        owners[0]["blockOwnerDeletion"] = true.into();
        w.merge(&w.configmap(name), &json!({"metadata": {"ownerReferences": owners}})).await.ok();
    }
}

async fn two_that_own_each_other_go_in_the_foreground(w: World) {
    make_ring(&w, &["one", "two"]).await;
    w.delete_with(&w.configmap("one"), json!({"propagationPolicy": "Foreground"})).await.ok();
    w.gone(&w.configmap("one")).await;
    w.gone(&w.configmap("two")).await;
}

async fn a_ring_of_three_owners_goes_in_the_foreground(w: World) {
    make_ring(&w, &["one", "two", "three"]).await;
    w.delete_with(&w.configmap("two"), json!({"propagationPolicy": "Foreground"})).await.ok();
    for name in ["one", "two", "three"] {
        w.gone(&w.configmap(name)).await;
    }
}

async fn a_dependent_held_by_a_finalizer_is_marked(w: World) {
    let owner = make(&w, configmap("owner", json!({}))).await;
    let child = with(
        owned_by(configmap("child", json!({})), &owner),
        "/metadata/finalizers",
        json!(["example.com/held"]),
    );
    let made = make(&w, child).await;
    w.delete(&w.configmap("owner")).await.ok();
    let from = format!(
        "{}?fieldSelector=metadata.name=child&resourceVersion={}",
        w.configmaps(),
        revision_of(&made)
    );
    assert!(
        w.watch(&from).await.sees("MODIFIED", "child").await["metadata"]["deletionTimestamp"].is_string()
    );
    w.merge(&w.configmap("child"), &json!({"metadata": {"finalizers": null}})).await.ok();
    w.gone(&w.configmap("child")).await;
}

async fn a_dependent_held_by_a_finalizer_keeps_its_own_dependents(w: World) {
    let owner = make(&w, configmap("owner", json!({}))).await;
    let child = with(
        owned_by(configmap("child", json!({})), &owner),
        "/metadata/finalizers",
        json!(["example.com/held"]),
    );
    let child = make(&w, child).await;
    let mut grandchild = owned_by(configmap("grandchild", json!({})), &child);
    grandchild["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = true.into();
    make(&w, grandchild).await;
    w.delete_with(&w.configmap("owner"), json!({"propagationPolicy": "Background"})).await.ok();
    let from = format!(
        "{}?fieldSelector=metadata.name=child&resourceVersion={}",
        w.configmaps(),
        revision_of(&child)
    );
    let marked = w.watch(&from).await.sees("MODIFIED", "child").await;
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    assert_eq!(marked["metadata"]["finalizers"], json!(["example.com/held"]));
    let kept = w.get(&w.configmap("grandchild")).await.ok();
    assert_eq!(kept["metadata"].get("deletionTimestamp"), None);
    w.merge(&w.configmap("child"), &json!({"metadata": {"finalizers": null}})).await.ok();
    w.gone(&w.configmap("grandchild")).await;
}

async fn a_custom_resource_owns_a_configmap(w: World) {
    let path = w.widgets().await;
    let owner = w.post(&path, &w.widget("owner", json!({}))).await.created();
    make(&w, owned_by(configmap("child", json!({})), &owner)).await;
    w.delete(&format!("{path}/owner")).await.ok();
    w.gone(&w.configmap("child")).await;
}
