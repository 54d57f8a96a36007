//! Label and field selectors.

use serde_json::json;

use crate::check::{Check, checks};
use crate::objects::{labelled, names_in};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        a_label_equals_a_value,
        a_label_differs_from_a_value_or_is_absent,
        a_label_is_one_of_a_set,
        a_label_is_none_of_a_set,
        a_label_exists_or_does_not,
        a_label_is_greater_or_less_than_a_number,
        terms_are_joined_by_and,
        an_empty_value_can_be_selected,
        an_empty_selector_selects_all,
        a_malformed_label_selector_is_refused,
        the_name_field_selects,
        the_namespace_field_selects,
        a_field_term_may_be_negated,
        custom_resources_select_by_name_too,
        a_custom_resource_selects_by_the_fields_its_crd_names,
        an_unknown_field_is_refused,
        an_unknown_field_of_a_custom_resource_is_refused,
        a_malformed_field_selector_is_refused,
    ]
}

/// a: color=red size=1 · b: color=blue size=2 · c: nothing · d: color=""
async fn four(w: &World) {
    for (name, labels) in [
        ("a", json!({"color": "red", "size": "1"})),
        ("b", json!({"color": "blue", "size": "2"})),
        ("c", json!({})),
        ("d", json!({"color": ""})),
    ] {
        w.post(&w.configmaps(), &labelled(name, labels)).await.created();
    }
}

/// These selectors, already escaped for a query, select these names.
async fn select(w: &World, key: &str, table: &[(&str, &[&str])]) {
    four(w).await;
    for (selector, names) in table {
        let list = w.get(&format!("{}?{key}={selector}", w.configmaps())).await.ok();
        assert_eq!(names_in(&list), *names, "{selector}");
    }
}

async fn labels(w: &World, table: &[(&str, &[&str])]) {
    select(w, "labelSelector", table).await;
}

async fn a_label_equals_a_value(w: World) {
    labels(&w, &[("color%3Dred", &["a"]), ("color%3D%3Dred", &["a"]), ("color%3Dgreen", &[])]).await;
}

async fn a_label_differs_from_a_value_or_is_absent(w: World) {
    labels(&w, &[("color!%3Dred", &["b", "c", "d"])]).await;
}

async fn a_label_is_one_of_a_set(w: World) {
    labels(&w, &[("color%20in%20(red,blue)", &["a", "b"]), ("color%20in%20(green)", &[])]).await;
}

async fn a_label_is_none_of_a_set(w: World) {
    labels(&w, &[("color%20notin%20(red,blue)", &["c", "d"])]).await;
}

async fn a_label_exists_or_does_not(w: World) {
    labels(&w, &[("color", &["a", "b", "d"]), ("!color", &["c"])]).await;
}

async fn a_label_is_greater_or_less_than_a_number(w: World) {
    labels(&w, &[("size%3E1", &["b"]), ("size%3C2", &["a"])]).await;
}

async fn terms_are_joined_by_and(w: World) {
    labels(&w, &[("color,size!%3D1", &["b", "d"]), ("color%3Dred,size%3D2", &[])]).await;
}

async fn an_empty_value_can_be_selected(w: World) {
    labels(&w, &[("color%3D", &["d"]), ("color%20in%20(,red)", &["a", "d"])]).await;
}

async fn an_empty_selector_selects_all(w: World) {
    labels(&w, &[("", &["a", "b", "c", "d"])]).await;
}

async fn a_malformed_label_selector_is_refused(w: World) {
    for selector in ["%3D%3D", "color%20in%20red", "color%20in%20(", "a%20b"] {
        w.get(&format!("{}?labelSelector={selector}", w.configmaps())).await.refused(400, "BadRequest");
    }
}

async fn the_name_field_selects(w: World) {
    select(&w, "fieldSelector", &[("metadata.name%3Da", &["a"]), ("metadata.name%3D%3Db", &["b"])]).await;
}

async fn the_namespace_field_selects(w: World) {
    let here = format!("metadata.namespace%3D{}", w.ns);
    select(&w, "fieldSelector", &[(&here, &["a", "b", "c", "d"]), ("metadata.namespace%3Delsewhere", &[])])
        .await;
    let list = w.get(&format!("/api/v1/configmaps?fieldSelector={here},metadata.name%3Dc")).await.ok();
    assert_eq!(names_in(&list), ["c"]);
}

async fn a_field_term_may_be_negated(w: World) {
    select(&w, "fieldSelector", &[("metadata.name!%3Da,metadata.name!%3Db", &["c", "d"])]).await;
}

async fn custom_resources_select_by_name_too(w: World) {
    let path = w.widgets().await;
    for name in ["a", "b"] {
        w.post(&path, &w.widget(name, json!({}))).await.created();
    }
    let list =
        w.get(&format!("{path}?fieldSelector=metadata.name%3Db,metadata.namespace%3D{}", w.ns)).await.ok();
    assert_eq!(names_in(&list), ["b"]);
}

async fn a_custom_resource_selects_by_the_fields_its_crd_names(w: World) {
    let path = w.widgets().await;
    for (name, color) in [("a", "red"), ("b", "blue")] {
        w.post(&path, &w.widget(name, json!({"color": color}))).await.created();
    }
    assert_eq!(names_in(&w.get(&format!("{path}?fieldSelector=spec.color%3Dblue")).await.ok()), ["b"]);
}

async fn an_unknown_field_is_refused(w: World) {
    let refusal =
        w.get(&format!("{}?fieldSelector=data.k%3Dv", w.configmaps())).await.refused(400, "BadRequest");
    refusal.says("\"data.k\" is not a known field selector");
}

async fn an_unknown_field_of_a_custom_resource_is_refused(w: World) {
    let path = format!("{}?fieldSelector=spec.size%3D1", w.widgets().await);
    w.get(&path).await.refused(400, "BadRequest").says("field label not supported: spec.size");
}

async fn a_malformed_field_selector_is_refused(w: World) {
    w.get(&format!("{}?fieldSelector=metadata.name", w.configmaps())).await.refused(400, "BadRequest");
}
