//! Discovery: what a client learns before it sends its first real request.

use serde_json::Value;

use crate::check::{Check, checks};
use crate::crds::{crd, place, simple_schema};
use crate::world::{World, fresh};

pub fn checks() -> Vec<Check> {
    checks![
        the_version_is_told_as_major_minor_and_git_version,
        livez_and_readyz_answer_ok,
        the_core_group_lists_v1,
        the_groups_are_listed_with_a_preferred_version,
        one_group_can_be_asked_for,
        core_resources_are_listed_with_verbs_and_short_names,
        leases_revisions_and_crds_are_listed_in_their_groups,
        reviews_can_only_be_created,
        a_custom_resource_is_discovered_with_its_names_and_subresource,
        a_group_leaves_discovery_with_its_crd,
        an_unknown_group_is_404,
        a_client_that_asks_for_aggregated_discovery_is_served,
    ]
}

/// The entry of this resource in a discovery document.
fn resource<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["resources"].as_array().expect("resources");
    all.iter().find(|resource| resource["name"] == name).unwrap_or_else(|| panic!("no {name} in {document}"))
}

fn verbs(resource: &Value) -> Vec<&str> {
    let mut verbs: Vec<_> =
        resource["verbs"].as_array().expect("verbs").iter().filter_map(Value::as_str).collect();
    verbs.sort_unstable();
    verbs
}

const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

async fn the_version_is_told_as_major_minor_and_git_version(w: World) {
    let version = w.get("/version").await.ok();
    assert!(version["major"].is_string() && version["minor"].is_string(), "{version}");
    assert!(version["gitVersion"].as_str().is_some_and(|text| text.starts_with('v')), "{version}");
}

async fn livez_and_readyz_answer_ok(w: World) {
    for path in ["/livez", "/readyz"] {
        let answer = w.get(path).await;
        assert_eq!((answer.status, answer.text.as_str()), (200, "ok"), "{path}");
    }
}

async fn the_core_group_lists_v1(w: World) {
    let document = w.get("/api").await.ok();
    assert_eq!(document["kind"], "APIVersions");
    assert_eq!(document["versions"][0], "v1");
}

async fn the_groups_are_listed_with_a_preferred_version(w: World) {
    let document = w.get("/apis").await.ok();
    assert_eq!(document["kind"], "APIGroupList");
    let groups = document["groups"].as_array().unwrap();
    for name in ["apps", "apiextensions.k8s.io", "coordination.k8s.io", "events.k8s.io"] {
        let group =
            groups.iter().find(|group| group["name"] == name).unwrap_or_else(|| panic!("no group {name}"));
        assert_eq!(group["preferredVersion"]["groupVersion"], format!("{name}/v1"));
        assert!(group["versions"].as_array().unwrap().iter().any(|version| version["version"] == "v1"));
    }
}

async fn one_group_can_be_asked_for(w: World) {
    let group = w.get("/apis/apps").await.ok();
    assert_eq!((&group["kind"], &group["name"]), (&"APIGroup".into(), &"apps".into()));
    assert_eq!(group["preferredVersion"]["version"], "v1");
}

async fn core_resources_are_listed_with_verbs_and_short_names(w: World) {
    let document = w.get("/api/v1").await.ok();
    assert_eq!((&document["kind"], &document["groupVersion"]), (&"APIResourceList".into(), &"v1".into()));
    for (name, kind, short) in [("configmaps", "ConfigMap", "cm"), ("events", "Event", "ev")] {
        let entry = resource(&document, name);
        assert_eq!((&entry["kind"], &entry["shortNames"][0]), (&kind.into(), &short.into()));
        assert_eq!(entry["namespaced"], true);
        assert_eq!(verbs(entry), ALL);
    }
    assert_eq!(verbs(resource(&document, "secrets")), ALL);
    let namespaces = resource(&document, "namespaces");
    assert_eq!((&namespaces["namespaced"], &namespaces["shortNames"][0]), (&false.into(), &"ns".into()));
    // All namespaces at once cannot be deleted.
    assert!(!verbs(namespaces).contains(&"deletecollection"));
    assert_eq!(verbs(resource(&document, "namespaces/status")), ["get", "patch", "update"]);
}

async fn leases_revisions_and_crds_are_listed_in_their_groups(w: World) {
    let leases = w.get("/apis/coordination.k8s.io/v1").await.ok();
    assert_eq!(verbs(resource(&leases, "leases")), ALL);
    let apps = w.get("/apis/apps/v1").await.ok();
    assert_eq!(resource(&apps, "controllerrevisions")["kind"], "ControllerRevision");
    let extensions = w.get("/apis/apiextensions.k8s.io/v1").await.ok();
    let crds = resource(&extensions, "customresourcedefinitions");
    assert_eq!((&crds["namespaced"], &crds["shortNames"][0]), (&false.into(), &"crd".into()));
    assert_eq!(verbs(resource(&extensions, "customresourcedefinitions/status")), ["get", "patch", "update"]);
}

async fn reviews_can_only_be_created(w: World) {
    let document = w.get("/apis/authorization.k8s.io/v1").await.ok();
    assert_eq!(verbs(resource(&document, "selfsubjectaccessreviews")), ["create"]);
    let document = w.get("/apis/authentication.k8s.io/v1").await.ok();
    assert_eq!(verbs(resource(&document, "selfsubjectreviews")), ["create"]);
}

async fn a_custom_resource_is_discovered_with_its_names_and_subresource(w: World) {
    w.widgets().await;
    let path = format!("/apis/{}/v1", w.group());
    w.eventually("the group is discovered", || async { w.get(&path).await.status == 200 }).await;
    let document = w.get(&path).await.ok();
    let widgets = resource(&document, "widgets");
    assert_eq!((&widgets["kind"], &widgets["singularName"]), (&"Widget".into(), &"widget".into()));
    assert_eq!((&widgets["shortNames"][0], &widgets["categories"][0]), (&"wg".into(), &"gadgets".into()));
    assert_eq!(verbs(widgets), ALL);
    assert_eq!(verbs(resource(&document, "widgets/status")), ["get", "patch", "update"]);
    let group = w.get(&format!("/apis/{}", w.group())).await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v1");
}

async fn a_group_leaves_discovery_with_its_crd(w: World) {
    let group = format!("{}.conformance.test", fresh("leaves"));
    let crd = crd(&group, simple_schema());
    w.serve_crd(&crd).await;
    let (one, all) = (format!("/apis/{group}/v1"), "/apis");
    w.eventually("the group is discovered", || async { w.get(all).await.text.contains(&group) }).await;
    w.delete(&place(&crd)).await.ok();
    w.eventually("the version is gone", || async { w.get(&one).await.status == 404 }).await;
    w.eventually("the group is gone", || async { !w.get(all).await.text.contains(&group) }).await;
}

async fn an_unknown_group_is_404(w: World) {
    // A path of no known API is answered in plain text, not by a Status.
    assert_eq!(w.get("/apis/no.such.group/v1").await.status, 404);
    assert_eq!(w.get("/apis/no.such.group/v1/namespaces/default/things").await.status, 404);
}

async fn a_client_that_asks_for_aggregated_discovery_is_served(w: World) {
    // Old servers do not know this type: clients list plain JSON after it.
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    for path in ["/api", "/apis"] {
        let document = w.get_as(path, accept).await.ok();
        let kind = document["kind"].as_str().unwrap();
        assert!(["APIGroupDiscoveryList", "APIVersions", "APIGroupList"].contains(&kind), "{kind}");
    }
}
