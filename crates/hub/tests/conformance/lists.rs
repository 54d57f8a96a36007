//! Lists: their structure, their order, and their revision.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, labelled, names_in, revision_of, rv_of};
use crate::world::{World, fresh};

pub fn checks() -> Vec<Check> {
    checks![
        a_list_has_a_kind_a_version_and_items,
        an_empty_list_has_an_empty_array,
        items_of_a_custom_resource_list_carry_their_kind,
        a_list_is_at_least_as_new_as_the_last_write,
        items_are_ordered_by_name,
        all_namespaces_are_listed_together,
        an_absent_namespace_lists_as_empty,
        any_version_may_be_asked_for,
        a_list_not_older_than_a_version_is_at_least_that_new,
        an_exact_version_shows_the_past,
        a_version_of_the_future_times_out,
        an_exact_version_of_the_future_times_out,
        a_version_match_needs_a_version,
        an_unknown_version_match_is_refused,
        an_exact_match_of_version_0_is_refused,
        a_version_that_is_no_number_is_refused,
        a_get_may_name_a_version,
    ]
}

async fn three(w: &World) -> Vec<Value> {
    let mut all = Vec::new();
    for name in ["b", "c", "a"] {
        all.push(w.post(&w.configmaps(), &configmap(name, json!({}))).await.created());
    }
    all
}

async fn a_list_has_a_kind_a_version_and_items(w: World) {
    three(&w).await;
    let list = w.get(&w.configmaps()).await.ok();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&"ConfigMapList".into(), &"v1".into()));
    assert!(revision_of(&list) > 0);
    // Items of a built-in kind omit it.
    assert_eq!((list["items"][0].get("kind"), list["items"][0].get("apiVersion")), (None, None));
}

async fn an_empty_list_has_an_empty_array(w: World) {
    let list = w.get(&w.configmaps()).await.ok();
    assert_eq!(list["items"], json!([]));
    assert!(revision_of(&list) > 0);
    assert_eq!(w.get(&w.widgets().await).await.ok()["items"], json!([]));
}

async fn items_of_a_custom_resource_list_carry_their_kind(w: World) {
    let path = w.widgets().await;
    let made = w.post(&path, &w.widget("a", json!({}))).await.created();
    let list = w.get(&path).await.ok();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&"WidgetList".into(), &made["apiVersion"]));
    assert_eq!(list["items"], json!([made]));
}

async fn a_list_is_at_least_as_new_as_the_last_write(w: World) {
    for made in three(&w).await {
        assert!(revision_of(&made) <= revision_of(&w.get(&w.configmaps()).await.ok()));
    }
    // Also after a write to another kind: the revision covers the whole store.
    let made = w.post(&w.widgets().await, &w.widget("a", json!({}))).await.created();
    assert!(revision_of(&made) <= revision_of(&w.get(&w.configmaps()).await.ok()));
}

async fn items_are_ordered_by_name(w: World) {
    three(&w).await;
    assert_eq!(names_in(&w.get(&w.configmaps()).await.ok()), ["a", "b", "c"]);
}

async fn all_namespaces_are_listed_together(w: World) {
    let other = fresh("other");
    w.make_namespace(&other).await;
    let mark = fresh("mark");
    for path in [format!("/api/v1/namespaces/{other}/configmaps"), w.configmaps()] {
        w.post(&path, &labelled("a", json!({"mark": mark}))).await.created();
    }
    let list = w.get(&format!("/api/v1/configmaps?labelSelector=mark%3D{mark}")).await.ok();
    let items = list["items"].as_array().unwrap().iter();
    let mut places: Vec<_> = items.filter_map(|item| item["metadata"]["namespace"].as_str()).collect();
    places.sort_unstable();
    assert_eq!(places, [w.ns.as_str(), other.as_str()]);
}

async fn an_absent_namespace_lists_as_empty(w: World) {
    let list = w.get("/api/v1/namespaces/no-such-namespace/configmaps").await.ok();
    assert_eq!(list["items"], json!([]));
}

async fn any_version_may_be_asked_for(w: World) {
    three(&w).await;
    // A list that may be stale must still be a list of some revision.
    let list = w.get(&format!("{}?resourceVersion=0", w.configmaps())).await.ok();
    assert!(revision_of(&list) > 0);
}

async fn a_list_not_older_than_a_version_is_at_least_that_new(w: World) {
    let last = three(&w).await.remove(2);
    for query in ["", "&resourceVersionMatch=NotOlderThan"] {
        let list = w.get(&format!("{}?resourceVersion={}{query}", w.configmaps(), rv_of(&last))).await.ok();
        assert_eq!(names_in(&list).len(), 3);
        assert!(revision_of(&list) >= revision_of(&last));
    }
}

async fn an_exact_version_shows_the_past(w: World) {
    let all = three(&w).await;
    w.delete(&w.configmap("b")).await.ok();
    let path = format!("{}?resourceVersion={}&resourceVersionMatch=Exact", w.configmaps(), rv_of(&all[1]));
    let list = w.get(&path).await.ok();
    assert_eq!((names_in(&list), rv_of(&list)), (vec!["b", "c"], rv_of(&all[1])));
}

/// A valid revision far ahead of any store.
const FUTURE: &str = "999999999999";

async fn a_version_of_the_future_times_out(w: World) {
    let path = format!("{}?resourceVersion={FUTURE}&resourceVersionMatch=NotOlderThan", w.configmaps());
    let refusal = w
        .get(&path)
        .await
        .refused(504, "Timeout")
        .says("Too large resource version")
        .cause_of("ResourceVersionTooLarge");
    assert_eq!(refusal.0["details"]["retryAfterSeconds"], 1);
}

async fn an_exact_version_of_the_future_times_out(w: World) {
    let path = format!("{}?resourceVersion={FUTURE}&resourceVersionMatch=Exact", w.configmaps());
    let answer = w.get(&path).await;
    assert_eq!(answer.status, 504, "{}", answer.text);
}

async fn a_version_match_needs_a_version(w: World) {
    let refusal =
        w.get(&format!("{}?resourceVersionMatch=Exact", w.configmaps())).await.refused(422, "Invalid");
    refusal.about("meta.k8s.io", "ListOptions", "").cause("FieldValueForbidden", "resourceVersionMatch");
}

async fn an_unknown_version_match_is_refused(w: World) {
    let path = format!("{}?resourceVersion=1&resourceVersionMatch=Roughly", w.configmaps());
    w.get(&path).await.refused(422, "Invalid").cause("FieldValueNotSupported", "resourceVersionMatch");
}

async fn an_exact_match_of_version_0_is_refused(w: World) {
    let path = format!("{}?resourceVersion=0&resourceVersionMatch=Exact", w.configmaps());
    w.get(&path).await.refused(422, "Invalid").cause("FieldValueForbidden", "resourceVersionMatch");
}

async fn a_version_that_is_no_number_is_refused(w: World) {
    let answer = w.get(&format!("{}?resourceVersion=abc", w.configmaps())).await;
    answer.refused(400, "BadRequest").says(
        "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
    );
}

async fn a_get_may_name_a_version(w: World) {
    let made = three(&w).await.remove(2);
    w.get(&format!("{}?resourceVersion={}", w.configmap("a"), rv_of(&made))).await.ok();
    // Version 0 may be served from before the write, but not for long.
    let any = format!("{}?resourceVersion=0", w.configmap("a"));
    w.eventually("any version has it", || async { w.get(&any).await.status == 200 }).await;
}
