//! Configs and revisions, rule by rule (chapter 2 of the rules).

use crate::story::{Story, check};
use expect_test::expect;
use serde_json::json;

const DEPLOY: &str = "
    addon { supportedConfigs: [ { group: addon.open-cluster-management.io, resource: addondeploymentconfigs }, { group: addon.open-cluster-management.io, resource: addonhubconfigs } ] }
";

#[test]
fn rule_1_an_instance_overrides_its_placement_which_overrides_the_add_on_kind_by_kind() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            config B v2
            deploy open-cluster-management/one X=1
            deploy a2/own X=2
            place prod: a1 a2
            defaults config=A deploy=open-cluster-management/one
            rollout prod config=B
            pass
            user a2 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a2, name: own }} ] }}
            settle
            show a1
            show a2"
        ),
        &expect![[r#"
            a1  addondeploymentconfigs desired one@de3b02c4 applied one@de3b02c4
            a1  addonhubconfigs desired B@cdf58b3d applied B@cdf58b3d
            a1  version desired v2 current v2 last -
            a1  Progressing False InstallSucceed: install completed with no errors.
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a2  addondeploymentconfigs desired own@e278275d applied own@e278275d
            a2  addonhubconfigs desired B@cdf58b3d applied B@cdf58b3d
            a2  version desired v2 current v2 last -
            a2  Progressing False InstallSucceed: install completed with no errors.
            a2  Configured True ConfigurationsConfigured: all configurations are resolved
        "#]],
    );
}

