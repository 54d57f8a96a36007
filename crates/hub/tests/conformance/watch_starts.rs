//! Where a watch starts, and how it ends.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, labelled, name_of, revision_of, rv_of, with};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        without_a_version_what_is_there_is_added_first,
        version_0_adds_what_is_there_first,
        from_a_version_only_what_follows_is_told,
        from_an_old_version_the_history_is_told,
        a_watch_resumes_from_the_version_of_any_event,
        a_version_too_old_is_an_error_in_the_stream,
        a_version_that_is_no_number_is_refused,
        initial_events_end_with_a_marked_bookmark,
        initial_events_honour_a_selector,
        initial_events_of_an_empty_collection_end_at_once,
        initial_events_can_be_declined,
        initial_events_need_a_version_match,
        a_version_match_needs_initial_events,
        a_timeout_closes_the_watch,
        bookmarks_come_before_the_timeout,
        without_being_asked_for_no_bookmark_comes,
    ]
}

const LIST: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
const END: &str = "k8s.io/initial-events-end";

async fn make(w: &World, name: &str) -> Value {
    w.post(&w.configmaps(), &configmap(name, json!({}))).await.created()
}

/// Reads the initial events, whose order is not guaranteed, and returns their names in order.
async fn added(watch: &mut crate::stream::Watch, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(name_of(&watch.sees_any("ADDED").await).to_owned());
    }
    names.sort_unstable();
    names
}

async fn without_a_version_what_is_there_is_added_first(w: World) {
    make(&w, "a").await;
    let b = make(&w, "b").await;
    let mut watch = w.watch(&w.configmaps()).await;
    assert_eq!(added(&mut watch, 2).await, ["a", "b"]);
    w.delete(&w.configmap("b")).await.ok();
    assert!(revision_of(&watch.sees("DELETED", "b").await) > revision_of(&b));
}

async fn version_0_adds_what_is_there_first(w: World) {
    make(&w, "a").await;
    let mut watch = w.watch(&format!("{}?resourceVersion=0", w.configmaps())).await;
    let event = watch.sees("ADDED", "a").await;
    assert_eq!((&event["kind"], &event["apiVersion"]), (&"ConfigMap".into(), &"v1".into()));
    make(&w, "b").await;
    watch.sees("ADDED", "b").await;
}

async fn from_a_version_only_what_follows_is_told(w: World) {
    let a = make(&w, "a").await;
    let mut watch = w.watch(&format!("{}?resourceVersion={}", w.configmaps(), rv_of(&a))).await;
    let b = make(&w, "b").await;
    assert_eq!(watch.sees("ADDED", "b").await, b);
}

async fn from_an_old_version_the_history_is_told(w: World) {
    let a = make(&w, "a").await;
    let new = w.merge(&w.configmap("a"), &json!({"data": {"k": "v"}})).await.ok();
    make(&w, "b").await;
    w.delete(&w.configmap("a")).await.ok();
    let mut watch = w.watch(&format!("{}?resourceVersion={}", w.configmaps(), rv_of(&a))).await;
    assert_eq!(watch.sees("MODIFIED", "a").await, new);
    watch.sees("ADDED", "b").await;
    watch.sees("DELETED", "a").await;
}

async fn a_watch_resumes_from_the_version_of_any_event(w: World) {
    let mut watch = w.watch_from_now(&w.configmaps()).await;
    make(&w, "a").await;
    make(&w, "b").await;
    w.delete(&w.configmap("a")).await.ok();
    make(&w, "c").await;
    let mut story = Vec::new();
    for _ in 0..4 {
        let (kind, object) = watch.next().await.unwrap();
        story.push((kind, name_of(&object).to_owned(), rv_of(&object)));
    }
    for (seen, (_, _, rv)) in story.iter().enumerate().take(3) {
        let mut again = w.watch(&format!("{}?resourceVersion={rv}", w.configmaps())).await;
        for (kind, name, rv) in &story[seen + 1..] {
            assert_eq!(&rv_of(&again.sees(kind, name).await), rv);
        }
    }
}

async fn a_version_too_old_is_an_error_in_the_stream(w: World) {
    // 200 and then an event: after HTTP 410 some clients would repeat the same request forever. A
    // custom resource has no history at the first revision of the store, because its CRD is
    // younger.
    let mut watch = w.watch(&format!("{}?resourceVersion=1", w.widgets().await)).await;
    let error = watch.sees_any("ERROR").await;
    assert_eq!(
        (&error["kind"], &error["code"], &error["reason"]),
        (&"Status".into(), &410.into(), &"Expired".into())
    );
    assert!(error["message"].as_str().unwrap().contains("too old resource version"), "{error}");
    watch.closes().await;
}

