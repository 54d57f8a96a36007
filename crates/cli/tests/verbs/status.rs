//! `aviary status`.

use std::fs;

use aviary_testing::objects;
use expect_test::expect;
use serde_json::json;

use crate::world::{World, addon};

#[test]
fn what_is_done_is_exit_0() {
    let world = World::installed("status-done");
    world.check(
        "status",
        &expect![[r#"
            $ aviary status
              ADD-ON      STATE  CLUSTERS  SETTLED  IN FLIGHT  FAILED  WAITING
              helloworld  Done         16       16          0       0        0
            Next: aviary status helloworld
        "#]],
    );
    world.check(
        "status helloworld",
        &expect![[r#"
        $ aviary status helloworld
        helloworld  Done  16 of 16 clusters settled
        ├─ default/canary  [########################] 4/4  Installed v1.0.0
        └─ default/fleet   [########################] 12/12  Installed v1.0.0
        Next: aviary rollout history helloworld
    "#]],
    );
    world.check(
        "status helloworld -o yaml",
        &expect![[r#"
            $ aviary status helloworld -o yaml
            version: 1
            now: "TIME"
            notes: []
            addOns:
            - name: helloworld
              state: Done
              message: 16 of 16 clusters settled
              observed: true
              clusters: 16
              settled: 16
              inFlight: 0
              failed: 0
              waiting: 0
              leaving: 0
              placements:
              - state: Installed
                done: 12
                placement: default/fleet
                reason: InstallSucceed
                message: install completed with no errors.
                desired: v1.0.0
                target: v1.0.0
                canary: default/canary
                paused: false
                budget: 3
                governed: 12
                onTarget: 12
                settled: 12
                inFlight: 0
                failed: 0
                waiting: 0
                leaving: 0
                slotsUsed: 0
              - state: Installed
                done: 4
                placement: default/canary
                reason: InstallSucceed
                message: install completed with no errors.
                desired: v1.0.0
                target: v1.0.0
                paused: false
                budget: 2
                governed: 4
                onTarget: 4
                settled: 4
                inFlight: 0
                failed: 0
                waiting: 0
                leaving: 0
                slotsUsed: 0
              unsettled: []
              problems: []
        "#]],
    );
    // There is nothing to wait for.
    world.check(
        "status helloworld -w --timeout 1m",
        &expect![[r#"
            $ aviary status helloworld -w --timeout 1m
            TIME  helloworld default/fleet  Installed  12 settled, 0 in flight, 0 failed, 0 waiting of 12
            TIME  helloworld default/canary  Installed  4 settled, 0 in flight, 0 failed, 0 waiting of 4
            TIME  helloworld  Done  16 of 16 clusters settled
            Next: aviary rollout history helloworld
        "#]],
    );
}

#[test]
fn what_has_failed_is_exit_4() {
    let world = World::refused("status-failed");
    world.check(
        "status",
        &expect![[r#"
            $ aviary status
              ADD-ON      STATE   CLUSTERS  SETTLED  IN FLIGHT  FAILED  WAITING
              helloworld  Failed        16        0          0       2       14
            helloworld: default/canary: upgrade failed: stopped, 2 failed, 2 of 2 slots
              taken: canary-00, canary-01
            Next: aviary status helloworld # which clusters, and why
            exit 4
        "#]],
    );
    world.check(
        "status helloworld",
        &expect![[r#"
            $ aviary status helloworld
            helloworld  Failed  default/canary: upgrade failed: stopped, 2 failed, 2 of 2
                slots taken: canary-00, canary-01
            ├─ default/canary  [xxxxxxxxxxxx............] 0/4  Failed v3.0.0
            │  2 failed, 2 waiting, at most 2 at once
            │  ├─ 2 Failed: failed: work reports Applied=False: image of v3.0.0 cannot be
            │  │    pulled (canary-00, canary-01)
            │  └─ 2 BudgetFull: budget full: 2 of 2 slots taken: 2 failed (canary-02,
            │       canary-03)
            └─ default/fleet  WaitingForCanary v3.0.0 (v1.0.0 until then)
               [........................] 0/12
               12 waiting, at most 3 at once, behind default/canary
               └─ 12 WaitingForCanary: canary default/canary: 4 of 4 not passed, first
                    canary-00 (fleet-00, fleet-01, fleet-02 and 9 more)
            Next: aviary explain helloworld # or aviary rollout undo helloworld to roll back
            exit 4
        "#]],
    );
    world.check("status helloworld -w", &expect![[r#"
        $ aviary status helloworld -w
        TIME  helloworld default/fleet  WaitingForCanary  0 settled, 0 in flight, 0 failed, 12 waiting of 12
        TIME  helloworld default/canary  Failed  0 settled, 0 in flight, 2 failed, 2 waiting of 4
        TIME  helloworld  Failed  default/canary: upgrade failed: stopped, 2 failed, 2 of 2 slots taken: canary-00, canary-01
        Next: aviary explain helloworld # or aviary rollout undo helloworld to roll back
        exit 4
    "#]]);
    let kubeconfig = fs::read_to_string(world.desk.path("hub.kubeconfig")).unwrap();
    let world = world.file("other.kubeconfig", &kubeconfig);
    let told = world.run("status helloworld --kubeconfig other.kubeconfig");
    let hint = "Next: aviary explain helloworld --kubeconfig other.kubeconfig # or aviary rollout undo helloworld --kubeconfig other.kubeconfig to roll back";
    assert!(told.contains(hint), "{told}");
    let told = world.json("status helloworld -o json", 4);
    assert_eq!(told["version"], 1);
    let addon = &told["addOns"][0];
    assert_eq!(
        (&addon["state"], &addon["clusters"], &addon["settled"], &addon["failed"], &addon["waiting"]),
        (&json!("Failed"), &json!(16), &json!(0), &json!(2), &json!(14))
    );
    expect![[r#"
        {
          "budget": 2,
          "desired": "v3.0.0",
          "done": 0,
          "failed": 2,
          "governed": 4,
          "inFlight": 0,
          "leaving": 0,
          "message": "upgrade failed: stopped, 2 failed, 2 of 2 slots taken: canary-00, canary-01",
          "onTarget": 2,
          "paused": false,
          "placement": "default/canary",
          "reason": "UpgradeFailed",
          "settled": 0,
          "slotsUsed": 2,
          "state": "Failed",
          "target": "v3.0.0",
          "waiting": 2
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&addon["placements"][1]).unwrap());
    expect![[r#"
        {
          "cluster": "canary-00",
          "kind": "failed",
          "message": "failed: work reports Applied=False: image of v3.0.0 cannot be pulled",
          "placement": "default/canary",
          "reason": "Failed",
          "told": "v3.0.0"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&addon["unsettled"][0]).unwrap());
}

#[test]
fn what_is_under_way_is_exit_3_and_nothing_is_left_out_when_wide() {
    let world = World::installed("status-under-way");
    world.mood(|mood| mood.ignore.extend(["v2.0.0".to_owned()]));
    let mut rolling = addon("two");
    for placement in rolling["spec"]["installStrategy"]["placements"].as_array_mut().unwrap() {
        placement["rolloutStrategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": "25%"}});
    }
    world.give(rolling);
    world.until("the first wave", |_, plan| {
        plan.report.placements.iter().map(|placement| placement.tally.in_flight).eq([3, 1])
    });
    world.check(
        "status helloworld",
        &expect![[r#"
            $ aviary status helloworld
            helloworld  Progressing  0 of 16 clusters settled
            ├─ default/fleet   [>>>>>>..................] 0/12  Upgrading v2.0.0
            │  3 in flight, 9 waiting, at most 3 at once
            │  ├─ 3 Updating: updating (fleet-00, fleet-01, fleet-02)
            │  └─ 9 BudgetFull: budget full: 3 of 3 in flight (fleet-03, fleet-04, fleet-05
            │       and 6 more)
            └─ default/canary  [>>>>>>..................] 0/4  Upgrading v2.0.0
               1 in flight, 3 waiting, at most 1 at once
               ├─ 1 Updating: updating (canary-00)
               └─ 3 BudgetFull: budget full: 1 of 1 in flight (canary-01, canary-02,
                    canary-03)
            Next: aviary explain helloworld # what it waits for
            exit 3
        "#]],
    );
    world.check(
        "status helloworld --timeout 1s",
        &expect![[r#"
            $ aviary status helloworld --timeout 1s
            TIME  helloworld default/fleet  Upgrading  0 settled, 3 in flight, 0 failed, 9 waiting of 12
            TIME  helloworld default/canary  Upgrading  0 settled, 1 in flight, 0 failed, 3 waiting of 4
            TIME  helloworld  Progressing  0 of 16 clusters settled
            Note: timed out after 1s
            Next: aviary explain helloworld # what it waits for
            exit 3
        "#]],
    );
    let wide = world.run("status helloworld -o wide");
    assert_eq!(wide.matches("BudgetFull  budget full: 3 of 3 in flight").count(), 9, "{wide}");
}

#[test]
fn a_watch_ends_when_the_rollout_is_through() {
    let world = World::installed("status-watch");
    world.give(addon("two"));
    let told = world.run("status helloworld -w --timeout 2m");
    assert!(!told.contains("\nexit "), "{told}");
    let lines: Vec<&str> = told.lines().collect();
    let count = lines.len();
    assert_eq!(lines[count - 1], "Next: aviary rollout history helloworld");
    assert_eq!(lines[count - 2], "TIME  helloworld  Done  16 of 16 clusters settled");
    let fleet =
        "TIME  helloworld default/fleet  Upgraded  12 settled, 0 in flight, 0 failed, 0 waiting of 12";
    assert!(lines.contains(&fleet), "{told}");
    assert!(lines[1].starts_with("TIME  helloworld default/"), "{told}");
}

#[test]
fn a_hub_without_a_manager_is_told_of() {
    let world = World::quiet("status-unmanaged");
    world.check(
        "status",
        &expect![[r#"
        $ aviary status
        There is no add-on. Next: aviary plan -f addon.yaml
    "#]],
    );
    world.block_on(world.fleet());
    world.give(addon("one"));
    world.check(
        "status helloworld",
        &expect![[r#"
            $ aviary status helloworld
            helloworld  Progressing  0 of 16 clusters settled
            ├─ default/canary  [........................] 0/4  Installing v1.0.0
            │  4 waiting, first installs all at once
            │  └─ 4 NotCreated: selected; its instance has not been created yet (canary-00,
            │       canary-01, canary-02 and 1 more)
            └─ default/fleet   [........................] 0/12  Installing v1.0.0
               12 waiting, first installs all at once, behind default/canary
               └─ 12 NotCreated: selected; its instance has not been created yet (fleet-00,
                    fleet-01, fleet-02 and 9 more)
            Note: no manager has ever run here: there is no lease
              open-cluster-management/aviary-manager; nothing moves without a manager,
              unless it runs with --leader-elect=false
            Next: aviary explain helloworld # what it waits for
            exit 3
        "#]],
    );
}

/// A script that applies and waits must not get success too early.
#[test]
fn what_nobody_has_taken_up_yet_is_not_done() {
    let world = World::quiet("status-not-taken-up");
    world.give(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "helloworld"},
        "spec": {"installStrategy": {"type": "Placements", "placements": [{"name": "fleet", "namespace": "default"}]}},
    }));
    world.give(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "fleet", "namespace": "default"}, "spec": {},
    }));
    world.check(
        "status helloworld",
        &expect![[r#"
        $ aviary status helloworld
        helloworld  Progressing  default/fleet: no placement controller has decided yet
            which clusters it selects
        └─ default/fleet  [........................] 0/0  Undecided e3b0c44298fc
        warning: no placement controller has decided yet which clusters placement
            default/fleet selects: nothing is deleted until one has
        Note: no manager has ever run here: there is no lease
          open-cluster-management/aviary-manager; nothing moves without a manager,
          unless it runs with --leader-elect=false
        Next: kubectl -n default get placement fleet -o yaml # which controller should decide it
        exit 3
    "#]],
    );
    let told = world.run("explain helloworld");
    assert!(
        told.contains("default/fleet  Undecided  no placement controller has chosen its clusters yet"),
        "{told}"
    );
    assert!(!told.contains("Nothing is waiting") && !told.contains("selects no cluster"), "{told}");
    // The placement selects no cluster. Now the manager has to act.
    world.block_on(world.clusters("fleet", &[]));
    world.check(
        "status helloworld",
        &expect![[r#"
            $ aviary status helloworld
            helloworld  Progressing  the manager has not processed the change yet
            └─ default/fleet  [........................] 0/0  Empty e3b0c44298fc
            Note: no manager has ever run here: there is no lease
              open-cluster-management/aviary-manager; nothing moves without a manager,
              unless it runs with --leader-elect=false
            Next: aviary explain helloworld # what it waits for
            exit 3
        "#]],
    );
    let world = world.looked_after();
    world.until("an empty placement is told", |_, plan| plan.is_at_rest());
    world.check(
        "status helloworld",
        &expect![[r#"
            $ aviary status helloworld
            helloworld  Done  0 of 0 clusters settled
            └─ default/fleet  [........................] 0/0  Empty e3b0c44298fc
            Next: aviary rollout history helloworld
        "#]],
    );
}

fn install(strategy: &serde_json::Value) -> serde_json::Value {
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "helloworld"}, "spec": {"installStrategy": strategy},
    })
}

/// Nothing was ever installed, so there is nothing to roll back to.
#[test]
fn a_missing_placement_is_to_be_created() {
    let world = World::quiet("status-missing-placement");
    world.block_on(world.fleet());
    let placements = json!([{"name": "nowhere", "namespace": "default"}]);
    world.give(install(&json!({"type": "Placements", "placements": placements})));
    let told = world.run("status helloworld");
    let step = "Next: create the Placement default/nowhere, or correct the add-on's placements";
    assert!(told.contains(step) && !told.contains("rollout undo"), "{told}");
    let told = world.run("explain helloworld");
    assert!(told.contains(step) && !told.contains("Nothing is waiting"), "{told}");
    let told = world.run("plan helloworld");
    assert!(told.contains("0 clusters: stopped by the problems below"), "{told}");
    assert!(!told.contains("nothing to do"), "{told}");
}

/// Held deletions are not undone by a rollback.
#[test]
fn held_deletions_lead_to_the_plan() {
    let world = World::installed("status-held-deletions");
    world.give(objects::decision("fleet", 1, &[]));
    let mut none = objects::placement_of("fleet", 0);
    none["status"]["conditions"] = json!([{
        "type": "PlacementSatisfied", "status": "False", "reason": "NoManagedClusterMatched", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    world.give(none);
    world.until("the brake", |_, plan| plan.report.problems.iter().any(|problem| !problem.is_warning()));
    let told = world.run("status helloworld");
    assert!(
        told.contains("Next: aviary plan helloworld # what would be deleted, and how to approve it"),
        "{told}"
    );
    assert!(!told.contains("rollout undo"), "{told}");
    let told = world.run("plan helloworld");
    assert!(told.contains("Next: kubectl annotate clustermanagementaddon helloworld"), "{told}");
}

/// An add-on without placements has no rollout, and so no history.
#[test]
fn what_is_manual_does_not_lead_to_a_history() {
    let world = World::quiet("status-manual").looked_after();
    world.give(install(&json!({"type": "Manual"})));
    world.until("success", |observed, _| {
        observed.addon.status.conditions.iter().any(|one| one.kind == "Succeeded" && one.is_true())
    });
    let told = world.run("status helloworld");
    assert!(told.ends_with("Next: aviary plan helloworld # what its manager does next\n"), "{told}");
    world.json("plan helloworld -o json", 0);
    let told = world.run("explain helloworld");
    assert!(told.ends_with("Nothing is waiting. Next: aviary status helloworld\n"), "{told}");
}

#[test]
fn a_watch_says_first_that_nobody_leads_and_last_that_it_timed_out() {
    let world = World::quiet("status-watch-unmanaged");
    world.block_on(world.fleet());
    world.give(addon("one"));
    world.check("status helloworld --timeout 1s", &expect![[r#"
        $ aviary status helloworld --timeout 1s
        Note: no manager has ever run here: there is no lease open-cluster-management/aviary-manager; nothing moves without a manager, unless it runs with --leader-elect=false
        TIME  helloworld default/fleet  Installing  0 settled, 0 in flight, 0 failed, 12 waiting of 12
        TIME  helloworld default/canary  Installing  0 settled, 0 in flight, 0 failed, 4 waiting of 4
        TIME  helloworld  Progressing  0 of 16 clusters settled
        Note: timed out after 1s
        Next: aviary explain helloworld # what it waits for
        exit 3
    "#]]);
    let told = world.json("status helloworld --timeout 1s -o json", 3);
    let notes = told["notes"].as_array().unwrap();
    assert!(notes[0].as_str().unwrap().starts_with("no manager has ever run here"), "{told:#}");
    assert_eq!(notes[1], "timed out after 1s", "{told:#}");
}
