//! Lists in pages: all pages show the same revision.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, labelled, names_in, rv_of};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        pages_add_up_to_the_whole_list,
        the_remaining_items_are_counted,
        with_a_selector_the_remaining_items_are_not_counted,
        a_selector_fills_its_pages,
        all_pages_show_the_moment_of_the_first,
        custom_resources_are_paged_too,
        a_limit_that_is_not_reached_has_no_continuation,
        a_token_that_the_server_never_gave_is_refused,
        a_token_with_a_version_is_refused,
        a_token_with_a_version_match_is_refused,
        a_limit_that_is_no_number_is_refused,
        the_second_page_may_have_another_size,
    ]
}

async fn five(w: &World) {
    for name in ["a", "b", "c", "d", "e"] {
        w.post(&w.configmaps(), &labelled(name, json!({"vowel": (name == "a" || name == "e").to_string()})))
            .await
            .created();
    }
}

fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

async fn pages_add_up_to_the_whole_list(w: World) {
    five(&w).await;
    let one = w.get(&format!("{}?limit=2", w.configmaps())).await.ok();
    let two = w.get(&format!("{}?limit=2&continue={}", w.configmaps(), token(&one))).await.ok();
    let three = w.get(&format!("{}?limit=2&continue={}", w.configmaps(), token(&two))).await.ok();
    let pages = [names_in(&one), names_in(&two), names_in(&three)];
    assert_eq!(pages, [vec!["a", "b"], vec!["c", "d"], vec!["e"]]);
    assert_eq!(token(&three), "");
}

async fn the_remaining_items_are_counted(w: World) {
    five(&w).await;
    let one = w.get(&format!("{}?limit=2", w.configmaps())).await.ok();
    assert_eq!(one["metadata"]["remainingItemCount"], 3);
    let two = w.get(&format!("{}?limit=2&continue={}", w.configmaps(), token(&one))).await.ok();
    assert_eq!(two["metadata"]["remainingItemCount"], 1);
    let three = w.get(&format!("{}?limit=2&continue={}", w.configmaps(), token(&two))).await.ok();
    assert_eq!(three["metadata"].get("remainingItemCount"), None);
}

async fn with_a_selector_the_remaining_items_are_not_counted(w: World) {
    five(&w).await;
    let list = w.get(&format!("{}?limit=1&labelSelector=vowel%3Dtrue", w.configmaps())).await.ok();
    assert_eq!(list["metadata"].get("remainingItemCount"), None);
    assert_ne!(token(&list), "");
}

async fn a_selector_fills_its_pages(w: World) {
    five(&w).await;
    let path = format!("{}?limit=1&labelSelector=vowel%3Dtrue", w.configmaps());
    let one = w.get(&path).await.ok();
    let two = w.get(&format!("{path}&continue={}", token(&one))).await.ok();
    assert_eq!((names_in(&one), names_in(&two)), (vec!["a"], vec!["e"]));
}

async fn all_pages_show_the_moment_of_the_first(w: World) {
    five(&w).await;
    let one = w.get(&format!("{}?limit=2", w.configmaps())).await.ok();
    w.delete(&w.configmap("d")).await.ok();
    w.post(&w.configmaps(), &configmap("cc", json!({}))).await.created();
    w.merge(&w.configmap("e"), &json!({"data": {"k": "changed"}})).await.ok();
    let rest = w.get(&format!("{}?continue={}", w.configmaps(), token(&one))).await.ok();
    assert_eq!(names_in(&rest), ["c", "d", "e"]);
    assert_eq!((rest["items"][2].get("data"), rv_of(&rest)), (None, rv_of(&one)));
}

async fn custom_resources_are_paged_too(w: World) {
    let path = w.widgets().await;
    for name in ["a", "b", "c"] {
        w.post(&path, &w.widget(name, json!({}))).await.created();
    }
    let one = w.get(&format!("{path}?limit=2")).await.ok();
    w.delete(&format!("{path}/c")).await.ok();
    let two = w.get(&format!("{path}?limit=2&continue={}", token(&one))).await.ok();
    assert_eq!((names_in(&one), names_in(&two)), (vec!["a", "b"], vec!["c"]));
}

async fn a_limit_that_is_not_reached_has_no_continuation(w: World) {
    five(&w).await;
    for limit in [5, 500] {
        let list = w.get(&format!("{}?limit={limit}", w.configmaps())).await.ok();
        assert_eq!((names_in(&list).len(), token(&list)), (5, ""));
    }
}

async fn a_token_that_the_server_never_gave_is_refused(w: World) {
    w.get(&format!("{}?limit=2&continue=garbage", w.configmaps()))
        .await
        .refused(400, "BadRequest")
        .says("continue");
}

async fn a_token_with_a_version_is_refused(w: World) {
    five(&w).await;
    let one = w.get(&format!("{}?limit=2", w.configmaps())).await.ok();
    let path = format!("{}?limit=2&continue={}&resourceVersion={}", w.configmaps(), token(&one), rv_of(&one));
    w.get(&path).await.refused(400, "BadRequest").says("resource version");
}

async fn a_token_with_a_version_match_is_refused(w: World) {
    five(&w).await;
    let one = w.get(&format!("{}?limit=2", w.configmaps())).await.ok();
    let path = format!(
        "{}?continue={}&resourceVersion={}&resourceVersionMatch=Exact",
        w.configmaps(),
        token(&one),
        rv_of(&one)
    );
    w.get(&path).await.refused(422, "Invalid").cause("FieldValueForbidden", "resourceVersionMatch");
}

async fn a_limit_that_is_no_number_is_refused(w: World) {
    w.get(&format!("{}?limit=many", w.configmaps())).await.refused(400, "BadRequest");
}

async fn the_second_page_may_have_another_size(w: World) {
    five(&w).await;
    let one = w.get(&format!("{}?limit=1", w.configmaps())).await.ok();
    let two = w.get(&format!("{}?limit=3&continue={}", w.configmaps(), token(&one))).await.ok();
    assert_eq!(names_in(&two), ["b", "c", "d"]);
}
