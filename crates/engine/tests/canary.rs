//! The canary gate (chapter 5.4 of the rules).

use crate::story::{Story, check};
use aviary_engine::plan::plan;
use aviary_engine::verdict::waits_since;
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

const SETTINGS: &str = "
    template v1 v2
    config A v1
    config B v2
    deploy default/canary-config X=1
    deploy default/global-config X=2
    place canary: c1
    place prod: p1 p2
    rollout prod config=A deploy=default/global-config Canary 1 canary=canary
    rollout canary config=A deploy=default/canary-config
    settle
";

#[test]
fn rule_4_a_kind_for_which_the_canary_references_another_object_is_not_compared() {
    check(
        &format!(
            "{SETTINGS}
            rollout prod config=B deploy=default/global-config Canary 1 canary=canary
            rollout canary config=B deploy=default/canary-config
            pass 2
            show clusters
            settle
            show status"
        ),
        &expect![[r#"
            c1               in flight v2       updating
            p1..p2 (2)       hold      v1       canary default/canary: 1 of 1 not passed, first c1; it references other objects of kind addondeploymentconfigs.addon.open-cluster-management.io
            prod  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired global-config+B good global-config+B applied global-config+B
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired canary-config+B good canary-config+B applied canary-config+B
            versions v2 v1 default v2
        "#]],
    );
}

#[test]
fn rule_4_a_change_of_what_the_canary_does_not_compare_rolls_by_budget_and_is_warned_about() {
    check(
        &format!(
            "{SETTINGS}
            deploy default/global-config X=3
            show problems
            pass
            show clusters
            settle
            show status
            note taking it away is such a change, too
            rollout prod config=A Canary 1 canary=canary
            show problems"
        ),
        &expect![[r#"
            problem  NotCoveredByCanary: placement default/prod: canary default/canary does not cover this change of addondeploymentconfigs.addon.open-cluster-management.io: its clusters reference other objects, so the change rolls out without it
            p1               in flight v1       updating
            p2               hold      v1       budget full: 1 of 1 in flight
            prod  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired global-config+A good global-config+A applied global-config+A
            canary  False InstallSucceed  1/1 install completed with no errors.
                desired canary-config+A good canary-config+A applied canary-config+A
            versions v2 v1 default v2
            -- taking it away is such a change, too
            problem  NotCoveredByCanary: placement default/prod: canary default/canary does not cover this change of addondeploymentconfigs.addon.open-cluster-management.io: its clusters reference other objects, so the change rolls out without it
        "#]],
    );
}

#[test]
fn rule_4_what_canary_and_fleet_reference_together_is_compared() {
    check(
        "
        template v1 vars X
        config A v1
        deploy default/shared X=1
        place canary: c1
        place prod: p1 p2
        rollout prod config=A deploy=default/shared Canary 1 canary=canary
        rollout canary config=A deploy=default/shared
        settle
        deploy default/shared X=2
        stuck c1
        pass 2
        show clusters
        ack c1
        settle
        show status",
        &expect![[r#"
            c1               in flight v1       updating
            p1..p2 (2)       hold      v1       canary default/canary: 1 of 1 not passed, first c1
            prod  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired shared+A good shared+A applied shared+A
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired shared+A good shared+A applied shared+A
            versions v1 default v1
        "#]],
    );
}

#[test]
fn rule_4_a_canary_that_compares_nothing_keeps_the_gate_closed_and_is_named() {
    check(
        "
        deploy default/one X=1
        deploy default/two X=2
        place canary: c1 c2
        place strange: c2
        place prod: p1 p2
        rollout prod deploy=default/one Canary 1 canary=canary
        rollout canary deploy=default/one
        rollout strange deploy=default/two
        settle
        deploy default/one X=3
        settle
        show clusters
        show problems",
        &expect![[r#"
            p1..p2 (2)       hold      cf40f4be4bbc canary default/canary: c2 has none of the configs that would be rolled out
            problem  CanaryComparesNothing: placement default/prod: canary default/canary proves nothing: cluster c2 has none of the configs of default/prod, so the gate stays closed
        "#]],
    );
}

#[test]
fn rule_8_a_cluster_that_joins_behind_a_closed_gate_stays_on_what_it_has() {
    check(
        "
        config A v0.10.0
        config B v0.13.0
        place canary: c1
        place other: o1
        place prod: p1 p2
        rollout prod config=A Canary 2 canary=canary
        rollout canary config=A
        rollout other config=A
        settle
        rollout other config=B
        settle
        fail c1
        rollout prod config=B Canary 2 canary=canary
        rollout canary config=B
        settle
        note o1 leaves the other placement for prod, whose canary fails
        rollout other config=B
        place other:
        place prod: o1 p1 p2
        settle
        show clusters
        show status
        show o1
        note it cannot keep the gate closed
        unavailable o1
        ack c1
        settle
        show clusters
        show status",
        &expect![[r#"
            -- o1 leaves the other placement for prod, whose canary fails
            c1               failed    v0.13.0  failed: work reports Applied=False: boom
            o1               hold      v0.13.0  canary default/canary: 1 of 1 not passed, first c1
            p1..p2 (2)       hold      v0.10.0  canary default/canary: 1 of 1 not passed, first c1
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 1 not passed, first c1
                desired B good A applied A
            canary  False UpgradeFailed  1/1 upgrade failed: completed with failures, 1 failed: c1
                desired B good A applied A
            other  False InstallSucceed  0/0 the placement selects no cluster
                desired B good B applied B
            o1  addonhubconfigs desired B@aa8d94f3 applied B@aa8d94f3
            o1  version desired v0.13.0 current v0.13.0 last v0.10.0
            o1  Progressing False UpgradeSucceed: upgrade completed with no errors.
            o1  Configured True ConfigurationsConfigured: all configurations are resolved
            -- it cannot keep the gate closed
            o1               in flight v0.13.0  applied but not available: work reports Available=False: crash loop
            prod  True Upgrading  3/3 upgrading...
                desired B good B applied A
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired B good B applied B
            other  False InstallSucceed  0/0 the placement selects no cluster
                desired B good B applied B
        "#]],
    );
}

#[test]
fn rule_1_a_first_install_that_never_gets_well_is_gated_from_then_on() {
    check(
        "
        config A v1
        config B v2
        config C v3
        place canary: c1
        place prod: p1 p2 p3
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A
        unavailable p1 p2 p3
        settle
        show clusters
        note applied and never well: the next revision waits for its canary and keeps its budget
        stuck c1
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B
        settle
        show clusters
        ack c1
        pass 3
        show clusters
        stuck p1
        pass 2
        note also while the works of the next one are not answered yet
        rollout prod config=C Canary 1 canary=canary
        rollout canary config=C
        stuck c1
        pass 3
        show clusters",
        &expect![[r#"
            p1..p3 (3)       in flight v1       applied but not available: work reports Available=False: crash loop
            -- applied and never well: the next revision waits for its canary and keeps its budget
            c1               in flight v2       updating
            p1..p3 (3)       in flight v1       applied but not available: work reports Available=False: crash loop
            p1               in flight v2       installing
            p2..p3 (2)       hold      v1       budget full: 3 of 1 slots taken: 1 in flight, 2 unhealthy
            -- also while the works of the next one are not answered yet
            c1               in flight v3       updating
            p1               in flight v2       installing
            p2..p3 (2)       hold      v1       budget full: 3 of 1 slots taken: 1 in flight, 2 unhealthy
        "#]],
    );
}

#[test]
fn rule_4_a_fresh_cluster_beside_an_adopted_fleet_passes_nothing_for_it() {
    check(
        "
        config A v1
        config B v2
        defaults config=A
        clusters p1..p3 n1
        user p1
        user p2
        user p3
        settle
        place canary:
        place prod: p1 p2 p3 n1
        rollout prod config=B Canary 1 canary=canary
        settle
        show clusters
        show status",
        &expect![[r#"
            p1..p3 (3)       hold      v1       canary default/canary selects no cluster
            prod  True WaitingForCanary  waitingForCanary... canary default/canary selects no cluster
                desired B good - applied B
        "#]],
    );
}

#[test]
fn rule_4_a_cluster_with_an_override_passes_nothing_for_an_adopted_fleet() {
    check(
        "
        config A v1
        config B v2
        addon { supportedConfigs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs } ] }
        defaults config=A
        clusters p1..p3
        place canary: c1
        user p1
        user p2
        user p3 {configs: [{group: addon.open-cluster-management.io, resource: addonhubconfigs, name: B}]}
        settle
        fail c1
        place prod: p1 p2 p3
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B
        settle
        show clusters
        show status",
        &expect![[r#"
            c1               failed    v2       failed: work reports Applied=False: boom
            p1..p2 (2)       hold      v1       canary default/canary: 1 of 1 not passed, first c1
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 1 not passed, first c1
                desired B good - applied B
            canary  False InstallFailed  1/1 install failed: completed with failures, 1 failed: c1
                desired B good - applied -
        "#]],
    );
}

#[test]
fn rule_4_canary_clusters_alone_complete_nothing_for_their_own_placement() {
    check(
        "
        config A v1
        config B v2
        place canary: e1 u1
        place eu: e1
        place us: u1
        rollout us config=A
        rollout eu config=A Canary 1 canary=canary
        settle
        fail u1
        rollout us config=B
        rollout eu config=B Canary 1 canary=canary
        settle
        show clusters
        show status
        note e2 joins: it gets what is known to be good
        place eu: e1 e2
        settle
        show clusters
        show status",
        &expect![[r#"
            u1               failed    v2       failed: work reports Applied=False: boom
            us  False UpgradeFailed  1/1 upgrade failed: completed with failures, 1 failed: u1
                desired B good A applied A
            eu  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 2 not passed, first u1
                desired B good A applied B
            -- e2 joins: it gets what is known to be good
            e2               hold      v1       canary default/canary: 1 of 2 not passed, first u1
            u1               failed    v2       failed: work reports Applied=False: boom
            us  False UpgradeFailed  1/1 upgrade failed: completed with failures, 1 failed: u1
                desired B good A applied A
            eu  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 2 not passed, first u1
                desired B good A applied B
        "#]],
    );
}

#[test]
fn rule_4_a_canary_whose_own_revision_cannot_be_told_stays_in_the_way() {
    check(
        "
        config A v1
        template v1
        config B v9
        deploy default/D SIZE=1
        place canary: c1
        place prod: p1 p2
        rollout prod config=A deploy=default/D Canary 2 canary=canary
        rollout canary config=A deploy=default/D
        settle
        note the canary is to have a version that does not exist
        rollout canary config=B deploy=default/D
        deploy default/D SIZE=2
        settle
        show clusters
        show status",
        &expect![[r#"
            -- the canary is to have a version that does not exist
            c1               hold      v1       invalid version v9
            p1..p2 (2)       hold      v1       canary default/canary: 1 of 1 not passed, first c1
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 1 not passed, first c1
                desired D+A good D+A applied D+A
            canary  False UpgradeFailed  0/1 upgrade failed: invalid version v9
                desired D+A good D+A applied D+A
            versions v1 default v1
        "#]],
    );
}

#[test]
fn rule_5_a_placement_that_was_renamed_finishes_what_it_began() {
    check(
        "
        config A v1
        config B v2
        config C v3
        place canary: c1
        place old: p1 p2 p3
        rollout old config=A Canary 1 canary=canary
        rollout canary config=A
        settle
        note the entry gets another name
        drop old
        place prod: p1 p2 p3
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A
        settle
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B
        pass
        ack c1
        pass 2
        ack p1
        fail c1
        rollout prod config=C Canary 1 canary=canary
        rollout canary config=C
        settle
        show clusters
        show status",
        &expect![[r#"
            -- the entry gets another name
            c1               failed    v3       failed: work reports Applied=False: boom
            p1..p3 (3)       hold      v2       canary default/canary: 1 of 1 not passed, first c1
            canary  False UpgradeFailed  1/1 upgrade failed: completed with failures, 1 failed: c1
                desired C good B applied B
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 1 not passed, first c1
                desired C good B applied B
        "#]],
    );
}

#[test]
fn rule_4_a_canary_that_compares_nothing_keeps_a_change_of_the_other_object_back() {
    check(
        "
        deploy default/x SIZE=1
        deploy default/y SIZE=1
        place canary: c1
        place prod: p1 p2
        rollout prod deploy=default/x Canary 1 canary=canary
        rollout canary deploy=default/y
        settle
        deploy default/x SIZE=2
        settle
        show clusters
        show problems",
        &expect![[r#"
            p1..p2 (2)       hold      eb17c1778444 canary default/canary: c1 has none of the configs that would be rolled out
            problem  CanaryComparesNothing: placement default/prod: canary default/canary proves nothing: cluster c1 has none of the configs of default/prod, so the gate stays closed
        "#]],
    );
}

/// Behind a canary that has failed, clusters are settled on what they have, and wait all the same.
#[test]
fn clusters_behind_a_failed_canary_have_waited_since_the_rollout_began() {
    let mut story = Story::new();
    story.run(
        "template v1 v2
        place canary: c1 c2
        place prod: p1 p2
        rollout canary version=v1 RollingUpdate 1
        rollout prod version=v1 Canary 1 canary=canary
        settle
        bad v2 broken
        wait 1h",
    );
    let begin = story.now;
    story.run("rollout canary version=v2 RollingUpdate 1\n rollout prod version=v2 Canary 1 canary=canary\n settle\n wait 10m\n settle");
    let plan = plan(&story.world.observed, story.now);
    let [canary, prod] = &plan.report.placements[..] else { panic!("two placements") };
    assert_eq!(waits_since(&story.world.observed, prod), Some(begin));
    assert!(waits_since(&story.world.observed, canary).is_some());
}

#[test]
fn a_canary_that_is_asked_for_another_revision_is_told_apart_from_one_that_has_not_passed_yet() {
    check(
        "
        template v1 v2
        place canary: c1 c2
        place prod: p1 p2
        rollout canary version=v1
        rollout prod version=v1 Canary 2 canary=canary
        settle
        bad v2 fail
        rollout canary version=v2
        rollout prod version=v2 Canary 2 canary=canary
        settle
        show clusters
        note only the canary goes back
        rollout canary version=v1
        settle
        show clusters
        show conditions
        note a user tries it on one cluster
        user c1 {desiredVersion: v2}
        settle
        show clusters
        note both want it
        good v2
        ack c1
        rollout canary version=v2
        settle
        show clusters",
        &expect![[r#"
            c1..c2 (2)       failed    v2       failed: work reports Applied=False: boom
            p1..p2 (2)       hold      v1       canary default/canary: 2 of 2 not passed, first c1
            -- only the canary goes back
            p1..p2 (2)       hold      v1       canary default/canary wants v1, not v2: nothing tries v2 there
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  True WaitingForCanary  default/prod: waitingForCanary... canary default/canary wants v1, not v2: nothing tries v2 there
            Succeeded  False WaitingForCanary  default/prod: waitingForCanary... canary default/canary wants v1, not v2: nothing tries v2 there
            Reconciling  True WaitingForCanary  default/prod: waitingForCanary... canary default/canary wants v1, not v2: nothing tries v2 there
            Stalled  False NotStalled  nothing is stalled
            -- a user tries it on one cluster
            c1               failed    v2       failed: work reports Applied=False: boom
            p1..p2 (2)       hold      v1       canary default/canary: 2 of 2 not passed, first c1
            -- both want it
        "#]],
    );
}
