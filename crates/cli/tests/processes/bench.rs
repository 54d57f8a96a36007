//! `aviary bench`: counts, which are the same on every machine, are judged; times and memory are not.

use serde_json::Value;

use crate::transcript::desk;

const CLUSTERS: u64 = 20;

#[test]
fn a_manager_is_measured_beside_another() {
    let desk = desk("processes-bench");
    // Another manager that keeps to the same counts is at hand: ours, by its command line.
    let peer = format!(
        "'{} manager --namespace aviary-bench --log error --kubeconfig {{kubeconfig}}'",
        env!("CARGO_BIN_EXE_aviary")
    );
    let output = desk.output(&format!("bench --clusters {CLUSTERS} --idle 1 -o json --peer-cmd {peer}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = report["runs"].as_array().unwrap();
    let managers: Vec<&str> = runs.iter().map(|run| run["manager"].as_str().unwrap()).collect();
    assert_eq!(managers, ["aviary", "peer"]);
    for run in runs {
        let count = |phase: &str, what: &str| run[phase][what].as_u64().unwrap();
        for phase in ["install", "upgrade", "staged", "idle", "restart"] {
            assert_eq!(count(phase, "configGets"), 0, "{run:#}");
            assert_eq!(count(phase, "conflicts"), 0, "{run:#}");
            assert_eq!(count(phase, "errors"), 0, "{run:#}");
        }
        // None could do with fewer: the gateway sees them all.
        assert_eq!(count("install", "clusterWrites"), 4 * CLUSTERS, "{run:#}");
        assert_eq!(count("upgrade", "clusterWrites"), 3 * CLUSTERS, "{run:#}");
        assert_eq!(count("idle", "writes") + count("restart", "writes"), 0, "{run:#}");
        assert!(run["bareSeconds"].as_f64().unwrap() > 0.0 && run["peakMemoryBytes"].as_u64().unwrap() > 0);
    }
    let lines = report["summaries"].as_array().unwrap();
    assert!(
        lines.iter().any(|line| line["what"] == "20 clusters: writes, install" && line["measured"] == 4.0)
    );
}

#[test]
fn a_manager_that_ends_is_named() {
    let desk = desk("processes-bench-ends");
    let output = desk.output("bench --clusters 3 --idle 1 --peer-cmd false");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("failed to measure peer, 3 clusters"), "{told}");
    assert!(told.contains("the manager has ended: it said nothing"), "{told}");
}
