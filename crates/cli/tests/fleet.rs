//! `aviary fleet` against a hub in a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::transcript::{Desk, desk};
use expect_test::expect;
use regex::Regex;

const READY: &str = "Stop it with Ctrl-C.";

/// A child process that does not outlive the test.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// What it printed until it was ready.
    started: String,
}

impl Running {
    fn start(desk: &Desk, arguments: &str) -> Self {
        let mut child = desk.command(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut started = String::new();
        while !started.trim_end().ends_with(READY) {
            assert_ne!(lines.read_line(&mut started).unwrap(), 0, "it ended by itself: {started}");
        }
        Self { child, lines, started: masked(&started) }
    }

    /// Asks it to stop. Gives what it said to that.
    fn stop(mut self) -> String {
        let pid = self.child.id().to_string();
        // Only a shell can be relied on to have `kill`.
        assert!(Command::new("sh").args(["-c", "kill -INT \"$0\"", &pid]).status().unwrap().success());
        let mut rest = String::new();
        while self.lines.read_line(&mut rest).unwrap() > 0 {}
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        rest
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn masked(text: &str) -> String {
    Regex::new(r"127\.0\.0\.1:\d+").unwrap().replace_all(text, "127.0.0.1:PORT").into_owned()
}

fn hub(desk: &Desk) -> Running {
    Running::start(desk, "hub --data-dir hub --listen 127.0.0.1:0")
}

#[test]
fn clusters_are_registered_taken_over_and_removed() {
    let desk = desk("fleet-life");
    let hub = hub(&desk);
    let line = "fleet --clusters 20 --label stage=canary:20% --offline 20% --kubeconfig hub/kubeconfig";
    let fleet = Running::start(&desk, line);
    expect![[r#"
        20 simulated clusters at https://127.0.0.1:PORT
          registered  20 new, 0 there already
          offline     4
          each takes 1s to 5s, 0% fail, 0% flap; seed 1

        Look:    kubectl --kubeconfig hub/kubeconfig get managedclusters
        Remove:  aviary fleet --remove --kubeconfig hub/kubeconfig
        Stop it with Ctrl-C.
    "#]]
    .assert_eq(&fleet.started);
    expect![[r#"
        Stopped. The agents saw 0 new or changed works and wrote 0 reports.
    "#]]
    .assert_eq(&fleet.stop());

    let again = Running::start(
        &desk,
        "fleet --clusters 10 --prefix cluster --kubeconfig hub/kubeconfig --latency 0s",
    );
    expect![[r#"
        10 simulated clusters at https://127.0.0.1:PORT
          registered  0 new, 10 there already
          beside them 10 clusters from an earlier run, without an agent
          each takes 0s to 0s, 0% fail, 0% flap; seed 1

        Look:    kubectl --kubeconfig hub/kubeconfig get managedclusters
        Remove:  aviary fleet --remove --kubeconfig hub/kubeconfig
        Stop it with Ctrl-C.
    "#]]
    .assert_eq(&again.started);
    again.stop();

    let removed = |desk: &Desk| masked(&desk.run("fleet --remove --kubeconfig hub/kubeconfig"));
    expect![[r#"
        $ aviary fleet --remove --kubeconfig hub/kubeconfig
        Removed 20 simulated clusters at https://127.0.0.1:PORT.
    "#]]
    .assert_eq(&removed(&desk));
    expect![[r#"
        $ aviary fleet --remove --kubeconfig hub/kubeconfig
        There is no simulated cluster at https://127.0.0.1:PORT.
    "#]]
    .assert_eq(&removed(&desk));
    hub.stop();
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
        ! error: invalid value 'stage:20%' for '--label <KEY=VALUE[:SHARE]>': stage:20% is not a label: give one as in stage=canary, or stage=canary:20%
        !
        ! For more information, try '--help'.
        exit 2
    "#]]);
    desk.check("fleet --clusters 5 --fail 200%", &expect![[r#"
        $ aviary fleet --clusters 5 --fail 200%
        ! error: invalid value '200%' for '--fail <SHARE>': 200% is not a share: give one from 0% to 100%, or from 0 to 1
        !
        ! For more information, try '--help'.
        exit 2
    "#]]);
    desk.check("fleet --clusters 5 --lie white:5%", &expect![[r#"
        $ aviary fleet --clusters 5 --lie white:5%
        ! error: invalid value 'white:5%' for '--lie <LIE[:SHARE]>': white is no lie that agents tell: give old-generation, future-generation, only-available or silence
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
        ! aviary: failed to read the kubeconfig none: no such file or directory: name the file of the hub with --kubeconfig
        exit 1
    "#]]);
}
