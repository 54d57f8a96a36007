//! On a hub with OCM's CRDs.

use crate::story::{Story, check, cluster};
use aviary_engine::name::Text;
use aviary_engine::normalise;
use aviary_engine::plan::{StatusWrite, Write, plan};
use aviary_engine::status::publish;
use expect_test::expect;
use serde_json::{Value, json};

/// OCM's CRD sets `minSuccessTime: "0"`, `progressDeadline: None` and `maxFailures: 0` in every
/// Progressive strategy.
#[test]
fn a_strategy_with_the_defaults_of_ocms_schema_rolls_out() {
    check(
        "
        hub ocm
        config A v1
        config B v2
        clusters a1..a4
        place prod: a1..a4
        rollout prod Progressive 2 config=A minSuccessTime=0 progressDeadline=None maxFailures=0
        settle
        rollout prod Progressive 2 config=B minSuccessTime=0 progressDeadline=None maxFailures=0
        pass
        show clusters
        settle
        show clusters
        pass
        show writes
        ",
        &expect![[r#"
            a1..a2 (2)       in flight v2       updating
            a3..a4 (2)       hold      a84cccaf9d18 budget full: 2 of 2 in flight
            0 writes
        "#]],
    );
}

/// The add-on has no conditions there, so they are in its record; the brake finds what was
/// acknowledged in it.
#[test]
fn the_brake_and_its_acknowledgement_work_with_a_record() {
    check(
        "
        hub ocm
        config A v1
        clusters a01..a40
        place prod: a01..a40
        rollout prod All config=A
        settle
        place prod: a01..a25
        settle
        show conditions
        annotate allow-deletions=15
        crash 6
        show conditions
        settle
        show clusters
        pass
        show writes
        ",
        &expect![[r#"
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 25/25 install completed with no errors.
            Succeeded  False DeletionHeld  15 of 40 instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions="15"
            Reconciling  False Stalled  the rollout continues when the cause is fixed
            Stalled  True DeletionHeld  15 of 40 instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions="15"
            DeletionsHeld  True DeletionHeld  15 of 40 instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions="15"
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False InstallSucceed  default/prod: 25/25 install completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
            DeletionsHeld  False DeletionAcknowledged  15 deletions were acknowledged and are under way
            0 writes
        "#]],
    );
}

/// OCM's schema has no canary and no pause: a policy has both.
#[test]
fn a_policy_adds_a_canary_and_a_pause_and_is_named() {
    check(
        "
        hub ocm
        config A v1
        config B v2
        clusters c1 p1..p4
        place canary: c1
        place prod: p1..p4
        rollout canary All config=A
        rollout prod Progressive 2 config=A minSuccessTime=0 maxFailures=0
        policy first canary=canary
        settle
        rollout canary All config=B
        rollout prod Progressive 2 config=B minSuccessTime=0 maxFailures=0
        pass
        show clusters
        policy freeze paused placements=prod
        ack c1
        pass 2
        show clusters
        policy freeze
        settle
        show clusters
        pass
        show writes
        ",
        &expect![[r#"
            c1               in flight v2       updating
            p1..p4 (4)       hold      v1       canary default/canary: 1 of 1 not passed, first c1; AddOnRolloutPolicy first requires it
            p1..p4 (4)       hold      a84cccaf9d18 paused by AddOnRolloutPolicy freeze
            0 writes
        "#]],
    );
}

/// Two policies with a canary each: both must pass, and neither waits for itself.
#[test]
fn every_canary_that_policies_require_must_pass() {
    check(
        "
        config A v1
        config B v2
        clusters c1 e1 p1..p2
        place canary: c1
        place early: e1
        place prod: p1..p2
        rollout canary UpdateAll config=A
        rollout early UpdateAll config=A
        rollout prod UpdateAll config=A
        policy one canary=canary placements=prod
        policy two canary=early placements=prod
        settle
        rollout canary UpdateAll config=B
        rollout early UpdateAll config=B
        rollout prod UpdateAll config=B
        pass
        ack c1
        pass 2
        show clusters
        ack e1
        pass 2
        show clusters
        settle
        show clusters
        ",
        &expect![[r#"
            e1               in flight v2       updating
            p1..p2 (2)       hold      v1       canary default/early: 1 of 1 not passed, first e1; AddOnRolloutPolicy two requires it
            p1..p2 (2)       in flight v2       updating
        "#]],
    );
}

#[test]
fn a_policys_limit_replaces_the_add_ons_own_and_a_broken_policy_holds() {
    check(
        "
        config A v1
        config B v2
        clusters p1..p4
        place prod: p1..p4
        rollout prod RollingUpdate 2 config=A maxFailures=4
        settle
        policy strict maxFailures=0
        rollout prod RollingUpdate 2 config=B maxFailures=4
        pass
        fail p1
        ack p2
        pass 2
        show clusters
        policy strict
        policy odd minSuccessTime=soon
        pass
        show clusters
        show problems
        ",
        &expect![[r#"
            p1               failed    v2       failed: work reports Applied=False: boom
            p3..p4 (2)       hold      v1       halted: 1 failed, 0 tolerated
            p1               failed    v2       failed: work reports Applied=False: boom
            p3..p4 (2)       hold      v1       AddOnRolloutPolicy odd cannot be used, so it holds what it covers: spec.minSuccessTime: "soon" is not a duration: give one such as 90s, 10m or 1h30m
            problem  PolicyInvalid: AddOnRolloutPolicy odd cannot be used, so it holds what it covers: spec.minSuccessTime: "soon" is not a duration: give one such as 90s, 10m or 1h30m
        "#]],
    );
}

/// OCM's registration removes the instances of a cluster that leaves, and says that a cluster is
/// not heard of.
#[test]
fn what_ocms_registration_does_is_left_to_it() {
    check(
        "
        hub ocm
        template v1
        clusters a1..a2
        place prod: a1..a2
        rollout prod All template=helloworld-v1
        settle
        show a1
        delete a2
        pass
        show clusters
        offline a1
        unavailable a1
        pass
        show a1
        ",
        &expect![[r#"
            a1  Progressing False Completed: completed with no errors.
            a1  Configured True ConfigurationsConfigured: Configurations configured
            a1  Available True ProbeAvailable: helloworld add-on is available.
            a1  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a1  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            a2               hold      4a2e223e5c4a the cluster is being deleted
            a1  Progressing False Completed: completed with no errors.
            a1  Configured True ConfigurationsConfigured: Configurations configured
            a1  Available True ProbeAvailable: helloworld add-on is available.
            a1  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a1  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
        "#]],
    );
}

/// The words of OCM's newest add-on manager. Who waits says so, and so does a work that is refused.
#[test]
fn statuses_are_in_ocms_words() {
    check(
        "
        hub ocm
        template v1
        template v2
        clusters a1..a4
        place prod: a1..a4
        rollout prod Progressive 2 template=helloworld-v1 minSuccessTime=0 maxFailures=0
        pass 2
        show a1
        settle
        show status
        rollout prod Progressive 2 template=helloworld-v2 minSuccessTime=0 maxFailures=0
        pass 2
        show status
        show a1
        show a3
        fail a1
        pass 2
        show status
        show health
        show a1
        ",
        &expect![[r#"
            a1  Progressing False WaitingForManifestApplied: Waiting for ManagedClusterAddOn ManifestApplied condition
            a1  Configured True ConfigurationsConfigured: Configurations configured
            a1  Available Unknown WorkNotApplied: Addon manifestWork is not applied yet
            a1  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            prod  False Completed  selected clusters 4. configured addons 4/4 completed with no errors, 0 failed 0 timeout.
                desired helloworld-v1 good helloworld-v1 applied helloworld-v1
            prod  True Progressing  selected clusters 4. configured addons 2/4 progressing..., 0 failed 0 timeout.
                desired helloworld-v2 good helloworld-v1 applied helloworld-v1
            a1  Progressing True Progressing: progressing... work is not ready
            a1  Configured True ConfigurationsConfigured: Configurations configured
            a1  Available True ProbeAvailable: helloworld add-on is available.
            a1  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a1  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            a3  Progressing False Completed: completed with no errors.
            a3  Configured False ConfigurationsNotConfigured: Configurations updated and not configured yet
            a3  Available True ProbeAvailable: helloworld add-on is available.
            a3  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a3  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            prod  True Progressing  selected clusters 4. configured addons 1/4 progressing..., 1 failed 0 timeout.
                desired helloworld-v2 good helloworld-v1 applied helloworld-v1
            prod  Progressing True Progressing since 2026-01-01T00:00:00Z: selected clusters 4. configured addons 1/4 progressing..., 1 failed 0 timeout.
            prod  Healthy False ClustersUnhealthy since 2026-01-01T00:00:00Z: 1 unhealthy: a1
            prod  Stalled True UpgradeFailed since 2026-01-01T00:00:00Z: 2/4 upgrade failed: halted, 1 failed and 0 tolerated: a1
            a1  Progressing False Failed: work reports Applied=False: boom
            a1  Configured True ConfigurationsConfigured: Configurations configured
            a1  Available True ProbeAvailable: helloworld add-on is available.
            a1  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a1  ManifestApplied False AddonManifestAppliedFailed: failed to apply the manifests of addon
        "#]],
    );
}

/// Works of a hosted add-on are in the namespace of the hosting cluster. Only those on the cluster
/// that the instance names count: every agent can label its own works.
#[test]
fn hosted_works_count_if_they_are_where_their_instance_says() {
    check(
        "
        hub ocm
        config A v1
        clusters a1..a2
        place prod: a1..a2
        rollout prod All config=A
        settle
        works a1 h1
        pass
        show clusters
        host a1 h2
        pass
        show clusters
        host a1 h1
        pass
        show clusters
        pass
        show writes
        ",
        &expect![[r#"
            a1               in flight v1       updating
            a1               in flight v1       updating
            0 writes
        "#]],
    );
}

/// Templates are not hosted: nothing is written for such an instance, and what is there stays.
#[test]
fn an_instance_of_a_template_that_asks_to_be_hosted_gets_nothing_and_keeps_what_it_has() {
    check(
        "
        hub ocm
        template v1
        template v2
        clusters a1..a3
        user a1
        host a1 h1
        place prod: a1..a3
        rollout prod All template=helloworld-v1
        settle
        show clusters
        show a1
        show works
        host a2 h1
        rollout prod All template=helloworld-v2
        settle
        show clusters
        show a2
        show works
        host a1
        host a2
        settle
        show clusters
        show a2
        pass
        show writes
        ",
        &expect![[r#"
            a1               hold      -        the instance asks to be hosted on cluster "h1", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name
            a1  Progressing False Failed: the instance asks to be hosted on cluster "h1", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name
            a1  Configured False HostingClusterInvalid: the instance asks to be hosted on cluster "h1", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name
            a1  Available Unknown WorkNotApplied: Addon manifestWork is not applied yet
            a1  HostingClusterValidity False HostingClusterInvalid: the instance asks to be hosted on cluster "h1", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name
            a2  addon-helloworld-deploy-0 generation 1 version v1
            a3  addon-helloworld-deploy-0 generation 1 version v1
            a1               hold      -        the instance asks to be hosted on cluster "h1", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name
            a2               hold      4a2e223e5c4a the instance asks to be hosted on cluster "h1", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name
            a2  Progressing False Failed: the instance asks to be hosted on cluster "h1", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name
            a2  Configured False HostingClusterInvalid: the instance asks to be hosted on cluster "h1", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name
            a2  Available True ProbeAvailable: helloworld add-on is available.
            a2  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a2  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            a2  HostingClusterValidity False HostingClusterInvalid: the instance asks to be hosted on cluster "h1", and the works of a template go only to the instance's own cluster: nothing is written; remove the annotation addon.open-cluster-management.io/hosting-cluster-name
            a2  addon-helloworld-deploy-0 generation 1 version v1
            a3  addon-helloworld-deploy-0 generation 2 version v2
            a2  Progressing False Completed: completed with no errors.
            a2  Configured True ConfigurationsConfigured: Configurations configured
            a2  Available True ProbeAvailable: helloworld add-on is available.
            a2  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a2  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            0 writes
        "#]],
    );
}

/// As with OCM: all of them, in order, and an instance's own list replaces that of its placement.
#[test]
fn several_configs_of_one_kind_are_assigned_in_order() {
    check(
        "
        hub ocm
        template v1
        deploy default/A X=1
        deploy default/B X=2
        place prod: a1 a2
        rollout prod All template=helloworld-v1 deploy=default/A deploy=default/B
        user a2 {configs: [{group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: default, name: B}]}
        settle
        show a1
        show a2
        show status
        pass
        show writes
        rollout prod All template=helloworld-v1 deploy=default/B deploy=default/A
        pass
        show a1
        settle
        show a1
        show status
        rollout prod All template=helloworld-v1 deploy=default/A
        settle
        show a1
        show status
        user a2 {}
        settle
        show a2
        pass
        show writes
        ",
        &expect![[r#"
            a1  addondeploymentconfigs desired A@de3b02c4 applied A@de3b02c4
            a1  addondeploymentconfigs desired B@e278275d applied B@e278275d
            a1  Progressing False Completed: completed with no errors.
            a1  Configured True ConfigurationsConfigured: Configurations configured
            a1  Available True ProbeAvailable: helloworld add-on is available.
            a1  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a1  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            a2  addondeploymentconfigs desired B@e278275d applied B@e278275d
            a2  Progressing False Completed: completed with no errors.
            a2  Configured True ConfigurationsConfigured: Configurations configured
            a2  Available True ProbeAvailable: helloworld add-on is available.
            a2  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a2  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            prod  False Completed  selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.
                desired A+B good A+B applied A+B
            0 writes
            a1  addondeploymentconfigs desired B@e278275d applied A@de3b02c4
            a1  addondeploymentconfigs desired A@de3b02c4 applied B@e278275d
            a1  Progressing True Progressing: progressing... work is not ready
            a1  Configured True ConfigurationsConfigured: Configurations configured
            a1  Available True ProbeAvailable: helloworld add-on is available.
            a1  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a1  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            a1  addondeploymentconfigs desired B@e278275d applied B@e278275d
            a1  addondeploymentconfigs desired A@de3b02c4 applied A@de3b02c4
            a1  Progressing False Completed: completed with no errors.
            a1  Configured True ConfigurationsConfigured: Configurations configured
            a1  Available True ProbeAvailable: helloworld add-on is available.
            a1  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a1  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            prod  False Completed  selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.
                desired B+A good B+A applied B+A
            a1  addondeploymentconfigs desired A@de3b02c4 applied A@de3b02c4
            a1  Progressing False Completed: completed with no errors.
            a1  Configured True ConfigurationsConfigured: Configurations configured
            a1  Available True ProbeAvailable: helloworld add-on is available.
            a1  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a1  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            prod  False Completed  selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.
                desired A good A applied A
            a2  addondeploymentconfigs desired A@de3b02c4 applied A@de3b02c4
            a2  Progressing False Completed: completed with no errors.
            a2  Configured True ConfigurationsConfigured: Configurations configured
            a2  Available True ProbeAvailable: helloworld add-on is available.
            a2  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a2  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            0 writes
        "#]],
    );
}

/// What OCM's manager has recorded of an instance is read and written back whole, in order, a
/// config without a hash included.
#[test]
fn all_references_of_an_instance_survive_a_write() {
    let config = |name: &str, hash: char| json!({"namespace": "default", "name": name, "specHash": hash.to_string().repeat(64)});
    let reference = |resource: &str, desired: Value, applied: Option<Value>| {
        let group = "addon.open-cluster-management.io";
        let mut one = json!({"group": group, "resource": resource, "name": desired["name"], "namespace": desired["namespace"],
            "desiredConfig": desired});
        applied.into_iter().for_each(|applied| one["lastAppliedConfig"] = applied);
        one
    };
    let lacking = json!({"namespace": "default", "name": "gone", "specHash": ""});
    let references = json!([
        reference("addondeploymentconfigs", config("b", 'b'), Some(config("b", 'b'))),
        reference("addondeploymentconfigs", config("a", 'a'), None),
        reference("addondeploymentconfigs", lacking, None),
        reference("addontemplates", config("t", 'c'), Some(config("t", 'd'))),
    ]);
    let object = json!({"metadata": {"name": "helloworld", "namespace": "a1"}, "spec": {}, "status": {"configReferences": references}});
    let (instance, _) =
        normalise::instance(&serde_json::from_value(object).expect("an instance")).expect("a name");
    let mut story = Story::new();
    story.run("hub ocm\n config A v1\n place prod: a1\n rollout prod All config=A\n settle\n config A v2");
    let write = plan(&story.world.observed, story.now).writes().find_map(|write| match write {
        Write::Instance(write) => Some(StatusWrite { status: instance.status.clone(), ..write }),
        _ => None,
    });
    let write = write.expect("a status to write");
    assert_eq!(publish::instance(&write, &story.world.observed.served)["configReferences"], references);
}

/// An instance has one version.
#[test]
fn several_versions_in_one_list_are_named_and_nothing_is_written_for_them() {
    check(
        "
        hub ocm
        template v1 v2
        config A v1
        config B v2
        clusters a1..a3
        place prod: a1..a3
        rollout prod All config=A
        settle
        user a3 {configs: [{group: addon.open-cluster-management.io, resource: addonhubconfigs, name: B}, {group: addon.open-cluster-management.io, resource: addonhubconfigs, name: A}]}
        settle
        show clusters
        show a3
        show problems
        rollout prod All config=A config=B
        settle
        show clusters
        show status
        show stalled
        user a3 {}
        rollout prod All config=B
        settle
        show clusters
        show stalled
        pass
        show writes
        ",
        &expect![[r#"
            a3               hold      f56791c6e04c one list has more configs of addonhubconfigs.addon.open-cluster-management.io than the limit of 1: none of them is used until some are removed; the last one is addonhubconfigs.addon.open-cluster-management.io A
            a3  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a3  Progressing False Failed: one list has more configs of addonhubconfigs.addon.open-cluster-management.io than the limit of 1: none of them is used until some are removed; the last one is addonhubconfigs.addon.open-cluster-management.io A
            a3  Configured False ConfigurationNotSingle: one list has more configs of addonhubconfigs.addon.open-cluster-management.io than the limit of 1: none of them is used until some are removed; the last one is addonhubconfigs.addon.open-cluster-management.io A
            a3  Available True ProbeAvailable: helloworld add-on is available.
            a3  RegistrationApplied True NilRegistration: Registration of the addon agent is configured
            a3  ManifestApplied True AddonManifestApplied: manifests of addon are applied successfully
            a1..a2 (2)       hold      v1       one list has more configs of addonhubconfigs.addon.open-cluster-management.io than the limit of 1: none of them is used until some are removed; the last one is addonhubconfigs.addon.open-cluster-management.io B
            a3               hold      f56791c6e04c one list has more configs of addonhubconfigs.addon.open-cluster-management.io than the limit of 1: none of them is used until some are removed; the last one is addonhubconfigs.addon.open-cluster-management.io A
            prod  True Progressing  selected clusters 3. configured addons 0/2 progressing..., 0 failed 0 timeout.
                desired A good A applied A
            prod  Stalled True UpgradeFailed: 0/3 upgrade failed: one list has more configs of addonhubconfigs.addon.open-cluster-management.io than the limit of 1: none of them is used until some are removed; the last one is addonhubconfigs.addon.open-cluster-management.io B
            prod  Stalled False NotStalled: nothing is stalled
            0 writes
        "#]],
    );
}

/// Once for each change, and what the instance has besides stays.
#[test]
fn annotations_follow_from_a_cluster_to_its_instance() {
    let mut story = Story::new();
    story.run("config A v1\n place prod: a1 a2\n rollout prod All config=A\n hub ocm\n settle");
    let a1 = cluster("a1");
    let annotation = |key: &str, value: &str| -> (Text, Text) { (key.into(), value.into()) };
    let cluster_has = |story: &mut Story, all: &[(Text, Text)]| {
        let mut cluster = story.world.observed.clusters.get_mut(&a1).expect("a cluster");
        cluster.addon_annotations = all.iter().cloned().collect();
    };
    let instance_has = |story: &Story| -> Vec<(Text, Text)> {
        let instance = story.world.observed.instances.get(&a1).expect("an instance");
        instance.addon_annotations.clone().into_iter().collect()
    };
    let own = annotation("own", "1");
    story.world.observed.instances.get_mut(&a1).expect("an instance").addon_annotations.extend([own.clone()]);
    cluster_has(&mut story, &[annotation("a", "1"), annotation("b", "1")]);
    let writes = plan(&story.world.observed, story.now).writes().count();
    assert_eq!(writes, 1);
    story.run("pass");
    assert_eq!(instance_has(&story), [annotation("a", "1"), annotation("b", "1"), own.clone()]);
    assert!(plan(&story.world.observed, story.now).is_at_rest());
    cluster_has(&mut story, &[annotation("a", "2")]);
    story.run("settle");
    assert_eq!(instance_has(&story), [annotation("a", "2"), annotation("b", "1"), own]);
    // Only on a hub of OCM.
    let mut elsewhere = Story::new();
    elsewhere.run("config A v1\n place prod: a1\n rollout prod All config=A\n settle");
    cluster_has(&mut elsewhere, &[annotation("a", "1")]);
    assert!(plan(&elsewhere.world.observed, elsewhere.now).is_at_rest());
}
