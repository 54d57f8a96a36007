//! `aviary-bench`: checks the counts, which are the same on every machine, but not times and
//! memory.

use std::process::{Command, Output};

use serde_json::Value;

const CLUSTERS: u64 = 20;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aviary-bench"));
    command.args(["--aviary", env!("CARGO_BIN_EXE_aviary"), "--idle", "1"]).args(arguments).output().unwrap()
}

#[test]
fn a_manager_is_measured_beside_another() {
    // Another manager with the same counts: ours, as a command line.
    let peer = format!(
        "{} manager --namespace aviary-bench --log error --kubeconfig {{kubeconfig}}",
        env!("CARGO_BIN_EXE_aviary")
    );
    let output = bench(&["--clusters", &CLUSTERS.to_string(), "-o", "json", "--peer-cmd", &peer]);
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
        // Fewer are not possible: the gateway sees every request.
        assert_eq!(count("install", "clusterWrites"), 4 * CLUSTERS, "{run:#}");
        assert_eq!(count("upgrade", "clusterWrites"), 3 * CLUSTERS, "{run:#}");
        assert_eq!(count("idle", "writes") + count("restart", "writes"), 0, "{run:#}");
        assert!(run["bareSeconds"].as_f64().unwrap() > 0.0, "{run:#}");
        let memory = |what: &str| run[what].as_u64().unwrap();
        let (resident, anonymous) = (memory("peakMemoryBytes"), memory("peakAnonymousBytes"));
        assert!(anonymous > 0 && anonymous < resident, "{run:#}");
    }
    let lines = report["summaries"].as_array().unwrap();
    assert!(
        lines.iter().any(|line| line["what"] == "20 clusters: writes, install" && line["measured"] == 4.0)
    );
}

#[test]
fn a_manager_that_ends_is_named() {
    let output = bench(&["--clusters", "3", "--peer-cmd", "false"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("failed to measure peer, 3 clusters"), "{told}");
    assert!(told.contains("the manager has exited: no output"), "{told}");
}
