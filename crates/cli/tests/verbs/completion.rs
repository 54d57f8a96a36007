//! The completion scripts in the real shells: names on the hub are completed. bash is in
//! `truth.rs`.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use crate::world::World;

/// Once, because two installations at a time would be in each other's way.
static INSTALLED: LazyLock<()> = LazyLock::new(|| {
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/install-shells.sh");
    assert!(Command::new(install).status().unwrap().success(), "hack/install-shells.sh failed");
});

/// Runs a script in a shell in which `aviary` is on the path and knows the hub.
fn in_shell(world: &World, shell: &str, script: &str) -> String {
    LazyLock::force(&INSTALLED);
    let folder = Path::new(env!("CARGO_BIN_EXE_aviary")).parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let run = Command::new(shell)
        .args(["-c", script])
        .env("PATH", path)
        .env("HOME", world.desk.path("home"))
        .env("KUBECONFIG", world.desk.path("hub.kubeconfig"))
        .output()
        .unwrap();
    let told = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{told}{}", String::from_utf8_lossy(&run.stderr));
    told
}

/// zsh completes only on a terminal: its `compadd` is replaced by one that prints.
#[test]
fn zsh_completes_names_on_the_hub() {
    let world = World::installed("complete-zsh");
    let script = r#"autoload -Uz compinit && compinit -u -D
        source <(aviary completion zsh)
        print -r -- "$_comps[aviary]"
        _aviary() { }
        compadd() { print -r -- "${(P)${argv[-1]}}" }
        typed() { words=(aviary "$@"); CURRENT=$#words; _aviary_names }
        typed explain ""
        typed explain helloworld canary-0
        typed rollout pause helloworld -p """#;
    let told = in_shell(&world, "zsh", script);
    let expected = "_aviary_names\nhelloworld\ncanary-00 canary-01 canary-02 canary-03\n";
    let placements = told.strip_prefix(expected).unwrap_or_else(|| panic!("{told}"));
    assert!(placements.contains("default/canary") && placements.contains("default/fleet"), "{told}");
}

#[test]
fn fish_completes_names_on_the_hub() {
    let world = World::installed("complete-fish");
    let typed = |line: &str| {
        let script = format!("aviary completion fish | source; complete -C '{line}'");
        let told = in_shell(&world, "fish", &script);
        told.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(typed("aviary explain "), ["helloworld"]);
    let clusters = typed("aviary explain helloworld canary-0");
    assert_eq!(clusters, ["canary-00", "canary-01", "canary-02", "canary-03"]);
    for option in ["-p", "--placement"] {
        let placements = typed(&format!("aviary rollout pause helloworld {option} "));
        assert_eq!(placements, ["default/canary", "default/fleet"]);
    }
    let clusters = typed("aviary rollout retry helloworld --cluster canary-0");
    assert_eq!(clusters, ["canary-00", "canary-01", "canary-02", "canary-03"]);
    // Here it is no option with a value.
    assert!(!typed("aviary manager --placement ").contains(&"default/canary".to_owned()));
}
