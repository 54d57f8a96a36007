//! The worked examples of the final design document, whole, with the statuses that it prints at
//! each step, and its corner cases. `crates/api/tests/fixtures/design-examples` has its objects.

use crate::story::check;
use expect_test::expect;

const INSTALLED: &str = "
    config hub-config-xxx v0.10.0
    place aws-placement: aws001..aws400
    rollout aws-placement config=hub-config-xxx
";

#[test]
fn fresh_install_of_400_clusters() {
    check(
        &format!(
            "{INSTALLED}
            pass 2
            show status
            settle
            show status
            show aws001
            events"
        ),
        &expect![[r#"
            aws-placement  True Installing  400/400 installing...
                desired hub-config-xxx good - applied -
            aws-placement  False InstallSucceed  400/400 install completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx
            aws001  addonhubconfigs desired hub-config-xxx@b6d559f5 applied hub-config-xxx@b6d559f5
            aws001  version desired v0.10.0 current v0.10.0 last -
            aws001  Progressing False InstallSucceed: install completed with no errors.
            aws001  Configured True ConfigurationsConfigured: all configurations are resolved
            event  default/aws-placement RolloutStarted: rolling out v0.10.0 to 400 clusters
            event  default/aws-placement RolloutCompleted: all 400 clusters have v0.10.0
        "#]],
    );
}

#[test]
fn rolling_upgrade_of_400_clusters_a_quarter_at_a_time() {
    check(
        &format!(
            "{INSTALLED}
            settle
            config hub-config-yyy v0.11.0
            rollout aws-placement config=hub-config-yyy RollingUpdate 25%
            pass 2
            show status
            show clusters
            show aws001
            settle
            show status
            show aws001"
        ),
        &expect![[r#"
            aws-placement  True Upgrading  100/400 upgrading...
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx
            aws001..aws100 (100) in flight v0.11.0  updating
            aws101..aws400 (300) hold      v0.10.0  budget full: 100 of 100 in flight
            aws001  addonhubconfigs desired hub-config-yyy@09a6d9a2 applied hub-config-xxx@b6d559f5
            aws001  version desired v0.11.0 current unknown last v0.10.0
            aws001  Progressing True Upgrading: upgrading...
            aws001  Configured True ConfigurationsConfigured: all configurations are resolved
            aws-placement  False UpgradeSucceed  400/400 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy
            aws001  addonhubconfigs desired hub-config-yyy@09a6d9a2 applied hub-config-yyy@09a6d9a2
            aws001  version desired v0.11.0 current v0.11.0 last v0.10.0
            aws001  Progressing False UpgradeSucceed: upgrade completed with no errors.
            aws001  Configured True ConfigurationsConfigured: all configurations are resolved
        "#]],
    );
}

const CANARY: &str = "
    config hub-config-xxx v0.10.0
    place aws-placement: aws001..aws400
    place canary-placement: can001..can100
    rollout aws-placement config=hub-config-xxx Canary 25% canary=canary-placement
    rollout canary-placement config=hub-config-xxx RollingUpdate 25%
    settle
    config hub-config-yyy v0.11.0
    rollout aws-placement config=hub-config-yyy Canary 25% canary=canary-placement
    rollout canary-placement config=hub-config-yyy RollingUpdate 25%
";

#[test]
fn canary_upgrade_of_400_clusters_behind_100() {
    check(
        &format!(
            "{CANARY}
            pass 2
            show status
            show clusters
            note the canary goes through
            ack can001..can100
            pass 2
            ack can001..can100
            pass 2
            ack can001..can100
            pass 2
            ack can001..can100
            pass 2
            show status
            note the gate has opened; the first hundred are through
            ack aws001..aws100
            pass 2
            show status
            show clusters
            settle
            show status
            events"
        ),
        &expect![[r#"
            aws-placement  True WaitingForCanary  waitingForCanary... canary default/canary-placement: 100 of 100 not passed, first can001
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx
            canary-placement  True Upgrading  25/100 upgrading...
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx
            aws001..aws400 (400) hold      v0.10.0  canary default/canary-placement: 100 of 100 not passed, first can001
            can001..can025 (25) in flight v0.11.0  updating
            can026..can100 (75) hold      v0.10.0  budget full: 25 of 25 in flight
            -- the canary goes through
            aws-placement  True Upgrading  100/400 upgrading...
                desired hub-config-yyy good hub-config-yyy applied hub-config-xxx
            canary-placement  False UpgradeSucceed  100/100 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy
            -- the gate has opened; the first hundred are through
            aws-placement  True Upgrading  200/400 upgrading...
                desired hub-config-yyy good hub-config-yyy applied hub-config-xxx
            canary-placement  False UpgradeSucceed  100/100 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy
            aws101..aws200 (100) in flight v0.11.0  updating
            aws201..aws400 (200) hold      v0.10.0  budget full: 100 of 100 in flight
            aws-placement  False UpgradeSucceed  400/400 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy
            canary-placement  False UpgradeSucceed  100/100 upgrade completed with no errors.
                desired hub-config-yyy good hub-config-yyy applied hub-config-yyy
            event  default/aws-placement RolloutStarted: rolling out v0.10.0 to 400 clusters
            event  default/canary-placement RolloutStarted: rolling out v0.10.0 to 100 clusters
            event  default/aws-placement CanaryPassed: v0.10.0 passed the canary
            event  default/aws-placement RolloutCompleted: all 400 clusters have v0.10.0
            event  default/canary-placement RolloutCompleted: all 100 clusters have v0.10.0
            event  default/canary-placement RolloutStarted: rolling out v0.11.0 to 100 clusters
            event  default/aws-placement CanaryPassed: v0.11.0 passed the canary
            event  default/aws-placement RolloutStarted: rolling out v0.11.0 to 400 clusters
            event  default/canary-placement RolloutCompleted: all 100 clusters have v0.11.0
            event  default/aws-placement RolloutCompleted: all 400 clusters have v0.11.0
        "#]],
    );
}

#[test]
fn rollback_goes_everywhere_at_once_within_the_budget_and_ungated() {
    check(
        &format!(
            "{CANARY}
            settle
            rollout aws-placement config=hub-config-xxx Canary 25% canary=canary-placement
            rollout canary-placement config=hub-config-xxx RollingUpdate 25%
            pass 2
            show status
            settle
            show status
            show aws001"
        ),
        &expect![[r#"
            aws-placement  True Upgrading  100/400 upgrading...
                desired hub-config-xxx good hub-config-xxx applied hub-config-yyy
            canary-placement  True Upgrading  25/100 upgrading...
                desired hub-config-xxx good hub-config-xxx applied hub-config-yyy
            aws-placement  False UpgradeSucceed  400/400 upgrade completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx
            canary-placement  False UpgradeSucceed  100/100 upgrade completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx
            aws001  addonhubconfigs desired hub-config-xxx@b6d559f5 applied hub-config-xxx@b6d559f5
            aws001  version desired v0.10.0 current v0.10.0 last v0.11.0
            aws001  Progressing False UpgradeSucceed: upgrade completed with no errors.
            aws001  Configured True ConfigurationsConfigured: all configurations are resolved
        "#]],
    );
}

#[test]
fn rollback_of_a_bad_canary_touches_only_the_clusters_that_had_moved() {
    check(
        &format!(
            "{CANARY}
            fail can001..can025
            pass
            fail can001..can025
            pass 2
            show status
            show clusters
            ack can001..can025
            fail can001..can025
            rollout aws-placement config=hub-config-xxx Canary 25% canary=canary-placement
            rollout canary-placement config=hub-config-xxx RollingUpdate 25%
            ack can001..can025
            pass
            show clusters
            settle
            show status"
        ),
        &expect![[r#"
            aws-placement  True WaitingForCanary  waitingForCanary... canary default/canary-placement: 100 of 100 not passed, first can001
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx
            canary-placement  False UpgradeFailed  25/100 upgrade failed: stopped, 25 failed, 25 of 25 slots taken: can001, can002, can003, can004, can005, can006, can007, can008, can009, can010 and 15 more
                desired hub-config-yyy good hub-config-xxx applied hub-config-xxx
            aws001..aws400 (400) hold      v0.10.0  canary default/canary-placement: 100 of 100 not passed, first can001
            can001..can025 (25) failed    v0.11.0  failed: work reports Applied=False: boom
            can026..can100 (75) hold      v0.10.0  budget full: 25 of 25 slots taken: 25 failed
            can001..can025 (25) in flight v0.10.0  updating
            aws-placement  False InstallSucceed  400/400 install completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx
            canary-placement  False UpgradeSucceed  100/100 upgrade completed with no errors.
                desired hub-config-xxx good hub-config-xxx applied hub-config-xxx
        "#]],
    );
}

#[test]
fn corner_case_1_a_new_cluster_installs_known_good_and_one_with_an_instance_waits_for_the_canary() {
    check(
        "
        config xxx v0.10.0
        defaults config=xxx
        clusters a5
        user a5
        place aws: a1..a3
        place canary: c1
        rollout aws Canary 1 canary=canary
        rollout canary RollingUpdate 1
        settle
        config yyy v0.11.0
        rollout aws config=yyy Canary 1 canary=canary
        rollout canary config=yyy RollingUpdate 1
        pass 2
        note a4 is new in aws, a5 comes with an instance, c2 is new in the canary, b1 in both
        place aws: a1..a5 b1
        place canary: c1 c2 b1
        pass 2
        show clusters
        settle
        show status
        show all",
        &expect![[r#"
            -- a4 is new in aws, a5 comes with an instance, c2 is new in the canary, b1 in both
            a1..a3 (3)       hold      v0.10.0  canary default/canary: 3 of 3 not passed, first b1
            a4               in flight v0.10.0  installing
            a5               hold      v0.10.0  canary default/canary: 3 of 3 not passed, first b1
            b1               in flight v0.10.0  installing
            c1               in flight v0.11.0  updating
            c2               in flight v0.10.0  installing
            aws  False UpgradeSucceed  5/5 upgrade completed with no errors.
                desired yyy good yyy applied yyy
            canary  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired yyy good yyy applied yyy
            a1..c2 (8)       settled   v0.11.0  settled
        "#]],
    );
}

#[test]
fn corner_case_2_a_change_of_the_canary_clusters_after_it_passed_changes_nothing() {
    check(
        "
        config xxx v0.10.0
        place aws: a1..a3
        place canary: c1
        rollout aws config=xxx Canary 1 canary=canary
        rollout canary config=xxx RollingUpdate 1
        settle
        config yyy v0.11.0
        rollout aws config=yyy Canary 1 canary=canary
        rollout canary config=yyy RollingUpdate 1
        pass 2
        ack c1
        pass 2
        note the canary has passed, a1 moves; then c2 joins the canary and does not get well
        place canary: c1 c2
        stuck c2
        pass 2
        show status
        ack a1
        pass 2
        show clusters",
        &expect![[r#"
            -- the canary has passed, a1 moves; then c2 joins the canary and does not get well
            aws  True Upgrading  1/3 upgrading...
                desired yyy good yyy applied xxx
            canary  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired yyy good yyy applied yyy
            a2               in flight v0.11.0  updating
            a3               hold      v0.10.0  budget full: 1 of 1 in flight
            c2               in flight v0.11.0  installing
        "#]],
    );
}

#[test]
fn corner_case_3_a_config_that_changes_during_the_rollout_waits_for_its_end() {
    check(
        "
        config aaa v0.1.0
        place aws: a1..a3
        place canary: c1
        rollout aws config=aaa Canary 1 canary=canary
        rollout canary config=aaa RollingUpdate 1
        settle
        config bbb v0.2.0
        rollout aws config=bbb Canary 1 canary=canary
        rollout canary config=bbb RollingUpdate 1
        pass 2
        ack c1
        pass 2
        ack a1
        pass 2
        note bbb is known good and rolls; ccc is wanted now
        config ccc v0.3.0
        rollout aws config=ccc Canary 1 canary=canary
        rollout canary config=ccc RollingUpdate 1
        pass 2
        ack c1
        pass 2
        show status
        show clusters
        note the rollout to bbb ends
        ack a2
        pass 2
        ack a3
        pass 2
        show status
        settle
        show status",
        &expect![[r#"
            -- bbb is known good and rolls; ccc is wanted now
            aws  True Upgrading  2/3 upgrading...
                desired ccc good bbb applied aaa
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired ccc good ccc applied ccc
            a1               hold      v0.2.0   the rollout to the known good revision goes first: 2 clusters left
            a2               in flight v0.2.0   updating
            a3               hold      v0.1.0   budget full: 1 of 1 in flight
            -- the rollout to bbb ends
            aws  True Upgrading  1/3 upgrading...
                desired ccc good ccc applied bbb
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired ccc good ccc applied ccc
            aws  False UpgradeSucceed  3/3 upgrade completed with no errors.
                desired ccc good ccc applied ccc
            canary  False UpgradeSucceed  1/1 upgrade completed with no errors.
                desired ccc good ccc applied ccc
        "#]],
    );
}
