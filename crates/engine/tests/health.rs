//! Healthy before next, rule by rule (docs/rollout-semantics.md, chapter 8), with an agent that
//! reports a work as available as soon as its objects exist.

#![allow(clippy::expect_used, reason = "a broken story must fail the test")]

use crate::story::rendering::works;
use crate::story::{Story, check, cluster};
use aviary_engine::hash;
use aviary_engine::health::Health;
use aviary_engine::normalise;
use aviary_engine::plan::plan;
use expect_test::expect;
use serde_json::{Value, json};

/// Version v1 everywhere, v2 next, a canary of 4 clusters with a budget of 2.
const CANARY: &str = "
    template v1 v2 v3
    place canary: c1..c4
    place prod: p1..p4
    rollout canary version=v1 RollingUpdate 2
    rollout prod version=v1 Canary 2 canary=canary
    settle";

#[test]
fn rule_1_a_version_that_is_never_ready_stays_in_the_budget_of_the_canary() {
    check(
        &format!(
            "{CANARY}
            bad v2 unready
            rollout canary version=v2 RollingUpdate 2 minSuccessTime=1m
            rollout prod version=v2 Canary 2 canary=canary
            settle
            wait 1h
            settle
            note an hour later
            show clusters
            show status
            note the Deployment's own deadline passes
            bad v2 broken
            broken c1 c2
            settle
            show clusters
            note rolled back
            ack c1 c2
            rollout canary version=v1 RollingUpdate 2 minSuccessTime=1m
            rollout prod version=v1 Canary 2 canary=canary
            settle
            wait 2m
            settle
            show clusters
            show c1"
        ),
        &expect![[r#"
            -- an hour later
            c1..c2 (2)       in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            c3..c4 (2)       hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            canary  True Upgrading  2/4 upgrading...
                desired v2 good v1 applied v1
            prod  True WaitingForCanary  waitingForCanary... canary default/canary: 4 of 4 not passed, first c1
                desired v2 good v1 applied v1
            versions v3 v2 v1 default v3
            -- the Deployment's own deadline passes
            c1..c2 (2)       failed    v2       failed: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            c3..c4 (2)       hold      v1       budget full: 2 of 2 slots taken: 2 failed
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            -- rolled back
            c1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
            c1  version desired v1 current v1 last v2
            c1  Progressing False Succeed: install completed with no errors.
            c1  Configured True ConfigurationsConfigured: all configurations are resolved
            c1  Available True WorksAvailable: all works are available
        "#]],
    );
}

#[test]
fn rule_2_a_crash_within_the_soak_never_passes() {
    check(
        &format!(
            "{CANARY}
            rollout canary version=v2 RollingUpdate 2 minSuccessTime=10m
            rollout prod version=v2 Canary 2 canary=canary
            settle
            wait 10m
            settle
            note minSuccessTime has passed, and a crash in it may not be reported yet
            show clusters
            unready c1 c2
            settle
            wait 1h
            settle
            note crashed
            show clusters
            ack c1
            settle
            wait 10m
            settle
            note one runs again: its soak starts again
            show clusters
            wait 20s
            settle
            show clusters"
        ),
        &expect![[r#"
            -- minSuccessTime has passed, and a crash in it may not be reported yet
            c1..c2 (2)       in flight v2       healthy, soaking until 2026-01-01T00:10:20Z
            c3..c4 (2)       hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            -- crashed
            c1..c2 (2)       in flight v2       applied but not available: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            c3..c4 (2)       hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            -- one runs again: its soak starts again
            c1               in flight v2       healthy, soaking until 2026-01-01T01:20:20Z
            c2               in flight v2       applied but not available: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            c3..c4 (2)       hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 4 of 4 not passed, first c1
            c2               in flight v2       applied but not available: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            c3               in flight v2       healthy, soaking until 2026-01-01T01:30:40Z
            c4               hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 3 of 4 not passed, first c2
        "#]],
    );
}

#[test]
fn rule_3_a_failure_counts_from_a_minute_after_the_start_and_is_not_sticky() {
    check(
        "template v1 v2
        place prod: p1..p3
        rollout prod version=v1 RollingUpdate 1
        settle
        rollout prod version=v2 RollingUpdate 1 maxFailures=0
        pass 2
        broken p1
        pass
        wait 59s
        pass
        note a failure may be left over from the version before
        show clusters
        wait 1s
        pass 2
        note it counts
        show clusters
        show p1
        ack p1
        pass
        note it is healthy after all
        show clusters
        ack p2
        settle
        show clusters",
        &expect![[r#"
            -- a failure may be left over from the version before
            p1               in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            p2..p3 (2)       hold      v1       budget full: 1 of 1 in flight
            -- it counts
            p1               failed    v2       failed: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            p2..p3 (2)       hold      v1       halted: 1 failed, 0 tolerated
            p1  addonhubconfigs desired v2@cdf58b3d applied v1@b433cd0d
            p1  version desired v2 current unknown last v1
            p1  Progressing False Failed: upgrade failed: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            p1  Configured True ConfigurationsConfigured: all configurations are resolved
            p1  Available False WorkloadUnhealthy: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available; its progress deadline has passed
            -- it is healthy after all
            p2               in flight v2       updating
            p3               hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}

#[test]
fn rule_4_a_settled_cluster_within_its_workload_s_tolerance_stays_settled() {
    check(
        "template v1 v2
        place prod: p1 p2
        rollout prod version=v1 RollingUpdate 1
        settle
        degraded p1
        settle
        show all
        show writes
        note not on the way to a new version: there it must hold exactly
        rollout prod version=v2 RollingUpdate 1
        degraded p1 p2
        settle
        show clusters
        note and more than it tolerates is not settled either
        ack p1 p2
        settle
        unready p1
        settle
        show all",
        &expect![[r#"
            p1..p2 (2)       settled   v1       settled
            0 writes
            -- not on the way to a new version: there it must hold exactly
            p1               in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 2 of 3 updated replicas available
            p2               hold      v1       budget full: 1 of 1 in flight
            -- and more than it tolerates is not settled either
            p1               in flight v2       applied but not available: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            p2               settled   v2       settled
        "#]],
    );
}

#[test]
fn rule_4_what_a_workload_tolerates_does_not_count_within_the_soak() {
    check(
        "template v1
        place prod: p1 p2
        rollout prod version=v1 RollingUpdate 1 minSuccessTime=10m
        settle
        wait 5m
        degraded p1
        settle
        wait 1h
        settle
        note p1 misses no more than it tolerates, and has not been healthy for long enough
        show clusters
        ack p1
        settle
        wait 11m
        settle
        degraded p1
        settle
        note all have settled
        show clusters",
        &expect![[r#"
            -- p1 misses no more than it tolerates, and has not been healthy for long enough
            p1               in flight v1       applied but not available: Deployment open-cluster-management-agent-addon/agent: 2 of 3 updated replicas available
            -- all have settled
        "#]],
    );
}

#[test]
fn rule_5_available_names_the_object_and_is_not_written_again_for_other_numbers() {
    let mut story = Story::new();
    story.run(
        "template v1
        place prod: p1
        rollout prod version=v1
        settle
        wait 5m
        unready p1
        settle
        show p1
        show writes",
    );
    let count = |available: u32| {
        Health::Progressing {
        why: format!("Deployment open-cluster-management-agent-addon/agent: {available} of 3 updated replicas available").into(),
        tolerable: false,
    }
    };
    let report = |story: &mut Story, health: Health| {
        story.world.observed.works.get_mut(&cluster("p1")).expect("works")[0].health = health;
    };
    // In other words it is written once, and then not for other numbers.
    report(&mut story, count(2));
    story.run("settle");
    for available in [2, 0, 1] {
        report(&mut story, count(available));
        story.run("wait 10s\n show writes");
    }
    story.run("note another object\n");
    report(&mut story, Health::Failed { why: "Job install: it has failed".into() });
    story.run("pass\n show p1\n note well again\n ack p1\n settle\n show p1");
    expect![[r#"
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available False WorkloadUnhealthy: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
        0 writes
        0 writes
        0 writes
        0 writes
        -- another object
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available False WorkloadUnhealthy: Job install: it has failed
        -- well again
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available True WorksAvailable: all works are available
    "#]].assert_eq(&story.told);
}

#[test]
fn rule_6_without_a_report_health_is_unknown_and_nothing_moves_on() {
    check(
        "template v1 v2
        place prod: p1 p2
        rollout prod version=v1 RollingUpdate 1
        settle
        bad v2 unreported
        rollout prod version=v2 RollingUpdate 1 progressDeadline=10m
        settle
        wait 2m
        settle
        show clusters
        show p1
        wait 10m
        settle
        note its deadline passes
        show clusters",
        &expect![[r#"
            p1               in flight v2       health unknown: Deployment open-cluster-management-agent-addon/agent: the work agent has not reported its health yet
            p2               hold      v1       budget full: 1 of 1 in flight
            p1  addonhubconfigs desired v2@cdf58b3d applied v1@b433cd0d
            p1  version desired v2 current unknown last v1
            p1  Progressing True Upgrading: Upgrading addon to version v2.
            p1  Configured True ConfigurationsConfigured: all configurations are resolved
            p1  Available Unknown HealthUnknown: Deployment open-cluster-management-agent-addon/agent: the work agent has not reported its health yet
            -- its deadline passes
            p1               failed    v2       failed: not settled within 10m: Deployment open-cluster-management-agent-addon/agent: the work agent has not reported its health yet
            p2               hold      v1       budget full: 1 of 1 slots taken: 1 failed
        "#]],
    );
}

/// A work as the first version rendered it: no digests on its objects, no probes.
fn of_the_first_version(mut object: Value) -> Value {
    let manifests = object["spec"]["workload"]["manifests"].as_array_mut().expect("manifests");
    for manifest in manifests {
        manifest["metadata"].as_object_mut().expect("metadata").remove("annotations");
    }
    let digest = hash::digest(&object["spec"]["workload"]["manifests"]);
    object["spec"].as_object_mut().expect("a spec").remove("manifestConfigs");
    let annotations = object["metadata"]["annotations"].as_object_mut().expect("annotations");
    annotations.remove("addon.open-cluster-management.io/probes-digest").expect("probes");
    annotations.insert("addon.open-cluster-management.io/rendered-digest".to_owned(), json!(digest.as_str()));
    object["metadata"]["generation"] = json!(1);
    object["metadata"]["uid"] = json!("work-uid");
    let said = |kind: &str| json!({"type": kind, "status": "True", "observedGeneration": 1});
    object["status"] = json!({"conditions": [said("Applied"), said("Available")]});
    object
}

#[test]
fn rule_7_works_of_the_first_version_are_accepted_until_their_revision_changes() {
    for strategy in
        ["UpdateAll", "All", "RollingUpdate 50%", "Canary 50% canary=canary", "Progressive 50%", "PerGroup"]
    {
        let mut story = Story::new();
        story.run(&format!(
            "template v1 v2
            place canary: c001
            place prod: p001..p250 | p251..p499
            rollout canary version=v1
            rollout prod version=v1 {strategy}
            settle"
        ));
        let mut without = story.world.observed.clone();
        for name in story.world.observed.instances.keys() {
            without.works.get_mut(name).expect("works").clear();
        }
        let rendered = works(&without, &story);
        assert_eq!(rendered.len(), 500, "{strategy}");
        for object in rendered {
            let name = cluster(object["metadata"]["namespace"].as_str().expect("a namespace"));
            let work = serde_json::from_value(of_the_first_version(object)).expect("a ManifestWork");
            let (_, work) = normalise::work(&work).expect("a work of the add-on");
            assert_eq!(work.health, Health::NotProbed);
            *story.world.observed.works.get_mut(&name).expect("works") = vec![work];
        }
        for later in ["0s", "1h"] {
            story.run(&format!("wait {later}"));
            let writes: Vec<_> = plan(&story.world.observed, story.now).writes().collect();
            assert!(writes.is_empty(), "{strategy}: {:?}", writes.first());
        }
        story.run(&format!("rollout canary version=v2\n rollout prod version=v2 {strategy}\n settle"));
        let mut probed = story.world.observed.works.iter().flat_map(|(_, works)| works.iter());
        assert!(
            probed.all(|work| work.health == Health::Healthy && work.version.as_deref() == Some("v2")),
            "{strategy}"
        );
    }
}

#[test]
fn rule_8_a_first_install_that_was_never_healthy_is_gated_whatever_its_agent_takes_back() {
    check(
        "template v1 v2
        place canary: c1
        place prod: p1
        bad v1 unready
        rollout canary version=v1 RollingUpdate 1
        rollout prod version=v1 Canary 1 canary=canary
        settle
        wait 1m
        settle
        note applied and never healthy; then the agent takes its report back
        stuck p1
        bad v2 unready
        rollout canary version=v2 RollingUpdate 1
        rollout prod version=v2 Canary 1 canary=canary
        settle
        show clusters",
        &expect![[r#"
            -- applied and never healthy; then the agent takes its report back
            c1               in flight v2       not healthy yet: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
            p1               hold      v1       canary default/canary: 1 of 1 not passed, first c1
        "#]],
    );
}

#[test]
fn rule_9_a_soak_starts_again_when_the_cluster_was_offline_in_it() {
    check(
        &format!(
            "{CANARY}
            rollout canary version=v2 RollingUpdate 2 minSuccessTime=10m
            rollout prod version=v2 Canary 2 canary=canary
            settle
            wait 5m
            offline c1
            settle
            wait 20m
            settle
            note offline
            show clusters
            online c1
            settle
            note back: the time offline does not count
            show clusters
            wait 11m
            settle
            show clusters"
        ),
        &expect![[r#"
            -- offline
            c1               in flight v2       offline since 2026-01-01T00:05:00Z, in flight
            c3               in flight v2       healthy, soaking until 2026-01-01T00:35:20Z
            c4               hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 3 of 4 not passed, first c1
            -- back: the time offline does not count
            c1..c3 (2)       in flight v2       healthy, soaking until 2026-01-01T00:35:20Z
            c4               hold      v1       budget full: 2 of 2 in flight
            p1..p4 (4)       hold      v1       canary default/canary: 3 of 4 not passed, first c1
            c4               in flight v2       healthy, soaking until 2026-01-01T00:46:20Z
            p1..p4 (4)       hold      v1       canary default/canary: 1 of 4 not passed, first c4
        "#]],
    );
}

/// A template of these manifests, rendered on one cluster, whose agent has applied everything.
fn applied(manifests: &Value) -> Story {
    let mut story = crate::story::rendering::ready(manifests, &json!({}));
    story.run("settle");
    story
}

fn next_template(story: &mut Story, version: &str, manifests: &Value) {
    story.put_template(&json!({
        "metadata": { "name": "tpl" },
        "spec": { "addonName": "helloworld", "version": version, "agentSpec": { "workload": { "manifests": manifests } } },
    }));
}

fn job(name: &str, image: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "ns"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

#[test]
fn rule_10_a_job_that_changes_under_its_old_name_is_a_problem_and_moves_nothing() {
    let mut story = applied(&json!([job("migrate", "one")]));
    next_template(&mut story, "v2.0.0", &json!([job("migrate", "two")]));
    story.run("settle");
    let planned = plan(&story.world.observed, story.now);
    let problems: Vec<String> = planned.report.problems.iter().map(ToString::to_string).collect();
    expect![[r#""#]].assert_eq(&problems.join("\n"));
    assert_eq!(planned.writes().count(), 0);
    next_template(&mut story, "v2.0.0", &json!([job("migrate-{{VERSION}}", "two")]));
    story.run("settle");
    let works: Vec<_> = story.world.observed.works.iter().flat_map(|(_, works)| works.iter()).collect();
    assert!(works.iter().all(|work| work.version.as_deref() == Some("v2.0.0")), "{works:?}");
}

/// A ConfigMap of so many KiB.
fn map(name: &str, size: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "{{CLUSTER_NAME}}"},
        "data": {"text": "x".repeat(size * 1024)}})
}

/// The works of the cluster: name, generation, and how many objects each has.
fn sizes(story: &Story) -> String {
    let works = story.world.observed.works.iter().flat_map(|(_, works)| works.iter());
    let mut sizes: Vec<String> = works
        .map(|work| format!("{} generation {}: {} objects", work.name, work.generation, work.objects.len()))
        .collect();
    sizes.sort();
    sizes.join("\n") + "\n"
}

#[test]
fn rule_11_an_object_leaves_a_work_only_once_the_work_that_it_moves_to_is_applied() {
    let mut story = applied(&json!([map("a", 150), map("b", 150), map("c", 150), map("d", 150)]));
    let mut told = sizes(&story);
    // A new object in front moves `b` from the first work to the second, and `d` to a third.
    next_template(
        &mut story,
        "v2.0.0",
        &json!([map("new", 150), map("a", 150), map("b", 150), map("c", 150), map("d", 150)]),
    );
    for _ in 0..4 {
        story.run("pass");
        told += &format!("--\n{}", sizes(&story));
        story.run("ack a1");
    }
    story.run("settle");
    told += &format!("-- settled\n{}", sizes(&story));
    // Without two of the objects, what is left moves forward, and a work goes.
    next_template(&mut story, "v3.0.0", &json!([map("b", 150), map("c", 150), map("d", 150)]));
    for _ in 0..4 {
        story.run("pass");
        told += &format!("--\n{}", sizes(&story));
        story.run("ack a1");
    }
    story.run("settle");
    told += &format!("-- settled\n{}", sizes(&story));
    expect![[r#"
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 1: 2 objects
        --
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 1: 2 objects
        --
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 1: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 2: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        -- settled
        addon-helloworld-deploy-0 generation 2: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 2: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 3: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 3: 2 objects
        addon-helloworld-deploy-1 generation 3: 1 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 3: 2 objects
        addon-helloworld-deploy-1 generation 3: 1 objects
        -- settled
        addon-helloworld-deploy-0 generation 3: 2 objects
        addon-helloworld-deploy-1 generation 3: 1 objects
    "#]]
    .assert_eq(&told);
}

#[test]
fn rule_12_a_work_has_at_most_200_objects() {
    let maps: Vec<Value> = (0..450).map(|number| map(&format!("m{number:03}"), 0)).collect();
    expect![[r#"
        addon-helloworld-deploy-0 generation 1: 200 objects
        addon-helloworld-deploy-1 generation 1: 200 objects
        addon-helloworld-deploy-2 generation 1: 50 objects
    "#]]
    .assert_eq(&sizes(&applied(&json!(maps))));
}