#[test]
fn rule_2_only_a_changed_hash_starts_a_rollout() {
    let mut story = Story::new();
    story.run(
        "
        place prod: a1
        rollout prod config=A
        config A v1
        settle",
    );
    let reordered = json!({ "status": { "supportedVersions": ["v1"] }, "metadata": { "labels": { "new": "one" } }, "spec": { "desiredVersion": "v1" } });
    story.put_config("addonhubconfigs", None, "A", &reordered);
    story.run("note labels, status and key order have changed\n show clusters\n show status");
    story.run("config A2 v1\n rollout prod config=A2\n note the reference has another name, the content is the same\n pass\n show clusters\n show a1");
    expect![[r#"
        -- labels, status and key order have changed
        prod  False InstallSucceed  1/1 install completed with no errors.
            desired A good A applied A
        -- the reference has another name, the content is the same
        a1  addonhubconfigs desired A2@b433cd0d applied A2@b433cd0d
        a1  version desired v1 current v1 last -
        a1  Progressing False InstallSucceed: install completed with no errors.
        a1  Configured True ConfigurationsConfigured: all configurations are resolved
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn rule_3_a_hash_pins_content_so_an_edit_in_place_reaches_nobody_before_its_turn() {
    check(
        "
        config A v1
        place prod: a1 a2 a3
        rollout prod config=A RollingUpdate 1
        settle
        config A v2
        pass
        show clusters
        show a1
        show a2",
        &expect![[r#"
            a1               in flight v2       updating
            a2..a3 (2)       hold      v1       budget full: 1 of 1 in flight
            a1  addonhubconfigs desired A@cdf58b3d applied A@b433cd0d
            a1  version desired v2 current unknown last v1
            a1  Progressing True Upgrading: upgrading...
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            a2  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a2  version desired v1 current v1 last -
            a2  Progressing False InstallSucceed: install completed with no errors.
            a2  Configured True ConfigurationsConfigured: all configurations are resolved
        "#]],
    );
}

#[test]
fn rule_3_a_new_cluster_gets_the_kept_content_of_the_known_good_revision() {
    let mut story = Story::new();
    story.run(
        "
        template v1 v2
        config A v1
        place canary: c1
        place prod: a1
        rollout prod config=A Canary 1 canary=canary
        rollout canary config=A
        settle
        stuck c1
        config A v2
        pass
        place prod: a1 a2
        pass 3
        show a2
        show works",
    );
    expect![[r#"
        a2  addonhubconfigs desired A@b433cd0d applied -
        a2  version desired v1 current unknown last -
        a2  Progressing True Installing: installing...
        a2  Configured True ConfigurationsConfigured: all configurations are resolved
        a2  Available Unknown WorksNotReported: the agent has not reported on all works yet
        a1  addon-helloworld-deploy-0 generation 1 version v1
        a2  addon-helloworld-deploy-0 generation 1 version v1
        c1  addon-helloworld-deploy-0 generation 2 version v2
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn rule_4_a_missing_config_is_named_where_it_is_wanted_and_heals_when_it_appears() {
    check(
        "
        config A v1
        place prod: a1 a2
        rollout prod config=A
        settle
        rollout prod config=B
        place prod: a1 a2 a3
        pass 2
        show status
        show clusters
        show a1
        show a3
        show writes
        config B v2
        settle
        show status",
        &expect![[r#"
            prod  False UpgradeFailed  0/3 upgrade failed: addonhubconfigs.addon.open-cluster-management.io B not found
                desired A good A applied A
            a1..a2 (2)       hold      v1       addonhubconfigs.addon.open-cluster-management.io B not found
            a3               in flight v1       installing
            a1  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a1  version desired v1 current v1 last -
            a1  Progressing False UpgradeFailed: upgrade failed: addonhubconfigs.addon.open-cluster-management.io B not found
            a1  Configured False ConfigurationMissing: addonhubconfigs.addon.open-cluster-management.io B not found
            a3  addonhubconfigs desired A@b433cd0d applied -
            a3  version desired v1 current unknown last -
            a3  Progressing True Installing: installing...
            a3  Configured True ConfigurationsConfigured: all configurations are resolved
            0 writes
            prod  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired B good B applied B
        "#]],
    );
}

#[test]
fn rule_4_a_namespaced_kind_without_a_namespace_and_an_unknown_kind_are_named() {
    let mut story = Story::new();
    story.run("place prod: a1\n addon { installStrategy: { type: Placements, placements: [ { name: prod, namespace: default, configs: [ { group: example.com, resource: widgets, name: w } ] } ] } }");
    let config = story.world.observed.addon.strategy.placements()[0].configs[0].clone();
    for lookup in
        [aviary_engine::observed::Lookup::NeedsNamespace, aviary_engine::observed::Lookup::UnknownKind]
    {
        story.world.observed.configs.insert(config.clone(), lookup);
        story.run("pass 2\n show status");
    }
    expect![[r#"
        prod  False InstallFailed  0/1 install failed: widgets.example.com w: widgets.example.com are namespaced: the reference needs a namespace
            desired - good - applied -
        prod  False InstallFailed  0/1 install failed: widgets.example.com w: the hub does not serve widgets.example.com: install its CustomResourceDefinition
            desired - good - applied -
    "#]].assert_eq(&story.told);
}

#[test]
fn rule_5_an_unsupported_override_is_named_and_the_other_configs_go_on() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            deploy a1/own X=2
            place prod: a1
            rollout prod config=A
            user a1 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a1, name: own }}, {{ group: example.com, resource: widgets, name: w }} ] }}
            settle
            show a1"
        ),
        &expect![[r#"
            a1  addondeploymentconfigs desired own@e278275d applied own@e278275d
            a1  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a1  version desired v1 current v1 last -
            a1  Progressing False ConfigurationUnsupported: widgets.example.com w is not applied: the add-on does not support configs of widgets.example.com
            a1  Configured False ConfigurationUnsupported: widgets.example.com w is not applied: the add-on does not support configs of widgets.example.com
        "#]],
    );
}

#[test]
fn rule_5_an_override_reaches_no_namespace_that_is_not_its_own_or_the_add_ons() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            deploy a2/secret X=2
            deploy open-cluster-management/shared X=3
            place prod: a1 a2
            rollout prod config=A
            user a1 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a2, name: secret }} ] }}
            user a2 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: open-cluster-management, name: shared }} ] }}
            settle
            show a1
            show a2"
        ),
        &expect![[r#"
            a1  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a1  version desired v1 current v1 last -
            a1  Progressing False UpgradeFailed: upgrade failed: addondeploymentconfigs.addon.open-cluster-management.io a2/secret is not applied: an override on cluster a1 may not use configs from that namespace
            a1  Configured False ConfigurationOutOfReach: addondeploymentconfigs.addon.open-cluster-management.io a2/secret is not applied: an override on cluster a1 may not use configs from that namespace
            a2  addondeploymentconfigs desired shared@ea91028e applied shared@ea91028e
            a2  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a2  version desired v1 current v1 last -
            a2  Progressing False InstallSucceed: install completed with no errors.
            a2  Configured True ConfigurationsConfigured: all configurations are resolved
        "#]],
    );
}

