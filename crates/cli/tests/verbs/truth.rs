//! What an operator sees is true: recorded facts, a lost hub, a change that nobody has taken up
//! yet.

use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use regex::Regex;
use serde_json::{Value, json};

use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use aviary_testing::objects;

use crate::transcript::worlds::stream;
use crate::world::{Line, Running, World, addon, hub_config};

fn of(value: &Value, keys: [&str; 5]) -> [u64; 5] {
    keys.map(|key| value[key].as_u64().unwrap())
}

const STATES: [&str; 5] = ["settled", "inFlight", "failed", "waiting", "leaving"];

/// Every count of an add-on is the sum of its placements', and adds up to its clusters.
fn assert_adds_up(addon: &Value) {
    let whole = of(addon, STATES);
    assert_eq!(whole.iter().sum::<u64>(), addon["clusters"].as_u64().unwrap(), "{addon:#}");
    let mut sum = [0; 5];
    for placement in addon["placements"].as_array().unwrap() {
        let counts = of(placement, STATES);
        assert_eq!(counts.iter().sum::<u64>(), placement["governed"].as_u64().unwrap(), "{placement:#}");
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    assert_eq!(sum, whole, "{addon:#}");
}

/// Item 2 of what operators see: without a manager nobody is told anything.
#[test]
fn a_planned_start_is_not_shown_as_a_fact() {
    let world = World::installed("truth-planned");
    world.dismiss_manager();
    let mut all_at_once = addon("two");
    for placement in all_at_once["spec"]["installStrategy"]["placements"].as_array_mut().unwrap() {
        placement["rolloutStrategy"] = json!({"type": "UpdateAll"});
    }
    world.give(all_at_once);
    let status = world.json("status helloworld -o json", 3);
    let addon = &status["addOns"][0];
    assert_eq!((&addon["inFlight"], &addon["waiting"]), (&json!(0), &json!(16)), "{addon:#}");
    assert_eq!(addon["observed"], false, "{addon:#}");
    assert_adds_up(addon);
    for cluster in addon["unsettled"].as_array().unwrap() {
        assert_eq!(
            (&cluster["reason"], &cluster["told"]),
            (&json!("NotStarted"), &json!("v1.0.0")),
            "{cluster}"
        );
    }
    // The plan still says what a manager would do.
    let plan = world.json("plan helloworld -o json", 0);
    let starts = plan["addOns"][0]["starts"].as_array().unwrap().iter();
    assert_eq!(starts.filter_map(|group| group["count"].as_u64()).sum::<u64>(), 16, "{plan:#}");
}

/// Item 6: one definition per word, in every state of a rollout.
#[test]
fn counts_add_up_while_clusters_fail_and_wait() {
    let world = World::refused("truth-counts");
    let status = world.json("status helloworld -o json", 4);
    assert_adds_up(&status["addOns"][0]);
    let canary = &status["addOns"][0]["placements"][1];
    assert_eq!(of(canary, STATES), [0, 0, 2, 2, 0], "{canary:#}");
    assert_eq!((&canary["slotsUsed"], &canary["budget"]), (&json!(2), &json!(2)), "{canary:#}");
    let plan = world.json("plan helloworld -o json", 0);
    assert_eq!(of(&plan["addOns"][0]["placements"][1], STATES), [0, 0, 2, 2, 0]);
    assert_eq!(
        (&plan["addOns"][0]["inFlight"], &plan["addOns"][0]["failed"][0]["count"]),
        (&json!([]), &json!(2))
    );
    let planned = world.run("plan helloworld");
    assert!(planned.contains("Add-on helloworld, 16 clusters: 2 failed, 14 waiting"), "{planned}");
    let told = world.get("ClusterManagementAddOn", "helloworld");
    let rollout = &told["status"]["rollout"];
    assert_eq!(of(rollout, STATES), of(&status["addOns"][0], STATES), "{rollout:#}");
    assert_eq!((&rollout["progress"], &rollout["version"]), (&json!("0/16"), &json!("v3.0.0")));
}

/// Item 3: a change of an instance counts once the manager has processed it.
#[test]
fn a_watch_does_not_end_before_a_change_of_an_instance_has_been_taken_up() {
    let world = World::installed("truth-taken-up");
    let version = || {
        let work = world.get("ManifestWork", "fleet-03/addon-helloworld-deploy-0");
        work["spec"]["workload"]["manifests"][0]["data"]["version"].clone()
    };
    let change = |name: &str| {
        let config =
            json!({"group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": name});
        let api: Api<ManagedClusterAddOn> = Api::namespaced(world.client.clone(), "fleet-03");
        let patch = Patch::Merge(json!({"spec": {"configs": [config]}}));
        world.block_on(api.patch("helloworld", &PatchParams::default(), &patch)).unwrap();
    };
    change("two");
    let output = world.output("status helloworld -w --timeout 2m");
    assert_eq!((output.status.code(), version()), (Some(0), json!("v2.0.0")));

    world.dismiss_manager();
    change("three");
    let output = world.output("status helloworld --timeout 1s");
    assert_eq!((output.status.code(), version()), (Some(3), json!("v2.0.0")), "nobody has taken it up");
}

#[test]
fn a_watch_ends_with_what_was_asked_for() {
    let world = World::installed("truth-for");
    world.give(addon("two"));
    let passed = world.json("status helloworld --for canary-passed --timeout 2m -o json", 0);
    let fleet = &passed["addOns"][0]["placements"][0];
    assert_eq!((&fleet["desired"], &fleet["target"]), (&json!("v2.0.0"), &json!("v2.0.0")), "{fleet:#}");
    assert_eq!(world.output("status helloworld --for settled --timeout 2m").status.code(), Some(0));
    // It is done, so it cannot halt any more.
    assert_eq!(world.output("status helloworld --for halted --timeout 2m").status.code(), Some(4));
    world.mood(|mood| mood.refuse.extend(["v3.0.0".to_owned()]));
    world.give(addon("three"));
    assert_eq!(world.output("status helloworld --for halted --timeout 2m").status.code(), Some(0));
    assert_eq!(world.output("status helloworld --for canary-passed --timeout 2m").status.code(), Some(4));
}

/// Deleted or replaced by force: what somebody waited for has not happened.
#[test]
fn a_watch_fails_if_its_add_on_is_deleted() {
    let (world, _line) = World::installed("truth-deleted").with_line();
    world.dismiss_manager();
    world.give(addon("two"));
    let mut watches =
        ["status helloworld -w", "status helloworld --for canary-passed", "status helloworld --for halted"]
            .map(|arguments| Running::start(&world, arguments));
    for watch in &mut watches {
        watch.until("waiting");
    }
    let addons: Api<ClusterManagementAddOn> = Api::all(world.client.clone());
    world.block_on(addons.delete("helloworld", &DeleteParams::default())).unwrap();
    for watch in watches {
        let (code, complaint) = watch.end_with_complaint();
        assert_eq!((code, complaint.as_str()), (Some(1), "aviary: add-on helloworld was deleted\n"));
    }
}

/// Item 1: a lost hub is reported once, and what was known before is no outcome.
#[test]
fn a_watch_reports_a_lost_hub_and_goes_on_when_it_is_back() {
    let (world, line) = World::installed("truth-lost").with_line();
    world.mood(|mood| mood.ignore.extend(["v2.0.0".to_owned()]));
    world.give(addon("two"));
    let mut watch = Running::start(&world, "status helloworld -w");
    watch.until("2 in flight");
    line.cut();
    watch.until("hub unreachable since 2");
    // The rollout ends while the hub cannot be reached.
    world.give(addon("one"));
    world.until_all("completed with no errors.");
    assert!(!watch.has_ended());
    line.restore();
    watch.until("hub reachable again");
    let (code, printed) = watch.end();
    assert_eq!(code, Some(0), "{printed:#?}");
    assert!(printed.iter().any(|line| line.contains("Done  16 of 16 clusters settled")), "{printed:#?}");
    let lost = printed.iter().filter(|line| line.contains("hub unreachable")).count();
    assert_eq!(lost, 1, "{printed:#?}");
}

#[test]
fn a_watch_that_times_out_without_a_hub_reports_no_stale_outcome() {
    let (world, line) = World::refused("truth-lost-timeout").with_line();
    world.mood(|mood| mood.ignore.extend(["v2.0.0".to_owned()]));
    world.give(addon("two"));
    world.until("the canary to start", |_, plan| {
        plan.report.placements.iter().any(|one| one.tally.in_flight > 0)
    });
    let mut watch = Running::start(&world, "status helloworld --timeout 30s");
    watch.until("in flight");
    line.cut();
    watch.until("hub unreachable since 2");
    let (code, printed) = watch.end();
    assert_eq!(code, Some(1), "{printed:#?}");
}

#[test]
fn a_fleet_reports_a_lost_hub_and_when_it_is_back() {
    let (world, line) = World::quiet("truth-fleet").with_line();
    assert_resumes(&world, &line, Line::cut);
}

/// A connection that dies silently is no error for a watch: only its end would tell.
#[test]
fn a_fleet_works_again_after_an_outage_that_no_connection_reports() {
    let (world, line) = World::quiet("truth-fleet-silent").with_line();
    assert_resumes(&world, &line, Line::stall);
}

/// The fleet says once that the hub is away, and its agents answer when it says that the hub is
/// back.
fn assert_resumes(world: &World, line: &Line, lose: fn(&Line)) {
    let mut fleet = Running::start(world, "fleet --clusters 2 --latency 0s..0s");
    fleet.until("Press Ctrl-C");
    world.until_answered("cluster-1", "before");
    lose(line);
    fleet.until("unreachable");
    line.restore();
    fleet.until("reachable again");
    world.until_answered("cluster-1", "after");
    let lost: Vec<&String> = fleet.printed.iter().filter(|line| line.contains("unreachable")).collect();
    assert_eq!(lost.len(), 1, "{lost:#?}");
    fleet.kill();
}

/// What failed does not hide that somebody has paused it.
#[test]
fn a_pause_is_shown_beside_a_failure() {
    let world = World::refused("truth-failed-paused");
    world.output("rollout pause helloworld --placement canary");
    world.until("the pause", |observed, plan| {
        let is_paused = observed.addon.strategy.placements().iter().any(|spec| spec.rollout.paused);
        is_paused && plan.report.placements.iter().any(|one| one.message.contains("upgrade failed"))
    });
    let words = |told: &str| told.split_whitespace().collect::<Vec<_>>().join(" ");
    for command in
        ["status", "status -o wide", "status helloworld", "status helloworld -w", "explain helloworld"]
    {
        let told = words(&world.run(command));
        assert!(
            told.contains("upgrade failed: stopped") && told.contains("; paused: default/canary"),
            "{told}"
        );
    }
    let told = world.run("explain helloworld");
    assert!(told.contains("default/canary  Failed (paused)  upgrade failed"), "{told}");
    let told = world.run("status helloworld");
    assert!(told.contains("Failed (paused)"), "{told}");
}

/// Item 7: kubectl shows events in the order in which they happened, and each of them is true.
#[test]
fn events_are_in_order_and_true() {
    let world = World::refused("truth-events");
    world.give(addon("one"));
    world.until_all("completed with no errors.");
    let api: Api<Event> = Api::namespaced(world.client.clone(), "default");
    let events = world.block_on(api.list(&ListParams::default())).unwrap().items;
    let mut by_name = events.clone();
    by_name.sort_by_key(ResourceExt::name_any);
    let mut by_time = events.clone();
    by_time.sort_by_key(|event| event.event_time.as_ref().unwrap().0);
    let messages = |events: &[Event]| -> Vec<String> {
        events.iter().map(|event| event.message.clone().unwrap_or_default()).collect()
    };
    assert_eq!(messages(&by_name), messages(&by_time));
    assert!(
        events.iter().all(|event| event.last_timestamp.is_some() && event.count == Some(1)),
        "{events:#?}"
    );
    let said = messages(&by_time);
    let at =
        |text: &str| said.iter().position(|one| one == text).unwrap_or_else(|| panic!("{text}: {said:#?}"));
    assert!(
        at("default/canary: rolling out v3.0.0 to 4 clusters")
            < at("default/canary: rolling back to v1.0.0 on 2 clusters")
    );
    at("default/fleet: v1.0.0 is desired again; no cluster had left it");
    assert!(!said.iter().any(|one| one.contains(" 0 clusters")), "{said:#?}");
}

/// Item 4: a placement that nobody has decided is not "nothing to do".
#[test]
fn a_plan_names_placements_that_are_not_decided_yet() {
    let world = World::quiet("truth-undecided");
    world.block_on(world.fleet());
    world.give(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "new", "namespace": "default"}, "spec": {},
    }));
    let mut undecided = addon("one");
    undecided["spec"]["installStrategy"]["placements"] = json!([{
        "name": "new", "namespace": "default",
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": 2}},
    }]);
    world.give(undecided);
    let told = world.run("plan helloworld");
    assert!(!told.contains("nothing to do") && !told.contains("selects no cluster"), "{told}");
    for said in [
        "no clusters yet: default/new not decided yet",
        "Undecided",
        "PlacementUndecided",
        "every cluster that it selects is installed at once: the rollout strategy limits updates, not first installs",
    ] {
        assert!(told.contains(said), "{told}");
    }
}

