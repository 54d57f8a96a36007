//! Errors on the way to a hub, each with what to do.

use std::net::TcpListener;

use aviary_hub::security::Role;
use expect_test::expect;
use serde_json::json;

use crate::transcript::{desk, told};
use crate::world::{World, addon, hub_config, mask};

/// One command of each verb.
const VERBS: [&str; 10] = [
    "status",
    "explain helloworld",
    "plan helloworld",
    "rehearse helloworld",
    "rollout pause helloworld",
    "rollout resume helloworld",
    "rollout undo helloworld",
    "rollout history helloworld",
    "rollout retry helloworld",
    "rollout reprobe helloworld",
];

#[test]
fn without_a_kubeconfig_every_verb_says_how_to_give_one() {
    let desk = desk("verbs-no-kubeconfig").file("home/.keep", "");
    for verb in VERBS {
        let mut command = desk.command(verb);
        command.env_clear().env("HOME", desk.path("home"));
        let told = mask(&told(verb, &command.output().unwrap()));
        let said = told.replace(&*desk.path("home").to_string_lossy(), "HOME");
        let expected = "! aviary: failed to find a hub: there is no kubeconfig HOME/.kube/config, and this process is not running in a pod: \
            give --kubeconfig FILE or set KUBECONFIG; aviary hub runs a local hub for trying things out";
        assert_eq!(said, format!("$ {verb}\n{expected}\nexit 1\n"));
    }
    let told = desk.run("status --kubeconfig nowhere.yaml");
    expect![[r#"
        $ aviary status --kubeconfig nowhere.yaml
        ! aviary: failed to read the kubeconfig nowhere.yaml: no such file or directory: give the hub's kubeconfig with --kubeconfig
        exit 1
    "#]].assert_eq(&told);
    let desk = desk.file("empty.yaml", "apiVersion: v1\nkind: Config\ncurrent-context: none\n");
    expect![[r#"
        $ aviary status --kubeconfig empty.yaml
        ! aviary: failed to use the kubeconfig empty.yaml: failed to load current context: none
        exit 1
    "#]]
    .assert_eq(&desk.run("status --kubeconfig empty.yaml"));
}

#[test]
fn a_hub_that_is_not_there_is_named_with_its_address() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kubeconfig = aviary_hub::security::kubeconfig(&format!("https://{address}"), "", "token", "gone");
    let desk = desk("verbs-gone").file(
        "gone.kubeconfig",
        kubeconfig.replace("certificate-authority-data: \n", "insecure-skip-tls-verify: true\n"),
    );
    for verb in VERBS {
        let told = mask(&desk.run(&format!("{verb} --kubeconfig gone.kubeconfig")));
        assert!(
            told.contains("https://127.0.0.1:PORT cannot be reached: connection refused: is it running"),
            "{told}"
        );
        assert!(told.ends_with("exit 1\n"), "{told}");
    }
}

#[test]
fn a_context_that_is_not_there_is_answered_with_those_that_are() {
    let world = World::quiet("context");
    world.check("status --context other", &expect![[r#"
        $ aviary status --context other
        ! aviary: failed to use the kubeconfig hub.kubeconfig: failed to load current context: other: its contexts are aviary
        exit 1
    "#]]);
    world.check(
        "status --context aviary",
        &expect![[r#"
        $ aviary status --context aviary
        There is no add-on. Next: aviary plan -f addon.yaml --context aviary
    "#]],
    );
}

#[test]
fn credentials_that_are_not_accepted_and_rights_that_are_missing_are_named() {
    let world = World::quiet("rights")
        .with_wrong_token("nobody.kubeconfig")
        .with_token("agent.kubeconfig", "agent", Role::Agent { namespace: "fleet-00".into() })
        .with_token("reader.kubeconfig", "reader", Role::ReadOnly);
    world.block_on(world.fleet());
    world.give(addon("one"));
    for verb in VERBS {
        let told = world.run(&format!("{verb} --kubeconfig nobody.kubeconfig"));
        assert!(
            told.contains("https://127.0.0.1:PORT does not accept your credentials: log in again"),
            "{told}"
        );
        let told = world.run(&format!("{verb} --kubeconfig agent.kubeconfig"));
        assert!(
            told.contains("is forbidden: User \"agent\" cannot ")
                && told.contains(": ask the hub's administrator for that right"),
            "{told}"
        );
        assert!(told.ends_with("exit 1\n"), "{told}");
    }
    world.check("status --kubeconfig agent.kubeconfig", &expect![[r#"
        $ aviary status --kubeconfig agent.kubeconfig
        ! aviary: failed to list clustermanagementaddons.addon.open-cluster-management.io: clustermanagementaddons.addon.open-cluster-management.io is forbidden: User "agent" cannot list resource "clustermanagementaddons" in API group "addon.open-cluster-management.io" at the cluster scope: ask the hub's administrator for that right
        exit 1
    "#]]);
    world.check("rollout pause helloworld --kubeconfig reader.kubeconfig", &expect![[r#"
        $ aviary rollout pause helloworld --kubeconfig reader.kubeconfig
        ! aviary: failed to change clustermanagementaddons.addon.open-cluster-management.io helloworld: clustermanagementaddons.addon.open-cluster-management.io "helloworld" is forbidden: User "reader" cannot patch resource "clustermanagementaddons" in API group "addon.open-cluster-management.io" at the cluster scope: ask the hub's administrator for that right
        exit 1
    "#]]);
    // A reader may read.
    assert!(world.run("status --kubeconfig reader.kubeconfig").ends_with("exit 3\n"));
}

#[test]
fn a_hub_without_the_kinds_is_told_how_to_get_them() {
    let world = World::bare("no-kinds");
    for verb in VERBS {
        let told = world.run(verb);
        assert!(told.contains("does not serve that kind: install the custom resource definitions with: aviary crds | kubectl apply --server-side -f -"), "{told}");
        assert!(told.ends_with("exit 1\n"), "{told}");
    }
    world.check("status", &expect![[r#"
        $ aviary status
        ! aviary: failed to list clustermanagementaddons.addon.open-cluster-management.io: https://127.0.0.1:PORT does not serve that kind: install the custom resource definitions with: aviary crds | kubectl apply --server-side -f -
        exit 1
    "#]]);
}

#[test]
fn an_add_on_that_is_not_there_is_answered_with_those_that_are() {
    let world = World::quiet("unknown-add-on");
    world.check(
        "status hello",
        &expect![[r#"
        $ aviary status hello
        ! aviary: there is no add-on hello on https://127.0.0.1:PORT: it has none
        exit 1
    "#]],
    );
    world.give(addon("one"));
    for verb in VERBS.iter().map(|verb| verb.replace("helloworld", "hello")).filter(|verb| verb != "status") {
        let told = world.run(&verb);
        assert!(
            told.contains("there is no add-on hello on https://127.0.0.1:PORT: it has helloworld"),
            "{told}"
        );
        assert!(told.ends_with("exit 1\n"), "{told}");
    }
    world.check("status 'a,metadata.name!=b'", &expect![[r#"
        $ aviary status 'a,metadata.name!=b'
        ! aviary: "a,metadata.name!=b" is not a valid name of an add-on: use lower-case letters, digits, '-' and '.'
        exit 1
    "#]]);
}

#[test]
fn wrong_usage_is_exit_2() {
    let desk = desk("verbs-usage");
    expect![[r#"
        $ aviary explain
        ! error: the following required arguments were not provided:
        !   <ADDON>
        !
        ! Usage: aviary explain <ADDON> [CLUSTER]
        !
        ! For more information, try '--help'.
        exit 2
    "#]]
    .assert_eq(&desk.run("explain"));
    expect![[r#"
        $ aviary status --timeout soon
        ! error: invalid value 'soon' for '--timeout <DURATION>': "soon" is not a duration: give one such as 90s, 10m or 1h30m
        !
        ! For more information, try '--help'.
        exit 2
    "#]].assert_eq(&desk.run("status --timeout soon"));
    expect![[r#"
        $ aviary plan
        ! error: the following required arguments were not provided:
        !   <ADDON|--filename <FILE>...>
        !
        ! Usage: aviary plan <ADDON|--filename <FILE>...>
        !
        ! For more information, try '--help'.
        exit 2
    "#]]
    .assert_eq(&desk.run("plan"));
    expect![[r#"
        $ aviary rollout undo helloworld --to-revision 0
        ! error: invalid value '0' for '--to-revision <N>': 0 is not in 1..9223372036854775807
        !
        ! For more information, try '--help'.
        exit 2
    "#]]
    .assert_eq(&desk.run("rollout undo helloworld --to-revision 0"));
    expect![[r#"
        $ aviary rollout stop helloworld
        ! error: unrecognized subcommand 'stop'
        !
        !   tip: a similar subcommand exists: 'history'
        !
        ! Usage: aviary rollout [OPTIONS] <COMMAND>
        !
        ! For more information, try '--help'.
        exit 2
    "#]]
    .assert_eq(&desk.run("rollout stop helloworld"));
}

#[test]
fn a_port_that_is_taken_is_named_and_nothing_is_left_behind() {
    let world = World::quiet("errors-port");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for (command, option) in [
        (format!("hub --data-dir data --listen {address}"), "--listen"),
        (format!("manager --kubeconfig hub.kubeconfig --health {address}"), "--health"),
        (format!("manager --kubeconfig hub.kubeconfig --metrics {address}"), "--metrics"),
    ] {
        let told = mask(&world.desk.run(&command));
        let said = format!(
            "! aviary: failed to listen on 127.0.0.1:PORT: the port is in use: choose another with {option}; port 0 picks a free port\nexit 1\n"
        );
        assert!(told.ends_with(&said), "{told}");
    }
    assert!(!world.desk.path("data").exists(), "a hub that did not start has created its directory");
}

#[test]
fn what_is_not_planned_and_which_versions_there_are_is_said() {
    let mut other = addon("one");
    other["metadata"]["name"] = json!("goodbyeworld");
    let both = [addon("two"), other].map(|one| one.to_string()).join("\n---\n");
    let world = World::installed("errors-words").file("both.yaml", &both);
    let told = world.run("plan helloworld -f both.yaml");
    assert!(
        told.contains("the files contain another add-on, which is not planned here: goodbyeworld"),
        "{told}"
    );

    world.give(hub_config("one", "v9.9.9"));
    world.until("the version to be refused", |_, plan| {
        plan.report.placements.iter().any(|placement| placement.message.contains("invalid version v9.9.9"))
    });
    let told = world.run("explain helloworld");
    let advice = "publish that version, or use one of these: v3.0.0, v2.0.0, v1.0.0";
    assert!(told.contains(advice), "{told}");
}
