//! Writes that the hub refuses for one cluster: they hold nobody else up.

use crate::story::check;
use expect_test::expect;

#[test]
fn a_cluster_whose_start_the_hub_refuses_holds_no_slot_and_is_left_out() {
    check(
        "
        config A v1
        config B v2
        place prod: p1..p3
        rollout prod config=A RollingUpdate 1
        settle
        rollout prod config=B RollingUpdate 1
        refuse status p1
        settle
        show clusters
        show status
        show conditions
        note it heals when the hub takes the write
        accept p1
        settle
        show clusters
        show conditions",
        &expect![[r#"
            p1               hold      v1       the hub refuses to write the status of the instance: etcdserver: request is too large
            prod  False UpgradeSucceed  2/3 upgrade completed with no errors.
                desired B good B applied B
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False UpgradeSucceed  default/prod: 2/3 upgrade completed with no errors.
            Succeeded  False WriteRefused  the hub refuses what is to be written for 1 cluster
            Reconciling  True WriteRefused  the hub refuses what is to be written for 1 cluster
            Stalled  False NotStalled  nothing is stalled
            WritesRefused  True WriteRefused  1 cluster: p1: the hub refuses to write the status of the instance: etcdserver: request is too large
            -- it heals when the hub takes the write
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False UpgradeSucceed  default/prod: 3/3 upgrade completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            WritesRefused  False NothingRefused  the hub takes what is written
        "#]],
    );
}

#[test]
fn a_started_cluster_whose_work_the_hub_refuses_has_failed_and_keeps_its_slot() {
    check(
        "
        template v1 v2
        config A v1
        config B v2
        place prod: p1..p3
        rollout prod config=A RollingUpdate 1
        settle
        rollout prod config=B RollingUpdate 1
        pass
        refuse work p1
        settle
        show clusters
        show status
        note where failures are tolerated it gives its slot back
        rollout prod config=B RollingUpdate 1 maxFailures=1
        settle
        show clusters
        show p1
        accept p1
        settle
        show clusters",
        &expect![[r#"
            p1               failed    v2       failed: the hub refuses to write the work: etcdserver: request is too large
            p2..p3 (2)       hold      v1       budget full: 1 of 1 slots taken: 1 failed
            prod  False UpgradeFailed  1/3 upgrade failed: stopped, 1 failed, 1 of 1 slots taken: p1
                desired B good A applied A
            versions v2 v1 default v2
            -- where failures are tolerated it gives its slot back
            p1               failed    v2       failed: the hub refuses to write the work: etcdserver: request is too large
            p1  addonhubconfigs desired B@cdf58b3d applied A@b433cd0d
            p1  version desired v2 current unknown last v1
            p1  Progressing False UpgradeFailed: upgrade failed: the hub refuses to write the work: etcdserver: request is too large
            p1  Configured True ConfigurationsConfigured: all configurations are resolved
            p1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn a_started_cluster_whose_status_the_hub_refuses_keeps_its_slot_until_the_write_goes_through() {
    check(
        "
        template v1 v2 v3
        config A v1
        config B v2
        config C v3
        place prod: p1..p3
        rollout prod config=A RollingUpdate 1
        settle
        rollout prod config=B RollingUpdate 1
        pass 2
        refuse status p1
        ack p1
        pass
        show clusters
        note it is healthy where it is, and was not started for another revision
        rollout prod config=C RollingUpdate 1
        stuck p1
        pass
        show clusters
        accept p1
        settle
        ack p1
        settle
        show clusters",
        &expect![[r#"
            p1               failed    v2       failed: the hub refuses to write the status of the instance: etcdserver: request is too large
            p2..p3 (2)       hold      v1       budget full: 1 of 1 slots taken: 1 failed
            -- it is healthy where it is, and was not started for another revision
            p1               hold      v2       the hub refuses to write the status of the instance: etcdserver: request is too large
            p2               in flight v3       updating
            p3               hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn a_cluster_that_the_hub_takes_no_instance_for_holds_nobody_up() {
    check(
        "
        config A v1
        place prod: p1..p3
        rollout prod config=A RollingUpdate 1
        refuse create p1
        settle
        show clusters
        show conditions
        accept p1
        settle
        show clusters",
        &expect![[r#"
            p1               hold      -        the hub refuses to write the new instance: etcdserver: request is too large
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            WritesRefused  True WriteRefused  1 cluster: p1: the hub refuses to write the new instance: etcdserver: request is too large
            Progressing  True Installing  default/prod: 2/3 installing...
            Succeeded  False Installing  default/prod: 2/3 installing...
            Reconciling  True Installing  default/prod: 2/3 installing...
            Stalled  False NotStalled  nothing is stalled
        "#]],
    );
}

#[test]
fn a_refused_first_install_keeps_no_slot_and_no_placement_open() {
    check(
        "
        config A v1
        config B v2
        place prod: p1..p3
        rollout prod config=A RollingUpdate 1
        pass
        refuse status p1
        settle
        rollout prod config=B RollingUpdate 1
        settle
        show clusters
        show status",
        &expect![[r#"
            p1               hold      -        the hub refuses to write the status of the instance: etcdserver: request is too large
            prod  False UpgradeSucceed  2/3 upgrade completed with no errors.
                desired B good B applied B
        "#]],
    );
}

#[test]
fn an_instance_that_the_hub_does_not_let_go_is_named_and_the_others_go() {
    check(
        "
        config A v1
        place prod: p1..p4
        rollout prod config=A UpdateAll
        settle
        place prod: p3..p4
        refuse delete p1
        settle
        show clusters
        show conditions
        note it goes when the hub lets it go
        accept p1
        settle
        show clusters
        show conditions",
        &expect![[r#"
            p1               hold      v1       the hub refuses to delete the instance: etcdserver: request is too large
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 2/2 install completed with no errors.
            Succeeded  False WriteRefused  the hub refuses what is to be written for 1 cluster
            Reconciling  True WriteRefused  the hub refuses what is to be written for 1 cluster
            Stalled  False NotStalled  nothing is stalled
            WritesRefused  True WriteRefused  1 cluster: p1: the hub refuses to delete the instance: etcdserver: request is too large
            -- it goes when the hub lets it go
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 2/2 install completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            WritesRefused  False NothingRefused  the hub takes what is written
        "#]],
    );
}

#[test]
fn a_cluster_that_is_selected_again_need_not_be_deleted() {
    check(
        "
        config A v1
        place prod: p1..p4
        rollout prod config=A UpdateAll
        settle
        place prod: p3..p4
        refuse delete p1
        pass
        place prod: p1..p4
        settle
        show clusters
        show status",
        &expect![[r#"
            prod  False UpgradeSucceed  4/4 upgrade completed with no errors.
                desired A good A applied A
        "#]],
    );
}

#[test]
fn different_refusals_are_named_with_their_clusters_and_at_most_ten() {
    check(
        "
        template v1 v2
        config A v1
        config B v2
        place prod: p01..p13
        rollout prod config=A UpdateAll
        settle
        rollout prod config=B UpdateAll
        pass
        refuse status p02
        refuse work p01 p03..p13
        pass
        show conditions",
        &expect![[r#"
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False UpgradeFailed  default/prod: 13/13 upgrade failed: completed with failures, 13 failed: p01, p02, p03, p04, p05, p06, p07, p08, p09, p10 and 3 more
            Succeeded  False UpgradeFailed  default/prod: 13/13 upgrade failed: completed with failures, 13 failed: p01, p02, p03, p04, p05, p06, p07, p08, p09, p10 and 3 more
            Reconciling  False Stalled  the rollout continues when the cause is fixed
            Stalled  True UpgradeFailed  default/prod: 13/13 upgrade failed: completed with failures, 13 failed: p01, p02, p03, p04, p05, p06, p07, p08, p09, p10 and 3 more
            WritesRefused  True WriteRefused  13 clusters: p01, p03, p04, p05, p06, p07, p08, p09, p10: the hub refuses to write the work: etcdserver: request is too large; p02: the hub refuses to write the status of the instance: etcdserver: request is too large; and 3 more
        "#]],
    );
}

#[test]
fn a_cluster_on_its_way_elsewhere_that_cannot_be_turned_has_failed_and_keeps_its_slot() {
    check(
        "
        template v1 v2 v3
        config A v1
        config B v2
        config C v3
        place prod: p1..p3
        rollout prod config=A RollingUpdate 1
        settle
        rollout prod config=B RollingUpdate 1
        pass 2
        refuse status p1
        rollout prod config=C RollingUpdate 1
        pass 2
        show clusters
        accept p1
        settle
        show clusters
        show status",
        &expect![[r#"
            p1               failed    v2       failed: the hub refuses to write the status of the instance: etcdserver: request is too large
            p2..p3 (2)       hold      v1       budget full: 1 of 1 slots taken: 1 failed
            prod  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired C good C applied C
            versions v3 v2 v1 default v3
        "#]],
    );
}
