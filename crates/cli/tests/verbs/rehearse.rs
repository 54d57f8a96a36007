//! `aviary rehearse` against a hub, and the page it writes.

use std::fs;

use expect_test::expect;

use crate::transcript::worlds::stream;
use crate::world::{World, addon};

#[test]
fn the_fleet_of_a_hub_is_rehearsed_with_a_change() {
    let world = World::installed("rehearse").file("two.yaml", &stream(&[addon("two")]));
    world.check("rehearse helloworld -f two.yaml", &expect![[r#"
        $ aviary rehearse helloworld -f two.yaml
        helloworld on 16 clusters
          updates take 10s to 60s, 0% fail, 0% are unreachable, 0% flap; seed 1

          time   default/fleet                   default/canary
          0s     ........................ 0/12   >>>>>>>>>>>>............ 0/4
          1m     ........................ 0/12   ############>>>>>>>>>>>> 2/4
          1m26s  ........................ 0/12   ##################>>>>>> 3/4
          1m45s  >>>>>>.................. 0/12   ######################## 4/4
          2m4s   ##>>>>>>................ 1/12   ######################## 4/4
          2m36s  ####>>>>>>.............. 2/12   ######################## 4/4
          2m59s  ##############>>>>>>.... 7/12   ######################## 4/4
          3m9s   ################>>>>>>.. 8/12   ######################## 4/4
          3m33s  ##################>>>>>> 9/12   ######################## 4/4
          3m58s  ######################>> 11/12  ######################## 4/4
          4m30s  ######################## 12/12  ######################## 4/4
          # settled  > in flight  x failed  . waiting

          placement       clusters  budget  peak  settled  failed  waiting  result
          default/fleet         12       3     3       12       0        0  upgrade completed with no errors.
          default/canary         4       2     2        4       0        0  upgrade completed with no errors.

        All clusters settled after 4m30s. 45 passes, 69 writes.

        Nothing was written. Next: aviary rehearse helloworld -f two.yaml … --fail 5% # to see where a bad revision stops
    "#]]);
    let told = world.run("rehearse helloworld -f two.yaml --fail 100% --failure refuses --report page.html");
    assert!(told.contains("The report is in page.html; nothing else was written."), "{told}");
    assert!(told.ends_with("exit 1\n"), "{told}");
    let page = fs::read_to_string(world.desk.path("page.html")).unwrap();
    for part in [
        "<!DOCTYPE html>",
        "Rehearsal of helloworld",
        "default/fleet: timeline",
        "default/canary: exposure",
        "<svg ",
        "<path class=\"waiting\" ",
        "Stops after",
    ] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    for part in ["<script", "http://", "https://", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(part), "{part:?} in {page}");
    }
    let again = world.run("rehearse helloworld -f two.yaml --report nowhere/page.html");
    expect![[r#"
        ! aviary: failed to write the report nowhere/page.html: No such file or directory (os error 2)
        exit 1"#]]
    .assert_eq(
        &again
            .lines()
            .filter(|line| line.starts_with("! ") || line.starts_with("exit"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
}