/// Item 10: whoever waits for `Succeeded` right after the first apply must not be told that it is
/// done.
#[test]
fn nothing_has_succeeded_before_its_clusters_are_known() {
    let world = World::quiet("truth-unknown").looked_after();
    world.block_on(world.fleet());
    world.give(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "new", "namespace": "default"}, "spec": {},
    }));
    let mut undecided = addon("one");
    undecided["spec"]["installStrategy"]["placements"] = json!([{"name": "new", "namespace": "default"}]);
    world.give(undecided);
    let stated = |kind: &str| {
        let hub = world.get("ClusterManagementAddOn", "helloworld");
        let conditions = hub["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|one| one["type"] == kind).unwrap_or_default()
    };
    world.until("the first pass", |observed, _| observed.addon.status.observed_generation.is_some());
    let succeeded = stated("Succeeded");
    assert_eq!((&succeeded["status"], &succeeded["reason"]), (&json!("False"), &json!("PlacementUndecided")));
    assert_eq!(stated("Reconciling")["status"], "True");
    world.json("status helloworld -o json", 3);

    // The placement controller has written the count, and some of its decisions.
    let names: Vec<String> = ["fleet-00", "fleet-01"].map(String::from).into();
    world.give(objects::placement_of("new", 3));
    world.give(objects::decision("new", 1, &names));
    world.until("two clusters", |_, plan| {
        plan.report.clusters.len() == 2 && plan.report.placements[0].tally.settled == 2
    });
    let (succeeded, stalled) = (stated("Succeeded"), stated("Stalled"));
    assert_eq!(
        (&succeeded["status"], &succeeded["reason"]),
        (&json!("False"), &json!("PlacementInMotion")),
        "{succeeded}"
    );
    assert_eq!(stalled["status"], "False", "{stalled}");
    let status = world.json("status helloworld -o json", 3);
    let message = "default/new: its decisions hold 2 of 3 clusters so far";
    assert_eq!(status["addOns"][0]["message"], message, "{status:#}");

    world.give(objects::placement_of("new", 2));
    world.until("success", |observed, _| {
        observed.addon.status.conditions.iter().any(|one| one.kind == "Succeeded" && one.is_true())
    });
    world.json("status helloworld -o json", 0);
}

