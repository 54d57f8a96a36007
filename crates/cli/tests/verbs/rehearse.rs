//! `aviary rehearse` against a hub, and the page it writes.

use std::fs;

use expect_test::expect;

use crate::transcript::worlds::stream;
use crate::world::{World, addon};

#[test]
fn the_fleet_of_a_hub_is_rehearsed_with_a_change() {
    let world = World::installed("rehearse").file("two.yaml", &stream(&[addon("two")]));
    world.check("rehearse helloworld -f two.yaml", &expect![[""]]);
    let told = world.run("rehearse helloworld -f two.yaml --fail 100% --report page.html");
    assert!(told.contains("The report is in page.html; nothing else was written."), "{told}");
    assert!(told.ends_with("exit 1\n"), "{told}");
    let page = fs::read_to_string(world.desk.path("page.html")).unwrap();
    for part in ["<!DOCTYPE html>", "Rehearsal of helloworld", "default/fleet: timeline", "default/canary: exposure", "<svg ", "It stops after"] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    for part in ["<script", "http://", "https://", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(part), "{part:?} in {page}");
    }
    let again = world.run("rehearse helloworld -f two.yaml --report nowhere/page.html");
    expect![[""]].assert_eq(&again.lines().filter(|line| line.starts_with("! ") || line.starts_with("exit")).collect::<Vec<_>>().join("\n"));
}
