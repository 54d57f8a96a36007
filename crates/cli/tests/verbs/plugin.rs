//! As a plugin: `kubectl aviary`.

use std::process::Command;

use expect_test::expect;

use crate::transcript::told;
use crate::world::{World, mask};

#[test]
fn kubectl_finds_it_and_it_goes_by_the_name_that_is_typed() {
    let world = World::installed("plugin");
    let plugins = world.desk.path("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_aviary"), plugins.join("kubectl-aviary")).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let kubectl = std::env::var("AVIARY_KUBECTL").unwrap_or_else(|_| "kubectl".into());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&kubectl);
        command
            .env_clear()
            .env("PATH", format!("{}:{path}", plugins.display()))
            .env("HOME", world.desk.path("home"));
        command
            .env("KUBECONFIG", world.desk.path("hub.kubeconfig"))
            .args(arguments)
            .current_dir(world.desk.path(""));
        mask(&told(&format!("kubectl {}", arguments.join(" ")), &command.output().unwrap()))
    };
    expect![[r#"
        $ kubectl aviary status
          ADD-ON      STATE  CLUSTERS  SETTLED  IN FLIGHT  FAILED  WAITING
          helloworld  Done         16       16          0       0        0
        Next: kubectl aviary status helloworld
    "#]]
    .assert_eq(&run(&["aviary", "status"]));
    let help = run(&["aviary", "rollout", "undo", "--help"]);
    assert!(help.contains("Usage: kubectl aviary rollout undo"), "{help}");
    assert!(help.contains("$ kubectl aviary rollout undo helloworld --dry-run"), "{help}");
}