#[test]
fn rule_5_a_core_kind_is_a_config_only_if_the_add_on_lists_it() {
    check(
        "
        place prod: a1
        addon { installStrategy: { type: Placements, placements: [ { name: prod, namespace: default, configs: [ { group: '', resource: configmaps, namespace: default, name: token } ] } ] } }
        pass 2
        show status",
        &expect![[r#"
            prod  False InstallFailed  0/1 install failed: configmaps default/token: configmaps must be listed in supportedConfigs to be used as a config
                desired - good - applied -
        "#]],
    );
}

#[test]
fn rule_5_a_secret_is_never_a_config_even_if_the_add_on_lists_it() {
    check(
        "
        place prod: a1
        addon { supportedConfigs: [ { group: '', resource: secrets } ], installStrategy: { type: Placements, placements: [ { name: prod, namespace: default, configs: [ { group: '', resource: secrets, namespace: default, name: token } ] } ] } }
        pass 2
        show status",
        &expect![[r#"
            prod  False InstallFailed  0/1 install failed: secrets default/token: a Secret cannot be a config, because its content would be copied into revisions that others may read: reference a config that names the Secret
                desired - good - applied -
        "#]],
    );
}

#[test]
fn rule_6_an_override_takes_effect_at_once_outside_the_budget_and_the_placement_completes_without_it() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            config B v2
            config mine v9
            place prod: a1 a2 a3
            rollout prod config=A RollingUpdate 1
            settle
            stuck a1
            rollout prod config=B RollingUpdate 1
            pass
            user a3 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addonhubconfigs, name: mine }} ] }}
            pass
            show clusters
            show a3
            ack a1
            settle
            show status
            show a3"
        ),
        &expect![[r#"
            a1               in flight v2       updating
            a2               hold      v1       budget full: 1 of 1 in flight
            a3  addonhubconfigs desired mine@23616dea applied A@b433cd0d
            a3  version desired v9 current unknown last v1
            a3  Progressing True Upgrading: upgrading...
            a3  Configured True ConfigurationsConfigured: all configurations are resolved
            prod  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired B good B applied B
            a3  addonhubconfigs desired mine@23616dea applied mine@23616dea
            a3  version desired v9 current v9 last v1
            a3  Progressing False UpgradeSucceed: upgrade completed with no errors.
            a3  Configured True ConfigurationsConfigured: all configurations are resolved
        "#]],
    );
}

#[test]
fn rule_6_an_override_that_is_taken_back_waits_for_its_turn() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            config B v2
            config mine v9
            place prod: a1 a2 a3
            rollout prod config=A RollingUpdate 1
            user a3 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addonhubconfigs, name: mine }} ] }}
            settle
            stuck a1
            rollout prod config=B RollingUpdate 1
            pass
            user a3 {{}}
            pass
            show clusters"
        ),
        &expect![[r#"
            a1               in flight v2       updating
            a2               hold      v1       budget full: 1 of 1 in flight
            a3               hold      v9       budget full: 1 of 1 in flight
        "#]],
    );
}

const OWN_CONFIG: &str =
    "{ configs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: mine } ] }";

