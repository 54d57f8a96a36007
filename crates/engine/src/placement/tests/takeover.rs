//! Decisions that somebody else left.

use expect_test::expect;
use serde_json::{Value, json};

use super::hub::Hub;
use super::rewriting::{names, settle};

/// As they are on a page of the only group.
fn labels() -> Value {
    json!({
        "cluster.open-cluster-management.io/placement": "p",
        "cluster.open-cluster-management.io/decision-group-index": "0",
        "cluster.open-cluster-management.io/decision-group-name": "",
    })
}

#[test]
fn what_somebody_else_wrote_under_the_label_is_replaced() {
    let mut hub = Hub::new();
    let label = json!({"cluster.open-cluster-management.io/placement": "p"});
    hub.put("by-hand", &label, "uid-of-p", &["c000", "c009"]);
    hub.put("p-decision-1", &label, "uid-of-p", &["c001"]);
    settle(
        &mut hub,
        &[("", names(0..3))],
        expect![[r#"
            announce 5
            create p-decision-2 of group 0 "": c000 c001 c002
            delete by-hand
            delete p-decision-1
            status 3
              group 0 "": 3 in p-decision-2
        "#]],
    );
}

#[test]
fn decisions_of_a_placement_that_was_there_before_are_not_taken_over() {
    let mut hub = Hub::new();
    hub.put("p-decision-1", &labels(), "uid-of-another", &["c000"]);
    settle(
        &mut hub,
        &[("", names(0..1))],
        expect![[r#"
            announce 2
            create p-decision-2 of group 0 "": c000
            delete p-decision-1
            status 1
              group 0 "": 1 in p-decision-2
        "#]],
    );
}

#[test]
fn decisions_as_ocm_leaves_them_are_taken_over_without_a_write_of_them() {
    let mut hub = Hub::new();
    hub.put("p-decision-1", &labels(), "uid-of-p", &["c000", "c001"]);
    settle(
        &mut hub,
        &[("", names(0..2))],
        expect![[r#"
            status 2
              group 0 "": 2 in p-decision-1
        "#]],
    );
}

#[test]
fn a_decision_that_is_going_is_left_to_go() {
    let mut hub = Hub::new();
    hub.put("p-decision-1", &labels(), "uid-of-p", &["c000"]);
    let going = hub.decisions.get_mut("p-decision-1").unwrap();
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    settle(
        &mut hub,
        &[("", names(0..1))],
        expect![[r#"
        create p-decision-2 of group 0 "": c000
        status 1
          group 0 "": 1 in p-decision-2
    "#]],
    );
}

#[test]
fn a_page_that_somebody_overfilled_is_mended() {
    let mut hub = Hub::new();
    let many = names(0..120);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    hub.put("p-decision-1", &labels(), "uid-of-p", &many);
    settle(
        &mut hub,
        &[("", names(0..120))],
        expect![[r#"
        announce 121
        create p-decision-2 of group 0 "": c100 … c119, 20
        fill p-decision-1: c000 … c099, 100
        status 120
          group 0 "": 120 in p-decision-1 p-decision-2
    "#]],
    );
}