/// Item 5: errors have an exit code, and the hint leads to them.
#[test]
fn a_plan_with_errors_fails_and_its_hint_leads_to_them() {
    let world = World::installed("truth-errors");
    let mut wrong = addon("one");
    wrong["spec"]["installStrategy"]["placements"][0]["configs"] =
        json!([{"group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": "nine"}]);
    world.give(wrong);
    let told = world.run("plan helloworld");
    assert!(told.ends_with("exit 1\n"), "{told}");
    let next = "Nothing was written. Next: aviary explain helloworld # what is wrong, and what to do";
    assert!(told.contains(next), "{told}");
    let explained = world.run("explain helloworld");
    assert!(
        explained.contains("addonhubconfigs.addon.open-cluster-management.io nine not found"),
        "{explained}"
    );
    world.json("plan helloworld -o json", 1);
}

/// Item 8: a pause is visible wherever somebody looks, and hints repeat the options.
#[test]
fn a_pause_is_visible_and_hints_keep_the_options() {
    let world = World::installed("truth-paused");
    world.mood(|mood| mood.ignore.extend(["v2.0.0".to_owned()]));
    world.give(addon("two"));
    world.until("the canary to start", |_, plan| {
        plan.report.placements.iter().any(|one| one.tally.in_flight > 0)
    });
    let told = world.run("rollout pause helloworld -p canary --dry-run");
    assert!(told.contains("Next: aviary rollout pause helloworld --placement canary"), "{told}");
    let told = world.run("rollout pause helloworld -p canary");
    assert!(told.contains("Next: aviary rollout resume helloworld --placement canary"), "{told}");
    let status = world.run("status helloworld");
    assert!(status.contains("0 of 16 clusters settled; paused: default/canary"), "{status}");
    let watch = world.run("status helloworld --timeout 1s");
    assert!(
        watch.contains("Paused  0 settled, 2 in flight") && watch.contains("; paused: default/canary"),
        "{watch}"
    );
    let list = world.run("status");
    assert!(list.contains("paused: default/canary"), "{list}");
    let undo = world.run("rollout undo helloworld -p canary --to-revision 1 --dry-run");
    let next = "Next: aviary rollout undo helloworld --to-revision 1 --placement canary";
    assert!(undo.contains(next), "{undo}");
}