#[test]
fn rule_4_an_override_whose_object_goes_missing_does_not_move_the_cluster() {
    check(
        &format!(
            "template v0.10.0 v0.11.0 v0.12.0
            config A v0.10.0
            config B v0.11.0
            config mine v0.12.0
            place prod: a1 a2
            rollout prod config=A
            user a1 {OWN_CONFIG}
            settle
            show works
            no config mine
            note the object of the override is gone
            settle
            show works
            show a1
            note the placement moves on without it, and completes
            rollout prod config=B
            settle
            show works
            show status
            show clusters
            config mine v0.10.0
            settle
            note it is back
            show works"
        ),
        &expect![[r#"
            a1  addon-helloworld-deploy-0 generation 1 version v0.12.0
            a2  addon-helloworld-deploy-0 generation 1 version v0.10.0
            -- the object of the override is gone
            a1  addon-helloworld-deploy-0 generation 1 version v0.12.0
            a2  addon-helloworld-deploy-0 generation 1 version v0.10.0
            a1  addonhubconfigs desired mine@da6f0c6e applied mine@da6f0c6e
            a1  version desired v0.12.0 current v0.12.0 last -
            a1  Progressing False UpgradeFailed: upgrade failed: addonhubconfigs.addon.open-cluster-management.io mine not found
            a1  Configured False ConfigurationMissing: addonhubconfigs.addon.open-cluster-management.io mine not found
            a1  Available True WorksAvailable: all works are available
            -- the placement moves on without it, and completes
            a1  addon-helloworld-deploy-0 generation 1 version v0.12.0
            a2  addon-helloworld-deploy-0 generation 2 version v0.11.0
            prod  False UpgradeSucceed  1/2 upgrade completed with no errors.
                desired B good B applied B
            versions v0.12.0 v0.11.0 v0.10.0 default v0.12.0
            a1               hold      v0.12.0  addonhubconfigs.addon.open-cluster-management.io mine not found
            -- it is back
            a1  addon-helloworld-deploy-0 generation 2 version v0.10.0
            a2  addon-helloworld-deploy-0 generation 2 version v0.11.0
        "#]],
    );
}

#[test]
fn rule_4_an_override_of_settings_that_goes_missing_rewrites_no_work() {
    check(
        "
        template v1 vars ARCH
        deploy open-cluster-management/all ARCH=amd64
        deploy a1/own ARCH=arm64
        place prod: a1 a2
        rollout prod deploy=open-cluster-management/all
        user a1 { configs: [ { group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a1, name: own } ] }
        settle
        no config own
        settle
        show works
        show a1",
        &expect![[r#"
            a1  addon-helloworld-deploy-0 generation 1 version v1
            a2  addon-helloworld-deploy-0 generation 1 version v1
            a1  addondeploymentconfigs desired own@d6e4e445 applied own@d6e4e445
            a1  version desired v1 current v1 last -
            a1  Progressing False UpgradeFailed: upgrade failed: addondeploymentconfigs.addon.open-cluster-management.io a1/own not found
            a1  Configured False ConfigurationMissing: addondeploymentconfigs.addon.open-cluster-management.io a1/own not found
            a1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_4_a_fresh_instance_whose_override_is_missing_gets_nothing_until_it_is_there() {
    check(
        &format!(
            "template v1 v2
            config A v1
            place prod: a1 a2
            rollout prod config=A
            user a1 {OWN_CONFIG}
            settle
            show works
            show a1
            show status
            config mine v2
            settle
            show works"
        ),
        &expect![[r#"
            a2  addon-helloworld-deploy-0 generation 1 version v1
            a1  Progressing False InstallFailed: install failed: addonhubconfigs.addon.open-cluster-management.io mine not found
            a1  Configured False ConfigurationMissing: addonhubconfigs.addon.open-cluster-management.io mine not found
            a1  Available Unknown WorksNotReported: the agent has not reported on all works yet
            prod  False InstallSucceed  1/2 install completed with no errors.
                desired A good A applied A
            versions v2 v1 default v2
            a1  addon-helloworld-deploy-0 generation 1 version v2
            a2  addon-helloworld-deploy-0 generation 1 version v1
        "#]],
    );
}

#[test]
fn rule_5_an_unsupported_override_is_said_from_the_start() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            place prod: a1
            rollout prod config=A
            user a1 {{ configs: [ {{ group: example.com, resource: widgets, name: w }} ] }}
            pass 2
            show a1"
        ),
        &expect![[r#"
            a1  addonhubconfigs desired A@b433cd0d applied -
            a1  version desired v1 current unknown last -
            a1  Progressing False ConfigurationUnsupported: widgets.example.com w is not applied: the add-on does not support configs of widgets.example.com
            a1  Configured False ConfigurationUnsupported: widgets.example.com w is not applied: the add-on does not support configs of widgets.example.com
        "#]],
    );
}

#[test]
fn rule_5_an_instance_cannot_name_the_template_of_another_add_on() {
    let mut story = Story::new();
    story.put_config("addontemplates", None, "stranger", &json!({ "spec": { "addonName": "stranger", "version": "v9", "agentSpec": { "workload": { "manifests": [
        { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "stranger", "namespace": "default" } } ] } } } }));
    story.run(
        "
        template v1
        place prod: a1
        rollout prod
        user a1 { configs: [ { group: addon.open-cluster-management.io, resource: addontemplates, name: stranger } ] }
        settle
        show works
        show a1",
    );
    expect![[r#"
        a1  addon-helloworld-deploy-0 generation 1 version v1
        a1  version desired v1 current v1 last -
        a1  Progressing False UpgradeFailed: upgrade failed: template stranger is not applied: it is a template of add-on "stranger", and an instance may use only those of its own add-on
        a1  Configured False TemplateOfAnother: template stranger is not applied: it is a template of add-on "stranger", and an instance may use only those of its own add-on
        a1  Available True WorksAvailable: all works are available
    "#]].assert_eq(&story.told);
}

#[test]
fn rule_6_broken_overrides_never_stop_the_rollout_for_the_others() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            config B v2
            config C v3
            deploy open-cluster-management/all X=1
            deploy a1/own X=2
            deploy a2/own X=2
            place prod: a1..a8
            rollout prod config=A deploy=open-cluster-management/all RollingUpdate 2
            settle
            user a1 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a1, name: own }} ] }}
            user a2 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a2, name: own }} ] }}
            pass
            fail a1
            stuck a2
            settle
            note a1 fails with its own config, a2 says nothing any more
            show clusters
            rollout prod config=B deploy=open-cluster-management/all RollingUpdate 2
            pass 2
            note those without it go first
            show clusters
            settle
            show clusters
            show status
            rollout prod config=C deploy=open-cluster-management/all RollingUpdate 2
            settle
            note and the same again
            show clusters
            show status"
        ),
        &expect![[r#"
            -- a1 fails with its own config, a2 says nothing any more
            a1               failed    v1       failed: work reports Applied=False: boom
            a2               in flight v1       updating
            -- those without it go first
            a1..a2 (2)       hold      v1       budget full: 2 of 2 in flight
            a3..a4 (2)       in flight v2       updating
            a5..a8 (4)       hold      v1       budget full: 2 of 2 in flight
            a1               failed    v2       failed: work reports Applied=False: boom
            a2               in flight v2       updating
            prod  True Upgrading  8/8 upgrading...
                desired all+B good all+A applied all+A
            -- and the same again
            a1               failed    v3       failed: work reports Applied=False: boom
            a2               in flight v3       updating
            prod  True Upgrading  8/8 upgrading...
                desired all+C good all+A applied all+A
        "#]],
    );
}

