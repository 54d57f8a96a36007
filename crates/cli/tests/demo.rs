//! `aviary demo`: runs all steps on a real hub, with its output in a pipe; and its errors.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::TcpListener;
use std::process::Stdio;

use crate::transcript::{Desk, desk, told};
use aviary_testing::Process;
use expect_test::expect;
use regex::Regex;
use serde_json::Value;

/// The transcript without varying parts: times, ports, numbers of processes, counts of writes, and
/// progress lines.
fn masked(text: &str, desk: &Desk) -> String {
    let text = text.replace(&format!("{}/", desk.path("").display()).replace("//", "/"), "");
    let mut text = text;
    for (pattern, with) in [
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"aviary-demo-\w+", "aviary-demo-NAME"),
        (r"  +\d+\.\d+s  aws-placement \d+/\d+.*\n", ""),
        (r"  +\d+\.\d+s  +(\d+)  fleet (\d+) of", "  SECONDS  WRITES  fleet $2 of"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

fn demo(desk: &Desk, arguments: &str) -> std::process::Output {
    let mut command = desk.command(arguments);
    command.env("TMPDIR", desk.path("")).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn the_story_is_told_to_its_end() {
    let desk = desk("demo-story");
    let line = "demo --once --clusters 40 --latency 20ms..60ms";
    let output = demo(&desk, line);
    let text = told(&format!("aviary {line}"), &output);
    let told = masked(&text, &desk);
    let peaks = Regex::new(r"fleet \d+ of (\w+), canary \d+ of (\w+)").unwrap();
    let told = peaks.replace_all(&told, "fleet PEAK of $1, canary PEAK of $2").into_owned();
    let columns = Regex::new("  +").unwrap();
    expect![[r#"
        $ aviary demo --once --clusters 40 --latency 20ms..60ms
        A hub, a manager and 40 simulated clusters in this process
          hub  https://127.0.0.1:PORT
          data  in memory; discarded on exit
          kubeconfig  aviary-demo-NAME/kubeconfig
          clusters  32 in aws-placement, 8 in canary-placement

        From another terminal:
          export KUBECONFIG=aviary-demo-NAME/kubeconfig
          kubectl get clustermanagementaddon helloworld -o yaml
          kubectl get managedclusteraddons -A
          aviary status helloworld -w
          aviary explain helloworld

        1. Fresh install: v0.10.0 on all 40 clusters at once; an install is not throttled.
        2. Rolling upgrade: v0.10.1, at most 25% of each placement at once, that is 8 and 2 clusters.
        3. Canary upgrade: v0.11.0 on the 8 canary clusters first; the other 32 wait until all of them are healthy.
        4. Bad version: the pods of v0.12.0 exit at start, again and again; the canary catches it, and the other 32 clusters never get it.
        5. Rollback: back to v0.11.0; only the clusters that had been upgraded are changed.

          step  version  clusters touched  took  writes  peak in flight of budget  outcome
          fresh install  v0.10.0  40  SECONDS  WRITES  fleet PEAK of all, canary PEAK of all  installed everywhere
          rolling upgrade  v0.10.1  40  SECONDS  WRITES  fleet PEAK of 8, canary PEAK of 2  upgraded everywhere
          canary upgrade  v0.11.0  40  SECONDS  WRITES  fleet PEAK of 8, canary PEAK of 2  passed the canary, then upgraded everywhere
          bad version  v0.12.0  2  SECONDS  WRITES  fleet PEAK of 8, canary PEAK of 2  caught: 2 failed, 0 outside the canary
          rollback  v0.11.0  2  SECONDS  WRITES  fleet PEAK of 8, canary PEAK of 2  all on v0.11.0 again

        Every step went as expected.
        Next: aviary demo # to try things yourself, or aviary lint -f FILE # to check your own files
    "#]].assert_eq(&columns.replace_all(&told, "  "));
    assert!(std::fs::read_dir(desk.path("")).unwrap().next().is_none(), "nothing is left behind");
}

/// Progress lines come once a second, so the agents are slow.
#[test]
fn it_reports_nothing_failed_before_the_bad_version() {
    let desk = desk("demo-lines");
    let output = demo(&desk, "demo --once --clusters 10 --latency 400ms..900ms");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{text}");
    let (before, after) = text.split_once("4. Bad version").unwrap();
    assert!(before.matches(" in flight").count() > 2, "{text}");
    let wrong = ["failed", "Note"];
    assert!(wrong.iter().all(|word| !before.contains(word)), "{text}");
    let (bad, back) = after.split_once("5. Rollback").unwrap();
    assert!(bad.contains("canary-placement 0/2 (1 failed)"), "{text}");
    assert!(back.contains("caught: 1 failed, 0 outside the canary"), "{text}");
}

#[test]
fn the_summary_as_data_has_a_stable_structure() {
    let desk = desk("demo-data");
    let output = demo(&desk, "demo --once --clusters 10 --latency 1ms..5ms -o json");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["version"], &summary["clusters"], &summary["asTold"]),
        (&1.into(), &10.into(), &true.into())
    );
    let steps = summary["steps"].as_array().unwrap();
    let of = |key: &str| steps.iter().map(|step| step[key].clone()).collect::<Vec<Value>>();
    assert_eq!(of("step"), ["fresh install", "rolling upgrade", "canary upgrade", "bad version", "rollback"]);
    assert_eq!(of("version"), ["v0.10.0", "v0.10.1", "v0.11.0", "v0.12.0", "v0.11.0"]);
    assert_eq!(of("clustersTouched"), [10, 10, 10, 1, 1]);
    for step in steps {
        for (placement, budget) in [("fleet", 2), ("canary", 1)] {
            let exposure = &step[placement];
            if step["step"] == "fresh install" {
                assert!(exposure["budget"].is_null(), "{step}");
            } else {
                assert_eq!(exposure["budget"], budget, "{step}");
                assert!(exposure["peakInFlight"].as_u64().unwrap() <= budget, "{step}");
            }
        }
        assert!(step["writes"].as_u64().unwrap() > 0 && step["asTold"] == true, "{step}");
    }
}

#[test]
fn it_goes_on_until_it_is_stopped_and_others_can_use_its_hub() {
    let desk = desk("demo-on");
    let command = desk.command("demo --clusters 5 --latency 1ms..5ms --data-dir data");
    let running = Process::start_until(command, "Press Ctrl-C to stop.");
    let status = desk.output("status helloworld --kubeconfig data/kubeconfig");
    let seen = String::from_utf8_lossy(&status.stdout);
    assert_eq!(status.status.code(), Some(0), "{seen}");
    assert!(seen.contains("5 of 5 clusters settled") && seen.contains("v0.11.0"), "{seen}");
    // Item 9 of what operators see: its manager is running, and no note says otherwise.
    for command in ["status", "status helloworld", "explain helloworld", "explain helloworld canary-1"] {
        let shown = desk.output(&format!("{command} --kubeconfig data/kubeconfig"));
        let shown = String::from_utf8_lossy(&shown.stdout);
        assert!(!shown.contains("Note:"), "{shown}");
    }
    assert_eq!(running.stop("INT"), "Demo stopped.\n");

    let told = masked(
        &told("aviary demo --once --data-dir data", &demo(&desk, "demo --once --data-dir data")),
        &desk,
    );
    expect![[r#"
        $ aviary demo --once --data-dir data
        ! aviary: the demo has already run in data: give another directory, or omit --once to look at its data
        exit 1
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let desk = desk("demo-port");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("demo --once --listen {}", taken.local_addr().unwrap());
    let told = masked(&told(&format!("aviary {line}"), &demo(&desk, &line)), &desk);
    expect![[r#"
        $ aviary demo --once --listen 127.0.0.1:PORT
        ! aviary: failed to listen on 127.0.0.1:PORT: the port is in use: choose another with --listen, or omit it to use a free port
        exit 1
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_directory_that_cannot_be_written_to_is_named() {
    // The user may be able to write everywhere, but nobody can create a directory in a file.
    let desk = desk("demo-directory").file("file", "");
    let line = "demo --once --data-dir file/data";
    let told_data = masked(&told(&format!("aviary {line}"), &demo(&desk, line)), &desk);
    expect![[r#"
        $ aviary demo --once --data-dir file/data
        ! aviary: failed to open the hub: failed to create the data directory file/data: Not a directory (os error 20)
        exit 1
    "#]].assert_eq(&told_data);
    let mut command = desk.command("demo --once");
    command.env("TMPDIR", desk.path("file")).stdin(Stdio::null());
    let told_scratch = masked(&told("aviary demo --once", &command.output().unwrap()), &desk);
    expect![[r#"
        $ aviary demo --once
        ! aviary: failed to create a directory in file: give a writable one with --data-dir: Not a directory (os error 20) at path "file/aviary-demo-NAME"
        exit 1
    "#]].assert_eq(&told_scratch);
}

#[test]
fn wrong_usage_is_told_apart() {
    let desk = desk("demo-usage");
    desk.check(
        "demo --clusters 4",
        &expect![[r#"
        $ aviary demo --clusters 4
        ! error: invalid value '4' for '--clusters <N>': 4 is not in 5..=20000
        !
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
    desk.check(
        "demo --listen 0.0.0.0:0",
        &expect![[r#"
            $ aviary demo --listen 0.0.0.0:0
            ! aviary: other machines can reach 0.0.0.0:0: a demo listens only on a loopback address
            exit 1
        "#]],
    );
    desk.check("demo --latency 2s..1s", &expect![[r#"
        $ aviary demo --latency 2s..1s
        ! error: invalid value '2s..1s' for '--latency <FROM..TO>': 2s..1s is reversed: give the shorter time first
        !
        ! For more information, try '--help'.
        exit 2
    "#]]);
}
