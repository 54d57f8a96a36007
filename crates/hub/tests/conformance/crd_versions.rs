//! Several versions of one custom resource; the only conversion is that of apiVersion.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::crds::{crd, own_group, place, spec_schema};
use crate::objects::{name_of, names_in, rv_of, uid_of, with};
use crate::world::{JSON_PATCH, World};

pub fn checks() -> Vec<Check> {
    checks![
        an_object_is_served_in_each_version,
        a_write_through_another_version_is_the_same_object,
        each_version_validates_by_its_own_schema,
        discovery_prefers_the_stablest_version,
        a_version_that_is_not_served_is_404,
        a_watch_tells_objects_in_its_own_version,
        a_new_storage_version_is_added_to_the_stored_ones,
        a_stored_version_cannot_be_removed,
        a_new_version_is_served_after_an_update,
    ]
}

/// Gizmos with v1beta1 and v1 (stored), and v1alpha1 that is not served.
fn versioned(group: &str) -> Value {
    let version = |name: &str, served: bool, storage: bool, maximum: i64| {
        let schema = spec_schema(json!({"n": {"type": "integer", "maximum": maximum}}));
        json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}})
    };
    let versions = json!([
        version("v1beta1", true, false, 10),
        version("v1", true, true, 100),
        version("v1alpha1", false, false, 1)
    ]);
    with(crd(group, json!({})), "/spec/versions", versions)
}

/// The CRD, and the paths of v1beta1 and v1.
async fn serve(w: &World) -> (Value, String, String) {
    let body = versioned(&own_group());
    w.serve_crd(&body).await;
    (body.clone(), w.crd_path(&body, "v1beta1"), w.crd_path(&body, "v1"))
}

fn gizmo(crd: &Value, version: &str, n: i64) -> Value {
    let version = format!("{}/{version}", crd["spec"]["group"].as_str().unwrap());
    json!({"apiVersion": version, "kind": "Gizmo", "metadata": {"name": "a"}, "spec": {"n": n}})
}

async fn an_object_is_served_in_each_version(w: World) {
    let (crd, beta, stable) = serve(&w).await;
    let made = w.post(&beta, &gizmo(&crd, "v1beta1", 1)).await.created();
    assert_eq!(made["apiVersion"], gizmo(&crd, "v1beta1", 1)["apiVersion"]);
    let other = w.get(&format!("{stable}/a")).await.ok();
    assert_eq!(other["apiVersion"], gizmo(&crd, "v1", 1)["apiVersion"]);
    assert_eq!((uid_of(&other), rv_of(&other), &other["spec"]), (uid_of(&made), rv_of(&made), &made["spec"]));
    let list = w.get(&stable).await.ok();
    assert_eq!(
        (&list["apiVersion"], &list["items"][0]["apiVersion"]),
        (&other["apiVersion"], &other["apiVersion"])
    );
}

async fn a_write_through_another_version_is_the_same_object(w: World) {
    let (crd, beta, stable) = serve(&w).await;
    w.post(&beta, &gizmo(&crd, "v1beta1", 1)).await.created();
    w.merge(&format!("{stable}/a"), &json!({"spec": {"n": 2}})).await.ok();
    assert_eq!(w.get(&format!("{beta}/a")).await.ok()["spec"]["n"], 2);
    w.post(&stable, &gizmo(&crd, "v1", 1)).await.refused(409, "AlreadyExists");
    w.delete(&format!("{stable}/a")).await.ok();
    w.get(&format!("{beta}/a")).await.refused(404, "NotFound");
}

async fn each_version_validates_by_its_own_schema(w: World) {
    let (crd, beta, stable) = serve(&w).await;
    w.post(&beta, &gizmo(&crd, "v1beta1", 50))
        .await
        .refused(422, "Invalid")
        .cause("FieldValueInvalid", "spec.n");
    w.post(&stable, &gizmo(&crd, "v1", 50)).await.created();
    assert_eq!(w.get(&format!("{beta}/a")).await.ok()["spec"]["n"], 50);
}

async fn discovery_prefers_the_stablest_version(w: World) {
    let (crd, ..) = serve(&w).await;
    let path = format!("/apis/{}", crd["spec"]["group"].as_str().unwrap());
    w.eventually("both versions are discovered", || async { w.get(&path).await.text.contains("v1beta1") })
        .await;
    let group = w.get(&path).await.ok();
    let versions: Vec<_> =
        group["versions"].as_array().unwrap().iter().filter_map(|one| one["version"].as_str()).collect();
    assert_eq!((versions, &group["preferredVersion"]["version"]), (vec!["v1", "v1beta1"], &"v1".into()));
}

async fn a_version_that_is_not_served_is_404(w: World) {
    let (crd, ..) = serve(&w).await;
    assert_eq!(w.get(&w.crd_path(&crd, "v1alpha1")).await.status, 404);
}

async fn a_watch_tells_objects_in_its_own_version(w: World) {
    let (crd, beta, stable) = serve(&w).await;
    let mut watch = w.watch_from_now(&beta).await;
    w.post(&stable, &gizmo(&crd, "v1", 1)).await.created();
    assert_eq!(watch.sees("ADDED", "a").await["apiVersion"], gizmo(&crd, "v1beta1", 1)["apiVersion"]);
}

async fn a_new_storage_version_is_added_to_the_stored_ones(w: World) {
    let (crd, beta, stable) = serve(&w).await;
    w.post(&stable, &gizmo(&crd, "v1", 1)).await.created();
    let change = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": true},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": false},
    ]);
    let new = w.patch(&place(&crd), JSON_PATCH, &change).await.ok();
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v1beta1"]));
    assert_eq!(names_in(&w.get(&beta).await.ok()), ["a"]);
}

async fn a_stored_version_cannot_be_removed(w: World) {
    let (crd, ..) = serve(&w).await;
    let change = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": true},
        {"op": "remove", "path": "/spec/versions/1"},
    ]);
    let refusal = w.patch(&place(&crd), JSON_PATCH, &change).await.refused(422, "Invalid");
    refusal.cause("FieldValueInvalid", "status.storedVersions[0]");
}

async fn a_new_version_is_served_after_an_update(w: World) {
    let (crd, ..) = serve(&w).await;
    let change = json!([{"op": "replace", "path": "/spec/versions/2/served", "value": true}]);
    let new = w.patch(&place(&crd), JSON_PATCH, &change).await.ok();
    assert_eq!(name_of(&new), name_of(&crd));
    let path = w.crd_path(&crd, "v1alpha1");
    w.eventually("the version is served", || async { w.get(&path).await.status == 200 }).await;
}
