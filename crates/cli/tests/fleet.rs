//! `aviary fleet` on a hub in a separate process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use crate::transcript::{Desk, desk};
use aviary_testing::Process;
use expect_test::expect;
use regex::Regex;

const READY: &str = "Press Ctrl-C to stop.";

fn masked(text: &str) -> String {
    Regex::new(r"127\.0\.0\.1:\d+").unwrap().replace_all(text, "127.0.0.1:PORT").into_owned()
}

fn start(desk: &Desk, arguments: &str) -> Process {
    Process::start_until(desk.command(arguments), READY)
}

fn hub(desk: &Desk) -> Process {
    start(desk, "hub --data-dir hub --listen 127.0.0.1:0")
}

#[test]
fn clusters_are_registered_taken_over_and_removed() {
    let desk = desk("fleet-life");
    let hub = hub(&desk);
    let line = "fleet --clusters 20 --label stage=canary:20% --offline 20% --kubeconfig hub/kubeconfig";
    let fleet = start(&desk, line);
    expect![[r#"
        20 simulated clusters at https://127.0.0.1:PORT
          registered  20 new, 0 existing
          offline     4
          updates take 1s to 5s, 0% fail, 0% flap; seed 1

        List:    kubectl --kubeconfig hub/kubeconfig get managedclusters
        Remove:  aviary fleet --remove --kubeconfig hub/kubeconfig
        Press Ctrl-C to stop.
    "#]]
    .assert_eq(&masked(fleet.printed()));
    expect![[r#"
        Stopped. The agents saw 0 new or changed works and wrote 0 reports.
    "#]]
    .assert_eq(&fleet.stop("INT"));

    let again = start(&desk, "fleet --clusters 10 --prefix cluster --kubeconfig hub/kubeconfig --latency 0s");
    expect![[r#"
        10 simulated clusters at https://127.0.0.1:PORT
          registered  0 new, 10 existing
          others      10 clusters from an earlier run, without an agent
          updates take 0s to 0s, 0% fail, 0% flap; seed 1

        List:    kubectl --kubeconfig hub/kubeconfig get managedclusters
        Remove:  aviary fleet --remove --kubeconfig hub/kubeconfig
        Press Ctrl-C to stop.
    "#]]
    .assert_eq(&masked(again.printed()));
    again.stop("INT");

    let removed = |desk: &Desk| masked(&desk.run("fleet --remove --kubeconfig hub/kubeconfig"));
    expect![[r#"
        $ aviary fleet --remove --kubeconfig hub/kubeconfig
        Removed 20 simulated clusters at https://127.0.0.1:PORT.
    "#]]
    .assert_eq(&removed(&desk));
    expect![[r#"
        $ aviary fleet --remove --kubeconfig hub/kubeconfig
        There are no simulated clusters at https://127.0.0.1:PORT.
    "#]]
    .assert_eq(&removed(&desk));
    hub.stop("INT");
}

#[test]
fn wrong_usage_and_a_hub_that_is_not_there_are_told() {
    let desk = desk("fleet-usage");
    desk.check(
        "fleet",
        &expect![[r#"
        $ aviary fleet
        ! error: the following required arguments were not provided:
        !   --clusters <N>
        !
        ! Usage: aviary fleet --clusters <N>
        !
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
    desk.check("fleet --clusters 5 --label stage:20%", &expect![[r#"
        $ aviary fleet --clusters 5 --label stage:20%
        ! error: invalid value 'stage:20%' for '--label <KEY=VALUE[:SHARE]>': stage:20% is not a label: use for example stage=canary or stage=canary:20%
        !
        ! For more information, try '--help'.
        exit 2
    "#]]);
    desk.check(
        "fleet --clusters 5 --fail 200%",
        &expect![[r#"
        $ aviary fleet --clusters 5 --fail 200%
        ! error: invalid value '200%' for '--fail <SHARE>': 200% is not a share: use 0% to 100%, or 0 to 1
        !
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
    desk.check("fleet --clusters 5 --lie white:5%", &expect![[r#"
        $ aviary fleet --clusters 5 --lie white:5%
        ! error: invalid value 'white:5%' for '--lie <LIE[:SHARE]>': white is not a known false report: use old-generation, future-generation, only-available or silence
        !
        ! For more information, try '--help'.
        exit 2
    "#]]);
    desk.check(
        "fleet --remove --clusters 5",
        &expect![[r#"
        $ aviary fleet --remove --clusters 5
        ! error: the argument '--remove' cannot be used with '--clusters <N>'
        !
        ! Usage: aviary fleet --remove
        !
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
    desk.check(
        "fleet --clusters 5 --label env=a:60% --label env=b:60%",
        &expect![[r#"
        $ aviary fleet --clusters 5 --label env=a:60% --label env=b:60%
        ! aviary: the shares of label env add up to more than the whole fleet
        exit 1
    "#]],
    );
    desk.check("fleet --clusters 5 --prefix Upper", &expect![[r#"
        $ aviary fleet --clusters 5 --prefix Upper
        ! aviary: the cluster name Upper-1 may only have lower-case letters, digits and '-', and must start and end with a letter or digit
        exit 1
    "#]]);
    desk.check("fleet --clusters 5 --kubeconfig none", &expect![[r#"
        $ aviary fleet --clusters 5 --kubeconfig none
        ! aviary: failed to read the kubeconfig none: no such file or directory: give the hub's kubeconfig with --kubeconfig
        exit 1
    "#]]);
}
