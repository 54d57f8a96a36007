//! The output of `aviary rehearse`.

use std::fs;
use std::path::Path;

use crate::transcript::desk;
use crate::transcript::worlds::{
    addon, decisions, hub_config, instance, names, placement, progression, rolling, stream, work,
};
use expect_test::expect;

const ADDON: &str = r"
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: helloworld
spec:
  installStrategy:
    type: Placements
    placements:
    - name: aws-placement
      namespace: default
      configs: [{ group: addon.open-cluster-management.io, resource: addonhubconfigs, name: hub-config }]
      rolloutStrategy:
        type: RollingUpdateWithCanary
        rollingUpdateWithCanary:
          placement: { name: canary-placement, namespace: default }
          maxConcurrentlyUpdating: 25%
    - name: canary-placement
      namespace: default
      configs: [{ group: addon.open-cluster-management.io, resource: addonhubconfigs, name: hub-config }]
      rolloutStrategy:
        type: RollingUpdate
        rollingUpdate: { maxConcurrentlyUpdating: 25% }
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnHubConfig
metadata:
  name: hub-config
spec:
  desiredVersion: v0.11.0
";

#[test]
fn a_canary_rollout_that_goes_well() {
    desk("rehearse-well")
        .file("addon.yaml", ADDON)
        .check("rehearse -f addon.yaml --clusters 500", &expect![[r#"
            $ aviary rehearse -f addon.yaml --clusters 500
            helloworld on 500 clusters
              updates take 10s to 60s, 0% fail, 0% are unreachable, 0% flap; seed 1

              time   default/aws-placement             default/canary-placement
              0s     ........................ 0/450    >>>>>>.................. 0/50
              28s    ........................ 0/450    #>>>>>>>................ 4/50
              56s    ........................ 0/450    ########>>>>>>.......... 18/50
              1m23s  ........................ 0/450    ############>>>>>>...... 25/50
              1m53s  ........................ 0/450    #################>>>>>>. 36/50
              2m22s  ........................ 0/450    ####################>>>> 43/50
              2m46s  >>>>>>.................. 0/450    ######################## 50/50
              3m18s  ###>>>>>>............... 65/450   ######################## 50/50
              3m47s  ########>>>>>>.......... 165/450  ######################## 50/50
              4m15s  ############>>>>>>...... 238/450  ######################## 50/50
              4m44s  ##################>>>>>> 338/450  ######################## 50/50
              5m12s  ######################>> 416/450  ######################## 50/50
              5m41s  ######################## 450/450  ######################## 50/50
              # settled  > in flight  x failed  . waiting

              placement                 clusters  budget  peak  settled  failed  waiting  result
              default/aws-placement          450     113   113      450       0        0  upgrade completed with no errors.
              default/canary-placement        50      13    13       50       0        0  upgrade completed with no errors.

            All clusters settled after 5m41s. 245 passes, 1666 writes.

            Nothing was written. Next: aviary rehearse -f addon.yaml … --fail 5% # to see where a bad revision stops
        "#]]);
}

#[test]
fn a_bad_revision_stops_in_the_canary() {
    desk("rehearse-bad")
        .file("addon.yaml", ADDON)
        .check("rehearse -f addon.yaml --clusters 500 --fail 100% --failure refuses", &expect![[r#"
            $ aviary rehearse -f addon.yaml --clusters 500 --fail 100% --failure refuses
            helloworld on 500 clusters
              updates take 10s to 60s, 100% fail, 0% are unreachable, 0% flap; seed 1

              time  default/aws-placement           default/canary-placement
              0s    ........................ 0/450  >>>>>>.................. 0/50
              14s   ........................ 0/450  >>>>>x.................. 0/50 2 failed
              25s   ........................ 0/450  >>>>xx.................. 0/50 3 failed
              36s   ........................ 0/450  >>>xxx.................. 0/50 6 failed
              41s   ........................ 0/450  >>xxxx.................. 0/50 8 failed
              46s   ........................ 0/450  >xxxxx.................. 0/50 9 failed
              51s   ........................ 0/450  xxxxxx.................. 0/50 12 failed
              56s   ........................ 0/450  xxxxxx.................. 0/50 13 failed
              # settled  > in flight  x failed  . waiting

              placement                 clusters  budget  peak  settled  failed  waiting  result
              default/aws-placement          450     113     0        0       0      450  waitingForCanary... canary default/canary-placement: 50 of 50 not passed, first canary-placement-01
              default/canary-placement        50      13    13        0      13       37  upgrade failed: stopped, 13 failed, 13 of 13 slots taken: canary-placement-01, canary-placement-02, canary-placement-03, canary-placement-04, canary-placement-05, canary-placement-06, canary-placement-07, canary-placement-08, canary-placement-09, canary-placement-10 and 3 more

            Stops after 56s; 500 clusters not settled. 23 passes, 525 writes.
                 450  canary default/canary-placement: 50 of 50 not passed, first canary-placement-01  aws-placement-001, aws-placement-002, aws-placement-003 and 447 more
                  37  budget full: 13 of 13 slots taken: 13 failed  canary-placement-14, canary-placement-15, canary-placement-16 and 34 more
                  13  failed: work reports Applied=False: rehearsed failure  canary-placement-01, canary-placement-02, canary-placement-03 and 10 more

            Nothing was written. Next: aviary plan -f addon.yaml # to see what would happen first
            exit 1
        "#]]);
}

#[test]
fn many_fleets_tell_how_long_it_takes() {
    desk("rehearse-many").file("addon.yaml", ADDON).check(
        "rehearse -f addon.yaml --clusters 40 --runs 5 --fail 1% --failure refuses --offline 2% --flap 5% --slow 1s..5m",
        &expect![[r#"
            $ aviary rehearse -f addon.yaml --clusters 40 --runs 5 --fail 1% --failure refuses --offline 2% --flap 5% --slow 1s..5m
            helloworld on 40 clusters
              updates take 1s to 300s, 1% fail, 2% are unreachable, 5% flap; seed 1

              time    default/aws-placement           default/canary-placement
              0s      ........................ 0/36   >>>>>>.................. 0/4
              3m32s   ........................ 0/36   ######>>>>>>............ 1/4
              4m24s   ........................ 0/36   ############>>>>>>...... 2/4
              7m33s   ........................ 0/36   ##################>>>>>> 3/4
              10m56s  ##>>>>>>................ 3/36   ######################## 4/4
              12m33s  ####>>>>>>.............. 7/36   ######################## 4/4
              14m23s  #########>>>>>>......... 14/36  ######################## 4/4
              15m41s  ############>>>>>>...... 18/36  ######################## 4/4
              18m7s   ################>>>>>>.. 24/36  ######################## 4/4
              20m     ######################>> 33/36  ######################## 4/4
              21m52s  ######################## 36/36  ######################## 4/4
              # settled  > in flight  x failed  . waiting

              placement                 clusters  budget  peak  settled  failed  waiting  result
              default/aws-placement           36       9     9       36       0        0  upgrade completed with no errors.
              default/canary-placement         4       1     1        4       0        0  upgrade completed with no errors.

            All clusters settled after 21m52s. 84 passes, 162 writes.
            Failures and outages on 2 clusters cannot be seen: nothing of this add-on is
            probed there, so agents report it as applied and available whatever its pods do.
            Only failures of the kinds refuses and silent are seen.
            Of 5 fleets, 4 settled. Half were done after 21m52s, 90% after 23m5s, all after 23m5s.

            Nothing was written. Next: aviary plan -f addon.yaml # to see what would happen first
            exit 1
        "#]],
    );
}

#[test]
fn every_kind_of_failure_stops_in_the_canary() {
    let desk = desk("rehearse-kinds");
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/canary");
    let mut told = String::new();
    for kind in ["never-ready", "exits", "crashes", "flaps", "refuses", "silent"] {
        let line = format!("rehearse -f {examples} --clusters 40 --fail 100% --failure {kind} -o json");
        let output = desk.output(&line);
        assert_eq!(output.status.code(), Some(1), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let run = &report["addOns"][0]["first"];
        let starts = run["starts"].as_array().expect("starts");
        let is_canary = |start: &serde_json::Value| {
            start["cluster"].as_str().is_some_and(|name| name.starts_with("canary-placement"))
        };
        assert!(!starts.is_empty() && starts.iter().all(is_canary), "{kind}: {starts:?}");
        let reasons = run["unsettled"].as_array().expect("reasons").iter();
        for reason in reasons.filter(|reason| reason["reason"] != "BudgetFull") {
            told += &format!("{kind}: {} {} {}\n", reason["count"], reason["reason"], reason["message"]);
        }
    }
    expect![[r#"
        never-ready: 36 "WaitingForCanary" "canary default/canary-placement: 4 of 4 not passed, first canary-placement-1"
        never-ready: 1 "Failed" "failed: Deployment open-cluster-management-agent-addon/helloworld-agent: 0 of 1 replicas updated, 1 available; its progress deadline has passed"
        exits: 36 "WaitingForCanary" "canary default/canary-placement: 4 of 4 not passed, first canary-placement-1"
        exits: 1 "Failed" "failed: Deployment open-cluster-management-agent-addon/helloworld-agent: 0 of 1 updated replicas available; its progress deadline has passed"
        crashes: 36 "WaitingForCanary" "canary default/canary-placement: 4 of 4 not passed, first canary-placement-1"
        crashes: 1 "Unavailable" "applied but not available: Deployment open-cluster-management-agent-addon/helloworld-agent: 0 of 1 updated replicas available"
        flaps: 36 "WaitingForCanary" "canary default/canary-placement: 4 of 4 not passed, first canary-placement-1"
        flaps: 1 "Unavailable" "applied but not available: Deployment open-cluster-management-agent-addon/helloworld-agent: 0 of 1 updated replicas available"
        refuses: 36 "WaitingForCanary" "canary default/canary-placement: 4 of 4 not passed, first canary-placement-1"
        refuses: 1 "Failed" "failed: work reports Applied=False: rehearsed failure"
        silent: 36 "WaitingForCanary" "canary default/canary-placement: 4 of 4 not passed, first canary-placement-1"
        silent: 1 "Updating" "updating"
    "#]].assert_eq(&told);
}

/// An add-on without templates has its own manager, and nothing that Aviary probes.
#[test]
fn what_is_not_probed_passes_whatever_its_pods_do_and_the_report_says_so() {
    let desk = desk("rehearse-unseen").file("addon.yaml", ADDON);
    for kind in ["never-ready", "exits", "crashes", "flaps"] {
        let line = format!("rehearse -f addon.yaml --clusters 40 --fail 100% --failure {kind}");
        let run = desk.json(&format!("{line} -o json"), 0)["addOns"][0]["first"].clone();
        assert_eq!((&run["settled"], &run["unseen"]), (&true.into(), &40.into()), "{kind}");
        assert_eq!(run["starts"].as_array().map(Vec::len), Some(40), "{kind}");
        let why = "Failures and outages on 40 clusters cannot be seen: nothing of this add-on is probed";
        let told = desk.run(&format!("{line} --report page.html")).replace('\n', " ");
        assert!(told.contains(why), "{kind}: {told}");
        assert!(fs::read_to_string(desk.path("page.html")).expect("a page").contains(why), "{kind}");
    }
    let refused = desk.json("rehearse -f addon.yaml --clusters 40 --fail 100% --failure refuses -o json", 1);
    assert_eq!(refused["addOns"][0]["first"]["unseen"], 0);
    let probed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/canary");
    let seen = desk.json(&format!("rehearse -f {probed} --clusters 40 --fail 100% -o json"), 1);
    assert_eq!(seen["addOns"][0]["first"]["unseen"], 0);
}

/// A cycle takes at most two minutes here: one up, one down.
#[test]
fn a_version_that_flaps_passes_no_soak_that_is_longer_than_its_cycle() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/canary");
    let mut desk = desk("rehearse-flaps");
    for entry in fs::read_dir(examples).expect("the examples") {
        let path = entry.expect("an example").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("an example");
        let soak = "        minSuccessTime: 5m\n";
        assert_eq!(text.contains(soak), name == "addon.yaml");
        desk = desk
            .file(&format!("without/{name}"), text.replace(soak, ""))
            .file(&format!("with/{name}"), text.replace(soak, "        minSuccessTime: 2m\n"));
    }
    let starts = |soak: &str, seed: u32| {
        let line =
            format!("rehearse -f {soak} --clusters 40 --fail 100% --failure flaps --seed {seed} -o json");
        let report = desk.json(&line, 1);
        let starts = report["addOns"][0]["first"]["starts"].as_array().expect("starts").clone();
        let is_canary = |start: &&serde_json::Value| start["placement"] == "default/canary-placement";
        (starts.iter().filter(is_canary).count(), starts.len())
    };
    for seed in 1..=5 {
        assert_eq!(starts("with", seed), (1, 1), "seed {seed}: the canary's budget is one cluster");
    }
    let (canaries, all) = starts("without", 1);
    assert!(
        all > canaries && canaries > 1,
        "{canaries} of {all}: without a soak, being ready once is enough"
    );
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let desk = desk("rehearse-seed").file("addon.yaml", ADDON);
    let run = |seed: u32| {
        let output =
            desk.output(&format!("rehearse -f addon.yaml --clusters 300 --fail 3% --seed {seed} -o json"));
        String::from_utf8(output.stdout).expect("text")
    };
    let first = run(7);
    assert_eq!(first, run(7));
    assert_ne!(first, run(8));
    let report: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(report["version"], 1);
    assert_eq!(report["profile"]["seed"], 7);
    let first_run = &report["addOns"][0]["first"];
    let starts = first_run["starts"].as_array().expect("starts");
    assert_eq!(starts[0]["cluster"], "canary-placement-01");
    for placement in first_run["placements"].as_array().expect("placements") {
        let (peak, budget) = (placement["peakExposed"].as_u64(), placement["budget"].as_u64());
        assert!(peak <= budget, "{placement}");
    }
}

#[test]
fn a_change_is_rehearsed_on_the_fleet_in_the_files() {
    let (before, after) = (hub_config("hub-config", "v0.10.0"), hub_config("hub-config", "v0.11.0"));
    let clusters = names("c", 8);
    let mut addon = addon(&[placement("prod", "hub-config", &rolling("25%"))]);
    progression(&mut addon, "prod", [&before; 3]);
    let mut fleet = vec![addon, before.clone()];
    fleet.extend(decisions("prod", &clusters));
    for cluster in &clusters {
        fleet.extend([instance(cluster, &before, &before), work(cluster, &before, None)]);
    }
    desk("rehearse-change")
        .file("fleet.yaml", stream(&fleet))
        .file("change.yaml", stream(&[after]))
        .check("rehearse -f fleet.yaml --change change.yaml", &expect![[r#"
            $ aviary rehearse -f fleet.yaml --change change.yaml
            helloworld on 8 clusters
              updates take 10s to 60s, 0% fail, 0% are unreachable, 0% flap; seed 1

              time   default/prod
              0s     >>>>>>.................. 0/8
              27s    ###>>>>>>............... 1/8
              51s    #########>>>>>>......... 3/8
              1m10s  ###############>>>>>>... 5/8
              1m34s  ##################>>>>>> 6/8
              2m4s   #####################>>> 7/8
              2m22s  ######################## 8/8
              # settled  > in flight  x failed  . waiting

              placement     clusters  budget  peak  settled  failed  waiting  result
              default/prod         8       2     2        8       0        0  upgrade completed with no errors.

            All clusters settled after 2m22s. 18 passes, 32 writes.

            Nothing was written. Next: aviary rehearse -f fleet.yaml --change change.yaml … --fail 5% # to see where a bad revision stops
        "#]]);
}

#[test]
fn wrong_usage_says_what_is_right() {
    let desk =
        desk("rehearse-usage").file("addon.yaml", ADDON).file("bad.yaml", ADDON.replace("25%", "200%"));
    let all = [
        "rehearse -f addon.yaml",
        "rehearse -f addon.yaml --clusters 0",
        "rehearse -f addon.yaml --clusters 10 --fail 120%",
        "rehearse -f addon.yaml --clusters 10 --slow 5m..1m",
        "rehearse -f missing.yaml --clusters 10",
        "rehearse -f bad.yaml --clusters 10",
    ];
    let told: Vec<String> = all.iter().map(|arguments| desk.run(arguments)).collect();
    expect![[r#"
        $ aviary rehearse -f addon.yaml
        ! aviary: add-on helloworld selects no cluster in the files: give --clusters N to rehearse with some
        exit 1

        $ aviary rehearse -f addon.yaml --clusters 0
        ! error: invalid value '0' for '--clusters <N>': 0 is not in 1..=100000
        !
        ! For more information, try '--help'.
        exit 2

        $ aviary rehearse -f addon.yaml --clusters 10 --fail 120%
        ! error: invalid value '120%' for '--fail <SHARE>': 120% is not a share: use 0% to 100%, or 0 to 1
        !
        ! For more information, try '--help'.
        exit 2

        $ aviary rehearse -f addon.yaml --clusters 10 --slow 5m..1m
        ! error: invalid value '5m..1m' for '--slow <FROM..TO>': 5m..1m is reversed: give the shorter time first
        !
        ! For more information, try '--help'.
        exit 2

        $ aviary rehearse -f missing.yaml --clusters 10
        ! missing.yaml: there is no such file
        exit 1

        $ aviary rehearse -f bad.yaml --clusters 10
        ! bad.yaml: document 1 (ClusterManagementAddOn helloworld): spec.installStrategy.placements[0].rolloutStrategy.rollingUpdateWithCanary.maxConcurrentlyUpdating: Invalid value: "200%": should match '^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})$'
        ! bad.yaml: document 1 (ClusterManagementAddOn helloworld): spec.installStrategy.placements[1].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating: Invalid value: "200%": should match '^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})$'
        ! bad.yaml: document 1 (ClusterManagementAddOn helloworld): spec.installStrategy.placements[0].rolloutStrategy.rollingUpdateWithCanary.maxConcurrentlyUpdating: Invalid value: "string": must be a whole number of at least 1, or a whole percentage from 1% to 100%
        ! bad.yaml: document 1 (ClusterManagementAddOn helloworld): spec.installStrategy.placements[1].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating: Invalid value: "string": must be a whole number of at least 1, or a whole percentage from 1% to 100%
        exit 1
    "#]].assert_eq(&told.join("\n"));
}

/// `…` stands for what the page leaves out.
#[test]
fn the_readme_shows_what_a_rehearsal_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("README.md")).unwrap();
    let canary = root.join("examples/canary").display().to_string();
    let desk = desk("rehearse-readme");
    let mut shown = 0;
    for block in page.split("$ cargo run --release -- rehearse ").skip(1) {
        let (arguments, rest) = block.split_once('\n').unwrap();
        let output = desk.run(&format!("rehearse {}", arguments.replace("examples/canary", &canary)));
        let printed: Vec<&str> = output.lines().map(str::trim).collect();
        for line in rest.lines().take_while(|line| *line != "```").filter(|line| *line != "…") {
            let is_printed = match line.trim().strip_suffix('…') {
                Some(start) => printed.iter().any(|all| all.starts_with(start.trim_end())),
                None => line.is_empty() || printed.contains(&line.trim()),
            };
            assert!(is_printed, "README.md says {line:?}; aviary rehearse {arguments} prints\n{output}");
            shown += 1;
        }
    }
    assert!(shown > 5, "README.md shows {shown} lines");
}

#[test]
fn the_counts_of_a_placement_add_up_to_its_clusters() {
    let desk = desk("rehearse-adds-up").file("addon.yaml", ADDON);
    let command = "rehearse -f addon.yaml --clusters 100 --fail 100% --failure silent";
    let told = desk.json(&format!("{command} -o json"), 1);
    let placements = told["addOns"][0]["first"]["placements"].as_array().unwrap();
    for one in placements {
        let of = |count: &str| one[count].as_u64().unwrap();
        let counts = ["settled", "inFlight", "failed", "waiting", "leaving"].map(of);
        assert_eq!(counts.iter().sum::<u64>(), of("governed"), "{one:#}");
    }
    assert!(placements.iter().any(|one| one["inFlight"].as_u64() > Some(0)), "{told:#}");
    let text = desk.run(command);
    let mut lines = text.lines().skip_while(|line| !line.contains("placement  "));
    let head: Vec<&str> =
        lines.next().unwrap().split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    let at = |column: &str| head.iter().position(|word| *word == column);
    for line in lines.take(placements.len()) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        // A column of zeros is left out.
        let of = |column: &str| at(column).map_or(0, |at| cells[at].parse::<usize>().unwrap());
        let sum: usize = ["settled", "in flight", "failed", "waiting"].map(of).iter().sum();
        assert_eq!(sum, of("clusters"), "{text}");
    }
}
