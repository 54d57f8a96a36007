//! Which Events are sent, and when (docs/rollout-semantics.md, rule 7.5).

use crate::story::check;
use expect_test::expect;

#[test]
fn rule_5_events_tell_transitions_once() {
    check(
        "
        config A v1
        config B v2
        place prod: a1 a2
        rollout prod config=A
        settle
        rollout prod config=B RollingUpdate 1
        fail a1
        pass 5
        fail a1
        pass 5
        ack a1
        settle
        events",
        &expect![[r#"
            event  default/prod RolloutStarted: rolling out v1 to 2 clusters
            event  default/prod RolloutCompleted: all 2 clusters have v1
            event  default/prod RolloutStarted: rolling out v2 to 2 clusters
            event  default/prod RolloutHalted: stopped, 1 failed, 1 of 1 slots taken; a1 failed: work reports Applied=False: boom
            event  default/prod RolloutCompleted: all 2 clusters have v2
        "#]],
    );
}

#[test]
fn rule_5_the_start_of_a_gated_placement_is_told_when_its_gate_opens() {
    check(
        "
        config A v1
        config B v2
        place canary: c1
        place prod: p1 p2
        rollout canary config=A
        rollout prod config=A Canary 2 canary=canary
        settle
        events
        note the canary fails: nothing starts behind it
        fail c1
        rollout canary config=B
        rollout prod config=B Canary 2 canary=canary
        settle
        events
        note it passes
        ack c1
        settle
        events",
        &expect![[r#"
            event  default/canary RolloutStarted: rolling out v1 to 1 cluster
            event  default/prod RolloutStarted: rolling out v1 to 2 clusters
            event  default/canary RolloutCompleted: its cluster has v1
            event  default/prod CanaryPassed: v1 passed the canary
            event  default/prod RolloutCompleted: all 2 clusters have v1
            -- the canary fails: nothing starts behind it
            event  default/canary RolloutStarted: rolling out v2 to 1 cluster
            event  default/canary RolloutFailed: completed with failures, 1 failed; c1 failed: work reports Applied=False: boom
            -- it passes
            event  default/canary RolloutCompleted: its cluster has v2
            event  default/prod CanaryPassed: v2 passed the canary
            event  default/prod RolloutStarted: rolling out v2 to 2 clusters
            event  default/prod RolloutCompleted: all 2 clusters have v2
        "#]],
    );
}

#[test]
fn rule_5_a_gated_placement_whose_gate_is_dropped_tells_its_start() {
    check(
        "
        config A v1
        config B v2
        place canary: c1
        place prod: p1 p2
        rollout canary config=A
        rollout prod config=A Canary 2 canary=canary
        settle
        fail c1
        rollout canary config=B
        rollout prod config=B Canary 2 canary=canary
        settle
        note without its canary
        rollout prod config=B RollingUpdate 1
        pass 3
        events",
        &expect![[r#"
            -- without its canary
            event  default/canary RolloutStarted: rolling out v1 to 1 cluster
            event  default/prod RolloutStarted: rolling out v1 to 2 clusters
            event  default/canary RolloutCompleted: its cluster has v1
            event  default/prod CanaryPassed: v1 passed the canary
            event  default/prod RolloutCompleted: all 2 clusters have v1
            event  default/canary RolloutStarted: rolling out v2 to 1 cluster
            event  default/canary RolloutFailed: completed with failures, 1 failed; c1 failed: work reports Applied=False: boom
            event  default/prod RolloutStarted: rolling out v2 to 2 clusters
        "#]],
    );
}

#[test]
fn rule_5_the_end_of_a_rollback_is_told_also_of_one_that_had_not_completed() {
    check(
        "
        config A v1
        config B v2
        place prod: a1..a4
        rollout prod config=A
        settle
        rollout prod config=B RollingUpdate 2
        pass 2
        ack a1
        pass 2
        rollout prod config=A RollingUpdate 2
        settle
        pass 3
        events
        note nothing had left it
        rollout prod config=B RollingUpdate 2 paused
        pass 2
        rollout prod config=A RollingUpdate 2
        settle
        events",
        &expect![[r#"
            event  default/prod RolloutStarted: rolling out v1 to 4 clusters
            event  default/prod RolloutCompleted: all 4 clusters have v1
            event  default/prod RolloutStarted: rolling out v2 to 4 clusters
            event  default/prod RolledBack: rolling back to v1 on 3 clusters
            event  default/prod RolloutCompleted: all 4 clusters have v1
            -- nothing had left it
            event  default/prod RolloutStarted: rolling out v2 to 4 clusters
            event  default/prod RolledBack: v1 is desired again; no cluster had left it
        "#]],
    );
}