#[test]
fn a_pause_stays_visible_when_everything_has_settled() {
    let world = World::installed("truth-paused-done");
    world.run("rollout pause helloworld");
    world.until("the pause", |observed, _| {
        observed.addon.strategy.placements().iter().all(|spec| spec.rollout.paused)
    });
    let paused = "16 of 16 clusters settled; paused: default/fleet, default/canary";
    for arguments in ["status", "status helloworld", "status helloworld -w"] {
        let told = world.run(arguments).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(paused), "{told}");
        assert!(!told.contains("exit "), "everything is done: {told}");
    }
}

/// Overrides one kind of config of the instance on a cluster.
fn override_on(world: &World, cluster: &str, config: &str) {
    let config =
        json!({"group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": config});
    let api: Api<ManagedClusterAddOn> = Api::namespaced(world.client.clone(), cluster);
    let patch = Patch::Merge(json!({"spec": {"configs": [config]}}));
    world.block_on(api.patch("helloworld", &PatchParams::default(), &patch)).unwrap();
}

/// The override of one instance stops nobody else, and no state of the add-on says that it does.
#[test]
fn a_broken_override_does_not_fail_the_add_on() {
    let world = World::installed("truth-override");
    override_on(&world, "fleet-03", "nine");
    world.give(addon("two"));
    let status = world.json("status helloworld -w --timeout 2m -o json", 0);
    let told = &status["addOns"][0];
    let missing = "addonhubconfigs.addon.open-cluster-management.io nine not found";
    let message = format!("15 of 16 clusters settled; broken override: {missing}");
    assert_eq!((&told["state"], &told["message"]), (&json!("Done"), &json!(message)), "{told:#}");
    let left_out = &told["unsettled"][0];
    assert_eq!(
        (&left_out["cluster"], &left_out["reason"]),
        (&json!("fleet-03"), &json!("ConfigurationMissing")),
        "{told:#}"
    );
    assert_adds_up(told);
    let hub = world.get("ClusterManagementAddOn", "helloworld");
    let succeeded =
        hub["status"]["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Succeeded");
    assert_eq!(succeeded.unwrap()["status"], "True", "{hub:#}");
    // Counts alone are written a little later.
    world.until("the counts", |observed, _| {
        observed.addon.status.rollout.as_ref().is_some_and(|rollout| rollout.tally.settled == 15)
    });
    let text = world.run("status");
    assert!(text.contains("helloworld  Done") && text.contains("broken override"), "{text}");
    let explained = world.run("explain helloworld");
    assert!(
        explained.contains("ConfigurationMissing") && explained.contains("helloworld  Done"),
        "{explained}"
    );

    // One that its agent refuses is that cluster's failure alone.
    world.mood(|mood| mood.refuse.extend(["v3.0.0".to_owned()]));
    override_on(&world, "fleet-03", "three");
    world.until("the refusal", |_, plan| {
        plan.report.clusters.iter().any(|cluster| cluster.decision.code().as_str() == "Failed")
    });
    // Nothing moves it any more, so nobody waits for it in vain.
    let told = &world.json("status helloworld -w --timeout 2m -o json", 4)["addOns"][0];
    assert_eq!((&told["failed"], &told["state"]), (&json!(1), &json!("Failed")), "{told:#}");
    assert_eq!(told["message"], "15 of 16 clusters settled, 1 failed", "{told:#}");
    assert_adds_up(told);
}

