//! The hub as a process: its output, its errors, its data.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;

use crate::harness::{Hub, hub, start};
use crate::mask::mask;
use crate::transcript::{Desk, desk};

fn refused(desk: &Desk, arguments: &str) -> String {
    mask(&desk.run(arguments), &desk.path(""))
}

fn token(hub: &Hub) -> String {
    let kubeconfig = fs::read_to_string(hub.desk.path("hub/kubeconfig")).unwrap();
    let line = kubeconfig.lines().find(|line| line.trim_start().starts_with("token:")).unwrap();
    line.split_once(':').unwrap().1.trim().trim_matches('"').to_owned()
}

#[test]
fn it_says_where_it_is_and_how_to_use_it() {
    let hub = hub("start");
    expect![[r#"
        Hub listening on https://127.0.0.1:PORT
          data        hub
          kubeconfig  hub/kubeconfig
          kinds       13 custom resource definitions installed

        Try it:  kubectl --kubeconfig hub/kubeconfig get clustermanagementaddons
        Press Ctrl-C to stop.
    "#]]
    .assert_eq(&hub.masked(&hub.started));
    hub.stop();
}

#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let hub = hub("second");
    expect![[r#"
        $ aviary hub --data-dir hub --listen 127.0.0.1:PORT
        ! aviary: failed to open the hub: hub is in use by another process: only one hub can run on a data directory
        exit 1
    "#]].assert_eq(&refused(&hub.desk, "hub --data-dir hub --listen 127.0.0.1:0"));
    hub.given("create configmap still-served");
    hub.stop();
}

#[test]
fn an_address_that_others_can_reach_must_be_meant() {
    let desk = desk("kubectl-remote");
    expect![[r#"
        $ aviary hub --data-dir hub --listen 0.0.0.0:0
        ! aviary: other machines can reach 0.0.0.0:0: add --allow-remote to allow that
        exit 1
    "#]]
    .assert_eq(&refused(&desk, "hub --data-dir hub --listen 0.0.0.0:0"));
    assert!(!desk.path("hub").exists());
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let hub = hub("damage");
    hub.given("create configmap one --from-literal=key=to-be-overwritten");
    let desk = hub.stop();
    let file = desk.path("hub/hub.redb");
    let mut bytes = fs::read(&file).unwrap();
    let text = b"to-be-overwritten";
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + text.len()].copy_from_slice(b"something-strange");
    }
    fs::write(&file, &bytes).unwrap();
    let told = refused(&desk, "hub --data-dir hub --listen 127.0.0.1:0");
    expect![[r#"
        $ aviary hub --data-dir hub --listen 127.0.0.1:PORT
        ! aviary: failed to open the hub: hub/hub.redb is damaged: Primary is corrupted despite 2-phase commit; nothing was changed: restore it from a copy, or start with an empty directory
        exit 1
    "#]].assert_eq(&told);
    assert_eq!(fs::read(&file).unwrap(), bytes);

    // Completely invalid pages give the same short message.
    bytes[4096..8192].fill(0xff);
    fs::write(&file, &bytes).unwrap();
    let told = refused(&desk, "hub --data-dir hub --listen 127.0.0.1:0");
    let lines: Vec<&str> = told.lines().skip(1).collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].contains("hub/hub.redb is damaged: ") && lines[1] == "exit 1", "{told}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_file_of_something_else_is_refused_and_left_as_it_is() {
    let desk = desk("kubectl-other-file").file("hub/hub.redb", "not a database".repeat(1000));
    let told = refused(&desk, "hub --data-dir hub --listen 127.0.0.1:0");
    expect![[r#"
        $ aviary hub --data-dir hub --listen 127.0.0.1:PORT
        ! aviary: failed to open the hub: hub/hub.redb is damaged: Not a redb database: magic number mismatch; nothing was changed: restore it from a copy, or start with an empty directory
        exit 1
    "#]].assert_eq(&told);
    assert_eq!(fs::read(desk.path("hub/hub.redb")).unwrap(), b"not a database".repeat(1000));
}

#[test]
fn data_and_token_outlive_the_process() {
    let hub = hub("restart");
    hub.given("create configmap kept --from-literal=a=b\n create namespace c1");
    let before = (token(&hub), hub.json("get configmap kept -o json"));
    let hub = start(hub.stop(), "--data-dir hub");
    assert_eq!((token(&hub), hub.json("get configmap kept -o json")), before);
    hub.check(
        "get configmaps,namespaces -o name\n create configmap kept --dry-run=client",
        &expect![[r#"
        $ kubectl get configmaps,namespaces -o name
        configmap/kept
        namespace/c1
        namespace/default
        namespace/kube-system

        $ kubectl create configmap kept --dry-run=client
        configmap/kept created (dry run)
    "#]],
    );
    hub.stop();
}

#[test]
fn the_token_is_in_the_kubeconfig_only() {
    let hub = hub("secrets");
    hub.given("get namespaces");
    let token = token(&hub);
    assert!(token.len() >= 43, "256 bits");
    let desk = hub.stop();
    let mut holders = Vec::new();
    for entry in fs::read_dir(desk.path("hub")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        if fs::read(&path).unwrap().windows(token.len()).any(|part| part == token.as_bytes()) {
            holders.push(name);
        }
    }
    assert_eq!(holders, ["kubeconfig"]);
    assert_eq!(fs::metadata(desk.path("hub")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn an_ephemeral_hub_leaves_nothing_but_the_kubeconfig() {
    let desk = desk("kubectl-ephemeral").file("home/.keep", "").file("hub/.keep", "");
    expect![[r#"
        $ aviary hub --ephemeral
        ! error: the following required arguments were not provided:
        !   --kubeconfig-out <FILE>
        !
        ! Usage: aviary hub --kubeconfig-out <FILE> --ephemeral
        !
        ! For more information, try '--help'.
        exit 2
    "#]]
    .assert_eq(&refused(&desk, "hub --ephemeral"));
    let hub = start(desk, "--ephemeral --kubeconfig-out hub/kubeconfig");
    expect![[r#"
        Hub listening on https://127.0.0.1:PORT
          data        in memory; discarded on exit
          kubeconfig  hub/kubeconfig
          kinds       13 custom resource definitions installed

        Try it:  kubectl --kubeconfig hub/kubeconfig get clustermanagementaddons
        Press Ctrl-C to stop.
    "#]]
    .assert_eq(&hub.masked(&hub.started));
    hub.given("create configmap one");
    let hub = start(hub.stop(), "--ephemeral --kubeconfig-out hub/kubeconfig");
    hub.check(
        "get configmaps",
        &expect![[r#"
        $ kubectl get configmaps
        ! No resources found in default namespace.
    "#]],
    );
    let desk = hub.stop();
    let mut names: Vec<String> = fs::read_dir(desk.path("hub"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, [".keep", "kubeconfig"]);
}
