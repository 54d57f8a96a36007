//! Tables: what `kubectl get` prints.

use serde_json::{Value, json};

use crate::check::{Check, checks};
use crate::objects::{configmap, labelled, name_of, rv_of};
use crate::world::World;

pub fn checks() -> Vec<Check> {
    checks![
        a_list_as_a_table_has_columns_and_rows,
        a_get_as_a_table_has_one_row,
        rows_carry_metadata_unless_told_otherwise,
        rows_can_carry_the_whole_object,
        rows_can_carry_nothing,
        an_unknown_include_object_is_refused,
        a_custom_resource_prints_the_columns_of_its_crd,
        a_custom_resource_without_columns_prints_name_and_age,
        a_missing_value_is_null,
        a_table_is_paged_like_a_list,
        a_watch_can_tell_tables,
        an_error_is_told_as_a_status_not_as_a_table,
        kubectl_is_served_a_table_by_its_own_accept_header,
        namespaces_print_their_phase,
    ]
}

pub const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn columns(table: &Value) -> Vec<&str> {
    table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect()
}

async fn configmaps(w: &World) {
    w.post(&w.configmaps(), &configmap("a", json!({"k": "v", "l": "w"}))).await.created();
    w.post(&w.configmaps(), &labelled("b", json!({"l": "v"}))).await.created();
}

async fn a_list_as_a_table_has_columns_and_rows(w: World) {
    configmaps(&w).await;
    let table = w.get_as(&w.configmaps(), TABLE).await.ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&"Table".into(), &"meta.k8s.io/v1".into()));
    assert_eq!(columns(&table), ["Name", "Data", "Age"]);
    for key in ["name", "type", "format", "description", "priority"] {
        assert!(!table["columnDefinitions"][0][key].is_null(), "{key}");
    }
    let cells: Vec<_> =
        table["rows"].as_array().unwrap().iter().map(|row| (&row["cells"][0], &row["cells"][1])).collect();
    assert_eq!(cells, [(&json!("a"), &json!(2)), (&json!("b"), &json!(0))]);
    rv_of(&table);
}

async fn a_get_as_a_table_has_one_row(w: World) {
    configmaps(&w).await;
    let table = w.get_as(&w.configmap("a"), TABLE).await.ok();
    assert_eq!((&table["kind"], table["rows"].as_array().map(Vec::len)), (&"Table".into(), Some(1)));
    assert_eq!(table["rows"][0]["cells"][0], "a");
    rv_of(&table);
}

async fn rows_carry_metadata_unless_told_otherwise(w: World) {
    configmaps(&w).await;
    for query in ["", "?includeObject=Metadata"] {
        let table = w.get_as(&format!("{}{query}", w.configmaps()), TABLE).await.ok();
        let object = &table["rows"][1]["object"];
        assert_eq!(
            (&object["kind"], &object["apiVersion"]),
            (&"PartialObjectMetadata".into(), &"meta.k8s.io/v1".into())
        );
        assert_eq!((name_of(object), &object["metadata"]["labels"]), ("b", &json!({"l": "v"})));
    }
}

async fn rows_can_carry_the_whole_object(w: World) {
    configmaps(&w).await;
    let table = w.get_as(&format!("{}?includeObject=Object", w.configmaps()), TABLE).await.ok();
    let object = &table["rows"][0]["object"];
    assert_eq!((&object["kind"], &object["data"]["k"]), (&"ConfigMap".into(), &"v".into()));
}

async fn rows_can_carry_nothing(w: World) {
    configmaps(&w).await;
    let table = w.get_as(&format!("{}?includeObject=None", w.configmaps()), TABLE).await.ok();
    assert_eq!(table["rows"][0]["object"], Value::Null);
}

async fn an_unknown_include_object_is_refused(w: World) {
    configmaps(&w).await;
    w.get_as(&format!("{}?includeObject=Half", w.configmaps()), TABLE).await.refused(400, "BadRequest");
}

async fn a_custom_resource_prints_the_columns_of_its_crd(w: World) {
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({"size": 3, "color": "red"}))).await.created();
    let table = w.get_as(&path, TABLE).await.ok();
    assert_eq!(columns(&table), ["Name", "Size", "Color", "Phase", "Age"]);
    assert_eq!(
        (&table["columnDefinitions"][1]["type"], &table["columnDefinitions"][2]["priority"]),
        (&"integer".into(), &1.into())
    );
    let cells = &table["rows"][0]["cells"];
    assert_eq!((&cells[0], &cells[1], &cells[2]), (&"a".into(), &3.into(), &"red".into()));
    // An age in human-readable form.
    assert!(cells[4].as_str().is_some_and(|age| age.ends_with('s')), "{cells}");
}

async fn a_custom_resource_without_columns_prints_name_and_age(w: World) {
    let crd = crate::crds::crd(
        &format!("{}.conformance.test", crate::world::fresh("nocol")),
        crate::crds::simple_schema(),
    );
    let path = w.serve_crd(&crd).await;
    let table = w.get_as(&path, TABLE).await.ok();
    assert_eq!((columns(&table), &table["rows"]), (vec!["Name", "Age"], &json!([])));
}

async fn a_missing_value_is_null(w: World) {
    let path = w.widgets().await;
    w.post(&path, &w.widget("a", json!({}))).await.created();
    let cells = w.get_as(&path, TABLE).await.ok()["rows"][0]["cells"].clone();
    assert_eq!((&cells[1], &cells[3]), (&Value::Null, &Value::Null));
}

async fn a_table_is_paged_like_a_list(w: World) {
    configmaps(&w).await;
    let table = w.get_as(&format!("{}?limit=1", w.configmaps()), TABLE).await.ok();
    let token = table["metadata"]["continue"].as_str().unwrap();
    assert_eq!(
        (table["rows"].as_array().map(Vec::len), &table["metadata"]["remainingItemCount"]),
        (Some(1), &1.into())
    );
    let rest = w.get_as(&format!("{}?limit=1&continue={token}", w.configmaps()), TABLE).await.ok();
    assert_eq!(rest["rows"][0]["cells"][0], "b");
}

async fn a_watch_can_tell_tables(w: World) {
    configmaps(&w).await;
    let mut watch = w.watch_as(&format!("{}?fieldSelector=metadata.name=a", w.configmaps()), TABLE).await;
    let first = watch.sees_any("ADDED").await;
    assert_eq!((&first["kind"], &first["rows"][0]["cells"][0]), (&"Table".into(), &"a".into()));
    assert_eq!(columns(&first), ["Name", "Data", "Age"]);
    w.merge(&w.configmap("a"), &json!({"data": {"k": null}})).await.ok();
    // Only the first event repeats the columns.
    let second = watch.sees_any("MODIFIED").await;
    assert!(second["columnDefinitions"].as_array().is_none_or(Vec::is_empty), "{second}");
    assert_eq!(second["rows"][0]["cells"][1], 1);
}

async fn an_error_is_told_as_a_status_not_as_a_table(w: World) {
    w.get_as(&w.configmap("absent"), TABLE).await.refused(404, "NotFound");
}

async fn kubectl_is_served_a_table_by_its_own_accept_header(w: World) {
    configmaps(&w).await;
    let accept = format!("{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json");
    let answer = w.get_as(&w.configmaps(), &accept).await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.ok()["kind"], "Table");
}

async fn namespaces_print_their_phase(w: World) {
    let table = w.get_as(&format!("/api/v1/namespaces/{}", w.ns), TABLE).await.ok();
    assert_eq!(columns(&table), ["Name", "Status", "Age"]);
    assert_eq!(table["rows"][0]["cells"][1], "Active");
}
