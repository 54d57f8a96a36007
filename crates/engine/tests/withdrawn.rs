//! Revisions that a rollback has withdrawn (chapter 5.6 of the rules).

use crate::story::check;
use expect_test::expect;

#[test]
fn rule_6_a_withdrawn_revision_waits_for_the_canary_again() {
    check(
        "
        config xxx v0.10.0
        config yyy v0.11.0
        place canary: c1
        place prod: p1..p8
        rollout prod config=xxx Canary 8 canary=canary
        rollout canary config=xxx
        settle
        rollout prod config=yyy Canary 8 canary=canary
        rollout canary config=yyy
        settle
        rollout prod config=xxx Canary 8 canary=canary
        rollout canary config=xxx
        settle
        show status
        events
        note the second yyy fails on the canary
        fail c1
        rollout prod config=yyy Canary 8 canary=canary
        rollout canary config=yyy
        settle
        show clusters
        show status
        note until it passes
        ack c1
        settle
        show status
        events",
        &expect![[r#"
            prod  False UpgradeSucceed  8/8 upgrade completed with no errors.
                desired xxx good xxx applied xxx
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired xxx good xxx applied xxx
            event  default/prod RolloutStarted: rolling out v0.10.0 to 8 clusters
            event  default/canary RolloutStarted: rolling out v0.10.0 to 1 cluster
            event  default/prod CanaryPassed: v0.10.0 passed the canary
            event  default/prod RolloutCompleted: all 8 clusters have v0.10.0
            event  default/canary RolloutCompleted: its cluster has v0.10.0
            event  default/canary RolloutStarted: rolling out v0.11.0 to 1 cluster
            event  default/prod CanaryPassed: v0.11.0 passed the canary
            event  default/prod RolloutStarted: rolling out v0.11.0 to 8 clusters
            event  default/canary RolloutCompleted: its cluster has v0.11.0
            event  default/prod RolloutCompleted: all 8 clusters have v0.11.0
            event  default/prod RolledBack: rolling back to v0.10.0 on 8 clusters
            event  default/canary RolledBack: rolling back to v0.10.0 on 1 cluster
            event  default/prod RolloutCompleted: all 8 clusters have v0.10.0
            event  default/canary RolloutCompleted: its cluster has v0.10.0
            -- the second yyy fails on the canary
            c1               failed    v0.11.0  failed: work reports Applied=False: boom
            p1..p8 (8)       hold      v0.10.0  canary default/canary: 1 of 1 not passed, first c1
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 1 not passed, first c1
                desired yyy good xxx applied xxx
            canary  False UpgradeFailed  1/1 upgrade failed: completed with failures, 1 failed: c1
                desired yyy good xxx applied xxx
            -- until it passes
            prod  False UpgradeSucceed  8/8 upgrade completed with no errors.
                desired yyy good yyy applied yyy
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired yyy good yyy applied yyy
            event  default/canary RolloutStarted: rolling out v0.11.0 to 1 cluster
            event  default/canary RolloutFailed: completed with failures, 1 failed; c1 failed: work reports Applied=False: boom
            event  default/prod CanaryPassed: v0.11.0 passed the canary
            event  default/prod RolloutStarted: rolling out v0.11.0 to 8 clusters
            event  default/canary RolloutCompleted: its cluster has v0.11.0
            event  default/prod RolloutCompleted: all 8 clusters have v0.11.0
        "#]],
    );
}

#[test]
fn rule_6_a_rollback_under_way_finishes_before_a_withdrawn_revision_follows() {
    check(
        "
        config xxx v0.10.0
        config yyy v0.11.0
        place canary: c1
        place prod: p1 p2 p3
        rollout prod config=xxx Canary 1 canary=canary
        rollout canary config=xxx
        settle
        rollout prod config=yyy Canary 1 canary=canary
        rollout canary config=yyy
        settle
        note back on prod only: the canary keeps yyy, healthy
        rollout prod config=xxx Canary 1 canary=canary
        pass
        rollout prod config=yyy Canary 1 canary=canary
        pass
        show clusters
        settle
        show status",
        &expect![[r#"
            -- back on prod only: the canary keeps yyy, healthy
            p1               in flight v0.10.0  updating
            p2..p3 (2)       hold      v0.11.0  budget full: 1 of 1 in flight
            prod  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired yyy good yyy applied yyy
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired yyy good yyy applied yyy
        "#]],
    );
}

#[test]
fn rule_6_a_canary_that_is_added_during_a_rollback_returns_nobody_to_what_was_withdrawn() {
    check(
        "
        config A v1
        config B v2
        config C v3
        place canary: c1
        place prod: p1 p2 p3
        rollout prod config=B RollingUpdate 1
        settle
        rollout prod config=C RollingUpdate 1
        settle
        note the way back is known good as soon as it begins, and new clusters get it
        rollout prod config=B RollingUpdate 1
        pass
        place prod: p1 p2 p3 p4
        pass 2
        show clusters
        show status
        note A is wanted before all are back, and then gets a canary
        rollout prod config=A RollingUpdate 1
        pass
        show clusters
        rollout prod config=A Canary 1 canary=canary
        pass
        show clusters
        show status
        settle
        show clusters
        show status",
        &expect![[r#"
            -- the way back is known good as soon as it begins, and new clusters get it
            p1               in flight v2       updating
            p2..p3 (2)       hold      v3       budget full: 2 of 1 in flight
            p4               in flight v2       installing
            prod  True Upgrading  2/4 upgrading...
                desired B good B applied C
            -- A is wanted before all are back, and then gets a canary
            p1               in flight v1       updating
            p2..p3 (2)       hold      v3       budget full: 1 of 1 in flight
            p4               in flight v2       installing
            p1               in flight v2       updating
            p2..p3 (2)       hold      v3       budget full: 2 of 1 in flight
            p4               in flight v2       installing
            prod  True Upgrading  2/4 upgrading...
                desired A good B applied C
            p1..p4 (4)       hold      v2       canary default/canary: 1 of 1 not passed, first c1
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 1 not passed, first c1
                desired A good B applied B
        "#]],
    );
}
