//! Versions, rule by rule (chapter 3 of the rules), and the version examples of the design drafts
//! with their conditions.

use crate::story::{Story, check};
use aviary_engine::observed::Offers;
use aviary_engine::plan::{Offer, Step, Write, plan};
use expect_test::expect;

#[test]
fn rule_1_the_templates_versions_are_published_newest_first_with_the_highest_release_as_default() {
    check(
        "
        template v0.9.0 v0.10.0 v0.11.0-rc.1 nightly
        place prod: a1
        rollout prod
        settle
        show status
        show a1",
        &expect![[r#"
            prod  False InstallSucceed  1/1 install completed with no errors.
                desired helloworld-v0.10.0 good helloworld-v0.10.0 applied helloworld-v0.10.0
            versions v0.11.0-rc.1 v0.10.0 v0.9.0 nightly default v0.10.0
            a1  version desired v0.10.0 current v0.10.0 last -
            a1  Progressing False InstallSucceed: install completed with no errors.
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_2_a_hub_config_chooses_the_template_and_the_shorthand_is_the_same_revision() {
    check(
        "
        template v1.0.0 v2.0.0
        config A v1.0.0
        place prod: a1 a2
        rollout prod config=A
        settle
        show works
        note the shorthand for the same version is the same hash: nothing moves
        rollout prod version=v1.0.0
        pass
        show clusters
        show works",
        &expect![[r#"
            a1  addon-helloworld-deploy-0 generation 1 version v1.0.0
            a2  addon-helloworld-deploy-0 generation 1 version v1.0.0
            -- the shorthand for the same version is the same hash: nothing moves
            a1  addon-helloworld-deploy-0 generation 1 version v1.0.0
            a2  addon-helloworld-deploy-0 generation 1 version v1.0.0
        "#]],
    );
}

#[test]
fn rule_2_a_template_reference_wins_over_a_version() {
    check(
        "
        template v1.0.0 v2.0.0
        config A v2.0.0
        place prod: a1
        rollout prod config=A template=helloworld-v1.0.0
        settle
        show a1",
        &expect![[r#"
            a1  addonhubconfigs desired A@f03ab756 applied A@f03ab756
            a1  version desired v1.0.0 current v1.0.0 last -
            a1  Progressing False InstallSucceed: install completed with no errors.
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_2_with_nothing_said_publishing_a_newer_template_upgrades_by_the_rollout_strategy() {
    check(
        "
        template v1.0.0
        place prod: a1 a2
        rollout prod RollingUpdate 1
        settle
        template v2.0.0
        pass
        show clusters
        settle
        show a2",
        &expect![[r#"
            a1               in flight v2.0.0   updating
            a2               hold      v1.0.0   budget full: 1 of 1 in flight
            a2  version desired v2.0.0 current v2.0.0 last v1.0.0
            a2  Progressing False UpgradeSucceed: upgrade completed with no errors.
            a2  Configured True ConfigurationsConfigured: all configurations are resolved
            a2  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_2_an_edit_of_a_template_in_place_rolls_out_like_any_other_change() {
    check(
        "
        template v1.0.0
        place prod: a1 a2
        rollout prod RollingUpdate 1
        settle
        deploy open-cluster-management/d IMAGE=x
        template v1.0.0 vars CLUSTER_NAME
        pass
        show clusters",
        &expect![[r#"
            a1               in flight v1.0.0   updating
            a2               hold      v1.0.0   budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_3_a_version_that_is_not_offered_never_rolls() {
    check(
        "
        template v1.0.0
        place prod: a1
        config A v3
        rollout prod config=A
        pass 2
        show status
        show a1
        config A v1.0.0
        settle
        config A v3
        pass
        show status
        show a1",
        &expect![[r#"
            prod  False InstallFailed  0/1 install failed: invalid version v3
                desired - good - applied -
            versions v1.0.0 default v1.0.0
            a1  version desired v3 current unknown last -
            a1  Progressing False InstallFailed: could not install invalid version v3
            a1  Configured False VersionUnsupported: invalid version v3
            a1  Available Unknown WorksNotReported: the agent has not reported on all works yet
            prod  False UpgradeFailed  0/1 upgrade failed: invalid version v3
                desired A good A applied A
            versions v1.0.0 default v1.0.0
            a1  addonhubconfigs desired A@5b12c19f applied A@5b12c19f
            a1  version desired v3 current unknown last v1.0.0
            a1  Progressing False UpgradeFailed: could not upgrade to invalid version v3
            a1  Configured False VersionUnsupported: invalid version v3
            a1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_4_who_waits_for_a_version_that_comes_late_says_what_it_has() {
    check(
        "
        template v1.0.0
        place prod: a1 a2
        config A v1.0.0
        rollout prod config=A RollingUpdate 1
        settle
        config B v3.0.0
        rollout prod config=B RollingUpdate 1
        pass 2
        show a2
        template v3.0.0
        pass 2
        show a2",
        &expect![[r#"
            a2  addonhubconfigs desired A@5b12c19f applied A@5b12c19f
            a2  version desired v3.0.0 current unknown last v1.0.0
            a2  Progressing False UpgradeFailed: could not upgrade to invalid version v3.0.0
            a2  Configured False VersionUnsupported: invalid version v3.0.0
            a2  Available True WorksAvailable: all works are available
            a2  addonhubconfigs desired A@5b12c19f applied A@5b12c19f
            a2  version desired v1.0.0 current v1.0.0 last v3.0.0
            a2  Progressing False UpgradeSucceed: upgrade completed with no errors.
            a2  Configured True ConfigurationsConfigured: all configurations are resolved
            a2  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_3_two_templates_of_one_version_are_named_and_nothing_moves() {
    let mut story = Story::new();
    story.run("template v1.0.0 v2.0.0\n place prod: a1\n rollout prod version=v1.0.0\n settle");
    story.put_template(&serde_json::json!({
        "metadata": { "name": "copy" },
        "spec": { "addonName": "helloworld", "version": "v2.0.0" },
    }));
    story.run("rollout prod version=v2.0.0\n pass\n show status");
    expect![[r#"
        prod  False UpgradeFailed  0/1 upgrade failed: version v2.0.0 is the version of two templates, helloworld-v2.0.0 and copy
            desired v1.0.0 good v1.0.0 applied v1.0.0
        versions v2.0.0 v1.0.0 default v2.0.0
    "#]].assert_eq(&story.told);
}

/// The drafts' story: global on v1, canary on v2, then back, then to versions that do not exist.
const DRAFT: &str = "
    template v1 v2
    place global-placement: cluster1 cluster2
    rollout global-placement version=v1
    settle
";

#[test]
fn drafts_fresh_install_to_a_desired_version() {
    check(
        "
        template v1
        place global-placement: cluster1
        rollout global-placement version=v1
        pass 2
        show cluster1
        settle
        show cluster1
        show works",
        &expect![[r#"
            cluster1  addonhubconfigs desired v1@b433cd0d applied -
            cluster1  version desired v1 current unknown last -
            cluster1  Progressing True Installing: Installing addon to version v1.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available Unknown WorksNotReported: the agent has not reported on all works yet
            cluster1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            cluster1  version desired v1 current v1 last -
            cluster1  Progressing False Succeed: install completed with no errors.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
            cluster1  addon-helloworld-deploy-0 generation 1 version v1
        "#]],
    );
}

#[test]
fn drafts_canary_upgrade_to_a_specific_version() {
    check(
        &format!(
            "{DRAFT}
            place canary-placement: cluster1
            rollout canary-placement version=v2
            pass
            show cluster1
            settle
            show cluster1
            show cluster2
            show status"
        ),
        &expect![[r#"
            cluster1  addonhubconfigs desired v2@cdf58b3d applied v1@b433cd0d
            cluster1  version desired v2 current unknown last v1
            cluster1  Progressing True Upgrading: Upgrading addon to version v2.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
            cluster1  addonhubconfigs desired v2@cdf58b3d applied v2@cdf58b3d
            cluster1  version desired v2 current v2 last v1
            cluster1  Progressing False Succeed: install completed with no errors.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
            cluster2  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            cluster2  version desired v1 current v1 last -
            cluster2  Progressing False Succeed: install completed with no errors.
            cluster2  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster2  Available True WorksAvailable: all works are available
            global-placement  False InstallSucceed  1/1 install completed with no errors.
                desired v1 good v1 applied v1
            canary-placement  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired v2 good v2 applied v2
            versions v2 v1 default v2
        "#]],
    );
}

#[test]
fn drafts_upgrade_to_an_invalid_version() {
    check(
        &format!(
            "{DRAFT}
            rollout global-placement version=v3
            pass
            show cluster1
            show works"
        ),
        &expect![[r#"
            cluster1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            cluster1  version desired v3 current unknown last v1
            cluster1  Progressing False Failed: could not upgrade to invalid version v3
            cluster1  Configured False VersionUnsupported: invalid version v3
            cluster1  Available True WorksAvailable: all works are available
            cluster1  addon-helloworld-deploy-0 generation 1 version v1
            cluster2  addon-helloworld-deploy-0 generation 1 version v1
        "#]],
    );
}

#[test]
fn drafts_rollback_to_a_specific_version() {
    check(
        &format!(
            "{DRAFT}
            rollout global-placement version=v2
            settle
            rollout global-placement version=v1
            pass
            show cluster1
            settle
            show cluster1"
        ),
        &expect![[r#"
            cluster1  addonhubconfigs desired v1@b433cd0d applied v2@cdf58b3d
            cluster1  version desired v1 current unknown last v2
            cluster1  Progressing True Rollingback: Rollingback addon to version v1.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
            cluster1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            cluster1  version desired v1 current v1 last v2
            cluster1  Progressing False Succeed: install completed with no errors.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
        "#]],
    );
}

/// What counts is the version that the cluster has, not the one that was wanted before.
#[test]
fn drafts_a_change_of_a_config_after_a_rollback_is_no_rollback() {
    check(
        &format!(
            "{DRAFT}
            deploy open-cluster-management/d IMAGE=x
            rollout global-placement version=v1 deploy=open-cluster-management/d
            settle
            rollout global-placement version=v2 deploy=open-cluster-management/d
            settle
            rollout global-placement version=v1 deploy=open-cluster-management/d
            settle
            deploy open-cluster-management/d IMAGE=y
            pass
            show cluster1
            settle
            note an upgrade that is taken back before any cluster has completed it
            rollout global-placement version=v2 deploy=open-cluster-management/d
            pass
            rollout global-placement version=v1 deploy=open-cluster-management/d
            pass
            show cluster1"
        ),
        &expect![[r#"
            cluster1  addondeploymentconfigs desired d@4b406ee2 applied d@cd8dd4bc
            cluster1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            cluster1  version desired v1 current unknown last v2
            cluster1  Progressing True Upgrading: Upgrading addon to version v1.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
            -- an upgrade that is taken back before any cluster has completed it
            cluster1  addondeploymentconfigs desired d@4b406ee2 applied d@4b406ee2
            cluster1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            cluster1  version desired v1 current unknown last v2
            cluster1  Progressing True Rollingback: Rollingback addon to version v1.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn drafts_rollback_to_an_invalid_version() {
    check(
        &format!(
            "{DRAFT}
            rollout global-placement version=v0
            pass
            show cluster1
            note and from there to a good one: the last version was invalid
            rollout global-placement version=v2
            pass
            show cluster1"
        ),
        &expect![[r#"
            cluster1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            cluster1  version desired v0 current unknown last v1
            cluster1  Progressing False Failed: could not rollback to invalid version v0
            cluster1  Configured False VersionUnsupported: invalid version v0
            cluster1  Available True WorksAvailable: all works are available
            -- and from there to a good one: the last version was invalid
            cluster1  addonhubconfigs desired v2@cdf58b3d applied v1@b433cd0d
            cluster1  version desired v2 current unknown last unknown
            cluster1  Progressing True Installing: Installing addon to version v2.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn drafts_install_version_is_the_earlier_drafts_word_for_the_same() {
    check(
        "
        template v1 v2
        place global-placement: cluster1
        rollout global-placement installVersion=v1
        settle
        user cluster1 { installVersion: v2 }
        pass
        show cluster1
        settle
        show cluster1",
        &expect![[r#"
            cluster1  addonhubconfigs desired v2@cdf58b3d applied v1@b433cd0d
            cluster1  version desired v2 current unknown last v1
            cluster1  Progressing True Upgrading: Upgrading addon to version v2.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
            cluster1  addonhubconfigs desired v2@cdf58b3d applied v2@cdf58b3d
            cluster1  version desired v2 current v2 last v1
            cluster1  Progressing False Succeed: install completed with no errors.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn drafts_an_invalid_version_at_install() {
    check(
        "
        template v1
        place global-placement: cluster1
        rollout global-placement version=v3
        pass 2
        show cluster1",
        &expect![[r#"
            cluster1  version desired v3 current unknown last -
            cluster1  Progressing False Failed: could not install invalid version v3
            cluster1  Configured False VersionUnsupported: invalid version v3
            cluster1  Available Unknown WorksNotReported: the agent has not reported on all works yet
        "#]],
    );
}

#[test]
fn rule_2_when_the_last_template_goes_clusters_stay_on_what_they_have() {
    check(
        "
        template v1.0.0
        place prod: a1
        rollout prod
        settle
        no config helloworld-v1.0.0
        settle
        show status
        show a1
        show works",
        &expect![[r#"
            prod  False UpgradeFailed  0/1 upgrade failed: no AddOnTemplate of this add-on is left: clusters keep their revision
                desired helloworld-v1.0.0 good helloworld-v1.0.0 applied helloworld-v1.0.0
            versions v1.0.0 default v1.0.0
            a1  version desired v1.0.0 current v1.0.0 last -
            a1  Progressing False UpgradeFailed: upgrade failed: no AddOnTemplate of this add-on is left: clusters keep their revision
            a1  Configured False TemplatesGone: no AddOnTemplate of this add-on is left: clusters keep their revision
            a1  Available True WorksAvailable: all works are available
            a1  addon-helloworld-deploy-0 generation 1 version v1.0.0
        "#]],
    );
}

#[test]
fn drafts_an_invalid_version_on_an_instance_leaves_it_on_what_it_has_and_installs_nothing() {
    check(
        "
        template v1 v2
        clusters cluster1 cluster2
        user cluster1 { desiredVersion: v1 }
        settle
        user cluster1 { desiredVersion: v3 }
        user cluster2 { installVersion: v3 }
        settle
        show cluster1
        show cluster2
        show works
        show writes
        note the one is taken back to what it may have, the other to what there is
        user cluster1 { desiredVersion: v2 }
        user cluster2 { installVersion: v2 }
        settle
        show cluster1
        show cluster2",
        &expect![[r#"
            cluster1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            cluster1  version desired v3 current unknown last v1
            cluster1  Progressing False Failed: could not upgrade to invalid version v3
            cluster1  Configured False VersionUnsupported: invalid version v3
            cluster1  Available True WorksAvailable: all works are available
            cluster2  version desired v3 current unknown last -
            cluster2  Progressing False Failed: could not install invalid version v3
            cluster2  Configured False VersionUnsupported: invalid version v3
            cluster2  Available Unknown WorksNotReported: the agent has not reported on all works yet
            cluster1  addon-helloworld-deploy-0 generation 1 version v1
            0 writes
            -- the one is taken back to what it may have, the other to what there is
            cluster1  addonhubconfigs desired v2@cdf58b3d applied v2@cdf58b3d
            cluster1  version desired v2 current v2 last unknown
            cluster1  Progressing False Succeed: install completed with no errors.
            cluster1  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster1  Available True WorksAvailable: all works are available
            cluster2  addonhubconfigs desired v2@cdf58b3d applied v2@cdf58b3d
            cluster2  version desired v2 current v2 last unknown
            cluster2  Progressing False Succeed: install completed with no errors.
            cluster2  Configured True ConfigurationsConfigured: all configurations are resolved
            cluster2  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_3_an_invalid_version_of_one_user_does_not_hold_its_placement_up() {
    check(
        "
        template v1 v2
        place prod: a1 a2
        rollout prod version=v1
        settle
        user a1 { desiredVersion: v9 }
        rollout prod version=v2 RollingUpdate 1
        settle
        show status
        show a1
        show a2",
        &expect![[r#"
            prod  False UpgradeSucceed  1/2 upgrade completed with no errors.
                desired v2 good v2 applied v2
            versions v2 v1 default v2
            a1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            a1  version desired v9 current unknown last v1
            a1  Progressing False Failed: could not upgrade to invalid version v9
            a1  Configured False VersionUnsupported: invalid version v9
            a1  Available True WorksAvailable: all works are available
            a2  addonhubconfigs desired v2@cdf58b3d applied v2@cdf58b3d
            a2  version desired v2 current v2 last v1
            a2  Progressing False Succeed: install completed with no errors.
            a2  Configured True ConfigurationsConfigured: all configurations are resolved
            a2  Available True WorksAvailable: all works are available
        "#]],
    );
}

/// The status of an AddOnHubConfig lists the versions of every add-on that references it, and is
/// written only where it does not.
#[test]
fn a_config_that_several_add_ons_reference_offers_the_versions_of_all() {
    let mut story = Story::new();
    story.run("template v1 v2\n config A v1\n place prod: a1\n rollout prod config=A\n settle");
    let observed = &mut story.world.observed;
    let config = observed.configs.keys().next().expect("the config is referenced").clone();
    let others = [("another".into(), vec!["v9".into()]), ("zeta".into(), vec!["v2".into(), "v0".into()])];
    observed.offers.insert(config.clone(), Offers { listed: Vec::new(), others: others.into() });
    let plan = plan(&story.world.observed, story.now);
    let [Write::Offer(offer)] = plan.step(Step::Offer) else { panic!("{:?}", plan.stages) };
    let expected = Offer { config, versions: ["v9", "v2", "v1", "v0"].map(Into::into).into() };
    assert_eq!(*offer, expected);
    assert!(story.pass(), "it is written");
    assert!(!story.pass(), "and then the add-on is at rest");
}