/// Item 12: whatever is printed about a fleet fits into 80 columns, except commands to copy.
#[test]
fn status_explain_and_history_fit_into_80_columns() {
    let world = World::refused("truth-columns");
    for command in [
        "status",
        "status helloworld",
        "explain helloworld",
        "explain helloworld canary-00",
        "explain helloworld fleet-03",
        "rollout history helloworld",
        "rollout undo helloworld --dry-run",
    ] {
        let output = world.output(command);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.lines().count() > 3, "{command}: {printed}");
        for line in printed.lines().filter(|line| !line.contains("Next: ")) {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
    // Wide text breaks no line.
    let wide = world.output("explain helloworld canary-00 -o wide");
    let wide = String::from_utf8_lossy(&wide.stdout);
    assert!(
        wide.lines().any(|line| line.contains("Progressing") && line.contains("cannot be pulled")),
        "{wide}"
    );
}

/// The same for a plan and a rehearsal, on a terminal or where a width is given. Elsewhere,
/// programs read their lines.
#[test]
fn plan_and_rehearse_fit_into_80_columns_where_there_is_a_width() {
    let world = World::refused("truth-narrow").file("two.yaml", &stream(&[addon("two")]));
    let canary = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/canary");
    let mut long = 0;
    for command in [
        "plan helloworld --kubeconfig hub.kubeconfig".to_owned(),
        "plan helloworld -f two.yaml --kubeconfig hub.kubeconfig".to_owned(),
        "rehearse helloworld -f two.yaml --fail 100% --kubeconfig hub.kubeconfig".to_owned(),
        format!("plan -f {canary}"),
        format!("rehearse -f {canary} --clusters 500 --runs 2"),
        format!("rehearse -f {canary} --clusters 500 --fail 100%"),
    ] {
        let printed = |columns: &str| {
            let output = world.desk.command(&command).env("COLUMNS", columns).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let (narrow, wide) = (printed("80"), printed(""));
        let is_long = |line: &&str| line.chars().count() > 80 && !line.contains("Next: ");
        assert!(narrow.lines().count() > 3, "{command}: {narrow}");
        assert_eq!(narrow.lines().find(is_long), None, "{command}: {narrow}");
        long += wide.lines().filter(is_long).count();
        // Nothing is lost, and the command to copy is in one line.
        let words = |text: &str| {
            let mut words: Vec<String> = text.to_lowercase().split_whitespace().map(str::to_owned).collect();
            words.sort_unstable();
            words.dedup();
            words
        };
        let (kept, all) = (words(&narrow), words(&wide));
        let lost: Vec<&String> = all.iter().filter(|word| kept.binary_search(word).is_err()).collect();
        // Where the last column is below its row, it has no heading.
        let is_heading = |word: &&String| matches!(&***word, "result" | "message" | "which" | "what");
        assert!(lost.iter().all(is_heading), "{command} loses {lost:?}: {narrow}");
        assert_eq!(narrow.lines().last(), wide.lines().last(), "{command}");
    }
    assert!(long > 10, "only {long} lines have been too long");
}

#[test]
fn names_and_versions_are_suggested_and_completed() {
    let world = World::installed("truth-names");
    let said = |arguments: &str| world.run(arguments);
    assert!(said("status hellowrold").contains("did you mean helloworld?"));
    assert!(said("explain helloworld flet-01").contains("did you mean fleet-01?"));
    assert!(said("rollout pause helloworld -p canari").contains("did you mean canary?"));
    let world = world.file("typo.yaml", &stream(&[hub_config("two", "v2.0.1"), addon("two")]));
    let told = world.run("plan helloworld -f typo.yaml");
    assert!(told.contains("invalid version v2.0.1") && told.contains("did you mean v2.0.0?"), "{told}");
    let bash = r#"source <("$AVIARY" completion bash)
        aviary() { "$AVIARY" "$@"; }
        typed() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _aviary_names aviary "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; echo "${COMPREPLY[@]}"; }
        typed aviary explain ""
        typed aviary explain helloworld canary-0
        typed aviary rollout pause helloworld -p ""
        typed aviary rollout un"#;
    let run = std::process::Command::new("bash")
        .args(["-c", bash])
        .env("AVIARY", env!("CARGO_BIN_EXE_aviary"))
        .env("KUBECONFIG", world.desk.path("hub.kubeconfig"))
        .output()
        .unwrap();
    let told = String::from_utf8(run.stdout).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].contains("helloworld"), "{told} {}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(lines[1], "canary-00 canary-01 canary-02 canary-03", "{told}");
    assert!(lines[2].contains("default/canary") && lines[2].contains("default/fleet"), "{told}");
    assert_eq!(lines[3], "undo", "{told}");
}

#[test]
fn help_and_status_are_where_people_look_for_them() {
    let world = World::installed("truth-help");
    let help = world.desk.run("help");
    assert!(help.contains("Usage: aviary") && help.contains("rollout"), "{help}");
    assert!(world.desk.run("help rollout").contains("pause"));
    let (one, other) = (world.run("rollout status helloworld"), world.run("status helloworld"));
    assert_eq!(one.replace("rollout status", "status"), other);
}

/// The columns that `kubectl get` prints for the add-on, by name.
fn columns(world: &World) -> Value {
    let path = "/apis/addon.open-cluster-management.io/v1alpha1/clustermanagementaddons/helloworld";
    let request = axum::http::Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
    let table: Value = world.block_on(world.client.request(request)).unwrap();
    let names = table["columnDefinitions"].as_array().unwrap().iter();
    let cells = names.zip(table["rows"][0]["cells"].as_array().unwrap());
    cells.map(|(column, cell)| (column["name"].as_str().unwrap().to_owned(), cell.clone())).collect()
}

/// Item 9: kubectl and `aviary status` say the same of an add-on whose placement is missing.
#[test]
fn a_missing_placement_is_a_failure_for_kubectl_too() {
    let world = World::installed("truth-missing");
    world.give(addon("two"));
    world.until_all("upgrade completed with no errors.");
    assert_eq!(columns(&world)["State"], "Settled");
    let placement = objects::placement_of("fleet", 0);
    let api = aviary_testing::api_of(&world.client, &placement);
    world.block_on(api.delete("fleet", &Default::default())).unwrap();
    world.until("the failure", |_, plan| {
        plan.report.placements.iter().any(|one| one.message.contains("does not exist"))
    });
    let shown = columns(&world);
    assert_eq!(shown["State"], "UpgradeFailed", "{shown:#}");
    let message = shown["Message"].as_str().unwrap();
    assert!(message.contains("placement default/fleet does not exist"), "{message}");
    let told = &world.json("status helloworld -o json", 4)["addOns"][0];
    // A command leaves out the count of clusters that are assigned the revision.
    let said = Regex::new(r"\d+/\d+ ").unwrap().replace(message, "");
    assert_eq!((&told["state"], &told["message"]), (&json!("Failed"), &json!(said)), "{told:#}");
}

/// Item 9: the newest version is not what clusters run, nor what they should run.
#[test]
fn kubectl_shows_the_desired_version_and_not_the_newest() {
    let world = World::installed("truth-version");
    let shown = columns(&world);
    assert_eq!((&shown["Desired"], &shown["Settled"]), (&json!("v1.0.0"), &json!("16/16")), "{shown:#}");
    assert!(!shown.to_string().contains("v3.0.0"), "{shown:#}");
}

/// Item 9: an instance that waits has no reason in its status, and README does not promise one.
#[test]
fn readme_says_where_the_reasons_of_waiting_clusters_are() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap().replace('\n', " ");
    let promise = "**Every waiting cluster has a reason.** `aviary explain`, the dashboard and the metrics";
    assert!(readme.contains(promise));
    let world = World::refused("truth-reasons");
    let waiting = world.get("ManagedClusterAddOn", "fleet-03/helloworld");
    assert!(!waiting["status"].to_string().contains("anary"), "{waiting:#}");
    let explained = world.run("explain helloworld fleet-03");
    assert!(explained.contains("WaitingForCanary"), "{explained}");
}

