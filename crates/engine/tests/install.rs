//! The install controller, rule by rule (chapter 4 of the rules).

use crate::story::{Story, check, cluster};
use aviary_engine::plan::{Write, plan};
use expect_test::expect;

#[test]
fn rule_1_manual_creates_and_deletes_nothing() {
    check(
        "
        config A v1
        clusters a1 a2
        user a1
        defaults config=A
        settle
        show all
        show a2",
        &expect![[r#"
            a1               settled   v1       settled
            a2  no instance
        "#]],
    );
}

#[test]
fn rule_1_a_label_selector_selects_by_the_labels_of_the_clusters() {
    check(
        "
        config A v1
        clusters a1 a2 b1
        addon { defaultConfigs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: A } ], installStrategy: { type: ClusterLabelSelector, labelSelector: { matchExpressions: [ { key: name, operator: In, values: [ a1, a2 ] } ] } } }
        settle
        show all
        note the selector shrinks: what it made and no longer selects goes
        addon { defaultConfigs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: A } ], installStrategy: { type: ClusterLabelSelector, labelSelector: { matchLabels: { name: a1 } } } }
        show clusters
        settle
        show all",
        &expect![[r#"
            a1..a2 (2)       settled   v1       settled
            -- the selector shrinks: what it made and no longer selects goes
            a2               delete    v1       no longer selected
            a1               settled   v1       settled
        "#]],
    );
}

