//! Discovery: what a client reads before its first real request.

use serde_json::{Value, json};

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
        the_core_group_is_told_in_one_document,
        a_custom_resource_is_told_in_one_document_with_all_groups,
        the_groups_are_told_in_their_order,
        one_document_is_told_wherever_it_is_accepted,
        one_document_is_not_told_again_to_those_who_have_it,
        the_first_versions_of_one_document_are_not_served,
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
    // A path outside any API gets plain text, not a Status.
    for path in ["/nosuch", "/apis/no.such.group", "/apis/no.such.group/v1"] {
        w.get(path).await.no_page();
    }
    w.get("/apis/no.such.group/v1/namespaces/default/things").await.no_page();
    for path in ["/api/v9", "/apis/apps/v9", "/apis/apps/v1/namespaces/default/things"] {
        w.get(path).await.refused(404, "NotFound").without_details();
    }
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_BETA: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// The aggregated document at this path, after a HEAD request.
async fn aggregated(w: &World, path: &str) -> Value {
    let answer = w.get_as(path, AGGREGATED).await;
    assert_eq!(answer.header("content-type"), AGGREGATED);
    assert_eq!((answer.header("vary"), answer.header("cache-control")), ("Accept", "public"));
    let tag = answer.header("etag").trim_matches('"');
    assert!(tag.len() == 128 && tag.bytes().all(|byte| b"0123456789ABCDEF".contains(&byte)), "{tag}");
    let document = answer.ok();
    let head = (&document["kind"], &document["apiVersion"], &document["metadata"]);
    assert_eq!(head, (&"APIGroupDiscoveryList".into(), &"apidiscovery.k8s.io/v2".into(), &json!({})));
    document
}

/// This resource of a version in the aggregated document.
fn told<'a>(group: &'a Value, name: &str) -> &'a Value {
    let all = group["versions"][0]["resources"].as_array().expect("resources");
    all.iter().find(|resource| resource["resource"] == name).unwrap_or_else(|| panic!("no {name} in {group}"))
}

async fn the_core_group_is_told_in_one_document(w: World) {
    let document = aggregated(&w, "/api").await;
    assert_eq!(document["items"].as_array().map(Vec::len), Some(1));
    let core = &document["items"][0];
    assert_eq!(core["metadata"], json!({}));
    assert_eq!(
        (&core["versions"][0]["version"], &core["versions"][0]["freshness"]),
        (&"v1".into(), &"Current".into())
    );
    // Built-in kinds have neither group nor version here.
    let kind = |kind: &str| json!({"group": "", "version": "", "kind": kind});
    let configmaps = json!({"resource": "configmaps", "responseKind": kind("ConfigMap"), "scope": "Namespaced",
        "singularResource": "configmap", "verbs": ALL, "shortNames": ["cm"]});
    assert_eq!(*told(core, "configmaps"), configmaps);
    let namespaces = json!({"resource": "namespaces", "responseKind": kind("Namespace"), "scope": "Cluster",
        "singularResource": "namespace", "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        "shortNames": ["ns"], "subresources": [
            {"subresource": "finalize", "responseKind": kind("Namespace"), "verbs": ["update"]},
            {"subresource": "status", "responseKind": kind("Namespace"), "verbs": ["get", "patch", "update"]}]});
    assert_eq!(*told(core, "namespaces"), namespaces);
    let resources = core["versions"][0]["resources"].as_array().unwrap();
    assert!(resources.is_sorted_by_key(|resource| resource["resource"].as_str()), "{resources:?}");
}

async fn a_custom_resource_is_told_in_one_document_with_all_groups(w: World) {
    w.widgets().await;
    let find = |document: Value| {
        let groups = document["items"].as_array().cloned().unwrap_or_default();
        groups.into_iter().find(|group| group["metadata"] == json!({"name": w.group()}))
    };
    w.eventually("the group is told", || async { find(aggregated(&w, "/apis").await).is_some() }).await;
    let group = find(aggregated(&w, "/apis").await).unwrap();
    let kind = json!({"group": w.group(), "version": "v1", "kind": "Widget"});
    let verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    let widgets = json!({"resource": "widgets", "responseKind": kind, "scope": "Namespaced",
        "singularResource": "widget", "verbs": verbs, "shortNames": ["wg"], "categories": ["gadgets"],
        "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"]}]});
    assert_eq!(*told(&group, "widgets"), widgets);
    assert_eq!(group["versions"][0]["freshness"], "Current");
    let document = w.get(&format!("/apis/{}/v1", w.group())).await.ok();
    assert_eq!(resource(&document, "widgets")["verbs"], json!(verbs), "the same order in the plain document");
}

