//! The rollout controller, rule by rule (chapter 5 of the rules).

use crate::story::check;
use expect_test::expect;

/// Three clusters on A, a RollingUpdate of one at a time to B under way.
const ROLLING: &str = "
    config A v1
    config B v2
    config C v3
    place prod: p1..p4
    rollout prod config=A RollingUpdate 1
    settle
    rollout prod config=B RollingUpdate 1
";

#[test]
fn rule_1_a_fresh_install_is_neither_throttled_nor_gated_and_gets_the_known_good_revision() {
    check(
        &format!(
            "{ROLLING}
            pass
            place prod: p1..p6
            pass 2
            show clusters"
        ),
        &expect![[r#"
            p1               in flight v2       updating
            p2..p4 (3)       hold      v1       budget full: 1 of 1 in flight
            p5..p6 (2)       in flight v1       installing
        "#]],
    );
}

#[test]
fn rule_1_without_a_known_good_revision_a_fresh_install_follows_the_desired_one() {
    check(
        "
        config A v1
        config B v2
        place prod: p1..p3
        rollout prod config=A RollingUpdate 1
        pass 2
        ack p1
        rollout prod config=B RollingUpdate 1
        pass
        show clusters",
        &expect![[r#"
            p1               hold      v1       budget full: 2 of 1 in flight
            p2..p3 (2)       in flight v2       installing
        "#]],
    );
}

#[test]
fn rule_2_update_all_moves_everybody_at_once() {
    check(
        "
        config A v1
        config B v2
        place prod: p1..p5
        rollout prod config=A UpdateAll
        settle
        rollout prod config=B UpdateAll
        pass
        show clusters",
        &expect![[r#"
            p1..p5 (5)       in flight v2       updating
        "#]],
    );
}

#[test]
fn rule_3_the_window_slides_in_order_of_name_and_is_never_wider_than_the_budget() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=B RollingUpdate 2
            pass
            show clusters
            note p2 is through before p1
            ack p2
            pass
            show clusters"
        ),
        &expect![[r#"
            p1..p2 (2)       in flight v2       updating
            p3..p4 (2)       hold      v1       budget full: 2 of 2 in flight
            -- p2 is through before p1
            p1..p3 (2)       in flight v2       updating
            p4               hold      v1       budget full: 2 of 2 in flight
        "#]],
    );
}

#[test]
fn rule_3_a_failed_cluster_keeps_its_slot_so_a_bad_revision_stops_by_itself() {
    check(
        &format!(
            "{ROLLING}
            pass
            fail p1
            pass 3
            show clusters
            show status"
        ),
        &expect![[r#"
            p1               failed    v2       failed: work reports Applied=False: boom
            p2..p4 (3)       hold      v1       budget full: 1 of 1 slots taken: 1 failed
            prod  False UpgradeFailed  1/4 upgrade failed: stopped, 1 failed, 1 of 1 slots taken: p1
                desired B good A applied A
        "#]],
    );
}

#[test]
fn rule_3_a_cluster_that_becomes_unavailable_after_it_was_applied_keeps_its_slot() {
    check(
        &format!(
            "{ROLLING}
            pass
            ack p1
            pass
            unavailable p1
            ack p2
            pass 3
            show clusters
            ack p1
            pass
            show clusters"
        ),
        &expect![[r#"
            p1               in flight v2       applied but not available: work reports Available=False: crash loop
            p3..p4 (2)       hold      v1       budget full: 1 of 1 in flight
            p3               in flight v2       updating
            p4               hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_5_a_rolling_update_turns_to_the_newest_revision_at_once_within_its_budget() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=B RollingUpdate 2
            pass
            ack p1
            pass
            note p1 has B, p2 and p3 are on their way to it; C is wanted now
            rollout prod config=C RollingUpdate 2
            pass
            show clusters"
        ),
        &expect![[r#"
            -- p1 has B, p2 and p3 are on their way to it; C is wanted now
            p1               hold      v2       budget full: 2 of 2 in flight
            p2..p3 (2)       in flight v3       updating
            p4               hold      v1       budget full: 2 of 2 in flight
        "#]],
    );
}

#[test]
fn rule_6_a_rollback_supersedes_the_rollout_at_once_and_touches_only_what_had_moved() {
    check(
        "
        config A v1
        config B v2
        place canary: c1
        place prod: p1..p6
        rollout prod config=A Canary 2 canary=canary
        rollout canary config=A
        settle
        rollout prod config=B Canary 2 canary=canary
        rollout canary config=B
        pass
        ack c1
        pass
        ack p1
        pass
        note p1 has B, p2 and p3 are on their way to it
        rollout prod config=A Canary 2 canary=canary
        rollout canary config=A
        pass
        show clusters
        events",
        &expect![[r#"
            -- p1 has B, p2 and p3 are on their way to it
            c1               in flight v1       updating
            p1               start     v1       updates
            p2               in flight v1       updating
            event  default/prod RolloutStarted: rolling out v1 to 6 clusters
            event  default/canary RolloutStarted: rolling out v1 to 1 cluster
            event  default/prod CanaryPassed: v1 passed the canary
            event  default/prod RolloutCompleted: all 6 clusters have v1
            event  default/canary RolloutCompleted: its cluster has v1
            event  default/canary RolloutStarted: rolling out v2 to 1 cluster
            event  default/prod CanaryPassed: v2 passed the canary
            event  default/prod RolloutStarted: rolling out v2 to 6 clusters
            event  default/canary RolloutCompleted: its cluster has v2
            event  default/prod RolledBack: rolling back to v1 on 3 clusters
            event  default/canary RolledBack: rolling back to v1 on 1 cluster
        "#]],
    );
}

#[test]
fn rule_7_applied_is_what_all_have_settled_on_even_when_the_desired_revision_has_moved_on() {
    check(
        "
        config A v1
        config B v2
        config C v3
        place prod: p1 p2
        rollout prod config=A RollingUpdate 2
        settle
        rollout prod config=B RollingUpdate 2
        pass 2
        ack p1 p2
        rollout prod config=C RollingUpdate 1
        pass
        show status",
        &expect![[r#"
            prod  True Upgrading  1/2 upgrading...
                desired C good B applied B
        "#]],
    );
}

#[test]
fn rule_8_a_cluster_that_leaves_stops_counting_and_one_that_joins_with_an_instance_waits_its_turn() {
    check(
        "
        config A v1
        config B v2
        defaults config=A
        clusters p0
        user p0
        place prod: p1..p3
        rollout prod RollingUpdate 1
        settle
        rollout prod config=B RollingUpdate 1
        pass
        place prod: p0 p1..p3
        pass
        show clusters
        note p1 leaves in flight
        place prod: p0 p2 p3
        pass 2
        show clusters",
        &expect![[r#"
            p0               hold      v1       budget full: 1 of 1 in flight
            p1               in flight v2       updating
            p2..p3 (2)       hold      v1       budget full: 1 of 1 in flight
            -- p1 leaves in flight
            p0               in flight v2       updating
            p2..p3 (2)       hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_8_an_unreachable_cluster_starts_last_and_holds_no_slot_until_then() {
    check(
        &format!(
            "{ROLLING}
            offline p1
            pass
            show clusters
            ack p2
            pass
            ack p3
            pass
            ack p4
            pass
            show clusters"
        ),
        &expect![[r#"
            p1               hold      v1       offline since 2026-01-01T00:00:00Z, starts after all others
            p2               in flight v2       updating
            p3..p4 (2)       hold      v1       budget full: 1 of 1 in flight
            p1               in flight v2       offline since 2026-01-01T00:00:00Z, in flight
        "#]],
    );
}

#[test]
fn rule_8_a_cluster_that_goes_offline_in_flight_keeps_its_slot_until_its_deadline() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=B RollingUpdate 1 progressDeadline=10m
            pass 2
            offline p1
            pass
            show clusters
            wait 10m
            pass
            show clusters"
        ),
        &expect![[r#"
            p1               in flight v2       offline since 2026-01-01T00:00:00Z, in flight
            p2..p4 (3)       hold      v1       budget full: 1 of 1 in flight
            p1               failed    v2       failed: not settled within 10m
            p2               in flight v2       updating
            p3..p4 (2)       hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_9_tolerated_failures_give_their_slot_back_and_more_than_that_halt() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=B RollingUpdate 1 maxFailures=1
            pass
            fail p1
            pass
            show clusters
            fail p2
            pass
            show clusters
            show status
            events"
        ),
        &expect![[r#"
            p1               failed    v2       failed: work reports Applied=False: boom
            p2               in flight v2       updating
            p3..p4 (2)       hold      v1       budget full: 1 of 1 in flight
            p1..p2 (2)       failed    v2       failed: work reports Applied=False: boom
            p3..p4 (2)       hold      v1       halted: 2 failed, 1 tolerated
            prod  False UpgradeFailed  2/4 upgrade failed: halted, 2 failed and 1 tolerated: p1, p2
                desired B good A applied A
            event  default/prod RolloutStarted: rolling out v1 to 4 clusters
            event  default/prod RolloutCompleted: all 4 clusters have v1
            event  default/prod RolloutStarted: rolling out v2 to 4 clusters
            event  default/prod RolloutHalted: halted, 2 failed and 1 tolerated; p1 failed: work reports Applied=False: boom
        "#]],
    );
}

#[test]
fn rule_9_all_others_settled_and_some_failed_is_an_end_and_not_a_wait() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=B RollingUpdate 1 maxFailures=1
            pass
            fail p1
            settle
            show status
            show clusters
            show writes"
        ),
        &expect![[r#"
            prod  False UpgradeFailed  4/4 upgrade failed: completed with failures, 1 failed: p1
                desired B good A applied A
            p1               failed    v2       failed: work reports Applied=False: boom
            0 writes
        "#]],
    );
}

#[test]
fn rule_9_min_success_time_lets_a_cluster_soak_before_it_counts_as_settled() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=B RollingUpdate 1 minSuccessTime=10m
            pass
            ack p1
            pass
            wait 9m
            show clusters
            wait 1m
            pass
            show clusters"
        ),
        &expect![[r#"
            p1               in flight v2       healthy, soaking until 2026-01-01T00:10:00Z
            p2..p4 (3)       hold      v1       budget full: 1 of 1 in flight
            p2               in flight v2       updating
            p3..p4 (2)       hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_9_a_clock_that_was_ahead_and_is_put_back_holds_nothing_up_until_then() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=B RollingUpdate 1 minSuccessTime=10m
            wait 24h
            pass
            ack p1
            pass
            back 24h
            pass
            show clusters
            wait 10m
            pass
            show clusters
            note a deadline, too
            rollout prod config=B RollingUpdate 1 progressDeadline=10m
            wait 24h
            ack p2
            pass 2
            show clusters
            back 24h
            pass
            wait 10m
            pass
            show clusters"
        ),
        &expect![[r#"
            p1               in flight v2       healthy, soaking until 2026-01-01T00:10:00Z
            p2..p4 (3)       hold      v1       budget full: 1 of 1 in flight
            p2               in flight v2       updating
            p3..p4 (2)       hold      v1       budget full: 1 of 1 in flight
            -- a deadline, too
            p3               in flight v2       updating
            p4               hold      v1       budget full: 1 of 1 in flight
            p3               failed    v2       failed: not settled within 10m
            p4               hold      v1       budget full: 1 of 1 slots taken: 1 failed
        "#]],
    );
}

#[test]
fn rule_9_a_placement_has_completed_nothing_while_its_last_cluster_soaks() {
    check(
        "config A v1
        config B v2
        place prod: p1
        rollout prod config=A
        settle
        rollout prod config=B minSuccessTime=10m
        pass
        ack p1
        pass
        pass
        show status
        wait 10m
        pass
        pass
        show status",
        &expect![[r#"
            prod  True Upgrading  1/1 upgrading...
                desired B good A applied A
            prod  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired B good B applied B
        "#]],
    );
}

#[test]
fn rule_9_a_soak_starts_anew_when_the_cluster_was_unhealthy_in_between() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=B RollingUpdate 1 minSuccessTime=10m
            pass
            ack p1
            pass
            wait 9m
            unavailable p1
            pass
            wait 1m
            ack p1
            pass
            show clusters"
        ),
        &expect![[r#"
            p1               in flight v2       healthy, soaking until 2026-01-01T00:20:00Z
            p2..p4 (3)       hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_9_the_deadline_runs_for_this_revision_on_this_cluster_and_survives_a_restart() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=B RollingUpdate 1 progressDeadline=10m
            pass 2
            stuck p1
            wait 9m
            note another revision starts another clock
            rollout prod config=C RollingUpdate 1 progressDeadline=10m
            pass 2
            wait 9m
            show clusters
            wait 1m
            pass
            show clusters
            show p1"
        ),
        &expect![[r#"
            -- another revision starts another clock
            p1               in flight v3       updating
            p2..p4 (3)       hold      v1       budget full: 1 of 1 in flight
            p1               failed    v3       failed: not settled within 10m
            p2..p4 (3)       hold      v1       budget full: 1 of 1 slots taken: 1 failed
            p1  addonhubconfigs desired C@eb2104e4 applied A@b433cd0d
            p1  version desired v3 current unknown last v2
            p1  Progressing False UpgradeFailed: upgrade failed: not settled within 10m
            p1  Configured True ConfigurationsConfigured: all configurations are resolved
        "#]],
    );
}

#[test]
fn rule_9_paused_starts_nothing_new_and_lets_what_has_started_finish() {
    check(
        &format!(
            "{ROLLING}
            pass
            rollout prod config=B RollingUpdate 1 paused
            ack p1
            pass
            show clusters
            show status
            note a new cluster still gets what is known good
            place prod: p1..p5
            pass 2
            show p5"
        ),
        &expect![[r#"
            p2..p4 (3)       hold      v1       paused
            prod  True Upgrading  1/4 upgrading... paused
                desired B good A applied A
            -- a new cluster still gets what is known good
            p5  addonhubconfigs desired A@b433cd0d applied -
            p5  version desired v1 current unknown last -
            p5  Progressing True Installing: installing...
            p5  Configured True ConfigurationsConfigured: all configurations are resolved
        "#]],
    );
}

#[test]
fn rule_10_the_status_names_at_most_ten_clusters_whatever_the_fleets_size() {
    check(
        "
        config A v1
        config B v2
        place prod: p001..p300
        rollout prod config=A UpdateAll
        settle
        rollout prod config=B UpdateAll
        pass
        fail p001..p300
        pass
        show status",
        &expect![[r#"
            prod  False UpgradeFailed  300/300 upgrade failed: completed with failures, 300 failed: p001, p002, p003, p004, p005, p006, p007, p008, p009, p010 and 290 more
                desired B good A applied A
        "#]],
    );
}

#[test]
fn the_later_placement_wins_configs_and_strategy_both() {
    check(
        "
        config A v1
        config B v2
        config C v3
        place all: a1..a3 b1 b2
        place special: b1 b2
        rollout all config=A
        rollout special config=B RollingUpdate 1
        settle
        show status
        show all
        rollout special config=C RollingUpdate 1
        pass
        show clusters",
        &expect![[r#"
            all  False InstallSucceed  3/3 install completed with no errors.
                desired A good A applied A
            special  False InstallSucceed  2/2 install completed with no errors.
                desired B good B applied B
            a1..a3 (3)       settled   v1       settled
            b1..b2 (2)       settled   v2       settled
            b1               in flight v3       updating
            b2               hold      v2       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn percentages_are_of_governed_clusters_rounded_up_and_at_least_one() {
    check(
        "
        config A v1
        config B v2
        place prod: p1..p5
        rollout prod config=A
        settle
        rollout prod config=B RollingUpdate 1%
        pass
        show clusters
        rollout prod config=B RollingUpdate 25%
        pass
        show clusters",
        &expect![[r#"
            p1               in flight v2       updating
            p2..p5 (4)       hold      v1       budget full: 1 of 1 in flight
            p1..p2 (2)       in flight v2       updating
            p3..p5 (3)       hold      v1       budget full: 2 of 2 in flight
        "#]],
    );
}

#[test]
fn a_limit_lowered_in_mid_rollout_undoes_nothing_and_starts_nothing_until_below() {
    check(
        "
        config A v1
        config B v2
        place prod: p1..p5
        rollout prod config=A
        settle
        rollout prod config=B RollingUpdate 3
        pass
        rollout prod config=B RollingUpdate 1
        pass
        show clusters
        ack p1 p2
        pass
        show clusters",
        &expect![[r#"
            p1..p3 (3)       in flight v2       updating
            p4..p5 (2)       hold      v1       budget full: 3 of 1 in flight
            p3               in flight v2       updating
            p4..p5 (2)       hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn a_revision_that_is_already_broken_everywhere_can_still_be_mended() {
    check(
        "
        config A v1
        config B v2
        place prod: p1..p4
        rollout prod config=A RollingUpdate 1
        settle
        unavailable p1..p4
        rollout prod config=B RollingUpdate 1
        pass
        show clusters
        ack p1
        pass
        show clusters",
        &expect![[r#"
            p1               in flight v2       updating
            p2..p4 (3)       hold      v1       budget full: 4 of 1 slots taken: 1 in flight, 3 unhealthy
            p2               in flight v2       updating
            p3..p4 (2)       hold      v1       budget full: 3 of 1 slots taken: 1 in flight, 2 unhealthy
        "#]],
    );
}

#[test]
fn rule_1_under_update_all_a_fresh_install_gets_the_desired_revision_directly() {
    check(
        "
        config A v1
        config B v2
        place prod: p1
        rollout prod config=A
        settle
        stuck p1
        rollout prod config=B
        place prod: p1 p2
        pass 2
        show clusters",
        &expect![[r#"
            p1               in flight v2       updating
            p2               in flight v2       installing
        "#]],
    );
}

#[test]
fn rule_6_a_rollback_without_a_canary_is_told_as_one() {
    check(
        &format!(
            "{ROLLING}
            settle
            rollout prod config=A RollingUpdate 1
            settle
            events"
        ),
        &expect![[r#"
            event  default/prod RolloutStarted: rolling out v1 to 4 clusters
            event  default/prod RolloutCompleted: all 4 clusters have v1
            event  default/prod RolloutStarted: rolling out v2 to 4 clusters
            event  default/prod RolloutCompleted: all 4 clusters have v2
            event  default/prod RolledBack: rolling back to v1 on 4 clusters
            event  default/prod RolloutCompleted: all 4 clusters have v1
        "#]],
    );
}