#[test]
fn rule_1_placements_select_the_union_of_their_decisions() {
    check(
        "
        place one: a1 a2
        place two: a2 a3
        rollout one ns=one-ns
        rollout two ns=two-ns
        show clusters",
        &expect![[r#"
            a1..a3 (3)       create    -        selected, instance is created
        "#]],
    );
}

#[test]
fn rule_2_an_instance_is_made_with_the_install_namespace_the_marker_and_the_owner() {
    let mut story = Story::new();
    story.run("config A v1\n place aws: a1\n place gcp: g1\n rollout aws config=A ns=aws-addon-ns\n rollout gcp config=A ns=gcp-addon-ns\n pass");
    for name in ["a1", "g1"] {
        let instance = &story.world.observed.instances.get(&cluster(name)).unwrap();
        assert_eq!(instance.marker.as_deref(), Some("Placements"));
        assert_eq!(instance.owner.as_deref(), Some("addon-uid"));
        assert!(
            instance.overrides.is_empty() && instance.version.is_none(),
            "configs and versions are never copied"
        );
    }
    assert_eq!(
        &*story.world.observed.instances.get(&cluster("a1")).unwrap().install_namespace,
        "aws-addon-ns"
    );
    assert_eq!(
        &*story.world.observed.instances.get(&cluster("g1")).unwrap().install_namespace,
        "gcp-addon-ns"
    );
}

#[test]
fn rule_2_what_a_strategy_made_goes_when_deselected_and_what_a_user_made_stays() {
    check(
        "
        config A v1
        defaults config=A
        clusters a2
        user a2
        place prod: a1 a2 a3
        rollout prod
        settle
        place prod: a3
        show clusters
        settle
        show all",
        &expect![[r#"
            a1               delete    v1       no longer selected
            a2..a3 (2)       settled   v1       settled
        "#]],
    );
}

#[test]
fn rule_3_placements_to_manual_keeps_everything_as_it_is() {
    check(
        "
        config A v1
        config B v2
        defaults config=A
        place prod: a1 a2
        rollout prod config=B
        settle
        install Manual
        settle
        show all
        show a1
        show conditions",
        &expect![[r#"
            a1..a2 (2)       hold      v2       kept unchanged: no placement governs it any more
            a1  addonhubconfigs desired B@cdf58b3d applied B@cdf58b3d
            a1  version desired v2 current v2 last -
            a1  Progressing False InstallSucceed: install completed with no errors.
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False Settled  nothing is rolled out: no placement governs an instance
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
        "#]],
    );
}

/// The drill: everything is on v1, v2 crashes in the canary, and the strategy is `Manual` for a
/// while.
#[test]
fn rule_3_what_was_known_good_before_a_time_without_placements_still_is() {
    check(
        "
        template v1 v2
        place canary: c1
        place prod: p1 p2
        rollout canary version=v1 RollingUpdate 1
        rollout prod version=v1 Canary 1 canary=canary
        settle
        bad v2 broken
        rollout canary version=v2 RollingUpdate 1
        rollout prod version=v2 Canary 1 canary=canary
        settle
        note without placements, and with them again
        install Manual
        settle
        rollout canary version=v2 RollingUpdate 1
        rollout prod version=v2 Canary 1 canary=canary
        settle
        note a cluster joins
        place prod: p1 p2 p3
        settle
        show all",
        &expect![[r#"
            -- without placements, and with them again
            -- a cluster joins
            c1               in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            p1..p3 (3)       hold      v1       canary default/canary: 1 of 1 not passed, first c1
        "#]],
    );
}

#[test]
fn rule_3_manual_to_placements_leaves_what_users_made_untouched() {
    let mut story = Story::new();
    story.run("config A v1\n config mine v9\n addon { supportedConfigs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs } ] }\n clusters a1\n user a1 { installNamespace: mine, configs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: mine } ] }\n settle\n place prod: a1 a2\n rollout prod config=A\n settle\n show a1");
    let instance = &story.world.observed.instances.get(&cluster("a1")).unwrap();
    assert_eq!(instance.marker, None);
    assert_eq!(&*instance.install_namespace, "mine");
    expect![[r#"
        a1  addonhubconfigs desired mine@23616dea applied mine@23616dea
        a1  version desired v9 current v9 last -
        a1  Progressing False InstallSucceed: install completed with no errors.
        a1  Configured True ConfigurationsConfigured: all configurations are resolved
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn rule_4_nothing_is_made_for_a_cluster_that_is_absent_going_or_opted_out() {
    let mut story = Story::new();
    story.run("config A v1\n place prod: a1 a2 a3 a4\n rollout prod config=A\n gone a1\n delete a2");
    story.world.observed.clusters.get_mut(&cluster("a3")).expect("a cluster").opted_out = true;
    story.run("show clusters\n settle\n show all\n show status");
    expect![[r#"
        a1               hold      -        selected, but there is no such cluster
        a2               hold      -        the cluster is being deleted
        a3               hold      -        selected, but the cluster opts out of automatic installation
        a4               create    -        selected, instance is created
        a1               hold      -        selected, but there is no such cluster
        a2               hold      -        the cluster is being deleted
        a3               hold      -        selected, but the cluster opts out of automatic installation
        a4               settled   v1       settled
        prod  False InstallSucceed  1/1 install completed with no errors.
            desired A good A applied A
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn rule_4_a_cluster_without_its_namespace_waits_for_it_and_is_named() {
    check(
        "
        config A v1
        place prod: a1 a2 a3
        rollout prod config=A
        homeless a2 a3
        settle
        show all
        show conditions
        note their namespaces are there
        homeless
        settle
        show all
        show conditions",
        &expect![[r#"
            a1               settled   v1       settled
            a2..a3 (2)       hold      -        selected, but its namespace on the hub, which has its name, does not exist
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            NamespacesMissing  True ClusterNamespaceMissing  2 clusters are waiting for their namespaces on the hub: a2, a3
            Progressing  True Installing  default/prod: 1/3 installing...
            Succeeded  False Installing  default/prod: 1/3 installing...
            Reconciling  True Installing  default/prod: 1/3 installing...
            Stalled  False NotStalled  nothing is stalled
            -- their namespaces are there
            a1..a3 (3)       settled   v1       settled
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            NamespacesMissing  False NothingMissing  every cluster has its namespace
            Progressing  False InstallSucceed  default/prod: 3/3 install completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
        "#]],
    );
}

#[test]
fn rule_4_a_deleting_cluster_loses_every_instance_also_a_users() {
    check(
        "
        config A v1
        defaults config=A
        clusters a1 a2
        user a1
        place prod: a2
        rollout prod
        settle
        delete a1 a2
        show clusters
        settle
        show all",
        &expect![[r#"
            a1..a2 (2)       delete    v1       the cluster is being deleted
            a2               hold      -        the cluster is being deleted
        "#]],
    );
}

/// The writes for a settled fleet of which one cluster is being deleted.
fn with_a_deleting_cluster(prepare: impl Fn(&mut Story)) -> Vec<String> {
    let mut story = Story::new();
    story.run("config A v1\n defaults config=A\n place prod: a1 a2\n rollout prod\n settle\n delete a1");
    prepare(&mut story);
    let plan = plan(&story.world.observed, story.now);
    let deleted = plan.writes().filter_map(|write| match write {
        Write::Delete(delete) => Some(delete.cluster.to_string()),
        _ => None,
    });
    deleted.collect()
}

#[test]
fn rule_4_a_deleting_cluster_loses_its_instance_also_while_its_add_on_is_being_deleted() {
    assert_eq!(with_a_deleting_cluster(|story| story.world.observed.addon.deleting = true), ["a1"]);
    let none: [&str; 0] = [];
    let is_ocm = |story: &mut Story| {
        story.run("hub ocm");
        story.world.observed.addon.deleting = true;
    };
    assert_eq!(with_a_deleting_cluster(is_ocm), none, "OCM's registration deletes it");
}

#[test]
fn rule_4_nothing_is_deleted_of_an_add_on_that_manages_itself_nor_on_a_hub_of_ocm() {
    let none: [&str; 0] = [];
    assert_eq!(with_a_deleting_cluster(|_| {}), ["a1"]);
    assert_eq!(with_a_deleting_cluster(|story| story.world.observed.addon.self_managed = true), none);
    assert_eq!(with_a_deleting_cluster(|story| story.run("hub ocm")), none);
}

#[test]
fn rule_5_a_placement_that_does_not_exist_is_unknown_and_not_empty() {
    check(
        "
        config A v1
        config B v2
        defaults config=A
        place prod: a1 a2 a3
        rollout prod config=B
        settle
        unplace prod
        settle
        show clusters
        show status
        show conditions
        place prod: a1 a2 a3
        settle
        show all",
        &expect![[r#"
            a1..a3 (3)       hold      v2       no longer selected, but its placement is unknown or still changing
            prod  False UpgradeFailed  0/0 upgrade failed: placement default/prod does not exist: its clusters are unknown, so nothing is deleted
                desired B good B applied B
            Valid  True Valid  the spec is valid
            PlacementsResolved  False PlacementUnknown  placement default/prod does not exist: its clusters are unknown, so nothing is deleted
            Progressing  False UpgradeFailed  default/prod: 0/0 upgrade failed: placement default/prod does not exist: its clusters are unknown, so nothing is deleted
            Succeeded  False UpgradeFailed  default/prod: 0/0 upgrade failed: placement default/prod does not exist: its clusters are unknown, so nothing is deleted
            Reconciling  False Stalled  the rollout continues when the cause is fixed
            Stalled  True UpgradeFailed  default/prod: 0/0 upgrade failed: placement default/prod does not exist: its clusters are unknown, so nothing is deleted
            a1..a3 (3)       settled   v2       settled
        "#]],
    );
}

#[test]
fn rule_5_a_placement_that_is_made_again_is_undecided_and_not_empty() {
    check(
        "
        config A v1
        place prod: a1 a2 a3
        rollout prod config=A
        settle
        note nobody has decided yet
        place prod (undecided):
        settle
        show all
        show conditions
        note it selects one less
        place prod: a2 a3
        pass
        show all
        note none is selected, says a controller
        place prod:
        pass
        show all",
        &expect![[r#"
            -- nobody has decided yet
            a1..a3 (3)       hold      v1       no longer selected, but its placement is unknown or still changing
            Valid  True Valid  the spec is valid
            PlacementsResolved  False PlacementUndecided  no placement controller has decided yet which clusters placement default/prod selects: nothing is deleted until one has
            Progressing  True Upgrading  default/prod: 0/0 the placement's decisions are not known yet
            Succeeded  False PlacementUndecided  default/prod: no placement controller has decided yet which clusters it selects
            Reconciling  True PlacementUndecided  default/prod: no placement controller has decided yet which clusters it selects
            Stalled  False NotStalled  nothing is stalled
            -- it selects one less
            a2..a3 (2)       settled   v1       settled
            -- none is selected, says a controller
        "#]],
    );
}

#[test]
fn rule_5_decisions_that_do_not_add_up_let_creates_go_on_and_deletes_wait() {
    check(
        "
        config A v1
        place prod (3): a1 a2 a3
        rollout prod config=A
        settle
        place prod (4): a1 a2 a4
        show clusters
        settle
        place prod (3): a1 a2 a4
        show clusters",
        &expect![[r#"
            a3               hold      v1       no longer selected, but its placement is unknown or still changing
            a4               create    -        selected, instance is created
            a3               delete    v1       no longer selected
        "#]],
    );
}

#[test]
fn rule_5_the_brake_holds_a_mass_deletion_until_a_person_acknowledges_its_number() {
    check(
        "
        config A v1
        place prod: a01..a40
        rollout prod config=A
        settle
        place prod: a01..a25
        settle
        show clusters
        show conditions
        note another number acknowledges nothing
        annotate allow-deletions=14
        show clusters
        annotate allow-deletions=15
        settle
        show clusters
        show conditions",
        &expect![[r#"
            a26..a40 (15)    hold      v1       no longer selected, but the deletion brake holds
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 25/25 install completed with no errors.
            Succeeded  False DeletionHeld  15 of 40 instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions="15"
            Reconciling  False Stalled  the rollout continues when the cause is fixed
            Stalled  True DeletionHeld  15 of 40 instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions="15"
            DeletionsHeld  True DeletionHeld  15 of 40 instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions="15"
            -- another number acknowledges nothing
            a26..a40 (15)    hold      v1       no longer selected, but the deletion brake holds
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 25/25 install completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            DeletionsHeld  False NothingHeld  no deletion is held back
        "#]],
    );
}

#[test]
fn rule_5_an_acknowledged_deletion_that_is_interrupted_goes_on_and_allows_nothing_else() {
    check(
        "
        config A v1
        place prod: a01..a40
        rollout prod config=A
        settle
        place prod: a01..a25
        settle
        annotate allow-deletions=15
        note a crash after the status and one deletion
        crash 2
        show clusters
        show conditions
        settle
        show clusters
        note the same number for another deletion
        place prod: a01..a14
        show clusters",
        &expect![[r#"
            -- a crash after the status and one deletion
            a27..a40 (14)    delete    v1       no longer selected
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 25/25 install completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            DeletionsHeld  False DeletionAcknowledged  15 deletions were acknowledged and are under way
            -- the same number for another deletion
            a15..a25 (11)    hold      v1       no longer selected, but the deletion brake holds
        "#]],
    );
}

#[test]
fn rule_5_ten_deletions_or_a_quarter_pass_the_brake() {
    check(
        "
        config A v1
        place prod: a01..a12
        rollout prod config=A
        settle
        place prod: a01 a02
        pass
        show clusters
        show status",
        &expect![[r#"
            prod  False InstallSucceed  2/2 install completed with no errors.
                desired A good A applied A
        "#]],
    );
}

#[test]
fn rule_6_an_add_on_that_manages_itself_is_left_alone() {
    check(
        "
        config A v1
        place prod: a1
        rollout prod config=A
        annotate lifecycle=self
        settle
        show writes
        show a1",
        &expect![[r#"
            0 writes
            a1  no instance
        "#]],
    );
}

#[test]
fn what_has_started_finishes_also_while_its_placement_is_unknown() {
    check(
        "
        template v1 v2
        place prod: a1 a2
        rollout prod version=v1 RollingUpdate 1
        settle
        rollout prod version=v2 RollingUpdate 1
        pass
        unplace prod
        settle
        show clusters
        show a1
        note and a work that somebody edits is put back
        edit a2
        pass
        show works",
        &expect![[r#"
            a1               hold      v2       no longer selected, but its placement is unknown or still changing
            a2               hold      v1       no longer selected, but its placement is unknown or still changing
            a1  addonhubconfigs desired v2@cdf58b3d applied v2@cdf58b3d
            a1  version desired v2 current v2 last v1
            a1  Progressing False UpgradeSucceed: upgrade completed with no errors.
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  Available True WorksAvailable: all works are available
            -- and a work that somebody edits is put back
            a1  addon-helloworld-deploy-0 generation 2 version v2
            a2  addon-helloworld-deploy-0 generation 3 version v1
        "#]],
    );
}

#[test]
fn an_instance_whose_cluster_or_strategy_cannot_be_read_does_not_fall_back_to_the_defaults() {
    check(
        "
        config A v1
        config B v2
        defaults config=A
        clusters a2
        user a2
        place prod: a1 a2
        rollout prod config=B
        settle
        note a1 has lost its ManagedCluster
        gone a1
        settle
        show all
        note and the install strategy has a type that nobody knows
        install Placement
        settle
        show all
        show problems",
        &expect![[r#"
            -- a1 has lost its ManagedCluster
            a1               hold      v2       selected, but there is no such cluster
            a2               settled   v2       settled
            -- and the install strategy has a type that nobody knows
            a1               hold      v2       kept unchanged: no placement governs it any more
            a2               hold      v2       unclear which placement governs it: kept unchanged
            problem  InstallTypeUnknown: install strategy type "Placement" is not known: use Manual, ClusterLabelSelector or Placements
        "#]],
    );
}

#[test]
fn rule_5_while_a_later_placement_is_unknown_nobody_takes_its_clusters_over() {
    check(
        "
        config A v1
        config B v2
        config A2 v1.1
        place all: a1 a2 a3
        place special: a3
        rollout all config=A
        rollout special config=B
        settle
        unplace special
        settle
        show all
        note the clusters that are certainly its own go on
        rollout all config=A2
        settle
        show all
        place special: a3
        settle
        show all",
        &expect![[r#"
            a1..a2 (2)       settled   v1       settled
            a3               hold      v2       unclear which placement governs it: kept unchanged
            -- the clusters that are certainly its own go on
            a1..a2 (2)       settled   v1.1     settled
            a3               hold      v2       unclear which placement governs it: kept unchanged
            a1..a2 (2)       settled   v1.1     settled
            a3               settled   v2       settled
        "#]],
    );
}

#[test]
fn rule_5_deletions_under_way_count_towards_the_brake() {
    let mut story = Story::new();
    story.run("config A v1\n place prod: a01..a40\n rollout prod config=A\n settle\n place prod: a09..a40");
    // Eight are deselected, which the brake lets pass; they take their time to go.
    for number in 1..=8 {
        let mut instance =
            story.world.observed.instances.get_mut(&cluster(&format!("a0{number}"))).expect("an instance");
        instance.deleting = true;
    }
    story.run("note eight more would make sixteen of forty\n place prod: a17..a40\n show clusters");
    expect![[r#"
        -- eight more would make sixteen of forty
        a01..a08 (8)     hold      v1       the instance is being deleted
        a09..a16 (8)     hold      v1       no longer selected, but the deletion brake holds
    "#]]
    .assert_eq(&story.told);
}