async fn the_groups_are_told_in_their_order(w: World) {
    let own = format!("{}.conformance.test", fresh("order"));
    w.serve_crd(&crd(&own, simple_schema())).await;
    let order = "apps events.k8s.io authentication.k8s.io authorization.k8s.io rbac.authorization.k8s.io \
                 apiextensions.k8s.io coordination.k8s.io";
    let order: Vec<&str> = order.split_whitespace().chain([own.as_str()]).collect();
    let names = |list: &Value, name: &str| -> Vec<String> {
        let all = list.as_array().unwrap().iter().filter_map(|group| group.pointer(name)?.as_str());
        all.filter(|name| order.contains(name)).map(str::to_owned).collect()
    };
    w.eventually("the group is told", || async { aggregated(&w, "/apis").await.to_string().contains(&own) })
        .await;
    assert_eq!(names(&aggregated(&w, "/apis").await["items"], "/metadata/name"), order);
    w.eventually("the group is listed", || async { w.get("/apis").await.text.contains(&own) }).await;
    assert_eq!(names(&w.get("/apis").await.ok()["groups"], "/name"), order);
}

async fn one_document_is_told_wherever_it_is_accepted(w: World) {
    let any = "*/*;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for accept in [&format!("{AGGREGATED},application/json"), &format!("application/json, {AGGREGATED}"), any]
    {
        let answer = w.get_as("/apis", accept).await;
        assert_eq!(answer.header("content-type"), AGGREGATED, "{accept}");
        assert_eq!(answer.ok()["kind"], "APIGroupDiscoveryList");
    }
    for path in ["/api", "/apis"] {
        let answer = w.get_as(path, "application/json").await;
        assert_eq!((answer.header("content-type"), answer.header("etag")), ("application/json", ""));
    }
    // Below these two paths there are plain documents only.
    for path in ["/apis/apps", "/apis/apps/v1", "/api/v1"] {
        w.get_as(path, AGGREGATED).await.refused(406, "NotAcceptable");
        w.get_as(path, &format!("{AGGREGATED},application/json")).await.ok();
    }
}

async fn one_document_is_not_told_again_to_those_who_have_it(w: World) {
    let ask = |tag: String| {
        let w = w.clone();
        async move { w.send("GET", "/api", &[("accept", AGGREGATED), ("if-none-match", &tag)], Vec::new()).await }
    };
    let tag = w.get_as("/api", AGGREGATED).await.header("etag").to_owned();
    let answer = ask(tag.clone()).await;
    assert_eq!((answer.status, answer.text.as_str(), answer.header("etag")), (304, "", tag.as_str()));
    assert_eq!((answer.header("vary"), answer.header("cache-control")), ("Accept", "public"));
    // Lists and weak tags are not compared.
    for other in [format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned(), "\"x\"".to_owned()] {
        assert_eq!(ask(other).await.ok()["kind"], "APIGroupDiscoveryList");
    }
    let before = w.get_as("/apis", AGGREGATED).await.header("etag").to_owned();
    w.serve_crd(&crd(&format!("{}.conformance.test", fresh("tag")), simple_schema())).await;
    w.eventually("the tag is another", || async {
        w.get_as("/apis", AGGREGATED).await.header("etag") != before
    })
    .await;
}

async fn the_first_versions_of_one_document_are_not_served(w: World) {
    for path in ["/api", "/apis"] {
        w.get_as(path, AGGREGATED_BETA).await.refused(406, "NotAcceptable");
        let document = w.get_as(path, &format!("{AGGREGATED_BETA},application/json")).await.ok();
        assert_eq!(document["kind"], if path == "/api" { "APIVersions" } else { "APIGroupList" });
    }
}
