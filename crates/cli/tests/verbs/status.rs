//! `aviary status`.

use expect_test::expect;
use serde_json::json;

use crate::world::{World, addon};

#[test]
fn what_is_done_is_exit_0() {
    let world = World::installed("status-done");
    world.check("status", &expect![[""]]);
    world.check("status helloworld", &expect![[""]]);
    world.check("status helloworld -o yaml", &expect![[""]]);
    // There is nothing to wait for.
    world.check("status helloworld -w --timeout 1m", &expect![[""]]);
}

#[test]
fn what_has_failed_is_exit_4() {
    let world = World::refused("status-failed");
    world.check("status", &expect![[""]]);
    world.check("status helloworld", &expect![[""]]);
    world.check("status helloworld -w", &expect![[""]]);
    let told = world.json("status helloworld -o json", 4);
    assert_eq!(told["version"], 1);
    let addon = &told["addOns"][0];
    assert_eq!(
        (&addon["state"], &addon["clusters"], &addon["settled"], &addon["failed"], &addon["waiting"]),
        (&json!("Failed"), &json!(16), &json!(0), &json!(2), &json!(14))
    );
    expect![[""]].assert_eq(&serde_json::to_string_pretty(&addon["placements"][1]).unwrap());
    expect![[""]].assert_eq(&serde_json::to_string_pretty(&addon["unsettled"][0]).unwrap());
}

#[test]
fn what_is_under_way_is_exit_3_and_nothing_is_left_out_when_wide() {
    let world = World::installed("status-under-way");
    world.mood(|mood| drop(mood.ignore.insert("v2.0.0".into())));
    let mut rolling = addon("two");
    for placement in rolling["spec"]["installStrategy"]["placements"].as_array_mut().unwrap() {
        placement["rolloutStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": "25%"}});
    }
    world.give(rolling);
    world.until("the first wave", |_, plan| {
        plan.report.placements.iter().map(|placement| placement.counts.in_flight).eq([3, 1])
    });
    world.check("status helloworld", &expect![[""]]);
    world.check("status helloworld --timeout 1s", &expect![[""]]);
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
    let fleet = "TIME  helloworld default/fleet  Upgraded  12 settled, 0 in flight, 0 failed, 0 waiting of 12";
    assert!(lines.contains(&fleet), "{told}");
    assert!(lines[1].starts_with("TIME  helloworld default/"), "{told}");
}

#[test]
fn a_hub_without_a_manager_is_told_of() {
    let world = World::quiet("status-unmanaged");
    world.check("status", &expect![[""]]);
    world.block_on(world.fleet());
    world.give(addon("one"));
    world.check("status helloworld", &expect![[""]]);
}