#[test]
fn rule_6_an_override_that_its_agent_refuses_has_failed() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            deploy open-cluster-management/all X=1
            deploy a1/own X=2
            place prod: a1..a4
            rollout prod config=A deploy=open-cluster-management/all RollingUpdate 2
            settle
            user a1 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a1, name: own }} ] }}
            pass
            fail a1
            settle
            show clusters
            show a1
            note its placement has completed, and stays so
            show status
            show conditions"
        ),
        &expect![[r#"
            a1               failed    v1       failed: work reports Applied=False: boom
            a1  addondeploymentconfigs desired own@e278275d applied all@de3b02c4
            a1  addonhubconfigs desired A@b433cd0d applied A@b433cd0d
            a1  version desired v1 current unknown last -
            a1  Progressing False UpgradeFailed: upgrade failed: work reports Applied=False: boom
            a1  Configured True ConfigurationsConfigured: all configurations are resolved
            -- its placement has completed, and stays so
            prod  False UpgradeSucceed  4/4 upgrade completed with no errors.
                desired all+A good all+A applied all+A
            Valid  True Valid  the spec is valid
            PlacementsResolved  True Resolved  all placements are known
            Progressing  False UpgradeSucceed  default/prod: 4/4 upgrade completed with no errors.
            Succeeded  True Settled  every placement has completed the desired revision
            Reconciling  False Settled  every placement has completed the desired revision
            Stalled  False Settled  every placement has completed the desired revision
        "#]],
    );
}

