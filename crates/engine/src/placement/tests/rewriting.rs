//! Which objects hold a choice, and in which order they are written.

use expect_test::{Expect, expect};
use serde_json::json;

use super::hub::{Hub, chosen};
use super::story::World;

pub(super) fn names(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("c{number:03}")).collect()
}

#[track_caller]
pub(super) fn settle(hub: &mut Hub, groups: &[(&str, Vec<String>)], expected: Expect) {
    expected.assert_eq(&hub.settle(&chosen(groups)));
    assert_eq!(hub.selection().in_motion(), None);
}

#[test]
fn a_choice_of_nobody_is_one_empty_decision() {
    settle(
        &mut Hub::new(),
        &[("", vec![])],
        expect![[r#"
            create p-decision-1 of group 0 "": nobody
            status 0
              group 0 "": 0 in p-decision-1
        "#]],
    );
}

#[test]
fn a_page_is_one_write_and_needs_no_announcement() {
    let mut hub = Hub::new();
    settle(
        &mut hub,
        &[("", names(0..3))],
        expect![[r#"
            create p-decision-1 of group 0 "": c000 c001 c002
            status 3
              group 0 "": 3 in p-decision-1
        "#]],
    );
    settle(
        &mut hub,
        &[("", names(1..4))],
        expect![[r#"
            fill p-decision-1: c001 c002 c003
        "#]],
    );
}

#[test]
fn a_hundred_clusters_are_a_page_and_the_count_goes_first() {
    settle(
        &mut Hub::new(),
        &[("", names(0..250))],
        expect![[r#"
            announce 250
            create p-decision-1 of group 0 "": c000 … c099, 100
            create p-decision-2 of group 0 "": c100 … c199, 100
            create p-decision-3 of group 0 "": c200 … c249, 50
            status 250
              group 0 "": 250 in p-decision-1 p-decision-2 p-decision-3
        "#]],
    );
}

#[test]
fn a_cluster_that_comes_or_goes_is_one_page_of_many() {
    let mut hub = Hub::new();
    hub.settle(&chosen(&[("", names(1..250))]));
    settle(
        &mut hub,
        &[("", names(0..250))],
        expect![[r#"
            fill p-decision-3: c000 … c249, 50
            status 250
              group 0 "": 250 in p-decision-1 p-decision-2 p-decision-3
        "#]],
    );
    settle(
        &mut hub,
        &[("", names((0..250).filter(|number| *number != 120)))],
        expect![[r#"
            fill p-decision-2: c101 … c200, 99
            status 249
              group 0 "": 249 in p-decision-1 p-decision-2 p-decision-3
        "#]],
    );
}

#[test]
fn clusters_that_only_go_need_no_announcement() {
    let mut hub = Hub::new();
    hub.settle(&chosen(&[("", names(0..250))]));
    settle(
        &mut hub,
        &[("", names((0..250).filter(|number| number % 100 > 0)))],
        expect![[r#"
            fill p-decision-1: c001 … c099, 99
            fill p-decision-2: c101 … c199, 99
            fill p-decision-3: c201 … c249, 49
            status 247
              group 0 "": 247 in p-decision-1 p-decision-2 p-decision-3
        "#]],
    );
}

#[test]
fn pages_that_are_not_needed_any_more_go_last() {
    let mut hub = Hub::new();
    hub.settle(&chosen(&[("", names(0..250))]));
    settle(
        &mut hub,
        &[("", names((0..250).filter(|number| number % 2 == 0)))],
        expect![[r#"
            fill p-decision-1: c000 … c248, 75
            fill p-decision-2: c100 … c198, 50
            delete p-decision-3
            status 125
              group 0 "": 125 in p-decision-1 p-decision-2
        "#]],
    );
    settle(
        &mut hub,
        &[("", vec![])],
        expect![[r#"
            fill p-decision-1: nobody
            delete p-decision-2
            status 0
              group 0 "": 0 in p-decision-1
        "#]],
    );
}

#[test]
fn a_swap_on_two_pages_is_announced_with_a_count_that_no_state_has() {
    let mut hub = Hub::new();
    hub.settle(&chosen(&[("", names(0..200))]));
    let swapped = names((0..202).filter(|number| ![50, 150].contains(number)));
    settle(
        &mut hub,
        &[("", swapped)],
        expect![[r#"
            announce 203
            fill p-decision-1: c000 … c200, 100
            fill p-decision-2: c100 … c201, 100
            status 200
              group 0 "": 200 in p-decision-1 p-decision-2
        "#]],
    );
}

#[test]
fn groups_have_pages_of_their_own_and_who_moves_is_written_where_it_goes_first() {
    let mut hub = Hub::new();
    settle(
        &mut hub,
        &[("canary", names(0..2)), ("", names(2..5))],
        expect![[r#"
            announce 5
            create p-decision-1 of group 0 "canary": c000 c001
            create p-decision-2 of group 1 "": c002 c003 c004
            status 5
              group 0 "canary": 2 in p-decision-1
              group 1 "": 3 in p-decision-2
        "#]],
    );
    settle(
        &mut hub,
        &[("canary", names(0..3)), ("", names(3..5))],
        expect![[r#"
            announce 6
            fill p-decision-1: c000 c001 c002
            fill p-decision-2: c003 c004
            status 5
              group 0 "canary": 3 in p-decision-1
              group 1 "": 2 in p-decision-2
        "#]],
    );
    settle(
        &mut hub,
        &[("canary", names(0..1)), ("", names(1..5))],
        expect![[r#"
            announce 6
            fill p-decision-2: c001 c002 c003 c004
            fill p-decision-1: c000
            status 5
              group 0 "canary": 1 in p-decision-1
              group 1 "": 4 in p-decision-2
        "#]],
    );
    settle(
        &mut hub,
        &[("", names(0..5))],
        expect![[r#"
            announce 6
            create p-decision-3 of group 0 "": c000 … c004, 5
            delete p-decision-1
            delete p-decision-2
            status 5
              group 0 "": 5 in p-decision-3
        "#]],
    );
}

#[test]
fn groups_that_shift_are_written_from_the_end_that_has_room() {
    let mut hub = Hub::new();
    let groups = |from: usize, to: usize| -> Vec<(&str, Vec<String>)> {
        names(from..to).chunks(2).map(|part| ("", part.to_vec())).collect()
    };
    hub.settle(&chosen(&groups(1, 7)));
    settle(
        &mut hub,
        &groups(0, 7),
        expect![[r#"
            announce 7
            create p-decision-4 of group 3 "": c006
            fill p-decision-3: c004 c005
            fill p-decision-2: c002 c003
            fill p-decision-1: c000 c001
            status 7
              group 0 "": 2 in p-decision-1
              group 1 "": 2 in p-decision-2
              group 2 "": 2 in p-decision-3
              group 3 "": 1 in p-decision-4
        "#]],
    );
    settle(
        &mut hub,
        &groups(1, 7),
        expect![[r#"
            fill p-decision-1: c001 c002
            fill p-decision-2: c003 c004
            fill p-decision-3: c005 c006
            delete p-decision-4
            status 6
              group 0 "": 2 in p-decision-1
              group 1 "": 2 in p-decision-2
              group 2 "": 2 in p-decision-3
        "#]],
    );
}

#[test]
fn a_mistake_is_told_and_touches_no_decision() {
    let mut hub = Hub::new();
    hub.settle(&chosen(&[("", names(0..3))]));
    let mistaken = World::default().choose(json!({"numberOfClusters": -1}));
    expect![[r#"
        status 3
          group 0 "": 3 in p-decision-1
    "#]]
    .assert_eq(&hub.settle(&mistaken));
}

#[test]
fn conditions_change_their_time_with_their_status_only() {
    let mut hub = Hub::new();
    hub.settle(&World::parse("cluster a").choose(json!({})));
    let conditions = |hub: &Hub| json!(hub.placement.status.as_ref().unwrap().conditions);
    let first = conditions(&hub);
    expect![[r#"
        [
          {
            "lastTransitionTime": "2026-01-01T12:00:00Z",
            "message": "All cluster decisions scheduled",
            "observedGeneration": 3,
            "reason": "AllDecisionsScheduled",
            "status": "True",
            "type": "PlacementSatisfied"
          },
          {
            "lastTransitionTime": "2026-01-01T12:00:00Z",
            "message": "Placement configurations check pass",
            "observedGeneration": 3,
            "reason": "Succeedconfigured",
            "status": "False",
            "type": "PlacementMisconfigured"
          }
        ]"#]]
    .assert_eq(&format!("{first:#}"));
    let status = hub.placement.status.as_mut().unwrap();
    status.conditions[0].last_transition_time = Some("2025-01-01T00:00:00Z".into());
    status.conditions[1].last_transition_time = Some("2025-01-01T00:00:00Z".into());
    status
        .conditions
        .insert(0, serde_json::from_value(json!({"type": "Foreign", "status": "True"})).unwrap());
    hub.settle(&World::parse("cluster a").choose(json!({"numberOfClusters": 2})));
    let later = conditions(&hub);
    assert_eq!(later[0]["type"], "Foreign", "others' conditions stay");
    assert_eq!(later[1]["lastTransitionTime"], "2026-01-01T12:00:00Z", "it was satisfied and is not");
    assert_eq!(later[2]["lastTransitionTime"], "2025-01-01T00:00:00Z");
}
