//! What the statuses say, rule by rule (chapter 7 of the rules).

use crate::story::{Story, check, cluster};
use aviary_engine::plan::{COUNTS_AT_MOST_EVERY, Step, plan};
use expect_test::expect;
use jiff::Timestamp;

#[test]
fn rule_1_applied_needs_evidence_at_the_current_generation() {
    let mut story = Story::new();
    story.run("template v1 v2\n place prod: a1\n rollout prod version=v1\n settle\n rollout prod version=v2\n pass 2");
    // The agent's word on the work before does not count for the work as it is now.
    story.run("show a1\n note the agent answers\n ack a1\n pass\n show a1");
    expect![[r#"
        a1  addonhubconfigs desired v2@cdf58b3d applied v1@b433cd0d
        a1  version desired v2 current unknown last v1
        a1  Progressing True Upgrading: Upgrading addon to version v2.
        a1  Configured True ConfigurationsConfigured: all configurations are resolved
        a1  Available True WorksAvailable: all works are available
        -- the agent answers
        a1  addonhubconfigs desired v2@cdf58b3d applied v2@cdf58b3d
        a1  version desired v2 current v2 last v1
        a1  Progressing False Succeed: install completed with no errors.
        a1  Configured True ConfigurationsConfigured: all configurations are resolved
        a1  Available True WorksAvailable: all works are available
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn rule_1_every_work_must_carry_the_hashes_one_of_two_is_not_enough() {
    let mut story = Story::new();
    story.run("config A v1\n config B v2\n place prod: a1\n rollout prod config=A\n settle");
    let mut works = story.world.observed.works.get_mut(&cluster("a1")).expect("works");
    let mut second = works[0].clone();
    second.name = "second".into();
    let before = second.hashes.clone();
    works.push(second);
    drop(works);
    story.run("rollout prod config=B\n pass\n ack a1");
    story.world.observed.works.get_mut(&cluster("a1")).expect("works")[1].hashes = before;
    story.run("pass 2\n note one of two works carries B\n show a1");
    expect![[r#"
        -- one of two works carries B
        a1  addonhubconfigs desired B@cdf58b3d applied A@b433cd0d
        a1  version desired v2 current unknown last v1
        a1  Progressing True Upgrading: upgrading...
        a1  Configured True ConfigurationsConfigured: all configurations are resolved
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn rule_2_every_row_of_the_table_of_instance_conditions() {
    check(
        "
        config A v1
        config B v2
        place prod: a1
        rollout prod config=A
        pass 2
        show a1
        fail a1
        pass
        show a1
        ack a1
        pass
        show a1
        rollout prod config=B
        pass
        show a1
        fail a1
        pass
        show a1
        ack a1
        pass
        show a1",
        &expect![[r#"
            a1  addonhubconfigs desired A@b433cd0d applied -
            a1  version desired v1 current unknown last -
            a1  Progressing True Installing: installing...
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  addonhubconfigs desired A@b433cd0d applied -
            a1  version desired v1 current unknown last -
            a1  Progressing False InstallFailed: install failed: work reports Applied=False: boom
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a1  version desired v1 current v1 last -
            a1  Progressing False InstallSucceed: install completed with no errors.
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  addonhubconfigs desired B@cdf58b3d applied A@b433cd0d
            a1  version desired v2 current unknown last v1
            a1  Progressing True Upgrading: upgrading...
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  addonhubconfigs desired B@cdf58b3d applied A@b433cd0d
            a1  version desired v2 current unknown last v1
            a1  Progressing False UpgradeFailed: upgrade failed: work reports Applied=False: boom
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  addonhubconfigs desired B@cdf58b3d applied B@cdf58b3d
            a1  version desired v2 current v2 last v1
            a1  Progressing False UpgradeSucceed: upgrade completed with no errors.
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
        "#]],
    );
}

#[test]
fn rule_3_a_placement_counts_started_and_settled_against_governed() {
    check(
        "
        config A v1
        config B v2
        place prod: a1..a8
        rollout prod config=A RollingUpdate 25%
        pass
        show status
        pass
        show status
        ack a1..a8
        pass 2
        show status
        rollout prod config=B RollingUpdate 25%
        pass 2
        show status
        ack a1
        pass 2
        show status",
        &expect![[r#"
            prod  True Installing  0/8 installing...
                desired A good - applied -
            prod  True Installing  8/8 installing...
                desired A good - applied -
            prod  False InstallSucceed  8/8 install completed with no errors.
                desired A good A applied A
            prod  True Upgrading  2/8 upgrading...
                desired B good A applied A
            prod  True Upgrading  3/8 upgrading...
                desired B good A applied A
        "#]],
    );
}

#[test]
fn rule_4_the_time_of_a_condition_changes_only_with_its_status() {
    let mut story = Story::new();
    let since = |story: &Story| {
        let status = &story.world.observed.instances.get(&cluster("a1")).unwrap().status;
        status.condition("Progressing").and_then(|condition| condition.since).expect("a time").to_string()
    };
    story.run("config A v1\n config B v2\n config C v3\n place prod: a1\n rollout prod config=A\n settle");
    assert_eq!(since(&story), "2026-01-01T00:00:00Z");
    story.run("wait 1m\n rollout prod config=B\n pass");
    assert_eq!(since(&story), "2026-01-01T00:01:00Z", "True since the start");
    story.run("wait 1m\n rollout prod config=C\n pass 2");
    assert_eq!(since(&story), "2026-01-01T00:01:00Z", "still True: another target is no change of status");
    story.run("wait 1m\n ack a1\n pass");
    assert_eq!(since(&story), "2026-01-01T00:03:00Z", "False since the end");
    let placement = &story.world.observed.addon.status.placements[&crate::story::placement("prod")];
    let condition = &placement.conditions[0];
    assert_eq!(condition.observed_generation, Some(story.world.observed.addon.generation));
}

#[test]
fn at_rest_nothing_is_written_however_often_and_late_one_looks() {
    check(
        "
        template v1
        place prod: a1..a9
        rollout prod RollingUpdate 25% minSuccessTime=5m progressDeadline=10m
        settle
        wait 6m
        settle
        show writes
        wait 24h
        show writes",
        &expect![[r#"
            0 writes
            0 writes
        "#]],
    );
}

#[test]
fn an_install_takes_four_writes_per_cluster_and_an_upgrade_three() {
    let mut story = Story::new();
    story.run("template v1 v2\n place prod: a01..a50\n rollout prod version=v1");
    let mut count = |script: &str| {
        story.run(script);
        let mut writes = 0;
        loop {
            let plan = plan(&story.world.observed, story.now);
            let per_cluster = [Step::Create, Step::Start, Step::Settle, Step::Render];
            writes += per_cluster.into_iter().map(|step| plan.step(step).len()).sum::<usize>();
            let wrote = story.pass();
            story.run("ack a01..a50");
            if !wrote {
                return writes;
            }
        }
    };
    assert_eq!(count(""), 4 * 50);
    assert_eq!(count("rollout prod version=v2"), 3 * 50);
}

#[test]
fn times_are_written_in_whole_seconds_as_kubernetes_keeps_them() {
    let mut story = Story::new();
    story.now = "2026-01-01T00:00:00.987654321Z".parse().expect("a time");
    story.run("config A v1\n place prod: a1\n rollout prod config=A minSuccessTime=10m\n settle");
    let status = &story.world.observed.instances.get(&cluster("a1")).unwrap().status;
    for condition in &status.conditions {
        assert_eq!(condition.since.map(|since| since.to_string()).as_deref(), Some("2026-01-01T00:00:00Z"));
        assert!(
            !condition.message.contains('.') || condition.kind != "RevisionHealthy",
            "{}",
            condition.message
        );
    }
}

/// A status has no words for a revision without configs: to record one would be to record it in
/// every pass.
#[test]
fn an_add_on_without_configs_records_no_revision_and_comes_to_rest() {
    let mut story = Story::new();
    story.run("place prod: a1 a2\n rollout prod\n pass 4");
    let recorded = story.world.observed.addon.status.placements.values().next().expect("a placement");
    assert!(recorded.desired.is_none() && recorded.known_good.is_none() && recorded.applied.is_none());
    assert!(!recorded.conditions.is_empty());
    let plan = plan(&story.world.observed, story.now);
    assert!(plan.is_at_rest(), "{plan:?}");
    assert!(
        !story.told.contains("RolloutStarted") && !story.told.contains("RolloutCompleted"),
        "{}",
        story.told
    );
}

#[test]
fn what_is_lost_and_comes_again_is_no_upgrade() {
    check(
        "
        template v1.0.0
        place prod: a1
        rollout prod
        settle
        edit a1
        pass
        show a1
        fail a1
        pass
        show a1
        ack a1
        settle
        show a1",
        &expect![[r#"
            a1  version desired v1.0.0 current unknown last -
            a1  Progressing True Installing: installing...
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  Available True WorksAvailable: all works are available
            a1  version desired v1.0.0 current unknown last -
            a1  Progressing False UpgradeFailed: upgrade failed: work reports Applied=False: boom
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  Available True WorksAvailable: all works are available
            a1  version desired v1.0.0 current v1.0.0 last -
            a1  Progressing False UpgradeSucceed: upgrade completed with no errors.
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn a_work_of_the_instance_before_proves_nothing() {
    let mut story = Story::new();
    story.run("template v1.0.0\n place prod: a1\n rollout prod\n settle");
    // The instance is deleted and made again, and its work has not gone yet.
    let a1 = cluster("a1");
    let works = story.world.observed.works.get(&a1).unwrap().clone();
    story.world.observed.instances.remove(&a1);
    story.world.observed.works.remove(&a1);
    story.run("pass 2");
    story.world.observed.works.insert(a1, works);
    story.run("pass\n show a1");
    expect![[r#"
        a1  version desired v1.0.0 current unknown last -
        a1  Progressing True Installing: installing...
        a1  Configured True ConfigurationsConfigured: all configurations are resolved
        a1  Available Unknown WorksNotReported: the agent has not reported on all works yet
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn the_clock_of_an_override_waits_for_what_the_user_chose() {
    let mut story = Story::new();
    story.run(
        "
        template v1 v2
        config A v1
        config B v2
        defaults config=A
        place prod: a1
        rollout prod
        settle
        stuck a1
        user a1 {configs: [{group: addon.open-cluster-management.io, resource: addonhubconfigs, name: B}]}",
    );
    let mut said = Vec::new();
    for step in ["pass", "pass", "pass", "ack a1\n settle"] {
        story.run(step);
        let instance = story.world.observed.instances.get(&cluster("a1")).unwrap();
        said.push(instance.status.condition("RevisionHealthy").unwrap().reason.to_string());
    }
    assert_eq!(said, ["NotYetHealthy", "NotYetHealthy", "NotYetHealthy", "Healthy"]);
}

#[test]
fn rule_2_a_failure_after_anything_was_applied_is_one_of_an_upgrade() {
    check(
        "
        template v1 vars IMAGE
        deploy default/all IMAGE=one
        deploy a2/own IMAGE=two
        defaults deploy=default/all
        clusters a1 a2
        user a1
        user a2 { configs: [ { group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a2, name: own } ] }
        settle
        note a1 follows no placement and cannot be rendered any more, the override of a2 is gone
        deploy default/all OTHER=one
        no config own
        settle
        show a1
        show a2",
        &expect![[r#"
            -- a1 follows no placement and cannot be rendered any more, the override of a2 is gone
            a1  addondeploymentconfigs desired all@50c2840a applied all@50c2840a
            a1  version desired v1 current v1 last -
            a1  Progressing False UpgradeFailed: upgrade failed: template helloworld-v1 uses the variable IMAGE, which is not defined
            a1  Configured False VariableUnknown: template helloworld-v1 uses the variable IMAGE, which is not defined
            a1  Available True WorksAvailable: all works are available
            a2  addondeploymentconfigs desired own@40dce474 applied own@40dce474
            a2  version desired v1 current v1 last -
            a2  Progressing False UpgradeFailed: upgrade failed: addondeploymentconfigs.addon.open-cluster-management.io a2/own not found
            a2  Configured False ConfigurationMissing: addondeploymentconfigs.addon.open-cluster-management.io a2/own not found
            a2  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_2_what_was_applied_and_never_healthy_does_not_fail_to_install_any_more() {
    check(
        &format!(
            "
        template v1 v2
        template v3 vars NOBODY_KNOWS
        config A v1
        config B v2
        config C v3
        config own v1
        defaults config=A
        place prod: a1
        rollout prod config=A
        clusters a2 a3
        user a2
        user a3 {OWN}
        unavailable a1
        unavailable a2
        unavailable a3
        settle
        show progress
        note the agents reject the next revision
        fail a1
        fail a2
        defaults config=B
        rollout prod config=B
        settle
        show progress
        note the next cannot be rendered, and the override of a3 is gone
        defaults config=C
        rollout prod config=C
        no config own
        settle
        show progress
        note at last it is installed
        ack a1
        ack a2
        config own v2
        ack a3
        defaults config=B
        rollout prod config=B
        settle
        show progress",
            OWN = "{ configs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: own } ] }"
        ),
        &expect![[r#"
            a1  Installing: installing...
            a2  Installing: installing...
            a3  Installing: installing...
            -- the agents reject the next revision
            a1  UpgradeFailed: upgrade failed: work reports Applied=False: boom
            a2  UpgradeFailed: upgrade failed: work reports Applied=False: boom
            a3  Installing: installing...
            -- the next cannot be rendered, and the override of a3 is gone
            a1  UpgradeFailed: upgrade failed: work reports Applied=False: boom
            a2  UpgradeFailed: upgrade failed: template helloworld-v3 uses the variable NOBODY_KNOWS, which is not defined
            a3  UpgradeFailed: upgrade failed: addonhubconfigs.addon.open-cluster-management.io own not found
            -- at last it is installed
            a1  InstallSucceed: install completed with no errors.
            a2  InstallSucceed: install completed with no errors.
            a3  UpgradeSucceed: upgrade completed with no errors.
        "#]],
    );
}

#[test]
fn rule_2_success_after_a_rollback_waits_until_the_works_were_seen_again() {
    check(
        "
        template v1 v2
        config A v1
        config B v2
        place prod: a1
        rollout prod config=A
        settle
        rollout prod config=B
        pass 2
        note the agent has seen neither the upgrade nor the way back
        rollout prod config=A
        pass 3
        show works
        show a1
        ack a1
        pass 2
        show a1",
        &expect![[r#"
            -- the agent has seen neither the upgrade nor the way back
            a1  addon-helloworld-deploy-0 generation 3 version v1
            a1  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a1  version desired v1 current unknown last v2
            a1  Progressing True Upgrading: upgrading...
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  Available True WorksAvailable: all works are available
            a1  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a1  version desired v1 current v1 last v2
            a1  Progressing False UpgradeSucceed: upgrade completed with no errors.
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_3_a_placement_that_has_completed_stays_so_and_says_apart_who_is_unhealthy() {
    check(
        "
        config A v1
        config B v2
        place prod: a1..a4
        rollout prod config=A RollingUpdate 1
        settle
        show conditions
        wait 1h
        unavailable a2
        pass 2
        show status
        show health
        show conditions
        note it holds a slot in the next rollout
        rollout prod config=B RollingUpdate 1
        pass
        show clusters
        ack a2
        settle
        show status
        show health",
        &expect![[r#"
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 4/4 install completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            prod  False InstallSucceed  4/4 install completed with no errors.
                desired A good A applied A
            prod  Progressing False InstallSucceed since 2026-01-01T00:00:00Z: 4/4 install completed with no errors.
            prod  Healthy False ClustersUnhealthy since 2026-01-01T01:00:00Z: 1 unhealthy: a2
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 4/4 install completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            -- it holds a slot in the next rollout
            a1               hold      v1       budget full: 1 of 1 in flight
            a2               in flight v2       updating
            a3..a4 (2)       hold      v1       budget full: 1 of 1 in flight
            prod  False UpgradeSucceed  4/4 upgrade completed with no errors.
                desired B good B applied B
            prod  Progressing False UpgradeSucceed since 2026-01-01T01:00:00Z: 4/4 upgrade completed with no errors.
            prod  Healthy True Healthy since 2026-01-01T01:00:00Z: no cluster is unhealthy
        "#]],
    );
}

#[test]
fn rule_3_succeeded_and_its_companions_follow_the_rollout() {
    check(
        "
        config A v1
        config B v2
        place canary: c1
        place prod: p1 p2
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A
        pass
        show conditions
        settle
        rollout prod config=B Canary 1 canary=canary
        rollout canary config=B
        stuck c1
        pass 2
        show conditions
        fail c1
        pass 2
        show conditions
        ack c1
        settle
        show conditions
        unplace prod
        pass
        show conditions",
        &expect![[r#"
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  True Installing  default/prod: 0/2 installing...
            Succeeded  False Installing  default/prod: 0/2 installing...
            Reconciling  True Installing  default/prod: 0/2 installing...
            Stalled  False NotStalled  nothing is stalled
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  True Upgrading  default/canary: 1/1 upgrading...
            Succeeded  False WaitingForCanary  default/prod: waitingForCanary... canary default/canary: 1 of 1 not passed, first c1
            Reconciling  True WaitingForCanary  default/prod: waitingForCanary... canary default/canary: 1 of 1 not passed, first c1
            Stalled  False NotStalled  nothing is stalled
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False UpgradeFailed  default/canary: 1/1 upgrade failed: completed with failures, 1 failed: c1
            Succeeded  False UpgradeFailed  default/canary: 1/1 upgrade failed: completed with failures, 1 failed: c1
            Reconciling  False Stalled  the rollout continues when the cause is fixed
            Stalled  True UpgradeFailed  default/canary: 1/1 upgrade failed: completed with failures, 1 failed: c1
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False UpgradeSucceed  default/prod: 2/2 upgrade completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            Valid  True Valid  the spec is valid
            PlacementsResolved  False PlacementUnknown  placement default/prod does not exist: its clusters are unknown, so nothing is deleted
            Progressing  False UpgradeFailed  default/prod: 0/0 upgrade failed: placement default/prod does not exist: its clusters are unknown, so nothing is deleted
            Succeeded  False UpgradeFailed  default/prod: 0/0 upgrade failed: placement default/prod does not exist: its clusters are unknown, so nothing is deleted
            Reconciling  False Stalled  the rollout continues when the cause is fixed
            Stalled  True UpgradeFailed  default/prod: 0/0 upgrade failed: placement default/prod does not exist: its clusters are unknown, so nothing is deleted
        "#]],
    );
}

#[test]
fn rule_3_a_rollback_of_an_unfinished_upgrade_is_complete_when_its_clusters_are_back() {
    check(
        "
        template v1 v2
        config A v1
        config B v2
        place prod: p1..p3
        rollout prod config=A UpdateAll
        settle
        rollout prod config=B UpdateAll
        pass 2
        note back, before any agent has answered
        rollout prod config=A UpdateAll
        pass 2
        show status
        show conditions
        note one refuses to go back
        fail p1
        ack p2 p3
        settle
        show status
        show conditions",
        &expect![[r#"
            -- back, before any agent has answered
            prod  True Upgrading  3/3 upgrading...
                desired A good A applied A
            versions v2 v1 default v2
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  True Upgrading  default/prod: 3/3 upgrading...
            Succeeded  False Upgrading  default/prod: 3/3 upgrading...
            Reconciling  True Upgrading  default/prod: 3/3 upgrading...
            Stalled  False NotStalled  nothing is stalled
            -- one refuses to go back
            prod  False UpgradeFailed  3/3 upgrade failed: completed with failures, 1 failed: p1
                desired A good A applied A
            versions v2 v1 default v2
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False UpgradeFailed  default/prod: 3/3 upgrade failed: completed with failures, 1 failed: p1
            Succeeded  False UpgradeFailed  default/prod: 3/3 upgrade failed: completed with failures, 1 failed: p1
            Reconciling  False Stalled  the rollout continues when the cause is fixed
            Stalled  True UpgradeFailed  default/prod: 3/3 upgrade failed: completed with failures, 1 failed: p1
        "#]],
    );
}

#[test]
fn rule_3_an_add_on_has_not_succeeded_while_a_selected_cluster_has_no_instance() {
    check(
        "
        config A v1
        clusters p1 p2
        homeless p1 p2
        addon { installStrategy: { type: ClusterLabelSelector, labelSelector: { matchLabels: { name: p1 } } } }
        defaults config=A
        pass 2
        show clusters
        show conditions",
        &expect![[r#"
            p1               hold      -        selected, but its namespace on the hub, which has its name, does not exist
            Valid  True Valid  the spec is valid
            NamespacesMissing  True ClusterNamespaceMissing  1 cluster is waiting for its namespace on the hub: p1
            Succeeded  False Installing  1 cluster has no instance yet
            Reconciling  True Installing  1 cluster has no instance yet
            Stalled  False NotStalled  nothing is stalled
        "#]],
    );
}

/// The counts of the add-on's status, and a plan whose counts alone are held back.
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
fn counts(story: &Story) -> (usize, usize) {
    let rollout = story.world.observed.addon.status.rollout.as_ref().expect("counts");
    (rollout.tally.settled, rollout.tally.in_flight)
}

/// A pass of a manager that wrote the add-on's status at this time.
fn held(story: &Story, written: Timestamp) -> aviary_engine::plan::Plan {
    let mut plan = plan(&story.world.observed, story.now);
    plan.hold_counts(&story.world.observed, Some(written), story.now);
    plan
}

#[test]
fn counts_alone_are_written_at_most_every_two_seconds_while_clusters_are_in_flight() {
    let mut story = Story::new();
    story.run("template v1\n place prod: a1..a4\n rollout prod version=v1 UpdateAll\n pass 2");
    // The wave is counted by the write that reserves it.
    assert_eq!(counts(&story), (0, 4));
    assert!(plan(&story.world.observed, story.now).addon().is_none());
    let written = story.now;
    story.run("pass\n ack a1");
    let quiet = held(&story, written);
    assert!(quiet.addon().is_none() && !quiet.is_at_rest(), "{:?}", quiet.stages);
    let due = written + COUNTS_AT_MOST_EVERY;
    assert_eq!(quiet.recheck_at, Some(due));
    // A manager that has not written it knows nothing better, and nobody waits for a time to come.
    assert!(plan(&story.world.observed, story.now).addon().is_some());
    assert!(held(&story, due).addon().is_some());
    story.run("wait 2s");
    assert!(held(&story, written).addon().is_some(), "nothing else happens, and the counts are old");
    story.run("pass 2");
    assert_eq!(counts(&story), (1, 3));
    // What else changes takes the counts along, and the end is never late.
    story.run("ack a2 a3 a4");
    let last = held(&story, story.now);
    assert!(last.addon().is_some(), "{:?}", last.stages);
    story.run("pass 2");
    assert_eq!(counts(&story), (4, 0));
    assert!(plan(&story.world.observed, story.now).is_at_rest());
}

#[test]
fn without_placements_the_add_on_says_nothing_of_the_rollout_before() {
    check(
        "
        config A v1
        place prod: a1 a2
        rollout prod config=A
        settle
        install Manual
        settle
        show conditions
        note a user makes an instance
        defaults config=A
        clusters u1
        user u1
        pass 2
        show conditions
        fail u1
        pass 2
        show conditions
        ack u1
        settle
        show conditions
        show writes",
        &expect![[r#"
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False Settled  nothing is rolled out: no placement governs an instance
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            -- a user makes an instance
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  True Upgrading  upgrading... 1 instance that no placement governs
            Succeeded  False Upgrading  1 that no placement governs have not settled
            Reconciling  True Upgrading  1 that no placement governs have not settled
            Stalled  False NotStalled  nothing is stalled
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False UpgradeFailed  upgrade failed: 1 instance that no placement governs
            Succeeded  False Upgrading  1 that no placement governs have not settled
            Reconciling  True Upgrading  1 that no placement governs have not settled
            Stalled  False NotStalled  nothing is stalled
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False Settled  nothing is rolled out: no placement governs an instance
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            0 writes
        "#]],
    );
}

#[test]
fn a_pause_is_the_state_of_an_add_on_where_nothing_moves() {
    check(
        "
        config A v1
        config B v2
        place canary: c1 c2
        place prod: p1..p4
        rollout canary config=A
        rollout prod config=A Canary 2 canary=canary
        settle
        note in flight
        rollout canary config=B RollingUpdate 1
        rollout prod config=B Canary 2 canary=canary paused
        pass 2
        rollout canary config=B RollingUpdate 1 paused
        pass 2
        show conditions
        note nothing in flight
        ack c1
        pass 2
        show conditions
        note only the canary goes on
        rollout canary config=B RollingUpdate 1
        settle
        show conditions",
        &expect![[r#"
            -- in flight
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  True Upgrading  default/canary: 1/2 upgrading... paused
            Succeeded  False Upgrading  default/canary: 1/2 upgrading... paused; also paused: default/prod
            Reconciling  True Upgrading  default/canary: 1/2 upgrading... paused; also paused: default/prod
            Stalled  False NotStalled  nothing is stalled
            -- nothing in flight
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  True Upgrading  default/canary: 1/2 upgrading... paused
            Succeeded  False Paused  default/canary: 1/2 upgrading... paused; also paused: default/prod
            Reconciling  True Paused  default/canary: 1/2 upgrading... paused; also paused: default/prod
            Stalled  False NotStalled  nothing is stalled
            -- only the canary goes on
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  True Upgrading  default/prod: 0/4 upgrading... paused
            Succeeded  False Paused  default/prod: 0/4 upgrading... paused
            Reconciling  True Paused  default/prod: 0/4 upgrading... paused
            Stalled  False NotStalled  nothing is stalled
        "#]],
    );
}