#[test]
fn rule_6_a_bad_revision_cannot_hide_behind_healthy_overrides() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            config B v2
            deploy open-cluster-management/all X=1
            deploy a1/own X=2
            place prod: a1..a4
            rollout prod config=A deploy=open-cluster-management/all RollingUpdate 1
            user a1 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a1, name: own }} ] }}
            settle
            rollout prod config=B deploy=open-cluster-management/all RollingUpdate 1
            pass
            fail a1
            settle
            show clusters
            show status"
        ),
        &expect![[r#"
            a1               failed    v2       failed: work reports Applied=False: boom
            a2..a4 (3)       hold      v1       budget full: 1 of 1 slots taken: 1 failed
            prod  False UpgradeFailed  1/4 upgrade failed: stopped, 1 failed, 1 of 1 slots taken: a1
                desired all+B good all+A applied all+A
        "#]],
    );
}

#[test]
fn rule_6_a_broken_override_of_an_instance_that_was_never_installed_holds_no_slot_in_the_next_rollout() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            config B v2
            deploy a1/own X=2
            deploy a2/own X=2
            place prod: a1..a4
            rollout prod config=A RollingUpdate 2
            user a1 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a1, name: own }} ] }}
            user a2 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a2, name: own }} ] }}
            pass 2
            fail a1
            stuck a2
            settle
            rollout prod config=B RollingUpdate 2
            settle
            show clusters
            show status"
        ),
        &expect![[r#"
            a1               failed    v2       failed: work reports Applied=False: boom
            a2               in flight v2       installing
            prod  True Installing  4/4 installing...
                desired B good - applied -
        "#]],
    );
}

#[test]
fn rule_6_silent_overrides_that_were_started_last_start_last_in_the_rollout_after_next_too() {
    check(
        &format!(
            "{DEPLOY}
            config A v1
            config B v2
            config C v3
            deploy open-cluster-management/all X=1
            deploy a1/own X=2
            deploy a2/own X=2
            place prod: a1..a6
            rollout prod config=A deploy=open-cluster-management/all RollingUpdate 2
            settle
            user a1 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a1, name: own }} ] }}
            user a2 {{ configs: [ {{ group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a2, name: own }} ] }}
            pass
            stuck a1 a2
            rollout prod config=B deploy=open-cluster-management/all RollingUpdate 2
            settle
            note both are silent, were started last, and hold the two slots
            show clusters
            rollout prod config=C deploy=open-cluster-management/all RollingUpdate 2
            pass 2
            note the others go first
            show clusters
            settle
            show clusters
            show status"
        ),
        &expect![[r#"
            -- both are silent, were started last, and hold the two slots
            a1..a2 (2)       in flight v2       updating
            -- the others go first
            a1..a2 (2)       hold      v2       budget full: 2 of 2 in flight
            a3..a4 (2)       in flight v3       updating
            a5..a6 (2)       hold      v2       budget full: 2 of 2 in flight
            a1..a2 (2)       in flight v3       updating
            prod  True Upgrading  6/6 upgrading...
                desired all+C good all+A applied all+A
        "#]],
    );
}

#[test]
fn rule_6_a_silent_override_that_was_started_waits_again_in_the_next_rollout() {
    check(
        "
        template v1 v2 v3
        config A v1
        config B v2
        config C v3
        addon { supportedConfigs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs }, { group: addon.open-cluster-management.io, resource: addondeploymentconfigs } ] }
        deploy a1/own SIZE=1
        place prod: a1 b1
        rollout prod config=A RollingUpdate 1
        settle
        user a1 { configs: [ { group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: a1, name: own } ] }
        fail a1
        settle
        note a1 is told v2 and its agent says nothing; then v3 is wanted
        stuck a1
        rollout prod config=B RollingUpdate 1
        pass 2
        ack b1
        pass 3
        show clusters
        rollout prod config=C RollingUpdate 1
        pass 2
        show clusters",
        &expect![[r#"
            -- a1 is told v2 and its agent says nothing; then v3 is wanted
            a1               in flight v2       updating
            a1               hold      v2       budget full: 1 of 1 in flight
            b1               in flight v3       updating
        "#]],
    );
}