async fn a_version_that_is_no_number_is_refused(w: World) {
    let answer = w.get(&format!("{}?watch=true&resourceVersion=abc", w.configmaps())).await;
    // For a list it is a bad request.
    answer.failed(
        500,
        "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
    );
}

async fn initial_events_end_with_a_marked_bookmark(w: World) {
    make(&w, "a").await;
    let b = make(&w, "b").await;
    for start in ["", "&resourceVersion=0"] {
        let mut watch = w.watch(&format!("{}?{LIST}{start}", w.configmaps())).await;
        assert_eq!(added(&mut watch, 2).await, ["a", "b"]);
        let end = watch.sees_any("BOOKMARK").await;
        assert_eq!(end["metadata"]["annotations"][END], "true");
        assert_eq!((&end["kind"], &end["apiVersion"]), (&"ConfigMap".into(), &"v1".into()));
        assert!(revision_of(&end) >= revision_of(&b));
        w.merge(&w.configmap("a"), &json!({"data": {"k": format!("v{start}")}})).await.ok();
        watch.sees("MODIFIED", "a").await;
    }
}

async fn initial_events_honour_a_selector(w: World) {
    make(&w, "a").await;
    w.post(&w.configmaps(), &labelled("b", json!({"l": "v"}))).await.created();
    let mut watch = w.watch(&format!("{}?{LIST}&labelSelector=l", w.configmaps())).await;
    watch.sees("ADDED", "b").await;
    assert_eq!(watch.sees_any("BOOKMARK").await["metadata"]["annotations"][END], "true");
}

async fn initial_events_of_an_empty_collection_end_at_once(w: World) {
    let path = w.widgets().await;
    let mut watch = w.watch(&format!("{path}?{LIST}")).await;
    let end = watch.sees_any("BOOKMARK").await;
    assert_eq!(end["metadata"]["annotations"][END], "true");
    w.post(&path, &w.widget("a", json!({}))).await.created();
    watch.sees("ADDED", "a").await;
}

async fn initial_events_can_be_declined(w: World) {
    make(&w, "a").await;
    let declined = LIST.replace("sendInitialEvents=true", "sendInitialEvents=false");
    let mut watch = w.watch(&format!("{}?{declined}", w.configmaps())).await;
    make(&w, "b").await;
    let (mut kind, mut object) = watch.next().await.unwrap();
    while kind == "BOOKMARK" {
        (kind, object) = watch.next().await.unwrap();
    }
    assert_eq!((kind.as_str(), name_of(&object)), ("ADDED", "b"));
}

async fn initial_events_need_a_version_match(w: World) {
    let path = format!("{}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true", w.configmaps());
    let refusal = w.get(&path).await.refused(422, "Invalid");
    refusal.about("meta.k8s.io", "ListOptions", "").cause("FieldValueForbidden", "resourceVersionMatch");
}

async fn a_version_match_needs_initial_events(w: World) {
    let path = format!("{}?watch=true&resourceVersion=1&resourceVersionMatch=NotOlderThan", w.configmaps());
    w.get(&path).await.refused(422, "Invalid").cause("FieldValueForbidden", "resourceVersionMatch");
}

async fn a_timeout_closes_the_watch(w: World) {
    let start = std::time::Instant::now();
    let mut watch = w.watch(&format!("{}?timeoutSeconds=1", w.configmaps())).await;
    watch.closes().await;
    assert!((1..20).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

async fn bookmarks_come_before_the_timeout(w: World) {
    let made = make(&w, "a").await;
    let query = format!("allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion={}", rv_of(&made));
    let mut watch = w.watch(&format!("{}?{query}", w.configmaps())).await;
    let bookmark = watch.sees_any("BOOKMARK").await;
    assert!(revision_of(&bookmark) >= revision_of(&made));
    assert_eq!((&bookmark["kind"], name_of(&bookmark)), (&"ConfigMap".into(), ""));
    watch.closes().await;
}

async fn without_being_asked_for_no_bookmark_comes(w: World) {
    let made = with(make(&w, "a").await, "/data", json!({}));
    let query = format!("timeoutSeconds=4&resourceVersion={}", rv_of(&made));
    let mut watch = w.watch(&format!("{}?{query}", w.configmaps())).await;
    assert!(watch.next().await.is_none());
}
