//! Corners that the reference model and the exhaustive search found: each was once decided wrongly.

use crate::story::{Story, check, cluster};
use expect_test::expect;

#[test]
fn a_refusal_of_the_old_revision_is_no_failure_of_the_new_one() {
    check(
        "
        config A v1
        config B v2
        place prod: p1 p2 p3
        rollout prod config=A RollingUpdate 2 maxFailures=0
        settle
        fail p1
        pass
        rollout prod config=B RollingUpdate 2 maxFailures=0
        pass 2
        show clusters",
        &expect![[r#"
            p1..p2 (2)       in flight v2       updating
            p3               hold      v1       budget full: 2 of 2 in flight
        "#]],
    );
}

#[test]
fn a_failed_first_install_that_is_told_something_new_takes_its_slot_again() {
    check(
        "
        config A v1
        config B v2
        place prod: p1 p2
        rollout prod config=A RollingUpdate 1 maxFailures=1
        pass 2
        ack p1
        fail p2
        pass 2
        rollout prod config=B RollingUpdate 1 maxFailures=1
        pass
        show clusters",
        &expect![[r#"
            p1               hold      v1       budget full: 1 of 1 in flight
            p2               in flight v2       installing
        "#]],
    );
}

#[test]
fn a_cluster_on_its_way_back_to_what_it_had_keeps_its_slot_also_offline() {
    check(
        "
        config A v1
        config B v2
        config C v3
        place prod: p1 p2
        rollout prod config=A RollingUpdate 1
        settle
        rollout prod config=B RollingUpdate 1
        pass
        stuck p1
        rollout prod config=A RollingUpdate 1
        pass
        stuck p1
        pass
        offline p1
        rollout prod config=C RollingUpdate 1
        pass
        show clusters",
        &expect![[r#"
            p1               in flight v3       offline since 2026-01-01T00:00:00Z, in flight
            p2               hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn what_all_have_settled_on_is_completed_also_when_canary_clusters_go_on() {
    check(
        "
        config A v1
        config B v2
        config C v3
        place canary: p1
        place prod: p1 p2
        rollout prod config=A Canary 1 canary=canary
        settle
        rollout prod config=B Canary 1 canary=canary
        pass 4
        ack p1
        pass 2
        ack p2
        rollout prod config=C Canary 1 canary=canary
        pass 3
        show status
        settle
        note so the way back to B is open and ungated
        rollout prod config=B Canary 1 canary=canary
        pass
        show clusters",
        &expect![[r#"
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 1 of 1 not passed, first p1
                desired C good B applied B
            -- so the way back to B is open and ungated
            p1               in flight v2       updating
            p2               hold      v3       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn a_canary_cycle_promotes_nothing() {
    check(
        "
        config A v1
        config B v2
        place canary: c1
        place prod: p1 p2
        rollout canary config=A RollingUpdate 1
        rollout prod config=A Canary 1 canary=canary
        settle
        rollout canary config=B RollingUpdate 1
        rollout prod config=B Canary 1 canary=canary
        pass 3
        ack c1
        rollout canary config=B Canary 1 canary=prod
        pass 3
        show status",
        &expect![[r#"
            canary  False UpgradeFailed  0/1 upgrade failed: placements wait for each other as canary: default/canary -> default/prod -> default/canary
                desired B good A applied B
            prod  False UpgradeFailed  2/2 upgrade failed: placements wait for each other as canary: default/prod -> default/canary -> default/prod
                desired B good A applied A
        "#]],
    );
}

#[test]
fn a_work_that_is_there_before_anything_was_told_proves_nothing() {
    let mut story = Story::new();
    story.run("config A v1\n place prod: p1 p2\n rollout prod config=A Canary 1 canary=prod\n pass 3");
    let mut work = {
        let mut other = Story::new();
        other.run("config A v1\n place prod: p1\n rollout prod config=A\n settle");
        other.world.observed.works.get(&cluster("p1")).unwrap()[0].clone()
    };
    work.hashes = None;
    story.world.put_work(&cluster("p1"), work);
    story.run("pass 2\n show p1\n note the strategy is mended: it is a first install, and not throttled\n rollout prod config=A RollingUpdate 1\n pass\n show clusters");
    expect![[r#"
        p1  Progressing False InstallFailed: install failed: placements wait for each other as canary: default/prod -> default/prod
        p1  Configured False CanaryCycle: placements wait for each other as canary: default/prod -> default/prod
        -- the strategy is mended: it is a first install, and not throttled
        p1..p2 (2)       in flight v1       installing
    "#]].assert_eq(&story.told);
}

#[test]
fn where_users_override_everything_a_placement_completes_nothing() {
    check(
        "
        config A v1
        config B v2
        addon { supportedConfigs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs } ] }
        place canary: p1 p9
        place prod: p1
        clusters p2
        defaults config=A
        user p2
        rollout prod config=A Canary 1 canary=canary
        settle
        user p1 { configs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: A } ] }
        settle
        rollout prod config=B Canary 1 canary=canary
        settle
        place prod: p1 p2
        pass 2
        show status
        show all",
        &expect![[r#"
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 2 of 2 not passed, first p1
                desired B good - applied A
            p1               settled   v1       settled
            p2               hold      v1       canary default/canary: 2 of 2 not passed, first p1
        "#]],
    );
}

#[test]
fn a_first_install_that_fails_at_what_is_known_good_gets_what_comes_next_first() {
    check(
        "
        config A v1
        config B v2
        place prod: p1 p2
        rollout prod config=A RollingUpdate 1
        settle
        place prod: p1 p2 p3
        pass 2
        fail p3
        pass
        rollout prod config=B RollingUpdate 1
        pass
        show clusters
        ack p3
        settle
        show status",
        &expect![[r#"
            p1..p2 (2)       hold      v1       budget full: 1 of 1 in flight
            p3               in flight v2       installing
            prod  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired B good B applied B
        "#]],
    );
}

#[test]
fn clusters_that_join_and_never_answer_cannot_keep_the_next_revision_away() {
    check(
        "
        config A v1
        config B v2
        place prod: p1 p2
        rollout prod config=A RollingUpdate 1
        settle
        place prod: p1 p2 p3
        stuck p3
        pass 2
        rollout prod config=B RollingUpdate 1
        settle
        show clusters
        show status",
        &expect![[r#"
            p3               in flight v1       installing
            prod  True Installing  3/3 installing...
                desired B good A applied A
        "#]],
    );
}

#[test]
fn of_two_works_that_are_not_available_the_same_one_is_always_named() {
    let mut story = Story::new();
    story.run("config A v1\n place prod: p1\n rollout prod config=A\n settle");
    let mut works = story.world.observed.works.get_mut(&cluster("p1")).expect("works");
    let mut second = works[0].clone();
    second.name = "second".into();
    works.push(second);
    for (work, why) in works.iter_mut().zip(["b: crash loop", "a: no image"]) {
        work.available = aviary_engine::observed::Seen::No { message: why.into() };
    }
    drop(works);
    story.run("show clusters");
    story.world.observed.works.get_mut(&cluster("p1")).expect("works").reverse();
    story.run("show clusters");
    expect![[r#"
        p1               in flight v1       applied but not available: a: no image
        p1               in flight v1       applied but not available: a: no image
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn a_cluster_that_joins_stays_also_where_a_straggler_keeps_the_known_good_revision_unfinished() {
    check(
        "
        config A v0.9.0
        config B v0.10.0
        config C v0.13.0
        place canary: c1
        place other: o1
        place prod: p1 p2
        rollout prod config=A Canary 2 canary=canary
        rollout canary config=A
        rollout other config=A
        settle
        fail p2
        rollout other config=C
        rollout prod config=B Canary 2 canary=canary
        rollout canary config=B
        settle
        fail c1
        rollout prod config=C Canary 2 canary=canary
        rollout canary config=C
        settle
        note p2 fails for good, and the canary fails C; then o1 leaves the other placement for prod
        place other:
        place prod: o1 p1 p2
        settle
        show clusters
        show status
        show o1
        note it moves when the gate opens
        ack c1
        settle
        show clusters
        show status",
        &expect![[r#"
            -- p2 fails for good, and the canary fails C; then o1 leaves the other placement for prod
            c1               failed    v0.13.0  failed: work reports Applied=False: boom
            o1               hold      v0.13.0  canary default/canary: 1 of 1 not passed, first c1
            p1               hold      v0.10.0  canary default/canary: 1 of 1 not passed, first c1
            p2               failed    v0.10.0  failed: work reports Applied=False: boom
            prod  False UpgradeFailed  2/3 upgrade failed: completed with failures, 1 failed: p2
                desired C good B applied A
            canary  False UpgradeFailed  1/1 upgrade failed: completed with failures, 1 failed: c1
                desired C good B applied B
            other  False InstallSucceed  0/0 the placement selects no cluster
                desired C good C applied C
            o1  addonhubconfigs desired C@aa8d94f3 applied C@aa8d94f3
            o1  version desired v0.13.0 current v0.13.0 last v0.9.0
            o1  Progressing False UpgradeSucceed: upgrade completed with no errors.
            o1  Configured True ConfigurationsConfigured: all configurations are resolved
            -- it moves when the gate opens
            p2               failed    v0.13.0  failed: work reports Applied=False: boom
            prod  False UpgradeFailed  3/3 upgrade failed: completed with failures, 1 failed: p2
                desired C good C applied A
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired C good C applied C
            other  False InstallSucceed  0/0 the placement selects no cluster
                desired C good C applied C
        "#]],
    );
}
