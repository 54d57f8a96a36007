//! Healthy before next, rule by rule (docs/rollout-semantics.md, chapter 8), with an agent that
//! reports a work as available as soon as its objects exist. What is about the works themselves is
//! in `health_works.rs`.

#![allow(clippy::expect_used, reason = "a broken story must fail the test")]

use crate::story::{Story, check, cluster};
use aviary_engine::health::Health;
use aviary_engine::observed::{InstanceStatus, ObservedCondition, Seen};
use aviary_engine::plan::plan;
use aviary_engine::reason::ConditionReason;
use expect_test::expect;

/// Version v1 everywhere, v2 next, a canary of 4 clusters with a budget of 2.
const CANARY: &str = "
    template v1 v2 v3
    place canary: c1..c4
    place prod: p1..p4
    rollout canary version=v1 RollingUpdate 2
    rollout prod version=v1 Canary 2 canary=canary
    settle";

#[test]
fn rule_1_a_version_that_is_never_ready_stays_in_the_budget_of_the_canary() {
    check(
        &format!(
            "{CANARY}
            bad v2 unready
            rollout canary version=v2 RollingUpdate 2 minSuccessTime=1m
            rollout prod version=v2 Canary 2 canary=canary
            settle
            wait 1h
            settle
            note an hour later
            show clusters
            show status
            note the Deployment's own deadline passes
            bad v2 broken
            broken c1 c2
            settle
            show clusters
            note rolled back
            ack c1 c2
            rollout canary version=v1 RollingUpdate 2 minSuccessTime=1m
            rollout prod version=v1 Canary 2 canary=canary
            settle
            wait 2m
            settle
            show clusters
            show c1"
        ),
        &expect![[r#"
            -- an hour later
            c1..c2 (2)       in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            c3..c4 (2)       hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            canary  True Upgrading  2/4 upgrading...
                desired v2 good v1 applied v1
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 4 of 4 not passed, first c1
                desired v2 good v1 applied v1
            versions v3 v2 v1 default v3
            -- the Deployment's own deadline passes
            c1..c2 (2)       failed    v2       failed: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            c3..c4 (2)       hold      v1       budget full: 2 of 2 slots taken: 2 failed
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            -- rolled back
            c1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            c1  version desired v1 current v1 last v2
            c1  Progressing False Succeed: install completed with no errors.
            c1  Configured True ConfigurationsConfigured: all configurations are resolved
            c1  Available True WorksAvailable: all works are available
        "#]],
    );
}

/// Statuses name the object, and not its numbers, which change with every report. The event, which
/// is published once, has them.
#[test]
fn rule_1_statuses_events_and_the_report_name_the_object_that_fails() {
    let mut story = Story::new();
    story.run(&format!(
        "{CANARY}
        bad v2 broken
        rollout canary version=v2 RollingUpdate 2 minSuccessTime=1m
        rollout prod version=v2 Canary 2 canary=canary
        settle
        wait 2m"
    ));
    let before = story.told.len();
    story.run("events");
    story.told.truncate(before);
    story.run("settle\n events\n show status\n show conditions");
    expect![[r#"
        event  default/canary RolloutHalted: stopped, 2 failed, 2 of 2 slots taken; c1 failed: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
        canary  False UpgradeFailed  2/4 upgrade failed: stopped, 2 failed, 2 of 2 slots taken: c1, c2; c1: Deployment open-cluster-management-agent-addon/agent
            desired v2 good v1 applied v1
        prod  True WaitingForCanary  waitingForCanary... canary default/canary: 4 of 4 not passed, first c1
            desired v2 good v1 applied v1
        versions v3 v2 v1 default v3
        Valid  True Valid  the spec is valid
        PlacementsResolved  True Resolved  all placements are known
        Progressing  False UpgradeFailed  default/canary: 2/4 upgrade failed: stopped, 2 failed, 2 of 2 slots taken: c1, c2; c1: Deployment open-cluster-management-agent-addon/agent
        Succeeded  False UpgradeFailed  default/canary: 2/4 upgrade failed: stopped, 2 failed, 2 of 2 slots taken: c1, c2; c1: Deployment open-cluster-management-agent-addon/agent
        Reconciling  False Stalled  the rollout continues when the cause is fixed
        Stalled  True UpgradeFailed  default/canary: 2/4 upgrade failed: stopped, 2 failed, 2 of 2 slots taken: c1, c2; c1: Deployment open-cluster-management-agent-addon/agent
    "#]].assert_eq(&story.told[before..]);
    let planned = plan(&story.world.observed, story.now);
    let told = planned
        .report
        .clusters
        .iter()
        .map(|one| format!("{} {}\n", one.cluster, one.object.as_deref().unwrap_or("-")));
    expect![[r#"
        c1 Deployment open-cluster-management-agent-addon/agent
        c2 Deployment open-cluster-management-agent-addon/agent
        c3 -
        c4 -
        p1 -
        p2 -
        p3 -
        p4 -
    "#]]
    .assert_eq(&told.collect::<String>());
    assert!(planned.is_at_rest());
}

#[test]
fn rule_2_a_crash_within_the_soak_never_passes() {
    check(
        &format!(
            "{CANARY}
            rollout canary version=v2 RollingUpdate 2 minSuccessTime=10m
            rollout prod version=v2 Canary 2 canary=canary
            settle
            wait 10m
            settle
            note minSuccessTime has passed, and a crash in it may not be reported yet
            show clusters
            unready c1 c2
            settle
            wait 1h
            settle
            note crashed
            show clusters
            ack c1
            settle
            wait 10m
            settle
            note one runs again: its soak starts again
            show clusters
            wait 20s
            settle
            show clusters"
        ),
        &expect![[r#"
            -- minSuccessTime has passed, and a crash in it may not be reported yet
            c1..c2 (2)       in flight v2       healthy, soaking until 2026-01-01T00:10:20Z
            c3..c4 (2)       hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            -- crashed
            c1..c2 (2)       in flight v2       applied but not available: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            c3..c4 (2)       hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            -- one runs again: its soak starts again
            c1               in flight v2       healthy, soaking until 2026-01-01T01:20:20Z
            c2               in flight v2       applied but not available: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            c3..c4 (2)       hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            c2               in flight v2       applied but not available: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            c3               in flight v2       healthy, soaking until 2026-01-01T01:30:40Z
            c4               hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 3 of 4 not passed, first c2
        "#]],
    );
}

#[test]
fn rule_3_a_failure_counts_from_a_minute_after_the_start_and_is_not_sticky() {
    check(
        "template v1 v2
        place prod: p1..p3
        rollout prod version=v1 RollingUpdate 1
        settle
        rollout prod version=v2 RollingUpdate 1 maxFailures=0
        pass 2
        broken p1
        pass
        wait 59s
        pass
        note a failure may be left over from the version before
        show clusters
        wait 1s
        pass 2
        note it counts
        show clusters
        show p1
        ack p1
        pass
        note it is healthy after all
        show clusters
        ack p2
        settle
        show clusters",
        &expect![[r#"
            -- a failure may be left over from the version before
            p1               in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            p2..p3 (2)       hold      v1       budget full: 1 of 1 in flight
            -- it counts
            p1               failed    v2       failed: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            p2..p3 (2)       hold      v1       halted: 1 failed, 0 tolerated
            p1  addonhubconfigs desired v2@cdf58b3d applied v1@b433cd0d
            p1  version desired v2 current unknown last v1
            p1  Progressing False Failed: upgrade failed: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            p1  Configured True ConfigurationsConfigured: all configurations are resolved
            p1  Available False WorkloadUnhealthy: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            -- it is healthy after all
            p2               in flight v2       updating
            p3               hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_4_a_settled_cluster_within_its_workload_s_tolerance_stays_settled() {
    check(
        "template v1 v2
        place prod: p1 p2
        rollout prod version=v1 RollingUpdate 1
        settle
        degraded p1
        settle
        show all
        show writes
        note not on the way to a new version: there it must hold exactly
        rollout prod version=v2 RollingUpdate 1
        degraded p1 p2
        settle
        show clusters
        note and more than it tolerates is not settled either
        ack p1 p2
        settle
        unready p1
        settle
        show all",
        &expect![[r#"
            p1..p2 (2)       settled   v1       settled
            0 writes
            -- not on the way to a new version: there it must hold exactly
            p1               in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 2 of 3 updated replicas available
            p2               hold      v1       budget full: 1 of 1 in flight
            -- and more than it tolerates is not settled either
            p1               in flight v2       applied but not available: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            p2               settled   v2       settled
        "#]],
    );
}

#[test]
fn rule_4_what_a_workload_tolerates_does_not_count_within_the_soak() {
    check(
        "template v1
        place prod: p1 p2
        rollout prod version=v1 RollingUpdate 1 minSuccessTime=10m
        settle
        wait 5m
        degraded p1
        settle
        wait 1h
        settle
        note p1 misses no more than it tolerates, and has not been healthy for long enough
        show clusters
        ack p1
        settle
        wait 11m
        settle
        degraded p1
        settle
        note all have settled
        show clusters",
        &expect![[r#"
            -- p1 misses no more than it tolerates, and has not been healthy for long enough
            p1               in flight v1       applied but not available: Deployment open-cluster-management-agent-addon/agent: 2 of 3 updated replicas available
            -- all have settled
        "#]],
    );
}

#[test]
fn rule_5_available_names_the_object_and_is_not_written_again_for_other_numbers() {
    let mut story = Story::new();
    story.run(
        "template v1
        place prod: p1
        rollout prod version=v1
        settle
        wait 5m
        unready p1
        settle
        show p1
        show writes",
    );
    let count = |available: u32| {
        Health::Progressing {
        why: format!("Deployment open-cluster-management-agent-addon/agent: {available} of 3 updated replicas available").into(),
        tolerable: false,
    }
    };
    let report = |story: &mut Story, health: Health| {
        story.world.observed.works.get_mut(&cluster("p1")).expect("works")[0].health = health;
    };
    // In other words it is written once, and then not for other numbers.
    report(&mut story, count(2));
    story.run("wait 1m\n settle");
    for available in [2, 0, 1] {
        report(&mut story, count(available));
        story.run("wait 10s\n show writes");
    }
    story.run("note another object\n");
    report(&mut story, Health::Failed { why: "Job install-1: it has failed".into(), tolerable: false });
    story.run("wait 1m\n pass\n show p1\n wait 1m\n note the Job of another version");
    report(&mut story, Health::Failed { why: "Job install-2: it has failed".into(), tolerable: false });
    story.run("pass\n show p1\n note well again\n ack p1\n wait 1m\n settle\n show p1");
    expect![[r#"
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available False WorkloadUnhealthy: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
        0 writes
        0 writes
        0 writes
        0 writes
        -- another object
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available False WorkloadUnhealthy: Job install-1: it has failed
        -- the Job of another version
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available False WorkloadUnhealthy: Job install-2: it has failed
        -- well again
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available True WorksAvailable: all works are available
    "#]].assert_eq(&story.told);
}

#[test]
fn rule_6_without_a_report_health_is_unknown_and_nothing_moves_on() {
    check(
        "template v1 v2
        place prod: p1 p2
        rollout prod version=v1 RollingUpdate 1
        settle
        bad v2 unreported
        rollout prod version=v2 RollingUpdate 1 progressDeadline=10m
        settle
        wait 2m
        settle
        show clusters
        show p1
        wait 10m
        settle
        note its deadline passes
        show clusters",
        &expect![[r#"
            p1               in flight v2       health unknown: Deployment open-cluster-management-agent-addon/agent: the work agent has not reported its health yet
            p2               hold      v1       budget full: 1 of 1 in flight
            p1  addonhubconfigs desired v2@cdf58b3d applied v1@b433cd0d
            p1  version desired v2 current unknown last v1
            p1  Progressing True Upgrading: Upgrading addon to version v2.
            p1  Configured True ConfigurationsConfigured: all configurations are resolved
            p1  Available Unknown HealthUnknown: Deployment open-cluster-management-agent-addon/agent: the work agent has not reported its health yet
            -- its deadline passes
            p1               failed    v2       failed: not settled within 10m: Deployment open-cluster-management-agent-addon/agent: the work agent has not reported its health yet
            p2               hold      v1       budget full: 1 of 1 slots taken: 1 failed
        "#]],
    );
}

#[test]
fn rule_8_a_first_install_that_was_never_healthy_is_gated_whatever_its_agent_takes_back() {
    check(
        "template v1 v2
        place canary: c1
        place prod: p1
        bad v1 unready
        rollout canary version=v1 RollingUpdate 1
        rollout prod version=v1 Canary 1 canary=canary
        settle
        wait 1m
        settle
        note applied and never healthy; then the agent takes its report back
        stuck p1
        bad v2 unready
        rollout canary version=v2 RollingUpdate 1
        rollout prod version=v2 Canary 1 canary=canary
        settle
        show clusters",
        &expect![[r#"
            -- applied and never healthy; then the agent takes its report back
            c1               in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            p1               hold      v1       canary default/canary: 1 of 1 not passed, first c1
        "#]],
    );
}

/// The next version of a placement of one cluster, behind a canary that never passes.
const NEXT_NEVER_PASSES: &str = "
    bad v2 unready
    rollout canary version=v2 RollingUpdate 1
    rollout prod version=v2 Canary 1 canary=canary
    settle
    show clusters";

#[test]
fn rule_8_what_was_applied_is_recorded_after_a_minute_whatever_else_the_agent_leaves_out() {
    let mut story = Story::new();
    story.run(
        "template v1 v2
        place canary: c1
        place prod: p1
        rollout canary version=v1 RollingUpdate 1
        rollout prod version=v1 Canary 1 canary=canary
        pass 3
        unready c1
        stuck p1",
    );
    // Applied, and nothing else is ever reported.
    for work in story.world.observed.works.get_mut(&cluster("p1")).expect("works").iter_mut() {
        (work.applied, work.was_applied) = (Seen::Yes, true);
    }
    story.run("settle");
    let planned = plan(&story.world.observed, story.now);
    assert_eq!(planned.recheck_at, Some("2026-01-01T00:01:00Z".parse().expect("a time")));
    story.run("wait 1m\n settle\n emptied p1");
    let instance = story.world.observed.instances.get(&cluster("p1")).expect("an instance").clone();
    assert_eq!(
        instance.status.condition("RevisionHealthy").expect("a clock").reason.as_str(),
        "NeverHealthy"
    );
    story.run(NEXT_NEVER_PASSES);
    expect![[r#"
        c1               in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
        p1               hold      v1       canary default/canary: 1 of 1 not passed, first c1
    "#]]
    .assert_eq(&story.told);
}

/// A work that is written again loses the report on its generation, and not that it was applied.
#[test]
fn rule_8_a_work_that_was_applied_at_an_earlier_generation_is_no_first_install() {
    check(
        &format!(
            "template v1 v2
            place canary: c1
            place prod: p1
            bad v1 unready
            rollout canary version=v1 RollingUpdate 1
            rollout prod version=v1 Canary 1 canary=canary
            settle
            stuck p1
            edit p1
            pass 2
            show works
            {NEXT_NEVER_PASSES}"
        ),
        &expect![[r#"
            c1  addon-helloworld-deploy-0 generation 1 version v1
            p1  addon-helloworld-deploy-0 generation 3 version v1
            c1               in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            p1               hold      v1       canary default/canary: 1 of 1 not passed, first c1
        "#]],
    );
}

#[test]
fn rule_8_an_instance_that_was_restored_without_its_status_is_no_first_install() {
    check(
        "template v1 v2
        place prod: p1..p4
        rollout prod version=v1 RollingUpdate 1
        settle
        rollout prod version=v2 RollingUpdate 1
        pass 2
        restored p2 p3
        pass 3
        show clusters
        settle
        note the end
        show all",
        &expect![[r#"
            p1               in flight v2       updating
            p2..p3 (2)       hold      -        budget full: 3 of 1 slots taken: 1 in flight, 2 unhealthy
            p4               hold      v1       budget full: 3 of 1 slots taken: 1 in flight, 2 unhealthy
            -- the end
            p1..p4 (4)       settled   v2       settled
        "#]],
    );
}

/// S20: what was proved is not proved any more when its report is gone, whatever was recorded.
#[test]
fn rule_8_a_settled_cluster_whose_reports_vanish_is_neither_settled_nor_a_first_install() {
    for loss in ["emptied", "unreported"] {
        let mut story = Story::new();
        story.run(&format!(
            "{CANARY}
            wait 5m
            {loss} c1
            settle
            show c1
            show clusters
            show health"
        ));
        let expected = match loss {
            "emptied" => expect![[r#"
                c1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
                c1  version desired v1 current unknown last -
                c1  Progressing True Installing: Installing addon to version v1.
                c1  Configured True ConfigurationsConfigured: all configurations are resolved
                c1  Available Unknown WorksNotReported: the agent has not reported on all works yet
                c1               in flight v1       applied but not available: the agent has not reported on it yet
                canary  Progressing False InstallSucceed since 2026-01-01T00:00:00Z: 4/4 install completed with no errors.
                canary  Healthy False ClustersUnhealthy since 2026-01-01T00:05:00Z: 1 unhealthy: c1
                prod  Progressing False InstallSucceed since 2026-01-01T00:00:00Z: 4/4 install completed with no errors.
                prod  Healthy True Healthy since 2026-01-01T00:00:00Z: no cluster is unhealthy
            "#]],
            _ => expect![[r#"
                c1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
                c1  version desired v1 current v1 last -
                c1  Progressing False Succeed: install completed with no errors.
                c1  Configured True ConfigurationsConfigured: all configurations are resolved
                c1  Available Unknown HealthUnknown: Deployment open-cluster-management-agent-addon/agent: the work agent has not reported its health yet
                c1               in flight v1       applied but not available: Deployment open-cluster-management-agent-addon/agent: the work agent has not reported its health yet
                canary  Progressing False InstallSucceed since 2026-01-01T00:00:00Z: 4/4 install completed with no errors.
                canary  Healthy False ClustersUnhealthy since 2026-01-01T00:05:00Z: 1 unhealthy: c1; c1: Deployment open-cluster-management-agent-addon/agent
                prod  Progressing False InstallSucceed since 2026-01-01T00:00:00Z: 4/4 install completed with no errors.
                prod  Healthy True Healthy since 2026-01-01T00:00:00Z: no cluster is unhealthy
            "#]],
        };
        expected.assert_eq(&story.told);
        story.told.clear();
        story.run("ack c1\n wait 2m\n settle\n show clusters");
        assert_eq!(story.told, "", "it reports again");
        let instance = story.world.observed.instances.get(&cluster("c1")).expect("an instance");
        assert!(instance.status.condition("Available").expect("Available").is_true());
    }
}

#[test]
fn rule_9_a_soak_starts_again_when_the_cluster_was_offline_in_it() {
    check(
        &format!(
            "{CANARY}
            rollout canary version=v2 RollingUpdate 2 minSuccessTime=10m
            rollout prod version=v2 Canary 2 canary=canary
            settle
            wait 5m
            offline c1
            settle
            wait 20m
            settle
            note offline
            show clusters
            online c1
            settle
            note back: the time offline does not count
            show clusters
            wait 11m
            settle
            show clusters"
        ),
        &expect![[r#"
            -- offline
            c1               in flight v2       offline since 2026-01-01T00:05:00Z, in flight
            c3               in flight v2       healthy, soaking until 2026-01-01T00:35:20Z
            c4               hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 3 of 4 not passed, first c1
            -- back: the time offline does not count
            c1..c3 (2)       in flight v2       healthy, soaking until 2026-01-01T00:35:20Z
            c4               hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 3 of 4 not passed, first c1
            c4               in flight v2       healthy, soaking until 2026-01-01T00:46:20Z
            p1..p4 (4)       hold      v1       canary default/canary: 1 of 4 not passed, first c4
        "#]],
    );
}

#[test]
fn rule_9_a_soak_starts_again_when_the_cluster_was_offline_while_no_manager_ran() {
    check(
        "template v1 v2
        place prod: p1..p3
        rollout prod version=v1 RollingUpdate 1
        settle
        rollout prod version=v2 RollingUpdate 1 minSuccessTime=10m
        settle
        wait 3m
        offline p1
        wait 4m
        online p1
        note a manager runs again an hour later: nobody knows how p1 was
        wait 1h
        settle
        show clusters
        wait 10m
        settle
        show clusters
        wait 20s
        settle
        show clusters
        note an outage after the soak restarts nothing, whoever sees it
        wait 1m
        offline p1
        wait 1m
        online p1
        wait 1m
        settle
        show clusters",
        &expect![[r#"
            -- a manager runs again an hour later: nobody knows how p1 was
            p1               in flight v2       healthy, soaking until 2026-01-01T01:17:20Z
            p2..p3 (2)       hold      v1       budget full: 1 of 1 in flight
            p1               in flight v2       healthy, soaking until 2026-01-01T01:17:20Z
            p2..p3 (2)       hold      v1       budget full: 1 of 1 in flight
            p2               in flight v2       healthy, soaking until 2026-01-01T01:27:40Z
            p3               hold      v1       budget full: 1 of 1 in flight
            -- an outage after the soak restarts nothing, whoever sees it
            p2               in flight v2       healthy, soaking until 2026-01-01T01:27:40Z
            p3               hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

/// Ten of eleven replicas are there, one more than the workload needs, and a quota refuses the
/// last.
#[test]
fn rule_4_a_failure_within_its_workload_s_tolerance_does_not_unsettle_a_cluster() {
    let mut story = Story::new();
    story.run(
        "template v1 v2\n place prod: p1 p2\n rollout prod version=v1 RollingUpdate 1\n settle\n wait 5m",
    );
    for tolerable in [true, false] {
        for work in story.world.observed.works.get_mut(&cluster("p1")).expect("works").iter_mut() {
            let why = "Deployment a/a: 10 of 11 replicas updated, 10 available; its pods cannot be created";
            work.health = Health::Failed { why: why.into(), tolerable };
        }
        story.run(&format!("note tolerable: {tolerable}\n settle\n show clusters\n show p1"));
    }
    expect![[r#"
        -- tolerable: true
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available True WorksAvailable: all works are available
        -- tolerable: false
        p1               in flight v1       applied but not available: Deployment a/a: 10 of 11 replicas updated, 10 available; its pods cannot be created
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available False WorkloadUnhealthy: Deployment a/a: 10 of 11 replicas updated, 10 available; its pods cannot be created
    "#]].assert_eq(&story.told);
}

/// A cluster that has failed stays failed with every report of its agent.
#[test]
fn rule_5_a_failed_cluster_is_not_written_again_for_other_numbers() {
    let mut story = Story::new();
    story.run(
        "template v1 v2\n place prod: p1 p2\n rollout prod version=v1 RollingUpdate 1\n settle
        bad v2 broken\n rollout prod version=v2 RollingUpdate 1 maxFailures=0\n settle\n wait 2m\n settle",
    );
    for available in [0, 2, 1] {
        let why = format!(
            "Deployment open-cluster-management-agent-addon/agent: {available} of 3 replicas updated, 3 available; its progress deadline has passed"
        );
        for work in story.world.observed.works.get_mut(&cluster("p1")).expect("works").iter_mut() {
            work.health = Health::Failed { why: why.as_str().into(), tolerable: false };
        }
        story.run("wait 10s\n show clusters\n show writes");
    }
    expect![[r#"
        p1               failed    v2       failed: Deployment open-cluster-management-agent-addon/agent: 0 of 3 replicas updated, 3 available; its progress deadline has passed
        p2               hold      v1       halted: 1 failed, 0 tolerated
        0 writes
        p1               failed    v2       failed: Deployment open-cluster-management-agent-addon/agent: 2 of 3 replicas updated, 3 available; its progress deadline has passed
        p2               hold      v1       halted: 1 failed, 0 tolerated
        0 writes
        p1               failed    v2       failed: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
        p2               hold      v1       halted: 1 failed, 0 tolerated
        0 writes
    "#]].assert_eq(&story.told);
}

/// The instance of `p1` as its own manager reports it.
fn says_available(story: &mut Story, status: &str, reason: &str) {
    let mut instance = story.world.observed.instances.get_mut(&cluster("p1")).expect("an instance");
    let mut fields = (*instance.status).clone();
    fields.conditions.retain(|condition| condition.kind != "Available");
    fields.conditions.push(ObservedCondition {
        kind: "Available".into(),
        status: status.to_owned().into(),
        reason: ConditionReason::read(reason),
        message: "it crashes".into(),
        since: None,
        observed_generation: None,
    });
    instance.status = InstanceStatus::new(fields);
}

#[test]
fn rule_17_an_instance_whose_own_manager_says_unavailable_holds_its_slot() {
    let mut story = Story::new();
    story.run(
        "config one v1\n config two v2
        place prod: p1 p2
        rollout prod config=one RollingUpdate 1
        settle",
    );
    for (status, reason) in [
        ("True", "ManagedClusterAddOnLeaseUpdated"),
        ("Unknown", "ManagedClusterAddOnLeaseNotFound"),
        ("Unknown", "ManagedClusterLeaseUpdateStopped"),
    ] {
        says_available(&mut story, status, reason);
        story.run("settle\n show clusters");
    }
    says_available(&mut story, "Unknown", "ManagedClusterAddOnLeaseUpdateStopped");
    story.run("note its lease has stopped\n settle\n show clusters");
    says_available(&mut story, "False", "ProbeFailed");
    story.run("note a bad version\n rollout prod config=two RollingUpdate 1\n settle\n show clusters");
    expect![[r#"
        -- its lease has stopped
        p1               in flight v1       applied but not available: the instance: Available is Unknown: it crashes (not bound to the revision)
        -- a bad version
        p1               in flight v2       not healthy yet: the instance: Available is False: it crashes (not bound to the revision)
        p2               hold      v1       budget full: 1 of 1 in flight
    "#]].assert_eq(&story.told);
}
