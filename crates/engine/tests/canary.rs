//! The canary gate (semantics §5.4).

use crate::story::check;
use expect_test::expect;

#[test]
fn rule_4_the_gate_opens_when_every_canary_cluster_is_applied_and_healthy() {
    check(
        "
        config A v1
        config B v2
        place canary: c1 c2
        place prod: p1 p2
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A UpdateAll
        settle
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B UpdateAll
        pass
        fail c1
        ack c2
        pass
        show clusters
        unavailable c1
        pass
        show clusters
        ack c1
        pass
        show clusters",
        &expect![[r#"
            c1               failed    v2       failed: work reports Applied=False: boom
            p1..p2 (2)       hold      v1       canary default/canary: 1 of 2 not passed, first c1
            c1               in flight v2       applied but not available: work reports Available=False: crash loop
            p1..p2 (2)       hold      v1       canary default/canary: 1 of 2 not passed, first c1
            p1               in flight v2       updating
            p2               hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_4_an_empty_canary_never_passes_and_a_missing_one_says_so() {
    check(
        "
        config A v1
        config B v2
        place canary: c1
        place prod: p1 p2
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A
        settle
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B
        place canary:
        pass 3
        show status
        unplace canary
        pass
        show status",
        &expect![[r#"
            prod  True WaitingForCanary  waitingForCanary... canary default/canary selects no cluster
                desired B good A applied A
            canary  False InstallSucceed  0/0 the placement selects no cluster
                desired B good A applied A
            prod  True WaitingForCanary  waitingForCanary... canary default/canary does not exist
                desired B good A applied A
            canary  False UpgradeFailed  0/0 upgrade failed: placement default/canary does not exist: its clusters are unknown, so nothing is deleted
                desired B good A applied A
        "#]],
    );
}

#[test]
fn rule_4_the_canary_need_not_be_listed_and_a_users_manual_upgrade_counts() {
    check(
        "
        config A v1
        config B v2
        defaults config=A
        clusters c1
        user c1
        place canary: c1
        place prod: p1 p2
        rollout prod Canary 1 canary=canary
        addon { supportedConfigs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs } ] }
        defaults config=A
        rollout prod Canary 1 canary=canary
        settle
        rollout prod config=B Canary 1 canary=canary
        pass
        show clusters
        note a user upgrades the canary by hand
        user c1 { configs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: B } ] }
        pass
        ack c1
        pass
        show clusters",
        &expect![[r#"
            p1..p2 (2)       hold      v1       canary default/canary: 1 of 1 not passed, first c1
            -- a user upgrades the canary by hand
            p1               in flight v2       updating
            p2               hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_4_a_cluster_inside_the_canary_is_never_gated_by_it() {
    check(
        "
        config A v1
        config B v2
        place canary: p1 p2
        place prod: p1..p5
        rollout prod config=A Canary 1 canary=canary
        settle
        rollout prod config=B Canary 1 canary=canary
        pass
        show clusters
        show status
        ack p1
        pass
        ack p2
        pass 2
        show clusters",
        &expect![[r#"
            p1               in flight v2       updating
            p2               hold      v1       budget full: 1 of 1 in flight
            p3..p5 (3)       hold      v1       canary default/canary: 2 of 2 not passed, first p1
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 2 of 2 not passed, first p1
                desired B good A applied A
            p3               in flight v2       updating
            p4..p5 (2)       hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_4_a_canary_that_is_itself_or_part_of_a_cycle_is_named_and_nothing_moves() {
    check(
        "
        config A v1
        config B v2
        place one: a1
        place two: b1
        rollout one config=A
        rollout two config=A
        settle
        rollout one config=B Canary 1 canary=two
        rollout two config=B Canary 1 canary=one
        pass 3
        show status
        show clusters
        rollout one config=B Canary 1 canary=one
        rollout two config=B
        pass 2
        show clusters",
        &expect![[r#"
            one  False UpgradeFailed  1/1 upgrade failed: placements wait for each other as canary: default/one -> default/two -> default/one
                desired B good A applied A
            two  False UpgradeFailed  1/1 upgrade failed: placements wait for each other as canary: default/two -> default/one -> default/two
                desired B good A applied A
            a1               hold      v1       placements wait for each other as canary: default/one -> default/two -> default/one
            b1               hold      v1       placements wait for each other as canary: default/two -> default/one -> default/two
            a1               hold      v1       placements wait for each other as canary: default/one -> default/one
            b1               in flight v2       updating
        "#]],
    );
}

#[test]
fn rule_4_a_canary_whose_decisions_do_not_add_up_opens_no_gate() {
    check(
        "
        config A v1
        config B v2
        place canary (3): c1 c2 c3
        place prod: p1
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A
        settle
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B
        note the decisions are torn: one of three is left, and it passes
        place canary (3): c1
        settle
        show status",
        &expect![[r#"
            -- the decisions are torn: one of three is left, and it passes
            prod  True WaitingForCanary  waitingForCanary... canary default/canary publishes 3 clusters but its decisions hold 1
                desired B good A applied A
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired B good A applied A
        "#]],
    );
}

#[test]
fn rule_4_the_gate_waits_until_the_canary_has_soaked() {
    check(
        "
        config A v1
        config B v2
        place canary: c1
        place prod: p1
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A minSuccessTime=10m
        settle
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B minSuccessTime=10m
        pass
        ack c1
        pass 2
        show clusters
        wait 10m
        pass
        show clusters",
        &expect![[r#"
            c1               in flight v2       healthy, soaking until 2026-01-01T00:10:00Z
            p1               hold      v1       canary default/canary: 1 of 1 not passed, first c1
            p1               in flight v2       updating
        "#]],
    );
}

#[test]
fn while_a_cluster_may_have_joined_nothing_is_completed() {
    check(
        "
        config A v1
        config B v2
        place prod: a1
        rollout prod config=A
        settle
        place prod (2): a1
        rollout prod config=B
        settle
        show status
        place prod (2): a1 a2
        stuck a2
        settle
        show status
        ack a2
        settle
        show status",
        &expect![[r#"
            prod  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired B good A applied A
            prod  True Installing  2/2 installing...
                desired B good A applied A
            prod  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired B good B applied B
        "#]],
    );
}
