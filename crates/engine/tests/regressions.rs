//! Known defects of OCM's add-on manager that must be impossible here. docs/reliability.md lists
//! them by number, F1 to F8.

use crate::story::check;
use expect_test::expect;

#[test]
fn f1_an_edit_of_a_config_in_place_reaches_one_cluster_under_a_limit_of_one() {
    check(
        "
        config A v1
        place prod: a001..a500
        rollout prod config=A Progressive 1
        settle
        config A v2
        pass 3
        show clusters",
        &expect![[r#"
            a001             in flight v2       updating
            a002..a500 (499) hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn f2_a_limit_that_makes_no_sense_moves_nobody() {
    let cases = ["0", "-1", "0%", "200%", "-5%", "NaN%", "33.3%", "2147483648", "9223372036854775807"];
    let script: String = cases
        .iter()
        .map(|limit| {
            format!("note {limit}\n rollout prod config=B RollingUpdate {limit}\n pass 2\n show clusters\n")
        })
        .collect();
    check(
        &format!(
            "config A v1\n config B v2\n place prod: a1 a2 a3\n rollout prod config=A\n settle\n {script} show problems"
        ),
        &expect![[r#"
            -- 0
            a1..a3 (3)       hold      v1       placement default/prod: rollingUpdate.maxConcurrentlyUpdating: 0 is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            -- -1
            a1..a3 (3)       hold      v1       placement default/prod: rollingUpdate.maxConcurrentlyUpdating: -1 is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            -- 0%
            a1..a3 (3)       hold      v1       placement default/prod: rollingUpdate.maxConcurrentlyUpdating: "0%" is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            -- 200%
            a1..a3 (3)       hold      v1       placement default/prod: rollingUpdate.maxConcurrentlyUpdating: "200%" is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            -- -5%
            a1..a3 (3)       hold      v1       placement default/prod: rollingUpdate.maxConcurrentlyUpdating: "-5%" is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            -- NaN%
            a1..a3 (3)       hold      v1       placement default/prod: rollingUpdate.maxConcurrentlyUpdating: "NaN%" is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            -- 33.3%
            a1..a3 (3)       hold      v1       placement default/prod: rollingUpdate.maxConcurrentlyUpdating: "33.3%" is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            -- 2147483648
            a1..a3 (3)       hold      v1       placement default/prod: rollingUpdate.maxConcurrentlyUpdating: 2147483648 is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            -- 9223372036854775807
            a1..a3 (3)       hold      v1       placement default/prod: rollingUpdate.maxConcurrentlyUpdating: 9223372036854775807 is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
            problem  LimitInvalid: placement default/prod: rollingUpdate.maxConcurrentlyUpdating: 9223372036854775807 is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
        "#]],
    );
}

#[test]
fn f2_a_limit_as_text_is_a_number_and_one_beyond_the_fleet_is_the_fleet() {
    let mut story = crate::story::Story::new();
    story.run("config A v1\n config B v2\n place prod: a1..a7\n rollout prod config=A\n settle");
    story.run("addon { installStrategy: { type: Placements, placements: [ { name: prod, namespace: default, configs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: B } ], rolloutStrategy: { type: RollingUpdate, rollingUpdate: { maxConcurrentlyUpdating: '5' } } } ] } }\n pass\n show clusters");
    story.run("rollout prod config=B RollingUpdate 1000\n pass\n show clusters");
    expect![[r#"
        a1..a5 (5)       in flight v2       updating
        a6..a7 (2)       hold      v1       budget full: 5 of 5 in flight
        a1..a7 (7)       in flight v2       updating
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn f3_a_new_cluster_that_sorts_first_does_not_exceed_the_limit() {
    check(
        "
        config A v1
        config B v2
        defaults config=A
        clusters a0
        user a0
        place prod: a1 a2 a3
        rollout prod RollingUpdate 1
        settle
        rollout prod config=B RollingUpdate 1
        pass
        place prod: a0 a1 a2 a3
        pass 3
        show clusters",
        &expect![[r#"
            a0               hold      v1       budget full: 1 of 1 in flight
            a1               in flight v2       updating
            a2..a3 (2)       hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn f5_deleting_a_placement_deletes_no_instance() {
    check(
        "
        config A v1
        place prod: a01..a50
        rollout prod config=A
        settle
        unplace prod
        settle
        show clusters",
        &expect![[r#"
            a01..a50 (50)    hold      v1       no longer selected, but its placement is unknown or still changing
        "#]],
    );
}

#[test]
fn f7_one_tolerated_failure_is_an_end() {
    check(
        "
        config A v1
        config B v2
        place prod: a1..a4
        rollout prod config=A
        settle
        rollout prod config=B Progressive 2 maxFailures=1
        fail a1
        settle
        show status
        show writes",
        &expect![[r#"
            prod  False UpgradeFailed  4/4 upgrade failed: completed with failures, 1 failed: a1
                desired B good A applied A
            0 writes
        "#]],
    );
}

#[test]
fn f8_overlapping_placements_and_overrides_come_to_an_end() {
    check(
        "
        config A v1
        config B v2
        config mine v9
        addon { supportedConfigs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs } ] }
        place all: a1 a2 a3
        place some: a2 a3
        rollout all config=A
        rollout some config=B RollingUpdate 1
        user a3 { configs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: mine } ] }
        settle
        show status
        show writes",
        &expect![[r#"
            all  False InstallSucceed  1/1 install completed with no errors.
                desired A good A applied A
            some  False InstallSucceed  2/2 install completed with no errors.
                desired B good B applied B
            0 writes
        "#]],
    );
}
