use expect_test::{Expect, expect};

use super::*;

fn now() -> Timestamp {
    "2024-01-10T00:00:00Z".parse().unwrap()
}

/// The cells under their headings; a column of priority 1 in parentheses.
fn shown(columns: &Columns, object: &Value) -> String {
    let heading = |column: &Column| match column.priority {
        0 => column.name.clone(),
        _ => format!("({})", column.name),
    };
    let cells = columns.cells(object, now());
    columns.0.iter().zip(cells).map(|(column, cell)| format!("{}: {cell}\n", heading(column))).collect()
}

fn check_custom(columns: &Value, object: &Value, expected: &Expect) {
    expected.assert_eq(&shown(&Columns::custom(columns.as_array().unwrap()).unwrap(), object));
}

fn check_builtin(object: &Value, expected: &Expect) {
    expected.assert_eq(&shown(&Columns::builtin(object["kind"].as_str().unwrap()), object));
}

#[test]
fn a_custom_resource_without_columns_has_name_and_age() {
    let object = json!({"metadata": {"name": "a", "creationTimestamp": "2024-01-09T23:00:00Z"}});
    check_custom(
        &json!([]),
        &object,
        &expect![[r#"
        Name: "a"
        Age: "60m"
    "#]],
    );
    check_custom(
        &json!([]),
        &json!({"metadata": {"name": "a"}}),
        &expect![[r#"
        Name: "a"
        Age: null
    "#]],
    );
}

#[test]
fn cells_have_the_type_of_their_column() {
    let columns: Vec<_> = ["integer", "number", "boolean", "string", "date", "unknown"]
        .into_iter()
        .flat_map(|type_| {
            let fields = ["int", "float", "bool", "text", "date", "null", "list", "absent"];
            fields.map(|field| json!({"name": format!("{type_} {field}"), "type": type_, "jsonPath": format!(".{field}")}))
        })
        .collect();
    let object = json!({
        "metadata": {"name": "a"},
        "int": 42, "float": 3.75, "bool": true, "text": "foo", "date": "2024-01-09T11:30:00Z", "null": null,
        "list": [{"a": "<&>"}],
    });
    check_custom(
        &columns.into(),
        &object,
        &expect![[r#"
        Name: "a"
        integer int: 42
        integer float: 3
        integer bool: null
        integer text: null
        integer date: null
        integer null: null
        integer list: null
        integer absent: null
        number int: 42
        number float: 3.75
        number bool: null
        number text: null
        number date: null
        number null: null
        number list: null
        number absent: null
        boolean int: null
        boolean float: null
        boolean bool: true
        boolean text: null
        boolean date: null
        boolean null: null
        boolean list: null
        boolean absent: null
        string int: "42"
        string float: "3.75"
        string bool: "true"
        string text: "foo"
        string date: "2024-01-09T11:30:00Z"
        string null: "<no value>"
        string list: "[{\"a\":\"\\u003c\\u0026\\u003e\"}]"
        string absent: null
        date int: null
        date float: null
        date bool: null
        date text: "<invalid>"
        date date: "12h"
        date null: null
        date list: null
        date absent: null
        unknown int: null
        unknown float: null
        unknown bool: null
        unknown text: null
        unknown date: null
        unknown null: null
        unknown list: null
        unknown absent: null
    "#]],
    );
}

#[test]
fn floats_in_text_are_those_of_go() {
    let floats = [5.0, 3.75, -0.5, 100_000.0, 1_000_000.0, 1_234_567.5, 0.0001, 0.000_01, 1e100];
    let shown = floats.map(|float| printed(&json!(float))).join(" ");
    expect!["5 3.75 -0.5 100000 1e+06 1.2345675e+06 0.0001 1e-05 1e+100"].assert_eq(&shown);
}

#[test]
fn only_the_first_match_is_shown() {
    let columns = json!([
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "All", "type": "string", "jsonPath": ".status.conditions[*].type"},
    ]);
    let conditions = json!([{"type": "Fresh", "status": "False"}, {"type": "Ready", "status": "True"}]);
    let object = json!({"metadata": {"name": "a"}, "status": {"conditions": conditions}});
    check_custom(
        &columns,
        &object,
        &expect![[r#"
        Name: "a"
        Ready: "True"
        All: "Fresh"
    "#]],
    );
}

#[test]
fn an_unreadable_path_is_refused_with_its_reason() {
    let error = Columns::custom(&[json!({"name": "X", "type": "string", "jsonPath": ".a["})]).unwrap_err();
    expect![[r#"unrecognized column definition ".a[": unterminated array"#]].assert_eq(&error);
}

#[test]
fn definitions_say_everything_about_a_column() {
    let columns = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "format": "int32", "priority": 1},
        {"name": "Note", "type": "string", "jsonPath": ".spec.note", "description": "What is to be noted."},
    ]);
    let definitions = Columns::custom(columns.as_array().unwrap()).unwrap().definitions();
    expect![[r#"
        [
          {
            "description": "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
            "format": "name",
            "name": "Name",
            "priority": 0,
            "type": "string"
          },
          {
            "description": "Custom resource definition column (in JSONPath format): .spec.size",
            "format": "int32",
            "name": "Size",
            "priority": 1,
            "type": "integer"
          },
          {
            "description": "What is to be noted.",
            "format": "",
            "name": "Note",
            "priority": 0,
            "type": "string"
          }
        ]"#]].assert_eq(&format!("{definitions:#}"));
}

#[test]
fn namespaces_config_maps_and_secrets() {
    let metadata = json!({"name": "a", "creationTimestamp": "2024-01-08T00:00:00Z"});
    check_builtin(
        &json!({"kind": "Namespace", "metadata": metadata, "status": {"phase": "Active"}}),
        &expect![[r#"
            Name: "a"
            Status: "Active"
            Age: "2d"
        "#]],
    );
    check_builtin(
        &json!({"kind": "ConfigMap", "metadata": metadata, "data": {"a": "1", "b": "2"}, "binaryData": {"c": "AA=="}}),
        &expect![[r#"
            Name: "a"
            Data: 3
            Age: "2d"
        "#]],
    );
    check_builtin(
        &json!({"kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {"a": "AA=="}}),
        &expect![[r#"
            Name: "a"
            Type: "Opaque"
            Data: 1
            Age: "2d"
        "#]],
    );
    check_builtin(
        &json!({"kind": "Namespace"}),
        &expect![[r#"
        Name: ""
        Status: ""
        Age: "<unknown>"
    "#]],
    );
}

#[test]
fn leases_and_controller_revisions() {
    check_builtin(
        &json!({"kind": "Lease", "metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}),
        &expect![[r#"
            Name: "a"
            Holder: "me"
            Age: "<unknown>"
        "#]],
    );
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true});
    check_builtin(
        &json!({"kind": "ControllerRevision", "metadata": {"name": "a", "ownerReferences": [owner]}, "revision": 3}),
        &expect![[r#"
            Name: "a"
            Controller: "daemonset.apps/d"
            Revision: 3
            Age: "<unknown>"
        "#]],
    );
    check_builtin(
        &json!({"kind": "ControllerRevision", "metadata": {"name": "a"}}),
        &expect![[r#"
        Name: "a"
        Controller: "<none>"
        Revision: 0
        Age: "<unknown>"
    "#]],
    );
}

#[test]
fn definitions_and_roles_show_when_they_were_created() {
    let metadata = json!({"name": "a", "creationTimestamp": "2024-01-08T01:00:00+01:00"});
    check_builtin(
        &json!({"kind": "CustomResourceDefinition", "metadata": metadata}),
        &expect![[r#"
        Name: "a"
        Created At: "2024-01-08T00:00:00Z"
    "#]],
    );
    check_builtin(
        &json!({"kind": "Role", "metadata": {"name": "a"}}),
        &expect![[r#"
        Name: "a"
        Created At: "0001-01-01T00:00:00Z"
    "#]],
    );
    check_builtin(
        &json!({"kind": "ServiceAccount", "metadata": metadata}),
        &expect![[r#"
        Name: "a"
        Age: "2d"
    "#]],
    );
}

#[test]
fn role_bindings_show_their_subjects() {
    let subjects = json!([
        {"kind": "User", "name": "u1"}, {"kind": "User", "name": "u2"}, {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "namespace": "n", "name": "s"},
    ]);
    let role = json!({"kind": "ClusterRole", "name": "view"});
    check_builtin(
        &json!({"kind": "RoleBinding", "metadata": {"name": "a"}, "roleRef": role, "subjects": subjects}),
        &expect![[r#"
            Name: "a"
            Role: "ClusterRole/view"
            Age: "<unknown>"
            (Users): "u1, u2"
            (Groups): "g"
            (ServiceAccounts): "n/s"
        "#]],
    );
}

#[test]
fn events_of_both_apis_show_the_same() {
    let object = json!({"kind": "ConfigMap", "name": "c", "fieldPath": "data"});
    check_builtin(
        &json!({
            "kind": "Event", "metadata": {"name": "e"}, "involvedObject": object, "type": "Warning", "reason": "Bad",
            "message": " it broke\n", "firstTimestamp": "2024-01-09T22:00:00Z", "lastTimestamp": "2024-01-09T23:59:00Z",
            "count": 4, "source": {"component": "hub", "host": "h"},
        }),
        &expect![[r#"
            Last Seen: "60s"
            Type: "Warning"
            Reason: "Bad"
            Object: "configmap/c"
            (Subobject): "data"
            (Source): "hub, h"
            Message: "it broke"
            (First Seen): "120m"
            (Count): 4
            (Name): "e"
        "#]],
    );
    check_builtin(
        &json!({
            "kind": "Event", "metadata": {"name": "e"}, "regarding": object, "type": "Normal", "reason": "Good",
            "note": "it works", "eventTime": "2024-01-09T22:00:00.000000Z", "reportingController": "hub",
            "reportingInstance": "hub-0",
        }),
        &expect![[r#"
            Last Seen: "120m"
            Type: "Normal"
            Reason: "Good"
            Object: "configmap/c"
            (Subobject): "data"
            (Source): "hub, hub-0"
            Message: "it works"
            (First Seen): "120m"
            (Count): 1
            (Name): "e"
        "#]],
    );
    check_builtin(
        &json!({
            "kind": "Event", "metadata": {"name": "e"}, "eventTime": "2024-01-09T22:00:00.000000Z",
            "series": {"count": 9, "lastObservedTime": "2024-01-09T23:59:30.000000Z"}, "involvedObject": {"kind": "Hub"},
        }),
        &expect![[r#"
            Last Seen: "30s"
            Type: ""
            Reason: ""
            Object: "hub"
            (Subobject): ""
            (Source): ""
            Message: ""
            (First Seen): "120m"
            (Count): 9
            (Name): "e"
        "#]],
    );
}

#[test]
fn rows_carry_what_was_asked_for() {
    let object =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "uid": "u"}, "x": 1});
    let columns = Columns::builtin("ServiceAccount");
    let carried = |include| row(&columns, &object, now(), include)["object"].clone();
    assert_eq!(carried(IncludeObject::None), Value::Null);
    assert_eq!(carried(IncludeObject::Object), object);
    assert_eq!(
        carried(IncludeObject::default()),
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a", "uid": "u"}}),
    );
}

#[test]
fn a_table_has_null_definitions_after_the_first() {
    let row = row(&Columns::builtin("Hat"), &json!({"metadata": {"name": "a"}}), now(), IncludeObject::None);
    let table = table(json!({"resourceVersion": "7"}), vec![row], None);
    expect![[r#"
        {
          "apiVersion": "meta.k8s.io/v1",
          "columnDefinitions": null,
          "kind": "Table",
          "metadata": {
            "resourceVersion": "7"
          },
          "rows": [
            {
              "cells": [
                "a",
                "<unknown>"
              ],
              "object": null
            }
          ]
        }"#]]
    .assert_eq(&format!("{table:#}"));
}
