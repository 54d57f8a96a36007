//! Rollouts that ended without completing, as the add-on's status keeps them.

use std::fmt::Write as _;

use expect_test::expect;

use crate::story::check;

const ROLLING: &str = "
    config A v1
    config B v2
    config C v3
    place prod: p1..p4
    rollout prod config=A RollingUpdate 2
    settle
    rollout prod config=B RollingUpdate 2
    pass
    wait 30s
";

#[test]
fn a_failed_rollout_that_was_rolled_back_is_kept() {
    check(
        &format!(
            "{ROLLING}
            fail p1 p2
            pass
            show attempts
            note it has not ended before another revision is desired
            wait 1h
            rollout prod config=A RollingUpdate 2
            pass
            show attempts
            ack p1 p2
            settle
            note and it stays
            show attempts
            show writes"
        ),
        &expect![[r#"
            -- it has not ended before another revision is desired
            prod v2 Failed after 30s: stopped, 2 failed, 2 of 2 slots taken: p1, p2; rolled back to v1
            -- and it stays
            prod v2 Failed after 30s: stopped, 2 failed, 2 of 2 slots taken: p1, p2; rolled back to v1
            0 writes
        "#]],
    );
}

#[test]
fn a_rollout_that_another_one_replaces_is_kept() {
    check(
        &format!(
            "{ROLLING}
            rollout prod config=C RollingUpdate 2
            pass
            show attempts
            wait 10s
            rollout prod config=A RollingUpdate 2
            settle
            show attempts"
        ),
        &expect![[r#"
            prod v2 Replaced after 30s: replaced by v3
            prod v2 Replaced after 30s: replaced by v3
            prod v3 RolledBack after 10s: rolled back to v1
        "#]],
    );
}

#[test]
fn a_revision_that_no_cluster_was_assigned_is_no_attempt() {
    check(
        "
        config A v1
        config B v2
        config C v3
        place canary: c1
        place prod: p1 p2
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A
        settle
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B
        pass
        fail c1
        pass
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A
        pass
        note prod waited for the canary
        show attempts",
        &expect![[r#"
            -- prod waited for the canary
            canary v2 Failed after 0s: completed with failures, 1 failed: c1; rolled back to v1
        "#]],
    );
}

#[test]
fn a_rollout_that_goes_on_to_the_known_good_revision_has_not_ended() {
    check(
        "
        config A v1
        config B v2
        config C v3
        place canary: c1
        place prod: p1 p2
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A
        settle
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B
        pass
        ack c1
        pass
        note p1 is on its way to B; C is wanted now
        rollout prod config=C Canary 1 canary=canary
        rollout canary config=C
        pass
        show attempts
        settle
        show attempts
        show status",
        &expect![[r#"
            -- p1 is on its way to B; C is wanted now
            prod  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired C good C applied C
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired C good C applied C
        "#]],
    );
}

#[test]
fn clusters_of_a_canary_that_no_placement_lists_have_attempts_too() {
    check(
        "
        config A v1
        config B v2
        place canary: c1
        place prod: c1 p1 p2
        rollout prod config=A Canary 1 canary=canary
        settle
        rollout prod config=B Canary 1 canary=canary
        pass
        fail c1
        pass
        rollout prod config=A Canary 1 canary=canary
        pass
        show attempts
        settle
        show attempts",
        &expect![[r#"
            prod v2 RolledBack after 0s: rolled back to v1
            prod v2 RolledBack after 0s: rolled back to v1
        "#]],
    );
}

#[test]
fn on_an_ocm_hub_the_record_keeps_attempts() {
    check(
        "
        hub ocm
        config A v1
        config B v2
        place prod: p1..p4
        rollout prod config=A RollingUpdate 2
        settle
        rollout prod config=B RollingUpdate 2
        pass
        fail p1 p2
        pass
        rollout prod config=A RollingUpdate 2
        pass
        show attempts
        settle
        show attempts
        show writes",
        &expect![[r#"
            prod v2 Failed after 0s: stopped, 2 failed, 2 of 2 slots taken: p1, p2; rolled back to v1
            prod v2 Failed after 0s: stopped, 2 failed, 2 of 2 slots taken: p1, p2; rolled back to v1
            0 writes
        "#]],
    );
}

#[test]
fn a_placement_keeps_its_last_ten_attempts() {
    let mut script = "
        config A v1
        place prod: p1..p2
        rollout prod config=A RollingUpdate 1
        settle
        "
    .to_owned();
    for number in 1..=12 {
        writeln!(script, "config X{number} v2.{number}").unwrap();
        writeln!(script, "rollout prod config=X{number} RollingUpdate 1").unwrap();
        writeln!(script, "wait 1s\npass").unwrap();
    }
    writeln!(script, "show attempts").unwrap();
    check(
        &script,
        &expect![[r#"
        prod v2.2 Replaced after 1s: replaced by v2.3
        prod v2.3 Replaced after 1s: replaced by v2.4
        prod v2.4 Replaced after 1s: replaced by v2.5
        prod v2.5 Replaced after 1s: replaced by v2.6
        prod v2.6 Replaced after 1s: replaced by v2.7
        prod v2.7 Replaced after 1s: replaced by v2.8
        prod v2.8 Replaced after 1s: replaced by v2.9
        prod v2.9 Replaced after 1s: replaced by v2.10
        prod v2.10 Replaced after 1s: replaced by v2.11
        prod v2.11 Replaced after 1s: replaced by v2.12
    "#]],
    );
}