/// `kubectl patch placement …` and then `status -w`: the decisions are still those from before.
#[test]
fn a_watch_waits_until_a_changed_placement_is_decided_again() {
    let world = World::installed("truth-outdated");
    let decided = |labels: &Value, generation: Option<i64>| {
        let mut placement = objects::placement_by_labels("fleet", labels);
        placement["status"] = json!({"numberOfSelectedClusters": 12});
        if let Some(generation) = generation {
            placement["status"]["conditions"] = json!([{
                "type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation,
            }]);
        }
        world.give(placement);
    };
    let generation = || {
        let name = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "fleet", "namespace": "default"},
        });
        let found = world.block_on(aviary_testing::api_of(&world.client, &name).get("fleet")).unwrap();
        found.metadata.generation.unwrap()
    };
    // Open Cluster Management's controller does not record which generation it has decided.
    decided(&json!({"stage": "fleet"}), None);
    world.json("status helloworld -w --timeout 90s -o json", 0);
    let first = generation();
    decided(&json!({"stage": "fleet", "new": "label"}), Some(first));
    let second = generation();
    assert!(first < second, "{first} {second}");
    let status = world.json("status helloworld -w --timeout 1s -o json", 3);
    let message = "default/fleet: its clusters have not been chosen again since it was changed";
    assert_eq!(status["addOns"][0]["message"], message, "{status:#}");
    decided(&json!({"stage": "fleet", "new": "label"}), Some(second));
    world.json("status helloworld -w --timeout 90s -o json", 0);
}
